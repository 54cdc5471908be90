//! The layer that all others may use: the device, the options, the store's time, counters, and whether the store is open.

use std::path::PathBuf;

use crate::io::{Device, Report};
use crate::metrics::Meters;
use crate::metrics::histogram::Histogram;
use crate::store::clock::{Reading, StoreClock};
use crate::store::memory::Memory;
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
    /// The budget of memory, and the bounds that follow from it.
    pub(crate) memory: Memory,
    pub(crate) meters: Meters,
    /// The clock by which records expire.
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

    /// Remembers a failure of which no caller can be told.
    pub(crate) fn note_trouble(&self, error: &Error) {
        self.status.note_trouble(error);
    }
}

impl<D: Device> Host<D> {
    /// The store's time, by which records expire: see [`StoreClock`].
    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms(self.read_clocks())
    }

    /// The store's time for decisions that cannot be taken back: the time that is written down, and records that are given up
    /// because they have expired. A clock in doubt makes no record expire for good.
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
