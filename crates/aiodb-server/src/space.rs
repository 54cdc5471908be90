//! What a group of commands sees and changes: the databases as they are, with the group's own changes on top.

use std::borrow::Cow;
use std::collections::hash_map::Entry as Place;
use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::changes::{ChangedKey, Changes, Row};
use crate::collection::{
    Collection, Kind, Owner, Span, expiring_key, expiring_ms, expiring_number, expiring_string_key,
};
use crate::elements::Elements;
use crate::entry::{Entry, stored_key};
use crate::keyspace::Keyspace;
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
    /// Rows by which keys were to expire that will not.
    stale: Vec<(Database, Vec<u8>)>,
    /// Messages to channels, which go out when all that was changed is written.
    pub(crate) published: Vec<(Bytes, Bytes)>,
}

struct Known {
    entry: Option<Entry>,
    is_changed: bool,
    /// Whether it is known what the store has under the key.
    is_read: bool,
    /// What the store has under the key.
    stored: Option<Stored>,
}

impl Known {
    /// What the store will have.
    fn later(&self) -> Option<Stored> {
        self.entry.as_ref().map(Stored::of)
    }
}

/// What is stored under a key, and must go with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The number of a collection.
    number: Option<u64>,
    expires_ms: Option<u64>,
}

impl Stored {
    pub(crate) fn of(entry: &Entry) -> Stored {
        let number = entry.collection().map(|collection| collection.number);
        Stored { number, expires_ms: entry.expires_ms.map(u64::from) }
    }

    /// The collection.
    fn owner(self, database: Database) -> Option<Owner> {
        self.number.map(|number| Owner { database, number })
    }

    /// The key of the row of the table of elements by which the key is found when it has expired.
    fn row(self, key: &Key) -> Option<Vec<u8>> {
        let at_ms = self.expires_ms?;
        Some(match self.number {
            Some(number) => expiring_key(at_ms, number),
            None => expiring_string_key(at_ms, &stored_key(&key.name)),
        })
    }

    /// What that row has.
    fn row_value(self, key: &Key) -> Cow<'_, [u8]> {
        if self.number.is_some() { stored_key(&key.name) } else { Cow::Borrowed(&[]) }
    }

    fn has_expired(self, now_ms: u64) -> bool {
        self.expires_ms.is_some_and(|at_ms| at_ms <= now_ms)
    }
}

impl<'a> Space<'a> {
    pub(crate) fn new(keyspace: &'a Keyspace, now_ms: u64) -> Space<'a> {
        let (known, cleared, touched) = (KeyMap::default(), BTreeSet::new(), BTreeSet::new());
        let (stale, published) = (Vec::new(), Vec::new());
        Space { keyspace, now_ms, known, elements: Elements::new(keyspace), cleared, touched, stale, published }
    }

    /// Takes the entry that the store has under a key. One that was changed here stays changed.
    pub(crate) fn learn(&mut self, key: Key, entry: Option<Entry>) {
        let stored = entry.as_ref().map(Stored::of);
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

    /// Takes a key away that is due by this row, which the store has, and has this entry. An entry that is not to go by the row stays.
    /// One that cannot be read goes: nobody can say that it is another.
    pub(crate) fn expire(&mut self, key: Key, row: Vec<u8>, entry: Option<Result<Stored, Refusal>>) {
        let by_row = Stored { number: expiring_number(&row), expires_ms: expiring_ms(&row) };
        let is_due = match &entry {
            None => false,
            Some(Ok(stored)) => *stored == by_row,
            Some(Err(_)) => true,
        };
        if is_due {
            self.known.insert(key, Known { entry: None, is_changed: true, is_read: true, stored: Some(by_row) });
        } else {
            self.stale.push((key.database, row));
        }
    }

    /// Takes what is to be known of the entry that the store has under a key which was changed unread. One that cannot be read has
    /// no elements that could go with it, and no row.
    pub(crate) fn learn_unread(&mut self, key: &Key, entry: Result<Option<Stored>, Refusal>) -> Result<(), Refusal> {
        let stored = match entry {
            Err(refusal) if refusal.is_unreadable() => Some(Stored { number: None, expires_ms: None }),
            entry => entry?,
        };
        if let Some(known) = self.known.get_mut(key).filter(|known| !known.is_read) {
            (known.is_read, known.stored) = (true, stored);
        }
        Ok(())
    }

    /// Keys that were changed whatever they have. They are to be read before [`Space::changes`]: what they have is counted, and goes
    /// with its elements and the row by which it expires.
    pub(crate) fn unread(&self) -> impl Iterator<Item = &Key> {
        self.known.iter().filter(|(_, known)| !known.is_read).map(|(key, _)| key)
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
        Some((known.stored?.owner(key.database)?, known.entry.as_ref()?.collection()?))
    }

    /// Whether a key has what the store has.
    pub(crate) fn is_unchanged(&self, key: &Key) -> bool {
        self.known.get(key).is_some_and(|known| known.is_read && !known.is_changed)
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

    /// How many keys a database has. Reads with the calling thread what was changed unread.
    pub(crate) fn count(&mut self, database: Database) -> Result<u64, Refusal> {
        let unread: Vec<Key> = self.unread().filter(|key| key.database == database).cloned().collect();
        for key in unread {
            let entry = self.keyspace.get_blocking(&key).map(|entry| entry.as_ref().map(Stored::of));
            self.learn_unread(&key, entry)?;
        }
        let is_cleared = self.cleared.contains(&database);
        let stored = if is_cleared { 0 } else { self.keyspace.size(database, self.now_ms)? };
        let own = self.known.iter().filter(|(key, known)| key.database == database && known.is_changed);
        let more = own.map(|(_, known)| {
            let had_one = known.stored.is_some_and(|stored| !stored.has_expired(self.now_ms));
            i64::from(known.entry.is_some()) - i64::from(had_one)
        });
        Ok(stored.saturating_add_signed(more.sum()))
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

    /// What is to be written. Of collections, of what expires and of the size it follows from what the store has under the keys that
    /// were changed, and what it will have: whatever came in between leaves nothing behind.
    pub(crate) fn changes(&self) -> Changes<'_> {
        let changed: Vec<_> = self.known.iter().filter(|(_, known)| known.is_changed).collect();
        let owners_before = changed.iter().filter_map(|(key, known)| known.stored?.owner(key.database));
        let owners_after = changed.iter().filter_map(|(key, known)| known.later()?.owner(key.database));
        let after: BTreeSet<Owner> = owners_after.collect();
        let emptied: BTreeSet<Owner> = self.elements.emptied().collect();
        let is_dropped = |owner: &Owner| !after.contains(owner) && !emptied.contains(owner);
        let mut rows = expiring_rows(&changed);
        rows.extend(self.stale.iter().map(|(database, key)| Row {
            database: *database,
            key: key.clone(),
            value: None,
        }));
        for owner in after.iter().chain(&emptied) {
            rows.extend(self.elements.changes(*owner).map(|(name, value)| Row {
                database: owner.database,
                key: owner.element_key(name),
                value: value.map(|value| Cow::Borrowed(&value[..])),
            }));
        }
        Changes {
            cleared: self.cleared.iter().copied().collect(),
            dropped: owners_before.filter(is_dropped).collect(),
            rows,
            sizes: sizes(&changed),
            keys: changed.iter().map(|(key, known)| self.changed_key(key, known)).collect(),
        }
    }

    fn changed_key<'b>(&self, key: &'b Key, known: &'b Known) -> ChangedKey<'b> {
        let owner = known.later().and_then(|later| later.owner(key.database));
        let elements = owner.and_then(|owner| self.elements.packed_after(owner));
        ChangedKey { key, entry: known.entry.as_ref(), elements }
    }

    /// Whether something is to be written.
    pub(crate) fn is_changed(&self) -> bool {
        !self.cleared.is_empty() || !self.stale.is_empty() || self.known.values().any(|known| known.is_changed)
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

/// The rows by which keys were to expire that will not, and those by which they will. A row may pass from one key to another: those that
/// go come first.
fn expiring_rows<'b>(changed: &[(&'b Key, &Known)]) -> Vec<Row<'b>> {
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    for (key, known) in changed {
        let [before, after] = [known.stored, known.later()].map(|stored| stored.and_then(|stored| stored.row(key)));
        if before == after {
            continue;
        }
        let database = key.database;
        gone.extend(before.map(|key| Row { database, key, value: None }));
        let value = known.later().map(|later| later.row_value(key));
        new.extend(after.map(|key| Row { database, key, value }));
    }
    gone.append(&mut new);
    gone
}

/// How many more keys the databases will have.
fn sizes(changed: &[(&Key, &Known)]) -> Vec<(Database, i64)> {
    let mut sizes: Vec<(Database, i64)> = Vec::new();
    for (key, known) in changed {
        debug_assert!(known.is_read, "what is not read is not counted");
        let more = i64::from(known.entry.is_some()) - i64::from(known.stored.is_some());
        match sizes.iter_mut().find(|(database, _)| *database == key.database) {
            Some((_, size)) => *size += more,
            None => sizes.push((key.database, more)),
        }
    }
    sizes.retain(|(_, more)| *more != 0);
    sizes
}
