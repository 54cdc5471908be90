//! One get as steps between reads of the device: a [`Reader`](crate::flow::reader::Reader) carries these out for many gets side by
//! side, and a future takes the steps before the first of them with the thread that polls it.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use crate::cache::Cached;
use crate::flow::paused::Paused;
use crate::flow::read::Outcome;
use crate::format::location::Location;
use crate::format::record::Chunk;
use crate::index::runs::lookup::AwaitedBytes;
use crate::index::snapshots::View;
use crate::index::{Candidate, Candidates};
use crate::io::Device;
use crate::store::catalog::Generation;
use crate::store::engine::Engine;
use crate::store::epochs::OwnedEpochGuard;
use crate::store::read_path::ReadPath;
use crate::{Error, Result};

/// One get on its way. Its parts reuse their memory from one get to the next.
pub(crate) struct GetSteps<D: Device> {
    generation: Option<Arc<Generation>>,
    view: View,
    key: Vec<u8>,
    /// Until the answer is known: it lies in memory of the get's own, or of the cache's. The owner gives it back.
    pub(crate) guard: Option<OwnedEpochGuard>,
    /// The look-up, while it waits for a block of a run.
    look_up: Option<Paused<D>>,
    /// How many batches there were that change a key more than once when the look-up began.
    again: u64,
    candidates: Candidates,
    next_candidate: usize,
    /// The chunk being read, when the value lies in chunks.
    chunks: Vec<Chunk>,
    next_chunk: usize,
    /// The operands to be applied to the value, newest first.
    operands: Vec<Vec<u8>>,
    value: Vec<u8>,
    cached: Option<Cached>,
    /// Once it is known.
    pub(crate) answer: Option<Result<Answer>>,
}

/// Where an answer's value lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Absent,
    /// In [`GetSteps::value`].
    Copied,
    /// In [`GetSteps::cached`].
    Cached,
}

/// What to do with bytes that have arrived.
pub(crate) enum Next {
    /// These of the bytes are the value.
    Value(std::ops::Range<usize>),
    /// Read further, or answer from the get's own memory.
    Continue,
}

impl<D: Device> Default for GetSteps<D> {
    fn default() -> GetSteps<D> {
        GetSteps {
            generation: None,
            view: View::LATEST,
            key: Vec::new(),
            guard: None,
            look_up: None,
            again: 0,
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

impl<D: Device> GetSteps<D> {
    /// Looks a key up as a view sees it. After an error nothing has begun.
    pub(crate) fn begin(
        &mut self,
        engine: &ReadPath<D>,
        generation: Arc<Generation>,
        view: View,
        key: &[u8],
    ) -> Result<()> {
        // The guard comes before the look-up: records that this finds stay readable until the answer is known.
        let guard = engine.epochs.pin();
        self.look_up = loop {
            self.again = engine.groups.again();
            let look_up = engine.begin_lookup(&generation, key, &view, &mut self.candidates)?;
            // A look-up that goes on later is asked for then.
            if look_up.is_some() || !engine.wait_for_groups(&generation, key, &view, self.again) {
                break look_up;
            }
        };
        self.guard = Some(guard.into_owned());
        (self.generation, self.view) = (Some(generation), view);
        (self.next_candidate, self.answer) = (0, None);
        self.operands.clear();
        self.key.clear();
        self.key.extend_from_slice(key);
        self.chunks.clear();
        Ok(())
    }

    /// Goes on until the answer is known, or the device must be read: then [`GetSteps::awaited`] says where. True for an answer.
    pub(crate) fn advance(&mut self, engine: &ReadPath<D>) -> bool {
        while self.answer.is_none() && self.look_up.is_none() {
            match self.step(engine) {
                Ok(true) => {}
                Ok(false) => return false,
                Err(error) => self.answer = Some(Err(error)),
            }
        }
        self.answer.is_some()
    }

    /// A step that needs no device. False if there is none.
    fn step(&mut self, engine: &ReadPath<D>) -> Result<bool> {
        if self.is_complete() {
            self.answer = Some(self.finish(engine));
            return Ok(true);
        }
        if self.take_inline(engine)? {
            return Ok(true);
        }
        let location = self.location();
        let segment = engine.segment_of(location)?;
        if self.take_cached(engine) {
            return Ok(true);
        }
        if engine.is_written(segment, location) {
            return Ok(false);
        }
        let length = engine.read_length(location);
        let mut copy = Vec::with_capacity(length);
        if !engine.commit.read_pending(Location { length: length as u32, ..location }, &mut copy) {
            // It has been written in the meantime.
            return Ok(false);
        }
        if let Next::Value(range) = self.take_in(engine, &copy)? {
            self.take_over(&copy[range]);
        }
        Ok(true)
    }

    /// Where the bytes lie that [`GetSteps::advance`] has stopped for.
    pub(crate) fn awaited<'a>(&'a self, engine: &'a ReadPath<D>) -> AwaitedBytes<'a, D> {
        if let Some(look_up) = &self.look_up {
            return look_up.awaited();
        }
        let location = self.location();
        let file = &engine.segments.get(location.segment).file;
        AwaitedBytes { file, offset: u64::from(location.offset), length: engine.read_length(location) }
    }

    /// The value of an answer, which has been found.
    pub(crate) fn value_of(&self, answer: Answer) -> Option<&[u8]> {
        match answer {
            Answer::Absent => None,
            Answer::Copied => Some(&self.value),
            Answer::Cached => self.cached.as_ref().map(Cached::value),
        }
    }

    /// Ends the claim of the answer on the cache.
    pub(crate) fn release(&mut self) {
        self.cached = None;
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
        let generation = self.generation.as_ref().expect("a get that has begun has its table");
        let candidate = &self.candidates[self.next_candidate];
        if let Some(operand) = engine.cached_operand(candidate, generation, &self.key, &self.view) {
            self.operands.push(operand.value().to_vec());
            self.next_candidate += 1;
            return true;
        }
        let Some(cached) = engine.cached(candidate, generation, &self.key, &self.view) else { return false };
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
    pub(crate) fn read_error(&mut self, engine: &ReadPath<D>, error: &io::Error) -> Error {
        match self.look_up.take() {
            Some(look_up) => look_up.read_error(error),
            None => Error::io("read", engine.segments.path(self.location().segment), error),
        }
    }

    /// Takes in the bytes that were read: those at [`GetSteps::location`], or the block that its look-up waits for.
    pub(crate) fn take_in(&mut self, engine: &ReadPath<D>, bytes: &[u8]) -> Result<Next> {
        if let Some(look_up) = self.look_up.take() {
            let generation = self.generation.as_ref().expect("a get that has begun has its table");
            self.look_up = engine.resume_lookup(generation, look_up, bytes, &self.view, &mut self.candidates)?;
            while self.look_up.is_none() && engine.wait_for_groups(generation, &self.key, &self.view, self.again) {
                self.again = engine.groups.again();
                self.look_up = engine.begin_lookup(generation, &self.key, &self.view, &mut self.candidates)?;
            }
            return Ok(Next::Continue);
        }
        if let Some(chunk) = self.chunks.get(self.next_chunk) {
            engine.check_chunk(chunk, bytes)?;
            self.value.extend_from_slice(bytes);
            self.next_chunk += 1;
            return Ok(Next::Continue);
        }
        let candidate: Candidate = self.candidates[self.next_candidate].clone();
        let generation = self.generation.as_ref().expect("a get that has begun has its table");
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
    pub(crate) fn take_over(&mut self, value: &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(value);
        self.answer = Some(Ok(Answer::Copied));
    }

    /// The answer when nothing is left to be read.
    fn finish(&mut self, engine: &ReadPath<D>) -> Result<Answer> {
        self.finish_over(engine, !self.chunks.is_empty())
    }

    /// Applies the operands to [`GetSteps::value`], if that is there.
    fn finish_over(&mut self, engine: &ReadPath<D>, found: bool) -> Result<Answer> {
        if self.operands.is_empty() {
            return Ok(if found { Answer::Copied } else { Answer::Absent });
        }
        let generation = self.generation.as_ref().expect("a get that has begun has its table");
        let base = found.then_some(&self.value[..]);
        self.value = engine.merged(generation, &self.key, base, &mut self.operands)?;
        Ok(Answer::Copied)
    }
}

/// What a get that was begun without a reader has come to.
pub(crate) enum Begun<D: Device> {
    Value(Option<Vec<u8>>),
    NeedsDevice(Box<BegunGet<D>>),
}

/// A get that was begun without a reader, and needs the device. Dropped, it is given up.
pub(crate) struct BegunGet<D: Device> {
    engine: Arc<Engine<D>>,
    steps: GetSteps<D>,
}

impl<D: Device> BegunGet<D> {
    /// Takes the steps of a get before the first read of the device.
    pub(crate) fn begin(engine: &Arc<Engine<D>>, generation: Arc<Generation>, key: &[u8]) -> Result<Begun<D>> {
        let mut begun = Box::new(BegunGet { engine: Arc::clone(engine), steps: GetSteps::default() });
        let view = generation.view();
        begun.steps.begin(engine, generation, view, key)?;
        if !begun.steps.advance(engine) {
            return Ok(Begun::NeedsDevice(begun));
        }
        let answer = begun.steps.answer.take().expect("it has come to an answer")?;
        Ok(Begun::Value(match answer {
            Answer::Copied => Some(std::mem::take(&mut begun.steps.value)),
            answer => begun.steps.value_of(answer).map(<[u8]>::to_vec),
        }))
    }

    /// Exchanges the steps for those of a reader's free place.
    pub(crate) fn hand_over(mut self, place: &mut GetSteps<D>) {
        std::mem::swap(&mut self.steps, place);
    }
}

impl<D: Device> Drop for BegunGet<D> {
    fn drop(&mut self) {
        if let Some(guard) = self.steps.guard.take() {
            self.engine.epochs.give_back(guard);
        }
    }
}
