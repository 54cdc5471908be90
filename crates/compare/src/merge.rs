//! The experiment `merge`: merges into counters beside puts under the same keys, on one hot key and on many, and what a get
//! of a merged key costs, on every engine in turn. Engines without merge operators do what their users would do.

mod child;
mod measure;
mod plan;
pub mod settings;
mod summary;

use crate::class::Class;
use crate::engine::{self, EngineSpec};
use crate::error::{Error, Result};
use crate::host::Disk;
use crate::memory;
use crate::process;
use crate::records::KEY_BYTES;
use crate::report::{self, Origin};
use crate::runs;
use child::VALUE_BYTES;
use clap::Args;
use measure::Run;
use plan::Plan;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use summary::{Ratio, Row};

/// One or two settings of each rival.
const USUAL_SETTINGS: &str = "aiodb-lsm,aiodb-lsm-cached,aiodb-hash,rocksdb-direct,rocksdb-successive,blobdb-direct,fjall-half-cache,\
    lmdb-nordahead,redb-half-cache";

/// What can be chosen on the command line.
#[derive(Args, Debug)]
pub struct Options {
    /// Where the stores are made, one after the other, and removed again; the disk under it is what is measured
    #[arg(long)]
    dir: PathBuf,
    /// Keys, of which each merge, put and get takes one at random. Each number is a case of its own
    #[arg(long, default_value = "1,100000", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    keys: Vec<u64>,
    /// Threads that merge, put or get, each as fast as it can. Each number is a case of its own
    #[arg(long, default_value = "1,8", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    writers: Vec<u32>,
    /// Durability classes: sync, interval (a sync each second) or none. Each is a case of its own
    #[arg(long, default_value = "none", value_delimiter = ',')]
    durability: Vec<Class>,
    /// Seconds of each kind of operation in a run [default: 5; 1 with --quick]
    #[arg(long, value_parser = plan::seconds)]
    seconds: Option<f64>,
    /// Memory of each measured process, page cache included, with a suffix K, M or G [default: 256M]
    #[arg(long, value_parser = memory::parse_limit)]
    memory: Option<u64>,
    /// Engines with their settings
    #[arg(long, default_value = USUAL_SETTINGS, value_delimiter = ',', value_parser = engine)]
    engines: Vec<EngineSpec>,
    /// How often every engine is measured, in turn [default: 5; 1 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// A small comparison of less than ten minutes
    #[arg(long)]
    quick: bool,
    /// Where to write everything that was measured, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Everything that one run of the command measured.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    origin: Origin,
    key_bytes: usize,
    /// Of an operand, and of a value beside it.
    value_bytes: usize,
    /// Of each kind of operation in a run.
    seconds: f64,
    memory_bytes: u64,
    /// How each process was held to it.
    held_by: String,
    /// What every engine ran with, by its name.
    settings: BTreeMap<String, Value>,
    /// Cases whose measurement ended early, with the reason.
    not_measured: Vec<String>,
    runs: Vec<Run>,
    summary: Vec<Row>,
    ratios: Vec<Ratio>,
}

/// Runs the experiment, prints its tables and writes its JSON.
pub fn run(options: &Options) -> Result<()> {
    fs::create_dir_all(&options.dir).map_err(Error::io("create", &options.dir))?;
    let disk = Disk::under(&options.dir)?;
    let plan = Plan::of(options);
    let mut report = Report {
        origin: Origin::of(&disk)?,
        key_bytes: KEY_BYTES,
        value_bytes: VALUE_BYTES,
        seconds: plan.duration.as_secs_f64(),
        memory_bytes: plan.memory_bytes,
        held_by: runs::held_by(plan.memory_bytes),
        settings: BTreeMap::new(),
        not_measured: Vec::new(),
        runs: Vec::new(),
        summary: Vec::new(),
        ratios: Vec::new(),
    };
    for &case in &plan.cases {
        // What was measured in another case must not be lost.
        match measure::rounds(&options.dir, &plan, case, &options.engines, &mut report.settings) {
            Ok(runs) => report.runs.extend(runs),
            Err(error) => report.not_measured.push(format!("{case}: {error}")),
        }
    }
    report.summary = crate::summary::summarise(&report.runs);
    report.ratios = summary::ratios(&report.runs);
    println!("{}", in_words(&report));
    report::write_json(&report, options.json.as_deref())?;
    report::check_complete(&report.not_measured)
}

fn in_words(report: &Report) -> String {
    let mut text = format!(
        "Counters and records of {} bytes under keys of {}, {} s of each kind of operation, {} MiB of memory, held by {}.\n\n",
        report.value_bytes,
        report.key_bytes,
        report.seconds,
        report.memory_bytes >> 20,
        report.held_by
    );
    text.push_str(&summary::tables(&report.summary));
    text.push('\n');
    text.push_str(&summary::ratio_table(&report.ratios));
    text.push('\n');
    text.push_str(&summary::ways_to_add(&report.runs));
    let measured = report.runs.iter().map(|run| (run.place(), run.void.as_ref()));
    text.push_str(&report::notes(measured, &report.settings));
    text
}

/// The part of one engine, as the request on the standard input says.
pub fn run_measured() -> Result<()> {
    child::run(&process::request()?)
}

fn engine(name: &str) -> std::result::Result<EngineSpec, String> {
    engine::parse(settings::all(), name)
}

#[cfg(test)]
mod tests;
