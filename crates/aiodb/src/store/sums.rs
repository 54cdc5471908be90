//! The short values of keys of `hash` tables that merge: a merge need not read what it applies to.
//!
//! A `hash` index knows places only. So the last value of a key is kept here, with the place of its record. It counts as long as that place
//! is the newest under the tag of the key: a later record of the key has another one, and so has a copy of the same record.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::budget::{Accounts, Held, Part};
use crate::log::commit::Over;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank};

/// Values of all keys together take at most so many bytes, and at most one of so many parts of the budget.
const MOST_BYTES: u64 = 16 << 20;
const BUDGET_SHARE: u64 = 32;

const SHARDS: usize = 16;

/// What an entry takes besides its key and a long value, with what the map leaves free.
const ENTRY_BYTES: u64 = 160;

/// The present value of a key.
#[derive(Clone)]
pub(crate) struct Sum {
    pub(crate) over: Over,
    pub(crate) value: SmallVec<[u8; 16]>,
}

struct Known {
    key: Box<[u8]>,
    sum: Sum,
    /// Whether it was asked for since it last was to leave.
    is_used: bool,
}

impl Known {
    fn bytes(&self) -> u64 {
        let apart = if self.sum.value.spilled() { self.sum.value.len() } else { 0 };
        ENTRY_BYTES + (self.key.len() + apart) as u64
    }
}

/// The values of some keys, by table and hash: of two keys with one hash the later one stays.
#[derive(Default)]
struct Shard {
    known: HashMap<(u32, u64), Known>,
    /// All of them, each once: the first one leaves first, unless it was used.
    order: VecDeque<(u32, u64)>,
    bytes: u64,
}

impl Shard {
    fn evict(&mut self) {
        let Some(first) = self.order.pop_front() else { return };
        let known = self.known.get_mut(&first).expect("what is in order is known");
        if std::mem::take(&mut known.is_used) {
            self.order.push_back(first);
        } else {
            self.bytes -= known.bytes();
            self.known.remove(&first);
        }
    }
}

/// The values.
pub(crate) struct Sums {
    shards: [Mutex<Shard, { Rank::Sums as u8 }>; SHARDS],
    held: Held,
    /// Relaxed: it publishes nothing.
    most_bytes: AtomicU64,
}

impl Sums {
    /// None yet; what they take counts in these accounts.
    pub(crate) fn counted_in(accounts: &Arc<Accounts>) -> Sums {
        let (shards, held) = (Default::default(), Held::new(accounts, Part::Sums, 0));
        Sums { shards, held, most_bytes: AtomicU64::new(MOST_BYTES) }
    }

    /// Bounds what they take by the budget of the store. Where they take more, some leave.
    pub(crate) fn set_budget(&self, budget_bytes: u64) {
        let most_bytes = MOST_BYTES.min(budget_bytes / BUDGET_SHARE);
        if self.most_bytes.swap(most_bytes, Ordering::Relaxed) > most_bytes {
            self.shards.iter().for_each(|shard| self.bound(&mut lock(shard)));
        }
    }

    /// Has some values of a shard leave, if they take too much.
    fn bound(&self, shard: &mut Shard) {
        let most = self.most_bytes.load(Ordering::Relaxed) / SHARDS as u64;
        let before = shard.bytes;
        // Each goes round once at most, and the one that was used last stays.
        for _ in 0..2 * shard.order.len() {
            if shard.bytes <= most || shard.order.len() == 1 {
                break;
            }
            shard.evict();
        }
        self.held.change(before, shard.bytes);
    }

    /// The last value that was kept of a key.
    pub(crate) fn get(&self, (table, hash): (u32, u64), key: &[u8]) -> Option<Sum> {
        let mut shard = self.shard(hash);
        let known = shard.known.get_mut(&(table, hash)).filter(|known| *known.key == *key)?;
        known.is_used = true;
        Some(known.sum.clone())
    }

    /// Keeps a value, unless a later one of the key is there.
    pub(crate) fn insert(&self, (table, hash): (u32, u64), key: &[u8], sum: Sum) {
        let mut shard = self.shard(hash);
        let before = shard.bytes;
        match shard.known.get_mut(&(table, hash)) {
            Some(known) if *known.key == *key && known.sum.over.sequence > sum.over.sequence => return,
            Some(known) => {
                let freed = known.bytes();
                (known.key, known.sum) = (key.into(), sum);
                let taken = known.bytes();
                shard.bytes = shard.bytes - freed + taken;
            }
            None => {
                let known = Known { key: key.into(), sum, is_used: false };
                shard.bytes += known.bytes();
                shard.known.insert((table, hash), known);
                shard.order.push_back((table, hash));
            }
        }
        self.held.change(before, shard.bytes);
        self.bound(&mut shard);
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The lowest bits: the highest ones choose a shard of the index.
        lock(&self.shards[hash as usize % SHARDS])
    }
}

fn lock(shard: &Mutex<Shard, { Rank::Sums as u8 }>) -> MutexGuard<'_, Shard> {
    shard.lock().expect("no code panics while it holds these values")
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
