//! Batches that are being published: what keeps gets from seeing a part of one.
//!
//! The records of a batch come to the indexes one after the other. A get that finds the first of them must not be followed by one that does
//! not find the second. So a batch is listed here before its first record comes to an index, until the last one is there; and a get that
//! has looked a key up waits for the batches that are listed then and have the key. That takes as long as the publication of one batch, and concerns
//! only those who ask for its keys at this moment. The delete of a range is listed too, for those who ask for several keys: each of them may
//! be in it.
//!
//! A batch may change a key more than once: put it twice, or delete a range and put a key of it. A look-up may find the state between two of these
//! changes. So who has waited for such a batch looks the key up again, and so does who finds that one was published during the look-up.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::format::record::Kind;
use crate::planted::{self, Bug};
use crate::store::catalog::Generation;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank, yield_now};

/// So many of the batches that were published last are remembered, if they do not have more keys.
const REMEMBERED: usize = 1024;
const REMEMBERED_KEYS: usize = 1 << 15;

/// The batches of a store that are being published, or were lately.
#[derive(Default)]
pub(crate) struct Groups {
    /// How many are being published. SeqCst: one is counted before its first record is found, and who has found that sees it counted.
    underway: AtomicUsize,
    /// How many were published.
    ended: AtomicU64,
    /// How many were published that change a key more than once.
    again: AtomicU64,
    listed: Mutex<Listed, { Rank::Groups as u8 }>,
}

#[derive(Default)]
struct Listed {
    begun: u64,
    underway: Vec<(u64, Keys)>,
    ended: Remembered,
    /// Those of them that change a key more than once.
    again: Remembered,
}

/// The batches that were published last.
#[derive(Default)]
struct Remembered {
    /// Oldest first.
    batches: VecDeque<Keys>,
    /// How many keys they have.
    keys: usize,
}

impl Remembered {
    fn push(&mut self, keys: Keys) {
        self.keys += keys.these.len();
        self.batches.push_back(keys);
        while self.batches.len() > REMEMBERED || self.keys > REMEMBERED_KEYS {
            let Some(oldest) = self.batches.pop_front() else { break };
            self.keys -= oldest.these.len();
        }
    }

    /// The last of them, so many; `None` if not all of these are remembered.
    fn last(&self, count: u64) -> Option<impl Iterator<Item = &Keys>> {
        (count <= self.batches.len() as u64).then(|| self.batches.iter().rev().take(count as usize))
    }
}

/// The keys of a batch.
#[derive(Clone)]
struct Keys {
    /// In order and each once, as [`group_key`] has it.
    these: Arc<[u64]>,
    /// Those of them that come more than once.
    again: Box<[u64]>,
    /// Whether there is a range besides, in which any key may be.
    has_range: bool,
}

impl Keys {
    fn new(mut keys: Vec<u64>, has_range: bool) -> Keys {
        keys.sort_unstable();
        let mut again: Vec<u64> = keys.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        again.dedup();
        keys.dedup();
        Keys { these: keys.into(), again: again.into(), has_range }
    }

    fn have(&self, key: u64) -> bool {
        self.has_range || self.these.binary_search(&key).is_ok()
    }

    /// Whether the batch changes this key more than once, or may.
    fn change_again(&self, key: u64) -> bool {
        let several: &[u64] = if self.has_range { &self.these } else { &self.again };
        several.binary_search(&key).is_ok()
    }

    /// Whether there is such a key.
    fn change_any_again(&self) -> bool {
        if self.has_range { !self.these.is_empty() } else { !self.again.is_empty() }
    }
}

/// A key, by its table and hash. That two have the same does no harm.
pub(crate) fn group_key(table: u32, hash: u64) -> u64 {
    hash ^ u64::from(table).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// What a batch has.
#[derive(Clone, Copy)]
pub(crate) enum GroupKey {
    /// As [`group_key`] has it.
    One(u64),
    /// A range of keys.
    Range,
}

impl GroupKey {
    /// The key of a record, if an index has such ones.
    pub(crate) fn of(kind: Kind, generation: &Generation, hash: u64) -> Option<GroupKey> {
        match kind {
            Kind::RangeTombstone => Some(GroupKey::Range),
            kind => kind.is_indexed().then(|| GroupKey::One(group_key(generation.id, hash))),
        }
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
        let (mut known, mut is_range) = (Vec::new(), false);
        for key in keys {
            match key {
                GroupKey::One(key) => known.push(key),
                GroupKey::Range => is_range = true,
            }
        }
        if planted::is_on(Bug::BatchSeenInPart) {
            (known, is_range) = (Vec::new(), false);
        }
        let keys = Keys::new(known, is_range);
        let mut listed = self.listed();
        listed.begun += 1;
        let number = listed.begun;
        listed.underway.push((number, keys));
        self.underway.fetch_add(1, Ordering::SeqCst);
        Publishing { groups: self, number }
    }

    /// Returns when the batches are published that have this key, or may, and of which an index has a record by now. True if one of them, or one
    /// that was published since there were `again` of [`Groups::again`], changes the key more than once: what was looked up since then may be
    /// a state between two of its changes.
    pub(crate) fn wait_for(&self, again: u64, key: impl FnOnce() -> u64) -> bool {
        if self.underway.load(Ordering::SeqCst) == 0 && self.again() == again {
            return false;
        }
        let key = key();
        let last = self.listed().begun;
        while self.listed().underway.iter().any(|(number, keys)| *number <= last && keys.have(key)) {
            yield_now();
        }
        let listed = self.listed();
        let since = listed.again.last(self.again() - again);
        let changes = since.is_none_or(|mut batches| batches.any(|batch| batch.change_again(key)));
        changes && !planted::is_on(Bug::BatchSeenBetween)
    }

    /// How many batches were published that change a key more than once: for [`Groups::wait_for`].
    pub(crate) fn again(&self) -> u64 {
        self.again.load(Ordering::SeqCst)
    }

    /// How many batches were published: for [`Groups::is_torn`].
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::SeqCst)
    }

    /// Whether `keys` that were read since so many batches were published may show a part of one that was published meanwhile, or is now.
    pub(crate) fn is_torn(&self, ended: u64, keys: impl FnOnce() -> Vec<u64>) -> bool {
        if self.underway.load(Ordering::SeqCst) == 0 && self.ended() == ended {
            return false;
        }
        let batches: Vec<Keys> = {
            let listed = self.listed();
            let Some(since) = listed.ended.last(self.ended() - ended) else { return true };
            listed.underway.iter().map(|(_, keys)| keys).chain(since).cloned().collect()
        };
        let keys = keys();
        batches.iter().any(|batch| keys.iter().filter(|key| batch.have(**key)).nth(1).is_some())
    }

    fn listed(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().expect("no code panics while it lists a batch")
    }
}

impl Drop for Publishing<'_> {
    fn drop(&mut self) {
        let mut listed = self.groups.listed();
        let place = listed.underway.iter().position(|(number, _)| *number == self.number);
        let (_, keys) = listed.underway.swap_remove(place.expect("it was listed"));
        if keys.change_any_again() {
            listed.again.push(keys.clone());
            self.groups.again.fetch_add(1, Ordering::SeqCst);
        }
        listed.ended.push(keys);
        self.groups.ended.fetch_add(1, Ordering::SeqCst);
        self.groups.underway.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
