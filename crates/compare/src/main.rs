//! `compare`: rival engines beside aiodb, measured in one run on one disk.

mod durable_puts;
mod engine;
mod error;
mod host;
mod records;
mod report;
mod store;
mod sweep;

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
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().experiment {
        Experiment::DurablePuts(options) => durable_puts::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}
