//! `aiodb stat`: all of the engine's counters, aligned for people or with units in their names for programs.

use super::watch::watch;
use crate::error::CliError;
use crate::exit::Exit;
use crate::options::{ReadArgs, durability_name};
use crate::output::Output;
use crate::tables::keys;
use aiodb::{IndexKind, Stats, StorageMode, TableStats};
use clap::Args;
use indicatif::{BinaryBytes, HumanCount};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Show sizes, counts and what recovery did
#[derive(Args)]
#[command(
    long_about = "Show the sizes and counts of a store, its tables, the device backend that was chosen and why, and \
                  what recovery did when this command opened it. Counters marked `since opening` start with this \
                  command. With --json every name carries its unit.\n\nA store that another process has open can be \
                  watched if that process lets it write its metrics (Options::metrics_file in the library; loads by \
                  this command do). docs/operations.md says what each metric means.",
    after_help = "Examples:\n  aiodb stat /data/store\n  aiodb stat /data/store --json | jq .live_bytes\n  aiodb stat \
                  /data/store --watch=5"
)]
pub struct StatArgs {
    #[command(flatten)]
    store: ReadArgs,
    /// Show the metrics of the process that has the store open, and again every so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = clap::value_parser!(u64).range(1..=3600))]
    watch: Option<u64>,
    /// Stop watching after so many times
    #[arg(long, requires = "watch", value_parser = clap::value_parser!(u64).range(1..))]
    times: Option<u64>,
    /// Where that process writes its metrics [default: metrics.prom in the store]
    #[arg(long, value_name = "FILE", requires = "watch")]
    metrics_file: Option<PathBuf>,
}

/// Runs the command.
pub fn stat(args: StatArgs, output: &Output) -> Result<Exit, CliError> {
    if let Some(seconds) = args.watch {
        let path = args.metrics_file.unwrap_or_else(|| args.store.store.metrics_file());
        watch(&path, Duration::from_secs(seconds), args.times, output)?;
        return Ok(Exit::Success);
    }
    let db = args.store.open()?;
    let stats = db.stats();
    db.close()?;
    output.result(&to_json(&stats), &to_text(&stats))?;
    Ok(Exit::Success)
}

fn to_json(stats: &Stats) -> Value {
    let mut json = json!({
        "format_version": stats.format_version,
        "store_id": stats.store_id,
        "durability": durability_name(stats.durability),
        "backend": stats.backend,
        "direct": stats.direct,
        "block_bytes": stats.block_bytes,
        "fallbacks": stats.fallbacks,
        "segment_bytes": stats.segment_bytes,
        "segments_in_use": stats.segments_in_use,
        "segments_free": stats.segments_free,
        "segments_retiring": stats.segments_retiring,
        "open_files": stats.open_files,
        "max_open_files": stats.max_open_files,
        "live_bytes": stats.live_bytes,
        "log_bytes_written": stats.log_bytes_written,
        "batches_written": stats.batches_written,
        "records_written": stats.records_written,
        "bytes_moved_by_reclaim": stats.bytes_moved_by_reclaim,
        "last_sequence": stats.last_sequence,
        "last_batch": stats.last_batch,
        "durable_batch": stats.durable_batch,
        "unsettled_tags": stats.unsettled_tags,
        "oldest_pin_ms": stats.oldest_pin_ms,
        "snapshots": stats.snapshots,
        "kept_versions": stats.kept_versions,
        "kept_versions_in_files": stats.kept_versions_in_files,
        "held_bytes": stats.held_bytes,
        "waiting_range_deletes": stats.waiting_range_deletes,
        "clock_ahead_ms": stats.clock_ahead_ms,
        "warnings": stats.warnings,
        "trouble": stats.trouble,
        "memory_budget_bytes": stats.memory.budget_bytes,
        "memory_bytes": stats.memory.parts().into_iter().collect::<BTreeMap<_, _>>(),
        "checkpoints": stats.checkpoints,
        "checkpoint_log_lag_bytes": stats.checkpoint_log_lag_bytes,
        "recovered_batches": stats.recovered_batches,
        "recovered_records": stats.recovered_records,
        "recovered_pending_records": stats.recovered_pending_records,
        "rebuilt_indexes": stats.rebuilt_indexes,
        "recovery_ms": stats.recovery_ms,
        "tables": stats.tables.iter().map(table_json).collect::<Vec<_>>(),
    });
    // More than the macro takes at once.
    json["runs"] = json!(stats.runs);
    json["runs_above_bound"] = json!(stats.runs_above_bound);
    json["merge_debt_bytes"] = json!(stats.merge_debt_bytes);
    json["filters_left_out_bytes"] = json!(stats.memory.filters_left_out_bytes);
    json["memory_full_seconds"] = json!(stats.memory_full_seconds);
    json["disk_full_seconds"] = json!(stats.disk_full_seconds);
    json
}

fn table_json(table: &TableStats) -> Value {
    json!({
        "name": table.name,
        "index": table.kind.name(),
        "keys": table.keys,
        "keys_exact": table.keys_exact,
        "index_memory_bytes": table.index_memory_bytes,
        "index_disk_bytes": table.index_disk_bytes,
        "index_plain_bytes": table.index_plain_bytes,
        "inline_bytes": table.inline_bytes,
        "block_compression": table.block_compression.to_string(),
        "keys_mode": table.modes.keys.name(),
        "values_mode": table.modes.values.name(),
        "keys_in_memory_ratio": table.keys_in_memory(),
        "values_in_memory_ratio": table.values_in_memory(),
        "runs": table.runs,
        "run_bytes": table.run_bytes,
        "merge_debt_bytes": table.merge_debt_bytes,
        "blocks": table.blocks,
        "cached_blocks": table.cached_blocks,
        "cached_block_bytes": table.cached_block_bytes,
        "cached_values": table.cached_values,
        "cached_value_bytes": table.cached_value_bytes,
        "value_hits": table.value_hits,
        "value_misses": table.value_misses,
    })
}

/// Clocks that are no further apart are the same to people.
const SHOWN_FROM_MS: u64 = 1000;

fn to_text(stats: &Stats) -> String {
    let mut text = String::new();
    section(&mut text, "store", &store_rows(stats));
    section(&mut text, "device", &device_rows(stats));
    section(&mut text, "space", &space_rows(stats));
    section(&mut text, "memory", &memory_rows(stats));
    section(&mut text, "written since opening", &written_rows(stats));
    section(&mut text, "recovery at opening", &recovery_rows(stats));
    tables(&mut text, &stats.tables);
    text
}

type Rows = Vec<(&'static str, String)>;

fn store_rows(stats: &Stats) -> Rows {
    vec![
        ("id", stats.store_id.clone()),
        ("format version", stats.format_version.to_string()),
        ("durability here", durability_name(stats.durability)),
        ("last sequence", count(stats.last_sequence)),
        ("last batch", count(stats.last_batch)),
        ("durable batch", count(stats.durable_batch)),
    ]
}

fn device_rows(stats: &Stats) -> Rows {
    let mut rows = vec![
        ("backend", stats.backend.to_string()),
        ("direct I/O", yes_or_no(stats.direct)),
        ("block", bytes(stats.block_bytes as u64)),
    ];
    rows.extend(stats.fallbacks.iter().map(|fallback| ("not used", fallback.clone())));
    rows.extend(clock(stats.clock_ahead_ms).map(|clock| ("clock", clock)));
    rows.extend(stats.warnings.iter().map(|warning| ("warning", warning.clone())));
    rows.extend(stats.trouble.iter().map(|trouble| ("trouble", trouble.clone())));
    rows
}

/// What to say of a system's clock by which records do not expire just now.
fn clock(ahead_ms: i64) -> Option<String> {
    let where_to = if ahead_ms > 0 { "ahead of" } else { "behind" };
    let seconds = count(ahead_ms.unsigned_abs() / 1000);
    let said = format!("{seconds} s {where_to} the store's time, which is held; is it right?");
    (ahead_ms.unsigned_abs() >= SHOWN_FROM_MS).then_some(said)
}

fn space_rows(stats: &Stats) -> Rows {
    vec![
        ("segment size", bytes(stats.segment_bytes)),
        ("segments in use", segments(stats.segments_in_use, stats)),
        ("segments free", segments(stats.segments_free, stats)),
        ("segments retiring", segments(stats.segments_retiring, stats)),
        ("open segments", format!("{} of at most {}", count(stats.open_files), count(stats.max_open_files))),
        ("live data", bytes(stats.live_bytes)),
        ("unsettled tags", count(stats.unsettled_tags)),
        ("sorted runs", sorted_runs(stats)),
        ("merges behind", bytes(stats.merge_debt_bytes)),
        ("oldest get in flight", format!("{} ms", count(stats.oldest_pin_ms))),
        ("snapshots", count(stats.snapshots)),
        ("kept versions", kept_versions(stats)),
        ("held for snapshots", bytes(stats.held_bytes)),
        ("range deletes", count(stats.waiting_range_deletes)),
        ("disk full in", until(stats.disk_full_seconds)),
    ]
}

fn memory_rows(stats: &Stats) -> Rows {
    let part = |name| match name {
        "runs" => "filters, fences",
        "hash" => "hash slots",
        "block_cache" => "cache of blocks",
        "cache" => "cache of values",
        name => name,
    };
    let parts = stats.memory.parts().map(|(name, taken)| (part(name), bytes(taken)));
    let first = [("budget", bytes(stats.memory.budget_bytes)), ("full in", until(stats.memory_full_seconds))];
    first.into_iter().chain(parts).collect()
}

fn sorted_runs(stats: &Stats) -> String {
    match stats.runs_above_bound {
        0 => count(stats.runs),
        above => format!("{}, {} too many: writers wait for merges", count(stats.runs), count(above)),
    }
}

fn kept_versions(stats: &Stats) -> String {
    format!("{}, of which {} in files", count(stats.kept_versions), count(stats.kept_versions_in_files))
}

fn written_rows(stats: &Stats) -> Rows {
    vec![
        ("log", bytes(stats.log_bytes_written)),
        ("moved by reclaim", bytes(stats.bytes_moved_by_reclaim)),
        ("batches", count(stats.batches_written)),
        ("records", count(stats.records_written)),
        ("checkpoints", count(stats.checkpoints)),
        ("log past checkpoint", bytes(stats.checkpoint_log_lag_bytes)),
    ]
}

fn recovery_rows(stats: &Stats) -> Rows {
    vec![
        ("batches replayed", count(stats.recovered_batches)),
        ("records replayed", count(stats.recovered_records)),
        ("pending records", count(stats.recovered_pending_records)),
        ("indexes rebuilt", yes_or_no(stats.rebuilt_indexes)),
        ("time", format!("{} ms", count(stats.recovery_ms))),
    ]
}

fn section(text: &mut String, title: &str, rows: &Rows) {
    let _ = writeln!(text, "{title}");
    for (label, value) in rows {
        let _ = writeln!(text, "  {label:21}{value}");
    }
}

fn tables(text: &mut String, tables: &[TableStats]) {
    let titles = ["in memory", "sorted runs"].into_iter().map(str::len);
    let names = tables.iter().map(|table| table.name.chars().count());
    let width = names.chain(titles).max().unwrap_or(0);
    let header = format!(
        "{:width$}  index  {:>15}  {:>12}  {:>12}  {:>12}  {:>6}  {:>7}",
        "table", "keys", "index memory", "index disk", "uncompressed", "inline", "blocks"
    );
    let _ = writeln!(text, "{header}");
    for table in tables {
        let _ = writeln!(
            text,
            "{:width$}  {:5}  {:>15}  {:>12}  {:>12}  {:>12}  {:>6}  {:>7}",
            table.name,
            table.kind.name(),
            keys(table),
            BinaryBytes(table.index_memory_bytes).to_string(),
            BinaryBytes(table.index_disk_bytes).to_string(),
            BinaryBytes(table.index_plain_bytes).to_string(),
            table.inline_bytes,
            table.block_compression.to_string(),
        );
    }
    let header =
        format!("{:width$}  {:>14}  {:>14}  {:>12}  {:>12}", "in memory", "keys", "values", "value hits", "misses");
    let _ = writeln!(text, "{header}");
    for table in tables {
        let place = |mode: StorageMode, share| format!("{} {:>6}", mode.name(), percent(share));
        let _ = writeln!(
            text,
            "{:width$}  {:>14}  {:>14}  {:>12}  {:>12}",
            table.name,
            place(table.modes.keys, table.keys_in_memory()),
            place(table.modes.values, table.values_in_memory()),
            count(table.value_hits),
            count(table.value_misses),
        );
    }
    let header = format!("{:width$}  {:>15}  {:>12}  {:>13}", "sorted runs", "runs", "bytes", "merges behind");
    let _ = writeln!(text, "{header}");
    for table in tables.iter().filter(|table| table.kind != IndexKind::Lmdb) {
        let _ = writeln!(
            text,
            "{:width$}  {:>15}  {:>12}  {:>13}",
            table.name,
            count(table.runs),
            BinaryBytes(table.run_bytes).to_string(),
            BinaryBytes(table.merge_debt_bytes).to_string(),
        );
    }
}

/// A time that is known only where something grows.
fn until(seconds: Option<u64>) -> String {
    seconds.map_or_else(|| "- (it does not grow)".to_string(), |seconds| format!("{} s", count(seconds)))
}

/// A share as people read it; where it is not known, nothing.
fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_string(), |share| format!("~{:.0} %", share * 100.0))
}

fn segments(number: u64, stats: &Stats) -> String {
    format!("{} ({})", count(number), BinaryBytes(number * stats.segment_bytes))
}

fn bytes(number: u64) -> String {
    if number < 1024 { format!("{number} B") } else { format!("{} ({} B)", BinaryBytes(number), count(number)) }
}

fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

fn yes_or_no(answer: bool) -> String {
    if answer { "yes".into() } else { "no".into() }
}

#[cfg(test)]
mod tests;
