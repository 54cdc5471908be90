//! How keys come into compressed blocks: as many into each as one unit takes once they are compressed.
//!
//! A get reads no more for such a block than for another one, and no unit is left half empty, as units of blocks of a fixed length would be. How
//! many keys that are is guessed by the block before; those that are too many wait for the next one.

use std::collections::VecDeque;

use crate::format::compression::Compressor;
use crate::format::entry::Entry;
use crate::format::run::RunSeed;
use crate::format::run::block::BlockBuilder;
use crate::format::run::chain::encode_chain;
use crate::format::run::marks::NEVER;
use crate::format::run::sealed::{COMPRESSED_HEADER_BYTES, MAX_COMPRESSED_BYTES, seal_compressed};
use crate::format::run::shared_bytes;
use crate::io::UNIT_BYTES;
use crate::planted::{self, Bug};

/// The most bytes of a block before they are compressed: a look-up decompresses all of them for one key. The smallest cache takes an entry of
/// so many.
const MAX_PLAIN_BYTES: usize = 4 * UNIT_BYTES - 64;

/// The least goal: where not even so many bytes come down to a unit, as many as a unit takes are stored as they are.
const MIN_PLAIN_BYTES: usize = UNIT_BYTES + UNIT_BYTES / 4;

/// Bytes of a key in a block besides its own and those of its records, about.
const KEY_OVERHEAD_BYTES: usize = 3;

/// Keys that wait to be packed into compressed blocks.
pub(super) struct Packer {
    compressor: Compressor,
    base: u64,
    block: BlockBuilder,
    /// The keys and their encoded records, one after the other.
    bytes: Vec<u8>,
    waiting: VecDeque<Waiting>,
    /// Where the last key begins in `bytes`.
    last_key: usize,
    /// Bytes that all would have in one block, about.
    waiting_bytes: usize,
    /// Bytes of which the next block is to be made.
    goal_bytes: usize,
    plain: Vec<u8>,
}

/// A key that waits.
struct Waiting {
    key_bytes: usize,
    chain_bytes: usize,
    /// Bytes that it has in a block, about.
    packed_bytes: usize,
    mark: u64,
}

/// A block that was packed.
pub(super) struct Packed {
    pub(super) units: usize,
    pub(super) first_key: Vec<u8>,
    pub(super) last_key: Vec<u8>,
    /// The least mark of its keys.
    pub(super) mark: u64,
    /// Its bytes before they were compressed; `None` if it is as it was.
    pub(super) plain_bytes: Option<usize>,
}

impl Packer {
    /// Packs keys none of whose entries has a sequence below `base`.
    pub(super) fn new(compressor: Compressor, base: u64) -> Packer {
        Packer {
            compressor,
            base,
            block: BlockBuilder::new(base),
            bytes: Vec::new(),
            waiting: VecDeque::new(),
            last_key: 0,
            waiting_bytes: 0,
            goal_bytes: MAX_PLAIN_BYTES,
            plain: Vec::new(),
        }
    }

    /// Bytes that all keys would have in one block, about.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Whether no key waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a block can be made of what waits.
    pub(super) fn is_full(&self) -> bool {
        self.waiting_bytes >= self.goal_bytes
    }

    /// Adds a key that comes after all others, with its entries and the mark that its block must have at most.
    pub(super) fn add(&mut self, key: &[u8], entries: &[Entry], partial: bool, mark: u64) {
        let known = self.waiting.back().map_or(&[][..], |last| &self.bytes[self.last_key..][..last.key_bytes]);
        let shared = shared_bytes(known, key);
        self.last_key = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let chain = self.bytes.len();
        encode_chain(&mut self.bytes, entries, partial, self.base);
        let chain_bytes = self.bytes.len() - chain;
        let packed_bytes = key.len() - shared + chain_bytes + KEY_OVERHEAD_BYTES;
        self.waiting.push_back(Waiting { key_bytes: key.len(), chain_bytes, packed_bytes, mark });
        self.waiting_bytes += packed_bytes;
    }

    /// Makes a block of the first keys, of which there is one at least, and appends its bytes, which will lie at `offset` in the file.
    pub(super) fn pack(&mut self, seed: RunSeed, offset: u64, out: &mut Vec<u8>) -> Packed {
        let mut most_bytes = self.goal_bytes;
        let mut tried = 0;
        loop {
            self.fill(most_bytes);
            tried = tried.max(self.block.keys());
            let (keys, plain_bytes) = (self.block.keys(), self.block.bytes());
            let plain_units = plain_bytes.div_ceil(UNIT_BYTES);
            if plain_units == 1 {
                return self.take_uncompressed(keys, seed, offset, out);
            }
            let compressed = self.compress();
            let bytes =
                compressed.as_ref().map_or(plain_bytes, |compressed| COMPRESSED_HEADER_BYTES + compressed.len());
            let units = bytes.div_ceil(UNIT_BYTES);
            let fitting_bytes = fitting(plain_bytes, bytes);
            if let Some(compressed) = compressed.filter(|_| units == 1 || keys == 1 && units < plain_units) {
                if keys > 1 {
                    self.goal_bytes = fitting_bytes.clamp(MIN_PLAIN_BYTES, MAX_PLAIN_BYTES);
                }
                let units = seal_compressed(&compressed, seed, offset, out);
                let taken = if planted::is_on(Bug::PackedKeysLost) { tried } else { keys };
                return Packed { plain_bytes: Some(plain_bytes), ..self.take(taken, units) };
            }
            if keys == 1 {
                return self.take_uncompressed(keys, seed, offset, out);
            }
            // Less each time, by a sixteenth at least.
            most_bytes = if fitting_bytes < MIN_PLAIN_BYTES { UNIT_BYTES } else { fitting_bytes };
            self.goal_bytes = most_bytes.max(MIN_PLAIN_BYTES);
        }
    }

    /// Fills a block with the first keys that wait: with so many bytes of them at most, and one key at least.
    fn fill(&mut self, most_bytes: usize) {
        self.block.begin(most_bytes);
        let mut rest = &self.bytes[..];
        for Waiting { key_bytes, chain_bytes, .. } in &self.waiting {
            let (key, behind) = rest.split_at(*key_bytes);
            let (chain, behind) = behind.split_at(*chain_bytes);
            if !self.block.add_encoded(key, chain) {
                return;
            }
            rest = behind;
        }
    }

    /// The compressed form of the block, if it can have one.
    fn compress(&mut self) -> Option<Vec<u8>> {
        if self.block.bytes() > MAX_COMPRESSED_BYTES {
            return None;
        }
        self.plain.clear();
        self.block.encode(&mut self.plain);
        self.compressor.compress(&self.plain)
    }

    fn take_uncompressed(&mut self, keys: usize, seed: RunSeed, offset: u64, out: &mut Vec<u8>) -> Packed {
        let units = self.block.finish(seed, offset, out);
        self.take(keys, units)
    }

    /// Takes out the first keys, which are in a block of so many units.
    fn take(&mut self, keys: usize, units: usize) -> Packed {
        let (mut bytes, mut mark, mut last_key) = (0, NEVER, 0..0);
        let first_key = self.bytes[..self.waiting[0].key_bytes].to_vec();
        for taken in self.waiting.drain(..keys) {
            last_key = bytes..bytes + taken.key_bytes;
            bytes += taken.key_bytes + taken.chain_bytes;
            self.waiting_bytes -= taken.packed_bytes;
            mark = mark.min(taken.mark);
        }
        let last_key = self.bytes[last_key].to_vec();
        self.bytes.drain(..bytes);
        self.last_key = self.last_key.saturating_sub(bytes);
        Packed { units, first_key, last_key, mark, plain_bytes: None }
    }
}

/// Bytes of which a unit may be filled for the most part, if so many have become so many others.
fn fitting(plain_bytes: usize, compressed_bytes: usize) -> usize {
    plain_bytes * UNIT_BYTES / compressed_bytes / 16 * 15
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
