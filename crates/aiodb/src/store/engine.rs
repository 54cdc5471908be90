//! What all handles of one open store share, and how it comes into being and ends.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::cache::ValueCache;
use crate::config::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::format::record::chunk_list_bytes;
use crate::index::lmdb::LmdbIndex;
use crate::index::snapshots::Snapshots;
use crate::io::{Device, Report};
use crate::log::Segments;
use crate::metrics::Meters;
use crate::metrics::histogram::Histogram;
use crate::retention::Retention;
use crate::store::background::Background;
use crate::store::catalog::Catalog;
use crate::store::checkpoints::Checkpointing;
use crate::store::clock::{Reading, StoreClock};
use crate::store::commit::Commit;
use crate::store::epochs::Epochs;
use crate::store::purging::Purging;
use crate::store::reclaiming::Reclaiming;
use crate::store::recovered::Recovered;
use crate::store::settling::Settling;
use crate::store::staging::Staging;
use crate::store::status::Status;
use crate::sync::{Mutex, Rank};
use crate::{Error, Options, Result};

/// Values up to this length are written whole.
const MAX_WHOLE_VALUE_BYTES: u64 = 1 << 20;

/// An open store.
pub(crate) struct Engine<D: Device> {
    pub(crate) device: D,
    /// The first directory, with everything but segments.
    pub(crate) root: PathBuf,
    pub(crate) options: Options,
    pub(crate) report: Report,
    pub(crate) block_bytes: usize,
    pub(crate) hash_seed: u64,
    pub(crate) segments: Segments<D>,
    pub(crate) commit: Commit,
    pub(crate) catalog: Catalog,
    /// The environment of the `lmdb` tables, opened with the first of them.
    pub(crate) lmdb: OnceLock<LmdbIndex>,
    pub(crate) epochs: Epochs,
    /// Writers between append and publication.
    pub(crate) publishers: Epochs,
    pub(crate) cache: ValueCache,
    pub(crate) meters: Meters,
    pub(crate) retention: Arc<Retention>,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) settling: Settling,
    pub(crate) checkpointing: Checkpointing,
    pub(crate) reclaiming: Mutex<Reclaiming, { Rank::Reclaiming as u8 }>,
    /// Held by the write that makes room on a full disk; others wait for what it makes. When none could be made last, and how many
    /// segments had been given back until then.
    pub(crate) room_lock: Mutex<Option<(u64, u64)>, { Rank::MakingRoom as u8 }>,
    /// Whether the files of the ordered index are on another disk than the rest.
    pub(crate) lmdb_lies_apart: bool,
    /// Dropped and truncated tables. A step of a purge may commit the memtable.
    pub(crate) purging: Purging,
    pub(crate) staging: Staging,
    pub(crate) background: Background,
    pub(crate) recovered: OnceLock<Recovered>,
    /// By which records expire.
    pub(crate) clock: StoreClock,
    pub(crate) status: Status<D::Lock>,
}

impl<D: Device> Engine<D> {
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

    /// Longer values lie in chunks.
    pub(crate) fn whole_value_bytes(&self) -> usize {
        MAX_WHOLE_VALUE_BYTES.min(self.segments.segment_bytes / 4) as usize
    }

    pub(crate) fn max_key_bytes(&self) -> usize {
        MAX_KEY_BYTES.min(self.segments.segment_bytes as usize / 8)
    }

    pub(crate) fn max_value_bytes(&self) -> usize {
        let chunk_bytes = self.whole_value_bytes();
        // The list of chunks must itself be a whole value.
        let chunks = (chunk_bytes - chunk_list_bytes(0, 1)) / (chunk_list_bytes(1, 1) - chunk_list_bytes(0, 1));
        MAX_VALUE_BYTES.min(chunks * chunk_bytes)
    }

    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        let max = self.max_key_bytes();
        if key.is_empty() || key.len() > max { Err(Error::KeyLength { length: key.len(), max }) } else { Ok(()) }
    }

    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        let max = self.max_value_bytes();
        if value.len() > max { Err(Error::ValueLength { length: value.len(), max }) } else { Ok(()) }
    }
}

impl<D: Device> Engine<D> {
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
