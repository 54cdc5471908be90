//! Counters: merges of small numbers, beside puts under the same keys in the same rounds, and what a get of a merged key costs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use aiodb::merge::Add;
use aiodb::{Batch, Db, Durability, IndexKind, MergeOperator, MergeOperators, Options, Table as DbTable, TableOptions};
use clap::Args;
use hdrhistogram::Histogram;

use super::arguments::{Class, OutputArgs, parse_class, parse_index};
use super::counters::process_cpu_time;
use super::dataset::{KEY_BYTES, Scratch, random_key, remove_unless};
use super::outcome::Outcome;
use super::rest::catch_up;
use super::round::{self, LATENCY_SAMPLE_EVERY, Tally, empty_latencies, latency_us};
use super::rows::Rows;
use super::rows::merge::{MergeRow, Operations, Ratio};
use super::stats::Summary;
use super::terminal::progress;
use crate::CliError;
use crate::options::LsmArgs;

/// Bytes of an operand, and of a value beside it.
const VALUE_BYTES: usize = size_of::<i64>();

/// Operands are numbers from 1 to this: a sum tells one that was lost, and one that counted twice.
const MOST_ADDED: i64 = 1000;

/// Keys put, and counters read back, at once.
const KEYS_AT_ONCE: u64 = 4096;

/// What is owed after a round is not waited for longer: a `hash` table reads each record that was overwritten, before it forgets it.
const MOST_CATCH_UP: Duration = Duration::from_secs(10);
/// Nor before gets.
const MOST_BEFORE_GETS: Duration = Duration::from_secs(120);

#[derive(Args)]
pub(super) struct MergeArgs {
    /// Directory on the disk to measure; the stores are made in a fresh directory below it
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Indexes
    #[arg(long, value_delimiter = ',', default_value = "lsm,hash,lmdb", value_parser = parse_index)]
    index: Vec<IndexKind>,
    /// Keys, of which each merge and put takes one at random
    #[arg(long, value_delimiter = ',', default_value = "1,100000", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    keys: Vec<u64>,
    /// Durability classes: sync, interval, none
    #[arg(long, value_delimiter = ',', default_value = "none", value_parser = parse_class)]
    durability: Vec<Class>,
    /// The time of class interval in milliseconds
    #[arg(long, default_value_t = 1000)]
    interval_ms: u64,
    /// Concurrent writers, one thread each; as many threads get afterwards
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u64).range(1..=4096))]
    writers: Vec<u64>,
    /// Length of a round in seconds
    #[arg(long, default_value_t = 2.0, value_parser = parse_seconds)]
    seconds: f64,
    /// Rounds per point: in each, merges and puts take turns, each followed by bringing disk and index up to date
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    rounds: u64,
    /// Keep the stores
    #[arg(long)]
    keep: bool,
    #[command(flatten)]
    lsm: LsmArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds: &f64| (0.01..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "a number from 0.01 to 3600".to_owned())
}

pub(super) fn run(args: &MergeArgs) -> Result<Outcome, CliError> {
    let scratch = Scratch::new(&args.dir, args.keep)?;
    let mut notes = vec![
        format!("latency was taken for 1 in {LATENCY_SAMPLE_EVERY} operations; writers are threads of one process"),
        "cache of values: 0 bytes".to_owned(),
        "`caught up` includes sync, checkpoint and the folding of operands that had piled up; so does processor time"
            .to_owned(),
        "gets are blocking ones, after that; each counter was found to have the sum of all that was merged".to_owned(),
    ];
    notes.extend(args.lsm.in_words());
    let mut rows = Vec::new();
    for &kind in &args.index {
        for &class in &args.durability {
            let merges = Merges { args, kind, class };
            merges.measure(scratch.path(), &mut rows, &mut notes)?;
        }
    }
    Ok(Outcome::new(scratch.path(), notes, Rows::Merge(rows)))
}

/// The measurements on one store.
struct Merges<'a> {
    args: &'a MergeArgs,
    kind: IndexKind,
    class: Class,
}

impl Merges<'_> {
    fn measure(&self, dir: &Path, rows: &mut Vec<MergeRow>, notes: &mut Vec<String>) -> Result<(), CliError> {
        let path = dir.join(format!("{}-{:?}", self.kind.name(), self.class).to_lowercase());
        let durability = self.class.durability(self.args.interval_ms);
        let merge_operators = MergeOperators::default().with(Add);
        let db = Db::open(&path, Options { durability, cache_bytes: 0, merge_operators, ..Options::default() })?;
        notes.extend(db.stats().fallbacks);
        for &keys in &self.args.keys {
            let counters = Counters::make(&db, self.args.lsm.options_if_lsm(self.kind), keys)?;
            for &writers in &self.args.writers {
                let row = self.measure_point(&counters, writers as usize)?;
                progress(&row.in_words());
                notes.extend(row.not_caught_up());
                rows.push(row);
            }
        }
        db.close()?;
        remove_unless(self.args.keep, &path)
    }

    fn measure_point(&self, counters: &Counters<'_>, writers: usize) -> Result<MergeRow, CliError> {
        let duration = Duration::from_secs_f64(self.args.seconds);
        let [merges, puts] = in_turn(self.args.rounds, |turn| match turn {
            Turn::First => counters.measure(writers, duration, |number, added| counters.merge(number, added)),
            Turn::Second => counters.measure(writers, duration, |number, added| counters.put(number, added)),
        })?;
        let is_settled = catch_up(counters.db, MOST_BEFORE_GETS)?;
        let [merged, put] = in_turn(self.args.rounds, |turn| {
            let table = if turn == Turn::First { &counters.merged } else { &counters.put };
            counters.run(writers, duration, |number, _| counters.get(table, number))
        })?;
        counters.check_sums()?;
        Ok(MergeRow {
            index: self.kind.name().to_owned(),
            durability: self.class.in_words(self.args.interval_ms),
            key_bytes: KEY_BYTES,
            value_bytes: VALUE_BYTES,
            inline_bytes: counters.merged.options().inline_bytes,
            keys: counters.sums.len() as u64,
            writers,
            is_settled_before_gets: is_settled,
            merges_to_puts: Ratio::of(&merges.per_s, &puts.per_s),
            merges_to_puts_caught_up: Ratio::of(&merges.per_s_caught_up, &puts.per_s_caught_up),
            gets_of_merged_to_put: Ratio::of(&merged.per_s, &put.per_s),
            merges: merges.operations(),
            puts: puts.operations(),
            gets_of_merged: merged.operations(),
            gets_of_put: put.operations(),
            checked_counters: counters.sums.len() as u64,
        })
    }
}

/// Which of two kinds of operations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    Second,
}

/// Measures two kinds of operations in rounds. Which comes first in a round changes from one to the next, so that a disk that drifts
/// favours neither.
fn in_turn(rounds: u64, measure: impl Fn(Turn) -> Result<Measured, CliError>) -> Result<[Rounds; 2], CliError> {
    let mut both = [Rounds::default(), Rounds::default()];
    for round in 0..rounds {
        let turns = if round % 2 == 0 { [Turn::First, Turn::Second] } else { [Turn::Second, Turn::First] };
        for turn in turns {
            both[turn as usize].add(&measure(turn)?);
        }
    }
    Ok(both)
}

/// Two tables of one store with the same keys, and what the counters of the one must have.
struct Counters<'a> {
    db: &'a Db,
    merged: DbTable,
    put: DbTable,
    /// By number of the key. Relaxed: they are looked at when all writers have ended.
    sums: Vec<AtomicI64>,
}

impl<'a> Counters<'a> {
    /// All keys of both tables have 0.
    fn make(db: &'a Db, options: TableOptions, keys: u64) -> Result<Counters<'a>, CliError> {
        let merging = TableOptions { merge: Some(Add.name().to_owned()), ..options.clone() };
        let merged = db.create_table_with(&format!("merged-{keys}"), merging)?;
        let put = db.create_table_with(&format!("put-{keys}"), options)?;
        let numbers: Vec<u64> = (0..keys).collect();
        for numbers in numbers.chunks(KEYS_AT_ONCE as usize) {
            let mut batch = Batch::new();
            for &number in numbers {
                batch.put(&merged, &random_key(number), &0i64.to_le_bytes())?;
                batch.put(&put, &random_key(number), &0i64.to_le_bytes())?;
            }
            db.write_with(&batch, Durability::None)?;
        }
        db.checkpoint()?;
        Ok(Counters { db, merged, put, sums: numbers.iter().map(|_| AtomicI64::new(0)).collect() })
    }

    fn merge(&self, number: u64, added: i64) -> Result<(), CliError> {
        self.merged.merge(&random_key(number), &added.to_le_bytes())?;
        self.sums[number as usize].fetch_add(added, Ordering::Relaxed);
        Ok(())
    }

    fn put(&self, number: u64, added: i64) -> Result<(), CliError> {
        self.put.put(&random_key(number), &added.to_le_bytes())?;
        Ok(())
    }

    fn get(&self, table: &DbTable, number: u64) -> Result<(), CliError> {
        match table.get(&random_key(number))? {
            Some(_) => Ok(()),
            None => Err(CliError::failed(format!("key {number} of table {} is missing", table.name()))),
        }
    }

    /// One round of writes, until nothing is owed any more.
    fn measure(
        &self,
        threads: usize,
        duration: Duration,
        write: impl Fn(u64, i64) -> Result<(), CliError> + Sync,
    ) -> Result<Measured, CliError> {
        let (start, cpu_before) = (Instant::now(), process_cpu_time());
        let round = self.run(threads, duration, write)?;
        let is_caught_up = catch_up(self.db, MOST_CATCH_UP)?;
        let per_s_caught_up = round.count as f64 / start.elapsed().as_secs_f64();
        Ok(Measured { per_s_caught_up, is_caught_up, cpu: process_cpu_time() - cpu_before, ..round })
    }

    /// One round of an operation by several threads, each with random keys.
    fn run(
        &self,
        threads: usize,
        duration: Duration,
        operate: impl Fn(u64, i64) -> Result<(), CliError> + Sync,
    ) -> Result<Measured, CliError> {
        let keys = self.sums.len() as u64;
        let until_over = |(): (), start: Instant| {
            let (deadline, mut random) = (start + duration, fastrand::Rng::new());
            let (mut latency_ns, mut finished) = (empty_latencies(), 0);
            loop {
                let (number, added) = (random.u64(..keys), random.i64(1..=MOST_ADDED));
                finished += 1;
                if finished % LATENCY_SAMPLE_EVERY != 1 {
                    operate(number, added)?;
                    continue;
                }
                let begin = Instant::now();
                operate(number, added)?;
                let end = Instant::now();
                latency_ns.record((end - begin).as_nanos() as u64).expect("the histogram grows as needed");
                if end >= deadline {
                    return Ok(Tally { in_time: finished, finished, elapsed: end - start, latency_ns });
                }
            }
        };
        let round = round::run(threads, None, |_| Ok(()), until_over)?;
        let count = round.finished;
        Ok(Measured {
            count,
            per_s: round.operations_per_s,
            per_s_caught_up: round.operations_per_s,
            is_caught_up: true,
            cpu: Duration::from_secs_f64(round.cpu_us_per_operation * count as f64 / 1e6),
            latency_ns: round.latency_ns,
        })
    }

    /// Reads every counter, and fails if one has another sum than that of all that was merged.
    fn check_sums(&self) -> Result<(), CliError> {
        for (chunk, sums) in self.sums.chunks(KEYS_AT_ONCE as usize).enumerate() {
            let first = chunk as u64 * KEYS_AT_ONCE;
            let keys: Vec<_> = (first..first + sums.len() as u64).map(random_key).collect();
            for ((number, sum), value) in (first..).zip(sums).zip(self.merged.get_many(&keys)?) {
                let sum = sum.load(Ordering::Relaxed);
                let found = value.as_deref().and_then(|value| Some(i64::from_le_bytes(*value.as_array()?)));
                if found != Some(sum) {
                    let found = found.map_or_else(|| format!("{value:?}"), |found| found.to_string());
                    let table = self.merged.name();
                    return Err(CliError::failed(format!(
                        "counter {number} of table {table} is {found}; what was merged makes {sum}"
                    )));
                }
            }
        }
        Ok(())
    }
}

/// One round of one kind of operation.
struct Measured {
    count: u64,
    per_s: f64,
    per_s_caught_up: f64,
    is_caught_up: bool,
    cpu: Duration,
    latency_ns: Histogram<u64>,
}

/// The rounds of one kind of operation.
struct Rounds {
    count: u64,
    per_s: Vec<f64>,
    per_s_caught_up: Vec<f64>,
    not_caught_up: u64,
    cpu_us_each: Vec<f64>,
    latency_ns: Histogram<u64>,
}

impl Default for Rounds {
    fn default() -> Rounds {
        let (per_s, per_s_caught_up, cpu_us_each) = (Vec::new(), Vec::new(), Vec::new());
        Rounds { count: 0, per_s, per_s_caught_up, not_caught_up: 0, cpu_us_each, latency_ns: empty_latencies() }
    }
}

impl Rounds {
    fn add(&mut self, round: &Measured) {
        self.count += round.count;
        self.per_s.push(round.per_s);
        self.per_s_caught_up.push(round.per_s_caught_up);
        self.not_caught_up += u64::from(!round.is_caught_up);
        self.cpu_us_each.push(round.cpu.as_secs_f64() * 1e6 / round.count as f64);
        self.latency_ns.add(&round.latency_ns).expect("an automatically growing histogram takes any other");
    }

    fn operations(self) -> Operations {
        let median = |values: &[f64]| Summary::of(values).expect("at least one round was run").median;
        Operations {
            count: self.count,
            per_s: median(&self.per_s),
            per_s_caught_up: median(&self.per_s_caught_up),
            rounds_not_caught_up: self.not_caught_up,
            p50_us: latency_us(&self.latency_ns, 0.5),
            p99_us: latency_us(&self.latency_ns, 0.99),
            cpu_us_each: median(&self.cpu_us_each),
            per_s_rounds: self.per_s,
        }
    }
}

#[cfg(test)]
mod tests;
