//! Runs of all engines in turn, each in a process and a store of its own.

use super::child::{ChurnPoint, ChurnTotals, Request};
use super::plan::{Case, Plan};
use super::settings;
use crate::engine::EngineSpec;
use crate::error::Result;
use crate::rest::MOST_CATCH_UP;
use crate::runs::{self, Outcome};
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
pub type Run = runs::Run<Case, ChurnPoint, ChurnTotals>;

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
    runs::rounds(case, &engines, plan.rounds, |spec, round| Ok([run(&site, plan, case, spec, round, settings)?]))
}

fn run(
    site: &runs::Site,
    plan: &Plan,
    case: Case,
    spec: &EngineSpec,
    round: u32,
    settings: &mut BTreeMap<String, Value>,
) -> Result<Run> {
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
    let outcome: Outcome<ChurnPoint, ChurnTotals> =
        site.run(SUBCOMMAND, &spec.to_string(), request, words, settings)?;
    let too_short = |points: &[ChurnPoint]| points.is_empty().then(|| "it ended before the first point".to_owned());
    Ok(outcome.of(spec, case, round, |points, churn| churn.totals.void().or_else(|| too_short(points))))
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
