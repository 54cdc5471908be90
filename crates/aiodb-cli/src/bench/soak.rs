//! Inserts without an end, by concurrent writers, until there are many more keys than memory holds: whether the rate falls when the index
//! outgrows memory, as it did for okuyama and Riak, and how long a single put can take.

use std::path::{Path, PathBuf};
use std::time::Instant;

use aiodb::io::memory::control_group_bytes;
use aiodb::{Db, IndexKind, Options, Table as DbTable};
use clap::Args;

use super::arguments::{DurabilityArgs, OutputArgs, RunArgs, parse_index};
use super::counters::BlockDevice;
use super::dataset::{KEY_BYTES, Scratch, random_bytes, random_key, remove_unless};
use super::outcome::Outcome;
use super::round::latency_us;
use super::rows::Rows;
use super::rows::soak::SoakRow;
use super::stretches::{self, Stretch, Watcher};
use super::terminal::progress;
use crate::CliError;
use crate::options::LsmArgs;

#[derive(Args)]
pub(super) struct SoakArgs {
    /// Directory on the disk to use; the stores are made in a fresh directory below it
    #[arg(long, default_value = ".")]
    dir: PathBuf,
    /// Indexes, one store each, one after the other
    #[arg(long, value_delimiter = ',', default_value = "lsm,lmdb,hash", value_parser = parse_index)]
    index: Vec<IndexKind>,
    #[command(flatten)]
    durability: DurabilityArgs,
    /// Bytes of a value; keys have 25
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(0..=16 << 20))]
    value_bytes: u64,
    /// Concurrent writers, one thread each, all putting distinct keys
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=4096))]
    writers: u64,
    /// Keys at which a run ends
    #[arg(long, default_value_t = 50_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    keys: u64,
    #[command(flatten)]
    run: RunArgs,
    /// Memory that the store may take in all [default: a quarter of what the machine has or the control group allows]
    #[arg(long, value_name = "BYTES")]
    memory_bytes: Option<u64>,
    #[command(flatten)]
    lsm: LsmArgs,
    #[command(flatten)]
    pub(super) output: OutputArgs,
}

pub(super) fn run(args: &SoakArgs) -> Result<Outcome, CliError> {
    let scratch = Scratch::new(&args.dir, args.run.keep)?;
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
    notes.extend(args.memory_bytes.map(|bytes| format!("the store may take {bytes} bytes of memory")));
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

impl Soak<'_> {
    fn measure(&self, path: &Path, rows: &mut Vec<SoakRow>, notes: &mut Vec<String>) -> Result<(), CliError> {
        let durability = self.args.durability.durability();
        let memory_bytes = self.args.memory_bytes;
        let db = Db::open(path, Options { durability, memory_bytes, cache_bytes: 0, ..Options::default() })?;
        let table = db.create_table_with("bench", self.args.lsm.options_if_lsm(self.kind))?;
        notes.extend(db.stats().fallbacks);
        self.insert(&table, rows)?;
        db.close()?;
        remove_unless(self.args.run.keep, path)
    }

    /// Puts keys until there are enough of them or the time is up.
    fn insert(&self, table: &DbTable, rows: &mut Vec<SoakRow>) -> Result<(), CliError> {
        let plan = self.args.run.plan(self.args.writers, self.args.keys);
        let writer = || {
            let value = random_bytes(self.args.value_bytes as usize);
            move |number| {
                let (key, begin) = (random_key(number), Instant::now());
                table.put(&key, &value)?;
                Ok(begin)
            }
        };
        stretches::run(plan, self.disk.as_ref(), writer, &mut Rowed { soak: self, rows })?;
        Ok(())
    }

    fn row(&self, stretch: &Stretch) -> SoakRow {
        let per_s = |count: u64| count as f64 / stretch.seconds;
        SoakRow {
            index: self.kind.name().to_owned(),
            durability: self.args.durability.in_words(),
            key_bytes: KEY_BYTES,
            value_bytes: self.args.value_bytes as usize,
            writers: self.args.writers as usize,
            memory_limit_bytes: control_group_bytes(),
            at_s: stretch.at_s,
            seconds: stretch.seconds,
            keys: stretch.finished,
            puts_per_s: stretch.writes_per_s,
            p50_us: latency_us(&stretch.latencies_ns, 0.5),
            p99_us: latency_us(&stretch.latencies_ns, 0.99),
            p999_us: latency_us(&stretch.latencies_ns, 0.999),
            longest_us: stretch.latencies_ns.max() as f64 / 1000.0,
            resident_bytes: stretch.resident_bytes,
            processors: stretch.processors,
            device_written_bytes_per_s: stretch.disk.map(|disk| per_s(disk.bytes_written)),
            device_reads_per_s: stretch.disk.map(|disk| per_s(disk.reads)),
        }
    }
}

/// Makes a row of each stretch.
struct Rowed<'a> {
    soak: &'a Soak<'a>,
    rows: &'a mut Vec<SoakRow>,
}

impl Watcher for Rowed<'_> {
    fn stretch(&mut self, stretch: Stretch) {
        let row = self.soak.row(&stretch);
        progress(&row.in_words());
        self.rows.push(row);
    }
}
