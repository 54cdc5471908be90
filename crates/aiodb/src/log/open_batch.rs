//! The batch that records are appended to, in memory.

use crate::format::batch::{Append, Placed, UNIT_LINK_OFFSET};
use crate::format::location::Location;
use crate::format::place::{Cursor, MAX_PACKED_BYTES};
use crate::format::record::{Kind, Record, Separate, sequence_of};
use crate::format::segment::{
    BATCH_LINK_OFFSET, BatchHeader, HEADER_BYTES, PendingHeader, Seed, encode_unit_header, put,
};
use crate::io::{Mapping, UNIT_BYTES};

/// The place of a batch, and the batch that it follows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchStart {
    pub(crate) store: [u8; 16],
    pub(crate) segment: u32,
    pub(crate) life: u64,
    pub(crate) offset: u32,
    pub(crate) number: u64,
    pub(crate) first_sequence: u64,
    pub(crate) previous_checksum: u32,
    pub(crate) flags: u16,
}

/// A batch being filled, in memory that survives the death of the process.
pub(crate) struct OpenBatch {
    /// One unit of pending header, then the batch as it will lie in the log.
    buffer: Mapping,
    pub(crate) start: BatchStart,
    seed: Seed,
    capacity: usize,
    records: u32,
    cursor: Cursor,
}

impl OpenBatch {
    /// Starts a batch of at most `capacity` bytes (whole units) in `buffer`, which has a unit more.
    pub(crate) fn open(mut buffer: Mapping, start: BatchStart, capacity: usize) -> OpenBatch {
        assert!(capacity >= UNIT_BYTES && capacity + UNIT_BYTES <= buffer.len(), "a batch fits its buffer");
        let seed = Seed::new(&start.store, start.segment, start.life);
        // The old header must not describe the new bytes: it goes first.
        buffer[..UNIT_BYTES].fill(0);
        buffer[UNIT_BYTES..2 * UNIT_BYTES].fill(0);
        let pending = PendingHeader {
            store: start.store,
            segment: start.segment,
            offset: start.offset,
            life: start.life,
            number: start.number,
            first_sequence: start.first_sequence,
            previous_checksum: start.previous_checksum,
            flags: start.flags,
        };
        put(&mut buffer, 0, &pending.encode());
        OpenBatch { buffer, start, seed, capacity, records: 0, cursor: Cursor::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records == 0
    }

    pub(crate) fn records(&self) -> u32 {
        self.records
    }

    /// Bytes taken so far.
    pub(crate) fn used_bytes(&self) -> usize {
        self.cursor.end
    }

    /// Bytes that its records would not take among their like, in a batch that is sealed with this length.
    pub(crate) fn padding(&self, length: usize) -> usize {
        length.saturating_sub(self.cursor.dense_bytes)
    }

    /// Whether these records fit as well.
    pub(crate) fn fits<'a>(&self, appends: impl Iterator<Item = &'a Append<'a>>) -> bool {
        let mut cursor = self.cursor;
        appends.for_each(|append| cursor.take(append));
        cursor.end <= self.capacity
    }

    /// Appends a record that fits. Its parts are in place before the packed record that names them.
    pub(crate) fn append(&mut self, append: &Append<'_>) -> Placed {
        let (moved, sequence) = match append.moved {
            Some((origin, sequence)) => (Some(origin), sequence),
            None => (None, self.start.first_sequence + u64::from(self.records)),
        };
        let mut record = Record::new(append.kind, append.table, sequence, append.key, append.value);
        (record.more, record.form, record.moved) = (append.more, append.form, moved);
        let mut value_location = None;
        if self.cursor.is_apart(append) {
            let offset = self.place_separate(append.value);
            let checksum = self.seed.checksum_at(offset, append.value);
            record.value = &[];
            record.separate = Some(Separate { offset, checksum });
            value_location = Some((self.location(offset, append.value.len()), checksum));
        }
        let record_offset = self.place_record(&record);
        self.records += 1;
        match value_location {
            Some((location, checksum)) => Placed { location, separate: Some(checksum), sequence, record_offset },
            None => {
                let location = self.location(record_offset, record.length());
                Placed { location, separate: None, sequence, record_offset }
            }
        }
    }

    /// Writes the batch's header; returns its length and the header's checksum.
    pub(crate) fn seal(&mut self, durable_batch: u64, time_ms: u64) -> (usize, u32) {
        let length = self.cursor.end.next_multiple_of(UNIT_BYTES);
        let (end, seed, start) = (self.cursor.end, self.seed, self.start);
        let body = self.body();
        body[end..length].fill(0);
        let header = BatchHeader {
            number: start.number,
            first_sequence: start.first_sequence,
            records: self.records,
            length: u32::try_from(length).expect("a batch is shorter than 4 GiB"),
            offset: start.offset,
            body_checksum: seed.checksum(&self.body()[BATCH_LINK_OFFSET..length]),
            previous_checksum: start.previous_checksum,
            flags: start.flags,
            durable_batch,
            time_ms,
        };
        let checksum = header.encode(seed, self.body());
        (length, checksum)
    }

    /// The first `length` bytes of the batch, as they go to the device.
    pub(crate) fn bytes(&self, length: usize) -> &[u8] {
        &self.buffer[UNIT_BYTES..UNIT_BYTES + length]
    }

    /// Copies `location`'s bytes out, if they lie in this batch.
    pub(crate) fn read(&self, location: Location, out: &mut Vec<u8>) -> bool {
        let start = self.start.offset;
        if location.segment != self.start.segment || location.offset < start {
            return false;
        }
        let from = (location.offset - start) as usize;
        if from >= self.cursor.end {
            return false;
        }
        let to = (from + location.length as usize).min(self.cursor.end);
        out.extend_from_slice(&self.bytes(to)[from..]);
        true
    }

    /// The sequence of the whole record at a location, if it lies in this batch.
    pub(crate) fn sequence_at(&self, location: Location) -> Option<u64> {
        let from = location.offset.checked_sub(self.start.offset)? as usize;
        let here = location.segment == self.start.segment && from < self.cursor.end;
        here.then(|| sequence_of(&self.bytes(self.cursor.end)[from..]))
    }

    /// The record at an offset that [`OpenBatch::append`] returned.
    pub(crate) fn record_at(&self, record_offset: u32) -> Record<'_> {
        let from = (record_offset - self.start.offset) as usize;
        Record::decode(&self.bytes(self.cursor.end)[from..], self.seed, record_offset)
            .expect("the batch holds what was appended")
    }

    /// The value of a record that [`OpenBatch::record_at`] returned, wherever in the batch it lies.
    pub(crate) fn value_at<'a>(&'a self, record: &Record<'a>, placed: &Placed) -> &'a [u8] {
        if record.separate.is_none() {
            return record.value;
        }
        let from = (placed.location.offset - self.start.offset) as usize;
        &self.bytes(self.cursor.end)[from..from + placed.location.length as usize]
    }

    /// Gives the memory back.
    pub(crate) fn into_buffer(self) -> Mapping {
        self.buffer
    }

    /// Gives the memory of a batch back that never comes to the log. Another batch takes its number, perhaps in another buffer:
    /// recovery must find only that one.
    pub(crate) fn abandon(mut self) -> Mapping {
        self.buffer[..HEADER_BYTES].fill(0);
        self.buffer
    }

    fn place_record(&mut self, record: &Record<'_>) -> u32 {
        let length = record.length();
        if length <= MAX_PACKED_BYTES {
            return self.place_packed(record);
        }
        let at = self.place_large(length);
        let (seed, offset) = (self.seed, self.start.offset + at as u32);
        record.encode(seed, offset, &mut self.body()[at..at + length]);
        let mut place = [0; 8];
        put(&mut place, 0, &offset.to_le_bytes());
        put(&mut place, 4, &(length as u32).to_le_bytes());
        let mut reference = Record::new(Kind::Large, record.table, record.sequence, &[0], &place);
        reference.more = record.more;
        self.place_packed(&reference);
        offset
    }

    fn place_packed(&mut self, record: &Record<'_>) -> u32 {
        let (length, before) = (record.length(), self.cursor);
        let at = self.cursor.take_packed(length);
        let unit = self.cursor.packed_unit;
        if unit != before.packed_unit {
            self.begin_packed_unit(before, unit);
        }
        let (seed, offset) = (self.seed, self.start.offset + at as u32);
        record.encode(seed, offset, &mut self.body()[at..at + length]);
        offset
    }

    /// Links a new unit of packed records from the one before.
    fn begin_packed_unit(&mut self, before: Cursor, unit: usize) {
        let number = self.start.number;
        let link_at = if before.packed_unit == 0 { BATCH_LINK_OFFSET } else { before.packed_unit + UNIT_LINK_OFFSET };
        let body = self.body();
        body[before.end..unit + UNIT_BYTES].fill(0);
        encode_unit_header(&mut body[unit..], number);
        put(body, link_at, &((unit / UNIT_BYTES) as u32).to_le_bytes());
    }

    fn place_separate(&mut self, value: &[u8]) -> u32 {
        let at = self.place_large(value.len());
        self.body()[at..at + value.len()].copy_from_slice(value);
        self.start.offset + at as u32
    }

    /// Takes room for a large part and fills the bytes around it with zeros.
    fn place_large(&mut self, length: usize) -> usize {
        let before = self.cursor.end;
        let at = self.cursor.take_large(length);
        let end = self.cursor.end;
        let body = self.body();
        body[before..at].fill(0);
        body[at + length..end].fill(0);
        at
    }

    fn location(&self, offset: u32, length: usize) -> Location {
        Location { segment: self.start.segment, offset, length: length as u32 }
    }

    fn body(&mut self) -> &mut [u8] {
        &mut self.buffer[UNIT_BYTES..UNIT_BYTES + self.capacity]
    }
}
