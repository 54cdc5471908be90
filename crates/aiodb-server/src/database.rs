//! The tables of a database: one of the store for its keys, and one for the elements of its collections and for what expires, once it has
//! had such.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, OnceLock};

use aiodb::{Db, Durability, IndexKind, Scan, ScanOptions, StorageMode, Table, TableModes, TableOptions};

use crate::collection::{NUMBERS_KEY, expiring_name};
use crate::expiring::{self, Expired, Expiring};
use crate::locks::Database;
use crate::refusal::Refusal;

/// Numbers of collections that are set aside at a time: one small write for so many.
const NUMBERS_AT_ONCE: u64 = 1 << 20;

/// Stored keys that have expired. `None` where each entry says for itself, since more have than are to be remembered, or that cannot be read.
pub(crate) type Gone = Option<HashSet<Vec<u8>>>;

pub(crate) struct DatabaseTables {
    db: Db,
    number: Database,
    pub(crate) keys: Table,
    /// Made with the first collection, or the first key that expires.
    elements: OnceLock<Table>,
    /// Held while `elements` is made, or the modes of both tables change: they have the same.
    changing: Mutex<()>,
    numbers: Mutex<Numbers>,
    /// When its keys expire.
    pub(crate) expiring: Expiring,
}

/// Numbers for collections.
#[derive(Default)]
struct Numbers {
    next: u64,
    /// The first one that the store does not know to be in use.
    end: u64,
}

/// The name of the table of a database's elements.
fn elements_name(database: Database) -> String {
    format!("db{database}.elements")
}

impl DatabaseTables {
    pub(crate) fn open(db: &Db, number: Database) -> aiodb::Result<DatabaseTables> {
        let keys = ordered_table(db, &format!("db{number}"), TableModes::default())?;
        let elements = match db.table(&elements_name(number)) {
            Ok(table) => OnceLock::from(table),
            Err(aiodb::Error::NoSuchTable { .. }) => OnceLock::new(),
            Err(error) => return Err(error),
        };
        let (numbers, expiring) = (Mutex::default(), Expiring::default());
        let tables =
            DatabaseTables { db: db.clone(), number, keys, elements, changing: Mutex::default(), numbers, expiring };
        let modes = tables.modes();
        if let Some(elements) = tables.elements().filter(|elements| elements.modes() != modes) {
            // One of both was given other modes by itself.
            db.set_modes_of_tables(&[(elements.name(), modes)])?;
        }
        tables.cache_values(modes)?;
        Ok(tables)
    }

    /// What memory keeps of the database by preference.
    pub(crate) fn modes(&self) -> TableModes {
        self.keys.modes()
    }

    /// What is read or written lately is kept as entries, by the server. The engine keeps values of keys only where they are wanted in memory.
    pub(crate) fn cache_values(&self, modes: TableModes) -> aiodb::Result<()> {
        self.keys.set_cached(modes.values == StorageMode::Memory)
    }

    /// No table is made until what this returns is dropped.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().expect("no code panics while it makes a table")
    }

    /// The names of the tables that there are.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.keys).chain(self.elements.get()).map(Table::name)
    }

    /// The table of elements and of what expires, if there is one.
    pub(crate) fn elements(&self) -> Option<&Table> {
        self.elements.get()
    }

    /// The table of elements and of what expires.
    pub(crate) fn elements_or_made(&self) -> aiodb::Result<&Table> {
        if self.elements.get().is_none() {
            let _changing = self.lock();
            // Another thread may have made it meanwhile: then it is the same one.
            let _ = self.elements.set(ordered_table(&self.db, &elements_name(self.number), self.modes())?);
        }
        Ok(self.elements.get().expect("it was just set"))
    }

    /// A number for a new collection, which no other has or had. Numbers are set aside by a write of this class.
    pub(crate) fn new_number(&self, class: Durability) -> Result<u64, Refusal> {
        let mut numbers = self.numbers.lock().expect("no code panics while it holds the numbers");
        if numbers.next == numbers.end {
            // The write may wait for the device: another thread takes this thread's other connections.
            *numbers = tokio::task::block_in_place(|| self.set_numbers_aside(class))?;
        }
        numbers.next += 1;
        Ok(numbers.next - 1)
    }

    /// The next numbers, which the store knows to be in use from now on.
    fn set_numbers_aside(&self, class: Durability) -> Result<Numbers, Refusal> {
        let elements = self.elements_or_made()?;
        let stored = elements.get(&NUMBERS_KEY)?.unwrap_or_else(|| 1u64.to_le_bytes().to_vec());
        let wrong = |_| Refusal::Foreign { reason: "of the numbers of collections is no number".into() };
        let next = u64::from_le_bytes(stored.try_into().map_err(wrong)?);
        let end = next + NUMBERS_AT_ONCE;
        // What the log has of the collections comes after this, so a power cut that takes this takes them too.
        elements.put_with(&NUMBERS_KEY, &end.to_le_bytes(), class)?;
        Ok(Numbers { next, end })
    }

    /// No key expires before this time.
    pub(crate) fn first_expiry_ms(&self) -> u64 {
        // Before there is a table for it, no key can.
        self.elements.get().map_or(u64::MAX, |_| self.expiring.first_ms())
    }

    /// The table with what expires, and the time before which nothing does, if something may have.
    pub(crate) fn due_elements(&self, now_ms: u64) -> Option<(&Table, u64)> {
        let first_ms = self.expiring.first_ms();
        self.elements.get().filter(|_| first_ms <= now_ms).map(|elements| (elements, first_ms))
    }

    /// The rows of what expires in a snapshot, before which nothing did before this time. A write may have brought an earlier time
    /// meanwhile, or the sweeper may have found a later one.
    pub(crate) fn due_span(&self, first_ms: u64) -> ScanOptions {
        expiring::span(first_ms.min(self.expiring.first_ms()))
    }

    /// Stored keys, and those of them that have expired, at one moment.
    pub(crate) fn scan_keys(&self, options: ScanOptions, now_ms: u64) -> Result<(Scan, Gone), Refusal> {
        let Some((elements, first_ms)) = self.due_elements(now_ms) else {
            return Ok((self.keys.scan(options.keys_only())?, Some(HashSet::new())));
        };
        let snapshot = self.db.snapshot()?;
        let due = match expiring::due(|rows| snapshot.scan(elements, rows), self.due_span(first_ms), now_ms) {
            Err(refusal) if refusal.is_unreadable() => None,
            due => Some(due?).filter(|due| due.are_all && due.unread.is_empty()),
        };
        let Some(due) = due else { return Ok((snapshot.scan(&self.keys, options)?, None)) };
        let names = due.rows.into_iter().map(|(_, name)| name).collect();
        Ok((snapshot.scan(&self.keys, options.keys_only())?, Some(names)))
    }

    /// Keys that have expired and are still there, those that expired first. One call at a time; reads nothing as long as none can have
    /// expired.
    pub(crate) fn expired(&self, now_ms: u64) -> Result<Expired, Refusal> {
        let Some(elements) = self.elements.get() else { return Ok(Expired::default()) };
        let first_ms = self.expiring.search_begins();
        if first_ms > now_ms {
            return Ok(Expired::default());
        }
        let expired = expiring::due(|rows| elements.scan(rows), expiring::span(first_ms), now_ms)?;
        self.expiring.search_ends(expired.first_ms);
        Ok(expired)
    }

    /// [`DatabaseTables::expired`] of keys whose rows come after this one.
    pub(crate) fn expired_after(&self, row: &[u8], now_ms: u64) -> Result<Expired, Refusal> {
        let Some(elements) = self.elements.get() else { return Ok(Expired::default()) };
        expiring::due(|rows| elements.scan(rows), expiring::span(0).after(row), now_ms)
    }

    /// Whether this row says of this stored key that it expires. That of a collection goes with it to another key.
    pub(crate) async fn expires(&self, stored: &[u8], row: &[u8]) -> Result<bool, Refusal> {
        let Some(elements) = self.elements.get() else { return Ok(false) };
        let value = elements.get_async(row).await?;
        Ok(value.is_some_and(|value| expiring_name(row, &value) == stored))
    }
}

/// The table of this name, made with these modes if it is missing. One that is there may have any ordered index: earlier versions made `lmdb`
/// tables, and a user may have made one.
fn ordered_table(db: &Db, name: &str, modes: TableModes) -> aiodb::Result<Table> {
    match db.table(name) {
        Ok(table) if table.kind().is_ordered() => Ok(table),
        Err(aiodb::Error::NoSuchTable { .. }) => {
            db.create_table_with(name, TableOptions { modes, ..IndexKind::default().into() })
        }
        _ => db.table_or_create(name, IndexKind::default()),
    }
}

#[cfg(test)]
mod tests;
