//! Range tombstones that are not carried out yet: every look-up in an ordered index asks whether one of them contains its key.
//!
//! Carrying one out takes its keys out of the index in the background; then it is forgotten here. In the log it stays as
//! long as any other delete.

use super::chain::{Entry, Superseded};
pub(crate) use crate::format::entry::RangeTombstone;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Rank, RwLock};

/// So many are committed together, and carried out however little they have deleted: every look-up compares its key with each
/// of them.
pub(crate) const MANY_RANGES: usize = 32;

/// Which range tombstones are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Those that have deleted much of a file of a run. As long as few wait, the others are left to merges.
    WherePaid,
    /// All of them: a writer waits.
    AtOnce,
}

impl RangeTombstone {
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && *key < *self.end
    }
}

/// All of them, by sequence.
#[derive(Default)]
pub(crate) struct Ranges {
    all: RwLock<Vec<RangeTombstone>, { Rank::Ranges as u8 }>,
    /// How many there are: look-ups need no lock while there is none. Release and Acquire: a look-up that finds none left finds the
    /// keys of the last ones taken out.
    count: AtomicUsize,
}

impl Ranges {
    /// Adds one, unless it is known already.
    pub(crate) fn insert(&self, range: RangeTombstone) {
        let mut all = self.all.write().expect("no code panics while it holds the ranges");
        if let Err(at) = all.binary_search_by_key(&range.sequence, |known| known.sequence) {
            all.insert(at, range);
        }
        self.count.store(all.len(), Ordering::Release);
    }

    /// The sequence of the newest one up to `newest` that contains a key; 0 = none.
    pub(crate) fn newest_containing(&self, key: &[u8], newest: u64) -> u64 {
        let mut contains = |range: &&RangeTombstone| range.sequence <= newest && range.contains(key);
        self.look(|all| all.iter().rev().find(&mut contains).map_or(0, |range| range.sequence))
    }

    /// The sequence of the oldest one after `sequence` that contains a key; the highest number = none.
    pub(crate) fn first_after(&self, key: &[u8], sequence: u64) -> u64 {
        let contains = |range: &&RangeTombstone| range.sequence > sequence && range.contains(key);
        let found = self.look(|all| all.iter().find(contains).map_or(0, |range| range.sequence));
        if found == 0 { u64::MAX } else { found }
    }

    /// Superseded entries of a key; where a range tombstone came first, it is what superseded them.
    pub(crate) fn until(&self, key: &[u8], superseded: &Superseded) -> Superseded {
        let until = |(entry, until): &(Entry, u64)| (entry.clone(), self.first_after(key, entry.sequence).min(*until));
        superseded.iter().map(until).collect()
    }

    /// The oldest one.
    pub(crate) fn oldest(&self) -> Option<RangeTombstone> {
        self.all.read().expect("no code panics while it holds the ranges").first().cloned()
    }

    /// How many have this sequence or a later one.
    pub(crate) fn count_from(&self, sequence: u64) -> usize {
        let all = self.all.read().expect("no code panics while it holds the ranges");
        all.len() - all.partition_point(|range| range.sequence < sequence)
    }

    /// The sequence of the newest one.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.all.read().expect("no code panics while it holds the ranges").last().map(|range| range.sequence)
    }

    /// The oldest ones up to the first that is not as `wanted` says, at most `limit`.
    pub(crate) fn oldest_while(&self, limit: usize, wanted: impl Fn(&RangeTombstone) -> bool) -> Vec<RangeTombstone> {
        let all = self.all.read().expect("no code panics while it holds the ranges");
        all.iter().take(limit).take_while(|range| wanted(range)).cloned().collect()
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<RangeTombstone> {
        self.all.read().expect("no code panics while it holds the ranges").clone()
    }

    /// Whether the one with this sequence is not carried out yet.
    pub(crate) fn is_waiting(&self, sequence: u64) -> bool {
        let all = self.all.read().expect("no code panics while it holds the ranges");
        all.binary_search_by_key(&sequence, |range| range.sequence).is_ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Forgets the ones of which `done` says so.
    pub(crate) fn forget(&self, done: impl Fn(&RangeTombstone) -> bool) {
        let mut all = self.all.write().expect("no code panics while it holds the ranges");
        all.retain(|range| !done(range));
        self.count.store(all.len(), Ordering::Release);
    }

    fn look(&self, find: impl FnOnce(&[RangeTombstone]) -> u64) -> u64 {
        if self.len() == 0 {
            return 0;
        }
        find(&self.all.read().expect("no code panics while it holds the ranges"))
    }
}
