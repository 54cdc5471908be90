//! `aiodb load`: a file of lines becomes records. A line counts as loaded only once its record is durable: the numbers in
//! the report are given after a sync, also when the load was interrupted or failed.

mod csv;
mod input;
mod interrupt;
mod lines;
mod report;

use crate::encoding::Encoding;
use crate::error::CliError;
use crate::options::{IndexArgs, StoreArgs, TableArgs, parse_durability};
use crate::output::{Exit, Output};
use crate::progress::{Progress, rate};
use aiodb::{Db, Durability, Error, Table};
use clap::{Args, ValueEnum};
use indicatif::HumanCount;
use input::{Entry, Format, Input, InputOptions, Item};
use interrupt::{Interrupt, InterruptibleRead};
use report::{Ended, Report};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The longest line by default, in bytes: the longest value and key as text, and room for the columns around them.
const DEFAULT_MAX_LINE_BYTES: u64 = (1 << 30) + (1 << 20);

/// Load a file of lines: TSV, CSV or JSON lines
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct LoadArgs {
    #[command(flatten)]
    store: StoreArgs,
    /// File to load; - reads stdin
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Format of the lines [default: by the file's extension]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Column of the key: a number from 1, or a name with --header; for JSON lines a field [default: 1]
    #[arg(long, value_name = "COLUMN")]
    key: Option<String>,
    /// Column or field of the value [default: TSV: all after the key; CSV: the other of two; JSON lines: the line]
    #[arg(long, value_name = "COLUMN")]
    value: Option<String>,
    /// The first line names the columns (TSV and CSV)
    #[arg(long)]
    header: bool,
    /// How keys are written
    #[arg(long, value_enum, default_value = "text")]
    key_encoding: Encoding,
    /// How values are written
    #[arg(long, value_enum, default_value = "text")]
    value_encoding: Encoding,
    #[command(flatten)]
    table: TableArgs,
    #[command(flatten)]
    index: IndexArgs,
    /// Durability of each record while loading: sync, none or interval:MS; the end is always synced
    #[arg(long, value_parser = parse_durability, default_value = "none")]
    durability: Durability,
    /// What to do with a line that holds no record
    #[arg(long, value_enum, default_value = "fail")]
    bad_lines: BadLines,
    /// Describe at most this many bad lines; the others are only counted
    #[arg(long, value_name = "N", default_value_t = 20)]
    show_bad_lines: usize,
    /// Leave out the first N lines of the file (with --header the first of them still names the columns)
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_lines: u64,
    /// A longer line (for CSV: record) is a bad line [default: 1 GiB and 1 MiB]
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_LINE_BYTES, hide_default_value = true)]
    max_line_bytes: u64,
}

const ABOUT: &str = "\
Load a file of lines into a table, one record a line. A key that is there already gets the new value. Makes the store \
and the table if they are missing.

tsv     columns between tabs, taken as they are: no quoting, no escapes
csv     RFC 4180: quoted columns may hold commas, doubled quotes and line ends
jsonl   one JSON object a line; --key and --value name fields, a.b the field b inside a, /a~1b a JSON pointer. Strings \
are stored as their text, other values as their JSON

Lines end with LF or CRLF; empty lines are passed over. Records are written with durability `none` and made durable \
together at the end, before anything is reported as loaded. Ctrl-C stops cleanly: the report says how many lines are \
done and how to go on; Ctrl-C a second time stops at once.";

const EXAMPLES: &str = "\
Examples:
  aiodb load /data/store words.tsv                       lines KEY<tab>VALUE
  aiodb load /data/store users.csv --header --key email --value name
  aiodb load /data/store events.jsonl --key id           the value is the whole line
  zcat big.jsonl.gz | aiodb load /data/store - --format jsonl --key user.id --value payload --bad-lines skip
  aiodb load /data/store words.tsv --skip-lines 5000000  go on after an interruption";

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
    // The input is opened and its header understood first: a mistake there must not leave a new, empty store.
    let interrupt = Rc::new(Interrupt::install().map_err(|error| input_error("signals", &error))?);
    let (mut input, total_bytes) = open_input(&args, &interrupt)?;
    let db = args.store.open_to_write(true, args.durability)?;
    let table = args.index.table_or_create(&db, &args.table.table)?;
    let mut load = Load {
        args: &args,
        name: input_name(&args.file),
        interrupt: &interrupt,
        progress: Progress::new(output, total_bytes),
        total_bytes,
        report: Report::new(args.skip_lines),
    };
    let ended = load.put_all(&mut input, &table);
    load.finish(ended, &db, output)
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
    fn put_all<R: Read>(&mut self, input: &mut Input<R>, table: &Table) -> Ended {
        let mut entry = Entry::default();
        loop {
            if self.interrupt.requested() {
                return Ended::Interrupted;
            }
            let item = match input.next(&mut entry) {
                Ok(item) => item,
                Err(_) if self.interrupt.requested() => return Ended::Interrupted,
                Err(error) => return Ended::Failed(input_error(&self.name, &error)),
            };
            let bad = match item {
                Item::End => return Ended::Complete,
                Item::Entry => match table.put(&entry.key, &entry.value) {
                    Ok(()) => None,
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
            return Err(CliError::NotSynced { cause, records, skip_lines: self.args.skip_lines });
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

type FileInput = Input<InterruptibleRead>;

/// Opens the input; also says how many bytes it has, if that is known.
fn open_input(args: &LoadArgs, interrupt: &Rc<Interrupt>) -> Result<(FileInput, Option<u64>), CliError> {
    let options = input_options(args)?;
    let name = input_name(&args.file);
    let file = if is_stdin(&args.file) {
        io::stdin().as_fd().try_clone_to_owned().map(File::from)
    } else {
        File::open(&args.file)
    };
    let file = file.map_err(|error| input_error(&name, &error))?;
    let metadata = file.metadata().map_err(|error| input_error(&name, &error))?;
    if metadata.is_dir() {
        return Err(CliError::Input { name, reason: "this is a directory, not a file of lines".into() });
    }
    let total_bytes = metadata.is_file().then_some(metadata.len());
    let input = Input::open(InterruptibleRead::new(file, Rc::clone(interrupt)), options);
    Ok((input.map_err(|reason| CliError::Input { name, reason })?, total_bytes))
}

/// Checks that the arguments about the input fit together.
fn input_options(args: &LoadArgs) -> Result<InputOptions, CliError> {
    let usage = |message: &str| Err(CliError::Usage(message.into()));
    let Some(format) = args.format.or_else(|| Format::of_file(&args.file)) else {
        return usage("the format cannot be told from the file's name: add --format tsv, csv or jsonl");
    };
    if format == Format::Jsonl {
        if args.header {
            return usage("--header is for tsv and csv; in JSON lines --key and --value name fields");
        }
        if args.key.is_none() {
            return usage("JSON lines need --key FIELD");
        }
        if args.value.is_none() && args.value_encoding != Encoding::Text {
            return usage("--value-encoding needs --value FIELD: without it the value is the whole line");
        }
    } else if !args.header {
        for column in args.key.iter().chain(&args.value) {
            if column.parse::<usize>().map_or(true, |number| number == 0) {
                return usage(&format!("`{column}` is no column number from 1; to name columns, add --header"));
            }
        }
    }
    Ok(InputOptions {
        format,
        header: args.header,
        key: args.key.clone().unwrap_or_else(|| "1".into()),
        value: args.value.clone(),
        key_encoding: args.key_encoding,
        value_encoding: args.value_encoding,
        skip_lines: args.skip_lines,
        max_line_bytes: args.max_line_bytes,
    })
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn input_name(file: &Path) -> String {
    if is_stdin(file) { "stdin".into() } else { file.display().to_string() }
}

fn input_error(name: &str, error: &io::Error) -> CliError {
    CliError::Input { name: name.into(), reason: format!("cannot be read: {error}") }
}
