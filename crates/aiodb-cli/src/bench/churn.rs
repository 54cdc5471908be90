//! Overwrites of data that is there, several times over: what they cost in space and in bytes that the device writes, and whether the
//! rate stays once reclaim and merges have to keep up. `versions` is what is overwritten, and finds what was lost.

mod versions;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use aiodb::io::memory::control_group_bytes;
use aiodb::{Db, Error, IndexKind, Options, Sequence, Table as DbTable};
use clap::Args;

use super::arguments::{DurabilityArgs, OutputArgs, RunArgs, parse_index};
use super::counters::{BlockDevice, DiskCounts, directory_bytes, file_system_bytes, process_transfers};
use super::dataset::{KEY_BYTES, Scratch, remove_unless};
use super::outcome::Outcome;
use super::rest::wait_for_rest;
use super::round::latency_us;
use super::rows::Rows;
use super::rows::churn::{ChurnEnd, ChurnLoad, ChurnRow, ChurnRun, ChurnStretch};
use super::stretches::{self, Stretch, Total, Watcher};
use super::table::whole;
use super::terminal::progress;
use super::zipf::{EXPONENT, Pattern, Ranks, parse_pattern};
use crate::CliError;
use crate::options::LsmArgs;
use versions::{Records, STAMP_BYTES, Sample};

/// An overwrite that was refused for want of space is tried again after this...
const REFUSED_WAIT: Duration = Duration::from_millis(10);
/// ...and given up when the store has made no room for it in this time.
const MOST_REFUSED: Duration = Duration::from_secs(120);

#[derive(Args)]
#[command(after_help = "\
Every run has a fresh store, in which all records are loaded before the first overwrite. Space is what the store's files take on \
the disk over the bytes of keys and values. A store has at least 256 MiB at its usual size of segments: with less than some GB of \
data that is what the figures show.

A store has no limit of its own for its space. To hold it to one, give it a file system of that size: \
`make bench-churn SPACE=3000M` makes one in a file, as root. Overwrites that are refused there are tried again, and counted.

Examples:
  aiodb bench churn --dir /data
  aiodb bench churn --dir /data --value-bytes 25 --inline-bytes 64 --records 20000000 --pattern zipf
  aiodb bench churn --dir /data --index lsm,hash,lmdb --overwrites 10 --report report.html")]
pub(super) struct ChurnArgs {
    /// Directory on the disk to use; the stores are made in a fresh directory below it
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Indexes
    #[arg(long, value_delimiter = ',', default_value = "lsm", value_parser = parse_index)]
    index: Vec<IndexKind>,
    /// How overwrites are spread over records: uniform, or zipf, where the record of rank r is overwritten in proportion to r to the power
    /// of -0.99, and ranks have nothing to do with the order of keys or of loading
    #[arg(long, value_delimiter = ',', default_value = "uniform,zipf", value_parser = parse_pattern)]
    pattern: Vec<Pattern>,
    #[command(flatten)]
    durability: DurabilityArgs,
    /// Bytes of a value, at least 16; keys have 25
    #[arg(long, default_value_t = 1024, value_parser = clap::value_parser!(u64).range(STAMP_BYTES as u64..=1 << 20))]
    value_bytes: u64,
    /// Records, all of which are alive all the time
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    records: u64,
    /// How many times the live data is overwritten
    #[arg(long, value_name = "TIMES", default_value_t = 5.0, value_parser = parse_times)]
    overwrites: f64,
    /// Concurrent writers, one thread each
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=4096))]
    writers: u64,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    lsm: LsmArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

fn parse_times(text: &str) -> Result<f64, String> {
    let times = text.parse().ok().filter(|times: &f64| *times > 0.0 && *times <= 1e6);
    times.ok_or_else(|| "a number above 0, up to 1000000".to_owned())
}

pub(super) fn run(args: &ChurnArgs) -> Result<Outcome, CliError> {
    let scratch = Scratch::new(&args.dir, args.run.keep)?;
    let mut notes = vec![
        "latency was taken for every overwrite, from its call to its return; writers are threads of one process".to_owned(),
        format!("zipf: the record of rank r is overwritten in proportion to r to the power of -{EXPONENT}"),
        "cache of values: 0 bytes".to_owned(),
        "space is what the store's files take on the disk over the bytes of all keys and values".to_owned(),
        "the disk's counts include those of other processes; bytes over user bytes are counted until upkeep was at rest".to_owned(),
    ];
    notes.extend(args.lsm.in_words());
    let mut rows = Vec::new();
    for &kind in &args.index {
        for &pattern in &args.pattern {
            let path = scratch.path().join(format!("{}-{}", kind.name(), pattern.name()));
            let records = Records::new(args.records, args.value_bytes as usize);
            let churn = Churn {
                args,
                kind,
                pattern,
                path,
                sample: Sample::new(args.records),
                records,
                disk: BlockDevice::holding(&args.dir),
                refused: AtomicU64::new(0),
            };
            churn.measure(&mut rows, &mut notes)?;
        }
    }
    Ok(Outcome::new(scratch.path(), notes, Rows::Churn(rows)))
}

/// A run over one store.
struct Churn<'a> {
    args: &'a ChurnArgs,
    kind: IndexKind,
    pattern: Pattern,
    path: PathBuf,
    records: Records,
    sample: Sample,
    disk: Option<BlockDevice>,
    /// Refusals for want of space so far.
    refused: AtomicU64,
}

/// What was written so far.
struct Written {
    disk: Option<DiskCounts>,
    process_bytes: Option<u64>,
    reclaim_bytes: u64,
}

impl Churn<'_> {
    fn measure(&self, rows: &mut Vec<ChurnRow>, notes: &mut Vec<String>) -> Result<(), CliError> {
        let durability = self.args.durability.durability();
        let db = Db::open(&self.path, Options { durability, cache_bytes: 0, ..Options::default() })?;
        let table = db.create_table_with("bench", self.args.lsm.options_if_lsm(self.kind))?;
        notes.extend(db.stats().fallbacks);
        let load = self.described(&table);
        progress(&format!("{}: loading {} records", load.in_words(), whole(self.records.count as f64)));
        self.records.load(&db, &table)?;
        if !wait_for_rest(&db)? {
            notes.push(format!("{}: upkeep was not at rest ten minutes after loading", load.in_words()));
        }
        let run = self.overwrite(&db, &table, load, rows)?;
        progress(&run.in_words());
        if !run.is_at_rest {
            notes.push(format!("{}: upkeep was not at rest ten minutes after the last overwrite", run.load.in_words()));
        }
        rows.push(ChurnRow::Run(run));
        db.close()?;
        remove_unless(self.args.run.keep, &self.path)
    }

    fn described(&self, table: &DbTable) -> ChurnLoad {
        ChurnLoad {
            index: self.kind.name().to_owned(),
            pattern: self.pattern.name().to_owned(),
            durability: self.args.durability.in_words(),
            key_bytes: KEY_BYTES,
            value_bytes: self.records.value_bytes,
            inline_bytes: table.options().inline_bytes,
            records: self.records.count,
            live_bytes: self.records.live_bytes(),
            writers: self.args.writers as usize,
            memory_limit_bytes: control_group_bytes(),
            file_system_bytes: file_system_bytes(&self.path),
        }
    }

    /// Overwrites until it was enough, waits until upkeep is at rest, and reads the sample back.
    fn overwrite(
        &self,
        db: &Db,
        table: &DbTable,
        load: ChurnLoad,
        rows: &mut Vec<ChurnRow>,
    ) -> Result<ChurnRun, CliError> {
        let directory_bytes_before = self.directory_bytes()?;
        let before = self.written(db);
        let mut watch = Watch::new(self, load.clone(), directory_bytes_before);
        let total = self.write(table, &mut watch)?;
        let catching_up = Instant::now();
        let is_at_rest = wait_for_rest(db)?;
        let caught_up_s = catching_up.elapsed().as_secs_f64();
        let Watch { stretches, most, failure, .. } = watch;
        if let Some(error) = failure {
            return Err(error);
        }
        let now = self.written(db);
        let device = now.disk.zip(before.disk).map(|(now, before)| now.since(before).bytes_written);
        let process = now.process_bytes.zip(before.process_bytes).map(|(now, before)| now - before);
        let directory_bytes_at_rest = self.directory_bytes()?;
        self.sample.read_back(table, &self.records)?;
        let end = ChurnEnd {
            overwrites: total.finished,
            seconds: total.elapsed.as_secs_f64(),
            caught_up_s,
            is_at_rest,
            refused: self.refused.load(Ordering::Relaxed),
            device_written_bytes: device,
            process_written_bytes: process,
            reclaim_written_bytes: now.reclaim_bytes - before.reclaim_bytes,
            directory_bytes_before,
            most_directory_bytes: most.max(directory_bytes_at_rest),
            directory_bytes_at_rest,
            checked_records: self.sample.len(),
        };
        let run = ChurnRun::of(load, &stretches, end);
        rows.extend(stretches.into_iter().map(ChurnRow::Stretch));
        Ok(run)
    }

    fn write(&self, table: &DbTable, watch: &mut Watch<'_>) -> Result<Total, CliError> {
        let overwrites = ((self.records.count as f64 * self.args.overwrites) as u64).max(1);
        let plan = self.args.run.plan(self.args.writers, overwrites);
        let ranks = Ranks::new(self.pattern, self.records.count);
        let writer = || {
            let (mut random, mut value) = (fastrand::Rng::new(), vec![0; self.records.value_bytes]);
            move |number| {
                let (rank, version) = (ranks.draw(&mut random), number + 1);
                self.records.fill(rank, version, &mut value);
                let (key, begin) = (self.records.key(rank), Instant::now());
                let sequence = self.put(table, &key, &value)?;
                self.sample.note(rank, version, sequence);
                Ok(begin)
            }
        };
        stretches::run(plan, self.disk.as_ref(), writer, watch)
    }

    /// Puts a value, again and again while the store has no space for it.
    fn put(&self, table: &DbTable, key: &[u8], value: &[u8]) -> Result<Sequence, CliError> {
        let begin = Instant::now();
        loop {
            match table.put(key, value) {
                Err(Error::DiskFull { .. }) if begin.elapsed() < MOST_REFUSED => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(REFUSED_WAIT);
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    fn written(&self, db: &Db) -> Written {
        Written {
            disk: self.disk.as_ref().and_then(BlockDevice::counts),
            process_bytes: process_transfers().map(|transfers| transfers.written_bytes),
            reclaim_bytes: db.metrics().reclaim_moved_bytes,
        }
    }

    fn directory_bytes(&self) -> Result<u64, CliError> {
        directory_bytes(&self.path)
            .map_err(|error| CliError::failed(format!("cannot list {}: {error}", self.path.display())))
    }
}

/// Makes a row of each stretch, and looks at the space meanwhile.
struct Watch<'a> {
    churn: &'a Churn<'a>,
    load: ChurnLoad,
    stretches: Vec<ChurnStretch>,
    /// The most bytes that the directory took: in the stretch, and in all.
    most_in_stretch: u64,
    most: u64,
    refused_before: u64,
    /// Why the directory could not be looked at.
    failure: Option<CliError>,
}

impl<'a> Watch<'a> {
    fn new(churn: &'a Churn<'a>, load: ChurnLoad, directory_bytes: u64) -> Watch<'a> {
        let (most_in_stretch, most) = (directory_bytes, directory_bytes);
        Watch { churn, load, stretches: Vec::new(), most_in_stretch, most, refused_before: 0, failure: None }
    }

    fn directory_bytes(&mut self) -> u64 {
        let bytes = self.churn.directory_bytes().unwrap_or_else(|error| {
            self.failure = Some(error);
            0
        });
        self.most_in_stretch = self.most_in_stretch.max(bytes);
        self.most = self.most.max(bytes);
        bytes
    }
}

impl Watcher for Watch<'_> {
    fn look(&mut self) {
        self.directory_bytes();
    }

    fn stretch(&mut self, stretch: Stretch) {
        let directory_bytes = self.directory_bytes();
        let refused = self.churn.refused.load(Ordering::Relaxed);
        let row = ChurnStretch {
            load: self.load.clone(),
            at_s: stretch.at_s,
            seconds: stretch.seconds,
            overwrites: stretch.finished,
            overwrites_per_s: stretch.writes_per_s,
            p50_us: latency_us(&stretch.latencies_ns, 0.5),
            p99_us: latency_us(&stretch.latencies_ns, 0.99),
            p999_us: latency_us(&stretch.latencies_ns, 0.999),
            longest_us: stretch.latencies_ns.max() as f64 / 1000.0,
            refused: refused - self.refused_before,
            directory_bytes,
            most_directory_bytes: self.most_in_stretch,
            space: directory_bytes as f64 / self.load.live_bytes as f64,
            device_written_bytes: stretch.disk.map(|disk| disk.bytes_written),
            processors: stretch.processors,
            resident_bytes: stretch.resident_bytes,
        };
        progress(&row.in_words());
        self.stretches.push(row);
        self.refused_before = refused;
        self.most_in_stretch = directory_bytes;
    }
}
