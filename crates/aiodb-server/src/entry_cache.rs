//! Entries that were read or written lately, by their keys: most commands find theirs here, and ask the engine for nothing. With the entry
//! of a small collection go all its elements, once one command has read them all or written the first.
//!
//! What is here is what the store has. A write takes the entries of its keys out before the engine makes it, and puts the new ones in
//! afterwards; it has a claim on its keys meanwhile. Who reads without a claim may have read what a write has changed since. So an entry that was
//! read is put in under the lock of its key, and only if no write of that lock's keys has ended since before the read.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};
use smallvec::SmallVec;

use crate::changes::ChangedKey;
use crate::entry::{Entry, Value};
use crate::locks::{Database, Key, Locks, STRIPES};
use crate::packed::Packed;

/// Longer strings are not kept: few of them would take the place of many.
const LARGEST: usize = 256 << 10;

/// Bytes that an entry takes beside its name and its string, with its part of the tables and the allocator's overhead.
const OVERHEAD: usize = 224;

/// Of the memory, how many bytes are expected for an entry.
const EXPECTED: u64 = 512;

/// What stands for a number of writes of which one was given up: nobody knows when the engine makes it.
const UNKNOWN: u64 = u64::MAX;

/// The entries.
pub(crate) struct EntryCache {
    /// None without memory for it.
    cache: Option<Cache<Name, Kept, Weight, RandomState>>,
    /// How many writes of the keys of each stripe have ended.
    writes: Box<[AtomicU64]>,
    /// How many writes have ended that emptied databases.
    clearings: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What a key has.
#[derive(Clone)]
struct Kept {
    entry: Entry,
    /// All elements of the collection.
    elements: Option<Packed>,
}

impl Kept {
    fn bytes(&self) -> usize {
        string_bytes(&self.entry) + self.elements.as_ref().map_or(0, Packed::bytes)
    }
}

/// What the cache counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) keys: u64,
    /// Memory that is taken.
    pub(crate) bytes: u64,
    /// Look-ups that found an entry.
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

/// A moment before a read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    writes: u64,
    clearings: u64,
}

impl Moment {
    fn is_known(self) -> bool {
        self.writes != UNKNOWN && self.clearings != UNKNOWN
    }
}

/// A key with its own copy of the name. Names of usual length lie in place, so that a look-up waits less often for memory.
#[derive(PartialEq, Eq)]
struct Name {
    database: Database,
    name: SmallVec<[u8; 32]>,
}

/// Both are equal, and have the same hash, where database and name are the same.
impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(self.database, &self.name, state);
    }
}

/// A key that is asked for.
struct Asked<'a>(&'a Key);

impl Hash for Asked<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(self.0.database, &self.0.name, state);
    }
}

impl Equivalent<Name> for Asked<'_> {
    fn equivalent(&self, name: &Name) -> bool {
        self.0.database == name.database && self.0.name[..] == name.name[..]
    }
}

fn hash(database: Database, name: &[u8], state: &mut impl Hasher) {
    state.write_u16(database);
    state.write(name);
}

#[derive(Clone)]
struct Weight;

impl Weighter<Name, Kept> for Weight {
    fn weight(&self, name: &Name, kept: &Kept) -> u64 {
        (OVERHEAD + name.name.len() + kept.bytes()) as u64
    }
}

fn string_bytes(entry: &Entry) -> usize {
    match &entry.value {
        Value::String(string) => string.len(),
        Value::Collection(_) => 0,
    }
}

/// A copy that does not keep what the string came in.
fn detached(entry: &Entry) -> Entry {
    let value = match &entry.value {
        Value::String(string) => Value::String(Bytes::copy_from_slice(string)),
        Value::Collection(collection) => Value::Collection(*collection),
    };
    Entry { value, expires_ms: entry.expires_ms }
}

impl EntryCache {
    /// For entries of so many bytes in all; 0 keeps none.
    pub(crate) fn new(bytes: u64) -> EntryCache {
        let expected = usize::try_from(bytes / EXPECTED).unwrap_or(usize::MAX);
        let cache = || Cache::with(expected, bytes, Weight, RandomState::default(), DefaultLifecycle::default());
        let writes = (0..STRIPES).map(|_| AtomicU64::new(0)).collect();
        let [clearings, hits, misses] = [0; 3].map(AtomicU64::new);
        EntryCache { cache: (bytes > 0).then(cache), writes, clearings, hits, misses }
    }

    /// The entry of a key, if it is here.
    pub(crate) fn get(&self, key: &Key) -> Option<Entry> {
        let kept = self.cache.as_ref()?.get(&Asked(key));
        let counter = if kept.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        kept.map(|kept| kept.entry)
    }

    /// All elements of the collection of a key, if they are here and it has this number. The caller has a claim on the key.
    pub(crate) fn elements(&self, key: &Key, number: u64) -> Option<Packed> {
        let kept = self.cache.as_ref()?.get(&Asked(key))?;
        kept.elements.filter(|_| kept.entry.collection().is_some_and(|collection| collection.number == number))
    }

    /// Keeps all elements of the collection that a key has, with its entry. The caller has a claim on the key: no write of it is under way.
    pub(crate) fn keep_elements(&self, key: &Key, entry: Entry, elements: Packed) {
        if let Some(cache) = self.cache.as_ref().filter(|_| self.moment(key).is_known()) {
            cache.insert(name(key), Kept { entry, elements: Some(elements) });
        }
    }

    /// Its figures.
    pub(crate) fn counts(&self) -> Counts {
        let (keys, bytes) = self.cache.as_ref().map_or((0, 0), |cache| (cache.len() as u64, cache.weight()));
        let [hits, misses] = [&self.hits, &self.misses].map(|counter| counter.load(Ordering::Relaxed));
        Counts { keys, bytes, hits, misses }
    }

    /// To be asked before the key is read from the engine.
    pub(crate) fn moment(&self, key: &Key) -> Moment {
        let writes = self.writes[key.stripe()].load(Ordering::SeqCst);
        Moment { writes, clearings: self.clearings.load(Ordering::SeqCst) }
    }

    /// Keeps what was read since the moment, unless that may be old. The string has memory of its own.
    pub(crate) fn keep_read(&self, key: &Key, entry: &Entry, since: Moment, locks: &Locks) {
        let Some(cache) = self.cache.as_ref().filter(|_| string_bytes(entry) <= LARGEST) else { return };
        // No write of the key is under way while this is held.
        let Some(_held) = locks.try_read(key) else { return };
        let now = self.moment(key);
        if now == since && now.is_known() {
            cache.insert(name(key), Kept { entry: entry.clone(), elements: None });
        }
    }

    /// Says that keys are written, and whether databases are emptied before, of all of which the caller has a claim.
    pub(crate) fn write<'a>(&'a self, clears: bool, keys: impl Iterator<Item = &'a Key>) -> Writing<'a> {
        let mut writing = Writing { cache: self, stripes: Vec::new(), clearings: None };
        let Some(cache) = &self.cache else { return writing };
        if clears {
            writing.clearings = Some(self.clearings.swap(UNKNOWN, Ordering::SeqCst));
            cache.clear();
        }
        writing.stripes.extend(keys.map(|key| {
            cache.remove(&Asked(key));
            key.stripe()
        }));
        writing
    }
}

fn name(key: &Key) -> Name {
    Name { database: key.database, name: SmallVec::from_slice(&key.name) }
}

/// A write that is under way. If it is given up nobody knows when it will be made, so its keys are left to the engine for good, with those
/// of the same stripes; and all keys, if it empties a database.
pub(crate) struct Writing<'a> {
    cache: &'a EntryCache,
    stripes: Vec<usize>,
    /// How many such writes there were before, if databases are emptied.
    clearings: Option<u64>,
}

impl Writing<'_> {
    /// The write has ended. These are the keys, in the order in which they were named, and whether it is known that they have their new
    /// entries.
    pub(crate) fn ended<'b>(mut self, keys: impl Iterator<Item = (&'b ChangedKey<'b>, bool)>) {
        if let Some(clearings) = self.clearings.take().filter(|clearings| *clearings != UNKNOWN) {
            self.cache.clearings.store(clearings + 1, Ordering::SeqCst);
        }
        let is_known = self.cache.clearings.load(Ordering::SeqCst) != UNKNOWN;
        let Some(cache) = &self.cache.cache else { return };
        for (stripe, (changed, is_written)) in std::mem::take(&mut self.stripes).into_iter().zip(keys) {
            // It stays unknown if it was.
            let count = |writes: u64| (writes != UNKNOWN).then(|| writes + 1);
            let counted = self.cache.writes[stripe].fetch_update(Ordering::SeqCst, Ordering::SeqCst, count);
            if let Some(entry) = changed.entry.filter(|entry| is_written && string_bytes(entry) <= LARGEST)
                && is_known
                && counted.is_ok()
            {
                let kept = Kept { entry: detached(entry), elements: changed.elements.clone() };
                cache.insert(name(changed.key), kept);
            }
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        for stripe in &self.stripes {
            self.cache.writes[*stripe].store(UNKNOWN, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests;
