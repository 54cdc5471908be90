//! redb with the values in its tree.

use super::{Engine, IN_A_TRANSACTION, Reads, Resources, locked_version, no_counters, put, sum_of};
use crate::batch::Batch;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::stream::{Operation, Stream};
use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, Table, TableDefinition};
use serde::Serialize;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// The settings that the sweep varies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RedbSettings {
    /// The name in options, tables and files.
    pub name: &'static str,
    /// redb's own cache, in hundredths of the memory; the page cache has the rest.
    pub cache_percent: u8,
}

type Pairs = TableDefinition<'static, &'static [u8], &'static [u8]>;

const RECORDS: Pairs = TableDefinition::new("records");
const COUNTERS: Pairs = TableDefinition::new("counters");

/// One volatile commit in so many is made durable: until then redb frees no page that was overwritten.
const COMMITS_PER_DURABLE: u64 = 1_000;

/// Gets in one read transaction: opening one costs locks, keeping one keeps old pages.
const GETS_PER_TRANSACTION: u32 = 256;

struct Redb {
    name: String,
    settings: RedbSettings,
    cache_bytes: Option<u64>,
    /// Commits begun. Relaxed: a count that publishes nothing.
    commits: AtomicU64,
    db: Database,
    counters: bool,
}

pub(super) fn open(directory: &Path, settings: &RedbSettings, resources: Resources) -> Result<Box<dyn Engine>> {
    let name = format!("redb-{}", settings.name);
    fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
    let cache_bytes = resources.memory_percent(settings.cache_percent);
    let mut builder = Database::builder();
    if let Some(bytes) = cache_bytes {
        builder.set_cache_size(bytes as usize);
    }
    let db = builder.create(directory.join("records.redb")).map_err(Error::engine(&name, "open"))?;
    let (settings, counters) = (settings.clone(), resources.counters);
    let engine = Redb { name, settings, cache_bytes, commits: AtomicU64::new(0), db, counters };
    // Readers find no table that was never opened for writing.
    engine.make_durable()?;
    if counters {
        let opened = engine.commit(COUNTERS, Durability::Immediate, |_| Ok(()));
        opened.map_err(Error::engine(&engine.name, "open a table"))?;
    }
    Ok(Box::new(engine))
}

impl Redb {
    /// Changes a table in a transaction.
    fn commit<T>(
        &self,
        table: Pairs,
        durability: Durability,
        change: impl FnOnce(&mut Table<&'static [u8], &'static [u8]>) -> std::result::Result<T, redb::Error>,
    ) -> std::result::Result<T, redb::Error> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        let changed = change(&mut transaction.open_table(table)?)?;
        transaction.commit()?;
        Ok(changed)
    }

    fn commit_batch(&self, batch: &Batch, durability: Durability) -> std::result::Result<(), redb::Error> {
        self.commit(RECORDS, durability, |table| {
            for (key, value) in batch.records() {
                table.insert(key, value)?;
            }
            Ok(())
        })
    }

    /// That of the next commit which may be volatile.
    fn next_durability(&self) -> Durability {
        let commit = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        if commit.is_multiple_of(COMMITS_PER_DURABLE) { Durability::Immediate } else { Durability::None }
    }

    fn table(&self, table: Pairs) -> std::result::Result<ReadOnlyTable<&'static [u8], &'static [u8]>, redb::Error> {
        Ok(self.db.begin_read()?.open_table(table)?)
    }

    /// The value of a key in a table.
    fn value(&self, table: Pairs, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let got = || -> std::result::Result<Option<Vec<u8>>, redb::Error> {
            Ok(self.table(table)?.get(key)?.map(|value| value.value().to_vec()))
        };
        got().map_err(Error::engine(&self.name, "get"))
    }

    /// An error if there are no counters.
    fn check_counters(&self) -> Result<()> {
        if self.counters { Ok(()) } else { Err(no_counters(&self.name)) }
    }
}

impl Engine for Redb {
    fn write(&self, batch: &Batch) -> Result<()> {
        self.commit_batch(batch, self.next_durability()).map_err(Error::engine(&self.name, "write"))
    }

    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = Batch::default();
        batch.push(key, value);
        self.commit_batch(&batch, Durability::Immediate).map_err(Error::engine(&self.name, "put"))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.value(RECORDS, key)
    }

    fn add(&self, key: &[u8], added: u64, class: Class) -> Result<()> {
        self.check_counters()?;
        let durability = if class == Class::Sync { Durability::Immediate } else { self.next_durability() };
        let add = |table: &mut Table<&'static [u8], &'static [u8]>| -> std::result::Result<Result<()>, redb::Error> {
            let old = table.get(key)?.map(|value| sum_of(&self.name, value.value())).transpose();
            if let Ok(old) = &old {
                table.insert(key, &old.unwrap_or(0).wrapping_add(added).to_le_bytes()[..])?;
            }
            Ok(old.map(drop))
        };
        self.commit(COUNTERS, durability, add).map_err(Error::engine(&self.name, "add in a transaction"))?
    }

    fn counter(&self, key: &[u8]) -> Result<Option<u64>> {
        self.check_counters()?;
        self.value(COUNTERS, key)?.map(|value| sum_of(&self.name, &value)).transpose()
    }

    fn way_to_add(&self) -> &'static str {
        IN_A_TRANSACTION
    }

    fn run(&self, _reads: Reads, stream: &mut Stream) -> Result<()> {
        let mut batch = Batch::default();
        let mut next = stream.next();
        while next.is_some() {
            let table = self.table(RECORDS).map_err(Error::engine(&self.name, "begin to read"))?;
            let mut gets = 0;
            while let Some(Operation::Get(number)) = next
                && gets < GETS_PER_TRANSACTION
            {
                let value = table.get(&stream.key(number)[..]).map_err(Error::engine(&self.name, "get"))?;
                stream.answer(number, value.as_ref().map(|value| value.value()));
                gets += 1;
                next = stream.next();
            }
            drop(table);
            while let Some(Operation::Put(number)) = next {
                put(self, stream, &mut batch, number)?;
                next = stream.next();
            }
        }
        Ok(())
    }

    fn scan(&self, from: &[u8], limit: u64, seen: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<Option<u64>> {
        let mut scanned = || -> std::result::Result<u64, redb::Error> {
            let mut count = 0;
            for record in self.table(RECORDS)?.range(from..)?.take(limit as usize) {
                let (key, value) = record?;
                count += 1;
                if !seen(key.value(), value.value()) {
                    break;
                }
            }
            Ok(count)
        };
        scanned().map(Some).map_err(Error::engine(&self.name, "scan"))
    }

    fn make_durable(&self) -> Result<()> {
        self.commit_batch(&Batch::default(), Durability::Immediate).map_err(Error::engine(&self.name, "sync"))
    }

    fn finish(&self) -> Result<()> {
        self.make_durable()
    }

    fn settings(&self) -> Value {
        json!({
            "version": locked_version("redb"),
            "options": self.settings,
            "cache_bytes": self.cache_bytes,
            "commits_per_durable": COMMITS_PER_DURABLE,
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.close().map_err(Error::engine(&self.name, "close"))
    }
}
