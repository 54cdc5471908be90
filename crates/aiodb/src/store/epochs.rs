//! Epoch-based reclamation: no segment is used again while a reader may still read there.
//!
//! A reader takes a guard of the current epoch ([`Epochs::pin`]) before it looks a key up, and gives it back after its read. A
//! segment retired in epoch `e` may be used again in epoch `e + 2`, when every reader that could have seen a reference
//! to it has gone.
//!
//! Epoch and counts are SeqCst: a reader counts itself and then reads the epoch once more, a thread that moves the epoch reads the
//! counts after it has read the epoch, and one of the two must see the other. Users of [`Epochs::pin`] rely on that order too: see
//! `Snapshots::newest` and `Generation::gone`.

use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, Rank, yield_now};

/// Readers on different threads mostly count on different cache lines.
const STRIPES: usize = 16;

#[repr(align(64))]
#[derive(Default)]
struct Counter(AtomicU64);

/// The readers of one store.
#[derive(Default)]
pub(crate) struct Epochs {
    epoch: AtomicU64,
    /// Readers in even and in odd epochs.
    counts: [[Counter; STRIPES]; 2],
    /// When the epoch moved last, as far as [`Epochs::age_ms`] has seen, and which one it was.
    moved: Mutex<(u64, u64), { Rank::Moved as u8 }>,
}

/// The guard of a reader, which is counted until this is dropped, be it by a panic.
#[must_use]
pub(crate) struct EpochGuard<'a> {
    epochs: &'a Epochs,
    owned: OwnedEpochGuard,
}

impl EpochGuard<'_> {
    /// The guard of the same reader, counted until [`Epochs::give_back`]: for an owner that has the epochs beside it.
    pub(crate) fn into_owned(self) -> OwnedEpochGuard {
        let OwnedEpochGuard { parity, stripe } = self.owned;
        std::mem::forget(self);
        OwnedEpochGuard { parity, stripe }
    }
}

impl Drop for EpochGuard<'_> {
    fn drop(&mut self) {
        self.epochs.end(&self.owned);
    }
}

/// The guard of a reader, which is counted until its owner gives this back.
#[derive(Debug)]
#[must_use]
pub(crate) struct OwnedEpochGuard {
    parity: u8,
    stripe: u8,
}

impl Epochs {
    /// Counts a reader in the current epoch.
    pub(crate) fn pin(&self) -> EpochGuard<'_> {
        let stripe = stripe();
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            let parity = (epoch & 1) as usize;
            let count = &self.counts[parity][stripe].0;
            count.fetch_add(1, Ordering::SeqCst);
            // The epoch may have moved between the load and the count; then this count may not have been seen.
            if self.epoch.load(Ordering::SeqCst) == epoch {
                return EpochGuard {
                    epochs: self,
                    owned: OwnedEpochGuard { parity: parity as u8, stripe: stripe as u8 },
                };
            }
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Ends the claim of a reader.
    pub(crate) fn give_back(&self, guard: OwnedEpochGuard) {
        self.end(&guard);
    }

    fn end(&self, guard: &OwnedEpochGuard) {
        let before = self.counts[guard.parity as usize][guard.stripe as usize].0.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "a guard is given back once");
    }

    /// Returns when all readers that are counted now have gone; for readers that never stay long.
    pub(crate) fn wait_for_present(&self) {
        let present = self.epoch();
        while self.epoch() < present + 2 {
            // Where no reader is in the way, giving up the processor would only let others come in between.
            if !self.try_advance() {
                yield_now();
            }
        }
    }

    /// How long the oldest reader has been counted, in milliseconds, since the last call of this before it came; 0 if no reader is
    /// counted. `now_ms` is of a clock that never goes back.
    pub(crate) fn age_ms(&self, now_ms: u64) -> u64 {
        self.try_advance();
        let is_empty = |count: &Counter| count.0.load(Ordering::SeqCst) == 0;
        let nobody = self.counts.iter().flatten().all(is_empty);
        let epoch = self.epoch();
        let mut moved = self.moved.lock().expect("no code panics while it looks at the epoch");
        if nobody || moved.0 != epoch {
            *moved = (epoch, now_ms);
        }
        now_ms.saturating_sub(moved.1)
    }

    /// The current epoch, to be noted when something is retired.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Moves to the next epoch if no reader of the one before is left, and says whether it was so. Never waits.
    pub(crate) fn try_advance(&self) -> bool {
        let epoch = self.epoch.load(Ordering::SeqCst);
        let older = &self.counts[((epoch + 1) & 1) as usize];
        let is_empty = |count: &Counter| count.0.load(Ordering::SeqCst) == 0;
        let may_move = older.iter().all(is_empty) || planted::is_on(Bug::EpochMovesUnderReaders);
        if may_move {
            // Losing the race to another caller only means that the epoch has moved already.
            let _ = self.epoch.compare_exchange(epoch, epoch + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
        may_move
    }
}

/// A number for the calling thread, spread over the stripes.
fn stripe() -> usize {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;
    /// Relaxed: it only tells threads apart.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static STRIPE: Cell<usize> = Cell::new(NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % STRIPES);
    }
    STRIPE.get()
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;

#[cfg(test)]
mod tests {
    use super::Epochs;

    #[test]
    fn a_reader_that_panics_is_counted_no_more() {
        let epochs = Epochs::default();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = epochs.pin();
            panic!("a reader panics");
        }));
        assert!(outcome.is_err());
        let before = epochs.epoch();
        epochs.wait_for_present();
        assert!(epochs.epoch() >= before + 2);
    }

    #[test]
    fn the_age_of_the_oldest_reader_grows_until_it_has_gone() {
        let epochs = Epochs::default();
        assert_eq!(epochs.age_ms(1000), 0);
        let old = epochs.pin().into_owned();
        let ages: Vec<_> = (2..6).map(|second| epochs.age_ms(second * 1000)).collect();
        assert!(ages.is_sorted() && ages[3] >= 2000, "{ages:?}");
        let young = epochs.pin();
        epochs.give_back(old);
        assert!(epochs.age_ms(7000) <= 1000 && epochs.age_ms(7500) <= 1500);
        drop(young);
        assert_eq!(epochs.age_ms(9000), 0);
    }

    #[test]
    fn an_epoch_waits_for_the_readers_of_the_one_before() {
        let epochs = Epochs::default();
        let reader = epochs.pin();
        let retired = epochs.epoch();
        epochs.try_advance();
        assert_eq!(epochs.epoch(), retired + 1, "nobody was in the epoch before");
        epochs.try_advance();
        assert_eq!(epochs.epoch(), retired + 1, "the reader may still see what was retired");
        let later = epochs.pin();
        drop(reader);
        epochs.try_advance();
        assert_eq!(epochs.epoch(), retired + 2, "a later reader does not hold up what was retired before it");
        drop(later);
    }
}
