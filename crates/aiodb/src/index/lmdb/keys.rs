//! The bytes of the keys and values in LMDB that are not entries, see `docs/format.md`. No I/O here.

use crate::format::segment::{put, u64_at};
use crate::index::range_tombstones::RangeTombstone;

/// The prefix of the keys of range tombstones.
pub(super) const RANGE_PREFIX: [u8; 4] = 3u32.to_be_bytes();

/// The prefix of the keys of counts of chunks.
pub(super) const CHUNK_PREFIX: [u8; 4] = 4u32.to_be_bytes();

pub(super) fn prefixed(prefix: [u8; 4], number: u32) -> [u8; 8] {
    let mut key = [0; 8];
    put(&mut key, 0, &prefix);
    put(&mut key, 4, &number.to_be_bytes());
    key
}

/// The key that counts the chunks which a table's entries name in a segment.
pub(super) fn chunk_key(table: u32, segment: u32) -> [u8; 12] {
    let mut key = [0; 12];
    put(&mut key, 0, &CHUNK_PREFIX);
    put(&mut key, 4, &table.to_be_bytes());
    put(&mut key, 8, &segment.to_be_bytes());
    key
}

pub(super) fn table_and_segment_of(chunk_key: &[u8]) -> Option<(u32, u32)> {
    let (table, segment) = chunk_key.get(4..12)?.split_first_chunk()?;
    Some((u32::from_be_bytes(*table), u32::from_be_bytes(segment.try_into().ok()?)))
}

/// A life of a segment, and the bytes of chunks in it.
pub(super) fn encode_chunk_count(life: u64, bytes: i64) -> [u8; 16] {
    let mut out = [0; 16];
    put(&mut out, 0, &life.to_le_bytes());
    put(&mut out, 8, &bytes.to_le_bytes());
    out
}

pub(super) fn decode_chunk_count(value: &[u8]) -> Option<(u64, i64)> {
    (value.len() == 16).then(|| (u64_at(value, 0), u64_at(value, 8) as i64))
}

pub(super) fn range_key(range: &RangeTombstone) -> [u8; 12] {
    let mut key = [0; 12];
    put(&mut key, 0, &RANGE_PREFIX);
    put(&mut key, 4, &range.sequence.to_be_bytes());
    key
}

pub(super) fn encode_range(range: &RangeTombstone) -> Vec<u8> {
    let start_bytes = (range.start.len() as u32).to_le_bytes();
    [&start_bytes, &*range.start, &*range.end].concat()
}

pub(super) fn decode_range(key: &[u8], value: &[u8]) -> Option<RangeTombstone> {
    let sequence = u64::from_be_bytes(key.get(4..12)?.try_into().ok()?);
    let (start_bytes, bounds) = value.split_first_chunk()?;
    let (start, end) = bounds.split_at_checked(u32::from_le_bytes(*start_bytes) as usize)?;
    (start.len() >= 4 && end.len() >= 4).then(|| RangeTombstone { start: start.into(), end: end.into(), sequence })
}
