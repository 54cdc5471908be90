//! Reads for long scans of runs: while the caller works on one window of a run, the device reads the next ones.

use std::collections::VecDeque;
use std::io;
use std::ops::Bound;
use std::sync::Arc;

use super::cursor::{Span, most_units};
use super::file::RunFile;
use super::set::RunSet;
use crate::budget::Accounts;
use crate::io::reads::{Done, Reads};
use crate::io::{Device, UNIT_BYTES};

/// Windows of a run that are read ahead: with one alone the device rests from the moment at which it is there until the caller takes it.
const MOST_AHEAD: usize = 2;

/// Windows of each run: those, and the one that the caller works on.
pub(super) const WINDOWS_OF_RUN: usize = MOST_AHEAD + 1;

/// Runs of a scan that reads ahead, at most: with more of them it would have much memory for windows of which each is short.
const MOST_RUNS: usize = 128;

/// What is read ahead for one scan, in the runs of one set. Where that fails, the scan goes on without it.
pub(super) struct WindowsAhead<D: Device> {
    /// `None` where the device has no queue for them.
    reads: Option<Reads<D::Queue>>,
    /// Whether the queue has failed: nothing more is asked of it.
    is_broken: bool,
    /// The next windows of each run, by the run's place in the set, in the scan's order.
    next: Vec<VecDeque<Next>>,
    /// The token of the next read.
    next_token: u64,
    /// Where the scan ends in its direction.
    end: Bound<Box<[u8]>>,
}

/// A window that the caller has not come to.
#[derive(Clone, Copy)]
struct Next {
    token: u64,
    span: Span,
    state: State,
}

#[derive(Clone, Copy)]
enum State {
    Reading,
    /// In this slot of the reads.
    Here(u32),
    /// The caller reads the bytes again, and tells of the error.
    Failed,
}

impl<D: Device> WindowsAhead<D> {
    /// For a scan of all runs of a set up to this key in its direction. Nothing is read yet.
    pub(super) fn new(device: &D, accounts: &Arc<Accounts>, set: &RunSet<D>, end: Bound<&[u8]>) -> WindowsAhead<D> {
        let runs = set.runs.len();
        let (depth, window_bytes) = (WINDOWS_OF_RUN * runs, most_units(set) as usize * UNIT_BYTES);
        let queue = (1..=MOST_RUNS).contains(&runs).then(|| device.queue(depth)).and_then(Result::ok);
        let reads = queue.map(|queue| Reads::new(queue, depth, window_bytes, UNIT_BYTES).counted_in(accounts));
        let next = (0..runs).map(|_| VecDeque::with_capacity(MOST_AHEAD)).collect();
        WindowsAhead { reads, is_broken: false, next, next_token: 0, end: end.map(Box::from) }
    }

    /// Where the scan ends in its direction.
    pub(super) fn end(&self) -> Bound<&[u8]> {
        self.end.as_ref().map(|end| &**end)
    }

    /// Whether another window of a run can be read ahead, and the last one that is.
    pub(super) fn last_of(&self, run: usize) -> (bool, Option<Span>) {
        let next = &self.next[run];
        let has_room = self.reads.is_some() && !self.is_broken && next.len() < MOST_AHEAD;
        (has_room, next.back().map(|next| next.span))
    }

    /// Begins to read the next window of a run, for which there is room. The caller has one other at most.
    pub(super) fn begin(&mut self, run: usize, file: &RunFile<D>, span: Span) {
        let Some(reads) = &mut self.reads else { return };
        let token = self.next_token;
        self.next_token += 1;
        reads.push(file.device_file(), span.offset(), span.bytes(), token);
        self.next[run].push_back(Next { token, span, state: State::Reading });
        // Nothing else hands it to the device before the caller needs it.
        while self.poll(false) {}
    }

    /// Takes the next window of a run that has these units: what it is, and its slot. Windows before it are given back.
    pub(super) fn take(&mut self, run: usize, wanted: &Span) -> Option<(Span, u32)> {
        loop {
            let Next { span, state, .. } = *self.next[run].front()?;
            match state {
                State::Here(slot) if span.contains(wanted) => {
                    self.next[run].pop_front();
                    return Some((span, slot));
                }
                State::Here(slot) => self.give_back(slot),
                State::Failed => {}
                State::Reading if self.poll(true) => continue,
                // It stays in flight until the queue is dropped.
                State::Reading => return None,
            }
            self.next[run].pop_front();
        }
    }

    /// The bytes of a window that was taken.
    pub(super) fn bytes(&self, slot: u32) -> &[u8] {
        self.reads.as_ref().expect("it was read").bytes(slot)
    }

    /// Ends the claim on a window that was taken.
    pub(super) fn give_back(&mut self, slot: u32) {
        self.reads.as_mut().expect("it was read").release(slot);
    }

    /// Takes note of a read that has ended; false if there is none, or the queue has failed.
    fn poll(&mut self, wait: bool) -> bool {
        let Some(reads) = self.reads.as_mut().filter(|_| !self.is_broken) else { return false };
        let polled: io::Result<Option<Done>> = reads.poll(wait);
        self.is_broken = polled.is_err();
        let Ok(Some(Done { slot, token, outcome })) = polled else { return false };
        if outcome.is_err() {
            reads.release(slot);
        }
        let next = self.next.iter_mut().flatten().find(|next| next.token == token).expect("what is read is awaited");
        next.state = if outcome.is_ok() { State::Here(slot) } else { State::Failed };
        true
    }
}
