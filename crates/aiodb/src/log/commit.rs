//! The state that concurrent writers share: the open batch, the one being written, the log's end, and the words on which waiters
//! sleep.
//!
//! The flow that uses it is in `write.rs`; here are only the state and the questions to it.

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError};
use std::thread::panicking;

use crate::format::batch::{Append, Placed};
use crate::format::location::Location;
use crate::format::position::Position;
use crate::format::segment::{BATCH_MOVES, SegmentHeader};
use crate::io::buffer::AlignedBuffer;
use crate::io::{Mapping, UNIT_BYTES};
use crate::log::open_batch::OpenBatch;
use crate::log::stripes::Stripes;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, Rank, Word};
use crate::{Error, Result};

/// The longest batch.
pub(crate) const MAX_BATCH_BYTES: usize = 4 << 20;

/// The open batch and the one being written.
pub(crate) const PENDING_BUFFERS: usize = 2;

/// Waiters of batch `n` sleep on word `n % WORDS`; at most two batches have waiters at a time.
pub(crate) const WORDS: usize = 4;

/// One record of a write. `T`, at which the log does not look, is the table whose index takes the record.
pub(crate) struct Operation<'a, T> {
    /// `None` for records that no index refers to.
    pub(crate) generation: Option<Arc<T>>,
    pub(crate) append: Append<'a>,
    pub(crate) hash: u64,
    /// Of a put in a `hash` table, the put that it is known to supersede.
    pub(crate) over: Option<Over>,
}

/// A put that is the present record of its key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over {
    pub(crate) location: Location,
    /// That of its segment.
    pub(crate) life: u64,
    pub(crate) sequence: u64,
}

impl<T> Clone for Operation<'_, T> {
    fn clone(&self) -> Self {
        Operation { generation: self.generation.clone(), ..*self }
    }
}

/// A record whose index entry waits for its batch to be durable.
pub(crate) struct Deferred<T> {
    pub(crate) generation: Option<Arc<T>>,
    pub(crate) hash: u64,
    pub(crate) placed: Placed,
    pub(crate) over: Option<Over>,
}

/// The batch that records are appended to.
pub(crate) struct Open<T> {
    pub(crate) batch: OpenBatch,
    pub(crate) deferred: Vec<Deferred<T>>,
    pub(crate) sync_wanted: bool,
    pub(crate) waiters: u32,
    /// Writes that appended to it, in any class.
    pub(crate) writers: u32,
    /// The header of the segment that this batch is the first of.
    pub(crate) segment_header: Option<SegmentHeader>,
}

impl<T> Open<T> {
    /// Appends an operation that will be published when the batch has been written.
    pub(crate) fn append(&mut self, operation: &Operation<'_, T>) -> Placed {
        let placed = self.batch.append(&operation.append);
        let generation = operation.generation.clone();
        let Operation { hash, over, .. } = *operation;
        self.deferred.push(Deferred { generation, hash, placed, over });
        placed
    }
}

/// A batch on its way to the device.
pub(crate) struct Sealed<T> {
    pub(crate) open: Open<T>,
    pub(crate) length: usize,
}

/// The state that the commit lock protects.
pub(crate) struct CommitState<T> {
    pub(crate) open: Option<Open<T>>,
    pub(crate) sealed: Option<Arc<Sealed<T>>>,
    /// Writers that began to wait for the sealed batch after it was sealed.
    pub(crate) sealed_waiters: u32,
    /// A thread writes a batch or flushes; at most one at a time.
    pub(crate) busy: bool,
    pub(crate) idle_waiters: u32,
    pub(crate) buffers: Vec<Mapping>,
    /// The position at which the next batch goes.
    pub(crate) end: Position,
    /// The end of the last batch that is written and published, and the sequence after it.
    pub(crate) completed_end: (Position, u64),
    /// A thread has the log for itself for a moment, see [`Turn`]: all other appends wait.
    pub(crate) turn: bool,
    /// Batches that are written now count only together with the one after them.
    pub(crate) continues: bool,
    /// The next batch goes into a fresh segment whatever room is left in this one.
    pub(crate) leave_segment: bool,
    /// The header of the current segment, while no batch has been written there.
    pub(crate) unwritten_header: Option<SegmentHeader>,
    pub(crate) next_sequence: u64,
    pub(crate) next_life: u64,
    /// Segments with writes that a power cut could take.
    pub(crate) dirty: Vec<u32>,
    pub(crate) closed: bool,
}

impl<T> CommitState<T> {
    /// The open batch, if a writer waits for it to be written.
    pub(crate) fn waited_for(&self) -> Option<u64> {
        self.open.as_ref().filter(|open| open.waiters > 0).map(|open| open.batch.start.number)
    }

    /// The last batch that was opened.
    pub(crate) fn last_begun(&self) -> u64 {
        self.open.as_ref().map_or(self.end.batch, |open| open.batch.start.number)
    }

    /// The last sequence given to a record.
    pub(crate) fn appended_sequence(&self) -> u64 {
        self.next_sequence + self.open.as_ref().map_or(0, |open| u64::from(open.batch.records())) - 1
    }
}

/// The group commit.
pub(crate) struct Commit<T> {
    pub(crate) state: Mutex<CommitState<T>, { Rank::Commit as u8 }>,
    pub(crate) idle: Condvar,
    /// The last batch that is written and published. Release and Acquire, like the next two: a thread that sees it finds the batch's
    /// records in the indexes.
    pub(crate) completed: AtomicU64,
    /// The last batch that a power cut cannot take.
    pub(crate) durable: AtomicU64,
    /// The last sequence that a power cut cannot take.
    pub(crate) durable_sequence: AtomicU64,
    /// The appends that conditional writes must know.
    pub(crate) stripes: Stripes,
    pub(crate) words: [Word; WORDS],
    /// Writers between append and publication, by batch. Raised under the commit lock, which the leader takes to seal the batch, so
    /// Relaxed; lowered with Release and read with Acquire: a leader that finds none finds the published records.
    pub(crate) publishing: [AtomicU32; WORDS],
    pub(crate) failed: OnceLock<String>,
    /// Set in a store that is open for reading only: its first directory.
    pub(crate) read_only: OnceLock<PathBuf>,
    pub(crate) counters: Counters,
}

/// Counts since the store was opened. Relaxed: they publish nothing.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) log_bytes: AtomicU64,
    pub(crate) batches: AtomicU64,
    pub(crate) records: AtomicU64,
    pub(crate) moved_bytes: AtomicU64,
    pub(crate) checkpoints: AtomicU64,
}

/// The right to append while all other writers wait. Only ever one at a time; its owner must not wait for another.
pub(crate) struct Turn<'a, T>(pub(crate) &'a Commit<T>);

impl<T> Turn<'_, T> {
    /// Ends the turn of a thread that holds the commit lock.
    pub(crate) fn end(self, state: &mut CommitState<T>) {
        state.turn = false;
        self.0.idle.notify_all();
        std::mem::forget(self);
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        self.0.lock().turn = false;
        self.0.idle.notify_all();
    }
}

/// The commit lock, held. A thread that panics with it may have left anything half done: the store accepts no more writes, and all
/// waiters are told.
pub(crate) struct Guard<'a, T> {
    /// `None` only while this is given up.
    state: Option<MutexGuard<'a, CommitState<T>>>,
    commit: &'a Commit<T>,
    /// Taken while a panic unwinds.
    in_panic: bool,
}

impl<T> Deref for Guard<'_, T> {
    type Target = CommitState<T>;

    #[inline]
    fn deref(&self) -> &CommitState<T> {
        self.state.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut CommitState<T> {
        self.state.as_mut().expect(HELD)
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !self.in_panic
            && panicking()
            && let Some(state) = self.state.take()
        {
            self.commit.fail_because("a thread panicked while it held the commit lock".to_string());
            self.commit.wake_all(state);
        }
    }
}

const HELD: &str = "a guard holds its lock";

/// Bytes of a batch's memory: a unit of header and the longest batch.
pub(crate) fn buffer_bytes(segment_bytes: u64) -> usize {
    UNIT_BYTES + MAX_BATCH_BYTES.min(segment_bytes as usize - UNIT_BYTES)
}

impl<T> Commit<T> {
    pub(crate) fn new(buffers: Vec<Mapping>, end: Position, next_sequence: u64, next_life: u64) -> Commit<T> {
        let state = CommitState {
            open: None,
            sealed: None,
            sealed_waiters: 0,
            busy: false,
            idle_waiters: 0,
            buffers,
            end,
            completed_end: (end, next_sequence),
            turn: false,
            continues: false,
            leave_segment: true,
            unwritten_header: None,
            next_sequence,
            next_life,
            dirty: Vec::new(),
            closed: false,
        };
        Commit {
            state: Mutex::new(state),
            idle: Condvar::default(),
            completed: AtomicU64::new(end.batch),
            durable: AtomicU64::new(end.batch),
            durable_sequence: AtomicU64::new(next_sequence - 1),
            stripes: Stripes::default(),
            words: Default::default(),
            publishing: Default::default(),
            failed: OnceLock::new(),
            read_only: OnceLock::new(),
            counters: Counters::default(),
        }
    }

    /// Takes the lock, also after a panic of a thread that held it: see [`Guard`].
    #[inline]
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Guard { state: Some(state), commit: self, in_panic: panicking() }
    }

    /// Sleeps until no thread writes, or there is another reason to look again.
    pub(crate) fn wait_idle<'a>(&'a self, mut guard: Guard<'a, T>) -> Guard<'a, T> {
        guard.idle_waiters += 1;
        let state = guard.state.take().expect(HELD);
        let state = self.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        let mut guard = Guard { state: Some(state), ..guard };
        guard.idle_waiters -= 1;
        guard
    }

    /// Wakes all threads that wait for a batch or for the end of a write.
    pub(crate) fn wake_all<'a>(&self, state: impl DerefMut<Target = CommitState<T>> + 'a) {
        self.idle.notify_all();
        self.words.iter().for_each(Word::change);
        drop(state);
        self.words.iter().for_each(Word::wake_all);
    }

    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Acquire)
    }

    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    /// Every record up to this sequence survives a power cut.
    pub(crate) fn durable_sequence(&self) -> u64 {
        self.durable_sequence.load(Ordering::Acquire)
    }

    /// The end of the last batch that is written and published, and the sequence after it.
    pub(crate) fn completed_end(&self) -> (Position, u64) {
        self.lock().completed_end
    }

    /// The sequence that the next record gets.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.lock().appended_sequence() + 1
    }

    /// A sequence up to which everything is published once the named batch is, if there is one, and once the writers that publish
    /// at this moment have done so. Not below that of any acknowledged write.
    pub(crate) fn sequence_to_publish(&self) -> (u64, Option<u64>) {
        let state = self.lock();
        let open = state.open.as_ref().filter(|open| !open.batch.is_empty());
        let sealed = state.sealed.as_ref().map(|sealed| &sealed.open);
        // Writes that wait for their batch are neither published nor acknowledged yet: they can be left out.
        let waits = |open: &Open<T>| open.deferred.len() == open.batch.records() as usize;
        if open.is_none_or(waits) && sealed.is_none_or(waits) {
            return (state.completed_end.1 - 1, None);
        }
        let appended =
            |open: &Open<T>| if open.batch.start.flags & BATCH_MOVES == 0 { open.batch.records() } else { 0 };
        let pending = open.map_or(0, |open| u64::from(appended(open)));
        let has_waiters = |open: &&Open<T>| !open.deferred.is_empty();
        let batch = open.filter(has_waiters).or(sealed.filter(has_waiters)).map_or(0, |open| open.batch.start.number);
        (state.next_sequence + pending - 1, Some(batch))
    }

    /// Where the next batch goes if it fits there.
    pub(crate) fn log_end(&self) -> Position {
        self.lock().end
    }

    /// The life that the next activated segment gets.
    pub(crate) fn next_life(&self) -> u64 {
        self.lock().next_life
    }

    /// Whether the store refuses writes for good, and why.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failed.get().map(String::as_str)
    }

    /// Recovery has followed the log to here.
    pub(crate) fn replayed(&self, position: Position, next_sequence: u64) {
        let mut state = self.lock();
        (state.end, state.completed_end) = (position, (position, next_sequence));
        state.next_sequence = next_sequence;
        // Its bytes were read back, but a power cut could still take them.
        if !state.dirty.contains(&position.segment) {
            state.dirty.push(position.segment);
        }
        self.completed.store(position.batch, Ordering::Release);
    }

    /// Recovery has come to the log's end: writing goes on after it, in a fresh segment unless nothing can lie there.
    pub(crate) fn resume(&self, position: Position, next_sequence: u64, next_life: u64, leave_segment: bool) {
        let mut state = self.lock();
        (state.end, state.completed_end) = (position, (position, next_sequence));
        (state.next_sequence, state.next_life) = (next_sequence, next_life);
        state.leave_segment = leave_segment;
        self.completed.store(position.batch, Ordering::Release);
    }

    /// From now on, batches count only together with the one after them, until this is switched off before the last.
    pub(crate) fn set_continues(&self, continues: bool) {
        self.lock().continues = continues;
    }

    /// Exchanges the memory of batches while no batch is open.
    pub(crate) fn use_buffers(&self, buffers: Vec<Mapping>) {
        let mut state = self.lock();
        if let Some(open) = state.open.take() {
            assert!(open.batch.is_empty(), "a batch is open");
            state.unwritten_header = open.segment_header;
        }
        state.buffers = buffers;
    }

    /// Refuses all later appends.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
    }

    /// An error once [`Commit::close`] was called.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.lock().closed { Err(Error::Closed) } else { Ok(()) }
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Some(path) = self.read_only.get() {
            return Err(Error::ReadOnly { path: path.clone() });
        }
        self.failed.get().map_or(Ok(()), |cause| Err(Error::Failed { cause: cause.clone() }))
    }

    /// Marks the store as failed: the outcome of a write or flush is unknown, and no write may rely on it.
    pub(crate) fn fail(&self, error: &Error) {
        self.fail_because(error.to_string());
    }

    /// [`Commit::fail`] for another reason. The first one stays.
    pub(crate) fn fail_because(&self, cause: String) {
        let _ = self.failed.set(cause);
    }

    /// Copies a record out of the batches that are not written yet.
    pub(crate) fn read_pending(&self, location: Location, out: &mut Vec<u8>) -> bool {
        let state = self.lock();
        let open = state.open.as_ref().is_some_and(|open| open.batch.read(location, out));
        open || state.sealed.as_ref().is_some_and(|sealed| sealed.open.batch.read(location, out))
    }

    /// The sequence of the whole record at a location, if it is in a batch that is not yet written and published.
    pub(crate) fn pending_sequence(&self, location: Location) -> Option<u64> {
        let state = self.lock();
        let open = state.open.as_ref().and_then(|open| open.batch.sequence_at(location));
        open.or_else(|| state.sealed.as_ref().and_then(|sealed| sealed.open.batch.sequence_at(location)))
    }

    /// Bytes in the open batch, for the background writer.
    pub(crate) fn open_bytes(&self) -> usize {
        let state = self.lock();
        state.open.as_ref().filter(|open| !open.batch.is_empty()).map_or(0, |open| open.batch.used_bytes())
    }
}

/// Memory for the batches of recovery itself, which acknowledges nothing.
pub(crate) fn private_buffers(length: usize) -> Vec<Mapping> {
    let private = |_| {
        let mut memory = AlignedBuffer::new(length);
        let start = memory.as_mut_ptr();
        // SAFETY: the memory is aligned and initialised, the mapping owns it, and nothing else refers to it.
        unsafe { Mapping::new(start, length, std::sync::Arc::new(memory)) }
    };
    (0..PENDING_BUFFERS).map(private).collect()
}
