//! Keys in order, in parts of which each has a lock of its own.
//!
//! On a busy machine a thread is stopped at any moment, also while it holds a lock, and for milliseconds. Under one lock for
//! all keys every writer would then wait for it; so only a writer of a key near by does.

use std::collections::BTreeMap;
use std::ops::{Bound, Deref};

use super::KeyRange;
use super::heads::Heads;
use super::part::Part;
pub(crate) use super::part::{LONGEST_IN_PLACE, StoredKey};
use crate::index::chain::{Entry, VersionChain};
use crate::sync::{Mutex, MutexGuard, Rank};

/// Keys with which a part is split.
pub(crate) const MAX_PART_KEYS: usize = if cfg!(feature = "shuttle") { 4 } else { 256 };

/// Index keys with what a look-up has found of them.
pub(crate) type Chains = BTreeMap<StoredKey, VersionChain>;

/// The same in the order of the keys, of layers that find them in order.
pub(crate) type ChainList = Vec<(StoredKey, VersionChain)>;

/// Parts in order, each a `P` behind its first key: it has the keys from there on, up to the next part's first key. The first part begins
/// before all keys.
struct Parts<P> {
    /// Boxed, since a part that is split moves all behind it.
    parts: Vec<Box<(StoredKey, P)>>,
    /// Of the first keys of all parts but the first.
    heads: Heads,
}

impl<P> Parts<P> {
    fn one(part: P) -> Parts<P> {
        Parts { parts: vec![Box::new((StoredKey::new(), part))], heads: Heads::default() }
    }

    /// The number of the part that a key is in.
    fn number_of(&self, key: &[u8]) -> usize {
        match self.heads.search(key, |at| &self.parts[at + 1].0) {
            Ok(at) => at + 1,
            Err(parts) => parts,
        }
    }

    fn of(&self, key: &[u8]) -> &P {
        &self.parts[self.number_of(key)].1
    }

    /// Adds a part behind one of them.
    fn insert_behind(&mut self, number: usize, from: StoredKey, part: P) {
        self.heads.insert(number, &from, |at| &self.parts[at + 1].0);
        self.parts.insert(number + 1, Box::new((from, part)));
    }

    /// The parts in which keys of a range can be.
    fn overlapping(&self, (start, end): KeyRange<'_>) -> impl DoubleEndedIterator<Item = &P> {
        let number_of = |bound, open| match bound {
            Bound::Included(key) | Bound::Excluded(key) => self.number_of(key),
            Bound::Unbounded => open,
        };
        let (first, last) = (number_of(start, 0), number_of(end, self.parts.len() - 1));
        self.parts[first..=last].iter().map(|part| &part.1)
    }
}

/// The keys of the active memtable.
pub(crate) struct ActiveKeys(Parts<Mutex<Part, { Rank::MemtablePart as u8 }>>);

impl Default for ActiveKeys {
    fn default() -> ActiveKeys {
        ActiveKeys(Parts::one(Mutex::default()))
    }
}

impl ActiveKeys {
    /// Calls a closure with the chain of a key, if the key is here.
    pub(crate) fn find<T>(&self, key: &[u8], ask: impl FnOnce(&VersionChain) -> T) -> Option<T> {
        lock(self.0.of(key)).get(key).map(ask)
    }

    /// Calls a closure with the chain of a key, an empty one if the key is new, for an entry of this sequence to come there: there must be
    /// one then. For a new key returns how many keys its part has with it.
    pub(crate) fn change<T>(
        &self,
        key: &[u8],
        sequence: u64,
        change: impl FnOnce(&mut VersionChain) -> T,
    ) -> (T, Option<usize>) {
        let mut part = lock(self.0.of(key));
        let before = part.len();
        let changed = change(part.get_or_insert(key, sequence));
        let keys = part.len();
        (changed, (keys > before).then_some(keys))
    }

    /// Splits the part that a key is in, if it is still large.
    pub(crate) fn split(&mut self, key: &[u8]) {
        let number = self.0.number_of(key);
        let part = self.0.parts[number].1.get_mut().expect(NO_PANIC);
        if part.len() >= MAX_PART_KEYS {
            let upper = part.split_off();
            self.0.insert_behind(number, upper.first().into(), Mutex::new(upper));
        }
    }

    /// As [`ImmutableKeys::range`], with each part as it is at one moment.
    pub(crate) fn range(
        &self,
        range: KeyRange<'_>,
        backward: bool,
        limit: usize,
        take: impl FnMut(&[u8], &VersionChain),
    ) -> Option<Box<[u8]>> {
        take_range(self.0.overlapping(range).map(lock), range, backward, limit, take)
    }

    /// From now on nothing changes.
    pub(crate) fn freeze(self) -> ImmutableKeys {
        let Parts { parts, heads } = self.0;
        let frozen = |part: Box<(StoredKey, Mutex<Part, _>)>| Box::new((part.0, part.1.into_inner().expect(NO_PANIC)));
        let parts = Parts { parts: parts.into_iter().map(frozen).collect(), heads };
        let all = || parts.parts.iter().map(|part| &part.1);
        let (keys, newest) = (all().map(Part::len).sum(), all().map(Part::newest).max().unwrap_or(0));
        ImmutableKeys { parts, keys, newest }
    }
}

/// The keys of the immutable memtable.
pub(crate) struct ImmutableKeys {
    parts: Parts<Part>,
    keys: usize,
    newest: u64,
}

impl ImmutableKeys {
    /// The chain of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&VersionChain> {
        self.parts.of(key).get(key)
    }

    /// The entries of a key that are newer than a sequence, newest first.
    pub(crate) fn newer(&self, key: &[u8], sequence: u64) -> &[Entry] {
        // Few entries come later than others that are immutable by then: most need no look-up.
        if self.newest <= sequence {
            return &[];
        }
        let entries = self.get(key).map_or(&[][..], VersionChain::entries);
        &entries[..entries.partition_point(|other| other.sequence > sequence)]
    }

    /// All keys in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &VersionChain)> {
        self.parts.parts.iter().flat_map(|part| part.1.iter())
    }

    /// How many keys.
    pub(crate) fn len(&self) -> usize {
        self.keys
    }

    /// Calls a closure with at most `limit` keys of a range, from its start or, backward, from its end. Returns the last of them
    /// if they are as many: then there may be more.
    pub(crate) fn range(
        &self,
        range: KeyRange<'_>,
        backward: bool,
        limit: usize,
        take: impl FnMut(&[u8], &VersionChain),
    ) -> Option<Box<[u8]>> {
        take_range(self.parts.overlapping(range), range, backward, limit, take)
    }
}

fn take_range(
    mut parts: impl DoubleEndedIterator<Item = impl Deref<Target = Part>>,
    range: KeyRange<'_>,
    backward: bool,
    limit: usize,
    mut take: impl FnMut(&[u8], &VersionChain),
) -> Option<Box<[u8]>> {
    let (mut left, mut last) = (limit, None);
    let mut take_part = |part: &Part| {
        let most = left;
        let mut take = |(key, chain): (&[u8], &VersionChain)| {
            take(key, chain);
            left -= 1;
            if left == 0 {
                last = Some(Box::from(key));
            }
        };
        let all = part.range(range);
        if backward {
            all.rev().take(most).for_each(&mut take)
        } else {
            all.take(most).for_each(&mut take)
        }
        left > 0
    };
    let _exhausted =
        if backward { parts.rev().all(|part| take_part(&part)) } else { parts.all(|part| take_part(&part)) };
    last
}

fn lock(part: &Mutex<Part, { Rank::MemtablePart as u8 }>) -> MutexGuard<'_, Part> {
    part.lock().expect(NO_PANIC)
}

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it holds a part";
