//! How records are placed in a batch, and found in it again. No I/O here.

use super::record::{Form, Kind, Origin, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, Record, extension_bytes, sequence_of};
use super::segment::{BATCH_HEADER_BYTES, BATCH_LINK_OFFSET, Seed, UNIT_HEADER_BYTES, is_unit_header, u32_at};
use crate::format::location::Location;
use crate::io::UNIT_BYTES;

/// Values of at least this many bytes lie on blocks of their own in ordered tables where nothing else is known of what is denser, see
/// [`super::place::Counting::is_denser_separate`].
pub(crate) const SEPARATE_VALUE_BYTES: usize = 1280;

/// The offset of its link in a further unit's header.
pub(crate) const UNIT_LINK_OFFSET: usize = 4;

/// A record to be appended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Append<'a> {
    pub(crate) kind: Kind,
    pub(crate) table: u32,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    /// The value lies on blocks of its own, unless the batch has nothing but a first unit with room for all, see
    /// [`super::place::Cursor::is_apart`].
    pub(crate) separate: bool,
    pub(crate) more: bool,
    pub(crate) form: Form,
    /// For a moved record: the place that it replaces, and its sequence, which a move does not change.
    pub(crate) moved: Option<(Origin, u64)>,
}

impl<'a> Append<'a> {
    pub(crate) fn new(kind: Kind, table: u32, key: &'a [u8], value: &'a [u8]) -> Append<'a> {
        Append { kind, table, key, value, separate: false, more: false, form: Form::default(), moved: None }
    }

    /// Bytes of the record itself, without a separate value.
    pub(crate) fn record_length(&self) -> usize {
        let extensions = extension_bytes(self.moved.is_some(), self.separate, &self.form);
        let value = if self.separate { 0 } else { self.value.len() };
        RECORD_HEADER_BYTES + extensions + self.key.len() + value
    }
}

/// Where an appended record went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Placed {
    /// The bytes that a get reads: the whole record, or the separate value.
    pub(crate) location: Location,
    /// The separate value's checksum.
    pub(crate) separate: Option<u32>,
    pub(crate) sequence: u64,
    /// The offset in the segment at which the whole record lies.
    pub(crate) record_offset: u32,
}

/// A batch's bytes, to be walked.
#[derive(Clone, Copy)]
pub(crate) struct BatchView<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) seed: Seed,
    pub(crate) segment: u32,
    /// Where the batch starts in its segment.
    pub(crate) offset: u32,
    pub(crate) number: u64,
}

/// A record found in a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) record: Record<'a>,
    /// The bytes that a get of it reads: the whole record, or the separate value.
    pub(crate) location: Location,
}

impl<'a> BatchView<'a> {
    /// The records in the order in which they were appended, up to the first that does not check out.
    pub(crate) fn records(self) -> Records<'a> {
        Records { view: self, unit: 0, at: BATCH_HEADER_BYTES }
    }

    /// The bytes at a location, if they lie in this batch.
    pub(crate) fn slice(&self, location: Location) -> Option<&'a [u8]> {
        let from = location.offset.checked_sub(self.offset)? as usize;
        self.bytes.get(from..from.checked_add(location.length as usize)?)
    }

    /// The sequence of the whole record at a location, if it lies in this batch.
    pub(crate) fn sequence_at(&self, location: Location) -> Option<u64> {
        let from = location.offset.checked_sub(self.offset)? as usize;
        self.bytes.get(from..).filter(|bytes| bytes.len() >= RECORD_HEADER_BYTES).map(sequence_of)
    }

    /// The value of a record in this batch: inside it, or separate and checked.
    pub(crate) fn value(&self, found: &Found<'a>) -> Option<&'a [u8]> {
        let Some(separate) = found.record.separate else { return Some(found.record.value) };
        let value = self.slice(found.location)?;
        (self.seed.checksum_at(separate.offset, value) == separate.checksum).then_some(value)
    }
}

/// Iterates over a batch's records.
pub(crate) struct Records<'a> {
    view: BatchView<'a>,
    unit: usize,
    at: usize,
}

impl<'a> Records<'a> {
    fn decode_at(&self, at: usize, end: usize) -> Option<(Record<'a>, u32)> {
        let offset = self.view.offset.checked_add(u32::try_from(at).ok()?)?;
        let record = Record::decode(self.view.bytes.get(at..end)?, self.view.seed, offset)?;
        Some((record, offset))
    }

    /// The unit that the current one links to. Links only lead forward, so a walk ends.
    fn next_unit(&self) -> Option<usize> {
        let link_at = if self.unit == 0 { BATCH_LINK_OFFSET } else { self.unit + UNIT_LINK_OFFSET };
        // A pending file may have lost its end.
        let link = self.view.bytes.get(link_at..)?.first_chunk::<4>()?;
        let unit = (u32::from_le_bytes(*link) as usize).checked_mul(UNIT_BYTES)?;
        let bytes = self.view.bytes.get(unit..)?;
        (unit > self.unit && is_unit_header(bytes, self.view.number)).then_some(unit)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Found<'a>;

    fn next(&mut self) -> Option<Found<'a>> {
        let (packed, packed_offset) = loop {
            let unit_end = (self.unit + UNIT_BYTES).min(self.view.bytes.len());
            match self.decode_at(self.unit + self.at, unit_end) {
                Some(decoded) => break decoded,
                None => {
                    self.unit = self.next_unit()?;
                    self.at = UNIT_HEADER_BYTES;
                }
            }
        };
        self.at += packed.length().next_multiple_of(RECORD_ALIGNMENT);
        let (record, offset) = if packed.kind == Kind::Large {
            if packed.value.len() != 8 {
                return None;
            }
            let at = u32_at(packed.value, 0).checked_sub(self.view.offset)? as usize;
            let end = at.checked_add(u32_at(packed.value, 4) as usize)?;
            self.decode_at(at, end)?
        } else {
            (packed, packed_offset)
        };
        let (offset, length) = match record.separate {
            Some(separate) => (separate.offset, record.value_length),
            None => (offset, record.length() as u32),
        };
        Some(Found { record, location: Location { segment: self.view.segment, offset, length } })
    }
}
