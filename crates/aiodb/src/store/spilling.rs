//! What is under way in the runs of `hash` tables: a spill, and a merge.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::index::runs::spilled::{Spill, SpilledMerge};
use crate::io::Device;
use crate::store::admission::Admission;
use crate::store::catalog::Generation;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank};

/// A place in the log: of two places the one with the lower life and offset was written before the other.
pub(crate) type Age = (u64, u32);

/// The work on runs of `hash` tables.
pub(crate) struct Spilling<D: Device> {
    /// Held for a step; by a checkpoint until it has encoded all `hash` indexes, since what they have must lie before its position.
    work: Mutex<SpillWork<D>, { Rank::HashSpill as u8 }>,
    /// Threads that wait for it. Relaxed: a hint.
    waiting: AtomicU64,
    /// Whether any spill was looked for since the store was opened. SeqCst: whoever looks for one sets it and then asks which tables are gone, a
    /// purge is of a table that is gone and then reads it, and one of the two must see the other.
    has_begun: AtomicBool,
    /// Whether writers to `hash` tables are slowed, or help where the store has no threads of its own. Relaxed: a hint.
    is_crowded: AtomicBool,
    /// Whether a checkpoint holds the work, which takes longer than a step. Relaxed: a hint.
    is_held_for_checkpoint: AtomicBool,
    /// Where the store has threads of its own: how many keys writers to `hash` tables may add before the next step ends.
    pub(crate) admission: Admission,
    /// Whether a spill has ended: what memory has given up then is in the last checkpoint still. Relaxed: upkeep asks again.
    has_ended: AtomicBool,
}

/// The work, held by a checkpoint.
pub(crate) struct HeldForCheckpoint<'a, D: Device> {
    pub(crate) work: MutexGuard<'a, SpillWork<D>>,
    is_held: &'a AtomicBool,
}

impl<D: Device> Drop for HeldForCheckpoint<'_, D> {
    fn drop(&mut self) {
        self.is_held.store(false, Ordering::Relaxed);
    }
}

/// What is under way: at most one spill and one merge.
pub(crate) struct SpillWork<D: Device> {
    pub(crate) spill: Option<SpillUnderWay<D>>,
    pub(crate) merge: Option<(Arc<Generation>, SpilledMerge<D>)>,
    /// Tables of which memory has kept all in the last spill, since older runs could not be read or every tag had changed.
    pub(crate) kept: BTreeMap<u32, Kept>,
}

/// When memory has kept all of a table: until something has changed, a spill would be in vain again.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    /// What its slots took then, and what those of all tables might take.
    pub(crate) slot_bytes: u64,
    pub(crate) bound: u64,
    /// In milliseconds of the device's clock, where the reason may pass.
    pub(crate) until_ms: u64,
}

/// A spill of a table.
pub(crate) struct SpillUnderWay<D: Device> {
    pub(crate) generation: Arc<Generation>,
    pub(crate) spill: Spill<D>,
    /// Places from before this one are old. Everything from before it was published when the spill began.
    pub(crate) before: Age,
    /// Whether a step has failed for a reason that may pass.
    pub(crate) has_lacked: bool,
}

impl<D: Device> Default for Spilling<D> {
    fn default() -> Spilling<D> {
        Spilling {
            work: Mutex::new(SpillWork { spill: None, merge: None, kept: BTreeMap::new() }),
            waiting: AtomicU64::new(0),
            has_begun: AtomicBool::new(false),
            is_crowded: AtomicBool::new(false),
            is_held_for_checkpoint: AtomicBool::new(false),
            admission: Admission::default(),
            has_ended: AtomicBool::new(false),
        }
    }
}

impl<D: Device> Spilling<D> {
    /// What is under way.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SpillWork<D>> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let work = self.work.lock().expect("no code panics while it brings places to runs");
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        work
    }

    /// Whether a thread waits for [`Spilling::lock`]: one that does step after step lets it have its turn.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// The same, unless another thread is at it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, SpillWork<D>>> {
        self.work.try_lock().ok()
    }

    /// The same for a checkpoint, of which there is one at a time: the thread that does one step after the other lets it have its turn.
    pub(crate) fn lock_for_checkpoint(&self) -> HeldForCheckpoint<'_, D> {
        self.is_held_for_checkpoint.store(true, Ordering::Relaxed);
        let work = self.lock();
        HeldForCheckpoint { work, is_held: &self.is_held_for_checkpoint }
    }

    /// Whether a checkpoint holds what is under way, or is about to.
    pub(crate) fn is_held_for_checkpoint(&self) -> bool {
        self.is_held_for_checkpoint.load(Ordering::Relaxed)
    }

    /// Says that a spill has ended.
    pub(crate) fn set_ended(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    /// Whether a spill has ended since this was asked last.
    pub(crate) fn take_ended(&self) -> bool {
        self.has_ended.swap(false, Ordering::Relaxed)
    }

    /// Whether any spill was looked for since the store was opened.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// Says so, before it is asked which tables are gone.
    pub(crate) fn set_begun(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
    }

    /// Whether `hash` tables have so much in memory that writers to them are slowed.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    pub(crate) fn set_crowded(&self, is_crowded: bool) {
        self.is_crowded.store(is_crowded, Ordering::Relaxed);
    }
}

impl<D: Device> SpillWork<D> {
    /// Gives up what is under way for tables that are gone.
    pub(crate) fn leave_gone(&mut self) {
        self.spill.take_if(|spill| spill.generation.is_gone());
        self.merge.take_if(|(generation, _)| generation.is_gone());
    }
}
