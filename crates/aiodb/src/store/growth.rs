//! How memory and disk have grown over the last minutes, and when each will be full if that goes on.

use std::collections::VecDeque;

use crate::sync::{Mutex, Rank};

/// A sample is taken so often...
const SAMPLE_PERIOD_MS: u64 = 10_000;

/// ...and so many are kept: five minutes.
const SAMPLES: usize = 31;

/// Growth over less than this says nothing.
const LEAST_SPAN_MS: u64 = 20_000;

/// What was there at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) at_ms: u64,
    /// Bytes of memory that the store takes.
    pub(crate) memory_used: u64,
    /// Bytes that are free on the disk with the least of them; `None` where no device says so.
    pub(crate) disk_free: Option<u64>,
}

/// The samples, oldest first.
#[derive(Default)]
pub(crate) struct Growth {
    samples: Mutex<VecDeque<Sample>, { Rank::Growth as u8 }>,
}

impl Growth {
    /// Takes a sample, if the last one is long enough ago. `take` is called without a lock.
    pub(crate) fn note_if_due(&self, now_ms: u64, take: impl FnOnce() -> Sample) {
        if !self.is_due(now_ms) {
            return;
        }
        let sample = take();
        let mut samples = self.lock();
        // The clock was set, or another thread was faster.
        samples.retain(|earlier| earlier.at_ms < sample.at_ms);
        samples.push_back(sample);
        let above = samples.len().saturating_sub(SAMPLES);
        samples.drain(..above);
    }

    fn is_due(&self, now_ms: u64) -> bool {
        let samples = self.lock();
        samples.back().is_none_or(|last| now_ms >= last.at_ms + SAMPLE_PERIOD_MS || now_ms < last.at_ms)
    }

    /// Seconds until memory reaches the budget, at the pace of the last minutes; `None` where it has not grown.
    pub(crate) fn memory_full_seconds(&self, budget: u64) -> Option<u64> {
        let (first, last) = self.span()?;
        seconds_until(
            first,
            last,
            last.memory_used.checked_sub(first.memory_used)?,
            budget.saturating_sub(last.memory_used),
        )
    }

    /// Seconds until nothing is free on a disk.
    pub(crate) fn disk_full_seconds(&self) -> Option<u64> {
        let (first, last) = self.span()?;
        let (free_before, free) = (first.disk_free?, last.disk_free?);
        seconds_until(first, last, free_before.checked_sub(free)?, free)
    }

    /// The oldest sample and the newest, if there is enough time between them.
    fn span(&self) -> Option<(Sample, Sample)> {
        let samples = self.lock();
        let (first, last) = (*samples.front()?, *samples.back()?);
        (last.at_ms >= first.at_ms + LEAST_SPAN_MS).then_some((first, last))
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, VecDeque<Sample>> {
        self.samples.lock().expect("no code panics while it holds the samples")
    }
}

/// Seconds in which `left` is used up, where `grown` was between two samples.
fn seconds_until(first: Sample, last: Sample, grown: u64, left: u64) -> Option<u64> {
    let milliseconds =
        u128::from(left) * u128::from(last.at_ms - first.at_ms) / u128::from(std::num::NonZeroU64::new(grown)?.get());
    u64::try_from(milliseconds / 1000).ok()
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::{Growth, Sample};

    fn note(growth: &Growth, at_ms: u64, memory_used: u64, disk_free: Option<u64>) {
        growth.note_if_due(at_ms, || Sample { at_ms, memory_used, disk_free });
    }

    #[test]
    fn the_pace_of_the_last_minutes_says_when_memory_and_disk_are_full() {
        let growth = Growth::default();
        for second in (0..=60).step_by(10) {
            note(&growth, second * 1000, 1000 + 10 * second, Some(100_000 - 100 * second));
            let (memory, disk) = (growth.memory_full_seconds(4000), growth.disk_full_seconds());
            match second {
                0 | 10 => assert_eq!((memory, disk), (None, None), "too short a time says nothing"),
                _ => {
                    assert_eq!((memory, disk), (Some((3000 - 10 * second) / 10), Some((100_000 - 100 * second) / 100)))
                }
            }
        }
        assert_eq!(growth.memory_full_seconds(0), Some(0), "it is beyond the budget");
    }

    #[test]
    fn what_does_not_grow_is_never_full() {
        let growth = Growth::default();
        for second in (0..=600).step_by(10) {
            // It has grown long ago.
            let used = if second < 200 { second } else { 200 - second / 100 };
            note(&growth, second * 1000, used, None);
        }
        assert_eq!((growth.memory_full_seconds(4000), growth.disk_full_seconds()), (None, None));
        // A clock that goes back begins anew.
        note(&growth, 5000, 1, None);
        note(&growth, 15_000, 1, None);
        note(&growth, 35_000, 301, None);
        assert_eq!(growth.memory_full_seconds(311), Some(1));
    }
}
