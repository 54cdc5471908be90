//! Rows of a scan, many of them for one call.

use aiodb::Scan;

use crate::buffer::Direct;
use crate::failure::Result;

/// Before each row: the lengths of key and value, 4 bytes each, little-endian.
const ROW_HEADER_BYTES: usize = 8;

/// A scan, and the record that it has given and Java does not have yet.
pub(crate) struct Rows {
    scan: Scan,
    /// A row that did not fit.
    left_over: Option<(Vec<u8>, Vec<u8>)>,
    /// A failure behind rows that were fine.
    failed: Option<aiodb::Error>,
}

impl Rows {
    pub(crate) fn new(scan: Scan) -> Rows {
        Rows { scan, left_over: None, failed: None }
    }

    /// Stores as many rows as fit into a buffer. Returns the bytes stored; 0 at the end; where not even the next row
    /// fits, the bytes that it needs, negative.
    pub(crate) fn fill(&mut self, buffer: &mut Direct<'_>) -> Result<i64> {
        if let Some(error) = &self.failed {
            return Err(error.clone().into());
        }
        let mut filled = 0;
        if let Some((key, value)) = &self.left_over {
            let needed = row_bytes(key, value);
            if needed > buffer.len() {
                return Ok(-(needed as i64));
            }
            filled = put_row(buffer, 0, key, value);
            self.left_over = None;
        }
        loop {
            match self.scan.next_record() {
                Ok(None) => return Ok(filled as i64),
                Ok(Some((key, value))) if row_bytes(key, value) <= buffer.len() - filled => {
                    filled += put_row(buffer, filled, key, value);
                }
                Ok(Some((key, value))) => {
                    let needed = row_bytes(key, value);
                    self.left_over = Some((key.to_vec(), value.to_vec()));
                    return Ok(if filled == 0 { -(needed as i64) } else { filled as i64 });
                }
                Err(error) if filled == 0 => {
                    self.failed = Some(error.clone());
                    return Err(error.into());
                }
                Err(error) => {
                    self.failed = Some(error);
                    return Ok(filled as i64);
                }
            }
        }
    }
}

fn row_bytes(key: &[u8], value: &[u8]) -> usize {
    ROW_HEADER_BYTES + key.len() + value.len()
}

fn put_row(buffer: &mut Direct<'_>, start: usize, key: &[u8], value: &[u8]) -> usize {
    buffer.write(start, &(key.len() as u32).to_le_bytes());
    buffer.write(start + 4, &(value.len() as u32).to_le_bytes());
    buffer.write(start + ROW_HEADER_BYTES, key);
    buffer.write(start + ROW_HEADER_BYTES + key.len(), value);
    row_bytes(key, value)
}
