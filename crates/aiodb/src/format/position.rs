//! A place between two batches, and its bytes.

use crate::format::segment::{self};

/// A place between two batches: the last batch before it, and where that one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) batch: u64,
    /// The header checksum of that batch: the next one must name it.
    pub(crate) checksum: u32,
    pub(crate) segment: u32,
    pub(crate) life: u64,
    pub(crate) offset: u64,
}

/// Bytes of an encoded position.
pub(crate) const POSITION_BYTES: usize = 32;

impl Position {
    /// Before the first batch.
    pub(crate) const START: Position = Position { batch: 0, checksum: 0, segment: 0, life: 0, offset: 0 };

    pub(crate) fn encode(&self, out: &mut [u8]) {
        segment::put(out, 0, &self.batch.to_le_bytes());
        segment::put(out, 8, &self.segment.to_le_bytes());
        segment::put(out, 12, &self.checksum.to_le_bytes());
        segment::put(out, 16, &self.life.to_le_bytes());
        segment::put(out, 24, &self.offset.to_le_bytes());
    }

    pub(crate) fn decode(bytes: &[u8]) -> Position {
        Position {
            batch: segment::u64_at(bytes, 0),
            segment: segment::u32_at(bytes, 8),
            checksum: segment::u32_at(bytes, 12),
            life: segment::u64_at(bytes, 16),
            offset: segment::u64_at(bytes, 24),
        }
    }
}
