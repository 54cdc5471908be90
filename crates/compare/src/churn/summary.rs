//! A run in figures, and the tables of `churn`.

use super::measure::Run;
use super::plan::Case;
use crate::course::Course;
use crate::summary::{self, Column, Of};
use serde::Serialize;

/// One engine in one case, over all rounds that count.
pub type Row = summary::Row<Case, Figure>;

/// Ours against a rival at its best, paired by round.
pub type Ratio = summary::Ratio<Case, Figure>;

impl summary::Case for Case {
    const HEADINGS: &'static [&'static str] = &["value bytes", "pattern", "class"];

    fn cells(&self) -> Vec<String> {
        vec![self.value_bytes.to_string(), self.pattern.to_string(), self.class.to_string()]
    }
}

/// What is told of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Overwrites by records.
    TimesOverwritten,
    /// Overwrites per second over all points.
    MeanOverwritesPerS,
    /// From the first one on until the engine had caught up.
    SettledOverwritesPerS,
    /// In the point with the fewest.
    WorstOverwritesPerS,
    /// The worst point by the mean.
    WorstToMean,
    /// The last tenth of the points by the first.
    LastToFirst,
    /// 99.9 % of all overwrites took at most this long.
    P999Us,
    /// All of them.
    LongestUs,
    /// Written to the device, with the catching up, by bytes of keys and values that were overwritten.
    DeviceToUserBytes,
    /// What the files took before the first overwrite, by bytes of keys and values that are alive.
    SpaceBefore,
    /// The most that they took, likewise.
    MostSpace,
    /// What they took in the end.
    SpaceAtRest,
    /// The most memory that the process had.
    MostResidentBytes,
    /// Processor time by overwrites, with the catching up.
    CpuUsPerOverwrite,
    /// How long catching up took.
    CatchUpSeconds,
    /// How long the load took before.
    LoadSeconds,
}

impl summary::Run for Run {
    type Case = Case;
    type Figure = Figure;
    const FIGURES: &'static [Figure] = &[
        Figure::TimesOverwritten,
        Figure::MeanOverwritesPerS,
        Figure::SettledOverwritesPerS,
        Figure::WorstOverwritesPerS,
        Figure::WorstToMean,
        Figure::LastToFirst,
        Figure::P999Us,
        Figure::LongestUs,
        Figure::DeviceToUserBytes,
        Figure::SpaceBefore,
        Figure::MostSpace,
        Figure::SpaceAtRest,
        Figure::MostResidentBytes,
        Figure::CpuUsPerOverwrite,
        Figure::CatchUpSeconds,
        Figure::LoadSeconds,
    ];

    fn of(&self) -> Of<'_, Case> {
        self.as_one_of()
    }

    fn figure(&self, figure: Figure) -> Option<f64> {
        let (churn, points) = (self.counted()?, self.points.iter().map(|point| point.point.clone()));
        let totals = &churn.totals;
        let Course { mean, first_tenth, last_tenth, worst } = Course::of(&points.collect::<Vec<_>>())?;
        let overwrites = totals.puts as f64;
        let space = |bytes: u64| bytes as f64 / churn.live_bytes as f64;
        Some(match figure {
            Figure::TimesOverwritten => space(churn.user_bytes),
            Figure::MeanOverwritesPerS => mean,
            Figure::SettledOverwritesPerS => overwrites / (totals.seconds + totals.catch_up_seconds),
            Figure::WorstOverwritesPerS => worst,
            Figure::WorstToMean => worst / mean,
            Figure::LastToFirst => last_tenth / first_tenth,
            Figure::P999Us => totals.p999_us,
            Figure::LongestUs => totals.longest_us,
            Figure::DeviceToUserBytes => totals.settled_device_written_bytes? as f64 / churn.user_bytes as f64,
            Figure::SpaceBefore => space(churn.directory_bytes_before),
            Figure::MostSpace => space(churn.most_directory_bytes),
            Figure::SpaceAtRest => space(totals.disk_bytes),
            Figure::MostResidentBytes => totals.memory.most_resident_bytes as f64,
            Figure::CpuUsPerOverwrite => totals.settled_cpu_seconds * 1e6 / overwrites,
            Figure::CatchUpSeconds => totals.catch_up_seconds,
            Figure::LoadSeconds => churn.load_seconds,
        })
    }
}

/// Each of ours against each rival at the setting with the highest mean.
pub fn ratios(runs: &[Run]) -> Vec<Ratio> {
    summary::ratios(runs, Figure::MeanOverwritesPerS)
}

/// How fast, how evenly.
const RATES: [Column<Figure>; 8] = [
    ("times overwritten", Figure::TimesOverwritten, 1.0, 1),
    ("K overwrites/s", Figure::MeanOverwritesPerS, 1e-3, 1),
    ("caught up", Figure::SettledOverwritesPerS, 1e-3, 1),
    ("worst point", Figure::WorstOverwritesPerS, 1e-3, 1),
    ("worst/mean", Figure::WorstToMean, 1.0, 2),
    ("last/first", Figure::LastToFirst, 1.0, 2),
    ("p99.9 ms", Figure::P999Us, 1e-3, 2),
    ("longest ms", Figure::LongestUs, 1e-3, 1),
];

/// At what cost.
const COSTS: [Column<Figure>; 8] = [
    ("device/user bytes", Figure::DeviceToUserBytes, 1.0, 2),
    ("space before", Figure::SpaceBefore, 1.0, 2),
    ("most space", Figure::MostSpace, 1.0, 2),
    ("space at rest", Figure::SpaceAtRest, 1.0, 2),
    ("resident MiB", Figure::MostResidentBytes, 1.0 / (1 << 20) as f64, 0),
    ("CPU us/overwrite", Figure::CpuUsPerOverwrite, 1.0, 2),
    ("caught up after s", Figure::CatchUpSeconds, 1.0, 1),
    ("loaded in s", Figure::LoadSeconds, 1.0, 1),
];

/// Of ours by theirs.
const RATIOS: [Column<Figure>; 8] = [
    ("mean", Figure::MeanOverwritesPerS, 1.0, 2),
    ("caught up", Figure::SettledOverwritesPerS, 1.0, 2),
    ("worst point", Figure::WorstOverwritesPerS, 1.0, 2),
    ("longest", Figure::LongestUs, 1.0, 2),
    ("device/user bytes", Figure::DeviceToUserBytes, 1.0, 2),
    ("most space", Figure::MostSpace, 1.0, 2),
    ("space at rest", Figure::SpaceAtRest, 1.0, 2),
    ("CPU/overwrite", Figure::CpuUsPerOverwrite, 1.0, 2),
];

/// The rows as two Markdown tables: rates, then costs.
pub fn tables(rows: &[Row]) -> String {
    let costs = summary::table(rows, &COSTS);
    format!("{}\nWith the catching up; space is by live data:\n\n{costs}", summary::table(rows, &RATES))
}

/// The ratios as a Markdown table.
pub fn ratio_table(ratios: &[Ratio]) -> String {
    let lines = ratios.iter().map(|ratio| (ratio, Vec::new()));
    let table = summary::ratio_table(lines, &[], &RATIOS);
    format!("Ours by each rival at the setting with the highest mean, paired by round:\n\n{table}")
}

#[cfg(test)]
mod tests;
