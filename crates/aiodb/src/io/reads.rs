//! The driver of asynchronous reads above any [`Queue`]: it owns the buffers, and does for all queues alike the submission in
//! batches, alignment, short reads and retries.

use std::io;
use std::sync::Arc;

use self::submission::Submission;
use super::{AlignedBuffer, Notifications, Queue, UNIT_BYTES};
use crate::budget::{Accounts, Held, Part};
use crate::metrics::histogram::Histogram;

/// How often one read is repeated after an interruption or a transfer of less than a block, before its error is
/// reported.
const MAX_RETRIES: u8 = 16;
/// The most that is asked of the device at once. A longer read goes on where the last transfer ended.
const MAX_TRANSFER_BYTES: usize = 1 << 30;

/// One read in this many is timed: reading the clock for each would cost a per cent of a fast device's reads.
const TIMED_EVERY: u64 = 16;

/// A read that came to its end. Its slot stays occupied until [`Reads::release`].
#[derive(Debug)]
pub struct Done {
    /// Where the bytes are: see [`Reads::bytes`].
    pub slot: u32,
    /// The caller's token from [`Reads::push`].
    pub token: u64,
    /// Whether all requested bytes were read. A file that ends too early is [`io::ErrorKind::UnexpectedEof`].
    pub outcome: io::Result<()>,
}

/// Reads in flight on one queue.
pub struct Reads<Q: Queue> {
    /// Declared, and so dropped, before the memory: dropping it waits until the device owns no buffer any more.
    queue: Q,
    slots: Vec<Slot<Q::File>>,
    free: Vec<u32>,
    arena: AlignedBuffer,
    buffer_bytes: usize,
    block_bytes: usize,
    /// Reads given to the queue since it was last entered.
    unentered: usize,
    in_flight: usize,
    submission: Submission,
    timing: Option<Timing>,
    /// The memory of the arena, where somebody counts it.
    _held: Option<Held>,
}

/// How long reads are in flight.
struct Timing {
    clock_ns: Box<dyn Fn() -> u64 + Send>,
    waits: Arc<Histogram>,
    pushed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    InFlight,
    Finished,
    Failed,
}

struct Slot<F> {
    state: State,
    retries: u8,
    token: u64,
    /// Keeps the file open until the read has ended.
    file: Option<F>,
    /// Where the read starts in the file: the requested offset, rounded down to a block.
    start: u64,
    /// Bytes between `start` and the requested offset.
    head: usize,
    /// Bytes requested.
    length: usize,
    /// Bytes read from `start` on: whole blocks that contain the request.
    span: usize,
    /// Bytes of the span that have arrived: whole blocks while the read is in flight.
    filled: usize,
    /// The buffer of a read that does not fit into the slot's part of the arena.
    large: Option<AlignedBuffer>,
    /// When a timed read was pushed.
    pushed_ns: Option<u64>,
}

impl<F> Slot<F> {
    fn empty() -> Slot<F> {
        Slot {
            state: State::Free,
            retries: 0,
            token: 0,
            file: None,
            start: 0,
            head: 0,
            length: 0,
            span: 0,
            filled: 0,
            large: None,
            pushed_ns: None,
        }
    }
}

impl<Q: Queue> Reads<Q> {
    /// A driver for up to `depth` reads at a time, which must be the depth of `queue`. Reads of up to `buffer_bytes`
    /// (rounded up to whole units) need no allocation; `block_bytes` is the alignment that the device asks for.
    pub fn new(mut queue: Q, depth: usize, buffer_bytes: usize, block_bytes: usize) -> Reads<Q> {
        assert!((1..=super::MAX_QUEUE_DEPTH).contains(&depth), "a queue depth of {depth}");
        assert!(block_bytes.is_power_of_two() && block_bytes <= UNIT_BYTES, "a block of {block_bytes} bytes");
        let buffer_bytes = buffer_bytes.next_multiple_of(UNIT_BYTES).max(UNIT_BYTES);
        let arena_bytes = depth.checked_mul(buffer_bytes).expect("the buffers fit into the address space");
        let mut arena = AlignedBuffer::new(arena_bytes);
        // SAFETY: the arena is neither moved nor freed before the queue is dropped, see the order of the fields.
        unsafe { queue.register(arena.as_mut_ptr(), arena_bytes) };
        Reads {
            queue,
            slots: (0..depth).map(|_| Slot::empty()).collect(),
            free: (0..depth as u32).rev().collect(),
            arena,
            buffer_bytes,
            block_bytes,
            unentered: 0,
            in_flight: 0,
            submission: Submission::default(),
            timing: None,
            _held: None,
        }
    }

    /// The same reads, whose buffers count in these accounts.
    pub(crate) fn counted_in(self, accounts: &Arc<Accounts>) -> Reads<Q> {
        let held = Held::new(accounts, Part::Buffers, self.arena.len() as u64);
        Reads { _held: Some(held), ..self }
    }

    /// Records how long one read in 16 is in flight, from [`Reads::push`] to the [`Reads::poll`] that returns it.
    pub(crate) fn timed(self, clock_ns: impl Fn() -> u64 + Send + 'static, waits: Arc<Histogram>) -> Reads<Q> {
        Reads { timing: Some(Timing { clock_ns: Box::new(clock_ns), waits, pushed: 0 }), ..self }
    }

    /// Tells when [`Reads::poll`] may return something after it has returned nothing. False if the queue cannot do that.
    pub(crate) fn notify(&mut self, notifications: &Notifications) -> io::Result<bool> {
        self.queue.notify(notifications)
    }

    /// Whether another read can be pushed.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Reads pushed and not yet returned by [`Reads::poll`].
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Starts reading `length` bytes (at least one) at `offset`. Needs [`Reads::has_room`].
    ///
    /// Memory for a read longer than a slot's buffer is allocated here and freed by [`Reads::release`]; the caller
    /// bounds how many of these it has in flight.
    pub fn push(&mut self, file: &Q::File, offset: u64, length: usize, token: u64) {
        assert!(length > 0, "a read of no bytes");
        let slot = self.free.pop().expect("a read is pushed only where there is room");
        let head = (offset % self.block_bytes as u64) as usize;
        let span = head.checked_add(length).and_then(|end| end.checked_next_multiple_of(self.block_bytes));
        let span = span.expect("a read fits into the address space");
        self.slots[slot as usize] = Slot {
            state: State::InFlight,
            retries: 0,
            token,
            file: Some(file.clone()),
            start: offset - head as u64,
            head,
            length,
            span,
            filled: 0,
            large: (span > self.buffer_bytes).then(|| AlignedBuffer::new(span)),
            pushed_ns: self.timing.as_mut().and_then(Timing::push),
        };
        self.in_flight += 1;
        self.issue(slot);
        // A read that could not be handed over stays queued: `poll` tries again and returns the error if it is still there.
        if self.unentered >= self.submission.batch(self.in_flight) && self.queue.enter(0).is_ok() {
            self.unentered = 0;
        }
    }

    /// The next read that came to its end, in any order. With `wait`, blocks until there is one; `None` then means
    /// that none is in flight. Without, `None` means that the device has all that are. An error concerns the queue itself, not one read.
    pub fn poll(&mut self, wait: bool) -> io::Result<Option<Done>> {
        let mut entered = false;
        loop {
            while let Some(reaped) = self.queue.reap() {
                if let Some(done) = self.advance(reaped.slot, reaped.outcome) {
                    return Ok(Some(done));
                }
            }
            // A read that did not come to its end goes on with the next entry.
            if self.in_flight == 0 || (entered && !wait && self.unentered == 0) {
                return Ok(None);
            }
            self.queue.enter(u32::from(wait))?;
            self.unentered = 0;
            entered = true;
        }
    }

    /// The requested bytes of a read that [`Reads::poll`] has returned with success.
    pub fn bytes(&self, slot: u32) -> &[u8] {
        let read = &self.slots[slot as usize];
        assert_eq!(read.state, State::Finished, "only a finished read has bytes");
        let start = match &read.large {
            Some(large) => large.as_ptr(),
            // SAFETY: the arena has `buffer_bytes` for each slot, and the index was checked above.
            None => unsafe { self.arena.as_ptr().add(slot as usize * self.buffer_bytes) },
        };
        // SAFETY: `head + length` is at most `span`, which is at most the buffer; the bytes are initialised, and the
        // device is done with them because the slot's read was reaped. The slot is not reused while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(start.add(read.head), read.length) }
    }

    /// Frees the slot of a read that [`Reads::poll`] has returned.
    pub fn release(&mut self, slot: u32) {
        let read = &mut self.slots[slot as usize];
        assert!(matches!(read.state, State::Finished | State::Failed), "a {:?} slot is released", read.state);
        read.state = State::Free;
        read.large = None;
        self.free.push(slot);
    }

    /// Gives the rest of a read to the queue.
    fn issue(&mut self, slot: u32) {
        let read = &mut self.slots[slot as usize];
        let length = (read.span - read.filled).min(MAX_TRANSFER_BYTES);
        let buffer = match &mut read.large {
            Some(large) => large.as_mut_ptr(),
            // SAFETY: the arena has `buffer_bytes` for each slot, and the index was checked above.
            None => unsafe { self.arena.as_mut_ptr().add(slot as usize * self.buffer_bytes) },
        };
        let file = read.file.as_ref().expect("a read in flight has a file");
        // SAFETY: the buffer holds `span` bytes and outlives the queue; no caller looks at it before the read has ended,
        // because `bytes` refuses slots in flight and a slot is given out once.
        unsafe { self.queue.push(slot, file, read.start + read.filled as u64, buffer.add(read.filled), length as u32) };
        self.unentered += 1;
    }

    /// Takes in a result of the device; gives the read back if that was the end of it.
    fn advance(&mut self, slot: u32, outcome: io::Result<u32>) -> Option<Done> {
        let read = &mut self.slots[slot as usize];
        assert_eq!(read.state, State::InFlight, "a result for a read that is not in flight");
        let outcome = match outcome {
            Ok(transferred) => read.take(transferred as usize, self.block_bytes),
            Err(error) if is_passing(&error) => read.retry().ok_or(error).map(|()| false),
            Err(error) => Err(error),
        };
        if matches!(outcome, Ok(false)) {
            self.issue(slot);
            return None;
        }
        read.state = if outcome.is_ok() { State::Finished } else { State::Failed };
        read.file = None;
        if let (Some(timing), Some(pushed_ns)) = (&self.timing, read.pushed_ns) {
            timing.waits.record((timing.clock_ns)().saturating_sub(pushed_ns));
        }
        self.in_flight -= 1;
        self.submission.end(|| self.queue.sleeps());
        Some(Done { slot, token: read.token, outcome: outcome.map(|_| ()) })
    }
}

impl Timing {
    /// The time, if this read is a timed one.
    fn push(&mut self) -> Option<u64> {
        self.pushed += 1;
        (self.pushed % TIMED_EVERY == 1).then(|| (self.clock_ns)())
    }
}

impl<F> Slot<F> {
    /// Takes in a transfer. True when the requested bytes are complete, false when the rest must be read.
    fn take(&mut self, transferred: usize, block_bytes: usize) -> io::Result<bool> {
        assert!(transferred <= self.span - self.filled, "the device returned more bytes than were asked for");
        let reached = self.filled + transferred;
        // The span may reach past the end of the file where the request does not.
        if reached >= self.head + self.length {
            return Ok(true);
        }
        // The rest is read from a whole block on. Within a block a transfer ends only at the end of the file, or
        // where a read through the page cache was interrupted; the retries tell these apart.
        let whole = reached - reached % block_bytes;
        if transferred == 0 || (whole == self.filled && self.retry().is_none()) {
            return Err(self.too_short(reached));
        }
        self.filled = whole;
        Ok(false)
    }

    /// Counts a repetition; `None` when there were too many.
    fn retry(&mut self) -> Option<()> {
        self.retries += 1;
        (self.retries <= MAX_RETRIES).then_some(())
    }

    fn too_short(&self, reached: usize) -> io::Error {
        let (end, offset, length) = (self.start + reached as u64, self.start + self.head as u64, self.length);
        let message = format!("the file ends at byte {end}, before the end of the {length} bytes wanted at {offset}");
        io::Error::new(io::ErrorKind::UnexpectedEof, message)
    }
}

/// Errors that say nothing about the read itself, which may be repeated.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

mod submission;
#[cfg(test)]
mod tests;
