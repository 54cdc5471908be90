//! What reading and writing everything costs: whole scans with values, backups and ingests, beside what the disk gives to plain loops that
//! read or write the same bytes. In the log the values of a table lie in the order of its writes; a scan goes in the order of
//! keys, so it can be sequential or all but random, and both are measured. `passes` reads everything once, in one way each; here
//! they take turns and are compared. No pass is timed beside another, but for gets beside a backup.

mod passes;

use std::path::PathBuf;
use std::time::Duration;

use aiodb::{IndexKind, ScanOptions, TableOptions};
use clap::Args;

use super::arguments::{OutputArgs, parse_ordered_index, parse_value_bytes};
use super::ceiling::{Ceiling, Sources};
use super::dataset::{Dataset, LoadedStore, Order, Scratch};
use super::gets::{Gets, MAX_PAIRS};
use super::outcome::Outcome;
use super::raw::{RawReads, ReadArea};
use super::rows::Rows;
use super::rows::scan::ScanRow;
use super::stats::Summary;
use super::table::whole;
use super::terminal::progress;
use crate::CliError;
use crate::options::LsmArgs;
use passes::{Pass, Way};

/// Gets and raw reads in flight where the disk is read in no order.
const DEPTH: usize = 64;

#[derive(Args)]
pub(super) struct ScanArgs {
    /// Directory on the disk to measure; the stores are made in a fresh directory below it
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Directory to back up into; the same disk if not given
    #[arg(long)]
    backup_dir: Option<PathBuf>,
    /// Index of the tables that are scanned
    #[arg(long, default_value = "lmdb", value_parser = parse_ordered_index)]
    index: IndexKind,
    /// Pairs, each with an 8-byte key
    #[arg(long, default_value_t = 250_000, value_parser = clap::value_parser!(u64).range(1_000..=MAX_PAIRS))]
    pairs: u64,
    /// Bytes of a value, a multiple of 8
    #[arg(long, default_value_t = 4096, value_parser = parse_value_bytes)]
    value_bytes: usize,
    #[command(flatten)]
    lsm: LsmArgs,
    /// Length of a round in milliseconds, of what has no end of its own
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    round_ms: u64,
    /// Rounds; all series take turns
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// MiB/s of the backup beside which gets are measured
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pace: u64,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Series {
    Sequential,
    Random,
    Copy,
    Write,
    ScanInOrder,
    ScanInNoOrder,
    Iterate,
    Backup,
    Ingest,
    Gets,
    GetsBesideBackup,
}

/// The series that take turns in every round.
const IN_TURN: [Series; 9] = [
    Series::Sequential,
    Series::ScanInOrder,
    Series::Iterate,
    Series::Random,
    Series::ScanInNoOrder,
    Series::Copy,
    Series::Backup,
    Series::Write,
    Series::Ingest,
];

impl Series {
    fn name(self) -> &'static str {
        match self {
            Series::Sequential => "disk, sequential",
            Series::Random => "disk, in no order",
            Series::Copy => "disk, copy",
            Series::Write => "disk, sequential writes",
            Series::ScanInOrder => "scan, values in key order",
            Series::ScanInNoOrder => "scan, values in no order",
            Series::Iterate => "iterate",
            Series::Backup => "backup",
            Series::Ingest => "ingest",
            Series::Gets => "gets",
            Series::GetsBesideBackup => "gets beside a paced backup",
        }
    }

    /// The index of the table that it reads, where `ordered` is that of tables that are scanned.
    fn index(self, ordered: IndexKind) -> Option<IndexKind> {
        match self {
            Series::Sequential | Series::Random | Series::Copy | Series::Write => None,
            Series::Iterate => Some(IndexKind::Hash),
            Series::Ingest => Some(IndexKind::Lsm),
            _ => Some(ordered),
        }
    }

    /// What it is held against.
    fn against(self) -> &'static [Series] {
        match self {
            Series::ScanInOrder | Series::Iterate => &[Series::Sequential],
            Series::ScanInNoOrder | Series::Gets => &[Series::Random],
            Series::Backup => &[Series::Sequential, Series::Copy],
            Series::Ingest => &[Series::Write],
            Series::GetsBesideBackup => &[Series::Gets],
            Series::Sequential | Series::Random | Series::Copy | Series::Write => &[],
        }
    }
}

/// The stores that are read, and the disk under them.
struct Bench {
    data: Dataset,
    /// What is ingested, in the order of keys.
    sorted: Vec<u64>,
    ingested: TableOptions,
    in_order: LoadedStore,
    in_no_order: LoadedStore,
    unordered: LoadedStore,
    area: ReadArea,
    way: Way,
    ceiling: Ceiling,
    /// Of what has no end of its own.
    round: Duration,
    backups: Scratch,
    /// The passes of each series.
    passes: Vec<(Series, Pass)>,
}

pub(super) fn run(args: &ScanArgs) -> Result<Outcome, CliError> {
    let scratch = Scratch::new(&args.dir, false)?;
    let mut notes = Vec::new();
    let mut bench = Bench::prepare(args, &scratch, &mut notes)?;
    for round in 1..=args.rounds {
        progress(&format!("round {round} of {}", args.rounds));
        for series in IN_TURN {
            let pass = bench.pass(series)?;
            bench.passes.push((series, pass));
        }
    }
    bench.gets_beside_backup(args, &mut notes)?;
    notes.push(format!(
        "rates are of bytes of values; cache of values: 0 bytes; backups into {}",
        bench.backups.path().display()
    ));
    notes.extend(args.lsm.in_words());
    notes.push(format!("gets: one reader, {DEPTH} in flight; the backup beside them reads {} MiB/s", args.pace));
    Ok(Outcome::new(scratch.path(), notes, Rows::Scan(bench.rows())))
}

impl Bench {
    fn prepare(args: &ScanArgs, scratch: &Scratch, notes: &mut Vec<String>) -> Result<Bench, CliError> {
        let data = Dataset { pairs: args.pairs, value_bytes: args.value_bytes };
        let build = |name: &str, options: TableOptions, order| {
            progress(&format!("loading {} pairs: {name}", whole(data.pairs as f64)));
            LoadedStore::build(&[scratch.path().join(name)], options, data, order)
        };
        let in_order = build("in-order", args.lsm.options_if_lsm(args.index), Order::Keys)?;
        let in_no_order = build("in-no-order", args.lsm.options_if_lsm(args.index), Order::Numbers)?;
        let unordered = build("unordered", IndexKind::Hash.into(), Order::Numbers)?;
        let segment_bytes = in_order.db.stats().segment_bytes;
        // All are read once, so that the host below a virtual disk has cached them alike.
        for name in ["in-no-order", "unordered"] {
            ReadArea::warmed(&[scratch.path().join(name)], segment_bytes)?;
        }
        let area = ReadArea::warmed(&[scratch.path().join("in-order")], segment_bytes)?;
        let random = random_reads(&area, data);
        let (sources, round) = (Sources::probe(&random), Duration::from_millis(args.round_ms));
        notes.extend(sources.notes.iter().cloned());
        let ceiling = sources
            .choose(&random, 3, round, notes)
            .ok_or_else(|| CliError::failed("the disk itself could not be read".to_owned()))?;
        let way = passes::fastest_way(&area)?;
        notes.push(format!("the disk was read by {way}, and in no order by {}", ceiling.source.name()));
        let backups = Scratch::new(args.backup_dir.as_deref().unwrap_or(&args.dir), false)?;
        let ingested = args.lsm.options_if_lsm(args.index);
        let ingested = if args.index == IndexKind::Lsm { ingested } else { IndexKind::Lsm.into() };
        let (sorted, passes) = (data.sorted(), Vec::new());
        Ok(Bench {
            data,
            sorted,
            ingested,
            in_order,
            in_no_order,
            unordered,
            area,
            way,
            ceiling,
            round,
            backups,
            passes,
        })
    }

    fn pass(&self, series: Series) -> Result<Pass, CliError> {
        let Bench { data, in_order, in_no_order, unordered, area, way, ceiling, round, backups, .. } = self;
        let (sorted, ingested) = (&self.sorted, &self.ingested);
        match series {
            Series::Sequential => passes::sequential(area, *way),
            Series::Random => {
                let sample = ceiling.source.measure(&random_reads(area, *data), *round)?;
                let bytes_per_s = sample.reads_per_s * data.value_bytes as f64;
                Ok(Pass { bytes_per_s, cpu_us_per_value: sample.cpu_us_per_read })
            }
            Series::Copy => passes::copy(area, backups.path()),
            Series::Write => passes::write(backups.path(), *data),
            Series::Ingest => passes::ingest(&backups.path().join("ingested"), ingested, sorted, *data),
            Series::ScanInOrder => passes::scan(in_order.table.scan(ScanOptions::all())?, *data),
            Series::ScanInNoOrder => passes::scan(in_no_order.table.scan(ScanOptions::all())?, *data),
            Series::Iterate => passes::scan(unordered.table.iterate()?, *data),
            Series::Backup => passes::backup(&in_no_order.db, &backups.path().join("repository"), None, *data),
            Series::Gets | Series::GetsBesideBackup => {
                let gets = Gets { table: &in_no_order.table, data: *data, threads: 1, depth: DEPTH, copy_bytes: 0 };
                let round = gets.run(None, *round)?;
                let bytes_per_s = round.operations_per_s * data.value_bytes as f64;
                Ok(Pass { bytes_per_s, cpu_us_per_value: round.cpu_us_per_operation })
            }
        }
    }

    /// Gets in rounds alone, and then in as many while a paced backup runs.
    fn gets_beside_backup(&mut self, args: &ScanArgs, notes: &mut Vec<String>) -> Result<(), CliError> {
        progress("gets, alone and beside a backup");
        for _ in 0..args.rounds {
            let pass = self.pass(Series::Gets)?;
            self.passes.push((Series::Gets, pass));
        }
        let beside = std::thread::scope(|scope| {
            let repository = self.backups.path().join("repository");
            let (db, data) = (&self.in_no_order.db, self.data);
            let backup = scope.spawn(move || passes::backup(db, &repository, Some(args.pace << 20), data));
            let mut beside = Vec::new();
            for _ in 0..args.rounds {
                let pass = self.pass(Series::GetsBesideBackup)?;
                if backup.is_finished() {
                    // It was not beside the backup to its end.
                    break;
                }
                beside.push((Series::GetsBesideBackup, pass));
            }
            backup.join().expect("a backup does not panic")?;
            Ok::<_, CliError>(beside)
        })?;
        if beside.is_empty() {
            notes.push("the paced backup was over too soon: measure with more --pairs or a smaller --pace".to_owned());
        }
        self.passes.extend(beside);
        Ok(())
    }

    fn rows(&self) -> Vec<ScanRow> {
        let all = IN_TURN.into_iter().chain([Series::Gets, Series::GetsBesideBackup]);
        let rows = all.flat_map(|series| match series.against() {
            [] => vec![self.row(series, None)],
            all => all.iter().map(|against| self.row(series, Some(*against))).collect(),
        });
        rows.flatten().collect()
    }

    /// A series held against another in the same round. None without a pass.
    fn row(&self, series: Series, against: Option<Series>) -> Option<ScanRow> {
        let rates = |wanted: Series| -> Vec<f64> {
            self.passes.iter().filter(|(of, _)| *of == wanted).map(|(_, pass)| pass.bytes_per_s).collect()
        };
        let own = rates(series);
        let cpu: Vec<f64> =
            self.passes.iter().filter(|(of, _)| *of == series).map(|(_, pass)| pass.cpu_us_per_value).collect();
        let ratios: Vec<f64> = against
            .map_or(Vec::new(), |against| own.iter().zip(rates(against)).map(|(own, other)| own / other).collect());
        let ratio = Summary::of(&ratios);
        Some(ScanRow {
            series: series.name().to_owned(),
            index: series.index(self.in_order.table.kind()).map(|kind| kind.name().to_owned()),
            value_bytes: self.data.value_bytes,
            bytes_per_s: Summary::of(&own)?.median,
            bytes_per_s_rounds: own,
            cpu_us_per_value: Summary::of(&cpu)?.median,
            against: against.map(|against| against.name().to_owned()),
            ratio: ratio.map(|ratio| ratio.median),
            ratio_min: ratio.map(|ratio| ratio.min),
            ratio_max: ratio.map(|ratio| ratio.max),
        })
    }
}

/// Reads of the size of a value, in no order.
fn random_reads(area: &ReadArea, data: Dataset) -> RawReads<'_> {
    RawReads { area, read_bytes: data.value_bytes.next_multiple_of(4096) as u32, threads: 1, depth: DEPTH }
}
