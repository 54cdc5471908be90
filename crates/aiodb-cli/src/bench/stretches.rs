//! Long runs of writes by concurrent threads, told in stretches of equal length.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::counters::{BlockDevice, DiskCounts, process_cpu_time, resident_bytes};
use super::round::empty_latencies;
use crate::CliError;

/// A writer tells how much it has done after so many writes, or so long after it did so last.
const WRITES_PER_REPORT: u64 = 64;
const REPORTED_EVERY: Duration = Duration::from_millis(100);

/// A watcher looks so often.
const LOOKED_EVERY: Duration = Duration::from_millis(100);

/// How long a run is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub writers: u64,
    /// Writes at which the run ends.
    pub writes: u64,
    /// It ends after so long all the same.
    pub longest: Duration,
    /// Length of a stretch.
    pub stretch: Duration,
}

/// What was done in one stretch.
pub(crate) struct Stretch {
    /// From the start of the run to the end of the stretch.
    pub at_s: f64,
    pub seconds: f64,
    /// Writes since the start of the run.
    pub finished: u64,
    pub writes_per_s: f64,
    /// Nanoseconds of the writes that ended in the stretch.
    pub latencies_ns: Histogram<u64>,
    /// Memory of the process that is resident at its end.
    pub resident_bytes: u64,
    /// Processors in use.
    pub processors: f64,
    /// The disk's counts, from all processes; `None` where they cannot be told.
    pub disk: Option<DiskCounts>,
}

/// The whole run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total {
    pub finished: u64,
    pub elapsed: Duration,
}

/// Who is told of a run while it goes on.
pub(crate) trait Watcher {
    /// Is called about ten times a second.
    fn look(&mut self) {}

    /// Is told of each stretch at its end.
    fn stretch(&mut self, stretch: Stretch);
}

/// What the writers share.
struct Shared {
    plan: Plan,
    next_number: AtomicU64,
    /// Writes that were acknowledged. Relaxed, like the number above: they publish nothing.
    finished: AtomicU64,
    is_over: AtomicBool,
    /// Nanoseconds of the writes that ended since they were taken last.
    latencies_ns: Mutex<Histogram<u64>>,
}

/// The counts of the process and of the disk at one moment.
struct Counts {
    at: Instant,
    finished: u64,
    cpu: Duration,
    disk: Option<DiskCounts>,
}

/// Runs writers, one thread each, until there are enough writes or the time is up. `writer` makes what a thread does with each number
/// that it is handed: one write. It returns when the call of the store began. A writer that fails ends the run.
pub(crate) fn run<W>(
    plan: Plan,
    disk: Option<&BlockDevice>,
    writer: impl Fn() -> W + Sync,
    watcher: &mut impl Watcher,
) -> Result<Total, CliError>
where
    W: FnMut(u64) -> Result<Instant, CliError>,
{
    let shared = Shared {
        plan,
        next_number: AtomicU64::new(0),
        finished: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
        latencies_ns: Mutex::new(empty_latencies()),
    };
    let start = Instant::now();
    thread::scope(|scope| {
        let before = shared.counts(disk);
        let writers: Vec<_> = (0..plan.writers).map(|_| scope.spawn(|| shared.write_until_over(writer()))).collect();
        shared.watch(disk, before, || writers.iter().all(|writer| writer.is_finished()), watcher);
        shared.is_over.store(true, Ordering::Relaxed);
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer panicked"))
    })?;
    Ok(Total { finished: shared.finished.into_inner(), elapsed: start.elapsed() })
}

impl Shared {
    /// Writes until there are enough writes or it is over.
    fn write_until_over(&self, mut write: impl FnMut(u64) -> Result<Instant, CliError>) -> Result<(), CliError> {
        let mut latencies_ns = empty_latencies();
        let mut reported = Instant::now();
        while !self.is_over.load(Ordering::Relaxed) {
            let number = self.next_number.fetch_add(1, Ordering::Relaxed);
            if number >= self.plan.writes {
                break;
            }
            let begin = write(number).inspect_err(|_| self.is_over.store(true, Ordering::Relaxed))?;
            let end = Instant::now();
            latencies_ns.record((end - begin).as_nanos() as u64).expect("the histogram grows as needed");
            if latencies_ns.len() >= WRITES_PER_REPORT || end - reported >= REPORTED_EVERY {
                self.report(&mut latencies_ns);
                reported = end;
            }
        }
        self.report(&mut latencies_ns);
        Ok(())
    }

    fn report(&self, latencies_ns: &mut Histogram<u64>) {
        self.finished.fetch_add(latencies_ns.len(), Ordering::Relaxed);
        let mut all = self.latencies_ns.lock().expect("no code panics while it adds latencies");
        all.add(&*latencies_ns).expect("an automatically growing histogram takes any other");
        latencies_ns.reset();
    }

    /// Tells of each stretch until all writers are done or the time is up.
    fn watch(
        &self,
        disk: Option<&BlockDevice>,
        mut before: Counts,
        are_done: impl Fn() -> bool,
        watcher: &mut impl Watcher,
    ) {
        let start = before.at;
        let deadline = start + self.plan.longest;
        let mut looked = start;
        for number in 1.. {
            let end = (start + self.plan.stretch * number).min(deadline);
            while Instant::now() < end && !are_done() {
                thread::sleep((end - Instant::now().min(end)).min(Duration::from_millis(5)));
                if looked.elapsed() >= LOOKED_EVERY {
                    watcher.look();
                    looked = Instant::now();
                }
            }
            let now = self.counts(disk);
            // What is left after the last whole stretch is too short to say much.
            if now.at >= end || number == 1 {
                watcher.stretch(self.stretch(start, &before, &now));
            }
            if are_done() || now.at >= deadline || self.is_over.load(Ordering::Relaxed) {
                return;
            }
            before = now;
        }
    }

    fn counts(&self, disk: Option<&BlockDevice>) -> Counts {
        Counts {
            at: Instant::now(),
            finished: self.finished.load(Ordering::Relaxed),
            cpu: process_cpu_time(),
            disk: disk.and_then(BlockDevice::counts),
        }
    }

    fn stretch(&self, start: Instant, before: &Counts, now: &Counts) -> Stretch {
        let mut latencies_ns = self.latencies_ns.lock().expect("no code panics while it adds latencies");
        let latencies_ns = std::mem::replace(&mut *latencies_ns, empty_latencies());
        let seconds = (now.at - before.at).as_secs_f64();
        Stretch {
            at_s: (now.at - start).as_secs_f64(),
            seconds,
            finished: now.finished,
            writes_per_s: (now.finished - before.finished) as f64 / seconds,
            latencies_ns,
            resident_bytes: resident_bytes(),
            processors: (now.cpu - before.cpu).as_secs_f64() / seconds,
            disk: now.disk.zip(before.disk).map(|(now, before)| now.since(before)),
        }
    }
}

#[cfg(test)]
mod tests;
