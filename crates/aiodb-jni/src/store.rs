//! An open store as Java sees it: the engine's handle, and numbers for all that was opened in it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aiodb::merge::{Append, Frames};
use aiodb::{
    Compression, Db, Durability, IndexKind, MergeOperator, MergeOperators, Options, ScanOptions, Snapshot, StorageMode,
    Table, TableModes, TableOptions, TableStats,
};

use crate::failure::{Failure, Result};
use crate::handles::Handles;
use crate::rows::Rows;

/// All tables are ordered and can be appended to: that is what the Java interface promises.
pub(crate) fn merge_operators() -> MergeOperators {
    MergeOperators::default().with(Append).with(Frames)
}

/// An open store.
pub(crate) struct Store {
    pub(crate) db: Db,
    /// Of tables that it makes; which operator they merge with, and their modes, are said for each.
    made: TableOptions,
    /// Java holds one number for each table that it uses, until the table is dropped.
    tables: Handles<Table>,
    pub(crate) snapshots: Handles<Snapshot>,
    pub(crate) scans: Handles<Mutex<Rows>>,
}

/// What a range leaves out, and how it is walked: bits of an integer.
const FROM: i32 = 1;
const FROM_EXCLUDED: i32 = 2;
const TO: i32 = 4;
const TO_INCLUDED: i32 = 8;
const BACKWARD: i32 = 16;
const KEYS_ONLY: i32 = 32;

impl Store {
    pub(crate) fn open(paths: &[String], made: TableOptions, options: Options) -> Result<Store> {
        let options = Options { merge_operators: merge_operators(), ..options };
        Ok(Store {
            db: Db::open_several(paths, options)?,
            made,
            tables: Handles::new("table"),
            snapshots: Handles::new("snapshot"),
            scans: Handles::new("scan"),
        })
    }

    /// The handle of a table that exists. Others, such as the unordered ones of programs in other languages, are refused.
    pub(crate) fn table(&self, name: &str) -> Result<i64> {
        let table = self.db.table(name)?;
        if !table.kind().is_ordered() {
            return Err(aiodb::Error::Unordered { name: name.to_string() }.into());
        }
        let merge = table.options().merge;
        if !merge.as_deref().is_some_and(|name| [Append.name(), Frames.name()].contains(&name)) {
            return Err(aiodb::Error::NoMergeOperator { name: merge }.into());
        }
        self.tables.insert(table)
    }

    /// Makes a table, whose values are `frames` or any bytes.
    pub(crate) fn create_table(&self, name: &str, frames: bool, modes: TableModes) -> Result<i64> {
        let merge = if frames { Frames.name() } else { Append.name() };
        let merge = Some(merge.to_string());
        let options = TableOptions { merge, modes, ..self.made.clone() };
        self.tables.insert(self.db.create_table_with(name, options)?)
    }

    /// A table that was not dropped.
    pub(crate) fn known_table(&self, handle: i64) -> Result<Arc<Table>> {
        self.tables.get(handle).map_err(|_| Failure::Dropped)
    }

    /// Changes what of a table memory keeps by preference.
    pub(crate) fn set_table_modes(&self, handle: i64, modes: TableModes) -> Result<()> {
        Ok(self.db.set_table_modes(self.known_table(handle)?.name(), modes)?)
    }

    pub(crate) fn truncate_table(&self, handle: i64) -> Result<()> {
        Ok(self.db.truncate_table(self.known_table(handle)?.name())?)
    }

    pub(crate) fn drop_table(&self, handle: i64) -> Result<()> {
        self.db.drop_table(self.known_table(handle)?.name())?;
        self.tables.remove(handle);
        Ok(())
    }

    /// A value now, or at a snapshot's moment.
    pub(crate) fn get(&self, table: i64, snapshot: i64, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let table = self.known_table(table)?;
        Ok(match snapshot {
            NO_SNAPSHOT => table.get(key)?,
            _ => self.snapshots.get(snapshot)?.get(&table, key)?,
        })
    }

    pub(crate) fn scan(&self, table: i64, snapshot: i64, options: ScanOptions) -> Result<i64> {
        let table = self.known_table(table)?;
        let scan = match snapshot {
            NO_SNAPSHOT => table.scan(options)?,
            _ => self.snapshots.get(snapshot)?.scan(&table, options)?,
        };
        self.scans.insert(Mutex::new(Rows::new(scan)))
    }

    /// Runs something with the rows of a scan; a second thread waits.
    pub(crate) fn with_rows<T>(&self, scan: i64, body: impl FnOnce(&mut Rows) -> Result<T>) -> Result<T> {
        let rows: Arc<Mutex<Rows>> = self.scans.get(scan)?;
        // After a panic the rows left are in doubt: no more are given.
        let mut rows = rows.lock().map_err(|_: PoisonError<_>| Failure::Closed { kind: "scan" })?;
        body(&mut rows)
    }

    /// Sizes and counters as lines of a name and a number, and [`notes`].
    pub(crate) fn statistics(&self) -> String {
        let stats = self.db.stats();
        let metrics = self.db.metrics();
        let disk = (stats.segments_in_use + stats.segments_free + stats.segments_retiring) * stats.segment_bytes
            + index_bytes(&stats.tables);
        let lines = [
            ("disk_bytes", disk),
            ("live_bytes", stats.live_bytes),
            ("rows", stats.tables.iter().map(|table| table.keys).sum()),
            ("log_bytes_written", stats.log_bytes_written),
            ("bytes_moved_by_reclaim", stats.bytes_moved_by_reclaim),
            ("batches_written", stats.batches_written),
            ("records_written", stats.records_written),
            ("checkpoints", stats.checkpoints),
            ("checkpoint_log_lag_bytes", stats.checkpoint_log_lag_bytes),
            ("snapshots", stats.snapshots),
            ("kept_versions", stats.kept_versions),
            ("kept_versions_in_files", stats.kept_versions_in_files),
            ("held_bytes", stats.held_bytes),
            ("waiting_range_deletes", stats.waiting_range_deletes),
            ("recovered_records", stats.recovered_records),
            ("recovery_ms", stats.recovery_ms),
            ("memory_budget_bytes", stats.memory.budget_bytes),
            ("memory_bytes", stats.memory.used_bytes()),
            ("runs", stats.runs),
            ("runs_above_bound", stats.runs_above_bound),
            ("merge_debt_bytes", stats.merge_debt_bytes),
            ("lookups", metrics.lookups),
        ];
        let lines = lines.iter().map(|(name, number)| format!("{name}\t{number}\n"));
        lines.collect::<String>() + &notes(stats.memory_full_seconds, stats.disk_full_seconds, &stats.warnings)
    }

    /// What is known of one table, as lines like those of [`Self::statistics`].
    pub(crate) fn table_statistics(&self, table: i64) -> Result<String> {
        Ok(lines_of(&self.known_table(table)?.stats()?))
    }

    /// The keys of a table, about.
    pub(crate) fn estimated_rows(&self, table: i64) -> Result<u64> {
        Ok(self.known_table(table)?.stats()?.keys)
    }
}

/// When memory and disk will be full, where they grow, and what an operator should know, a line each.
fn notes(memory_full_seconds: Option<u64>, disk_full_seconds: Option<u64>, warnings: &[String]) -> String {
    let times = [("memory_full_seconds", memory_full_seconds), ("disk_full_seconds", disk_full_seconds)];
    let times = times.into_iter().filter_map(|(name, seconds)| Some(format!("{name}\t{}\n", seconds?)));
    times.chain(warnings.iter().map(|warning| format!("warning\t{}\n", warning.replace(['\r', '\n'], " ")))).collect()
}

/// Bytes of the files of all indexes: each table has those of all tables of its kind together.
fn index_bytes(tables: &[TableStats]) -> u64 {
    let of_kind = |kind| tables.iter().filter(|table| table.kind == kind).map(|table| table.index_disk_bytes).max();
    [IndexKind::Lmdb, IndexKind::Lsm].into_iter().filter_map(of_kind).sum()
}

/// A table's modes by their names, shares from 0 to 1 where they are known, and counts, named as its metrics are.
fn lines_of(table: &TableStats) -> String {
    let shares =
        [("keys_in_memory_ratio", table.keys_in_memory()), ("values_in_memory_ratio", table.values_in_memory())];
    let counts = [
        ("rows", table.keys),
        ("runs", table.runs),
        ("run_bytes", table.run_bytes),
        ("merge_debt_bytes", table.merge_debt_bytes),
        ("blocks", table.blocks),
        ("cached_blocks", table.cached_blocks),
        ("cached_block_bytes", table.cached_block_bytes),
        ("cached_values", table.cached_values),
        ("cached_value_bytes", table.cached_value_bytes),
        ("value_hits", table.value_hits),
        ("value_misses", table.value_misses),
    ];
    let modes = format!("keys\t{}\nvalues\t{}\n", table.modes.keys.name(), table.modes.values.name());
    let shares = shares.into_iter().filter_map(|(name, share)| Some(format!("{name}\t{}\n", share?)));
    let counts = counts.into_iter().map(|(name, count)| format!("{name}\t{count}\n"));
    modes + &shares.chain(counts).collect::<String>()
}

/// Reads see what is there now.
pub(crate) const NO_SNAPSHOT: i64 = 0;

/// A range as Java describes it.
pub(crate) fn scan_options(from: &[u8], to: &[u8], flags: i32, limit: i64) -> Result<ScanOptions> {
    let limit = u64::try_from(limit).map_err(|_| Failure::Argument("a limit is negative"))?;
    let has = |flag: i32| flags & flag != 0;
    let mut options = ScanOptions::all().limit(limit);
    if has(FROM) {
        options = if has(FROM_EXCLUDED) { options.after(from) } else { options.from(from) };
    }
    if has(TO) {
        options = if has(TO_INCLUDED) { options.to(to) } else { options.before(to) };
    }
    if has(BACKWARD) {
        options = options.backward();
    }
    Ok(if has(KEYS_ONLY) { options.keys_only() } else { options })
}

/// A class of durability as Java numbers them, with the interval in milliseconds.
pub(crate) fn durability(class: i32, interval_ms: i64) -> Result<Durability> {
    match class {
        0 => Ok(Durability::Sync),
        1 => {
            let interval_ms = u64::try_from(interval_ms).map_err(|_| Failure::Argument("an interval is negative"))?;
            Ok(Durability::Interval(Duration::from_millis(interval_ms)))
        }
        2 => Ok(Durability::None),
        _ => Err(Failure::Argument("a class of durability is unknown")),
    }
}

/// The kind of an ordered index as Java names it.
pub(crate) fn kind(name: &str) -> Result<IndexKind> {
    match name {
        "lmdb" => Ok(IndexKind::Lmdb),
        "lsm" => Ok(IndexKind::Lsm),
        _ => Err(Failure::Argument("an ordered index is unknown")),
    }
}

/// A storage mode as Java names it.
pub(crate) fn mode(name: &str) -> Result<StorageMode> {
    let named = StorageMode::ALL.into_iter().find(|mode| mode.name() == name);
    named.ok_or(Failure::Argument("a storage mode is unknown"))
}

/// A compression as Java names it.
pub(crate) fn compression(name: &str) -> Result<Compression> {
    match name {
        "none" => Ok(Compression::None),
        "lz4" => Ok(Compression::Lz4),
        "zstd" => Ok(Compression::Zstd(3)),
        _ => Err(Failure::Argument("a compression is unknown")),
    }
}

#[cfg(test)]
mod tests;
