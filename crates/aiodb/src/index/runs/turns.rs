//! The turns of steps of merges, and how fast writers may add keys while merges are behind: some come with each step, so that all
//! writers are slowed and none waits for more than its part of the work.

use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{InOrder, InOrderGuard, Rank, Word};

/// With so many runs, a look-up asks so many filters that writers wait for merges.
pub(super) const MANY_RUNS: usize = 48;

/// With so many more, writers are as slow as they can become.
const LATE_RUNS: usize = 16;

/// With so many in all, no write goes on before merges have brought them below: whoever makes runs without many keys, or writes large batches
/// from many threads, comes there.
pub(super) const MOST_RUNS: usize = 2 * MANY_RUNS;

/// Keys are counted in parts of what a memtable may have.
const MEMTABLE: usize = 1 << 16;

/// Each step lets in a quarter of a memtable where there are [`MANY_RUNS`]...
const FIRST_PARTS: usize = MEMTABLE / 4;

/// ...and so much where there are [`LATE_RUNS`] more.
const LAST_PARTS: usize = MEMTABLE / 256;

/// How much may come with each step while there are so many runs, [`MANY_RUNS`] or more.
fn parts_for_step(runs: usize) -> usize {
    let late = runs.saturating_sub(MANY_RUNS).min(LATE_RUNS);
    FIRST_PARTS - (FIRST_PARTS - LAST_PARTS) / LATE_RUNS * late
}

/// So many keys, where a memtable may have `memtable_keys`.
fn parts_of(keys: usize, memtable_keys: usize) -> usize {
    (keys.saturating_mul(MEMTABLE) / memtable_keys.max(1)).max(1)
}

/// How many steps the keys of a write are worth while there are so many runs.
pub(super) fn steps_for(runs: usize, keys: usize, memtable_keys: usize) -> usize {
    parts_of(keys, memtable_keys).div_ceil(parts_for_step(runs))
}

/// The turns of steps.
#[derive(Default)]
pub(crate) struct Turns {
    queue: InOrder<{ Rank::RunSteps as u8 }>,
    /// The turn of a step of a merge beside that of another. Taken after the first one by a step beside which there may be none.
    beside: InOrder<{ Rank::RunStepsBeside as u8 }>,
    /// What has come and was not let in by a step yet. Relaxed: it publishes nothing.
    taken: AtomicUsize,
    /// The thread that has had the turn changes it once it has given the turn up; a writer looks at it before it asks for the turn. Both take
    /// the lock of the queue in between, so a writer that has found the turn taken does not miss the change.
    ended: Word,
    /// Writers that wait for a step.
    #[cfg(all(test, not(feature = "shuttle")))]
    waiting: AtomicUsize,
}

/// The turn of a step.
#[must_use]
pub(super) struct StepTurn<'a> {
    of: &'a Turns,
    /// What may come since the step has done something.
    lets_in: usize,
    /// `None` while this is dropped, and of a step beside another.
    turn: Option<InOrderGuard<'a, { Rank::RunSteps as u8 }>>,
    beside: Option<InOrderGuard<'a, { Rank::RunStepsBeside as u8 }>>,
}

impl Drop for StepTurn<'_> {
    fn drop(&mut self) {
        let is_beside = self.turn.is_none();
        drop(self.beside.take());
        // A writer that finds no merge beside another one waits for the end of that.
        if is_beside && self.lets_in == 0 {
            return;
        }
        let early = planted::is_on(Bug::StepEndsBeforeItsTurn);
        if early {
            self.of.end(self.lets_in);
        }
        // First, so that a writer that has found the turn taken is told of an end that is still to come.
        drop(self.turn.take());
        if !early {
            self.of.end(self.lets_in);
        }
    }
}

impl StepTurn<'_> {
    /// Returns when no step is beside this one; none begins before it ends.
    pub(super) fn wait_alone(&mut self) {
        if self.beside.is_none() {
            self.beside = Some(self.of.beside.lock());
        }
    }

    /// The step has merged something, of so many runs: what it lets in may come when its turn ends.
    pub(super) fn has_merged(&mut self, runs: usize) {
        self.lets_in = parts_for_step(runs);
    }
}

impl Turns {
    /// The turn of a merge, beside which there may be another.
    pub(super) fn lock(&self) -> StepTurn<'_> {
        StepTurn { of: self, lets_in: 0, turn: Some(self.queue.lock()), beside: None }
    }

    /// The turn of a step beside which there is none.
    pub(super) fn lock_alone(&self) -> StepTurn<'_> {
        let mut turn = self.lock();
        turn.wait_alone();
        turn
    }

    /// [`Turns::lock`]; `None` if a step is under way, except one that began beside another.
    pub(super) fn try_lock(&self) -> Option<StepTurn<'_>> {
        self.queue.try_lock().map(|turn| StepTurn { of: self, lets_in: 0, turn: Some(turn), beside: None })
    }

    /// The turn of a merge beside another; `None` if there are two steps, or one that must be alone.
    pub(super) fn try_lock_beside(&self) -> Option<StepTurn<'_>> {
        self.beside.try_lock().map(|beside| StepTurn { of: self, lets_in: 0, turn: None, beside: Some(beside) })
    }

    /// Whether a write may come before the next step ends.
    pub(super) fn take(&self, runs: usize, keys: usize, memtable_keys: usize) -> bool {
        let is_in = self.taken.load(Ordering::Relaxed) < parts_for_step(runs);
        if is_in {
            self.charge(keys, memtable_keys);
        }
        is_in
    }

    /// A write comes that has waited long enough: later ones wait for it, too.
    pub(super) fn charge(&self, keys: usize, memtable_keys: usize) {
        self.taken.fetch_add(parts_of(keys, memtable_keys), Ordering::Relaxed);
    }

    /// What [`Turns::wait_after`] is to be told, taken before a turn is asked for.
    pub(super) fn last(&self) -> u32 {
        self.ended.seen()
    }

    /// Returns when a step has ended since then.
    pub(super) fn wait_after(&self, last: u32) {
        #[cfg(all(test, not(feature = "shuttle")))]
        self.waiting.fetch_add(1, Ordering::Relaxed);
        while self.ended.seen() == last {
            self.ended.wait(last);
        }
        #[cfg(all(test, not(feature = "shuttle")))]
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many writers wait while somebody has the turn, for its end or for a turn of their own.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed) + self.queue.asking() as usize - 1
    }

    /// Lets so much in. Those who sleep look again in any case: the turn is free.
    fn end(&self, lets_in: usize) {
        let less = |taken: usize| Some(taken.saturating_sub(lets_in));
        let _ = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.ended.change();
        self.ended.wake_all();
    }
}

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
