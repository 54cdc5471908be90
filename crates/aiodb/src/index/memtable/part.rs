//! Keys of a memtable that follow each other, with their chains.

use std::ops::Bound;

use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use super::KeyRange;
use super::heads::Heads;
use super::parts::MAX_PART_KEYS;
use crate::index::chain::VersionChain;

/// Bytes of the longest key that is stored in its place.
pub(crate) const LONGEST_IN_PLACE: usize = 32;

/// A key in memory, in its place up to a usual length: a search that followed a pointer for each key that it compares would wait for
/// memory each time.
pub(crate) type StoredKey = SmallVec<[u8; LONGEST_IN_PLACE]>;

/// So many keys with a key's fingerprint are compared with it before it is looked for in the order.
const MOST_ALIKE: usize = 4;

/// Slots that are allocated at once. All allocations of parts are short and of few sizes: writers of a hundred threads make them, one other
/// thread frees them all, and an allocator keeps some of each size for each thread.
const SLOTS_AT_ONCE: usize = 16;

/// Keys for which a part that comes of a split has room: a few more than it is split with.
const RESERVED_KEYS: usize = MAX_PART_KEYS + 16;

/// A key and its chain.
type Slot = (StoredKey, VersionChain);

/// Slots by their number.
#[derive(Default)]
struct Slots(Vec<Vec<Slot>>);

impl Slots {
    fn len(&self) -> usize {
        self.0.last().map_or(0, |last| (self.0.len() - 1) * SLOTS_AT_ONCE + last.len())
    }

    fn get(&self, number: usize) -> &Slot {
        &self.0[number / SLOTS_AT_ONCE][number % SLOTS_AT_ONCE]
    }

    fn get_mut(&mut self, number: usize) -> &mut Slot {
        &mut self.0[number / SLOTS_AT_ONCE][number % SLOTS_AT_ONCE]
    }

    fn push(&mut self, slot: Slot) {
        if self.len().is_multiple_of(SLOTS_AT_ONCE) {
            self.0.push(Vec::with_capacity(SLOTS_AT_ONCE));
        }
        self.0.last_mut().expect("just made").push(slot);
    }
}

/// Some keys. Most writes are of keys that are here already, or end one look-up: that asks the fingerprints, which lie side by side, and
/// compares one key. A new key is put into the order of the others by their heads, and no key or chain is moved for it.
#[derive(Default)]
pub(super) struct Part {
    /// In the order in which they came.
    slots: Slots,
    /// A byte of the hash of each slot's key.
    fingerprints: Vec<u8>,
    /// The numbers of the slots in the order of their keys.
    order: Vec<u16>,
    /// In that order too.
    heads: Heads,
    /// The highest sequence that came here.
    newest: u64,
}

impl Part {
    /// How many keys.
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The highest sequence of an entry that came here, superseded ones among them.
    pub(super) fn newest(&self) -> u64 {
        self.newest
    }

    /// The chain of a key.
    pub(super) fn get(&self, key: &[u8]) -> Option<&VersionChain> {
        self.slot_of(key, fingerprint(key)).map(|slot| &self.slots.get(slot).1)
    }

    /// The chain of a key, an empty one if the key is new, to which an entry of this sequence comes.
    pub(super) fn get_or_insert(&mut self, key: &[u8], sequence: u64) -> &mut VersionChain {
        self.newest = self.newest.max(sequence);
        let fingerprint = fingerprint(key);
        let slot = self.slot_of(key, fingerprint).unwrap_or_else(|| self.add(key, fingerprint));
        &mut self.slots.get_mut(slot).1
    }

    fn slot_of(&self, key: &[u8], fingerprint: u8) -> Option<usize> {
        let mut alike = memchr::memchr_iter(fingerprint, &self.fingerprints);
        for slot in alike.by_ref().take(MOST_ALIKE) {
            if *self.slots.get(slot).0 == *key {
                return Some(slot);
            }
        }
        // Few keys have as many others with their fingerprint beside them, unless somebody chose them so.
        alike.next()?;
        let place = self.heads.search(key, |place| self.at(place).0).ok()?;
        Some(usize::from(self.order[place]))
    }

    /// Adds a key that is not here; returns its slot.
    fn add(&mut self, key: &[u8], fingerprint: u8) -> usize {
        let slot = self.slots.len();
        let number = u16::try_from(slot).expect("a part is split long before");
        let Part { slots, order, heads, .. } = self;
        let key_at = |at: usize| &*slots.get(usize::from(order[at])).0;
        let (Ok(place) | Err(place)) = heads.search(key, key_at);
        heads.insert(place, key, key_at);
        order.insert(place, number);
        self.slots.push((key.into(), VersionChain::default()));
        self.fingerprints.push(fingerprint);
        slot
    }

    /// The key at a place in their order, with its chain.
    fn at(&self, place: usize) -> (&[u8], &VersionChain) {
        let (key, chain) = self.slots.get(usize::from(self.order[place]));
        (key, chain)
    }

    /// All keys in order.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &VersionChain)> {
        (0..self.len()).map(|place| self.at(place))
    }

    /// The keys of a range in order.
    pub(super) fn range(&self, (start, end): KeyRange<'_>) -> impl DoubleEndedIterator<Item = (&[u8], &VersionChain)> {
        let search = |key| self.heads.search(key, |place| self.at(place).0);
        let before = |key| search(key).unwrap_or_else(|place| place);
        let behind = |key| search(key).map_or_else(|place| place, |place| place + 1);
        let from = match start {
            Bound::Included(key) => before(key),
            Bound::Excluded(key) => behind(key),
            Bound::Unbounded => 0,
        };
        let to = match end {
            Bound::Included(key) => behind(key),
            Bound::Excluded(key) => before(key),
            Bound::Unbounded => self.len(),
        };
        (from..to).map(|place| self.at(place))
    }

    /// Takes the upper half of the keys out.
    pub(super) fn split_off(&mut self) -> Part {
        let Part { slots, fingerprints, order, newest, .. } = std::mem::take(self);
        let mut slots: Vec<_> = slots.0.into_iter().flatten().zip(fingerprints).map(Some).collect();
        let mut sorted = order.iter().map(|slot| slots[usize::from(*slot)].take().expect("each slot is there once"));
        *self = Part::sorted(sorted.by_ref().take(order.len() / 2), newest);
        Part::sorted(sorted, newest)
    }

    /// Of slots in the order of their keys, with their fingerprints.
    fn sorted(sorted: impl Iterator<Item = (Slot, u8)>, newest: u64) -> Part {
        let mut part = Part { newest, ..Part::default() };
        part.reserve();
        for (number, (slot, fingerprint)) in (0..).zip(sorted) {
            part.slots.push(slot);
            part.fingerprints.push(fingerprint);
            part.order.push(number);
        }
        part.heads.set_of(part.slots.len(), |place| &part.slots.get(place).0);
        part
    }

    /// Makes room for as many keys as a part has before it is split.
    fn reserve(&mut self) {
        self.fingerprints.reserve_exact(RESERVED_KEYS);
        self.order.reserve_exact(RESERVED_KEYS);
        self.heads.reserve(RESERVED_KEYS);
    }

    /// The first key. There must be one.
    pub(super) fn first(&self) -> &[u8] {
        self.at(0).0
    }
}

fn fingerprint(key: &[u8]) -> u8 {
    xxh3_64(key) as u8
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
