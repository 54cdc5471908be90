//! The threads that do in production what a simulator calls step by step.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::engine::Engine;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::{Durability, Error, Result};

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
    /// The shortest interval, in milliseconds, that a write asked for; 0 = none did.
    interval_ms: AtomicU64,
}

impl Background {
    /// Takes note of an acknowledged write; `due` means that the open batch should be written now.
    pub(crate) fn note(&self, durability: Durability, due: bool) {
        if let Durability::Interval(interval) = durability {
            let wanted = interval.clamp(MIN_FLUSH_PERIOD, Duration::from_secs(3600)).as_millis() as u64;
            let known = self.interval_ms.load(Ordering::Relaxed);
            if known == 0 || wanted < known {
                self.interval_ms.store(wanted, Ordering::Relaxed);
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

    /// Half the shortest interval: a write waits at most that long for its flush to begin.
    fn flush_period(&self) -> Option<Duration> {
        let interval = self.interval_ms.load(Ordering::Relaxed);
        let interval = if planted::is_on(Bug::IntervalTooLong) { 4 * interval } else { interval };
        (interval > 0).then(|| Duration::from_millis(interval / 2).max(MIN_FLUSH_PERIOD))
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
                thread.join().expect("background work does not panic");
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
    for (name, work) in [("aiodb-writer", write_out::<D> as fn(_)), ("aiodb-upkeep", maintain::<D> as fn(_))] {
        threads.push(spawn(name, work).map_err(|e| Error::io("start a thread for", &engine.root, &e))?);
    }
    Ok(())
}

/// Writes open batches of the classes that do not wait, and flushes for `interval`.
fn write_out<D: Device>(engine: Weak<Engine<D>>) {
    loop {
        let Some(engine) = engine.upgrade() else { return };
        if engine.background.stopped.load(Ordering::SeqCst) {
            return;
        }
        let (outcome, rest) = engine.write_behind();
        if let Err(error) = outcome {
            engine.note_trouble(&error);
        }
        engine.refresh_metrics_file();
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
        let busy = engine.maintain_once().unwrap_or_else(|error| {
            engine.note_trouble(&error);
            false
        });
        drop(engine);
        if !busy {
            std::thread::park_timeout(MAINTENANCE_PERIOD);
        }
    }
}

impl<D: Device> Engine<D> {
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
        self.keep_tail_bounded()?;
        let settled = self.settle_some(SETTLED_PER_STEP);
        let deleted = self.delete_ranges()?;
        // A full disk must not keep reclaim from making room.
        let prepared = self.step(Step::Prepare);
        let full = prepared.as_ref().is_err_and(Error::is_full);
        let mut reclaimed = self.reclaim_some()?;
        if full && !reclaimed && self.checkpoint_state().0 == 0 {
            reclaimed = self.cover_tail()? && self.reclaim_some()?;
        }
        let (retired, lag_bytes) = self.checkpoint_state();
        let short = full && retired > 0;
        if lag_bytes >= self.checkpoint_bytes() || self.are_many(retired) || short {
            self.checkpoint()?;
        }
        if short {
            self.end_snapshot_in_the_way()?;
        }
        prepared.map(|()| reclaimed || settled || deleted)
    }

    /// Carries out some of the range deletes; those that the index does not cover yet are covered first.
    fn delete_ranges(&self) -> Result<bool> {
        Ok(self.carry_out_ranges()? || (self.cover_ranges()? && self.carry_out_ranges()?))
    }

    /// On a full disk, emptied segments that a snapshot holds are worth more than the snapshot.
    fn end_snapshot_in_the_way(&self) -> Result<()> {
        if self.checkpoint_state().0 > 0 && self.snapshots.end_oldest() {
            self.take_out_dead()?;
            self.release_retired()?;
        }
        Ok(())
    }

    /// Empties a segment and frees what can be freed, now.
    pub(crate) fn make_room(&self) -> Result<()> {
        let empty_one = || {
            while self.checkpoint_state().0 == 0 && self.reclaim_some()? {}
            Ok::<_, Error>(self.checkpoint_state().0 > 0)
        };
        if !empty_one()? && self.cover_tail()? {
            empty_one()?;
        }
        self.checkpoint()?;
        self.take_out_dead()?;
        self.release_retired()?;
        self.end_snapshot_in_the_way()
    }

    /// Takes out of the indexes what deleted ranges and dropped tables had: emptied segments wait for that.
    fn take_out_dead(&self) -> Result<()> {
        while self.carry_out_ranges()? {}
        while !self.purge_some()? {}
        Ok(())
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
