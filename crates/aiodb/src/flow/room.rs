//! Room on a disk that is full or nearly so: the ways of a write that finds none.

use std::time::Duration;

use crate::flow::upkeep::merges::Shortage;
use crate::flow::upkeep::reclaim::victim::DELETE_BYTES;
use crate::format::record::Kind;
use crate::index::ordered::OrderedIndex;
use crate::io::Device;
use crate::log::{Claim, RESERVED_SEGMENTS};
use crate::store::commit::{Guard, Operation, Turn};
use crate::store::write_path::WritePath;
use crate::sync::atomic::Ordering;
use crate::{Error, Result};

/// Bytes that merges write for the room of a write before it looks again, and in how many steps: on a full disk steps are small, and each
/// waits for the disk several times.
const MERGED_FOR_ROOM_BYTES: u64 = 64 << 20;
const MERGED_FOR_ROOM_STEPS: usize = 128;

/// Where all else was in vain, runs are merged with the oldest if they have one in so many of its bytes: it is not written again for next
/// to nothing.
pub(crate) const MERGED_LAST_SHARE: u64 = 64;

/// How often a write that finds no room makes some before it is refused.
pub(crate) const MOST_ROUNDS: usize = 8;

/// Segments are emptied before a checkpoint frees them until they have this share of the bytes that it writes...
const CHECKPOINT_SHARE: u64 = 4;
/// ...but at most so many: their live records take room of the reserve until then.
const MOST_EMPTIED: usize = 16;

/// So long after a write has found that no room can be made, other writes do not try.
const IN_VAIN_FOR_MS: u64 = 100;

/// How many tags a write settles each time that it makes room.
const SETTLED_FOR_ROOM: usize = 8 << 10;

/// Readers of an emptied segment end soon: how often, and how long, they are waited for.
const READER_GLANCES: u32 = 50;
const READER_GLANCE: Duration = Duration::from_millis(1);

/// Whether a record of this kind may free much.
pub(crate) fn frees_much(kind: Kind) -> bool {
    matches!(kind, Kind::RangeTombstone | Kind::TableDrop | Kind::TableTruncate)
}

/// The outcome, or the default where space is lacking: that must not stop other work from making some.
pub(crate) fn unless_full<T: Default>(outcome: Result<T>) -> Result<T> {
    match outcome {
        Err(error) if error.is_full() => Ok(T::default()),
        outcome => outcome,
    }
}

impl<D: Device> WritePath<D> {
    /// `AppendPath::room_for`; a write is not refused for lack of room before reclaim has done what it can, in bounded time.
    pub(crate) fn room_or_reclaim(
        &self,
        operations: &[Operation<'_>],
        claim: Claim,
        length: usize,
        turn: Option<&Turn<'_>>,
    ) -> Result<Guard<'_>> {
        // Reclaim needs a turn itself, and recovery must have come to its end.
        let mut rounds_left = (turn.is_some() || claim == Claim::Recovery).then_some(0);
        let mut next_claim = claim;
        while rounds_left != Some(0) {
            let released = self.segments.released();
            match self.room_for(operations, length, std::mem::replace(&mut next_claim, claim), turn) {
                Err(error) if error.is_full() => {}
                found => return found,
            }
            rounds_left = Some(rounds_left.unwrap_or_else(|| self.most_rounds(claim)) - 1);
            if claim == Claim::Ordinary && self.was_in_vain(released) {
                break;
            }
            if self.make_room(claim, released)? {
                continue;
            }
            if claim == Claim::Deletes && self.is_end_garbage() {
                next_claim = Claim::Moves;
            } else if claim == Claim::Ordinary || !self.options.background {
                break;
            } else {
                // Other threads hold segments that could be freed, or are about to free them.
                std::thread::sleep(READER_GLANCE);
            }
        }
        self.room_for(operations, length, claim, turn)
    }

    /// How often a write makes room before it is refused.
    fn most_rounds(&self, claim: Claim) -> usize {
        match claim {
            // Before a delete of a record as small as itself gains room, every segment may have to be emptied once.
            Claim::Deletes => MOST_ROUNDS + self.segments.iter().count(),
            _ => MOST_ROUNDS,
        }
    }

    /// Whether the segment at the log's end is worth emptying, as soon as there is another: batches of few records leave much of
    /// it unused. A delete may take one of the two of reclaim for that, never the last.
    fn is_end_garbage(&self) -> bool {
        let Some(segment) = self.segments.find(self.commit.log_end().segment) else { return false };
        self.segments.free_count() >= RESERVED_SEGMENTS - 1
            && segment.bytes_to_move() + segment.deletes.load(Ordering::Relaxed) * DELETE_BYTES
                <= self.segments.segment_bytes / 4 * 3
    }

    /// Whether another write has found a moment ago that no room can be made, and no segment was freed since.
    fn was_in_vain(&self, released: u64) -> bool {
        let in_vain = self.room_lock.lock().expect("no code panics while it makes room");
        in_vain.is_some_and(|(at_ms, then)| released == then && self.device.clock_ms() < at_ms + IN_VAIN_FOR_MS)
    }

    /// Takes note of a write that frees much, or of an ingest that is given up: other writes try again at once.
    pub(crate) fn note_freeing(&self) {
        *self.room_lock.lock().expect("no code panics while it makes room") = None;
    }

    /// Returns when an ordered index has room for the keys of puts, or refuses them.
    pub(crate) fn find_index_room(&self, ordered: &OrderedIndex<D>) -> Result<()> {
        for _ in 0..MOST_ROUNDS {
            let released = self.segments.released();
            self.reserve_index_room()?;
            if !ordered.memtable.is_short() {
                return Ok(());
            }
            self.segments.give_back_spare()?;
            let covered = unless_full(self.commit_memtables_if_any())?;
            let taken_out = unless_full(self.take_out_dead())?;
            if !covered && !taken_out && !self.make_room(Claim::Ordinary, released)? {
                break;
            }
        }
        self.reserve_index_room()?;
        if ordered.memtable.is_short() { Err(Error::DiskFull { path: self.root.clone() }) } else { Ok(()) }
    }

    /// Empties segments and frees all that can be freed. True if it is worth trying again: segments became free since `released` of
    /// them had been given back, or more records are known to be dead.
    pub(crate) fn make_room(&self, claim: Claim, released: u64) -> Result<bool> {
        let mut in_vain = self.room_lock.lock().expect("no code panics while it makes room");
        let is_freed = || self.segments.released() > released;
        if is_freed() {
            return Ok(true);
        }
        // Some may have been emptied and wait for a checkpoint.
        self.free_emptied(claim)?;
        if is_freed() {
            return Ok(true);
        }
        // Until tags are settled and runs are merged, overwritten records count as alive.
        let settled = self.settle_tags(SETTLED_FOR_ROOM);
        self.look_for_garbage(Shortage::Full);
        let mut merged = self.merge_for_room(|| self.merge_for_garbage());
        if self.empty_segments()? {
            self.free_emptied(claim)?;
        }
        let mut ended = false;
        while !is_freed() && self.end_snapshot_before_dead()? {
            ended = true;
            if self.empty_segments()? {
                self.free_emptied(claim)?;
            }
        }
        if !is_freed() && self.merge_last() {
            merged = true;
            if self.empty_segments()? {
                self.free_emptied(claim)?;
            }
        }
        if !is_freed() && claim == Claim::Deletes {
            self.squeeze()?;
        }
        let is_worth_it = is_freed() || settled || ended || merged;
        *in_vain = (!is_worth_it).then(|| (self.device.clock_ms(), released));
        Ok(is_worth_it)
    }

    /// Helps to bring versions to files where memory has many of them. A put is refused where it must have no more.
    pub(crate) fn bound_versions(&self, claim: Claim) -> Result<()> {
        let is_refused = || claim == Claim::Ordinary && self.snapshots.is_short();
        while self.snapshots.is_behind() {
            match self.snapshots.help_to_spill() {
                // Since an attempt has failed, puts wait until a whole layer is written.
                Ok(true) if is_refused() => {}
                Ok(_) => break,
                Err(error) if is_refused() => {
                    if !self.end_snapshot_before_dead()? {
                        return Err(error);
                    }
                }
                // What can be kept in memory is: the oldest snapshot may have to end for that.
                Err(error) => {
                    self.note_trouble(&error);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Merges the runs as well where that may be much work for little. True if there was anything to merge.
    fn merge_last(&self) -> bool {
        self.look_for_garbage(Shortage::InVain);
        self.merge_for_room(|| Ok(self.compact_some(MERGED_LAST_SHARE)? || self.merge_for_garbage()?))
    }

    /// Merges runs for a bounded time, by steps that say whether there may be more to do. True if there was anything to merge. Damage of a run
    /// is noted: it must not keep segments from being emptied.
    fn merge_for_room(&self, merge_some: impl Fn() -> Result<bool>) -> bool {
        let (mut bytes, mut steps) = (0, 0);
        while bytes < MERGED_FOR_ROOM_BYTES && steps < MERGED_FOR_ROOM_STEPS {
            let more = unless_full(merge_some()).unwrap_or_else(|error| {
                self.note_trouble(&error);
                false
            });
            if !more {
                break;
            }
            (bytes, steps) = (bytes + self.merge_step_bytes(), steps + 1);
        }
        steps > 0
    }

    /// Empties as many segments as are to be emptied for one checkpoint, if they hold garbage enough. True if there was any.
    fn empty_segments(&self) -> Result<bool> {
        let empty = || {
            let held = self.checkpoint_state().0;
            let wanted = held + self.emptied_before_checkpoint();
            while self.checkpoint_state().0 < wanted && unless_full(self.reclaim_some())? {}
            Ok::<_, Error>(self.checkpoint_state().0 > held)
        };
        // Records that the memtable supersedes in the ordered index count as alive until it is committed.
        Ok(empty()? || (unless_full(self.commit_memtables_if_any())? && empty()?))
    }

    /// Empties all segments with any garbage, the oldest first, until deletes have a segment: little may be gained of each, and the
    /// deletes themselves take room until the records that they delete are gone from all older segments. Those have at least as many
    /// bytes as the deletes took, so that in the end the reserve is whole again.
    fn squeeze(&self) -> Result<()> {
        self.write_open_batch()?;
        let (until, wanted) = (self.commit.next_life(), self.emptied_before_checkpoint());
        loop {
            while self.checkpoint_state().0 < wanted && unless_full(self.squeeze_some(until))? {}
            if self.checkpoint_state().0 == 0 {
                return Ok(());
            }
            let released = self.segments.released();
            self.free_emptied(Claim::Deletes)?;
            if self.segments.has_free(Claim::Deletes) || self.segments.released() == released {
                return Ok(());
            }
        }
    }

    /// How many segments are to be emptied for one checkpoint: where it writes a large index, several.
    fn emptied_before_checkpoint(&self) -> usize {
        let written: u64 = self.catalog.generations().iter().map(|generation| generation.memory_bytes() as u64).sum();
        ((written / CHECKPOINT_SHARE / self.segments.segment_bytes) as usize).clamp(1, MOST_EMPTIED)
    }

    /// Frees segments that are emptied, if there are any: after a checkpoint, when no reader is there any more.
    fn free_emptied(&self, claim: Claim) -> Result<()> {
        if self.checkpoint_state().0 == 0 {
            return Ok(());
        }
        unless_full(self.checkpoint())?;
        unless_full(self.take_out_dead())?;
        self.release_retired()?;
        for _ in 0..READER_GLANCES {
            // Without threads no read ends meanwhile.
            if self.checkpoint_state().0 == 0 || !self.options.background || self.retention.is_any() {
                break;
            }
            std::thread::sleep(READER_GLANCE);
            self.release_retired()?;
        }
        if claim == Claim::Deletes { self.end_snapshot_in_the_way() } else { Ok(()) }
    }

    /// On a full disk, emptied segments that a snapshot holds are worth more than the snapshot.
    pub(crate) fn end_snapshot_in_the_way(&self) -> Result<()> {
        if self.is_hold_awaited() && self.snapshots.end_oldest() {
            unless_full(self.take_out_dead())?;
            self.release_retired()?;
        }
        Ok(())
    }

    /// On a full disk, what only a snapshot keeps of dropped tables and deleted ranges is worth more than the snapshot: until it ends, all of
    /// that counts as alive. True if one was ended.
    fn end_snapshot_before_dead(&self) -> Result<bool> {
        let (oldest, _) = self.snapshots.oldest();
        let deleted = self.ordered.open().filter_map(|ordered| ordered.ranges.newest()).max();
        let sees_deleted = deleted.is_some_and(|newest| newest > oldest);
        let hold = self.snapshots.oldest_hold();
        let sees_gone = hold.is_some_and(|hold| self.purging.lock().iter().any(|gone| hold < gone.hold));
        let ended = (sees_deleted || sees_gone) && self.snapshots.end_oldest();
        if ended {
            // What the index does not cover cannot be carried out.
            unless_full(self.commit_range_tombstones())?;
            unless_full(self.take_out_dead())?;
        }
        Ok(ended)
    }

    /// Takes the records of deleted ranges and dropped tables out of the indexes: emptied segments wait for that. True if there were
    /// any.
    fn take_out_dead(&self) -> Result<bool> {
        let mut progress = false;
        // What others drop and delete meanwhile is not waited for.
        let (next_table, next_sequence) = (self.catalog.next_id(), self.commit.next_sequence());
        while self.is_range_due(next_sequence) && self.unless_damaged(self.carry_out_ranges())?.unwrap_or(false) {
            progress = true;
        }
        while self.is_purge_due(next_table) && self.unless_damaged(self.purge_some())?.is_some() {
            progress = true;
        }
        Ok(progress)
    }
}
