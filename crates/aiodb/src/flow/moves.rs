//! Later copies of records that are there already: they go to the log in batches of their own, which nothing else is in.

use crate::format::batch::Placed;
use crate::format::place::{Cursor, batch_bytes};
use crate::format::segment::BATCH_MOVES;
use crate::io::{Device, InPhase, Phase, UNIT_BYTES};
use crate::log::Claim;
use crate::log::commit::buffer_bytes;
use crate::store::append_path::AppendPath;
use crate::store::commit::{Operation, Turn};
use crate::sync::atomic::Ordering;
use crate::{Error, Result};

/// Less room than this at a segment's end is left unused.
const MIN_MOVE_BYTES: usize = 2 * UNIT_BYTES;

impl<D: Device> AppendPath<D> {
    /// Writes copies of records that are still current when no other record can be appended, in as few batches as they fit into.
    /// `moved` is told the number of each record that was written, and its place.
    pub(crate) fn move_in_batches(
        &self,
        mut operations: &[Operation<'_>],
        still_current: impl Fn(&Operation<'_>) -> bool,
        mut moved: impl FnMut(usize, Placed) -> Result<()>,
    ) -> Result<()> {
        let mut number = 0;
        while !operations.is_empty() {
            // The rest of the log's last segment is filled first: more segments must be emptied than begun.
            let limit = self.move_batch_bytes();
            let mut cursor = Cursor::new();
            let fits = |operation: &&Operation<'_>| {
                cursor.take(&operation.append);
                cursor.end <= limit
            };
            let (batch, rest) = operations.split_at(operations.iter().take_while(fits).count().max(1));
            for placed in self.write_moves(batch, &still_current)? {
                if let Some(placed) = placed {
                    moved(number, placed)?;
                }
                number += 1;
            }
            operations = rest;
        }
        Ok(())
    }

    /// The longest batch that fits the rest of the last segment, or any segment when that rest is next to nothing.
    fn move_batch_bytes(&self) -> usize {
        let room = (self.segments.segment_bytes - self.commit.log_end().offset) as usize;
        let most = self.max_batch_bytes();
        if room < MIN_MOVE_BYTES { most } else { most.min(room) }
    }

    /// Appends records moved out of one segment as a batch of their own: a unit must not hold a live record of a key
    /// beside a move of an older one. `still_current` is asked while every older record is published. Returns where each
    /// record went (`None` if it was no longer current).
    ///
    /// Others append again while the batch is written and published: their records of its keys come after it in the log, and
    /// may come before it to an index, which then leaves the move out or puts it below.
    pub(crate) fn write_moves(
        &self,
        moves: &[Operation<'_>],
        still_current: impl Fn(&Operation<'_>) -> bool,
    ) -> Result<Vec<Option<Placed>>> {
        let _phase = InPhase::enter(&self.device, Phase::ReclaimMove);
        // Most open records are written while others still append: once they wait, only the records that came meanwhile are left.
        self.write_open_batch()?;
        let turn = self.take_turn()?;
        self.write_moves_in_turn(moves, still_current, turn)
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

    fn write_moves_in_turn(
        &self,
        moves: &[Operation<'_>],
        still_current: impl Fn(&Operation<'_>) -> bool,
        turn: Turn<'_>,
    ) -> Result<Vec<Option<Placed>>> {
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
        let current: Vec<bool> = moves.iter().map(still_current).collect();
        let current_moves =
            || moves.iter().zip(&current).filter(|(_, current)| **current).map(|(operation, _)| operation);
        if !current.contains(&true) {
            return Ok(vec![None; moves.len()]);
        }
        let length = batch_bytes(current_moves().map(|operation| &operation.append));
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
        self.open_batch(&mut state, length, Claim::Moves, BATCH_MOVES)?;
        let open = state.open.as_mut().expect("just opened");
        let mut placed = Vec::with_capacity(moves.len());
        for (operation, current) in moves.iter().zip(current) {
            placed.push(current.then(|| open.append(operation)));
        }
        let bytes = open.batch.used_bytes() as u64;
        turn.end(&mut state);
        self.lead(state)?;
        self.commit.counters.moved_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(placed)
    }

    /// The longest batch, and so the longest atomic group.
    pub(crate) fn max_batch_bytes(&self) -> usize {
        buffer_bytes(self.segments.segment_bytes) - UNIT_BYTES
    }
}
