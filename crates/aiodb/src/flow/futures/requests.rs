//! The bounded way from futures to the thread, or the driver, that works for them, and back. No I/O here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

use crate::{Error, Result};

/// Requests that wait for their worker. When there are so many, further futures wait.
pub(crate) const MAX_QUEUED: usize = 4096;

/// The queue of one worker: a thread of the store's own, which the first request starts, or a driver, which a caller has attached before.
pub(crate) struct Requests<R> {
    state: Mutex<State<R>>,
    arrived: Condvar,
    /// Whether a driver does the work. Relaxed: set under the lock, and each get asks it once.
    has_driver: AtomicBool,
}

struct State<R> {
    queue: VecDeque<R>,
    /// Futures that wait for a place in the queue, in the order in which they came.
    waiting: BTreeMap<u64, Waker>,
    next_ticket: u64,
    thread: Option<JoinHandle<()>>,
    /// How to call the driver, while it waits for so many requests.
    driver: Option<(usize, Waker)>,
    /// Whether the thread may not have done yet what it took last.
    is_working: bool,
    stopped: bool,
}

/// The outcome of offering a request.
pub(crate) enum Offer<R> {
    Taken,
    /// There is no place for it now; the waker is called when there may be one.
    Full(R),
}

impl<R> Default for Requests<R> {
    fn default() -> Self {
        let (queue, waiting) = (VecDeque::new(), BTreeMap::new());
        let state =
            State { queue, waiting, next_ticket: 0, thread: None, driver: None, is_working: false, stopped: false };
        Requests { state: Mutex::new(state), arrived: Condvar::new(), has_driver: AtomicBool::new(false) }
    }
}

impl<R> Requests<R> {
    /// Queues a request, and starts the thread with the first, unless there is a driver. The ticket is a future's place while there is no room.
    pub(crate) fn offer(
        &self,
        request: R,
        ticket: &mut Option<u64>,
        waker: &Waker,
        start: impl FnOnce() -> Result<JoinHandle<()>>,
    ) -> Result<Offer<R>> {
        let mut state = self.lock();
        if state.stopped {
            return Err(Error::Closed);
        }
        if state.thread.is_none() && !self.has_driver() {
            state.thread = Some(start()?);
        }
        if state.queue.len() >= MAX_QUEUED {
            let number = *ticket.get_or_insert(state.next_ticket);
            state.next_ticket = state.next_ticket.max(number + 1);
            state.waiting.insert(number, waker.clone());
            return Ok(Offer::Full(request));
        }
        if let Some(ticket) = ticket.take() {
            state.waiting.remove(&ticket);
        }
        state.queue.push_back(request);
        if !self.has_driver() {
            self.arrived.notify_one();
            return Ok(Offer::Taken);
        }
        let queued = state.queue.len();
        if let Some((_, driver)) = state.driver.take_if(|(least, _)| queued >= *least) {
            drop(state);
            driver.wake();
        }
        Ok(Offer::Taken)
    }

    /// Makes the caller the driver. False if there is a thread or a driver already.
    pub(crate) fn attach_driver(&self) -> bool {
        let state = self.lock();
        let is_free = state.thread.is_none() && !state.stopped;
        is_free && !self.has_driver.swap(true, Ordering::Relaxed)
    }

    /// Whether a driver does the work.
    pub(crate) fn has_driver(&self) -> bool {
        self.has_driver.load(Ordering::Relaxed)
    }

    /// For the driver: ready when there are so many requests, or will never be any more. Without room for them it is not to be called.
    pub(crate) fn poll_arrived(&self, context: &mut Context<'_>, least: usize, has_room: bool) -> Poll<()> {
        let mut state = self.lock();
        if state.stopped || (has_room && state.queue.len() >= least) {
            return Poll::Ready(());
        }
        state.driver = has_room.then(|| (least, context.waker().clone()));
        Poll::Pending
    }

    /// Whether the thread has done all that was offered.
    pub(crate) fn are_done(&self) -> bool {
        let state = self.lock();
        state.queue.is_empty() && state.waiting.is_empty() && !state.is_working
    }

    /// Requests that wait for the thread.
    pub(crate) fn queued(&self) -> usize {
        self.lock().queue.len()
    }

    /// A future that waited for a place is dropped. If it had been called already, another one is called in its stead.
    pub(crate) fn leave(&self, ticket: u64) {
        let mut state = self.lock();
        let called = state.waiting.remove(&ticket).is_none();
        let next = if called { state.waiting.pop_first() } else { None };
        drop(state);
        if let Some((_, waker)) = next {
            waker.wake();
        }
    }

    /// Moves up to `most` requests to the end of `taken`; `wait` says to wait for the first. False once the store is
    /// being closed: requests that are still queued are answered with [`Error::Closed`] then.
    pub(crate) fn take(&self, taken: &mut Vec<R>, most: usize, wait: bool) -> bool {
        let mut state = self.lock();
        state.is_working = false;
        while wait && state.queue.is_empty() && !state.stopped {
            state = self.arrived.wait(state).expect("no code panics while it holds the requests");
        }
        if state.stopped {
            let given_up = std::mem::take(&mut state.queue);
            // Their wakers are called by this, so the lock must be free.
            drop(state);
            drop(given_up);
            return false;
        }
        let count = most.min(state.queue.len());
        state.is_working = count > 0;
        taken.extend(state.queue.drain(..count));
        let called: Vec<_> = std::iter::from_fn(|| state.waiting.pop_first()).take(count).collect();
        drop(state);
        called.into_iter().for_each(|(_, waker)| waker.wake());
        true
    }

    /// Refuses all later requests, and the queued ones that no thread will take any more.
    pub(crate) fn refuse(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let waiting = std::mem::take(&mut state.waiting);
        let queue = std::mem::take(&mut state.queue);
        let driver = state.driver.take();
        // Their wakers are called by this, so the lock must be free.
        drop(state);
        drop(queue);
        waiting.into_values().chain(driver.map(|(_, driver)| driver)).for_each(Waker::wake);
    }

    /// Refuses all later requests, ends the thread and waits for it.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        let waiting = std::mem::take(&mut state.waiting);
        let thread = state.thread.take();
        drop(state);
        self.arrived.notify_all();
        waiting.into_values().for_each(Waker::wake);
        // The last handle may be dropped by a future that the thread itself has woken.
        if let Some(thread) = thread.filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic has been dealt with where it was met.
            let _ = thread.join();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().expect("no code panics while it holds the requests")
    }
}

/// The future's end of an answer.
pub(crate) struct Answer<T>(Mutex<Progress<T>>);

enum Progress<T> {
    Waiting(Option<Waker>),
    Given(Result<T>),
    Taken,
}

/// The thread's end of an answer. Dropping it answers [`Error::Closed`], so that no future waits for ever.
pub(crate) struct Reply<T>(Option<Arc<Answer<T>>>);

/// Both ends of an answer.
pub(crate) fn answer<T>() -> (Reply<T>, Arc<Answer<T>>) {
    let answer = Arc::new(Answer(Mutex::new(Progress::Waiting(None))));
    (Reply(Some(Arc::clone(&answer))), answer)
}

impl<T> Answer<T> {
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<Result<T>> {
        let mut progress = self.lock();
        match std::mem::replace(&mut *progress, Progress::Taken) {
            Progress::Given(result) => Poll::Ready(result),
            Progress::Waiting(_) => {
                *progress = Progress::Waiting(Some(context.waker().clone()));
                Poll::Pending
            }
            Progress::Taken => panic!("a future was polled after it had completed"),
        }
    }

    fn give(&self, result: Result<T>) {
        let before = std::mem::replace(&mut *self.lock(), Progress::Given(result));
        if let Progress::Waiting(Some(waker)) = before {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Progress<T>> {
        self.0.lock().expect("only a future that is polled too often panics here")
    }
}

impl<T> Reply<T> {
    /// Completes the future, if it still exists.
    pub(crate) fn give(mut self, result: Result<T>) {
        if let Some(answer) = self.0.take() {
            answer.give(result);
        }
    }

    /// Whether the future still exists.
    pub(crate) fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|answer| Arc::strong_count(answer) > 1)
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(answer) = self.0.take() {
            answer.give(Err(Error::Closed));
        }
    }
}

#[cfg(test)]
mod tests;
