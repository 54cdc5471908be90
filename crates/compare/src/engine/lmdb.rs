//! LMDB with the values in its tree.

use super::{Engine, IN_A_TRANSACTION, Reads, Resources, no_counters, put, sum_of};
use crate::batch::Batch;
use crate::class::Class;
use crate::error::{Error, Result};
use crate::stream::{Operation, Stream};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, WithoutTls};
use serde::Serialize;
use serde_json::{Value, json};
use std::fs;
use std::ops::Bound;
use std::path::Path;

/// The settings that the sweep varies. Commits are not synced in any of them: `make_durable` and `put_durable` do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LmdbSettings {
    /// The name in options, tables and files.
    pub name: &'static str,
    /// Let the system read ahead of page faults (LMDB's default). Off: `MDB_NORDAHEAD`.
    pub read_ahead: bool,
    /// Write through the memory map (`MDB_WRITEMAP`).
    pub write_map: bool,
}

/// Threads that read at the same time.
const MAX_READERS: u32 = 1024;

/// The map is as large as the data so many times over: a value of 4096 bytes takes two pages, and overwritten pages
/// stay as long as anyone reads them.
const MAP_TO_DATA: u64 = 4;

/// The smallest map.
const MIN_MAP_BYTES: u64 = 1 << 30;

/// Gets in one read transaction: opening one costs a lock, keeping one keeps old pages.
const GETS_PER_TRANSACTION: u32 = 256;

struct Lmdb {
    name: String,
    settings: LmdbSettings,
    map_bytes: u64,
    env: Env<WithoutTls>,
    records: Pairs,
    counters: Option<Pairs>,
}

type Pairs = Database<'static, Bytes, Bytes>;

pub(super) fn open(directory: &Path, settings: &LmdbSettings, resources: Resources) -> Result<Box<dyn Engine>> {
    let name = format!("lmdb-{}", settings.name);
    fs::create_dir_all(directory).map_err(Error::io("create", directory))?;
    let map_bytes = resources.data_bytes.unwrap_or(0).next_multiple_of(1 << 20) * MAP_TO_DATA + MIN_MAP_BYTES;
    let mut flags = EnvFlags::NO_SYNC;
    flags.set(EnvFlags::NO_READ_AHEAD, !settings.read_ahead);
    flags.set(EnvFlags::WRITE_MAP, settings.write_map);
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_bytes as usize).max_readers(MAX_READERS).max_dbs(u32::from(resources.counters));
    // SAFETY: without syncing only a power cut can damage the file, and the file ends with this comparison.
    unsafe { options.flags(flags) };
    // SAFETY: the directory belongs to this comparison, which opens it in one process at a time and changes nothing.
    let env = unsafe { options.open(directory) }.map_err(Error::engine(&name, "open"))?;
    let opened = |database| open_database(&env, database).map_err(Error::engine(&name, "open a database"));
    let records = opened(None)?;
    let counters = resources.counters.then(|| opened(Some("counters"))).transpose()?;
    Ok(Box::new(Lmdb { name, settings: settings.clone(), map_bytes, env, records, counters }))
}

fn open_database(env: &Env<WithoutTls>, name: Option<&str>) -> heed::Result<Pairs> {
    let opened = env.create_databases_and_commit(env.write_txn()?, |opener, transaction| -> heed::Result<_> {
        Ok(CommitOrAbort::<_, ()>::Commit(opener.create_database(transaction, name)?))
    })?;
    Ok(opened.unwrap_commit())
}

impl Engine for Lmdb {
    fn write(&self, batch: &Batch) -> Result<()> {
        let written = || -> heed::Result<()> {
            let mut transaction = self.env.write_txn()?;
            for (key, value) in batch.records() {
                self.records.put(&mut transaction, key, value)?;
            }
            transaction.commit()
        };
        written().map_err(Error::engine(&self.name, "write"))
    }

    fn put_durable(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let mut batch = Batch::default();
        batch.push(key, value);
        self.write(&batch)?;
        self.make_durable()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.value(&self.records, key)
    }

    fn add(&self, key: &[u8], added: u64, class: Class) -> Result<()> {
        let counters = self.counters()?;
        let failed = |error: heed::Error| Error::engine(&self.name, "add in a transaction")(error);
        let mut transaction = self.env.write_txn().map_err(failed)?;
        let old =
            counters.get(&transaction, key).map_err(failed)?.map(|value| sum_of(&self.name, value)).transpose()?;
        let sum = old.unwrap_or(0).wrapping_add(added);
        counters.put(&mut transaction, key, &sum.to_le_bytes()).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        if class == Class::Sync { self.make_durable() } else { Ok(()) }
    }

    fn counter(&self, key: &[u8]) -> Result<Option<u64>> {
        self.value(self.counters()?, key)?.map(|value| sum_of(&self.name, &value)).transpose()
    }

    fn way_to_add(&self) -> &'static str {
        IN_A_TRANSACTION
    }

    fn run(&self, _reads: Reads, stream: &mut Stream) -> Result<()> {
        let mut batch = Batch::default();
        let mut next = stream.next();
        while next.is_some() {
            let transaction = self.env.read_txn().map_err(Error::engine(&self.name, "begin to read"))?;
            let mut gets = 0;
            while let Some(Operation::Get(number)) = next
                && gets < GETS_PER_TRANSACTION
            {
                let value = self.records.get(&transaction, &stream.key(number));
                stream.answer(number, value.map_err(Error::engine(&self.name, "get"))?);
                gets += 1;
                next = stream.next();
            }
            drop(transaction);
            while let Some(Operation::Put(number)) = next {
                put(self, stream, &mut batch, number)?;
                next = stream.next();
            }
        }
        Ok(())
    }

    fn scan(&self, from: &[u8], limit: u64, seen: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<Option<u64>> {
        let mut scanned = || -> heed::Result<u64> {
            let transaction = self.env.read_txn()?;
            // LMDB refuses empty keys, also as a bound.
            let first = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
            let range = (first, Bound::Unbounded);
            let mut count = 0;
            for record in self.records.range(&transaction, &range)?.take(limit as usize) {
                let (key, value) = record?;
                count += 1;
                if !seen(key, value) {
                    break;
                }
            }
            Ok(count)
        };
        scanned().map(Some).map_err(Error::engine(&self.name, "scan"))
    }

    fn make_durable(&self) -> Result<()> {
        self.env.force_sync().map_err(Error::engine(&self.name, "sync"))
    }

    fn finish(&self) -> Result<()> {
        self.make_durable()
    }

    fn settings(&self) -> Value {
        let version = heed::lmdb_version();
        json!({ "version": version.string, "options": self.settings, "map_bytes": self.map_bytes })
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.env.prepare_for_closing().wait();
        Ok(())
    }
}

impl Lmdb {
    fn value(&self, database: &Pairs, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let got = || -> heed::Result<Option<Vec<u8>>> {
            let transaction = self.env.read_txn()?;
            Ok(database.get(&transaction, key)?.map(<[u8]>::to_vec))
        };
        got().map_err(Error::engine(&self.name, "get"))
    }

    fn counters(&self) -> Result<&Pairs> {
        self.counters.as_ref().ok_or_else(|| no_counters(&self.name))
    }
}
