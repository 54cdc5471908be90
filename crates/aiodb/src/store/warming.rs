//! What is to be brought into memory: the queue of tables whose values are, and how far blocks of sorted runs are.

use std::collections::VecDeque;

use crate::format::location::Location;
use crate::index::runs::warm::WarmedTo;
use crate::store::catalog::Generation;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Rank};

/// A table whose values are being brought into memory, and how far that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warm {
    pub(crate) table: u32,
    /// The index key behind which an ordered table goes on.
    pub(crate) behind: Option<Vec<u8>>,
    /// The shard of a `hash` table at which it has come, and the place in the log behind which it goes on there...
    pub(crate) shard: usize,
    pub(crate) after: Option<Location>,
    /// ...once these are done, last first.
    pub(crate) listed: Vec<Listed>,
}

/// A place in the log that an index had, in a life of its segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) location: Location,
    pub(crate) life: u64,
}

/// The queue. It lasts as long as the process.
#[derive(Default)]
pub(crate) struct Warming {
    queue: Mutex<VecDeque<Warm>, { Rank::Warming as u8 }>,
    /// Relaxed: who asks early asks again.
    is_any: AtomicBool,
    /// Of the tables that want blocks of their runs in memory, all together.
    blocks: Mutex<Blocks, { Rank::Warming as u8 }>,
}

/// How far blocks are, unless a step is under way, and how often somebody has begun with them.
#[derive(Default)]
struct Blocks {
    to: WarmedTo,
    begun: u64,
}

impl Warming {
    /// Begins with a table, if it has anything that memory is to keep.
    pub(crate) fn ask(&self, generation: &Generation) {
        if generation.prefers_blocks() {
            let mut blocks = self.blocks.lock().expect(NO_PANIC);
            *blocks = Blocks { to: WarmedTo::default(), begun: blocks.begun + 1 };
        }
        if !generation.prefers_values() {
            return;
        }
        let mut queue = self.lock();
        queue.retain(|warm| warm.table != generation.id);
        queue.push_back(Warm { table: generation.id, behind: None, shard: 0, after: None, listed: Vec::new() });
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// Does a step with blocks, which takes them further unless somebody begins anew meanwhile.
    pub(crate) fn step_with_blocks<T>(&self, step: impl FnOnce(&mut WarmedTo) -> T) -> T {
        let (mut to, begun) = {
            let mut blocks = self.blocks.lock().expect(NO_PANIC);
            (std::mem::take(&mut blocks.to), blocks.begun)
        };
        let outcome = step(&mut to);
        let mut blocks = self.blocks.lock().expect(NO_PANIC);
        if blocks.begun == begun {
            blocks.to = to;
        }
        outcome
    }

    /// The table that is next, out of the queue.
    pub(crate) fn take(&self) -> Option<Warm> {
        if !self.is_any.load(Ordering::Relaxed) {
            return None;
        }
        let mut queue = self.lock();
        let taken = queue.pop_front();
        self.is_any.store(!queue.is_empty(), Ordering::Relaxed);
        taken
    }

    /// Takes a table back into the queue, unless somebody has begun with it anew.
    pub(crate) fn put_back(&self, warm: Warm) {
        let mut queue = self.lock();
        if queue.iter().all(|other| other.table != warm.table) {
            queue.push_back(warm);
        }
        self.is_any.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> crate::sync::MutexGuard<'_, VecDeque<Warm>> {
        self.queue.lock().expect(NO_PANIC)
    }
}

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it holds what is to be warmed";
