//! Simulated asynchronous reads: out of order, late, sometimes short or interrupted.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::machine::State;
use super::{Call, Effect, SimDevice, SimFile};
use crate::io::{Queue, Reaped};

/// One read in so many transfers fewer bytes than asked for, and as many each fail with `EAGAIN` and `EINTR`, all of
/// which a kernel may do and a driver must retry.
const HICCUP_ONE_IN: u32 = 16;

/// A queue of reads of a [`SimDevice`].
///
/// Each [`Queue::enter`] completes a random choice of the reads in flight, at least as many as were waited for.
/// Buffers are filled during `enter`, so nothing happens to them once the queue has been dropped.
pub struct SimQueue {
    device: SimDevice,
    depth: usize,
    pushed: Vec<Request>,
    in_flight: Vec<Request>,
    ready: VecDeque<Reaped>,
}

struct Request {
    slot: u32,
    file: SimFile,
    offset: u64,
    buffer: *mut u8,
    length: u32,
}

// SAFETY: the caller that pushed the request promised that its buffer is the device's alone until the slot was reaped; memory
// is not tied to a thread.
unsafe impl Send for Request {}

impl SimQueue {
    pub(super) fn new(device: SimDevice, depth: usize) -> SimQueue {
        SimQueue { device, depth, pushed: Vec::new(), in_flight: Vec::new(), ready: VecDeque::new() }
    }

    /// The process is dead: nothing will be transferred any more.
    fn fail_all(&mut self, error: &io::Error) {
        for request in self.in_flight.drain(..) {
            let outcome = Err(io::Error::new(error.kind(), error.to_string()));
            self.ready.push_back(Reaped { slot: request.slot, outcome });
        }
    }
}

impl Queue for SimQueue {
    type File = SimFile;

    unsafe fn push(&mut self, slot: u32, file: &SimFile, offset: u64, buffer: *mut u8, length: u32) {
        let outstanding = self.pushed.len() + self.in_flight.len() + self.ready.len();
        assert!(outstanding < self.depth, "more reads than the queue's depth of {} are in flight", self.depth);
        self.pushed.push(Request { slot, file: file.clone(), offset, buffer, length });
    }

    fn enter(&mut self, wait_for: u32) -> io::Result<()> {
        self.in_flight.append(&mut self.pushed);
        let machine = self.device.machine.clone();
        let mut state = machine.lock();
        if let Err(error) = state.call(self.device.process, |_| Ok(())) {
            self.fail_all(&error);
            return Err(error);
        }
        state.counters.most_queued_reads = state.counters.most_queued_reads.max(self.in_flight.len() as u64);
        let path = self.in_flight.first().map(|request| Arc::clone(&request.file.path));
        if path.is_some_and(|path| state.disturbance(Call::Enter, &path) == Some(Effect::Fail)) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        let missing = (wait_for as usize).saturating_sub(self.ready.len());
        assert!(missing <= self.in_flight.len(), "waiting for {wait_for} reads would never end: too few were pushed");
        let count = state.random.usize(0..=self.in_flight.len()).max(missing);
        for _ in 0..count {
            let chosen = state.random.usize(0..self.in_flight.len());
            let request = self.in_flight.swap_remove(chosen);
            let outcome = complete(&mut state, &request);
            self.ready.push_back(Reaped { slot: request.slot, outcome });
        }
        Ok(())
    }

    fn reap(&mut self) -> Option<Reaped> {
        self.ready.pop_front()
    }
}

fn complete(state: &mut State, request: &Request) -> io::Result<u32> {
    request.file.check_alignment(state.block_bytes, request.buffer.addr(), request.length as usize, request.offset)?;
    let block_bytes = state.block_bytes as u32;
    let mut length = request.length;
    match state.random.u32(0..HICCUP_ONE_IN) {
        0 => return Err(io::Error::from_raw_os_error(libc::EAGAIN)),
        1 => return Err(io::Error::from_raw_os_error(libc::EINTR)),
        // The rest of a short read must be readable with direct I/O, so it ends on a block.
        2 if length > block_bytes => length = state.random.u32(1..length.div_ceil(block_bytes)) * block_bytes,
        _ => {}
    }
    // The caller's buffer need not be initialised, so it is only written to, never borrowed.
    let mut bytes = vec![0; length as usize];
    let count = state.read(&request.file, &mut bytes, request.offset)?;
    // SAFETY: the caller that pushed the request promised that `request.length` bytes, of which these are the first, are valid
    // for writes and untouched by others until the slot has been reaped.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), request.buffer, count) };
    Ok(count as u32)
}
