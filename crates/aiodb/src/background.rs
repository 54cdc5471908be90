//! The threads that do in production what a simulator calls step by step.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, Weak};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use crate::engine::Engine;
use crate::io::Device;
use crate::log::Claim;
use crate::planted::{self, Bug};
use crate::{Durability, Error, Result};

const WRITER: &str = "aiodb-writer";
const UPKEEP: &str = "aiodb-upkeep";
const MAKER: &str = "aiodb-segments";

/// The writer looks at the open batch at least this often, so that `none` leaves nothing in memory for long.
const WRITER_PERIOD: Duration = Duration::from_millis(500);
/// The shortest period between two flushes of the class `interval`.
const MIN_FLUSH_PERIOD: Duration = Duration::from_millis(1);
/// How often maintenance looks for work when nobody wakes it.
const MAINTENANCE_PERIOD: Duration = Duration::from_millis(50);
/// Tags settled in one step.
const SETTLED_PER_STEP: usize = 256;
/// Retired segments are worth a checkpoint of their own when there are so many...
const RETIRED_BEFORE_CHECKPOINT: usize = 4;
/// ...and one of so many segments is retired: in a large store a checkpoint writes more, most of it once for several changes.
const SEGMENTS_PER_RETIRED: usize = 8;

/// A bounded piece of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write the open batch to the log.
    Write,
    /// Make everything appended so far durable.
    Flush,
    /// Bring the indexes' durable state up to the log.
    Checkpoint,
    /// Read records under doubtful tags of `hash` indexes and retire overwritten ones; fold operands.
    Settle,
    /// Take keys of deleted ranges out of the ordered index.
    DeleteRanges,
    /// Move live records out of the emptiest segment.
    Reclaim,
    /// Make free segments ahead of need, and free those that nobody needs any more.
    Prepare,
    /// What the writer's thread does when it wakes: write or flush the open batch if it is due by the clock.
    WriteBehind,
    /// What the other thread does when it wakes: a bit of everything that is due.
    Upkeep,
}

/// When the writer did its work last, in milliseconds of the device's clock.
#[derive(Default)]
struct Written {
    flush: u64,
    write: u64,
}

/// Wakes and stops the threads.
#[derive(Default)]
pub(crate) struct Background {
    threads: Mutex<Vec<JoinHandle<()>>>,
    signal: Mutex<bool>,
    woken: Condvar,
    stopped: AtomicBool,
    last: Mutex<Written>,
    asked: Asked,
    /// The thread that makes segments ahead of need.
    maker: OnceLock<Thread>,
}

/// The shortest interval, in milliseconds, of the writes since the last flush began; the highest number if there is none.
/// Earlier writes need nothing any more, so that a long interval counts again when nobody asks for a short one.
struct Asked(AtomicU64);

impl Default for Asked {
    fn default() -> Asked {
        Asked(AtomicU64::new(u64::MAX))
    }
}

impl Asked {
    /// Takes note of an acknowledged write. True if its interval is shorter than all others.
    fn note(&self, interval_ms: u64) -> bool {
        // Most writes find theirs, and need not fight for the line.
        self.0.load(Ordering::SeqCst) > interval_ms && self.0.fetch_min(interval_ms, Ordering::SeqCst) > interval_ms
    }

    /// A flush begins, which has all writes noted before.
    fn begin_flush(&self) {
        self.0.store(u64::MAX, Ordering::SeqCst);
    }

    fn shortest(&self) -> Option<u64> {
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
    fn wake(&self) {
        *self.signal.lock().expect("no code panics while it signals") = true;
        self.woken.notify_one();
    }

    /// Tells the thread that makes segments that one was taken.
    pub(crate) fn wake_maker(&self) {
        if let Some(maker) = self.maker.get() {
            maker.unpark();
        }
    }

    /// Half the shortest interval: a write waits at most that long for its flush to begin.
    fn flush_period(&self) -> Option<Duration> {
        let interval = self.asked.shortest()?;
        let interval = if planted::is_on(Bug::IntervalTooLong) { 4 * interval } else { interval };
        Some(Duration::from_millis(interval / 2).max(MIN_FLUSH_PERIOD))
    }

    fn sleep(&self, longest: Duration) {
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

/// Starts the threads of a store. They end when the store is closed or its last handle is gone.
pub(crate) fn start<D: Device>(engine: &Arc<Engine<D>>) -> Result<()> {
    let mut threads = engine.background.threads.lock().expect("no code panics while it starts threads");
    let spawn = |name: &str, work: fn(Weak<Engine<D>>)| {
        let engine = Arc::downgrade(engine);
        std::thread::Builder::new().name(name.into()).spawn(move || work(engine))
    };
    let all =
        [(WRITER, write_out::<D> as fn(_)), (UPKEEP, maintain::<D> as fn(_)), (MAKER, make_segments::<D> as fn(_))];
    for (name, work) in all {
        let thread = spawn(name, work).map_err(|e| Error::io("start a thread for", &engine.root, &e))?;
        if name == MAKER {
            let _ = engine.background.maker.set(thread.thread().clone());
        }
        threads.push(thread);
    }
    Ok(())
}

/// Does a piece of work of a thread of the store's own. If it panics, the thread is gone, and what it leaves undone would be
/// missed by everyone: the store accepts no more writes and says why, to waiters, in its statistics and when it is closed.
/// True if there was no panic.
pub(crate) fn survive<D: Device>(engine: &Engine<D>, thread: &str, work: impl FnOnce()) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    if let Err(panic) = &outcome {
        engine.fail_because(format!("the thread {thread} of the store panicked: {}", message_of(&**panic)));
    }
    outcome.is_ok()
}

/// What a panic says of itself.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message").to_string()
}

/// Writes open batches of the classes that do not wait, and flushes for `interval`.
fn write_out<D: Device>(engine: Weak<Engine<D>>) {
    loop {
        let Some(engine) = engine.upgrade() else { return };
        if engine.background.stopped.load(Ordering::SeqCst) {
            return;
        }
        let mut rest = Duration::ZERO;
        let survived = survive(&engine, WRITER, || {
            let (outcome, until_due) = engine.write_behind();
            if let Err(error) = outcome {
                engine.note_trouble(&error);
            }
            engine.refresh_metrics_file();
            rest = until_due;
        });
        if !survived {
            return;
        }
        engine.background.sleep(rest);
    }
}

/// Everything else that happens behind the scenes.
fn maintain<D: Device>(engine: Weak<Engine<D>>) {
    loop {
        let Some(engine) = engine.upgrade() else { return };
        if engine.background.stopped.load(Ordering::SeqCst) {
            return;
        }
        let mut busy = false;
        let survived = survive(&engine, UPKEEP, || {
            busy = engine.maintain_once().unwrap_or_else(|error| {
                engine.note_trouble(&error);
                false
            });
        });
        if !survived {
            return;
        }
        drop(engine);
        if !busy {
            std::thread::park_timeout(MAINTENANCE_PERIOD);
        }
    }
}

/// Makes segments ahead of need, so that a writer finds one: a thread with other work would come to it too late.
fn make_segments<D: Device>(engine: Weak<Engine<D>>) {
    loop {
        let Some(engine) = engine.upgrade() else { return };
        if engine.background.stopped.load(Ordering::SeqCst) {
            return;
        }
        let mut made = false;
        let survived = survive(&engine, MAKER, || made = engine.make_ahead());
        if !survived {
            return;
        }
        drop(engine);
        if !made {
            std::thread::park_timeout(MAINTENANCE_PERIOD);
        }
    }
}

impl<D: Device> Engine<D> {
    /// Makes a segment ahead of need; true if it was missing.
    fn make_ahead(&self) -> bool {
        if self.commit.failure().is_some() {
            return false;
        }
        self.keep_index_room().and_then(|()| self.segments.make_ahead()).unwrap_or_else(|error| {
            // A full disk is met by upkeep too, which does something about it.
            if !error.is_full() {
                self.note_trouble(&error);
            }
            false
        })
    }

    /// One bounded piece of background work.
    pub(crate) fn step(&self, step: Step) -> Result<()> {
        if self.options.read_only {
            self.commit.check()?;
        }
        match step {
            Step::Write => self.write_open_batch(),
            Step::Flush => self.flush(),
            Step::Checkpoint => self.checkpoint(),
            Step::Settle => {
                self.settle_some(SETTLED_PER_STEP);
                Ok(())
            }
            Step::DeleteRanges => self.delete_ranges().map(drop),
            Step::Reclaim => self.reclaim_some().map(drop),
            Step::Prepare => {
                self.release_retired()?;
                self.keep_index_room()?;
                self.segments.replenish()
            }
            Step::WriteBehind => self.write_behind().0,
            Step::Upkeep => self.maintain_once().map(drop),
        }
    }

    /// Writes or flushes what is due; says how long there is nothing more to do.
    fn write_behind(&self) -> (Result<()>, Duration) {
        // A clock that is set is noticed although nobody asks what has expired.
        self.now_ms();
        let now = self.device.clock_ms();
        let period = self.background.flush_period().map(|period| period.as_millis() as u64);
        let mut last = self.background.last.lock().expect("no code panics while it writes behind");
        let outcome = if period.is_some_and(|period| now >= last.flush + period) {
            (last.flush, last.write) = (now, now);
            self.background.asked.begin_flush();
            self.flush()
        } else if self.write_is_due(now >= last.write + WRITER_PERIOD.as_millis() as u64) {
            last.write = now;
            self.write_open_batch()
        } else {
            Ok(())
        };
        let next_flush = period.map(|period| Duration::from_millis((last.flush + period).saturating_sub(now)));
        (outcome, next_flush.unwrap_or(WRITER_PERIOD).clamp(MIN_FLUSH_PERIOD, WRITER_PERIOD))
    }

    /// A round of upkeep; true if there is more to do at once.
    fn maintain_once(&self) -> Result<bool> {
        if self.commit.failure().is_some() {
            return Ok(false);
        }
        // The age of a reader is known from when upkeep has first seen it.
        self.pins.age_ms(self.device.clock_ms());
        // A full disk must not keep the other work from making room.
        let mut refusal = None;
        let mut some = |outcome: Result<bool>| match outcome {
            Err(error) if error.is_full() => {
                refusal.get_or_insert(error);
                Ok(false)
            }
            outcome => outcome,
        };
        some(self.keep_tail_bounded(Claim::Ordinary).map(|()| false))?;
        let settled = self.settle_some(SETTLED_PER_STEP);
        let deleted = some(self.delete_ranges())?;
        some(self.step(Step::Prepare).map(|()| false))?;
        let mut reclaimed = some(self.reclaim_some())?;
        let full = self.segments.is_refused();
        if full && !reclaimed && self.checkpoint_state().0 == 0 {
            reclaimed = some(self.cover_tail())? && some(self.reclaim_some())?;
        }
        let (retired, lag_bytes) = self.checkpoint_state();
        let short = full && retired > 0;
        let stuck = !reclaimed && self.is_reclaim_stuck() && self.is_checkpoint_awaited();
        if lag_bytes >= self.checkpoint_bytes() || self.are_many(retired) || short || stuck {
            some(self.checkpoint().map(|()| false))?;
        }
        if short {
            self.end_snapshot_in_the_way()?;
        }
        if let Some(refusal) = refusal {
            self.note_trouble(&refusal);
        }
        Ok(reclaimed || settled || deleted)
    }

    /// Carries out some of the range deletes; those that the index does not cover yet are covered first.
    fn delete_ranges(&self) -> Result<bool> {
        Ok(self.carry_out_ranges()? || (self.cover_ranges()? && self.carry_out_ranges()?))
    }

    /// Whether so many retired segments are worth a checkpoint of their own.
    fn are_many(&self, retired: usize) -> bool {
        retired >= RETIRED_BEFORE_CHECKPOINT && retired >= self.segments.iter().count() / SEGMENTS_PER_RETIRED
    }

    /// Bytes of log between two checkpoints: more for a large index, so that writing it stays a small share.
    fn checkpoint_bytes(&self) -> u64 {
        let indexes: usize = self.catalog.generations().iter().map(|generation| generation.memory_bytes()).sum();
        self.options.checkpoint_bytes.max(4 * indexes as u64)
    }

    fn write_is_due(&self, period_over: bool) -> bool {
        let bytes = self.commit.open_bytes();
        bytes >= crate::write::BATCH_TARGET_BYTES || (period_over && bytes > 0)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
