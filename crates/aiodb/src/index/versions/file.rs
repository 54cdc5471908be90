//! A file of versions, from its first key to its last, and what is kept in memory of it.

use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;

use super::scratch::ScratchFile;
use crate::Result;
use crate::budget::{Accounts, Held, Part};
use crate::format::manifest::damage_error;
use crate::format::run::RunSeed;
use crate::format::run::fences::Fences;
use crate::format::run::filter::{BITS_PER_KEY, Filter};
use crate::format::versions::{BlockBuilder, KeyVersions, KeyWithVersions, decode_block};
use crate::io::{AlignedBuffer, UNIT_BYTES};
use crate::planted::{self, Bug};

/// Bytes of one write.
const WRITE_BYTES: usize = 256 << 10;

/// What can be done about a damaged file.
const ADVICE: &str = "end the snapshot and take another one";

/// A file that is whole. It is removed when the last reader leaves it.
pub(super) struct VersionFile {
    file: Box<dyn ScratchFile>,
    seed: RunSeed,
    pub(super) fences: Fences,
    filter: Filter,
    pub(super) smallest_key: Box<[u8]>,
    pub(super) largest_key: Box<[u8]>,
    /// What is in memory of it.
    _held: Held,
}

impl VersionFile {
    /// The block that may have a key.
    pub(super) fn block_of(&self, key: &[u8]) -> Option<usize> {
        self.filter.may_contain(xxh3_64(key)).then(|| self.fences.block_of(key))
    }

    /// The versions of a key in the block of this number; none if it is not there.
    pub(super) fn find(&self, key: &[u8], block: usize, bytes: &[u8]) -> Result<KeyVersions> {
        let keys = self.decode(block, bytes)?;
        Ok(keys.into_iter().find(|(known, _)| **known == *key).map(|(_, versions)| versions).unwrap_or_default())
    }

    /// The file itself.
    pub(super) fn scratch(&self) -> &dyn ScratchFile {
        &*self.file
    }

    /// Reads units.
    pub(super) fn read(&self, start: u32, end: u32) -> Result<AlignedBuffer> {
        let mut buffer = AlignedBuffer::new((end - start) as usize * UNIT_BYTES);
        self.file.read(&mut buffer, u64::from(start) * UNIT_BYTES as u64)?;
        Ok(buffer)
    }

    /// The keys of the block of this number in its units.
    pub(super) fn decode(&self, block: usize, bytes: &[u8]) -> Result<Vec<KeyWithVersions>> {
        let offset = u64::from(self.fences.units_of(block).0) * UNIT_BYTES as u64;
        decode_block(bytes, self.seed, offset).map_err(|damage| damage_error(self.file.path(), offset, damage, ADVICE))
    }

    /// Bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.fences.units()) * UNIT_BYTES as u64
    }
}

/// A file that is being written; it is removed if it is not finished.
pub(super) struct VersionWriter {
    accounts: Arc<Accounts>,
    /// Its own memory.
    held: Held,
    file: Box<dyn ScratchFile>,
    seed: RunSeed,
    buffer: AlignedBuffer,
    /// Bytes of the buffer that are filled, and of the file that are written before them.
    filled: usize,
    written: u64,
    block: BlockBuilder,
    encoded: Vec<u8>,
    /// The first key of the block, and the last one of the block before.
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    smallest_key: Vec<u8>,
    fences: Fences,
    hashes: Vec<u64>,
}

impl VersionWriter {
    pub(super) fn new(file: Box<dyn ScratchFile>, accounts: &Arc<Accounts>, store: &[u8; 16]) -> VersionWriter {
        VersionWriter {
            accounts: Arc::clone(accounts),
            held: Held::new(accounts, Part::Buffers, WRITE_BYTES as u64),
            seed: RunSeed::new(store, file.number()),
            file,
            buffer: AlignedBuffer::new(WRITE_BYTES),
            filled: 0,
            written: 0,
            block: BlockBuilder::default(),
            encoded: Vec::new(),
            first_key: Vec::new(),
            last_key: Vec::new(),
            smallest_key: Vec::new(),
            fences: Fences::default(),
            hashes: Vec::new(),
        }
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        self.written + (self.filled + self.block.bytes()) as u64
    }

    /// Adds a key that comes after all others.
    pub(super) fn add(&mut self, key: &[u8], versions: &KeyVersions) -> Result<()> {
        if !self.block.add(key, versions) {
            self.finish_block()?;
            let fits = self.block.add(key, versions);
            assert!(fits, "a key fits into a block of its own");
        }
        if self.first_key.is_empty() {
            self.first_key.extend_from_slice(key);
        }
        if self.hashes.is_empty() {
            self.smallest_key.extend_from_slice(key);
        }
        self.hashes.push(xxh3_64(key));
        Ok(())
    }

    fn finish_block(&mut self) -> Result<()> {
        self.encoded.clear();
        let mut encoded = std::mem::take(&mut self.encoded);
        let offset = self.written + self.filled as u64;
        let last_key = self.block.last_key().to_vec();
        let units = self.block.finish(self.seed, offset, &mut encoded);
        self.fences.add(&self.last_key, &self.first_key, units);
        self.last_key = last_key;
        self.first_key.clear();
        self.put(&encoded)?;
        self.encoded = encoded;
        Ok(())
    }

    fn put(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(self.buffer.len() - self.filled));
            self.buffer[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            if self.filled == self.buffer.len() {
                self.write()?;
            }
            bytes = later;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        self.file.write(&self.buffer[..self.filled], self.written)?;
        self.written += self.filled as u64;
        self.filled = 0;
        let hashes = self.hashes.capacity() * size_of::<u64>();
        self.held.set((WRITE_BYTES + hashes + self.fences.memory_bytes()) as u64);
        Ok(())
    }

    /// Finishes the file, which has a key at least.
    pub(super) fn finish(mut self) -> Result<VersionFile> {
        let largest_key = self.block.last_key().into();
        self.finish_block()?;
        if self.filled > 0 {
            self.write()?;
        }
        self.file.finish()?;
        if planted::is_on(Bug::VersionFilterForgetsKey) {
            let last = self.hashes.len() - 1;
            self.hashes[last] = self.hashes[0];
        }
        let VersionWriter { accounts, file, seed, mut fences, hashes, smallest_key, .. } = self;
        fences.shrink();
        let filter = Filter::new(&hashes, BITS_PER_KEY);
        let memory_bytes = (fences.memory_bytes() + filter.bytes()) as u64;
        let held = Held::new(&accounts, Part::Versions, memory_bytes);
        Ok(VersionFile { file, seed, fences, filter, smallest_key: smallest_key.into(), largest_key, _held: held })
    }
}
