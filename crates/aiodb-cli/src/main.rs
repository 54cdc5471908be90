//! The `aiodb` command. Each subcommand has its arguments and its code in the module named after it; what they share is
//! in `options` (how a store is opened), `output` (people or programs), `exit`, `error`, `progress` and `encoding`. Results go
//! to stdout, everything else to stderr. A subcommand knows the engine's public face and nothing of its files.

mod apply;
mod backup;
mod bench;
mod copy;
mod describe;
mod encoding;
mod error;
mod exit;
mod export;
mod inspect;
mod keys;
mod load;
mod options;
mod output;
mod progress;
mod salvage;
mod sample;
mod scan;
mod serve;
mod tables;

use clap::{CommandFactory, Parser, Subcommand};
use error::CliError;
use exit::Exit;
use output::Output;
use std::process::ExitCode;

/// Many threads put keys into a memtable that one thread frees: the allocator of glibc keeps such memory in the arenas of those
/// threads.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keeps, loads, reads and checks key-value stores on SSD
#[derive(Parser)]
#[command(name = "aiodb", version, long_about = ABOUT, after_help = EXAMPLES)]
struct Cli {
    /// One JSON value on stdout instead of text; errors are {"error":{"kind":..,"message":..}} on stderr
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const ABOUT: &str = "\
aiodb keeps key-value pairs in a directory, the store, and reads the values from SSD with asynchronous direct I/O.

A store has named tables; a command that names none uses the table `default`. Keys have 1 byte to 64 KiB, values up to \
1 GiB. One process at a time may have a store open.";

const EXAMPLES: &str = "\
Examples:
  aiodb put /data/store apple red             write one pair; makes the store if there is none
  aiodb get /data/store apple                 print the value
  aiodb load /data/store words.tsv            load a file of lines KEY<tab>VALUE
  aiodb scan /data/store --prefix app         print records in the order of their keys
  aiodb export /data/store words.tsv          write a table to a file that load reads
  aiodb stat /data/store                      sizes, counts and what the last opening recovered
  aiodb verify /data/store                    read everything back and check it
  aiodb backup /data/store /backup/store      copy what is new into a backup repository
  aiodb serve /data/store                     serve it to clients of Redis at 127.0.0.1:6379
  aiodb stat /data/store --watch              what the process that has it open is doing

Exit codes:
  0    done
  1    get: the key is absent; verify, backup --verify, salvage: damage was found; sample: a value is not as in the file
  2    the command line is wrong
  3    the operation failed (I/O, store in use, disk full, damaged data, a bad line, ...)
  4    load: finished, but bad lines were skipped
  130  load, sample: interrupted (SIGINT or SIGTERM) and stopped cleanly";

#[derive(Subcommand)]
enum Command {
    Load(load::LoadArgs),
    Apply(apply::ApplyArgs),
    Sample(sample::SampleArgs),
    Get(keys::GetArgs),
    Scan(scan::ScanArgs),
    Export(export::ExportArgs),
    Put(keys::PutArgs),
    Del(keys::DelArgs),
    Stat(inspect::StatArgs),
    Verify(inspect::VerifyArgs),
    Backup(backup::BackupArgs),
    Restore(backup::RestoreArgs),
    Salvage(salvage::SalvageArgs),
    Tables(tables::TablesArgs),
    CreateTable(tables::CreateTableArgs),
    AlterTable(tables::AlterTableArgs),
    CopyTable(copy::CopyTableArgs),
    RenameTable(tables::RenameTableArgs),
    SwapTables(tables::SwapTablesArgs),
    Truncate(tables::TruncateArgs),
    Drop(tables::DropArgs),
    Serve(serve::ServeArgs),
    Bench(bench::BenchArgs),
    Completion(describe::CompletionArgs),
    Man(describe::ManArgs),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::usage_error(&error),
    };
    let output = Output::new(cli.json);
    match run(cli.command, &output) {
        Ok(exit) => exit.into(),
        Err(error) => {
            output.error(&error);
            error.exit().into()
        }
    }
}

fn run(command: Command, output: &Output) -> Result<Exit, CliError> {
    match command {
        Command::Load(args) => load::run(args, output),
        Command::Apply(args) => apply::run(args, output),
        Command::Sample(args) => sample::run(args, output),
        Command::Get(args) => keys::get(args, output),
        Command::Scan(args) => scan::run(args, output),
        Command::Export(args) => export::run(args, output),
        Command::Put(args) => keys::put(args, output),
        Command::Del(args) => keys::del(args, output),
        Command::Stat(args) => inspect::stat(args, output),
        Command::Verify(args) => inspect::verify(args, output),
        Command::Backup(args) => backup::backup(args, output),
        Command::Restore(args) => backup::restore(args, output),
        Command::Salvage(args) => salvage::run(args, output),
        Command::Tables(args) => tables::list(args, output),
        Command::CreateTable(args) => tables::create(args, output),
        Command::AlterTable(args) => tables::alter(args, output),
        Command::CopyTable(args) => copy::run(args, output),
        Command::RenameTable(args) => tables::rename(args, output),
        Command::SwapTables(args) => tables::swap(args, output),
        Command::Truncate(args) => tables::truncate(args, output),
        Command::Drop(args) => tables::drop(args, output),
        Command::Completion(args) => describe::completion(&args, Cli::command(), output),
        Command::Man(args) => describe::man(&args, Cli::command(), output),
        Command::Serve(args) => serve::run(args, output),
        Command::Bench(args) => bench::run(args, output.is_json()).map(|()| Exit::Success),
    }
}
