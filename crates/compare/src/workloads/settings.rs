//! The settings of each rival that the sweep tries. The best of them for a workload stands for the rival there.

use crate::engine::{self, EngineSpec, FjallSettings, LmdbSettings, RedbSettings, RocksDbReads, RocksDbSettings};
use ::aiodb::IndexKind;

/// Every engine with every setting, ours first.
pub fn all() -> Vec<EngineSpec> {
    let ours = [IndexKind::Lsm, IndexKind::Lmdb, IndexKind::Hash].map(EngineSpec::Aiodb);
    let others = [
        vec![EngineSpec::AiodbInline],
        LMDB.iter().cloned().map(EngineSpec::Lmdb).collect::<Vec<_>>(),
        ROCKSDB.iter().cloned().map(EngineSpec::RocksDb).collect(),
        REDB.iter().cloned().map(EngineSpec::Redb).collect(),
        FJALL.iter().cloned().map(EngineSpec::Fjall).collect(),
    ];
    ours.into_iter().chain(others.into_iter().flatten()).collect()
}

/// The engine and setting of a name.
pub fn named(name: &str) -> Option<EngineSpec> {
    engine::named(all(), name)
}

const LMDB: &[LmdbSettings] = &[
    LmdbSettings { name: "nordahead", read_ahead: false, write_map: false },
    LmdbSettings { name: "nordahead-writemap", read_ahead: false, write_map: true },
    LmdbSettings { name: "default", read_ahead: true, write_map: false },
];

/// Blocks of one value each, read past the page cache, with a quarter of the memory for RocksDB's own cache: memtables
/// and what is not in the cache take as much again.
pub const DIRECT: RocksDbReads =
    RocksDbReads { use_direct_reads: true, block_cache_percent: 25, bloom_bits: 10, ..RocksDbReads::DEFAULT };
const BLOBS: RocksDbReads = RocksDbReads { blobs: true, ..DIRECT };

/// What was best for writes of small records; larger memtables would leave nothing of a small memory.
pub const WRITES: RocksDbSettings =
    RocksDbSettings { recycle_log_file_num: 4, unordered_write: true, ..RocksDbSettings::DEFAULT };

const ROCKSDB: &[RocksDbSettings] = &[
    RocksDbSettings { name: "direct", reads: DIRECT, ..WRITES },
    RocksDbSettings { name: "direct-no-bloom", reads: RocksDbReads { bloom_bits: 0, ..DIRECT }, ..WRITES },
    RocksDbSettings { name: "direct-small-cache", reads: RocksDbReads { block_cache_percent: 10, ..DIRECT }, ..WRITES },
    RocksDbSettings { name: "direct-half-cache", reads: RocksDbReads { block_cache_percent: 50, ..DIRECT }, ..WRITES },
    RocksDbSettings {
        name: "direct-all",
        use_direct_io_for_flush_and_compaction: true,
        max_background_jobs: 4,
        reads: DIRECT,
        ..WRITES
    },
    RocksDbSettings {
        name: "buffered",
        reads: RocksDbReads { use_direct_reads: false, block_cache_percent: 10, ..DIRECT },
        ..WRITES
    },
    RocksDbSettings {
        name: "buffered-cache",
        reads: RocksDbReads { use_direct_reads: false, block_cache_percent: 50, ..DIRECT },
        ..WRITES
    },
    RocksDbSettings { name: "direct", reads: BLOBS, ..WRITES },
    RocksDbSettings { name: "direct-small-cache", reads: RocksDbReads { block_cache_percent: 10, ..BLOBS }, ..WRITES },
    RocksDbSettings { name: "direct-half-cache", reads: RocksDbReads { block_cache_percent: 50, ..BLOBS }, ..WRITES },
    RocksDbSettings {
        name: "buffered",
        reads: RocksDbReads { use_direct_reads: false, block_cache_percent: 10, ..BLOBS },
        ..WRITES
    },
];

const REDB: &[RedbSettings] = &[
    RedbSettings { name: "small-cache", cache_percent: 10 },
    RedbSettings { name: "half-cache", cache_percent: 50 },
    RedbSettings { name: "large-cache", cache_percent: 75 },
];

const FJALL: &[FjallSettings] = &[
    FjallSettings { name: "small-cache", ..FjallSettings::DEFAULT },
    FjallSettings { name: "half-cache", cache_percent: 50, ..FjallSettings::DEFAULT },
    FjallSettings { name: "filters", expect_hits: false, ..FjallSettings::DEFAULT },
    FjallSettings { name: "blobs", blobs: true, ..FjallSettings::DEFAULT },
    FjallSettings { name: "blobs-half-cache", cache_percent: 50, blobs: true, ..FjallSettings::DEFAULT },
];

#[cfg(test)]
mod tests;
