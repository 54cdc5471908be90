//! The open batch: a writer finds one here in which its records fit, in a fresh segment where it must be. And the reserve that no
//! segment takes, since the files of the indexes will need it.

use crate::format::segment::SegmentHeader;
use crate::io::{Device, File, InPhase, Phase, UNIT_BYTES};
use crate::log::open_batch::{BatchStart, OpenBatch};
use crate::log::{Claim, RESERVED_SEGMENTS, State};
use crate::store::append_path::AppendPath;
use crate::store::catalog::TableIndex;
use crate::store::commit::{CommitState, Guard, Open, Operation, Turn};
use crate::sync::atomic::Ordering;
use crate::{Error, IndexKind, Result};

/// The checkpoint of a hash index grows at most by this share of the bytes written.
const HASH_GROWTH_SHARE: u64 = 3;

/// Of a large log one in so many segments is reserved for making room: all segments with garbage may have to be emptied before
/// one is gained, and then more than one should be gained.
const SEGMENTS_PER_RESERVED: u64 = 64;

impl<D: Device> AppendPath<D> {
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
                    self.reserve_index_room()?;
                    self.segments.restore_reserve()?;
                    state = self.commit.lock();
                }
                _ if self.is_for_moves(claim) => return Err(Error::DiskFull { path: self.root.clone() }),
                None if self.needs_segment(&state, length) && !self.may_take(claim, is_made) => {
                    // Other writers need the lock to end their writes, and the ones that need less room go on.
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

    /// [`AppendPath::room_for`] where there is some already: `None` if this caller would have to wait, to write a batch or to take a
    /// segment.
    pub(crate) fn room_at_once(
        &self,
        operations: &[Operation<'_>],
        length: usize,
        claim: Claim,
    ) -> Result<Option<Guard<'_>>> {
        let mut state = self.commit.lock();
        self.commit.check()?;
        if state.closed {
            return Err(Error::Closed);
        }
        if state.turn || claim == Claim::Ordinary && !self.segments.is_reserve_whole() || self.is_for_moves(claim) {
            return Ok(None);
        }
        if state.open.is_none() && !self.needs_segment(&state, length) {
            self.open_batch(&mut state, length, claim, 0)?;
        }
        let fits = |open: &Open| open.batch.fits(operations.iter().map(|operation| &operation.append));
        Ok(state.open.as_ref().is_some_and(fits).then_some(state))
    }

    /// Whether [`AppendPath::room_for`] would find room for a put now without any that must be made for it.
    pub(crate) fn has_room_to_spare(&self, operations: &[Operation<'_>], length: usize) -> bool {
        let state = self.commit.lock();
        let is_there = match &state.open {
            Some(open) if open.batch.fits(operations.iter().map(|operation| &operation.append)) => true,
            None if !self.needs_segment(&state, length) => true,
            _ => self.segments.has_free(Claim::Ordinary),
        };
        is_there && self.segments.is_reserve_whole()
    }

    /// Whether the log's last segment is for moves alone, which have begun it: an opening has none to write again what is appended now and may be
    /// pending then.
    fn is_for_moves(&self, claim: Claim) -> bool {
        claim == Claim::Deletes && !self.segments.is_reserve_whole() && self.segments.free_count() == 0
    }

    /// Whether a segment may be taken: work that makes room takes of the reserve only where no more could be made.
    pub(crate) fn may_take(&self, claim: Claim, is_made: bool) -> bool {
        self.segments.has_free(claim) && (is_made || self.segments.free_count() > RESERVED_SEGMENTS)
    }

    /// Whether a batch of this length goes into a fresh segment.
    pub(crate) fn needs_segment(&self, state: &CommitState, length: usize) -> bool {
        state.leave_segment || state.end.offset + length as u64 > self.segments.segment_bytes
    }

    /// Undoes the opening of a batch to which no record was appended.
    pub(crate) fn put_back_empty(&self, state: &mut CommitState, open: Open) {
        // If it was the first of its segment, the header is still to be written: by the next batch there, or by none.
        state.unwritten_header = open.segment_header;
        state.buffers.push(open.batch.abandon());
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

    /// Reserves the room that the next files of the indexes need, so that no segment takes it, and lets the memtable of the ordered
    /// index grow no more than there is room for.
    pub(crate) fn reserve_index_room(&self) -> Result<()> {
        let mut reserved = 0;
        // Writes before the next call of this add keys.
        let growth = (self.segments.spare() + 1) * self.segments.segment_bytes / HASH_GROWTH_SHARE;
        for generation in self.catalog.generations() {
            if let TableIndex::Hash(index) = &generation.index {
                // The next checkpoint is written beside the last one, and is longer than that where there are more keys.
                let next = index.encoded_bytes() as u64;
                let longer = next.saturating_sub(generation.checkpoint_bytes.load(Ordering::Relaxed));
                reserved = reserved.max(2 * growth) + next + longer;
            }
        }
        for ordered in self.ordered.open().filter(|_| !self.options.read_only) {
            let needed = ordered.fit_memtable(self.memory.memtable_keys())?;
            // On a simulated machine this index has a disk of its own.
            let lies_apart = self.lmdb_lies_apart && ordered.kind() == IndexKind::Lmdb;
            reserved += if lies_apart { self.device.index_needs_bytes() } else { needed };
        }
        let emptying = self.needed_for_emptying();
        self.snapshots.leave_free(reserved + emptying);
        self.spilled.leave_free(reserved + emptying);
        // What a commit supersedes comes there, too.
        let uncommitted = self.ordered.open().map(|ordered| ordered.memtable.len()).sum();
        self.segments.reserve_for_indexes(reserved + self.snapshots.unwritten_bytes(uncommitted));
        self.segments.reserve_for_emptying(emptying);
        Ok(())
    }

    /// Bytes that must be free beyond the reserve so that every segment can be emptied, whatever is deleted: moved records are
    /// longer.
    fn needed_for_emptying(&self) -> u64 {
        let segment_bytes = self.segments.segment_bytes;
        // Where as much is free as is used, counting is not needed.
        if self.segments.unmade_bytes() >= self.segments.iter().count() as u64 * segment_bytes {
            return 0;
        }
        let in_use = self.segments.iter().filter(|segment| matches!(segment.state(), State::Active | State::Sealed));
        let (count, growth) = in_use.fold((0, 0), |(count, growth), segment| (count + 1, growth + segment.growth()));
        growth + count / SEGMENTS_PER_RESERVED * segment_bytes
    }

    /// Makes a segment for a write that has found none.
    pub(crate) fn make_segment_for(&self, claim: Claim) -> Result<()> {
        self.reserve_index_room()?;
        self.segments.make_for(claim)
    }
}
