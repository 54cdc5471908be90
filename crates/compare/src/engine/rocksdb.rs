//! RocksDB, with every setting that bears on small durable writes named.

use super::Engine;
use crate::error::{Error, Result};
use crate::records::Records;
use rust_rocksdb::{DB, DBCompressionType, Options, WaitForCompactOptions, WriteBatch, WriteOptions};
use serde::Serialize;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The settings that the sweep varies. Everything else is as RocksDB comes, without compression: the values are random.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RocksDbSettings {
    /// The name in options, tables and files.
    pub name: &'static str,
    /// The write-ahead log and the memtable have separate queues of writers.
    pub enable_pipelined_write: bool,
    /// Writers of one group insert into the memtable on their own; snapshots become weaker.
    pub unordered_write: bool,
    /// The writers of one group insert into the memtable in parallel.
    pub allow_concurrent_memtable_write: bool,
    /// Waiting writers spin before they sleep.
    pub enable_write_thread_adaptive_yield: bool,
    /// For how long they spin at most, in microseconds.
    pub write_thread_max_yield_usec: u64,
    /// From which duration of one yield on, in microseconds, others are taken to want the core.
    pub write_thread_slow_yield_usec: u64,
    /// Writes that pass the memtable by have a queue of their own.
    pub two_write_queues: bool,
    /// Log records wait in memory for an explicit flush. Off in every setting: an acknowledged put has to be durable.
    pub manual_wal_flush: bool,
    /// Start writing the log back each time it has grown by this many bytes; 0 leaves that to the sync.
    pub wal_bytes_per_sync: u64,
    /// Old log files kept for overwriting, which spares the file system's metadata at each sync.
    pub recycle_log_file_num: usize,
    /// Preallocate files, the log among them (1.1 times the memtable's size), with `fallocate`.
    pub allow_fallocate: bool,
    /// Threads for flushes and compactions.
    pub max_background_jobs: i32,
    /// Bytes in a memtable.
    pub write_buffer_bytes: usize,
    /// Flushes and compactions bypass the page cache.
    pub use_direct_io_for_flush_and_compaction: bool,
}

impl RocksDbSettings {
    /// RocksDB as it comes.
    pub const DEFAULT: RocksDbSettings = RocksDbSettings {
        name: "default",
        enable_pipelined_write: false,
        unordered_write: false,
        allow_concurrent_memtable_write: true,
        enable_write_thread_adaptive_yield: true,
        write_thread_max_yield_usec: 100,
        write_thread_slow_yield_usec: 3,
        two_write_queues: false,
        manual_wal_flush: false,
        wal_bytes_per_sync: 0,
        recycle_log_file_num: 0,
        allow_fallocate: true,
        max_background_jobs: 2,
        write_buffer_bytes: 64 << 20,
        use_direct_io_for_flush_and_compaction: false,
    };

    fn options(&self) -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_compression_type(DBCompressionType::None);
        options.set_enable_pipelined_write(self.enable_pipelined_write);
        options.set_unordered_write(self.unordered_write);
        options.set_allow_concurrent_memtable_write(self.allow_concurrent_memtable_write);
        options.set_enable_write_thread_adaptive_yield(self.enable_write_thread_adaptive_yield);
        options.set_write_thread_max_yield_usec(self.write_thread_max_yield_usec);
        options.set_write_thread_slow_yield_usec(self.write_thread_slow_yield_usec);
        options.set_two_write_queues(self.two_write_queues);
        options.set_manual_wal_flush(self.manual_wal_flush);
        options.set_wal_bytes_per_sync(self.wal_bytes_per_sync);
        options.set_recycle_log_file_num(self.recycle_log_file_num);
        options.set_allow_fallocate(self.allow_fallocate);
        options.set_max_background_jobs(self.max_background_jobs);
        options.set_write_buffer_size(self.write_buffer_bytes);
        options.set_use_direct_io_for_flush_and_compaction(self.use_direct_io_for_flush_and_compaction);
        options
    }
}

struct RocksDb {
    name: String,
    settings: RocksDbSettings,
    /// What RocksDB says of itself in its log: the version, and whether CRC32 runs in hardware.
    version: String,
    fast_crc32: String,
    db: DB,
    durable: WriteOptions,
}

/// Records in one write of the preload.
const PRELOAD_BATCH_RECORDS: u64 = 1_000;

pub(super) fn open(directory: &Path, settings: &RocksDbSettings) -> Result<Box<dyn Engine>> {
    let name = format!("rocksdb-{}", settings.name);
    let db = DB::open(&settings.options(), directory).map_err(Error::engine(&name, "open"))?;
    let log_path = directory.join("LOG");
    let log = fs::read_to_string(&log_path).map_err(Error::io("read", &log_path))?;
    let fast_crc32 = after(&log, "Fast CRC32 supported: ");
    if fast_crc32.starts_with("Not supported") {
        eprintln!(
            "warning: this RocksDB has no CRC32 in hardware and is slower for it; build with CXXFLAGS=-march=native"
        );
    }
    let mut durable = WriteOptions::default();
    durable.set_sync(true);
    Ok(Box::new(RocksDb {
        version: after(&log, "RocksDB version: "),
        fast_crc32,
        name,
        settings: settings.clone(),
        db,
        durable,
    }))
}

impl Engine for RocksDb {
    // The log is written here too, only not synced: it leaves used log files for `recycle_log_file_num` to recycle.
    fn preload(&self, records: &mut Records, count: u64) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let mut batch = WriteBatch::default();
            for _ in 0..left.min(PRELOAD_BATCH_RECORDS) {
                let (key, value) = records.next();
                batch.put(key, value);
            }
            self.db.write(&batch).map_err(Error::engine(&self.name, "preload"))?;
            left -= left.min(PRELOAD_BATCH_RECORDS);
        }
        Ok(())
    }

    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.durable).map_err(Error::engine(&self.name, "put"))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.db.get(key).map_err(Error::engine(&self.name, "get"))
    }

    fn finish(&self) -> Result<()> {
        self.db.flush().map_err(Error::engine(&self.name, "flush the memtable"))?;
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(Error::engine(&self.name, "compact"))
    }

    fn settings(&self) -> Value {
        json!({ "version": self.version, "fast_crc32": self.fast_crc32, "options": self.settings })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// The rest of the line that follows `label` in RocksDB's log.
fn after(log: &str, label: &str) -> String {
    log.lines().find_map(|line| line.split_once(label)).map_or("not reported", |(_, rest)| rest.trim()).to_owned()
}
