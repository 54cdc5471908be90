//! Scenes of ordered tables whose index is in sorted runs: only seeds from [`super::super::FIRST_SORTED`] on have them.

use aiodb::io::Phase;
use aiodb::{Durability, Step};

use crate::script::{Action, Crash, IndexState, MOST_SNAPSHOTS};
use crate::workload::maker::Maker;

/// Keys that are changed again and again, so that each run has most of them.
const SHARED: usize = 6;

/// Commits of the index: each makes a run.
const COMMITS: std::ops::Range<usize> = 4..12;

/// Steps after which no merge is left to do.
const MERGES: usize = 8;

/// Edits of the manifest that a crash comes into.
const EDITS: usize = 6;

/// Calls of the device that an edit takes with what comes before it, about.
const STEPS_OF_EDIT: u64 = 24;

impl Maker {
    /// Commits the index after every few changes of the same keys, merges, and looks at what snapshots see.
    pub(super) fn merge_runs(&mut self) {
        for _ in 0..self.random.usize(COMMITS) {
            self.change_and_commit();
            if self.random.u8(..3) == 0 {
                self.actions.push(Action::Step(Step::Merge));
            }
        }
        self.actions.push(Action::Steps(Step::Merge, MERGES));
        self.look_around();
        if self.random.bool() {
            let crash = self.plain_crash(IndexState::Newest);
            self.actions.push(Action::CrashNow(crash));
        }
    }

    /// Deletes ranges that end where they begin, or before that, among others, and looks at what snapshots see.
    pub(super) fn delete_nothing(&mut self) {
        for _ in 0..self.random.usize(COMMITS) {
            let (key, durability) = (self.random.usize(..SHARED), self.durability());
            let other = if self.random.u8(..3) == 0 { key } else { self.random.usize(..SHARED) };
            self.actions.push(Action::DeleteNothing(0, durability, key, other));
            self.change_and_commit();
            let step = [Step::DeleteRanges, Step::Merge][self.random.usize(..2)];
            self.actions.push(Action::Step(step));
        }
        self.look_around();
    }

    /// Crashes inside the edits that commits and merges make. After half of them one manifest is damaged, and its copy must do.
    pub(super) fn edit_by_halves(&mut self) {
        for _ in 0..EDITS {
            for _ in 0..self.random.usize(2..6) {
                self.change_and_commit();
            }
            let put = Action::Put(0, self.random.usize(..SHARED), self.value_of(8..300), Durability::None);
            let (phase, after) = match self.random.bool() {
                true => (Phase::IndexCommit, Action::Checkpoint),
                false => (Phase::Merge, Action::Steps(Step::Merge, MERGES)),
            };
            let rotten_runs = self.random.bool().then(|| self.random.u64(..));
            let crash = Crash { rotten_runs, verify: true, ..self.plain_crash(IndexState::Newest) };
            let steps = self.random.u64(1..STEPS_OF_EDIT);
            self.actions.extend([put, Action::CrashInside(phase, 0, steps, crash), after]);
        }
    }

    /// Some changes of few keys, and a commit of the index.
    fn change_and_commit(&mut self) {
        for _ in 0..self.random.usize(1..5) {
            let (key, durability) = (self.random.usize(..SHARED), self.durability());
            let action = match self.random.u8(..10) {
                0..=4 => Action::Put(0, key, self.value_of(8..300), durability),
                5..=6 => Action::Delete(0, key, durability),
                7 => Action::Merge(0, key, self.operand(), durability),
                8 => Action::DeleteRange(0, durability, key, self.random.usize(..SHARED)),
                _ => Action::Snapshot,
            };
            self.actions.push(action);
        }
        self.actions.push(Action::Checkpoint);
    }

    fn look_around(&mut self) {
        for key in 0..SHARED {
            let looks = (0..MOST_SNAPSHOTS).map(|number| Action::Look(number, 0, key));
            self.actions.extend(looks);
            self.actions.push(Action::Get(0, key));
        }
        self.actions.push(Action::Scan(0, self.random.bool()));
    }
}
