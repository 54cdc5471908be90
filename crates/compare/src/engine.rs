//! The one interface behind which engines are measured.

mod aiodb;
mod rocksdb;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::records::Records;
use ::aiodb::IndexKind;
use serde_json::Value;
use std::fmt;
use std::path::Path;

pub use rocksdb::RocksDbSettings;

/// An open engine. `preload` and `put_durable` are called from many threads at once, the others from one.
pub trait Engine: Sync {
    /// Writes the next `count` records as fast as the engine takes them; they may be volatile until [`Engine::finish`].
    fn preload(&self, records: &mut Records, count: u64) -> Result<()>;
    /// Returns when the record survives a power cut and every later get sees it.
    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()>;
    /// The value of a key, if it is there.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Does all the work that earlier writes left for later, and returns when it is on the device.
    fn finish(&self) -> Result<()>;
    /// What the engine runs with, as it reports it itself where it does.
    fn settings(&self) -> Value;
    /// Closes the engine; its directory can be opened again.
    fn close(self: Box<Self>) -> Result<()>;
}

/// Which engine to open, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineSpec {
    /// RocksDB with one of the published settings.
    RocksDb(RocksDbSettings),
    /// Our engine with one of its indexes.
    Aiodb(IndexKind),
}

impl EngineSpec {
    /// Opens the engine in a directory of its own, which is made if missing.
    pub fn open(&self, directory: &Path) -> Result<Box<dyn Engine>> {
        match self {
            EngineSpec::RocksDb(settings) => rocksdb::open(directory, settings),
            EngineSpec::Aiodb(index) => aiodb::open(directory, *index),
        }
    }

    /// Whether this is a rival, against whose best the others are held.
    pub fn is_rival(&self) -> bool {
        matches!(self, EngineSpec::RocksDb(_))
    }
}

/// The name used in options, tables and files.
impl fmt::Display for EngineSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EngineSpec::RocksDb(settings) => write!(formatter, "rocksdb-{}", settings.name),
            EngineSpec::Aiodb(index) => write!(formatter, "aiodb-{}", index.name()),
        }
    }
}
