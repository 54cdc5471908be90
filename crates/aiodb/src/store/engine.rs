//! What all handles of one open store share, and how it comes into being and ends.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::cache::ValueCache;
use crate::config::{MAX_KEY_BYTES, MAX_VALUE_BYTES};
use crate::format::record::chunk_list_bytes;
use crate::index::lmdb::LmdbIndex;
use crate::index::memtable::ImmutableMemtable;
use crate::index::snapshots::Snapshots;
use crate::io::{Device, Report};
use crate::log::Segments;
use crate::metrics::Meters;
use crate::metrics::histogram::Histogram;
use crate::retention::Retention;
use crate::store::background::Background;
use crate::store::catalog::Catalog;
use crate::store::checkpoints::Checkpoints;
use crate::store::clock::{Reading, StoreClock};
use crate::store::commit::Commit;
use crate::store::epochs::Epochs;
use crate::store::purging::Purging;
use crate::store::reclaiming::Reclaiming;
use crate::store::recovered::Recovered;
use crate::store::settling::Settling;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// Held while a checkpoint is made; writers never wait for it. Below it come `unfinished_commit` and the commit lock.
    pub(crate) checkpointing: Mutex<(), { Rank::Checkpointing as u8 }>,
    pub(crate) checkpoints: Mutex<Checkpoints, { Rank::Checkpoints as u8 }>,
    /// The immutable memtable that is being committed, or that could not be. Held while the memtable is committed; below it come the
    /// commit lock and the order of LMDB's transactions.
    pub(crate) unfinished_commit: Mutex<Option<ImmutableMemtable>, { Rank::UnfinishedCommit as u8 }>,
    pub(crate) reclaiming: Mutex<Reclaiming, { Rank::Reclaiming as u8 }>,
    /// Held by the write that makes room on a full disk; others wait for what it makes. When none could be made last, and how many
    /// segments had been given back until then.
    pub(crate) room_lock: Mutex<Option<(u64, u64)>, { Rank::MakingRoom as u8 }>,
    /// Whether the files of the ordered index are on another disk than the rest.
    pub(crate) lmdb_lies_apart: bool,
    /// Dropped and truncated tables. A step of a purge may take `unfinished_commit` and the order of LMDB's transactions.
    pub(crate) purging: Purging,
    /// The life of the log's last segment when each large put began: its chunks lie there or later, not yet named.
    pub(crate) staging: Mutex<BTreeMap<u64, u64>, { Rank::Staging as u8 }>,
    pub(crate) next_staging: AtomicU64,
    pub(crate) background: Background,
    pub(crate) recovered: OnceLock<Recovered>,
    /// By which records expire.
    pub(crate) clock: StoreClock,
    pub(crate) closed: AtomicBool,
    /// The last failure of background work, for `stat`; foreground calls report their own.
    pub(crate) trouble: Mutex<Option<String>, { Rank::Trouble as u8 }>,
    /// Taken out, and so released, when the store is closed.
    pub(crate) locks: Mutex<Vec<D::Lock>, { Rank::StoreLocks as u8 }>,
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
        if self.closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Remembers a failure that no caller can be told of.
    pub(crate) fn note_trouble(&self, error: &Error) {
        *self.trouble.lock().expect("no code panics while it notes trouble") = Some(error.to_string());
    }

    /// The last failure of background work.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().expect("no code panics while it notes trouble").clone()
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
