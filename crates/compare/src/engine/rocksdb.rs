//! RocksDB, with every setting named that bears on small durable writes or on reads of data larger than memory.

use super::{Engine, Reads, Resources, TOGETHER, no_counters, put, run_one_by_one, sum_of};
use crate::batch::Batch;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::stream::{KEY_BYTES, Operation, Stream};
use rust_rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompactionStyle, DBCompressionType,
    MergeOperands, Options, WaitForCompactOptions, WriteBatch, WriteOptions,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The settings that the sweeps vary. Everything else is as RocksDB comes.
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
    /// Merges of a key in one memtable after which the next one is written as the put of what it makes; 0 is never.
    pub max_successive_merges: usize,
    /// Where values lie, and how they are read.
    pub reads: RocksDbReads,
    /// How the tree is flushed and compacted.
    pub tree: RocksDbTree,
}

/// The settings of the sweep for long runs of inserts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RocksDbTree {
    /// Memtables that may wait for their flush, with the one that is written.
    pub max_write_buffer_number: i32,
    /// Compactions of whole sorted runs by their size instead of level by level.
    pub universal_compaction: bool,
    /// Threads that share one compaction.
    pub max_subcompactions: u32,
    /// Start writing a table back each time that it has grown by this many bytes; 0 leaves that to the system.
    pub bytes_per_sync: u64,
    /// Files in level 0 from which on they are compacted.
    pub level0_file_num_compaction_trigger: i32,
    /// Files in level 0 from which on writers are slowed.
    pub level0_slowdown_writes_trigger: i32,
    /// Files in level 0 from which on writers wait.
    pub level0_stop_writes_trigger: i32,
    /// Bytes of a block of a table.
    pub block_bytes: usize,
    /// Blocks are compressed with LZ4; otherwise nothing is.
    pub lz4: bool,
}

impl RocksDbTree {
    /// RocksDB as it comes, without compression: the values are random.
    pub const DEFAULT: RocksDbTree = RocksDbTree {
        max_write_buffer_number: 2,
        universal_compaction: false,
        max_subcompactions: 1,
        bytes_per_sync: 0,
        level0_file_num_compaction_trigger: 4,
        level0_slowdown_writes_trigger: 20,
        level0_stop_writes_trigger: 36,
        block_bytes: 4096,
        lz4: false,
    };

    fn apply(&self, options: &mut Options, blocks: &mut BlockBasedOptions) {
        let compression = if self.lz4 { DBCompressionType::Lz4 } else { DBCompressionType::None };
        options.set_compression_type(compression);
        options.set_max_write_buffer_number(self.max_write_buffer_number);
        if self.universal_compaction {
            options.set_compaction_style(DBCompactionStyle::Universal);
        }
        options.set_max_subcompactions(self.max_subcompactions);
        options.set_bytes_per_sync(self.bytes_per_sync);
        options.set_level_zero_file_num_compaction_trigger(self.level0_file_num_compaction_trigger);
        options.set_level_zero_slowdown_writes_trigger(self.level0_slowdown_writes_trigger);
        options.set_level_zero_stop_writes_trigger(self.level0_stop_writes_trigger);
        blocks.set_block_size(self.block_bytes);
    }
}

/// The settings of the sweep for reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RocksDbReads {
    /// Values lie in blob files (BlobDB) instead of the tree.
    pub blobs: bool,
    /// Blob files of any age are compacted, and at the latest when half of the oldest ones is garbage; otherwise the older
    /// quarter of them.
    pub collects_early: bool,
    /// Gets bypass the page cache.
    pub use_direct_reads: bool,
    /// The block cache, in hundredths of the memory; 0 is RocksDB's own default size.
    pub block_cache_percent: u8,
    /// Bits of the Bloom filter for each key; 0 is no filter.
    pub bloom_bits: u8,
}

impl RocksDbReads {
    /// RocksDB as it comes.
    pub const DEFAULT: RocksDbReads = RocksDbReads {
        blobs: false,
        collects_early: false,
        use_direct_reads: false,
        block_cache_percent: 0,
        bloom_bits: 0,
    };
}

/// The share of garbage that has blob files compacted with [`RocksDbReads::collects_early`].
const EARLY_GARBAGE: f64 = 0.5;

/// The column family of the counters.
const COUNTERS: &str = "counters";

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
        max_successive_merges: 0,
        reads: RocksDbReads::DEFAULT,
        tree: RocksDbTree::DEFAULT,
    };

    fn options(&self, resources: Resources) -> Options {
        let mut options = Options::default();
        options.create_if_missing(true);
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
        options.set_write_buffer_size(resources.write_buffer_bytes(self.write_buffer_bytes as u64) as usize);
        options.set_use_direct_io_for_flush_and_compaction(self.use_direct_io_for_flush_and_compaction);
        options.set_max_successive_merges(self.max_successive_merges);
        options.set_use_direct_reads(self.reads.use_direct_reads);
        options.set_enable_blob_files(self.reads.blobs);
        options.set_enable_blob_gc(self.reads.blobs);
        if self.reads.collects_early {
            options.set_blob_gc_age_cutoff(1.0);
            options.set_blob_gc_force_threshold(EARLY_GARBAGE);
        }
        let mut blocks = BlockBasedOptions::default();
        self.tree.apply(&mut options, &mut blocks);
        if self.reads.bloom_bits > 0 {
            blocks.set_bloom_filter(f64::from(self.reads.bloom_bits), false);
        }
        if let Some(bytes) = self.block_cache_bytes(resources) {
            let cache = Cache::new_lru_cache(bytes as usize);
            blocks.set_block_cache(&cache);
            if self.reads.blobs {
                options.set_blob_cache(&cache);
            }
        }
        options.set_block_based_table_factory(&blocks);
        options
    }

    fn block_cache_bytes(&self, resources: Resources) -> Option<u64> {
        match self.reads.block_cache_percent {
            0 => None,
            percent => resources.memory_percent(percent),
        }
    }
}

struct RocksDb {
    name: String,
    settings: RocksDbSettings,
    resources: Resources,
    /// What RocksDB says of itself in its log: the version, and whether CRC32 runs in hardware.
    version: String,
    fast_crc32: String,
    db: DB,
    durable: WriteOptions,
}

pub(super) fn open(directory: &Path, settings: &RocksDbSettings, resources: Resources) -> Result<Box<dyn Engine>> {
    let name = super::EngineSpec::RocksDb(settings.clone()).to_string();
    let mut options = settings.options(resources);
    let opened = if resources.counters {
        let mut adding = options.clone();
        adding.set_merge_operator_associative("add", add);
        options.create_missing_column_families(true);
        let families = [("default", options.clone()), (COUNTERS, adding)];
        let families = families.map(|(name, options)| ColumnFamilyDescriptor::new(name, options));
        DB::open_cf_descriptors(&options, directory, families)
    } else {
        DB::open(&options, directory)
    };
    let db = opened.map_err(Error::engine(&name, "open"))?;
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
        resources,
        db,
        durable,
    }))
}

/// The sum of what was there and of all operands; partial sums are made alike.
fn add(_key: &[u8], base: Option<&[u8]>, operands: &MergeOperands) -> Option<Vec<u8>> {
    let mut sum = 0u64;
    for part in base.into_iter().chain(operands) {
        sum = sum.wrapping_add(u64::from_le_bytes(part.try_into().ok()?));
    }
    Some(sum.to_le_bytes().to_vec())
}

impl Engine for RocksDb {
    // The log is written here too, only not synced: it leaves used log files for `recycle_log_file_num` to recycle.
    fn write(&self, batch: &Batch) -> Result<()> {
        let mut writes = WriteBatch::default();
        batch.records().for_each(|(key, value)| writes.put(key, value));
        self.db.write(&writes).map_err(Error::engine(&self.name, "write"))
    }

    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.db.put_opt(key, value, &self.durable).map_err(Error::engine(&self.name, "put"))
    }

    fn put_in_class(&self, key: &[u8], value: &[u8], class: Class) -> Result<()> {
        match class {
            Class::Sync => self.put_durable(key, value),
            Class::Interval | Class::None => self.db.put(key, value).map_err(Error::engine(&self.name, "put")),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.db.get(key).map_err(Error::engine(&self.name, "get"))
    }

    fn add(&self, key: &[u8], number: u64, class: Class) -> Result<()> {
        let (counters, operand) = (self.counters()?, number.to_le_bytes());
        let merged = match class {
            Class::Sync => self.db.merge_cf_opt(counters, key, operand, &self.durable),
            Class::Interval | Class::None => self.db.merge_cf(counters, key, operand),
        };
        merged.map_err(Error::engine(&self.name, "merge"))
    }

    fn counter(&self, key: &[u8]) -> Result<Option<u64>> {
        let value = self.db.get_cf(self.counters()?, key).map_err(Error::engine(&self.name, "get"))?;
        value.map(|value| sum_of(&self.name, &value)).transpose()
    }

    fn way_to_add(&self) -> &'static str {
        "an associative merge operator"
    }

    fn ways_to_read(&self) -> Vec<Reads> {
        vec![Reads::OneByOne, TOGETHER]
    }

    fn run(&self, reads: Reads, stream: &mut Stream) -> Result<()> {
        match reads {
            Reads::Together(count) => self.run_together(count, stream),
            _ => run_one_by_one(self, stream, |key, seen| {
                let value = self.db.get_pinned(key).map_err(Error::engine(&self.name, "get"))?;
                value.iter().for_each(|value| seen(value));
                Ok(())
            }),
        }
    }

    fn scan(&self, from: &[u8], limit: u64, seen: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<Option<u64>> {
        let mut records = self.db.raw_iterator();
        records.seek(from);
        let mut count = 0;
        while count < limit
            && let Some((key, value)) = records.item()
        {
            count += 1;
            if !seen(key, value) {
                break;
            }
            records.next();
        }
        records.status().map_err(Error::engine(&self.name, "scan"))?;
        Ok(Some(count))
    }

    fn make_durable(&self) -> Result<()> {
        self.db.flush_wal(true).map_err(Error::engine(&self.name, "sync the log"))
    }

    fn finish(&self) -> Result<()> {
        self.db.flush().map_err(Error::engine(&self.name, "flush the memtable"))?;
        if let Ok(counters) = self.counters() {
            self.db.flush_cf(counters).map_err(Error::engine(&self.name, "flush the memtable of the counters"))?;
        }
        self.db.wait_for_compact(&WaitForCompactOptions::default()).map_err(Error::engine(&self.name, "compact"))
    }

    fn settings(&self) -> Value {
        json!({
            "version": self.version,
            "fast_crc32": self.fast_crc32,
            "options": self.settings,
            "block_cache_bytes": self.settings.block_cache_bytes(self.resources),
            "write_buffer_bytes": self.resources.write_buffer_bytes(self.settings.write_buffer_bytes as u64),
            "io_uring": "built in and allowed: MultiGet reads blocks of a file side by side",
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl RocksDb {
    fn counters(&self) -> Result<&ColumnFamily> {
        self.db.cf_handle(COUNTERS).ok_or_else(|| no_counters(&self.name))
    }

    fn run_together(&self, count: usize, stream: &mut Stream) -> Result<()> {
        let mut batch = Batch::default();
        let mut numbers: Vec<u64> = Vec::with_capacity(count);
        loop {
            numbers.clear();
            while numbers.len() < count {
                match stream.next() {
                    None => break,
                    Some(Operation::Get(number)) => numbers.push(number),
                    Some(Operation::Put(number)) => put(self, stream, &mut batch, number)?,
                }
            }
            if numbers.is_empty() {
                return Ok(());
            }
            // RocksDB would sort the keys itself; it is spared that.
            let mut keys: Vec<([u8; KEY_BYTES], u64)> =
                numbers.iter().map(|&number| (stream.key(number), number)).collect();
            keys.sort_unstable();
            let values = self.db.batched_multi_get_pinned(keys.iter().map(|(key, _)| key), true);
            for (value, &(_, number)) in values.into_iter().zip(&keys) {
                let value = value.map_err(Error::engine(&self.name, "get many"))?;
                stream.answer(number, value.as_deref());
            }
        }
    }
}

/// The rest of the line that follows `label` in RocksDB's log.
fn after(log: &str, label: &str) -> String {
    log.lines().find_map(|line| line.split_once(label)).map_or("not reported", |(_, rest)| rest.trim()).to_owned()
}
