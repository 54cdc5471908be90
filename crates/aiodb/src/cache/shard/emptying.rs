//! How a shard makes room: which block is emptied, and which of its entries stay.

use super::super::arena::{Address, entry_bytes};
use super::Shard;
use super::queues::{Class, Taken};

/// The young queue has this share of the blocks.
const YOUNG_SHARE: usize = 10;

/// Where there are preferred entries the others keep one block in so many.
const USUAL_SHARE: usize = 8;

impl Shard {
    /// An empty block for new entries. `None` if there is no room without the blocks of which a thread still has an entry.
    pub(super) fn make_room(&mut self) -> Option<u32> {
        self.collect();
        // Each round takes a block out of the young queue for good, or half of one's bytes out of the old queue.
        loop {
            let within_budget = self.held_bytes() + self.blocks.block_bytes() <= self.budget_bytes;
            if self.used_blocks() + self.spare_blocks() < self.most_blocks && within_budget {
                return self.free.pop();
            }
            if !self.evict() {
                return None;
            }
        }
    }

    /// Blocks that are spare for entries that move out of the next block that is emptied: to the queues of either class, where there are both.
    pub(super) fn spare_blocks(&self) -> usize {
        if self.preferred.len() > 0 { 2 } else { 1 }
    }

    /// Finds out of which leaving blocks no thread has an entry any more.
    pub(super) fn collect(&mut self) {
        let (blocks, free_before) = (&mut self.blocks, self.free.len());
        self.free.extend(self.leaving.extract_if(.., |block| blocks.empty(*block)));
        if self.owes_leaving && self.free.len() > free_before {
            self.give_back_free();
            self.owes_leaving = !self.leaving.is_empty();
        }
    }

    /// Empties a block that is mostly forgotten, or the oldest of a queue. False if there is none.
    pub(super) fn evict(&mut self) -> bool {
        let forgotten = self.take_mostly_forgotten();
        let is_mostly_forgotten = forgotten.is_some();
        let Some(taken) = forgotten.or_else(|| self.take_oldest()) else { return false };
        // So that emptying makes room even where everything was asked for; the next block makes some where this one is only reviewed.
        let mut may_stay = if taken.of_young || taken.is_reviewed { usize::MAX } else { self.blocks.block_bytes() / 2 };
        for address in self.blocks.entries(taken.block) {
            let entry = self.blocks.cached(address);
            let hash = entry.place().hash();
            // An entry that is not in the table was forgotten.
            if self.entries.find(hash, |at| *at == address).is_none() {
                continue;
            }
            let class = self.class_of(entry.table());
            // Its table may have become preferred since it came.
            let is_kept = class == Class::Preferred && (taken.class == Class::Usual || taken.is_reviewed);
            let bytes = entry_bytes(entry.key().len(), entry.value().len());
            let stays = is_mostly_forgotten || is_kept || entry.was_asked_for();
            let to = if stays && bytes <= may_stay { self.promote(address, class) } else { None };
            if to.is_none() {
                self.count_out(&entry);
            }
            let found = self.entries.find_entry(hash, |at| *at == address).expect("just seen");
            match to {
                Some(to) => {
                    may_stay -= bytes;
                    *found.into_mut() = to;
                }
                None => {
                    found.remove();
                    if taken.of_young {
                        self.ghosts.remember(hash);
                    }
                }
            }
        }
        self.leaving.push(taken.block);
        self.collect();
        true
    }

    /// Takes the block with most forgotten bytes out of its queue, if they are half of its bytes or more.
    fn take_mostly_forgotten(&mut self) -> Option<Taken> {
        let all = self.usual.blocks().chain(self.preferred.blocks());
        let most = all.max_by_key(|block| self.blocks.forgotten_bytes(*block))?;
        if !self.blocks.is_mostly_forgotten(most) {
            return None;
        }
        let is_preferred = self.preferred.blocks().any(|block| block == most);
        let class = if is_preferred { Class::Preferred } else { Class::Usual };
        let queues = self.queues(class);
        let of_young = queues.young.blocks.contains(&most);
        queues.queue(!of_young).blocks.retain(|block| *block != most);
        Some(Taken { block: most, class, of_young, is_reviewed: false })
    }

    /// Takes the oldest block out of the queue that has more than its share.
    fn take_oldest(&mut self) -> Option<Taken> {
        // Every other one at most: so nobody waits for many blocks that make no room.
        let is_reviewed = self.to_review > 0 && !self.has_reviewed && self.preferred.len() > 0;
        self.has_reviewed = is_reviewed;
        self.to_review -= usize::from(is_reviewed);
        let class = if is_reviewed { Class::Preferred } else { self.class_to_empty() };
        let (most_blocks, usual, preferred) = (self.most_blocks, self.usual.len(), self.preferred.len());
        let of_others = if class == Class::Usual { preferred } else { usual };
        let queues = self.queues(class);
        let young_blocks = most_blocks.saturating_sub(of_others) / YOUNG_SHARE;
        let of_young = queues.young.blocks.len() > young_blocks.max(1) || queues.old.blocks.is_empty();
        let block = queues.queue(!of_young).blocks.pop_front()?;
        Some(Taken { block, class, of_young, is_reviewed })
    }

    /// The class that a block leaves.
    fn class_to_empty(&self) -> Class {
        let is_usual = self.preferred.len() == 0 || self.usual.len() > self.kept_usual_blocks();
        if is_usual { Class::Usual } else { Class::Preferred }
    }

    /// Blocks that entries of tables that are not preferred keep, if they have so many.
    fn kept_usual_blocks(&self) -> usize {
        (self.most_blocks / USUAL_SHARE).max(1)
    }

    /// Whether a block more of preferred entries would be at the expense of others of them, though not of forgotten ones.
    pub(in crate::cache) fn is_full_of_preferred(&self) -> bool {
        let preferred = self.preferred.blocks().filter(|block| !self.blocks.is_mostly_forgotten(*block)).count();
        let stay = preferred + self.usual.len().min(self.kept_usual_blocks());
        let bytes = (stay + 1) * self.blocks.block_bytes() + self.bookkeeping_bytes();
        stay + self.spare_blocks() >= self.most_blocks || bytes > self.budget_bytes
    }

    /// Copies an entry to the end of the old queue of its class.
    fn promote(&mut self, address: Address, class: Class) -> Option<Address> {
        let last = self.queues(class).old.last();
        if let Some(to) = last.and_then(|block| self.blocks.copy(address, block)) {
            return Some(to);
        }
        if self.used_blocks() >= self.most_blocks {
            return None;
        }
        let block = self.free.pop()?;
        self.queues(class).old.blocks.push_back(block);
        self.blocks.copy(address, block)
    }
}
