//! fjall, a log-structured tree in Rust, with its values in the tree or in blob files.

use super::{Engine, IN_A_TRANSACTION, Reads, Resources, locked_version, no_counters, run_one_by_one, sum_of};
use crate::batch::Batch;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::stream::Stream;
use fjall::config::{BlockSizePolicy, CompressionPolicy, FilterPolicy};
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
    SingleWriterTxDatabase, SingleWriterTxKeyspace, UserValue,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::iter;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The settings that the sweep varies. Nothing is compressed: the values are random.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FjallSettings {
    /// The name in options, tables and files.
    pub name: &'static str,
    /// fjall's own cache, in hundredths of the memory; the page cache has the rest.
    pub cache_percent: u8,
    /// Values lie in files of their own.
    pub blobs: bool,
    /// Filters are left out where almost every key that is asked for exists.
    pub expect_hits: bool,
    /// No table has a filter: a get of a key that does not exist reads the device.
    pub no_filters: bool,
    /// Bytes of a memtable, where memory allows.
    pub memtable_bytes: u64,
    /// Threads for flushes and compactions; None for as many as there are processors, at most four.
    pub worker_threads: Option<usize>,
}

impl FjallSettings {
    /// What the sweeps begin with: fjall as it comes, but for a small cache and the filters that it leaves out.
    pub const DEFAULT: FjallSettings = FjallSettings {
        name: "default",
        cache_percent: 10,
        blobs: false,
        expect_hits: true,
        no_filters: false,
        memtable_bytes: 64 << 20,
        worker_threads: None,
    };
}

/// Bytes of a data block: one value.
const BLOCK_BYTES: u32 = 4096;

/// How often it is asked whether compaction is done.
const POLL: Duration = Duration::from_millis(20);

/// Quiet looks in a row after which compaction is taken to be done: a flush may set off another one.
const QUIET_LOOKS: u32 = 5;

struct Fjall {
    name: String,
    settings: FjallSettings,
    cache_bytes: Option<u64>,
    memtable_bytes: u64,
    db: Database,
    records: Keyspace,
    /// Written in transactions, one at a time.
    counters: Option<SingleWriterTxKeyspace>,
}

pub(super) fn open(directory: &Path, settings: &FjallSettings, resources: Resources) -> Result<Box<dyn Engine>> {
    let name = format!("fjall-{}", settings.name);
    let cache_bytes = resources.memory_percent(settings.cache_percent);
    let memtable_bytes = resources.write_buffer_bytes(settings.memtable_bytes);
    let mut builder = SingleWriterTxDatabase::builder(directory);
    if let Some(bytes) = cache_bytes {
        builder = builder.cache_size(bytes);
    }
    if let Some(threads) = settings.worker_threads {
        builder = builder.worker_threads(threads);
    }
    let db = builder.open().map_err(Error::engine(&name, "open"))?;
    let options = || {
        let blobs = KvSeparationOptions::default().compression(CompressionType::None);
        let options = KeyspaceCreateOptions::default()
            .data_block_compression_policy(CompressionPolicy::disabled())
            .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
            .expect_point_read_hits(settings.expect_hits)
            .max_memtable_size(memtable_bytes)
            .with_kv_separation(settings.blobs.then_some(blobs));
        if settings.no_filters { options.filter_policy(FilterPolicy::disabled()) } else { options }
    };
    let keyspace = |keyspace| db.keyspace(keyspace, options).map_err(Error::engine(&name, "open a keyspace"));
    // Puts need no transaction.
    let records = keyspace("records")?.inner().clone();
    let counters = resources.counters.then(|| keyspace("counters")).transpose()?;
    let db = db.inner().clone();
    Ok(Box::new(Fjall { name, settings: settings.clone(), cache_bytes, memtable_bytes, db, records, counters }))
}

impl Engine for Fjall {
    fn write(&self, batch: &Batch) -> Result<()> {
        let written = || -> fjall::Result<()> {
            if batch.len() == 1 {
                return batch.records().try_for_each(|(key, value)| self.records.insert(key, value));
            }
            let mut writes = self.db.batch();
            batch.records().for_each(|(key, value)| writes.insert(&self.records, key, value));
            writes.commit()
        };
        written().map_err(Error::engine(&self.name, "write"))
    }

    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let put = || -> fjall::Result<()> {
            self.records.insert(key, value)?;
            self.db.persist(PersistMode::SyncData)
        };
        put().map_err(Error::engine(&self.name, "put"))
    }

    // The journal is handed to the system with each insert.
    fn put_in_class(&self, key: &[u8], value: &[u8], class: Class) -> Result<()> {
        match class {
            Class::Sync => self.put_durable(key, value),
            Class::Interval | Class::None => self.records.insert(key, value).map_err(Error::engine(&self.name, "put")),
        }
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.value(&self.records, key)
    }

    fn add(&self, key: &[u8], added: u64, class: Class) -> Result<()> {
        let mut failure = None;
        let update = |value: Option<&UserValue>| match value.map_or(Ok(0), |value| sum_of(&self.name, value)) {
            Ok(old) => Some(old.wrapping_add(added).to_le_bytes().into()),
            Err(error) => {
                failure = Some(error);
                value.cloned()
            }
        };
        self.counters()?.fetch_update(key, update).map_err(Error::engine(&self.name, "add in a transaction"))?;
        if let Some(error) = failure {
            return Err(error);
        }
        if class == Class::Sync {
            self.db.persist(PersistMode::SyncData).map_err(Error::engine(&self.name, "sync"))?;
        }
        Ok(())
    }

    fn counter(&self, key: &[u8]) -> Result<Option<u64>> {
        self.value(self.counters()?.inner(), key)?.map(|value| sum_of(&self.name, &value)).transpose()
    }

    fn way_to_add(&self) -> &'static str {
        IN_A_TRANSACTION
    }

    fn run(&self, _reads: Reads, stream: &mut Stream) -> Result<()> {
        run_one_by_one(self, stream, |key, seen| {
            let value = self.records.get(key).map_err(Error::engine(&self.name, "get"))?;
            value.iter().for_each(|value| seen(value));
            Ok(())
        })
    }

    fn scan(&self, from: &[u8], limit: u64, seen: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<Option<u64>> {
        let mut count = 0;
        for record in self.records.range(from..).take(limit as usize) {
            let (key, value) = record.into_inner().map_err(Error::engine(&self.name, "scan"))?;
            count += 1;
            if !seen(&key, &value) {
                break;
            }
        }
        Ok(Some(count))
    }

    fn make_durable(&self) -> Result<()> {
        self.db.persist(PersistMode::SyncAll).map_err(Error::engine(&self.name, "sync"))
    }

    fn finish(&self) -> Result<()> {
        self.make_durable()?;
        let counters = self.counters.as_ref().map(|counters| counters.inner());
        for keyspace in iter::once(&self.records).chain(counters) {
            keyspace.rotate_memtable_and_wait().map_err(Error::engine(&self.name, "flush the memtable"))?;
        }
        let mut quiet = 0;
        while quiet < QUIET_LOOKS {
            thread::sleep(POLL);
            let busy = self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
        }
        Ok(())
    }

    fn settings(&self) -> Value {
        json!({
            "version": locked_version("fjall"),
            "options": self.settings,
            "cache_bytes": self.cache_bytes,
            "memtable_bytes": self.memtable_bytes,
            "block_bytes": BLOCK_BYTES,
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

impl Fjall {
    fn value(&self, keyspace: &Keyspace, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let value = keyspace.get(key).map_err(Error::engine(&self.name, "get"))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn counters(&self) -> Result<&SingleWriterTxKeyspace> {
        self.counters.as_ref().ok_or_else(|| no_counters(&self.name))
    }
}
