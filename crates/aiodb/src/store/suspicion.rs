//! Whether sorted runs may hide much garbage: what a newer run has superseded in an older one counts as alive until both are merged.

use crate::sync::atomic::{AtomicU64, Ordering};

/// The garbage that runs may hide. Relaxed: only upkeep changes it, and it publishes nothing.
pub(crate) struct Suspicion {
    /// Bytes that counted as alive when fewest did since the runs were merged for the sake of garbage; the highest number before the
    /// first look.
    least_live: AtomicU64,
    /// The runs with records before this sequence are being merged; 0 = none are.
    until: AtomicU64,
}

impl Default for Suspicion {
    fn default() -> Suspicion {
        Suspicion { least_live: AtomicU64::new(u64::MAX), until: AtomicU64::new(0) }
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

    /// Looks at what counts as alive now: garbage is suspected where it is half as much again as it was, and `tolerated` bytes more.
    /// One run hides nothing. `until` is the sequence up to which there are runs.
    pub(crate) fn look(&self, live: u64, tolerated: u64, runs: usize, until: u64) {
        let least = self.least_live.load(Ordering::Relaxed);
        let least = if runs < 2 { live } else { least.min(live) };
        self.least_live.store(least, Ordering::Relaxed);
        if live - least > (least / 2).max(tolerated) {
            self.until.store(until, Ordering::Relaxed);
        }
    }

    /// The runs are merged: so much counts as alive now.
    pub(crate) fn end(&self, live: u64) {
        self.least_live.store(live, Ordering::Relaxed);
        self.until.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
