//! A second client whose writes wait for their batch: only seeds from [`super::FIRST_WAITING`] on have it.

use aiodb::{Durability, IndexKind, Step};

use super::maker::Maker;
use crate::script::{Action, INTERVAL, Require, Write};

/// Keys that both clients write to while one of them waits.
const SHARED: usize = 6;

/// Rounds in which the ordered index takes up what is later than a write that waits.
const OVERLAPS: usize = 8;

impl Maker {
    /// The second client appends groups that wait; the first one goes on with the same keys, and others.
    pub(super) fn overlap(&mut self) {
        let (table, key) = (self.table(), self.key());
        let mut actions = vec![self.appended(table, key)];
        for _ in 0..self.random.usize(1..6) {
            let action = match self.random.u8(..8) {
                0 => self.appended(table, key),
                1 => self.action(),
                2 => Action::Await(self.random.usize(..3)),
                _ => self.meanwhile(table, key),
            };
            actions.push(action);
        }
        if self.random.bool() {
            actions.extend([Action::Await(0), Action::Get(table, key)]);
        }
        actions.retain(|action| self.suits(action));
        self.actions.extend(actions);
    }

    /// A group of the second client, with a key among others.
    fn appended(&mut self, table: usize, key: usize) -> Action {
        let mut writes: Vec<_> = (0..self.random.usize(..3)).map(|_| self.any_write()).collect();
        let (_, _, write) = self.any_write();
        let write = match write {
            Write::DeleteRange(_) if self.setup.tables[table] == IndexKind::Hash => Write::Delete,
            write => write,
        };
        writes.insert(self.random.usize(..=writes.len()), (table, key, write));
        let requirements = if self.random.u8(..4) == 0 { vec![(table, key, self.require())] } else { Vec::new() };
        Action::Append(requirements, writes)
    }

    /// What the first client does with a key of which a write waits.
    fn meanwhile(&mut self, table: usize, key: usize) -> Action {
        match self.random.u8(..16) {
            0..=3 => Action::Merge(table, key, self.operand(), self.unhurried()),
            4..=5 => Action::Put(table, key, self.value(), self.unhurried()),
            6 => Action::Delete(table, key, self.unhurried()),
            7..=8 => Action::Get(table, key),
            9 => {
                let (require, durability) = (self.require(), self.unhurried());
                Action::SetIf(table, key, require, Some(self.value()), durability)
            }
            10 => {
                let durability = self.unhurried();
                Action::BatchIf(vec![(table, key, Require::Current)], vec![self.any_write()], durability)
            }
            11 => Action::Snapshot,
            12 => Action::Look(self.random.usize(..4), table, key),
            13 => Action::Scan(table, self.random.bool()),
            14 => Action::Step([Step::Write, Step::Settle, Step::Upkeep, Step::Reclaim][self.random.usize(..4)]),
            _ => [Action::Truncate(table), Action::Checkpoint, Action::Stats, Action::Sync][self.random.usize(..4)]
                .clone(),
        }
    }

    /// A class that does not write the batch.
    fn unhurried(&mut self) -> Durability {
        if self.random.bool() { Durability::None } else { Durability::Interval(INTERVAL) }
    }

    /// Writes wait; later ones of their keys go to the ordered index on disk with what a truncated table makes it do; then the
    /// writes that waited come to the index as the last.
    pub(super) fn overlap_commits(&mut self) {
        for _ in 0..OVERLAPS {
            let key = self.random.usize(..SHARED);
            let before = self.value_of(8..300);
            self.actions.push(Action::Put(0, key, before, Durability::None));
            if self.random.bool() {
                self.actions.push(Action::Checkpoint);
            }
            self.actions.push(Action::Truncate(1));
            let append = self.appended(0, key);
            self.actions.push(append);
            for _ in 0..self.random.usize(1..4) {
                let merge = Action::Merge(0, key, self.operand(), self.unhurried());
                let meanwhile = self.meanwhile(0, key);
                self.actions.push(if self.random.u8(..3) > 0 { merge } else { meanwhile });
            }
            self.actions.extend([
                Action::Step(Step::Reclaim),
                Action::Get(0, key),
                Action::Await(0),
                Action::Get(0, key),
            ]);
        }
        if self.random.bool() {
            let append = self.appended(0, 0);
            self.actions.push(append);
        }
    }
}
