//! Gets per second against queue depth: the paper's figure 2, with the ceiling measured in alternating rounds.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use aiodb::{Backend, IndexKind};
use clap::Args;
use hdrhistogram::Histogram;

use super::arguments::{OutputArgs, parse_backend, parse_index, parse_value_bytes};
use super::ceiling::{Ceiling, Sources};
use super::counters::{BlockDevice, resident_bytes};
use super::dataset::{Dataset, LoadedStore, Order, Scratch, VALUE_BYTES, remove_unless};
use super::environment;
use super::gets::{Gets, MAX_PAIRS};
use super::outcome::Outcome;
use super::raw::{RawReads, ReadArea};
use super::round::{LATENCY_SAMPLE_EVERY, Round, empty_latencies, latency_us};
use super::rows::Rows;
use super::rows::queue_depth::QueueDepthRow;
use super::stats::Summary;
use super::table::whole;
use super::terminal::progress;
use crate::CliError;
use crate::options::LsmArgs;

/// Bytes of a block of a run.
const UNIT_BYTES: usize = 4096;

/// The deepest queue that a reader can have.
const MAX_DEPTH: u64 = 4096;

/// Rounds go on until the ratio's confidence interval is within this fraction on either side.
const WANTED_PRECISION: f64 = 0.02;

/// A confidence interval from fewer rounds would be luck.
const MIN_ROUNDS: usize = 5;

/// A round in which the device gives less than this fraction of what it gave before is marked.
const MARKED_BELOW: f64 = 0.8;

#[derive(Args)]
pub(super) struct QueueDepthArgs {
    /// Directory on the disk to measure; the store is made in a fresh directory below it. Given several times, once for
    /// each disk, the store lies on all of them, and is held against all of them together
    #[arg(long, default_value = ".")]
    dir: Vec<PathBuf>,
    /// Something about the disks that readers of the result must know
    #[arg(long)]
    note: Vec<String>,
    /// Pairs in the store, each an 8-byte key and a value [default: 1000000; 200000 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=MAX_PAIRS))]
    pairs: Option<u64>,
    /// Gets in flight per thread [default: 1,2,4..1024; 1,4,16,64,256,1024 with --quick]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=MAX_DEPTH))]
    depths: Vec<u64>,
    /// Threads, each with a reader of its own [default: 1 and the number of cores; 1 with --quick]
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..=1024))]
    threads: Vec<u64>,
    /// Device backends [default: uring,libaio,threads; uring with --quick]
    #[arg(long, value_delimiter = ',', value_parser = parse_backend)]
    backends: Vec<Backend>,
    /// Indexes [default: lmdb,lsm,hash; lmdb with --quick]
    #[arg(long, value_delimiter = ',', value_parser = parse_index)]
    index: Vec<IndexKind>,
    /// Length of a round in milliseconds; engine and device take turns [default: 1000; 250 with --quick]
    #[arg(long, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    round_ms: Option<u64>,
    /// Rounds per point at most, if the ratio's 95 % confidence interval does not get within 2 % earlier
    #[arg(long, default_value_t = 40)]
    max_rounds: usize,
    /// Seconds per point at most [default: 90; 6 with --quick]
    #[arg(long)]
    max_seconds: Option<u64>,
    /// Cache of values in bytes; 0 measures the device, as this benchmark is meant to
    #[arg(long, default_value_t = 0)]
    cache_bytes: u64,
    /// Bytes of each value
    #[arg(long, default_value_t = VALUE_BYTES, value_parser = parse_value_bytes)]
    value_bytes: usize,
    #[command(flatten)]
    lsm: LsmArgs,
    /// A small measurement of about a minute
    #[arg(long)]
    quick: bool,
    /// Keep the store
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// The arguments with their defaults filled in.
struct Plan {
    data: Dataset,
    depths: Vec<usize>,
    threads: Vec<usize>,
    backends: Vec<Backend>,
    indexes: Vec<IndexKind>,
    round: Duration,
    max_rounds: usize,
    cache_bytes: u64,
    lsm: LsmArgs,
    max_point: Duration,
    /// Rounds of each way to measure the device before one is chosen.
    choosing_rounds: usize,
}

impl Plan {
    fn of(args: &QueueDepthArgs) -> Plan {
        fn or<T: Clone>(given: &[T], default: Vec<T>) -> Vec<T> {
            if given.is_empty() { default } else { given.to_vec() }
        }
        let quick = args.quick;
        let cores = environment::cores() as u64;
        let powers: Vec<u64> = (0..=10).step_by(if quick { 2 } else { 1 }).map(|power| 1 << power).collect();
        let all_threads = if quick || cores == 1 { vec![1] } else { vec![1, cores] };
        let all_backends = vec![Backend::Uring, Backend::Libaio, Backend::Threads];
        let sizes = |numbers: Vec<u64>| numbers.into_iter().map(|number| number as usize).collect();
        Plan {
            data: Dataset {
                pairs: args.pairs.unwrap_or(if quick { 200_000 } else { 1_000_000 }),
                value_bytes: args.value_bytes,
            },
            depths: sizes(or(&args.depths, powers)),
            threads: sizes(or(&args.threads, all_threads)),
            backends: or(&args.backends, if quick { vec![Backend::Uring] } else { all_backends }),
            indexes: or(
                &args.index,
                if quick { vec![IndexKind::Lmdb] } else { vec![IndexKind::Lmdb, IndexKind::Lsm, IndexKind::Hash] },
            ),
            round: Duration::from_millis(args.round_ms.unwrap_or(if quick { 250 } else { 1000 })),
            max_rounds: args.max_rounds.max(1),
            cache_bytes: args.cache_bytes,
            lsm: args.lsm,
            max_point: Duration::from_secs(args.max_seconds.unwrap_or(if quick { 6 } else { 90 })),
            choosing_rounds: if quick { 1 } else { 3 },
        }
    }
}

pub(super) fn run(args: &QueueDepthArgs) -> Result<Outcome, CliError> {
    let plan = Plan::of(args);
    let scratches = args.dir.iter().map(|dir| Scratch::new(dir, args.keep)).collect::<Result<Vec<_>, _>>()?;
    let mut notes = args.note.clone();
    notes.extend(disks_in_words(&args.dir));
    notes.extend([
        "before measuring, all segment files were read once with direct I/O, so that the host below a virtual disk has \
         cached them for the engine and for the ceiling alike"
            .to_owned(),
        format!("latency was taken for 1 in {LATENCY_SAMPLE_EVERY} gets, from submit to poll; every value was checked"),
        "device reads are counted by the disk and include those of other processes".to_owned(),
        format!("cache of values: {} bytes", plan.cache_bytes),
        format!("values have {} bytes", plan.data.value_bytes),
    ]);
    notes.extend(plan.lsm.in_words());
    let mut rows = Vec::new();
    for &kind in &plan.indexes {
        IndexRun::prepare(&plan, kind, &scratches, &mut notes)?.measure(&mut rows, &mut notes)?;
    }
    Ok(Outcome::new(scratches[0].path(), notes, Rows::QueueDepth(rows)))
}

/// What the directories of one store lie on, where there are several.
fn disks_in_words(dirs: &[PathBuf]) -> Vec<String> {
    if dirs.len() < 2 {
        return Vec::new();
    }
    let name = |dir: &PathBuf| BlockDevice::holding(dir).map_or_else(|| "no block device".to_owned(), |d| d.name());
    let names: Vec<String> = dirs.iter().map(name).collect();
    let placed = dirs.iter().zip(&names).map(|(dir, name)| format!("{} on {name}", dir.display()));
    let mut notes =
        vec![format!("the store lies in {} directories: {}", dirs.len(), placed.collect::<Vec<_>>().join(", "))];
    if names.iter().collect::<HashSet<_>>().len() < names.len() {
        notes.push("some of these directories share a device: this does not show what several disks give".to_owned());
    }
    if names.iter().any(|name| name.starts_with("loop")) {
        notes.push("loop devices are files on another file system, not disks".to_owned());
    }
    notes
}

/// The measurements on one store.
struct IndexRun<'a> {
    plan: &'a Plan,
    kind: IndexKind,
    /// The store's directories.
    paths: Vec<PathBuf>,
    keep: bool,
    area: ReadArea,
    /// Bytes that one get reads from the device.
    read_bytes: u32,
    sources: Sources,
    disk: Option<BlockDevice>,
}

impl<'a> IndexRun<'a> {
    fn prepare(
        plan: &'a Plan,
        kind: IndexKind,
        scratches: &[Scratch],
        notes: &mut Vec<String>,
    ) -> Result<IndexRun<'a>, CliError> {
        let paths: Vec<PathBuf> = scratches.iter().map(|scratch| scratch.path().join(kind.name())).collect();
        progress(&format!("loading {} pairs, index {}", whole(plan.data.pairs as f64), kind.name()));
        let store = LoadedStore::build(&paths, plan.lsm.options_if_lsm(kind), plan.data, Order::Numbers)?;
        let stats = store.db.stats();
        store.db.close()?;
        progress("reading the segments once");
        let area = ReadArea::warmed(&paths, stats.segment_bytes)?;
        let read_bytes = read_bytes(kind, plan.data.value_bytes, stats.block_bytes);
        let sources = Sources::probe(&RawReads { area: &area, read_bytes, threads: 1, depth: 16 });
        notes.extend(stats.fallbacks.iter().chain(&sources.notes).cloned());
        let disk = BlockDevice::holding_all(&paths);
        Ok(IndexRun { plan, kind, paths, keep: scratches[0].is_kept(), area, read_bytes, sources, disk })
    }

    fn measure(&self, rows: &mut Vec<QueueDepthRow>, notes: &mut Vec<String>) -> Result<(), CliError> {
        // The device is the same for every backend: its fastest measure is chosen once per depth and thread count.
        let mut ceilings = HashMap::new();
        for &backend in &self.plan.backends {
            let store = match LoadedStore::open(&self.paths, backend, self.plan.cache_bytes) {
                Ok(store) => store,
                Err(error @ aiodb::Error::Backend { .. }) => {
                    notes.push(format!("not measured: {error}"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for reads in self.points() {
                let ceiling = ceilings
                    .entry((reads.threads, reads.depth))
                    .or_insert_with(|| self.sources.choose(&reads, self.plan.choosing_rounds, self.plan.round, notes));
                let row = self.measure_point(&store, &reads, ceiling.as_ref())?;
                progress(&row.in_words());
                rows.push(row);
            }
            store.db.close()?;
        }
        self.paths.iter().try_for_each(|path| remove_unless(self.keep, path))
    }

    /// The points of the curve, as reads of the device.
    fn points(&self) -> impl Iterator<Item = RawReads<'_>> {
        let points =
            self.plan.threads.iter().flat_map(|threads| self.plan.depths.iter().map(|depth| (*threads, *depth)));
        points.map(|(threads, depth)| RawReads { area: &self.area, read_bytes: self.read_bytes, threads, depth })
    }

    fn measure_point(
        &self,
        store: &LoadedStore,
        reads: &RawReads,
        ceiling: Option<&Ceiling>,
    ) -> Result<QueueDepthRow, CliError> {
        let RawReads { threads, depth, .. } = *reads;
        let gets = Gets { table: &store.table, data: self.plan.data, threads, depth, copy_bytes: 0 };
        let measure_store = || gets.run(self.disk.as_ref(), self.plan.round);
        let measure_device = || ceiling.map(|ceiling| ceiling.source.measure(reads, self.plan.round)).transpose();
        let marked_below = ceiling.map_or(0.0, |ceiling| ceiling.warm_up_reads_per_s * MARKED_BELOW);

        measure_store()?;
        let mut rounds = Rounds::default();
        let end = Instant::now() + self.plan.max_point;
        while !rounds.are_enough() && rounds.gets_per_s.len() < self.plan.max_rounds && Instant::now() < end {
            // Series take turns in coming first, so that a drift of the device favours none.
            let (round, sample) = if rounds.gets_per_s.len().is_multiple_of(2) {
                let round = measure_store()?;
                (round, measure_device()?)
            } else {
                let sample = measure_device()?;
                (measure_store()?, sample)
            };
            rounds.add(&round, sample.map(|sample| sample.reads_per_s), marked_below);
        }
        Ok(self.row(store.db.stats().backend, reads, ceiling, rounds))
    }

    fn row(&self, backend: &str, reads: &RawReads, ceiling: Option<&Ceiling>, rounds: Rounds) -> QueueDepthRow {
        let gets = Summary::of(&rounds.gets_per_s).expect("at least one round was run");
        let ratio = Summary::of(&rounds.ratios);
        let (fio, raw) = (ceiling.and_then(Ceiling::fio), ceiling.and_then(Ceiling::raw));
        QueueDepthRow {
            index: self.kind.name().to_owned(),
            backend: backend.to_owned(),
            threads: reads.threads,
            depth_per_thread: reads.depth,
            pairs: self.plan.data.pairs,
            data_bytes: self.plan.data.data_bytes(),
            resident_bytes: resident_bytes(),
            gets_per_s: gets.median,
            gets_per_s_min: gets.min,
            gets_per_s_max: gets.max,
            ceiling: ceiling.map(|ceiling| ceiling.source.name()),
            ceiling_read_bytes: reads.read_bytes,
            ceiling_reads_per_s: Summary::of(&rounds.ceiling_reads_per_s).map(|summary| summary.median),
            ratio: ratio.map(|summary| summary.median),
            ratio_ci95_half_width: ratio.and_then(|summary| summary.ci95_half_width),
            ratio_min: ratio.map(|summary| summary.min),
            ratio_max: ratio.map(|summary| summary.max),
            rounds: rounds.gets_per_s.len(),
            marked_rounds: rounds.marked,
            p50_us: latency_us(&rounds.latency_ns, 0.5),
            p99_us: latency_us(&rounds.latency_ns, 0.99),
            p999_us: latency_us(&rounds.latency_ns, 0.999),
            latency_samples: rounds.latency_ns.len(),
            cpu_us_per_get: rounds.cpu_us / rounds.finished as f64,
            fio_reads_per_s: fio.map(|sample| sample.reads_per_s),
            fio_cpu_us_per_read: fio.map(|sample| sample.cpu_us_per_read),
            raw_reads_per_s: raw.map(|sample| sample.reads_per_s),
            raw_cpu_us_per_read: raw.map(|sample| sample.cpu_us_per_read),
            device_reads_per_get: rounds.device_reads.map(|reads| reads as f64 / rounds.finished as f64),
            gets_per_s_rounds: rounds.gets_per_s,
            ceiling_reads_per_s_rounds: rounds.ceiling_reads_per_s,
        }
    }
}

/// What one get reads: the value alone where the index has the key, or a block of a run with it; header, key and value in one
/// read where it has a tag, in the finest blocks that the disk can read.
fn read_bytes(kind: IndexKind, value_bytes: usize, block_bytes: usize) -> u32 {
    let bytes = match kind {
        IndexKind::Lmdb => value_bytes.next_multiple_of(block_bytes),
        IndexKind::Lsm => value_bytes.next_multiple_of(UNIT_BYTES),
        IndexKind::Hash => value_bytes.next_multiple_of(block_bytes) + block_bytes,
    };
    bytes as u32
}

/// The rounds of one point so far.
struct Rounds {
    gets_per_s: Vec<f64>,
    ceiling_reads_per_s: Vec<f64>,
    ratios: Vec<f64>,
    marked: usize,
    finished: u64,
    cpu_us: f64,
    device_reads: Option<u64>,
    latency_ns: Histogram<u64>,
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds {
            gets_per_s: Vec::new(),
            ceiling_reads_per_s: Vec::new(),
            ratios: Vec::new(),
            marked: 0,
            finished: 0,
            cpu_us: 0.0,
            device_reads: Some(0),
            latency_ns: empty_latencies(),
        }
    }
}

impl Rounds {
    fn add(&mut self, round: &Round, ceiling_reads_per_s: Option<f64>, marked_below: f64) {
        self.gets_per_s.push(round.operations_per_s);
        if let Some(reads_per_s) = ceiling_reads_per_s {
            self.ceiling_reads_per_s.push(reads_per_s);
            self.ratios.push(round.operations_per_s / reads_per_s);
            self.marked += usize::from(reads_per_s < marked_below);
        }
        self.finished += round.finished;
        self.cpu_us += round.cpu_us_per_operation * round.finished as f64;
        self.device_reads = self.device_reads.zip(round.disk).map(|(reads, disk)| reads + disk.reads);
        self.latency_ns.add(&round.latency_ns).expect("an automatically growing histogram takes any other");
    }

    /// Whether the ratio is known well enough, or the rate itself where there is no ceiling.
    fn are_enough(&self) -> bool {
        let decisive = if self.ratios.is_empty() { &self.gets_per_s } else { &self.ratios };
        decisive.len() >= MIN_ROUNDS && Summary::of(decisive).is_some_and(|summary| summary.is_within(WANTED_PRECISION))
    }
}
