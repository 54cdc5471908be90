//! Runs of all engines in turn, each in a process and a store of its own.

use super::child::{ChurnPoint, ChurnTotals, Request};
use super::plan::{Case, Plan};
use super::settings;
use crate::course::Course;
use crate::engine::EngineSpec;
use crate::error::Result;
use crate::points::Point;
use crate::rest::MOST_CATCH_UP;
use crate::runs::{self, Outcome};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The subcommand of a measured process.
const SUBCOMMAND: &str = "churned";

/// A process says nothing while it loads and catches up after that, or while it catches up in the end. One that takes
/// longer for it is given up.
const PATIENCE: Duration = Duration::from_secs(MOST_CATCH_UP.as_secs() + 3_600);

/// One engine, loaded and overwritten once.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The engine and its setting.
    pub engine: String,
    /// The engine without its setting.
    pub family: &'static str,
    /// What was overwritten.
    #[serde(flatten)]
    pub case: Case,
    /// From 1.
    pub round: u32,
    /// What the control group of the process allowed it. None without a limit, or if the process never came to it.
    pub memory_limit_bytes: Option<u64>,
    /// In order.
    pub points: Vec<ChurnPoint>,
    /// None if the process died or gave up.
    pub totals: Option<ChurnTotals>,
    /// Why this does not count. None if it does.
    pub void: Option<String>,
}

impl Run {
    /// The run for people.
    pub fn place(&self) -> String {
        format!("{}, {}, round {}", self.engine, self.case, self.round)
    }

    /// What counts of the run: none of a void one.
    pub fn counted(&self) -> Option<(Course, &ChurnTotals)> {
        if self.void.is_some() {
            return None;
        }
        let points: Vec<Point> = self.points.iter().map(|point| point.point.clone()).collect();
        Course::of(&points).zip(self.totals.as_ref())
    }
}

/// Measures all engines that a case is for in turn, then all of them again.
pub fn rounds(
    parent: &Path,
    plan: &Plan,
    case: Case,
    engines: &[EngineSpec],
    settings: &mut BTreeMap<String, Value>,
) -> Result<Vec<Run>> {
    let engines: Vec<EngineSpec> =
        engines.iter().filter(|spec| settings::suits(spec, case.value_bytes)).cloned().collect();
    let site = runs::Site { parent, memory_bytes: plan.memory_bytes, patience: plan.point + PATIENCE };
    let mut all = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("{case}: round {round} of {}", plan.rounds);
        for spec in runs::in_turn(&engines, round) {
            all.push(run(&site, plan, case, spec, round, settings)?);
        }
    }
    Ok(all)
}

fn run(
    site: &runs::Site,
    plan: &Plan,
    case: Case,
    spec: &EngineSpec,
    round: u32,
    settings: &mut BTreeMap<String, Value>,
) -> Result<Run> {
    let engine = spec.to_string();
    let request = |place| Request {
        place,
        pattern: case.pattern,
        value_bytes: case.value_bytes,
        class: case.class,
        records: plan.records(case),
        overwrites: plan.overwrites(case),
        writers: plan.writers,
        most_time: plan.most_time,
        point: plan.point,
    };
    let records = plan.records(case);
    let words = |point: &ChurnPoint| in_words(point, records, case.value_bytes);
    let outcome: Outcome<ChurnPoint, ChurnTotals> = site.run(SUBCOMMAND, &engine, request, words, settings)?;
    let Outcome { memory_limit_bytes, points, totals, failure } = outcome;
    let void = failure.or_else(|| runs::void(totals.as_ref(), |churn| churn.totals.void()));
    if let Some(reason) = &void {
        eprintln!("{engine}: void: {reason}");
    }
    Ok(Run { engine, family: spec.family(), case, round, memory_limit_bytes, points, totals, void })
}

fn in_words(churn: &ChurnPoint, records: u64, value_bytes: usize) -> String {
    let live_bytes = records * (crate::records::KEY_BYTES + value_bytes) as u64;
    format!(
        "{:.1} K overwrites/s after {:.2} times the data, in {:.2} times its space, longest {:.1} ms, {:.2} processors",
        churn.point.puts_per_s / 1e3,
        churn.point.keys as f64 / records as f64,
        churn.directory_bytes as f64 / live_bytes as f64,
        churn.point.longest_us / 1e3,
        churn.point.processors,
    )
}
