//! The rows of `bench queue-depth`, and their table.

use serde::{Deserialize, Serialize};

use crate::bench::table::{NONE, Table, decimal, whole};

/// One point of the curve. Rates are medians over rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct QueueDepthRow {
    pub index: String,
    pub backend: String,
    pub threads: usize,
    pub depth_per_thread: usize,
    pub pairs: u64,
    /// Keys and values.
    pub data_bytes: u64,
    /// Resident memory of the process, mapped index pages included.
    pub resident_bytes: u64,
    pub gets_per_s: f64,
    pub gets_per_s_min: f64,
    pub gets_per_s_max: f64,
    pub gets_per_s_rounds: Vec<f64>,
    /// What the ceiling was measured with.
    pub ceiling: Option<String>,
    pub ceiling_read_bytes: u32,
    pub ceiling_reads_per_s: Option<f64>,
    pub ceiling_reads_per_s_rounds: Vec<f64>,
    /// Gets per second over the ceiling's reads per second of the same round.
    pub ratio: Option<f64>,
    pub ratio_ci95_half_width: Option<f64>,
    pub ratio_min: Option<f64>,
    pub ratio_max: Option<f64>,
    pub rounds: usize,
    /// Rounds in which the device itself gave less than 80 % of its warm-up rate; they count.
    pub marked_rounds: usize,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub latency_samples: u64,
    pub cpu_us_per_get: f64,
    pub fio_reads_per_s: Option<f64>,
    pub fio_cpu_us_per_read: Option<f64>,
    pub raw_reads_per_s: Option<f64>,
    pub raw_cpu_us_per_read: Option<f64>,
    /// Counted by the disk, from all processes.
    pub device_reads_per_get: Option<f64>,
}

impl QueueDepthRow {
    /// The point with its rate, in one line.
    pub(crate) fn in_words(&self) -> String {
        let place = format!("{} {} threads={} depth={}", self.index, self.backend, self.threads, self.depth_per_thread);
        let ratio = match (self.ratio, self.ratio_ci95_half_width) {
            (Some(ratio), Some(half)) => format!(", {ratio:.3} ± {half:.3} of the ceiling"),
            (Some(ratio), None) => format!(", {ratio:.3} of the ceiling"),
            _ => String::new(),
        };
        format!("{place}: {} gets/s{ratio}, {} rounds", whole(self.gets_per_s), self.rounds)
    }
}

/// The rows for people.
pub(crate) fn table(rows: &[QueueDepthRow]) -> Table {
    let mut table = Table::new(&[
        "index",
        "backend",
        "threads",
        "depth",
        "gets/s",
        "min",
        "max",
        "ceiling/s",
        "measured by",
        "ratio",
        "± 95 %",
        "rounds",
        "marked",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "CPU µs/get",
        "fio CPU µs",
        "reads/get",
    ]);
    for row in rows {
        table.push(vec![
            row.index.clone(),
            row.backend.clone(),
            row.threads.to_string(),
            row.depth_per_thread.to_string(),
            whole(row.gets_per_s),
            whole(row.gets_per_s_min),
            whole(row.gets_per_s_max),
            row.ceiling_reads_per_s.map_or_else(|| NONE.to_owned(), whole),
            row.ceiling.clone().unwrap_or_else(|| NONE.to_owned()),
            decimal(row.ratio, 3),
            decimal(row.ratio_ci95_half_width, 3),
            row.rounds.to_string(),
            row.marked_rounds.to_string(),
            decimal(row.p50_us, 0),
            decimal(row.p99_us, 0),
            decimal(row.p999_us, 0),
            decimal(row.cpu_us_per_get, 2),
            decimal(row.fio_cpu_us_per_read, 2),
            decimal(row.device_reads_per_get, 2),
        ]);
    }
    table
}
