//! The whole path of a put: encode into the open batch, let one waiting caller write the batch for all (group commit),
//! publish in the index, acknowledge.
//!
//! The open batch lies in memory that survives the process (`io::Device::map`), and every record's place in the log is
//! known when it is appended. So a write in the classes `interval` and `none` is published and acknowledged at once, and
//! read from the pending batch until that is written; a write in the class `sync` is published when its batch is durable.

use smallvec::SmallVec;

use crate::flow::publish::Publication;
use crate::format::batch::{Append, Placed};
use crate::format::place::batch_bytes;
use crate::format::record::Kind;
use crate::format::segment::BATCH_MOVES;
use crate::io::{Device, InPhase, Phase, UNIT_BYTES};
use crate::log::Claim;
use crate::log::commit::{WORDS, buffer_bytes};
use crate::store::commit::{Guard, Operation, Turn};
use crate::store::engine::Engine;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{Durability, Error, Result, Sequence};

/// Batches of the classes `interval` and `none` are written when they have this many bytes.
pub(crate) const BATCH_TARGET_BYTES: usize = 1 << 20;

/// How many tags a writer settles where too many wait.
const SETTLED_WHEN_CROWDED: usize = 1 << 10;

/// Where the records of one write went.
pub(crate) type PlacedList = SmallVec<[Placed; 4]>;

/// A group of operations in the log.
pub(crate) struct Appended<'a> {
    pub(crate) placed: PlacedList,
    /// The batch that must be durable before the records are published, with the lock for the writer that leads it.
    pub(crate) unpublished: Option<(Guard<'a>, u64)>,
}

/// The sequence of a write is that of its last record.
pub(crate) fn last_sequence(placed: &PlacedList) -> Sequence {
    Sequence(placed.last().expect("a write has a record").sequence)
}

/// A writer between append and publication, until this is dropped.
struct Publishing<'a>(&'a AtomicU32);

impl Publishing<'_> {
    fn begin(count: &AtomicU32) -> Publishing<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Publishing(count)
    }
}

impl Drop for Publishing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl<D: Device> Engine<D> {
    /// Writes a group of operations atomically and returns when it is acknowledged in its class.
    pub(crate) fn write(&self, operations: &[Operation<'_>], durability: Durability) -> Result<Sequence> {
        self.write_placed(operations, durability).map(|placed| last_sequence(&placed))
    }

    /// Like [`Engine::write`]; says where each record went.
    pub(crate) fn write_placed(&self, operations: &[Operation<'_>], durability: Durability) -> Result<PlacedList> {
        let appended = self.append(operations, durability, None, || true)?;
        let Appended { placed, unpublished } = appended.expect("what is always permitted is appended");
        if let Some((state, number)) = unpublished {
            self.timed(&self.meters.acknowledge_wait, || self.wait_durable(state, number))?;
        }
        self.note_freeing(operations);
        Ok(placed)
    }

    /// Appends a group of operations if `permitted` says so under the commit lock, and publishes it unless its batch must
    /// be durable first: then [`Engine::wait_durable`] is left to do. `None` means that it was not permitted.
    pub(crate) fn append(
        &self,
        operations: &[Operation<'_>],
        durability: Durability,
        turn: Option<&Turn<'_>>,
        permitted: impl FnOnce() -> bool,
    ) -> Result<Option<Appended<'_>>> {
        // Asked before anything is waited for.
        self.commit.check()?;
        let length = batch_bytes(operations.iter().map(|operation| &operation.append));
        if length > self.max_batch_bytes() {
            return Err(Error::BatchTooLarge { length, max: self.max_batch_bytes() });
        }
        let claim = self.claim(operations);
        if turn.is_none() {
            self.apply_backpressure(operations, claim)?;
        }
        let mut state = self.room_or_reclaim(operations, claim, length, turn)?;
        if !permitted() {
            return Ok(None);
        }
        let open = state.open.as_mut().expect("there is room");
        let number = open.batch.start.number;
        open.writers += 1;
        if durability == Durability::Sync {
            let append = |operation| {
                let _phase = InPhase::enter(&self.device, Phase::Append);
                open.append(operation)
            };
            let placed: PlacedList = operations.iter().map(append).collect();
            self.commit.stripes.appended(operations, &placed);
            open.sync_wanted = true;
            return Ok(Some(Appended { placed, unpublished: Some((state, number)) }));
        }
        let publishing = Publishing::begin(&self.commit.publishing[number as usize % WORDS]);
        let publisher = self.publishers.pin();
        let append = |operation: &Operation<'_>| {
            let _phase = InPhase::enter(&self.device, Phase::Append);
            open.batch.append(&operation.append)
        };
        let placed: PlacedList = operations.iter().map(append).collect();
        self.commit.stripes.appended(operations, &placed);
        let due = open.batch.used_bytes() >= BATCH_TARGET_BYTES && !state.busy;
        drop(state);
        let phase = InPhase::enter(&self.device, Phase::Publish);
        for (operation, placed) in operations.iter().zip(&placed) {
            let Append { kind, form, key, value, .. } = operation.append;
            let publication = Publication { key, hash: operation.hash, placed, kind, form, value, replayed: None };
            if let Some(generation) = operation.generation.as_ref().filter(|_| kind.is_indexed()) {
                self.publish(generation, &publication);
                self.cache_written(generation, &publication, value);
                self.commit.stripes.published(generation.id, operation.hash, kind);
            }
        }
        drop(phase);
        drop(publisher);
        drop(publishing);
        self.background.note(durability, due);
        Ok(Some(Appended { placed, unpublished: None }))
    }

    /// Helps with background work that this write would make more of, where that has reached a bound.
    fn apply_backpressure(&self, operations: &[Operation<'_>], claim: Claim) -> Result<()> {
        if let Some(lmdb) = self.lmdb.get().filter(|_| operations.iter().any(Operation::is_ordered)) {
            lmdb.throttle.wait(|| lmdb.memtable.active_keys());
            self.bound_memtable(claim)?;
            if claim == Claim::Ordinary && lmdb.memtable.is_short() {
                self.find_index_room()?;
            }
        }
        // Chunks are part of a larger write, maybe of background work itself.
        let is_part = operations.iter().any(|operation| operation.append.kind == Kind::Chunk);
        if self.recovered.get().is_none() || is_part {
            return Ok(());
        }
        if self.settling.urgent.is_any() {
            self.fold_urgent(operations.iter().any(|operation| operation.append.kind == Kind::Merge));
        }
        if self.settling.is_crowded() {
            // What waits in the open batch cannot be settled.
            self.write_open_batch()?;
            self.settle_some(SETTLED_WHEN_CROWDED);
        }
        let ranges = operations.iter().filter(|operation| operation.append.kind == Kind::RangeTombstone).count();
        if ranges > 0 { self.bound_range_tombstones(ranges) } else { Ok(()) }
    }

    /// The longest batch, and so the longest atomic group.
    pub(crate) fn max_batch_bytes(&self) -> usize {
        buffer_bytes(self.segments.segment_bytes) - UNIT_BYTES
    }

    /// Appends records moved out of one segment as a batch of their own: a unit must not hold a live record of a key
    /// beside a move of an older one. `still_current` is asked while everything older is published. Returns where each
    /// record went (`None` if it was no longer current).
    ///
    /// Others append again while the batch is written and published: what they write of its keys comes after it in the log, and
    /// may come before it to an index, which then leaves the move out or puts it below.
    pub(crate) fn write_moves(
        &self,
        moves: &[Operation<'_>],
        still_current: impl Fn(&Operation<'_>) -> bool,
    ) -> Result<Vec<Option<Placed>>> {
        let _phase = InPhase::enter(&self.device, Phase::ReclaimMove);
        // Most of what is open is written while others still append: once they wait, only what came meanwhile is left.
        self.write_open_batch()?;
        let turn = self.take_turn()?;
        self.write_moves_in_turn(moves, still_current, turn)
    }

    /// Waits until nobody has the log to himself, and has it then.
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
        // Nothing can be appended before this turn ends, so what is current now is so at the append. The indexes are
        // not asked under the commit lock, because a publication takes them in the other order.
        let current: Vec<bool> = moves.iter().map(still_current).collect();
        let kept = || moves.iter().zip(&current).filter(|(_, current)| **current).map(|(operation, _)| operation);
        if !current.contains(&true) {
            return Ok(vec![None; moves.len()]);
        }
        let length = batch_bytes(kept().map(|operation| &operation.append));
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
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
