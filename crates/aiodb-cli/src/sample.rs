//! `aiodb sample`: reads random keys of a file of lines back from a store and compares the values.

use crate::error::CliError;
use crate::exit::Exit;
use crate::load::input::{Entry, Item};
use crate::load::interrupt::Interrupt;
use crate::load::source::{Source, SourceArgs};
use crate::options::{ReadArgs, TableArgs};
use crate::output::Output;
use crate::progress::{Progress, rate};
use aiodb::Table;
use clap::Args;
use indicatif::HumanCount;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Gets in flight.
const DEPTH: usize = 64;

/// Wrong keys that are named; the others are only counted.
const MAX_LISTED: usize = 20;

/// Read random keys of a loaded file back and compare
#[derive(Args)]
#[command(
    long_about = "Choose random keys of a file of lines, read them back from a table and compare the values with the \
                  file's. The file is read as `load` reads it; of a key that occurs more than once the last value \
                  counts. Lines without a record are passed over. The exit code is 1 if a key is missing or has \
                  another value.",
    after_help = "Examples:\n  aiodb sample /data/store words.tsv\n  \
                  aiodb sample /data/store users.csv --header --key email --value name --count 100000"
)]
pub struct SampleArgs {
    #[command(flatten)]
    store: ReadArgs,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    table: TableArgs,
    /// Keys to read; all are read where the file has fewer. They and their values are held in memory
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    count: u64,
}

/// Runs the command.
pub fn run(args: SampleArgs, output: &Output) -> Result<Exit, CliError> {
    let interrupt = Rc::new(Interrupt::install()?);
    let mut source = args.source.open(&interrupt)?;
    let db = args.store.open()?;
    let table = db.table(&args.table.table)?;
    let Some(sample) = choose(&args, &mut source, &interrupt, output)? else { return Ok(Exit::Interrupted) };
    let Some(report) = compare(&table, &sample, &interrupt)? else { return Ok(Exit::Interrupted) };
    output.result(&report.to_json(), &report.to_text())?;
    db.close()?;
    Ok(if report.wrong == 0 { Exit::Success } else { Exit::Negative })
}

/// Keys and values by random rank.
type Ranked = BTreeMap<(u64, Vec<u8>), Vec<u8>>;

/// A random choice of a file's distinct keys: those with the lowest ranks. A key has the same rank wherever it occurs, so
/// one pass is enough: what was passed over once is passed over always, and a later value replaces an earlier one.
struct Sample {
    chosen: Ranked,
    count: usize,
    rank: RandomState,
}

impl Sample {
    fn new(count: usize) -> Sample {
        Sample { chosen: Ranked::new(), count, rank: RandomState::new() }
    }

    fn offer(&mut self, entry: &Entry) {
        let rank = self.rank.hash_one(&entry.key);
        let full = self.chosen.len() >= self.count;
        if full && self.chosen.last_key_value().is_some_and(|(last, _)| (rank, &entry.key) > (last.0, &last.1)) {
            return;
        }
        self.chosen.insert((rank, entry.key.clone()), entry.value.clone());
        if self.chosen.len() > self.count {
            self.chosen.pop_last();
        }
    }
}

/// Reads the file and chooses; `None` if a signal came first.
fn choose(
    args: &SampleArgs,
    source: &mut Source,
    interrupt: &Interrupt,
    output: &Output,
) -> Result<Option<Ranked>, CliError> {
    let mut sample = Sample::new(args.count as usize);
    let mut entry = Entry::default();
    let mut records = 0;
    let mut progress = Progress::new(output, source.total_bytes);
    loop {
        match source.input.next(&mut entry) {
            _ if interrupt.requested() => return Ok(None),
            Err(error) => return Err(args.source.unreadable(&error)),
            Ok(Item::End) => break,
            Ok(Item::Bad(_)) => {}
            Ok(Item::Entry) => {
                records += 1;
                sample.offer(&entry);
            }
        }
        progress.update(source.input.bytes_done(), source.total_bytes, |elapsed| rate(records, "records", elapsed));
    }
    progress.finish();
    Ok(Some(sample.chosen))
}

/// Gets what was chosen, in the order of the ranks, and compares; `None` if a signal came first.
fn compare(table: &Table, sample: &Ranked, interrupt: &Interrupt) -> Result<Option<Report>, CliError> {
    let wanted: Vec<(&[u8], &[u8])> = sample.iter().map(|((_, key), value)| (&key[..], &value[..])).collect();
    let mut report = Report::default();
    let started = Instant::now();
    let mut reader = table.reader(DEPTH)?;
    let mut rest = wanted.iter().enumerate();
    loop {
        while reader.has_room() {
            let Some((position, (key, _))) = rest.next() else { break };
            reader.submit(key, position as u64)?;
        }
        let Some(got) = reader.poll()? else { break };
        if interrupt.requested() {
            return Ok(None);
        }
        let (key, value) = wanted[got.token as usize];
        match got.value? {
            Some(stored) if stored == value => report.bytes += (key.len() + value.len()) as u64,
            Some(_) => report.add_wrong(key, "another value"),
            None => report.add_wrong(key, "missing"),
        }
        report.keys += 1;
    }
    report.elapsed = started.elapsed();
    Ok(Some(report))
}

/// What the comparison found.
#[derive(Default)]
struct Report {
    keys: u64,
    /// Bytes of keys and values that are as in the file.
    bytes: u64,
    wrong: u64,
    /// The first wrong keys, and what is wrong.
    listed: Vec<(String, &'static str)>,
    elapsed: Duration,
}

impl Report {
    fn add_wrong(&mut self, key: &[u8], what: &'static str) {
        self.wrong += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push((String::from_utf8_lossy(key).into_owned(), what));
        }
    }

    fn to_json(&self) -> Value {
        let listed: Vec<Value> = self.listed.iter().map(|(key, what)| json!({"key": key, "what": what})).collect();
        json!({
            "keys_read": self.keys,
            "keys_as_in_file": self.keys - self.wrong,
            "keys_wrong": self.wrong,
            "keys_wrong_shown": listed,
            "bytes_as_in_file": self.bytes,
            "elapsed_ms": self.elapsed.as_millis() as u64,
        })
    }

    fn to_text(&self) -> String {
        let mut text = format!(
            "read {} random keys in {:.1} s, {}: {}\n",
            HumanCount(self.keys),
            self.elapsed.as_secs_f64(),
            rate(self.keys, "gets", self.elapsed),
            match self.wrong {
                0 => "all values are as in the file".to_string(),
                wrong => format!("{} are not as in the file", HumanCount(wrong)),
            }
        );
        for (key, what) in &self.listed {
            let _ = writeln!(text, "  {key}: {what}");
        }
        text
    }
}
