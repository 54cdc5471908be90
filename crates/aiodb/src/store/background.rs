//! Wakes and stops the threads of a store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use crate::Durability;
use crate::planted::{self, Bug};

/// When the writer did its work last, in milliseconds of the device's clock.
#[derive(Default)]
pub(crate) struct Written {
    pub(crate) flush: u64,
    pub(crate) write: u64,
}

/// Wakes and stops the threads.
#[derive(Default)]
pub(crate) struct Background {
    pub(crate) threads: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) signal: Mutex<bool>,
    pub(crate) woken: Condvar,
    /// SeqCst, which is more than it needs: it is set before the threads are woken, which look at it when they wake.
    pub(crate) stopped: AtomicBool,
    pub(crate) last: Mutex<Written>,
    pub(crate) asked: Asked,
    /// The next sequence when upkeep found nothing to do. Relaxed: one thread at a time does upkeep.
    pub(crate) rested_at: AtomicU64,
    /// The thread that makes segments ahead of need.
    pub(crate) maker: OnceLock<Thread>,
    /// The thread that commits memtables ahead of need, once it has begun.
    pub(crate) committer: OnceLock<Thread>,
    /// The thread that merges beside upkeep.
    pub(crate) merger: OnceLock<Thread>,
    /// Whether the committer commits memtables that are full: not while it is in trouble, nor after its end. SeqCst, which is more than it needs: a
    /// thread that waits for a commit looks at it again at each turn of the throttle, which follows each change.
    pub(crate) commits: AtomicBool,
}

/// The shortest interval, in milliseconds, of the writes since the last flush began; the highest number if there is none.
/// Earlier writes need no flush any more, so that a long interval counts again when no write asks for a short one.
///
/// SeqCst, which is more than it needs: a write appends before it notes its interval, and a flush resets this before it takes the
/// batch, both under the commit lock; so a note that the flush has reset is of a write that it makes durable.
pub(crate) struct Asked(AtomicU64);

impl Default for Asked {
    fn default() -> Asked {
        Asked(AtomicU64::new(u64::MAX))
    }
}

impl Asked {
    /// Takes note of an acknowledged write. True if its interval is shorter than all others.
    pub(crate) fn note(&self, interval_ms: u64) -> bool {
        // Most writes find their interval, and need not fight for the line.
        self.0.load(Ordering::SeqCst) > interval_ms && self.0.fetch_min(interval_ms, Ordering::SeqCst) > interval_ms
    }

    /// A flush begins, which has all writes noted before.
    pub(crate) fn begin_flush(&self) {
        self.0.store(u64::MAX, Ordering::SeqCst);
    }

    pub(crate) fn shortest(&self) -> Option<u64> {
        Some(self.0.load(Ordering::SeqCst)).filter(|interval| *interval < u64::MAX)
    }
}

impl Background {
    /// Takes note of an acknowledged write; `due` means that the open batch should be written now.
    pub(crate) fn note(&self, durability: Durability, due: bool) {
        if let Durability::Interval(interval) = durability {
            let wanted = interval.clamp(MIN_FLUSH_PERIOD, Duration::from_secs(3600)).as_millis() as u64;
            if self.asked.note(wanted) {
                self.wake();
            }
        }
        if due {
            self.wake();
        }
    }

    /// Wakes the writer.
    pub(crate) fn wake(&self) {
        *self.signal.lock().expect("no code panics while it signals") = true;
        self.woken.notify_one();
    }

    /// Tells the thread that makes segments that one was taken.
    pub(crate) fn wake_maker(&self) {
        if let Some(maker) = self.maker.get() {
            maker.unpark();
        }
    }

    /// Tells the thread that merges beside upkeep that a writer waits for a step.
    pub(crate) fn wake_merger(&self) {
        if let Some(merger) = self.merger.get() {
            merger.unpark();
        }
    }

    /// Tells the thread that commits memtables that one is full. False if there is none that will commit it.
    pub(crate) fn wake_committer(&self) -> bool {
        let commits = self.commits.load(Ordering::SeqCst);
        if let Some(committer) = self.committer.get().filter(|_| commits) {
            committer.unpark();
        }
        commits
    }

    /// Half the shortest interval: a write waits at most that long for its flush to begin.
    pub(crate) fn flush_period(&self) -> Option<Duration> {
        let interval = self.asked.shortest()?;
        let interval = if planted::is_on(Bug::IntervalTooLong) { 4 * interval } else { interval };
        Some(Duration::from_millis(interval / 2).max(MIN_FLUSH_PERIOD))
    }

    pub(crate) fn sleep(&self, longest: Duration) {
        let signal = self.signal.lock().expect("no code panics while it signals");
        let wait = self.woken.wait_timeout_while(signal, longest, |signal| !*signal);
        let (mut signal, _) = wait.expect("no code panics while it signals");
        *signal = false;
    }

    /// Stops the threads and waits for them.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.wake();
        let threads = std::mem::take(&mut *self.threads.lock().expect("no code panics while it starts threads"));
        let this = std::thread::current().id();
        for thread in threads {
            thread.thread().unpark();
            // The last handle may be dropped by a thread of our own.
            if thread.thread().id() != this {
                // A panic has been dealt with where it was met: see `survive`.
                let _ = thread.join();
            }
        }
    }
}

/// The shortest period between two flushes of the class `interval`.
pub(crate) const MIN_FLUSH_PERIOD: Duration = Duration::from_millis(1);
