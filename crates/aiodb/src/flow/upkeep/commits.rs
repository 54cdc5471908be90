//! Commits of the memtables of ordered indexes, and of the range tombstones that wait for them.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use crate::format::position::Position;
use crate::index::accounting::Accounting;
use crate::index::chain::Entry;
use crate::index::memtable::ImmutableMemtable;
use crate::index::ordered::OrderedIndex;
use crate::index::range_tombstones::{MANY_RANGES, Urgency};
use crate::io::{Device, InPhase, Phase};
use crate::log::Claim;
use crate::planted::{self, Bug};
use crate::store::upkeep::Upkeep;
use crate::{IndexKind, Result};

impl<D: Device> Upkeep<D> {
    /// Commits the memtable of an ordered index, with all records that were published before. After an error, for lack of space say,
    /// the entries stay where gets find them, and the next call goes on with them.
    pub(crate) fn commit_memtable(&self, ordered: &OrderedIndex<D>) -> Result<()> {
        self.commit_memtable_after(ordered, &mut ordered.lock_commit().unfinished)
    }

    /// [`Upkeep::commit_memtable`] for a caller that holds its lock, and with it the memtable that an earlier call has left.
    fn commit_memtable_after(
        &self,
        ordered: &OrderedIndex<D>,
        unfinished: &mut Option<ImmutableMemtable>,
    ) -> Result<()> {
        if let Some(immutable) = unfinished.as_mut() {
            self.commit_frozen(ordered, immutable)?;
            *unfinished = None;
        }
        // Asked first: records that are published later may be in the memtable as well.
        let (position, next_sequence) = match ordered.is_incomplete() {
            // After a crash it is begun anew.
            true => (Position::START, 0),
            false => self.commit.completed_end(),
        };
        let immutable = unfinished.insert(ordered.memtable.freeze(position, next_sequence));
        self.commit_frozen(ordered, immutable)?;
        *unfinished = None;
        self.reserve_index_room()
    }

    fn commit_frozen(&self, ordered: &OrderedIndex<D>, immutable: &mut ImmutableMemtable) -> Result<()> {
        // Asked before the flush, so that no power cut can bring a table back whose entries are left out.
        let tables: BTreeSet<u32> = self.catalog.generations().iter().map(|generation| generation.id).collect();
        let is_gone = |table| !self.snapshots.is_any() && !tables.contains(&table);
        let _throttled = ordered.throttle.begin(ordered.memtable.most_keys());
        // Durable in the log first. This also publishes every write that is older than an entry of the memtable.
        if !planted::is_on(Bug::CheckpointAheadOfLog) {
            self.flush()?;
        }
        let _phase = InPhase::enter(&self.device, Phase::IndexCommit);
        let died = |table, dead: &Entry, bytes| self.count_dead(table, dead, bytes);
        let piled_up = |index_key: &[u8], operands| self.must_fold(index_key, operands);
        let chunks_of = |entry: &Entry| self.chunks_of(entry);
        let (chunks_of, died) = (&chunks_of, &died);
        let accounting = Accounting { chunks_of, died, piled_up: &piled_up, is_gone: &is_gone, ..Accounting::NONE };
        self.timed(&self.meters.memtable_commit, || {
            self.with_context(ordered, &accounting, |context| ordered.commit(immutable, context))
        })?;
        self.meters.memtable_committed_entries.fetch_add(immutable.chains.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Commits the memtables of all ordered indexes that have reached their bound.
    pub(crate) fn bound_memtables(&self, claim: Claim) -> Result<()> {
        self.ordered.open().try_for_each(|ordered| self.bound_memtable(ordered, claim))
    }

    /// Returns when a memtable is below its bound. Where it is not, the committer commits it, or else a writer that finds it so; all
    /// others wait only until it has become immutable. Where the disk has no room for that, the memtable goes on growing with deletes,
    /// and while the store is being opened.
    pub(crate) fn bound_memtable(&self, ordered: &OrderedIndex<D>, claim: Claim) -> Result<()> {
        // The memtable of a store that is open for reading only is never committed.
        while ordered.memtable.is_full() && !self.options.read_only {
            let turn = ordered.throttle.last_turn();
            self.commit.check()?;
            // Asked once more: a memtable that has become immutable since is waited for no longer.
            if !ordered.memtable.is_full() {
                return Ok(());
            }
            if !(ordered.is_commit_worthwhile() && self.background.wake_committer())
                && let Some(mut committing) = ordered.try_lock_commit()
            {
                // It may have been committed meanwhile.
                return if ordered.memtable.is_full() {
                    self.commit_full_memtable(ordered, &mut committing.unfinished, claim)
                } else {
                    Ok(())
                };
            }
            let late = planted::is_on(Bug::TurnAskedLate);
            ordered.throttle.wait_after(if late { ordered.throttle.last_turn() } else { turn });
        }
        Ok(())
    }

    fn commit_full_memtable(
        &self,
        ordered: &OrderedIndex<D>,
        unfinished: &mut Option<ImmutableMemtable>,
        claim: Claim,
    ) -> Result<()> {
        match self.making_room(|| self.commit_memtable_after(ordered, unfinished)) {
            Err(error) if error.is_full() && ordered.memtable.may_grow(claim == Claim::Recovery) => {
                ordered.memtable.grow();
                if claim == Claim::Ordinary { Err(error) } else { Ok(()) }
            }
            committed => committed,
        }
    }

    /// Commits a memtable if that is worthwhile already. True if it was.
    pub(crate) fn commit_ahead_of_need(&self, ordered: &OrderedIndex<D>) -> Result<bool> {
        if !ordered.is_commit_worthwhile() {
            // Who has found it full waits for a commit, and it may have become emptier since: an overwrite can free operands.
            ordered.throttle.answer();
            return Ok(false);
        }
        let mut committing = ordered.lock_commit();
        // Another thread may have committed it meanwhile.
        if ordered.is_commit_worthwhile() {
            self.commit_memtable_after(ordered, &mut committing.unfinished)?;
        }
        Ok(true)
    }

    /// Carries out range tombstones until that many more can be accepted.
    pub(crate) fn bound_range_tombstones(&self, ordered: &OrderedIndex<D>, more: usize) -> Result<()> {
        let most = self.options.waiting_range_deletes;
        // A batch with more than the bound is taken when no other waits.
        while ordered.ranges.len() > 0 && ordered.ranges.len() + more > most {
            let waiting = ordered.ranges.len();
            // A range tombstone can be carried out once all older records are committed and no snapshot looks behind it.
            if self.carry_out_ranges_of(ordered, Urgency::AtOnce)? || self.commit_range_tombstones_of(ordered)? {
                continue;
            }
            if ordered.ranges.oldest().is_some_and(|oldest| oldest.sequence > self.snapshots.oldest().0) {
                self.snapshots.end_oldest();
            } else if ordered.ranges.len() >= waiting {
                // Others are at work on them. One more costs look-ups a comparison.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Commits the memtables of ordered indexes whose oldest range tombstone is not committed, or many of whose are not. True if
    /// one was.
    pub(crate) fn commit_range_tombstones(&self) -> Result<bool> {
        self.ordered.open().try_fold(false, |any, ordered| {
            let committed = ordered.committed_sequence();
            let is_due = ordered.ranges.oldest().is_some_and(|oldest| oldest.sequence >= committed)
                || ordered.ranges.count_from(committed) >= MANY_RANGES;
            Ok(is_due && self.commit_range_tombstones_of(ordered)? || any)
        })
    }

    /// Commits the memtable of an ordered index if a range tombstone is not committed. True if it was.
    fn commit_range_tombstones_of(&self, ordered: &OrderedIndex<D>) -> Result<bool> {
        let committed = ordered.committed_sequence();
        if ordered.ranges.newest().is_none_or(|newest| newest < committed) {
            return Ok(false);
        }
        self.flush()?;
        self.making_room(|| self.commit_memtable(ordered))?;
        Ok(ordered.committed_sequence() > committed)
    }

    /// Commits the memtables that have entries: records that these supersede in the index count as alive until then.
    /// True if one was committed.
    pub(crate) fn commit_memtables_if_any(&self) -> Result<bool> {
        let mut any = false;
        for ordered in self.ordered.open().filter(|ordered| ordered.memtable.len() > 0) {
            self.making_room(|| self.commit_memtable(ordered))?;
            any = true;
        }
        Ok(any)
    }

    /// Whether an index may still refer to places that are not needed because of a range deleted before this sequence.
    pub(crate) fn is_range_due(&self, before: u64) -> bool {
        self.ordered.open().filter_map(OrderedIndex::due_range).any(|oldest| oldest.sequence < before)
    }

    /// Like [`Upkeep::is_range_due`], for a segment that is to begin another life. Runs know lives, and need not be waited for.
    pub(super) fn is_range_awaited(&self, before: u64) -> bool {
        let lmdb = self.ordered.get(IndexKind::Lmdb);
        lmdb.and_then(OrderedIndex::due_range).is_some_and(|oldest| oldest.sequence < before)
    }

    /// Carries out a bounded part of a range tombstone of each ordered index. True if there may be more to do.
    pub(crate) fn carry_out_ranges(&self) -> Result<bool> {
        self.ordered
            .open()
            .try_fold(false, |more, ordered| Ok(self.carry_out_ranges_of(ordered, Urgency::WherePaid)? || more))
    }

    fn carry_out_ranges_of(&self, ordered: &OrderedIndex<D>, urgency: Urgency) -> Result<bool> {
        if ordered.ranges.len() == 0 {
            return Ok(false);
        }
        let died = |table, dead: &Entry, bytes| self.count_dead(table, dead, bytes);
        let accounting = Accounting { chunks_of: &|entry| self.chunks_of(entry), died: &died, ..Accounting::NONE };
        self.making_room(|| {
            self.with_context(ordered, &accounting, |context| ordered.carry_out_ranges(urgency, context))
        })
    }
}
