//! A blocked Bloom filter: all bits of a key lie in one cache line, so that a look-up for a key that is not there costs one
//! access to memory.

use crate::format::segment::u64_at;

/// Bits for each key: a look-up of a key that is not there reads a block for about one key in a hundred.
pub(crate) const BITS_PER_KEY: u64 = 10;

/// Bits for each key where a look-up of a key that is not there is part of each put: about one in five hundred reads a block.
pub(crate) const MORE_BITS_PER_KEY: u64 = 14;

/// Bits that are set for each key.
const PROBES: u32 = 7;

const LINE_BYTES: usize = 64;
const LINE_BITS: u64 = 8 * LINE_BYTES as u64;

/// Bits of a hash that choose a bit of a line.
const BIT_OF_LINE: u32 = LINE_BITS.trailing_zeros();

/// An odd number with irregular bits: it makes bits within the line independent of the line.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
struct Line([u64; 8]);

/// The filter of a file's keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter(Vec<Line>);

impl Filter {
    /// The filter of keys with these hashes, with so many bits for each.
    pub(crate) fn new(hashes: &[u64], bits_per_key: u64) -> Filter {
        let lines = (hashes.len() as u64 * bits_per_key).div_ceil(LINE_BITS);
        let mut filter = Filter(vec![Line::default(); lines as usize]);
        for &hash in hashes {
            let number = filter.line_of(hash);
            let line = &mut filter.0[number].0;
            bits(hash).for_each(|bit| line[bit / 64] |= 1 << (bit % 64));
        }
        filter
    }

    /// Whether a key with this hash may be there. No branch depends on the line: the processor loads those of several filters at a time.
    #[inline]
    pub(crate) fn may_contain(&self, hash: u64) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let line = &self.0[self.line_of(hash)].0;
        bits(hash).fold(1, |all, bit| all & (line[bit / 64] >> (bit % 64))) & 1 == 1
    }

    fn line_of(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.0.len() as u128) >> 64) as usize
    }

    /// Bytes that this takes in memory, and on disk.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len() * LINE_BYTES
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.0.iter().flat_map(|line| line.0).flat_map(u64::to_le_bytes).collect()
    }

    /// The filter in these bytes; `None` where they are no whole lines.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Filter> {
        let (lines, rest) = bytes.as_chunks::<LINE_BYTES>();
        let line = |bytes: &[u8; LINE_BYTES]| Line(std::array::from_fn(|word| u64_at(bytes, 8 * word)));
        rest.is_empty().then(|| Filter(lines.iter().map(line).collect()))
    }
}

/// The bits of a line that a hash sets.
fn bits(hash: u64) -> impl Iterator<Item = usize> {
    let spread = hash.wrapping_mul(SPREAD).rotate_left(32);
    (0..PROBES).map(move |probe| (spread >> (probe * BIT_OF_LINE)) as usize & (LINE_BITS as usize - 1))
}
