//! The threads that use an engine: each as fast as it can, or all together at a rate that does not wait for the engine.

use crate::class::{Class, INTERVAL};
use crate::engine::Engine;
use crate::error::Result;
use hdrhistogram::Histogram;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A thread that waits looks so often whether the run is over.
const LOOK: Duration = Duration::from_millis(50);

/// Latencies from a tenth of a microsecond to ten minutes, told apart by a hundredth: each writer has a histogram, and
/// they take memory that the engine is to have.
const LATENCY_NS: (u64, u64) = (100, 600_000_000_000);

/// What the writers of a run share. None of the numbers publishes anything else, so all of them are relaxed.
pub struct Writers<'a> {
    engine: &'a dyn Engine,
    class: Class,
    /// Writes after which the run is over.
    writes: u64,
    /// The rate of all threads together; None for as fast as they can.
    writes_per_s: Option<f64>,
    start: Instant,
    claimed: AtomicU64,
    is_over: AtomicBool,
    /// Of each thread, nanoseconds of the writes that ended since they were taken last.
    latencies_ns: Vec<Mutex<Histogram<u64>>>,
}

impl<'a> Writers<'a> {
    /// The clock of the run starts now.
    pub fn new(
        engine: &'a dyn Engine,
        class: Class,
        threads: u32,
        writes: u64,
        writes_per_s: Option<f64>,
    ) -> Writers<'a> {
        Writers {
            engine,
            class,
            writes,
            writes_per_s,
            start: Instant::now(),
            claimed: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            latencies_ns: (0..threads).map(|_| Mutex::new(latency_histogram())).collect(),
        }
    }

    /// When the clock was started.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// How many there are.
    pub fn threads(&self) -> u32 {
        self.latencies_ns.len() as u32
    }

    /// Lets every thread end after the write that is under way.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Makes one write after the other until the run is over, each with a number that no other write has, and returns how
    /// many were acknowledged. An error ends the run for all.
    pub fn write_until_over(&self, thread: u32, write: impl FnMut(u64) -> Result<()>) -> Result<u64> {
        self.write_all(thread, write).inspect_err(|_| self.end())
    }

    fn write_all(&self, thread: u32, mut write: impl FnMut(u64) -> Result<()>) -> Result<u64> {
        let mut acknowledged = 0;
        loop {
            let number = self.claimed.fetch_add(1, Ordering::Relaxed);
            if number >= self.writes {
                break;
            }
            let Some(begin) = self.begin(number) else { break };
            write(number)?;
            let took = begin.elapsed().as_nanos() as u64;
            self.latencies_ns[thread as usize].lock().expect(NO_PANIC).saturating_record(took);
            acknowledged += 1;
        }
        Ok(acknowledged)
    }

    /// From when on the write with this number, of all threads, is timed. At a rate that is when it was due: a thread that is
    /// early waits for it, and if all were held up by long writes, the delay counts. None once the run is over.
    fn begin(&self, number: u64) -> Option<Instant> {
        let Some(rate) = self.writes_per_s else { return (!self.is_over()).then(Instant::now) };
        let due = self.start + Duration::from_secs_f64(number as f64 / rate);
        while !self.is_over() {
            let now = Instant::now();
            if now >= due {
                return Some(due);
            }
            thread::sleep((due - now).min(LOOK));
        }
        None
    }

    /// Makes everything durable once in each interval until the run is over, for an engine that does not.
    pub fn sync_until_over(&self) -> Result<()> {
        let mut due = self.start + INTERVAL;
        loop {
            while Instant::now() < due && !self.is_over() {
                thread::sleep((due - Instant::now().min(due)).min(LOOK));
            }
            if self.is_over() {
                return Ok(());
            }
            self.engine.make_durable().inspect_err(|_| self.end())?;
            // A sync that took longer is not followed by several at once.
            due = (due + INTERVAL).max(Instant::now());
        }
    }

    /// Whether somebody has to call [`Writers::sync_until_over`].
    pub fn want_syncs(&self) -> bool {
        self.class == Class::Interval && !self.engine.keeps_intervals()
    }

    /// Latencies in nanoseconds of the writes that ended since they were taken last, by all threads.
    pub fn take_latencies_ns(&self) -> Histogram<u64> {
        let mut all = latency_histogram();
        for latencies_ns in &self.latencies_ns {
            let mut latencies_ns = latencies_ns.lock().expect(NO_PANIC);
            all.add(&*latencies_ns).expect("all histograms have the same range");
            latencies_ns.reset();
        }
        all
    }
}

const NO_PANIC: &str = "no code panics while it holds latencies";

/// An empty histogram of nanoseconds.
pub fn latency_histogram() -> Histogram<u64> {
    let (least, most) = LATENCY_NS;
    Histogram::new_with_bounds(least, most, 2).expect("the bounds are constants within the library's limits")
}

#[cfg(test)]
mod tests;
