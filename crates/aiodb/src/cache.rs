//! Bytes that were read lately, so that they need not be read again. A store has two caches: one of values, so that a hot key
//! does not cost a device read each time, and one of blocks of sorted runs, so that a get of an `lsm` table reads the device
//! for its value alone.
//!
//! Entries are keyed by place, not by key: acknowledged bytes of a segment's life never change, so an entry is never
//! stale, and only the index decides which place is current. An overwrite puts the key's bytes elsewhere; the old place is not
//! asked for any more. When the index lets go of that place the cache forgets it, so that hot keys which are
//! written over do not fill it. When a record is moved, its entry takes the new place.
//!
//! An entry is one block of a sorted run in the one cache. In the other it is the whole value of one put, or one operand that
//! the index knew to be one, as it was given. Values merged from operands do not come there, since one of these may come to be
//! known after a newer one. Nor do parts of large values and records that expire. Gets of the present ask and fill the cache, and scans as long as they have not come far, as the
//! view says: a long scan would push out values that are asked for again, and a snapshot mostly reads values that no other
//! reader wants. Writes fill it too, if the store's options say so.
//!
//! Entries lie one behind the other in blocks of memory (`arena.rs`). Each shard fills its blocks in two queues and
//! empties the oldest (`shard.rs`), in the manner of S3-FIFO (Yang et al., SOSP 2023): an entry that was asked for once
//! leaves after a short while, so reading everything once does not push out values that are read again and again.
//!
//! A budget changes while the cache is in use (`Cache::set_budget`, `Cache::fit`), and so does which tables it prefers (`Cache::prefer`).
//!
//! The room of the caches. A cache owns the memory of values or of blocks, by place, within a budget. It knows of tables only their numbers, and nothing
//! of snapshots: `flow/cached.rs` decides which values are asked for and inserted, `index/runs/lookup.rs` which blocks.

mod arena;
mod shard;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::metrics::counter::Counter;
use crate::sync::{Rank, RwLock, RwLockReadGuard};
use arena::Pages;
use shard::{Fitted, Shard};

pub(crate) use arena::Cached;
pub(crate) use shard::Share;

/// Locks that the entries are spread over. Fixed, so that evictions do not depend on the machine.
const SHARDS: u64 = 16;

/// A smaller cache has fewer shards, so that the blocks of each can hold some values of a device block.
const MIN_SHARD_BYTES: u64 = 1 << 20;

/// A shard with less than this could hold nothing.
const LEAST_SHARD_BYTES: u64 = 16 << 10;

/// A look at a cache that shrinks empties so many blocks, or blocks of so many bytes: it may be the writer's thread that looks.
const BLOCKS_PER_LOOK: usize = 64;
const BYTES_PER_LOOK: usize = 4 << 20;

/// The tables that a cache treats otherwise than all others, by their numbers, which rise.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Preferences {
    /// Their entries leave after those of others.
    pub(crate) preferred: Vec<u32>,
    /// No entries of them are inserted; those that are there stay until they are not asked for.
    pub(crate) refused: Vec<u32>,
}

/// Where bytes lie, in one life of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) life: u64,
}

impl Place {
    /// The place of a block of a sorted run, by the number of its file, which no other file of the store ever has, and its first
    /// unit.
    pub(crate) fn of_block(file: u64, unit: u32) -> Place {
        Place { segment: 0, offset: unit, life: file }
    }

    /// Without a seed, so that a simulated machine does the same each time; users do not choose places, so they cannot
    /// make them collide. A life belongs to one segment, which need not be mixed in.
    fn hash(&self) -> u64 {
        // The upper half of the product depends on all bits; the lower half is folded onto it.
        let product = u128::from(self.life << 32 ^ u64::from(self.offset)) * 0x9e37_79b9_7f4a_7c15;
        (product >> 64) as u64 ^ product as u64
    }
}

/// A cache of one store.
#[derive(Default)]
pub(crate) struct Cache {
    /// A power of two of them; none if there is no cache.
    shards: Box<[Padded]>,
    hits: Counter,
    misses: Counter,
    /// Relaxed: it publishes nothing, and shards come to it later.
    budget_bytes: AtomicU64,
    /// The shard with which the next look begins. Relaxed: any will do.
    next: AtomicUsize,
}

/// A shard on cache lines of its own, so that threads working on neighbours do not slow each other down.
#[repr(align(64))]
struct Padded(RwLock<Shard, { Rank::CacheShard as u8 }>);

impl Cache {
    /// A cache of values that takes at most `budget_bytes` of memory for now, and about `most_bytes` later; where that is
    /// less than a shard can use, there is none. Fails where the system refuses that much address space; memory itself is taken as
    /// the cache fills.
    pub(crate) fn of_values(most_bytes: u64, budget_bytes: u64) -> io::Result<Cache> {
        Cache::new(most_bytes, budget_bytes, Pages::Large)
    }

    /// [`Cache::of_values`] for blocks of sorted runs. Every store has one, and most fill little of it: large pages would take
    /// memory that nothing lies in.
    pub(crate) fn of_blocks(most_bytes: u64, budget_bytes: u64) -> io::Result<Cache> {
        Cache::new(most_bytes, budget_bytes, Pages::Small)
    }

    fn new(most_bytes: u64, budget_bytes: u64, pages: Pages) -> io::Result<Cache> {
        let count = 1 << (most_bytes / MIN_SHARD_BYTES).clamp(1, SHARDS).ilog2();
        let mut shards = Vec::new();
        if most_bytes / count >= LEAST_SHARD_BYTES {
            for _ in 0..count {
                shards.push(Padded(RwLock::new(Shard::new(budget_bytes / count, pages)?)));
            }
        }
        Ok(Cache { shards: shards.into(), budget_bytes: AtomicU64::new(budget_bytes), ..Cache::default() })
    }

    /// Sets what it may take from now on; [`Cache::fit`] brings it there.
    pub(crate) fn set_budget(&self, budget_bytes: u64) {
        self.budget_bytes.store(budget_bytes, Ordering::Relaxed);
    }

    /// Brings the shards closer to the budget, block by block in turn, and stops when much was emptied: the next call goes on with the
    /// shard that comes next. True if there is more to do. Who looks for an entry, or inserts some, waits for one block of his shard to be emptied,
    /// and now and then for a smaller table of the entries that are left.
    pub(crate) fn fit(&self) -> bool {
        let count = self.shards.len();
        let Some(budget_bytes) = self.budget_bytes().checked_div(count as u64) else { return false };
        let mut at = self.next.load(Ordering::Relaxed) % count;
        let (mut blocks, mut bytes, mut fitting) = (0, 0, 0);
        while fitting < count && blocks < BLOCKS_PER_LOOK && bytes < BYTES_PER_LOOK {
            let shard = &self.shards[at];
            at = (at + 1) % count;
            if !self.read(shard).is_to_fit(budget_bytes) {
                fitting += 1;
                continue;
            }
            let (step_bytes, fitted) = {
                let mut shard = shard.0.write().expect(NO_PANIC);
                (shard.step_bytes(budget_bytes), shard.fit(budget_bytes))
            };
            blocks += usize::from(step_bytes > 0);
            bytes += step_bytes;
            match fitted {
                Fitted::Wholly => fitting += 1,
                Fitted::Partly => fitting = 0,
                // The other shard has the budget already. This one's memory goes back here, without the lock.
                Fitted::Replaced(mut before) => {
                    (fitting, bytes) = (fitting + 1, bytes + before.memory_bytes());
                    before.give_back_all();
                }
            }
        }
        self.next.store(at, Ordering::Relaxed);
        fitting < count
    }

    /// Whether it has any memory to fill.
    pub(crate) fn is_on(&self) -> bool {
        !self.shards.is_empty() && self.budget_bytes() > 0
    }

    /// Whether entries of preferred tables push out each other: others have left for them. Shards fill up one after the other, so half of them
    /// tell.
    pub(crate) fn is_full_of_preferred(&self) -> bool {
        let full = self.shards.iter().filter(|shard| self.read(shard).is_full_of_preferred()).count();
        2 * full >= self.shards.len()
    }

    /// Changes which tables it treats otherwise.
    pub(crate) fn prefer(&self, preferences: Preferences) {
        // Of two threads that change it at a time each may be the last one in some shards: the next look finds that.
        if self.shards.iter().all(|shard| *self.read(shard).preferences() == preferences) {
            return;
        }
        let preferences = Arc::new(preferences);
        for shard in &self.shards {
            shard.0.write().expect(NO_PANIC).prefer(&preferences);
        }
    }

    /// What a table has here.
    pub(crate) fn share_of(&self, table: u32) -> Share {
        let shares = self.shards.iter().map(|shard| self.read(shard).share_of(table));
        shares.fold(Share::default(), |sum, share| Share {
            entries: sum.entries + share.entries,
            bytes: sum.bytes + share.bytes,
        })
    }

    /// The entry of a place, if it is still here.
    pub(crate) fn get(&self, place: Place) -> Option<Cached> {
        if !self.is_on() {
            return None;
        }
        let found = self.find(place);
        if found.is_some() {
            self.hits.count()
        } else {
            self.misses.count()
        };
        found
    }

    /// [`Cache::get`] for a block of a sorted run: a miss counts where there is no cache too.
    pub(crate) fn get_block(&self, place: Place) -> Option<Cached> {
        let found = self.find(place);
        if found.is_some() {
            self.hits.count()
        } else {
            self.misses.count()
        };
        found
    }

    fn find(&self, place: Place) -> Option<Cached> {
        let hash = place.hash();
        self.read(self.shard_of(hash)?).get(hash, place)
    }

    /// Whether a place has an entry, which the caller gets in a moment: so only a miss counts as a look-up.
    pub(crate) fn holds(&self, place: Place) -> bool {
        let found = self.has(place);
        if !found && self.is_on() {
            self.misses.count();
        }
        found
    }

    /// [`Cache::holds`], which is not counted.
    pub(crate) fn has(&self, place: Place) -> bool {
        let hash = place.hash();
        self.shard_of(hash).is_some_and(|shard| self.read(shard).prefetch(hash, place))
    }

    /// [`Cache::has`] of a caller that does not want the value.
    pub(crate) fn contains(&self, place: Place) -> bool {
        let hash = place.hash();
        self.shard_of(hash).is_some_and(|shard| self.read(shard).contains(hash, place))
    }

    /// The tables whose entries stay before others.
    pub(crate) fn preferred(&self) -> Vec<u32> {
        self.shards.first().map_or(Vec::new(), |shard| self.read(shard).preferences().preferred.clone())
    }

    /// Inserts a copy of a key and the value that was read from a place and has been checked. A value that takes more than a
    /// block is not inserted: it would push out too much at once.
    pub(crate) fn insert(&self, place: Place, table: u32, key: &[u8], value: &[u8]) {
        let hash = place.hash();
        let Some(shard) = self.shard_of(hash) else { return };
        shard.0.write().expect(NO_PANIC).insert(hash, place, table, key, value);
    }

    /// [`Cache::insert`] of a block that a long scan has read: only of a preferred table.
    pub(crate) fn insert_preferred(&self, place: Place, table: u32, value: &[u8]) {
        let hash = place.hash();
        let Some(shard) = self.shard_of(hash) else { return };
        if self.read(shard).is_preferred(table) {
            shard.0.write().expect(NO_PANIC).insert(hash, place, table, &[], value);
        }
    }

    /// Takes out the entry of a place that no index refers to any more.
    pub(crate) fn forget(&self, place: Place) {
        let hash = place.hash();
        if let Some(shard) = self.shard_of(hash) {
            shard.0.write().expect(NO_PANIC).forget(hash, place);
        }
    }

    /// The most that it takes.
    pub(crate) fn budget_bytes(&self) -> u64 {
        self.budget_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of memory that it has taken from the system.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.shards.iter().map(|shard| self.read(shard).memory_bytes() as u64).sum()
    }

    /// Bytes of all entries and of all bookkeeping.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.shards.iter().map(|shard| self.read(shard).used_bytes() as u64).sum()
    }

    /// Look-ups that were answered, and that were not.
    pub(crate) fn hits_and_misses(&self) -> (u64, u64) {
        (self.hits.sum(), self.misses.sum())
    }

    fn shard_of(&self, hash: u64) -> Option<&Padded> {
        // Bits that neither choose the slot in the shard's table nor are compared there.
        self.shards.get((hash >> 48) as usize & self.shards.len().wrapping_sub(1))
    }

    fn read<'a>(&self, shard: &'a Padded) -> RwLockReadGuard<'a, Shard> {
        shard.0.read().expect(NO_PANIC)
    }
}

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it changes the cache";

#[cfg(test)]
mod tests;
