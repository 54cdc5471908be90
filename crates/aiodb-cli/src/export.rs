//! `aiodb export`: a table becomes a file of lines that `aiodb load` reads back as it was.

use crate::encoding::Encoding;
use crate::error::CliError;
use crate::exit::Exit;
use crate::load::input::Format;
use crate::load::source::DEFAULT_MAX_LINE_BYTES;
use crate::options::{ReadArgs, TableArgs};
use crate::output::Output;
use crate::progress::{Progress, rate};
use aiodb::Table;
use clap::Args;
use indicatif::HumanCount;
use serde_json::json;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

const BUFFER_BYTES: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Write a table to a file that load reads
#[derive(Args)]
#[command(long_about = ABOUT, after_help = EXAMPLES)]
pub struct ExportArgs {
    #[command(flatten)]
    store: ReadArgs,
    /// File to make; it must not be there yet. - writes to stdout
    file: PathBuf,
    #[command(flatten)]
    table: TableArgs,
    /// Format of the lines [default: by the file's extension]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// How keys are written
    #[arg(long, value_enum, default_value = "text")]
    key_encoding: Encoding,
    /// How values are written
    #[arg(long, value_enum, default_value = "text")]
    value_encoding: Encoding,
}

const ABOUT: &str = "\
Write all records of a table, as they are at one moment, to a file in a format that `aiodb load` reads: loaded with the \
same encodings it gives the same keys and values. Records of a table with a hash index come in no order. What else \
belongs to a record, such as the time at which it expires, is not written: a backup has all of it.

tsv     KEY<tab>VALUE; a key with a tab or a line end, or a value with a line end, needs an encoding
csv     KEY,VALUE, quoted where needed; takes any bytes
jsonl   {\"key\":..,\"value\":..}; bytes that are not UTF-8 need an encoding

A record that the format cannot hold ends the export with an error that says what to choose instead. The file appears \
under its name when it is complete.";

const EXAMPLES: &str = "\
Examples:
  aiodb export /data/store words.tsv
  aiodb export /data/store pages.jsonl --table pages --value-encoding base64
  aiodb load /data/other pages.jsonl --key key --value value --value-encoding base64
  aiodb export /data/store - --format csv | gzip > words.csv.gz";

/// Runs the command.
pub fn run(args: ExportArgs, output: &Output) -> Result<Exit, CliError> {
    let to_stdout = args.file.as_os_str() == "-";
    let Some(format) = args.format.or_else(|| Format::of_file(&args.file)) else {
        let message = "the format cannot be told from the file's name: add --format tsv, csv or jsonl";
        return Err(CliError::Usage(message.into()));
    };
    let db = args.store.open()?;
    let table = db.table(&args.table.table)?;
    let mut export = Export { args: &args, format, records: 0, bytes: 0, longest_line: 0 };
    if to_stdout {
        export.write_all(&table, io::stdout().lock(), None)?;
    } else {
        let file = export.make_file()?;
        let mut progress = Progress::new(output, None);
        export.write_all(&table, file.as_file(), Some(&mut progress))?;
        progress.finish();
        export.name_file(file)?;
        let (records, name) = (HumanCount(export.records), args.file.display());
        let text = format!("wrote {records} records to {name}\nload them with: {}\n", export.load_command());
        output.result(&json!({"records": export.records, "bytes": export.bytes, "file": args.file}), &text)?;
    }
    db.close()?;
    Ok(Exit::Success)
}

/// An export under way.
struct Export<'a> {
    args: &'a ExportArgs,
    format: Format,
    records: u64,
    bytes: u64,
    /// Bytes of the longest record as it is written, with its line ends.
    longest_line: u64,
}

impl Export<'_> {
    /// A file beside the one that is to be made.
    fn make_file(&self) -> Result<NamedTempFile, CliError> {
        if self.args.file.exists() {
            return Err(self.failed("is there already: remove it, or choose another name"));
        }
        let parent = self.args.file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let made = NamedTempFile::new_in(parent.unwrap_or(Path::new(".")));
        made.map_err(|error| self.failed(&format!("cannot be made: {error}")))
    }

    fn name_file(&self, file: NamedTempFile) -> Result<(), CliError> {
        file.as_file().sync_all().map_err(CliError::Output)?;
        let named = file.persist_noclobber(&self.args.file);
        named.map(drop).map_err(|error| self.failed(&format!("cannot be made: {}", error.error)))
    }

    fn failed(&self, reason: &str) -> CliError {
        CliError::Input { name: self.args.file.display().to_string(), reason: reason.to_string() }
    }

    fn write_all(
        &mut self,
        table: &Table,
        out: impl Write,
        mut progress: Option<&mut Progress>,
    ) -> Result<(), CliError> {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
        let mut line = Vec::new();
        let mut scan = table.iterate()?;
        while let Some((key, value)) = scan.next_record()? {
            line.clear();
            self.line(key, value, &mut line)?;
            out.write_all(&line).map_err(CliError::Output)?;
            self.records += 1;
            self.bytes += line.len() as u64;
            self.longest_line = self.longest_line.max(line.len() as u64);
            if let Some(progress) = &mut progress {
                let records = self.records;
                progress.update(self.bytes, None, |elapsed| {
                    format!("{} records, {}", HumanCount(records), rate(records, "records", elapsed))
                });
            }
        }
        out.flush().map_err(CliError::Output)
    }

    /// One record in the format.
    fn line(&self, key: &[u8], value: &[u8], line: &mut Vec<u8>) -> Result<(), CliError> {
        let (key_encoding, value_encoding) = (self.args.key_encoding, self.args.value_encoding);
        let unfit = |what: &str, bytes: &[u8], option: &str| {
            let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).escape_debug().to_string();
            self.failed(&format!("{what} `{shown}` does not fit the format: add {option} base64, or use csv"))
        };
        let line_ends = |bytes: &[u8]| bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
        let (raw_key, raw_value) = (key_encoding == Encoding::Text, value_encoding == Encoding::Text);
        let mut written = Vec::new();
        match self.format {
            Format::Tsv => {
                // A byte order mark at the beginning of a file is no part of it.
                let starts_badly = self.records == 0 && key.starts_with(BYTE_ORDER_MARK);
                if raw_key && (line_ends(key) || key.contains(&b'\t') || starts_badly) {
                    return Err(unfit("the key", key, "--key-encoding"));
                }
                if raw_value && line_ends(value) {
                    return Err(unfit("the value of key", key, "--value-encoding"));
                }
                written_to(key_encoding, key, line);
                line.push(b'\t');
                written_to(value_encoding, value, line);
            }
            Format::Csv => {
                written_to(key_encoding, key, &mut written);
                quote(&written, line);
                line.push(b',');
                written.clear();
                written_to(value_encoding, value, &mut written);
                quote(&written, line);
            }
            Format::Jsonl => {
                let (key_text, key_as) = key_encoding.encode(key);
                let (value_text, value_as) = value_encoding.encode(value);
                if key_as != key_encoding {
                    return Err(unfit("the key", key, "--key-encoding"));
                }
                if value_as != value_encoding {
                    return Err(unfit("the value of key", key, "--value-encoding"));
                }
                line.extend_from_slice(json!({"key": key_text, "value": value_text}).to_string().as_bytes());
            }
        }
        line.push(b'\n');
        Ok(())
    }

    /// What reads the file back.
    fn load_command(&self) -> String {
        let mut command = format!("aiodb load STORE {}", self.args.file.display());
        if Format::of_file(&self.args.file) != Some(self.format) {
            command.push_str(&format!(" --format {}", self.format.name()));
        }
        if self.format == Format::Jsonl {
            command.push_str(" --key key --value value");
        }
        for (option, encoding) in [("key", self.args.key_encoding), ("value", self.args.value_encoding)] {
            if encoding != Encoding::Text {
                command.push_str(&format!(" --{option}-encoding {}", encoding.name()));
            }
        }
        // A long value becomes longer where it is encoded or escaped.
        if self.longest_line > DEFAULT_MAX_LINE_BYTES {
            command.push_str(&format!(" --max-line-bytes {}", self.longest_line));
        }
        command
    }
}

fn written_to(encoding: Encoding, bytes: &[u8], out: &mut Vec<u8>) {
    encoding.write(bytes, out).expect("memory takes everything");
}

/// A column of CSV: quoted where it must be.
fn quote(column: &[u8], out: &mut Vec<u8>) {
    let plain = |byte: &u8| !matches!(byte, b',' | b'"' | b'\n' | b'\r');
    if !column.is_empty() && !column.starts_with(BYTE_ORDER_MARK) && column.iter().all(plain) {
        return out.extend_from_slice(column);
    }
    out.push(b'"');
    for &byte in column {
        out.push(byte);
        if byte == b'"' {
            out.push(b'"');
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests;
