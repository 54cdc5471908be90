//! Whether sorted runs may hide much garbage: what a newer run has superseded in an older one counts as alive until both are merged.

use crate::sync::atomic::{AtomicU64, Ordering};

/// Where there are other merges all the time, those for the sake of garbage come in one of so many rounds of upkeep.
const MERGED_EVERY: u64 = 8;

/// The garbage that runs may hide. Relaxed: it publishes nothing, and where a writer that makes room or an ingest changes it beside
/// upkeep, a suspicion ends early or is raised again at worst.
pub(crate) struct Suspicion {
    /// Bytes that counted as alive when fewest did since the runs were merged for the sake of garbage; the highest number before the
    /// first look.
    least_live: AtomicU64,
    /// The runs with records before this sequence are being merged; 0 = none are.
    until: AtomicU64,
    /// Bytes of the garbage that is suspected.
    bytes: AtomicU64,
    /// Rounds of upkeep in which other merges came first.
    put_off: AtomicU64,
}

/// What counts as alive when upkeep looks for garbage.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    /// Bytes of all records that count as alive.
    pub(crate) live: u64,
    /// How many runs there are: one hides nothing.
    pub(crate) runs: usize,
    /// Whether the memtable is empty: it hides what it has superseded in runs until it is one.
    pub(crate) is_committed: bool,
    /// The sequence up to which there are runs.
    pub(crate) until: u64,
}

impl Default for Suspicion {
    fn default() -> Suspicion {
        let [until, bytes, put_off] = [0; 3].map(AtomicU64::new);
        Suspicion { least_live: AtomicU64::new(u64::MAX), until, bytes, put_off }
    }
}

impl Suspicion {
    /// Whether runs are to be merged.
    pub(crate) fn is_any(&self) -> bool {
        self.until() > 0
    }

    /// The runs with records before this sequence are to be merged.
    pub(crate) fn until(&self) -> u64 {
        self.until.load(Ordering::Relaxed)
    }

    /// So many bytes of garbage are suspected.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes note of what counts as alive now, without a suspicion.
    pub(crate) fn note(&self, look: Look) {
        self.grown(look);
    }

    /// Looks at what counts as alive now: garbage is suspected where it is half as much again as it was, and `tolerated` bytes more.
    pub(crate) fn look(&self, look: Look, tolerated: u64) {
        self.look_for_room(look, tolerated, u64::MAX, 0);
    }

    /// Like [`Suspicion::look`] on a full disk: garbage is suspected also where it may be `worth` bytes, and then the oldest run, which
    /// has `oldest_bytes`, is written again for it.
    pub(crate) fn look_for_room(&self, look: Look, tolerated: u64, worth: u64, oldest_bytes: u64) {
        let (least, more) = self.grown(look);
        let is_worth_it = more >= worth.max(1);
        if is_worth_it || more > (least / 2).max(tolerated) {
            self.bytes.store(if is_worth_it { more.max(oldest_bytes) } else { more }, Ordering::Relaxed);
            self.until.store(look.until, Ordering::Relaxed);
        }
    }

    /// The bytes that counted as alive when fewest did, and how many more do now.
    fn grown(&self, Look { live, runs, is_committed, .. }: Look) -> (u64, u64) {
        let least = self.least_live.load(Ordering::Relaxed);
        let least = if runs < 2 && is_committed { live } else { least.min(live) };
        self.least_live.store(least, Ordering::Relaxed);
        // There is nothing to merge with one run.
        (least, if runs < 2 { 0 } else { live - least })
    }

    /// Whether the suspected garbage comes first in this round of upkeep, in which there was another merge.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_any() && self.put_off.fetch_add(1, Ordering::Relaxed) % MERGED_EVERY == MERGED_EVERY - 1
    }

    /// So much more counts as alive, and none of it is garbage.
    pub(crate) fn expect(&self, bytes: u64) {
        let least = self.least_live.load(Ordering::Relaxed);
        self.least_live.store(least.saturating_add(bytes), Ordering::Relaxed);
    }

    /// The runs are merged: so much counts as alive now.
    pub(crate) fn end(&self, live: u64) {
        self.least_live.store(live, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
