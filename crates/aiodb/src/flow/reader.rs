//! Hundreds of gets in flight from one thread.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::flow::get::{BegunGet, GetSteps, Next};
use crate::flow::lifecycle::Handle;
use crate::index::runs::lookup::AwaitedBytes;
use crate::io::reads::{Done, Reads};
use crate::io::{Device, MAX_QUEUE_DEPTH, Notifications};
use crate::store::catalog::TableSlot;
use crate::store::engine::Engine;
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

/// A get in flight.
struct Get<D: Device> {
    token: u64,
    steps: GetSteps<D>,
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
        let reads = Reads::new(queue, depth, BUFFER_BYTES, engine.block_bytes).counted_in(&engine.memory.accounts);
        let reads = reads.timed(move || device.clock_ns(), waits);
        let gets = (0..depth).map(|_| Get { token: 0, steps: GetSteps::default() }).collect();
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
            None => {
                let generation = table.generation()?;
                let view = generation.view();
                (generation, view)
            }
        };
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        let number = *self.free.last().expect("a get is submitted only where there is room");
        self.gets[number as usize].steps.begin(&self.engine, generation, view, key)?;
        let number = self.take_place(token);
        self.proceed(number);
        Ok(())
    }

    /// Goes on with a get that was begun without a reader. Panics if there is no room.
    pub(crate) fn adopt(&mut self, begun: BegunGet<D>, token: u64) {
        self.give_back();
        let number = *self.free.last().expect("a get is adopted only where there is room");
        begun.hand_over(&mut self.gets[number as usize].steps);
        let number = self.take_place(token);
        self.read(number);
    }

    /// Takes the last free place, where a get has begun.
    fn take_place(&mut self, token: u64) -> u32 {
        let number = self.free.pop().expect("its place is free");
        self.gets[number as usize].token = token;
        number
    }

    /// The next answer, in order of completion; waits for one. `None` when nothing is in flight.
    pub fn poll(&mut self) -> Result<Option<Got<'_>>> {
        self.next_answer(true)
    }

    /// The next answer that is there without a wait. `None` when there is none now: then all reads are on their way.
    pub(crate) fn poll_at_once(&mut self) -> Result<Option<Got<'_>>> {
        self.next_answer(false)
    }

    /// Tells when [`Reader::poll_at_once`] may return something after it has returned nothing. False if the device cannot do that.
    pub(crate) fn notify(&mut self, notifications: &Notifications) -> Result<bool> {
        self.reads
            .notify(notifications)
            .map_err(|e| Error::io("wait without a thread for reads from", &self.engine.root, &e))
    }

    fn next_answer(&mut self, may_wait: bool) -> Result<Option<Got<'_>>> {
        self.give_back();
        loop {
            // Answers from the cache must not make those of the device wait for ever.
            let look = self.answered.is_empty() || self.streak >= MAX_STREAK;
            if let Some(number) = self.answered.pop_front_if(|_| !look) {
                self.streak += 1;
                self.held = Some(Held { get: number, slot: None });
                let seen = self.snapshot.as_ref().map_or(Ok(()), |snapshot| snapshot.moment.check());
                let Get { token, steps } = &mut self.gets[number as usize];
                let answer = steps.answer.take().expect("an answered get has its answer");
                let value = seen.and(answer).map(|answer| steps.value_of(answer));
                return Ok(Some(Got { token: *token, value }));
            }
            self.streak = 0;
            let is_last = self.answered.is_empty();
            let polled = self.reads.poll(is_last && may_wait);
            let polled = polled.map_err(|e| Error::io("read from", &self.engine.root, &e))?;
            let Some(Done { slot, token, outcome }) = polled else {
                if is_last {
                    return Ok(None);
                }
                continue;
            };
            let number = token as u32;
            let get = &mut self.gets[number as usize].steps;
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
                    let get = &mut self.gets[number as usize].steps;
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
                    self.gets[number as usize].steps.answer = Some(Err(error));
                    self.is_answered(number);
                }
            }
        }
    }

    /// Starts the get's next read; answers it if none is needed.
    fn proceed(&mut self, number: u32) {
        if self.gets[number as usize].steps.advance(&self.engine) {
            self.is_answered(number);
        } else {
            self.read(number);
        }
    }

    /// Starts the read that a get waits for.
    fn read(&mut self, number: u32) {
        let get = &self.gets[number as usize].steps;
        let AwaitedBytes { file, offset, length } = get.awaited(&self.engine);
        self.reads.push(file, offset, length, u64::from(number));
    }

    fn is_answered(&mut self, number: u32) {
        self.give_back_guard(number);
        self.answered.push_back(number);
    }

    /// Gives back the guard of a get that has its answer: it holds up no segment, however late it is polled.
    fn give_back_guard(&mut self, number: u32) {
        if let Some(guard) = self.gets[number as usize].steps.guard.take() {
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
        self.gets[held.get as usize].steps.release();
    }
}

impl<D: Device> Drop for Reader<D> {
    fn drop(&mut self) {
        for number in 0..self.gets.len() as u32 {
            self.give_back_guard(number);
        }
    }
}
