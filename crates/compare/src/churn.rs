//! The experiment `churn`: overwrites of data that is there, several times over, on every engine in turn. What they cost in
//! space and in bytes that the device writes, and whether the rate stays once compactions and reclaim have to keep up.

mod child;
mod measure;
mod plan;
pub mod settings;
mod summary;
mod versions;

use crate::class::{Class, INTERVAL};
use crate::engine::{self, EngineSpec};
use crate::error::{Error, Result};
use crate::host::Disk;
use crate::memory;
use crate::process;
use crate::ranks::{EXPONENT, Pattern};
use crate::records::KEY_BYTES;
use crate::report::{self, Origin};
use crate::runs;
use crate::stream::MAX_VALUE_BYTES;
use clap::Args;
use measure::Run;
use plan::{Case, Plan};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use summary::{Ratio, Row};
use versions::STAMP_BYTES;

/// One or two settings of each rival.
const USUAL_SETTINGS: &str = "aiodb-lsm,rocksdb-level-direct,rocksdb-universal,blobdb-level-direct,fjall-no-filters,\
    lmdb-nordahead,redb-half-cache";

/// The most space that a store takes by its keys and values, unless it outgrows what is known of it: compactions write
/// everything again before they remove the old files.
const STORE_TO_DATA: u64 = 6;

/// What can be chosen on the command line.
#[derive(Args, Debug)]
pub struct Options {
    /// Where the stores are made, one after the other, and removed again; the disk under it is what is measured
    #[arg(long)]
    dir: PathBuf,
    /// How overwrites are spread over records: uniform, or zipf as YCSB has it. Each is a case of its own
    #[arg(long, default_value = "uniform,zipf", value_delimiter = ',')]
    pattern: Vec<Pattern>,
    /// Bytes of a value, at least 16; keys have 25. Each size is a case of its own
    #[arg(long, default_value = "1024,25", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(STAMP_BYTES as u64..=MAX_VALUE_BYTES as u64))]
    value_bytes: Vec<u64>,
    /// Durability classes: sync, interval (a sync each second) or none. Each is a case of its own
    #[arg(long, default_value = "interval", value_delimiter = ',')]
    durability: Vec<Class>,
    /// Keys and values of all records, with a suffix K, M or G [default: 1G; 64M with --quick]
    #[arg(long, value_parser = plan::live_bytes)]
    live_bytes: Option<u64>,
    /// How many times the live data is overwritten
    #[arg(long, value_name = "TIMES", default_value = "5", value_parser = plan::times)]
    overwrites: f64,
    /// Seconds after which a run ends all the same [default: 1800; 8 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_seconds: Option<u64>,
    /// Concurrent writers, one thread each
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    writers: u32,
    /// Memory of each measured process, page cache included, with a suffix K, M or G [default: 256M; 128M with --quick]
    #[arg(long, value_parser = memory::parse_limit)]
    memory: Option<u64>,
    /// Engines with their settings. Those that have values in files of their own are left out where values are shorter than
    /// 256 bytes
    #[arg(long, default_value = USUAL_SETTINGS, value_delimiter = ',', value_parser = engine)]
    engines: Vec<EngineSpec>,
    /// How often every engine is measured, in turn [default: 3; 1 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Milliseconds of a point [default: 10000; 1000 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    point_ms: Option<u64>,
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
    live_bytes: u64,
    /// How many times the live data was to be overwritten.
    overwrites: f64,
    writers: u32,
    /// The exponent of pattern `zipf`.
    zipf_exponent: f64,
    /// The time of class `interval`.
    interval_seconds: f64,
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
        live_bytes: plan.live_bytes,
        overwrites: plan.times,
        writers: plan.writers,
        zipf_exponent: EXPONENT,
        interval_seconds: INTERVAL.as_secs_f64(),
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
        if let Err(error) = measure_case(options, &plan, case, &disk, &mut report) {
            report.not_measured.push(format!("{case}: {error}"));
        }
    }
    report.summary = crate::summary::summarise(&report.runs);
    report.ratios = summary::ratios(&report.runs);
    println!("{}", in_words(&report));
    report::write_json(&report, options.json.as_deref())?;
    report::check_complete(&report.not_measured)
}

fn measure_case(options: &Options, plan: &Plan, case: Case, disk: &Disk, report: &mut Report) -> Result<()> {
    check_space(disk, plan.live_bytes)?;
    let runs = measure::rounds(&options.dir, plan, case, &options.engines, &mut report.settings)?;
    report.runs.extend(runs);
    Ok(())
}

fn check_space(disk: &Disk, live_bytes: u64) -> Result<()> {
    let wanted = live_bytes.saturating_mul(STORE_TO_DATA);
    disk.require(wanted, &format!("a store of {} MiB may want", live_bytes >> 20), "use fewer --live-bytes")
}

fn in_words(report: &Report) -> String {
    let mut text = format!(
        "{} MiB of keys and values, overwritten {} times by {} writers, {} MiB of memory, held by {}.\n\n",
        report.live_bytes >> 20,
        report.overwrites,
        report.writers,
        report.memory_bytes >> 20,
        report.held_by
    );
    text.push_str(&summary::tables(&report.summary));
    text.push('\n');
    text.push_str(&summary::ratio_table(&report.ratios));
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
