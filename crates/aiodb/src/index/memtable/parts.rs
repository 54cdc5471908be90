//! Keys in order, in parts of which each has a lock of its own.
//!
//! On a busy machine a thread is stopped at any moment, also while it holds a lock, and for milliseconds. Under one lock for
//! all keys every writer would then wait for it; so only a writer of a key near by does.

use std::collections::BTreeMap;
use std::ops::{Bound, Deref};

use smallvec::SmallVec;

use super::KeyRange;
use crate::index::chain::VersionChain;
use crate::sync::{Mutex, MutexGuard, Rank};

/// Keys with which a part is split.
pub(crate) const MAX_PART_KEYS: usize = if cfg!(feature = "shuttle") { 4 } else { 256 };

/// A key in memory, in its place up to a usual length: a search that followed a pointer for each key that it compares would wait for
/// memory each time.
pub(crate) type StoredKey = SmallVec<[u8; 32]>;

/// The chains of index keys that follow each other.
pub(crate) type Chains = BTreeMap<StoredKey, VersionChain>;

/// Parts in order, each a `P` behind its first key: it has the keys from there on, up to the next part's first key.
struct Parts<P>(Vec<(StoredKey, P)>);

impl<P> Parts<P> {
    /// The number of the part that a key is in.
    fn number_of(&self, key: &[u8]) -> usize {
        // The first part begins before all keys.
        self.0.partition_point(|(from, _)| from[..] <= *key) - 1
    }

    fn of(&self, key: &[u8]) -> &P {
        &self.0[self.number_of(key)].1
    }

    /// The parts in which keys of a range can be.
    fn overlapping(&self, (start, end): KeyRange<'_>) -> impl DoubleEndedIterator<Item = &P> {
        let number_of = |bound, open| match bound {
            Bound::Included(key) | Bound::Excluded(key) => self.number_of(key),
            Bound::Unbounded => open,
        };
        let (first, last) = (number_of(start, 0), number_of(end, self.0.len() - 1));
        self.0[first..=last].iter().map(|(_, part)| part)
    }
}

/// The keys of the active memtable.
pub(crate) struct ActiveKeys(Parts<Mutex<Chains, { Rank::MemtablePart as u8 }>>);

impl Default for ActiveKeys {
    fn default() -> ActiveKeys {
        ActiveKeys(Parts(vec![(StoredKey::new(), Mutex::default())]))
    }
}

impl ActiveKeys {
    /// Calls a closure with the chain of a key, if the key is here.
    pub(crate) fn find<T>(&self, key: &[u8], ask: impl FnOnce(&VersionChain) -> T) -> Option<T> {
        lock(self.0.of(key)).get(key).map(ask)
    }

    /// Calls a closure with the chain of a key, an empty one if the key is new, for it to be changed: it must leave an entry there.
    /// For a new key returns how many keys its part has with it.
    pub(crate) fn change<T>(&self, key: StoredKey, change: impl FnOnce(&mut VersionChain) -> T) -> (T, Option<usize>) {
        let mut part = lock(self.0.of(&key));
        let before = part.len();
        let changed = change(part.entry(key).or_default());
        let keys = part.len();
        (changed, (keys > before).then_some(keys))
    }

    /// Splits the part that a key is in, if it is still large.
    pub(crate) fn split(&mut self, key: &[u8]) {
        let number = self.0.number_of(key);
        let part = self.0.0[number].1.get_mut().expect(NO_PANIC);
        if part.len() >= MAX_PART_KEYS {
            let middle = part.keys().nth(part.len() / 2).expect("it is large").clone();
            let upper = part.split_off(&middle);
            self.0.0.insert(number + 1, (middle, Mutex::new(upper)));
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
        let parts = self.0.0.into_iter().map(|(from, part)| (from, part.into_inner().expect(NO_PANIC)));
        let parts: Vec<(StoredKey, Chains)> = parts.collect();
        let keys = parts.iter().map(|(_, part)| part.len()).sum();
        ImmutableKeys { parts: Parts(parts), keys }
    }
}

/// The keys of the immutable memtable.
pub(crate) struct ImmutableKeys {
    parts: Parts<Chains>,
    keys: usize,
}

impl ImmutableKeys {
    /// The chain of a key.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&VersionChain> {
        self.parts.of(key).get(key)
    }

    /// All keys in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &VersionChain)> {
        self.parts.0.iter().flat_map(|(_, part)| part).map(|(key, chain)| (&**key, chain))
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
    mut parts: impl DoubleEndedIterator<Item = impl Deref<Target = Chains>>,
    range: KeyRange<'_>,
    backward: bool,
    limit: usize,
    mut take: impl FnMut(&[u8], &VersionChain),
) -> Option<Box<[u8]>> {
    let (mut left, mut last) = (limit, None);
    let mut take_part = |part: &Chains| {
        let most = left;
        let mut take = |(key, chain): (&[u8], &VersionChain)| {
            take(key, chain);
            left -= 1;
            if left == 0 {
                last = Some(Box::from(key));
            }
        };
        let all = part.range::<[u8], _>(range).map(|(key, chain)| (&**key, chain));
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

fn lock(part: &Mutex<Chains, { Rank::MemtablePart as u8 }>) -> MutexGuard<'_, Chains> {
    part.lock().expect(NO_PANIC)
}

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it holds a part";
