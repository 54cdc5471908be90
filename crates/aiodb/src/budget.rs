//! One budget for the memory of a store: what its parts take, and how much each of them may.
//!
//! Some parts come and go in pieces: files of sorted runs, tables of slots, buffers. Each piece holds its bytes in the accounts as long as it is
//! there ([`Held`]), so a counter that all threads share changes with a file, a table that grows or a buffer, never with a put or a get. Memtables
//! and caches count themselves, and are asked. [`Demand::bounds`] says what the parts may take that can give memory back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A part that holds its memory in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Fences and marks of sorted runs.
    Runs,
    /// Filters of sorted runs. Where they do not fit, those that save the fewest reads go.
    Filters,
    /// Slots of `hash` tables. They move on to files beyond their bound.
    Hash,
    /// Values of keys of `hash` tables that merge.
    Sums,
    /// Filters and fences of files of superseded records.
    Versions,
    /// Memory for batches that are not written yet.
    Batches,
    /// Of readers and scans, and of those who write runs and merge them.
    Buffers,
}

const PARTS: usize = 7;

/// Bytes of each part. Relaxed: they publish nothing.
#[derive(Debug)]
pub(crate) struct Accounts {
    parts: [AtomicU64; PARTS],
    /// See [`Accounts::filter_room`]. Relaxed, as the parts.
    filter_room: AtomicU64,
}

impl Default for Accounts {
    fn default() -> Accounts {
        Accounts { parts: Default::default(), filter_room: AtomicU64::new(u64::MAX) }
    }
}

impl Accounts {
    /// Bytes that a part holds.
    pub(crate) fn bytes(&self, part: Part) -> u64 {
        self.parts[part as usize].load(Ordering::Relaxed)
    }

    /// Bytes that all filters may take together.
    pub(crate) fn filter_room(&self) -> u64 {
        self.filter_room.load(Ordering::Relaxed)
    }

    /// Says how many bytes all filters may take together.
    pub(crate) fn set_filter_room(&self, bytes: u64) {
        self.filter_room.store(bytes, Ordering::Relaxed);
    }
}

/// Bytes that a piece of a part holds until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    accounts: Arc<Accounts>,
    part: Part,
    /// Relaxed, as those of the part.
    bytes: AtomicU64,
}

impl Held {
    pub(crate) fn new(accounts: &Arc<Accounts>, part: Part, bytes: u64) -> Held {
        let held = Held { accounts: Arc::clone(accounts), part, bytes: AtomicU64::new(0) };
        held.change(0, bytes);
        held
    }

    /// The piece took `before` bytes and takes `after` now, or a part of it does: several threads may change parts of one piece.
    pub(crate) fn change(&self, before: u64, after: u64) {
        if after == before {
            return;
        }
        // Less wraps around.
        let more = after.wrapping_sub(before);
        self.bytes.fetch_add(more, Ordering::Relaxed);
        self.accounts.parts[self.part as usize].fetch_add(more, Ordering::Relaxed);
    }

    /// The piece takes so many bytes now. Only one thread may say so.
    pub(crate) fn set(&self, bytes: u64) {
        self.change(self.bytes(), bytes);
    }

    /// What it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The accounts in which it counts.
    pub(crate) fn accounts(&self) -> &Arc<Accounts> {
        &self.accounts
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Where no budget is chosen it is some of so many parts of the memory that there is:
const DEFAULT_SHARES: u64 = 8;

/// usually two...
const USUAL_SHARES: u64 = 2;

/// ...or more, so that what is needed leaves one to memtables and caches...
const FREE_SHARES: u64 = 1;

/// ...but not more than six.
const MOST_SHARES: u64 = 6;

/// The least that it takes then.
pub(crate) const LEAST_DEFAULT_BYTES: u64 = 64 << 20;

/// The budget where none is chosen: `machine` is the memory that there is, of which `stores` stores take their part; `needed` is
/// [`Demand::needed`].
pub(crate) fn default_bytes(machine: u64, stores: u64, needed: u64) -> u64 {
    let part = machine / DEFAULT_SHARES / stores.max(1);
    let wanted = needed.saturating_add(FREE_SHARES * part);
    wanted.clamp(USUAL_SHARES * part, MOST_SHARES * part).max(LEAST_DEFAULT_BYTES)
}

/// The largest budget where none is chosen.
pub(crate) fn most_default_bytes(machine: u64, stores: u64) -> u64 {
    default_bytes(machine, stores, u64::MAX)
}

/// Buffers take so much at times: of a flush, of a merge, of reclaim, of a checkpoint. It is left to them, so that caches need not make room for each
/// of them.
pub(crate) const BUFFER_BYTES: u64 = 8 << 20;

/// Slots of `hash` tables may take one part in so many of what the other parts can do without. Where keys come faster than slots move on to files,
/// writers are slowed so that they take no more than half as much again.
const HASH_SHARE: u64 = 2;

/// They are not made fewer than these: runs of so few places would be many.
const LEAST_HASH_BYTES: u64 = 4 << 20;

/// Filters of sorted runs leave one part in so many of the budget to memtables, caches and slots of `hash` tables.
const FILTERS_LEAVE_SHARE: u64 = 4;

/// Superseded records in memory may take one part in so many.
const VERSIONS_SHARE: u64 = 16;

/// Two parts in so many of what can be moved are for memtables.
const MEMTABLES_SHARE: u64 = 5;

/// What a store has, and what its parts would take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// The budget.
    pub(crate) budget: u64,
    /// What cannot be given back, or not at once: runs, slots, files of versions, batches, buffers.
    pub(crate) fixed: u64,
    /// How many ordered indexes there are. Each has memtables.
    pub(crate) indexes: u64,
    /// The memtables of one index, both together.
    pub(crate) memtables: Limits,
    /// Superseded records in memory.
    pub(crate) versions: Limits,
    pub(crate) block_cache: Limits,
    /// The cache of values has the size that was chosen, or none...
    pub(crate) cache: u64,
    /// ...or all that is left: tables want their values in memory.
    pub(crate) cache_takes_rest: bool,
}

/// The least and the most that a part may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// Whether somebody has chosen the most: such parts come before those of which the store decides.
    pub(crate) is_chosen: bool,
}

impl Limits {
    fn clamp(self, bytes: u64) -> u64 {
        bytes.min(self.most).max(self.least)
    }

    /// What it would take above its least, if that was chosen.
    fn chosen_above(self) -> u64 {
        if self.is_chosen { self.most.saturating_sub(self.least) } else { 0 }
    }
}

/// What the parts may take that can give memory back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The memtables of each ordered index, both together.
    pub(crate) memtables: u64,
    pub(crate) versions: u64,
    pub(crate) block_cache: u64,
    pub(crate) cache: u64,
}

impl Demand {
    /// What cannot be given back comes first, then floors, then sizes that somebody has chosen. Of the rest memtables have two fifths, and
    /// the cache of blocks what is left, as much as it can use; then values, where tables want theirs in memory. Where there is too little for all chosen sizes each has its part of what it wants.
    pub(crate) fn bounds(&self) -> Bounds {
        let free = self.budget.saturating_sub(self.fixed);
        let floors = self.indexes * self.memtables.least + self.block_cache.least;
        let versions = self.versions.clamp((self.budget / VERSIONS_SHARE).min(free.saturating_sub(floors) / 2));
        let movable = free.saturating_sub(versions);
        let above_floors = movable.saturating_sub(floors);
        let of_memtables = self.indexes.saturating_mul(self.memtables.chosen_above());
        let chosen = [of_memtables, self.block_cache.chosen_above(), self.cache];
        // Each may be the largest number there is, from somebody who wants no bound.
        let wanted: u128 = chosen.iter().copied().map(u128::from).sum();
        let [memtables, block_cache, cache] = chosen.map(|wish| {
            if wanted <= u128::from(above_floors) {
                wish
            } else {
                (u128::from(above_floors) * u128::from(wish) / wanted) as u64
            }
        });
        // With the floors of parts of which the store decides.
        let left = movable.saturating_sub(memtables + block_cache + cache);
        let memtables = match self.memtables.is_chosen {
            true => self.memtables.least + memtables / self.indexes.max(1),
            false => {
                let most = left.saturating_sub(self.block_cache.least).min(2 * (left / MEMTABLES_SHARE));
                self.memtables.clamp(most / self.indexes.max(1))
            }
        };
        let block_cache = match self.block_cache.is_chosen {
            true => self.block_cache.least + block_cache,
            false => self.block_cache.clamp(movable.saturating_sub(self.indexes * memtables + cache)),
        };
        let rest = movable.saturating_sub(self.indexes * memtables + block_cache + cache);
        let cache = cache + if self.cache_takes_rest { rest } else { 0 };
        Bounds { memtables, versions, block_cache, cache }
    }

    /// What slots of `hash` tables may take before the oldest of them move on to files, where they take `slots` now, which is among what
    /// cannot be given back at once.
    pub(crate) fn hash_bound(&self, slots: u64) -> u64 {
        let others = self.needed().saturating_sub(slots);
        (self.budget.saturating_sub(others) / HASH_SHARE).max(LEAST_HASH_BYTES)
    }

    /// What filters of sorted runs may take. `beside` is what else cannot be given back, slots of `hash` tables aside, which can.
    pub(crate) fn filter_room(&self, beside: u64) -> u64 {
        (self.budget - self.budget / FILTERS_LEAVE_SHARE).saturating_sub(beside)
    }

    /// The least budget with which a store works: what cannot be given back, and all floors at once.
    pub(crate) fn least_budget(&self) -> u64 {
        self.fixed + self.indexes.max(1) * self.memtables.least + self.versions.least
    }

    /// The least budget with which all parts have, beside their floors, the sizes that somebody has chosen.
    pub(crate) fn needed(&self) -> u64 {
        let of_memtables = self.indexes.max(1).saturating_mul(self.memtables.chosen_above());
        let beside = [self.block_cache.least, of_memtables, self.block_cache.chosen_above(), self.cache];
        beside.into_iter().fold(self.least_budget(), u64::saturating_add)
    }
}

/// The memory of a store: the budget, and what its parts take of it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// What all parts together may take, see [`crate::Options::memory_bytes`].
    pub budget_bytes: u64,
    /// Keys of ordered tables that were written and that no file of an index has yet, about.
    pub memtable_bytes: u64,
    /// Filters, fences and marks of sorted runs.
    pub run_bytes: u64,
    /// Slots of `hash` tables, and values of those that merge.
    pub hash_bytes: u64,
    /// Superseded records that snapshots need, about, and filters and fences of the files that have the others.
    pub version_bytes: u64,
    /// Memory for batches that are not written yet.
    pub batch_bytes: u64,
    /// Buffers of readers and long scans, of flushes and merges.
    pub buffer_bytes: u64,
    /// The cache of blocks of sorted runs.
    pub block_cache_bytes: u64,
    /// The cache of values.
    pub cache_bytes: u64,
    /// Filters of sorted runs that memory has no room for: look-ups do without them, and read more blocks. They are not among the parts.
    pub filters_left_out_bytes: u64,
}

impl MemoryStats {
    /// The parts by their names.
    pub fn parts(&self) -> [(&'static str, u64); 8] {
        [
            ("memtables", self.memtable_bytes),
            ("runs", self.run_bytes),
            ("hash", self.hash_bytes),
            ("versions", self.version_bytes),
            ("batches", self.batch_bytes),
            ("buffers", self.buffer_bytes),
            ("block_cache", self.block_cache_bytes),
            ("cache", self.cache_bytes),
        ]
    }

    /// Bytes of all parts.
    pub fn used_bytes(&self) -> u64 {
        self.parts().iter().map(|(_, bytes)| bytes).sum()
    }
}

#[cfg(test)]
mod tests;
