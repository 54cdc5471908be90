//! A data block as it lies in the file: whole units, checksummed, as it is or compressed.

use std::borrow::Cow;

use super::RunSeed;
use super::block::MALFORMED;
use crate::format::compression::decompress;
use crate::format::segment::{Damage, put, u16_at, u32_at};
use crate::io::UNIT_BYTES;

/// Bytes of its checksum, with which a block begins.
pub(crate) const BLOCK_CHECKSUM_BYTES: usize = 4;

/// In the place of the number of restart points: no block has so many.
const COMPRESSED: u16 = u16::MAX;

/// Bytes in front of the compressed form.
pub(crate) const COMPRESSED_HEADER_BYTES: usize = 12;

/// The most bytes that are compressed, and the most to which they are decompressed: a key with more has an uncompressed block.
pub(crate) const MAX_COMPRESSED_BYTES: usize = 1 << 20;

/// Fills up the block that begins at `start` with zeros, writes down its units, and its checksum for this `offset` in the file. Returns
/// its units.
pub(super) fn seal(out: &mut Vec<u8>, start: usize, seed: RunSeed, offset: u64) -> usize {
    let units = (out.len() - start).div_ceil(UNIT_BYTES);
    out.resize(start + units * UNIT_BYTES, 0);
    let block = &mut out[start..];
    put(block, 4, &u16::try_from(units).expect("a key's entries are bounded").to_le_bytes());
    let checksum = seed.checksum_at(offset, &block[BLOCK_CHECKSUM_BYTES..]);
    put(block, 0, &checksum.to_le_bytes());
    units
}

/// Appends a block of which this is the compressed form, and which will lie at `offset` in the file. Returns its units.
pub(crate) fn seal_compressed(compressed: &[u8], seed: RunSeed, offset: u64, out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.resize(start + COMPRESSED_HEADER_BYTES, 0);
    put(&mut out[start..], 6, &COMPRESSED.to_le_bytes());
    put(&mut out[start..], 8, &(compressed.len() as u32).to_le_bytes());
    out.extend_from_slice(compressed);
    seal(out, start, seed, offset)
}

/// The bytes of a block as [`super::block::Block::decode`] takes them, from its units, which lie at `offset` in the file. Nothing is
/// decompressed before its checksum is right.
pub(crate) fn unseal(units: &[u8], seed: RunSeed, offset: u64) -> Result<Cow<'_, [u8]>, Damage> {
    if units.len() < UNIT_BYTES || seed.checksum_at(offset, &units[BLOCK_CHECKSUM_BYTES..]) != u32_at(units, 0) {
        return Err(Damage::Checksum);
    }
    if usize::from(u16_at(units, 4)) * UNIT_BYTES != units.len() {
        return Err(MALFORMED);
    }
    if u16_at(units, 6) != COMPRESSED {
        return Ok(Cow::Borrowed(units));
    }
    let length = usize::try_from(u32_at(units, 8)).map_err(|_| MALFORMED)?;
    let compressed = units[COMPRESSED_HEADER_BYTES..].get(..length).ok_or(MALFORMED)?;
    decompress(compressed, MAX_COMPRESSED_BYTES).map(Cow::Owned).map_err(Damage::Foreign)
}
