//! One engine with its directory: loaded, measured any number of times, checked, removed.

use crate::engine::{Engine, EngineSpec, Resources};
use crate::error::{Error, Result};
use crate::host::{Disk, Usage};
use crate::records::{Records, Shape};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Threads that load the store before the measurement.
const PRELOAD_THREADS: u64 = 2;

/// The longest latency told apart from longer ones, in microseconds: one minute.
const MAX_LATENCY_US: u64 = 60_000_000;

/// A loaded engine in a directory of its own, which is removed when the store is dropped.
pub struct Store<'a> {
    spec: &'a EngineSpec,
    engine: Box<dyn Engine>,
    disk: &'a Disk,
    shape: Shape,
    /// How many records of each sequence the engine has acknowledged; the position is the sequence's number.
    acknowledged: Vec<u64>,
    // Dropped last: the engine has to be closed before its files go.
    _directory: TempDir,
}

/// The figures of one engine at one number of writers.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// The engine's name.
    pub engine: String,
    /// Threads, each of which waits for its put before it issues the next; or puts in flight from one thread.
    pub writers: u32,
    /// Records in the store when the clock started.
    pub keys_before: u64,
    /// Acknowledged puts.
    pub puts: u64,
    /// From the start to the last acknowledgement.
    pub write_seconds: f64,
    /// From there until the work that the puts left for later was done and on the device: flush and compaction, or
    /// checkpoint.
    pub catch_up_seconds: f64,
    /// `puts / write_seconds`.
    pub puts_per_second: f64,
    /// `puts / (write_seconds + catch_up_seconds)`.
    pub settled_puts_per_second: f64,
    /// Half of the puts were acknowledged within this time, in microseconds.
    pub p50_us: u64,
    /// 99 % of them.
    pub p99_us: u64,
    /// 99.9 % of them.
    pub p999_us: u64,
    /// The slowest put.
    pub max_us: u64,
    /// Processor time of the whole process per put, in microseconds, without the catching up.
    pub cpu_us_per_put: f64,
    /// The same with the catching up.
    pub settled_cpu_us_per_put: f64,
    /// Bytes written to the device, by whatever process, per byte of key and value, with the catching up.
    pub device_bytes_per_user_byte: Option<f64>,
    /// Bytes that this process caused to be written per byte of key and value, with the catching up.
    pub process_bytes_per_user_byte: Option<f64>,
}

/// The time and the resources that a point has taken.
struct Spent {
    write_time: Duration,
    /// Until the engine had caught up.
    settled_time: Duration,
    before: Usage,
    at_last_put: Usage,
    after: Usage,
}

impl<'a> Store<'a> {
    /// Opens the engine in a fresh directory under `parent` and loads `keys` records; all of them are durable, and no
    /// work is left over, when this returns.
    pub fn preloaded(
        spec: &'a EngineSpec,
        parent: &Path,
        disk: &'a Disk,
        shape: Shape,
        keys: u64,
    ) -> Result<Store<'a>> {
        let directory = tempfile::Builder::new()
            .prefix(&format!("compare-{spec}-"))
            .tempdir_in(parent)
            .map_err(Error::io("create a directory in", parent))?;
        let engine = spec.open(&directory.path().join("store"), Resources::default())?;
        let shares: Vec<u64> = (0..PRELOAD_THREADS).map(|thread| (keys + thread) / PRELOAD_THREADS).collect();
        thread::scope(|scope| {
            let loaders: Vec<_> = (0..)
                .zip(&shares)
                .map(|(sequence, &count)| {
                    let engine = &*engine;
                    scope.spawn(move || engine.preload(&mut Records::new(shape, sequence), count))
                })
                .collect();
            loaders.into_iter().try_for_each(|loader| loader.join().expect("a loader panicked"))
        })?;
        engine.finish()?;
        Ok(Store { spec, engine, disk, shape, acknowledged: shares, _directory: directory })
    }

    /// What the engine runs with.
    pub fn settings(&self) -> Value {
        self.engine.settings()
    }

    /// Lets `writers` put new records for `duration`, then lets the engine catch up.
    pub fn measure(&mut self, writers: u32, duration: Duration) -> Result<Point> {
        self.disk.flush()?;
        let keys_before = self.acknowledged.iter().sum();
        let before = self.disk.usage()?;
        let start = Instant::now();
        let written = self.write(writers, duration)?;
        let write_time = start.elapsed();
        let at_last_put = self.disk.usage()?;
        self.engine.finish()?;
        let settled_time = start.elapsed();
        self.disk.flush()?;
        let after = self.disk.usage()?;
        let spent = Spent { write_time, settled_time, before, at_last_put, after };

        let mut latencies = latency_histogram();
        for histogram in &written {
            latencies.add(histogram).expect("all histograms have the same range");
            self.acknowledged.push(histogram.len());
        }
        Ok(self.point(writers, keys_before, &latencies, &spent))
    }

    /// Runs the writers and returns the latencies of each, in microseconds.
    fn write(&self, writers: u32, duration: Duration) -> Result<Vec<Histogram<u64>>> {
        let first_sequence = self.acknowledged.len() as u64;
        if self.spec.puts_in_flight() {
            let (mut records, mut latencies) = (Records::new(self.shape, first_sequence), latency_histogram());
            let mut took = |latency: Duration| latencies.saturating_record(latency.as_micros() as u64);
            self.engine.put_in_flight(&mut records, writers as usize, duration, &mut took)?;
            return Ok(vec![latencies]);
        }
        let barrier = Barrier::new(writers as usize);
        thread::scope(|scope| {
            let threads: Vec<_> = (first_sequence..first_sequence + u64::from(writers))
                .map(|sequence| {
                    let mut records = Records::new(self.shape, sequence);
                    let (engine, barrier) = (&*self.engine, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        put_for(engine, &mut records, duration)
                    })
                })
                .collect();
            threads.into_iter().map(|writer| writer.join().expect("a writer panicked")).collect()
        })
    }

    fn point(&self, writers: u32, keys_before: u64, latencies: &Histogram<u64>, spent: &Spent) -> Point {
        let Spent { write_time, settled_time, before, at_last_put, after } = *spent;
        let puts = latencies.len();
        let user_bytes = (puts * self.shape.record_bytes()) as f64;
        let per_user_byte = |before: Option<u64>, after: Option<u64>| Some((after? - before?) as f64 / user_bytes);
        let cpu_us_per_put = |until: Usage| (until.cpu - before.cpu).as_secs_f64() * 1e6 / puts as f64;
        Point {
            engine: self.spec.to_string(),
            writers,
            keys_before,
            puts,
            write_seconds: write_time.as_secs_f64(),
            catch_up_seconds: (settled_time - write_time).as_secs_f64(),
            puts_per_second: puts as f64 / write_time.as_secs_f64(),
            settled_puts_per_second: puts as f64 / settled_time.as_secs_f64(),
            p50_us: latencies.value_at_quantile(0.5),
            p99_us: latencies.value_at_quantile(0.99),
            p999_us: latencies.value_at_quantile(0.999),
            max_us: latencies.max(),
            cpu_us_per_put: cpu_us_per_put(at_last_put),
            settled_cpu_us_per_put: cpu_us_per_put(after),
            device_bytes_per_user_byte: per_user_byte(before.device_bytes, after.device_bytes),
            process_bytes_per_user_byte: per_user_byte(before.process_bytes, after.process_bytes),
        }
    }

    /// Reads some of what was acknowledged back and removes the store.
    pub fn check_and_remove(self) -> Result<()> {
        check_acknowledged(&*self.engine, &self.spec.to_string(), self.shape, &self.acknowledged)?;
        self.engine.close()
    }
}

/// Reads the first and the last acknowledged record of every sequence back: an engine that loses what it acknowledges has
/// no figures. The position of a count is the sequence's number.
pub fn check_acknowledged(engine: &dyn Engine, name: &str, shape: Shape, acknowledged: &[u64]) -> Result<()> {
    for (sequence, &count) in (0..).zip(acknowledged) {
        let mut records = Records::new(shape, sequence);
        for index in [0, count.saturating_sub(1)].into_iter().filter(|&index| index < count) {
            let (key, value) = records.record(index);
            let found = match engine.get(key)? {
                Some(found) if found == value => continue,
                Some(_) => "another value",
                None => "nothing",
            };
            return Err(Error::Lost { engine: name.to_owned(), sequence, index, found });
        }
    }
    Ok(())
}

/// Puts one record after the other until `duration` has passed; the put under way then still counts.
fn put_for(engine: &dyn Engine, records: &mut Records, duration: Duration) -> Result<Histogram<u64>> {
    let mut latencies = latency_histogram();
    let start = Instant::now();
    let mut elapsed = Duration::ZERO;
    while elapsed < duration {
        let (key, value) = records.next();
        engine.put_durable(key, value)?;
        let until_now = start.elapsed();
        latencies.saturating_record((until_now - elapsed).as_micros() as u64);
        elapsed = until_now;
    }
    Ok(latencies)
}

fn latency_histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_LATENCY_US, 3).expect("the bounds are constants within the library's limits")
}
