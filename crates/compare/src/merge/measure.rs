//! Runs of all engines in turn, each in a process and a store of its own.

use super::child::{Measured, MergeTotals, Operation, Request};
use super::plan::{Case, Plan};
use crate::engine::EngineSpec;
use crate::error::Result;
use crate::rest::MOST_CATCH_UP;
use crate::runs::{self, Outcome};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The subcommand of a measured process.
const SUBCOMMAND: &str = "merged";

/// A process that says nothing for so long beyond what it was asked to take is given up.
const PATIENCE: Duration = Duration::from_secs(300);

/// One engine, measured once.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The engine and its setting.
    pub engine: String,
    /// The engine without its setting.
    pub family: &'static str,
    /// On which keys, and how.
    #[serde(flatten)]
    pub case: Case,
    /// From 1.
    pub round: u32,
    /// What the control group of the process allowed it. None without a limit, or if the process never came to it.
    pub memory_limit_bytes: Option<u64>,
    /// Each kind of operation, in order.
    pub measured: Vec<Measured>,
    /// None if the process died or gave up.
    pub totals: Option<MergeTotals>,
    /// Why this does not count. None if it does.
    pub void: Option<String>,
}

impl Run {
    /// The run for people.
    pub fn place(&self) -> String {
        format!("{}, {}, round {}", self.engine, self.case, self.round)
    }

    /// What counts of the run: none of a void one.
    pub fn counted(&self) -> Option<&MergeTotals> {
        if self.void.is_some() { None } else { self.totals.as_ref() }
    }

    /// What was measured of a kind of operation.
    pub fn of(&self, operation: Operation) -> Option<&Measured> {
        self.measured.iter().find(|measured| measured.operation == operation)
    }
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
    let mut all = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("{case}: round {round} of {}", plan.rounds);
        for spec in runs::in_turn(engines, round) {
            all.push(run(&site, plan.duration, case, spec, round, settings)?);
        }
    }
    Ok(all)
}

fn run(
    site: &runs::Site,
    duration: Duration,
    case: Case,
    spec: &EngineSpec,
    round: u32,
    settings: &mut BTreeMap<String, Value>,
) -> Result<Run> {
    let engine = spec.to_string();
    let Case { keys, writers, class } = case;
    let request = |place| Request { place, keys, writers, class, duration, round };
    let outcome: Outcome<Measured, MergeTotals> = site.run(SUBCOMMAND, &engine, request, in_words, settings)?;
    let Outcome { memory_limit_bytes, points: measured, totals, failure } = outcome;
    let void = failure
        .or_else(|| runs::void(totals.as_ref(), |totals| totals.memory.void()))
        .or_else(|| measured.iter().find_map(idle));
    if let Some(reason) = &void {
        eprintln!("{engine}: void: {reason}");
    }
    Ok(Run { engine, family: spec.family(), case, round, memory_limit_bytes, measured, totals, void })
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
