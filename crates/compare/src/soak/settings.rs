//! The settings of each rival that the sweep of `soak` tries. The best of them in a case stands for the rival there.

use crate::engine::{self, EngineSpec, FjallSettings, RocksDbReads, RocksDbSettings, RocksDbTree};
use ::aiodb::IndexKind;

/// Every engine with every setting, ours first.
pub fn all() -> Vec<EngineSpec> {
    let ours = [IndexKind::Lsm, IndexKind::Lmdb, IndexKind::Hash].map(EngineSpec::Aiodb);
    let rivals = [
        ROCKSDB.iter().cloned().map(EngineSpec::RocksDb).collect::<Vec<_>>(),
        FJALL.iter().cloned().map(EngineSpec::Fjall).collect(),
    ];
    ours.into_iter().chain(rivals.into_iter().flatten()).collect()
}

/// The engine and setting of a name.
pub fn named(name: &str) -> Option<EngineSpec> {
    engine::named(all(), name)
}

/// What RocksDB's guide to tuning advises for writes: more memtables may wait, more threads work behind the writers,
/// tables are written back while they grow, and blocks are large. Filters are left out, since nothing is read.
const TREE: RocksDbTree =
    RocksDbTree { max_write_buffer_number: 4, bytes_per_sync: 1 << 20, block_bytes: 16 << 10, ..RocksDbTree::DEFAULT };

/// Log files are used again and writers of a group fill the memtable on their own, which was best for small puts.
pub const LEVEL: RocksDbSettings = RocksDbSettings {
    name: "level",
    recycle_log_file_num: 4,
    unordered_write: true,
    max_background_jobs: 4,
    tree: TREE,
    ..RocksDbSettings::DEFAULT
};

const UNIVERSAL: RocksDbSettings =
    RocksDbSettings { name: "universal", tree: RocksDbTree { universal_compaction: true, ..TREE }, ..LEVEL };

/// For values that lie in files of their own.
pub const BLOBS: RocksDbReads = RocksDbReads { blobs: true, ..RocksDbReads::DEFAULT };

const ROCKSDB: &[RocksDbSettings] = &[
    RocksDbSettings::DEFAULT,
    LEVEL,
    RocksDbSettings { name: "level-direct", use_direct_io_for_flush_and_compaction: true, ..LEVEL },
    RocksDbSettings { name: "level-lz4", tree: RocksDbTree { lz4: true, ..TREE }, ..LEVEL },
    RocksDbSettings { name: "level-ordered", unordered_write: false, ..LEVEL },
    RocksDbSettings { name: "level-pipelined", unordered_write: false, enable_pipelined_write: true, ..LEVEL },
    RocksDbSettings { name: "level-two-jobs", max_background_jobs: 2, ..LEVEL },
    RocksDbSettings { name: "level-subcompactions", tree: RocksDbTree { max_subcompactions: 2, ..TREE }, ..LEVEL },
    RocksDbSettings {
        name: "level-small-memtables",
        write_buffer_bytes: 16 << 20,
        tree: RocksDbTree { max_write_buffer_number: 8, ..TREE },
        ..LEVEL
    },
    RocksDbSettings { name: "level-late", tree: LATE, ..LEVEL },
    UNIVERSAL,
    RocksDbSettings { name: "universal-direct", use_direct_io_for_flush_and_compaction: true, ..UNIVERSAL },
    RocksDbSettings { name: "level", reads: BLOBS, ..LEVEL },
    RocksDbSettings { name: "level-direct", reads: BLOBS, use_direct_io_for_flush_and_compaction: true, ..LEVEL },
];

/// Compactions begin later and hold writers up later: more is left for afterwards, and for reads.
const LATE: RocksDbTree = RocksDbTree {
    level0_file_num_compaction_trigger: 10,
    level0_slowdown_writes_trigger: 60,
    level0_stop_writes_trigger: 100,
    ..TREE
};

const FJALL: &[FjallSettings] = &[
    FjallSettings::DEFAULT,
    FjallSettings { name: "no-filters", no_filters: true, ..FjallSettings::DEFAULT },
    FjallSettings { name: "four-workers", no_filters: true, worker_threads: Some(4), ..FjallSettings::DEFAULT },
    FjallSettings { name: "small-memtables", no_filters: true, memtable_bytes: 16 << 20, ..FjallSettings::DEFAULT },
    FjallSettings { name: "blobs", no_filters: true, blobs: true, ..FjallSettings::DEFAULT },
];

#[cfg(test)]
mod tests;
