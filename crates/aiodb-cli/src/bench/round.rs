//! One timed round: threads prepare, start together, work until the time is up, and finish what they have begun.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::counters::{BlockDevice, DiskCounts, process_cpu_time};
use crate::CliError;

/// Latency is taken for one operation in this many: reading the clock costs as much as a few per cent of a get.
pub(crate) const LATENCY_SAMPLE_EVERY: u64 = 8;

/// What one thread did.
pub(crate) struct Tally {
    /// Operations finished while the clock ran: until the time was up.
    pub in_time: u64,
    /// All operations finished, including those before the clock started and those in flight when the time was up.
    pub finished: u64,
    /// How long the clock ran, as this thread saw it. It starts with the round, or later where a loop first fills a queue.
    pub elapsed: Duration,
    /// Nanoseconds from request to answer of the sampled operations.
    pub latency_ns: Histogram<u64>,
}

impl Tally {
    /// A tally without latencies, for loops that take none.
    pub(crate) fn untimed(in_time: u64, finished: u64, elapsed: Duration) -> Tally {
        Tally { in_time, finished, elapsed, latency_ns: empty_latencies() }
    }
}

/// A histogram of nanoseconds with two significant digits, which grows as needed.
pub(crate) fn empty_latencies() -> Histogram<u64> {
    Histogram::new(2).expect("two significant digits are in the allowed range")
}

/// What all threads of a round did together, and what that cost.
pub(crate) struct Round {
    pub operations_per_s: f64,
    /// All operations finished, the base for the costs below.
    pub finished: u64,
    /// From the common start until the last thread had finished.
    pub elapsed: Duration,
    pub cpu_us_per_operation: f64,
    /// The disk's counts, from all processes; `None` where they cannot be told.
    pub disk: Option<DiskCounts>,
    pub latency_ns: Histogram<u64>,
}

/// A quantile of the latencies in microseconds; 0 where there are none.
pub(crate) fn latency_us(latency_ns: &Histogram<u64>, quantile: f64) -> f64 {
    latency_ns.value_at_quantile(quantile) as f64 / 1000.0
}

/// Runs `work` on `threads` threads at once. `prepare` makes each thread's state before the clock starts, on the
/// thread itself, since a ring belongs to the thread that made it.
pub(crate) fn run<S>(
    threads: usize,
    disk: Option<&BlockDevice>,
    prepare: impl Fn(usize) -> Result<S, CliError> + Sync,
    work: impl Fn(S, Instant) -> Result<Tally, CliError> + Sync,
) -> Result<Round, CliError> {
    let (ready, go) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let (ready, go, prepare, work) = (&ready, &go, &prepare, &work);
                scope.spawn(move || {
                    // The outcome is looked at only after the barriers: a thread that failed must not keep the others
                    // waiting.
                    let state = prepare(thread);
                    ready.wait();
                    go.wait();
                    work(state?, Instant::now())
                })
            })
            .collect();
        ready.wait();
        let disk_before = disk.and_then(BlockDevice::counts);
        let cpu_before = process_cpu_time();
        let start = Instant::now();
        go.wait();
        let tallies: Vec<_> = workers.into_iter().map(|worker| worker.join().expect("a worker panicked")).collect();
        let elapsed = start.elapsed();
        let cpu = process_cpu_time() - cpu_before;
        let disk_counts = disk.and_then(BlockDevice::counts).zip(disk_before).map(|(now, before)| now.since(before));
        Ok(summed(tallies.into_iter().collect::<Result<_, _>>()?, elapsed, cpu, disk_counts))
    })
}

fn summed(tallies: Vec<Tally>, elapsed: Duration, cpu: Duration, disk: Option<DiskCounts>) -> Round {
    let finished = tallies.iter().map(|tally| tally.finished).sum::<u64>();
    let mut latency_ns = empty_latencies();
    for tally in &tallies {
        latency_ns.add(&tally.latency_ns).expect("an automatically growing histogram takes any other");
    }
    Round {
        operations_per_s: tallies.iter().map(|tally| tally.in_time as f64 / tally.elapsed.as_secs_f64()).sum(),
        finished,
        elapsed,
        cpu_us_per_operation: cpu.as_secs_f64() * 1e6 / finished.max(1) as f64,
        disk,
        latency_ns,
    }
}

#[cfg(test)]
mod tests;
