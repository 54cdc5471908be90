//! The measured process: one engine, opened under a memory limit and measured at one point after the other. It is a
//! process of its own so that the limit holds for it alone, and so that its death is a void point and no more.

use crate::batch::Batch;
use crate::engine::{Engine, Reads, Resources};
use crate::error::{Error, Result};
use crate::host::{Disk, Usage};
use crate::memory;
use crate::process::reply;
use crate::stream::{KEY_BYTES, Pairs, Random, Stream, Tally, Values};
use crate::workloads::settings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// Records in one write of a load.
const BULK_RECORDS: u64 = 1_000;

/// Records in one write of random overwrites.
const OVERWRITE_RECORDS: u64 = 100;

/// Records in one short scan.
const SCAN_RECORDS: u64 = 100;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Gets of random existing keys.
    Read,
    /// Reads of all records in key order, with values.
    FullScan,
    /// Reads of 100 records in key order from a random key on, with values.
    Scan,
    /// 95 gets to 5 puts of existing keys, singly.
    Mixed95,
    /// 50 gets to 50 puts.
    Mixed50,
    /// Puts of random existing keys, 100 in a write.
    Overwrite,
    /// Puts of new keys, 1000 in a write.
    Bulk,
}

impl Workload {
    /// Whether the store is as before afterwards.
    pub fn only_reads(self) -> bool {
        matches!(self, Workload::Read | Workload::FullScan | Workload::Scan)
    }

    /// Whether gets are single, so that how a thread reads matters.
    pub fn gets_singly(self) -> bool {
        self.read_percent().is_some()
    }

    /// Hundredths of single operations that are gets.
    fn read_percent(self) -> Option<u8> {
        match self {
            Workload::Read => Some(100),
            Workload::Mixed95 => Some(95),
            Workload::Mixed50 => Some(50),
            Workload::FullScan | Workload::Scan | Workload::Overwrite | Workload::Bulk => None,
        }
    }
}

/// The name used in tables.
impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Workload::Read => "read",
            Workload::FullScan => "full scan",
            Workload::Scan => "scan of 100",
            Workload::Mixed95 => "mixed 95/5",
            Workload::Mixed50 => "mixed 50/50",
            Workload::Overwrite => "overwrite",
            Workload::Bulk => "bulk",
        })
    }
}

/// One thing to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// What is done.
    pub workload: Workload,
    /// How many threads do it.
    pub threads: u32,
    /// How each of them reads.
    pub reads: Reads,
}

/// What a measured process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The name of the engine and its setting.
    pub engine: String,
    /// Where its store is.
    pub directory: PathBuf,
    /// What is in the store, or what is to be put into it.
    pub pairs: Pairs,
    /// Put all pairs in first.
    pub load: bool,
    /// The first number that no pair has yet, for new keys.
    pub next_number: u64,
    /// What the engine may take of memory.
    pub memory_bytes: u64,
    /// The control group that enforces it. None while loading, and where there can be none.
    pub group: Option<PathBuf>,
    /// How long each point is measured.
    pub duration: Duration,
    /// How long the same is done before that.
    pub warm_up: Duration,
    /// What is measured, in this order; ways to read that the engine does not have are left out.
    pub points: Vec<Point>,
}

/// What it says, one in a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The engine is open.
    Opened {
        /// What it runs with.
        settings: Value,
        /// How it can read; points with other ways are left out.
        ways_to_read: Vec<Reads>,
    },
    /// All pairs are in the store, with nothing left to do.
    Loaded {
        /// How long that took.
        seconds: f64,
    },
    /// A point is about to be measured.
    Begun(Point),
    /// It was measured.
    Measured(Point, Figures),
    /// The engine cannot do that.
    Absent(Point),
    /// Nothing more can be measured; the text says why.
    Failed(String),
}

/// What was measured at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Gets and puts, or records scanned or written.
    pub operations: u64,
    /// Those of them that brought a value.
    pub gets: u64,
    /// Those of them that wrote one.
    pub puts: u64,
    /// Answers that were absent or not the right one: the point is void if there are any.
    pub wrong: u64,
    /// From the start until the last operation was acknowledged and every write durable.
    pub seconds: f64,
    /// From there until the engine had done what the writes left for later.
    pub catch_up_seconds: f64,
    /// `operations / seconds`.
    pub operations_per_s: f64,
    /// Processor time of the process, user and system, without the catching up.
    pub cpu_us_per_operation: f64,
    /// Reads of the device by anyone, by gets or scanned records. None where nothing is read.
    pub device_reads_per_get: Option<f64>,
    /// Bytes written to the device by anyone, with the catching up, by bytes of keys and values put.
    pub device_bytes_per_user_byte: Option<f64>,
    /// The most memory that the control group held at once since the process began.
    pub peak_memory_bytes: Option<u64>,
    /// Memory of the process in swap: the point is void if there is any.
    pub swapped_bytes: u64,
}

/// Does what a request says and replies on the standard output.
pub fn run(request: &Request) -> Result<()> {
    if let Err(error) = measure_all(request) {
        reply(&Reply::Failed(error.to_string()))?;
    }
    Ok(())
}

fn measure_all(request: &Request) -> Result<()> {
    if let Some(group) = &request.group {
        memory::join(group)?;
    }
    let spec = settings::named(&request.engine)
        .ok_or_else(|| Error::Request(format!("there is no engine {}", request.engine)))?;
    let resources = Resources {
        memory_bytes: Some(request.memory_bytes),
        data_bytes: Some(request.pairs.data_bytes()),
        counters: false,
    };
    let parent = request.directory.parent().unwrap_or(&request.directory);
    let disk = Disk::under(parent)?;
    let engine = spec.open(&request.directory, resources)?;
    let ways = engine.ways_to_read();
    reply(&Reply::Opened { settings: engine.settings(), ways_to_read: ways.clone() })?;
    if request.load {
        let start = Instant::now();
        load(&*engine, request.pairs)?;
        engine.finish()?;
        reply(&Reply::Loaded { seconds: start.elapsed().as_secs_f64() })?;
    }
    let mut measured = Measured { engine: &*engine, disk: &disk, request, next_number: request.next_number };
    for (seed, &point) in (1..).zip(request.points.iter().filter(|point| ways.contains(&point.reads))) {
        reply(&Reply::Begun(point))?;
        match measured.point(point, seed)? {
            Some(figures) => reply(&Reply::Measured(point, figures))?,
            None => reply(&Reply::Absent(point))?,
        }
    }
    engine.close()
}

fn load(engine: &dyn Engine, pairs: Pairs) -> Result<()> {
    let mut values = Values::new(pairs, 0);
    let mut batch = Batch::default();
    let mut number = 0;
    while number < pairs.count {
        batch.clear();
        for _ in 0..BULK_RECORDS.min(pairs.count - number) {
            batch.push(&pairs.key(number), values.next(number));
            number += 1;
        }
        engine.write(&batch)?;
    }
    Ok(())
}

/// An open engine and what is measured on it.
struct Measured<'a> {
    engine: &'a dyn Engine,
    disk: &'a Disk,
    request: &'a Request,
    next_number: u64,
}

/// The time and the resources that a point has taken.
struct Spent {
    /// Until the last operation, and durability of all, in seconds.
    seconds: f64,
    /// From there until the engine had done the work that writes left for later, in seconds.
    catch_up_seconds: f64,
    before: Usage,
    at_end: Usage,
    after: Usage,
}

impl Measured<'_> {
    /// None if the engine cannot do it.
    fn point(&mut self, point: Point, seed: u64) -> Result<Option<Figures>> {
        if point.workload.only_reads() && self.perform(point, seed << 1, self.request.warm_up)?.is_none() {
            return Ok(None);
        }
        self.disk.flush()?;
        let before = self.disk.usage()?;
        let start = Instant::now();
        let Some(tally) = self.perform(point, seed << 1 | 1, self.request.duration)? else { return Ok(None) };
        if !point.workload.only_reads() {
            self.engine.make_durable()?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let at_end = self.disk.usage()?;
        if !point.workload.only_reads() {
            self.engine.finish()?;
            self.disk.flush()?;
        }
        let catch_up_seconds = start.elapsed().as_secs_f64() - seconds;
        let after = self.disk.usage()?;
        self.figures(tally, Spent { seconds, catch_up_seconds, before, at_end, after }).map(Some)
    }

    fn figures(&self, tally: Tally, spent: Spent) -> Result<Figures> {
        let Spent { seconds, catch_up_seconds, before, at_end, after } = spent;
        let operations = tally.gets + tally.puts;
        let user_bytes = tally.puts * (KEY_BYTES + self.request.pairs.value_bytes) as u64;
        let per = |difference: Option<u64>, count: u64| (count > 0).then(|| Some(difference? as f64 / count as f64))?;
        let between = |from: Option<u64>, to: Option<u64>| Some(to? - from?);
        Ok(Figures {
            operations,
            gets: tally.gets,
            puts: tally.puts,
            wrong: tally.wrong,
            seconds,
            catch_up_seconds,
            operations_per_s: operations as f64 / seconds,
            cpu_us_per_operation: (at_end.cpu - before.cpu).as_secs_f64() * 1e6 / operations.max(1) as f64,
            device_reads_per_get: per(between(before.device_reads, at_end.device_reads), tally.gets),
            device_bytes_per_user_byte: per(between(before.device_bytes, after.device_bytes), user_bytes),
            peak_memory_bytes: memory::peak_bytes(self.request.group.as_deref()),
            swapped_bytes: memory::swapped_bytes()?,
        })
    }

    /// Lets all threads of a point work for a time. None if the engine cannot do it.
    fn perform(&mut self, point: Point, seed: u64, duration: Duration) -> Result<Option<Tally>> {
        let first_number = self.next_number;
        if point.workload == Workload::Bulk {
            self.next_number += u64::from(point.threads) * NUMBERS_PER_THREAD;
        }
        let this = &*self;
        let barrier = Barrier::new(point.threads as usize);
        let tallies = thread::scope(|scope| {
            let threads: Vec<_> = (0..u64::from(point.threads))
                .map(|thread| {
                    let barrier = &barrier;
                    let work = Work {
                        engine: this.engine,
                        pairs: this.request.pairs,
                        seed: seed << 16 | thread,
                        first_number: first_number + thread * NUMBERS_PER_THREAD,
                        duration,
                    };
                    scope.spawn(move || {
                        barrier.wait();
                        work.perform(point)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("a worker panicked")).collect::<Result<Vec<_>>>()
        })?;
        let sum = |mut sum: Tally, tally: Option<Tally>| {
            let tally = tally?;
            sum.gets += tally.gets;
            sum.puts += tally.puts;
            sum.wrong += tally.wrong;
            Some(sum)
        };
        Ok(tallies.into_iter().try_fold(Tally::default(), sum))
    }
}

/// Numbers that a thread may give to new pairs at one point.
const NUMBERS_PER_THREAD: u64 = 1 << 32;

/// The part of one thread.
struct Work<'a> {
    engine: &'a dyn Engine,
    pairs: Pairs,
    seed: u64,
    first_number: u64,
    duration: Duration,
}

impl Work<'_> {
    fn perform(&self, point: Point) -> Result<Option<Tally>> {
        if let Some(read_percent) = point.workload.read_percent() {
            let mut stream = Stream::new(self.pairs, read_percent, self.seed, self.duration);
            self.engine.run(point.reads, &mut stream)?;
            return Ok(Some(stream.tally()));
        }
        match point.workload {
            Workload::Scan => self.scan(),
            Workload::FullScan => self.full_scan(),
            Workload::Bulk => self.bulk().map(Some),
            _ => self.overwrite().map(Some),
        }
    }

    fn scan(&self) -> Result<Option<Tally>> {
        let mut random = Random::new(self.seed);
        let (start, mut tally) = (Instant::now(), Tally::default());
        while start.elapsed() < self.duration {
            let from = self.pairs.key(random.below(self.pairs.count));
            let scanned = self.engine.scan(&from, SCAN_RECORDS, &mut |_, value| {
                self.check(value, &mut tally);
                true
            })?;
            if scanned.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(tally))
    }

    fn full_scan(&self) -> Result<Option<Tally>> {
        let (start, mut tally) = (Instant::now(), Tally::default());
        // Once at the end, from the beginning again.
        while start.elapsed() < self.duration {
            let scanned = self.engine.scan(&[], u64::MAX, &mut |_, value| {
                self.check(value, &mut tally);
                start.elapsed() < self.duration
            })?;
            if scanned.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(tally))
    }

    fn check(&self, value: &[u8], tally: &mut Tally) {
        match self.pairs.is_any_value(value) {
            true => tally.gets += 1,
            false => tally.wrong += 1,
        }
    }

    fn bulk(&self) -> Result<Tally> {
        let mut next = self.first_number;
        self.write(BULK_RECORDS, move || {
            next += 1;
            next - 1
        })
    }

    fn overwrite(&self) -> Result<Tally> {
        let mut random = Random::new(self.seed);
        self.write(OVERWRITE_RECORDS, move || random.below(self.pairs.count))
    }

    fn write(&self, records: u64, mut next: impl FnMut() -> u64) -> Result<Tally> {
        let mut values = Values::new(self.pairs, self.seed << 40);
        let mut batch = Batch::default();
        let (start, mut tally) = (Instant::now(), Tally::default());
        while start.elapsed() < self.duration {
            batch.clear();
            for _ in 0..records {
                let number = next();
                batch.push(&self.pairs.key(number), values.next(number));
            }
            self.engine.write(&batch)?;
            tally.puts += records;
        }
        Ok(tally)
    }
}

#[cfg(test)]
pub(crate) mod tests;
