//! Where memory loses its advantage: LMDB in memory against the bytes copied from each value, beside reads from the
//! device. The paper's figure 1 and the comparison that it draws from both figures.

use std::path::PathBuf;
use std::time::Duration;

use aiodb::IndexKind;
use clap::Args;

use super::arguments::{OutputArgs, parse_index};
use super::dataset::{Dataset, LoadedStore, Order, Scratch, VALUE_BYTES};
use super::gets::{Gets, MAX_PAIRS};
use super::memory::MemoryStore;
use super::outcome::Outcome;
use super::raw::ReadArea;
use super::round::Round;
use super::rows::Rows;
use super::rows::copy_size::{AIODB, CopySizeRow, LMDB};
use super::stats::Summary;
use super::table::whole;
use super::terminal::progress;
use crate::CliError;

#[derive(Args)]
pub(super) struct CopySizeArgs {
    /// Directory on the disk to measure; the stores are made in a fresh directory below it
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Pairs, each an 8-byte key and a 4096-byte value; LMDB takes 8.2 KiB of memory for each
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=MAX_PAIRS))]
    pairs: u64,
    /// Bytes copied from each value
    #[arg(long, value_delimiter = ',', default_value = "0,64,256,1024,2048,4096",
          value_parser = clap::value_parser!(u64).range(0..=VALUE_BYTES as u64))]
    copy_bytes: Vec<u64>,
    /// Gets in flight of our store, one thread
    #[arg(long, value_delimiter = ',', default_value = "64,256", value_parser = clap::value_parser!(u64).range(1..=4096))]
    depths: Vec<u64>,
    /// Index of our store
    #[arg(long, default_value = "lmdb", value_parser = parse_index)]
    index: IndexKind,
    /// Length of a round in milliseconds; all points take turns
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    round_ms: u64,
    /// Rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Keep the stores
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// A point and its rounds so far.
struct Point {
    copy_bytes: usize,
    depth: Option<usize>,
    gets_per_s: Vec<f64>,
    cpu_us_per_get: Vec<f64>,
}

pub(super) fn run(args: &CopySizeArgs) -> Result<Outcome, CliError> {
    let data = Dataset { pairs: args.pairs, value_bytes: VALUE_BYTES };
    let scratch = Scratch::new(&args.dir, args.keep)?;
    progress(&format!("loading {} pairs into LMDB", whole(data.pairs as f64)));
    let memory = MemoryStore::build(&scratch.path().join("lmdb-alone"), data)?;
    progress("loading the same pairs into our store");
    let store_path = scratch.path().join("store");
    let store = LoadedStore::build(std::slice::from_ref(&store_path), args.index, data, Order::Numbers)?;
    ReadArea::warmed(std::slice::from_ref(&store_path), store.db.stats().segment_bytes)?;

    let round = Duration::from_millis(args.round_ms);
    let mut points = points(args);
    for number in 1..=args.rounds {
        progress(&format!("round {number} of {}", args.rounds));
        for point in &mut points {
            point.add(&match point.depth {
                None => memory.run(point.copy_bytes, round)?,
                Some(depth) => Gets { table: &store.table, data, threads: 1, depth, copy_bytes: point.copy_bytes }
                    .run(None, round)?,
            });
        }
    }
    let stats = store.db.stats();
    store.db.close()?;
    let rows: Vec<CopySizeRow> = points.into_iter().map(|point| point.into_row(data.pairs)).collect();
    let mut notes = vec![
        format!(
            "one thread; our store: index {}, backend {}, cache of values: 0 bytes",
            args.index.name(),
            stats.backend
        ),
        "LMDB: every page was read before measuring; with 0 bytes copied the value itself is not touched".to_owned(),
    ];
    notes.extend(stats.fallbacks);
    notes.extend(conclusion(&rows));
    Ok(Outcome::new(scratch.path(), notes, Rows::CopySize(rows)))
}

fn points(args: &CopySizeArgs) -> Vec<Point> {
    let depths = std::iter::once(None).chain(args.depths.iter().map(|depth| Some(*depth as usize)));
    let series = depths.flat_map(|depth| args.copy_bytes.iter().map(move |bytes| (depth, *bytes as usize)));
    series
        .map(|(depth, copy_bytes)| Point { copy_bytes, depth, gets_per_s: Vec::new(), cpu_us_per_get: Vec::new() })
        .collect()
}

impl Point {
    fn add(&mut self, round: &Round) {
        self.gets_per_s.push(round.operations_per_s);
        self.cpu_us_per_get.push(round.cpu_us_per_operation);
    }

    fn into_row(self, pairs: u64) -> CopySizeRow {
        let gets = Summary::of(&self.gets_per_s).expect("at least one round was run");
        let cpu = Summary::of(&self.cpu_us_per_get).expect("at least one round was run");
        CopySizeRow {
            series: if self.depth.is_none() { LMDB } else { AIODB }.to_owned(),
            copy_bytes: self.copy_bytes,
            depth: self.depth,
            pairs,
            gets_per_s: gets.median,
            gets_per_s_min: gets.min,
            gets_per_s_max: gets.max,
            rounds: self.gets_per_s.len(),
            gets_per_s_rounds: self.gets_per_s,
            cpu_us_per_get: cpu.median,
        }
    }
}

/// From which size on the device is at least as fast as memory. As in the paper our store copies nothing: the device
/// has put the value into the caller's buffer already.
fn conclusion(rows: &[CopySizeRow]) -> Option<String> {
    let ours = rows.iter().filter(|row| row.series == AIODB && row.copy_bytes == 0);
    let ours = ours.max_by(|a, b| a.gets_per_s.total_cmp(&b.gets_per_s))?;
    let mut lmdb: Vec<&CopySizeRow> = rows.iter().filter(|row| row.series == LMDB).collect();
    lmdb.sort_by_key(|row| row.copy_bytes);
    let depth = ours.depth.unwrap_or(1);
    let rate = whole(ours.gets_per_s);
    if let Some(beaten) = lmdb.iter().find(|row| row.gets_per_s <= ours.gets_per_s) {
        return Some(format!(
            "reads from the device ({rate}/s at depth {depth}) are at least as fast as LMDB in memory from {} bytes \
             copied on ({}/s)",
            beaten.copy_bytes,
            whole(beaten.gets_per_s)
        ));
    }
    let slowest = lmdb.last()?;
    Some(format!(
        "at no measured size are reads from this device ({rate}/s at depth {depth}) as fast as LMDB in memory; to equal \
         its copies of {} bytes the device would have to give {} reads/s, {:.1} times what this one gives",
        slowest.copy_bytes,
        whole(slowest.gets_per_s),
        slowest.gets_per_s / ours.gets_per_s
    ))
}

#[cfg(test)]
mod tests;
