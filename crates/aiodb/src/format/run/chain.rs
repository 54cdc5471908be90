//! The bytes of a key's records in a block: newest first, in few bytes where they have few features.

use std::num::NonZeroU64;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::format::entry::Entry;
use crate::format::location::Location;
use crate::format::record::{Form, Kind, RECORD_ALIGNMENT};
use crate::format::varint::{put_varint, take_varint};

const KIND_MASK: u8 = 3;
const KIND_PUT: u8 = 0;
const KIND_DELETE: u8 = 1;
const KIND_MERGE: u8 = 2;
/// A put or an operand whose value is here. It is never separate, nor chunked.
const KIND_WITH_VALUE: u8 = 3;
const SEPARATE: u8 = 4;
/// Of an entry with its value: it is an operand.
const OPERAND: u8 = 4;
const CHUNKED: u8 = 8;
const COMPRESSED: u8 = 16;
const EXPIRES: u8 = 32;
/// An older entry of the same key follows.
const MORE: u8 = 64;
/// Of the first entry: an older run may have newer operands than the base here.
const PARTIAL: u8 = 128;

/// The entries of a key, newest first.
pub(crate) type Entries = SmallVec<[Entry; 1]>;

/// Appends a key's entries; no sequence is below `base`.
pub(crate) fn encode_chain(out: &mut Vec<u8>, entries: &[Entry], partial: bool, base: u64) {
    assert!(!entries.is_empty(), "a key has entries");
    let last = entries.len() - 1;
    for (number, entry) in entries.iter().enumerate() {
        let Entry { location, form, .. } = entry;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let kind = match (entry.kind, &entry.inline) {
            (Kind::Put, None) => KIND_PUT,
            (Kind::Delete, None) => KIND_DELETE,
            (Kind::Merge, None) => KIND_MERGE,
            (Kind::Put, Some(_)) => KIND_WITH_VALUE,
            (Kind::Merge, Some(_)) => KIND_WITH_VALUE | OPERAND,
            other => unreachable!("{other:?} has no entry in an index"),
        };
        assert!(
            entry.inline.is_none() || entry.separate.is_none() && !form.chunked,
            "an inline value lies in its record"
        );
        let features = flag(entry.separate.is_some(), SEPARATE)
            | flag(form.chunked, CHUNKED)
            | flag(form.compressed, COMPRESSED)
            | flag(form.expires_ms.is_some(), EXPIRES);
        out.push(kind | features | flag(number < last, MORE) | flag(number == 0 && partial, PARTIAL));
        put_varint(out, entry.sequence.checked_sub(base).expect("no sequence is below the base"));
        put_varint(out, u64::from(location.segment));
        let alignment = RECORD_ALIGNMENT as u32;
        assert!(location.offset.is_multiple_of(alignment), "a record does not lie at {}", location.offset);
        put_varint(out, u64::from(location.offset / alignment));
        put_varint(out, u64::from(location.length));
        if let Some(checksum) = entry.separate {
            out.extend_from_slice(&checksum.to_le_bytes());
        }
        if let Some(expires_ms) = form.expires_ms {
            put_varint(out, expires_ms.get());
        }
        if let Some(value) = &entry.inline {
            put_varint(out, value.len() as u64);
            out.extend_from_slice(value);
        }
    }
}

/// Takes a key's entries off the front, and whether they are partial; `None` where they are malformed.
pub(crate) fn take_chain(bytes: &mut &[u8], base: u64) -> Option<(Entries, bool)> {
    let mut entries = Entries::new();
    let mut partial = false;
    loop {
        let shape = take_byte(bytes)?;
        let is_first = entries.is_empty();
        partial |= is_first && shape & PARTIAL != 0;
        let (mut entry, value) = take_entry(bytes, shape, base)?;
        entry.inline = value.map(Arc::from);
        let follows = |newer: &Entry| newer.kind == Kind::Merge && newer.sequence > entry.sequence;
        if !is_first && (shape & PARTIAL != 0 || !entries.last().is_some_and(follows)) {
            return None;
        }
        entries.push(entry);
        if shape & MORE == 0 {
            return Some((entries, partial));
        }
    }
}

/// Takes a key's entries off the front without a look at them; `None` where they are malformed.
pub(crate) fn skip_chain(bytes: &mut &[u8], base: u64) -> Option<()> {
    loop {
        let shape = take_byte(bytes)?;
        take_entry(bytes, shape, base)?;
        if shape & MORE == 0 {
            return Some(());
        }
    }
}

/// An entry without its value, and that value.
fn take_entry<'a>(bytes: &mut &'a [u8], shape: u8, base: u64) -> Option<(Entry, Option<&'a [u8]>)> {
    let has_value = shape & KIND_MASK == KIND_WITH_VALUE;
    let kind = match shape & KIND_MASK {
        KIND_PUT => Kind::Put,
        KIND_DELETE => Kind::Delete,
        KIND_MERGE => Kind::Merge,
        _ if shape & OPERAND != 0 => Kind::Merge,
        _ => Kind::Put,
    };
    if has_value && shape & CHUNKED != 0 {
        return None;
    }
    let sequence = base.checked_add(take_varint(bytes)?)?;
    let segment = u32::try_from(take_varint(bytes)?).ok()?;
    let offset = u32::try_from(take_varint(bytes)?.checked_mul(RECORD_ALIGNMENT as u64)?).ok()?;
    let length = u32::try_from(take_varint(bytes)?).ok()?;
    let separate = if has_value || shape & SEPARATE == 0 { None } else { Some(take_u32(bytes)?) };
    let expires_ms = if shape & EXPIRES == 0 { None } else { Some(NonZeroU64::new(take_varint(bytes)?)?) };
    let form = Form { chunked: shape & CHUNKED != 0, compressed: shape & COMPRESSED != 0, expires_ms };
    let value = if has_value { Some(take_value(bytes)?) } else { None };
    let location = Location { segment, offset, length };
    Some((Entry { kind, sequence, location, separate, form, inline: None }, value))
}

fn take_value<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_varint(bytes)?).ok()?;
    let (value, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(value)
}

fn take_byte(bytes: &mut &[u8]) -> Option<u8> {
    let (&byte, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(byte)
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}
