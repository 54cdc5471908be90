//! The rows of `bench soak`, and their tables.

use serde::{Deserialize, Serialize};

use crate::bench::stats::Course;
use crate::bench::table::{Table, bytes, decimal, whole};

/// One stretch of a long run of inserts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SoakRow {
    pub index: String,
    pub durability: String,
    pub key_bytes: usize,
    pub value_bytes: usize,
    pub writers: usize,
    /// Memory that the control group of the process may have; `None` if there is no limit.
    pub memory_limit_bytes: Option<u64>,
    /// From the start of the run to the end of the stretch.
    pub at_s: f64,
    /// Length of the stretch.
    pub seconds: f64,
    /// Keys in the store at its end.
    pub keys: u64,
    /// Acknowledged in the stretch.
    pub puts_per_s: f64,
    /// Of all puts that ended in the stretch; 0 if none did.
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub longest_us: f64,
    /// Memory of the process that is resident at its end, mapped files included.
    pub resident_bytes: u64,
    /// Processors in use, user and system, by all threads.
    pub processors: f64,
    /// Written and read by the disk, by all processes; `None` where the kernel does not say.
    pub device_written_bytes_per_s: Option<f64>,
    pub device_reads_per_s: Option<f64>,
}

impl SoakRow {
    /// The stretch in one line.
    pub(crate) fn in_words(&self) -> String {
        let (rate, keys) = (whole(self.puts_per_s), whole(self.keys as f64));
        format!(
            "{} {}: {rate} puts/s at {keys} keys, the longest took {} ms",
            self.index,
            self.durability,
            decimal(self.longest_us / 1000.0, 0)
        )
    }

    /// What makes stretches one run.
    pub(crate) fn run(&self) -> (&str, &str) {
        (&self.index, &self.durability)
    }
}

/// The runs, each with its stretches in order.
pub(crate) fn runs(rows: &[SoakRow]) -> impl Iterator<Item = &[SoakRow]> {
    rows.chunk_by(|one, other| one.run() == other.run())
}

/// A whole run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SoakRun {
    pub puts_per_s: Course,
    pub longest_us: f64,
    pub cpu_us_per_put: f64,
}

impl SoakRun {
    /// `rows` are the stretches of one run, at least one.
    pub(crate) fn of(rows: &[SoakRow]) -> SoakRun {
        let rates: Vec<_> = rows.iter().map(|row| (row.puts_per_s, row.seconds)).collect();
        let puts: f64 = rates.iter().map(|(rate, seconds)| rate * seconds).sum();
        let cpu_s: f64 = rows.iter().map(|row| row.processors * row.seconds).sum();
        SoakRun {
            puts_per_s: Course::of(&rates),
            longest_us: rows.iter().map(|row| row.longest_us).fold(0.0, f64::max),
            cpu_us_per_put: cpu_s * 1e6 / puts.max(1.0),
        }
    }
}

/// The rows for people: each run, then its stretches.
pub(crate) fn tables(rows: &[SoakRow]) -> Vec<Table> {
    vec![courses(rows), stretches(rows)]
}

fn courses(rows: &[SoakRow]) -> Table {
    let mut table = Table::new(&[
        "index",
        "durability",
        "value B",
        "writers",
        "keys",
        "puts/s",
        "first tenth",
        "last tenth",
        "last/first",
        "worst stretch",
        "longest put ms",
        "CPU µs/put",
    ]);
    for run in runs(rows) {
        let (whole_run, last) = (SoakRun::of(run), &run[run.len() - 1]);
        let rates = whole_run.puts_per_s;
        table.push(vec![
            last.index.clone(),
            last.durability.clone(),
            last.value_bytes.to_string(),
            last.writers.to_string(),
            whole(last.keys as f64),
            whole(rates.mean),
            whole(rates.first),
            whole(rates.last),
            decimal(rates.last / rates.first, 2),
            whole(rates.least),
            decimal(whole_run.longest_us / 1000.0, 1),
            decimal(whole_run.cpu_us_per_put, 2),
        ]);
    }
    table
}

fn stretches(rows: &[SoakRow]) -> Table {
    let mut table = Table::new(&[
        "index",
        "at s",
        "keys",
        "puts/s",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "longest ms",
        "resident",
        "processors",
        "disk written/s",
        "disk reads/s",
    ]);
    for row in rows {
        let written = row.device_written_bytes_per_s.map(|rate| bytes(rate as u64));
        table.push(vec![
            row.index.clone(),
            decimal(row.at_s, 0),
            whole(row.keys as f64),
            whole(row.puts_per_s),
            decimal(row.p50_us, 1),
            decimal(row.p99_us, 1),
            decimal(row.p999_us, 1),
            decimal(row.longest_us / 1000.0, 1),
            bytes(row.resident_bytes),
            decimal(row.processors, 2),
            written.unwrap_or_else(|| crate::bench::table::NONE.to_owned()),
            decimal(row.device_reads_per_s, 0),
        ]);
    }
    table
}
