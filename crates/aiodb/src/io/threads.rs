//! The read queue over a pool of threads that call `pread`: works anywhere.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};

use super::disk::DiskFile;
use super::{MAX_QUEUE_DEPTH, Queue, Reaped};

/// The most threads of one queue: beyond this they wait for each other rather than for the device.
const MAX_THREADS: usize = 64;
/// A worker calls nothing deep.
const STACK_BYTES: usize = 256 << 10;

/// A pool of threads of its own, and the reads that they work on.
pub struct ThreadsQueue {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    depth: usize,
    /// Pushed and not yet handed to the threads.
    queued: Vec<Job>,
    /// Results taken from the threads and not yet reaped.
    ready: VecDeque<Reaped>,
    /// Reads pushed and not yet reaped.
    pending: usize,
}

struct Job {
    slot: u32,
    file: DiskFile,
    offset: u64,
    buffer: *mut u8,
    length: usize,
}

// SAFETY: the thread that has the job is the only one to use the buffer, as the caller of `push` promised; memory is not tied
// to a thread.
unsafe impl Send for Job {}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// There are jobs, or the end has come.
    work: Condvar,
    /// There are results.
    results: Condvar,
}

/// Both lists are bounded by the queue's depth.
#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    results: VecDeque<Reaped>,
    stop: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }

    fn serve(&self) {
        loop {
            let mut state = self.lock();
            let job = loop {
                if state.stop {
                    return;
                }
                match state.jobs.pop_front() {
                    Some(job) => break job,
                    None => state = self.work.wait(state).expect("nothing panics under this lock"),
                }
            };
            drop(state);
            let reaped = job.run();
            self.lock().results.push_back(reaped);
            self.results.notify_one();
        }
    }
}

impl Job {
    fn run(self) -> Reaped {
        // SAFETY: promised by the caller of `push`.
        let outcome = unsafe { self.file.read_once(self.buffer, self.length, self.offset) };
        Reaped { slot: self.slot, outcome: outcome.map(|transferred| transferred as u32) }
    }
}

impl ThreadsQueue {
    pub fn new(depth: usize) -> io::Result<ThreadsQueue> {
        assert!((1..=MAX_QUEUE_DEPTH).contains(&depth), "a queue depth of {depth}");
        let mut queue = ThreadsQueue {
            shared: Arc::default(),
            workers: Vec::new(),
            depth,
            queued: Vec::with_capacity(depth),
            ready: VecDeque::with_capacity(depth),
            pending: 0,
        };
        for _ in 0..depth.min(MAX_THREADS) {
            let shared = queue.shared.clone();
            let builder = Builder::new().name("aiodb-read".to_owned()).stack_size(STACK_BYTES);
            // On an error the queue is dropped, and with it the threads made so far.
            queue.workers.push(builder.spawn(move || shared.serve())?);
        }
        Ok(queue)
    }
}

impl Queue for ThreadsQueue {
    type File = DiskFile;

    unsafe fn push(&mut self, slot: u32, file: &DiskFile, offset: u64, buffer: *mut u8, length: u32) {
        assert!(self.pending < self.depth, "more reads than the depth");
        self.pending += 1;
        self.queued.push(Job { slot, file: file.clone(), offset, buffer, length: length as usize });
    }

    fn enter(&mut self, wait_for: u32) -> io::Result<()> {
        let count = self.queued.len();
        let mut state = self.shared.lock();
        state.jobs.extend(self.queued.drain(..));
        for _ in 0..count.min(self.workers.len()) {
            self.shared.work.notify_one();
        }
        while wait_for > 0 && self.ready.is_empty() && state.results.is_empty() {
            state = self.shared.results.wait(state).expect("nothing panics under this lock");
        }
        self.ready.append(&mut state.results);
        Ok(())
    }

    fn reap(&mut self) -> Option<Reaped> {
        let reaped = self.ready.pop_front()?;
        self.pending -= 1;
        Some(reaped)
    }
}

impl Drop for ThreadsQueue {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stop = true;
        state.jobs.clear();
        drop(state);
        self.shared.work.notify_all();
        for worker in self.workers.drain(..) {
            worker.join().expect("a worker does not panic");
        }
    }
}
