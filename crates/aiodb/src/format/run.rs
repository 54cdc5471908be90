//! The bytes of sorted runs, see `docs/format.md`. No I/O here.
//!
//! A file of a run has data blocks, then what is kept in memory while it is open: the filter, the fences and, in its last unit, the
//! footer. Every part is checksummed, and every checksum starts from the file's seed.

pub(crate) mod block;
pub(crate) mod chain;
pub(crate) mod fences;
pub(crate) mod filter;
pub(crate) mod footer;
pub(crate) mod manifest;
pub(crate) mod marks;
pub(crate) mod sealed;
#[cfg(test)]
mod tests;

use crate::checksum::{crc32c, crc32c_append};

/// The longest index key that a run takes.
pub(crate) const MAX_INDEX_KEY_BYTES: usize = 1024;

/// Where every checksum of one file starts, so that bytes of another file never check out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunSeed(u32);

impl RunSeed {
    pub(crate) fn new(store: &[u8; 16], number: u64) -> RunSeed {
        RunSeed(crc32c_append(crc32c(store), &number.to_le_bytes()))
    }

    /// The checksum of bytes that lie at `offset` in the file.
    pub(crate) fn checksum_at(self, offset: u64, bytes: &[u8]) -> u32 {
        crc32c_append(crc32c_append(self.0, &offset.to_le_bytes()), bytes)
    }
}

/// How many bytes two keys have in common at their beginning.
pub(crate) fn shared_bytes(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}
