//! Hundreds of gets in flight from one thread.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use crate::cache::Cached;
use crate::flow::lifecycle::Handle;
use crate::flow::read::Outcome;
use crate::format::location::Location;
use crate::format::record::Chunk;
use crate::index::ordered::look_up::PausedLookUp;
use crate::index::runs::lookup::AwaitedBytes;
use crate::index::snapshots::View;
use crate::index::{Candidate, Candidates};
use crate::io::reads::{Done, Reads};
use crate::io::{Device, MAX_QUEUE_DEPTH};
use crate::store::catalog::{Generation, TableSlot};
use crate::store::engine::Engine;
use crate::store::epochs::OwnedEpochGuard;
use crate::store::read_path::ReadPath;
use crate::{Error, Result, Snapshot};

/// A read up to this length uses a buffer that was registered with the device; longer ones allocate.
const BUFFER_BYTES: usize = 8 << 10;

/// After so many answers in a row that needed no device, the device is asked for finished reads.
const MAX_STREAK: u32 = 16;

/// Keeps up to `depth` gets in flight from one thread, each with at most one device read at a time: of the value, and before that
/// of blocks of sorted runs, where the table is of kind `lsm` and the cache does not have them.
///
/// ```no_run
/// # fn main() -> aiodb::Result<()> {
/// # let db = aiodb::Db::open("store", aiodb::Options::default())?;
/// # let (table, keys) = (db.table("default")?, vec![vec![1u8]]);
/// let mut reader = table.reader(64)?;
/// let mut keys = keys.iter().enumerate();
/// loop {
///     while reader.has_room() {
///         let Some((token, key)) = keys.next() else { break };
///         reader.submit(key, token as u64)?;
///     }
///     let Some(got) = reader.poll()? else { break };
///     println!("get {}: {:?}", got.token, got.value?);
/// }
/// # Ok(()) }
/// ```
pub struct Reader<D: Device> {
    engine: Arc<Engine<D>>,
    /// Holds the store open for a reader of a user's; a reader of the store's own must not.
    _handle: Option<Arc<Handle<D>>>,
    table: Arc<TableSlot>,
    reads: Reads<D::Queue>,
    gets: Vec<Get<D>>,
    free: Vec<u32>,
    /// Gets that are answered without the device, or whose last read is in, the first one first: the bytes of a cached
    /// value come closer to the processor meanwhile.
    answered: VecDeque<u32>,
    /// Answers given since the device was last looked at.
    streak: u32,
    /// The memory of the last answer: given back at the next call.
    held: Option<Held>,
    /// Reads as of its moment.
    snapshot: Option<Snapshot<D>>,
}

/// The answer to one submitted get. The value lies in the reader's buffer until the next call on the reader.
#[derive(Debug)]
pub struct Got<'a> {
    /// The token given to [`Reader::submit`].
    pub token: u64,
    /// The value, `None` if the key is absent, or the error of this get alone.
    pub value: Result<Option<&'a [u8]>>,
}

struct Held {
    get: u32,
    slot: Option<u32>,
}

/// One get in flight. Its parts reuse their memory from one get to the next.
struct Get<D: Device> {
    token: u64,
    generation: Option<Arc<Generation>>,
    view: View,
    key: Vec<u8>,
    /// Until the answer is known: it lies in memory of the reader's own, or of the cache's.
    guard: Option<OwnedEpochGuard>,
    /// The look-up, while it waits for a block of a run.
    look_up: Option<Box<PausedLookUp<D>>>,
    candidates: Candidates,
    next_candidate: usize,
    /// The chunk being read, when the value lies in chunks.
    chunks: Vec<Chunk>,
    next_chunk: usize,
    /// The operands to be applied to the value, newest first.
    operands: Vec<Vec<u8>>,
    value: Vec<u8>,
    cached: Option<Cached>,
    answer: Option<Result<Answer>>,
}

/// Where an answer's value lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Absent,
    /// In `Get::value`.
    Copied,
    /// In `Get::cached`.
    Cached,
}

/// What to do with bytes that have arrived.
enum Next {
    /// These of the bytes are the value.
    Value(std::ops::Range<usize>),
    /// Read further, or answer from the get's own memory.
    Continue,
}

impl<D: Device> Reader<D> {
    pub(crate) fn new(handle: Arc<Handle<D>>, table: Arc<TableSlot>, depth: usize) -> Result<Reader<D>> {
        let mut reader = Reader::of_engine(Arc::clone(&handle.engine), table, depth)?;
        reader._handle = Some(handle);
        Ok(reader)
    }

    /// A reader that does not hold the store open.
    pub(crate) fn of_engine(engine: Arc<Engine<D>>, table: Arc<TableSlot>, depth: usize) -> Result<Reader<D>> {
        if !(1..=MAX_QUEUE_DEPTH).contains(&depth) {
            return Err(Error::Option { option: "depth", value: depth.to_string(), allowed: "1 to 4096" });
        }
        let queue = engine.device.queue(depth).map_err(|e| Error::io("make a read queue for", &engine.root, &e))?;
        let (device, waits) = (engine.device.clone(), Arc::clone(&engine.meters.reader_read_wait));
        let reads = Reads::new(queue, depth, BUFFER_BYTES, engine.block_bytes).timed(move || device.clock_ns(), waits);
        let gets = (0..depth).map(|_| Get::default()).collect();
        let free = (0..depth as u32).rev().collect();
        let answered = VecDeque::with_capacity(depth);
        Ok(Reader { engine, _handle: None, table, reads, gets, free, answered, streak: 0, held: None, snapshot: None })
    }

    /// The same reader on a snapshot.
    pub(crate) fn at(mut self, snapshot: Snapshot<D>) -> Reader<D> {
        self.snapshot = Some(snapshot);
        self
    }

    /// Gets submitted and not yet returned by [`Reader::poll`].
    pub fn in_flight(&self) -> usize {
        self.gets.len() - self.free.len() - usize::from(self.held.is_some())
    }

    /// Whether another get can be submitted.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty() || self.held.is_some()
    }

    /// Starts a get; `token` comes back with its answer. Panics if there is no room. An error concerns this get, which
    /// has not been started.
    pub fn submit(&mut self, key: &[u8], token: u64) -> Result<()> {
        self.submit_in(&Arc::clone(&self.table), key, token)
    }

    /// [`Reader::submit`] in any table of the store.
    pub(crate) fn submit_in(&mut self, table: &Arc<TableSlot>, key: &[u8], token: u64) -> Result<()> {
        self.give_back();
        let (generation, view) = match &self.snapshot {
            Some(snapshot) => (snapshot.generation_of(table)?, snapshot.moment.view),
            None => (table.generation()?, View::LATEST),
        };
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        let number = *self.free.last().expect("a get is submitted only where there is room");
        let get = &mut self.gets[number as usize];
        // The guard comes before the look-up: records that this finds stay readable until the answer is known.
        let guard = self.engine.epochs.pin();
        get.look_up = self.engine.begin_lookup(&generation, key, &view, &mut get.candidates)?;
        get.guard = Some(guard.into_owned());
        self.free.pop();
        (get.token, get.generation, get.view) = (token, Some(generation), view);
        (get.next_candidate, get.answer) = (0, None);
        get.operands.clear();
        get.key.clear();
        get.key.extend_from_slice(key);
        get.chunks.clear();
        self.proceed(number);
        Ok(())
    }

    /// The next answer, in order of completion; waits for one. `None` when nothing is in flight.
    pub fn poll(&mut self) -> Result<Option<Got<'_>>> {
        self.give_back();
        loop {
            // Answers from the cache must not make those of the device wait for ever.
            let look = self.answered.is_empty() || self.streak >= MAX_STREAK;
            if let Some(number) = self.answered.pop_front_if(|_| !look) {
                self.streak += 1;
                self.held = Some(Held { get: number, slot: None });
                let seen = self.snapshot.as_ref().map_or(Ok(()), |snapshot| snapshot.moment.check());
                return Ok(Some(self.gets[number as usize].got(seen)));
            }
            self.streak = 0;
            let wait = self.answered.is_empty();
            let polled = self.reads.poll(wait).map_err(|e| Error::io("read from", &self.engine.root, &e))?;
            let Some(Done { slot, token, outcome }) = polled else {
                if wait {
                    return Ok(None);
                }
                continue;
            };
            let number = token as u32;
            let get = &mut self.gets[number as usize];
            let next = match outcome {
                Ok(()) => get.take_in(&self.engine, self.reads.bytes(slot)),
                Err(e) => Err(get.read_error(&self.engine, &e)),
            };
            match next {
                Ok(Next::Value(range)) if self.snapshot.is_none() => {
                    self.give_back_guard(number);
                    self.held = Some(Held { get: number, slot: Some(slot) });
                    let value = Ok(Some(&self.reads.bytes(slot)[range]));
                    return Ok(Some(Got { token: self.gets[number as usize].token, value }));
                }
                Ok(Next::Value(range)) => {
                    let get = &mut self.gets[number as usize];
                    get.take_over(&self.reads.bytes(slot)[range]);
                    self.reads.release(slot);
                    self.is_answered(number);
                }
                Ok(Next::Continue) => {
                    self.reads.release(slot);
                    self.proceed(number);
                }
                Err(error) => {
                    self.reads.release(slot);
                    self.answer(number, Err(error));
                }
            }
        }
    }

    /// Starts the get's next read; answers it if none is needed.
    fn proceed(&mut self, number: u32) {
        loop {
            let get = &mut self.gets[number as usize];
            if get.answer.is_some() {
                return self.is_answered(number);
            }
            if let Some(look_up) = &get.look_up {
                let AwaitedBytes { file, offset, length } = look_up.awaited();
                return self.reads.push(file, offset, length, u64::from(number));
            }
            if get.is_complete() {
                let answer = get.finish(&self.engine);
                return self.answer(number, answer);
            }
            match get.take_inline(&self.engine) {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => return self.answer(number, Err(error)),
            }
            let location = get.location();
            let segment = match self.engine.segment_of(location) {
                Ok(segment) => segment,
                Err(error) => return self.answer(number, Err(error)),
            };
            if get.take_cached(&self.engine) {
                continue;
            }
            let length = self.engine.read_length(location);
            if !self.engine.is_written(segment, location) {
                let mut copy = Vec::with_capacity(length);
                let wanted = Location { length: length as u32, ..location };
                if self.engine.commit.read_pending(wanted, &mut copy) {
                    match get.take_in(&self.engine, &copy) {
                        Ok(Next::Value(range)) => get.take_over(&copy[range]),
                        Ok(Next::Continue) => {}
                        Err(error) => get.answer = Some(Err(error)),
                    }
                    continue;
                }
                // It has been written in the meantime.
            }
            return self.reads.push(&segment.file, u64::from(location.offset), length, u64::from(number));
        }
    }

    fn answer(&mut self, number: u32, answer: Result<Answer>) {
        self.gets[number as usize].answer = Some(answer);
        self.is_answered(number);
    }

    fn is_answered(&mut self, number: u32) {
        self.give_back_guard(number);
        self.answered.push_back(number);
    }

    /// Gives back the guard of a get that has its answer: it holds up no segment, however late it is polled.
    fn give_back_guard(&mut self, number: u32) {
        if let Some(guard) = self.gets[number as usize].guard.take() {
            self.engine.epochs.give_back(guard);
        }
    }

    /// Ends the claim on the last answer's buffer.
    fn give_back(&mut self) {
        let Some(held) = self.held.take() else { return };
        if let Some(slot) = held.slot {
            self.reads.release(slot);
        }
        self.free.push(held.get);
        self.gets[held.get as usize].cached = None;
    }
}

impl<D: Device> Drop for Reader<D> {
    fn drop(&mut self) {
        for number in 0..self.gets.len() as u32 {
            self.give_back_guard(number);
        }
    }
}

impl<D: Device> Default for Get<D> {
    fn default() -> Get<D> {
        Get {
            token: 0,
            generation: None,
            view: View::LATEST,
            key: Vec::new(),
            guard: None,
            look_up: None,
            candidates: Candidates::new(),
            next_candidate: 0,
            chunks: Vec::new(),
            next_chunk: 0,
            operands: Vec::new(),
            value: Vec::new(),
            cached: None,
            answer: None,
        }
    }
}

impl<D: Device> Get<D> {
    /// The answer, which has been found; `seen` says whether it counts.
    fn got(&mut self, seen: Result<()>) -> Got<'_> {
        let answer = self.answer.take().expect("an answered get has its answer");
        let value = seen.and(answer).map(|answer| match answer {
            Answer::Absent => None,
            Answer::Copied => Some(&self.value[..]),
            Answer::Cached => self.cached.as_ref().map(Cached::value),
        });
        Got { token: self.token, value }
    }

    fn is_complete(&self) -> bool {
        if self.chunks.is_empty() {
            self.next_candidate == self.candidates.len()
        } else {
            self.next_chunk == self.chunks.len()
        }
    }

    /// The location that is to be read next, or is being read.
    fn location(&self) -> Location {
        if self.chunks.is_empty() {
            self.candidates[self.next_candidate].location
        } else {
            self.chunks[self.next_chunk].location
        }
    }

    /// Goes on with the next candidate's value, if the index has it.
    fn take_inline(&mut self, engine: &ReadPath<D>) -> Result<bool> {
        if !self.chunks.is_empty() || !self.candidates[self.next_candidate].is_inline() {
            return Ok(false);
        }
        let candidate = self.candidates[self.next_candidate].clone();
        let Some(outcome) = engine.interpret_inline(&candidate, &self.view)? else { return Ok(false) };
        self.take_outcome(engine, outcome)?;
        Ok(true)
    }

    /// Goes on with the cached entry of the next candidate, if there is one: a value is the answer.
    fn take_cached(&mut self, engine: &ReadPath<D>) -> bool {
        if !self.chunks.is_empty() {
            return false;
        }
        let generation = self.generation.as_ref().expect("a started get has its table");
        let candidate = &self.candidates[self.next_candidate];
        if let Some(operand) = engine.cached_operand(candidate, generation.id, &self.key, &self.view) {
            self.operands.push(operand.value().to_vec());
            self.next_candidate += 1;
            return true;
        }
        let Some(cached) = engine.cached(candidate, generation.id, &self.key, &self.view) else { return false };
        if self.operands.is_empty() {
            cached.prefetch();
            self.cached = Some(cached);
            self.answer = Some(Ok(Answer::Cached));
        } else {
            self.take_over(cached.value());
            self.answer = Some(self.finish_over(engine, true));
        }
        true
    }

    /// The error of a read that failed.
    fn read_error(&mut self, engine: &ReadPath<D>, error: &io::Error) -> Error {
        match self.look_up.take() {
            Some(look_up) => look_up.read_error(error),
            None => Error::io("read", engine.segments.path(self.location().segment), error),
        }
    }

    /// Takes in the bytes that were read: those at [`Get::location`], or the block that its look-up waits for.
    fn take_in(&mut self, engine: &ReadPath<D>, bytes: &[u8]) -> Result<Next> {
        if let Some(look_up) = self.look_up.take() {
            let generation = self.generation.as_ref().expect("a started get has its table");
            self.look_up = engine.resume_lookup(generation, look_up, bytes, &self.view, &mut self.candidates)?;
            return Ok(Next::Continue);
        }
        if let Some(chunk) = self.chunks.get(self.next_chunk) {
            engine.check_chunk(chunk, bytes)?;
            self.value.extend_from_slice(bytes);
            self.next_chunk += 1;
            return Ok(Next::Continue);
        }
        let candidate: Candidate = self.candidates[self.next_candidate].clone();
        let generation = self.generation.as_ref().expect("a started get has its table");
        match engine.interpret(generation.id, &self.key, &candidate, &self.view, bytes)? {
            Outcome::Value(Cow::Borrowed(value)) if self.operands.is_empty() => {
                let start = value.as_ptr().addr() - bytes.as_ptr().addr();
                Ok(Next::Value(start..start + value.len()))
            }
            outcome => self.take_outcome(engine, outcome).map(|()| Next::Continue),
        }
    }

    /// Takes in what the next candidate says.
    fn take_outcome(&mut self, engine: &ReadPath<D>, outcome: Outcome<'_>) -> Result<()> {
        match outcome {
            Outcome::Value(value) => {
                self.take_over(&value);
                self.answer = Some(self.finish_over(engine, true));
            }
            Outcome::Chunks(length, chunks) => {
                self.value.clear();
                self.value.reserve(length as usize);
                (self.chunks, self.next_chunk) = (chunks, 0);
            }
            Outcome::Deleted => self.next_candidate = self.candidates.len(),
            Outcome::Operand(operand) => {
                self.operands.push(operand.into_owned());
                self.next_candidate += 1;
            }
            Outcome::Unseen => self.next_candidate += 1,
        }
        Ok(())
    }

    /// Takes a value over into the get's own memory, as its answer.
    fn take_over(&mut self, value: &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(value);
        self.answer = Some(Ok(Answer::Copied));
    }

    /// The answer when nothing is left to be read.
    fn finish(&mut self, engine: &ReadPath<D>) -> Result<Answer> {
        self.finish_over(engine, !self.chunks.is_empty())
    }

    /// Applies the operands to [`Get::value`], if that is there.
    fn finish_over(&mut self, engine: &ReadPath<D>, found: bool) -> Result<Answer> {
        if self.operands.is_empty() {
            return Ok(if found { Answer::Copied } else { Answer::Absent });
        }
        let generation = self.generation.as_ref().expect("a started get has its table");
        let base = found.then_some(&self.value[..]);
        self.value = engine.merged(generation, &self.key, base, &mut self.operands)?;
        Ok(Answer::Copied)
    }
}
