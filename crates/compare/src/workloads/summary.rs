//! From the outcomes of all rounds to figures: medians with their spread, the best setting of each rival, and ours
//! against it.

use super::child::{Figures, Point, Workload};
use super::measure::Outcome;
use crate::engine::{EngineSpec, IN_FLIGHT, Reads, TOGETHER};
use crate::report;
use serde::Serialize;
use std::collections::BTreeSet;

/// One engine at one point, over all rounds.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Bytes of each value.
    pub value_bytes: usize,
    /// What was done.
    pub point: Point,
    /// The engine and its setting.
    pub engine: String,
    /// The engine without its setting.
    pub family: &'static str,
    /// Gets and puts, or records scanned or written, per second; None if all rounds are void.
    pub operations_per_s: Option<Summary>,
    /// Medians of the same names in `Figures`.
    pub cpu_us_per_operation: Option<f64>,
    /// Likewise.
    pub device_reads_per_get: Option<f64>,
    /// Likewise.
    pub device_bytes_per_user_byte: Option<f64>,
    /// Median with the catching up in the time, where something was written.
    pub settled_operations_per_s: Option<f64>,
    /// Rounds that do not count.
    pub void_rounds: usize,
}

/// What a series of rounds amounts to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The median; of an even number of rounds, the mean of the two in the middle.
    pub median: f64,
    /// Half the width of the mean's 95 % confidence interval (Student's t). None below two rounds.
    pub ci95_half_width: Option<f64>,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Rounds that count.
    pub rounds: usize,
}

impl Summary {
    /// None if there are no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let values: Vec<f64> = values.into_iter().collect();
        let spread = report::Spread::of(values.iter().copied())?;
        Some(Summary {
            median: spread.median,
            ci95_half_width: ci95_half_width(&values),
            min: spread.min,
            max: spread.max,
            rounds: values.len(),
        })
    }

    fn text(self, scale: f64, decimals: usize) -> String {
        let median = self.median * scale;
        match self.ci95_half_width {
            Some(half) => format!("{median:.decimals$} ± {:.decimals$}", half * scale),
            None => format!("{median:.decimals$}"),
        }
    }
}

fn ci95_half_width(values: &[f64]) -> Option<f64> {
    /// The 97.5 % quantile of Student's t distribution, from one degree of freedom on.
    const T: [f64; 20] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086,
    ];
    let degrees_of_freedom = values.len().checked_sub(1).filter(|&degrees| degrees > 0)?;
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / degrees_of_freedom as f64;
    // Beyond the table its last value is a little too wide.
    let t = T.get(degrees_of_freedom - 1).unwrap_or(&T[T.len() - 1]);
    Some(t * (variance / count).sqrt())
}

/// One row for each size, point and engine.
pub fn summarise(outcomes: &[Outcome]) -> Vec<Row> {
    let keys: BTreeSet<(usize, Point, &str)> =
        outcomes.iter().map(|outcome| (outcome.value_bytes, outcome.point, outcome.engine.as_str())).collect();
    keys.into_iter().filter_map(|key| row(outcomes, key)).collect()
}

fn row(outcomes: &[Outcome], (value_bytes, point, engine): (usize, Point, &str)) -> Option<Row> {
    let own = outcomes
        .iter()
        .filter(|outcome| outcome.value_bytes == value_bytes && outcome.point == point && outcome.engine == engine);
    let (valid, void): (Vec<&Outcome>, Vec<&Outcome>) = own.partition(|outcome| outcome.void.is_none());
    let family = valid.iter().chain(&void).next()?.family;
    let figures: Vec<&Figures> = valid.iter().filter_map(|outcome| outcome.figures.as_ref()).collect();
    let median = |figure: &dyn Fn(&Figures) -> Option<f64>| {
        Summary::of(figures.iter().filter_map(|figures| figure(figures))).map(|summary| summary.median)
    };
    Some(Row {
        value_bytes,
        point,
        engine: engine.to_owned(),
        family,
        operations_per_s: Summary::of(figures.iter().map(|figures| figures.operations_per_s)),
        cpu_us_per_operation: median(&|figures| Some(figures.cpu_us_per_operation)),
        device_reads_per_get: median(&|figures| figures.device_reads_per_get),
        device_bytes_per_user_byte: median(&|figures| figures.device_bytes_per_user_byte),
        settled_operations_per_s: median(&|figures| {
            let settled = figures.operations as f64 / (figures.seconds + figures.catch_up_seconds);
            (figures.puts > 0).then_some(settled)
        }),
        void_rounds: void.len(),
    })
}

/// Ours against the best of a rival, paired by round.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// Bytes of each value.
    pub value_bytes: usize,
    /// What was done.
    pub workload: Workload,
    /// Our engine with its index, and where it was measured.
    pub ours: Place,
    /// The rival at its best under the condition.
    pub theirs: Place,
    /// Under which condition.
    pub condition: Condition,
    /// Our operations per second by theirs.
    pub rate_ratio: Summary,
    /// Our processor time per operation by theirs.
    pub cpu_ratio: Summary,
}

/// An engine at a point.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The engine and its setting.
    pub engine: String,
    /// Where it was measured.
    pub point: Point,
}

/// How a rival may read or write to be held against one thread of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// One thread that awaits each operation.
    OneThread,
    /// One thread that asks for many keys together.
    OneThreadTogether,
    /// Whatever number of threads and way to read is best.
    BestOfAll,
}

impl Condition {
    const ALL: [Condition; 3] = [Condition::OneThread, Condition::OneThreadTogether, Condition::BestOfAll];

    fn admits(self, point: Point) -> bool {
        match self {
            Condition::OneThread => point.threads == 1 && point.reads == Reads::OneByOne,
            Condition::OneThreadTogether => point.threads == 1 && point.reads == TOGETHER,
            Condition::BestOfAll => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Condition::OneThread => "one thread",
            Condition::OneThreadTogether => "one thread, many together",
            Condition::BestOfAll => "best threads",
        }
    }
}

/// One thread of ours, with many gets in flight where there are gets, against every rival under every condition.
pub fn ratios(outcomes: &[Outcome]) -> Vec<Ratio> {
    let rows = summarise(outcomes);
    let ours = rows.iter().filter(|row| {
        let way = if row.point.workload.gets_singly() { IN_FLIGHT } else { Reads::OneByOne };
        row.family == "aiodb" && row.point.threads == 1 && row.point.reads == way
    });
    let mut ratios = Vec::new();
    for own in ours {
        let same = |row: &&Row| row.value_bytes == own.value_bytes && row.point.workload == own.point.workload;
        let rivals: Vec<&Row> = rows.iter().filter(same).filter(|row| row.family != "aiodb").collect();
        let families: BTreeSet<&str> = rivals.iter().map(|row| row.family).collect();
        for family in families {
            for condition in Condition::ALL {
                let admitted = rivals.iter().filter(|row| row.family == family && condition.admits(row.point));
                ratios.extend(best(admitted.copied()).and_then(|rival| ratio(outcomes, own, rival, condition)));
            }
        }
    }
    ratios
}

fn best<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    let rate = |row: &Row| row.operations_per_s.map(|rate| rate.median);
    rows.filter(|row| rate(row).is_some()).max_by(|a, b| rate(a).unwrap_or(0.0).total_cmp(&rate(b).unwrap_or(0.0)))
}

fn ratio(outcomes: &[Outcome], ours: &Row, theirs: &Row, condition: Condition) -> Option<Ratio> {
    let in_round = |row: &Row, round: u32| {
        let same = |outcome: &&Outcome| {
            outcome.round == round
                && outcome.value_bytes == row.value_bytes
                && outcome.point == row.point
                && outcome.engine == row.engine
                && outcome.void.is_none()
        };
        outcomes.iter().find(same)?.figures.as_ref()
    };
    let rounds: BTreeSet<u32> = outcomes.iter().map(|outcome| outcome.round).collect();
    let paired = |figure: fn(&Figures) -> f64| {
        let pairs = rounds.iter().filter_map(|&round| Some((in_round(ours, round)?, in_round(theirs, round)?)));
        Summary::of(pairs.map(|(ours, theirs)| figure(ours) / figure(theirs)))
    };
    let place = |row: &Row| Place { engine: row.engine.clone(), point: row.point };
    Some(Ratio {
        value_bytes: ours.value_bytes,
        workload: ours.point.workload,
        ours: place(ours),
        theirs: place(theirs),
        condition,
        rate_ratio: paired(|figures| figures.operations_per_s)?,
        cpu_ratio: paired(|figures| figures.cpu_us_per_operation)?,
    })
}

/// The settings that are best for some workload, for each rival; a rival without a single valid point keeps its first.
pub fn best_settings(swept: &[Outcome], engines: &[EngineSpec]) -> Vec<String> {
    let rows = summarise(swept);
    let families: BTreeSet<&str> = engines.iter().filter(|spec| spec.is_rival()).map(EngineSpec::family).collect();
    let workloads: BTreeSet<Workload> = rows.iter().map(|row| row.point.workload).collect();
    let mut chosen = BTreeSet::new();
    for family in families {
        let of_workload = |workload: &Workload| {
            let own = rows.iter().filter(|row| row.family == family && row.point.workload == *workload);
            best(own).map(|row| row.engine.clone())
        };
        let own: BTreeSet<String> = workloads.iter().filter_map(of_workload).collect();
        let first = || engines.iter().find(|spec| spec.family() == family).map(EngineSpec::to_string);
        chosen.extend(if own.is_empty() { first().into_iter().collect() } else { own });
    }
    chosen.into_iter().collect()
}

/// The rows as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    let headers = [
        "value bytes",
        "workload",
        "threads",
        "reads",
        "engine",
        "K operations/s ± 95 %",
        "min",
        "max",
        "caught up",
        "CPU us each",
        "device reads/get",
        "device/user bytes",
        "void",
    ];
    let optional =
        |value: Option<f64>, decimals: usize| value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"));
    let cells = rows.iter().map(|row| {
        let rate = row.operations_per_s;
        vec![
            row.value_bytes.to_string(),
            row.point.workload.to_string(),
            row.point.threads.to_string(),
            row.point.reads.to_string(),
            row.engine.clone(),
            rate.map_or("void".to_owned(), |rate| rate.text(1e-3, 2)),
            optional(rate.map(|rate| rate.min / 1e3), 2),
            optional(rate.map(|rate| rate.max / 1e3), 2),
            optional(row.settled_operations_per_s.map(|rate| rate / 1e3), 2),
            optional(row.cpu_us_per_operation, 1),
            optional(row.device_reads_per_get, 2),
            optional(row.device_bytes_per_user_byte, 2),
            row.void_rounds.to_string(),
        ]
    });
    report::table(&headers, cells.collect())
}

/// The ratios as a Markdown table.
pub fn ratio_table(ratios: &[Ratio]) -> String {
    let headers = ["value bytes", "workload", "ours", "rival", "rival's threads", "rate ± 95 %", "CPU ± 95 %"];
    let cells = ratios.iter().map(|ratio| {
        let Point { threads, reads, .. } = ratio.theirs.point;
        vec![
            ratio.value_bytes.to_string(),
            ratio.workload.to_string(),
            ratio.ours.engine.clone(),
            ratio.theirs.engine.clone(),
            format!("{}: {threads}, {reads}", ratio.condition.name()),
            ratio.rate_ratio.text(1.0, 2),
            ratio.cpu_ratio.text(1.0, 2),
        ]
    });
    let table = report::table(&headers, cells.collect());
    format!("One thread of ours by each rival at its best under a condition, paired by round:\n\n{table}")
}

/// The sweep: the best median of each setting for each workload, over numbers of threads and ways to read.
pub fn sweep_table(swept: &[Outcome], best_settings: &[String]) -> String {
    let rows = summarise(swept);
    let workloads: BTreeSet<Workload> = rows.iter().map(|row| row.point.workload).collect();
    let engines: BTreeSet<(&str, &str)> = rows.iter().map(|row| (row.family, row.engine.as_str())).collect();
    let lines = engines.iter().map(|&(_, engine)| {
        let cell = |workload: &Workload| {
            let own = rows.iter().filter(|row| row.engine == engine && row.point.workload == *workload);
            let rate = best(own).and_then(|row| row.operations_per_s);
            rate.map_or("-".to_owned(), |rate| format!("{:.2}", rate.median / 1e3))
        };
        let mark = if best_settings.iter().any(|best| best == engine) { "yes" } else { "" };
        let cells = workloads.iter().map(cell);
        std::iter::once(engine.to_owned()).chain(cells).chain([mark.to_owned()]).collect()
    });
    let names: Vec<String> = workloads.iter().map(|workload| format!("{workload}, K/s")).collect();
    let headers: Vec<&str> =
        std::iter::once("setting").chain(names.iter().map(String::as_str)).chain(["goes on"]).collect();
    report::table(&headers, lines.collect())
}

#[cfg(test)]
mod tests;
