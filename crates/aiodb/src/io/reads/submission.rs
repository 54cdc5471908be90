//! How many reads are handed to the device at once, while others have ended and are being used.
//!
//! Entering the kernel is most of the cost of a read on a fast device: many reads should share it. But a read that is held
//! back is missing from the device, which needs all reads that may be in flight to reach its speed. Which of the two counts
//! depends on whether the caller waits for the device or the device for the caller, and the caller's sleeps tell: a caller
//! that sleeps again and again waits for the device, has time to spare, and gives it reads in small batches; a caller that
//! never sleeps is the limit itself, and large batches save its time.

/// With no more in flight than this, holding back even a handful leaves the device idle, even if the caller is the limit.
const FEW: usize = 16;
/// The most that is handed over at once with few in flight, as a part of them.
const PART_OF_FEW: usize = 4;
/// The batch of each level: a part of the reads in flight, and the most. A caller that sleeps anyway pays nothing for entering
/// more often: with 64 in flight eight at once left the device idle at times, and four took no more of the processor.
const LEVELS: [(usize, usize); 3] = [(16, 4), (4, 16), (2, 32)];
/// The smallest batch: alone a read would pay for the kernel all by itself.
const MIN_BATCH: usize = 2;
/// Reads that end between two decisions.
const WINDOW: u32 = 256;
/// How often the caller sleeps in a window if the device is the limit.
const MANY_SLEEPS: u64 = 4;

/// Decides how many reads are handed over at once.
#[derive(Default)]
pub(super) struct Submission {
    level: usize,
    /// Reads that ended in this window.
    ended: u32,
    /// How often the caller had slept when the window began.
    slept: u64,
}

impl Submission {
    /// How many reads are handed over at once, of so many in flight. The rest is handed over before the caller waits.
    pub(super) fn batch(&self, in_flight: usize) -> usize {
        let (part, most) = LEVELS[self.level];
        let part = if in_flight <= FEW { part.max(PART_OF_FEW) } else { part };
        (in_flight / part).clamp(MIN_BATCH, most)
    }

    /// A read has ended; `sleeps` says how often the caller has slept so far.
    pub(super) fn end(&mut self, sleeps: impl FnOnce() -> u64) {
        self.ended += 1;
        if self.ended == WINDOW {
            let slept = sleeps();
            // A caller on another thread than before has another count.
            let waits = slept.wrapping_sub(self.slept) >= MANY_SLEEPS;
            self.level = if waits { 0 } else { (self.level + 1).min(LEVELS.len() - 1) };
            (self.ended, self.slept) = (0, slept);
        }
    }
}

#[cfg(test)]
mod tests;
