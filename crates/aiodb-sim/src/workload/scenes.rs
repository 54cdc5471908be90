//! What hardly ever comes together by chance, brought together: each scene prepares a state of the store that a rule of
//! the engine exists for, in few keys and few segments, and looks at what has become of it. A scene adds actions and decides
//! nothing else; which run has it, and what it needs of the setup, says `scene`.

mod later;
mod memory;
mod sorted;

use aiodb::{Durability, Step};

use super::maker::Maker;
use super::scene::{SCATTERED, Scene};
use crate::script::{Action, CLIENTS, Crash, DEPTH, IndexState, MOST_SNAPSHOTS, MOST_STREAMS, Write};

/// Bytes of a value of which a few fill a segment.
const LARGE: std::ops::Range<u32> = 14_000..40_000;

/// Large values of a few keys: they take all segments that are free, and what lay there of these keys before is garbage.
const FILLING: usize = 24;

/// Steps that empty as many segments as reclaim finds worth it.
const EMPTYING: usize = 400;

/// Times that a full disk is emptied: what is moved the first time can go the second time.
const ROUNDS: usize = 2;

/// Times that a few keys are put and read, so that their segments begin several lives.
const RECYCLED: usize = 48;

/// Bytes of a value which, with a small one before it, takes the third part of a segment.
const THIRD: u32 = 12_000;

/// Puts and deletes of a few keys.
const COUNTED: usize = 12;

/// Values that are damaged one after the other, each after a put and before a get.
const DAMAGED: usize = 6;

/// Checkpoints of a time in which everything is emptied, and large puts before each.
const CHURN: [usize; 2] = [3, 6];

impl Maker {
    /// Deletes keys or a table, and overwrites the rest with large values until everything that is older has been moved or
    /// is gone: an index that does not know what was deleted cannot learn it from the log any more.
    pub(super) fn churn(&mut self) {
        let table = self.table();
        self.actions.push(Action::Checkpoint);
        if self.random.bool() {
            let deletes = (0..4).map(|_| Action::Delete(table, self.key(), self.durability()));
            let deletes: Vec<_> = deletes.collect();
            self.actions.extend(deletes);
        } else {
            self.actions.extend([Action::Snapshot, Action::Truncate(table)]);
        }
        let [checkpoints, puts] = CHURN;
        for _ in 0..checkpoints {
            for _ in 0..puts {
                let (key, value) = (self.key() % 3, self.value_of(14_000..40_000));
                let put = Action::Put(table, key, value, self.durability());
                self.actions.extend([put, Action::Step(Step::Reclaim)]);
            }
            // What has just been moved is overwritten before the index on disk knows of the move.
            let snapshot = if self.random.bool() { Action::Snapshot } else { Action::Release(0) };
            let puts = self.puts(Durability::None);
            self.actions.extend([vec![snapshot], puts].concat());
            let look = Action::Look(self.random.usize(..4), table, self.key());
            self.actions.extend([Action::Checkpoint, look, Action::Step(Step::Prepare)]);
        }
        if self.random.bool() {
            self.actions.push(Action::Verify);
        }
    }

    /// Whether an action may be part of a run: where keys are counted, only one after which the count is exact.
    pub(super) fn suits(&self, action: &Action) -> bool {
        let exact = |write: &Write| matches!(write, Write::Put(_) | Write::Delete);
        self.scene != Some(Scene::Counted)
            || match action {
                Action::PutFor(..) | Action::Merge(..) | Action::DeleteRange(..) => false,
                Action::Batch(writes, _) | Action::BatchIf(_, writes, _) | Action::Append(_, writes) => {
                    writes.iter().all(|(.., write)| exact(write))
                }
                _ => true,
            }
    }

    pub(super) fn play(&mut self, scene: Scene) {
        // Writers keep segments from being emptied; gets in flight, readers of streams and snapshots keep them from being used
        // again. `Verify` ends the last two.
        self.actions.extend((0..MOST_STREAMS).map(|_| Action::FinishWriting(0, Durability::None)));
        self.actions.extend((0..CLIENTS * DEPTH).map(|number| Action::Poll(number % CLIENTS)));
        self.actions.push(Action::Verify);
        match scene {
            Scene::Forgotten => self.forget(),
            Scene::Overtaken => self.overtake(),
            Scene::Truncated => self.truncate_under_snapshot(),
            Scene::Recycled => self.recycle(),
            Scene::Counted => self.count(),
            Scene::Damaged => self.damage(),
            Scene::InFlight => self.recycle_in_flight(),
            Scene::Jumped => self.jump(),
            Scene::Expired => self.expire(),
            Scene::Lapsed => self.lapse(),
            Scene::Reborn => self.bear_again(),
            Scene::Ended => self.end_snapshot(),
            Scene::EmptyEnd => self.empty_end(),
            Scene::Overlapped => self.overlap_commits(),
            Scene::Merged => self.merge_runs(),
            Scene::Vacuous => self.delete_nothing(),
            Scene::HalfEdited => self.edit_by_halves(),
            Scene::Filled => self.fill_and_empty(),
            Scene::Spilling => self.spill_by_steps(),
            Scene::Squeezed => self.squeeze(),
            Scene::Switched => self.switch_modes(),
            Scene::Lessened => self.lessen(),
        }
    }

    /// Deletes everything, and empties segments until none is left that holds anything of before, not even the deletes: an
    /// index that does not know of them cannot learn it from the log any more. Only a full disk makes reclaim do so much.
    fn forget(&mut self) {
        self.scatter();
        self.actions.push(Action::Checkpoint);
        for key in 0..self.setup.keys {
            let delete = Action::Delete(0, key, self.durability());
            self.actions.push(delete);
        }
        self.actions.extend([Action::Truncate(1), Action::Checkpoint]);
        for _ in 0..ROUNDS {
            self.fill();
            self.actions.push(Action::Capacity(Some(0)));
            self.fill();
            self.empty();
            self.actions.extend([Action::Capacity(None), Action::Checkpoint, Action::Step(Step::Prepare)]);
        }
        let commits = self.random.usize(1..96);
        let crash = self.plain_crash(IndexState::Earlier(commits));
        self.actions.push(Action::CrashNow(crash));
    }

    /// Moves records, takes a snapshot, overwrites what has just been moved before the index on disk knows of the move, and
    /// looks at the snapshot when the places they were moved from are used again.
    fn overtake(&mut self) {
        self.scatter();
        self.actions.push(Action::Checkpoint);
        self.empty();
        self.actions.push(Action::Snapshot);
        for key in 0..SCATTERED {
            let put = Action::Put(0, key, self.value(), Durability::None);
            self.actions.push(put);
        }
        self.actions.extend([Action::Checkpoint, Action::Step(Step::Prepare)]);
        self.fill();
        for key in 0..SCATTERED {
            let look = Action::Look(self.random.usize(..MOST_SNAPSHOTS), 0, key);
            self.actions.push(look);
        }
        self.actions.push(Action::Verify);
    }

    /// Truncates a table under a snapshot and empties its segments. When the snapshot ends, they are free at once, but must
    /// not be used before the index is rid of the table.
    fn truncate_under_snapshot(&mut self) {
        self.empty();
        self.actions.extend([Action::Checkpoint, Action::Step(Step::Prepare)]);
        self.scatter();
        self.actions.extend([Action::Checkpoint, Action::Snapshot, Action::Truncate(0)]);
        self.empty();
        self.actions.extend([Action::Checkpoint, Action::Release(0), Action::Step(Step::Prepare)]);
        self.fill();
        self.actions.push(Action::Verify);
    }

    /// Small values of the first table beside large ones of the second.
    fn scatter(&mut self) {
        for key in 0..SCATTERED {
            let small = Action::Put(0, key, self.value_of(1..300), self.durability());
            let large = Action::Put(1, self.key() % 3, self.value_of(LARGE), self.durability());
            self.actions.extend([small, large]);
        }
    }

    /// Large values of the second table alone.
    fn fill(&mut self) {
        for _ in 0..FILLING {
            let put = Action::Put(1, self.key() % 3, self.value_of(LARGE), Durability::None);
            self.actions.push(put);
        }
    }

    /// Empties segments.
    fn empty(&mut self) {
        self.actions.extend([Step::Write, Step::Settle].map(Action::Step));
        self.actions.push(Action::Steps(Step::Reclaim, EMPTYING));
    }

    /// Puts and reads a few keys, again and again, between values of one length: so the same key comes to lie at the same
    /// offset of a segment in one life and in another.
    fn recycle(&mut self) {
        let table = self.table();
        for _ in 0..RECYCLED {
            let key = self.key() % 2;
            let (put, filling) = (self.value_of(1..300), self.value_of(THIRD..THIRD + 1));
            self.actions.extend([
                Action::Put(table, key, put, Durability::Sync),
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

    /// Overwrites and deletes, makes a checkpoint while the tags of the records are not settled, and crashes.
    fn count(&mut self) {
        let table = self.table();
        for _ in 0..COUNTED {
            let (key, value) = (self.key() % 4, self.value_of(1..300));
            let put = Action::Put(table, key, value, Durability::None);
            let delete = Action::Delete(table, key, Durability::None);
            self.actions.push(if self.random.u8(..4) == 0 { delete } else { put });
        }
        let crash = self.plain_crash(IndexState::Newest);
        self.actions.extend([Action::Checkpoint, Action::CrashNow(crash)]);
        self.actions.extend([Step::Settle; 4].map(Action::Step));
        self.actions.push(Action::Stats);
    }

    /// Changes values on the disk, in their bytes or in what is said of them just before, and reads them.
    fn damage(&mut self) {
        for _ in 0..DAMAGED {
            let (table, key, value) = (self.table(), self.key(), self.value_of(8..300));
            self.actions.extend([
                Action::Put(table, key, value, Durability::Sync),
                Action::RotValue(table, key, self.random.usize(..), 1 << self.random.u8(..8)),
                Action::Get(table, key),
            ]);
        }
    }

    fn plain_crash(&mut self, index: IndexState) -> Crash {
        let power_cut = self.random.bool();
        let verify = self.random.bool();
        Crash { index, verify, ..Crash::between_calls(power_cut) }
    }
}
