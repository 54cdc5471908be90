//! The metrics of an open store.

use crate::index::runs::Runs;
use crate::io::Device;
use crate::store::engine::Engine;
use crate::sync::atomic::Ordering;
use crate::{IndexKind, Metrics, TableMetrics, TableStats};

impl<D: Device> Engine<D> {
    pub(crate) fn metrics(&self) -> Metrics {
        let (stats, meters) = (self.stats(), &self.meters);
        let (cache_hits, cache_misses) = self.cache.hits_and_misses();
        let (run_block_hits, run_block_reads) = self.block_cache.hits_and_misses();
        let runs = self.ordered.get(IndexKind::Lsm).and_then(|index| index.committed.runs());
        let segments = stats.segments_in_use + stats.segments_free + stats.segments_retiring;
        Metrics {
            lookups: meters.lookups.sum(),
            ambiguous_lookups: meters.ambiguous_lookups.sum(),
            get_read_wait_ns: meters.get_read_wait.snapshot(),
            reader_read_wait_ns: meters.reader_read_wait.snapshot(),
            write_wait_ns: meters.write_wait.snapshot(),
            flush_wait_ns: meters.flush_wait.snapshot(),
            batch_bytes: meters.batch_bytes.snapshot(),
            batch_records: meters.batch_records.snapshot(),
            batch_writers: meters.batch_writers.snapshot(),
            acknowledge_wait_ns: meters.acknowledge_wait.snapshot(),
            log_bytes_written: stats.log_bytes_written,
            records_written: stats.records_written,
            memtable_entries: self.ordered.open().map(|ordered| ordered.memtable.len() as u64).sum(),
            memtable_commit_ns: meters.memtable_commit.snapshot(),
            memtable_committed_entries: meters.memtable_committed_entries.load(Ordering::Relaxed),
            checkpoint_ns: meters.checkpoint.snapshot(),
            checkpoint_bytes_written: meters.checkpoint_bytes.load(Ordering::Relaxed),
            checkpoint_lag_bytes: stats.checkpoint_log_lag_bytes,
            unsettled_tags: stats.unsettled_tags,
            settled_tags: meters.settled_tags.sum(),
            folded_keys: meters.folded_keys.sum(),
            waiting_range_deletes: stats.waiting_range_deletes,
            oldest_pin_ms: stats.oldest_pin_ms,
            snapshots: stats.snapshots,
            kept_versions: stats.kept_versions,
            kept_versions_in_files: stats.kept_versions_in_files,
            held_bytes: stats.held_bytes,
            filter_asked_entries: meters.filter_asked_entries.load(Ordering::Relaxed),
            filter_dropped_keys: meters.filter_dropped_keys.load(Ordering::Relaxed),
            filter_waiting_keys: self.dropping.len() as u64,
            reclaimed_segments: meters.reclaimed_segments.sum(),
            reclaim_moved_bytes: stats.bytes_moved_by_reclaim,
            victim_live_percent: meters.victim_live_percent.snapshot(),
            segments_in_use: stats.segments_in_use,
            segments_free: stats.segments_free,
            segments_retiring: stats.segments_retiring,
            open_files: stats.open_files,
            max_open_files: stats.max_open_files,
            live_bytes: stats.live_bytes,
            dead_bytes: (stats.segments_in_use * stats.segment_bytes).saturating_sub(stats.live_bytes),
            log_file_bytes: segments * stats.segment_bytes,
            lmdb_file_bytes: self.ordered.get(IndexKind::Lmdb).map_or(0, |lmdb| lmdb.committed.disk_bytes()),
            hash_memory_bytes: {
                let hash = stats.tables.iter().filter(|table| table.kind == IndexKind::Hash);
                hash.map(|table| table.index_memory_bytes).sum()
            },
            cache_hits,
            cache_misses,
            run_block_hits,
            run_block_reads,
            runs: stats.runs,
            runs_above_bound: stats.runs_above_bound,
            merge_debt_bytes: stats.merge_debt_bytes,
            run_file_bytes: runs.map_or(0, Runs::disk_bytes),
            run_memory_bytes: runs.map_or(0, Runs::memory_bytes),
            cache_bytes: self.cache.used_bytes(),
            cache_budget_bytes: self.cache.budget_bytes(),
            block_cache_bytes: self.block_cache.used_bytes(),
            block_cache_budget_bytes: self.block_cache.budget_bytes(),
            memory: stats.memory,
            memory_full_seconds: stats.memory_full_seconds,
            disk_full_seconds: stats.disk_full_seconds,
            tables: stats.tables.iter().map(table_metrics).collect(),
            recovery_ms: stats.recovery_ms,
            recovered_batches: stats.recovered_batches,
            recovered_records: stats.recovered_records,
            recovered_pending_records: stats.recovered_pending_records,
            in_trouble: stats.trouble.is_some(),
            write_failed: self.commit.failure().is_some(),
        }
    }
}

fn table_metrics(table: &TableStats) -> TableMetrics {
    let has_runs = table.kind != IndexKind::Lmdb;
    TableMetrics {
        name: table.name.clone(),
        modes: table.modes,
        keys_in_memory: table.keys_in_memory(),
        values_in_memory: table.values_in_memory(),
        runs: has_runs.then_some(table.runs),
        run_bytes: has_runs.then_some(table.run_bytes),
        merge_debt_bytes: has_runs.then_some(table.merge_debt_bytes),
        cached_block_bytes: table.cached_block_bytes,
        cached_value_bytes: table.cached_value_bytes,
        value_hits: table.value_hits,
        value_misses: table.value_misses,
    }
}
