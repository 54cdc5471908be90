//! Which operations clients call, and how often each.

use aiodb::{IndexKind, Step};

use super::maker::Maker;
use crate::script::{Action, CLIENTS, Write};

impl Maker {
    /// One of all operations.
    pub(super) fn action(&mut self) -> Action {
        if self.whole && self.random.u8(..4) == 0 {
            return self.later_action();
        }
        let (table, key) = (self.table(), self.key());
        match self.random.u8(..100) {
            0..=20 => Action::Put(table, key, self.value(), self.durability()),
            21..=23 => {
                let (value, durability) = (self.value().distinct(), self.durability());
                Action::PutFor(table, key, value, durability, [10, 100, 1000, 100_000][self.random.usize(..4)])
            }
            // Operands pile up on few keys.
            24..=31 => Action::Merge(table, key % 3, self.operand(), self.durability()),
            32..=38 => Action::Delete(table, key, self.durability()),
            39 if self.setup.tables[table].is_ordered() => {
                let (durability, other) = (self.durability(), self.key());
                Action::DeleteRange(table, durability, key, other)
            }
            39 => Action::Delete(table, key, self.durability()),
            40..=47 => {
                let writes = (0..self.random.usize(2..7)).map(|_| {
                    let write = match self.random.u8(..8) {
                        0..=1 => Write::Delete,
                        2..=3 => Write::Merge(self.operand()),
                        _ => Write::Put(self.value()),
                    };
                    (self.table(), self.key(), write)
                });
                let writes = writes.collect();
                Action::Batch(writes, self.durability())
            }
            48..=55 => Action::Get(table, key),
            56 => Action::Scan(table, self.random.bool()),
            57 if self.random.bool() => Action::Snapshot,
            57 if self.random.u8(..4) == 0 => Action::Release(self.random.usize(..4)),
            57..=58 => Action::Look(self.random.usize(..4), table, key),
            59 if self.random.u8(..8) == 0 => Action::Clock(self.random.i64(-60_000..200_000)),
            59 => Action::Get(table, key % 3),
            60..=61 => Action::GetMany(table, (0..self.random.usize(1..12)).map(|_| self.key()).collect()),
            62..=69 => Action::Submit(self.random.usize(..CLIENTS), table, key),
            70..=74 => Action::Poll(self.random.usize(..CLIENTS)),
            75 => Action::Sync,
            76 => Action::Checkpoint,
            77 if self.random.u8(..4) == 0 => Action::Verify,
            77 => Action::Stats,
            78 if self.random.u8(..3) == 0 => Action::Truncate(table),
            78 if self.random.u8(..3) == 0 => Action::Drop(table),
            79 => Action::Create(table),
            80..=84 => Action::Wait(self.random.u64(1..120)),
            85..=86 => Action::Step(Step::Write),
            87 => Action::Step(Step::Settle),
            88 => Action::Step(if self.random.bool() { Step::Settle } else { Step::DeleteRanges }),
            89..=91 => Action::Step(Step::Prepare),
            92..=94 => Action::Step(Step::Upkeep),
            _ => Action::Step(Step::Reclaim),
        }
    }

    /// One of the operations that came to the store later.
    fn later_action(&mut self) -> Action {
        let (table, key) = (self.table(), self.key());
        let ordered = self.setup.tables[table].is_ordered();
        match self.random.u8(..100) {
            0..=17 => {
                let (require, durability) = (self.require(), self.durability());
                let new = (self.random.u8(..4) > 0).then(|| self.value());
                Action::SetIf(table, key, require, new, durability)
            }
            18..=29 => {
                let requirements = (0..self.random.usize(1..4)).map(|_| (self.table(), self.key(), self.require()));
                let requirements = requirements.collect();
                let writes = (0..self.random.usize(1..5)).map(|_| self.any_write()).collect();
                Action::BatchIf(requirements, writes, self.durability())
            }
            30..=39 => {
                let writes = (0..self.random.usize(2..7)).map(|_| self.any_write()).collect();
                Action::Batch(writes, self.durability())
            }
            40..=45 => {
                let (value, durability) = (self.stream(), self.durability());
                Action::PutStream(table, key, value, durability)
            }
            46..=49 => Action::BeginWriting(table, key, self.stream()),
            50..=56 => Action::WriteOn(self.random.usize(..2), self.random.usize(1..20_000)),
            57..=59 => Action::FinishWriting(self.random.usize(..2), self.durability()),
            60..=63 => Action::BeginReading(table, key),
            64..=69 => Action::ReadOn(self.random.usize(..2), self.random.usize(1..20_000)),
            70..=77 => Action::GetRange(table, key, self.random.usize(..2000), self.random.usize(..20_000)),
            78..=87 if ordered => Action::ScanPart(table, self.part()),
            78..=87 => Action::Get(table, key),
            88..=91 => Action::Mark,
            92..=95 => Action::WaitDurable,
            96..=97 if !self.setup.tables.contains(&IndexKind::Lmdb) && self.random.bool() => Action::BackUp,
            98 if self.random.bool() => Action::Restore(self.random.usize(..3)),
            _ => Action::Step(Step::Write),
        }
    }
}
