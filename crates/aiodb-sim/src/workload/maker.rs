//! What makes a script: the random numbers of its seed, what the seed has decided for the whole run, and the actions so far.
//! Here are the parts of actions: tables, keys, values, classes. All actions are made of them, in the order of the numbers.

use aiodb::Durability;
use fastrand::Rng;

use super::scene::Scene;
use super::trouble::Trouble;
use crate::script::{Action, INTERVAL, Part, Require, Setup, Value, Write};

pub(super) struct Maker {
    pub(super) random: Rng,
    pub(super) setup: Setup,
    pub(super) trouble: Trouble,
    /// Whether crashes are aimed at phases.
    pub(super) aimed: bool,
    /// Whether the operations that came later are used.
    pub(super) whole: bool,
    /// Whether there is a second client, whose writes wait.
    pub(super) waiting: bool,
    /// Whether old segments are emptied for a while, so that deletes need no longer be kept.
    pub(super) churning: bool,
    /// What is staged before some crashes.
    pub(super) scene: Option<Scene>,
    pub(super) actions: Vec<Action>,
    pub(super) next_value: u32,
}

impl Maker {
    pub(super) fn table(&mut self) -> usize {
        self.random.usize(..self.setup.tables.len())
    }

    pub(super) fn key(&mut self) -> usize {
        self.random.usize(..self.setup.keys)
    }

    pub(super) fn durability(&mut self) -> Durability {
        match self.random.u8(..3) {
            0 => Durability::Sync,
            1 => Durability::Interval(INTERVAL),
            _ => Durability::None,
        }
    }

    pub(super) fn value(&mut self) -> Value {
        let lengths = match self.random.u8(..24) {
            0 => 0..1,
            1 => 900..1400,
            2 => 4000..6000,
            3 => 14_000..40_000,
            _ => 1..300,
        };
        self.value_of(lengths)
    }

    pub(super) fn operand(&mut self) -> Value {
        let lengths = if self.random.u8(..16) == 0 { 1000..5000 } else { 1..40 };
        self.value_of(lengths)
    }

    pub(super) fn value_of(&mut self, lengths: std::ops::Range<u32>) -> Value {
        self.next_value += 1;
        Value { length: self.random.u32(lengths), seed: self.next_value }
    }

    pub(super) fn any_write(&mut self) -> (usize, usize, Write) {
        let (table, key) = (self.table(), self.key());
        let write = match self.random.u8(..9) {
            0..=1 => Write::Delete,
            2..=3 => Write::Merge(self.operand()),
            4 => Write::PutFor(self.value().distinct(), [10, 100, 1000, 100_000][self.random.usize(..4)]),
            5 if self.setup.tables[table].is_ordered() => Write::DeleteRange(self.key()),
            _ => Write::Put(self.value()),
        };
        (table, key, write)
    }

    pub(super) fn require(&mut self) -> Require {
        match self.random.u8(..6) {
            0 => Require::Absent,
            1 => Require::Present,
            2 => Require::Other(self.value()),
            _ => Require::Current,
        }
    }

    /// A value that is worth writing piece by piece.
    pub(super) fn stream(&mut self) -> Value {
        let lengths = if self.random.bool() { 10_000..70_000 } else { 0..20_000 };
        self.value_of(lengths)
    }

    pub(super) fn part(&mut self) -> Part {
        Part {
            bounds: (self.key(), self.key()),
            inclusive: (self.random.bool(), self.random.bool()),
            backward: self.random.bool(),
            keys_only: self.random.u8(..4) == 0,
            limit: if self.random.bool() { self.random.usize(..12) } else { usize::MAX },
        }
    }

    pub(super) fn puts(&mut self, durability: Durability) -> Vec<Action> {
        (0..3).map(|_| Action::Put(self.table(), self.key(), self.value(), durability)).collect()
    }

    pub(super) fn large_puts(&mut self) -> Vec<Action> {
        let put = |_| {
            let (table, key) = (self.table(), self.key());
            Action::Put(table, key, self.value_of(16_000..70_000), self.durability())
        };
        (0..4).map(put).collect()
    }
}
