//! The queue of keys that compaction filters have given up, and whose deletes are still to be written.

use std::collections::VecDeque;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Rank};

/// Bytes that the queue takes in memory, at most, about: filters are asked again when it has shrunk to half of that.
const MAX_BYTES: usize = 32 << 20;

/// Bytes of a key in the queue, beside its own.
const KEY_BYTES: usize = 64;

/// A key that a filter has given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) table: u32,
    pub(crate) key: Box<[u8]>,
    /// That of the put that is given up: where the key has a newer record, nothing happens.
    pub(crate) sequence: u64,
}

impl Dropped {
    fn bytes(&self) -> usize {
        self.key.len() + KEY_BYTES
    }
}

/// The queue. It lasts as long as the process: whoever opens the store next asks the filters again.
#[derive(Default)]
pub(crate) struct Dropping {
    /// Set once the store is open. Relaxed: no other thread is there before.
    has_begun: AtomicBool,
    queue: Mutex<Queue, { Rank::Dropping as u8 }>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Dropped>,
    bytes: usize,
}

impl Dropping {
    /// From now on filters may be asked what goes.
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// Whether filters may be asked what goes.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Whether filters may give up more now: a step of a merge that finds it so may give up as much as one file has.
    pub(crate) fn has_room(&self) -> bool {
        self.lock(|queue| queue.bytes < MAX_BYTES)
    }

    /// Whether filters may be asked for the sake of what they may give up.
    pub(crate) fn is_short(&self) -> bool {
        self.lock(|queue| queue.bytes < MAX_BYTES / 2)
    }

    /// How many keys wait.
    pub(crate) fn len(&self) -> usize {
        self.lock(|queue| queue.waiting.len())
    }

    pub(crate) fn push(&self, dropped: Dropped) {
        self.lock(|queue| {
            queue.bytes += dropped.bytes();
            queue.waiting.push_back(dropped);
        });
    }

    /// Takes some keys of one table that wait longest, with at most so many bytes, or one.
    pub(crate) fn take(&self, most: usize, most_bytes: usize) -> Vec<Dropped> {
        self.lock(|queue| {
            let table = queue.waiting.front().map(|dropped| dropped.table);
            let mut bytes = 0;
            let fits = |dropped: &&Dropped| {
                bytes += dropped.bytes();
                Some(dropped.table) == table && bytes <= most_bytes
            };
            let count = queue.waiting.iter().take(most).take_while(fits).count().max(usize::from(table.is_some()));
            let taken: Vec<_> = queue.waiting.drain(..count).collect();
            queue.bytes -= taken.iter().map(Dropped::bytes).sum::<usize>();
            taken
        })
    }

    /// Puts back keys that were taken, to be taken next.
    pub(crate) fn put_back(&self, taken: Vec<Dropped>) {
        self.lock(|queue| {
            queue.bytes += taken.iter().map(Dropped::bytes).sum::<usize>();
            taken.into_iter().rev().for_each(|dropped| queue.waiting.push_front(dropped));
        });
    }

    fn lock<T>(&self, change: impl FnOnce(&mut Queue) -> T) -> T {
        change(&mut self.queue.lock().expect("no code panics while it holds the queue"))
    }
}

#[cfg(test)]
mod tests;
