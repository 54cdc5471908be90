//! RocksDB's settings that bear on small durable puts, each measured at every number of writers, so that the
//! comparison meets RocksDB at its best and anyone can see what else was tried.

use crate::engine::RocksDbSettings;
use crate::report::Spread;
use crate::store::Point;
use std::collections::BTreeMap;

const DEFAULT: RocksDbSettings = RocksDbSettings::DEFAULT;
const RECYCLED: RocksDbSettings = RocksDbSettings { name: "recycled", recycle_log_file_num: 4, ..DEFAULT };

/// Each setting alone, then together with recycled log files.
pub const SETTINGS: &[RocksDbSettings] = &[
    DEFAULT,
    RocksDbSettings { name: "pipelined", enable_pipelined_write: true, ..DEFAULT },
    RocksDbSettings { name: "unordered", unordered_write: true, ..DEFAULT },
    RocksDbSettings { name: "unordered-two-queues", unordered_write: true, two_write_queues: true, ..DEFAULT },
    RocksDbSettings {
        name: "unordered-no-yield",
        unordered_write: true,
        enable_write_thread_adaptive_yield: false,
        ..DEFAULT
    },
    RocksDbSettings {
        name: "unordered-long-yield",
        unordered_write: true,
        write_thread_max_yield_usec: 1_000,
        write_thread_slow_yield_usec: 100,
        ..DEFAULT
    },
    RocksDbSettings { name: "two-queues", two_write_queues: true, ..DEFAULT },
    RocksDbSettings { name: "serial-memtable", allow_concurrent_memtable_write: false, ..DEFAULT },
    RocksDbSettings { name: "no-yield", enable_write_thread_adaptive_yield: false, ..DEFAULT },
    RocksDbSettings {
        name: "long-yield",
        write_thread_max_yield_usec: 1_000,
        write_thread_slow_yield_usec: 100,
        ..DEFAULT
    },
    RocksDbSettings { name: "wal-bytes-per-sync", wal_bytes_per_sync: 1 << 20, ..DEFAULT },
    RocksDbSettings { name: "no-fallocate", allow_fallocate: false, ..DEFAULT },
    RocksDbSettings { name: "four-jobs", max_background_jobs: 4, ..DEFAULT },
    RocksDbSettings { name: "large-memtable", write_buffer_bytes: 256 << 20, ..DEFAULT },
    RocksDbSettings { name: "direct", use_direct_io_for_flush_and_compaction: true, ..DEFAULT },
    RECYCLED,
    RocksDbSettings { name: "recycled-pipelined", enable_pipelined_write: true, ..RECYCLED },
    RocksDbSettings { name: "recycled-unordered", unordered_write: true, ..RECYCLED },
    RocksDbSettings {
        name: "recycled-unordered-no-yield",
        unordered_write: true,
        enable_write_thread_adaptive_yield: false,
        ..RECYCLED
    },
    RocksDbSettings { name: "recycled-serial-memtable", allow_concurrent_memtable_write: false, ..RECYCLED },
    RocksDbSettings { name: "recycled-no-yield", enable_write_thread_adaptive_yield: false, ..RECYCLED },
    RocksDbSettings {
        name: "recycled-no-yield-serial-memtable",
        enable_write_thread_adaptive_yield: false,
        allow_concurrent_memtable_write: false,
        ..RECYCLED
    },
    RocksDbSettings {
        name: "recycled-no-yield-pipelined",
        enable_write_thread_adaptive_yield: false,
        enable_pipelined_write: true,
        ..RECYCLED
    },
    RocksDbSettings {
        name: "recycled-large-memtable",
        write_buffer_bytes: 256 << 20,
        use_direct_io_for_flush_and_compaction: true,
        ..RECYCLED
    },
];

/// The setting of a name.
pub fn setting(name: &str) -> Option<&'static RocksDbSettings> {
    SETTINGS.iter().find(|settings| settings.name == name)
}

/// The name of the engine with the highest median of puts per second at this number of writers.
pub fn best(rounds: &[Vec<Point>], writers: u32) -> Option<&str> {
    let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for point in rounds.iter().flatten().filter(|point| point.writers == writers) {
        rates.entry(&point.engine).or_default().push(point.puts_per_second);
    }
    let medians = rates.into_iter().filter_map(|(engine, rates)| Some((engine, Spread::of(rates)?.median)));
    medians.max_by(|(_, left), (_, right)| left.total_cmp(right)).map(|(engine, _)| engine)
}
