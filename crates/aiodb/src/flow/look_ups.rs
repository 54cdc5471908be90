//! Look-ups of many keys of ordered tables at once: the blocks of sorted runs that they need are read many at a time.

use std::io;
use std::sync::Arc;
use std::vec::IntoIter;

use crate::cache::Place;
use crate::index::memtable::LookedUp;
use crate::index::ordered::look_up::{LookUp, PausedLookUp};
use crate::index::runs::lookup::AwaitedBytes;
use crate::index::snapshots::View;
use crate::io::reads::{Done, Reads};
use crate::io::{Device, UNIT_BYTES};
use crate::store::catalog::Generation;
use crate::store::commit::Operation;
use crate::store::epochs::EpochGuard;
use crate::store::read_path::ReadPath;
use crate::{Error, Result};

/// Blocks that are read at a time.
const DEPTH: usize = 64;

/// Look-ups that wait for blocks, at most: several may wait for one.
const MOST_PAUSED: usize = 16 * DEPTH;

/// So few keys are not worth a queue.
const FEW_KEYS: usize = 4;

/// A key of an ordered table, to be looked up.
pub(crate) struct Wanted<'a> {
    pub(crate) generation: &'a Generation,
    pub(crate) key: &'a [u8],
}

impl<'a> Wanted<'a> {
    /// The key of an operation; `None` if no table has it.
    pub(crate) fn of(operation: &'a Operation<'_>) -> Option<Wanted<'a>> {
        let generation = operation.generation.as_ref()?;
        Some(Wanted { generation, key: operation.append.key })
    }

    fn order(&self) -> (u32, &'a [u8]) {
        (self.generation.id, self.key)
    }
}

/// A look-up that waits for a block.
struct Waiting<D: Device> {
    /// Of its key.
    number: usize,
    freezes: u64,
    look_up: Box<PausedLookUp<D>>,
}

/// A block that is being read, and the look-ups that wait for it.
struct Reading<D: Device> {
    place: Place,
    waiting: Vec<Waiting<D>>,
}

/// Look-ups in progress.
struct LookUps<'a, D: Device> {
    engine: &'a ReadPath<D>,
    wanted: &'a [Wanted<'a>],
    /// The keys that are not begun, in their order: those that lie in one block follow each other.
    rest: IntoIter<usize>,
    /// `None` until the first block must be read.
    reads: Option<Reads<D::Queue>>,
    /// Whether the calling thread reads the blocks, one at a time: for few keys, or where no queue is to be had, or none that works.
    is_blocking: bool,
    /// By the tokens of the reads.
    reading: Vec<Option<Reading<D>>>,
    /// Look-ups that need another block.
    again: Vec<Waiting<D>>,
    paused: usize,
    found: Vec<Option<Result<LookedUp>>>,
    _guard: EpochGuard<'a>,
}

impl<D: Device> ReadPath<D> {
    /// Looks up keys of ordered tables, and returns what there is of each. The cache of blocks is asked first.
    pub(crate) fn look_up_all(&self, wanted: &[Wanted<'_>]) -> Vec<Result<LookedUp>> {
        let mut order: Vec<usize> = (0..wanted.len()).collect();
        order.sort_unstable_by_key(|number| wanted[*number].order());
        // Of records of one key the first is looked up, for all of them.
        let same = |one: &usize, other: &usize| wanted[*one].order() == wanted[*other].order();
        let firsts: Vec<usize> = order.chunk_by(same).map(|of_key| of_key[0]).collect();
        let mut look_ups = LookUps {
            engine: self,
            wanted,
            rest: firsts.into_iter(),
            reads: None,
            is_blocking: wanted.len() <= FEW_KEYS,
            reading: (0..DEPTH).map(|_| None).collect(),
            again: Vec::new(),
            paused: 0,
            found: wanted.iter().map(|_| None).collect(),
            _guard: self.epochs.pin(),
        };
        look_ups.run();
        let mut found = look_ups.found;
        for of_key in order.chunk_by(same) {
            of_key[1..].iter().for_each(|number| found[*number] = found[of_key[0]].clone());
        }
        found.into_iter().map(|found| found.expect("each key has been looked up")).collect()
    }
}

impl<D: Device> LookUps<'_, D> {
    fn run(&mut self) {
        loop {
            if let Some(waiting) = self.again.pop() {
                self.read_for(waiting);
            } else if self.paused < MOST_PAUSED
                && let Some(number) = self.rest.next()
            {
                self.begin(number);
            } else if self.paused > 0 {
                self.take_block();
            } else {
                return;
            }
        }
    }

    /// Begins the look-up of a key.
    fn begin(&mut self, number: usize) {
        let Wanted { generation, key } = self.wanted[number];
        let ordered = self.engine.ordered_of(generation);
        let freezes = ordered.memtable.freezes();
        match ordered.begin_lookup(generation.id, key, &View::LATEST) {
            Ok(LookUp::Paused(look_up)) => {
                self.paused += 1;
                self.read_for(Waiting { number, freezes, look_up });
            }
            Ok(LookUp::Found(chain)) => self.found[number] = Some(Ok(LookedUp { chain: Arc::new(chain), freezes })),
            Err(error) => self.found[number] = Some(Err(error)),
        }
    }

    /// Reads the block that a look-up waits for, or has it read.
    fn read_for(&mut self, waiting: Waiting<D>) {
        if !self.is_blocking && self.reads.is_none() {
            // A look-up is not refused because there is no queue.
            self.reads = self.new_reads().ok();
            self.is_blocking = self.reads.is_none();
        }
        let place = waiting.look_up.place();
        if let Some(reading) = self.reading.iter_mut().flatten().find(|reading| reading.place == place) {
            reading.waiting.push(waiting);
            return;
        }
        let token = loop {
            // The queue may fail while it is waited for.
            if self.is_blocking {
                return self.finish(waiting);
            }
            match self.reading.iter().position(Option::is_none) {
                Some(token) => break token,
                None => self.take_block(),
            }
        };
        let AwaitedBytes { file, offset, length } = waiting.look_up.awaited();
        let reads = self.reads.as_mut().expect("it was just made");
        reads.push(file, offset, length, token as u64);
        self.reading[token] = Some(Reading { place, waiting: vec![waiting] });
    }

    /// Goes on with a look-up to its end: the calling thread reads the blocks.
    fn finish(&mut self, Waiting { number, freezes, look_up }: Waiting<D>) {
        let ordered = self.engine.ordered_of(self.wanted[number].generation);
        let chain = ordered.finish_lookup(look_up, &View::LATEST);
        self.end(number, freezes, chain.map(LookUp::Found));
    }

    /// Waits for the next block, and goes on with the look-ups that need it.
    fn take_block(&mut self) {
        let engine = self.engine;
        let reads = self.reads.as_mut().expect("a block is being read");
        let polled = match reads.poll(true) {
            Ok(polled) => polled,
            Err(error) => return self.leave_queue(&error),
        };
        let Done { slot, token, outcome } = polled.expect("a block is being read");
        let reading = self.reading[token as usize].take().expect("it was being read");
        for Waiting { number, freezes, look_up } in reading.waiting {
            let ordered = engine.ordered_of(self.wanted[number].generation);
            let bytes = self.reads.as_ref().expect("it was read");
            let next = match &outcome {
                Ok(()) => ordered.resume_lookup(look_up, bytes.bytes(slot), &View::LATEST),
                Err(error) => Err(look_up.read_error(error)),
            };
            self.end(number, freezes, next);
        }
        self.reads.as_mut().expect("it was read").release(slot);
    }

    /// Goes on without the queue, which has failed itself, not one of its reads.
    fn leave_queue(&mut self, error: &io::Error) {
        self.engine.note_trouble(&Error::io("read from", &self.engine.root, error));
        // Waits until the device needs no buffer any more.
        self.reads = None;
        self.is_blocking = true;
        let reading = self.reading.iter_mut().filter_map(Option::take);
        self.again.extend(reading.flat_map(|reading| reading.waiting));
    }

    /// Takes note of what a look-up has come to.
    fn end(&mut self, number: usize, freezes: u64, next: Result<LookUp<D>>) {
        self.paused -= 1;
        let found = match next {
            Ok(LookUp::Paused(look_up)) => {
                self.paused += 1;
                self.again.push(Waiting { number, freezes, look_up });
                return;
            }
            Ok(LookUp::Found(chain)) => Ok(LookedUp { chain: Arc::new(chain), freezes }),
            Err(error) => Err(error),
        };
        self.found[number] = Some(found);
    }

    fn new_reads(&self) -> io::Result<Reads<D::Queue>> {
        let queue = self.engine.device.queue(DEPTH)?;
        Ok(Reads::new(queue, DEPTH, UNIT_BYTES, self.engine.block_bytes))
    }
}
