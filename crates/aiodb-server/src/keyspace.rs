//! The databases: one table of the store for each, with the locks, the watched keys and the durability of their writes.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use aiodb::{Batch, Db, Durability, IndexKind, Options, ScanOptions, Sequence, Table};
use bytes::Bytes;

use crate::entry::{Entry, original_key, stored_key};
use crate::flusher::Flusher;
use crate::locks::{Claim, Database, Held, Key, Locks};
use crate::refusal::Refusal;
use crate::watch::Watchers;

/// What stands for a sequence while a write is under way: later than all.
const UNDER_WAY: u64 = u64::MAX;

/// All databases of a server.
pub(crate) struct Keyspace {
    db: Db,
    tables: Vec<Table>,
    locks: Locks,
    /// Who watches which keys.
    pub(crate) watchers: Watchers,
    durability: Durability,
    /// Of the class `sync`: the thread that flushes.
    flusher: Option<Flusher>,
    /// Of the class `sync`: the last write to the keys of each stripe.
    written: Box<[AtomicU64]>,
}

/// Changes that are made together.
#[derive(Default)]
pub(crate) struct Changes<'a> {
    /// Databases that are emptied, before anything else.
    pub(crate) cleared: Vec<Database>,
    /// Keys that get a value, or lose it.
    pub(crate) keys: Vec<(&'a Key, Option<&'a Entry>)>,
}

/// The name of a database's table.
fn table_name(database: usize) -> String {
    format!("db{database}")
}

impl Keyspace {
    /// Opens the store with a number of databases, or makes it.
    pub(crate) fn open(path: &Path, databases: u16, options: Options) -> aiodb::Result<Keyspace> {
        let durability = options.durability;
        let db = Db::open(path, options)?;
        let tables = (0..usize::from(databases)).map(|number| db.table_or_create(&table_name(number), IndexKind::Lmdb));
        let tables = tables.collect::<aiodb::Result<Vec<_>>>()?;
        let (flusher, stripes) = match durability {
            Durability::Sync => {
                let cause = |error: std::io::Error| aiodb::Error::Io {
                    action: "start a thread for",
                    path: path.to_path_buf(),
                    kind: error.kind(),
                    reason: error.to_string(),
                };
                (Some(Flusher::start(db.clone()).map_err(cause)?), crate::locks::STRIPES)
            }
            _ => (None, 0),
        };
        let written = (0..stripes).map(|_| AtomicU64::new(0)).collect();
        Ok(Keyspace { db, tables, locks: Locks::new(), watchers: Watchers::default(), durability, flusher, written })
    }

    /// Makes everything durable and closes the store.
    pub(crate) fn close(&self) -> aiodb::Result<()> {
        if let Some(flusher) = &self.flusher {
            flusher.stop();
        }
        self.db.close()
    }

    /// How many databases there are.
    pub(crate) fn databases(&self) -> u16 {
        self.tables.len() as u16
    }

    /// The class of all writes.
    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    /// The engine's own figures.
    pub(crate) fn stats(&self) -> aiodb::Stats {
        self.db.stats()
    }

    /// Waits for what is claimed.
    pub(crate) async fn claim(&self, claim: &Claim) -> Held<'_> {
        self.locks.claim(claim).await
    }

    /// The entry of a key, through the engine's pipelined reads.
    pub(crate) async fn get(&self, key: &Key) -> Result<Option<Entry>, Refusal> {
        let stored = self.table(key.database).get_async(&stored_key(&key.name)).await?;
        stored.map(Entry::decode).transpose()
    }

    /// The entry of a key, read with the calling thread.
    pub(crate) fn get_blocking(&self, key: &Key) -> Result<Option<Entry>, Refusal> {
        let stored = self.table(key.database).get(&stored_key(&key.name))?;
        stored.map(Entry::decode).transpose()
    }

    /// Keys of a database in their order, from those that come after `after` on, for as long as `visit` wants more.
    pub(crate) fn visit_names(
        &self,
        database: Database,
        after: Option<&[u8]>,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), Refusal> {
        let mut options = ScanOptions::all().keys_only();
        if let Some(after) = after {
            options = options.after(&stored_key(after));
        }
        let mut scan = self.table(database).scan(options)?;
        while let Some((key, _)) = scan.next_record()? {
            if !visit(original_key(key)) {
                break;
            }
        }
        Ok(())
    }

    /// The last key of a database.
    pub(crate) fn last_name(&self, database: Database) -> Result<Option<Bytes>, Refusal> {
        let mut scan = self.table(database).scan(ScanOptions::all().keys_only().backward().limit(1))?;
        Ok(scan.next_record()?.map(|(key, _)| Bytes::copy_from_slice(original_key(key))))
    }

    /// Makes changes, all of them or none. The caller has a claim on their keys. [`Keyspace::wait`] makes them durable.
    pub(crate) async fn write(&self, changes: &Changes<'_>) -> Result<Sequence, Refusal> {
        let batch = self.batch(changes)?;
        let before = self.mark(changes);
        let outcome = self.db.write_async_with(batch, self.append_class()).await;
        self.unmark(changes, &before, outcome.as_ref().ok());
        Ok(outcome?)
    }

    /// Returns when a write is as durable as its class says.
    pub(crate) async fn wait(&self, sequence: Sequence) -> Result<(), Refusal> {
        match &self.flusher {
            Some(flusher) => Ok(flusher.wait(sequence).await?),
            None => Ok(()),
        }
    }

    /// Returns when all that a read of these keys can have seen is as durable as its class says; `None` are all keys.
    pub(crate) async fn wait_for_seen<'a>(&self, keys: Option<impl Iterator<Item = &'a Key>>) -> Result<(), Refusal> {
        let Some(flusher) = &self.flusher else { return Ok(()) };
        let last = match keys {
            None => UNDER_WAY,
            Some(keys) => keys.map(|key| self.written[key.stripe()].load(Ordering::SeqCst)).max().unwrap_or(0),
        };
        Ok(flusher.wait_for_number(last, || self.db.sequence()).await?)
    }

    fn table(&self, database: Database) -> &Table {
        &self.tables[usize::from(database)]
    }

    /// Durable writes are made in memory first, where the next command finds them, and flushed together afterwards.
    fn append_class(&self) -> Durability {
        match self.durability {
            Durability::Sync => Durability::None,
            other => other,
        }
    }

    fn batch(&self, changes: &Changes<'_>) -> aiodb::Result<Batch> {
        let mut batch = Batch::new();
        for database in &changes.cleared {
            // The least key of all, to the end.
            batch.delete_range(self.table(*database), &[0], &[])?;
        }
        for (key, entry) in &changes.keys {
            let (table, name) = (self.table(key.database), stored_key(&key.name));
            match entry {
                None => batch.delete(table, &name)?,
                Some(entry) => match entry.expires_ms {
                    None => batch.put(table, &name, &entry.encode())?,
                    Some(at) => batch.put_until(table, &name, &entry.encode(), at)?,
                },
            };
        }
        Ok(batch)
    }

    /// The stripes that changes concern.
    fn stripes<'a>(&'a self, changes: &'a Changes<'_>) -> Box<dyn Iterator<Item = &'a AtomicU64> + 'a> {
        if self.flusher.is_some() && !changes.cleared.is_empty() {
            return Box::new(self.written.iter());
        }
        Box::new(changes.keys.iter().filter_map(|(key, _)| self.written.get(key.stripe())))
    }

    /// Says of the stripes that a write is under way, and what was said of them before.
    fn mark(&self, changes: &Changes<'_>) -> Vec<u64> {
        self.stripes(changes).map(|stripe| stripe.swap(UNDER_WAY, Ordering::SeqCst)).collect()
    }

    fn unmark(&self, changes: &Changes<'_>, before: &[u64], sequence: Option<&Sequence>) {
        let before = before.iter().rev();
        let stripes: Vec<_> = self.stripes(changes).collect();
        // From the last to the first, so that a stripe with two keys gets back its first value.
        for (stripe, before) in stripes.into_iter().rev().zip(before) {
            stripe.store(sequence.map_or(*before, |sequence| sequence.number()), Ordering::SeqCst);
        }
    }
}
