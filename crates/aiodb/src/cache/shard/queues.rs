//! The queues of blocks of a shard.

use std::collections::VecDeque;

/// Entries that leave before others, or after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Usual,
    Preferred,
}

/// The queues of a class.
#[derive(Default)]
pub(super) struct Queues {
    pub(super) young: Queue,
    pub(super) old: Queue,
}

/// A block that was taken out of its queue.
pub(super) struct Taken {
    pub(super) block: u32,
    pub(super) class: Class,
    pub(super) of_young: bool,
    /// Whether it may have entries of tables that are preferred no more: the others stay.
    pub(super) is_reviewed: bool,
}

/// Blocks from the one to be emptied next to the one that is being filled.
#[derive(Default)]
pub(super) struct Queue {
    pub(super) blocks: VecDeque<u32>,
}

impl Queues {
    pub(super) fn queue(&mut self, old: bool) -> &mut Queue {
        if old { &mut self.old } else { &mut self.young }
    }

    pub(super) fn len(&self) -> usize {
        self.young.blocks.len() + self.old.blocks.len()
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = u32> {
        self.young.blocks.iter().chain(&self.old.blocks).copied()
    }
}

impl Queue {
    /// The block that is being filled.
    pub(super) fn last(&self) -> Option<u32> {
        self.blocks.back().copied()
    }
}
