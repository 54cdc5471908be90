//! Batches that are being published: what keeps gets from seeing a part of one.
//!
//! The records of a batch come to the indexes one after the other. A get that finds the first of them must not be followed by one that does
//! not find the second. So a batch is listed here before its first record comes to an index, until the last one is there; and a get that
//! has looked a key up waits for the batches that are listed then and may have the key. That takes as long as some records take from memory to
//! memory, and concerns only who asks for these very keys at this moment.

use std::collections::VecDeque;

use crate::format::record::Kind;
use crate::planted::{self, Bug};
use crate::store::catalog::Generation;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank, yield_now};

/// So many of the batches that were published last are remembered.
const REMEMBERED: usize = 64;

/// Bits that tell which keys a batch may have.
const WORDS: usize = 4;

/// The batches of a store that are being published, or were lately.
#[derive(Default)]
pub(crate) struct Groups {
    /// How many are being published. SeqCst: one is counted before its first record is found, and who has found that sees it counted.
    underway: AtomicUsize,
    /// How many were published.
    ended: AtomicU64,
    listed: Mutex<Listed, { Rank::Groups as u8 }>,
}

#[derive(Default)]
struct Listed {
    begun: u64,
    underway: Vec<Group>,
    /// The last ones, oldest first.
    ended: VecDeque<Group>,
}

/// A key of a batch, by its table and hash.
#[derive(Clone, Copy)]
pub(crate) enum GroupKey {
    One(u32, u64),
    /// A range of keys: any key may be in it.
    Range,
}

impl GroupKey {
    /// That of a record, if an index has such ones.
    pub(crate) fn of(kind: Kind, generation: &Generation, hash: u64) -> Option<GroupKey> {
        match kind {
            Kind::RangeTombstone => Some(GroupKey::Range),
            kind => kind.is_indexed().then_some(GroupKey::One(generation.id, hash)),
        }
    }
}

struct Group {
    number: u64,
    keys: [u64; WORDS],
}

impl Group {
    fn bit((table, hash): (u32, u64)) -> (usize, u64) {
        let mixed = (hash ^ u64::from(table)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
        (mixed as usize / 64, 1 << (mixed % 64))
    }

    fn add(&mut self, key: GroupKey) {
        match key {
            GroupKey::One(table, hash) => {
                let (word, bit) = Group::bit((table, hash));
                self.keys[word] |= bit;
            }
            GroupKey::Range => self.keys = [u64::MAX; WORDS],
        }
    }

    fn may_have(&self, key: (u32, u64)) -> bool {
        let (word, bit) = Group::bit(key);
        self.keys[word] & bit != 0
    }
}

/// A batch that is being published, until this is dropped.
pub(crate) struct Publishing<'a> {
    groups: &'a Groups,
    number: u64,
}

impl Groups {
    /// Lists a batch with these keys. None of its records is in an index yet.
    pub(crate) fn begin(&self, keys: impl Iterator<Item = GroupKey>) -> Publishing<'_> {
        let mut listed = self.listed();
        listed.begun += 1;
        let mut group = Group { number: listed.begun, keys: [0; WORDS] };
        if !planted::is_on(Bug::BatchSeenInPart) {
            keys.for_each(|key| group.add(key));
        }
        let number = group.number;
        listed.underway.push(group);
        self.underway.fetch_add(1, Ordering::SeqCst);
        Publishing { groups: self, number }
    }

    /// Returns when the batches are published that may have this key and of which an index has a record by now.
    pub(crate) fn wait_for(&self, key: impl FnOnce() -> (u32, u64)) {
        if self.underway.load(Ordering::SeqCst) == 0 {
            return;
        }
        let key = key();
        let last = self.listed().begun;
        let is_awaited = |group: &Group| group.number <= last && group.may_have(key);
        while self.listed().underway.iter().any(is_awaited) {
            yield_now();
        }
    }

    /// How many batches were published: for [`Groups::is_torn`].
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// Whether keys that were read since so many batches were published may show a part of one that was published meanwhile, or is now.
    pub(crate) fn is_torn(&self, ended: u64, keys: impl Iterator<Item = (u32, u64)> + Clone) -> bool {
        if self.underway.load(Ordering::SeqCst) == 0 && self.ended() == ended {
            return false;
        }
        let listed = self.listed();
        let since = self.ended() - ended;
        if since > listed.ended.len() as u64 {
            return true;
        }
        let has_several = |group: &Group| keys.clone().filter(|key| group.may_have(*key)).nth(1).is_some();
        listed.underway.iter().chain(listed.ended.iter().rev().take(since as usize)).any(has_several)
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().expect("no code panics while it lists a batch")
    }
}

impl Drop for Publishing<'_> {
    fn drop(&mut self) {
        let mut listed = self.groups.listed();
        let place = listed.underway.iter().position(|group| group.number == self.number);
        let group = listed.underway.swap_remove(place.expect("it was listed"));
        if listed.ended.len() == REMEMBERED {
            listed.ended.pop_front();
        }
        listed.ended.push_back(group);
        self.groups.ended.fetch_add(1, Ordering::SeqCst);
        self.groups.underway.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
