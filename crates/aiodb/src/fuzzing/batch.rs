//! Batches: walked as they may be found on a disk, and written and walked again.

use std::num::NonZeroU64;

use super::{LIFE, SEGMENT, STORE};
use crate::format::batch::{Append, BatchView};
use crate::format::place::batch_bytes;
use crate::format::record::{Kind, Origin, RECORD_HEADER_BYTES};
use crate::format::segment::{BATCH_HEADER_BYTES, BATCH_LINK_OFFSET, Seed, UNIT_HEADER_BYTES, put, u16_at, u32_at};
use crate::io::UNIT_BYTES;
use crate::log::commit::private_buffers;
use crate::log::open_batch::{BatchStart, OpenBatch};

const OFFSET: u32 = 8192;
const NUMBER: u64 = 77;

/// The longest batch that a fuzzer fills.
const CAPACITY: usize = 64 * UNIT_BYTES;

/// Gives the record at the start of these bytes, if one fits there, its checksum; returns its length.
pub(super) fn repair_record(bytes: &mut [u8], seed: Seed, offset: u32) -> Option<usize> {
    const MOVED: u8 = 2;
    const SEPARATE: u8 = 4;
    const EXPIRES: u8 = 16;
    if bytes.len() < RECORD_HEADER_BYTES {
        return None;
    }
    let flags = bytes[5];
    let value = if flags & SEPARATE != 0 { 0 } else { u32_at(bytes, 8) as usize };
    let extensions = 8 * (flags & (MOVED | SEPARATE | EXPIRES)).count_ones() as usize;
    let length = RECORD_HEADER_BYTES + extensions + usize::from(u16_at(bytes, 6)) + 1 + value;
    let checksum = seed.checksum_at(offset, bytes.get(4..length)?);
    put(bytes, 0, &checksum.to_le_bytes());
    Some(length)
}

/// Gives the packed records of a batch, and the whole ones that they refer to, their checksums.
fn repair(bytes: &mut [u8], seed: Seed, offset: u32) {
    let (mut unit, mut at) = (0, BATCH_HEADER_BYTES);
    while unit + at < bytes.len() {
        let (start, end) = (unit + at, (unit + UNIT_BYTES).min(bytes.len()));
        let place = offset.wrapping_add(start as u32);
        if start < end && bytes.get(start + 4) == Some(&(Kind::Large as u8)) {
            repair_referred(bytes, start, seed, offset);
        }
        let repaired = if start < end { repair_record(&mut bytes[start..end], seed, place) } else { None };
        let Some(length) = repaired else {
            let link_at = if unit == 0 { BATCH_LINK_OFFSET } else { unit + 4 };
            if link_at + 4 > bytes.len() {
                return;
            }
            let next = u32_at(bytes, link_at) as usize * UNIT_BYTES;
            if next <= unit {
                return;
            }
            (unit, at) = (next, UNIT_HEADER_BYTES);
            continue;
        };
        at += length.next_multiple_of(16);
    }
}

fn repair_referred(bytes: &mut [u8], start: usize, seed: Seed, offset: u32) {
    let key_length = bytes.get(start + 6..start + 8).map_or(0, |bytes| usize::from(u16_at(bytes, 0)) + 1);
    let value = start + RECORD_HEADER_BYTES + key_length;
    let Some(place) = bytes.get(value..value + 8).map(|bytes| u32_at(bytes, 0)) else { return };
    let at = place.wrapping_sub(offset) as usize;
    if let Some(record) = bytes.get_mut(at..) {
        repair_record(record, seed, place);
    }
}

/// A batch as found: the second byte of the input places it at the beginning or at the very end of a segment.
pub(super) fn walk(input: &[u8]) {
    let [mode, place, bytes @ ..] = input else { return };
    let (seed, mut bytes) = (Seed::new(&STORE, SEGMENT, LIFE), bytes.to_vec());
    let offset = if place & 1 == 0 { OFFSET } else { u32::MAX - 4095 };
    if mode & 1 == 1 {
        repair(&mut bytes, seed, offset);
    }
    let view = BatchView { bytes: &bytes, seed, segment: SEGMENT, offset, number: NUMBER };
    for found in view.records() {
        if let Some(value) = view.value(&found) {
            assert!(found.record.form.chunked || value.len() == found.record.value_length as usize);
        }
        if found.record.separate.is_none() {
            assert_eq!(view.sequence_at(found.location), Some(found.record.sequence));
        }
    }
}

/// Records that follow from the input are appended, and are found again.
pub(super) fn round_trip(input: &[u8]) {
    let start = BatchStart {
        store: STORE,
        segment: SEGMENT,
        life: LIFE,
        offset: OFFSET,
        number: NUMBER,
        first_sequence: 1000,
        previous_checksum: 5,
        flags: 0,
    };
    let buffer = private_buffers(CAPACITY + UNIT_BYTES).swap_remove(0);
    let mut batch = OpenBatch::open(buffer, start, CAPACITY);
    let filler: Vec<u8> = (0..1 << 16).map(|number: u32| (number.wrapping_mul(0x9E37_79B1) >> 24) as u8).collect();
    let mut appended = Vec::new();
    for word in input.chunks_exact(6) {
        let kind = if word[0] & 1 == 0 { Kind::Put } else { Kind::Delete };
        let key = &filler[usize::from(word[1])..][..1 + usize::from(word[2]) * if word[0] & 2 == 0 { 1 } else { 64 }];
        let value = &filler[..if kind == Kind::Put { usize::from(u16_at(word, 3)) } else { 0 }];
        let mut append = Append::new(kind, u32::from(word[5]), key, value);
        append.separate = word[0] & 4 != 0 && !value.is_empty();
        append.more = word[0] & 8 != 0;
        append.form.expires_ms = NonZeroU64::new(u64::from(word[0] & 32));
        append.form.compressed = word[0] & 64 != 0;
        append.moved = (word[0] & 16 != 0).then_some((Origin { segment: 1, offset: 4096 }, 17));
        if !batch.fits([&append].into_iter()) {
            assert!(!batch.is_empty() || batch_bytes([&append].into_iter()) > CAPACITY);
            break;
        }
        appended.push((append, batch.append(&append)));
    }
    let (length, _) = batch.seal(0, 0);
    let view = BatchView {
        bytes: batch.bytes(length),
        seed: Seed::new(&STORE, SEGMENT, LIFE),
        segment: SEGMENT,
        offset: OFFSET,
        number: NUMBER,
    };
    let found: Vec<_> = view.records().collect();
    assert_eq!(found.len(), appended.len());
    for (found, (append, placed)) in found.iter().zip(appended) {
        let record = &found.record;
        assert_eq!((record.kind, record.table, record.key), (append.kind, append.table, append.key));
        assert_eq!(view.value(found), Some(append.value));
        assert_eq!((found.location, record.sequence, record.more), (placed.location, placed.sequence, append.more));
        assert_eq!(record.form, append.form);
        assert_eq!(record.moved, append.moved.map(|(origin, _)| origin));
    }
}
