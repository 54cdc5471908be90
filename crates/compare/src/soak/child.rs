//! The measured process: one engine, filled under a memory limit until there are enough keys or the time is up.

use super::settings;
use super::writers::{Writers, latency_histogram};
use crate::class::Class;
use crate::engine::{Engine, Resources};
use crate::error::{Error, Result};
use crate::host::{Disk, Usage};
use crate::memory;
use crate::process::reply;
use crate::records::Shape;
use crate::store::check_acknowledged;
use aiodb::io::memory::control_group_bytes;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a key.
pub const KEY_BYTES: usize = 25;

/// It is looked so often whether a point has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A process that used less than this share of a processor for so long has no work left.
const RESTING_PROCESSORS: f64 = 0.05;
const REST: Duration = Duration::from_secs(1);

/// The longest that an engine is given to catch up.
pub const MOST_CATCH_UP: Duration = Duration::from_secs(3600);

/// What a measured process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The name of the engine and its setting.
    pub engine: String,
    /// Where its store is made.
    pub directory: PathBuf,
    /// Bytes of each value.
    pub value_bytes: usize,
    /// What a put has survived when it is acknowledged.
    pub class: Class,
    /// Threads that put.
    pub writers: u32,
    /// Puts per second of all threads together, whatever the engine does; None for as fast as they can.
    pub puts_per_s: Option<f64>,
    /// Keys after which the run is over.
    pub keys: u64,
    /// The time after which it is over all the same.
    pub most_time: Duration,
    /// The length of a point.
    pub point: Duration,
    /// What the engine may take of memory.
    pub memory_bytes: u64,
    /// The control group that enforces it. None where there can be none.
    pub group: Option<PathBuf>,
}

impl Request {
    fn shape(&self) -> Shape {
        Shape { key_bytes: KEY_BYTES, value_bytes: self.value_bytes }
    }
}

/// What it says, one in a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The engine is open.
    Opened {
        /// What it runs with.
        settings: Value,
        /// What a control group allows the process, page cache included. None without a limit.
        memory_limit_bytes: Option<u64>,
    },
    /// Another point was measured.
    Measured(Point),
    /// All writers have ended, the engine has caught up, and what it acknowledged is there.
    Finished(Totals),
    /// Nothing more can be measured; the text says why.
    Failed(String),
}

/// One stretch of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// From the start of the run to the end of the point.
    pub at_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Keys in the store at its end.
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

/// What a whole run took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Acknowledged puts, each of a key of its own.
    pub puts: u64,
    /// From the start to the last acknowledgement.
    pub seconds: f64,
    /// Half of the puts took at most this long.
    pub p50_us: f64,
    /// 99 % of them.
    pub p99_us: f64,
    /// 99.9 % of them.
    pub p999_us: f64,
    /// All of them.
    pub longest_us: f64,
    /// The most memory that the process had, mapped files included.
    pub most_resident_bytes: u64,
    /// The most that the control group held at once, page cache included.
    pub peak_memory_bytes: Option<u64>,
    /// Memory of the process in swap: the run is void if there is any.
    pub swapped_bytes: u64,
    /// Processor time of the process until the last acknowledgement.
    pub cpu_seconds: f64,
    /// Written to the device by anyone until then.
    pub device_written_bytes: Option<u64>,
    /// From the last acknowledgement until the engine had done what the puts left for later.
    pub catch_up_seconds: f64,
    /// As above, until then.
    pub settled_cpu_seconds: f64,
    /// As above, until then.
    pub settled_device_written_bytes: Option<u64>,
    /// What the files took on the disk then.
    pub disk_bytes: u64,
}

/// Does what a request says and replies on the standard output.
pub fn run(request: &Request) -> Result<()> {
    if let Err(error) = measure(request) {
        reply(&Reply::Failed(error.to_string()))?;
    }
    Ok(())
}

fn measure(request: &Request) -> Result<()> {
    if let Some(group) = &request.group {
        memory::join(group)?;
    }
    let spec = settings::named(&request.engine)
        .ok_or_else(|| Error::Request(format!("there is no engine {}", request.engine)))?;
    let resources = Resources {
        memory_bytes: Some(request.memory_bytes),
        data_bytes: Some(request.keys * request.shape().record_bytes()),
    };
    let disk = Disk::under(request.directory.parent().unwrap_or(&request.directory))?;
    let engine = spec.open(&request.directory, resources)?;
    reply(&Reply::Opened { settings: engine.settings(), memory_limit_bytes: control_group_bytes() })?;
    let soak = Soak { engine: &*engine, disk: &disk, request };
    let totals = soak.run()?;
    reply(&Reply::Finished(totals))?;
    engine.close()
}

/// A run over one store.
struct Soak<'a> {
    engine: &'a dyn Engine,
    disk: &'a Disk,
    request: &'a Request,
}

/// What came of the writers.
struct Written {
    /// Of each writer's sequence.
    acknowledged: Vec<u64>,
    latencies_ns: Histogram<u64>,
    seconds: f64,
}

impl Soak<'_> {
    fn run(&self) -> Result<Totals> {
        self.disk.flush()?;
        let before = self.disk.usage()?;
        let written = self.write()?;
        let at_last_put = self.disk.usage()?;
        let (catch_up_seconds, after) = self.catch_up()?;
        check_acknowledged(self.engine, &self.request.engine, self.request.shape(), &written.acknowledged)?;

        let latencies_ns = &written.latencies_ns;
        let cpu_seconds = |until: Usage| (until.cpu - before.cpu).as_secs_f64();
        let device_bytes = |until: Usage| Some(until.device_bytes? - before.device_bytes?);
        Ok(Totals {
            puts: written.acknowledged.iter().sum(),
            seconds: written.seconds,
            p50_us: quantile_us(latencies_ns, 0.5),
            p99_us: quantile_us(latencies_ns, 0.99),
            p999_us: quantile_us(latencies_ns, 0.999),
            longest_us: latencies_ns.max() as f64 / 1e3,
            most_resident_bytes: memory::most_resident_bytes()?,
            peak_memory_bytes: memory::peak_bytes(self.request.group.as_deref()),
            swapped_bytes: memory::swapped_bytes()?,
            cpu_seconds: cpu_seconds(at_last_put),
            device_written_bytes: device_bytes(at_last_put),
            catch_up_seconds,
            settled_cpu_seconds: cpu_seconds(after),
            settled_device_written_bytes: device_bytes(after),
            disk_bytes: memory::disk_bytes(&self.request.directory)?,
        })
    }

    /// Lets the engine do what the puts left for later. Merges that an engine tells nothing of have ended when the process
    /// rests.
    fn catch_up(&self) -> Result<(f64, Usage)> {
        let start = Instant::now();
        self.engine.finish()?;
        self.disk.flush()?;
        loop {
            let (seconds, usage) = (start.elapsed().as_secs_f64(), self.disk.usage()?);
            thread::sleep(REST);
            let used = self.disk.usage()?.cpu - usage.cpu;
            if used.as_secs_f64() < RESTING_PROCESSORS * REST.as_secs_f64() || start.elapsed() > MOST_CATCH_UP {
                return Ok((seconds, usage));
            }
        }
    }

    /// Lets all writers put until the run is over, and tells of each point when it ends.
    fn write(&self) -> Result<Written> {
        let Request { class, writers, keys, puts_per_s, .. } = *self.request;
        let shared = Writers::new(self.engine, self.request.shape(), class, writers, keys, puts_per_s);
        thread::scope(|scope| {
            let shared = &shared;
            let threads: Vec<_> =
                (0..writers).map(|thread| scope.spawn(move || shared.put_until_over(thread))).collect();
            let syncs = shared.want_syncs().then(|| scope.spawn(move || shared.sync_until_over()));
            let watched = self.watch(shared, || threads.iter().all(|thread| thread.is_finished()));
            shared.end();
            let acknowledged: Result<Vec<u64>> =
                threads.into_iter().map(|thread| thread.join().expect("a writer panicked")).collect();
            let seconds = shared.start().elapsed().as_secs_f64();
            if let Some(syncs) = syncs {
                syncs.join().expect("the thread that syncs panicked")?;
            }
            let (acknowledged, mut latencies_ns) = (acknowledged?, watched?);
            latencies_ns.add(shared.take_latencies_ns()).expect("all histograms have the same range");
            Ok(Written { acknowledged, latencies_ns, seconds })
        })
    }

    /// Tells of each whole point until all writers have ended or the time is up, and returns all latencies until then.
    fn watch(&self, writers: &Writers, have_ended: impl Fn() -> bool) -> Result<Histogram<u64>> {
        let (start, deadline) = (writers.start(), writers.start() + self.request.most_time);
        let mut all_ns = latency_histogram();
        let mut before = (start, self.disk.usage()?);
        loop {
            // Where the last point took longer than it should, the next one ends with the whole point after it.
            let whole_points = (before.0 - start).as_nanos() / self.request.point.as_nanos();
            let whole = start + self.request.point * (whole_points as u32 + 1);
            let end = whole.min(deadline);
            while Instant::now() < end && !have_ended() {
                thread::sleep((end - Instant::now().min(end)).min(LOOK));
            }
            let now = (Instant::now(), self.disk.usage()?);
            let latencies_ns = writers.take_latencies_ns();
            all_ns.add(&latencies_ns).expect("all histograms have the same range");
            // What is left after the last whole point is too short to say much.
            if now.0 >= whole || before.0 == start {
                let at_s = (now.0 - start).as_secs_f64();
                reply(&Reply::Measured(point(at_s, all_ns.len(), &latencies_ns, before, now)?))?;
            }
            if have_ended() || now.0 >= deadline {
                return Ok(all_ns);
            }
            before = now;
        }
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
