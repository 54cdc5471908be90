//! Locks and atomics of state that threads share: the standard library's, or those of `shuttle`, which runs the real code in
//! orders of its own choosing (`tests/interleavings/`, feature `shuttle`).

mod locks;

#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{sync::atomic, thread::yield_now};

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{sync::atomic, thread::yield_now};

use atomic::{AtomicU32, Ordering};
use locks::Held;
#[cfg(all(test, not(feature = "shuttle")))]
pub(crate) use locks::as_another_thread;
pub(crate) use locks::{Condvar, Mutex, MutexGuard, Rank, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A lock that threads get in the order in which they ask: a thread that takes it again and again does not starve others.
#[derive(Default)]
pub(crate) struct InOrder<const RANK: u8> {
    queue: Mutex<Queue, { Rank::Word as u8 }>,
    left: Condvar,
}

/// Numbers of the threads that ask for an [`InOrder`].
#[derive(Default)]
struct Queue {
    next: u64,
    /// The number whose turn it is.
    first: u64,
}

/// An [`InOrder`], held.
#[must_use]
pub(crate) struct InOrderGuard<'a, const RANK: u8> {
    lock: &'a InOrder<RANK>,
    _held: Held,
}

impl<const RANK: u8> InOrder<RANK> {
    pub(crate) fn lock(&self) -> InOrderGuard<'_, RANK> {
        let held = Held::note(RANK);
        let mut queue = self.queue();
        let number = queue.next;
        queue.next += 1;
        while queue.first < number {
            queue = self.left.wait(queue).expect("no code panics while it waits for its turn");
        }
        drop(queue);
        InOrderGuard { lock: self, _held: held }
    }

    /// `None` if a thread has it or waits for it.
    pub(crate) fn try_lock(&self) -> Option<InOrderGuard<'_, RANK>> {
        let held = Held::note(RANK);
        let mut queue = self.queue();
        if queue.first < queue.next {
            return None;
        }
        queue.next += 1;
        drop(queue);
        Some(InOrderGuard { lock: self, _held: held })
    }

    /// How many threads have it or wait for it.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn asking(&self) -> u64 {
        let queue = self.queue();
        queue.next - queue.first
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no code panics while it waits for its turn")
    }
}

impl<const RANK: u8> Drop for InOrderGuard<'_, RANK> {
    fn drop(&mut self) {
        self.lock.queue().first += 1;
        self.lock.left.notify_all();
    }
}

/// A number that threads sleep on.
#[derive(Default)]
pub(crate) struct Word {
    /// Relaxed: it publishes nothing. A sleeper reads it, and a waker changes it, under the lock of the state that they are about,
    /// so that the change comes after the reading; the system compares it once more before it lets a thread sleep.
    value: AtomicU32,
    #[cfg(feature = "shuttle")]
    sleepers: (Mutex<(), { Rank::Word as u8 }>, Condvar),
}

impl Word {
    /// The number to be given to [`Word::wait`].
    pub(crate) fn seen(&self) -> u32 {
        self.value.load(Ordering::Relaxed)
    }

    /// Changes the number: a thread that has seen the earlier number does not fall asleep any more.
    pub(crate) fn change(&self) {
        self.value.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(not(feature = "shuttle"))]
impl Word {
    /// Sleeps until it is woken, unless the number has changed; may wake up for no reason.
    pub(crate) fn wait(&self, seen: u32) {
        atomic_wait::wait(&self.value, seen);
    }

    pub(crate) fn wake_one(&self) {
        atomic_wait::wake_one(&self.value);
    }

    pub(crate) fn wake_all(&self) {
        atomic_wait::wake_all(&self.value);
    }
}

/// The same promises, by means of a lock that the kernel would take.
#[cfg(feature = "shuttle")]
impl Word {
    pub(crate) fn wait(&self, seen: u32) {
        let (lock, woken) = &self.sleepers;
        let guard = lock.lock().expect("nobody panics here");
        if self.seen() == seen {
            drop(woken.wait(guard).expect("nobody panics here"));
        }
    }

    pub(crate) fn wake_one(&self) {
        let (lock, woken) = &self.sleepers;
        let _guard = lock.lock().expect("nobody panics here");
        woken.notify_one();
    }

    pub(crate) fn wake_all(&self) {
        let (lock, woken) = &self.sleepers;
        let _guard = lock.lock().expect("nobody panics here");
        woken.notify_all();
    }
}
