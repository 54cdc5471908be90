//! The two threads that work for futures.

use std::sync::Arc;

use crate::flow::batch::AppendedBatch;
use crate::flow::futures::requests::{Reply, Requests};
use crate::flow::futures::{Futures, Get, Work, Write};
use crate::flow::get::{Begun, BegunGet};
use crate::flow::reader::Reader;
use crate::flow::room::frees_much;
use crate::io::{Device, Notifications};
use crate::store::catalog::TableSlot;
use crate::store::engine::Engine;
use crate::store::write_path::WritePath;
use crate::{Error, IndexKind, Result, Sequence};

/// Gets in flight for all futures of a store: enough to keep a device busy.
const GETS_IN_FLIGHT: usize = 128;

/// Writes that are appended before the batch is led. The rest of the queue fills the next one.
const WRITES_AT_ONCE: usize = 1024;

impl<D: Device> Work<D> for Get<D> {
    const THREAD: &'static str = "aiodb-gets";

    type Answer = Option<Vec<u8>>;

    fn at_once(&mut self, engine: &Arc<Engine<D>>, futures: &Futures<D>) -> Result<Option<Option<Vec<u8>>>> {
        engine.check_open()?;
        let generation = self.slot.generation()?;
        // Pages of LMDB may have to be read in the middle of a look-up.
        if generation.kind() == IndexKind::Lmdb {
            return Ok(None);
        }
        match BegunGet::begin(engine, generation, &self.key)? {
            Begun::Value(value) => Ok(Some(value)),
            Begun::NeedsDevice(begun) => {
                self.is_driven = futures.driven.has_driver();
                // Where many wait, no segment is held up for all of them: those are looked up again.
                self.begun = Some(begun).filter(|_| self.requests(futures).queued() < GETS_IN_FLIGHT);
                Ok(None)
            }
        }
    }

    /// Its claim on the records that it has found: the look-up is made again.
    fn let_go(&mut self) {
        self.begun = None;
    }

    fn requests<'a>(&self, futures: &'a Futures<D>) -> &'a Requests<Get<D>> {
        if self.is_driven { &futures.driven } else { &futures.gets }
    }

    fn requests_of_thread(futures: &Futures<D>) -> &Requests<Get<D>> {
        &futures.gets
    }

    fn drive(engine: Arc<Engine<D>>, futures: &Futures<D>) {
        Gets::new(engine, GETS_IN_FLIGHT, None).work(&futures.gets);
    }
}

/// The gets in flight of futures, and where their answers go. Its owner is a thread, or a driver.
pub(crate) struct Gets<D: Device> {
    engine: Arc<Engine<D>>,
    /// At most so many.
    depth: usize,
    /// Made by the first get, and anew after a failure of its queue.
    reader: Option<Reader<D>>,
    /// Where readers tell of answers, for a driver.
    notifications: Option<Notifications>,
    /// The replies to the gets in flight, by token.
    replies: Vec<Option<Reply<Option<Vec<u8>>>>>,
    free: Vec<u64>,
}

impl<D: Device> Gets<D> {
    pub(crate) fn new(engine: Arc<Engine<D>>, depth: usize, notifications: Option<Notifications>) -> Gets<D> {
        Gets { engine, depth, reader: None, notifications, replies: Vec::new(), free: Vec::new() }
    }

    /// What a thread does. It enters the kernel to wait for the device only while gets are in flight; gets that arrive in the meantime are
    /// submitted after the next completion.
    fn work(&mut self, requests: &Requests<Get<D>>) {
        let mut arrived = Vec::with_capacity(self.depth);
        while requests.take(&mut arrived, self.room(), self.in_flight() == 0) {
            self.start_all(&mut arrived);
            self.finish_one(true);
        }
        // Dropping the reader waits for the device; dropping the replies answers that the store was closed.
    }

    /// What a driver does in its turn: it never waits. False once the store is being closed.
    pub(crate) fn turn(&mut self, requests: &Requests<Get<D>>, arrived: &mut Vec<Get<D>>) -> bool {
        let is_open = requests.take(arrived, self.room(), false);
        self.start_all(arrived);
        while self.finish_one(false) {}
        is_open
    }

    /// Gets whose answers are still to come.
    fn in_flight(&self) -> usize {
        self.replies.len() - self.free.len()
    }

    /// How many more can be started.
    pub(crate) fn room(&self) -> usize {
        self.depth - self.in_flight()
    }

    /// The reader, which is made if there is none.
    fn reader(&mut self, slot: &Arc<TableSlot>) -> Result<&mut Reader<D>> {
        if self.reader.is_none() {
            let mut reader = Reader::of_engine(Arc::clone(&self.engine), Arc::clone(slot), self.depth)?;
            if let Some(notifications) = &self.notifications {
                reader.notify(notifications)?;
            }
            self.reader = Some(reader);
        }
        Ok(self.reader.as_mut().expect("just made"))
    }

    fn start_all(&mut self, arrived: &mut Vec<Get<D>>) {
        arrived.drain(..).filter(|get| get.reply.is_wanted()).for_each(|get| self.start(get));
    }

    fn start(&mut self, mut get: Get<D>) {
        let token = self.free.pop().unwrap_or_else(|| {
            self.replies.push(None);
            self.replies.len() as u64 - 1
        });
        match self.submit(&mut get, token) {
            Ok(()) => self.replies[token as usize] = Some(get.reply),
            Err(error) => {
                self.free.push(token);
                get.reply.give(Err(error));
            }
        }
    }

    fn submit(&mut self, get: &mut Get<D>, token: u64) -> Result<()> {
        let reader = self.reader(&get.slot)?;
        match get.begun.take() {
            Some(begun) => {
                reader.adopt(*begun, token);
                Ok(())
            }
            None => reader.submit_in(&get.slot, &get.key, token),
        }
    }

    /// Passes an answer on, if there is one; `may_wait` says to wait for it if any is under way. False if there was none.
    fn finish_one(&mut self, may_wait: bool) -> bool {
        let Some(reader) = &mut self.reader else { return false };
        let polled = if may_wait { reader.poll() } else { reader.poll_at_once() };
        let (token, value) = match polled {
            Ok(Some(got)) => (got.token, got.value.map(|value| value.map(<[u8]>::to_vec))),
            Ok(None) => return false,
            Err(error) => {
                self.give_up(error);
                return false;
            }
        };
        if reader.in_flight() == 0 {
            // Gives the last answer's buffer back, and with it the claim on its segment: the next get may be far off.
            let _ = reader.poll();
        }
        let reply = self.replies[token as usize].take().expect("every get in flight has a reply");
        self.free.push(token);
        reply.give(value);
        true
    }

    /// Waits for the reads that the device has, and answers all gets in flight with an error.
    pub(crate) fn give_up(&mut self, error: Error) {
        self.reader = None;
        self.free.clear();
        let replies = std::mem::take(&mut self.replies);
        replies.into_iter().flatten().for_each(|reply| reply.give(Err(error.clone())));
    }
}

impl<D: Device> Work<D> for Write<D> {
    const THREAD: &'static str = "aiodb-puts";

    type Answer = Sequence;

    fn at_once(&mut self, engine: &Arc<Engine<D>>, futures: &Futures<D>) -> Result<Option<Sequence>> {
        // Those that wait for the thread go first.
        if !futures.writes.are_done() {
            return Ok(None);
        }
        let written = engine.write_batch_at_once(&self.batch, self.durability);
        written.or_else(|error| engine.check_open().and(Err(error)))
    }

    fn requests<'a>(&self, futures: &'a Futures<D>) -> &'a Requests<Write<D>> {
        &futures.writes
    }

    fn requests_of_thread(futures: &Futures<D>) -> &Requests<Write<D>> {
        &futures.writes
    }

    fn drive(engine: Arc<Engine<D>>, futures: &Futures<D>) {
        let mut arrived = Vec::with_capacity(WRITES_AT_ONCE);
        while futures.writes.take(&mut arrived, WRITES_AT_ONCE, true) {
            engine.write_for_futures(&mut arrived);
        }
    }
}

impl<D: Device> WritePath<D> {
    /// Appends all these writes, and then waits once for all writes whose class wants that.
    fn write_for_futures(&self, writes: &mut Vec<Write<D>>) {
        let frees = writes.iter().flat_map(|write| write.batch.kinds()).any(frees_much);
        self.append_for_futures(writes);
        if frees {
            self.note_freeing();
        }
    }

    fn append_for_futures(&self, writes: &mut Vec<Write<D>>) {
        let mut waiting = Vec::with_capacity(writes.len());
        for write in writes.drain(..) {
            match self.append_batch(&write.batch, write.durability) {
                Ok(AppendedBatch { sequence, unpublished: None, .. }) => write.reply.give(Ok(sequence)),
                Ok(AppendedBatch { sequence, unpublished: Some((_, number)), staging }) => {
                    waiting.push((write.reply, sequence, number, staging));
                }
                Err(error) => write.reply.give(Err(error)),
            }
        }
        let Some(last) = waiting.last().map(|(_, _, number, _)| *number) else { return };
        let outcome = self.wait_durable(self.commit.lock(), last);
        for (reply, sequence, number, _staging) in waiting {
            let is_durable = self.commit.completed() >= number;
            reply.give(if is_durable { Ok(sequence) } else { outcome.clone().map(|()| sequence) });
        }
    }
}
