//! The experiment `durable-puts`: how many small puts per second are acknowledged only once they survive a power cut,
//! by the number of threads that each wait for theirs.

use crate::engine::{EngineSpec, RocksDbSettings};
use crate::error::{Error, Result};
use crate::host::Disk;
use crate::records::Shape;
use crate::report::{self, Origin, Report};
use crate::store::{Point, Store};
use crate::sweep;
use aiodb::IndexKind;
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What can be chosen on the command line.
#[derive(Args, Debug)]
pub struct Options {
    /// Where the stores are made, one directory each, and removed again; the disk under it is what is measured
    #[arg(long)]
    dir: PathBuf,
    /// Records in each store before the first put is measured
    #[arg(long, default_value = "10_000_000", value_parser = count)]
    keys: u64,
    /// Numbers of writers, each a thread that waits for its put before it issues the next, or with -futures that many
    /// puts in flight from one thread
    #[arg(long, default_value = "1,10,30,100,300", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    writers: Vec<u32>,
    /// Seconds of puts at each number of writers
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// Bytes of a key
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u16).range(Shape::MIN_KEY_BYTES as i64..))]
    key_bytes: u16,
    /// Bytes of a value
    #[arg(long, default_value_t = 25)]
    value_bytes: u16,
    /// How often every engine is measured, in turn, each time in a fresh directory
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Which engines are measured
    #[arg(long, default_value = "rocksdb,aiodb-hash,aiodb-lsm,aiodb-lmdb,aiodb-hash-futures", value_delimiter = ',')]
    engines: Vec<EngineName>,
    /// RocksDB settings that are measured, by their names in the sweep; the ratios are against the best of them
    #[arg(long, default_value = "recycled,unordered,recycled-unordered", value_delimiter = ',', value_parser = setting)]
    #[arg(conflicts_with = "sweep")]
    rocksdb_settings: Vec<&'static RocksDbSettings>,
    /// First try every RocksDB setting and then measure the best one at each number of writers
    #[arg(long)]
    sweep: bool,
    /// Seconds of puts for each setting and number of writers of the sweep
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    sweep_seconds: u64,
    /// How often every setting is tried, in turn; the best has the highest median
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    sweep_rounds: u32,
    /// Records in each store of the sweep
    #[arg(long, default_value = "1_000_000", value_parser = count)]
    sweep_keys: u64,
    /// Where to write everything that was measured, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EngineName {
    #[value(name = "rocksdb")]
    RocksDb,
    AiodbHash,
    AiodbLmdb,
    AiodbLsm,
    AiodbHashFutures,
    AiodbLmdbFutures,
    AiodbLsmFutures,
}

/// One engine and the numbers of writers at which it is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Task {
    spec: EngineSpec,
    writers: Vec<u32>,
}

/// Runs the experiment, prints its tables and writes its JSON.
pub fn run(options: &Options) -> Result<()> {
    fs::create_dir_all(&options.dir).map_err(Error::io("create", &options.dir))?;
    let disk = Disk::under(&options.dir)?;
    let origin = Origin::of(&disk)?;
    let shape = Shape { key_bytes: options.key_bytes.into(), value_bytes: options.value_bytes.into() };
    let bench = Bench { parent: &options.dir, disk: &disk, shape };
    let mut settings = BTreeMap::new();

    let mut swept = Vec::new();
    if options.sweep {
        let tasks = sweep_tasks(&options.writers);
        swept = bench.rounds(&tasks, options.sweep_rounds, options.sweep_keys, options.sweep_seconds, &mut settings)?;
        println!("{}", report::sweep_table(&swept));
    }
    let tasks = tasks(options, &swept);
    let rounds = bench.rounds(&tasks, options.rounds, options.keys, options.seconds, &mut settings)?;

    let rivals: Vec<String> =
        tasks.iter().filter(|task| task.spec.is_rival()).map(|task| task.spec.to_string()).collect();
    let report = Report {
        durability: "sync: a put is acknowledged once it survives a power cut",
        data_to_memory: (options.keys * shape.record_bytes()) as f64 / origin.host.memory_bytes() as f64,
        origin,
        settings,
        sweep: swept,
        summary: report::summarise(&rounds, &rivals),
        rounds,
    };
    if options.rounds > 0 {
        println!("{}", report.table());
    }
    report::write_json(&report, options.json.as_deref())
}

/// Where and with what records all engines are measured.
struct Bench<'a> {
    parent: &'a Path,
    disk: &'a Disk,
    shape: Shape,
}

impl Bench<'_> {
    /// Measures all tasks in turn, then all of them again, so that what drifts drifts for all alike.
    fn rounds(
        &self,
        tasks: &[Task],
        rounds: u32,
        keys: u64,
        seconds: u64,
        settings: &mut BTreeMap<String, Value>,
    ) -> Result<Vec<Vec<Point>>> {
        let mut measured = Vec::new();
        for round in 1..=rounds {
            eprintln!("round {round} of {rounds}");
            let mut points = Vec::new();
            for task in tasks {
                points.extend(self.measure(task, keys, seconds, settings)?);
            }
            measured.push(points);
        }
        Ok(measured)
    }

    /// Loads the engine of one task once and measures it at every number of writers; the puts add up.
    fn measure(
        &self,
        task: &Task,
        keys: u64,
        seconds: u64,
        settings: &mut BTreeMap<String, Value>,
    ) -> Result<Vec<Point>> {
        let name = task.spec.to_string();
        eprintln!("{name}: loading {keys} records");
        let mut store = Store::preloaded(&task.spec, self.parent, self.disk, self.shape, keys)?;
        settings.insert(name, store.settings());
        let mut points = Vec::new();
        for &writers in &task.writers {
            let point = store.measure(writers, Duration::from_secs(seconds))?;
            eprintln!("{}", report::point_line(&point));
            points.push(point);
        }
        store.check_and_remove()?;
        Ok(points)
    }
}

fn sweep_tasks(writers: &[u32]) -> Vec<Task> {
    let task =
        |settings: &RocksDbSettings| Task { spec: EngineSpec::RocksDb(settings.clone()), writers: writers.to_vec() };
    sweep::SETTINGS.iter().map(task).collect()
}

/// The tasks of one round, in the order of `--engines`.
fn tasks(options: &Options, swept: &[Vec<Point>]) -> Vec<Task> {
    let ours = |spec| vec![Task { spec, writers: options.writers.clone() }];
    let engines = options.engines.iter().map(|engine| match engine {
        EngineName::RocksDb if options.sweep => best_tasks(swept, &options.writers),
        EngineName::RocksDb => {
            let all = |&settings: &&RocksDbSettings| Task {
                spec: EngineSpec::RocksDb(settings.clone()),
                writers: options.writers.clone(),
            };
            options.rocksdb_settings.iter().map(all).collect()
        }
        EngineName::AiodbHash => ours(EngineSpec::Aiodb(IndexKind::Hash)),
        EngineName::AiodbLmdb => ours(EngineSpec::Aiodb(IndexKind::Lmdb)),
        EngineName::AiodbLsm => ours(EngineSpec::Aiodb(IndexKind::Lsm)),
        EngineName::AiodbHashFutures => ours(EngineSpec::AiodbFutures(IndexKind::Hash)),
        EngineName::AiodbLmdbFutures => ours(EngineSpec::AiodbFutures(IndexKind::Lmdb)),
        EngineName::AiodbLsmFutures => ours(EngineSpec::AiodbFutures(IndexKind::Lsm)),
    });
    engines.flatten().collect()
}

/// The setting that was best in the sweep at each number of writers; numbers with the same best setting share a store.
fn best_tasks(swept: &[Vec<Point>], writers: &[u32]) -> Vec<Task> {
    let chosen = sweep_tasks(writers).into_iter().map(|mut task| {
        let name = task.spec.to_string();
        task.writers.retain(|&number| sweep::best(swept, number) == Some(name.as_str()));
        task
    });
    chosen.filter(|task| !task.writers.is_empty()).collect()
}

/// A number in which underscores may group the digits.
fn count(text: &str) -> std::result::Result<u64, String> {
    text.replace('_', "").parse().map_err(|error| format!("{error}: give a number such as 1_000_000"))
}

fn setting(name: &str) -> std::result::Result<&'static RocksDbSettings, String> {
    sweep::setting(name).ok_or_else(|| {
        let names: Vec<_> = sweep::SETTINGS.iter().map(|settings| settings.name).collect();
        format!("no such setting; there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests;
