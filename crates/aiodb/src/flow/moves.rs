//! Later copies of records that are there already: they go to the log in batches of their own, which nothing else is in.

use crate::flow::look_ups::Wanted;
use crate::format::batch::Placed;
use crate::format::place::{Cursor, batch_bytes};
use crate::format::segment::BATCH_MOVES;
use crate::index::memtable::LookedUp;
use crate::index::ordered::OrderedIndex;
use crate::io::{Device, InPhase, Phase, UNIT_BYTES};
use crate::log::Claim;
use crate::log::commit::buffer_bytes;
use crate::store::append_path::AppendPath;
use crate::store::commit::{Operation, Turn};
use crate::store::read_path::ReadPath;
use crate::sync::atomic::Ordering;
use crate::{Error, Result};

/// Less room than this at a segment's end is left unused.
const MIN_MOVE_BYTES: usize = 2 * UNIT_BYTES;

/// So often are keys looked up again because a memtable has become immutable meanwhile; then none may until the move is over.
const MOST_LOOK_UPS: usize = 3;

/// What has become of moves that were to be one batch.
enum Moved {
    /// Where each record went; `None` if it was no longer current.
    Placed(Vec<Option<Placed>>),
    /// Nothing was written: those that are still current are longer than a batch may be.
    TooLong,
}

/// A later copy of a record, on its way to the log.
pub(crate) struct Move<'a> {
    pub(crate) operation: Operation<'a>,
    /// What there is of the key in an ordered table. `None` where no entry is to be replaced: of deletes, and of chunks.
    pub(crate) looked_up: Option<LookedUp>,
}

impl Move<'_> {
    /// The ordered index, if the record has an entry there.
    fn ordered<'a, D: Device>(&self, engine: &'a ReadPath<D>) -> Option<(&'a OrderedIndex<D>, &LookedUp)> {
        let generation = self.operation.generation.as_ref()?;
        self.looked_up.as_ref().map(|looked_up| (engine.ordered_of(generation), looked_up))
    }
}

impl<D: Device> AppendPath<D> {
    /// Writes copies of records that are still current when no other record can be appended, in as few batches as they fit into.
    /// `moved` is told the number of each record that was written, and its place.
    pub(crate) fn move_in_batches(
        &self,
        mut moves: &mut [Move<'_>],
        still_current: impl Fn(&Move<'_>) -> Option<bool>,
        mut moved: impl FnMut(usize, Placed) -> Result<()>,
    ) -> Result<()> {
        let mut number = 0;
        while !moves.is_empty() {
            // The rest of the log's last segment is filled first: more segments must be emptied than begun.
            let limit = self.move_batch_bytes();
            let mut cursor = Cursor::new();
            let fits = |one: &&Move<'_>| {
                cursor.take(&one.operation.append);
                cursor.end <= limit
            };
            let mut count = moves.iter().take_while(fits).count().max(1);
            let all_placed = loop {
                match self.write_moves(&mut moves[..count], &still_current)? {
                    Moved::Placed(placed) => break placed,
                    Moved::TooLong => {
                        assert!(count > 1, "one record fits into a batch");
                        // The others follow.
                        count = count.div_ceil(2);
                    }
                }
            };
            for placed in all_placed {
                if let Some(placed) = placed {
                    moved(number, placed)?;
                }
                number += 1;
            }
            moves = &mut moves[count..];
        }
        Ok(())
    }

    /// The longest batch that fits the rest of the last segment, or any segment when that rest is next to nothing.
    fn move_batch_bytes(&self) -> usize {
        let room = (self.segments.segment_bytes - self.commit.log_end().offset) as usize;
        // Without those that are dead by then, the others may lie less densely: mostly by less than a unit.
        let most = self.max_batch_bytes() - UNIT_BYTES;
        if room < MIN_MOVE_BYTES { most } else { most.min(room) }
    }

    /// Appends records moved out of one segment as a batch of their own: a unit must not hold a live record of a key
    /// beside a move of an older one. `still_current` is asked while every older record is published and all writers wait, so it
    /// reads nothing; it says `None` of a record that must be looked up again, which is done when they go on.
    ///
    /// Others append again while the batch is written and published: their records of its keys come after it in the log, and
    /// may come before it to an index, which then leaves the move out or puts it below.
    fn write_moves(&self, moves: &mut [Move<'_>], still_current: impl Fn(&Move<'_>) -> Option<bool>) -> Result<Moved> {
        let _phase = InPhase::enter(&self.device, Phase::ReclaimMove);
        let runs_index = self.runs_index_of(moves);
        let mut look_ups = 0;
        loop {
            let is_last = look_ups >= MOST_LOOK_UPS;
            let _no_freeze = runs_index.filter(|_| is_last).map(OrderedIndex::lock_commit);
            self.look_up_again(moves);
            // Most open records are written while others still append: once they wait, only the records that came meanwhile are left.
            self.write_open_batch()?;
            let turn = self.take_turn()?;
            if let Some(moved) = self.write_moves_in_turn(moves, runs_index, &still_current, turn)? {
                return Ok(moved);
            }
            look_ups += 1;
        }
    }

    /// The index whose look-ups read the device, if some of these records have an entry there.
    fn runs_index_of(&self, moves: &[Move<'_>]) -> Option<&OrderedIndex<D>> {
        let mut of_records = moves.iter().filter_map(|one| one.ordered(self)).map(|(ordered, _)| ordered);
        of_records.find(|ordered| ordered.committed.runs().is_some())
    }

    /// Looks up the keys of which more than the memtables may know by now. A record whose key cannot be looked up stays where it is.
    fn look_up_again(&self, moves: &mut [Move<'_>]) {
        let must_be =
            |one: &Move<'_>| one.ordered(self).is_some_and(|(ordered, looked_up)| !ordered.is_recent(looked_up));
        let again: Vec<usize> = (0..moves.len()).filter(|number| must_be(&moves[*number])).collect();
        let wanted: Vec<Wanted<'_>> = again.iter().filter_map(|number| Wanted::of(&moves[*number].operation)).collect();
        let found = self.look_up_all(&wanted);
        for (number, found) in again.into_iter().zip(found) {
            let looked_up = found.unwrap_or_else(|error| {
                self.note_unmoved(&error);
                let freezes = moves[number].ordered(self).map_or(0, |(ordered, _)| ordered.memtable.freezes());
                LookedUp { freezes, ..LookedUp::default() }
            });
            moves[number].looked_up = Some(looked_up);
        }
    }

    /// Waits until no thread has the log for itself, and has it then.
    pub(crate) fn take_turn(&self) -> Result<Turn<'_>> {
        let mut state = self.commit.lock();
        while state.turn {
            self.commit.check()?;
            state = self.wait_idle(state);
        }
        state.turn = true;
        Ok(crate::log::commit::Turn(&self.commit))
    }

    /// `None` where some must be looked up again.
    fn write_moves_in_turn(
        &self,
        moves: &[Move<'_>],
        runs_index: Option<&OrderedIndex<D>>,
        still_current: impl Fn(&Move<'_>) -> Option<bool>,
        turn: Turn<'_>,
    ) -> Result<Option<Moved>> {
        let mut state = self.idle()?;
        while state.open.as_ref().is_some_and(|open| !open.batch.is_empty()) {
            self.lead(state)?;
            state = self.idle()?;
        }
        if let Some(open) = state.open.take() {
            self.put_back_empty(&mut state, open);
        }
        drop(state);
        // No record can be appended before this turn ends, so a record that is current now is so at the append. The indexes are
        // not asked under the commit lock, which comes after their locks.
        let freezes = || runs_index.map(|ordered| ordered.memtable.freezes());
        let freezes_before = freezes();
        let Some(current) = moves.iter().map(still_current).collect::<Option<Vec<bool>>>() else { return Ok(None) };
        let current_moves = || moves.iter().zip(&current).filter(|(_, current)| **current).map(|(one, _)| one);
        if !current.contains(&true) {
            return Ok(Some(Moved::Placed(vec![None; moves.len()])));
        }
        let length = batch_bytes(current_moves().map(|one| &one.operation.append));
        if length > self.max_batch_bytes() {
            return Ok(Some(Moved::TooLong));
        }
        let mut state = self.idle()?;
        let mut is_made = false;
        while self.needs_segment(&state, length) && !self.may_take(Claim::Moves, is_made) {
            drop(state);
            self.make_segment_for(Claim::Moves)?;
            is_made = true;
            state = self.idle()?;
        }
        if state.closed {
            return Err(Error::Closed);
        }
        // A memtable that becomes immutable from now on is committed only after this batch is published, since a commit flushes the log
        // first: so the leader finds in the memtables what was published since the look-ups.
        if freezes() != freezes_before {
            return Ok(None);
        }
        self.open_batch(&mut state, length, Claim::Moves, BATCH_MOVES)?;
        let open = state.open.as_mut().expect("just opened");
        let mut placed = Vec::with_capacity(moves.len());
        for (one, current) in moves.iter().zip(&current) {
            placed.push(current.then(|| open.append(&one.operation)));
        }
        let bytes = open.batch.used_bytes() as u64;
        turn.end(&mut state);
        let looked_up: Vec<_> = current_moves().map(|one| one.looked_up.as_ref()).collect();
        self.lead_moves(state, &looked_up)?;
        self.commit.counters.moved_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(Some(Moved::Placed(placed)))
    }

    /// The longest batch, and so the longest atomic group.
    pub(crate) fn max_batch_bytes(&self) -> usize {
        buffer_bytes(self.segments.segment_bytes) - UNIT_BYTES
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
