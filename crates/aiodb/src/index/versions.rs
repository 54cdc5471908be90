//! Records that newer ones have superseded, for the snapshots that can see them. The list knows nothing of index kinds:
//! its keys are a table's id and a key as that table's index has it.

use std::collections::BTreeMap;
use std::ops::Bound;

use smallvec::SmallVec;

use crate::index::chain::{Entry, VersionChain};
use crate::index::range_tombstones::RangeTombstone;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Rank, RwLock};

/// The list is searched for versions that no snapshot needs any more when it has grown by this many.
const PRUNE_STEP: usize = 1024;

/// A superseded record.
struct Version {
    entry: Entry,
    /// The sequence that superseded it.
    until: u64,
}

type Map = BTreeMap<Box<[u8]>, SmallVec<[Version; 1]>>;

/// The list.
#[derive(Default)]
pub(super) struct Versions {
    map: RwLock<Map, { Rank::Versions as u8 }>,
    /// How many there are. Release and Acquire, which is more than it needs: a version is counted before the index forgets its
    /// entry under a lock of its own, so a look-up that misses the entry finds the count raised.
    count: AtomicUsize,
    /// The count after the last search. Relaxed: it only says when to search next.
    pruned_to: AtomicUsize,
}

impl Versions {
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Adds a version. Of two copies of one record the later counts, for as long as either would; `later` says whether
    /// this is a later copy than one that is here already.
    pub(super) fn insert(&self, key: &[u8], entry: Entry, until: u64, later: bool) {
        let mut map = self.map.write().expect("no code panics while it holds the versions");
        if !map.contains_key(key) {
            map.insert(key.into(), SmallVec::new());
        }
        let versions = map.get_mut(key).expect("just made");
        match versions.iter_mut().find(|version| version.entry.sequence == entry.sequence) {
            Some(version) => {
                version.until = until.max(version.until);
                if later {
                    version.entry = entry;
                }
            }
            None => {
                versions.push(Version { entry, until });
                self.count.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// Adds the versions of a key that count at a sequence.
    pub(super) fn add(&self, key: &[u8], sequence: u64, chain: &mut VersionChain) {
        if self.len() == 0 {
            return;
        }
        let map = self.map.read().expect("no code panics while it holds the versions");
        for version in map.get(key).into_iter().flatten() {
            if version.entry.sequence <= sequence && sequence < version.until {
                chain.insert_below(&version.entry);
            }
        }
    }

    /// Ends the versions that a range tombstone superseded before what did so in their key.
    pub(super) fn end_at(&self, range: &RangeTombstone) {
        // A user's range may end before it begins.
        if self.len() == 0 || range.start >= range.end {
            return;
        }
        let mut map = self.map.write().expect("no code panics while it holds the versions");
        let within = (Bound::Included(&*range.start), Bound::Excluded(&*range.end));
        for version in map.range_mut::<[u8], _>(within).flat_map(|(_, versions)| versions) {
            if version.entry.sequence < range.sequence {
                version.until = version.until.min(range.sequence);
            }
        }
    }

    /// The keys in a range.
    pub(super) fn keys(&self, range: (Bound<&[u8]>, Bound<&[u8]>)) -> Vec<Box<[u8]>> {
        if self.len() == 0 {
            return Vec::new();
        }
        let map = self.map.read().expect("no code panics while it holds the versions");
        map.range::<[u8], _>(range).map(|(key, _)| key.clone()).collect()
    }

    /// Forgets versions that are not `needed`: all at once when `none` is, else when enough have gathered since the last time.
    pub(super) fn prune(&self, none: bool, needed: impl Fn(u64, u64) -> bool) {
        let count = self.len();
        if count == 0 || (!none && count < 2 * self.pruned_to.load(Ordering::Relaxed) + PRUNE_STEP) {
            return;
        }
        let mut map = self.map.write().expect("no code panics while it holds the versions");
        if none {
            map.clear();
        }
        map.retain(|_, versions| {
            versions.retain(|version| needed(version.entry.sequence, version.until));
            !versions.is_empty()
        });
        let left = map.values().map(SmallVec::len).sum();
        self.count.store(left, Ordering::Release);
        self.pruned_to.store(left, Ordering::Relaxed);
    }
}
