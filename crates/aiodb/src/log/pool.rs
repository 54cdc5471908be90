//! The free segments, and the choice of the directory in which the next one is taken or made.

use std::collections::BTreeSet;

/// The segments that can be taken. Directories are named by their ordinals.
pub(super) struct Pool {
    directories: Vec<Stripe>,
    /// The directory that gives the next segment, if it has one to give.
    turn: usize,
}

/// The segments of one directory: every `count`-th number from its ordinal on.
struct Stripe {
    free: BTreeSet<u32>,
    absent: BTreeSet<u32>,
    /// The lowest number above all segments of the directory.
    next: u32,
}

impl Pool {
    /// No segments in `count` directories.
    pub(super) fn new(count: usize) -> Pool {
        let stripe = |ordinal| Stripe { free: BTreeSet::new(), absent: BTreeSet::new(), next: ordinal };
        Pool { directories: (0..count as u32).map(stripe).collect(), turn: 0 }
    }

    /// A number above all segments.
    pub(super) fn end(&self) -> u32 {
        // The lowest next number of a directory without segments is its ordinal.
        self.directories.iter().map(|stripe| stripe.next).max().unwrap_or(0)
    }

    /// Takes note of a segment that exists.
    pub(super) fn add(&mut self, number: u32) {
        let count = self.directories.len() as u32;
        let stripe = self.stripe(number);
        stripe.next = stripe.next.max(number + count);
    }

    pub(super) fn add_free(&mut self, number: u32) {
        self.stripe(number).free.insert(number);
    }

    pub(super) fn add_absent(&mut self, number: u32) {
        self.stripe(number).absent.insert(number);
    }

    pub(super) fn remove_absent(&mut self, number: u32) {
        self.stripe(number).absent.remove(&number);
    }

    pub(super) fn free_count(&self) -> usize {
        self.directories.iter().map(|stripe| stripe.free.len()).sum()
    }

    pub(super) fn free_in(&self, ordinal: usize) -> usize {
        self.directories[ordinal].free.len()
    }

    /// Takes a free segment of the directory whose turn it is, or of the next that has one to give. The first directory
    /// gives its last one only when there is no other: the files of a checkpoint may need its space.
    pub(super) fn take_free(&mut self) -> Option<u32> {
        let count = self.directories.len();
        let ordinal = (0..count)
            .map(|step| (self.turn + step) % count)
            .find(|&ordinal| self.to_give(ordinal) > 0)
            .or_else(|| (self.free_in(0) > 0).then_some(0))?;
        self.turn = (ordinal + 1) % count;
        self.take_free_in(ordinal)
    }

    /// Takes a free segment of one directory.
    pub(super) fn take_free_in(&mut self, ordinal: usize) -> Option<u32> {
        self.directories[ordinal].free.pop_first()
    }

    /// The directories, the one first that will run out of free segments first.
    pub(super) fn by_need(&self) -> Vec<usize> {
        let count = self.directories.len();
        let mut ordinals: Vec<usize> = (0..count).map(|step| (self.turn + step) % count).collect();
        // Stable: among equals the one comes first whose turn comes sooner.
        ordinals.sort_by_key(|&ordinal| self.to_give(ordinal));
        ordinals
    }

    /// The number of the segment to be made next in a directory, and whether it exists and is absent.
    pub(super) fn next_to_make(&self, ordinal: usize) -> (u32, bool) {
        let stripe = &self.directories[ordinal];
        stripe.absent.first().map_or((stripe.next, false), |absent| (*absent, true))
    }

    /// How many segments of a directory can be made, or filled again, with numbers below this one.
    pub(super) fn to_make(&self, ordinal: usize, most: usize) -> u64 {
        let stripe = &self.directories[ordinal];
        let unused = most.saturating_sub(stripe.next as usize).div_ceil(self.directories.len());
        (stripe.absent.len() + unused) as u64
    }

    /// Free segments that a directory can give; -1 for the first one means that it lacks the segment for checkpoints.
    fn to_give(&self, ordinal: usize) -> isize {
        self.free_in(ordinal) as isize - isize::from(ordinal == 0)
    }

    fn stripe(&mut self, number: u32) -> &mut Stripe {
        let count = self.directories.len();
        &mut self.directories[number as usize % count]
    }
}

#[cfg(test)]
mod tests;
