//! The work of the leader of a batch for all writers in it: it writes the batch, flushes it where a writer waits for that, publishes
//! it, and wakes them.

use std::sync::Arc;

use crate::flow::publish::Publication;
use crate::format::record::Kind;
use crate::format::segment::{BATCH_CONTINUES, BATCH_MOVES, put};
use crate::index::memtable::LookedUp;
use crate::io::{Device, File, InPhase, Phase, UNIT_BYTES, WriteSync};
use crate::log::State;
use crate::log::commit::{Deferred, WORDS};
use crate::log::open_batch::OpenBatch;
use crate::planted::{self, Bug};
use crate::store::append_path::AppendPath;
use crate::store::catalog::Generation;
use crate::store::commit::{CommitState, Guard, Sealed};
use crate::store::epochs::EpochGuard;
use crate::store::groups::GroupKey;
use crate::sync::atomic::Ordering;
use crate::sync::yield_now;
use crate::{Error, Result, Sequence};

/// A writer that writes a batch or flushes for others. They must not wait for ever should it panic.
struct Leading<'a, D: Device>(&'a AppendPath<D>);

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

impl<D: Device> AppendPath<D> {
    /// Makes everything appended so far durable and published.
    pub(crate) fn flush(&self) -> Result<()> {
        let state = self.idle()?;
        self.flush_idle(state)
    }

    /// Makes everything up to a sequence durable and published, if no other thread does.
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

    /// [`AppendPath::flush`], once no thread writes.
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
        let at_end = state.end.segment;
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
        if let Some(left) = self.segments.find(at_end).filter(|segment| segment.state() != State::Active) {
            // The log has gone on in another one meanwhile, as after a batch.
            left.file.let_go();
        }
        self.become_idle(&mut state);
        // Writers that came to the open batch meanwhile wait for a leader.
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

    /// Waits until no thread writes.
    pub(crate) fn idle(&self) -> Result<Guard<'_>> {
        let mut state = self.commit.lock();
        loop {
            self.commit.check()?;
            if !state.busy {
                return Ok(state);
            }
            state = self.wait_idle(state);
        }
    }

    pub(crate) fn wait_idle<'a>(&'a self, state: Guard<'a>) -> Guard<'a> {
        self.commit.wait_idle(state)
    }

    fn become_idle(&self, state: &mut CommitState) {
        state.busy = false;
        if state.idle_waiters > 0 {
            self.commit.idle.notify_all();
        }
    }

    /// Returns when a batch is written and published.
    pub(crate) fn wait_for_batch(&self, number: u64) -> Result<()> {
        self.wait_durable(self.commit.lock(), number)
    }

    /// Leads the batch if no thread writes, else sleeps until its leader has made it durable or hands the lead over.
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

    /// Writes the open batch for all writers in it, publishes it, and wakes them. The caller must have seen that
    /// no thread writes.
    pub(crate) fn lead(&self, state: Guard<'_>) -> Result<()> {
        self.lead_moves(state, &[])
    }

    /// [`AppendPath::lead`] of a batch of moves, with what look-ups have found of the key of each.
    pub(crate) fn lead_moves(&self, mut state: Guard<'_>, looked_up: &[Option<&LookedUp>]) -> Result<()> {
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
        let publisher = self.publish_sealed(&sealed, looked_up);
        leading.end();

        let mut state = self.commit.lock();
        let segment = self.segments.get(end.0.segment);
        if segment.state() != State::Active {
            segment.file.let_go();
        }
        state.completed_end = end;
        // A thread that begins a snapshot takes the published records for complete once no thread publishes.
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

    /// Whether this batch would make more segments dirty than may be: the file of each is kept open until it is flushed.
    fn are_many_dirty(&self, state: &CommitState, sealed: &Sealed) -> bool {
        state.dirty.len() >= self.segments.most_unflushed && !state.dirty.contains(&sealed.open.batch.start.segment)
    }

    /// Wakes the next batch's leader first, since the device is idle until that one runs, then all waiters of this batch.
    fn wake(&self, state: Guard<'_>, done: Option<u64>, next: Option<u64>) {
        let word = |number: u64| &self.commit.words[number as usize % WORDS];
        // Changed under the lock: a waiter that is about to sleep on a word has read it under the lock.
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
    /// no thread writes any more.
    fn fail_batch(&self, error: Error) -> Error {
        self.commit.fail(&error);
        let mut state = self.commit.lock();
        state.busy = false;
        self.commit.wake_all(state);
        error
    }

    /// Refuses all writes from now on, because a thread of the store's own has panicked, and tells the waiters.
    pub(crate) fn fail_because(&self, cause: String) {
        self.commit.fail_because(cause);
        self.commit.wake_all(self.commit.lock());
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
            // In every class: were the header lost, the next process would begin the same life here again,
            // and take the batches of this one for its own.
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
        segment.padding_bytes.fetch_add(sealed.open.batch.padding(sealed.length) as u64, Ordering::Relaxed);
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

    /// Publishes the records that waited for this batch, and waits for the writers that publish their own. Until the guard is given
    /// back the caller counts as publishing.
    fn publish_sealed(&self, sealed: &Sealed, looked_up: &[Option<&LookedUp>]) -> EpochGuard<'_> {
        let _phase = InPhase::enter(&self.device, Phase::Publish);
        let publisher = self.publishers.pin();
        let batch = &sealed.open.batch;
        let mut group = None;
        for (number, deferred) in sealed.open.deferred.iter().enumerate() {
            let (placed, hash) = (&deferred.placed, deferred.hash);
            let record = batch.record_at(placed.record_offset);
            let is_listed = record.more || record.kind == Kind::RangeTombstone;
            if group.is_none() && is_listed && record.moved.is_none() {
                group = Some(self.groups.begin(group_keys(batch, &sealed.open.deferred[number..])));
            }
            // With its last record the group is there, when this one is.
            let _group = if record.more { None } else { group.take() };
            let Some(generation) = deferred.generation.as_ref().filter(|_| record.kind.is_indexed()) else { continue };
            let value = batch.value_at(&record, placed);
            let publication = Publication { over: deferred.over, ..Publication::new(&record, value, hash, placed) };
            match record.moved {
                Some(origin) => {
                    self.cache_moved(generation, &publication, origin, value);
                    self.publish_move(generation, &publication, origin, looked_up.get(number).copied().flatten());
                }
                None => {
                    self.publish(generation, &publication);
                    self.cache_written(generation, &publication, value);
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

/// The keys of the group that begins with the first of these records.
fn group_keys(batch: &OpenBatch, records: &[Deferred<Generation>]) -> impl Iterator<Item = GroupKey> {
    let mut is_last = false;
    records
        .iter()
        .map_while(move |deferred| {
            let record = batch.record_at(deferred.placed.record_offset);
            let is_over = std::mem::replace(&mut is_last, !record.more);
            (!is_over).then_some((deferred, record.kind))
        })
        .filter_map(|(deferred, kind)| GroupKey::of(kind, deferred.generation.as_deref()?, deferred.hash))
}
