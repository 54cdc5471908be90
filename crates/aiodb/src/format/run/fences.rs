//! Fences: for each block a key that is above all keys of the block before and not above its own, and as short as that allows.

use super::{MAX_INDEX_KEY_BYTES, shared_bytes};
use crate::format::varint::{put_varint, take_varint};

/// The fences of a file, as they are in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fences {
    /// All fences, one after the other.
    keys: Vec<u8>,
    /// Where each ends in `keys`.
    ends: Vec<u32>,
    /// The unit at which each block ends.
    block_ends: Vec<u32>,
}

impl Fences {
    /// How many blocks there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds a block of so many units, whose first key is `first`; `last` is the last key of the block before.
    pub(crate) fn add(&mut self, last: &[u8], first: &[u8], units: usize) {
        let length = if self.len() == 0 { 0 } else { shared_bytes(last, first) + 1 };
        self.push(&first[..length.min(first.len())], units as u32);
    }

    fn push(&mut self, fence: &[u8], units: u32) {
        self.keys.extend_from_slice(fence);
        self.ends.push(u32::try_from(self.keys.len()).expect("a file's fences are far below 4 GiB"));
        self.block_ends.push(self.units() + units);
    }

    /// Units of all blocks.
    pub(crate) fn units(&self) -> u32 {
        self.block_ends.last().copied().unwrap_or(0)
    }

    /// A key that is not above the first of a block, and above all keys of the block before.
    pub(crate) fn fence(&self, block: usize) -> &[u8] {
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        &self.keys[start as usize..self.ends[block] as usize]
    }

    /// The only block that a key may be in. There must be one block at least, whose fence is empty.
    pub(crate) fn block_of(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.fence(middle) <= key { low = middle } else { high = middle }
        }
        low
    }

    /// The block that has a unit, which must be one of a block.
    pub(crate) fn block_at(&self, unit: u32) -> usize {
        self.block_ends.partition_point(|end| *end <= unit)
    }

    /// The units of a block: its first, and the first after it.
    pub(crate) fn units_of(&self, block: usize) -> (u32, u32) {
        let start = if block == 0 { 0 } else { self.block_ends[block - 1] };
        (start, self.block_ends[block])
    }

    /// Gives back the memory that was set aside for more blocks.
    pub(crate) fn shrink(&mut self) {
        self.keys.shrink_to_fit();
        self.ends.shrink_to_fit();
        self.block_ends.shrink_to_fit();
    }

    /// Bytes that this takes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.capacity() + (self.ends.capacity() + self.block_ends.capacity()) * size_of::<u32>()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for block in 0..self.len() {
            let (start, end) = self.units_of(block);
            let fence = self.fence(block);
            let shared = if block == 0 { 0 } else { shared_bytes(self.fence(block - 1), fence) };
            put_varint(&mut out, u64::from(end - start));
            put_varint(&mut out, shared as u64);
            put_varint(&mut out, (fence.len() - shared) as u64);
            out.extend_from_slice(&fence[shared..]);
        }
        out
    }

    /// The fences in these bytes; `None` where they are malformed.
    pub(crate) fn decode(mut bytes: &[u8]) -> Option<Fences> {
        let (mut fences, mut fence) = (Fences::default(), Vec::new());
        while !bytes.is_empty() {
            let units = u32::try_from(take_varint(&mut bytes)?).ok()?;
            let shared = usize::try_from(take_varint(&mut bytes)?).ok()?;
            let unshared = usize::try_from(take_varint(&mut bytes)?).ok()?;
            let (suffix, rest) = bytes.split_at_checked(unshared)?;
            let previous = fence.get(..shared)?;
            let is_above = if fences.len() == 0 { suffix.is_empty() } else { [previous, suffix].concat() > fence };
            if !is_above || units == 0 || fences.units().checked_add(units).is_none() {
                return None;
            }
            fence.truncate(shared);
            fence.extend_from_slice(suffix);
            // Many fences share much: few bytes must not become gigabytes.
            if fence.len() > MAX_INDEX_KEY_BYTES {
                return None;
            }
            fences.push(&fence, units);
            bytes = rest;
        }
        fences.shrink();
        Some(fences)
    }
}
