//! What a cached get costs: our store with every value in its cache, beside LMDB in memory with the same pairs. Both
//! copy the value out, since that is what a caller keeps.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aiodb::{Backend, IndexKind, Table as AiodbTable};
use clap::Args;

use super::arguments::{OutputArgs, parse_value_bytes};
use super::dataset::{Dataset, LoadedStore, Order, Scratch};
use super::gets::MAX_PAIRS;
use super::memory::MemoryStore;
use super::outcome::Outcome;
use super::round::{self, Round, Tally};
use super::rows::Rows;
use super::rows::cache::CacheRow;
use super::stats::Summary;
use super::table::{bytes, whole};
use super::terminal::progress;
use crate::CliError;

/// The clock is read, and a value checked, once in this many gets: LMDB's values are not checked in its loop either.
const GETS_PER_LOOK: u64 = 64;

/// The cache is made so large that all pairs fit: this times what they take.
const SPARE_ROOM: f64 = 1.5;

/// What a pair takes in the cache beside its value: key, header and bookkeeping.
const PAIR_OVERHEAD_BYTES: u64 = 256;

#[derive(Args)]
pub(super) struct CacheArgs {
    /// Directory on the disk to use; the stores are made in a fresh directory below it
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Pairs, each with an 8-byte key; the cache is made large enough for all of them
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=MAX_PAIRS))]
    pairs: u64,
    /// Bytes of a value, a multiple of 8
    #[arg(long, value_delimiter = ',', default_value = "24,4096", value_parser = parse_value_bytes)]
    value_bytes: Vec<usize>,
    /// Gets in flight of a reader
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    depth: u64,
    /// Length of a round in milliseconds; all points take turns
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    round_ms: u64,
    /// Rounds
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

/// The engine that answers the gets of a point.
enum Way<'a> {
    Lmdb(&'a MemoryStore),
    Get(&'a LoadedStore, IndexKind),
    Reader(&'a LoadedStore, IndexKind, usize),
}

pub(super) fn run(args: &CacheArgs) -> Result<Outcome, CliError> {
    let scratch = Scratch::new(&args.dir, false)?;
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for &value_bytes in &args.value_bytes {
        measure(args, value_bytes, scratch.path(), &mut rows, &mut notes)?;
    }
    notes.push("one thread; every value is in memory and is copied out whole".to_owned());
    Ok(Outcome::new(scratch.path(), notes, Rows::Cache(rows)))
}

fn measure(
    args: &CacheArgs,
    value_bytes: usize,
    dir: &Path,
    rows: &mut Vec<CacheRow>,
    notes: &mut Vec<String>,
) -> Result<(), CliError> {
    let data = Dataset { pairs: args.pairs, value_bytes };
    let cache_bytes = ((data.data_bytes() + data.pairs * PAIR_OVERHEAD_BYTES) as f64 * SPARE_ROOM) as u64;
    notes.push(format!("values of {value_bytes} B: a cache of {} ({cache_bytes} B)", bytes(cache_bytes)));
    progress(&format!("loading {} pairs with values of {value_bytes} B", whole(data.pairs as f64)));
    let lmdb = MemoryStore::build(&dir.join(format!("lmdb-alone-{value_bytes}")), data)?;
    let store = |kind: IndexKind| {
        let path = dir.join(format!("{}-{value_bytes}", kind.name()));
        LoadedStore::build(std::slice::from_ref(&path), kind, data, Order::Numbers)?.db.close()?;
        let store = LoadedStore::open(std::slice::from_ref(&path), Backend::Auto, cache_bytes)?;
        warm(&store, data, args.depth as usize)?;
        Ok::<_, CliError>(store)
    };
    let mut stores = Vec::new();
    for kind in [IndexKind::Lmdb, IndexKind::Lsm, IndexKind::Hash] {
        stores.push((store(kind)?, kind));
    }
    let depth = args.depth as usize;
    let ours = stores.iter().flat_map(|(store, kind)| [Way::Get(store, *kind), Way::Reader(store, *kind, depth)]);
    let ways: Vec<Way> = std::iter::once(Way::Lmdb(&lmdb)).chain(ours).collect();
    let mut rounds: Vec<Vec<Round>> = ways.iter().map(|_| Vec::new()).collect();
    for number in 1..=args.rounds {
        progress(&format!("round {number} of {}", args.rounds));
        for (way, rounds) in ways.iter().zip(&mut rounds) {
            rounds.push(way.measure(data, Duration::from_millis(args.round_ms))?);
        }
    }
    rows.extend(ways.iter().zip(&rounds).map(|(way, own)| way.row(data, cache_bytes, own, &rounds[0])));
    stores.into_iter().try_for_each(|(store, _)| Ok(store.db.close()?))
}

/// Reads every value once, and so into the cache.
fn warm(store: &LoadedStore, data: Dataset, depth: usize) -> Result<(), CliError> {
    let mut reader = store.table.reader(depth)?;
    let mut numbers = 0..data.pairs;
    loop {
        while reader.has_room() {
            let Some(number) = numbers.next() else { break };
            reader.submit(&data.key(number), number)?;
        }
        let Some(got) = reader.poll()? else { return Ok(()) };
        let token = got.token;
        check(data, token, got.value?)?;
    }
}

impl Way<'_> {
    fn measure(&self, data: Dataset, duration: Duration) -> Result<Round, CliError> {
        match *self {
            Way::Lmdb(store) => store.run(data.value_bytes, duration),
            Way::Get(store, _) => blocking_gets(&store.table, data, duration),
            Way::Reader(store, _, depth) => reader_gets(&store.table, data, depth, duration),
        }
    }

    fn row(&self, data: Dataset, cache_bytes: u64, own: &[Round], lmdb: &[Round]) -> CacheRow {
        let rates: Vec<f64> = own.iter().map(|round| round.operations_per_s).collect();
        let cpu: Vec<f64> = own.iter().map(|round| round.cpu_us_per_operation).collect();
        let ratios: Vec<f64> = rates.iter().zip(lmdb).map(|(rate, lmdb)| rate / lmdb.operations_per_s).collect();
        let summary = |values: &[f64]| Summary::of(values).expect("at least one round was run");
        let (series, index) = match self {
            Way::Lmdb(_) => ("lmdb in memory", None),
            Way::Get(_, kind) => ("aiodb get", Some(kind.name().to_owned())),
            Way::Reader(_, kind, _) => ("aiodb reader", Some(kind.name().to_owned())),
        };
        let gets = summary(&rates);
        CacheRow {
            series: series.to_owned(),
            ratio_to_lmdb: index.as_ref().map(|_| summary(&ratios).median),
            cache_bytes: if index.is_some() { cache_bytes } else { 0 },
            index,
            value_bytes: data.value_bytes,
            pairs: data.pairs,
            gets_per_s: gets.median,
            gets_per_s_min: gets.min,
            gets_per_s_max: gets.max,
            rounds: rates.len(),
            gets_per_s_rounds: rates,
            cpu_us_per_get: summary(&cpu).median,
        }
    }
}

/// Random gets with the calling thread; the value that each returns is the caller's copy.
fn blocking_gets(table: &AiodbTable, data: Dataset, duration: Duration) -> Result<Round, CliError> {
    round::run(
        1,
        None,
        |_| Ok(()),
        |(), start| {
            let mut random = fastrand::Rng::new();
            let mut finished = 0;
            loop {
                let mut last = (0, None);
                for _ in 0..GETS_PER_LOOK {
                    let number = random.u64(..data.pairs);
                    last = (number, black_box(table.get(&data.key(number))?));
                }
                check(data, last.0, last.1.as_deref())?;
                finished += GETS_PER_LOOK;
                let now = Instant::now();
                if now >= start + duration {
                    return Ok(Tally::untimed(finished, finished, now - start));
                }
            }
        },
    )
}

/// The same with a reader that is kept full; each value is copied out of it.
fn reader_gets(table: &AiodbTable, data: Dataset, depth: usize, duration: Duration) -> Result<Round, CliError> {
    round::run(
        1,
        None,
        |_| Ok((table.reader(depth)?, vec![0; data.value_bytes])),
        |(mut reader, mut copy), start| {
            let mut random = fastrand::Rng::new();
            let mut finished = 0;
            loop {
                while reader.has_room() {
                    let number = random.u64(..data.pairs);
                    reader.submit(&data.key(number), number)?;
                }
                let got = reader.poll()?.expect("gets are in flight");
                let (number, value) = (got.token, got.value?);
                finished += 1;
                if finished % GETS_PER_LOOK == 0 {
                    check(data, number, value)?;
                }
                copy.copy_from_slice(value.unwrap_or_default());
                black_box(&mut copy);
                if finished % GETS_PER_LOOK == 0 {
                    let now = Instant::now();
                    if now >= start + duration {
                        return Ok(Tally::untimed(finished, finished, now - start));
                    }
                }
            }
        },
    )
}

fn check(data: Dataset, number: u64, value: Option<&[u8]>) -> Result<(), CliError> {
    match value.is_some_and(|value| data.is_value(number, value)) {
        true => Ok(()),
        false => Err(CliError::failed(format!("pair {number} came back with another value"))),
    }
}
