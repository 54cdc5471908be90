//! A run in figures, and the tables of `merge`.

use super::child::{Measured, Operation};
use super::measure::{Run, part};
use super::plan::Case;
use crate::summary::{self, Column, Of};
use serde::Serialize;
use std::collections::BTreeMap;

/// One engine in one case, over all rounds that count.
pub type Row = summary::Row<Case, Figure>;

/// Ours against a rival at its best, paired by round.
pub type Ratio = summary::Ratio<Case, Figure>;

impl summary::Case for Case {
    const HEADINGS: &'static [&'static str] = &["keys", "threads", "class"];

    fn cells(&self) -> Vec<String> {
        vec![self.keys.to_string(), self.writers.to_string(), self.class.to_string()]
    }
}

/// What is told of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Merges per second.
    MergesPerS,
    /// Puts per second.
    PutsPerS,
    /// The one by the other.
    MergesToPuts,
    /// Merges per second, until the engine had caught up.
    SettledMergesPerS,
    /// Puts likewise.
    SettledPutsPerS,
    /// The one by the other.
    SettledMergesToPuts,
    /// Gets of merged keys per second.
    GetsOfMergedPerS,
    /// Gets of put keys per second.
    GetsOfPutPerS,
    /// The one by the other.
    GetsOfMergedToPut,
    /// Processor time of a merge, with the catching up.
    CpuUsPerMerge,
    /// Processor time of a put likewise.
    CpuUsPerPut,
    /// Written to the device for a merge, with the catching up.
    DeviceBytesPerMerge,
    /// Written to the device for a put likewise.
    DeviceBytesPerPut,
    /// The most memory that the process had.
    MostResidentBytes,
}

impl summary::Run for Run {
    type Case = Case;
    type Figure = Figure;
    const FIGURES: &'static [Figure] = &[
        Figure::MergesPerS,
        Figure::PutsPerS,
        Figure::MergesToPuts,
        Figure::SettledMergesPerS,
        Figure::SettledPutsPerS,
        Figure::SettledMergesToPuts,
        Figure::GetsOfMergedPerS,
        Figure::GetsOfPutPerS,
        Figure::GetsOfMergedToPut,
        Figure::CpuUsPerMerge,
        Figure::CpuUsPerPut,
        Figure::DeviceBytesPerMerge,
        Figure::DeviceBytesPerPut,
        Figure::MostResidentBytes,
    ];

    fn of(&self) -> Of<'_, Case> {
        self.as_one_of()
    }

    fn figure(&self, figure: Figure) -> Option<f64> {
        let totals = self.counted()?;
        let (merges, puts) = (part(self, Operation::Merge)?, part(self, Operation::Put)?);
        let (merged, put) = (part(self, Operation::GetOfMerged)?, part(self, Operation::GetOfPut)?);
        let ratio = |of: fn(&Measured) -> f64, left, right| of(left) / of(right);
        Some(match figure {
            Figure::MergesPerS => merges.per_s(),
            Figure::PutsPerS => puts.per_s(),
            Figure::MergesToPuts => ratio(Measured::per_s, merges, puts),
            Figure::SettledMergesPerS => merges.settled_per_s(),
            Figure::SettledPutsPerS => puts.settled_per_s(),
            Figure::SettledMergesToPuts => ratio(Measured::settled_per_s, merges, puts),
            Figure::GetsOfMergedPerS => merged.per_s(),
            Figure::GetsOfPutPerS => put.per_s(),
            Figure::GetsOfMergedToPut => ratio(Measured::per_s, merged, put),
            Figure::CpuUsPerMerge => merges.cpu_us_each(),
            Figure::CpuUsPerPut => puts.cpu_us_each(),
            Figure::DeviceBytesPerMerge => merges.device_bytes_each()?,
            Figure::DeviceBytesPerPut => puts.device_bytes_each()?,
            Figure::MostResidentBytes => totals.memory.most_resident_bytes as f64,
        })
    }
}

/// Each of ours against each rival at the setting with the most merges per second.
pub fn ratios(runs: &[Run]) -> Vec<Ratio> {
    summary::ratios(runs, Figure::MergesPerS)
}

/// How fast: the columns of a ratio are within one engine.
const RATES: [Column<Figure>; 9] = [
    ("K merges/s", Figure::MergesPerS, 1e-3, 1),
    ("K puts/s", Figure::PutsPerS, 1e-3, 1),
    ("merges/puts", Figure::MergesToPuts, 1.0, 2),
    ("K merges/s, caught up", Figure::SettledMergesPerS, 1e-3, 1),
    ("K puts/s, caught up", Figure::SettledPutsPerS, 1e-3, 1),
    ("merges/puts, caught up", Figure::SettledMergesToPuts, 1.0, 2),
    ("K gets/s of merged", Figure::GetsOfMergedPerS, 1e-3, 1),
    ("K gets/s of put", Figure::GetsOfPutPerS, 1e-3, 1),
    ("gets of merged/put", Figure::GetsOfMergedToPut, 1.0, 2),
];

/// At what cost.
const COSTS: [Column<Figure>; 5] = [
    ("CPU us/merge", Figure::CpuUsPerMerge, 1.0, 2),
    ("CPU us/put", Figure::CpuUsPerPut, 1.0, 2),
    ("device bytes/merge", Figure::DeviceBytesPerMerge, 1.0, 1),
    ("device bytes/put", Figure::DeviceBytesPerPut, 1.0, 1),
    ("resident MiB", Figure::MostResidentBytes, 1.0 / (1 << 20) as f64, 0),
];

/// Of ours by theirs.
const RATIOS: [Column<Figure>; 7] = [
    ("merges/s", Figure::MergesPerS, 1.0, 2),
    ("merges/s, caught up", Figure::SettledMergesPerS, 1.0, 2),
    ("puts/s", Figure::PutsPerS, 1.0, 2),
    ("gets/s of merged", Figure::GetsOfMergedPerS, 1.0, 2),
    ("gets/s of put", Figure::GetsOfPutPerS, 1.0, 2),
    ("CPU/merge", Figure::CpuUsPerMerge, 1.0, 2),
    ("device/merge", Figure::DeviceBytesPerMerge, 1.0, 2),
];

/// The rows as two Markdown tables: rates, then costs.
pub fn tables(rows: &[Row]) -> String {
    let costs = summary::table(rows, &COSTS);
    format!("{}\nWith the catching up:\n\n{costs}", summary::table(rows, &RATES))
}

/// The ratios as a Markdown table.
pub fn ratio_table(ratios: &[Ratio]) -> String {
    let lines = ratios.iter().map(|ratio| (ratio, Vec::new()));
    let table = summary::ratio_table(lines, &[], &RATIOS);
    format!("Ours by each rival at the setting with the most merges per second, paired by round:\n\n{table}")
}

/// How each kind of engine adds, one in a line: not all have an operator for it.
pub fn ways_to_add(runs: &[Run]) -> String {
    let way = |run: &Run| Some((run.family, run.totals.as_ref()?.way_to_add.clone()));
    let ways: BTreeMap<&str, String> = runs.iter().filter_map(way).collect();
    ways.into_iter().map(|(family, way)| format!("A merge of {family}: {way}.\n")).collect()
}

#[cfg(test)]
mod tests;
