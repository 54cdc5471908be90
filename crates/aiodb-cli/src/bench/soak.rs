//! Inserts without an end, by concurrent writers, until there are many more keys than memory holds: whether the rate falls when the index
//! outgrows memory, as it did for okuyama and Riak, and how long a single put can take.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aiodb::io::memory::control_group_bytes;
use aiodb::{Db, IndexKind, Options, Table as DbTable};
use clap::Args;
use hdrhistogram::Histogram;

use super::arguments::{Class, OutputArgs, parse_class, parse_index};
use super::counters::{BlockDevice, DiskCounts, process_cpu_time, resident_bytes};
use super::dataset::{KEY_BYTES, Scratch, random_bytes, random_key};
use super::outcome::Outcome;
use super::round::{empty_latencies, latency_us};
use super::rows::Rows;
use super::rows::soak::SoakRow;
use super::terminal::progress;
use crate::CliError;
use crate::options::LsmArgs;

/// A writer tells how much it has done after so many puts, or so long after it did so last.
const PUTS_PER_REPORT: u64 = 64;
const REPORTED_EVERY: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(super) struct SoakArgs {
    /// Directory on the disk to use; the stores are made in a fresh directory below it
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Indexes, one store each, one after the other
    #[arg(long, value_delimiter = ',', default_value = "lsm,lmdb,hash", value_parser = parse_index)]
    index: Vec<IndexKind>,
    /// Durability class: sync, interval or none
    #[arg(long, default_value = "interval", value_parser = parse_class)]
    durability: Class,
    /// The time of class interval in milliseconds
    #[arg(long, default_value_t = 1000)]
    interval_ms: u64,
    /// Bytes of a value; keys have 25
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(0..=16 << 20))]
    value_bytes: u64,
    /// Concurrent writers, one thread each, all putting distinct keys
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=4096))]
    writers: u64,
    /// Keys at which a run ends
    #[arg(long, default_value_t = 50_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    /// Seconds after which a run ends all the same
    #[arg(long, default_value_t = 3600, value_parser = clap::value_parser!(u64).range(1..))]
    max_seconds: u64,
    /// Length of a stretch in milliseconds, each of which is a row
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(10..))]
    stretch_ms: u64,
    /// Keep the stores
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    lsm: LsmArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

pub(super) fn run(args: &SoakArgs) -> Result<Outcome, CliError> {
    let scratch = Scratch::new(&args.dir, args.keep)?;
    let mut notes = vec![
        "latency was taken for every put, from its call to its return; writers are threads of one process".to_owned(),
        "cache of values: 0 bytes".to_owned(),
        "the disk's counts include those of other processes".to_owned(),
    ];
    notes.push(match control_group_bytes() {
        Some(bytes) => {
            format!("the control group of the process may have {bytes} bytes of memory, page cache included")
        }
        None => "no control group limits the memory of the process: with more memory than the index, no rate falls"
            .to_owned(),
    });
    notes.extend(args.lsm.in_words());
    let mut rows = Vec::new();
    for &kind in &args.index {
        let path = scratch.path().join(kind.name());
        let soak = Soak { args, kind, disk: BlockDevice::holding(&args.dir) };
        soak.measure(&path, &mut rows, &mut notes)?;
    }
    Ok(Outcome::new(scratch.path(), notes, Rows::Soak(rows)))
}

/// A run over one store.
struct Soak<'a> {
    args: &'a SoakArgs,
    kind: IndexKind,
    disk: Option<BlockDevice>,
}

/// What the writers share.
struct Shared {
    next_number: AtomicU64,
    /// Puts that were acknowledged. Relaxed, like the number above: they publish nothing.
    finished: AtomicU64,
    is_over: AtomicBool,
    /// Nanoseconds of the puts that ended since they were taken last.
    latencies_ns: Mutex<Histogram<u64>>,
}

/// The counts of the process and of the disk at one moment.
struct Counts {
    at: Instant,
    finished: u64,
    cpu: Duration,
    disk: Option<DiskCounts>,
}

impl Soak<'_> {
    fn measure(&self, path: &Path, rows: &mut Vec<SoakRow>, notes: &mut Vec<String>) -> Result<(), CliError> {
        let durability = self.args.durability.durability(self.args.interval_ms);
        let db = Db::open(path, Options { durability, cache_bytes: 0, ..Options::default() })?;
        let table = db.create_table_with("bench", self.args.lsm.options_if_lsm(self.kind))?;
        notes.extend(db.stats().fallbacks);
        self.insert(&table, rows)?;
        db.close()?;
        if !self.args.keep {
            std::fs::remove_dir_all(path)
                .map_err(|error| CliError::failed(format!("cannot remove {}: {error}", path.display())))?;
        }
        Ok(())
    }

    fn insert(&self, table: &DbTable, rows: &mut Vec<SoakRow>) -> Result<(), CliError> {
        let shared = Shared {
            next_number: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            latencies_ns: Mutex::new(empty_latencies()),
        };
        thread::scope(|scope| {
            let start = self.counts(&shared);
            let writers: Vec<_> =
                (0..self.args.writers).map(|_| scope.spawn(|| self.put_until_over(table, &shared))).collect();
            self.watch(&shared, start, || writers.iter().all(|writer| writer.is_finished()), rows);
            shared.is_over.store(true, Ordering::Relaxed);
            writers.into_iter().try_for_each(|writer| writer.join().expect("a writer panicked"))
        })
    }

    /// Puts keys until there are enough of them or it is over. A writer that fails ends the run.
    fn put_until_over(&self, table: &DbTable, shared: &Shared) -> Result<(), CliError> {
        let value = random_bytes(self.args.value_bytes as usize);
        let mut latencies_ns = empty_latencies();
        let mut begin = Instant::now();
        let mut reported = begin;
        let report = |latencies_ns: &mut Histogram<u64>| {
            shared.finished.fetch_add(latencies_ns.len(), Ordering::Relaxed);
            let mut all = shared.latencies_ns.lock().expect("no code panics while it adds latencies");
            all.add(&*latencies_ns).expect("an automatically growing histogram takes any other");
            latencies_ns.reset();
        };
        while !shared.is_over.load(Ordering::Relaxed) {
            let number = shared.next_number.fetch_add(1, Ordering::Relaxed);
            if number >= self.args.keys {
                break;
            }
            if let Err(error) = table.put(&random_key(number), &value) {
                shared.is_over.store(true, Ordering::Relaxed);
                return Err(error.into());
            }
            let end = Instant::now();
            latencies_ns.record((end - begin).as_nanos() as u64).expect("the histogram grows as needed");
            begin = end;
            if latencies_ns.len() >= PUTS_PER_REPORT || end - reported >= REPORTED_EVERY {
                report(&mut latencies_ns);
                begin = Instant::now();
                reported = begin;
            }
        }
        report(&mut latencies_ns);
        Ok(())
    }

    /// Makes a row of each stretch until all writers are done or the time is up.
    fn watch(&self, shared: &Shared, mut before: Counts, are_done: impl Fn() -> bool, rows: &mut Vec<SoakRow>) {
        let start = before.at;
        let stretch = Duration::from_millis(self.args.stretch_ms);
        let deadline = start + Duration::from_secs(self.args.max_seconds);
        for number in 1.. {
            let end = (start + stretch * number).min(deadline);
            while Instant::now() < end && !are_done() {
                thread::sleep((end - Instant::now().min(end)).min(Duration::from_millis(5)));
            }
            let now = self.counts(shared);
            // What is left after the last whole stretch is too short to say much.
            if now.at >= end || number == 1 {
                let row = self.row(shared, start, &before, &now);
                progress(&row.in_words());
                rows.push(row);
            }
            if are_done() || now.at >= deadline || shared.is_over.load(Ordering::Relaxed) {
                return;
            }
            before = now;
        }
    }

    fn counts(&self, shared: &Shared) -> Counts {
        Counts {
            at: Instant::now(),
            finished: shared.finished.load(Ordering::Relaxed),
            cpu: process_cpu_time(),
            disk: self.disk.as_ref().and_then(BlockDevice::counts),
        }
    }

    fn row(&self, shared: &Shared, start: Instant, before: &Counts, now: &Counts) -> SoakRow {
        let mut latencies_ns = shared.latencies_ns.lock().expect("no code panics while it adds latencies");
        let latencies_ns = std::mem::replace(&mut *latencies_ns, empty_latencies());
        let seconds = (now.at - before.at).as_secs_f64();
        let disk = now.disk.zip(before.disk).map(|(now, before)| now.since(before));
        SoakRow {
            index: self.kind.name().to_owned(),
            durability: self.args.durability.in_words(self.args.interval_ms),
            key_bytes: KEY_BYTES,
            value_bytes: self.args.value_bytes as usize,
            writers: self.args.writers as usize,
            memory_limit_bytes: control_group_bytes(),
            at_s: (now.at - start).as_secs_f64(),
            seconds,
            keys: now.finished,
            puts_per_s: (now.finished - before.finished) as f64 / seconds,
            p50_us: latency_us(&latencies_ns, 0.5),
            p99_us: latency_us(&latencies_ns, 0.99),
            p999_us: latency_us(&latencies_ns, 0.999),
            longest_us: latencies_ns.max() as f64 / 1000.0,
            resident_bytes: resident_bytes(),
            processors: (now.cpu - before.cpu).as_secs_f64() / seconds,
            device_written_bytes_per_s: disk.map(|disk| disk.bytes_written as f64 / seconds),
            device_reads_per_s: disk.map(|disk| disk.reads as f64 / seconds),
        }
    }
}
