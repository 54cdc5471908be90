//! `compare`: rival engines beside aiodb, measured in one run on one disk.

mod batch;
mod churn;
mod class;
mod course;
mod durable_puts;
mod engine;
mod error;
mod host;
mod memory;
mod merge;
mod points;
mod process;
mod ranks;
mod records;
mod report;
mod rest;
mod runs;
mod soak;
mod store;
mod stream;
mod summary;
mod sweep;
mod totals;
mod workloads;
mod writers;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measures aiodb beside the engines that a user would pick today, in alternating rounds on the same disk.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// Small durable puts, one thread per writer, index included.
    DurablePuts(durable_puts::Options),
    /// Reads, scans, mixed loads and writes of data that is larger than memory.
    Workloads(workloads::Options),
    /// Inserts far beyond memory: whether the rate falls, and how long a single put takes.
    Soak(soak::Options),
    /// Overwrites of data that is there, several times over: space, bytes that the device writes, and whether the rate stays.
    Churn(churn::Options),
    /// Merges into counters beside puts, on one key and on many, and gets of both.
    Merge(merge::Options),
    /// One engine's part of `workloads`, in a process of its own; the request comes on stdin.
    #[command(hide = true)]
    Measured,
    /// One engine's part of `soak`, likewise.
    #[command(hide = true)]
    Soaked,
    /// One engine's part of `churn`, likewise.
    #[command(hide = true)]
    Churned,
    /// One engine's part of `merge`, likewise.
    #[command(hide = true)]
    Merged,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().experiment {
        Experiment::DurablePuts(options) => durable_puts::run(&options),
        Experiment::Workloads(options) => workloads::run(&options),
        Experiment::Soak(options) => soak::run(&options),
        Experiment::Churn(options) => churn::run(&options),
        Experiment::Merge(options) => merge::run(&options),
        Experiment::Measured => workloads::run_measured(),
        Experiment::Soaked => soak::run_measured(),
        Experiment::Churned => churn::run_measured(),
        Experiment::Merged => merge::run_measured(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests;
