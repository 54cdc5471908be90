//! What everything in an open store may use: the device, the options, the store's time, counters, and whether it is open.

use std::path::PathBuf;

use crate::io::{Device, Report};
use crate::metrics::Meters;
use crate::metrics::histogram::Histogram;
use crate::store::clock::{Reading, StoreClock};
use crate::store::status::Status;
use crate::{Error, Options, Result};

/// The lowest layer of an open store: it knows no records.
pub(crate) struct Host<D: Device> {
    pub(crate) device: D,
    /// The first directory, with everything but segments.
    pub(crate) root: PathBuf,
    pub(crate) options: Options,
    pub(crate) report: Report,
    pub(crate) block_bytes: usize,
    pub(crate) hash_seed: u64,
    pub(crate) meters: Meters,
    /// By which records expire.
    pub(crate) clock: StoreClock,
    pub(crate) status: Status<D::Lock>,
}

impl<D: Device> Host<D> {
    /// The hash of a key in this store.
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64_with_seed(key, self.hash_seed) & self.options.hash_mask
    }

    /// Does something and records how long it took.
    pub(crate) fn timed<T>(&self, meter: &Histogram, work: impl FnOnce() -> T) -> T {
        let begun = self.device.clock_ns();
        let outcome = work();
        meter.record(self.device.clock_ns().saturating_sub(begun));
        outcome
    }

    pub(crate) fn check_open(&self) -> Result<()> {
        self.status.check_open()
    }

    /// Remembers a failure that no caller can be told of.
    pub(crate) fn note_trouble(&self, error: &Error) {
        self.status.note_trouble(error);
    }
}

impl<D: Device> Host<D> {
    /// The store's time, by which it is judged what has expired: see [`StoreClock`].
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms(self.read_clocks())
    }

    /// The store's time for what cannot be taken back: what is written down of it, and what is given up because it has
    /// expired. A clock that is in doubt makes nothing expire for good.
    pub(crate) fn certain_ms(&self) -> u64 {
        self.clock.certain_ms(self.read_clocks())
    }

    /// See [`StoreClock::ahead_ms`].
    pub(crate) fn clock_ahead_ms(&self) -> i64 {
        self.clock.ahead_ms(self.read_clocks())
    }

    /// Goes on from the store's time as a checkpoint or a batch has it.
    pub(crate) fn resume_clock(&self, written_ms: u64) {
        self.clock.resume(written_ms, self.read_clocks(), self.options.read_only);
    }

    fn read_clocks(&self) -> Reading {
        Reading { wall_ms: self.device.wall_ms(), monotonic_ms: self.device.clock_ms() }
    }
}
