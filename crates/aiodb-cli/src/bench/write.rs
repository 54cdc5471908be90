//! Writes per second against concurrent writers, for each durability class, beside the disk's own rate of flushes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aiodb::{Batch, Db, Durability, IndexKind, Options, Table as DbTable};
use clap::Args;
use futures::StreamExt;
use futures::executor::block_on;
use futures::stream::FuturesUnordered;
use hdrhistogram::Histogram;

use super::arguments::{Class, OutputArgs, parse_class, parse_index};
use super::counters::BlockDevice;
use super::dataset::{KEY_BYTES, Scratch, random_bytes, random_key, remove_unless};
use super::flush::{self, WriteTarget};
use super::outcome::Outcome;
use super::round::{self, LATENCY_SAMPLE_EVERY, Round, Tally, empty_latencies, latency_us};
use super::rows::Rows;
use super::rows::write::{DeviceFlushes, DeviceSequential, StoreWrites, WriteRow};
use super::stats::Summary;
use super::terminal::progress;
use crate::CliError;

/// Durable writes of the disk in flight at once.
const FLUSHES_IN_FLIGHT: [usize; 4] = [1, 2, 8, 32];

/// How long the disk's own rates are measured each time.
const DEVICE_ROUND: Duration = Duration::from_millis(500);

/// Rounds of the disk's own rates before everything else, and again after it.
const DEVICE_ROUNDS: usize = 3;

#[derive(Args)]
pub(super) struct WriteArgs {
    /// Directory on the disk to measure; the stores are made in a fresh directory below it
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Indexes
    #[arg(long, value_delimiter = ',', default_value = "lmdb,lsm,hash", value_parser = parse_index)]
    index: Vec<IndexKind>,
    /// Durability classes: sync, interval, none
    #[arg(long, value_delimiter = ',', default_value = "sync,interval,none", value_parser = parse_class)]
    durability: Vec<Class>,
    /// The time of class interval in milliseconds
    #[arg(long, default_value_t = 1000)]
    interval_ms: u64,
    /// Bytes of a value; keys have 25
    #[arg(long, value_delimiter = ',', default_value = "25,1000", value_parser = clap::value_parser!(u64).range(0..=16 << 20))]
    value_bytes: Vec<u64>,
    /// Concurrent writers, one thread each (but see --futures), all putting distinct keys
    #[arg(long, value_delimiter = ',', default_value = "1,10,30,100,300", value_parser = clap::value_parser!(u64).range(1..=4096))]
    writers: Vec<u64>,
    /// Writers are futures in flight from one thread instead of threads
    #[arg(long)]
    futures: bool,
    /// Length of a round in seconds
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Rounds per point, each followed by bringing disk and index up to date
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Keys in the store before the first point
    #[arg(long, default_value_t = 100_000)]
    preload: u64,
    /// Keep the stores
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

pub(super) fn run(args: &WriteArgs) -> Result<Outcome, CliError> {
    let scratch = Scratch::new(&args.dir, args.keep)?;
    let mut notes = vec![
        format!(
            "latency was taken for 1 in {LATENCY_SAMPLE_EVERY} puts; writers are {} of one process",
            if args.futures { "futures in flight from one thread" } else { "threads" }
        ),
        "cache of values: 0 bytes".to_owned(),
        "`caught up` includes sync and checkpoint: afterwards nothing is owed to the disk or the index".to_owned(),
        "bytes written are counted by the disk and include those of other processes".to_owned(),
    ];
    progress("measuring the disk itself");
    let target = match WriteTarget::create(&scratch.path().join("device")) {
        Ok(target) => Some(target),
        Err(error) => {
            notes.push(format!("the disk itself was not measured: {error}"));
            None
        }
    };
    let mut device = DeviceRates::default();
    device.measure(target.as_ref())?;
    let mut rows = Vec::new();
    for &kind in &args.index {
        for &value_bytes in &args.value_bytes {
            for &class in &args.durability {
                let writes = Writes { args, kind, value_bytes: value_bytes as usize, class };
                writes.measure(scratch.path(), target.as_ref(), &mut rows, &mut notes)?;
            }
        }
    }
    device.measure(target.as_ref())?;
    rows.extend(device.into_rows());
    Ok(Outcome::new(scratch.path(), notes, Rows::Write(rows)))
}

/// The measurements on one store.
struct Writes<'a> {
    args: &'a WriteArgs,
    kind: IndexKind,
    value_bytes: usize,
    class: Class,
}

impl Writes<'_> {
    fn measure(
        &self,
        dir: &Path,
        target: Option<&WriteTarget>,
        rows: &mut Vec<WriteRow>,
        notes: &mut Vec<String>,
    ) -> Result<(), CliError> {
        let path = dir.join(format!("{}-{}-{:?}", self.kind.name(), self.value_bytes, self.class).to_lowercase());
        let db = Db::open(
            &path,
            Options { durability: self.class.durability(self.args.interval_ms), cache_bytes: 0, ..Options::default() },
        )?;
        let table = db.create_table("bench", self.kind)?;
        // Numbers are handed out once, so that every put has a key of its own.
        // Relaxed: it only shares out numbers.
        let next_number = AtomicU64::new(0);
        self.preload(&db, &table, &next_number)?;
        notes.extend(db.stats().fallbacks);
        for &writers in &self.args.writers {
            let row = self.measure_point(&db, &table, writers as usize, &next_number, target)?;
            progress(&row.in_words());
            rows.push(WriteRow::Store(row));
        }
        db.close()?;
        remove_unless(self.args.keep, &path)
    }

    fn preload(&self, db: &Db, table: &DbTable, next_number: &AtomicU64) -> Result<(), CliError> {
        let value = random_bytes(self.value_bytes);
        let pairs_per_batch = ((256 << 10) / (KEY_BYTES + self.value_bytes)).max(1) as u64;
        let mut loaded = 0;
        while loaded < self.args.preload {
            let count = pairs_per_batch.min(self.args.preload - loaded);
            let mut batch = Batch::new();
            for _ in 0..count {
                batch.put(table, &random_key(next_number.fetch_add(1, Ordering::Relaxed)), &value)?;
            }
            db.write_with(&batch, Durability::Sync)?;
            loaded += count;
        }
        Ok(db.checkpoint()?)
    }

    fn measure_point(
        &self,
        db: &Db,
        table: &DbTable,
        writers: usize,
        next_number: &AtomicU64,
        target: Option<&WriteTarget>,
    ) -> Result<StoreWrites, CliError> {
        let disk = BlockDevice::holding(&self.args.dir);
        let keys_before = next_number.load(Ordering::Relaxed);
        let mut rounds = Rounds::default();
        for _ in 0..self.args.rounds {
            if let Some(target) = target {
                let bytes = self.flush_bytes(writers);
                rounds.flushes_per_s.push(target.flushes_of(bytes, 1, DEVICE_ROUND)?);
            }
            let before = disk.as_ref().and_then(BlockDevice::counts);
            let batches_before = db.stats().batches_written;
            let round = match self.args.futures {
                true => self.run_futures(table, writers, next_number),
                false => self.run_round(table, writers, next_number),
            }?;
            rounds.batches += db.stats().batches_written - batches_before;
            let catching_up = Instant::now();
            db.sync()?;
            db.checkpoint()?;
            let elapsed = round.elapsed + catching_up.elapsed();
            let after = disk.as_ref().and_then(BlockDevice::counts);
            let written = after.zip(before).map(|(after, before)| after.since(before).bytes_written);
            rounds.add(&round, elapsed, written);
        }
        Ok(self.row(writers, keys_before, rounds))
    }

    fn run_round(&self, table: &DbTable, writers: usize, next_number: &AtomicU64) -> Result<Round, CliError> {
        let duration = Duration::from_secs(self.args.seconds);
        let value = random_bytes(self.value_bytes);
        let put_until = |(): (), start: Instant| {
            let deadline = start + duration;
            let mut latency_ns = empty_latencies();
            let mut finished = 0;
            loop {
                let key = random_key(next_number.fetch_add(1, Ordering::Relaxed));
                finished += 1;
                if finished % LATENCY_SAMPLE_EVERY != 1 {
                    table.put(&key, &value)?;
                    continue;
                }
                let begin = Instant::now();
                table.put(&key, &value)?;
                let end = Instant::now();
                latency_ns.record((end - begin).as_nanos() as u64).expect("the histogram grows as needed");
                if end >= deadline {
                    return Ok(Tally { in_time: finished, finished, elapsed: end - start, latency_ns });
                }
            }
        };
        round::run(writers, None, |_| Ok(()), put_until)
    }

    /// Keeps puts in flight from one thread.
    fn run_futures(&self, table: &DbTable, in_flight: usize, next_number: &AtomicU64) -> Result<Round, CliError> {
        let duration = Duration::from_secs(self.args.seconds);
        let value = random_bytes(self.value_bytes);
        let put_until = |(): (), start: Instant| {
            let deadline = start + duration;
            let put = || {
                let number = next_number.fetch_add(1, Ordering::Relaxed);
                let put = table.put_async(&random_key(number), &value);
                let begin = number.is_multiple_of(LATENCY_SAMPLE_EVERY).then(Instant::now);
                async move { put.await.map(|_| begin) }
            };
            let mut puts: FuturesUnordered<_> = (0..in_flight).map(|_| put()).collect();
            let mut tally = Tally { in_time: 0, finished: 0, elapsed: duration, latency_ns: empty_latencies() };
            let mut over = false;
            block_on(async {
                while let Some(done) = puts.next().await {
                    tally.finished += 1;
                    if let Some(begin) = done? {
                        let end = Instant::now();
                        tally
                            .latency_ns
                            .record((end - begin).as_nanos() as u64)
                            .expect("the histogram grows as needed");
                        if end >= deadline && !over {
                            over = true;
                            (tally.in_time, tally.elapsed) = (tally.finished, end - start);
                        }
                    }
                    if !over {
                        puts.push(put());
                    }
                }
                Ok(tally)
            })
        };
        round::run(1, None, |_| Ok(()), put_until)
    }

    /// What one flush of the disk itself writes: 4 KiB, or a batch of all the futures in flight.
    fn flush_bytes(&self, writers: usize) -> usize {
        /// Bytes of a record besides its key and value, and what it starts on a multiple of.
        const RECORD_BYTES: usize = 24;
        const RECORD_ALIGNMENT: usize = 16;
        if !self.args.futures {
            return flush::FLUSH_BYTES;
        }
        let record = (RECORD_BYTES + KEY_BYTES + self.value_bytes).next_multiple_of(RECORD_ALIGNMENT);
        (writers * record).next_multiple_of(flush::FLUSH_BYTES).min(flush::SEQUENTIAL_BYTES)
    }

    fn row(&self, writers: usize, keys_before: u64, rounds: Rounds) -> StoreWrites {
        let acked = Summary::of(&rounds.acked_per_s).expect("at least one round was run");
        let caught_up = Summary::of(&rounds.caught_up_per_s).expect("at least one round was run");
        let user_bytes = rounds.puts * (KEY_BYTES + self.value_bytes) as u64;
        StoreWrites {
            index: self.kind.name().to_owned(),
            durability: self.class.in_words(self.args.interval_ms),
            key_bytes: KEY_BYTES,
            value_bytes: self.value_bytes,
            writers,
            futures: self.args.futures,
            device_flush_bytes: self.flush_bytes(writers),
            keys_before,
            puts: rounds.puts,
            rounds: rounds.acked_per_s.len(),
            puts_per_s_acked: acked.median,
            puts_per_s_acked_min: acked.min,
            puts_per_s_acked_max: acked.max,
            puts_per_s_acked_rounds: rounds.acked_per_s,
            puts_per_s_caught_up: caught_up.median,
            puts_per_batch: rounds.puts as f64 / rounds.batches.max(1) as f64,
            p50_us: latency_us(&rounds.latency_ns, 0.5),
            p99_us: latency_us(&rounds.latency_ns, 0.99),
            p999_us: latency_us(&rounds.latency_ns, 0.999),
            cpu_us_per_put: rounds.cpu_us / rounds.puts as f64,
            device_bytes_per_user_byte: rounds.device_bytes.map(|bytes| bytes as f64 / user_bytes as f64),
            device_flushes_per_s: Summary::of(&rounds.flushes_per_s).map(|summary| summary.median),
        }
    }
}

/// The rounds of one point so far.
struct Rounds {
    acked_per_s: Vec<f64>,
    caught_up_per_s: Vec<f64>,
    flushes_per_s: Vec<f64>,
    puts: u64,
    batches: u64,
    cpu_us: f64,
    device_bytes: Option<u64>,
    latency_ns: Histogram<u64>,
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds {
            acked_per_s: Vec::new(),
            caught_up_per_s: Vec::new(),
            flushes_per_s: Vec::new(),
            puts: 0,
            batches: 0,
            cpu_us: 0.0,
            device_bytes: Some(0),
            latency_ns: empty_latencies(),
        }
    }
}

impl Rounds {
    fn add(&mut self, round: &Round, until_caught_up: Duration, device_bytes: Option<u64>) {
        self.acked_per_s.push(round.operations_per_s);
        self.caught_up_per_s.push(round.finished as f64 / until_caught_up.as_secs_f64());
        self.puts += round.finished;
        self.cpu_us += round.cpu_us_per_operation * round.finished as f64;
        self.device_bytes = self.device_bytes.zip(device_bytes).map(|(sum, bytes)| sum + bytes);
        self.latency_ns.add(&round.latency_ns).expect("an automatically growing histogram takes any other");
    }
}

/// The disk's own rates, by writes in flight.
#[derive(Default)]
struct DeviceRates {
    flushes_per_s: [Vec<f64>; FLUSHES_IN_FLIGHT.len()],
    sequential_bytes_per_s: Vec<f64>,
}

impl DeviceRates {
    fn measure(&mut self, target: Option<&WriteTarget>) -> Result<(), CliError> {
        let Some(target) = target else { return Ok(()) };
        for _ in 0..DEVICE_ROUNDS {
            for (rates, in_flight) in self.flushes_per_s.iter_mut().zip(FLUSHES_IN_FLIGHT) {
                rates.push(target.flushes_per_s(in_flight, DEVICE_ROUND)?);
            }
            self.sequential_bytes_per_s.push(target.sequential_bytes_per_s(DEVICE_ROUND)?);
        }
        Ok(())
    }

    fn into_rows(self) -> Vec<WriteRow> {
        let flushes = self.flushes_per_s.iter().zip(FLUSHES_IN_FLIGHT).filter_map(|(rates, in_flight)| {
            let summary = Summary::of(rates)?;
            Some(WriteRow::Flush(DeviceFlushes {
                in_flight,
                write_bytes: flush::FLUSH_BYTES,
                flushes_per_s: summary.median,
                flushes_per_s_min: summary.min,
                flushes_per_s_max: summary.max,
            }))
        });
        let sequential = Summary::of(&self.sequential_bytes_per_s).map(|summary| {
            WriteRow::Sequential(DeviceSequential {
                write_bytes: flush::SEQUENTIAL_BYTES,
                bytes_per_s: summary.median,
                bytes_per_s_min: summary.min,
                bytes_per_s_max: summary.max,
            })
        });
        flushes.chain(sequential).collect()
    }
}
