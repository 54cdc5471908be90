//! Reads the values of a scan ahead of the caller.
//!
//! Records come in the order of the scan. Neighbours in that order that are neighbours in the log as well share a read,
//! a _stretch_; so a scan of values that lie in its order runs at the device's sequential speed, and any other at its
//! random one.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::flow::lifecycle::Handle;
use crate::flow::read::Outcome;
use crate::flow::snapshot::Moment;
use crate::format::location::Location;
use crate::format::record::{Kind, Record};
use crate::index::chain::{Entry, VersionChain};
use crate::index::snapshots::View;
use crate::index::{Candidate, Candidates};
use crate::io::reads::{Done, Reads};
use crate::io::{AlignedBuffer, Device};
use crate::store::catalog::Generation;
use crate::{Error, Result};

/// Reads in flight, or done and waiting for the caller to come to them: twice what keeps a device busy, since reads do not
/// end in the order of the scan.
const DEPTH: usize = 128;
/// The longest stretch that several records share.
const MAX_STRETCH_BYTES: usize = 256 << 10;
/// Records further apart do not share a read.
const MAX_GAP_BYTES: usize = 16 << 10;
/// Bytes read ahead of the caller, or about to be.
const LOOK_AHEAD_BYTES: usize = 4 << 20;
/// Records ahead of the caller, once he has come far.
const LOOK_AHEAD_RECORDS: usize = 4096;
/// Records ahead of the caller at first: many scans want few records.
const FIRST_AHEAD_RECORDS: usize = 16;
/// The caller's thread reads up to so many stretches by itself, one after the other, in a scan that has not come far:
/// making a queue, with its memory, takes longer.
const ALONE_STRETCHES: usize = 4;
/// A scan that has read no more records than this has not come far: it also asks the cache.
const SHORT_RECORDS: usize = 64;
/// A read up to this length needs no memory of its own.
const BUFFER_BYTES: usize = 8 << 10;

/// The records between the index and the caller.
pub(super) struct Fetch<D: Device> {
    pub(super) engine: Arc<Handle<D>>,
    pub(super) generation: Arc<Generation>,
    moment: Arc<Moment<D>>,
    values: bool,
    /// Records that the caller can still want: no more are read ahead.
    wanted: u64,
    /// Records that were taken, without those out of the cache.
    read: usize,
    reads: Option<Reads<D::Queue>>,
    ahead: VecDeque<Ahead>,
    /// All keys are here.
    complete: bool,
    stretches: VecDeque<Stretch>,
    /// The number of the first stretch, and of the first that has not been given to the device.
    first_stretch: u64,
    next_stretch: u64,
    bytes_ahead: usize,
    current: Current,
}

/// A record on its way.
struct Ahead {
    /// Empty if only the record itself knows it.
    key: SmallVec<[u8; 32]>,
    from: From,
}

/// Where its value comes from.
enum From {
    /// Nowhere: the key is enough.
    Key,
    /// A stretch.
    Stretch { number: u64, place: Place },
    /// Bytes that were copied out of a pending batch.
    Copy { bytes: Vec<u8>, place: Place },
    /// Several records or chunks, read when it is this one's turn.
    Candidates(Candidates),
    /// The cache, or where that has lost them meanwhile, these records.
    Cached(Candidates),
    /// A look-up, when it is this one's turn.
    LookUp,
}

/// Where a record lies that is whole at one place.
struct Place {
    candidate: Candidate,
    /// If it is of one of these keys, it is left out.
    listed: Option<Arc<BTreeSet<Vec<u8>>>>,
}

/// What some bytes say of the current record.
enum Said {
    /// That there is none.
    Nothing,
    /// These of them are its value.
    Lent(std::ops::Range<usize>),
    /// Its value.
    Owned(Vec<u8>),
    /// That its key must be looked up.
    LookUp,
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

/// The record that the caller has.
#[derive(Default)]
struct Current {
    key: Vec<u8>,
    /// Unless it is lent.
    value: Vec<u8>,
    /// The part of a slot's bytes that is the value, and the slot.
    lent: Option<std::ops::Range<usize>>,
    slot: u32,
}

impl<D: Device> Fetch<D> {
    pub(super) fn new(
        engine: &Arc<Handle<D>>,
        generation: Arc<Generation>,
        moment: Arc<Moment<D>>,
        values: bool,
        wanted: u64,
    ) -> Result<Fetch<D>> {
        Ok(Fetch {
            engine: Arc::clone(engine),
            generation,
            moment,
            values,
            wanted,
            read: 0,
            reads: None,
            ahead: VecDeque::new(),
            complete: false,
            stretches: VecDeque::new(),
            first_stretch: 0,
            next_stretch: 0,
            bytes_ahead: 0,
            current: Current::default(),
        })
    }

    pub(super) fn view(&self) -> View {
        View { cached: self.is_short(), ..self.moment.view }
    }

    /// Whether the scan has not come far.
    fn is_short(&self) -> bool {
        self.read <= SHORT_RECORDS
    }

    /// How many records may be ahead of the caller: about as many as he has taken.
    fn window(&self) -> usize {
        let most = self.read.clamp(FIRST_AHEAD_RECORDS, LOOK_AHEAD_RECORDS);
        most.min(usize::try_from(self.wanted).unwrap_or(usize::MAX))
    }

    /// Whether more keys should be added before the next record is taken.
    pub(super) fn wants_more(&self) -> bool {
        !self.complete && self.ahead.len() < self.window().div_ceil(2) && self.bytes_ahead < LOOK_AHEAD_BYTES
    }

    /// How many keys should be added, if any.
    pub(super) fn room(&self) -> usize {
        self.window() - self.ahead.len()
    }

    pub(super) fn add_no_more(&mut self) {
        self.complete = true;
    }

    /// Adds a key of an ordered table with its records.
    pub(super) fn add_chain(&mut self, key: &[u8], chain: VersionChain) {
        let Some(newest) = chain.newest() else { return };
        let gone = newest.is_delete()
            || (newest.kind == Kind::Put && self.engine.has_expired(&newest.form, &self.moment.view));
        if gone {
            return;
        }
        let from = if self.values { self.source_of(&chain, newest) } else { From::Key };
        self.ahead.push_back(Ahead { key: key.into(), from });
    }

    /// Where the value of a key comes from that an ordered index has.
    fn source_of(&mut self, chain: &VersionChain, newest: &Entry) -> From {
        let view = self.view();
        let candidates: Candidates = chain.candidates(0).collect();
        if candidates.iter().all(|candidate| self.engine.is_cached(candidate.location, &view)) {
            From::Cached(candidates)
        } else if !newest.form.chunked && (newest.kind == Kind::Put || chain.is_one_operand()) {
            self.place(Place { candidate: newest.candidate(), listed: None })
        } else {
            From::Candidates(candidates)
        }
    }

    /// Adds a place that an unordered index has alone under its tag. Records of the `listed` keys are left out.
    pub(super) fn add_place(&mut self, location: Location, listed: Option<Arc<BTreeSet<Vec<u8>>>>) {
        let from = self.place(Place { candidate: Candidate { location, known: None }, listed });
        self.ahead.push_back(Ahead { key: SmallVec::new(), from });
    }

    /// Adds a key that is looked up when its turn comes.
    pub(super) fn add_key(&mut self, key: &[u8]) {
        self.ahead.push_back(Ahead { key: key.into(), from: From::LookUp });
    }

    /// The different keys of the records at some places.
    pub(super) fn keys_at(&self, places: &[Location]) -> Result<BTreeSet<Vec<u8>>> {
        let mut keys = BTreeSet::new();
        for place in places {
            let mut add = |record: &Record<'_>| keys.extend([record.key.to_vec()]);
            self.pinned(|| self.engine.with_record(*place, &mut add))?;
        }
        Ok(keys)
    }

    /// The key of a record that an ordered index has only in part.
    pub(super) fn whole_key(&self, chain: &VersionChain) -> Result<Vec<u8>> {
        let mut key = Vec::new();
        if let Some(entry) = chain.newest() {
            let mut take = |record: &Record<'_>| key.extend_from_slice(record.key);
            self.pinned(|| self.engine.with_record(entry.location, &mut take))?;
        }
        Ok(key)
    }

    /// Makes the next record the current one: `None` at the end, `Some(false)` where there is nothing to be seen.
    pub(super) fn take_next(&mut self) -> Result<Option<bool>> {
        self.give_back();
        self.start_reads(None)?;
        let Some(ahead) = self.ahead.pop_front() else { return Ok(None) };
        self.read += usize::from(!matches!(ahead.from, From::Cached(_)));
        self.current.key.clear();
        self.current.key.extend_from_slice(&ahead.key);
        self.current.value.clear();
        let taken = self.take(ahead);
        // What was read says nothing if the moment had ended.
        self.moment.check()?;
        let seen = taken?;
        self.wanted -= u64::from(seen);
        Ok(Some(seen))
    }

    /// The current record.
    pub(super) fn current(&self) -> (&[u8], &[u8]) {
        let Current { key, value, lent, slot } = &self.current;
        match (lent, &self.reads) {
            (Some(range), Some(reads)) => (key, &reads.bytes(*slot)[range.clone()]),
            _ => (key, value),
        }
    }

    fn take(&mut self, ahead: Ahead) -> Result<bool> {
        let said = match ahead.from {
            From::Key => return Ok(true),
            From::LookUp => Said::LookUp,
            From::Cached(candidates) if self.take_cached(&candidates) => return Ok(true),
            From::Candidates(candidates) | From::Cached(candidates) => {
                let (key, view) = (&ahead.key, self.view());
                let resolved = self.pinned(|| self.engine.resolve(&self.generation, key, &candidates, &view));
                resolved?.map_or(Said::Nothing, Said::Owned)
            }
            From::Copy { bytes, place } => match self.say(&place, &bytes)? {
                Said::Lent(range) => Said::Owned(bytes[range].to_vec()),
                said => said,
            },
            From::Stretch { number, place } => self.take_from_stretch(number, &place)?,
        };
        match said {
            Said::Nothing => return Ok(false),
            Said::Lent(range) => self.current.lent = Some(range),
            Said::Owned(value) => self.current.value = value,
            Said::LookUp => {
                let value = self.engine.get(&self.generation, &self.current.key, &self.view())?;
                let Some(value) = value else { return Ok(false) };
                self.current.value = value;
            }
        }
        Ok(true)
    }

    /// Copies the current key's value out of the cache, if one record there is all of it.
    fn take_cached(&mut self, candidates: &[Candidate]) -> bool {
        let [candidate] = candidates else { return false };
        let (key, view) = (&self.current.key, self.view());
        let found = self.pinned(|| self.engine.cached_alone(candidate, &self.generation, key, &view));
        if let Some(cached) = &found {
            self.current.value.extend_from_slice(cached.value());
        }
        found.is_some()
    }

    fn take_from_stretch(&mut self, number: u64, place: &Place) -> Result<Said> {
        if self.reads_alone() {
            self.read_alone(number)?;
        }
        let at = (number - self.first_stretch) as usize;
        if matches!(self.stretches[at].state, State::Alone(..)) {
            return self.take_alone(at, place);
        }
        let slot = self.wait_for(number)?;
        let stretch = &mut self.stretches[(number - self.first_stretch) as usize];
        stretch.records -= 1;
        let at = place.candidate.location.offset as usize - stretch.start;
        let length = self.engine.read_length(place.candidate.location);
        // Taken out while the current record changes, and put back whatever happens.
        let reads = self.reads.take().expect("a stretch was read");
        let said = self.say(place, &reads.bytes(slot)[at..at + length]);
        self.reads = Some(reads);
        Ok(match said? {
            Said::Lent(range) => {
                self.current.slot = slot;
                Said::Lent(at + range.start..at + range.end)
            }
            said => said,
        })
    }

    /// Whether the caller's thread reads what is next, since a queue would not be worth making.
    fn reads_alone(&self) -> bool {
        let open = || self.stretches.iter().filter(|stretch| matches!(stretch.state, State::Open)).count();
        self.reads.is_none() && self.is_short() && open() <= ALONE_STRETCHES
    }

    /// Reads a stretch, if that was not done yet.
    fn read_alone(&mut self, number: u64) -> Result<()> {
        let stretch = &mut self.stretches[(number - self.first_stretch) as usize];
        if !matches!(stretch.state, State::Open) {
            return Ok(());
        }
        let location = stretch.location();
        let length = stretch.end - stretch.start;
        let mut buffer = AlignedBuffer::new(self.engine.blocks_bytes(location, length));
        let head = self.engine.read_blocks(self.engine.segment_of(location)?, location, length, &mut buffer)?;
        stretch.state = State::Alone(buffer, head);
        self.next_stretch = number + 1;
        Ok(())
    }

    fn take_alone(&mut self, at: usize, place: &Place) -> Result<Said> {
        let stretch = &mut self.stretches[at];
        stretch.records -= 1;
        let start = place.candidate.location.offset as usize - stretch.start;
        let length = self.engine.read_length(place.candidate.location);
        // Taken out while the current record changes, and put back whatever happens.
        let State::Alone(buffer, head) = std::mem::replace(&mut stretch.state, State::Reading) else {
            unreachable!("the caller has looked")
        };
        let bytes = &buffer[head + start..head + start + length];
        let said = match self.say(place, bytes) {
            Ok(Said::Lent(range)) => Ok(Said::Owned(bytes[range].to_vec())),
            said => said,
        };
        self.stretches[at].state = State::Alone(buffer, head);
        said
    }

    /// What the bytes at a place say. A record that is alone under its tag says what the current key is.
    fn say(&mut self, place: &Place, bytes: &[u8]) -> Result<Said> {
        let (table, view) = (self.generation.id, self.view());
        if place.candidate.known.is_none() {
            let record = self.engine.decode(place.candidate.location, bytes)?;
            if place.listed.as_ref().is_some_and(|listed| listed.contains(record.key)) || record.kind == Kind::Delete {
                return Ok(Said::Nothing);
            }
            self.current.key.extend_from_slice(record.key);
        }
        let key = &self.current.key;
        Ok(match self.engine.interpret(table, key, &place.candidate, &view, bytes)? {
            Outcome::Value(Cow::Borrowed(value)) => {
                let start = value.as_ptr().addr() - bytes.as_ptr().addr();
                Said::Lent(start..start + value.len())
            }
            Outcome::Value(Cow::Owned(value)) => Said::Owned(value),
            Outcome::Deleted => Said::Nothing,
            // Of the index's operands only those that are alone are read here.
            Outcome::Operand(operand) if place.candidate.known.is_some() => {
                Said::Owned(self.engine.merged(&self.generation, key, None, &mut vec![operand.into_owned()])?)
            }
            // More has to be read, or the moment sees an older record.
            Outcome::Chunks(..) | Outcome::Operand(_) | Outcome::Unseen => Said::LookUp,
        })
    }

    /// Where a record comes from that lies whole at one place: a stretch that it joins or begins, unless it is still in
    /// memory.
    fn place(&mut self, place: Place) -> From {
        let location = place.candidate.location;
        let length = self.engine.read_length(location);
        if let Some(segment) = self.engine.segments.find(location.segment)
            && !self.engine.is_written(segment, location)
        {
            let mut bytes = Vec::with_capacity(length);
            if self.engine.commit.read_pending(Location { length: length as u32, ..location }, &mut bytes) {
                return From::Copy { bytes, place };
            }
            // It has been written in the meantime.
        }
        let (start, end) = (location.offset as usize, location.offset as usize + length);
        let before = self.bytes_ahead;
        match self.stretches.back_mut().filter(|stretch| stretch.can_take(location.segment, start, end)) {
            Some(stretch) => {
                self.bytes_ahead -= stretch.end - stretch.start;
                (stretch.start, stretch.end) = (stretch.start.min(start), stretch.end.max(end));
                stretch.records += 1;
                self.bytes_ahead += stretch.end - stretch.start;
            }
            None => {
                let state = State::Open;
                self.stretches.push_back(Stretch { segment: location.segment, start, end, records: 1, state });
                self.bytes_ahead = before + (end - start);
            }
        }
        From::Stretch { number: self.first_stretch + self.stretches.len() as u64 - 1, place }
    }

    /// Gives stretches to the device while it has room. The last one waits for more records, unless no more are coming or it
    /// is awaited.
    fn start_reads(&mut self, awaited: Option<u64>) -> Result<()> {
        if self.reads_alone() {
            return Ok(());
        }
        loop {
            let at = (self.next_stretch - self.first_stretch) as usize;
            let is_awaited = awaited == Some(self.next_stretch);
            let may_grow = self.wants_more() && at + 1 == self.stretches.len() && !is_awaited;
            let Some(stretch) = self.stretches.get(at).filter(|_| !may_grow) else { return Ok(()) };
            let segment = self.engine.segment_of(stretch.location())?;
            let reads = match &mut self.reads {
                Some(reads) => reads,
                None => self.reads.insert(new_reads(&self.engine)?),
            };
            if !reads.has_room() {
                return Ok(());
            }
            reads.push(&segment.file, stretch.start as u64, stretch.end - stretch.start, self.next_stretch);
            self.stretches[at].state = State::Reading;
            self.next_stretch += 1;
        }
    }

    /// The slot in which a stretch lies, once it has been read.
    fn wait_for(&mut self, number: u64) -> Result<u32> {
        loop {
            match &self.stretches[(number - self.first_stretch) as usize].state {
                State::Here(slot) => return Ok(*slot),
                State::Failed(error) => return Err(error.clone()),
                State::Open | State::Reading => self.start_reads(Some(number))?,
                State::Alone(..) => unreachable!("it is taken without waiting"),
            }
            let reads = self.reads.as_mut().expect("something is being read");
            let polled = reads.poll(true).map_err(|e| Error::io("read from", &self.engine.root, &e))?;
            let Done { slot, token, outcome } = polled.expect("what is waited for is being read");
            let stretch = &mut self.stretches[(token - self.first_stretch) as usize];
            stretch.state = match outcome {
                Ok(()) => State::Here(slot),
                Err(e) => {
                    reads.release(slot);
                    State::Failed(Error::io("read", self.engine.segments.path(stretch.segment), &e))
                }
            };
        }
    }

    /// Ends the claim on the current record, and on the stretches that have been taken whole.
    fn give_back(&mut self) {
        self.current.lent = None;
        while let Some(stretch) = self.stretches.front().filter(|stretch| stretch.records == 0) {
            match stretch.state {
                State::Here(slot) => self.reads.as_mut().expect("it was read").release(slot),
                State::Failed(_) | State::Alone(..) => {}
                State::Open | State::Reading => return,
            }
            self.bytes_ahead -= stretch.end - stretch.start;
            self.stretches.pop_front();
            self.first_stretch += 1;
        }
    }

    fn pinned<T>(&self, read: impl FnOnce() -> T) -> T {
        let _pin = self.engine.epochs.pin();
        read()
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

fn new_reads<D: Device>(engine: &Arc<Handle<D>>) -> Result<Reads<D::Queue>> {
    let queue = engine.device.queue(DEPTH).map_err(|e| Error::io("make a read queue for", &engine.root, &e))?;
    Ok(Reads::new(queue, DEPTH, BUFFER_BYTES, engine.block_bytes))
}
