//! The databases: their tables (`database.rs`), with the locks, the watched keys and the durability of their writes.

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use aiodb::merge::Add;
use aiodb::{Batch, Db, Durability, GetDriver, Options, Sequence, Table, TableModes, TableStats};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{Either, ready};

use crate::changes::{ChangedKey, Changes};
use crate::collection::{CONTENTS_KEY, Owner};
use crate::config::Division;
use crate::database::DatabaseTables;
use crate::entry::{Entry, stored_key};
use crate::entry_cache::{Counts, EntryCache, Moment};
use crate::expiring::Expired;
use crate::failures::Failures;
use crate::flusher::Flusher;
use crate::locks::{Claim, Database, Held, Key, Locks};
use crate::packed::Packed;
use crate::refusal::{Refusal, is_unreadable};
use crate::saves::Saves;
use crate::sizes::{Say, Sizes};
use crate::storage::{Shares, Wish};
use crate::waiters::Waiters;
use crate::watch::Watchers;

/// What stands for a sequence while a write is under way: later than all.
const UNDER_WAY: u64 = u64::MAX;

/// All databases of a server.
pub(crate) struct Keyspace {
    db: Db,
    tables: Vec<DatabaseTables>,
    sizes: Sizes,
    cache: EntryCache,
    locks: Locks,
    /// Who watches which keys.
    pub(crate) watchers: Watchers,
    /// Who waits for elements of which keys.
    pub(crate) waiters: Waiters,
    /// What the store has failed at, for a load.
    pub(crate) failures: Failures,
    durability: Durability,
    /// Of the class `sync`: the thread that flushes.
    flusher: Option<Flusher>,
    /// Of the class `sync`: the last write to the keys of each stripe.
    written: Box<[AtomicU64]>,
}

impl Keyspace {
    /// Opens the store with a number of databases, or makes it. The keys of one whose size is not known are counted; `say` is told.
    pub(crate) fn open(path: &Path, databases: u16, mut options: Options, say: &Say) -> aiodb::Result<Keyspace> {
        let durability = options.durability;
        options.merge_operators = options.merge_operators.with(Add);
        // The engine has what is left, for elements of larger collections.
        let (entry_bytes, packed_bytes) = crate::config::parts_of_cache(options.cache_bytes);
        options.cache_bytes -= entry_bytes + packed_bytes;
        let db = Db::open(path, options)?;
        let tables = (0..databases).map(|number| DatabaseTables::open(&db, number));
        let tables = tables.collect::<aiodb::Result<Vec<_>>>()?;
        let (sizes, cache) = (Sizes::open(&db)?, EntryCache::new(entry_bytes, packed_bytes));
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
        let keyspace = Keyspace {
            db,
            tables,
            sizes,
            cache,
            locks: Locks::new(),
            watchers: Watchers::default(),
            waiters: Waiters::default(),
            failures: Failures::default(),
            durability,
            flusher,
            written,
        };
        keyspace.count_unknown(say)?;
        Ok(keyspace)
    }

    /// Counts the keys of databases of which the store does not say how many they have.
    fn count_unknown(&self, say: &Say) -> aiodb::Result<()> {
        for database in 0..self.databases() {
            let size = match self.sizes.of(database) {
                Err(error) if is_unreadable(&error) => None,
                size => size?,
            };
            if size.is_none() {
                self.sizes.count(&self.db, database, self.tables(database), say)?;
            }
        }
        Ok(())
    }

    /// Who carries out gets that need the device, see [`Db::get_driver`].
    pub(crate) fn get_driver(&self) -> aiodb::Result<Option<GetDriver>> {
        self.db.get_driver()
    }

    /// Makes everything durable.
    pub(crate) fn sync(&self) -> aiodb::Result<()> {
        self.db.sync()
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

    /// Changes what engine and caches may take of memory. Fails where the engine takes more in any case, and changes nothing then.
    pub(crate) fn divide_memory(&self, division: &Division) -> aiodb::Result<()> {
        self.db.set_memory_bytes(division.engine_bytes)?;
        let (entry_bytes, packed_bytes) = crate::config::parts_of_cache(division.cache_bytes);
        self.cache.resize(entry_bytes, packed_bytes);
        Ok(())
    }

    /// What memory keeps of each database by preference.
    pub(crate) fn modes(&self) -> Vec<TableModes> {
        self.tables.iter().map(DatabaseTables::modes).collect()
    }

    /// Changes what memory keeps of databases by preference, at once: all that is wanted, or nothing. Durable when it returns; waits for the device.
    pub(crate) fn set_modes<'a>(&self, wishes: impl Iterator<Item = &'a Wish>) -> aiodb::Result<()> {
        let _changing: Vec<_> = self.tables.iter().map(DatabaseTables::lock).collect();
        let before = self.modes();
        let mut modes = before.clone();
        wishes.for_each(|wish| wish.apply(&mut modes));
        let cache = |modes: &[TableModes]| {
            self.tables.iter().zip(modes).try_for_each(|(tables, modes)| tables.cache_values(*modes))
        };
        let of_tables = self.tables.iter().zip(&modes);
        let wanted: Vec<_> =
            of_tables.flat_map(|(tables, modes)| tables.names().map(move |name| (name, *modes))).collect();
        // The engine looks at both when it is told of modes.
        cache(&modes)?;
        let outcome = self.db.set_modes_of_tables(&wanted);
        if outcome.is_err() {
            cache(&before)?;
        }
        outcome
    }

    /// What of each database is in the engine's memory, and then of all of them.
    pub(crate) fn shares(&self, tables: &[TableStats]) -> (Vec<Shares>, Shares) {
        let by_name: HashMap<&str, &TableStats> = tables.iter().map(|table| (&*table.name, table)).collect();
        let of = |database: &DatabaseTables| -> Vec<_> {
            database.names().filter_map(|name| by_name.get(name).copied()).collect()
        };
        let databases: Vec<Vec<&TableStats>> = self.tables.iter().map(of).collect();
        let each = databases.iter().map(|tables| Shares::of(tables.iter().copied())).collect();
        (each, Shares::of(databases.iter().flatten().copied()))
    }

    /// The engine's own figures.
    pub(crate) fn stats(&self) -> aiodb::Stats {
        self.db.stats()
    }

    /// The engine's counts and times.
    pub(crate) fn metrics(&self) -> aiodb::Metrics {
        self.db.metrics()
    }

    /// The figures of the cache of entries.
    pub(crate) fn cache_counts(&self) -> Counts {
        self.cache.counts()
    }

    /// See [`Saves::save`].
    pub(crate) fn save(&self, saves: &Saves) -> Result<(), Refusal> {
        saves.save(&self.db)
    }

    /// See [`Saves::save_in_background`].
    pub(crate) fn save_in_background(&self, saves: &Saves) -> Result<(), Refusal> {
        saves.save_in_background(&self.db)
    }

    /// What is claimed, if nobody has a part of it.
    pub(crate) fn try_claim(&self, claim: &Claim) -> Option<Held<'_>> {
        self.locks.try_claim(claim)
    }

    /// Waits for what is claimed.
    pub(crate) async fn claim(&self, claim: &Claim) -> Held<'_> {
        self.locks.claim(claim).await
    }

    /// The entry of a key, through the engine's pipelined reads, if it was neither read nor written lately: it is read from when this is
    /// first polled.
    pub(crate) fn get<'a>(
        &'a self,
        key: &Key,
    ) -> impl Future<Output = Result<Option<Entry>, Refusal>> + Unpin + use<'a> {
        if let Some(entry) = self.cache.get(key) {
            return Either::Left(ready(Ok(Some(entry))));
        }
        let moment = self.cache.moment(key);
        let get = self.table(key.database).get_async(&stored_key(&key.name));
        let key = key.clone();
        Either::Right(get.map(move |stored| self.read(&key, stored, moment)))
    }

    /// All elements of a collection, if they are few and were read or written lately. The caller has a claim on its key.
    pub(crate) fn packed(&self, owner: Owner) -> Option<Packed> {
        self.cache.elements(owner)
    }

    /// Keeps all elements of a key's collection. The caller has a claim on the key.
    pub(crate) fn keep_packed(&self, key: &Key, owner: Owner, elements: Packed) {
        self.cache.keep_elements(key, owner, elements);
    }

    /// The entry of a key, read with the calling thread.
    pub(crate) fn get_blocking(&self, key: &Key) -> Result<Option<Entry>, Refusal> {
        if let Some(entry) = self.cache.get(key) {
            return Ok(Some(entry));
        }
        let moment = self.cache.moment(key);
        self.read(key, self.table(key.database).get(&stored_key(&key.name)), moment)
    }

    fn read(
        &self,
        key: &Key,
        stored: aiodb::Result<Option<Vec<u8>>>,
        moment: Moment,
    ) -> Result<Option<Entry>, Refusal> {
        let Some(stored) = self.noted(stored)? else { return Ok(None) };
        let entry = Entry::decode(stored)?;
        self.cache.keep_read(key, &entry, moment, &self.locks);
        Ok(Some(entry))
    }

    /// Keys that have expired and are still there, see [`DatabaseTables::expired`].
    pub(crate) fn expired(&self, database: Database, now_ms: u64) -> Result<Expired, Refusal> {
        self.tables(database).expired(now_ms)
    }

    /// See [`DatabaseTables::expired_after`].
    pub(crate) fn expired_after(&self, database: Database, row: &[u8], now_ms: u64) -> Result<Expired, Refusal> {
        self.tables(database).expired_after(row, now_ms)
    }

    /// Whether this row says of this key that it expires, see [`DatabaseTables::expires`].
    pub(crate) async fn expires(&self, key: &Key, row: &[u8]) -> Result<bool, Refusal> {
        self.tables(key.database).expires(&stored_key(&key.name), row).await
    }

    /// No key of a database expires before this time.
    pub(crate) fn first_expiry_ms(&self, database: Database) -> u64 {
        self.tables(database).first_expiry_ms()
    }

    /// A number for a new collection, which no other has or had.
    pub(crate) fn new_number(&self, database: Database) -> Result<u64, Refusal> {
        self.failures.note(self.tables(database).new_number(self.append_class()))
    }

    /// The value of an element, through the engine's pipelined reads.
    pub(crate) async fn element(&self, owner: Owner, name: &[u8]) -> Result<Option<Bytes>, Refusal> {
        let Some(elements) = self.tables(owner.database).elements() else { return Ok(None) };
        Ok(self.noted(elements.get_async(&owner.element_key(name)).await)?.map(Bytes::from))
    }

    /// The value of an element, read with the calling thread.
    pub(crate) fn element_blocking(&self, owner: Owner, name: &[u8]) -> Result<Option<Bytes>, Refusal> {
        let Some(elements) = self.tables(owner.database).elements() else { return Ok(None) };
        Ok(self.noted(elements.get(&owner.element_key(name)))?.map(Bytes::from))
    }

    /// Makes changes, all of them or none. The caller has a claim on their keys. [`Keyspace::wait`] makes them durable.
    pub(crate) async fn write(&self, changes: &Changes<'_>) -> Result<Sequence, Refusal> {
        self.failures.check()?;
        for row in &changes.rows {
            let tables = self.tables(row.database);
            if tables.elements().is_none() {
                // To make a table waits for the device: another thread takes this thread's other connections.
                self.noted(tokio::task::block_in_place(|| tables.elements_or_made().map(|_| ())))?;
            }
        }
        let batch = self.batch(changes)?;
        let stripes = self.stripes(changes);
        let before = mark(&stripes);
        let writing = self.cache.write(!changes.cleared.is_empty(), changes.keys.iter());
        changes.expiring().for_each(|(database, at_ms)| self.tables(database).expiring.write_begins(at_ms));
        let outcome = self.db.write_async_with(batch, self.append_class()).await;
        changes.expiring().for_each(|(database, at_ms)| self.tables(database).expiring.write_ends(at_ms));
        writing.ended(changes.keys.iter().map(|changed| (changed, outcome.is_ok())));
        unmark(&stripes, &before, outcome.as_ref().ok());
        self.noted(outcome)
    }

    /// Whether replies wait until what they show is on the device.
    pub(crate) fn flushes(&self) -> bool {
        self.flusher.is_some()
    }

    /// The last write, if those who see it are to wait until it is durable.
    pub(crate) fn last_awaited(&self) -> Option<Sequence> {
        self.flusher.as_ref().map(|_| self.db.sequence())
    }

    /// Returns when a write is as durable as its class says.
    pub(crate) async fn wait(&self, sequence: Sequence) -> Result<(), Refusal> {
        match &self.flusher {
            Some(flusher) => self.noted(flusher.wait(sequence).await),
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
        self.noted(flusher.wait_for_number(last, || self.db.sequence()).await)
    }

    /// See [`Failures::note`].
    fn noted<T>(&self, outcome: aiodb::Result<T>) -> Result<T, Refusal> {
        self.failures.note(outcome.map_err(Refusal::from))
    }

    fn tables(&self, database: Database) -> &DatabaseTables {
        &self.tables[usize::from(database)]
    }

    fn table(&self, database: Database) -> &Table {
        &self.tables(database).keys
    }

    fn elements(&self, database: Database) -> &Table {
        self.tables(database).elements().expect("the table was made for the first number or row")
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
            if let Some(elements) = self.tables(*database).elements() {
                batch.delete_range(elements, &CONTENTS_KEY, &[])?;
            }
            self.sizes.clear(&mut batch, *database)?;
        }
        for owner in &changes.dropped {
            // Where there is no table, as one may have dropped it with the command, there are no elements.
            if let Some(elements) = self.tables(owner.database).elements() {
                batch.delete_range(elements, &owner.prefix(), &owner.end())?;
            }
        }
        for row in &changes.rows {
            match &row.value {
                None => batch.delete(self.elements(row.database), &row.key)?,
                Some(value) => batch.put(self.elements(row.database), &row.key, value)?,
            };
        }
        for ChangedKey { key, entry, .. } in &changes.keys {
            let (table, name) = (self.table(key.database), stored_key(&key.name));
            match entry {
                None => batch.delete(table, &name)?,
                Some(entry) => batch.put(table, &name, &entry.encode())?,
            };
        }
        for (database, more) in &changes.sizes {
            self.sizes.add(&mut batch, *database, *more)?;
        }
        Ok(batch)
    }

    /// Of the class `sync`: the stripes that changes concern.
    fn stripes<'a>(&'a self, changes: &'a Changes<'_>) -> Vec<&'a AtomicU64> {
        match &self.flusher {
            None => Vec::new(),
            Some(_) if !changes.cleared.is_empty() => self.written.iter().collect(),
            Some(_) => changes.keys.iter().map(|changed| &self.written[changed.key.stripe()]).collect(),
        }
    }
}

/// Says of stripes that a write is under way, and what was said of them before.
fn mark(stripes: &[&AtomicU64]) -> Vec<u64> {
    stripes.iter().map(|stripe| stripe.swap(UNDER_WAY, Ordering::SeqCst)).collect()
}

/// Says of stripes that the write is there, or was refused.
fn unmark(stripes: &[&AtomicU64], before: &[u64], sequence: Option<&Sequence>) {
    // From the last to the first, so that a stripe with two keys gets back its first value.
    for (stripe, before) in stripes.iter().zip(before).rev() {
        stripe.store(sequence.map_or(*before, |sequence| sequence.number()), Ordering::SeqCst);
    }
}

mod scans;
#[cfg(test)]
mod tests;
