//! Which sequences the records may have had that a damaged store has lost: so old is what they may have superseded.

use std::collections::{BTreeMap, BTreeSet};

/// What is known of lost records, and of those that are there.
pub(super) struct Losses {
    /// After this batch, the last one before the checkpoint, every batch must be there.
    position: u64,
    /// No record of what was lost so far has this sequence or a higher one.
    below: u64,
    /// Activations of segments of which something is lost, nobody knows what; `None` for one that nobody knows either.
    lives: BTreeSet<Option<u64>>,
    /// The first sequence of the batches that check out, for each activation of a segment, and for each batch after the position.
    by_life: BTreeMap<u64, u64>,
    by_batch: BTreeMap<u64, u64>,
    /// Batches of which the headers alone check out.
    damaged: BTreeSet<u64>,
}

impl Losses {
    /// Nothing is lost yet. Without a checkpoint no batch is known to be missing.
    pub(super) fn new(position: Option<u64>) -> Losses {
        Losses {
            position: position.unwrap_or(u64::MAX),
            below: 0,
            lives: BTreeSet::new(),
            by_life: BTreeMap::new(),
            by_batch: BTreeMap::new(),
            damaged: BTreeSet::new(),
        }
    }

    /// Notes a batch that checks out. All records that were written before it, or in a segment that was activated before its own, have
    /// sequences below its first one.
    pub(super) fn note_sound(&mut self, number: u64, first_sequence: u64, life: Option<u64>) {
        if number > self.position {
            self.by_batch.insert(number, first_sequence);
        }
        if let Some(life) = life {
            let first = self.by_life.entry(life).or_insert(first_sequence);
            *first = (*first).min(first_sequence);
        }
    }

    /// Notes that records are lost of a batch whose header checks out.
    pub(super) fn note_damaged(&mut self, number: u64) {
        self.damaged.insert(number);
    }

    /// Notes lost records, all with sequences below a bound.
    pub(super) fn lose_below(&mut self, bound: u64) {
        self.below = self.below.max(bound);
    }

    /// Notes that something is lost of a segment, in this activation if that is known.
    pub(super) fn lose_in(&mut self, life: Option<u64>) {
        self.lives.insert(life);
    }

    /// Notes that segments may be back whose records had been given up: deletes may have gone from any that was activated before the newest one.
    pub(super) fn lose_given_up(&mut self, newest: Option<u64>) {
        let first = newest.and_then(|life| self.by_life.get(&life).copied());
        self.lose_below(first.unwrap_or(u64::MAX));
    }

    /// How many batches are missing that came after the position; they count as lost.
    pub(super) fn lose_missing(&mut self) -> u64 {
        let (mut missing, mut next, mut last_gap) = (0, self.position.saturating_add(1), None);
        let known = self.by_batch.keys().chain(&self.damaged).copied().filter(|number| *number > self.position);
        for number in known.collect::<BTreeSet<_>>() {
            if number > next {
                (missing, last_gap) = (missing + number - next, Some(number));
            }
            next = number + 1;
        }
        if let Some(behind) = last_gap {
            let after = self.by_batch.range(behind..).next();
            self.lose_below(after.map_or(u64::MAX, |(_, first)| *first));
        }
        missing
    }

    /// Whether a batch is known of which records are lost.
    pub(super) fn is_damaged(&self, number: u64) -> bool {
        self.damaged.contains(&number)
    }

    /// No record that is lost has this sequence or a higher one; 0 if none is lost.
    pub(super) fn below(&self) -> u64 {
        let of_life = |life: &Option<u64>| {
            let later = life.and_then(|life| self.by_life.range(life + 1..).next());
            later.map_or(u64::MAX, |(_, first)| *first)
        };
        self.lives.iter().map(of_life).max().unwrap_or(0).max(self.below)
    }
}

#[cfg(test)]
mod tests;
