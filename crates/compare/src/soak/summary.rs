//! From runs to figures: what each engine did over all rounds, and ours against each rival at its best.

use super::child::Totals;
use super::course::Course;
use super::measure::Run;
use super::plan::{Case, Load};
use crate::engine::EngineSpec;
use crate::report::{self, Spread};
use crate::soak::child::KEY_BYTES;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// One engine in one case under one load, over all rounds that count.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was put.
    #[serde(flatten)]
    pub case: Case,
    /// How.
    pub load: Load,
    /// The engine and its setting.
    pub engine: String,
    /// The engine without its setting.
    pub family: &'static str,
    /// What the rounds measured, by the name of the figure; empty if all of them are void.
    pub figures: BTreeMap<Figure, Spread>,
    /// Rounds that do not count.
    pub void_rounds: usize,
}

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

impl Figure {
    const ALL: [Figure; 18] = [
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

    /// None if the run is void or the kernel does not say.
    fn of(self, run: &Run) -> Option<f64> {
        let (course, totals) = run.counted()?;
        let Totals { puts, settled_cpu_seconds, .. } = *totals;
        let user_bytes = (puts * (KEY_BYTES + run.case.value_bytes) as u64) as f64;
        let device_bytes = totals.settled_device_written_bytes.map(|bytes| bytes as f64);
        let Course { mean, first_tenth, last_tenth, worst } = course;
        Some(match self {
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
            Figure::MostResidentBytes => totals.most_resident_bytes as f64,
            Figure::CpuSeconds => settled_cpu_seconds,
            Figure::CpuUsPerPut => settled_cpu_seconds * 1e6 / puts as f64,
            Figure::DeviceWrittenBytes => device_bytes?,
            Figure::DeviceToUserBytes => device_bytes? / user_bytes,
            Figure::DiskToUserBytes => totals.disk_bytes as f64 / user_bytes,
            Figure::CatchUpSeconds => totals.catch_up_seconds,
        })
    }
}

/// One row for each case, load and engine.
pub fn summarise(runs: &[Run]) -> Vec<Row> {
    let keys: BTreeSet<(Case, Load, &str)> = runs.iter().map(|run| (run.case, run.load, run.engine.as_str())).collect();
    keys.into_iter().filter_map(|key| row(runs, key)).collect()
}

fn row(runs: &[Run], (case, load, engine): (Case, Load, &str)) -> Option<Row> {
    let own: Vec<&Run> =
        runs.iter().filter(|run| run.case == case && run.load == load && run.engine == engine).collect();
    let spread = |figure: Figure| Some((figure, Spread::of(own.iter().filter_map(|run| figure.of(run)))?));
    Some(Row {
        case,
        load,
        engine: engine.to_owned(),
        family: own.first()?.family,
        figures: Figure::ALL.into_iter().filter_map(spread).collect(),
        void_rounds: own.iter().filter(|run| run.counted().is_none()).count(),
    })
}

/// Ours against a rival at its best, paired by round.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// What was put.
    #[serde(flatten)]
    pub case: Case,
    /// How.
    pub load: Load,
    /// Our engine with its index.
    pub ours: String,
    /// The rival with the setting that had the highest mean.
    pub theirs: String,
    /// Our worst point by their mean.
    pub worst_to_their_mean: Option<Spread>,
    /// Ours by theirs, by the name of the figure.
    pub figures: BTreeMap<Figure, Spread>,
}

/// Each of ours against each rival.
pub fn ratios(runs: &[Run]) -> Vec<Ratio> {
    let rows = summarise(runs);
    let mut ratios = Vec::new();
    for ours in rows.iter().filter(|row| row.family == OURS && !row.figures.is_empty()) {
        let rivals = rows.iter().filter(|row| row.family != OURS && (row.case, row.load) == (ours.case, ours.load));
        let families: BTreeSet<&str> = rivals.clone().map(|row| row.family).collect();
        for family in families {
            let best = best(rivals.clone().filter(|row| row.family == family));
            ratios.extend(best.map(|theirs| ratio(runs, ours, theirs)));
        }
    }
    ratios
}

const OURS: &str = "aiodb";

/// The row with the highest mean, if there is one that counts.
fn best<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    let mean = |row: &Row| row.figures.get(&Figure::MeanPutsPerS).map(|mean| mean.median);
    rows.filter_map(|row| Some((mean(row)?, row))).max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, row)| row)
}

fn ratio(runs: &[Run], ours: &Row, theirs: &Row) -> Ratio {
    let of = |row: &Row, round: u32| {
        let same =
            |run: &&Run| (run.case, run.load, run.round) == (row.case, row.load, round) && run.engine == row.engine;
        runs.iter().find(same)
    };
    let rounds: BTreeSet<u32> = runs.iter().map(|run| run.round).collect();
    let paired = |own: Figure, other: Figure| {
        let of_round = |&round: &u32| Some(own.of(of(ours, round)?)? / other.of(of(theirs, round)?)?);
        Spread::of(rounds.iter().filter_map(of_round))
    };
    Ratio {
        case: ours.case,
        load: ours.load,
        ours: ours.engine.clone(),
        theirs: theirs.engine.clone(),
        worst_to_their_mean: paired(Figure::WorstPutsPerS, Figure::MeanPutsPerS),
        figures: Figure::ALL.into_iter().filter_map(|figure| Some((figure, paired(figure, figure)?))).collect(),
    }
}

/// The setting of each rival with the highest mean in a case; a rival without a run that counts keeps its first.
pub fn best_settings(swept: &[Run], case: Case, engines: &[EngineSpec]) -> Vec<String> {
    let rows = summarise(swept);
    let mut families: Vec<&str> = engines.iter().filter(|spec| spec.is_rival()).map(EngineSpec::family).collect();
    families.dedup();
    let first = |family: &str| engines.iter().find(|spec| spec.family() == family).map(EngineSpec::to_string);
    let of_family = |family: &str| {
        let own = rows.iter().filter(|row| row.case == case && row.load == Load::Full && row.family == family);
        best(own).map(|row| row.engine.clone()).or_else(|| first(family))
    };
    families.into_iter().filter_map(of_family).collect()
}

/// A column of a table: its heading, the figure, its scale and its decimals.
type Column = (&'static str, Figure, f64, usize);

/// How fast, for how long.
const RATES: [Column; 9] = [
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
const COSTS: [Column; 7] = [
    ("resident MiB", Figure::MostResidentBytes, 1.0 / (1 << 20) as f64, 0),
    ("CPU s", Figure::CpuSeconds, 1.0, 0),
    ("CPU us/put", Figure::CpuUsPerPut, 1.0, 2),
    ("device GiB", Figure::DeviceWrittenBytes, 1.0 / (1 << 30) as f64, 2),
    ("device/user bytes", Figure::DeviceToUserBytes, 1.0, 2),
    ("disk/user bytes", Figure::DiskToUserBytes, 1.0, 2),
    ("caught up after s", Figure::CatchUpSeconds, 1.0, 1),
];

/// Of ours by theirs.
const RATIOS: [Column; 8] = [
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
    let table = |columns: &[Column]| {
        let headings = columns.iter().map(|column| column.0);
        let headers: Vec<&str> =
            ["value bytes", "class", "load", "engine"].into_iter().chain(headings).chain(["void"]).collect();
        let cells = rows.iter().map(|row| {
            let Case { value_bytes, class } = row.case;
            let place = [value_bytes.to_string(), class.to_string(), row.load.to_string(), row.engine.clone()];
            place.into_iter().chain(cells(&row.figures, columns)).chain([row.void_rounds.to_string()]).collect()
        });
        report::table(&headers, cells.collect())
    };
    format!("{}\nWith the catching up:\n\n{}", table(&RATES), table(&COSTS))
}

/// The ratios as a Markdown table.
pub fn ratio_table(ratios: &[Ratio]) -> String {
    let headings = RATIOS.iter().map(|column| column.0);
    let headers: Vec<&str> = ["value bytes", "class", "load", "ours", "rival", "our worst point by its mean"]
        .into_iter()
        .chain(headings)
        .collect();
    let cells = ratios.iter().map(|ratio| {
        let Case { value_bytes, class } = ratio.case;
        let place = [value_bytes.to_string(), class.to_string(), ratio.load.to_string()];
        let names = [ratio.ours.clone(), ratio.theirs.clone(), text(ratio.worst_to_their_mean, 1.0, 2)];
        place.into_iter().chain(names).chain(cells(&ratio.figures, &RATIOS)).collect()
    });
    let table = report::table(&headers, cells.collect());
    format!("Ours by each rival at the setting with the highest mean, paired by round:\n\n{table}")
}

/// The cells of the columns.
fn cells<'a>(figures: &'a BTreeMap<Figure, Spread>, columns: &'a [Column]) -> impl Iterator<Item = String> + 'a {
    columns.iter().map(|&(_, figure, scale, decimals)| text(figures.get(&figure).copied(), scale, decimals))
}

/// The median, with the ends where there are several rounds.
fn text(spread: Option<Spread>, scale: f64, decimals: usize) -> String {
    match spread {
        None => "-".to_owned(),
        Some(Spread { median, min, max }) if min == max => format!("{:.decimals$}", median * scale),
        Some(spread) => spread.text(scale, decimals),
    }
}

#[cfg(test)]
mod tests;
