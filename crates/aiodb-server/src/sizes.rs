//! How many keys each database has: a row for each in a table of its own, by the number of the database (2 bytes, big-endian). The writes
//! that add keys or take them away change it as they do, so that it is as durable as they are, and right after a crash. What has
//! expired and is not removed yet counts.
//!
//! A database without such a row is empty, or was written by a program that did not count: it is counted when the store is opened.

use aiodb::{Batch, Db, Durability, Error, IndexKind, MAX_KEY_BYTES, ScanOptions, Snapshot, Table, TableOptions};

use crate::collection::{expiring_number, expiring_string_key};
use crate::database::DatabaseTables;
use crate::entry::Entry;
use crate::expiring;
use crate::locks::Database;
use crate::refusal::is_unreadable;

/// The name of the table.
const NAME: &str = "sizes";

/// The operator that adds to a row.
const OPERATOR: &str = "add";

/// Changes between two writes while keys are counted, and their bytes, about.
const AT_ONCE: usize = 1024;
const BYTES_AT_ONCE: usize = 1 << 20;

/// Is told what happens, a line at a time.
pub(crate) type Say<'a> = dyn Fn(&str) + 'a;

pub(crate) struct Sizes(Table);

impl Sizes {
    /// The table, made if it is missing.
    pub(crate) fn open(db: &Db) -> aiodb::Result<Sizes> {
        match db.table(NAME) {
            Err(Error::NoSuchTable { .. }) => {
                let options = TableOptions { merge: Some(OPERATOR.into()), ..IndexKind::default().into() };
                db.create_table_with(NAME, options).map(Sizes)
            }
            Ok(table) if table.options().merge.as_deref() != Some(OPERATOR) => {
                Err(Error::NoMergeOperator { name: table.options().merge })
            }
            table => table.map(Sizes),
        }
    }

    /// How many keys a database has; `None` if it has had none, or that is not known.
    pub(crate) fn of(&self, database: Database) -> aiodb::Result<Option<u64>> {
        Ok(self.0.get(&key(database))?.map(|stored| decode(&stored)))
    }

    /// How many it had at the snapshot's moment.
    pub(crate) fn at(&self, snapshot: &Snapshot, database: Database) -> aiodb::Result<u64> {
        Ok(snapshot.get(&self.0, &key(database))?.map_or(0, |stored| decode(&stored)))
    }

    /// Lets a batch add to the number, or take from it.
    pub(crate) fn add(&self, batch: &mut Batch, database: Database, more: i64) -> aiodb::Result<()> {
        batch.merge(&self.0, &key(database), &more.to_le_bytes()).map(|_| ())
    }

    /// Lets a batch say that there are no keys. It only deletes, which a full disk does not refuse.
    pub(crate) fn clear(&self, batch: &mut Batch, database: Database) -> aiodb::Result<()> {
        batch.delete(&self.0, &key(database)).map(|_| ())
    }

    /// Counts the keys of a database that nobody uses yet, and makes the rows by which its strings expire: who did not count had none.
    pub(crate) fn count(&self, db: &Db, database: Database, tables: &DatabaseTables, say: &Say) -> aiodb::Result<()> {
        let mut writes = Writes { db, batch: Batch::new(), bytes: 0 };
        // Those of a count that did not end, or from before another program changed keys.
        let mut rows = tables.elements().map(|elements| elements.scan(expiring::span(0))).transpose()?;
        while let Some((elements, scan)) = tables.elements().zip(rows.as_mut())
            && let Some((row, _)) = scan.next_record()?
        {
            if expiring_number(row).is_none() {
                writes.batch.delete(elements, row)?;
                writes.added(row.len())?;
            }
        }
        let (mut size, mut scan, mut last) = (0u64, tables.keys.iterate()?, Vec::new());
        loop {
            if size == 1 {
                say(&format!(
                    "counting the keys of database {database}, whose number is not known: each is read, once"
                ));
            }
            let (stored, value) = match scan.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                // A value that cannot be read is one key, which its command will be told.
                Err(error) if is_unreadable(&error) => {
                    let after = if last.is_empty() { ScanOptions::all() } else { ScanOptions::all().after(&last) };
                    let mut names = tables.keys.scan(after.keys_only().limit(1))?;
                    let Some((stored, _)) = names.next_record()? else { break };
                    (size, last) = (size + 1, stored.to_vec());
                    scan = tables.keys.scan(ScanOptions::all().after(&last))?;
                    continue;
                }
                Err(error) => return Err(error),
            };
            size += 1;
            last.clear();
            last.extend_from_slice(stored);
            writes.make_lasting(tables, stored, value, say)?;
        }
        if size > 0 {
            writes.batch.put(&self.0, &key(database), &size.to_le_bytes())?;
        }
        writes.end()
    }
}

/// Writes of a count, a batch at a time.
struct Writes<'a> {
    db: &'a Db,
    batch: Batch,
    bytes: usize,
}

impl Writes<'_> {
    /// Says that so many bytes were added to the batch, which is written when it is large.
    fn added(&mut self, bytes: usize) -> aiodb::Result<()> {
        self.bytes += bytes;
        if self.bytes < BYTES_AT_ONCE && self.batch.len() < AT_ONCE {
            return Ok(());
        }
        self.bytes = 0;
        self.end()
    }

    /// Makes the row by which a string expires, in place of the time that the engine may know: it must not remove the record by itself
    /// any more, since nobody would take it from the size.
    fn make_lasting(&mut self, tables: &DatabaseTables, stored: &[u8], value: &[u8], say: &Say) -> aiodb::Result<()> {
        // A record of another program counts, as it does in KEYS, and is refused where it is read.
        let Ok(entry) = Entry::decode(value.to_vec()) else { return Ok(()) };
        let (Some(at_ms), None) = (entry.expires_ms, entry.collection()) else { return Ok(()) };
        let row = expiring_string_key(at_ms.get(), stored);
        if row.len() > MAX_KEY_BYTES {
            say(&format!("a key of {} bytes will not expire any more: it is too long", stored.len()));
            self.batch.put(&tables.keys, stored, &Entry { expires_ms: None, ..entry }.encode())?;
        } else {
            self.batch.put(&tables.keys, stored, value)?.put(tables.elements_or_made()?, &row, &[])?;
        }
        self.added(value.len() + 2 * row.len())
    }

    fn end(&mut self) -> aiodb::Result<()> {
        if !self.batch.is_empty() {
            self.db.write_with(&std::mem::take(&mut self.batch), Durability::None)?;
        }
        Ok(())
    }
}

fn key(database: Database) -> [u8; 2] {
    database.to_be_bytes()
}

fn decode(stored: &[u8]) -> u64 {
    stored.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes).max(0) as u64)
}

#[cfg(test)]
mod tests;
