//! A run of writers, told in points of equal length.

use crate::error::Result;
use crate::host::{Disk, Usage};
use crate::memory;
use crate::writers::{Writers, latency_histogram};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::thread;
use std::time::{Duration, Instant};

/// It is looked so often whether a point has ended.
const LOOK: Duration = Duration::from_millis(20);

/// One stretch of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// From the start of the run to the end of the point.
    pub at_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Puts acknowledged up to its end; where each put has a key of its own, keys in the store.
    pub keys: u64,
    /// Acknowledged in it, by its length.
    pub puts_per_s: f64,
    /// Of the puts that ended in it; 0 if none did.
    pub p50_us: f64,
    /// Likewise.
    pub p99_us: f64,
    /// Likewise.
    pub p999_us: f64,
    /// Likewise.
    pub longest_us: f64,
    /// Memory of the process at its end, mapped files included.
    pub resident_bytes: u64,
    /// Processors in use by the process, user and system.
    pub processors: f64,
    /// Written to the device by anyone.
    pub device_written_bytes_per_s: Option<f64>,
    /// Read from the device by anyone.
    pub device_reads_per_s: Option<f64>,
}

/// How long a run is at most, and its points.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The time after which the run is over, however little was written.
    pub most_time: Duration,
    /// The length of a point.
    pub point: Duration,
}

/// Who follows a run. An error ends it.
pub trait Watcher {
    /// Is called some fifty times a second.
    fn look(&mut self) -> Result<()> {
        Ok(())
    }

    /// Is told of each point when it ends.
    fn point(&mut self, point: Point) -> Result<()>;
}

/// What came of the writers.
pub struct Written {
    /// By each writer.
    pub acknowledged: Vec<u64>,
    /// Of all writes that were acknowledged.
    pub latencies_ns: Histogram<u64>,
    /// From the start to the last acknowledgement.
    pub seconds: f64,
}

impl Written {
    /// Half of the writes took at most this long, or another share of them.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        quantile_us(&self.latencies_ns, quantile)
    }

    /// All of them took at most this long.
    pub fn longest_us(&self) -> f64 {
        self.latencies_ns.max() as f64 / 1e3
    }
}

/// Lets all writers write until the run is over. `writer` makes what the thread with a number does for each write.
pub fn write<W: FnMut(u64) -> Result<()>>(
    writers: &Writers,
    disk: &Disk,
    pace: Pace,
    writer: impl Fn(u32) -> W + Sync,
    watcher: &mut impl Watcher,
) -> Result<Written> {
    thread::scope(|scope| {
        let writer = &writer;
        let threads: Vec<_> = (0..writers.threads())
            .map(|thread| scope.spawn(move || writers.write_until_over(thread, writer(thread))))
            .collect();
        let syncs = writers.want_syncs().then(|| scope.spawn(move || writers.sync_until_over()));
        let watched = watch(writers, disk, pace, || threads.iter().all(|thread| thread.is_finished()), watcher);
        writers.end();
        let acknowledged: Result<Vec<u64>> =
            threads.into_iter().map(|thread| thread.join().expect("a writer panicked")).collect();
        let seconds = writers.start().elapsed().as_secs_f64();
        if let Some(syncs) = syncs {
            syncs.join().expect("the thread that syncs panicked")?;
        }
        let (acknowledged, mut latencies_ns) = (acknowledged?, watched?);
        latencies_ns.add(writers.take_latencies_ns()).expect("all histograms have the same range");
        Ok(Written { acknowledged, latencies_ns, seconds })
    })
}

/// Tells of each whole point until all writers have ended or the time is up, and returns all latencies until then.
fn watch(
    writers: &Writers,
    disk: &Disk,
    pace: Pace,
    have_ended: impl Fn() -> bool,
    watcher: &mut impl Watcher,
) -> Result<Histogram<u64>> {
    let (start, deadline) = (writers.start(), writers.start() + pace.most_time);
    let mut all_ns = latency_histogram();
    let mut before = (start, disk.usage()?);
    loop {
        // Where the last point took longer than it should, the next one ends with the whole point after it.
        let whole_points = (before.0 - start).as_nanos() / pace.point.as_nanos();
        let whole = start + pace.point * (whole_points as u32 + 1);
        let end = whole.min(deadline);
        while Instant::now() < end && !have_ended() {
            watcher.look()?;
            thread::sleep((end - Instant::now().min(end)).min(LOOK));
        }
        let now = (Instant::now(), disk.usage()?);
        let latencies_ns = writers.take_latencies_ns();
        all_ns.add(&latencies_ns).expect("all histograms have the same range");
        // What is left after the last whole point is too short to say much.
        if now.0 >= whole || before.0 == start {
            let at_s = (now.0 - start).as_secs_f64();
            watcher.point(point(at_s, all_ns.len(), &latencies_ns, before, now)?)?;
        }
        if have_ended() || now.0 >= deadline {
            return Ok(all_ns);
        }
        before = now;
    }
}

/// The figures of what lies between two moments.
fn point(
    at_s: f64,
    keys: u64,
    latencies_ns: &Histogram<u64>,
    before: (Instant, Usage),
    now: (Instant, Usage),
) -> Result<Point> {
    let seconds = (now.0 - before.0).as_secs_f64();
    let (before, now) = (before.1, now.1);
    let per_s = |before: Option<u64>, now: Option<u64>| Some((now? - before?) as f64 / seconds);
    Ok(Point {
        at_s,
        seconds,
        keys,
        puts_per_s: latencies_ns.len() as f64 / seconds,
        p50_us: quantile_us(latencies_ns, 0.5),
        p99_us: quantile_us(latencies_ns, 0.99),
        p999_us: quantile_us(latencies_ns, 0.999),
        longest_us: latencies_ns.max() as f64 / 1e3,
        resident_bytes: memory::resident_bytes()?,
        processors: (now.cpu - before.cpu).as_secs_f64() / seconds,
        device_written_bytes_per_s: per_s(before.device_bytes, now.device_bytes),
        device_reads_per_s: per_s(before.device_reads, now.device_reads),
    })
}

fn quantile_us(latencies_ns: &Histogram<u64>, quantile: f64) -> f64 {
    latencies_ns.value_at_quantile(quantile) as f64 / 1e3
}

#[cfg(test)]
pub(crate) mod tests;
