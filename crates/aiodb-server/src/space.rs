//! What a group of commands sees and changes: the databases as they are, with the group's own changes on top.

use std::borrow::Cow;
use std::collections::hash_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::collection::{Collection, Kind, Owner, Span, expiring_key};
use crate::elements::Elements;
use crate::entry::{Entry, stored_key};
use crate::keyspace::{Changes, Keyspace, Row};
use crate::locks::{Database, Key, KeyMap};
use crate::refusal::Refusal;

/// The databases with changes that are not written yet.
pub(crate) struct Space<'a> {
    keyspace: &'a Keyspace,
    /// The time of the whole group, in milliseconds since 1970.
    pub(crate) now_ms: u64,
    known: KeyMap<Known>,
    /// The elements of collections.
    pub(crate) elements: Elements<'a>,
    cleared: BTreeSet<Database>,
    /// Keys that were changed, also those that are as before again.
    touched: BTreeSet<Key>,
    /// Messages to channels, which go out when all that was changed is written.
    pub(crate) published: Vec<(Bytes, Bytes)>,
}

struct Known {
    entry: Option<Entry>,
    is_changed: bool,
    /// Whether it is known what the store has under the key.
    is_read: bool,
    /// The collection that the store has under the key.
    stored: Option<Stored>,
}

/// A collection that is stored.
#[derive(Clone, Copy)]
struct Stored {
    owner: Owner,
    /// The key of the row that says when it expires.
    expires_ms: Option<u64>,
}

impl Stored {
    fn of(key: &Key, entry: &Entry) -> Option<Stored> {
        let owner = Owner { database: key.database, number: entry.collection()?.number };
        Some(Stored { owner, expires_ms: entry.expires_ms.map(u64::from) })
    }

    /// The row of the table of elements by which the collection is found when it has expired.
    fn row<'b>(self, name: Option<&'b Key>) -> Option<Row<'b>> {
        let key = expiring_key(self.expires_ms?, self.owner.number);
        Some(Row { database: self.owner.database, key, value: name.map(|name| stored_key(&name.name)) })
    }
}

impl<'a> Space<'a> {
    pub(crate) fn new(keyspace: &'a Keyspace, now_ms: u64) -> Space<'a> {
        let (known, cleared, touched) = (KeyMap::default(), BTreeSet::new(), BTreeSet::new());
        Space { keyspace, now_ms, known, elements: Elements::new(keyspace), cleared, touched, published: Vec::new() }
    }

    /// Takes the entry that the store has under a key. One that was changed here stays changed.
    pub(crate) fn learn(&mut self, key: Key, entry: Option<Entry>) {
        let stored = entry.as_ref().and_then(|entry| Stored::of(&key, entry));
        match self.known.entry(key) {
            Place::Vacant(place) => {
                place.insert(Known { entry, is_changed: false, is_read: true, stored });
            }
            Place::Occupied(mut place) if !place.get().is_read => {
                let known = place.get_mut();
                (known.is_read, known.stored) = (true, stored);
            }
            Place::Occupied(_) => {}
        }
    }

    /// Keys that were changed whatever they have, where that may be a collection, whose elements must go: they are to be read
    /// before [`Space::changes`].
    pub(crate) fn unread(&self) -> impl Iterator<Item = &Key> {
        let unread = self.known.iter().filter(|(_, known)| !known.is_read).map(|(key, _)| key);
        unread.filter(|key| self.keyspace.has_collections(key.database))
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

    /// The collection that a key, which is known, has in the store.
    pub(crate) fn stored_collection(&self, key: &Key) -> Option<(Owner, Collection)> {
        let known = self.known.get(key)?;
        Some((known.stored?.owner, known.entry.as_ref()?.collection()?))
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
            self.keyspace.visit_names(database, after, self.now_ms, |name| {
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
            self.keyspace.visit_names(database, None, self.now_ms, |name| {
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

    /// A new collection, not under any key yet.
    pub(crate) fn new_collection(&mut self, database: Database, kind: Kind) -> Result<Collection, Refusal> {
        let number = self.keyspace.new_number(database)?;
        self.elements.begin(Owner { database, number });
        Ok(Collection { kind, number, count: 0, first: 0 })
    }

    /// A copy of a collection of one database for another.
    pub(crate) fn copy_collection(
        &mut self,
        from: Database,
        collection: Collection,
        to: Database,
    ) -> Result<Collection, Refusal> {
        let Collection { number, .. } = self.new_collection(to, collection.kind)?;
        let (from, to) = (Owner { database: from, number: collection.number }, Owner { database: to, number });
        let mut elements = Vec::new();
        self.elements.visit(from, &Span::ALL, |name, value| {
            elements.push((Bytes::copy_from_slice(name), Bytes::copy_from_slice(value)));
            true
        })?;
        elements.into_iter().for_each(|(name, value)| self.elements.put(to, name, value));
        Ok(Collection { number, ..collection })
    }

    /// What is to be written. Of collections it follows from what the store has under the keys that were changed, and what it
    /// will have: whatever came in between leaves nothing behind.
    pub(crate) fn changes(&self) -> Changes<'_> {
        let changed: Vec<_> = self.known.iter().filter(|(_, known)| known.is_changed).collect();
        let before: Vec<Stored> = changed.iter().filter_map(|(_, known)| known.stored).collect();
        let later = |key: &Key, known: &Known| Stored::of(key, known.entry.as_ref()?);
        let after: BTreeSet<Owner> =
            changed.iter().filter_map(|(key, known)| later(key, known)).map(|stored| stored.owner).collect();
        let emptied: BTreeSet<Owner> = self.elements.emptied().collect();
        let is_dropped = |owner: &Owner| !after.contains(owner) && !emptied.contains(owner);
        let mut rows: Vec<Row<'_>> = before.iter().filter_map(|stored| stored.row(None)).collect();
        rows.extend(changed.iter().filter_map(|(key, known)| later(key, known)?.row(Some(key))));
        for owner in after.iter().chain(&emptied) {
            rows.extend(self.elements.changes(*owner).map(|(name, value)| Row {
                database: owner.database,
                key: owner.element_key(name),
                value: value.map(|value| Cow::Borrowed(&value[..])),
            }));
        }
        Changes {
            cleared: self.cleared.iter().copied().collect(),
            dropped: before.iter().map(|stored| stored.owner).filter(is_dropped).collect(),
            rows,
            keys: changed.iter().map(|(key, known)| (*key, known.entry.as_ref())).collect(),
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
        match self.known.entry(key) {
            Place::Vacant(place) => {
                // An emptied database has nothing.
                let is_read = self.cleared.contains(&place.key().database);
                place.insert(Known { entry, is_changed: true, is_read, stored: None });
            }
            Place::Occupied(mut place) => {
                let known = place.get_mut();
                (known.entry, known.is_changed) = (entry, true);
            }
        }
    }
}
