//! The queue of the work that publications leave to the background: tags to be settled and keys to be folded.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::store::catalog::{Generation, TableIndex};
use crate::store::urgent::Urgent;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank};

/// Room in the queue for writers that have not seen yet that it is nearly full.
const LEFT_FOR_WRITERS: usize = 8 << 10;

/// The most tags to be settled and keys to be folded; a writer that finds the queue full settles its own tag.
pub(crate) const MAX_UNSETTLED: usize = 64 << 10;

/// A tag of a hash index that may hold dead places, or a key whose operands are to be folded.
#[derive(Clone)]
pub(crate) struct Unsettled {
    pub(crate) generation: Arc<Generation>,
    /// Of a `hash` table.
    pub(crate) hash: u64,
    /// Of an ordered table; empty in a `hash` table.
    pub(crate) key: Box<[u8]>,
    /// Whether operands have piled up.
    pub(crate) folds: bool,
    /// Whether it is queued only because runs may have the tag, says a filter: where they have not, a put is alone there.
    pub(crate) is_put_alone: bool,
}

impl Unsettled {
    pub(crate) fn tag(generation: &Arc<Generation>, hash: u64) -> Unsettled {
        Unsettled { generation: Arc::clone(generation), hash, key: Box::default(), folds: false, is_put_alone: false }
    }

    pub(crate) fn key(generation: &Arc<Generation>, key: &[u8]) -> Unsettled {
        Unsettled { generation: Arc::clone(generation), hash: 0, key: key.into(), folds: true, is_put_alone: false }
    }

    /// The same, with operands that have piled up.
    pub(crate) fn for_folding(self) -> Unsettled {
        Unsettled { folds: true, ..self }
    }

    pub(crate) fn generation(&self) -> &Arc<Generation> {
        &self.generation
    }

    /// Whether both are of one tag or key.
    pub(crate) fn is_same(&self, other: &Unsettled) -> bool {
        (self.generation.id, self.hash, &self.key) == (other.generation.id, other.hash, &other.key)
    }
}

/// The queue.
#[derive(Default)]
pub(crate) struct Settling {
    queue: Mutex<Queue, { Rank::Queue as u8 }>,
    /// Whether the queue is nearly full. Relaxed: a hint, changed under the queue's lock.
    is_crowded: AtomicBool,
    /// Keys of the queue that the next writers fold.
    pub(crate) urgent: Urgent,
}

#[derive(Default)]
struct Queue {
    /// Each with whether it is done with; the first one is not.
    waiting: VecDeque<(Unsettled, bool)>,
    /// How many have left the queue: the number of the one in front.
    popped: u64,
    /// The number of the first one that no thread has taken on.
    unclaimed: u64,
    /// How many are not done with.
    left: usize,
}

impl Settling {
    /// Queues a tag or key; gives it back if the queue is full. A checkpoint has the tags of its index, so each counts as a change.
    pub(crate) fn push(&self, unsettled: Unsettled) -> std::result::Result<(), Unsettled> {
        let mut queue = self.lock();
        if queue.waiting.len() >= MAX_UNSETTLED {
            return Err(unsettled);
        }
        if let TableIndex::Hash(index) = &unsettled.generation.index {
            index.count_change(unsettled.hash);
        }
        queue.waiting.push_back((unsettled, false));
        queue.left += 1;
        self.note_crowded(&queue);
        Ok(())
    }

    /// Takes on the tag or key that waits longest, unless other threads have taken on all that wait. It stays queued until it is
    /// [`Settling::done`] with, which the caller must say.
    pub(crate) fn claim(&self) -> Option<(u64, Unsettled)> {
        let mut queue = self.lock();
        let number = queue.unclaimed;
        let (unsettled, _) = queue.waiting.get((number - queue.popped) as usize)?;
        let unsettled = unsettled.clone();
        queue.unclaimed += 1;
        Some((number, unsettled))
    }

    /// Some tags and keys that wait longest; they stay queued.
    pub(crate) fn first(&self, limit: usize) -> Vec<Unsettled> {
        let queue = self.lock();
        let waiting = queue.waiting.iter().filter(|(_, is_done)| !is_done);
        waiting.take(limit).map(|(unsettled, _)| unsettled.clone()).collect()
    }

    /// What was claimed as this number is done with.
    pub(crate) fn done(&self, number: u64) {
        let mut queue = self.lock();
        let at = (number - queue.popped) as usize;
        queue.waiting[at].1 = true;
        queue.left -= 1;
        while queue.waiting.pop_front_if(|(_, is_done)| *is_done).is_some() {
            queue.popped += 1;
        }
        self.note_crowded(&queue);
    }

    fn note_crowded(&self, queue: &Queue) {
        self.is_crowded.store(queue.waiting.len() >= MAX_UNSETTLED - LEFT_FOR_WRITERS, Ordering::Relaxed);
    }

    /// Whether a writer should settle tags before it adds more: a tag that finds no room in the queue may never be settled.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// The hashes of a `hash` table's queued tags.
    pub(crate) fn hashes(&self, table: u32) -> Vec<u64> {
        let queue = self.lock();
        queue
            .waiting
            .iter()
            .filter(|(unsettled, is_done)| !is_done && unsettled.generation.id == table)
            .map(|(unsettled, _)| unsettled.hash)
            .collect()
    }

    /// How many are not done with.
    pub(crate) fn len(&self) -> usize {
        self.lock().left
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no code panics while it holds the queue")
    }
}
