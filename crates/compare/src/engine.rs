//! The one interface behind which engines are measured.

mod aiodb;
mod fjall;
mod lmdb;
mod redb;
mod rocksdb;
#[cfg(test)]
pub mod tests;

use crate::batch::Batch;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::records::Records;
use crate::stream::{Operation, Stream};
use ::aiodb::{IndexKind, MAX_INLINE_BYTES};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::time::Duration;

pub use fjall::FjallSettings;
pub use lmdb::LmdbSettings;
pub use redb::RedbSettings;
pub use rocksdb::{RocksDbReads, RocksDbSettings, RocksDbTree};

/// Records in one write of the preload.
const PRELOAD_BATCH_RECORDS: u64 = 1_000;

/// An open engine. Everything but closing may be called from many threads at once.
pub trait Engine: Sync {
    /// Writes all records of a batch. They are seen by later gets, and may be volatile until
    /// [`Engine::make_durable`].
    fn write(&self, batch: &Batch) -> Result<()>;
    /// Returns when the record survives a power cut and every later get sees it.
    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Returns when the record has the durability of a class and every later get sees it. Of [`Class::Interval`] an
    /// engine may leave the syncs to the caller; see [`Engine::keeps_intervals`].
    fn put_in_class(&self, key: &[u8], value: &[u8], class: Class) -> Result<()> {
        if class == Class::Sync {
            return self.put_durable(key, value);
        }
        let mut batch = Batch::default();
        batch.push(key, value);
        self.write(&batch)
    }
    /// Whether the engine itself syncs what was put in [`Class::Interval`]. Where it does not, the caller makes
    /// everything durable that often.
    fn keeps_intervals(&self) -> bool {
        false
    }
    /// Keeps so many durable puts of the next records in flight from the calling thread until the time has passed, tells
    /// how long each took, and returns when all are acknowledged. Only engines can whose name says so.
    fn put_in_flight(
        &self,
        _records: &mut Records,
        _in_flight: usize,
        _duration: Duration,
        _took: &mut dyn FnMut(Duration),
    ) -> Result<()> {
        Err(Error::Request("this engine has no puts in flight".to_owned()))
    }
    /// The value of a key, if it is there.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Adds to the counter of a key as a user of this engine would, see [`Engine::way_to_add`], and returns when the sum has
    /// the durability of a class; [`Class::Interval`] as in [`Engine::put_in_class`]. Counters have nothing to do with
    /// records of the same key. Only engines that were opened with [`Resources::counters`] have them.
    fn add(&self, key: &[u8], number: u64, class: Class) -> Result<()>;
    /// What was added to the counter of a key, if anything was.
    fn counter(&self, key: &[u8]) -> Result<Option<u64>>;
    /// How the engine adds, for people.
    fn way_to_add(&self) -> &'static str;
    /// Performs a thread's operations to their end, reading in the given way, which must be one of
    /// [`Engine::ways_to_read`]. Values are shown to the stream where they lie, without a copy that the engine does
    /// not need.
    fn run(&self, reads: Reads, stream: &mut Stream) -> Result<()>;
    /// The ways in which the engine can read.
    fn ways_to_read(&self) -> Vec<Reads> {
        vec![Reads::OneByOne]
    }
    /// Shows up to `limit` records in key order, from the first whose key is not below `from`, as long as `seen` wants
    /// more, and returns how many there were. None if this engine cannot scan in key order.
    fn scan(&self, from: &[u8], limit: u64, seen: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<Option<u64>>;
    /// Returns when everything acknowledged survives a power cut.
    fn make_durable(&self) -> Result<()>;
    /// Does all the work that earlier writes left for later, and returns when it is on the device.
    fn finish(&self) -> Result<()>;
    /// What the engine runs with, as it reports it itself where it does.
    fn settings(&self) -> Value;
    /// Closes the engine; its directory can be opened again.
    fn close(self: Box<Self>) -> Result<()>;

    /// Writes the next `count` records as fast as the engine takes them; they may be volatile until [`Engine::finish`].
    fn preload(&self, records: &mut Records, count: u64) -> Result<()> {
        let mut batch = Batch::default();
        let mut left = count;
        while left > 0 {
            batch.clear();
            for _ in 0..left.min(PRELOAD_BATCH_RECORDS) {
                let (key, value) = records.next();
                batch.push(key, value);
            }
            self.write(&batch)?;
            left -= left.min(PRELOAD_BATCH_RECORDS);
        }
        Ok(())
    }
}

/// How one thread reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// Each get is awaited before the next.
    OneByOne,
    /// So many keys are asked for in one call.
    Together(usize),
    /// So many gets are kept in flight.
    InFlight(usize),
}

/// The way of an engine that keeps gets in flight.
pub const IN_FLIGHT: Reads = Reads::InFlight(64);

/// The way of an engine that takes many keys in a call.
pub const TOGETHER: Reads = Reads::Together(256);

/// The name used in tables and files.
impl fmt::Display for Reads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reads::OneByOne => write!(formatter, "one by one"),
            Reads::Together(count) => write!(formatter, "{count} together"),
            Reads::InFlight(count) => write!(formatter, "{count} in flight"),
        }
    }
}

/// Performs the operations one after the other, with `get` showing the value of a key to a function.
fn run_one_by_one(
    engine: &dyn Engine,
    stream: &mut Stream,
    mut get: impl FnMut(&[u8], &mut dyn FnMut(&[u8])) -> Result<()>,
) -> Result<()> {
    let mut batch = Batch::default();
    while let Some(operation) = stream.next() {
        match operation {
            Operation::Get(number) => {
                let mut found = false;
                get(&stream.key(number), &mut |value| {
                    found = true;
                    stream.answer(number, Some(value));
                })?;
                if !found {
                    stream.answer(number, None);
                }
            }
            Operation::Put(number) => put(engine, stream, &mut batch, number)?,
        }
    }
    Ok(())
}

/// Performs one put of a stream; it may be volatile.
fn put(engine: &dyn Engine, stream: &mut Stream, batch: &mut Batch, number: u64) -> Result<()> {
    batch.clear();
    batch.push(&stream.key(number), stream.value(number));
    engine.write(batch)?;
    stream.written(1);
    Ok(())
}

/// The version of a library that this program was built with.
fn locked_version(library: &str) -> &'static str {
    let named = format!("name = \"{library}\"");
    let mut lines = include_str!("../../../Cargo.lock").lines().skip_while(|line| *line != named);
    lines.nth(1).and_then(|line| line.strip_prefix("version = ")).map_or("unknown", |version| version.trim_matches('"'))
}

/// The way of an engine without merge operators.
const IN_A_TRANSACTION: &str = "read, add and write in a transaction";

/// For an engine without counters.
fn no_counters(engine: &str) -> Error {
    Error::Request(format!("{engine} was opened without counters"))
}

/// What the value of a counter says.
fn sum_of(engine: &str, value: &[u8]) -> Result<u64> {
    let bytes: [u8; 8] = value.try_into().map_err(Error::engine(engine, "read a counter"))?;
    Ok(u64::from_le_bytes(bytes))
}

/// What an engine may use, and what it is to have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resources {
    /// Bytes of main memory for the whole process, page cache included. None where there is no limit: then caches
    /// have the engine's own default size.
    pub memory_bytes: Option<u64>,
    /// Bytes of keys and values that the store is going to hold, for engines that must know beforehand. None for an
    /// amount that a test or a small store takes.
    pub data_bytes: Option<u64>,
    /// Whether it is to have counters beside its records.
    pub counters: bool,
}

impl Resources {
    /// A share of the memory, in hundredths.
    fn memory_percent(&self, percent: u8) -> Option<u64> {
        self.memory_bytes.map(|bytes| bytes / 100 * u64::from(percent))
    }

    /// The bytes of a write buffer: `wanted`, but at most an eighth of the memory, since engines have several.
    fn write_buffer_bytes(&self, wanted: u64) -> u64 {
        self.memory_bytes.map_or(wanted, |bytes| wanted.min(bytes / 8))
    }
}

/// Which engine to open, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineSpec {
    /// RocksDB, with its values in the tree or in blob files, with one of the published settings.
    RocksDb(RocksDbSettings),
    /// LMDB with one of the published settings.
    Lmdb(LmdbSettings),
    /// redb with one of the published settings.
    Redb(RedbSettings),
    /// fjall with one of the published settings.
    Fjall(FjallSettings),
    /// Our engine with one of its indexes.
    Aiodb(IndexKind),
    /// The same, with writers that are futures of one thread.
    AiodbFutures(IndexKind),
    /// Kind `lsm` with all values that may lie in the index there.
    AiodbInline,
    /// Kind `lsm` with a quarter of the memory for a cache of values: the others have caches of their own.
    AiodbCached,
}

/// The cache of [`EngineSpec::AiodbCached`], in hundredths of the memory.
const CACHE_PERCENT: u8 = 25;

impl EngineSpec {
    /// Opens the engine in a directory of its own, which is made if missing.
    pub fn open(&self, directory: &Path, resources: Resources) -> Result<Box<dyn Engine>> {
        match self {
            EngineSpec::RocksDb(settings) => rocksdb::open(directory, settings, resources),
            EngineSpec::Lmdb(settings) => lmdb::open(directory, settings, resources),
            EngineSpec::Redb(settings) => redb::open(directory, settings, resources),
            EngineSpec::Fjall(settings) => fjall::open(directory, settings, resources),
            EngineSpec::Aiodb(index) | EngineSpec::AiodbFutures(index) => {
                aiodb::open(directory, self.to_string(), (*index).into(), 0, resources)
            }
            EngineSpec::AiodbInline => aiodb::open(directory, self.to_string(), aiodb::inline_options(), 0, resources),
            EngineSpec::AiodbCached => {
                aiodb::open(directory, self.to_string(), IndexKind::Lsm.into(), CACHE_PERCENT, resources)
            }
        }
    }

    /// Whether this is a rival, against whose best the others are held.
    pub fn is_rival(&self) -> bool {
        self.family() != "aiodb"
    }

    /// Whether this setting makes a difference to values of so many bytes.
    pub fn differs_at(&self, value_bytes: usize) -> bool {
        !matches!(self, EngineSpec::AiodbInline) || value_bytes <= MAX_INLINE_BYTES
    }

    /// Whether values lie in files of their own.
    pub fn separates_values(&self) -> bool {
        match self {
            EngineSpec::RocksDb(settings) => settings.reads.blobs,
            EngineSpec::Fjall(settings) => settings.blobs,
            _ => false,
        }
    }

    /// Whether writers are puts in flight from one thread.
    pub fn puts_in_flight(&self) -> bool {
        matches!(self, EngineSpec::AiodbFutures(_))
    }

    /// The engine without its settings: of each rival the best setting counts.
    pub fn family(&self) -> &'static str {
        match self {
            EngineSpec::RocksDb(settings) if settings.reads.blobs => "blobdb",
            EngineSpec::RocksDb(_) => "rocksdb",
            EngineSpec::Lmdb(_) => "lmdb",
            EngineSpec::Redb(_) => "redb",
            EngineSpec::Fjall(_) => "fjall",
            EngineSpec::Aiodb(_) | EngineSpec::AiodbFutures(_) | EngineSpec::AiodbInline | EngineSpec::AiodbCached => {
                "aiodb"
            }
        }
    }
}

/// The one of these with a name.
pub fn named(all: Vec<EngineSpec>, name: &str) -> Option<EngineSpec> {
    all.into_iter().find(|spec| spec.to_string() == name)
}

/// [`named`] for the command line: the error lists the names that there are.
pub fn parse(all: Vec<EngineSpec>, name: &str) -> std::result::Result<EngineSpec, String> {
    let names: Vec<String> = all.iter().map(EngineSpec::to_string).collect();
    named(all, name).ok_or_else(|| format!("no such engine; there are {}", names.join(", ")))
}

/// The name used in options, tables and files.
impl fmt::Display for EngineSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = match self {
            EngineSpec::RocksDb(settings) => settings.name,
            EngineSpec::Lmdb(settings) => settings.name,
            EngineSpec::Redb(settings) => settings.name,
            EngineSpec::Fjall(settings) => settings.name,
            EngineSpec::Aiodb(index) => index.name(),
            EngineSpec::AiodbInline => "lsm-inline",
            EngineSpec::AiodbCached => "lsm-cached",
            EngineSpec::AiodbFutures(index) => return write!(formatter, "{}-{}-futures", self.family(), index.name()),
        };
        write!(formatter, "{}-{settings}", self.family())
    }
}
