//! The experiment `soak`: inserts by many writers until there are many more keys than memory holds, on every engine in
//! turn. Whether the rate falls, how evenly it goes, and how long a single put can take.

mod child;
mod measure;
mod plan;
pub mod settings;
mod summary;

use crate::class::{Class, INTERVAL};
use crate::engine::{self, EngineSpec};
use crate::error::{Error, Result};
use crate::host::Disk;
use crate::memory;
use crate::process;
use crate::records::KEY_BYTES;
use crate::report::{self, Origin};
use crate::runs;
use clap::Args;
use measure::{Run, Site};
use plan::{Case, Plan, Rate};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use summary::{Ratio, Row};

/// One or two settings of each rival, measured where no sweep is asked for.
const USUAL_SETTINGS: &str = "aiodb-lsm,rocksdb-level-direct,rocksdb-universal,fjall-no-filters";

/// The most space that a store takes by its keys and values: merges write everything again before they remove the old
/// files, and records of 50 bytes have as much again around them.
const STORE_TO_DATA: u64 = 4;

/// What can be chosen on the command line.
#[derive(Args, Debug)]
pub struct Options {
    /// Where the stores are made, one after the other, and removed again; the disk under it is what is measured
    #[arg(long)]
    dir: PathBuf,
    /// Keys at which a run ends, each put once in random order [default: 50000000; 10000000 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    keys: Option<u64>,
    /// Seconds after which a run ends all the same [default: 3600; 40 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    max_seconds: Option<u64>,
    /// Bytes of a value; keys have 25. Each size is a case of its own
    #[arg(long, default_value = "25", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=1 << 20))]
    value_bytes: Vec<u32>,
    /// Durability classes: sync, interval (a sync each second) or none. Each is a case of its own
    #[arg(long, default_value = "interval", value_delimiter = ',')]
    durability: Vec<Class>,
    /// Concurrent writers, one thread each
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=4096))]
    writers: u32,
    /// Puts are due at this rate per second of all writers together, and their time counts from then; `half` is half of
    /// what the same writers reach on the engine as fast as they can, which is measured before
    #[arg(long, value_parser = plan::rate)]
    rate: Option<Rate>,
    /// Memory of each measured process, page cache included, with a suffix K, M or G [default: 512M; 256M with --quick]
    #[arg(long, value_parser = memory::parse_limit)]
    memory: Option<u64>,
    /// Engines with their settings, by the names in the sweep
    #[arg(long, default_value = USUAL_SETTINGS, value_delimiter = ',', value_parser = engine)]
    engines: Vec<EngineSpec>,
    /// First try every setting of every rival, then measure the best for each case
    #[arg(long, conflicts_with = "engines")]
    sweep: bool,
    /// Seconds after which a run of the sweep ends [default: 300; 20 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    sweep_seconds: Option<u64>,
    /// How often every engine is filled, in turn [default: 3; 1 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Milliseconds of a point [default: 10000; 2000 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    point_ms: Option<u64>,
    /// A small comparison of a few minutes
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
    keys: u64,
    writers: u32,
    /// The time of class `interval`.
    interval_seconds: f64,
    memory_bytes: u64,
    /// How each process was held to it.
    held_by: String,
    /// What every engine ran with, by its name.
    settings: BTreeMap<String, Value>,
    /// Cases whose measurement ended early, with the reason.
    not_measured: Vec<String>,
    sweep: Vec<Run>,
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
        keys: plan.keys,
        writers: plan.writers,
        interval_seconds: INTERVAL.as_secs_f64(),
        memory_bytes: plan.memory_bytes,
        held_by: runs::held_by(plan.memory_bytes),
        settings: BTreeMap::new(),
        not_measured: Vec::new(),
        sweep: Vec::new(),
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
    check_space(disk, plan.keys, case)?;
    let site = Site { parent: &options.dir, plan, most_time: plan.most_time };
    let engines = if options.sweep { sweep(options, plan, case, report)? } else { options.engines.clone() };
    let runs = site.rounds(case, &engines, plan.rounds, &mut report.settings)?;
    report.runs.extend(runs);
    Ok(())
}

/// Fills every setting of the rivals once, as fast as it goes, and returns the best of each together with ours.
fn sweep(options: &Options, plan: &Plan, case: Case, report: &mut Report) -> Result<Vec<EngineSpec>> {
    let rivals: Vec<EngineSpec> = settings::all().into_iter().filter(EngineSpec::is_rival).collect();
    eprintln!("{case}: sweep of {} settings", rivals.len());
    let plan = Plan { rate: None, ..plan.clone() };
    let site = Site { parent: &options.dir, plan: &plan, most_time: plan.most_sweep_time };
    let swept = site.rounds(case, &rivals, 1, &mut report.settings)?;
    let best = summary::best_settings(&swept, case, &rivals);
    println!("The sweep; {} go on.\n\n{}", best.join(", "), summary::tables(&crate::summary::summarise(&swept)));
    report.sweep.extend(swept);
    let ours = [EngineSpec::Aiodb(aiodb::IndexKind::Lsm)];
    Ok(ours.into_iter().chain(best.iter().filter_map(|name| settings::named(name))).collect())
}

fn check_space(disk: &Disk, keys: u64, case: Case) -> Result<()> {
    let wanted = keys.saturating_mul((KEY_BYTES + case.value_bytes) as u64).saturating_mul(STORE_TO_DATA);
    disk.require(wanted, &format!("a store of {keys} keys may want"), "use fewer --keys")
}

fn in_words(report: &Report) -> String {
    let mut text = format!(
        "{} writers, keys of {} bytes until there are {:.1} M, {} MiB of memory, held by {}.\n\n",
        report.writers,
        report.key_bytes,
        report.keys as f64 / 1e6,
        report.memory_bytes >> 20,
        report.held_by
    );
    text.push_str(&summary::tables(&report.summary));
    text.push('\n');
    text.push_str(&summary::ratio_table(&report.ratios));
    let measured = report.runs.iter().chain(&report.sweep).map(|run| (run.place(), run.void.as_ref()));
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
