//! `aiodb bench`: the evaluation of the AIODB paper as a program, so that every claim about the engine can be rerun.
//!
//! Each subcommand measures the store next to the ceiling it is held against, in alternating rounds of one run, and
//! leaves rows that name their units, with the command, the commit and the machine. The paper: T. Endo, H. Al-Edaily,
//! L. Hashem, K. Hiwada, "Development and Evaluation of NoSQL DB AIODB for SSDs with Asynchronous IO Library".
//!
//! From the ground up: `rows` and `outcome` are what a benchmark leaves; `dataset`, `zipf`, `round`, `stretches`, `rest`, `stats` and
//! `counters` are how anything is measured; `raw`, `fio`, `flush` and `memory` are the ceilings, `gets` is the store; one file for each
//! subcommand puts them together; `report` draws what was left. A benchmark works in a directory of its own, which it
//! removes if not told to keep it, and never touches a store that it has not made.

mod arguments;
mod cache;
mod ceiling;
mod churn;
mod copy_size;
mod cost;
mod counters;
mod dataset;
mod environment;
mod fio;
mod flush;
mod gets;
mod memory;
mod merge;
mod outcome;
mod queue_depth;
mod raw;
mod report;
mod rest;
mod round;
mod rows;
mod scan;
mod soak;
mod stats;
mod stretches;
mod table;
mod terminal;
mod write;
mod zipf;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::CliError;
use arguments::OutputArgs;
use outcome::Outcome;

/// Measure stores beside the limits of the device
#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Subcommand)]
enum BenchCommand {
    /// Gets per second against queue depth, beside what the device gives (the paper's figure 2)
    QueueDepth(queue_depth::QueueDepthArgs),
    /// Gets per second of LMDB in memory against the bytes copied, beside reads from the device (the paper's figure 1)
    CopySize(copy_size::CopySizeArgs),
    /// Durable writes per second against concurrent writers, beside the device's flush rate
    Write(write::WriteArgs),
    /// What a requirement costs in memory and on SSD, from measured rates and given prices
    Cost(cost::CostArgs),
    /// Gets per second of values in the cache, beside LMDB in memory
    Cache(cache::CacheArgs),
    /// Whole scans, backups and ingests, beside the disk's own bandwidth
    Scan(scan::ScanArgs),
    /// Inserts far beyond memory, in stretches: whether the rate falls, and the longest put
    Soak(soak::SoakArgs),
    /// Overwrites of data that is there: what they cost in space and in bytes written by the device, and whether the rate stays
    Churn(churn::ChurnArgs),
    /// Merges into counters, beside puts, and gets of both
    Merge(merge::MergeArgs),
    /// Draws the report again from the results beside it
    Report(ReportArgs),
}

#[derive(Args)]
struct ReportArgs {
    /// The report; its results are in the directory `results` beside it
    #[arg(value_name = "DIR/report.html")]
    report: PathBuf,
}

/// Runs a benchmark and hands out its result. With `json` the JSON object goes to the terminal instead of the table.
pub fn run(args: BenchArgs, json: bool) -> Result<(), CliError> {
    match args.command {
        BenchCommand::QueueDepth(args) => deliver(&queue_depth::run(&args)?, &args.output, json),
        BenchCommand::CopySize(args) => deliver(&copy_size::run(&args)?, &args.output, json),
        BenchCommand::Write(args) => deliver(&write::run(&args)?, &args.output, json),
        BenchCommand::Cost(args) => deliver(&cost::run(&args)?, &args.output, json),
        BenchCommand::Cache(args) => deliver(&cache::run(&args)?, &args.output, json),
        BenchCommand::Scan(args) => deliver(&scan::run(&args)?, &args.output, json),
        BenchCommand::Soak(args) => deliver(&soak::run(&args)?, &args.output, json),
        BenchCommand::Churn(args) => deliver(&churn::run(&args)?, &args.output, json),
        BenchCommand::Merge(args) => deliver(&merge::run(&args)?, &args.output, json),
        BenchCommand::Report(args) => report::render(&args.report),
    }
}

fn deliver(outcome: &Outcome, output: &OutputArgs, json: bool) -> Result<(), CliError> {
    // Files first: a user who stops reading the terminal's output must not lose a long measurement.
    if let Some(file) = &output.json_file {
        outcome::write_file(file, &outcome.to_json())?;
    }
    if let Some(path) = &output.report {
        outcome.save_into(&report::results_beside(path))?;
        report::render(path)?;
    }
    let text = if json { outcome.to_json() + "\n" } else { in_words(outcome) };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| CliError::failed(format!("cannot write to the standard output: {error}")))
}

/// The tables and notes for the terminal.
fn in_words(outcome: &Outcome) -> String {
    let tables = outcome.rows.tables();
    let notes = outcome.notes.iter().map(|note| format!("{note}\n"));
    tables.iter().map(|table| table.to_terminal() + "\n").chain(notes).collect()
}
