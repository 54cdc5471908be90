//! The contents that the store must have.

use std::collections::BTreeMap;

use crate::IndexKind;

/// Keys of each table.
pub(super) const KEYS: u8 = 16;

/// The tables, by their numbers. The last one is there if the script says so.
pub(super) const TABLES: [(&str, IndexKind); 4] =
    [("hash", IndexKind::Hash), ("lsm", IndexKind::Lsm), ("ingested", IndexKind::Lsm), ("lmdb", IndexKind::Lmdb)];

/// The table that is only ever made with its contents.
pub(super) const INGESTED: usize = 2;

/// A table of kind `lmdb`.
pub(super) const LMDB: usize = 3;

/// The records of a table, by the numbers of their keys: keys have the order of their numbers.
pub(super) type Records = BTreeMap<u8, Vec<u8>>;

/// The records of all tables; `None` where there is no such table.
pub(super) type Contents = [Option<Records>; TABLES.len()];

/// A key that follows from a number; some are long.
pub(super) fn key(number: u8) -> Vec<u8> {
    let mut key = bound(number);
    key.resize(if number == 3 { 5000 } else { 2 + usize::from(number) }, b'.');
    key
}

/// The first bytes of that key, which no earlier one has: a bound of ranges may not be long.
pub(super) fn bound(number: u8) -> Vec<u8> {
    vec![b'k', number]
}

/// The number from which a key follows.
pub(super) fn number_of(key: &[u8]) -> u8 {
    assert!(key[0] == b'k' && *key == self::key(key[1]), "a key that nobody has written");
    key[1]
}

/// One change of a table, which has this number.
#[derive(Clone, Debug)]
pub(super) enum Change {
    Put(usize, u8, Vec<u8>),
    Delete(usize, u8),
    Merge(usize, u8, Vec<u8>),
    /// From the first number on, up to the second one, which is spared; `None` to the end.
    DeleteRange(usize, u8, Option<u8>),
    Truncate(usize),
    /// Made with its contents.
    Ingest(Records),
    /// See `Ingest`.
    Drop,
}

impl Change {
    /// Nothing changes in a table that is not there.
    fn apply(&self, contents: &mut Contents) {
        let mut with = |table: usize, change: &dyn Fn(&mut Records)| contents[table].iter_mut().for_each(change);
        match self {
            Change::Put(table, key, value) => with(*table, &|records| drop(records.insert(*key, value.clone()))),
            Change::Delete(table, key) => with(*table, &|records| drop(records.remove(key))),
            Change::Merge(table, key, operand) => {
                with(*table, &|records| records.entry(*key).or_default().extend_from_slice(operand));
            }
            Change::DeleteRange(table, start, end) => {
                with(*table, &|records| {
                    records.retain(|key, _| key < start || end.as_ref().is_some_and(|end| key >= end));
                });
            }
            Change::Truncate(table) => with(*table, &Records::clear),
            Change::Ingest(records) => contents[INGESTED] = Some(records.clone()),
            Change::Drop => contents[INGESTED] = None,
        }
    }
}

/// The state after all changes, or after a crash one after at least so many of them.
#[derive(Default)]
pub(super) struct Model {
    base: Contents,
    /// What is there after all changes.
    now: Contents,
    changes: Vec<Vec<Change>>,
    /// How many of them were acknowledged, and how many of these a power cut spares.
    pub(super) acknowledged: usize,
    pub(super) durable: usize,
}

impl Model {
    /// Tables with these contents.
    pub(super) fn new(base: Contents) -> Model {
        Model { now: base.clone(), base, ..Model::default() }
    }

    /// What is there after all changes.
    pub(super) fn now(&self) -> &Contents {
        &self.now
    }

    /// How many changes there were.
    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Adds changes that are there together or not at all.
    pub(super) fn push(&mut self, changes: Vec<Change>) {
        changes.iter().for_each(|change| change.apply(&mut self.now));
        self.changes.push(changes);
    }

    /// Takes the last changes back, which were refused.
    pub(super) fn pop(&mut self) {
        self.changes.pop();
        self.now = self.after(self.changes.len());
    }

    /// Everything was acknowledged; it is durable, too, if so said.
    pub(super) fn acknowledge(&mut self, durable: bool) {
        self.acknowledged = self.changes.len();
        if durable {
            self.durable = self.changes.len();
        }
    }

    /// The newest state from which so many changes, or more, give what was found.
    pub(super) fn matching(&self, required: usize, found: &Contents) -> Option<usize> {
        (required..=self.changes.len()).rev().find(|changes| self.after(*changes) == *found)
    }

    fn after(&self, changes: usize) -> Contents {
        let mut contents = self.base.clone();
        self.changes[..changes].iter().flatten().for_each(|change| change.apply(&mut contents));
        contents
    }
}
