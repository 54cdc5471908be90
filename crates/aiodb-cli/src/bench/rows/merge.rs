//! The rows of `bench merge`, and their tables.

use serde::{Deserialize, Serialize};

use crate::bench::stats::Summary;
use crate::bench::table::{Table, decimal, whole};

/// Counters that are merged, beside values that are put, under the same keys in two tables of one store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MergeRow {
    pub index: String,
    pub durability: String,
    pub key_bytes: usize,
    /// Of an operand, and of a value that is put.
    pub value_bytes: usize,
    /// Values of up to so many bytes lie in the index.
    pub inline_bytes: usize,
    pub keys: u64,
    /// Concurrent writers, and threads that get.
    pub writers: usize,
    pub merges: Operations,
    pub puts: Operations,
    /// Merges to puts, in the same rounds.
    pub merges_to_puts: Ratio,
    /// The same until all operands that had piled up were folded and nothing was owed to disk or index.
    pub merges_to_puts_caught_up: Ratio,
    /// Whether nothing was owed any more before the first get.
    pub is_settled_before_gets: bool,
    /// Of the merged keys and of those put, afterwards.
    pub gets_of_merged: Operations,
    pub gets_of_put: Operations,
    /// Gets of merged keys to those of put keys, in the same rounds.
    pub gets_of_merged_to_put: Ratio,
    /// Counters that were read at the end: each had the sum of all that was merged.
    pub checked_counters: u64,
}

/// Operations of one kind; rates and times are medians over rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Operations {
    pub count: u64,
    pub per_s: f64,
    pub per_s_rounds: Vec<f64>,
    /// Until nothing was owed any more. Gets owe nothing.
    pub per_s_caught_up: f64,
    /// Rounds after which something was still owed when it was not waited for any longer: the rate above is too high there.
    pub rounds_not_caught_up: u64,
    pub p50_us: f64,
    pub p99_us: f64,
    /// Processor time of the whole process, until caught up.
    pub cpu_us_each: f64,
}

/// Ratios of two rates within each round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ratio {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Ratio {
    /// Both have a rate for each round, and there is one round at least.
    pub(crate) fn of(own: &[f64], other: &[f64]) -> Ratio {
        assert_eq!(own.len(), other.len(), "both took their turn in every round");
        let ratios: Vec<f64> = own.iter().zip(other).map(|(own, other)| own / other).collect();
        let summary = Summary::of(&ratios).expect("at least one round was run");
        Ratio { median: summary.median, min: summary.min, max: summary.max }
    }
}

impl MergeRow {
    /// What is merged, where.
    pub(crate) fn place(&self) -> String {
        let (keys, writers) = (self.keys, self.writers);
        format!(
            "{}, {}, {} {}, {writers} {}",
            self.index,
            self.durability,
            whole(keys as f64),
            if keys == 1 { "key" } else { "keys" },
            if writers == 1 { "writer" } else { "writers" }
        )
    }

    /// What a reader must know where the store owed something for long.
    pub(crate) fn not_caught_up(&self) -> Option<String> {
        let (merges, puts) = (self.merges.rounds_not_caught_up, self.puts.rounds_not_caught_up);
        let before_gets = if self.is_settled_before_gets { "" } else { ", nor before the gets" };
        (merges + puts > 0 || !self.is_settled_before_gets).then(|| {
            let place = self.place();
            format!("{place}: not caught up with after {merges} rounds of merges and {puts} of puts{before_gets}")
        })
    }

    /// The point in one line.
    pub(crate) fn in_words(&self) -> String {
        format!(
            "{}: {} merges/s, {} of the puts; gets at {} of the rate of those of put keys",
            self.place(),
            whole(self.merges.per_s),
            decimal(self.merges_to_puts.median, 2),
            decimal(self.gets_of_merged_to_put.median, 2)
        )
    }
}

/// The rows for people: merges beside puts, then the gets of both.
pub(crate) fn tables(rows: &[MergeRow]) -> Vec<Table> {
    vec![writes(rows), gets(rows)]
}

fn place_cells(row: &MergeRow) -> Vec<String> {
    vec![row.index.clone(), row.durability.clone(), whole(row.keys as f64), row.writers.to_string()]
}

fn writes(rows: &[MergeRow]) -> Table {
    let mut table = Table::new(&[
        "index",
        "durability",
        "keys",
        "writers",
        "merges/s",
        "puts/s",
        "ratio",
        "min",
        "max",
        "caught up/s",
        "puts caught up/s",
        "ratio caught up",
        "CPU µs/merge",
        "CPU µs/put",
        "merge p50 µs",
        "merge p99 µs",
        "put p50 µs",
        "put p99 µs",
    ]);
    for row in rows {
        let mut cells = place_cells(row);
        cells.extend([
            whole(row.merges.per_s),
            whole(row.puts.per_s),
            decimal(row.merges_to_puts.median, 2),
            decimal(row.merges_to_puts.min, 2),
            decimal(row.merges_to_puts.max, 2),
            whole(row.merges.per_s_caught_up),
            whole(row.puts.per_s_caught_up),
            decimal(row.merges_to_puts_caught_up.median, 2),
            decimal(row.merges.cpu_us_each, 2),
            decimal(row.puts.cpu_us_each, 2),
            decimal(row.merges.p50_us, 1),
            decimal(row.merges.p99_us, 1),
            decimal(row.puts.p50_us, 1),
            decimal(row.puts.p99_us, 1),
        ]);
        table.push(cells);
    }
    table
}

fn gets(rows: &[MergeRow]) -> Table {
    let mut table = Table::new(&[
        "index",
        "durability",
        "keys",
        "threads",
        "gets/s of merged",
        "gets/s of put",
        "ratio",
        "min",
        "max",
        "CPU µs/get of merged",
        "CPU µs/get of put",
    ]);
    for row in rows {
        let mut cells = place_cells(row);
        cells.extend([
            whole(row.gets_of_merged.per_s),
            whole(row.gets_of_put.per_s),
            decimal(row.gets_of_merged_to_put.median, 2),
            decimal(row.gets_of_merged_to_put.min, 2),
            decimal(row.gets_of_merged_to_put.max, 2),
            decimal(row.gets_of_merged.cpu_us_each, 2),
            decimal(row.gets_of_put.cpu_us_each, 2),
        ]);
        table.push(cells);
    }
    table
}

#[cfg(test)]
pub(crate) mod tests;
