//! The threads of a store. Their work is in steps, which a simulator calls one by one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::error::message_of;
use crate::flow::room::MERGED_LAST_SHARE;
use crate::flow::upkeep::merges::Shortage;
use crate::io::Device;
use crate::log::{Claim, State};
use crate::store::append_path::AppendPath;
use crate::store::background::MIN_FLUSH_PERIOD;
use crate::store::engine::Engine;
use crate::{Error, Result};

const WRITER: &str = "aiodb-writer";
const UPKEEP: &str = "aiodb-upkeep";
const MAKER: &str = "aiodb-segments";
const COMMITTER: &str = "aiodb-commits";
const MERGER: &str = "aiodb-merges";

/// The writer looks at the open batch at least this often, so that `none` leaves nothing in memory for long.
const WRITER_PERIOD: Duration = Duration::from_millis(500);
/// How often maintenance looks for work when it is not woken.
const MAINTENANCE_PERIOD: Duration = Duration::from_millis(50);
/// How often the committer looks at the memtables: some thousand keys come in between.
const COMMITTER_PERIOD: Duration = Duration::from_millis(20);
/// And after a failure: each attempt takes what room there is.
const AFTER_FAILURE_PERIOD: Duration = Duration::from_secs(1);
/// Tags settled in one step.
const SETTLED_PER_STEP: usize = 256;

/// Filters that a round of upkeep brings back to memory.
const LOADED_PER_STEP: usize = 16;
/// Retired segments are worth a checkpoint of their own when there are so many...
const RETIRED_BEFORE_CHECKPOINT: usize = 4;
/// ...and one of so many segments is retired: in a large store a checkpoint writes more, mostly once for several changes.
const SEGMENTS_PER_RETIRED: usize = 8;

/// A bounded piece of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write the open batch to the log.
    Write,
    /// Make everything appended so far durable.
    Flush,
    /// Bring the indexes' durable state up to the log.
    Checkpoint,
    /// Read records under doubtful tags of `hash` indexes and retire overwritten ones; fold operands.
    Settle,
    /// Take keys of deleted ranges out of the ordered index.
    DeleteRanges,
    /// Bring superseded records that snapshots need to files, and old keys of `hash` tables that outgrow their memory, and merge those.
    Spill,
    /// Merge sorted runs of `lsm` tables, and delete what their compaction filters give up.
    Merge,
    /// Move live records out of the emptiest segment.
    Reclaim,
    /// Make free segments ahead of need, and free retired segments that no checkpoint or reader needs any more.
    Prepare,
    /// The writer's thread does this when it wakes: write or flush the open batch if it is due by the clock.
    WriteBehind,
    /// The committer's thread does this when it wakes: commit the memtables of `lsm` tables that are half full.
    CommitAhead,
    /// The upkeep's thread does this when it wakes: a bit of everything that is due.
    Upkeep,
}

/// A thread of a store: what it does again and again, and how it rests.
struct Worker<D: Device> {
    name: &'static str,
    /// Does what is due. Returns how long nothing will be, as far as it knows.
    work: fn(&Engine<D>) -> Duration,
    rest: fn(Arc<Engine<D>>, Duration),
}

impl<D: Device> Worker<D> {
    /// All of them.
    const ALL: [Worker<D>; 5] = [
        // Writes open batches of the classes `interval` and `none`, and flushes for `interval`.
        Worker { name: WRITER, work: write_out, rest: |engine, until_due| engine.background.sleep(until_due) },
        Worker { name: UPKEEP, work: maintain, rest: park },
        // Makes segments, so that a writer finds one: a thread with other work would come to it too late.
        Worker { name: MAKER, work: make_segments, rest: park },
        // Commits memtables, so that no writer has to.
        Worker { name: COMMITTER, work: commit_memtables, rest: park },
        // Merges runs, and brings places of `hash` tables to runs, beside upkeep where writers wait for that; they wake it. A thread of its own: writers, of which there may be hundreds, would each
        // keep the memory of a merge.
        Worker { name: MERGER, work: merge_beside, rest: park },
    ];

    /// Works until the store is closed, its last handle is gone, or the work panics.
    fn run(&self, engine: &Weak<Engine<D>>) {
        while let Some(engine) = engine.upgrade() {
            let mut rest = Duration::ZERO;
            let is_stopped = engine.background.stopped.load(Ordering::SeqCst);
            if is_stopped || !survive(&engine, self.name, || rest = (self.work)(&engine)) {
                return;
            }
            (self.rest)(engine, rest);
        }
    }
}

/// Starts the threads of a store. They end when the store is closed or its last handle is gone.
pub(crate) fn start<D: Device>(engine: &Arc<Engine<D>>) -> Result<()> {
    let mut threads = engine.background.threads.lock().expect("no code panics while it starts threads");
    for worker in Worker::ALL {
        let (name, weak) = (worker.name, Arc::downgrade(engine));
        let builder = std::thread::Builder::new().name(name.into());
        let thread = builder.spawn(move || {
            worker.run(&weak);
            if let Some(engine) = weak.upgrade().filter(|_| name == COMMITTER) {
                engine.set_commits(false);
            }
        });
        let thread = thread.map_err(|e| Error::io("start a thread for", &engine.root, &e))?;
        if name == MAKER {
            let _ = engine.background.maker.set(thread.thread().clone());
        }
        if name == MERGER {
            let _ = engine.background.merger.set(thread.thread().clone());
        }
        if name == COMMITTER {
            let _ = engine.background.committer.set(thread.thread().clone());
        }
        threads.push(thread);
    }
    Ok(())
}

/// Rests until it is woken or the time is over, without a hold on the store.
fn park<D: Device>(engine: Arc<Engine<D>>, rest: Duration) {
    drop(engine);
    if !rest.is_zero() {
        std::thread::park_timeout(rest);
    }
}

fn write_out<D: Device>(engine: &Engine<D>) -> Duration {
    let (outcome, until_due) = engine.write_behind();
    if let Err(error) = outcome {
        engine.note_trouble(&error);
    }
    engine.refresh_metrics_file();
    until_due
}

fn maintain<D: Device>(engine: &Engine<D>) -> Duration {
    let is_busy = engine.maintain_once().unwrap_or_else(|error| {
        engine.note_trouble(&error);
        false
    });
    if is_busy { Duration::ZERO } else { MAINTENANCE_PERIOD }
}

fn make_segments<D: Device>(engine: &Engine<D>) -> Duration {
    if engine.make_ahead() { Duration::ZERO } else { MAINTENANCE_PERIOD }
}

fn commit_memtables<D: Device>(engine: &Engine<D>) -> Duration {
    engine.commit_ahead()
}

fn merge_beside<D: Device>(engine: &Engine<D>) -> Duration {
    if engine.commit.failure().is_some() || engine.options.read_only {
        return AFTER_FAILURE_PERIOD;
    }
    let spilled = engine.spill_beside();
    match engine.merge_beside().and_then(|merged| Ok(spilled? || merged)) {
        Ok(true) => Duration::ZERO,
        Ok(false) => MAINTENANCE_PERIOD,
        // Upkeep meets it too, and notes it.
        Err(_) => AFTER_FAILURE_PERIOD,
    }
}

/// Does a piece of work of a thread of the store's own. If it panics, the thread is gone, and its work is never done again: the
/// store accepts no more writes and says why, to waiters, in its statistics and when it is closed. True if there was no panic.
pub(crate) fn survive<D: Device>(engine: &AppendPath<D>, thread: &str, work: impl FnOnce()) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    if let Err(panic) = &outcome {
        engine.fail_because(format!("the thread {thread} of the store panicked: {}", message_of(&**panic)));
    }
    outcome.is_ok()
}

impl<D: Device> Engine<D> {
    /// Does what [`Step::CommitAhead`] does. Returns how long to wait for the next.
    fn commit_ahead(&self) -> Duration {
        if self.commit.failure().is_some() || self.options.read_only {
            self.set_commits(false);
            return AFTER_FAILURE_PERIOD;
        }
        match self.commit_half_full() {
            Ok(any) => {
                self.set_commits(true);
                if any { Duration::ZERO } else { COMMITTER_PERIOD }
            }
            Err(error) => {
                // A full disk is met by a writer, or by upkeep, which makes room.
                self.set_commits(false);
                if !error.is_full() {
                    self.note_trouble(&error);
                }
                AFTER_FAILURE_PERIOD
            }
        }
    }

    /// Says whether the committer commits full memtables, to those who wait for it as well.
    fn set_commits(&self, commits: bool) {
        if self.background.commits.swap(commits, Ordering::SeqCst) != commits {
            self.ordered.open().for_each(|ordered| ordered.throttle.look_again());
        }
    }

    /// Commits the memtables that are half full, where a commit costs no more for that. True if there were any.
    fn commit_half_full(&self) -> Result<bool> {
        self.ordered.open().try_fold(false, |any, ordered| Ok(self.commit_ahead_of_need(ordered)? || any))
    }

    /// Makes a segment ahead of need; true if it was missing.
    fn make_ahead(&self) -> bool {
        if self.commit.failure().is_some() {
            return false;
        }
        self.reserve_index_room().and_then(|()| self.segments.make_ahead()).unwrap_or_else(|error| {
            // Upkeep meets a full disk too, and makes room.
            if !error.is_full() {
                self.note_trouble(&error);
            }
            false
        })
    }

    /// One bounded piece of background work.
    pub(crate) fn step(&self, step: Step) -> Result<()> {
        if self.options.read_only {
            self.commit.check()?;
        }
        match step {
            Step::Write => self.write_open_batch(),
            Step::Flush => self.flush(),
            Step::Checkpoint => self.checkpoint(),
            Step::Settle => {
                self.settle_some(SETTLED_PER_STEP);
                Ok(())
            }
            Step::DeleteRanges => self.delete_ranges().map(drop),
            Step::Spill => {
                self.spill_versions()?;
                self.spill_hashes().map(drop)
            }
            Step::Merge => {
                self.merge_some()?;
                self.filter_some().map(drop)
            }
            Step::Reclaim => self.reclaim_some().map(drop),
            Step::Prepare => {
                self.release_retired()?;
                self.reserve_index_room()?;
                self.segments.replenish()
            }
            Step::WriteBehind => self.write_behind().0,
            Step::CommitAhead => self.commit_half_full().map(drop),
            Step::Upkeep => self.maintain_once().map(drop),
        }
    }

    /// Writes or flushes the batches that are due, and looks at what memory is taken; returns how long no more will be due to be written.
    fn write_behind(&self) -> (Result<()>, Duration) {
        // A clock that is set is noticed even if no read asks for the time.
        self.now_ms();
        let now = self.device.clock_ms();
        let period = self.background.flush_period().map(|period| period.as_millis() as u64);
        let mut last = self.background.last.lock().expect("no code panics while it writes behind");
        let outcome = if period.is_some_and(|period| now >= last.flush + period) {
            (last.flush, last.write) = (now, now);
            self.background.asked.begin_flush();
            self.flush()
        } else if self.write_is_due(now >= last.write + WRITER_PERIOD.as_millis() as u64) {
            last.write = now;
            self.write_open_batch()
        } else {
            Ok(())
        };
        let next_flush = period.map(|period| Duration::from_millis((last.flush + period).saturating_sub(now)));
        drop(last);
        // Upkeep does it too, but not while one piece of its work takes seconds.
        self.balance_memory_if_due();
        (outcome, next_flush.unwrap_or(WRITER_PERIOD).clamp(MIN_FLUSH_PERIOD, WRITER_PERIOD))
    }

    /// A round of upkeep; true if there is more to do at once.
    fn maintain_once(&self) -> Result<bool> {
        if self.commit.failure().is_some() {
            return Ok(false);
        }
        // The age of a reader counts from the first look of upkeep at it.
        self.epochs.age_ms(self.device.clock_ms());
        // A full disk must not stop the other work from making room, nor what some of the work cannot read.
        let mut refusal = None;
        let mut some = |outcome: Result<bool>| match outcome {
            Err(error) if error.is_full() || error.is_unreadable() => {
                refusal.get_or_insert(error);
                Ok(false)
            }
            outcome => outcome,
        };
        self.balance_memory_if_due();
        some(self.bound_memtables(Claim::Ordinary).map(|()| false))?;
        let settled = self.settle_some(SETTLED_PER_STEP);
        // Nothing else waits for that.
        let spilled = self.spill_versions().unwrap_or_else(|error| {
            self.note_trouble(&error);
            false
        });
        // What keeps places from coming to runs keeps nothing else from being done.
        let of_hashes = some(self.spill_hashes()).unwrap_or_else(|error| {
            self.note_trouble(&error);
            false
        });
        let spilled = of_hashes || spilled;
        // Nothing else needs that.
        let warmed = self.warm_some().unwrap_or_else(|error| {
            self.note_trouble(&error);
            false
        });
        let loaded = self.load_filters(LOADED_PER_STEP);
        let deleted = some(self.delete_ranges())?;
        let merged = some(self.merge_some())?;
        let filtered = some(self.filter_some())?;
        some(self.step(Step::Prepare).map(|()| false))?;
        let mut reclaimed = some(self.reclaim_some())?;
        let full = self.segments.is_refused();
        if full && !reclaimed && self.checkpoint_state().0 == 0 {
            reclaimed = some(self.commit_memtables_if_any())? && some(self.reclaim_some())?;
        }
        self.look_for_garbage(match full {
            false => Shortage::None,
            true if reclaimed => Shortage::Full,
            true => Shortage::InVain,
        });
        let can_merge = !self.snapshots.is_short();
        let is_turn = can_merge && (full || !merged || self.suspicion.is_urgent());
        let merged = is_turn && some(self.merge_for_garbage())? || merged;
        let is_in_vain = full && !merged && !reclaimed;
        let merged = is_in_vain && can_merge && some(self.compact_some(MERGED_LAST_SHARE))? || merged;
        let merged = can_merge && some(self.merge_for_deletes(full))? || merged;
        let rests = !(reclaimed || settled || spilled || deleted || merged || filtered) && self.has_rested();
        let merged = merged || rests && can_merge && some(self.merge_at_rest())?;
        let (retired, lag_bytes) = self.checkpoint_state();
        let short = full && retired > 0;
        let stuck = !reclaimed && self.is_reclaim_stuck() && self.is_checkpoint_awaited();
        // Merged runs of `hash` tables wait for one.
        let holds_files = (full || rests) && self.spilled.obsolete() > 0;
        if lag_bytes >= self.checkpoint_bytes() || self.are_many(retired) || short || stuck || holds_files {
            some(self.checkpoint().map(|()| false))?;
        }
        let purges = refusal.is_none() && self.can_purge();
        if let Some(refusal) = refusal {
            self.note_trouble(&refusal);
        }
        Ok(reclaimed || settled || spilled || warmed || loaded || deleted || merged || filtered || purges)
    }

    /// Whether nothing was written since this was asked last.
    fn has_rested(&self) -> bool {
        let next = self.commit.next_sequence();
        self.background.rested_at.swap(next, Ordering::Relaxed) == next
    }

    /// Carries out some range tombstones, after a commit of the memtable if older records are not committed yet.
    fn delete_ranges(&self) -> Result<bool> {
        Ok(self.carry_out_ranges()? || (self.commit_range_tombstones()? && self.carry_out_ranges()?))
    }

    /// Whether so many retired segments are worth a checkpoint of their own.
    fn are_many(&self, retired: usize) -> bool {
        // A burst leaves files that are empty: they make no store large.
        let present = self.segments.iter().filter(|segment| segment.state() != State::Absent).count();
        retired >= RETIRED_BEFORE_CHECKPOINT && retired >= present / SEGMENTS_PER_RETIRED
    }

    /// Bytes of log between two checkpoints: more for a large index, so that writing it stays a small share.
    fn checkpoint_bytes(&self) -> u64 {
        let indexes: usize = self.catalog.generations().iter().map(|generation| generation.memory_bytes()).sum();
        self.options.checkpoint_bytes.max(4 * indexes as u64)
    }

    fn write_is_due(&self, period_over: bool) -> bool {
        let bytes = self.commit.open_bytes();
        bytes >= crate::flow::write::BATCH_TARGET_BYTES || (period_over && bytes > 0)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
