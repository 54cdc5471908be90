//! CSV records (RFC 4180), which may go over several lines. The parser is `csv_core`, fed line by line, so that line
//! numbers and length limits are those of the other formats.

use super::lines::{Found, Lines};
use super::raw::{Raw, too_long};
use csv_core::ReadRecordResult;
use std::io::{self, Read};

/// Reads records and holds the columns of the last one.
pub struct CsvRecords {
    parser: csv_core::Reader,
    line: Vec<u8>,
    /// The columns, unquoted, one after the other.
    bytes: Vec<u8>,
    bytes_used: usize,
    /// Where each column ends in `bytes`.
    ends: Vec<usize>,
    ends_used: usize,
}

/// What one more line did for a record.
enum Fed {
    Complete,
    InsideQuotes,
    StrayCarriageReturn,
}

impl Default for CsvRecords {
    /// A reader without a record.
    fn default() -> CsvRecords {
        CsvRecords {
            parser: csv_core::Reader::new(),
            line: Vec::new(),
            bytes: Vec::new(),
            bytes_used: 0,
            ends: vec![0; 16],
            ends_used: 0,
        }
    }
}

impl CsvRecords {
    /// Reads the next record of at most `max_bytes`.
    pub fn read<R: Read>(&mut self, lines: &mut Lines<R>, max_bytes: u64) -> io::Result<Raw> {
        self.bytes_used = 0;
        self.ends_used = 0;
        let mut record_bytes = 0;
        loop {
            let first = record_bytes == 0;
            match lines.next(&mut self.line, max_bytes.saturating_sub(record_bytes))? {
                Found::Line if first && matches!(self.line[..], [] | [b'\r']) => return Ok(Raw::Blank),
                Found::Line => {}
                Found::End if first => return Ok(Raw::End),
                Found::End => return Ok(self.bad("a quoted column is still open where the input ends".into())),
                Found::TooLong if first => return Ok(self.bad(too_long(max_bytes))),
                Found::TooLong => {
                    let reason = format!("{} (it goes on to line {})", too_long(max_bytes), lines.number());
                    return Ok(self.bad(format!("{reason}: is a quote missing?")));
                }
            }
            self.line.push(b'\n');
            record_bytes += self.line.len() as u64;
            match self.feed() {
                Fed::Complete => return Ok(Raw::Record),
                Fed::InsideQuotes => {}
                Fed::StrayCarriageReturn => {
                    return Ok(self.bad("a carriage return inside the line, outside quotes".into()));
                }
            }
        }
    }

    /// The number of columns in the record.
    pub fn columns(&self) -> usize {
        self.ends_used
    }

    /// The column with this index, from 0.
    pub fn column(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends[..self.ends_used].get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.bytes[start..end])
    }

    /// Gives the parser one line, which ends with LF.
    fn feed(&mut self) -> Fed {
        let mut fed_bytes = 0;
        loop {
            // Columns are never longer than what is written for them, so the output has room for the whole line.
            let room = self.bytes_used + self.line.len() - fed_bytes;
            if self.bytes.len() < room {
                self.bytes.resize(room, 0);
            }
            let output = &mut self.bytes[self.bytes_used..];
            let ends = &mut self.ends[self.ends_used..];
            let (result, read, written, ended) = self.parser.read_record(&self.line[fed_bytes..], output, ends);
            fed_bytes += read;
            self.bytes_used += written;
            self.ends_used += ended;
            match result {
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                // The parser asks for room before it knows that it needs none.
                ReadRecordResult::OutputFull => self.bytes.resize(self.bytes.len() + 16, 0),
                ReadRecordResult::InputEmpty => return Fed::InsideQuotes,
                ReadRecordResult::Record if matches!(self.line[fed_bytes..], [] | [b'\n']) => return Fed::Complete,
                ReadRecordResult::Record => return Fed::StrayCarriageReturn,
                ReadRecordResult::End => unreachable!("the parser only ends on empty input"),
            }
        }
    }

    /// Drops what is left of a record, so that the next line begins a new one.
    fn bad(&mut self, reason: String) -> Raw {
        self.parser.reset();
        Raw::Bad(reason)
    }
}
