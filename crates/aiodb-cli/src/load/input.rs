//! The formats of a load: where in a line the key and the value are. Here is what the formats have in common, from the
//! header to the decoded entry; `columns` and `json` each know where one kind of record has its parts, and nothing of
//! lines. A record without key or value is an item of its own, never an error that ends the input.

use super::csv::CsvRecords;
use super::lines::{Found, Lines, without_carriage_return};
use super::raw::{Raw, too_long};
use crate::encoding::Encoding;
use aiodb::{Error, MAX_KEY_BYTES};
use clap::ValueEnum;
use std::io::{self, Read};
use std::path::Path;

mod columns;
mod json;

use columns::Columns;
use json::Field;

/// How records are written in lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns between tabs, without quoting
    Tsv,
    /// RFC 4180
    Csv,
    /// One JSON object a line
    Jsonl,
}

impl Format {
    /// The name used on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Format::Tsv => "tsv",
            Format::Csv => "csv",
            Format::Jsonl => "jsonl",
        }
    }

    /// The format that a file's extension promises.
    pub fn of_file(file: &Path) -> Option<Format> {
        match file.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "tsv" | "tab" => Some(Format::Tsv),
            "csv" => Some(Format::Csv),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            _ => None,
        }
    }
}

/// What is asked of an input.
pub struct InputOptions {
    /// The format of the lines.
    pub format: Format,
    /// Whether the first line names the columns.
    pub header: bool,
    /// The key's column or field.
    pub key: String,
    /// The value's column or field, if it is not the format's default.
    pub value: Option<String>,
    /// How keys are written.
    pub key_encoding: Encoding,
    /// How values are written.
    pub value_encoding: Encoding,
    /// Lines to leave out at the beginning.
    pub skip_lines: u64,
    /// The longest line or CSV record.
    pub max_line_bytes: u64,
}

/// A key and its value.
#[derive(Default)]
pub struct Entry {
    /// 1 to [`MAX_KEY_BYTES`] bytes.
    pub key: Vec<u8>,
    /// Of any length that a line can have.
    pub value: Vec<u8>,
}

/// What [`Input::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// The entry is filled.
    Entry,
    /// A line that holds no record, and why.
    Bad(String),
    /// The end of the input.
    End,
}

/// Where key and value are in a record, and how a record is held.
enum Records {
    Tsv(Columns),
    Csv(Columns, Box<CsvRecords>),
    Jsonl { key: Field, value: Option<Field> },
}

/// Reads entries from lines.
pub struct Input<R> {
    lines: Lines<R>,
    /// The last line, for the formats in which it is the record.
    line: Vec<u8>,
    records: Records,
    options: InputOptions,
    first_line: u64,
}

impl<R: Read> Input<R> {
    /// Begins to read `input`; with a header, finds the columns in it. The error says what is wrong with the input.
    pub fn open(input: R, options: InputOptions) -> Result<Input<R>, String> {
        let records = match options.format {
            Format::Tsv => Records::Tsv(Columns::numbered(&options.key, options.value.as_deref())),
            Format::Csv => Records::Csv(Columns::numbered(&options.key, options.value.as_deref()), Box::default()),
            Format::Jsonl => {
                Records::Jsonl { key: Field::parse(&options.key), value: options.value.as_deref().map(Field::parse) }
            }
        };
        let mut input = Input { lines: Lines::new(input), line: Vec::new(), records, options, first_line: 0 };
        if input.options.header {
            input.read_header()?;
        }
        Ok(input)
    }

    /// The number of the line in which the last record began.
    pub fn first_line(&self) -> u64 {
        self.first_line
    }

    /// The number of lines read, with all the lines of the last record.
    pub fn lines_done(&self) -> u64 {
        self.lines.number()
    }

    /// The bytes of these lines.
    pub fn bytes_done(&self) -> u64 {
        self.lines.bytes_done()
    }

    /// Finds the next record and puts its key and value into `entry`.
    pub fn next(&mut self, entry: &mut Entry) -> io::Result<Item> {
        loop {
            let raw = self.read_raw()?;
            let skipped = self.first_line <= self.options.skip_lines;
            match raw {
                Raw::End => return Ok(Item::End),
                Raw::Blank => {}
                _ if skipped => {}
                Raw::Bad(reason) => return Ok(Item::Bad(reason)),
                Raw::Record => return Ok(self.extract(entry).map_or_else(Item::Bad, |()| Item::Entry)),
            }
        }
    }

    fn read_raw(&mut self) -> io::Result<Raw> {
        self.first_line = self.lines.number() + 1;
        let max_bytes = self.options.max_line_bytes;
        if let Records::Csv(_, records) = &mut self.records {
            return records.read(&mut self.lines, max_bytes);
        }
        Ok(match self.lines.next(&mut self.line, max_bytes)? {
            Found::Line if without_carriage_return(&self.line).is_empty() => Raw::Blank,
            Found::Line => Raw::Record,
            Found::TooLong => Raw::Bad(too_long(max_bytes)),
            Found::End => Raw::End,
        })
    }

    fn read_header(&mut self) -> Result<(), String> {
        loop {
            match self.read_raw().map_err(|error| format!("cannot be read: {error}"))? {
                Raw::Blank => {}
                Raw::End => return Err("empty, but --header announces a line with the columns' names".into()),
                Raw::Bad(reason) => return Err(format!("the header: {reason}")),
                Raw::Record => break,
            }
        }
        let (key, value) = (&self.options.key, self.options.value.as_deref());
        match &mut self.records {
            Records::Tsv(columns) => {
                let names: Vec<&[u8]> = without_carriage_return(&self.line).split(|&byte| byte == b'\t').collect();
                *columns = Columns::named(&names, key, value)?;
            }
            Records::Csv(columns, records) => {
                let names: Vec<&[u8]> = (0..records.columns()).filter_map(|index| records.column(index)).collect();
                *columns = Columns::named(&names, key, value)?;
            }
            Records::Jsonl { .. } => unreachable!("the command refuses a header for JSON lines"),
        }
        Ok(())
    }

    /// Takes key and value out of the record that was read last; the error says why it has none.
    fn extract(&self, entry: &mut Entry) -> Result<(), String> {
        entry.key.clear();
        entry.value.clear();
        let line = without_carriage_return(&self.line);
        match &self.records {
            Records::Tsv(columns) => {
                let (key, value) = columns.of_line(line)?;
                self.decode(key, value, entry)?;
            }
            Records::Csv(columns, records) => {
                let (key, value) = columns.of_record(records)?;
                self.decode(key, value, entry)?;
            }
            Records::Jsonl { key, value } => {
                let record = json::parse(line)?;
                let key = key.find_key(record)?;
                match value {
                    None => self.decode(&key, line, entry)?,
                    Some(field) => self.decode(&key, &field.find(record)?, entry)?,
                }
            }
        }
        if entry.key.is_empty() || entry.key.len() > MAX_KEY_BYTES {
            return Err(Error::KeyLength { length: entry.key.len(), max: MAX_KEY_BYTES }.to_string());
        }
        Ok(())
    }

    fn decode(&self, key: &[u8], value: &[u8], entry: &mut Entry) -> Result<(), String> {
        let options = &self.options;
        options.key_encoding.decode_to(key, &mut entry.key).map_err(|reason| format!("the key is {reason}"))?;
        options.value_encoding.decode_to(value, &mut entry.value).map_err(|reason| format!("the value is {reason}"))
    }
}

#[cfg(test)]
mod tests;
