//! Scenes of memory: spills, budgets and modes. Only seeds from [`super::super::FIRST_PRESSED`] on have them.

use aiodb::io::Phase;
use aiodb::{Durability, IndexKind, Step};

use crate::script::{Action, Crash, IndexState, MOST_SNAPSHOTS};
use crate::workload::maker::Maker;
use crate::workload::modes::modes;
use crate::workload::scene::SCATTERED;

/// Spills that are cut off, or come to their end.
const SPILLS: usize = 5;

/// Steps of a spill, about: of few tags each they do not bring it to its end.
const STEPS: std::ops::Range<usize> = 4..40;

/// Steps of spills that pass before a crash comes into one.
const PASSING: u64 = 20;

/// Calls of the device in a step of a spill, in a change of modes, and in one of the budget, about.
const CALLS_OF_SPILL: u64 = 12;
const CALLS_OF_MODES: u64 = 24;
const CALLS_OF_BUDGET: u64 = 4;

/// One change of modes or of the budget in so many ends with a crash.
const CRASHING: u32 = 4;

/// Times that a budget falls and rises, that modes change, and that a store is opened with another budget.
const BUDGETS: usize = 5;
const MODES: usize = 8;
const OPENINGS: usize = 4;

/// Bytes above the least budget: more than there is to fill, and for next to nothing.
const PLENTY: u64 = 64 << 20;
const LITTLE: [u64; 4] = [0, 2 << 10, 24 << 10, 150 << 10];

/// Rounds of upkeep that bring to memory what belongs there.
const ROUNDS: std::ops::Range<usize> = 1..4;

impl Maker {
    /// Brings keys to runs a few at a time. In between they are written, deleted, moved and read, a checkpoint is made, and a crash comes into a
    /// step.
    pub(super) fn spill_by_steps(&mut self) {
        let is_hash = |kind: &IndexKind| *kind == IndexKind::Hash;
        // Which a script has, unless somebody made it with other tables.
        let table = self.setup.tables.iter().position(is_hash).unwrap_or(0);
        for _ in 0..SPILLS {
            for key in 0..self.setup.keys {
                if self.random.u8(..3) > 0 {
                    let put = Action::Put(table, key, self.value_of(1..300), self.durability());
                    self.actions.push(put);
                }
            }
            self.actions.push(Action::Step(Step::Write));
            if self.random.bool() {
                let (passing, calls) = (self.random.u64(..PASSING), self.random.u64(1..=CALLS_OF_SPILL));
                self.crash_in_phase(Phase::Spill, passing, calls);
            }
            for _ in 0..self.random.usize(STEPS) {
                self.actions.push(Action::Step(Step::Spill));
                if self.random.bool() {
                    let between = self.between_steps(table);
                    self.actions.push(between);
                }
            }
        }
        for key in 0..self.setup.keys {
            self.actions.push(Action::Get(table, key));
        }
        self.actions.push(Action::Verify);
    }

    /// What comes between two steps of a spill.
    fn between_steps(&mut self, table: usize) -> Action {
        let (key, durability) = (self.key(), self.durability());
        match self.random.u8(..24) {
            0..=5 => Action::Put(table, key, self.value_of(1..300), durability),
            6..=8 => Action::Delete(table, key, durability),
            9..=10 => Action::Merge(table, key, self.operand(), durability),
            11..=12 => Action::Step(Step::Settle),
            13..=14 => Action::Step(Step::Reclaim),
            15..=16 => Action::Checkpoint,
            17 => Action::Snapshot,
            18 => Action::Look(self.random.usize(..MOST_SNAPSHOTS), table, key),
            19 => Action::Scan(table, false),
            20 if self.random.u8(..4) == 0 => Action::Truncate(table),
            21 if self.random.u8(..4) == 0 => Action::Reopen,
            _ => Action::Get(table, key),
        }
    }

    /// Fills memtables and caches with a large budget, has it fall below that, works, and has it rise again.
    pub(super) fn squeeze(&mut self) {
        let table = self.table();
        self.actions.push(Action::Memory(Some(PLENTY)));
        for _ in 0..BUDGETS {
            self.fill_memory(table);
            let little = LITTLE[self.random.usize(..LITTLE.len())];
            self.change_budget(Some(little));
            self.fill_memory(table);
            let rounds = self.random.usize(ROUNDS);
            self.actions.extend([Action::Wait(400), Action::Steps(Step::Upkeep, rounds)]);
            let plenty = self.random.bool().then_some(PLENTY);
            self.change_budget(plenty);
        }
        self.actions.push(Action::Verify);
    }

    /// Changes the modes of a table, works, and empties or drops the table now and then.
    pub(super) fn switch_modes(&mut self) {
        let table = self.table();
        self.fill_memory(table);
        self.actions.push(Action::Checkpoint);
        for _ in 0..MODES {
            if self.random.u32(..CRASHING) == 0 {
                let calls = self.random.u64(1..=CALLS_OF_MODES);
                self.crash_in_phase(Phase::TableModes, 0, calls);
            }
            let wanted = modes(self.setup.tables[table], &mut self.random);
            self.actions.push(Action::Modes(table, wanted));
            let rounds = self.random.usize(ROUNDS);
            self.actions.extend([Action::Wait(400), Action::Steps(Step::Upkeep, rounds)]);
            match self.random.u8(..8) {
                0 => self.actions.push(Action::Truncate(table)),
                1 => self.actions.extend([Action::Drop(table), Action::Create(table)]),
                2 => self.actions.push(Action::Reopen),
                3 => {
                    let crash = self.plain_crash(IndexState::Newest);
                    self.actions.push(Action::CrashNow(crash));
                }
                _ => {}
            }
            self.fill_memory(table);
        }
    }

    /// Ends a process that had much memory, in order or not, and goes on with little, and the other way round.
    pub(super) fn lessen(&mut self) {
        let table = self.table();
        for _ in 0..OPENINGS {
            self.actions.push(Action::Memory(Some(PLENTY)));
            self.fill_memory(table);
            let little = LITTLE[self.random.usize(..LITTLE.len())];
            self.actions.push(Action::NextMemory(little));
            let crash = self.plain_crash(IndexState::Newest);
            self.actions.push(if self.random.bool() { Action::Reopen } else { Action::CrashNow(crash) });
            self.fill_memory(table);
            self.actions.push(Action::NextMemory(PLENTY));
            let crash = Crash { verify: true, ..self.plain_crash(IndexState::Newest) };
            self.actions.push(if self.random.bool() { Action::Reopen } else { Action::CrashNow(crash) });
        }
    }

    /// Writes many keys of a table and reads them, with a commit or a spill of some in between.
    fn fill_memory(&mut self, table: usize) {
        for key in 0..SCATTERED {
            if self.random.bool() {
                let put = Action::Put(table, key, self.value_of(1..2000), Durability::None);
                self.actions.push(put);
            }
        }
        let step = [Step::Write, Step::CommitAhead, Step::Spill, Step::Checkpoint][self.random.usize(..4)];
        self.actions.push(Action::Step(step));
        self.actions.extend((0..SCATTERED).map(|key| Action::Get(table, key)));
    }

    /// Sets the budget, and now and then has the process die of it.
    fn change_budget(&mut self, above: Option<u64>) {
        if self.random.u32(..CRASHING) == 0 {
            let calls = self.random.u64(1..=CALLS_OF_BUDGET);
            self.crash_in_phase(Phase::Budget, 0, calls);
        }
        self.actions.push(Action::Memory(above));
    }

    /// The process is to die in the next phase of a kind, once so many have passed, after so many calls.
    fn crash_in_phase(&mut self, phase: Phase, passing: u64, calls: u64) {
        let crash = Crash { verify: true, ..self.plain_crash(IndexState::Newest) };
        self.actions.push(Action::CrashInside(phase, passing, calls, crash));
    }
}
