//! Room on a disk that is full or nearly so: what is kept free for the files of the indexes, and what a write does that finds
//! none.

use std::time::Duration;

use crate::flow::upkeep::reclaim::DELETE_BYTES;
use crate::format::record::Kind;
use crate::format::segment::SegmentHeader;
use crate::io::{Device, File, InPhase, Phase, UNIT_BYTES};
use crate::log::open_batch::{BatchStart, OpenBatch};
use crate::log::{Claim, RESERVED_SEGMENTS, State};
use crate::store::catalog::TableIndex;
use crate::store::commit::{CommitState, Guard, Open, Operation, Turn};
use crate::store::engine::Engine;
use crate::sync::atomic::Ordering;
use crate::{Error, Result};

/// How often a write that finds no room makes some before it is refused.
const MOST_ROUNDS: usize = 8;

/// The checkpoint of a hash index grows at most by this share of what is written.
const HASH_GROWTH_SHARE: u64 = 3;

/// Segments are emptied before a checkpoint frees them until they have this share of the bytes that it writes...
const CHECKPOINT_SHARE: u64 = 4;
/// ...but at most so many: what is alive in them takes room of the reserve until then.
const MOST_EMPTIED: usize = 16;

/// So long after a write has found that no room can be made, other writes do not try.
const IN_VAIN_FOR_MS: u64 = 100;

/// Of a large log one in so many segments is kept free for what makes room: all that has garbage may have to be emptied before a
/// segment is gained, and then it is to be more than one.
const SEGMENTS_PER_RESERVED: u64 = 64;

/// How many tags a write settles each time that it makes room.
const SETTLED_FOR_ROOM: usize = 8 << 10;

/// Readers of an emptied segment end soon: how often, and how long, they are waited for.
const READER_GLANCES: u32 = 50;
const READER_GLANCE: Duration = Duration::from_millis(1);

/// What is refused for lack of space must not keep other work from making some.
pub(crate) fn unless_full<T: Default>(outcome: Result<T>) -> Result<T> {
    match outcome {
        Err(error) if error.is_full() => Ok(T::default()),
        outcome => outcome,
    }
}

impl<D: Device> Engine<D> {
    /// How much of the last free segments these operations may take.
    pub(crate) fn claim(&self, operations: &[Operation<'_>]) -> Claim {
        let frees = |kind| matches!(kind, Kind::Delete | Kind::RangeTombstone | Kind::TableDrop | Kind::TableTruncate);
        if self.recovered.get().is_none() {
            Claim::Recovery
        } else if operations.iter().all(|operation| frees(operation.append.kind)) {
            Claim::Deletes
        } else {
            Claim::Ordinary
        }
    }

    /// [`Engine::room_for`]; a write is not refused for lack of room before reclaim has done what it can, in bounded time.
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
                // Other threads hold what could be freed, or are about to free it.
                std::thread::sleep(READER_GLANCE);
            }
        }
        self.room_for(operations, length, claim, turn)
    }

    /// How often a write makes room before it is refused.
    fn most_rounds(&self, claim: Claim) -> usize {
        match claim {
            // Before a delete of a record as small as itself gains anything, every segment may have to be emptied once.
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

    /// What is written frees much: other writes need not wait until they try again.
    pub(crate) fn note_freeing(&self, operations: &[Operation<'_>]) {
        let frees = |kind| matches!(kind, Kind::RangeTombstone | Kind::TableDrop | Kind::TableTruncate);
        if operations.iter().any(|operation| frees(operation.append.kind)) {
            *self.room_lock.lock().expect("no code panics while it makes room") = None;
        }
    }

    /// Returns when the ordered index has room for what puts add, or refuses them.
    pub(crate) fn find_index_room(&self) -> Result<()> {
        let lmdb = self.lmdb();
        for _ in 0..MOST_ROUNDS {
            let released = self.segments.released();
            self.keep_index_room()?;
            if !lmdb.memtable.is_short() {
                return Ok(());
            }
            self.segments.give_back_spare()?;
            let covered = unless_full(self.commit_memtable_if_any())?;
            let taken_out = unless_full(self.take_out_dead())?;
            if !covered && !taken_out && !self.make_room(Claim::Ordinary, released)? {
                break;
            }
        }
        self.keep_index_room()?;
        if lmdb.memtable.is_short() { Err(Error::DiskFull { path: self.root.clone() }) } else { Ok(()) }
    }

    /// Sees to it that no segment takes the room that the next files of the indexes need, and that the memtable of the ordered index
    /// grows no more than there is room for.
    pub(crate) fn keep_index_room(&self) -> Result<()> {
        let mut kept = 0;
        // What is written before this is asked again adds keys.
        let growth = (self.segments.spare() + 1) * self.segments.segment_bytes / HASH_GROWTH_SHARE;
        for generation in self.catalog.generations() {
            if let TableIndex::Hash(index) = &generation.index {
                // The next checkpoint is written beside the last one, and is longer than that where there are more keys.
                let next = index.encoded_bytes() as u64;
                let longer = next.saturating_sub(generation.checkpoint_bytes.load(Ordering::Relaxed));
                kept = kept.max(2 * growth) + next + longer;
            }
        }
        if let Some(lmdb) = self.lmdb.get().filter(|_| !self.options.read_only) {
            let needed = lmdb.fit_memtable()?;
            // A simulated machine keeps this index on a disk of its own.
            kept += if self.lmdb_lies_apart { self.device.index_needs_bytes() } else { needed };
        }
        self.segments.keep_for_indexes(kept);
        self.segments.keep_for_emptying(self.needed_for_emptying());
        Ok(())
    }

    /// Bytes that must be there beyond the reserve so that every segment can be emptied, whatever is deleted: moved records are longer.
    fn needed_for_emptying(&self) -> u64 {
        let segment_bytes = self.segments.segment_bytes;
        // Where as much is free as is used, nothing need be counted.
        if self.segments.unmade_bytes() >= self.segments.iter().count() as u64 * segment_bytes {
            return 0;
        }
        let in_use = self.segments.iter().filter(|segment| matches!(segment.state(), State::Active | State::Sealed));
        let (count, growth) = in_use.fold((0, 0), |(count, growth), segment| (count + 1, growth + segment.growth()));
        growth + count / SEGMENTS_PER_RESERVED * segment_bytes
    }

    /// Makes a segment for a write that has found none.
    pub(crate) fn make_segment_for(&self, claim: Claim) -> Result<()> {
        self.keep_index_room()?;
        self.segments.make_for(claim)
    }

    /// Empties segments and frees what can be freed. True if it is worth trying again: there are segments free that were not yet
    /// when `released` of them had been given back, or more is known to be dead.
    fn make_room(&self, claim: Claim, released: u64) -> Result<bool> {
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
        // Until tags are settled, what was overwritten counts as alive.
        let settled = self.settle_tags(SETTLED_FOR_ROOM);
        let held = self.checkpoint_state().0;
        let wanted = held + self.emptied_before_checkpoint();
        let empty = || {
            while self.checkpoint_state().0 < wanted && unless_full(self.reclaim_some())? {}
            Ok::<_, Error>(self.checkpoint_state().0 > held)
        };
        // What the memtable supersedes in the ordered index counts as alive until it is committed.
        if empty()? || (unless_full(self.commit_memtable_if_any())? && empty()?) {
            self.free_emptied(claim)?;
        }
        if !is_freed() && claim == Claim::Deletes {
            self.squeeze()?;
        }
        let is_worth_it = is_freed() || settled;
        *in_vain = (!is_worth_it).then(|| (self.device.clock_ms(), released));
        Ok(is_worth_it)
    }

    /// Empties whatever holds any garbage, the oldest first, until deletes have a segment: little may be gained of each, and the deletes
    /// themselves take room until what they delete is gone from all older ones. What was deleted is at least as much as the
    /// deletes took, so that in the end the reserve is whole again.
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

    /// How many segments are to be emptied for one checkpoint: one that writes a large index is made for several.
    fn emptied_before_checkpoint(&self) -> usize {
        let written: u64 = self.catalog.generations().iter().map(|generation| generation.memory_bytes() as u64).sum();
        ((written / CHECKPOINT_SHARE / self.segments.segment_bytes) as usize).clamp(1, MOST_EMPTIED)
    }

    /// Frees segments that are emptied, if there are any: after a checkpoint, when nobody reads there any more.
    fn free_emptied(&self, claim: Claim) -> Result<()> {
        if self.checkpoint_state().0 == 0 {
            return Ok(());
        }
        unless_full(self.checkpoint())?;
        unless_full(self.take_out_dead())?;
        self.release_retired()?;
        for _ in 0..READER_GLANCES {
            // Without threads nobody ends a read meanwhile.
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
        if self.checkpoint_state().0 > 0 && self.snapshots.end_oldest() {
            unless_full(self.take_out_dead())?;
            self.release_retired()?;
        }
        Ok(())
    }

    /// Takes out of the indexes what deleted ranges and dropped tables had: emptied segments wait for that. True if there was
    /// something.
    fn take_out_dead(&self) -> Result<bool> {
        let mut progress = false;
        while self.carry_out_ranges()? {
            progress = true;
        }
        while !self.purge_some()? {
            progress = true;
        }
        Ok(progress)
    }

    /// An open batch in which the operations fit, which fill `length` bytes of a new one: the current one, or the next
    /// after this caller has written it.
    pub(crate) fn room_for(
        &self,
        operations: &[Operation<'_>],
        length: usize,
        claim: Claim,
        turn: Option<&Turn<'_>>,
    ) -> Result<Guard<'_>> {
        let appends = || operations.iter().map(|operation| &operation.append);
        let mut is_made = false;
        let mut state = self.commit.lock();
        loop {
            self.commit.check()?;
            match &state.open {
                _ if state.closed => return Err(Error::Closed),
                _ if state.turn && turn.is_none() => state = self.wait_idle(state),
                _ if claim == Claim::Ordinary && !self.segments.is_reserve_whole() => {
                    drop(state);
                    self.keep_index_room()?;
                    self.segments.restore_reserve()?;
                    state = self.commit.lock();
                }
                None if self.needs_segment(&state, length) && !self.may_take(claim, is_made) => {
                    // Others need the lock to end what they have written, and those who need less room go on.
                    drop(state);
                    self.make_segment_for(claim)?;
                    is_made = true;
                    state = self.commit.lock();
                }
                None => self.open_batch(&mut state, length, claim, 0)?,
                Some(open) if open.batch.fits(appends()) => return Ok(state),
                Some(open) if open.batch.is_empty() => {
                    let open = state.open.take().expect("just seen");
                    self.put_back_empty(&mut state, open);
                    state.leave_segment = true;
                }
                Some(_) if state.busy => state = self.wait_idle(state),
                Some(_) => {
                    self.lead(state)?;
                    state = self.commit.lock();
                }
            }
        }
    }

    /// Whether a segment may be taken: what makes room takes of the reserve only where no more could be made.
    pub(crate) fn may_take(&self, claim: Claim, is_made: bool) -> bool {
        self.segments.has_free(claim) && (is_made || self.segments.free_count() > RESERVED_SEGMENTS)
    }

    /// Whether a batch of this length goes into a fresh segment.
    pub(crate) fn needs_segment(&self, state: &CommitState, length: usize) -> bool {
        state.leave_segment || state.end.offset + length as u64 > self.segments.segment_bytes
    }

    /// Undoes the opening of a batch that nothing was appended to.
    pub(crate) fn put_back_empty(&self, state: &mut CommitState, open: Open) {
        // If it was the first of its segment, the header is still to be written: by the next batch there, or by none.
        state.unwritten_header = open.segment_header;
        state.buffers.push(open.batch.into_buffer());
    }

    /// Opens the next batch, in a fresh segment when this one has too little room left.
    pub(crate) fn open_batch(&self, state: &mut CommitState, length: usize, claim: Claim, flags: u16) -> Result<()> {
        let segment_header;
        if self.needs_segment(state, length) {
            let _phase = InPhase::enter(&self.device, Phase::Cut);
            let segment = self.segments.take_free(claim)?;
            self.segments.keep_open(segment).inspect_err(|_| self.segments.set_free(segment))?;
            self.background.wake_maker();
            state.unwritten_header = None;
            let life = state.next_life;
            state.next_life += 1;
            segment_header = Some(SegmentHeader {
                store: self.segments.store,
                segment: segment.number,
                directories: self.segments.directory_count(),
                segment_bytes: self.segments.segment_bytes,
                life,
                first_batch: state.end.batch + 1,
                previous_checksum: state.end.checksum,
                previous_segment: state.end.segment,
                previous_end: state.end.offset,
                durable_batch: self.commit.durable(),
            });
            segment.begin(&self.segments.store, life, State::Active, UNIT_BYTES as u64);
            if let Some(previous) = self.segments.find(state.end.segment).filter(|s| s.life() == state.end.life) {
                previous.end.store(state.end.offset, Ordering::Release);
                previous.set_state(State::Sealed);
                // Its last batch may be on its way; then the leader lets go.
                if !state.busy {
                    previous.file.let_go();
                }
            }
            (state.end.segment, state.end.life, state.end.offset) = (segment.number, life, UNIT_BYTES as u64);
            state.leave_segment = false;
        } else {
            self.segments.keep_open(self.segments.get(state.end.segment))?;
            segment_header = state.unwritten_header.take();
        }
        let room = self.segments.segment_bytes - state.end.offset;
        let start = BatchStart {
            store: self.segments.store,
            segment: state.end.segment,
            life: state.end.life,
            offset: u32::try_from(state.end.offset).expect("a segment is shorter than 4 GiB"),
            number: state.end.batch + 1,
            first_sequence: state.next_sequence,
            previous_checksum: state.end.checksum,
            flags,
        };
        let buffer = state.buffers.pop().expect("one buffer is free when no batch is open");
        let batch = OpenBatch::open(buffer, start, crate::log::commit::MAX_BATCH_BYTES.min(room as usize));
        state.open =
            Some(Open { batch, deferred: Vec::new(), sync_wanted: false, waiters: 0, writers: 0, segment_header });
        Ok(())
    }
}
