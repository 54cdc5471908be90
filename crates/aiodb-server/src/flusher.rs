//! Waiting until writes are on the device: one thread flushes for all connections that wait.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

use aiodb::{Db, Error, Result, Sequence};
use tokio::sync::oneshot;

/// The thread, and what it is told.
pub(crate) struct Flusher {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    /// At most one for each connection.
    waiting: Vec<(Sequence, oneshot::Sender<Result<()>>)>,
    /// The last write that is known to be on the device.
    durable: Sequence,
    stopped: bool,
}

impl Flusher {
    /// Starts the thread.
    pub(crate) fn start(db: Db) -> std::io::Result<Flusher> {
        let queue = Arc::new(Queue::default());
        let thread = std::thread::Builder::new().name("aiodb-flush".into()).spawn({
            let queue = Arc::clone(&queue);
            move || queue.work(&db)
        })?;
        Ok(Flusher { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Returns when the write with this sequence, and all before it, are on the device.
    pub(crate) async fn wait(&self, sequence: Sequence) -> Result<()> {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.queue.lock();
            if state.durable >= sequence {
                return Ok(());
            }
            if state.stopped {
                return Err(Error::Closed);
            }
            state.waiting.push((sequence, answer));
            self.queue.arrived.notify_one();
        }
        answered.await.unwrap_or(Err(Error::Closed))
    }

    /// [`Flusher::wait`] for the write with this number, or for the last of all if that has no such number yet.
    pub(crate) async fn wait_for_number(&self, number: u64, last: impl Fn() -> Sequence) -> Result<()> {
        if self.queue.lock().durable.number() >= number {
            return Ok(());
        }
        self.wait(last()).await
    }

    /// Flushes for those who wait, and ends the thread.
    pub(crate) fn stop(&self) {
        self.queue.lock().stopped = true;
        self.queue.arrived.notify_one();
        let thread = self.thread.lock().expect("no code panics while it holds the thread").take();
        if let Some(thread) = thread {
            thread.join().expect("the thread that flushes does not panic");
        }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the queue")
    }

    fn work(&self, db: &Db) {
        loop {
            let waiting = {
                let mut state = self.lock();
                while state.waiting.is_empty() && !state.stopped {
                    state = self.arrived.wait(state).expect("no code panics while it holds the queue");
                }
                std::mem::take(&mut state.waiting)
            };
            let Some(last) = waiting.iter().map(|(sequence, _)| *sequence).max() else { return };
            let outcome = db.wait_durable(last);
            if outcome.is_ok() {
                let mut state = self.lock();
                state.durable = state.durable.max(last);
            }
            for (_, answer) in waiting {
                // The connection may be gone.
                let _ = answer.send(outcome.clone());
            }
        }
    }
}
