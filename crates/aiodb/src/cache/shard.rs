//! One shard: a table from places to entries, and two queues of blocks, from which the oldest is emptied.
//!
//! New entries come to the young queue, a tenth of the memory. When its oldest block is emptied, entries that were asked for in
//! the meantime move to the old queue and the others leave, remembered by a fingerprint; an entry that is read again soon
//! enough comes to the old queue at once. Entries that were asked for when the old queue's oldest block is emptied go round
//! once more.
//!
//! Entries that were written over are forgotten, and their bytes are free when their block is emptied. Emptying a block of which
//! half was forgotten gains room even if its other entries stay: such a block is emptied before the oldest, and all its other
//! entries stay. Where there is twice as much memory as data no current entry leaves, however much is written over.
//!
//! Entries of preferred tables have two queues of their own, which work the same way. While the others have more than an eighth of the blocks,
//! theirs are emptied, so a preferred entry leaves only where the preferred ones alone are too many. Of which class an entry is the shard asks
//! when it comes, and again when its block is emptied: a table that becomes preferred moves nothing. Where one is preferred no more, every
//! other block that is emptied is one of that class, for as many as there are.
//!
//! A shard is brought to another budget in steps, block by block (`Shard::fit`). Blocks keep their length: a shard that would
//! have too few of them, or far too many, is replaced by an empty one.

mod emptying;
mod ghosts;
mod queues;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use hashbrown::HashTable;

use super::arena::{Address, Blocks, Cached, Pages, entry_bytes, page_bytes};
use super::{Place, Preferences};
use crate::planted::{self, Bug};
use ghosts::Ghosts;
use queues::{Class, Queues};

/// So many blocks where they are not too small for that.
const BLOCKS: usize = 64;

/// Blocks of less than this could not hold a few values of a device block.
const MIN_BLOCK_BYTES: usize = 16 << 10;

/// One block of each queue is being filled, one is spare for entries that move out of an emptied one, and one is emptied.
const MIN_BLOCKS: usize = 4;

/// A shard that has grown has so many blocks at most.
const MAX_BLOCKS: usize = 8 * BLOCKS;

/// A shard that grows gets one block more for so many that it has, or more: else each bit more would be a mapping of its own.
const GROWTH_SHARE: usize = 8;

/// A budget falls by a block when so many were emptied for that, at most: entries that stay take some of what is gained.
const EMPTIED_PER_BLOCK: usize = 3;

/// With room for so many times its entries the table of a shard that shrinks becomes smaller.
const SPARE_ENTRIES: usize = 4;

/// The typical size of an entry: so many fingerprints of entries that left are remembered. It need only be roughly right.
const TYPICAL_ENTRY_BYTES: usize = 2048;

/// Entries with a share of the memory.
pub(super) struct Shard {
    entries: HashTable<Address>,
    blocks: Blocks,
    usual: Queues,
    preferred: Queues,
    preferences: Arc<Preferences>,
    /// Blocks of the preferred class that may have entries of tables that are preferred no more.
    to_review: usize,
    /// Whether the last block that was emptied was one of these.
    has_reviewed: bool,
    /// What each table has here.
    shares: BTreeMap<u32, Share>,
    /// Emptied blocks of which a thread may still have an entry.
    leaving: Vec<u32>,
    /// Whether the memory of these goes back to the system: they left for a smaller budget.
    owes_leaving: bool,
    /// Empty blocks. The one that was used last comes first, so that memory which was never needed is never taken.
    free: Vec<u32>,
    ghosts: Ghosts,
    budget_bytes: usize,
    /// Blocks that may be in use at a time, the spare one among them.
    most_blocks: usize,
    /// Blocks that were emptied since the budget fell by one.
    emptied: usize,
}

/// Whether a list of tables has this one.
fn has(tables: &[u32], table: u32) -> bool {
    tables.binary_search(&table).is_ok()
}

/// The table that an entry counts to: operands are cached as records of a table of their own.
fn owner_of(table: u32) -> u32 {
    table.min(!table)
}

/// What a step to another budget has come to.
pub(super) enum Fitted {
    /// There is nothing more to do.
    Wholly,
    /// There is more to do.
    Partly,
    /// An empty shard has taken the place of this one, which is better dropped without a lock.
    Replaced(Box<Shard>),
}

/// Entries of one table, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

impl Shard {
    /// An empty shard that takes at most `budget_bytes`; if that is too little it takes nothing.
    pub(super) fn new(budget_bytes: u64, pages: Pages) -> io::Result<Shard> {
        let budget_bytes = reachable(budget_bytes);
        let (count, block_bytes) = blocks_of(budget_bytes, page_bytes());
        let mut blocks = Blocks::none(block_bytes, pages);
        if count > 0 {
            blocks.add(count)?;
        }
        let remembered = if count > 0 { budget_bytes / TYPICAL_ENTRY_BYTES } else { 0 };
        Ok(Shard {
            entries: HashTable::new(),
            blocks,
            usual: Queues::default(),
            preferred: Queues::default(),
            preferences: Arc::default(),
            to_review: 0,
            has_reviewed: false,
            shares: BTreeMap::new(),
            leaving: Vec::new(),
            owes_leaving: false,
            free: (0..count as u32).rev().collect(),
            ghosts: Ghosts::new(remembered),
            budget_bytes,
            most_blocks: count,
            emptied: 0,
        })
    }

    /// Whether [`Shard::fit`] has something to do for this budget.
    pub(super) fn is_to_fit(&self, budget_bytes: u64) -> bool {
        reachable(budget_bytes) != self.budget_bytes || self.owes_leaving
    }

    /// Comes a step closer to another budget. A step empties one block at most, as an insertion that finds no room does.
    pub(super) fn fit(&mut self, budget_bytes: u64) -> Fitted {
        let wanted = reachable(budget_bytes);
        if wanted == self.budget_bytes {
            // Of what is still held another look gives back more.
            self.collect();
            return Fitted::Wholly;
        }
        let block_bytes = self.blocks.block_bytes();
        let may_stay = (MIN_BLOCKS..=MAX_BLOCKS).contains(&wanted.checked_div(block_bytes).unwrap_or(0));
        if !may_stay && blocks_of(wanted, page_bytes()).1 != block_bytes {
            // Without memory for another one this stays as it is.
            let Ok(mut other) = Shard::new(budget_bytes, self.blocks.pages()) else { return Fitted::Wholly };
            if !planted::is_on(Bug::PreferencesLostWithShard) {
                other.preferences = Arc::clone(&self.preferences);
            }
            return Fitted::Replaced(Box::new(std::mem::replace(self, other)));
        }
        if block_bytes == 0 {
            self.budget_bytes = wanted;
        } else if wanted > self.budget_bytes {
            self.grow_to(wanted);
        } else {
            // Of what is not in use nothing is to be emptied.
            let in_use = self.held_bytes().max((self.used_blocks() + 1) * block_bytes);
            let next = in_use.min(self.budget_bytes.saturating_sub(block_bytes));
            self.shrink_to(wanted.max(next));
        }
        if self.budget_bytes == wanted { Fitted::Wholly } else { Fitted::Partly }
    }

    fn grow_to(&mut self, budget_bytes: usize) {
        let wanted = budget_bytes / self.blocks.block_bytes();
        let there = self.blocks.count();
        if wanted > there {
            let more = (wanted - there).max(there / GROWTH_SHARE).min(MAX_BLOCKS.saturating_sub(there));
            // Where the system refuses that much address space the blocks that there are must do.
            if more > 0 && self.blocks.add(more).is_ok() {
                // What was used last stays in front.
                self.free.splice(0..0, (there as u32..(there + more) as u32).rev());
            }
        }
        (self.budget_bytes, self.most_blocks) = (budget_bytes, wanted.min(self.blocks.count()));
        (self.owes_leaving, self.emptied) = (false, 0);
    }

    /// Empties a block, if there is more in use than so much, and has this budget unless the next step has to empty another one for it.
    fn shrink_to(&mut self, budget_bytes: usize) {
        let most_blocks = (budget_bytes / self.blocks.block_bytes()).min(self.blocks.count());
        let is_above = |shard: &Shard| shard.used_blocks() >= most_blocks || shard.held_bytes() > budget_bytes;
        // Of a block that is emptied some entries may go to the spare one: so one at least stays free.
        if is_above(self) && self.evict() {
            self.emptied += 1;
            if is_above(self) && self.emptied < EMPTIED_PER_BLOCK {
                return;
            }
        }
        self.emptied = 0;
        (self.budget_bytes, self.most_blocks) = (budget_bytes, most_blocks);
        if self.entries.capacity() > SPARE_ENTRIES * self.entries.len() {
            let blocks = &self.blocks;
            self.entries.shrink_to(2 * self.entries.len(), |address| blocks.place(*address).hash());
        }
        self.give_back_free();
        self.owes_leaving = !self.leaving.is_empty();
    }

    /// Gives the memory of free blocks back to the system, but for one where the budget has room for it.
    fn give_back_free(&mut self) {
        let keeps_spare = self.held_bytes() + self.blocks.block_bytes() <= self.budget_bytes;
        let given_back = self.free.len().saturating_sub(usize::from(keeps_spare));
        for block in &self.free[..given_back] {
            self.blocks.give_back(*block);
        }
    }

    /// Gives its memory back to the system, but for blocks of which a thread has an entry: all blocks that came together lie in one mapping, which
    /// goes with the last of them. To be dropped then.
    pub(super) fn give_back_all(&mut self) {
        for block in 0..self.blocks.count() as u32 {
            if self.blocks.empty(block) {
                self.blocks.give_back(block);
            }
        }
    }

    pub(super) fn get(&self, hash: u64, place: Place) -> Option<Cached> {
        let cached = self.blocks.cached(self.find(hash, place)?);
        cached.ask_for();
        Some(cached)
    }

    /// Entries of these tables stay before others from now on.
    pub(super) fn prefer(&mut self, preferences: &Arc<Preferences>) {
        let still = |table: &u32| has(&preferences.preferred, *table);
        if !self.preferences.preferred.iter().all(still) {
            self.to_review = self.preferred.len();
        }
        self.preferences = Arc::clone(preferences);
    }

    pub(super) fn preferences(&self) -> &Preferences {
        &self.preferences
    }

    /// What a table has here.
    pub(super) fn share_of(&self, table: u32) -> Share {
        self.shares.get(&table).copied().unwrap_or_default()
    }

    /// Whether there is an entry; asks the processor for its value's bytes.
    pub(super) fn prefetch(&self, hash: u64, place: Place) -> bool {
        let found = self.find(hash, place);
        if let Some(address) = found {
            self.blocks.prefetch(address);
        }
        found.is_some()
    }

    /// Whether there is an entry.
    pub(super) fn contains(&self, hash: u64, place: Place) -> bool {
        self.find(hash, place).is_some()
    }

    fn find(&self, hash: u64, place: Place) -> Option<Address> {
        self.entries.find(hash, |address| self.blocks.place(*address) == place).copied()
    }

    /// Adds an entry, if it is not there and there is room or room can be made.
    pub(super) fn insert(&mut self, hash: u64, place: Place, table: u32, key: &[u8], value: &[u8]) {
        let bytes = entry_bytes(key.len(), value.len());
        let is_refused = has(&self.preferences.refused, owner_of(table));
        if is_refused || bytes > self.blocks.block_bytes() || self.get(hash, place).is_some() {
            return;
        }
        let class = self.class_of(table);
        let to_old = self.ghosts.forget(hash);
        let last = self.queues(class).queue(to_old).last();
        let in_last = last.and_then(|block| self.blocks.append(block, place, table, key, value));
        let address = in_last.or_else(|| {
            let block = self.make_room()?;
            self.queues(class).queue(to_old).blocks.push_back(block);
            self.blocks.append(block, place, table, key, value)
        });
        let Some(address) = address else { return };
        let share = self.shares.entry(owner_of(table)).or_default();
        (share.entries, share.bytes) = (share.entries + 1, share.bytes + bytes as u64);
        let blocks = &self.blocks;
        self.entries.insert_unique(hash, address, |address| blocks.place(*address).hash());
        // The table may have grown: what it has taken is memory of blocks.
        if self.held_bytes() > self.budget_bytes {
            while self.held_bytes() > self.budget_bytes && self.evict() {}
            self.give_back_free();
            self.owes_leaving |= !self.leaving.is_empty();
        }
    }

    /// Takes out an entry that will not be asked for again.
    pub(super) fn forget(&mut self, hash: u64, place: Place) {
        if let Ok(found) = self.entries.find_entry(hash, |address| self.blocks.place(*address) == place) {
            let (address, _) = found.remove();
            self.count_out(&self.blocks.cached(address));
            self.blocks.forget(address);
        }
    }

    /// Counts an entry that leaves.
    fn count_out(&mut self, entry: &Cached) {
        let share = self.shares.get_mut(&owner_of(entry.table())).expect("a table whose entry leaves has one");
        share.entries -= 1;
        share.bytes -= entry_bytes(entry.key().len(), entry.value().len()) as u64;
        if share.entries == 0 {
            self.shares.remove(&owner_of(entry.table()));
        }
    }

    /// Whether entries of a table stay before others.
    pub(super) fn is_preferred(&self, table: u32) -> bool {
        has(&self.preferences.preferred, owner_of(table))
    }

    fn class_of(&self, table: u32) -> Class {
        if self.is_preferred(table) { Class::Preferred } else { Class::Usual }
    }

    fn queues(&mut self, class: Class) -> &mut Queues {
        match class {
            Class::Usual => &mut self.usual,
            Class::Preferred => &mut self.preferred,
        }
    }

    /// Bytes of entries that a step to this budget empties, at most: those of a block, or none where it is not smaller.
    pub(super) fn step_bytes(&self, budget_bytes: u64) -> usize {
        if reachable(budget_bytes) < self.budget_bytes { self.blocks.block_bytes() } else { 0 }
    }

    /// Bytes of all entries, also of those in leaving blocks, and of all bookkeeping.
    pub(super) fn used_bytes(&self) -> usize {
        self.blocks.filled_bytes() + self.bookkeeping_bytes()
    }

    /// Bytes that are taken from the system, and of all bookkeeping.
    pub(super) fn memory_bytes(&self) -> usize {
        self.blocks.touched_bytes() + self.bookkeeping_bytes()
    }

    /// Bytes of the blocks in use and of all bookkeeping.
    fn held_bytes(&self) -> usize {
        self.used_blocks() * self.blocks.block_bytes() + self.bookkeeping_bytes()
    }

    fn used_blocks(&self) -> usize {
        self.blocks.count() - self.free.len()
    }

    fn bookkeeping_bytes(&self) -> usize {
        self.entries.allocation_size() + self.ghosts.bytes()
    }
}

/// Of a budget, what addresses reach.
fn reachable(budget_bytes: u64) -> usize {
    budget_bytes.min(32 << 30) as usize
}

/// How many blocks a new shard with this budget has, and how long they are, in whole pages of the system; none where it is too small.
fn blocks_of(budget_bytes: usize, page_bytes: usize) -> (usize, usize) {
    let count = (budget_bytes / MIN_BLOCK_BYTES.max(page_bytes)).clamp(MIN_BLOCKS, BLOCKS);
    match budget_bytes / count / page_bytes * page_bytes {
        0 => (0, 0),
        block_bytes => (count, block_bytes),
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
