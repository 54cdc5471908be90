//! The rows of `bench churn`, and their tables.

use serde::{Deserialize, Serialize};

use crate::bench::stats::Course;
use crate::bench::table::{NONE, Table, bytes, decimal, whole};

/// A stretch of a run, or a whole run. The stretches of a run come before it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "series", rename_all = "snake_case")]
pub(crate) enum ChurnRow {
    Stretch(ChurnStretch),
    Run(ChurnRun),
}

/// What is overwritten, by whom, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChurnLoad {
    pub index: String,
    /// How overwrites are spread over records: `uniform` or `zipf`.
    pub pattern: String,
    pub durability: String,
    pub key_bytes: usize,
    pub value_bytes: usize,
    /// Values of up to so many bytes lie in the index.
    pub inline_bytes: usize,
    pub records: u64,
    /// Keys and values of all records.
    pub live_bytes: u64,
    pub writers: usize,
    /// Memory that the control group of the process may have; `None` if there is no limit.
    pub memory_limit_bytes: Option<u64>,
    /// What the file system has in all.
    pub file_system_bytes: u64,
}

/// One stretch of overwrites.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChurnStretch {
    #[serde(flatten)]
    pub load: ChurnLoad,
    /// From the first overwrite to the end of the stretch.
    pub at_s: f64,
    /// Length of the stretch.
    pub seconds: f64,
    /// Overwrites up to its end.
    pub overwrites: u64,
    pub overwrites_per_s: f64,
    /// Of all overwrites that ended in the stretch; 0 if none did.
    pub p50_us: f64,
    pub p99_us: f64,
    pub p999_us: f64,
    pub longest_us: f64,
    /// Times that an overwrite was refused for want of space, and tried again.
    pub refused: u64,
    /// What the store's files take on the disk at its end.
    pub directory_bytes: u64,
    /// The most that they took, as seen about ten times a second.
    pub most_directory_bytes: u64,
    /// `directory_bytes / live_bytes`.
    pub space: f64,
    /// Written by the disk, by all processes; `None` where the kernel does not say.
    pub device_written_bytes: Option<u64>,
    /// Processors in use, user and system, by all threads.
    pub processors: f64,
    /// Memory of the process that is resident at its end, mapped files included.
    pub resident_bytes: u64,
}

/// What a whole run came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChurnRun {
    #[serde(flatten)]
    pub load: ChurnLoad,
    pub overwrites: u64,
    /// Keys and values of all overwrites.
    pub user_bytes: u64,
    /// From the first overwrite until the last was acknowledged.
    pub seconds: f64,
    /// From then on, until upkeep was at rest.
    pub caught_up_s: f64,
    /// False if it was not waited for to its end.
    pub is_at_rest: bool,
    pub overwrites_per_s: f64,
    pub overwrites_per_s_caught_up: f64,
    /// Of the whole stretch with the fewest overwrites.
    pub worst_stretch_overwrites_per_s: f64,
    /// `worst_stretch_overwrites_per_s / overwrites_per_s`.
    pub worst_to_mean: f64,
    /// Of the last tenth of the stretches, at least one, to the first.
    pub last_to_first: f64,
    pub longest_us: f64,
    pub refused: u64,
    /// Written from the first overwrite until upkeep was at rest: by the disk for all processes, and by this process; over `user_bytes`.
    pub device_bytes_per_user_byte: Option<f64>,
    pub process_bytes_per_user_byte: Option<f64>,
    /// Of that, what reclaim wrote.
    pub reclaim_bytes_per_user_byte: f64,
    /// What the store's files took over `live_bytes`: before the first overwrite, at most, and when upkeep was at rest.
    pub space_before: f64,
    pub most_space: f64,
    pub space_at_rest: f64,
    /// Records that were read back: each had its newest value.
    pub checked_records: usize,
}

/// What is known of a run besides its stretches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChurnEnd {
    pub overwrites: u64,
    pub seconds: f64,
    pub caught_up_s: f64,
    pub is_at_rest: bool,
    pub refused: u64,
    pub device_written_bytes: Option<u64>,
    pub process_written_bytes: Option<u64>,
    pub reclaim_written_bytes: u64,
    pub directory_bytes_before: u64,
    pub most_directory_bytes: u64,
    pub directory_bytes_at_rest: u64,
    pub checked_records: usize,
}

impl ChurnRun {
    /// `stretches` are those of the run, at least one.
    pub(crate) fn of(load: ChurnLoad, stretches: &[ChurnStretch], end: ChurnEnd) -> ChurnRun {
        let user_bytes = end.overwrites * (load.key_bytes + load.value_bytes) as u64;
        let per_user_byte = |bytes: u64| bytes as f64 / user_bytes as f64;
        let space = |bytes: u64| bytes as f64 / load.live_bytes as f64;
        let overwrites_per_s = end.overwrites as f64 / end.seconds;
        let rates: Vec<_> = stretches.iter().map(|stretch| (stretch.overwrites_per_s, stretch.seconds)).collect();
        let course = Course::of(&rates);
        ChurnRun {
            overwrites: end.overwrites,
            user_bytes,
            seconds: end.seconds,
            caught_up_s: end.caught_up_s,
            is_at_rest: end.is_at_rest,
            overwrites_per_s,
            overwrites_per_s_caught_up: end.overwrites as f64 / (end.seconds + end.caught_up_s),
            worst_stretch_overwrites_per_s: course.least,
            worst_to_mean: course.least / overwrites_per_s,
            last_to_first: course.last / course.first,
            longest_us: stretches.iter().map(|stretch| stretch.longest_us).fold(0.0, f64::max),
            refused: end.refused,
            device_bytes_per_user_byte: end.device_written_bytes.map(per_user_byte),
            process_bytes_per_user_byte: end.process_written_bytes.map(per_user_byte),
            reclaim_bytes_per_user_byte: per_user_byte(end.reclaim_written_bytes),
            space_before: space(end.directory_bytes_before),
            most_space: space(end.most_directory_bytes),
            space_at_rest: space(end.directory_bytes_at_rest),
            checked_records: end.checked_records,
            load,
        }
    }
}

impl ChurnLoad {
    /// What tells runs apart.
    pub(crate) fn in_words(&self) -> String {
        format!("{} {}", self.index, self.pattern)
    }
}

impl ChurnStretch {
    /// How many times the live data was overwritten up to its end.
    pub(crate) fn times_overwritten(&self) -> f64 {
        self.overwrites as f64 / self.load.records as f64
    }

    /// The stretch in one line.
    pub(crate) fn in_words(&self) -> String {
        format!(
            "{}: {} overwrites/s when {} times the live data was overwritten, in {} times its space",
            self.load.in_words(),
            whole(self.overwrites_per_s),
            decimal(self.times_overwritten(), 1),
            decimal(self.space, 2)
        )
    }
}

impl ChurnRun {
    /// The run in one line.
    pub(crate) fn in_words(&self) -> String {
        format!(
            "{}: {} overwrites/s, {} bytes written by the disk for each of the user's, {} times the space at most",
            self.load.in_words(),
            whole(self.overwrites_per_s),
            decimal(self.device_bytes_per_user_byte, 2),
            decimal(self.most_space, 2)
        )
    }
}

/// The stretches alone.
pub(crate) fn stretches(rows: &[ChurnRow]) -> Vec<&ChurnStretch> {
    rows.iter().filter_map(|row| if let ChurnRow::Stretch(stretch) = row { Some(stretch) } else { None }).collect()
}

/// The whole runs alone.
pub(crate) fn runs(rows: &[ChurnRow]) -> Vec<&ChurnRun> {
    rows.iter().filter_map(|row| if let ChurnRow::Run(run) = row { Some(run) } else { None }).collect()
}

/// The rows for people: the runs, then their stretches.
pub(crate) fn tables(rows: &[ChurnRow]) -> Vec<Table> {
    vec![runs_table(&runs(rows)), stretches_table(&stretches(rows))]
}

fn runs_table(runs: &[&ChurnRun]) -> Table {
    let mut table = Table::new(&[
        "index",
        "pattern",
        "durability",
        "value B",
        "records",
        "writers",
        "overwrites/s",
        "worst/mean",
        "last/first",
        "caught up/s",
        "disk B/user B",
        "process B/user B",
        "reclaim B/user B",
        "space before",
        "at most",
        "at rest",
        "longest ms",
        "refused",
    ]);
    for run in runs {
        table.push(vec![
            run.load.index.clone(),
            run.load.pattern.clone(),
            run.load.durability.clone(),
            run.load.value_bytes.to_string(),
            whole(run.load.records as f64),
            run.load.writers.to_string(),
            whole(run.overwrites_per_s),
            decimal(run.worst_to_mean, 2),
            decimal(run.last_to_first, 2),
            whole(run.overwrites_per_s_caught_up),
            decimal(run.device_bytes_per_user_byte, 2),
            decimal(run.process_bytes_per_user_byte, 2),
            decimal(run.reclaim_bytes_per_user_byte, 2),
            decimal(run.space_before, 2),
            decimal(run.most_space, 2),
            decimal(run.space_at_rest, 2),
            decimal(run.longest_us / 1000.0, 1),
            whole(run.refused as f64),
        ]);
    }
    table
}

fn stretches_table(stretches: &[&ChurnStretch]) -> Table {
    let mut table = Table::new(&[
        "index",
        "pattern",
        "at s",
        "overwrites",
        "overwrites/s",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "longest ms",
        "refused",
        "directory",
        "space",
        "disk written",
        "processors",
        "resident",
    ]);
    for row in stretches {
        table.push(vec![
            row.load.index.clone(),
            row.load.pattern.clone(),
            decimal(row.at_s, 0),
            whole(row.overwrites as f64),
            whole(row.overwrites_per_s),
            decimal(row.p50_us, 1),
            decimal(row.p99_us, 1),
            decimal(row.p999_us, 1),
            decimal(row.longest_us / 1000.0, 1),
            whole(row.refused as f64),
            bytes(row.directory_bytes),
            decimal(row.space, 2),
            row.device_written_bytes.map_or_else(|| NONE.to_owned(), bytes),
            decimal(row.processors, 2),
            bytes(row.resident_bytes),
        ]);
    }
    table
}

#[cfg(test)]
pub(crate) mod tests;
