//! Where in a batch its records and large parts go.

use super::batch::{Append, SEPARATE_VALUE_BYTES};
use super::entry::Entry;
use super::record::{Form, Kind, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, extension_bytes};
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
    /// Bytes that all parts take when they lie among their like: about as many as their records count once an index refers to them.
    pub(crate) dense_bytes: usize,
}

impl Cursor {
    /// The start of an empty batch.
    pub(crate) fn new() -> Cursor {
        Cursor { end: UNIT_BYTES, packed_unit: 0, packed_at: BATCH_HEADER_BYTES, dense_bytes: 0 }
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
        self.dense_bytes += packed_bytes(length);
        at
    }

    /// Takes room for a large part: from a sector on, in as few units as its length allows.
    pub(crate) fn take_large(&mut self, length: usize) -> usize {
        let in_unit = self.end % UNIT_BYTES;
        let fewest_units = length.div_ceil(UNIT_BYTES);
        let fits_here = (in_unit + length).div_ceil(UNIT_BYTES) <= fewest_units;
        let at = if fits_here { self.end } else { self.end.next_multiple_of(UNIT_BYTES) };
        self.end = at + length.next_multiple_of(SECTOR_BYTES);
        self.dense_bytes += large_bytes(length);
        at
    }

    /// Whether the next record's value goes among the large parts: it is to be separate, and the first unit, with nothing behind it
    /// yet, has no room for the whole record. So a lone put takes one unit. Chunks are always separate.
    pub(crate) fn is_apart(&self, append: &Append<'_>) -> bool {
        let whole = || Append { separate: false, ..*append }.record_length();
        let is_lone = || append.kind != Kind::Chunk && self.end == UNIT_BYTES && self.packed_at + whole() <= UNIT_BYTES;
        append.separate && !is_lone()
    }

    /// Takes room for all parts of a record, as [`super::batch::OpenBatch::append`] places them.
    pub(crate) fn take(&mut self, append: &Append<'_>) {
        let append = Append { separate: self.is_apart(append), ..*append };
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

/// Bytes that a packed record of this length takes when it lies among its like. Every append asks: no division.
fn packed_bytes(length: usize) -> usize {
    const STEPS: usize = MAX_PACKED_BYTES / RECORD_ALIGNMENT;
    const BYTES: [u16; STEPS + 1] = {
        let (mut bytes, mut steps) = ([0; STEPS + 1], 0);
        while steps <= STEPS {
            let length = if steps == 0 { 1 } else { steps * RECORD_ALIGNMENT };
            bytes[steps] = (UNIT_BYTES / (MAX_PACKED_BYTES / length)) as u16;
            steps += 1;
        }
        bytes
    };
    BYTES.get(length.div_ceil(RECORD_ALIGNMENT)).map_or(UNIT_BYTES, |bytes| usize::from(*bytes))
}

/// Bytes that a large part of this length takes when it lies among its like, as [`Cursor::take_large`] places them: where the next one
/// would reach into more units than it must, the rest of a unit stays empty.
fn large_bytes(length: usize) -> usize {
    let length = length.max(1);
    let fewest = length.next_multiple_of(UNIT_BYTES);
    let on_sectors = length.next_multiple_of(SECTOR_BYTES);
    let beyond_whole_units = on_sectors + UNIT_BYTES - fewest;
    let in_a_row = (fewest - length) / beyond_whole_units + 1;
    (in_a_row * on_sectors).next_multiple_of(UNIT_BYTES) / in_a_row
}

/// Bytes of a segment that a part of this length takes when it lies among its like: moving it elsewhere cannot save them. Right for
/// packed records, and for large parts but for what [`large_bytes`] knows better.
pub(crate) fn footprint(length: u32) -> i64 {
    let length = length as usize;
    let bytes = if length <= MAX_PACKED_BYTES { packed_bytes(length) } else { length.next_multiple_of(SECTOR_BYTES) };
    bytes as i64
}

/// Bytes of the record beside a separate value once it is moved, under a key of so many bytes.
pub(crate) fn beside_bytes(key_bytes: usize, form: &Form) -> usize {
    RECORD_HEADER_BYTES + extension_bytes(true, true, form) + key_bytes
}

/// How a store counts the live bytes of entries of ordered tables. The counts are durable, so a store keeps to one way for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Counting {
    /// By the length of what a get reads alone, see [`footprint`], as earlier programs did: a separate value of 2048 bytes counts twice.
    #[default]
    ByLength,
    /// As its parts lie: a separate value with the record beside it.
    AsTheyLie,
}

impl Counting {
    /// Bytes of a segment that the record takes of which a get reads so many bytes: all of it, or its separate value; `beside` is as
    /// [`beside_bytes`] says.
    pub(crate) fn bytes(self, length: u32, is_separate: bool, beside: usize) -> i64 {
        let read = length as usize;
        let bytes = match self {
            Counting::ByLength => return footprint(length),
            Counting::AsTheyLie if is_separate => large_bytes(read) + packed_bytes(beside),
            Counting::AsTheyLie if read > MAX_PACKED_BYTES => large_bytes(read) + packed_bytes(REFERENCE_BYTES),
            Counting::AsTheyLie => packed_bytes(read),
        };
        bytes as i64
    }

    /// Bytes of a segment that the record of an entry of an ordered index takes, whose key has so many bytes.
    pub(crate) fn bytes_of(self, entry: &Entry, key_bytes: usize) -> i64 {
        self.bytes(entry.location.length, entry.separate.is_some(), beside_bytes(key_bytes, &entry.form))
    }

    /// By how many bytes a record grows at most when it is moved, since it then says where it was.
    pub(crate) fn moved_growth(self, length: u32, is_separate: bool, beside: usize) -> u64 {
        const ORIGIN_BYTES: u32 = 8;
        match self {
            // The record beside the value is not counted otherwise...
            Counting::ByLength if is_separate => 64,
            // ...or is counted as if it were moved already.
            Counting::AsTheyLie if is_separate => 0,
            _ => {
                let grown = length + ORIGIN_BYTES;
                // Where no unit has room for it any more, its value becomes separate. One that lies among the large parts already stays whole.
                let was_packed = length as usize <= MAX_PACKED_BYTES;
                let is_separate = self == Counting::AsTheyLie && was_packed && grown as usize > MAX_PACKED_BYTES;
                (self.bytes(grown, is_separate, beside) - self.bytes(length, false, beside)).max(0) as u64
            }
        }
    }

    /// By how many bytes the record of an entry of an ordered index takes more than it counts, in a store that counts by length: a separate
    /// value of 1280 bytes counts 1365 and takes 2113.
    pub(crate) fn uncounted(self, length: u32, is_separate: bool, beside: usize) -> u64 {
        if self == Counting::AsTheyLie {
            return 0;
        }
        let taken = Counting::AsTheyLie.bytes(length, is_separate, beside);
        (taken - self.bytes(length, is_separate, beside)).max(0) as u64
    }

    /// Whether the value of a whole record may become separate when it is moved: only where it then takes less room, whatever the rule for
    /// puts, or where no unit has room for the record any more and [`Counting::moved_growth`] knows that.
    pub(crate) fn may_become_separate(self, moved: &Append<'_>) -> bool {
        let whole = Append { separate: false, ..*moved };
        let packed = match self {
            Counting::ByLength => whole,
            Counting::AsTheyLie => Append { moved: None, ..whole },
        };
        packed.record_length() <= MAX_PACKED_BYTES && Counting::AsTheyLie.is_denser_separate(moved)
    }

    /// Whether a record takes less room with its value among the large parts than whole. A little less is not worth the second part.
    pub(crate) fn is_denser_separate(self, append: &Append<'_>) -> bool {
        let length = |separate| Append { separate, ..*append }.record_length();
        if self == Counting::ByLength || length(false) > MAX_PACKED_BYTES {
            return append.value.len() >= SEPARATE_VALUE_BYTES;
        }
        if length(false) <= SECTOR_BYTES {
            return false;
        }
        let separate = large_bytes(append.value.len()) + packed_bytes(length(true));
        separate + separate / 16 < packed_bytes(length(false))
    }
}

/// Bytes of a batch that holds just these records.
pub(crate) fn batch_bytes<'a>(appends: impl Iterator<Item = &'a Append<'a>>) -> usize {
    let mut cursor = Cursor::new();
    appends.for_each(|append| cursor.take(append));
    cursor.end.next_multiple_of(UNIT_BYTES)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
