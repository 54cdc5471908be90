//! Arguments that several benchmarks take.

use std::path::PathBuf;
use std::time::Duration;

use aiodb::{Backend, Durability, IndexKind};
use clap::Args;

use super::stretches::Plan;

/// Where results go, besides the table on the terminal.
#[derive(Args)]
pub(crate) struct OutputArgs {
    /// Write the result as one JSON object to this file (`--json` alone prints it)
    #[arg(long, value_name = "FILE")]
    pub(crate) json_file: Option<PathBuf>,
    /// Add the result to those beside this report (in results/) and draw all of them into it
    #[arg(long, value_name = "DIR/report.html")]
    pub(crate) report: Option<PathBuf>,
}

pub(crate) fn parse_index(name: &str) -> Result<IndexKind, String> {
    [IndexKind::Lmdb, IndexKind::Lsm, IndexKind::Hash]
        .into_iter()
        .find(|kind| kind.name() == name)
        .ok_or_else(|| "lmdb, lsm or hash".to_owned())
}

/// The index of a table that is scanned.
pub(crate) fn parse_ordered_index(name: &str) -> Result<IndexKind, String> {
    parse_index(name).ok().filter(|kind| kind.is_ordered()).ok_or_else(|| "lmdb or lsm".to_owned())
}

/// A size that [`super::dataset::Dataset`] can fill.
pub(crate) fn parse_value_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes: &usize| bytes.is_multiple_of(8) && (16..=1 << 20).contains(bytes));
    bytes.ok_or_else(|| "a multiple of 8 from 16 to 1048576".to_owned())
}

pub(crate) fn parse_backend(name: &str) -> Result<Backend, String> {
    match name {
        "uring" => Ok(Backend::Uring),
        "libaio" => Ok(Backend::Libaio),
        "threads" => Ok(Backend::Threads),
        _ => Err("uring, libaio or threads".to_owned()),
    }
}

/// A durability class without its parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Sync,
    Interval,
    None,
}

impl Class {
    /// The class; `interval` with this time.
    pub(crate) fn durability(self, interval_ms: u64) -> Durability {
        match self {
            Class::Sync => Durability::Sync,
            Class::Interval => Durability::Interval(Duration::from_millis(interval_ms)),
            Class::None => Durability::None,
        }
    }

    /// The class, for rows.
    pub(crate) fn in_words(self, interval_ms: u64) -> String {
        match self {
            Class::Sync => "sync".to_owned(),
            Class::Interval => format!("interval {interval_ms} ms"),
            Class::None => "none".to_owned(),
        }
    }
}

/// The durability class of all writes of a run.
#[derive(Args)]
pub(crate) struct DurabilityArgs {
    /// Durability class: sync, interval or none
    #[arg(long = "durability", default_value = "interval", value_parser = parse_class)]
    class: Class,
    /// The time of class interval in milliseconds
    #[arg(long, default_value_t = 1000)]
    interval_ms: u64,
}

impl DurabilityArgs {
    pub(crate) fn durability(&self) -> Durability {
        self.class.durability(self.interval_ms)
    }

    /// The class, for rows.
    pub(crate) fn in_words(&self) -> String {
        self.class.in_words(self.interval_ms)
    }
}

/// How long a run goes on, and what is left of it.
#[derive(Args)]
pub(crate) struct RunArgs {
    /// Seconds after which the writes of a run end all the same
    #[arg(long, default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..))]
    max_seconds: u64,
    /// Length of a stretch in milliseconds, each of which is a row
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(10..))]
    stretch_ms: u64,
    /// Keep the stores
    #[arg(long)]
    pub(crate) keep: bool,
}

impl RunArgs {
    /// A run of so many writes.
    pub(crate) fn plan(&self, writers: u64, writes: u64) -> Plan {
        let (longest, stretch) = (Duration::from_secs(self.max_seconds), Duration::from_millis(self.stretch_ms));
        Plan { writers, writes, longest, stretch }
    }
}

pub(crate) fn parse_class(name: &str) -> Result<Class, String> {
    match name {
        "sync" => Ok(Class::Sync),
        "interval" => Ok(Class::Interval),
        "none" => Ok(Class::None),
        _ => Err("sync, interval or none".to_owned()),
    }
}
