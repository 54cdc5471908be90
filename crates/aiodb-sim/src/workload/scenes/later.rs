//! Scenes that came to the simulator later: only seeds from [`super::super::FIRST_TIMED`] on have them.

use aiodb::{Durability, Step};

use super::THIRD;
use crate::script::{Action, CLIENTS, Crash, INTERVAL, IndexState, MOST_SNAPSHOTS, Require, Write};
use crate::store_time::CERTAIN_AFTER_MS;
use crate::workload::maker::Maker;
use crate::workload::scene::SCATTERED;

/// A wrong clock is off by years.
const YEAR_MS: i64 = 365 * 24 * 60 * 60 * 1000;

/// What a record lives that must be there when a wrong clock has been put right.
const LONG_MS: u64 = 6 * CERTAIN_AFTER_MS;

/// Keys that expire around a clock that is set.
const TIMED: usize = 4;

/// Writes with conditions on records that are about to expire.
const CONDITIONAL: usize = 8;

/// Times that a few keys are put and read, so that their segments begin several lives.
const RECYCLED: usize = 48;

/// Rounds of upkeep on a full disk.
const UPKEEP: usize = 24;

/// Values that fill some segments with garbage.
const GARBAGE: usize = 32;

impl Maker {
    /// The system's clock jumps by years, stands there for a while or for long, and is put right; the store is used, closed
    /// and killed meanwhile.
    pub(super) fn jump(&mut self) {
        let table = self.table();
        self.put_timed(table, 1000);
        self.put_timed(table, 100_000);
        let years = [-20, 1, 10, 10, 100][self.random.usize(..5)];
        self.actions.push(Action::Clock(years * YEAR_MS));
        self.get_timed(table);
        if self.random.u8(..4) > 0 {
            self.actions.push(Action::Sleep(CERTAIN_AFTER_MS));
            self.get_timed(table);
            self.put_timed(table, LONG_MS);
        }
        self.interrupt();
        self.reclaim_some();
        self.actions.push(Action::Clock(self.random.i64(-60_000..200_000)));
        self.put_timed(table, LONG_MS);
        self.get_timed(table);
        self.reclaim_some();
        self.interrupt();
        self.actions.push(Action::Sleep(CERTAIN_AFTER_MS));
        // A crash may have brought a wrong time back for as long again.
        self.actions.push(Action::Sleep(CERTAIN_AFTER_MS));
        self.get_timed(table);
        self.put_timed(table, 100_000);
        self.get_timed(table);
        self.interrupt();
        self.get_timed(table);
        self.actions.push(Action::Scan(table, false));
    }

    /// Values that expire, in some of a few keys.
    fn put_timed(&mut self, table: usize, lives_ms: u64) {
        for key in 0..TIMED {
            let value = self.value_of(8..300);
            if self.random.bool() {
                // A power cut must not take a record that a wrong clock hides: no check could tell.
                self.actions.push(Action::PutFor(table, key, value, Durability::Sync, lives_ms));
            }
        }
    }

    fn get_timed(&mut self, table: usize) {
        self.actions.extend((0..TIMED).map(|key| Action::Get(table, key)));
    }

    /// Now and then the process ends, in order or not.
    fn interrupt(&mut self) {
        match self.random.u8(..6) {
            0 => self.actions.push(Action::Reopen),
            1 => {
                let crash = self.plain_crash(IndexState::Newest);
                self.actions.push(Action::CrashNow(crash));
            }
            2 => self.actions.push(Action::Checkpoint),
            _ => {}
        }
    }

    fn reclaim_some(&mut self) {
        let steps = [Step::Write, Step::Settle, Step::Reclaim, Step::Reclaim, Step::Reclaim, Step::Prepare];
        self.actions.extend(steps.map(Action::Step));
    }

    /// Writes whose conditions are about records that expire just then, before and after the clock was set back.
    pub(super) fn expire(&mut self) {
        let (table, other) = (self.table(), self.table());
        for _ in 0..CONDITIONAL {
            let key = self.key();
            let lives_ms = self.random.u64(1..20);
            let first = self.value_of(8..300);
            self.actions.push(Action::PutFor(table, key, first, Durability::None, lives_ms));
            let waits_ms = self.random.u64(1..20);
            let back_ms = self.random.i64(-100_000..0);
            self.actions.extend([Action::Wait(waits_ms), Action::Clock(back_ms)]);
            let (late, value) = (self.key(), self.value_of(8..300));
            self.actions.push(Action::Batch(vec![(other, late, Write::PutFor(value, 100))], Durability::None));
            let requirements = vec![(table, key, self.require()), (other, late, self.require())];
            let write = (table, self.key(), Write::Merge(self.operand()));
            let durability = self.durability();
            self.actions.push(Action::BatchIf(requirements, vec![write], durability));
            let (new, durability) = (self.value_of(1..300), self.durability());
            self.actions.push(Action::SetIf(table, key, Require::Current, Some(new), durability));
            self.actions.push(Action::Clock(self.random.i64(0..60_000)));
        }
    }

    /// As [`Maker::recycle`], with gets in flight while the values that they read are overwritten: they put them into the cache
    /// after the writers have just taken them out.
    pub(super) fn recycle_in_flight(&mut self) {
        let table = self.table();
        for _ in 0..RECYCLED {
            let (key, client) = (self.key() % 2, self.random.usize(..CLIENTS));
            let (put, filling) = (self.value_of(1..300), self.value_of(THIRD..THIRD + 1));
            self.actions.extend([
                Action::Submit(client, table, key),
                Action::Put(table, key, put, Durability::Sync),
                Action::Step(Step::Settle),
                Action::Poll(client),
                Action::Get(table, key),
                Action::Put(table, 2 + key, filling, Durability::Sync),
                Action::Step(Step::Settle),
                Action::Step(Step::Reclaim),
                Action::Step(Step::Reclaim),
            ]);
            if self.random.u8(..4) == 0 {
                self.actions.push(Action::Checkpoint);
            }
        }
    }

    /// A write with an interval, little more than the interval, and a power cut.
    pub(super) fn lapse(&mut self) {
        let (table, key, value) = (self.table(), self.key(), self.value_of(1..300));
        self.actions.push(Action::Sync);
        self.actions.push(Action::Put(table, key, value, Durability::Interval(INTERVAL)));
        self.actions.push(Action::Wait(self.random.u64(105..180)));
        let crash = Crash { power_cut: true, ..self.plain_crash(IndexState::Newest) };
        self.actions.push(Action::CrashNow(crash));
    }

    /// Tables are dropped, which a checkpoint forgets, and made again: none may take over what another has left in the log.
    pub(super) fn bear_again(&mut self) {
        let tables = 0..self.setup.tables.len();
        for table in tables.clone() {
            for key in 0..TIMED {
                let (value, durability) = (self.value_of(1..300), self.durability());
                self.actions.push(Action::Put(table, key, value, durability));
            }
        }
        self.actions.extend(tables.clone().map(Action::Drop));
        self.actions.push(Action::Checkpoint);
        let crash = self.plain_crash(IndexState::Newest);
        self.actions.push(Action::CrashNow(crash));
        self.actions.extend(tables.map(Action::Create));
        let crash = Crash { rebuild: true, ..self.plain_crash(IndexState::Newest) };
        self.actions.push(Action::CrashNow(crash));
    }

    /// A snapshot is ended by a full disk, and what it saw is overwritten in place.
    pub(super) fn end_snapshot(&mut self) {
        self.scatter();
        self.actions.extend([Action::Checkpoint, Action::Snapshot]);
        for key in 0..SCATTERED {
            let value = self.value_of(1..300);
            self.actions.push(Action::Put(0, key, value, Durability::None));
        }
        self.actions.push(Action::Capacity(Some(0)));
        self.fill();
        self.actions.push(Action::Steps(Step::Upkeep, UPKEEP));
        self.fill();
        for key in 0..SCATTERED {
            let look = Action::Look(self.random.usize(..MOST_SNAPSHOTS), 0, key);
            self.actions.push(look);
        }
        self.actions.push(Action::Capacity(None));
    }

    /// Fills the disk, then deletes everything in one way or another under a snapshot, closes and opens the store now and then, and writes
    /// again.
    pub(super) fn fill_and_empty(&mut self) {
        self.scatter();
        if self.random.bool() {
            self.actions.push(Action::Checkpoint);
        }
        self.actions.push(Action::Capacity(Some(self.random.u64(..3))));
        self.scatter();
        self.fill();
        self.actions.push(Action::Snapshot);
        match self.random.u8(..4) {
            0 => self.actions.extend([Action::Truncate(0), Action::Truncate(1)]),
            1 => self.actions.extend([Action::Drop(0), Action::Drop(1)]),
            2 => self.actions.extend([Action::Reopen, Action::Truncate(1)]),
            _ => {}
        }
        for key in 0..self.setup.keys {
            let deletes = [0, 1].map(|table| Action::Delete(table, key, self.durability()));
            self.actions.extend(deletes);
        }
        if self.random.bool() {
            self.actions.push(Action::Reopen);
        }
        self.actions.push(Action::Steps(Step::Upkeep, UPKEEP));
        self.actions.extend([Action::Create(0), Action::Create(1), Action::Checkpoint]);
        self.scatter();
        self.actions.extend([Action::Capacity(None), Action::Checkpoint, Action::Verify]);
    }

    /// The log ends in a segment that holds nothing but garbage, and reclaim is the first to work after a crash.
    pub(super) fn empty_end(&mut self) {
        let table = self.table();
        for _ in 0..GARBAGE {
            let value = self.value_of(8000..20_000);
            self.actions.push(Action::Put(table, 0, value, Durability::Sync));
        }
        self.actions.push(Action::Delete(table, 0, Durability::Sync));
        let crash = self.plain_crash(IndexState::Newest);
        self.actions.push(Action::CrashNow(crash));
        self.actions.extend([Step::Settle, Step::Settle].map(Action::Step));
        self.actions.push(Action::Steps(Step::Reclaim, GARBAGE));
        self.actions.extend([Action::Checkpoint, Action::Step(Step::Prepare)]);
        let puts = self.puts(Durability::Sync);
        self.actions.extend(puts);
        let crash = self.plain_crash(IndexState::Newest);
        self.actions.push(Action::CrashNow(crash));
    }
}
