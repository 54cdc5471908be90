//! `aiodb load`: a file of lines becomes records. A line counts as loaded only once its record is durable: the numbers in
//! the report are given after a sync, also when the load was interrupted or failed.
//!
//! From the bytes up: `lines` splits them, `csv` reads records that go over several lines, `input` finds key and value in
//! a record of any format, `source` opens a file or stdin; `report` says what was done. Only this file writes to a store.
//! An input is read once, from its beginning to its end, and never held whole.

mod commands;
mod csv;
pub mod input;
pub mod interrupt;
mod lines;
mod raw;
mod report;
pub mod source;

use crate::error::CliError;
use crate::exit::Exit;
use crate::options::{DEFAULT_TABLE, IndexArgs, IndexChoice, StoreArgs, TableArgs, parse_durability};
use crate::output::Output;
use crate::progress::{Progress, rate};
use aiodb::{Db, Durability, Error, IndexKind, Ingest, Table};
use clap::{Args, ValueEnum};
use commands::CommandsLoad;
use indicatif::HumanCount;
use input::{Entry, Input, Item};
use interrupt::Interrupt;
use report::{Ended, Report};
use source::{Source, SourceArgs};
use std::io::Read;
use std::rc::Rc;

/// Load a file of lines: TSV, CSV or JSON lines
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct LoadArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    index: IndexArgs,
    /// Durability of each record while loading: sync, none or interval:MS; the end is always synced
    #[arg(long, value_parser = parse_durability, default_value = "none")]
    durability: Durability,
    /// Databases that commands may select, with --format resp [default: 16]
    #[arg(long, value_name = "NUMBER")]
    databases: Option<u16>,
    /// What to do with a line that holds no record, or a command that is refused
    #[arg(long, value_enum, default_value = "fail")]
    bad_lines: BadLines,
    /// The lines come sorted by their keys, byte by byte, without duplicates; the table must not be there yet, and is made as a
    /// whole or not at all
    #[arg(long)]
    sorted: bool,
    /// Describe at most this many bad lines; the others are only counted
    #[arg(long, value_name = "N", default_value_t = 20)]
    show_bad_lines: usize,
}

const ABOUT: &str = "\
Load a file of lines into a table, one record a line. A key that is there already gets the new value. Makes the store \
and the table if they are missing.

tsv     columns between tabs, taken as they are: no quoting, no escapes
csv     RFC 4180: quoted columns may hold commas, doubled quotes and line ends
jsonl   one JSON object a line; --key and --value name fields, a.b the field b inside a, /a~1b a JSON pointer. Strings \
are stored as their text, other values as their JSON
resp    commands of the Redis protocol, as an append-only file or `redis-cli --pipe` has them: what `aiodb serve` would \
make of them is in the store, which no server may have meanwhile. --skip-lines and --bad-lines are about commands; up to 127 \
more are carried out behind one that is refused. Where the disk is full, or the store fails otherwise, the load stops at the first \
command that was not carried out, whatever --bad-lines says

Lines end with LF or CRLF; empty lines are passed over. Records are written with durability `none` and made durable \
together at the end, before anything is reported as loaded. Ctrl-C stops cleanly: the report says how many lines are \
done and how to go on; Ctrl-C a second time stops at once.

With --sorted the records become sorted runs of a new `lsm` table directly, which is the fastest way to fill one. The keys \
must rise from line to line, byte by byte (`LC_ALL=C sort` has this order). The table is there when all is loaded; after an \
error or an interruption nothing is.";

const EXAMPLES: &str = "\
Examples:
  aiodb load /data/store words.tsv                       lines KEY<tab>VALUE
  aiodb load /data/store users.csv --header --key email --value name
  aiodb load /data/store events.jsonl --key id           the value is the whole line
  zcat big.jsonl.gz | aiodb load /data/store - --format jsonl --key user.id --value payload --bad-lines skip
  aiodb load /data/store words.tsv --skip-lines 5000000  go on after an interruption
  aiodb load /data/store sorted.tsv --table words --sorted
  aiodb load /data/store appendonly.aof.1.base.aof --format resp";

/// What a bad line does to the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BadLines {
    /// Stop there (exit code 3)
    Fail,
    /// Go on without it (exit code 4 at the end)
    Skip,
}

/// `aiodb load`.
pub fn run(args: LoadArgs, output: &Output) -> Result<Exit, CliError> {
    if args.source.has_commands() {
        args.check_for_commands()?;
        return commands::run(
            &CommandsLoad {
                store: &args.store.store,
                source: &args.source,
                databases: args.databases,
                skips_refused: args.bad_lines == BadLines::Skip,
                shown: args.show_bad_lines,
            },
            output,
        );
    }
    // The input is opened and its header understood first: a mistake there must not leave a new, empty store.
    let interrupt = Rc::new(Interrupt::install()?);
    let Source { mut input, total_bytes } = args.source.open(&interrupt)?;
    args.check()?;
    let db = args.store.open_to_write(true, args.durability)?;
    let mut target = args.target(&db)?;
    let mut load = Load {
        args: &args,
        name: args.source.name(),
        interrupt: &interrupt,
        progress: Progress::new(output, total_bytes),
        total_bytes,
        report: Report::new(args.source.skip_lines),
    };
    let ended = load.put_all(&mut input, &mut target);
    let ended = load.complete(ended, target);
    load.finish(ended, &db, output)
}

/// Where the records go.
enum Target {
    Table(Table),
    /// A new table. Boxed, since it is much longer.
    Sorted(Box<Ingest>),
}

impl Target {
    fn put(&mut self, entry: &Entry) -> aiodb::Result<()> {
        match self {
            Target::Table(table) => table.put(&entry.key, &entry.value).map(drop),
            Target::Sorted(ingest) => ingest.put(&entry.key, &entry.value),
        }
    }
}

impl LoadArgs {
    /// Checks that the arguments fit together.
    fn check(&self) -> Result<(), CliError> {
        if self.databases.is_some() {
            return Err(CliError::Usage("--databases is for --format resp".into()));
        }
        if self.sorted && self.index.index.is_some_and(|index| index != IndexChoice::Lsm) {
            return Err(CliError::Usage("--sorted makes a table with the index lsm".into()));
        }
        Ok(())
    }

    /// Checks that no argument is given that has no meaning for commands.
    fn check_for_commands(&self) -> Result<(), CliError> {
        let without_meaning = self.source.names_columns()
            || self.sorted
            || self.index.index.is_some()
            || !self.store.also.is_empty()
            || self.table.table != DEFAULT_TABLE;
        if without_meaning {
            return Err(CliError::Usage(
                "with --format resp the commands say what becomes of them: leave out --key, --value, --header, encodings, --table, \
                 --index, --sorted and --also"
                    .into(),
            ));
        }
        Ok(())
    }

    fn target(&self, db: &Db) -> Result<Target, CliError> {
        let name = &self.table.table;
        if self.sorted {
            let ingest = db.ingest(name, self.index.lsm.options(IndexKind::Lsm))?;
            return Ok(Target::Sorted(Box::new(ingest)));
        }
        Ok(Target::Table(self.index.table_or_create(db, name)?))
    }
}

/// A load under way.
struct Load<'a> {
    args: &'a LoadArgs,
    name: String,
    interrupt: &'a Interrupt,
    progress: Progress,
    total_bytes: Option<u64>,
    report: Report,
}

impl Load<'_> {
    /// Puts one record after the other until the input ends or something stops the load.
    fn put_all<R: Read>(&mut self, input: &mut Input<R>, target: &mut Target) -> Ended {
        let mut entry = Entry::default();
        loop {
            if self.interrupt.requested() {
                return Ended::Interrupted;
            }
            let item = match input.next(&mut entry) {
                Ok(item) => item,
                Err(_) if self.interrupt.requested() => return Ended::Interrupted,
                Err(error) => return Ended::Failed(self.args.source.unreadable(&error)),
            };
            let bad = match item {
                Item::End => return Ended::Complete,
                Item::Entry => match target.put(&entry) {
                    Ok(()) => None,
                    Err(cause @ Error::NotAscending { .. }) => {
                        let (name, line) = (self.name.clone(), input.first_line());
                        return Ended::Failed(CliError::NotSorted { name, line, cause });
                    }
                    Err(error @ (Error::KeyLength { .. } | Error::ValueLength { .. })) => Some(error.to_string()),
                    Err(error) => return Ended::Failed(error.into()),
                },
                Item::Bad(reason) => Some(reason),
            };
            match bad {
                None => self.report.loaded(&entry),
                Some(reason) if self.args.bad_lines == BadLines::Skip => self.skip(input.first_line(), reason),
                Some(reason) => {
                    let (name, line) = (self.name.clone(), input.first_line());
                    return Ended::Failed(CliError::BadLine { name, line, reason });
                }
            }
            self.report.lines_done(input.lines_done());
            let records = self.report.records;
            self.progress.update(input.bytes_done(), self.total_bytes, |elapsed| {
                format!("{} records, {}", HumanCount(records), rate(records, "records", elapsed))
            });
        }
    }

    /// Makes the table of a sorted load, which is there only if all of it was loaded.
    fn complete(&mut self, ended: Ended, target: Target) -> Ended {
        let Target::Sorted(ingest) = target else { return ended };
        let ended = match ended {
            Ended::Complete => ingest.finish().map_or_else(|error| Ended::Failed(error.into()), |_| Ended::Complete),
            ended => ended,
        };
        if !matches!(ended, Ended::Complete) {
            self.report.nothing_stays();
        }
        ended
    }

    fn skip(&mut self, line: u64, reason: String) {
        if self.report.bad_lines < self.args.show_bad_lines as u64 {
            self.progress.note(&format!("{}:{line}: {reason}", self.name));
            self.report.shown.push((line, reason));
        }
        self.report.bad_lines += 1;
    }

    /// Makes the records durable, and only then reports them.
    fn finish(self, ended: Ended, db: &Db, output: &Output) -> Result<Exit, CliError> {
        self.progress.finish();
        if let Err(cause) = db.sync() {
            let records = self.report.records;
            return Err(CliError::NotSynced { cause, records, skip_lines: self.args.source.skip_lines });
        }
        let elapsed = self.progress.elapsed();
        let json = self.report.to_json(&ended, elapsed);
        output.result(&json, &self.report.to_text(&ended, elapsed, &self.args.table.table))?;
        let closed = db.close();
        match ended {
            Ended::Failed(error) => Err(error),
            _ if closed.is_err() => Err(closed.unwrap_err().into()),
            Ended::Interrupted => Ok(Exit::Interrupted),
            Ended::Complete if self.report.bad_lines > 0 => Ok(Exit::SkippedLines),
            Ended::Complete => Ok(Exit::Success),
        }
    }
}
