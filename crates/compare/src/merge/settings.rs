//! The settings of each rival that `merge` knows: those of `workloads`, which read and write, and two for counters.

use crate::engine::{self, EngineSpec, RocksDbSettings};
use crate::workloads::settings::{self, DIRECT, WRITES};

/// Merges of a key in a row after which RocksDB makes one put of them with [`SUCCESSIVE`].
const SUCCESSIVE_MERGES: usize = 100;

/// A get of a hot key meets few operands, and its merges a look-up now and then. Unordered writes exclude that.
const SUCCESSIVE: RocksDbSettings = RocksDbSettings {
    name: "successive",
    unordered_write: false,
    max_successive_merges: SUCCESSIVE_MERGES,
    reads: DIRECT,
    ..WRITES
};

/// Every engine with every setting, ours first.
pub fn all() -> Vec<EngineSpec> {
    settings::all().into_iter().chain([EngineSpec::AiodbCached, EngineSpec::RocksDb(SUCCESSIVE)]).collect()
}

/// The engine and setting of a name.
pub fn named(name: &str) -> Option<EngineSpec> {
    engine::named(all(), name)
}

#[cfg(test)]
mod tests;
