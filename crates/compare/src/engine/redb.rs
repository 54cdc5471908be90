//! redb with the values in its tree.

use super::{Engine, Reads, Resources, locked_version, put};
use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::stream::{Operation, Stream};
use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, TableDefinition};
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

type Records = TableDefinition<'static, &'static [u8], &'static [u8]>;

const RECORDS: Records = TableDefinition::new("records");

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
    let engine = Redb { name, settings: settings.clone(), cache_bytes, commits: AtomicU64::new(0), db };
    // Readers find no table that was never opened for writing.
    engine.make_durable()?;
    Ok(Box::new(engine))
}

impl Redb {
    fn commit(&self, batch: &Batch, durability: Durability) -> std::result::Result<(), redb::Error> {
        let mut transaction = self.db.begin_write()?;
        transaction.set_durability(durability)?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            for (key, value) in batch.records() {
                table.insert(key, value)?;
            }
        }
        Ok(transaction.commit()?)
    }

    fn table(&self) -> std::result::Result<ReadOnlyTable<&'static [u8], &'static [u8]>, redb::Error> {
        Ok(self.db.begin_read()?.open_table(RECORDS)?)
    }
}

impl Engine for Redb {
    fn write(&self, batch: &Batch) -> Result<()> {
        let commit = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        let durability =
            if commit.is_multiple_of(COMMITS_PER_DURABLE) { Durability::Immediate } else { Durability::None };
        self.commit(batch, durability).map_err(Error::engine(&self.name, "write"))
    }

    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = Batch::default();
        batch.push(key, value);
        self.commit(&batch, Durability::Immediate).map_err(Error::engine(&self.name, "put"))
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let got = || -> std::result::Result<Option<Vec<u8>>, redb::Error> {
            Ok(self.table()?.get(key)?.map(|value| value.value().to_vec()))
        };
        got().map_err(Error::engine(&self.name, "get"))
    }

    fn run(&self, _reads: Reads, stream: &mut Stream) -> Result<()> {
        let mut batch = Batch::default();
        let mut next = stream.next();
        while next.is_some() {
            let table = self.table().map_err(Error::engine(&self.name, "begin to read"))?;
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
            for record in self.table()?.range(from..)?.take(limit as usize) {
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
        self.commit(&Batch::default(), Durability::Immediate).map_err(Error::engine(&self.name, "sync"))
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
