//! The whole path of a put: encode into the open batch, let one waiting caller write the batch for all (group commit),
//! publish in the index, acknowledge.
//!
//! The open batch lies in memory that survives the process (`io::Device::map`), and every record's place in the log is
//! known when it is appended. So a write in the classes `interval` and `none` is published and acknowledged at once, and
//! read from the pending batch until that is written; a write in the class `sync` is published when its batch is durable.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::catalog::Generation;
use crate::commit::{CommitState, Guard, Open, Sealed, Turn, WORDS, buffer_bytes};
use crate::engine::Engine;
use crate::io::{Device, File, InPhase, Phase, UNIT_BYTES, WriteSync};
use crate::log::batch::{Append, BatchStart, OpenBatch, Placed};
use crate::log::place::batch_bytes;
use crate::log::record::Kind;
use crate::log::segment::{BATCH_CONTINUES, BATCH_MOVES, SegmentHeader, put};
use crate::log::{Claim, State};
use crate::operation::Operation;
use crate::pins::Pin;
use crate::planted::{self, Bug};
use crate::publish::Publication;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Word, yield_now};
use crate::{Durability, Error, IndexKind, Result, Sequence};

/// Batches of the classes `interval` and `none` are written when they have this many bytes.
pub(crate) const BATCH_TARGET_BYTES: usize = 1 << 20;

/// How often a delete that finds no room makes reclaim empty segments before it is refused.
const MOST_RECLAIM_ROUNDS: usize = 8;

/// Where the records of one write went.
pub(crate) type PlacedList = SmallVec<[Placed; 4]>;

/// A group of operations in the log.
pub(crate) struct Appended<'a> {
    pub(crate) placed: PlacedList,
    /// The batch that must be durable before the records are published, with the lock for whoever leads it.
    pub(crate) unpublished: Option<(Guard<'a>, u64)>,
}

/// The sequence of a write is that of its last record.
pub(crate) fn last_sequence(placed: &PlacedList) -> Sequence {
    Sequence(placed.last().expect("a write has a record").sequence)
}

/// The work of whoever writes a batch or flushes for others. They must not wait for ever should it panic.
struct Leading<'a, D: Device>(&'a Engine<D>);

impl<D: Device> Leading<'_, D> {
    fn end(self) {
        std::mem::forget(self);
    }
}

impl<D: Device> Drop for Leading<'_, D> {
    fn drop(&mut self) {
        let cause = "a thread panicked while it wrote to the log".to_string();
        self.0.commit.fail_because(cause.clone());
        self.0.fail_batch(Error::Failed { cause });
    }
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
        if turn.is_none() {
            self.keep_bounded(operations)?;
        }
        let mut state = self.room_or_reclaim(operations, length, turn)?;
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
                self.keep_written(generation, &publication, value);
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
    fn keep_bounded(&self, operations: &[Operation<'_>]) -> Result<()> {
        // What goes to other tables has no part in the tail.
        let is_ordered = |generation: &Arc<Generation>| generation.kind() == IndexKind::Lmdb;
        if operations.iter().any(|operation| operation.generation.as_ref().is_some_and(is_ordered)) {
            let lmdb = self.lmdb();
            lmdb.pace.wait(|| lmdb.tail.active_keys());
            self.keep_tail_bounded()?;
        }
        // Chunks are part of a larger write, maybe of background work itself.
        let is_part = operations.iter().any(|operation| operation.append.kind == Kind::Chunk);
        if self.recovered.get().is_none() || is_part {
            return Ok(());
        }
        if self.settling.urgent.is_any() {
            self.fold_urgent(operations.iter().any(|operation| operation.append.kind == Kind::Merge));
        }
        let ranges = operations.iter().filter(|operation| operation.append.kind == Kind::RangeDelete).count();
        if ranges > 0 { self.keep_ranges_bounded(ranges) } else { Ok(()) }
    }

    /// [`Engine::room_for`]; what makes room is not refused for lack of it before reclaim has done what it can.
    fn room_or_reclaim(
        &self,
        operations: &[Operation<'_>],
        length: usize,
        turn: Option<&Turn<'_>>,
    ) -> Result<Guard<'_>> {
        let claim = self.claim(operations);
        // Reclaim needs a turn itself.
        let rounds = if turn.is_some() { 0 } else { MOST_RECLAIM_ROUNDS };
        for _ in 0..rounds {
            match self.room_for(operations, length, claim, turn) {
                Err(Error::DiskFull { .. }) if claim == Claim::Deletes => self.make_room()?,
                found => return found,
            }
        }
        self.room_for(operations, length, claim, turn)
    }

    /// How much of the last free segments these operations may take.
    fn claim(&self, operations: &[Operation<'_>]) -> Claim {
        let frees = |kind| matches!(kind, Kind::Delete | Kind::RangeDelete | Kind::TableDrop | Kind::TableTruncate);
        if self.recovered.get().is_none() {
            Claim::Recovery
        } else if operations.iter().all(|operation| frees(operation.append.kind)) {
            Claim::Deletes
        } else {
            Claim::Ordinary
        }
    }

    /// The longest batch, and so the longest atomic group.
    pub(crate) fn max_batch_bytes(&self) -> usize {
        buffer_bytes(self.segments.segment_bytes) - UNIT_BYTES
    }

    /// Makes everything appended so far durable and published.
    pub(crate) fn flush(&self) -> Result<()> {
        let state = self.idle()?;
        self.flush_idle(state)
    }

    /// Makes everything up to a sequence durable and published, if nobody else does.
    pub(crate) fn flush_to(&self, sequence: Sequence) -> Result<()> {
        if self.commit.durable_sequence() >= sequence.0 {
            return Ok(());
        }
        let state = self.idle()?;
        if self.commit.durable_sequence() >= sequence.0 {
            return Ok(());
        }
        self.flush_idle(state)
    }

    /// [`Engine::flush`], once nobody writes.
    fn flush_idle(&self, mut state: Guard<'_>) -> Result<()> {
        if state.open.as_ref().is_some_and(|open| !open.batch.is_empty()) {
            state.open.as_mut().expect("just seen").sync_wanted = true;
            return self.lead(state);
        }
        if state.dirty.is_empty() {
            return Ok(());
        }
        state.busy = true;
        let dirty = std::mem::take(&mut state.dirty);
        let (written, sequence) = (self.commit.completed(), state.completed_end.1 - 1);
        drop(state);
        let leading = Leading(self);
        let outcome = self.sync_segments(&dirty);
        leading.end();
        match &outcome {
            Ok(()) => {
                self.commit.durable.store(written, Ordering::Release);
                self.commit.durable_sequence.store(sequence, Ordering::Release);
            }
            Err(_) if planted::is_on(Bug::FailedFlushForgotten) => {}
            Err(error) => return Err(self.fail_batch(error.clone())),
        }
        let mut state = self.commit.lock();
        self.become_idle(&mut state);
        // Who came to the open batch meanwhile waits for a leader.
        let next = state.waited_for();
        self.wake(state, None, next);
        outcome
    }

    /// Writes the open batch out, without making it durable unless a waiter wants that.
    pub(crate) fn write_open_batch(&self) -> Result<()> {
        let state = self.idle()?;
        if state.open.as_ref().is_some_and(|open| !open.batch.is_empty()) {
            self.lead(state)?;
        }
        Ok(())
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
        Ok(Turn(&self.commit))
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
        while !self.has_segment_for(&state, length, Claim::Moves) {
            drop(state);
            self.segments.make_for(Claim::Moves)?;
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

    /// Waits until nobody writes.
    fn idle(&self) -> Result<Guard<'_>> {
        let mut state = self.commit.lock();
        loop {
            self.commit.check()?;
            if !state.busy {
                return Ok(state);
            }
            state = self.wait_idle(state);
        }
    }

    pub(crate) fn wait_idle<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        state.idle_waiters += 1;
        let mut state = self.commit.idle.wait(state).expect("no code panics while it holds the commit lock");
        state.idle_waiters -= 1;
        state
    }

    fn become_idle(&self, state: &mut CommitState) {
        state.busy = false;
        if state.idle_waiters > 0 {
            self.commit.idle.notify_all();
        }
    }

    /// An open batch in which the operations fit, which fill `length` bytes of a new one: the current one, or the next
    /// after this caller has written it.
    fn room_for(
        &self,
        operations: &[Operation<'_>],
        length: usize,
        claim: Claim,
        turn: Option<&Turn<'_>>,
    ) -> Result<Guard<'_>> {
        let appends = || operations.iter().map(|operation| &operation.append);
        let mut state = self.commit.lock();
        loop {
            self.commit.check()?;
            match &state.open {
                _ if state.closed => return Err(Error::Closed),
                _ if state.turn && turn.is_none() => state = self.wait_idle(state),
                None if !self.has_segment_for(&state, length, claim) => {
                    // Others need the lock to end what they have written, and those who need less room go on.
                    drop(state);
                    self.segments.make_for(claim)?;
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

    /// Whether [`Engine::open_batch`] need not make a segment.
    fn has_segment_for(&self, state: &CommitState, length: usize, claim: Claim) -> bool {
        !self.needs_segment(state, length) || self.segments.has_free(claim)
    }

    /// Whether a batch of this length goes into a fresh segment.
    fn needs_segment(&self, state: &CommitState, length: usize) -> bool {
        state.leave_segment || state.end.offset + length as u64 > self.segments.segment_bytes
    }

    /// Undoes the opening of a batch that nothing was appended to.
    fn put_back_empty(&self, state: &mut CommitState, open: Open) {
        // If it was the first of its segment, the header is still to be written: by the next batch there, or by none.
        state.unwritten_header = open.segment_header;
        state.buffers.push(open.batch.into_buffer());
    }

    /// Opens the next batch, in a fresh segment when this one has too little room left.
    fn open_batch(&self, state: &mut CommitState, length: usize, claim: Claim, flags: u16) -> Result<()> {
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
        let batch = OpenBatch::open(buffer, start, crate::commit::MAX_BATCH_BYTES.min(room as usize));
        state.open =
            Some(Open { batch, deferred: Vec::new(), sync_wanted: false, waiters: 0, writers: 0, segment_header });
        Ok(())
    }

    /// Returns when a batch is written and published.
    pub(crate) fn wait_for_batch(&self, number: u64) -> Result<()> {
        self.wait_durable(self.commit.lock(), number)
    }

    /// Leads the batch if nobody writes, else sleeps until its leader has made it durable or hands the lead over.
    pub(crate) fn wait_durable<'a>(&'a self, mut state: Guard<'a>, number: u64) -> Result<()> {
        let word = &self.commit.words[number as usize % WORDS];
        loop {
            if self.commit.completed() >= number {
                return Ok(());
            }
            self.commit.check()?;
            if !state.busy {
                self.lead(state)?;
                return Ok(());
            }
            match state.open.as_mut().filter(|open| open.batch.start.number == number) {
                Some(open) => open.waiters += 1,
                None => state.sealed_waiters += 1,
            }
            let seen = word.seen();
            drop(state);
            word.wait(seen);
            if self.commit.completed() >= number {
                return Ok(());
            }
            state = self.commit.lock();
        }
    }

    /// Writes the open batch for all who are in it, publishes it, and wakes them. The caller must have seen that
    /// nobody writes.
    pub(crate) fn lead(&self, mut state: Guard<'_>) -> Result<()> {
        assert!(!state.busy, "one batch is written at a time");
        let mut open = state.open.take().expect("a leader has a batch to write");
        if state.continues {
            open.batch.start.flags |= BATCH_CONTINUES;
        }
        let early = u64::from(planted::is_on(Bug::DurableTooEarly));
        let (length, checksum) = open.batch.seal(self.commit.durable() + early, self.certain_ms());
        let number = open.batch.start.number;
        if open.batch.start.flags & BATCH_MOVES == 0 {
            state.next_sequence += u64::from(open.batch.records());
        }
        state.end.batch = number;
        state.end.checksum = checksum;
        state.end.offset += length as u64;
        state.busy = true;
        let end = (state.end, state.next_sequence);
        let sealed = Arc::new(Sealed { open, length });
        state.sealed = Some(Arc::clone(&sealed));
        let flush_first = if sealed.open.sync_wanted || self.are_many_dirty(&state, &sealed) {
            std::mem::take(&mut state.dirty)
        } else {
            Vec::new()
        };
        drop(state);

        let leading = Leading(self);
        if let Err(error) = self.write_sealed(&sealed, flush_first) {
            leading.end();
            return Err(self.fail_batch(error));
        }
        let publisher = self.publish_sealed(&sealed);
        leading.end();

        let mut state = self.commit.lock();
        let segment = self.segments.get(end.0.segment);
        if segment.state() != State::Active {
            segment.file.let_go();
        }
        state.completed_end = end;
        // Whoever begins a snapshot takes what was published meanwhile for complete once nobody publishes.
        drop(publisher);
        state.sealed = None;
        let sealed = Arc::into_inner(sealed).expect("readers of a sealed batch hold the commit lock");
        if sealed.open.sync_wanted {
            self.commit.durable.store(number, Ordering::Release);
            self.commit.durable_sequence.store(end.1 - 1, Ordering::Release);
        }
        if !sealed.open.sync_wanted && !planted::is_on(Bug::DirtySegmentForgotten) {
            state.dirty.push(sealed.open.batch.start.segment);
            state.dirty.sort_unstable();
            state.dirty.dedup();
        }
        self.commit.completed.store(number, Ordering::Release);
        state.buffers.push(sealed.open.batch.into_buffer());
        self.become_idle(&mut state);
        let waiters = sealed.open.waiters + std::mem::take(&mut state.sealed_waiters);
        let next = state.waited_for();
        self.wake(state, (waiters > 0).then_some(number), next);
        Ok(())
    }

    /// Whether this batch would make more segments dirty than may be: each keeps its descriptor until it is flushed.
    fn are_many_dirty(&self, state: &CommitState, sealed: &Sealed) -> bool {
        state.dirty.len() >= self.segments.most_unflushed && !state.dirty.contains(&sealed.open.batch.start.segment)
    }

    /// Wakes the next batch's leader first, since the device is idle until that one runs, then everyone of this batch.
    fn wake(&self, state: Guard<'_>, done: Option<u64>, next: Option<u64>) {
        let word = |number: u64| &self.commit.words[number as usize % WORDS];
        // Changed under the lock: whoever is about to sleep on a word has read it under the lock.
        for number in done.into_iter().chain(next).filter(|_| !planted::is_on(Bug::WakeLost)) {
            word(number).change();
        }
        drop(state);
        if let Some(next) = next {
            word(next).wake_one();
        }
        if let Some(done) = done {
            word(done).wake_all();
        }
    }

    /// The outcome of a write or flush is unknown. The batch stays readable, since parts of it may be acknowledged, but
    /// nothing is written any more.
    fn fail_batch(&self, error: Error) -> Error {
        self.commit.fail(&error);
        let mut state = self.commit.lock();
        state.busy = false;
        self.wake_all(state);
        error
    }

    /// Refuses all writes from now on, because a thread of the store's own has panicked, and tells who waits.
    pub(crate) fn fail_because(&self, cause: String) {
        self.commit.fail_because(cause);
        self.wake_all(self.commit.lock());
    }

    /// Wakes all who wait for a batch or for nobody to write.
    fn wake_all(&self, state: Guard<'_>) {
        self.commit.idle.notify_all();
        for word in &self.commit.words {
            word.change();
        }
        drop(state);
        self.commit.words.iter().for_each(Word::wake_all);
    }

    fn write_sealed(&self, sealed: &Sealed, flush_first: Vec<u32>) -> Result<()> {
        let start = &sealed.open.batch.start;
        let segment = self.segments.get(start.segment);
        let path = || self.segments.path(start.segment);
        // Everything before a durable batch must be durable too, or the chain to it would break.
        if !planted::is_on(Bug::EarlierBatchesUnflushed) {
            self.sync_segments(&flush_first)?;
        }
        let _phase = InPhase::enter(&self.device, Phase::Append);
        let sync = if sealed.open.sync_wanted && !planted::is_on(Bug::AckBeforeFlush) {
            WriteSync::Now
        } else {
            WriteSync::Later
        };
        if let Some(header) = &sealed.open.segment_header {
            let _phase = InPhase::enter(&self.device, Phase::SegmentReuse);
            let mut unit = crate::io::AlignedBuffer::new(UNIT_BYTES);
            put(&mut unit, 0, &header.encode());
            // Whatever class the batch has: were the header lost, the next process would begin the same life here again,
            // and take for its own what this one wrote.
            let forgets = planted::is_on(Bug::SegmentHeaderUnflushed) || planted::is_on(Bug::AckBeforeFlush);
            let sync = if forgets { WriteSync::Later } else { WriteSync::Now };
            segment.file.write_at(&unit, 0, sync).map_err(|e| Error::io("write", path(), &e))?;
        }
        let bytes = sealed.open.batch.bytes(sealed.length);
        let written =
            self.timed(&self.meters.write_wait, || segment.file.write_at(bytes, u64::from(start.offset), sync));
        written.map_err(|e| Error::io("write", path(), &e))?;
        if sync == WriteSync::Now {
            self.segments.note_waited_flush();
        }
        self.meters.wrote_batch(sealed.length, sealed.open.batch.records(), sealed.open.writers);
        let counters = &self.commit.counters;
        counters.log_bytes.fetch_add(sealed.length as u64, Ordering::Relaxed);
        counters.batches.fetch_add(1, Ordering::Relaxed);
        counters.records.fetch_add(u64::from(sealed.open.batch.records()), Ordering::Relaxed);
        segment.records.fetch_add(u64::from(sealed.open.batch.records()), Ordering::Relaxed);
        segment.written_end.store(u64::from(start.offset) + sealed.length as u64, Ordering::Release);
        Ok(())
    }

    fn sync_segments(&self, numbers: &[u32]) -> Result<()> {
        let _phase = (!numbers.is_empty()).then(|| InPhase::enter(&self.device, Phase::Flush));
        for &number in numbers {
            let segment = self.segments.get(number);
            let synced = self.timed(&self.meters.flush_wait, || segment.file.sync());
            synced.map_err(|e| Error::io("flush", self.segments.path(number), &e))?;
        }
        Ok(())
    }

    /// Publishes what waited for this batch, and waits for those who publish for themselves. Until the pin is given back the
    /// caller counts as publishing.
    fn publish_sealed(&self, sealed: &Sealed) -> Pin<'_> {
        let _phase = InPhase::enter(&self.device, Phase::Publish);
        let publisher = self.publishers.pin();
        let batch = &sealed.open.batch;
        for deferred in &sealed.open.deferred {
            let (placed, hash) = (&deferred.placed, deferred.hash);
            let record = batch.record_at(placed.record_offset);
            let Some(generation) = deferred.generation.as_ref().filter(|_| record.kind.is_indexed()) else { continue };
            let value = batch.value_at(&record, placed);
            let publication = Publication::new(&record, value, hash, placed);
            match record.moved {
                Some(origin) => {
                    self.keep_moved(generation, &publication, origin, value);
                    self.publish_move(generation, &publication, origin);
                }
                None => {
                    self.publish(generation, &publication);
                    self.keep_written(generation, &publication, value);
                    self.commit.stripes.published(generation.id, hash, record.kind);
                }
            }
        }
        let publishing = &self.commit.publishing[batch.start.number as usize % WORDS];
        while publishing.load(Ordering::Acquire) > 0 {
            yield_now();
        }
        let end = u64::from(batch.start.offset) + sealed.length as u64;
        self.segments.get(batch.start.segment).published_end.store(end, Ordering::Release);
        publisher
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
