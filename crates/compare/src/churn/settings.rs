//! The settings of each rival that `churn` knows: those of `soak`, which are for writes, and the best of the others.

use crate::engine::{self, EngineSpec, RocksDbReads, RocksDbSettings};
use crate::{soak, workloads};

/// The shortest values that lie in files of their own where an engine has them: an address takes a good part of what
/// shorter ones take.
pub const LEAST_SEPARATED_BYTES: usize = 256;

/// Every engine with every setting, ours first.
pub fn all() -> Vec<EngineSpec> {
    let written = soak::settings::all().into_iter();
    let trees = workloads::settings::all().into_iter().filter(|spec| matches!(spec.family(), "lmdb" | "redb"));
    let eager = RocksDbSettings {
        name: "level-eager",
        reads: RocksDbReads { collects_early: true, ..soak::settings::BLOBS },
        use_direct_io_for_flush_and_compaction: true,
        ..soak::settings::LEVEL
    };
    written.chain([EngineSpec::RocksDb(eager), EngineSpec::AiodbInline]).chain(trees).collect()
}

/// The engine and setting of a name.
pub fn named(name: &str) -> Option<EngineSpec> {
    engine::named(all(), name)
}

/// Whether the setting is for values of so many bytes.
pub fn suits(spec: &EngineSpec, value_bytes: usize) -> bool {
    spec.differs_at(value_bytes) && (!spec.separates_values() || value_bytes >= LEAST_SEPARATED_BYTES)
}

#[cfg(test)]
mod tests;
