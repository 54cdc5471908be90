//! A run in figures, and the tables of `soak`.

use super::measure::Run;
use super::plan::{Case, Load};
use crate::course::Course;
use crate::engine::EngineSpec;
use crate::records::KEY_BYTES;
use crate::report::Spread;
use crate::summary::{self, Column, Of};
use crate::totals::Totals;
use serde::Serialize;

/// What was put, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Kind {
    /// What was put.
    #[serde(flatten)]
    pub case: Case,
    /// How.
    pub load: Load,
}

impl summary::Case for Kind {
    const HEADINGS: &'static [&'static str] = &["value bytes", "class", "load"];

    fn cells(&self) -> Vec<String> {
        let Case { value_bytes, class } = self.case;
        vec![value_bytes.to_string(), class.to_string(), self.load.to_string()]
    }
}

/// One engine in one case under one load, over all rounds that count.
pub type Row = summary::Row<Kind, Figure>;

/// What is told of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Acknowledged puts.
    Puts,
    /// Puts per second over all points.
    MeanPutsPerS,
    /// Over the first tenth of them.
    FirstTenthPutsPerS,
    /// Over the last tenth.
    LastTenthPutsPerS,
    /// In the point with the fewest.
    WorstPutsPerS,
    /// The last tenth by the first.
    LastToFirst,
    /// The worst point by the mean.
    WorstToMean,
    /// Half of all puts took at most this long.
    P50Us,
    /// 99 % of them.
    P99Us,
    /// 99.9 % of them.
    P999Us,
    /// All of them.
    LongestUs,
    /// The most memory that the process had.
    MostResidentBytes,
    /// Processor time, with the catching up.
    CpuSeconds,
    /// The same by puts.
    CpuUsPerPut,
    /// Written to the device, with the catching up.
    DeviceWrittenBytes,
    /// The same by bytes of keys and values.
    DeviceToUserBytes,
    /// What the files took in the end, by bytes of keys and values.
    DiskToUserBytes,
    /// How long catching up took.
    CatchUpSeconds,
}

impl summary::Run for Run {
    type Case = Kind;
    type Figure = Figure;
    const FIGURES: &'static [Figure] = &[
        Figure::Puts,
        Figure::MeanPutsPerS,
        Figure::FirstTenthPutsPerS,
        Figure::LastTenthPutsPerS,
        Figure::WorstPutsPerS,
        Figure::LastToFirst,
        Figure::WorstToMean,
        Figure::P50Us,
        Figure::P99Us,
        Figure::P999Us,
        Figure::LongestUs,
        Figure::MostResidentBytes,
        Figure::CpuSeconds,
        Figure::CpuUsPerPut,
        Figure::DeviceWrittenBytes,
        Figure::DeviceToUserBytes,
        Figure::DiskToUserBytes,
        Figure::CatchUpSeconds,
    ];

    fn of(&self) -> Of<'_, Kind> {
        let case = Kind { case: self.case, load: self.load };
        Of { case, engine: &self.engine, family: self.family, round: self.round, is_void: self.counted().is_none() }
    }

    fn figure(&self, figure: Figure) -> Option<f64> {
        let (course, totals) = self.counted()?;
        let Totals { puts, settled_cpu_seconds, .. } = *totals;
        let user_bytes = (puts * (KEY_BYTES + self.case.value_bytes) as u64) as f64;
        let device_bytes = totals.settled_device_written_bytes.map(|bytes| bytes as f64);
        let Course { mean, first_tenth, last_tenth, worst } = course;
        Some(match figure {
            Figure::Puts => puts as f64,
            Figure::MeanPutsPerS => mean,
            Figure::FirstTenthPutsPerS => first_tenth,
            Figure::LastTenthPutsPerS => last_tenth,
            Figure::WorstPutsPerS => worst,
            Figure::LastToFirst => last_tenth / first_tenth,
            Figure::WorstToMean => worst / mean,
            Figure::P50Us => totals.p50_us,
            Figure::P99Us => totals.p99_us,
            Figure::P999Us => totals.p999_us,
            Figure::LongestUs => totals.longest_us,
            Figure::MostResidentBytes => totals.memory.most_resident_bytes as f64,
            Figure::CpuSeconds => settled_cpu_seconds,
            Figure::CpuUsPerPut => settled_cpu_seconds * 1e6 / puts as f64,
            Figure::DeviceWrittenBytes => device_bytes?,
            Figure::DeviceToUserBytes => device_bytes? / user_bytes,
            Figure::DiskToUserBytes => totals.disk_bytes as f64 / user_bytes,
            Figure::CatchUpSeconds => totals.catch_up_seconds,
        })
    }
}

/// Ours against a rival at its best, paired by round.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// Ours by theirs.
    #[serde(flatten)]
    pub paired: summary::Ratio<Kind, Figure>,
    /// Our worst point by their mean.
    pub worst_to_their_mean: Option<Spread>,
}

/// Each of ours against each rival at the setting with the highest mean.
pub fn ratios(runs: &[Run]) -> Vec<Ratio> {
    let ratio = |paired: summary::Ratio<Kind, Figure>| {
        let (ours, theirs) = ((&*paired.ours, Figure::WorstPutsPerS), (&*paired.theirs, Figure::MeanPutsPerS));
        Ratio { worst_to_their_mean: summary::paired(runs, paired.case, ours, theirs), paired }
    };
    summary::ratios(runs, Figure::MeanPutsPerS).into_iter().map(ratio).collect()
}

/// The setting of each rival with the highest mean in a case; a rival without a run that counts keeps its first.
pub fn best_settings(swept: &[Run], case: Case, engines: &[EngineSpec]) -> Vec<String> {
    let rows = summary::summarise(swept);
    let mut families: Vec<&str> = engines.iter().filter(|spec| spec.is_rival()).map(EngineSpec::family).collect();
    families.dedup();
    let first = |family: &str| engines.iter().find(|spec| spec.family() == family).map(EngineSpec::to_string);
    let of_family = |family: &str| {
        let kind = Kind { case, load: Load::Full };
        let own = rows.iter().filter(|row| row.case == kind && row.family == family);
        summary::best(own, Figure::MeanPutsPerS).map(|row| row.engine.clone()).or_else(|| first(family))
    };
    families.into_iter().filter_map(of_family).collect()
}

/// How fast, for how long.
const RATES: [Column<Figure>; 9] = [
    ("M keys", Figure::Puts, 1e-6, 1),
    ("K puts/s", Figure::MeanPutsPerS, 1e-3, 1),
    ("first tenth", Figure::FirstTenthPutsPerS, 1e-3, 1),
    ("last tenth", Figure::LastTenthPutsPerS, 1e-3, 1),
    ("last/first", Figure::LastToFirst, 1.0, 2),
    ("worst point", Figure::WorstPutsPerS, 1e-3, 1),
    ("worst/mean", Figure::WorstToMean, 1.0, 2),
    ("p99.9 ms", Figure::P999Us, 1e-3, 2),
    ("longest put ms", Figure::LongestUs, 1e-3, 1),
];

/// At what cost.
const COSTS: [Column<Figure>; 7] = [
    ("resident MiB", Figure::MostResidentBytes, 1.0 / (1 << 20) as f64, 0),
    ("CPU s", Figure::CpuSeconds, 1.0, 0),
    ("CPU us/put", Figure::CpuUsPerPut, 1.0, 2),
    ("device GiB", Figure::DeviceWrittenBytes, 1.0 / (1 << 30) as f64, 2),
    ("device/user bytes", Figure::DeviceToUserBytes, 1.0, 2),
    ("disk/user bytes", Figure::DiskToUserBytes, 1.0, 2),
    ("caught up after s", Figure::CatchUpSeconds, 1.0, 1),
];

/// Of ours by theirs.
const RATIOS: [Column<Figure>; 8] = [
    ("mean", Figure::MeanPutsPerS, 1.0, 2),
    ("first tenth", Figure::FirstTenthPutsPerS, 1.0, 2),
    ("last tenth", Figure::LastTenthPutsPerS, 1.0, 2),
    ("p99.9", Figure::P999Us, 1.0, 2),
    ("longest put", Figure::LongestUs, 1.0, 2),
    ("resident", Figure::MostResidentBytes, 1.0, 2),
    ("CPU/put", Figure::CpuUsPerPut, 1.0, 2),
    ("device/put", Figure::DeviceToUserBytes, 1.0, 2),
];

/// The rows as two Markdown tables: rates, then costs.
pub fn tables(rows: &[Row]) -> String {
    format!("{}\nWith the catching up:\n\n{}", summary::table(rows, &RATES), summary::table(rows, &COSTS))
}

/// The ratios as a Markdown table.
pub fn ratio_table(ratios: &[Ratio]) -> String {
    let lines = ratios.iter().map(|ratio| (&ratio.paired, vec![summary::text(ratio.worst_to_their_mean, 1.0, 2)]));
    let table = summary::ratio_table(lines, &["our worst point by its mean"], &RATIOS);
    format!("Ours by each rival at the setting with the highest mean, paired by round:\n\n{table}")
}

#[cfg(test)]
mod tests;
