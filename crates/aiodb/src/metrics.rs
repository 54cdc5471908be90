//! Counters and times of a store at work.
//!
//! The engine records in [`Meters`], its user reads [`Metrics`]. Recording must cost next to nothing beside the work that it
//! measures: counters of gets are spread over threads, the clock is read beside calls of the system, and for
//! reads through a queue only once in a while.

pub(crate) mod counter;
pub(crate) mod histogram;
mod prometheus;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use counter::Counter;
pub use histogram::Distribution;
use histogram::Histogram;

use crate::TableModes;
use crate::budget::MemoryStats;

/// The counters and histograms in which the engine records. Times are nanoseconds. All are Relaxed: they publish nothing.
#[derive(Default)]
pub(crate) struct Meters {
    pub(crate) lookups: Counter,
    pub(crate) ambiguous_lookups: Counter,
    pub(crate) get_read_wait: Histogram,
    /// Shared with the queues of readers.
    pub(crate) reader_read_wait: Arc<Histogram>,
    pub(crate) write_wait: Histogram,
    pub(crate) flush_wait: Histogram,
    pub(crate) batch_bytes: Histogram,
    pub(crate) batch_records: Histogram,
    pub(crate) batch_writers: Histogram,
    pub(crate) acknowledge_wait: Histogram,
    pub(crate) memtable_commit: Histogram,
    pub(crate) memtable_committed_entries: AtomicU64,
    pub(crate) checkpoint: Histogram,
    pub(crate) checkpoint_bytes: AtomicU64,
    pub(crate) settled_tags: Counter,
    pub(crate) folded_keys: Counter,
    pub(crate) filter_asked_entries: AtomicU64,
    pub(crate) filter_dropped_keys: AtomicU64,
    pub(crate) reclaimed_segments: Counter,
    pub(crate) victim_live_percent: Histogram,
    /// When the metrics file was written last, by the device's clock in milliseconds.
    pub(crate) file_written_ms: AtomicU64,
}

impl Meters {
    /// A key was looked up in its index.
    pub(crate) fn looked_up(&self, candidates: usize) {
        self.lookups.count();
        if candidates > 1 {
            self.ambiguous_lookups.count();
        }
    }

    /// A batch was written for so many writers.
    pub(crate) fn wrote_batch(&self, bytes: usize, records: u32, writers: u32) {
        self.batch_bytes.record(bytes as u64);
        self.batch_records.record(u64::from(records));
        self.batch_writers.record(u64::from(writers));
    }
}

/// The counts and times of a store since it was opened, and its sizes at this moment. Names end with the unit;
/// `_ns` are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics {
    /// Keys looked up in an index, by gets above all.
    pub lookups: u64,
    /// Look-ups that led to more than one place (`hash` tables: a shared tag, or a version that is not yet settled).
    pub ambiguous_lookups: u64,
    /// How long blocking gets, and other reads with the calling thread, waited for the device.
    pub get_read_wait_ns: Distribution,
    /// The same for reads of a [`crate::Reader`], from hand-over to the poll that found them; one in 16 is timed.
    pub reader_read_wait_ns: Distribution,
    /// How long writes of a batch to the log took.
    pub write_wait_ns: Distribution,
    /// How long flushes of a segment took.
    pub flush_wait_ns: Distribution,
    /// Bytes of each batch, padding included.
    pub batch_bytes: Distribution,
    /// Records in each batch.
    pub batch_records: Distribution,
    /// Writes (single ones or [`crate::Batch`]es) that shared each batch.
    pub batch_writers: Distribution,
    /// How long writes of the class `sync` waited to be acknowledged.
    pub acknowledge_wait_ns: Distribution,
    /// Bytes written to the log.
    pub log_bytes_written: u64,
    /// Records written to the log.
    pub records_written: u64,
    /// Entries of ordered tables that are not committed to LMDB or runs yet.
    pub memtable_entries: u64,
    /// How long commits of such entries took.
    pub memtable_commit_ns: Distribution,
    /// Entries committed to LMDB or runs.
    pub memtable_committed_entries: u64,
    /// How long checkpoints took.
    pub checkpoint_ns: Distribution,
    /// Bytes of checkpoint files of `hash` tables.
    pub checkpoint_bytes_written: u64,
    /// Bytes of log since the last checkpoint.
    pub checkpoint_lag_bytes: u64,
    /// Tags of `hash` tables waiting to be settled, and keys of ordered tables whose operands wait to be folded.
    pub unsettled_tags: u64,
    /// Tags settled.
    pub settled_tags: u64,
    /// Times that a key's operands were folded into a value.
    pub folded_keys: u64,
    /// Range deletes of ordered tables that count already and are still to be carried out.
    pub waiting_range_deletes: u64,
    /// How long the oldest get in flight has held back the reuse of emptied segments, in milliseconds.
    pub oldest_pin_ms: u64,
    /// Snapshots alive, those of running scans among them.
    pub snapshots: u64,
    /// Superseded records that are retained for them.
    pub kept_versions: u64,
    /// Those of them that are in files.
    pub kept_versions_in_files: u64,
    /// Bytes that snapshots and backups hold back: of those files, and of emptied segments.
    pub held_bytes: u64,
    /// Records of `lsm` tables about which merges have asked compaction filters.
    pub filter_asked_entries: u64,
    /// Keys that were deleted because a filter has given them up.
    pub filter_dropped_keys: u64,
    /// Keys that a filter has given up and that are still to be deleted.
    pub filter_waiting_keys: u64,
    /// Segments emptied by reclaim.
    pub reclaimed_segments: u64,
    /// Bytes of batches that reclaim wrote.
    pub reclaim_moved_bytes: u64,
    /// How much of each segment was alive when reclaim chose it, in per cent.
    pub victim_live_percent: Distribution,
    /// Segments that hold data.
    pub segments_in_use: u64,
    /// Segments ready to be written.
    pub segments_free: u64,
    /// Segments emptied and not yet free.
    pub segments_retiring: u64,
    /// Segment files with an open file descriptor...
    pub open_files: u64,
    /// ...and how many may have one.
    pub max_open_files: u64,
    /// Bytes that the indexes refer to.
    pub live_bytes: u64,
    /// Other bytes of segments in use: overwritten, deleted, padding, not yet written.
    pub dead_bytes: u64,
    /// Bytes of the log's files.
    pub log_file_bytes: u64,
    /// Bytes of LMDB's file.
    pub lmdb_file_bytes: u64,
    /// Memory of the indexes of `hash` tables.
    pub hash_memory_bytes: u64,
    /// Look-ups in the cache of values that were answered...
    pub cache_hits: u64,
    /// ...and that were not.
    pub cache_misses: u64,
    /// Blocks of sorted runs that look-ups, and scans that have not come far, found in the cache of blocks...
    pub run_block_hits: u64,
    /// ...and those that they did not find: each was read from the device.
    pub run_block_reads: u64,
    /// Sorted runs of `lsm` tables.
    pub runs: u64,
    /// [`crate::Stats::runs_above_bound`].
    pub runs_above_bound: u64,
    /// [`crate::Stats::merge_debt_bytes`].
    pub merge_debt_bytes: u64,
    /// Bytes of their files.
    pub run_file_bytes: u64,
    /// Memory of their filters and fences.
    pub run_memory_bytes: u64,
    /// Memory of the cache of values.
    pub cache_bytes: u64,
    /// The most that it may take now: at most [`crate::Options::cache_bytes`].
    pub cache_budget_bytes: u64,
    /// Memory of the cache of blocks of sorted runs.
    pub block_cache_bytes: u64,
    /// The most that it may take now: at most [`crate::Options::block_cache_bytes`].
    pub block_cache_budget_bytes: u64,
    /// The budget of memory, and what takes it.
    pub memory: MemoryStats,
    /// [`crate::Stats::memory_full_seconds`].
    pub memory_full_seconds: Option<u64>,
    /// [`crate::Stats::disk_full_seconds`].
    pub disk_full_seconds: Option<u64>,
    /// What of each table is in memory and in sorted runs.
    pub tables: Vec<TableMetrics>,
    /// How long recovery took when the store was opened.
    pub recovery_ms: u64,
    /// Batches that it replayed.
    pub recovered_batches: u64,
    /// Records in them.
    pub recovered_records: u64,
    /// Records that it found in memory that outlived a process.
    pub recovered_pending_records: u64,
    /// Whether background work has failed, or writes are refused: [`crate::Stats::trouble`] says why.
    pub in_trouble: bool,
    /// Whether writes are refused until the store is opened again, because the outcome of one is unknown.
    pub write_failed: bool,
}

/// What of a table is in memory and in sorted runs, see [`crate::TableStats`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableMetrics {
    /// Its name.
    pub name: String,
    /// What of it memory keeps by preference.
    pub modes: TableModes,
    /// [`crate::TableStats::keys_in_memory`].
    pub keys_in_memory: Option<f64>,
    /// [`crate::TableStats::values_in_memory`].
    pub values_in_memory: Option<f64>,
    /// [`crate::TableStats::runs`]; none for `lmdb`.
    pub runs: Option<u64>,
    /// [`crate::TableStats::run_bytes`].
    pub run_bytes: Option<u64>,
    /// [`crate::TableStats::merge_debt_bytes`].
    pub merge_debt_bytes: Option<u64>,
    /// Bytes of it in the cache of blocks.
    pub cached_block_bytes: u64,
    /// Bytes of it in the cache of values.
    pub cached_value_bytes: u64,
    /// Look-ups in the cache of values that were answered...
    pub value_hits: u64,
    /// ...and that were not.
    pub value_misses: u64,
}

#[cfg(test)]
mod tests;
