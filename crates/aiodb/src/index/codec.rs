//! The bytes of keys and version chains in ordered indexes, see `docs/format.md`. No I/O here.

use std::num::NonZeroU64;

use sha2::{Digest, Sha256};
use smallvec::SmallVec;

use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::format::segment::{put, u32_at, u64_at};
use crate::index::chain::{Entry, VersionChain};

/// Keys up to this length are stored whole; LMDB's limit is 511 bytes with the table's id, and all ordered indexes have the same keys.
pub(crate) const MAX_WHOLE_KEY_BYTES: usize = 479;
/// Of a longer key so many bytes are stored before its digest, so that keys are in order as far as these tell. No whole key is
/// as long as prefix and digest together.
pub(crate) const LONG_KEY_PREFIX_BYTES: usize = 448;

const ENTRY_BYTES: usize = 40;

pub(crate) type Key = SmallVec<[u8; 64]>;

/// The key under which a user's key is stored.
pub(crate) fn encode_key(table: u32, key: &[u8]) -> Key {
    let mut out = Key::new();
    out.extend_from_slice(&table.to_be_bytes());
    if key.len() <= MAX_WHOLE_KEY_BYTES {
        out.extend_from_slice(key);
    } else {
        out.extend_from_slice(&key[..LONG_KEY_PREFIX_BYTES]);
        out.extend_from_slice(&Sha256::digest(key));
    }
    out
}

/// A table's key as it is, for the bounds of ranges: a bound that is no longer than [`LONG_KEY_PREFIX_BYTES`] is in the right
/// order with stored keys.
pub(crate) fn prefix_key(table: u32, key: &[u8]) -> Vec<u8> {
    [&table.to_be_bytes(), key].concat()
}

/// The key under which versions of a key of a `hash` table are retained: shard by shard, as scans go through such a table.
pub(crate) fn hashed_key(table: u32, hash: u64, key: &[u8]) -> Vec<u8> {
    [&table.to_be_bytes()[..], &hash.to_be_bytes(), key].concat()
}

/// Bytes of a [`tag_key`].
pub(crate) const TAG_KEY_BYTES: usize = 9;

/// The key in runs of what a `hash` table has under a tag: the highest 40 bits of its hash, of which the index knows 37, come after the table.
pub(crate) fn tag_key(table: u32, hash: u64) -> [u8; TAG_KEY_BYTES] {
    let mut out = [0; TAG_KEY_BYTES];
    out[..4].copy_from_slice(&table.to_be_bytes());
    out[4..].copy_from_slice(&hash.to_be_bytes()[..TAG_KEY_BYTES - 4]);
    out
}

/// The hash in a [`tag_key`]; `None` of any other key.
pub(crate) fn hash_of_tag_key(key: &[u8]) -> Option<u64> {
    let key: &[u8; TAG_KEY_BYTES] = key.try_into().ok()?;
    let mut hash = [0; 8];
    hash[..TAG_KEY_BYTES - 4].copy_from_slice(&key[4..]);
    Some(u64::from_be_bytes(hash))
}

/// Bytes of a [`hashed_key`] before the key itself.
pub(crate) const HASHED_KEY_PREFIX_BYTES: usize = 12;

/// The table and the key of an index key; `None` for a key that was too long to be stored whole.
pub(crate) fn decode_key(index_key: &[u8]) -> Option<(u32, &[u8])> {
    (index_key.len() <= 4 + MAX_WHOLE_KEY_BYTES).then(|| (table_of(index_key), &index_key[4..]))
}

pub(crate) fn table_of(index_key: &[u8]) -> u32 {
    u32::from_be_bytes([index_key[0], index_key[1], index_key[2], index_key[3]])
}

const SHAPE_RECORD: u8 = 1;
const SHAPE_SEPARATE: u8 = 2;
const SHAPE_CHUNKED: u8 = 16;
const SHAPE_COMPRESSED: u8 = 32;

pub(crate) fn encode_chain(chain: &VersionChain) -> Vec<u8> {
    let mut out = vec![0; chain.entries().len() * ENTRY_BYTES];
    for (entry, out) in chain.entries().iter().zip(out.chunks_exact_mut(ENTRY_BYTES)) {
        put(out, 0, &entry.sequence.to_le_bytes());
        put(out, 8, &entry.location.segment.to_le_bytes());
        put(out, 12, &entry.location.offset.to_le_bytes());
        put(out, 16, &entry.location.length.to_le_bytes());
        put(out, 20, &entry.separate.unwrap_or(0).to_le_bytes());
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let shape = if entry.separate.is_some() { SHAPE_SEPARATE } else { SHAPE_RECORD };
        out[24] = shape | flag(entry.form.chunked, SHAPE_CHUNKED) | flag(entry.form.compressed, SHAPE_COMPRESSED);
        out[25] = entry.kind as u8;
        put(out, 32, &entry.form.expires_ms.map_or(0, NonZeroU64::get).to_le_bytes());
    }
    out
}

#[inline]
pub(crate) fn decode_chain(bytes: &[u8]) -> Option<VersionChain> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(ENTRY_BYTES) {
        return None;
    }
    let mut chain = VersionChain::default();
    for entry in bytes.chunks_exact(ENTRY_BYTES) {
        chain.push_oldest(decode_entry(entry)?);
    }
    Some(chain)
}

fn decode_entry(bytes: &[u8]) -> Option<Entry> {
    let shape = bytes[24];
    let kind = match bytes[25] {
        kind if kind == Kind::Put as u8 => Kind::Put,
        kind if kind == Kind::Merge as u8 => Kind::Merge,
        _ => return None,
    };
    let location = Location { segment: u32_at(bytes, 8), offset: u32_at(bytes, 12), length: u32_at(bytes, 16) };
    let form = Form {
        chunked: shape & SHAPE_CHUNKED != 0,
        compressed: shape & SHAPE_COMPRESSED != 0,
        expires_ms: NonZeroU64::new(u64_at(bytes, 32)),
    };
    let separate = (shape & SHAPE_SEPARATE != 0).then(|| u32_at(bytes, 20));
    Some(Entry { kind, sequence: u64_at(bytes, 0), location, separate, form, inline: None })
}
