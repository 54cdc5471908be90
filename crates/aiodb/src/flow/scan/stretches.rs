//! Reads the values of a scan ahead of the caller.
//!
//! Records come in the order of the scan. Neighbours in that order that are neighbours in the log as well share a read,
//! a _stretch_; so a scan of values that lie in its order runs at the device's sequential speed, and any other at its
//! random one.

use std::collections::VecDeque;

use crate::format::location::Location;
use crate::io::reads::{Done, Reads};
use crate::io::{AlignedBuffer, Device};
use crate::store::read_path::ReadPath;
use crate::{Error, Result};

/// Reads in flight, or done and waiting for the caller to come to them: twice as many as make a device busy, since reads do not
/// end in the order of the scan.
const DEPTH: usize = 128;
/// The longest stretch that several records share.
const MAX_STRETCH_BYTES: usize = 256 << 10;
/// Records further apart do not share a read.
const MAX_GAP_BYTES: usize = 16 << 10;
/// The caller's thread reads up to so many stretches by itself, one after the other, in a scan that has not come far:
/// making a queue, with its memory, takes longer.
const ALONE_STRETCHES: usize = 4;
/// A read up to this length needs no memory of its own.
const BUFFER_BYTES: usize = 8 << 10;

/// The stretches that the caller has not come to the end of.
pub(super) struct Stretches<D: Device> {
    reads: Option<Reads<D::Queue>>,
    ahead: VecDeque<Stretch>,
    /// The number of the first stretch, and of the first that has not been given to the device.
    first: u64,
    next: u64,
    bytes: usize,
}

/// One read for neighbouring records.
struct Stretch {
    segment: u32,
    start: usize,
    end: usize,
    /// Records that lie in it and were not taken yet.
    records: usize,
    state: State,
}

enum State {
    /// More records may join.
    Open,
    Reading,
    /// In this slot of the reads.
    Here(u32),
    /// Read by the caller's thread: whole blocks, and where the stretch begins in them.
    Alone(AlignedBuffer, usize),
    Failed(Error),
}

/// The slot of the reads that a record's bytes lie in, and where in it they begin; `None` if they lie elsewhere.
pub(super) type InSlot = Option<(u32, usize)>;

impl<D: Device> Default for Stretches<D> {
    fn default() -> Self {
        Stretches { reads: None, ahead: VecDeque::new(), first: 0, next: 0, bytes: 0 }
    }
}

impl<D: Device> Stretches<D> {
    /// Bytes read ahead of the caller, or about to be.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What was read into a slot.
    pub(super) fn bytes_in(&self, slot: u32) -> &[u8] {
        self.reads.as_ref().expect("it was read").bytes(slot)
    }

    /// Has a record join the last stretch, or begin one. Returns its number.
    pub(super) fn join(&mut self, location: Location, length: usize) -> u64 {
        let (start, end) = (location.offset as usize, location.offset as usize + length);
        match self.ahead.back_mut().filter(|stretch| stretch.can_take(location.segment, start, end)) {
            Some(stretch) => {
                self.bytes -= stretch.end - stretch.start;
                (stretch.start, stretch.end) = (stretch.start.min(start), stretch.end.max(end));
                stretch.records += 1;
                self.bytes += stretch.end - stretch.start;
            }
            None => {
                let state = State::Open;
                self.ahead.push_back(Stretch { segment: location.segment, start, end, records: 1, state });
                self.bytes += end - start;
            }
        }
        self.first + self.ahead.len() as u64 - 1
    }

    /// Whether so few wait to be read that a queue would not be worth making.
    pub(super) fn are_few(&self) -> bool {
        let open = || self.ahead.iter().filter(|stretch| matches!(stretch.state, State::Open)).count();
        self.reads.is_none() && open() <= ALONE_STRETCHES
    }

    /// Gives stretches to the device while it has room. If more records may come, the last one waits for them, unless it is awaited.
    pub(super) fn start(&mut self, engine: &ReadPath<D>, more_may_come: bool, awaited: Option<u64>) -> Result<()> {
        loop {
            let at = (self.next - self.first) as usize;
            let may_grow = more_may_come && at + 1 == self.ahead.len() && awaited != Some(self.next);
            let Some(stretch) = self.ahead.get(at).filter(|_| !may_grow) else { return Ok(()) };
            let segment = engine.segment_of(stretch.location())?;
            let reads = match &mut self.reads {
                Some(reads) => reads,
                None => self.reads.insert(new_reads(engine)?),
            };
            if !reads.has_room() {
                return Ok(());
            }
            reads.push(&segment.file, stretch.start as u64, stretch.end - stretch.start, self.next);
            self.ahead[at].state = State::Reading;
            self.next += 1;
        }
    }

    /// Reads a stretch on the caller's thread, if that was not done yet.
    pub(super) fn read_alone(&mut self, engine: &ReadPath<D>, number: u64) -> Result<()> {
        let stretch = &mut self.ahead[(number - self.first) as usize];
        if !matches!(stretch.state, State::Open) {
            return Ok(());
        }
        let location = stretch.location();
        let length = stretch.end - stretch.start;
        let mut buffer = AlignedBuffer::new(engine.blocks_bytes(location, length));
        let head = engine.read_blocks(engine.segment_of(location)?, location, length, &mut buffer)?;
        stretch.state = State::Alone(buffer, head);
        self.next = number + 1;
        Ok(())
    }

    /// Takes a record out of its stretch, once that has been read: its bytes, and where they lie.
    pub(super) fn take(
        &mut self,
        engine: &ReadPath<D>,
        number: u64,
        more_may_come: bool,
        location: Location,
        length: usize,
    ) -> Result<(InSlot, &[u8])> {
        let at = (number - self.first) as usize;
        if !matches!(self.ahead[at].state, State::Alone(..)) {
            self.wait_for(engine, number, more_may_come)?;
        }
        let stretch = &mut self.ahead[at];
        stretch.records -= 1;
        let start = location.offset as usize - stretch.start;
        Ok(match &self.ahead[at].state {
            State::Alone(buffer, head) => (None, &buffer[head + start..head + start + length]),
            State::Here(slot) => (Some((*slot, start)), &self.bytes_in(*slot)[start..start + length]),
            _ => unreachable!("it was waited for"),
        })
    }

    /// Returns when a stretch has been read.
    fn wait_for(&mut self, engine: &ReadPath<D>, number: u64, more_may_come: bool) -> Result<()> {
        loop {
            match &self.ahead[(number - self.first) as usize].state {
                State::Here(_) => return Ok(()),
                State::Failed(error) => return Err(error.clone()),
                State::Open | State::Reading => self.start(engine, more_may_come, Some(number))?,
                State::Alone(..) => unreachable!("it is taken without waiting"),
            }
            let reads = self.reads.as_mut().expect("something is being read");
            let polled = reads.poll(true).map_err(|e| Error::io("read from", &engine.root, &e))?;
            let Done { slot, token, outcome } = polled.expect("what is waited for is being read");
            let stretch = &mut self.ahead[(token - self.first) as usize];
            stretch.state = match outcome {
                Ok(()) => State::Here(slot),
                Err(e) => {
                    reads.release(slot);
                    State::Failed(Error::io("read", engine.segments.path(stretch.segment), &e))
                }
            };
        }
    }

    /// Ends the claim on the stretches that have been taken whole.
    pub(super) fn give_back(&mut self) {
        while let Some(stretch) = self.ahead.front().filter(|stretch| stretch.records == 0) {
            match stretch.state {
                State::Here(slot) => self.reads.as_mut().expect("it was read").release(slot),
                State::Failed(_) | State::Alone(..) => {}
                State::Open | State::Reading => return,
            }
            self.bytes -= stretch.end - stretch.start;
            self.ahead.pop_front();
            self.first += 1;
        }
    }
}

impl Stretch {
    /// Where it begins.
    fn location(&self) -> Location {
        Location { segment: self.segment, offset: self.start as u32, length: 0 }
    }

    fn can_take(&self, segment: u32, start: usize, end: usize) -> bool {
        let (first, last) = (self.start.min(start), self.end.max(end));
        let gap = (start.saturating_sub(self.end)).max(self.start.saturating_sub(end));
        matches!(self.state, State::Open)
            && self.segment == segment
            && gap <= MAX_GAP_BYTES
            && last - first <= MAX_STRETCH_BYTES
    }
}

fn new_reads<D: Device>(engine: &ReadPath<D>) -> Result<Reads<D::Queue>> {
    let queue = engine.device.queue(DEPTH).map_err(|e| Error::io("make a read queue for", &engine.root, &e))?;
    Ok(Reads::new(queue, DEPTH, BUFFER_BYTES, engine.block_bytes).counted_in(&engine.memory.accounts))
}
