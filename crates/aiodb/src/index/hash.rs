//! The in-memory hash index: from a 64-bit keyed hash of a key to the places of its records, about 11 bytes per key
//! whatever the key's length.
//!
//! The index never sees a key. It has 37 bits of the hash (10 choose the shard, 27 are the tag), so two keys may share
//! a tag: every location under a tag is there, newest first, and the engine reads the records to tell the keys apart, which is
//! called to settle a tag.
//!
//! Each of the [`SHARDS`] shards is a sorted table behind a lock of its own and is resized alone, so no call waits for
//! more than one shard's sweep (about 20,000 slots in an index of 20 million keys).
//!
//! Of a table with more keys than memory is for, older places lie in runs (`index/runs/spilled.rs`), below those here. A _floor_ at the
//! end of a tag's places says that nothing in runs counts under this tag.

pub(crate) mod checkpoint;
mod memory;
mod shard;
mod slot;
mod spill;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use smallvec::SmallVec;

use crate::budget::{Accounts, Held, Part};
use crate::format::location::Location;
use crate::planted::{self, Bug};
use crate::sync::{Rank, RwLock, RwLockReadGuard, RwLockWriteGuard};
use shard::Shard;
use slot::{GRANULE_BITS, GRANULE_BYTES, SLOT_BYTES, Slot, TAG_BITS, class_of};

pub use slot::{LENGTH_MAX, class_bound};
pub(crate) use spill::TagPlaces;

/// Shards of every index. The top 10 bits of a hash choose the shard.
pub const SHARDS: usize = 1 << SHARD_BITS;

const SHARD_BITS: u32 = 10;

/// Bytes in front of the slots of an encoded shard: their number.
const COUNT_BYTES: usize = 8;

/// The outcome of [`HashIndex::publish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Published {
    /// The location was under this tag already; nothing changed.
    AlreadyThere,
    /// The location was inserted.
    Inserted {
        /// Locations with the same tag that are older than this one. They belong to the same key or to another one.
        older: usize,
        /// Locations that are newer: a write that waited for its batch comes after later ones of its key.
        newer: usize,
        /// Whether the location that it supersedes was there; it is out.
        is_over: bool,
        /// Whether older ones of the key may lie in runs besides.
        may_be_below: bool,
    },
}

/// Locations by hash. All methods may be called from many threads.
///
/// The lengths that go in are exact; the lengths that come out are the bounds of their size classes ([`class_bound`]), so a
/// read of `length` bytes may reach beyond the record and even beyond the segment's end: the caller cuts it there.
pub struct HashIndex {
    shards: Box<[Padded]>,
    /// Binary logarithm of the granules in a segment.
    segment_shift: u32,
    /// What it holds of memory. Changed where a shard is resized.
    held: Held,
    /// How many slots are floors. Relaxed: an estimate while others change the index.
    floors: AtomicU64,
    /// Whether there may be places in runs. Set before the first place leaves a shard, and read under the shard's lock, which orders both.
    has_runs: AtomicBool,
}

/// A shard on cache lines of its own, so that threads working on neighbours do not slow each other down.
#[repr(align(64))]
#[derive(Default)]
struct Padded {
    shard: RwLock<Shard, { Rank::HashShard as u8 }>,
    /// See [`HashIndex::changes`]. Changed under the shard's lock.
    changes: AtomicU64,
}

// Debug builds' locks are larger.
#[cfg(not(any(debug_assertions, feature = "shuttle")))]
const _: () = assert!(size_of::<Padded>() == 64, "a get touches one cache line of its shard before the slots");

impl HashIndex {
    /// An empty index for a log with segments of `segment_bytes`, a power of two from 4 KiB to 4 GiB.
    pub fn new(segment_bytes: u64) -> HashIndex {
        assert!(segment_bytes.is_power_of_two(), "segments of {segment_bytes} bytes: not a power of two");
        assert!((1 << 12..=1 << 32).contains(&segment_bytes), "segments of {segment_bytes} bytes: out of range");
        let shards: Box<[Padded]> = (0..SHARDS).map(|_| Padded::default()).collect();
        let held = Held::new(&Arc::default(), Part::Hash, size_of_val(&*shards) as u64);
        HashIndex {
            shards,
            segment_shift: (segment_bytes / GRANULE_BYTES).trailing_zeros(),
            held,
            floors: AtomicU64::new(0),
            has_runs: AtomicBool::new(false),
        }
    }

    /// The same index, which nobody uses yet: its memory counts in these accounts.
    pub(crate) fn counted_in(self, accounts: &Arc<Accounts>) -> HashIndex {
        HashIndex { held: Held::new(accounts, Part::Hash, self.held.bytes()), ..self }
    }

    /// How many segments a location can name: their numbers must be below this.
    pub fn max_segments(&self) -> u64 {
        1 << (GRANULE_BITS - self.segment_shift)
    }

    /// How often the index has changed. Each change is counted under its shard's lock: who asked this before he encoded the shards has
    /// encoded all that was counted, and who finds the same number later knows of no change that was not encoded.
    pub fn changes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.changes.load(Ordering::Relaxed)).sum()
    }

    /// Counts a change of what a checkpoint has besides the shards. The caller holds the lock under which it is made.
    pub fn count_change(&self, hash: u64) {
        self.shards[shard_of(hash)].changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Replaces the content of `found` by the locations under the hash's tag, newest first: those in memory.
    pub fn lookup(&self, hash: u64, found: &mut SmallVec<[Location; 4]>) {
        self.lookup_over(hash, found, || ());
    }

    /// [`HashIndex::lookup`] where older locations may lie in runs: then `below` says, under the shard's lock, what counts below. It must
    /// not call the index.
    pub fn lookup_over<T>(
        &self,
        hash: u64,
        found: &mut SmallVec<[Location; 4]>,
        below: impl FnOnce() -> T,
    ) -> Option<T> {
        found.clear();
        let shard = self.read(shard_of(hash));
        let (places, has_floor) = shard.places(tag_of(hash));
        found.extend(places.map(|position| self.location(shard.slot(position))));
        (!has_floor && self.has_runs()).then(below)
    }

    /// Whether the place (`segment` and `offset`) is under the hash's tag.
    pub fn contains(&self, hash: u64, location: Location) -> bool {
        self.read(shard_of(hash)).find(tag_of(hash), self.granule(location)).is_some()
    }

    /// Adds a location in front of the first one under its tag whose order is less. `order` says how new a location is;
    /// it is called under the shard's lock, only if the tag is in use, and must not call the index.
    pub fn publish<O: Ord>(&self, hash: u64, location: Location, order: impl Fn(Location) -> O) -> Published {
        self.publish_over(hash, location, None, order)
    }

    /// [`HashIndex::publish`], which takes out another location in the same step: that of the record that is superseded. It does not count
    /// as older then. Only its place is compared.
    pub fn publish_over<O: Ord>(
        &self,
        hash: u64,
        location: Location,
        over: Option<Location>,
        order: impl Fn(Location) -> O,
    ) -> Published {
        let slot = self.slot(hash, location);
        let counts_early = planted::is_on(Bug::ChangeCountedEarly);
        if counts_early {
            self.count_change(hash);
        }
        let early = planted::is_on(Bug::SlotsMeasuredEarly).then(|| self.read(shard_of(hash)).memory_bytes());
        let mut shard = self.write(shard_of(hash));
        let (run, has_floor) = shard.places(slot.tag());
        if run.clone().any(|position| shard.slot(position).granule() == slot.granule()) {
            return Published::AlreadyThere;
        }
        let mut position = run.start;
        if !run.is_empty() {
            let age = order(location);
            let is_older = |&position: &usize| order(self.location(shard.slot(position))) < age;
            position = run.clone().find(is_older).unwrap_or(run.end);
        }
        let before = early.unwrap_or_else(|| shard.memory_bytes());
        shard.insert(position, slot);
        let (mut older, newer) = (run.end - position, position - run.start);
        let over = over.and_then(|over| shard.find(slot.tag(), self.granule(over)));
        let inserted = over.and_then(|_| shard.find(slot.tag(), slot.granule()));
        let over = over.filter(|over| inserted.is_some_and(|inserted| inserted < *over));
        if let Some(over) = over {
            shard.remove(over);
            older -= 1;
        }
        self.held.change(before as u64, shard.memory_bytes() as u64);
        if !counts_early {
            self.count_change(hash);
        }
        let may_be_below = !has_floor && self.has_runs();
        Published::Inserted { older, newer, is_over: over.is_some(), may_be_below }
    }

    /// Puts `to` where `from` was, with the age of `from`, and returns the old location. `None` if `from` is not there;
    /// nothing changes then. Only the place of `from` is compared, not its length.
    pub fn replace(&self, hash: u64, from: Location, to: Location) -> Option<Location> {
        let slot = self.slot(hash, to);
        let mut shard = self.write(shard_of(hash));
        let position = shard.find(slot.tag(), self.granule(from))?;
        let old = self.location(shard.slot(position));
        shard.set(position, slot);
        self.count_change(hash);
        Some(old)
    }

    /// Takes a location out. False if it is not there. Only its place is compared, not its length.
    pub fn remove(&self, hash: u64, location: Location) -> bool {
        let mut shard = self.write(shard_of(hash));
        let found = shard.find(tag_of(hash), self.granule(location));
        if let Some(position) = found {
            let before = shard.memory_bytes();
            shard.remove(position);
            self.held.change(before as u64, shard.memory_bytes() as u64);
            self.count_change(hash);
        }
        found.is_some()
    }

    /// The number of locations. Visits all shards; concurrent changes may or may not be counted.
    pub fn len(&self) -> usize {
        self.slots().saturating_sub(self.floors.load(Ordering::Relaxed) as usize)
    }

    /// How many places and floors there are; visits all shards.
    pub(crate) fn slots(&self) -> usize {
        (0..SHARDS).map(|shard| self.read(shard).len()).sum()
    }

    /// Whether there is no location.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory held. Visits all shards.
    pub fn memory_bytes(&self) -> usize {
        let slots: usize = (0..SHARDS).map(|shard| self.read(shard).memory_bytes()).sum();
        slots + size_of_val(&*self.shards)
    }

    /// Bytes of memory that count as held, which are [`HashIndex::memory_bytes`] while nobody changes the index.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// Calls `f` for each location, shard by shard, under the shard's read lock: `f` must not change the index.
    pub fn for_each(&self, f: &mut dyn FnMut(Location)) {
        (0..SHARDS).for_each(|shard| self.for_each_in(shard, f));
    }

    /// [`HashIndex::for_each`] in one shard.
    pub fn for_each_in(&self, shard: usize, f: &mut dyn FnMut(Location)) {
        self.read(shard).live().filter(|slot| !slot.is_floor()).for_each(|slot| f(self.location(slot)));
    }

    /// Appends a shard's content, as it is at one moment, to `out`.
    ///
    /// | offset     | size | meaning                                                                       |
    /// | ---------- | ---- | ----------------------------------------------------------------------------- |
    /// | 0          | 8    | number of slots                                                               |
    /// | 8 + 9 * i  | 8    | slot i: tag (bits 37 to 63), size class (bits 32 to 36), granule bits 0 to 31 |
    /// | 16 + 9 * i | 1    | slot i: granule bits 32 to 39                                                 |
    ///
    /// Numbers are little-endian. Slots ascend by tag; under one tag the newest comes first. A granule is 16 bytes,
    /// counted through all segments. A size class counts from 1; its bounds are those of [`class_bound`]. A floor, the last slot of its tag, has
    /// size class 0 and granule 1.
    pub fn encode_shard(&self, shard: usize, out: &mut Vec<u8>) {
        self.encode_shard_and(shard, out, || ());
    }

    /// [`HashIndex::encode_shard`]; `done` is called at that moment, under the shard's lock.
    pub fn encode_shard_and(&self, shard: usize, out: &mut Vec<u8>, done: impl FnOnce()) {
        let shard = self.read(shard);
        done();
        out.reserve(COUNT_BYTES + shard.len() * SLOT_BYTES);
        out.extend_from_slice(&(shard.len() as u64).to_le_bytes());
        shard.live().for_each(|slot| out.extend_from_slice(&slot.encode()));
    }

    /// At least the bytes of all encoded shards, for as long as no more keys come.
    pub fn encoded_bytes(&self) -> usize {
        SHARDS * COUNT_BYTES + self.slots() * SLOT_BYTES
    }

    /// Fills an empty shard from the bytes of [`HashIndex::encode_shard`]. Any other bytes are an error that names
    /// the fault, and leave the shard empty.
    pub fn decode_shard(&self, shard: usize, bytes: &[u8]) -> Result<(), &'static str> {
        let (count, slots) = bytes.split_first_chunk().ok_or("an index shard is cut off within its count")?;
        let (slots, rest) = slots.as_chunks::<SLOT_BYTES>();
        if !rest.is_empty() || u64::from_le_bytes(*count) != slots.len() as u64 {
            return Err("an index shard's length does not match its count");
        }
        let slots = slots.iter().map(|bytes| Slot::decode(*bytes));
        if !slots.clone().all(|slot| slot.is_valid()) {
            return Err("an index shard has a slot of an unknown size class");
        }
        if !slots.clone().is_sorted_by_key(|slot| slot.tag()) {
            return Err("an index shard's slots are out of order");
        }
        if slots.clone().zip(slots.clone().skip(1)).any(|(one, next)| one.is_floor() && one.tag() == next.tag()) {
            return Err("an index shard has a slot below a floor");
        }
        let mut shard = self.write(shard);
        if shard.len() != 0 {
            return Err("an index shard is loaded into one that is not empty");
        }
        self.floors.fetch_add(slots.clone().filter(|slot| slot.is_floor()).count() as u64, Ordering::Relaxed);
        *shard = Shard::from_sorted(slots);
        self.held.change(0, shard.memory_bytes() as u64);
        Ok(())
    }

    fn read(&self, shard: usize) -> RwLockReadGuard<'_, Shard> {
        self.shards[shard].shard.read().expect("a thread panicked while it changed this index shard")
    }

    fn write(&self, shard: usize) -> RwLockWriteGuard<'_, Shard> {
        self.shards[shard].shard.write().expect("a thread panicked while it changed this index shard")
    }

    fn slot(&self, hash: u64, location: Location) -> Slot {
        Slot::new(tag_of(hash), self.granule(location), class_of(location.length))
    }

    fn granule(&self, location: Location) -> u64 {
        let (segment, offset) = (u64::from(location.segment), u64::from(location.offset));
        let within = offset / GRANULE_BYTES;
        assert!(segment < self.max_segments(), "segment {segment} is beyond what a hash index can name");
        assert!(offset % GRANULE_BYTES == 0 && within >> self.segment_shift == 0, "no record can start at {offset}");
        segment << self.segment_shift | within
    }

    fn location(&self, slot: Slot) -> Location {
        let granule = slot.granule();
        let within = granule & ((1 << self.segment_shift) - 1);
        // Both fit: `new` bounds a segment to 4 GiB and the number of segments to 2^32.
        Location {
            segment: (granule >> self.segment_shift) as u32,
            offset: (within * GRANULE_BYTES) as u32,
            length: slot.length(),
        }
    }
}

/// The bits of a hash that the index knows; the others are 0.
pub(crate) fn known_bits(hash: u64) -> u64 {
    let unknown = u64::BITS - SHARD_BITS - TAG_BITS;
    hash >> unknown << unknown
}

/// The hash's top bits.
pub(crate) fn shard_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARD_BITS)) as usize
}

/// The lowest hash of a shard.
pub(crate) fn first_hash_of(shard: usize) -> u64 {
    (shard as u64) << (u64::BITS - SHARD_BITS)
}

/// The bits behind the ones that choose the shard.
fn tag_of(hash: u64) -> u64 {
    hash << SHARD_BITS >> (u64::BITS - TAG_BITS)
}

/// A location as a hash index gives it back: its length is the size class's bound.
pub(crate) fn hash_location(location: Location) -> Location {
    Location { length: class_bound(location.length), ..location }
}
