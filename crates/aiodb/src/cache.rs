//! Values that were read lately, so that a hot key does not cost a device read each time.
//!
//! Entries are keyed by place, not by key: acknowledged bytes of a segment's life never change, so an entry is never
//! stale. An overwrite or a move puts the key's bytes elsewhere; what lay at the old place is not asked for any more and
//! leaves the cache by itself. Nothing needs to be told of writes, and the index stays the only judge of what is current.
//!
//! An entry is the whole value of one put, as it was given. Operands, parts of large values and records that expire are
//! not kept. Only gets of the present ask and fill the cache: a scan would push out what is asked for again, and a
//! snapshot mostly reads what nobody else will.
//!
//! Eviction is that of `quick_cache`: CLOCK-Pro in the manner of S3-FIFO. An entry that was asked for once leaves after a
//! short while, so reading everything once does not push out what is read again and again.

use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::engine::Engine;
use crate::index::stack::Entry;
use crate::index::{Candidate, Location};
use crate::io::Device;
use crate::log::record::Kind;
use crate::metrics::counter::Counter;
use crate::snapshot::View;

/// Locks that the entries are spread over. Fixed, so that what is evicted does not depend on the machine.
const SHARDS: u64 = 16;

/// A smaller cache has fewer shards, so that each can hold some entries of a device block.
const MIN_SHARD_BYTES: u64 = 64 << 10;

/// A longer value is not kept: it would push out too much at once. A share of one shard's budget.
const MAX_SHARE_OF_SHARD: u64 = 8;

/// What an entry takes beside its bytes: its slot in the cache's lists with the room that these keep for growing, its
/// share of the entries that are only remembered, the counts of its allocation and the allocator's own header.
const ENTRY_OVERHEAD_BYTES: u64 = 144;

/// The size of an entry for which the memory of evicted places is laid out. It need only be roughly right.
const TYPICAL_ENTRY_BYTES: u64 = 2048;

/// Where bytes lie, in one life of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) life: u64,
}

impl Hash for Place {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        // A life belongs to one segment.
        hasher.write_u64(self.life << 32 ^ u64::from(self.offset));
    }
}

/// The cache of one store.
pub(crate) struct ValueCache {
    entries: Option<Entries>,
    longest_bytes: usize,
    hits: Counter,
    misses: Counter,
}

type Entries = Cache<Place, Cached, Weight, BuildHasherDefault<Mix>, DefaultLifecycle<Place, Cached>>;

/// A key and its value at a place. Clones share the bytes, which stay as long as anyone has them.
#[derive(Clone, Debug)]
pub(crate) struct Cached {
    table: u32,
    value_length: u32,
    /// The value, then the key.
    bytes: Arc<[u8]>,
}

impl Cached {
    fn new(table: u32, key: &[u8], value: &[u8]) -> Cached {
        let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, key.len() + value.len()).collect();
        let (for_value, for_key) = Arc::get_mut(&mut bytes).expect("nobody else has it yet").split_at_mut(value.len());
        for_value.copy_from_slice(value);
        for_key.copy_from_slice(key);
        let value_length = u32::try_from(value.len()).expect("a value is shorter than 4 GiB");
        Cached { table, value_length, bytes }
    }

    fn is_of(&self, table: u32, key: &[u8]) -> bool {
        self.table == table && self.bytes[self.value_length as usize..] == *key
    }

    /// The value.
    pub(crate) fn value(&self) -> &[u8] {
        &self.bytes[..self.value_length as usize]
    }
}

impl ValueCache {
    /// A cache that takes at most about `budget_bytes` of memory; with 0 there is none.
    pub(crate) fn new(budget_bytes: u64) -> ValueCache {
        let shards = (budget_bytes / MIN_SHARD_BYTES).clamp(1, SHARDS);
        // The library rounds up to a power of two.
        let shards = 1 << shards.ilog2();
        let longest = (budget_bytes / shards / MAX_SHARE_OF_SHARD).saturating_sub(ENTRY_OVERHEAD_BYTES);
        let typical = usize::try_from(budget_bytes / TYPICAL_ENTRY_BYTES).unwrap_or(usize::MAX);
        let entries = (longest > 0).then(|| {
            let options = OptionsBuilder::new()
                .shards(shards as usize)
                .estimated_items_capacity(typical)
                .weight_capacity(budget_bytes)
                .build()
                .expect("both capacities are given");
            Cache::with_options(options, Weight, BuildHasherDefault::default(), DefaultLifecycle::default())
        });
        let longest_bytes = usize::try_from(longest).unwrap_or(usize::MAX);
        ValueCache { entries, longest_bytes, hits: Counter::default(), misses: Counter::default() }
    }

    /// Whether there is a cache at all.
    pub(crate) fn is_on(&self) -> bool {
        self.entries.is_some()
    }

    /// What was kept of a place, if it is still here.
    pub(crate) fn get(&self, place: Place) -> Option<Cached> {
        let found = self.entries.as_ref()?.get(&place);
        if found.is_some() {
            self.hits.count()
        } else {
            self.misses.count()
        };
        found
    }

    /// Keeps a copy of a key and the value that was read from a place and has been checked.
    pub(crate) fn insert(&self, place: Place, table: u32, key: &[u8], value: &[u8]) {
        let Some(entries) = &self.entries else { return };
        if key.len() + value.len() <= self.longest_bytes {
            entries.insert(place, Cached::new(table, key, value));
        }
    }

    /// Bytes that the entries take, their bookkeeping included.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.entries.as_ref().map_or(0, |entries| entries.weight())
    }

    /// Look-ups that were answered, and that were not.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.sum(), self.misses.sum())
    }
}

impl<D: Device> Engine<D> {
    /// What is cached of a key's value at a candidate's place, for a get of the present. The caller holds a pin, so that
    /// the segment's life is still that of the look-up. The record of another key there counts as not cached: the log
    /// says what that means.
    pub(crate) fn cached(&self, candidate: &Candidate, table: u32, key: &[u8], view: &View) -> Option<Cached> {
        let may_be_kept =
            |entry: Entry| entry.kind == Kind::Put && !entry.form.chunked && entry.form.expires_ms.is_none();
        if !self.cache.is_on() || !view.is_present() || !candidate.known.is_none_or(may_be_kept) {
            return None;
        }
        self.cache.get(self.place(candidate.location)?).filter(|cached| cached.is_of(table, key))
    }

    /// Keeps the whole value of a put that a get of the present has found at a location and checked. A record that
    /// expires must not be kept: entries do not know when.
    pub(crate) fn keep(&self, location: Location, table: u32, key: &[u8], value: &[u8]) {
        if !self.cache.is_on() {
            return;
        }
        if let Some(place) = self.place(location) {
            self.cache.insert(place, table, key, value);
        }
    }

    fn place(&self, location: Location) -> Option<Place> {
        let life = self.segments.find(location.segment)?.life();
        Some(Place { segment: location.segment, offset: location.offset, life })
    }
}

#[derive(Clone)]
struct Weight;

impl Weighter<Place, Cached> for Weight {
    fn weight(&self, _place: &Place, cached: &Cached) -> u64 {
        cached.bytes.len() as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// Mixes the one number that a place hashes to. Without a seed, so that a simulated machine does the same each time;
/// nobody outside chooses places, so nobody can make them collide.
#[derive(Default)]
struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxhash_rust::xxh3::xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, number: u64) {
        // The upper half of the product depends on all bits; the lower half is folded onto it.
        let product = u128::from(number ^ self.0) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

#[cfg(test)]
mod tests;
