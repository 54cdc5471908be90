//! `aiodb bench`: the evaluation of the AIODB paper as a program, so that every claim about the engine can be rerun.
//!
//! Each subcommand measures the store next to the ceiling it is held against, in alternating rounds of one run, and
//! leaves rows that name their units, with the command, the commit and the machine. The paper: T. Endo, H. Al-Edaily,
//! L. Hashem, K. Hiwada, "Development and Evaluation of NoSQL DB AIODB for SSDs with Asynchronous IO Library".

mod cache;
mod ceiling;
mod copy_size;
mod cost;
mod counters;
mod dataset;
mod environment;
mod fio;
mod flush;
mod gets;
mod memory;
mod outcome;
mod queue_depth;
mod raw;
mod report;
mod round;
mod scan;
mod stats;
mod table;
mod write;

use std::io::Write;
use std::path::PathBuf;

use aiodb::{Backend, IndexKind};
use clap::{Args, Subcommand};

use crate::CliError;
use outcome::{Outcome, Rows};
use table::Table;

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
    /// Whole scans and backups, beside the disk's own bandwidth
    Scan(scan::ScanArgs),
    /// Draws the report again from the results beside it
    Report(ReportArgs),
}

/// Where results go, besides the table on the terminal.
#[derive(Args)]
struct OutputArgs {
    /// Write the result as one JSON object to this file (`--json` alone prints it)
    #[arg(long, value_name = "FILE")]
    json_file: Option<PathBuf>,
    /// Add the result to those beside this report (in results/) and draw all of them into it
    #[arg(long, value_name = "DIR/report.html")]
    report: Option<PathBuf>,
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
        BenchCommand::Report(args) => report::render(&args.report),
    }
}

fn deliver(outcome: &Outcome, output: &OutputArgs, json: bool) -> Result<(), CliError> {
    // Files first: whoever stops reading the terminal's output must not lose a long measurement.
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
    let tables = tables(&outcome.rows);
    let notes = outcome.notes.iter().map(|note| format!("{note}\n"));
    tables.iter().map(|table| table.to_terminal() + "\n").chain(notes).collect()
}

fn tables(rows: &Rows) -> Vec<Table> {
    match rows {
        Rows::QueueDepth(rows) => vec![queue_depth::table(rows)],
        Rows::CopySize(rows) => vec![copy_size::table(rows)],
        Rows::Write(rows) => write::tables(rows),
        Rows::Cost(rows) => vec![cost::table(rows)],
        Rows::Cache(rows) => vec![cache::table(rows)],
        Rows::Scan(rows) => vec![scan::table(rows)],
    }
}

/// Says on the standard error output what is going on; the standard output is for results.
fn progress(message: &str) {
    eprintln!("bench: {message}");
}

fn parse_index(name: &str) -> Result<IndexKind, String> {
    [IndexKind::Lmdb, IndexKind::Hash]
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| "lmdb or hash".to_owned())
}

/// A size that [`dataset::Dataset`] can fill.
fn parse_value_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes: &usize| bytes.is_multiple_of(8) && (16..=1 << 20).contains(bytes));
    bytes.ok_or_else(|| "a multiple of 8 from 16 to 1048576".to_owned())
}

fn parse_backend(name: &str) -> Result<Backend, String> {
    match name {
        "uring" => Ok(Backend::Uring),
        "libaio" => Ok(Backend::Libaio),
        "threads" => Ok(Backend::Threads),
        _ => Err("uring, libaio or threads".to_owned()),
    }
}
