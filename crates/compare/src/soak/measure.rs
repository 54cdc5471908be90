//! Runs of all engines in turn, each in a process and a store of its own.

use super::child::Request;
use super::plan::{Case, Load, Plan, Rate};
use crate::course::Course;
use crate::engine::EngineSpec;
use crate::error::Result;
use crate::points::Point;
use crate::rest::MOST_CATCH_UP;
use crate::runs::{self, Outcome};
use crate::totals::Totals;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The subcommand of a measured process.
const SUBCOMMAND: &str = "soaked";

/// A process that says nothing for so long beyond what it was asked to take is given up.
const PATIENCE: Duration = Duration::from_secs(300);

/// One engine, filled once.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    /// The engine and its setting.
    pub engine: String,
    /// The engine without its setting.
    pub family: &'static str,
    /// What was put.
    #[serde(flatten)]
    pub case: Case,
    /// How.
    pub load: Load,
    /// At which rate puts were due; None where they were not.
    pub due_puts_per_s: Option<f64>,
    /// From 1.
    pub round: u32,
    /// What the control group of the process allowed it. None without a limit, or if the process never came to it.
    pub memory_limit_bytes: Option<u64>,
    /// In order.
    pub points: Vec<Point>,
    /// None if the process died or gave up.
    pub totals: Option<Totals>,
    /// Why this does not count. None if it does.
    pub void: Option<String>,
}

impl Run {
    /// The run for people.
    pub fn place(&self) -> String {
        format!("{}, {}, {}, round {}", self.engine, self.case, self.load, self.round)
    }

    /// What counts of the run: none of a void one.
    pub fn counted(&self) -> Option<(Course, &Totals)> {
        if self.void.is_some() { None } else { Course::of(&self.points).zip(self.totals.as_ref()) }
    }
}

/// Where and how engines are filled.
pub struct Site<'a> {
    /// The directory of the stores.
    pub parent: &'a Path,
    /// How.
    pub plan: &'a Plan,
    /// The time after which a run is over.
    pub most_time: Duration,
}

impl Site<'_> {
    /// Fills all engines in turn, then all of them again.
    pub fn rounds(
        &self,
        case: Case,
        engines: &[EngineSpec],
        rounds: u32,
        settings: &mut BTreeMap<String, Value>,
    ) -> Result<Vec<Run>> {
        runs::rounds(case, engines, rounds, |spec, round| self.loads(case, spec, round, settings))
    }

    /// Fills one engine as the plan's rate asks for: for half of the full rate that has to be known first.
    fn loads(
        &self,
        case: Case,
        spec: &EngineSpec,
        round: u32,
        settings: &mut BTreeMap<String, Value>,
    ) -> Result<Vec<Run>> {
        let run = |load, due_puts_per_s| Run {
            engine: spec.to_string(),
            family: spec.family(),
            case,
            load,
            due_puts_per_s,
            round,
            memory_limit_bytes: None,
            points: Vec::new(),
            totals: None,
            void: None,
        };
        if let Some(Rate::PutsPerSecond(rate)) = self.plan.rate {
            return Ok(vec![self.fill(run(Load::PutsPerSecond(rate), Some(rate.into())), settings)?]);
        }
        let full = self.fill(run(Load::Full, None), settings)?;
        if self.plan.rate.is_none() {
            return Ok(vec![full]);
        }
        let half = match full.counted() {
            Some((course, _)) => self.fill(run(Load::Half, Some(course.mean / 2.0)), settings)?,
            None => Run { void: Some("its full rate is not known".to_owned()), ..run(Load::Half, None) },
        };
        Ok(vec![full, half])
    }

    /// Carries a run out.
    fn fill(&self, run: Run, settings: &mut BTreeMap<String, Value>) -> Result<Run> {
        let plan = self.plan;
        let site = runs::Site {
            parent: self.parent,
            memory_bytes: plan.memory_bytes,
            patience: plan.point + MOST_CATCH_UP + PATIENCE,
        };
        let request = |place| Request {
            place,
            value_bytes: run.case.value_bytes,
            class: run.case.class,
            writers: plan.writers,
            puts_per_s: run.due_puts_per_s,
            keys: plan.keys,
            most_time: self.most_time,
            point: plan.point,
        };
        let Outcome { memory_limit_bytes, points, totals, failure } =
            site.run(SUBCOMMAND, &run.engine, request, in_words, settings)?;
        let void = failure.or_else(|| runs::void(totals.as_ref(), Totals::void));
        if let Some(reason) = &void {
            eprintln!("{}: void: {reason}", run.engine);
        }
        Ok(Run { memory_limit_bytes, points, totals, void, ..run })
    }
}

fn in_words(point: &Point) -> String {
    format!(
        "{:.1} K puts/s at {:.2} M keys, p99.9 {:.1} ms, longest {:.1} ms, {} MiB resident, {:.2} processors",
        point.puts_per_s / 1e3,
        point.keys as f64 / 1e6,
        point.p999_us / 1e3,
        point.longest_us / 1e3,
        point.resident_bytes >> 20,
        point.processors,
    )
}
