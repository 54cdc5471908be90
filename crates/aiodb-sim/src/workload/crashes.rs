//! How a process ends, and the faults before that.

use aiodb::io::Phase;
use aiodb::io::sim::{Call, Effect};
use aiodb::{Durability, IndexKind, Step};

use super::maker::Maker;
use super::trouble::Trouble;
use crate::script::{Action, Crash, Files, IndexState};

impl Maker {
    /// The end of a process, now or soon, and what is likely to lead there.
    pub(super) fn crash(&mut self, churned: bool) {
        let mut crash = Crash {
            power_cut: self.random.bool(),
            index: match self.random.u8(..6) {
                0..=2 => IndexState::Newest,
                3..=4 => IndexState::Earlier(self.random.usize(..4)),
                _ => IndexState::Missing,
            },
            again: (0..self.random.usize(..8).saturating_sub(5))
                .map(|_| (self.random.u64(1..80), self.random.bool()))
                .collect(),
            error: self.error_of_recovery(),
            verify: self.random.u8(..4) == 0,
            rebuild: self.random.u8(..12) == 0,
            rotten_runs: None,
        };
        if churned {
            crash.rebuild |= self.random.bool();
            crash.index = IndexState::Earlier(self.random.usize(..4));
        }
        match self.random.u8(..10) {
            0 => self.actions.push(Action::CrashNow(crash)),
            1 => self.actions.push(Action::Reopen),
            way if way >= 5 && self.aimed => self.crash_inside(crash),
            2..=5 => {
                let steps = self.random.u64(1..150);
                self.actions.push(Action::CrashIn(steps, crash));
            }
            _ => {
                let steps = self.random.u64(1..40);
                self.actions.push(Action::CrashIn(steps, crash));
                self.target();
            }
        }
    }

    /// Now and then a call fails while the store is opened again.
    fn error_of_recovery(&mut self) -> Option<(Call, u64)> {
        if !self.aimed || self.trouble != Trouble::Errors || self.random.bool() {
            return None;
        }
        let call = [Call::Read, Call::Write, Call::Write, Call::Sync][self.random.usize(..4)];
        Some((call, self.random.u64(..12)))
    }

    /// What a crash that is counted in steps is likely to fall into.
    fn target(&mut self) {
        let table = self.table();
        match self.random.u8(..8) {
            0..=1 => self.actions.push(Action::Checkpoint),
            2 => self.actions.push(Action::Truncate(table)),
            3 => self.actions.extend([Action::Drop(table), Action::Create(table)]),
            4..=5 => {
                let steps =
                    [Step::Settle, Step::Reclaim, Step::Reclaim, Step::Checkpoint, Step::Prepare, Step::Reclaim];
                self.actions.extend(steps.map(Action::Step));
            }
            6 => self.actions.extend([Action::Step(Step::Upkeep), Action::Step(Step::Upkeep)]),
            _ => {
                let puts = self.large_puts();
                self.actions.extend(puts);
            }
        }
    }

    /// A crash inside a phase, and what is likely to lead there; the rare ones often.
    fn crash_inside(&mut self, crash: Crash) {
        let table = self.table();
        let (phase, before, after) = match self.random.u8(..20) {
            0 => (Phase::Append, Vec::new(), self.large_puts()),
            1 => (Phase::Publish, Vec::new(), self.large_puts()),
            2..=4 => (Phase::Flush, self.puts(Durability::None), self.puts(Durability::Sync)),
            5..=6 if self.setup.tables.contains(&IndexKind::Lmdb) => {
                (Phase::IndexCommit, self.puts(Durability::None), vec![Action::Checkpoint])
            }
            5..=7 => (Phase::Checkpoint, Vec::new(), vec![Action::Checkpoint]),
            8..=9 => (Phase::Cut, Vec::new(), self.large_puts()),
            10..=12 => (Phase::ReclaimMove, Vec::new(), reclaiming()),
            13..=15 => (Phase::SegmentReuse, Vec::new(), [reclaiming(), self.large_puts()].concat()),
            16 => (Phase::TableCreate, vec![Action::Drop(table)], vec![Action::Create(table)]),
            17..=18 => (Phase::TableDrop, Vec::new(), vec![Action::Drop(table), Action::Create(table)]),
            _ => (Phase::TableTruncate, Vec::new(), vec![Action::Truncate(table)]),
        };
        let passing = if matches!(phase, Phase::Checkpoint | Phase::IndexCommit) { 0 } else { self.random.u64(..3) };
        let skip = if after.len() > 3 { passing } else { 0 };
        // Few steps more often than many.
        let most = 1 << self.random.u32(..6);
        let steps = self.random.u64(1..=most);
        self.actions.extend(before);
        self.actions.push(Action::CrashInside(phase, skip, steps, crash));
        self.actions.extend(after);
    }

    /// A fault of the kind that this run has.
    pub(super) fn trouble(&mut self) -> Option<Action> {
        let files = [Files::Log, Files::Log, Files::Other, Files::Any][self.random.usize(..4)];
        let (skip, call) = (self.random.u64(..6), [Call::Read, Call::Write, Call::Sync][self.random.usize(..3)]);
        match self.trouble {
            Trouble::None => None,
            Trouble::Errors => (self.random.u8(..2) == 0).then(|| {
                // Some reads find no memory: what they were for is not to be taken for damaged.
                let is_short = call == Call::Read && skip % 2 == 1;
                let effect = if is_short { Effect::Shortage } else { Effect::Fail };
                Action::Fault(call, effect, skip, self.random.u64(1..3), files)
            }),
            Trouble::FullDisk => Some(Action::Capacity(match self.random.u8(..3) {
                0 => None,
                _ => Some(self.random.u64(..3)),
            })),
            // One copy on one disk: at most one damage in a life or so, or nothing could be said of what is left.
            Trouble::Medium => match self.random.u8(..12) {
                0..=1 => {
                    let offset = self.random.u64(..);
                    Some(Action::Rot(self.random.usize(..), offset, 1 << self.random.u8(..8)))
                }
                2 => Some(Action::Fault(Call::Write, Effect::Lose, skip, 1, files)),
                3 => Some(Action::Fault(Call::Write, Effect::Misdirect(self.random.u64(1..16)), skip, 1, files)),
                4 => Some(Action::Fault(Call::Sync, Effect::Lose, skip, 1, files)),
                _ => None,
            },
            Trouble::Slow => Some(Action::Fault(call, Effect::Delay(self.random.u64(1..400)), skip, 1, files)),
        }
    }
}

/// What empties segments and makes them free.
fn reclaiming() -> Vec<Action> {
    let steps = [Step::Settle, Step::Reclaim, Step::Reclaim, Step::Checkpoint, Step::Prepare, Step::Reclaim];
    [&steps[..], &[Step::Upkeep, Step::Reclaim, Step::Checkpoint, Step::Upkeep]]
        .concat()
        .into_iter()
        .map(Action::Step)
        .collect()
}
