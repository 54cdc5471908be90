//! The memtables of an ordered index: entries that are published but not yet in the index's own durable state.
//!
//! There are two: the active one takes new entries, the immutable one is being committed. A look-up asks the active one,
//! the immutable one, then the index on disk; an entry leaves the memtables only after the commit that holds it is durable.

use std::ops::Bound;
use std::sync::Arc;

use smallvec::SmallVec;

use self::parts::{ActiveKeys, Chains, ImmutableKeys, LONGEST_IN_PLACE, MAX_PART_KEYS};
use super::chain::{Entry, NewEntry, Superseded, VersionChain};
use crate::format::position::Position;
use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Rank, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Keys that the active memtable may have before it must be immutable, what lies beside them counted among them.
pub(crate) const MAX_ACTIVE_KEYS: usize = 512 << 10;

/// So many bytes beside the places of keys count as one key in the bounds of a memtable: inline values, long keys, further entries of a key.
pub(crate) const BYTES_PER_KEY: usize = 256;

/// Bytes of memory of a key in a memtable, about: a short one with its entry, and its part of nodes that are not full.
pub(crate) const KEY_BYTES: usize = 300;

/// Keys that a memtable takes between two attempts to commit it where there is no room.
const MORE_KEYS: usize = 1024;

/// A range of index keys.
pub(crate) type KeyRange<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// What is asked of one layer of an index: keys of a range with their entries.
#[derive(Clone, Copy)]
pub(crate) struct RangeQuery<'a> {
    pub(crate) range: KeyRange<'a>,
    /// The rest of what the scan goes through, if that is more: other layers may know only now how far this step comes.
    pub(crate) whole: KeyRange<'a>,
    /// Whether the keys are taken from the range's end.
    pub(crate) backward: bool,
    /// Keys, at most.
    pub(crate) limit: usize,
    /// Entries up to this sequence count.
    pub(crate) newest: u64,
    /// Whether the cache is asked for what lies on disk, and given it.
    pub(crate) cached: bool,
}

/// The active memtable and the immutable one, if there is one.
#[derive(Default)]
struct Memtables {
    active: ActiveKeys,
    immutable: Option<Arc<ImmutableKeys>>,
}

impl Memtables {
    fn immutable(&self, key: &[u8]) -> Option<&VersionChain> {
        self.immutable.as_ref()?.get(key)
    }
}

/// An immutable memtable on its way to disk.
#[derive(Clone)]
pub(crate) struct ImmutableMemtable {
    pub(crate) chains: Arc<ImmutableKeys>,
    /// The position up to which the index has the log once all keys are committed.
    pub(crate) position: Position,
    /// The sequence after that position.
    pub(crate) next_sequence: u64,
    /// Keys that are committed already, in their order.
    pub(crate) committed: usize,
}

/// How many keys a memtable may have by the room on the disk, what lies beside them counted among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemtableRoom {
    /// The most that can be committed when no more room is to be had.
    pub(crate) keys: usize,
    /// Whether the disk has no room for any keys but those of deletes.
    pub(crate) is_short: bool,
    /// Bytes that must stay free for that.
    pub(crate) reserved_bytes: u64,
}

/// Both memtables of an index.
#[derive(Default)]
pub(crate) struct Memtable {
    /// Held for writing only where the active memtable becomes immutable, or the parts of it change; keys have locks of their own.
    both: RwLock<Memtables, { Rank::Memtables as u8 }>,
    /// Keys in the active memtable. Relaxed: it is changed under the lock, and bounds the memtable only roughly.
    active_keys: AtomicUsize,
    /// Bytes beside the places of its keys: of inline values, of long keys, of further entries. Relaxed, as above.
    active_beside_bytes: AtomicUsize,
    /// The same of the immutable one. Relaxed, as above.
    immutable_beside_bytes: AtomicUsize,
    /// Whether there may be any entry: most look-ups find none and need no lock. Set before an entry is there, cleared
    /// after its commit is durable: Release and Acquire, so that a look-up that finds it cleared finds the commit too.
    occupied: AtomicBool,
    /// See [`Memtable::freezes`]. SeqCst: it is read around a look-up in what lies below, which synchronises by means of its own.
    freezes: AtomicU64,
    /// How many immutable memtables were committed and forgotten. Relaxed: changed and asked under the lock.
    forgotten: AtomicU64,
    limit: Limit,
}

/// How many keys the active memtable may have, what lies beside them counted among them. Relaxed: a bound that publishes nothing, and may be met late.
struct Limit {
    keys: AtomicUsize,
    /// Whether there is no room on the disk for any keys but those of deletes.
    is_short: AtomicBool,
}

/// What a look-up in all layers has found of a key: the later copy of a record takes the place of one of these.
#[derive(Clone, Debug, Default)]
pub(crate) struct LookedUp {
    /// The key's records. Records of one key share them: a counter may have thousands in one segment.
    pub(crate) chain: Arc<VersionChain>,
    /// [`Memtable::freezes`] before the look-up.
    pub(crate) freezes: u64,
}

impl Default for Limit {
    fn default() -> Limit {
        Limit { keys: AtomicUsize::new(MAX_ACTIVE_KEYS), is_short: AtomicBool::new(false) }
    }
}

impl Memtable {
    /// Adds the entries of a key up to a sequence.
    pub(crate) fn lookup(&self, key: &[u8], newest: u64, chain: &mut VersionChain) {
        if self.occupied.load(Ordering::Acquire) {
            let both = self.read();
            both.active.find(key, |known| chain.add_below(known, newest));
            if !chain.is_complete() {
                both.immutable(key).into_iter().for_each(|known| chain.add_below(known, newest));
            }
        }
    }

    /// Inserts an entry. Entries that it supersedes, perhaps itself, are added to `superseded`; `retain` is told of them before
    /// a look-up can miss them. Returns how many operands of the key are in the active memtable.
    pub(crate) fn insert(
        &self,
        key: &[u8],
        NewEntry { mut entry, cover, out_of_order }: NewEntry,
        superseded: &mut Superseded,
        retain: impl Fn(&Superseded),
    ) -> usize {
        let both = self.read();
        // A write that waited for its batch comes here after later ones, which may have become immutable meanwhile.
        let newer = both.immutable.as_ref().map_or(&[][..], |immutable| immutable.newer(key, entry.sequence));
        if let Some(base) = newer.iter().find(|other| other.is_base()) {
            superseded.push((entry, base.sequence));
            retain(superseded);
            return 0;
        }
        let below_operands = entry.is_base() && !newer.is_empty() && !planted::is_on(Bug::LateBaseHidesOperands);
        let may_be_below = below_operands || entry.is_base() && out_of_order;
        let hidden = may_be_below.then(|| entry.without_value());
        self.change(both, key, entry.sequence, |chain| {
            if planted::is_on(Bug::InlineSurvivesOverwrite) && entry.inline.is_some() {
                entry.inline = chain.newest().and_then(|older| older.inline.clone()).or(entry.inline);
            }
            match cover {
                Some(cover) => chain.insert_covering(entry, cover, superseded),
                None => chain.insert(entry, superseded),
            }
            // A look-up that finds a base usually looks no further.
            if hidden.is_some_and(|entry| chain.entries().contains(&entry)) {
                chain.set_partial();
            }
            // No look-up comes before the lock is released.
            retain(superseded);
            chain.operands()
        })
    }

    /// Calls a closure with the active memtable's chain of a key, for an entry of this sequence to come there: there must be one then.
    fn change<T>(
        &self,
        both: RwLockReadGuard<'_, Memtables>,
        key: &[u8],
        sequence: u64,
        change: impl FnOnce(&mut VersionChain) -> T,
    ) -> T {
        self.occupied.store(true, Ordering::Release);
        let long_bytes = if key.len() > LONGEST_IN_PLACE { key.len() } else { 0 };
        let (changed, keys) = both.active.change(key, sequence, |chain| {
            let before = if chain.is_empty() { 0 } else { chain.beside_bytes() + long_bytes };
            let changed = change(chain);
            let more_bytes = (chain.beside_bytes() + long_bytes).wrapping_sub(before);
            if more_bytes != 0 {
                // Fewer bytes wrap around. Under the lock of the key, so that bytes are not taken off before they were added.
                self.active_beside_bytes.fetch_add(more_bytes, Ordering::Relaxed);
            }
            changed
        });
        if keys.is_some() {
            self.active_keys.fetch_add(1, Ordering::Relaxed);
        }
        drop(both);
        if keys.is_some_and(|keys| keys.is_multiple_of(MAX_PART_KEYS)) {
            self.write().active.split(key);
        }
        changed
    }

    /// Puts a later copy of a record in the place of the one that a look-up has found, if that is still current. `None` if the
    /// memtable that was the active one then is committed: a record that hides it may lie below by now. `superseded` and `retain` as
    /// for [`Memtable::insert`]; a record below the active memtable is superseded by that one's commit.
    pub(crate) fn replace(
        &self,
        key: &[u8],
        looked_up: &LookedUp,
        current: &Entry,
        entry: Entry,
        superseded: &mut Superseded,
        retain: impl Fn(&Superseded),
    ) -> Option<bool> {
        let both = self.read();
        if self.forgotten.load(Ordering::Relaxed) > looked_up.freezes && !planted::is_on(Bug::OldLookUpBelieved) {
            return None;
        }
        let hides = |chain: &VersionChain| chain.entries().iter().any(|other| hides(other, current));
        let is_in = |chain: &VersionChain| chain.entries().contains(current);
        let is_newer = |other: &&Entry| other.sequence > current.sequence;
        // An entry of the active memtable counts before one of the immutable memtable.
        let immutable_hides = both.immutable(key).is_some_and(hides);
        if immutable_hides && both.active.find(key, is_in) != Some(true) {
            return Some(false);
        }
        // What came between the look-up and the freeze is below the active memtable too.
        let immutable = both.immutable(key).map_or(&[][..], VersionChain::entries);
        let newer = looked_up.chain.entries().iter().chain(immutable).filter(is_newer);
        let newer: SmallVec<[Entry; 1]> = newer.map(Entry::without_value).collect();
        self.change(both, key, entry.sequence, |changed| {
            if hides(changed) || immutable_hides && !is_in(changed) {
                return Some(false);
            }
            changed.insert(entry, superseded);
            // A look-up that finds a base usually looks no further.
            if newer.iter().any(|other| !changed.entries().contains(other))
                && !planted::is_on(Bug::MovedBaseHidesOperands)
            {
                changed.set_partial();
            }
            retain(superseded);
            Some(true)
        })
    }

    /// Whether a record that a look-up has found is hidden by one that was published since; the look-up was made while the active
    /// memtable was the same.
    pub(crate) fn hides(&self, key: &[u8], current: &Entry) -> bool {
        let both = self.read();
        let hides = |chain: &VersionChain| chain.entries().iter().any(|other| hides(other, current));
        let of_active = both.active.find(key, |chain| (hides(chain), chain.entries().contains(current)));
        match of_active {
            Some((true, _)) => true,
            Some((false, true)) => false,
            _ => both.immutable(key).is_some_and(hides),
        }
    }

    /// The keys of a range, with their entries: at most the limit from each memtable. Says whether they had more.
    pub(crate) fn range(&self, query: RangeQuery<'_>) -> (Chains, Reached) {
        let RangeQuery { range, backward, limit, newest, .. } = query;
        let mut found = Chains::new();
        if !self.occupied.load(Ordering::Acquire) {
            return (found, Reached::End);
        }
        let mut add = |key: &[u8], known: &VersionChain| {
            if !found.contains_key(key) {
                found.insert(key.into(), VersionChain::default());
            }
            found.get_mut(key).expect("just made").add_below(known, newest);
        };
        let Memtables { active, immutable } = &*self.read();
        let active = active.range(range, backward, limit, &mut add);
        let immutable = immutable.as_ref().and_then(|immutable| immutable.range(range, backward, limit, &mut add));
        let reached = |last: Option<_>| last.map_or(Reached::End, Reached::Key);
        (found, reached(active).and(reached(immutable), backward))
    }

    /// Keys in both memtables.
    pub(crate) fn len(&self) -> usize {
        self.active_keys() + self.read().immutable.as_ref().map_or(0, |immutable| immutable.len())
    }

    /// Keys in the active memtable.
    pub(crate) fn active_keys(&self) -> usize {
        self.active_keys.load(Ordering::Relaxed)
    }

    /// What the bounds of the active memtable are compared with: its keys, and what lies beside them as so many more.
    pub(crate) fn active_load(&self) -> usize {
        self.active_keys() + self.active_beside_bytes.load(Ordering::Relaxed) / BYTES_PER_KEY
    }

    /// Bytes of memory of both memtables, about.
    pub(crate) fn memory_bytes(&self) -> u64 {
        if !self.occupied.load(Ordering::Acquire) {
            return 0;
        }
        let beside =
            [&self.active_beside_bytes, &self.immutable_beside_bytes].map(|bytes| bytes.load(Ordering::Relaxed));
        (self.len() * KEY_BYTES + beside[0] + beside[1]) as u64
    }

    /// How many keys the active memtable may have.
    pub(crate) fn most_keys(&self) -> usize {
        self.limit.keys.load(Ordering::Relaxed)
    }

    /// Whether the active memtable should become immutable before more is inserted.
    pub(crate) fn is_full(&self) -> bool {
        self.active_load() >= self.most_keys()
    }

    /// Whether the active memtable has half of what it may have.
    pub(crate) fn is_half_full(&self) -> bool {
        self.active_load() >= self.most_keys().div_ceil(2).max(1)
    }

    /// Sets how many keys the active memtable may have. True if these are more than before.
    pub(crate) fn limit(&self, room: MemtableRoom) -> bool {
        let keys = room.keys.min(MAX_ACTIVE_KEYS);
        self.limit.is_short.store(room.is_short, Ordering::Relaxed);
        keys > self.limit.keys.swap(keys, Ordering::Relaxed)
    }

    /// Lets the active memtable have no more than so many keys. What is known of the room on the disk stays.
    pub(crate) fn limit_further(&self, keys: usize) {
        self.limit.keys.fetch_min(keys, Ordering::Relaxed);
    }

    /// Whether a memtable that could not be committed for lack of room may have more keys all the same.
    pub(crate) fn may_grow(&self, without_bound: bool) -> bool {
        without_bound || self.active_load() < MAX_ACTIVE_KEYS
    }

    /// Lets the active memtable have some more keys before its commit is tried again.
    pub(crate) fn grow(&self) {
        self.limit.keys.store(self.active_load() + MORE_KEYS, Ordering::Relaxed);
    }

    /// Whether the disk has no room for the keys of puts.
    pub(crate) fn is_short(&self) -> bool {
        self.limit.is_short.load(Ordering::Relaxed)
    }

    /// How many memtables became immutable. As long as this has not changed, the entries that a look-up finds here go with the
    /// committed ones that it finds after them: a memtable is committed only after it became immutable, so entries that were
    /// committed in between were seen here.
    pub(crate) fn freezes(&self) -> u64 {
        self.freezes.load(Ordering::SeqCst)
    }

    /// Makes the active memtable immutable. The next one can become so only after [`Memtable::forget_immutable`].
    pub(crate) fn freeze(&self, position: Position, next_sequence: u64) -> ImmutableMemtable {
        let mut both = self.write();
        assert!(both.immutable.is_none(), "one memtable is committed at a time");
        self.freezes.fetch_add(1, Ordering::SeqCst);
        let chains = Arc::new(std::mem::take(&mut both.active).freeze());
        self.active_keys.store(0, Ordering::Relaxed);
        self.immutable_beside_bytes.store(self.active_beside_bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        both.immutable = Some(Arc::clone(&chains));
        ImmutableMemtable { chains, position, next_sequence, committed: 0 }
    }

    /// Drops the immutable memtable, whose commit is durable.
    pub(crate) fn forget_immutable(&self) {
        let mut both = self.write();
        let immutable = both.immutable.take();
        self.immutable_beside_bytes.store(0, Ordering::Relaxed);
        self.forgotten.fetch_add(u64::from(immutable.is_some()), Ordering::Relaxed);
        self.occupied.store(self.active_keys() > 0, Ordering::Release);
        drop(both);
        // Freeing many entries takes time: not under the lock.
        drop(immutable);
    }

    fn read(&self) -> RwLockReadGuard<'_, Memtables> {
        self.both.read().expect("no code panics while it holds the memtable")
    }

    fn write(&self) -> RwLockWriteGuard<'_, Memtables> {
        self.both.write().expect("no code panics while it holds the memtable")
    }
}

/// Whether a record counts no more where this one is.
fn hides(other: &Entry, record: &Entry) -> bool {
    match other.sequence.cmp(&record.sequence) {
        std::cmp::Ordering::Greater => other.is_base(),
        std::cmp::Ordering::Equal => other != record,
        std::cmp::Ordering::Less => false,
    }
}

/// How far a bounded look into one part of an index has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// To the end of the range.
    End,
    /// To this key.
    Key(Box<[u8]>),
}

impl Reached {
    /// The part of a range that was looked at.
    pub(crate) fn part_of<'a>(&'a self, range: KeyRange<'a>, backward: bool) -> KeyRange<'a> {
        match self {
            Reached::End => range,
            Reached::Key(key) if backward => (Bound::Included(key), range.1),
            Reached::Key(key) => (range.0, Bound::Included(key)),
        }
    }

    /// How far both parts have come.
    pub(crate) fn and(self, other: Reached, backward: bool) -> Reached {
        match (self, other) {
            (Reached::Key(one), Reached::Key(other)) => {
                Reached::Key(if backward { one.max(other) } else { one.min(other) })
            }
            (Reached::End, other) => other,
            (one, Reached::End) => one,
        }
    }
}

mod heads;
mod part;
pub(crate) mod parts;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
