//! Lines of bounded length, numbered from 1.

use std::io::{self, BufRead, BufReader, Read};

/// Read from the input at once.
const BUFFER_BYTES: usize = 256 << 10;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What [`Lines::next`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A line.
    Line,
    /// A line longer than allowed; it has been passed over.
    TooLong,
    /// The end of the input.
    End,
}

/// Splits an input into lines.
pub struct Lines<R> {
    reader: BufReader<R>,
    number: u64,
    bytes_done: u64,
}

impl<R: Read> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Lines<R> {
        Lines { reader: BufReader::with_capacity(BUFFER_BYTES, input), number: 0, bytes_done: 0 }
    }

    /// The number of lines read so far, which is the number of the last one.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The bytes of these lines.
    pub fn bytes_done(&self) -> u64 {
        self.bytes_done
    }

    /// Puts the next line into `line`, without its LF (a CR before it stays). The last line needs no LF. A byte order
    /// mark at the beginning of the input is dropped.
    pub fn next(&mut self, line: &mut Vec<u8>, max_bytes: u64) -> io::Result<Found> {
        line.clear();
        // One byte more than allowed, for the LF or to see that the line is longer.
        let read = self.reader.by_ref().take(max_bytes.saturating_add(1)).read_until(b'\n', line)?;
        if read == 0 {
            return Ok(Found::End);
        }
        let ended = line.last() == Some(&b'\n');
        let too_long = !ended && read as u64 > max_bytes;
        let rest = if too_long { self.reader.skip_until(b'\n')? } else { 0 };
        if ended {
            line.pop();
        }
        if self.number == 0 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        self.number += 1;
        self.bytes_done += (read + rest) as u64;
        Ok(if too_long { Found::TooLong } else { Found::Line })
    }
}

/// The line without the CR of a CRLF.
pub fn without_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests;
