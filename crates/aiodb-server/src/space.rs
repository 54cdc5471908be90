//! What a group of commands sees and changes: the databases as they are, with the group's own changes on top.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use bytes::Bytes;

use crate::entry::Entry;
use crate::keyspace::{Changes, Keyspace};
use crate::locks::{Database, Key};
use crate::refusal::Refusal;

/// The databases with changes that are not written yet.
pub(crate) struct Space<'a> {
    keyspace: &'a Keyspace,
    /// The time of the whole group, in milliseconds since 1970.
    pub(crate) now_ms: u64,
    known: HashMap<Key, Known>,
    cleared: BTreeSet<Database>,
    /// Keys that were changed, also those that are as before again.
    touched: BTreeSet<Key>,
}

struct Known {
    entry: Option<Entry>,
    is_changed: bool,
}

impl<'a> Space<'a> {
    pub(crate) fn new(keyspace: &'a Keyspace, now_ms: u64) -> Space<'a> {
        let (known, cleared, touched) = (HashMap::new(), BTreeSet::new(), BTreeSet::new());
        Space { keyspace, now_ms, known, cleared, touched }
    }

    /// Takes an entry that was read ahead.
    pub(crate) fn learn(&mut self, key: Key, entry: Option<Entry>) {
        self.known.entry(key).or_insert(Known { entry, is_changed: false });
    }

    /// The entry of a key; one that has expired is none. Reads with the calling thread what was not read ahead.
    pub(crate) fn get(&mut self, key: &Key) -> Result<Option<Entry>, Refusal> {
        if !self.known.contains_key(key) {
            let is_cleared = self.cleared.contains(&key.database);
            let entry = if is_cleared { None } else { self.keyspace.get_blocking(key)? };
            self.learn(key.clone(), entry);
        }
        Ok(self.known[key].entry.clone().filter(|entry| !entry.has_expired(self.now_ms)))
    }

    /// Whether a key has a value.
    pub(crate) fn contains(&mut self, key: &Key) -> Result<bool, Refusal> {
        Ok(self.get(key)?.is_some())
    }

    /// Gives a key a value; one that has expired already takes it away.
    pub(crate) fn put(&mut self, key: Key, entry: Entry) {
        let entry = Some(entry).filter(|entry| !entry.has_expired(self.now_ms));
        self.change(key, entry);
    }

    /// Takes a key's value away.
    pub(crate) fn delete(&mut self, key: Key) {
        self.change(key, None);
    }

    /// Empties a database.
    pub(crate) fn clear(&mut self, database: Database) -> Result<(), Refusal> {
        for key in self.keyspace.watchers.keys_of(database) {
            if self.contains(&key)? {
                self.touched.insert(key);
            }
        }
        self.known.retain(|key, _| key.database != database);
        self.cleared.insert(database);
        Ok(())
    }

    /// Keys of a database in their order that come after `after`, at most `most`.
    pub(crate) fn names(
        &self,
        database: Database,
        after: Option<&[u8]>,
        most: usize,
        mut wanted: impl FnMut(&[u8]) -> bool,
    ) -> Result<Vec<Bytes>, Refusal> {
        let own: BTreeMap<&[u8], bool> = self.own_names(database);
        let mut names: Vec<Bytes> = Vec::new();
        if !self.cleared.contains(&database) && most > 0 {
            self.keyspace.visit_names(database, after, |name| {
                if !own.contains_key(name) && wanted(name) {
                    names.push(Bytes::copy_from_slice(name));
                }
                names.len() < most
            })?;
        }
        let is_after = |name: &[u8]| after.is_none_or(|after| name > after);
        let there = own.into_iter().filter(|(name, is_there)| *is_there && is_after(name) && wanted(name));
        names.extend(there.map(|(name, _)| Bytes::copy_from_slice(name)));
        names.sort_unstable();
        names.truncate(most);
        Ok(names)
    }

    /// How many keys a database has.
    pub(crate) fn count(&self, database: Database) -> Result<usize, Refusal> {
        let own = self.own_names(database);
        let mut count = own.values().filter(|is_there| **is_there).count();
        if !self.cleared.contains(&database) {
            self.keyspace.visit_names(database, None, |name| {
                count += usize::from(!own.contains_key(name));
                true
            })?;
        }
        Ok(count)
    }

    /// Keys that are known, and whether they have a value.
    fn own_names(&self, database: Database) -> BTreeMap<&[u8], bool> {
        let is_there = |known: &Known| known.entry.as_ref().is_some_and(|entry| !entry.has_expired(self.now_ms));
        let of_database = self.known.iter().filter(|(key, _)| key.database == database);
        of_database.map(|(key, known)| (&key.name[..], is_there(known))).collect()
    }

    /// What is to be written.
    pub(crate) fn changes(&self) -> Changes<'_> {
        let changed = self.known.iter().filter(|(_, known)| known.is_changed);
        Changes {
            cleared: self.cleared.iter().copied().collect(),
            keys: changed.map(|(key, known)| (key, known.entry.as_ref())).collect(),
        }
    }

    /// Whether something is to be written.
    pub(crate) fn is_changed(&self) -> bool {
        !self.cleared.is_empty() || self.known.values().any(|known| known.is_changed)
    }

    /// Keys that were changed.
    pub(crate) fn touched(&self) -> impl Iterator<Item = &Key> {
        self.touched.iter()
    }

    fn change(&mut self, key: Key, entry: Option<Entry>) {
        self.touched.insert(key.clone());
        self.known.insert(key, Known { entry, is_changed: true });
    }
}
