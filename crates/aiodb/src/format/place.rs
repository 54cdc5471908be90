//! Where in a batch its records and large parts go.

use super::batch::Append;
use super::record::{RECORD_ALIGNMENT, RECORD_HEADER_BYTES};
use super::segment::{BATCH_HEADER_BYTES, UNIT_HEADER_BYTES};
use crate::io::{SECTOR_BYTES, UNIT_BYTES};

/// The longest record that lies among the packed ones; longer ones are large parts.
pub(crate) const MAX_PACKED_BYTES: usize = UNIT_BYTES - UNIT_HEADER_BYTES;

/// Bytes of the packed record that refers to a whole record among the large parts.
const REFERENCE_BYTES: usize = RECORD_HEADER_BYTES + 1 + 8;

/// Where the next parts of a batch go. All positions are bytes from the batch's start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    /// Everything before is taken, but for the rest of the packed unit.
    pub(crate) end: usize,
    /// The current unit of packed records...
    pub(crate) packed_unit: usize,
    /// ...and where in it the next one goes.
    packed_at: usize,
}

impl Cursor {
    /// The start of an empty batch.
    pub(crate) fn new() -> Cursor {
        Cursor { end: UNIT_BYTES, packed_unit: 0, packed_at: BATCH_HEADER_BYTES }
    }

    /// Takes room for a packed record: in the current unit, or else in a new one at the end.
    pub(crate) fn take_packed(&mut self, length: usize) -> usize {
        if self.packed_at + length > UNIT_BYTES {
            self.packed_unit = self.end.next_multiple_of(UNIT_BYTES);
            self.packed_at = UNIT_HEADER_BYTES;
            self.end = self.packed_unit + UNIT_BYTES;
        }
        let at = self.packed_unit + self.packed_at;
        self.packed_at += length.next_multiple_of(RECORD_ALIGNMENT);
        at
    }

    /// Takes room for a large part: from a sector on, in as few units as its length allows.
    pub(crate) fn take_large(&mut self, length: usize) -> usize {
        let in_unit = self.end % UNIT_BYTES;
        let fewest_units = length.div_ceil(UNIT_BYTES);
        let fits_here = (in_unit + length).div_ceil(UNIT_BYTES) <= fewest_units;
        let at = if fits_here { self.end } else { self.end.next_multiple_of(UNIT_BYTES) };
        self.end = at + length.next_multiple_of(SECTOR_BYTES);
        at
    }

    /// Takes room for all parts of a record, as [`super::batch::OpenBatch::append`] places them.
    pub(crate) fn take(&mut self, append: &Append<'_>) {
        if append.separate {
            self.take_large(append.value.len());
        }
        let length = append.record_length();
        if length > MAX_PACKED_BYTES {
            self.take_large(length);
            self.take_packed(REFERENCE_BYTES);
        } else {
            self.take_packed(length);
        }
    }
}

/// Bytes of a segment that a part of this length takes when it lies among its like: moving it elsewhere cannot save them.
pub(crate) fn footprint(length: u32) -> i64 {
    let length = length as usize;
    let bytes = if length <= MAX_PACKED_BYTES {
        UNIT_BYTES / (MAX_PACKED_BYTES / length.next_multiple_of(RECORD_ALIGNMENT).max(1)).max(1)
    } else {
        length.next_multiple_of(SECTOR_BYTES)
    };
    bytes as i64
}

/// By how many bytes a record grows at most when it is moved, since it then says where it was. With a separate value, the bytes
/// of the record beside that value are counted too.
pub(crate) fn moved_growth(length: u32, is_separate: bool) -> u64 {
    const ORIGIN_BYTES: u32 = 8;
    const RECORD_BYTES: u64 = 64;
    if is_separate { RECORD_BYTES } else { (footprint(length + ORIGIN_BYTES) - footprint(length)) as u64 }
}

/// Bytes of a batch that holds just these records.
pub(crate) fn batch_bytes<'a>(appends: impl Iterator<Item = &'a Append<'a>>) -> usize {
    let mut cursor = Cursor::new();
    appends.for_each(|append| cursor.take(append));
    cursor.end.next_multiple_of(UNIT_BYTES)
}
