//! The queue of the work that publications leave to the background: tags to be settled and keys to be folded.

use std::collections::{BTreeMap, VecDeque};
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
    waiting: VecDeque<Unsettled>,
    /// What threads have taken on, by the numbers that they were told.
    claimed: BTreeMap<u64, Unsettled>,
    next: u64,
}

impl Queue {
    /// All that is not done with.
    fn all(&self) -> impl Iterator<Item = &Unsettled> {
        self.claimed.values().chain(&self.waiting)
    }
}

/// What a thread has taken on: it goes back to the front of the queue, unless the thread says what has become of it.
pub(crate) struct Claim<'a> {
    of: &'a Settling,
    number: u64,
    pub(crate) unsettled: Unsettled,
    is_over: bool,
}

impl Claim<'_> {
    /// It is done with.
    pub(crate) fn done(self) {
        self.end(|_| ());
    }

    /// This, which is of the same tag or key, must be done after all others.
    pub(crate) fn again(self, unsettled: Unsettled) {
        self.end(|queue| queue.waiting.push_back(unsettled));
    }

    fn end(mut self, then: impl FnOnce(&mut Queue)) {
        self.is_over = true;
        let mut queue = self.of.lock();
        queue.claimed.remove(&self.number);
        then(&mut queue);
        self.of.note_crowded(&queue);
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // The thread has panicked.
        let mut queue = self.of.lock();
        let claimed = queue.claimed.remove(&self.number);
        claimed.into_iter().for_each(|claimed| queue.waiting.push_front(claimed));
    }
}

impl Settling {
    /// Queues a tag or key; gives it back if the queue is full. A checkpoint has the tags of its index, so each counts as a change.
    pub(crate) fn push(&self, unsettled: Unsettled) -> std::result::Result<(), Unsettled> {
        let mut queue = self.lock();
        if queue.waiting.len() >= MAX_UNSETTLED {
            return Err(unsettled);
        }
        self.add(&mut queue, unsettled);
        Ok(())
    }

    /// Queues a tag even if the queue is full: one that a writer could not settle itself. Writers settle more than they add until it is not.
    pub(crate) fn push_anyway(&self, unsettled: Unsettled) {
        self.add(&mut self.lock(), unsettled);
    }

    fn add(&self, queue: &mut Queue, unsettled: Unsettled) {
        if let TableIndex::Hash(index) = &unsettled.generation.index {
            index.count_change(unsettled.hash);
        }
        queue.waiting.push_back(unsettled);
        self.note_crowded(queue);
    }

    /// Takes on the tag or key that waits longest, unless other threads have taken on all that there are.
    pub(crate) fn claim(&self) -> Option<Claim<'_>> {
        let mut queue = self.lock();
        let unsettled = queue.waiting.pop_front()?;
        let number = queue.next;
        queue.next += 1;
        queue.claimed.insert(number, unsettled.clone());
        Some(Claim { of: self, number, unsettled, is_over: false })
    }

    /// Whether threads are at some of what waits.
    pub(crate) fn is_any_claimed(&self) -> bool {
        !self.lock().claimed.is_empty()
    }

    /// Some tags and keys that wait longest; they stay queued.
    pub(crate) fn first(&self, limit: usize) -> Vec<Unsettled> {
        self.lock().all().take(limit).cloned().collect()
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
        let of_table = queue.all().filter(|unsettled| unsettled.generation.id == table);
        of_table.map(|unsettled| unsettled.hash).collect()
    }

    /// How many are not done with.
    pub(crate) fn len(&self) -> usize {
        let queue = self.lock();
        queue.waiting.len() + queue.claimed.len()
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no code panics while it holds the queue")
    }
}
