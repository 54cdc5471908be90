//! Entries that were read or written lately, by their keys: most commands find theirs here, and ask the engine for nothing. Beside them are the
//! elements of small collections, once one command has read all of them or written the first.
//!
//! What is here is what the store has. A write takes the entries of its keys out before the engine makes it, and puts the new ones in
//! afterwards; it has a claim on its keys meanwhile. Who reads without a claim may have read what a write has changed since. So an entry that was
//! read is put in under the lock of its key, and only if no write of that lock's keys has ended since before the read. Who reads elements
//! has a claim.

use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, Weighter};
use smallvec::SmallVec;

use crate::changes::ChangedKey;
use crate::collection::Owner;
use crate::entry::{Entry, Value};
use crate::locks::{Database, Key, Locks, STRIPES};
use crate::packed::Packed;

/// Longer strings are not kept: few of them would take the place of many.
const LARGEST: usize = 256 << 10;

/// Bytes that an entry takes beside its name and its string, with its part of the tables and the allocator's overhead.
const OVERHEAD: usize = 192;

/// Of the memory, how many bytes are expected for an entry, and for the elements of a collection.
const EXPECTED: u64 = 512;
const EXPECTED_PACKED: u64 = 1024;

/// What stands for a number of writes of which one was given up: nobody knows when the engine makes it.
const UNKNOWN: u64 = u64::MAX;

/// The entries.
pub(crate) struct EntryCache {
    /// None without memory for it.
    cache: Option<Cache<Name, Entry, Weight, RandomState>>,
    /// All elements of small collections. None without memory for it.
    packed: Option<Cache<Owner, Packed, Weight, RandomState>>,
    /// How many writes of the keys of each stripe have ended.
    writes: Box<[AtomicU64]>,
    /// How many writes have ended that emptied databases.
    clearings: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
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

impl Weighter<Name, Entry> for Weight {
    fn weight(&self, name: &Name, entry: &Entry) -> u64 {
        (OVERHEAD + name.name.len() + string_bytes(entry)) as u64
    }
}

impl Weighter<Owner, Packed> for Weight {
    fn weight(&self, _: &Owner, packed: &Packed) -> u64 {
        (OVERHEAD + packed.bytes()) as u64
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
    /// For entries, and for elements, of so many bytes in all; 0 keeps none.
    pub(crate) fn new(bytes: u64, packed_bytes: u64) -> EntryCache {
        let writes = (0..STRIPES).map(|_| AtomicU64::new(0)).collect();
        let [clearings, hits, misses] = [0; 3].map(AtomicU64::new);
        let (cache, packed) = (new_cache(bytes, EXPECTED), new_cache(packed_bytes, EXPECTED_PACKED));
        EntryCache { cache, packed, writes, clearings, hits, misses }
    }

    /// Has entries, and elements, of so many bytes in all from now on; where it was made to keep none it still does.
    pub(crate) fn resize(&self, bytes: u64, packed_bytes: u64) {
        self.cache.iter().for_each(|cache| cache.set_capacity(bytes));
        self.packed.iter().for_each(|packed| packed.set_capacity(packed_bytes));
    }

    /// The entry of a key, if it is here.
    pub(crate) fn get(&self, key: &Key) -> Option<Entry> {
        let entry = self.cache.as_ref()?.get(&Asked(key));
        let counter = if entry.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        entry
    }

    /// All elements of a collection, if they are here. The caller has a claim on its key.
    pub(crate) fn elements(&self, owner: Owner) -> Option<Packed> {
        self.packed.as_ref()?.get(&owner)
    }

    /// Keeps all elements of a key's collection. The caller has a claim on the key: no write of it is under way.
    pub(crate) fn keep_elements(&self, key: &Key, owner: Owner, elements: Packed) {
        if let Some(packed) = self.packed.as_ref().filter(|_| self.moment(key).is_known()) {
            packed.insert(owner, elements);
        }
    }

    /// Its figures.
    pub(crate) fn counts(&self) -> Counts {
        let (keys, bytes) = self.cache.as_ref().map_or((0, 0), |cache| (cache.len() as u64, cache.weight()));
        let bytes = bytes + self.packed.as_ref().map_or(0, Cache::weight);
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
            cache.insert(name(key), entry.clone());
        }
    }

    /// Says that keys are written, and whether databases are emptied before, of all of which the caller has a claim.
    pub(crate) fn write<'a>(&'a self, clears: bool, keys: impl Iterator<Item = &'a ChangedKey<'a>>) -> Writing<'a> {
        let mut writing = Writing { cache: self, stripes: Vec::new(), clearings: None };
        let Some(cache) = &self.cache else { return writing };
        if clears {
            writing.clearings = Some(self.clearings.swap(UNKNOWN, Ordering::SeqCst));
            cache.clear();
            self.packed.iter().for_each(Cache::clear);
        }
        writing.stripes.extend(keys.map(|changed| {
            cache.remove(&Asked(changed.key));
            if let (Some(packed), Some(owner)) = (&self.packed, changed.owner()) {
                packed.remove(&owner);
            }
            changed.key.stripe()
        }));
        writing
    }
}

/// A cache of so many bytes, of which an entry is expected to take a part; `None` of 0 bytes.
fn new_cache<K: Eq + Hash, V: Clone>(bytes: u64, expected: u64) -> Option<Cache<K, V, Weight, RandomState>>
where
    Weight: Weighter<K, V>,
{
    let expected = usize::try_from(bytes / expected).unwrap_or(usize::MAX);
    let cache = || Cache::with(expected, bytes, Weight, RandomState::default(), DefaultLifecycle::default());
    (bytes > 0).then(cache)
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
            if !is_written || !is_known || counted.is_err() {
                continue;
            }
            if let Some(entry) = changed.entry.filter(|entry| string_bytes(entry) <= LARGEST) {
                cache.insert(name(changed.key), detached(entry));
            }
            if let (Some(packed), Some(owner), Some(elements)) =
                (&self.cache.packed, changed.owner(), &changed.elements)
            {
                packed.insert(owner, elements.clone());
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
