//! Runs of engines in turn, each in a process, a control group and a store of its own that are gone afterwards.

use crate::engine::{Engine, EngineSpec, Resources};
use crate::error::{Error, Result};
use crate::host::Disk;
use crate::memory::{self, MemoryLimit};
use crate::process::{Process, reply};
use crate::summary::Of;
use aiodb::io::memory::control_group_bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Which engine a measured process opens, and where: a part of each request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Place {
    /// The name of the engine and its setting.
    pub engine: String,
    /// Where its store is made.
    pub directory: PathBuf,
    /// What the engine may take of memory.
    pub memory_bytes: u64,
    /// The control group that enforces it. None where there can be none.
    pub group: Option<PathBuf>,
}

/// What a measured process says, one in a line: points `P` while it goes on, and in the end the totals `T`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply<P, T> {
    /// The engine is open.
    Opened {
        /// What it runs with.
        settings: Value,
        /// What a control group allows the process, page cache included. None without a limit.
        memory_limit_bytes: Option<u64>,
    },
    /// Another point was measured.
    Measured(P),
    /// All is done, and what the engine acknowledged is there.
    Finished(T),
    /// Nothing more can be measured; the text says why.
    Failed(String),
}

/// What came of a measured process.
#[derive(Clone, Debug)]
pub struct Outcome<P, T> {
    /// What the control group of the process allowed it. None without a limit, or if the process never came to it.
    pub memory_limit_bytes: Option<u64>,
    /// In order.
    pub points: Vec<P>,
    /// None if the process died or gave up.
    pub totals: Option<T>,
    /// Why it ended early. None if it did not.
    pub failure: Option<String>,
}

/// A run of an engine in a case: points `P`, and in the end the totals `T`.
#[derive(Clone, Debug, Serialize)]
pub struct Run<C, P, T> {
    /// The engine and its setting.
    pub engine: String,
    /// The engine without its setting.
    pub family: &'static str,
    /// What was done.
    #[serde(flatten)]
    pub case: C,
    /// From 1.
    pub round: u32,
    /// What the control group of the process allowed it. None without a limit, or if the process never came to it.
    pub memory_limit_bytes: Option<u64>,
    /// In order.
    pub points: Vec<P>,
    /// None if the process died or gave up.
    pub totals: Option<T>,
    /// Why this does not count. None if it does.
    pub void: Option<String>,
}

impl<C: Copy + fmt::Display, P, T> Run<C, P, T> {
    /// The run for people.
    pub fn place(&self) -> String {
        format!("{}, {}, round {}", self.engine, self.case, self.round)
    }

    /// The totals, if the run counts.
    pub fn counted(&self) -> Option<&T> {
        self.totals.as_ref().filter(|_| self.void.is_none())
    }

    /// The run among others.
    pub fn as_one_of(&self) -> Of<'_, C> {
        let Run { engine, family, case, round, .. } = self;
        Of { case: *case, engine, family, round: *round, is_void: self.counted().is_none() }
    }
}

impl<P, T> Outcome<P, T> {
    /// What came of an engine in a case; `void` says why a process that ended well does not count, if it does not.
    pub fn of<C>(
        self,
        spec: &EngineSpec,
        case: C,
        round: u32,
        void: impl FnOnce(&[P], &T) -> Option<String>,
    ) -> Run<C, P, T> {
        let Outcome { memory_limit_bytes, points, totals, failure } = self;
        let void = failure.or_else(|| self::void(totals.as_ref(), |totals| void(&points, totals)));
        if let Some(reason) = &void {
            eprintln!("{spec}: void: {reason}");
        }
        let (engine, family) = (spec.to_string(), spec.family());
        Run { engine, family, case, round, memory_limit_bytes, points, totals, void }
    }
}

/// Where engines run, and with how much memory.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The directory of the stores.
    pub parent: &'a Path,
    /// Memory of each process, page cache included.
    pub memory_bytes: u64,
    /// A process that says nothing for so long is given up.
    pub patience: Duration,
}

impl Site<'_> {
    /// Has a process of this subcommand do what the request says, and notes what its engine runs with. Each point is told
    /// to the person who watches.
    pub fn run<R: Serialize, P: DeserializeOwned, T: DeserializeOwned>(
        &self,
        subcommand: &str,
        engine: &str,
        request: impl FnOnce(Place) -> R,
        in_words: impl Fn(&P) -> String,
        settings: &mut BTreeMap<String, Value>,
    ) -> Result<Outcome<P, T>> {
        let directory = tempfile::Builder::new()
            .prefix(&format!("compare-{engine}-"))
            .tempdir_in(self.parent)
            .map_err(Error::io("create a directory in", self.parent))?;
        let limit = MemoryLimit::new(self.memory_bytes).ok();
        let request = request(Place {
            engine: engine.to_owned(),
            directory: directory.path().join("store"),
            memory_bytes: self.memory_bytes,
            group: limit.as_ref().map(|limit| limit.group().to_owned()),
        });
        let mut process = Process::start(subcommand, &request, limit.as_ref())?;
        let mut outcome = Outcome { memory_limit_bytes: None, points: Vec::new(), totals: None, failure: None };
        outcome.failure = loop {
            match process.reply(self.patience) {
                Ok(Reply::Opened { settings: own, memory_limit_bytes }) => {
                    settings.insert(engine.to_owned(), own);
                    outcome.memory_limit_bytes = memory_limit_bytes;
                }
                Ok(Reply::Measured(point)) => {
                    eprintln!("{engine}: {}", in_words(&point));
                    outcome.points.push(point);
                }
                Ok(Reply::Finished(totals)) => outcome.totals = Some(totals),
                Ok(Reply::Failed(reason)) => break Some(reason),
                Err(end) => break end,
            }
        };
        process.stop();
        Ok(outcome)
    }
}

/// The engines in the order of a round, which counts from 1: each round begins with another one, so that what drifts drifts
/// for all alike.
fn in_turn(engines: &[EngineSpec], round: u32) -> impl Iterator<Item = &EngineSpec> {
    (0..engines.len()).map(move |index| &engines[(index + round as usize - 1) % engines.len()])
}

/// Measures all engines in turn, then all of them again. A measurement may be of several runs.
pub fn rounds<R, I: IntoIterator<Item = R>>(
    case: impl fmt::Display,
    engines: &[EngineSpec],
    rounds: u32,
    mut measure: impl FnMut(&EngineSpec, u32) -> Result<I>,
) -> Result<Vec<R>> {
    let mut all = Vec::new();
    for round in 1..=rounds {
        eprintln!("{case}: round {round} of {rounds}");
        for spec in in_turn(engines, round) {
            all.extend(measure(spec, round)?);
        }
    }
    Ok(all)
}

/// Why the totals of a process that ended well do not count, if they do not; `void` says what is wrong with them.
pub fn void<T>(totals: Option<&T>, void: impl FnOnce(&T) -> Option<String>) -> Option<String> {
    totals.map_or_else(|| Some("the process ended early".to_owned()), void)
}

/// How a process is held to its memory, for people.
pub fn held_by(memory_bytes: u64) -> String {
    let limit = MemoryLimit::new(memory_bytes);
    match control_group_bytes() {
        Some(bytes) if limit.is_err() => {
            format!("the control group that this was started in, of {} MiB for all processes in it", bytes >> 20)
        }
        _ => memory::held_by(&limit),
    }
}

/// The part of a measured process: opens the engine, if there is one of that name, has it measured, and replies on the
/// standard output.
pub fn serve<T: Serialize>(
    place: &Place,
    spec: Option<EngineSpec>,
    resources: Resources,
    measure: impl FnOnce(&dyn Engine, &Disk) -> Result<T>,
) -> Result<()> {
    if let Err(error) = open_and_measure(place, spec, resources, measure) {
        reply(&Reply::<(), T>::Failed(error.to_string()))?;
    }
    Ok(())
}

fn open_and_measure<T: Serialize>(
    place: &Place,
    spec: Option<EngineSpec>,
    resources: Resources,
    measure: impl FnOnce(&dyn Engine, &Disk) -> Result<T>,
) -> Result<()> {
    if let Some(group) = &place.group {
        memory::join(group)?;
    }
    let spec = spec.ok_or_else(|| Error::Request(format!("there is no engine {}", place.engine)))?;
    let disk = Disk::under(place.directory.parent().unwrap_or(&place.directory))?;
    let engine = spec.open(&place.directory, resources)?;
    let (settings, memory_limit_bytes) = (engine.settings(), control_group_bytes());
    reply(&Reply::<(), T>::Opened { settings, memory_limit_bytes })?;
    let totals = measure(&*engine, &disk)?;
    reply(&Reply::<(), T>::Finished(totals))?;
    engine.close()
}

/// The part of a measured process: tells of a point.
pub fn tell(point: &impl Serialize) -> Result<()> {
    reply(&Reply::<_, ()>::Measured(point))
}

#[cfg(test)]
mod tests;
