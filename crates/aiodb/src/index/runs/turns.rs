//! The turns of steps of merges, and how fast writers may add keys while merges are behind: some come with each step, so that all
//! writers are slowed and none waits for more than its part of the work.

use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, InOrder, InOrderGuard, Mutex, MutexGuard, Rank};

/// With so many runs, a look-up asks so many filters that writers wait for merges.
pub(super) const MANY_RUNS: usize = 48;

/// With so many more, writers are as slow as they can become.
const LATE_RUNS: usize = 16;

/// Each step lets in one in so many of the keys that a memtable may have, where there are [`MANY_RUNS`]...
const FIRST_SHARE: usize = 4;

/// ...and one in so many where there are [`LATE_RUNS`] more.
const LAST_SHARE: usize = 256;

/// How many keys may come with each step while there are so many runs, [`MANY_RUNS`] or more.
pub(super) fn keys_for_step(runs: usize, memtable_keys: usize) -> usize {
    let late = runs.saturating_sub(MANY_RUNS).min(LATE_RUNS);
    let (first, last) = (memtable_keys / FIRST_SHARE, memtable_keys / LAST_SHARE);
    (first - (first - last) / LATE_RUNS * late).max(1)
}

/// The turns of steps.
#[derive(Default)]
pub(crate) struct Turns {
    queue: InOrder<{ Rank::RunSteps as u8 }>,
    /// Keys that have come since the last step ended. Relaxed: it publishes nothing.
    taken: AtomicUsize,
    /// How many steps have ended.
    ended: Mutex<u64, { Rank::StepsEnded as u8 }>,
    changed: Condvar,
}

/// The turn of a step.
#[must_use]
pub(super) struct StepTurn<'a> {
    of: &'a Turns,
    /// `None` only while this is dropped.
    turn: Option<InOrderGuard<'a, { Rank::RunSteps as u8 }>>,
}

impl Drop for StepTurn<'_> {
    fn drop(&mut self) {
        let early = planted::is_on(Bug::StepEndsBeforeItsTurn);
        if early {
            self.of.end();
        }
        // First, so that a writer that has found the turn taken is told of an end that is still to come.
        drop(self.turn.take());
        if !early {
            self.of.end();
        }
    }
}

impl Turns {
    pub(super) fn lock(&self) -> StepTurn<'_> {
        StepTurn { of: self, turn: Some(self.queue.lock()) }
    }

    /// `None` if a step is under way.
    pub(super) fn try_lock(&self) -> Option<StepTurn<'_>> {
        self.queue.try_lock().map(|turn| StepTurn { of: self, turn: Some(turn) })
    }

    /// Whether so many more keys may come before the next step ends, of which `most` may.
    pub(super) fn take(&self, keys: usize, most: usize) -> bool {
        self.taken.fetch_add(keys, Ordering::Relaxed) < most
    }

    /// What [`Turns::wait_after`] is to be told, taken before looking whether a step is under way.
    pub(super) fn last(&self) -> u64 {
        *self.ended()
    }

    /// Returns when a step has ended since then.
    pub(super) fn wait_after(&self, last: u64) {
        let mut ended = self.ended();
        while *ended == last {
            ended = self.changed.wait(ended).expect(NO_PANIC);
        }
    }

    #[cfg(all(test, not(feature = "shuttle")))]
    pub(super) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn end(&self) {
        *self.ended() += 1;
        self.taken.store(0, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn ended(&self) -> MutexGuard<'_, u64> {
        self.ended.lock().expect(NO_PANIC)
    }
}

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it waits for a step";

#[cfg(all(test, feature = "shuttle"))]
mod interleavings;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
