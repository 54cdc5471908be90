//! Sizes and counters.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::budget::MemoryStats;
use crate::index::runs::spilled::SpilledTable;
use crate::index::runs::{RunShare, Runs};
use crate::io::Device;
use crate::log::State;
use crate::store::catalog::{Generation, TableIndex, TableSlot};
use crate::store::engine::Engine;
use crate::{Compression, Durability, IndexKind, TableModes};

/// The state of a store at one moment. Counters begin when the store is opened.
#[derive(Clone, Debug)]
pub struct Stats {
    /// The version of the newest files: 4 once a table whose index is compressed was made, 3 for a compaction filter, 2 for values in an index,
    /// else 1.
    pub format_version: u32,
    /// The store's identity, in hexadecimal.
    pub store_id: String,
    /// The class of writes that do not say otherwise.
    pub durability: Durability,
    /// The read queue in use: `uring`, `libaio`, `threads` or `sim`.
    pub backend: &'static str,
    /// Whether segments bypass the page cache.
    pub direct: bool,
    /// The alignment of reads, in bytes.
    pub block_bytes: usize,
    /// Why a preferred backend or `O_DIRECT` is not used.
    pub fallbacks: Vec<String>,
    /// Bytes of one segment.
    pub segment_bytes: u64,
    /// Segments that hold data.
    pub segments_in_use: u64,
    /// Segments ready to be written.
    pub segments_free: u64,
    /// Segments emptied, waiting for a checkpoint or a reader before they can be used again.
    pub segments_retiring: u64,
    /// Segment files with an open file descriptor.
    pub open_files: u64,
    /// How many may have one at a time, see [`crate::Options::max_open_files`].
    pub max_open_files: u64,
    /// Bytes that the indexes refer to. In `hash` tables lengths are rounded up to size classes, and overwritten records
    /// count until they are settled.
    pub live_bytes: u64,
    /// Bytes written to the log, padding included.
    pub log_bytes_written: u64,
    /// Group commits.
    pub batches_written: u64,
    /// Records in them.
    pub records_written: u64,
    /// Bytes of batches that reclaim wrote.
    pub bytes_moved_by_reclaim: u64,
    /// The sequence of the last record appended.
    pub last_sequence: u64,
    /// The last batch that is written and published, and the last that a power cut cannot take.
    pub last_batch: u64,
    /// See `last_batch`.
    pub durable_batch: u64,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// Bytes of log since the last checkpoint: a restart would replay them.
    pub checkpoint_log_lag_bytes: u64,
    /// Tags of `hash` indexes waiting to be settled, and keys of `lmdb` tables whose operands wait to be folded.
    pub unsettled_tags: u64,
    /// Sorted runs of all `lsm` tables together.
    pub runs: u64,
    /// Those of them beyond the number with which no writer waits for merges: 0 unless merges are behind.
    pub runs_above_bound: u64,
    /// Bytes of sorted runs of `lsm` tables that merges wait for or have begun, and have yet to take in.
    pub merge_debt_bytes: u64,
    /// How long the oldest get in flight has held back the reuse of emptied segments, to the nearest round of upkeep; 0 if
    /// none is in flight. The gets of a [`crate::Reader`] that is not polled stay in flight.
    pub oldest_pin_ms: u64,
    /// Snapshots alive, those of running scans among them.
    pub snapshots: u64,
    /// Superseded records that are retained for them, in memory and in files.
    pub kept_versions: u64,
    /// Those of them that are in files; of the others each takes about 150 bytes of memory.
    pub kept_versions_in_files: u64,
    /// Bytes that snapshots and backups hold back: of those files, and of emptied segments that wait for them.
    pub held_bytes: u64,
    /// Range deletes of `lmdb` tables that count already and are still to be carried out.
    pub waiting_range_deletes: u64,
    /// Batches that were replayed when the store was opened.
    pub recovered_batches: u64,
    /// Records in them.
    pub recovered_records: u64,
    /// Records that were still in memory when the last process died.
    pub recovered_pending_records: u64,
    /// Whether an index was made again from the whole log.
    pub rebuilt_indexes: bool,
    /// How long recovery took.
    pub recovery_ms: u64,
    /// By how many milliseconds the system's clock is ahead of the store's time, by which records expire (behind: negative):
    /// 0 but for a while after the clock was set. Up to an hour back the store's time stands still until the clock has come
    /// that far; further off, either way, the clock is not believed before it has stood there for ten minutes.
    pub clock_ahead_ms: i64,
    /// The budget of memory, and what takes it.
    pub memory: MemoryStats,
    /// Where memory has grown over the last five minutes: seconds until it reaches the budget at that pace, from when on what was asked for least
    /// leaves it.
    pub memory_full_seconds: Option<u64>,
    /// Where the free space of the fullest disk has shrunk over the last five minutes: seconds until there is none at that pace, whoever takes it.
    pub disk_full_seconds: Option<u64>,
    /// What an operator should look at: a budget that is more than there is, or less than what cannot be given back.
    pub warnings: Vec<String>,
    /// The last failure of background work.
    pub trouble: Option<String>,
    /// The tables, by name.
    pub tables: Vec<TableStats>,
}

/// One table of [`Stats`].
#[derive(Clone, Debug)]
pub struct TableStats {
    /// Its name.
    pub name: String,
    /// The kind of its index.
    pub kind: IndexKind,
    /// Its keys.
    pub keys: u64,
    /// Whether `keys` is exact: nothing in the memtable (`lmdb`), no tag unsettled (`hash`). Of `lsm` it is an estimate always: keys that
    /// were overwritten or deleted count until their runs are merged.
    pub keys_exact: bool,
    /// Memory of the index in bytes (`hash`; `lsm`: filters and fences of all tables together); for `lmdb` the page cache does that work.
    pub index_memory_bytes: u64,
    /// Bytes of the index's files (`lmdb`, `lsm`: of all tables together).
    pub index_disk_bytes: u64,
    /// The same if no block of the index were compressed.
    pub index_plain_bytes: u64,
    /// [`crate::TableOptions::inline_bytes`] of the table.
    pub inline_bytes: usize,
    /// [`crate::TableOptions::block_compression`] of the table.
    pub block_compression: Compression,
    /// What of the table memory keeps by preference.
    pub modes: TableModes,
    /// Keys of which the slot has left memory for files (`hash`): a look-up reads a block first.
    pub keys_in_files: u64,
    /// Sorted runs with keys of the table (`lsm`), or those to which its keys have moved on (`hash`).
    pub runs: u64,
    /// Their bytes on the disk; of `lsm` those of the blocks that have its keys. A block with keys of two tables counts for either.
    pub run_bytes: u64,
    /// Those of them that merges wait for or have begun, and have yet to take in.
    pub merge_debt_bytes: u64,
    /// Blocks of sorted runs that have its keys (`lsm`)...
    pub blocks: u64,
    /// ...and how many are in the cache of blocks, with their bytes there. One with keys of two tables counts for either.
    pub cached_blocks: u64,
    /// See `cached_blocks`.
    pub cached_block_bytes: u64,
    /// Values, and operands, in the cache of values. Those that lie in the index are in its blocks.
    pub cached_values: u64,
    /// Their bytes there, with their keys.
    pub cached_value_bytes: u64,
    /// Look-ups in the cache of values that were answered since the store was opened or the table emptied...
    pub value_hits: u64,
    /// ...and that were not.
    pub value_misses: u64,
}

impl TableStats {
    /// The share of the keys that look-ups find in memory, from 0 to 1, estimated by blocks, or by the slots that are there (`hash`); `None` for a
    /// table of kind `lmdb`, of which the system's page cache decides.
    pub fn keys_in_memory(&self) -> Option<f64> {
        match self.kind {
            IndexKind::Hash => Some(1.0 - self.keys_in_files as f64 / self.keys.max(1) as f64),
            IndexKind::Lmdb => None,
            // What is in memtables only has no block.
            IndexKind::Lsm if self.blocks == 0 => Some(1.0),
            IndexKind::Lsm => Some((self.cached_blocks as f64 / self.blocks as f64).min(1.0)),
        }
    }

    /// The share of the values that are in the cache of values, from 0 to 1, an estimate: values that were written over count there until they
    /// leave, and `keys` may be one. `None` for an empty table.
    pub fn values_in_memory(&self) -> Option<f64> {
        (self.keys > 0).then(|| (self.cached_values as f64 / self.keys as f64).min(1.0))
    }
}

impl<D: Device> Engine<D> {
    pub(crate) fn stats(&self) -> Stats {
        let states: Vec<State> = self.segments.iter().map(|segment| segment.state()).collect();
        let count = |wanted: &[State]| states.iter().filter(|state| wanted.contains(state)).count() as u64;
        let counters = &self.commit.counters;
        let (snapshots, _) = self.snapshots.counts();
        let versions = self.snapshots.version_counts();
        let files = self.device.open_files();
        let recovered = self.recovered.get().copied().unwrap_or_default();
        let memory = self.memory_stats();
        let runs = self.ordered.get(IndexKind::Lsm).and_then(|ordered| ordered.committed.runs());
        Stats {
            format_version: self.catalog.features().version(),
            store_id: self.segments.store.iter().map(|byte| format!("{byte:02x}")).collect(),
            durability: self.options.durability,
            backend: self.report.backend,
            direct: self.report.direct,
            block_bytes: self.report.block_bytes,
            fallbacks: self.report.fallbacks.clone(),
            segment_bytes: self.segments.segment_bytes,
            segments_in_use: count(&[State::Active, State::Sealed]),
            segments_free: count(&[State::Free]),
            segments_retiring: count(&[State::Retiring]),
            open_files: files.open as u64,
            max_open_files: files.most as u64,
            live_bytes: self.segments.in_use().iter().map(|segment| segment.live()).sum(),
            log_bytes_written: counters.log_bytes.load(Ordering::Relaxed),
            batches_written: counters.batches.load(Ordering::Relaxed),
            records_written: counters.records.load(Ordering::Relaxed),
            bytes_moved_by_reclaim: counters.moved_bytes.load(Ordering::Relaxed),
            last_sequence: self.commit.next_sequence() - 1,
            last_batch: self.commit.completed(),
            durable_batch: self.commit.durable(),
            checkpoints: counters.checkpoints.load(Ordering::Relaxed),
            checkpoint_log_lag_bytes: self.checkpoint_state().1,
            unsettled_tags: self.settling.len() as u64,
            runs: runs.map_or(0, |runs| runs.len() as u64),
            runs_above_bound: runs.map_or(0, Runs::above_bound),
            merge_debt_bytes: runs.map_or(0, Runs::debt_bytes),
            oldest_pin_ms: self.epochs.age_ms(self.device.clock_ms()),
            snapshots: snapshots as u64,
            kept_versions: (versions.in_memory + versions.in_files) as u64,
            kept_versions_in_files: versions.in_files as u64,
            held_bytes: versions.file_bytes + self.held_segments() as u64 * self.segments.segment_bytes,
            waiting_range_deletes: self.ordered.open().map(|ordered| ordered.ranges.len() as u64).sum(),
            recovered_batches: recovered.batches,
            recovered_records: recovered.records,
            recovered_pending_records: recovered.pending_records,
            rebuilt_indexes: recovered.rebuilt,
            recovery_ms: recovered.milliseconds,
            clock_ahead_ms: self.clock_ahead_ms(),
            memory_full_seconds: self.memory_full_seconds(),
            disk_full_seconds: self.memory.growth.disk_full_seconds(),
            memory,
            warnings: self.memory_warnings(&memory),
            trouble: self.commit.failure().map(str::to_string).or_else(|| self.status.trouble()),
            tables: self.table_stats(),
        }
    }

    fn memory_full_seconds(&self) -> Option<u64> {
        self.memory.growth.memory_full_seconds(self.memory_demand().budget)
    }

    fn table_stats(&self) -> Vec<TableStats> {
        let slots = self.catalog.slots();
        let one =
            |slot: &Arc<TableSlot>| slot.generation().ok().map(|generation| self.stats_of(&slot.name, &generation));
        slots.iter().filter_map(one).collect()
    }

    pub(crate) fn stats_of(&self, name: &str, generation: &Generation) -> TableStats {
        let (keys, keys_in_files, keys_exact, memory, disk, plain) = match &generation.index {
            TableIndex::Hash(index) => {
                let runs = self.spilled.table(generation.id);
                let of_runs = |count: fn(&SpilledTable<D>) -> u64| runs.as_ref().map_or(0, |runs| count(runs));
                let in_files = of_runs(SpilledTable::places);
                let was_settled = self.settling.len() == 0;
                let keys = index.len() as u64 + in_files;
                let memory = generation.memory_bytes() as u64 + of_runs(SpilledTable::memory_bytes);
                let disk = of_runs(SpilledTable::disk_bytes);
                (keys, in_files, was_settled && self.settling.len() == 0, memory, disk, disk)
            }
            TableIndex::Ordered => {
                let ordered = self.ordered_of(generation);
                let memtable = ordered.memtable.len();
                let committed = &ordered.committed;
                let exact = memtable == 0 && committed.counts_exactly();
                let keys = committed.count(generation.id) + memtable as u64;
                (keys, 0, exact, committed.memory_bytes(), committed.disk_bytes(), committed.plain_bytes())
            }
        };
        let share = match &generation.index {
            TableIndex::Hash(_) => self.spilled.table(generation.id).map_or(RunShare::default(), |runs| RunShare {
                runs: runs.runs() as u64,
                bytes: runs.disk_bytes(),
                debt_bytes: runs.debt_bytes(),
                blocks: 0,
            }),
            TableIndex::Ordered => self.ordered_of(generation).committed.share_of(generation.id),
        };
        let (of_blocks, of_values) = (self.block_cache.share_of(generation.id), self.cache.share_of(generation.id));
        TableStats {
            name: name.to_string(),
            kind: generation.kind(),
            keys,
            keys_in_files,
            keys_exact,
            index_memory_bytes: memory,
            index_disk_bytes: disk,
            index_plain_bytes: plain,
            inline_bytes: generation.settings.inline_bytes,
            block_compression: generation.settings.block_compression,
            modes: generation.modes(),
            runs: share.runs,
            run_bytes: share.bytes,
            merge_debt_bytes: share.debt_bytes,
            blocks: share.blocks,
            cached_blocks: of_blocks.entries,
            cached_block_bytes: of_blocks.bytes,
            cached_values: of_values.entries,
            cached_value_bytes: of_values.bytes,
            value_hits: generation.value_hits.sum(),
            value_misses: generation.value_misses.sum(),
        }
    }
}
