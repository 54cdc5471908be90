//! Stores of all engines side by side, and the processes that measure them in turn.

use super::child::{Figures, Point, Reply, Request};
use super::plan::Rounds;
use crate::engine::EngineSpec;
use crate::error::{Error, Result};
use crate::memory::{self, MemoryLimit};
use crate::process::Process;
use crate::stream::Pairs;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// The subcommand of a measured process.
const SUBCOMMAND: &str = "measured";

/// A process that says nothing for so long beyond what it was asked to take is given up.
const PATIENCE: Duration = Duration::from_secs(300);

/// A load that takes longer is given up.
const LOAD_PATIENCE: Duration = Duration::from_secs(3600);

/// New keys of a round have numbers of their own.
const NUMBERS_PER_ROUND: u64 = 1 << 40;

/// Where and with what all engines are measured.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The directory of the stores.
    pub parent: &'a Path,
    /// What is in each.
    pub pairs: Pairs,
    /// What each process may take of memory.
    pub memory_bytes: u64,
    /// What holds it to that, if anything can.
    pub limit: Option<&'a MemoryLimit>,
}

/// What came of one point in one round.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The engine and its setting.
    pub engine: String,
    /// The engine without its setting.
    pub family: &'static str,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// From 1.
    pub round: u32,
    /// What was done.
    pub point: Point,
    /// What was measured; None if the process died or never came to it.
    pub figures: Option<Figures>,
    /// Why this does not count. None if it does.
    pub void: Option<String>,
}

impl Outcome {
    /// The point for people.
    pub fn place(&self) -> String {
        let Point { workload, threads, reads } = self.point;
        let (engine, bytes, round) = (&self.engine, self.value_bytes, self.round);
        format!("{engine}, values of {bytes} bytes, {workload}, {threads} threads, {reads}, round {round}")
    }
}

/// A loaded store.
#[derive(Debug, Serialize)]
pub struct Store {
    engine: String,
    value_bytes: usize,
    /// How long loading took, until nothing was left to do; memory was not limited. None if it failed.
    load_seconds: Option<f64>,
    /// What the files took on the disk after that, by keys and values.
    disk_to_data: Option<f64>,
    #[serde(skip)]
    spec: EngineSpec,
    #[serde(skip)]
    directory: TempDir,
    /// Why there is nothing to measure.
    failed: Option<String>,
}

/// All stores of one size of values.
#[derive(Debug)]
pub struct Measurement<'a> {
    site: &'a Site<'a>,
    stores: Vec<Store>,
    rounds_with_writes: u64,
}

impl<'a> Measurement<'a> {
    /// Loads a store for every engine, one after the other.
    pub fn load(
        site: &'a Site<'a>,
        engines: &[EngineSpec],
        settings: &mut BTreeMap<String, Value>,
    ) -> Result<Measurement<'a>> {
        let mut stores = Vec::new();
        for spec in engines {
            eprintln!("{spec}: loading {} pairs of {} bytes", site.pairs.count, site.pairs.value_bytes);
            stores.push(Store::load(site, spec, settings)?);
        }
        Ok(Measurement { site, stores, rounds_with_writes: 0 })
    }

    /// Measures all engines in turn, then all of them again, so that what drifts drifts for all alike. Each round
    /// begins with another engine.
    pub fn rounds(&mut self, all: &[Rounds]) -> Result<Vec<Outcome>> {
        let mut outcomes = Vec::new();
        for rounds in all {
            for round in 1..=rounds.rounds {
                eprintln!("round {round} of {}: {}", rounds.rounds, self.names());
                self.rounds_with_writes += u64::from(rounds.points.iter().any(|point| !point.workload.only_reads()));
                for index in 0..self.stores.len() {
                    let store = &self.stores[(index + round as usize - 1) % self.stores.len()];
                    outcomes.extend(self.measure(store, rounds, round)?);
                }
            }
        }
        Ok(outcomes)
    }

    fn names(&self) -> String {
        self.stores.iter().map(|store| store.engine.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Measures one engine at all points of a round; a process that dies is replaced for the points that are left.
    fn measure(&self, store: &Store, rounds: &Rounds, round: u32) -> Result<Vec<Outcome>> {
        let outcome = |point, figures, void| Outcome {
            engine: store.engine.clone(),
            family: store.spec.family(),
            value_bytes: self.site.pairs.value_bytes,
            round,
            point,
            figures,
            void,
        };
        if let Some(reason) = &store.failed {
            let void = |&point: &Point| outcome(point, None, Some(reason.clone()));
            return Ok(rounds.points.iter().map(void).collect());
        }
        let mut outcomes = Vec::new();
        let mut left = rounds.points.clone();
        while !left.is_empty() {
            memory::warm(store.directory.path())?;
            let mut process = Process::start(SUBCOMMAND, &self.request(store, rounds, &left), self.site.limit)?;
            let patience = rounds.duration + rounds.warm_up + PATIENCE;
            let mut begun = None;
            let end = loop {
                match process.reply(patience) {
                    Ok(Reply::Opened { ways_to_read, .. }) => left.retain(|point| ways_to_read.contains(&point.reads)),
                    Ok(Reply::Loaded { .. }) => {}
                    Ok(Reply::Begun(point)) => begun = Some(point),
                    Ok(Reply::Absent(point)) => left.retain(|&other| other != point),
                    Ok(Reply::Measured(point, figures)) => {
                        left.retain(|&other| other != point);
                        begun = None;
                        eprintln!("{}: {}", store.engine, in_words(point, &figures));
                        let void = void(&figures);
                        outcomes.push(outcome(point, Some(figures), void));
                    }
                    Ok(Reply::Failed(reason)) => break Some(reason),
                    Err(end) => break end,
                }
            };
            process.stop();
            let Some(reason) = end.or_else(|| (!left.is_empty()).then(|| "the process ended early".to_owned())) else {
                break;
            };
            eprintln!("{}: void: {reason}", store.engine);
            // Without a point to blame none of the others can be measured.
            let blamed = begun.map_or(left.clone(), |point| vec![point]);
            left.retain(|point| !blamed.contains(point));
            outcomes.extend(blamed.into_iter().map(|point| outcome(point, None, Some(reason.clone()))));
        }
        Ok(outcomes)
    }

    fn request(&self, store: &Store, rounds: &Rounds, points: &[Point]) -> Request {
        Request {
            engine: store.engine.clone(),
            directory: store.path(),
            pairs: self.site.pairs,
            load: false,
            next_number: self.site.pairs.count + self.rounds_with_writes * NUMBERS_PER_ROUND,
            memory_bytes: self.site.memory_bytes,
            group: self.site.limit.map(|limit| limit.group().to_owned()),
            duration: rounds.duration,
            warm_up: rounds.warm_up,
            points: points.to_vec(),
        }
    }

    /// Removes all stores and says what they were.
    pub fn remove(self) -> Vec<Store> {
        self.stores
    }
}

impl Store {
    fn load(site: &Site, spec: &EngineSpec, settings: &mut BTreeMap<String, Value>) -> Result<Store> {
        let directory = tempfile::Builder::new()
            .prefix(&format!("compare-{spec}-"))
            .tempdir_in(site.parent)
            .map_err(Error::io("create a directory in", site.parent))?;
        let mut store = Store {
            engine: spec.to_string(),
            value_bytes: site.pairs.value_bytes,
            load_seconds: None,
            disk_to_data: None,
            spec: spec.clone(),
            directory,
            failed: None,
        };
        let request = Request {
            engine: store.engine.clone(),
            directory: store.path(),
            pairs: site.pairs,
            load: true,
            next_number: 0,
            memory_bytes: site.memory_bytes,
            group: None,
            duration: Duration::ZERO,
            warm_up: Duration::ZERO,
            points: Vec::new(),
        };
        let mut process = Process::start(SUBCOMMAND, &request, None)?;
        let end = loop {
            match process.reply(LOAD_PATIENCE) {
                Ok(Reply::Opened { settings: own, .. }) => {
                    settings.insert(store.engine.clone(), own);
                }
                Ok(Reply::Loaded { seconds }) => store.load_seconds = Some(seconds),
                Ok(Reply::Failed(reason)) => break Some(reason),
                Ok(_) => {}
                Err(end) => break end,
            }
        };
        process.stop();
        store.failed = end.map(|reason| format!("the store could not be loaded: {reason}"));
        if let Some(reason) = &store.failed {
            eprintln!("{}: {reason}", store.engine);
        }
        let bytes = memory::disk_bytes(store.directory.path())?;
        store.disk_to_data = Some(bytes as f64 / site.pairs.data_bytes() as f64);
        Ok(store)
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }
}

/// Why figures do not count, if they do not.
fn void(figures: &Figures) -> Option<String> {
    if figures.wrong > 0 {
        return Some(format!("{} answers were absent or wrong", figures.wrong));
    }
    if figures.swapped_bytes > 0 {
        return Some(format!("{} bytes of the process were in swap", figures.swapped_bytes));
    }
    (figures.operations == 0).then(|| "not one operation was finished".to_owned())
}

fn in_words(point: Point, figures: &Figures) -> String {
    let Point { workload, threads, reads } = point;
    format!(
        "{workload}, {threads} threads, {reads}: {:.1} K/s, {:.1} us CPU each, durable and caught up after {:.1} + {:.1} s",
        figures.operations_per_s / 1e3,
        figures.cpu_us_per_operation,
        figures.seconds,
        figures.catch_up_seconds,
    )
}

#[cfg(test)]
mod tests;
