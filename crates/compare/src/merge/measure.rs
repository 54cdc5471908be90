//! Runs of all engines in turn, each in a process and a store of its own.

use super::child::{Measured, MergeTotals, Operation, Request};
use super::plan::{Case, Plan};
use crate::engine::EngineSpec;
use crate::error::Result;
use crate::rest::MOST_CATCH_UP;
use crate::runs::{self, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The subcommand of a measured process.
const SUBCOMMAND: &str = "merged";

/// A process that says nothing for so long beyond what it was asked to take is given up.
const PATIENCE: Duration = Duration::from_secs(300);

/// One engine, measured once: a point is a kind of operation.
pub type Run = runs::Run<Case, Measured, MergeTotals>;

/// What was measured of a kind of operation.
pub fn part(run: &Run, operation: Operation) -> Option<&Measured> {
    run.points.iter().find(|measured| measured.operation == operation)
}

/// Measures all engines in turn, then all of them again.
pub fn rounds(
    parent: &Path,
    plan: &Plan,
    case: Case,
    engines: &[EngineSpec],
    settings: &mut BTreeMap<String, Value>,
) -> Result<Vec<Run>> {
    let patience = plan.duration + MOST_CATCH_UP + PATIENCE;
    let site = runs::Site { parent, memory_bytes: plan.memory_bytes, patience };
    let measure = |spec: &EngineSpec, round| Ok([run(&site, plan.duration, case, spec, round, settings)?]);
    runs::rounds(case, engines, plan.rounds, measure)
}

fn run(
    site: &runs::Site,
    duration: Duration,
    case: Case,
    spec: &EngineSpec,
    round: u32,
    settings: &mut BTreeMap<String, Value>,
) -> Result<Run> {
    let Case { keys, writers, class } = case;
    let request = |place| Request { place, keys, writers, class, duration, round };
    let outcome: Outcome<Measured, MergeTotals> =
        site.run(SUBCOMMAND, &spec.to_string(), request, in_words, settings)?;
    let void =
        |points: &[Measured], totals: &MergeTotals| totals.memory.void().or_else(|| points.iter().find_map(idle));
    Ok(outcome.of(spec, case, round, void))
}

/// Why a run does not count of which a part measured nothing.
fn idle(measured: &Measured) -> Option<String> {
    (measured.count == 0).then(|| format!("there were no {}", measured.operation))
}

fn in_words(measured: &Measured) -> String {
    format!(
        "{:.1} K {}/s, caught up after {:.1} s, {:.2} us of processor time each",
        measured.per_s() / 1e3,
        measured.operation,
        measured.catch_up_seconds,
        measured.cpu_us_each(),
    )
}

#[cfg(test)]
mod tests;
