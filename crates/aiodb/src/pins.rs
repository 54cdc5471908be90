//! Keeps segments from being used again while someone may still read them.
//!
//! Epoch-based reclamation: a reader pins the current epoch before it looks a key up and unpins it after its read. A
//! segment retired in epoch `e` may be used again in epoch `e + 2`, when every reader that could have seen a reference
//! to it has gone.

use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicU64, Ordering};

/// Readers on different threads mostly count on different cache lines.
const STRIPES: usize = 16;

#[repr(align(64))]
#[derive(Default)]
struct Counter(AtomicU64);

/// The readers of one store.
#[derive(Default)]
pub(crate) struct Pins {
    epoch: AtomicU64,
    /// Readers pinned in even and in odd epochs.
    counts: [[Counter; STRIPES]; 2],
}

/// Proof that a reader is counted; must be given back to [`Pins::unpin`].
#[derive(Debug)]
#[must_use]
pub(crate) struct Pin {
    parity: u8,
    stripe: u8,
}

impl Pins {
    /// Counts a reader in the current epoch.
    pub(crate) fn pin(&self) -> Pin {
        let stripe = stripe();
        loop {
            let epoch = self.epoch.load(Ordering::SeqCst);
            let parity = (epoch & 1) as usize;
            let count = &self.counts[parity][stripe].0;
            count.fetch_add(1, Ordering::SeqCst);
            // The epoch may have moved between the load and the count; then this count may not have been seen.
            if self.epoch.load(Ordering::SeqCst) == epoch {
                return Pin { parity: parity as u8, stripe: stripe as u8 };
            }
            count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Ends a reader's claim.
    pub(crate) fn unpin(&self, pin: Pin) {
        let before = self.counts[pin.parity as usize][pin.stripe as usize].0.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "a pin is given back once");
    }

    /// Returns when everyone who is counted now has gone, for those who never stay long.
    pub(crate) fn wait_for_present(&self) {
        let present = self.epoch();
        while self.epoch() < present + 2 {
            // Where nobody is in the way, giving up the processor would only let others come in between.
            if !self.try_advance() {
                std::thread::yield_now();
            }
        }
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
    use super::Pins;

    #[test]
    fn an_epoch_waits_for_the_readers_of_the_one_before() {
        let pins = Pins::default();
        let reader = pins.pin();
        let retired = pins.epoch();
        pins.try_advance();
        assert_eq!(pins.epoch(), retired + 1, "nobody was in the epoch before");
        pins.try_advance();
        assert_eq!(pins.epoch(), retired + 1, "the reader may still see what was retired");
        let later = pins.pin();
        pins.unpin(reader);
        pins.try_advance();
        assert_eq!(pins.epoch(), retired + 2, "a later reader does not hold up what was retired before it");
        pins.unpin(later);
    }
}
