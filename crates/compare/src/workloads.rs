//! The experiment `workloads`: reads, scans, mixed loads and writes of data that is several times larger than memory,
//! on every engine in turn.

mod child;
mod measure;
mod plan;
pub mod settings;
mod summary;

use crate::engine::{self, EngineSpec};
use crate::error::{Error, Result};
use crate::host::Disk;
use crate::memory::{self, MemoryLimit};
use crate::process;
use crate::report::{self, Origin};
use crate::stream::{MAX_VALUE_BYTES, MIN_VALUE_BYTES, Pairs};
use clap::Args;
use measure::{Measurement, Outcome, Site, Store};
use plan::Plan;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use summary::{Ratio, Row};

/// One setting of each rival, measured where no sweep is asked for.
const USUAL_SETTINGS: &str =
    "aiodb-lsm,aiodb-lmdb,aiodb-hash,lmdb-nordahead,rocksdb-direct,blobdb-direct,redb-small-cache,fjall-small-cache";

/// The most space that a store takes by its keys and values: LMDB gives a value of 4096 bytes two pages, redb rounds
/// up to powers of two, and writes are added.
const STORE_TO_DATA: u64 = 4;

/// What can be chosen on the command line.
#[derive(Args, Debug)]
pub struct Options {
    /// Where the stores are made, one directory each, and removed again; the disk under it is what is measured
    #[arg(long)]
    dir: PathBuf,
    /// Pairs in each store [default: 500000; 250000 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    pairs: Option<u64>,
    /// Bytes of a value; each size has stores of its own
    #[arg(long, default_value = "4096,4000", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u64).range(MIN_VALUE_BYTES as u64..=MAX_VALUE_BYTES as u64))]
    value_bytes: Vec<u64>,
    /// Memory of each measured process, page cache included, is the data by this
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1024))]
    data_to_memory: u64,
    /// Threads that read one by one [default: 1,2,4,8,16,32,64; 1,8,64 with --quick]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=512))]
    threads: Vec<u32>,
    /// Engines with their settings, by the names in the sweep
    #[arg(long, default_value = USUAL_SETTINGS, value_delimiter = ',', value_parser = engine)]
    engines: Vec<EngineSpec>,
    /// First try every setting of every rival, then measure the best for each workload
    #[arg(long, conflicts_with = "engines")]
    sweep: bool,
    /// How often everything is measured, in turn [default: 5; 3 with --quick, writes once]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Milliseconds of each point in a round [default: 3000; 600 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    milliseconds: Option<u64>,
    /// A small comparison of at most a quarter of an hour
    #[arg(long)]
    quick: bool,
    /// Where to write everything that was measured, as JSON
    #[arg(long)]
    json: Option<PathBuf>,
}

/// Everything that one run measured.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    origin: Origin,
    /// What an acknowledged write has survived.
    durability: &'static str,
    pairs: u64,
    memory: Vec<MemoryOfSize>,
    /// What every engine ran with, by its name.
    settings: BTreeMap<String, Value>,
    stores: Vec<Store>,
    /// Sizes of values whose measurement ended early, with the reason.
    not_measured: Vec<String>,
    sweep: Vec<Outcome>,
    outcomes: Vec<Outcome>,
    summary: Vec<Row>,
    ratios: Vec<Ratio>,
}

/// What memory was there at one size of values.
#[derive(Debug, Serialize)]
struct MemoryOfSize {
    value_bytes: usize,
    data_bytes: u64,
    memory_bytes: u64,
    /// How the process was held to it.
    held_by: String,
}

/// Runs the experiment, prints its tables and writes its JSON.
pub fn run(options: &Options) -> Result<()> {
    fs::create_dir_all(&options.dir).map_err(Error::io("create", &options.dir))?;
    let disk = Disk::under(&options.dir)?;
    let plan = Plan::of(options);
    let mut report = Report {
        origin: Origin::of(&disk)?,
        durability: "writes are volatile when acknowledged; the clock stops once all of them are durable",
        pairs: plan.pairs,
        memory: Vec::new(),
        settings: BTreeMap::new(),
        stores: Vec::new(),
        not_measured: Vec::new(),
        sweep: Vec::new(),
        outcomes: Vec::new(),
        summary: Vec::new(),
        ratios: Vec::new(),
    };
    for &value_bytes in &options.value_bytes {
        let pairs = Pairs { count: plan.pairs, value_bytes: value_bytes as usize };
        // What was measured at another size must not be lost.
        if let Err(error) = measure_size(options, &plan, pairs, &disk, &mut report) {
            report.not_measured.push(format!("values of {value_bytes} bytes: {error}"));
        }
    }
    report.summary = summary::summarise(&report.outcomes);
    report.ratios = summary::ratios(&report.outcomes);
    println!("{}", in_words(&report));
    report::write_json(&report, options.json.as_deref())?;
    report::check_complete(&report.not_measured)
}

/// Measures everything at one size of values, with all stores side by side so that engines can take turns.
fn measure_size(options: &Options, plan: &Plan, pairs: Pairs, disk: &Disk, report: &mut Report) -> Result<()> {
    let memory_bytes = pairs.data_bytes() / options.data_to_memory;
    let limit = MemoryLimit::new(memory_bytes);
    report.memory.push(MemoryOfSize {
        value_bytes: pairs.value_bytes,
        data_bytes: pairs.data_bytes(),
        memory_bytes,
        held_by: memory::held_by(&limit),
    });
    let site = Site { parent: &options.dir, pairs, memory_bytes, limit: limit.as_ref().ok() };
    let engines = if options.sweep { sweep(plan, &site, disk, report)? } else { options.engines.clone() };
    check_space(disk, pairs, engines.len() as u64)?;
    let mut measurement = Measurement::load(&site, &engines, &mut report.settings)?;
    report.outcomes.extend(measurement.rounds(&plan.comparison())?);
    report.stores.extend(measurement.remove());
    Ok(())
}

/// Measures the settings of one rival after the other, whose stores are removed again, and returns the best together
/// with ours.
fn sweep(plan: &Plan, site: &Site, disk: &Disk, report: &mut Report) -> Result<Vec<EngineSpec>> {
    let (rivals, mut chosen): (Vec<EngineSpec>, Vec<EngineSpec>) =
        settings::all().into_iter().partition(EngineSpec::is_rival);
    chosen.retain(|ours| ours.differs_at(site.pairs.value_bytes));
    for family in rivals.chunk_by(|left, right| left.family() == right.family()) {
        eprintln!("sweep of {} at {} bytes", family[0].family(), site.pairs.value_bytes);
        check_space(disk, site.pairs, family.len() as u64)?;
        let mut measurement = Measurement::load(site, family, &mut report.settings)?;
        let swept = measurement.rounds(&plan.sweep())?;
        let best = summary::best_settings(&swept, family);
        println!("{}", summary::sweep_table(&swept, &best));
        report.sweep.extend(swept);
        chosen.extend(best.iter().filter_map(|name| settings::named(name)));
    }
    Ok(chosen)
}

fn check_space(disk: &Disk, pairs: Pairs, stores: u64) -> Result<()> {
    let wanted = pairs.data_bytes() * STORE_TO_DATA / 2 * stores;
    disk.require(wanted, &format!("{stores} stores of {} pairs want", pairs.count), "use fewer --pairs or --engines")
}

fn in_words(report: &Report) -> String {
    let mut text = String::new();
    for memory in &report.memory {
        text.push_str(&format!(
            "Values of {} bytes: {} MiB of data, {} MiB of memory, held by {}.\n",
            memory.value_bytes,
            memory.data_bytes >> 20,
            memory.memory_bytes >> 20,
            memory.held_by
        ));
    }
    text.push('\n');
    text.push_str(&summary::table(&report.summary));
    text.push('\n');
    text.push_str(&summary::ratio_table(&report.ratios));
    let measured = report.outcomes.iter().chain(&report.sweep).map(|outcome| (outcome.place(), outcome.void.as_ref()));
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
