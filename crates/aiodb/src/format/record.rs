//! The bytes of records, see `docs/format.md`. No I/O here.

use std::num::NonZeroU64;

use super::segment::{Seed, put, u16_at, u32_at, u64_at};
use crate::format::location::Location;
use crate::planted::{self, Bug};

/// Bytes of a record before its extensions, key and value.
pub(crate) const RECORD_HEADER_BYTES: usize = 24;

/// Records start on multiples of this many bytes.
pub(crate) const RECORD_ALIGNMENT: usize = 16;

/// Bytes of each entry of a chunk list, and of the total length before them.
const CHUNK_ENTRY_BYTES: usize = 16;
const CHUNK_TOTAL_BYTES: usize = 8;

/// Bytes of each extension between a record's header and its key.
const EXTENSION_BYTES: usize = 8;

/// The kind of a record. The numbers are the format's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Put = 1,
    Delete = 2,
    RangeTombstone = 3,
    Merge = 4,
    TableCreate = 5,
    TableDrop = 6,
    TableTruncate = 7,
    Chunk = 8,
    Large = 9,
}

impl Kind {
    /// Whether it changes its table's index.
    pub(crate) fn is_indexed(self) -> bool {
        matches!(self, Kind::Put | Kind::Delete | Kind::RangeTombstone | Kind::Merge)
    }

    fn from_byte(byte: u8) -> Option<Kind> {
        Some(match byte {
            1 => Kind::Put,
            2 => Kind::Delete,
            3 => Kind::RangeTombstone,
            4 => Kind::Merge,
            5 => Kind::TableCreate,
            6 => Kind::TableDrop,
            7 => Kind::TableTruncate,
            8 => Kind::Chunk,
            9 => Kind::Large,
            _ => return None,
        })
    }
}

const FLAG_MORE: u8 = 1;
const FLAG_MOVED: u8 = 2;
const FLAG_SEPARATE: u8 = 4;
const FLAG_CHUNKED: u8 = 8;
const FLAG_EXPIRES: u8 = 16;
const FLAG_COMPRESSED: u8 = 32;
const KNOWN_FLAGS: u8 = FLAG_MORE | FLAG_MOVED | FLAG_SEPARATE | FLAG_CHUNKED | FLAG_EXPIRES | FLAG_COMPRESSED;

/// How a record's value is stored, and until when it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Form {
    /// The value is a list of chunks.
    pub(crate) chunked: bool,
    /// The value is compressed, see `compression.rs`.
    pub(crate) compressed: bool,
    /// Milliseconds since 1970 from which on the record counts as deleted; `None` = never.
    pub(crate) expires_ms: Option<NonZeroU64>,
}

/// Where a separate value lies, within the segment of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Separate {
    pub(crate) offset: u32,
    pub(crate) checksum: u32,
}

/// The segment and offset that a moved record replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) segment: u32,
    pub(crate) offset: u32,
}

/// A decoded record, or one to be encoded. For a separate value, `value` is empty and `value_length` its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) kind: Kind,
    pub(crate) table: u32,
    pub(crate) sequence: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) value_length: u32,
    /// The next record belongs to the same atomic group.
    pub(crate) more: bool,
    pub(crate) form: Form,
    pub(crate) moved: Option<Origin>,
    pub(crate) separate: Option<Separate>,
}

impl<'a> Record<'a> {
    /// A record with its value inside.
    pub(crate) fn new(kind: Kind, table: u32, sequence: u64, key: &'a [u8], value: &'a [u8]) -> Record<'a> {
        let value_length = u32::try_from(value.len()).expect("a stored value is shorter than 4 GiB");
        let (more, form, moved, separate) = (false, Form::default(), None, None);
        Record { kind, table, sequence, key, value, value_length, more, form, moved, separate }
    }

    /// The encoded length without padding.
    pub(crate) fn length(&self) -> usize {
        let extensions = extension_bytes(self.moved.is_some(), self.separate.is_some(), &self.form);
        RECORD_HEADER_BYTES + extensions + self.key.len() + self.value.len()
    }

    /// Encodes the record at the start of `out`, as it will lie at `offset` in its segment.
    pub(crate) fn encode(&self, seed: Seed, offset: u32, out: &mut [u8]) {
        let length = self.length();
        let key_length = u16::try_from(self.key.len() - 1).expect("a key has 1 to 65536 bytes");
        out[4] = self.kind as u8;
        out[5] = self.flags();
        put(out, 6, &key_length.to_le_bytes());
        put(out, 8, &self.value_length.to_le_bytes());
        put(out, 12, &self.table.to_le_bytes());
        put(out, 16, &self.sequence.to_le_bytes());
        let mut at = RECORD_HEADER_BYTES;
        if let Some(origin) = self.moved {
            put(out, at, &origin.segment.to_le_bytes());
            put(out, at + 4, &origin.offset.to_le_bytes());
            at += EXTENSION_BYTES;
        }
        if let Some(separate) = self.separate {
            put(out, at, &separate.offset.to_le_bytes());
            put(out, at + 4, &separate.checksum.to_le_bytes());
            at += EXTENSION_BYTES;
        }
        if let Some(expires_ms) = self.form.expires_ms {
            put(out, at, &expires_ms.get().to_le_bytes());
            at += EXTENSION_BYTES;
        }
        put(out, at, self.key);
        put(out, at + self.key.len(), self.value);
        let checksum = seed.checksum_at(offset, &out[4..length]);
        put(out, 0, &checksum.to_le_bytes());
    }

    /// Decodes the record at the start of `bytes`, which lie at `offset` in the segment. `None` if no valid record is
    /// there or it is longer than `bytes`.
    pub(crate) fn decode(bytes: &'a [u8], seed: Seed, offset: u32) -> Option<Record<'a>> {
        if bytes.len() < RECORD_HEADER_BYTES {
            return None;
        }
        let kind = Kind::from_byte(bytes[4])?;
        let flags = bytes[5];
        if flags & !KNOWN_FLAGS != 0 {
            return None;
        }
        let separate = flags & FLAG_SEPARATE != 0;
        let key_length = usize::from(u16_at(bytes, 6)) + 1;
        let value_length = u32_at(bytes, 8);
        let stored_value_bytes = if separate { 0 } else { value_length as usize };
        let key_start = key_start(flags);
        let value_start = key_start + key_length;
        let length = value_start.checked_add(stored_value_bytes)?;
        if length > bytes.len() {
            return None;
        }
        if seed.checksum_at(offset, &bytes[4..length]) != u32_at(bytes, 0) && !planted::is_on(Bug::RecordUnchecked) {
            return None;
        }
        let mut at = RECORD_HEADER_BYTES;
        let moved = (flags & FLAG_MOVED != 0).then(|| {
            let origin = Origin { segment: u32_at(bytes, at), offset: u32_at(bytes, at + 4) };
            at += EXTENSION_BYTES;
            origin
        });
        let separate = separate.then(|| {
            let separate = Separate { offset: u32_at(bytes, at), checksum: u32_at(bytes, at + 4) };
            at += EXTENSION_BYTES;
            separate
        });
        let expires = flags & FLAG_EXPIRES != 0;
        let expires_ms = if expires { Some(NonZeroU64::new(u64_at(bytes, at))?) } else { None };
        let form = Form { chunked: flags & FLAG_CHUNKED != 0, compressed: flags & FLAG_COMPRESSED != 0, expires_ms };
        Some(Record {
            kind,
            table: u32_at(bytes, 12),
            sequence: u64_at(bytes, 16),
            key: &bytes[key_start..value_start],
            value: &bytes[value_start..length],
            value_length,
            more: flags & FLAG_MORE != 0,
            form,
            moved,
            separate,
        })
    }

    fn flags(&self) -> u8 {
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        flag(self.more, FLAG_MORE)
            | flag(self.moved.is_some(), FLAG_MOVED)
            | flag(self.separate.is_some(), FLAG_SEPARATE)
            | flag(self.form.chunked, FLAG_CHUNKED)
            | flag(self.form.compressed, FLAG_COMPRESSED)
            | flag(self.form.expires_ms.is_some(), FLAG_EXPIRES)
    }
}

/// The value of a range delete: the life of the segment in which it was first written (0 if it was not moved since), and the
/// first key that is spared, empty for none.
pub(crate) fn encode_range_end(origin_life: u64, end: &[u8]) -> Vec<u8> {
    [&origin_life.to_le_bytes(), end].concat()
}

/// The first key that a range delete spares.
pub(crate) fn range_end(value: &[u8]) -> &[u8] {
    value.get(8..).unwrap_or_default()
}

/// Bytes of the extensions between a record's header and its key.
pub(crate) fn extension_bytes(moved: bool, separate: bool, form: &Form) -> usize {
    let extensions = usize::from(moved) + usize::from(separate) + usize::from(form.expires_ms.is_some());
    extensions * EXTENSION_BYTES
}

/// Where a record with these flags has its key.
pub(crate) fn key_start(flags: u8) -> usize {
    let extensions = (flags & (FLAG_MOVED | FLAG_SEPARATE | FLAG_EXPIRES)).count_ones() as usize;
    RECORD_HEADER_BYTES + extensions * EXTENSION_BYTES
}

/// The sequence in an encoded record's header.
pub(crate) fn sequence_of(record: &[u8]) -> u64 {
    u64_at(record, 16)
}

/// One part of a large value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) location: Location,
    pub(crate) checksum: u32,
}

/// Encodes the value of a chunked record.
pub(crate) fn encode_chunks(total_length: u64, chunks: &[Chunk]) -> Vec<u8> {
    let mut out = Vec::with_capacity(CHUNK_TOTAL_BYTES + chunks.len() * CHUNK_ENTRY_BYTES);
    out.extend_from_slice(&total_length.to_le_bytes());
    for chunk in chunks {
        out.extend_from_slice(&chunk.location.segment.to_le_bytes());
        out.extend_from_slice(&chunk.location.offset.to_le_bytes());
        out.extend_from_slice(&chunk.location.length.to_le_bytes());
        out.extend_from_slice(&chunk.checksum.to_le_bytes());
    }
    out
}

/// Decodes the value of a chunked record into the total length and the chunks; `None` if it is not such a list.
pub(crate) fn decode_chunks(value: &[u8]) -> Option<(u64, Vec<Chunk>)> {
    let entries = value.get(CHUNK_TOTAL_BYTES..)?;
    if !entries.len().is_multiple_of(CHUNK_ENTRY_BYTES) {
        return None;
    }
    let total_length = u64_at(value, 0);
    let chunks: Vec<Chunk> = entries
        .chunks_exact(CHUNK_ENTRY_BYTES)
        .map(|entry| Chunk {
            location: Location { segment: u32_at(entry, 0), offset: u32_at(entry, 4), length: u32_at(entry, 8) },
            checksum: u32_at(entry, 12),
        })
        .collect();
    let sum: u64 = chunks.iter().map(|chunk| u64::from(chunk.location.length)).sum();
    (sum == total_length).then_some((total_length, chunks))
}

/// The longest chunk list of a value of `value_bytes` in chunks of `chunk_bytes`.
pub(crate) fn chunk_list_bytes(value_bytes: usize, chunk_bytes: usize) -> usize {
    CHUNK_TOTAL_BYTES + value_bytes.div_ceil(chunk_bytes) * CHUNK_ENTRY_BYTES
}
