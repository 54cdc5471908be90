//! Writes a file of a run, from its first key to its last, with large direct writes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use smallvec::SmallVec;

use super::file::{FileParts, Removals, RunFile, hash_of, path_of};
use super::filtering::{EntryMark, worth_asking_ms};
use super::packing::{Packed, Packer};
use crate::budget::{Accounts, Held, Part};
use crate::checksum::{crc32c, crc32c_append};
use crate::format::entry::Entry;
use crate::format::run::RunSeed;
use crate::format::run::block::BlockBuilder;
use crate::format::run::fences::Fences;
use crate::format::run::filter::{BITS_PER_KEY, Filter, MORE_BITS_PER_KEY};
use crate::format::run::footer::Footer;
use crate::format::run::marks::{Marks, NEVER};
use crate::format::run::sealed::BLOCK_CHECKSUM_BYTES;
use crate::index::chain::VersionChain;
use crate::index::codec::table_of;
use crate::io::buffer::AlignedBuffer;
use crate::io::{Access, Device, File, UNIT_BYTES, WriteSync};
use crate::planted::{self, Bug};
use crate::{Compression, Error, Result};

/// Bytes of one write.
const WRITE_BYTES: usize = 256 << 10;

/// A key whose operands have more bytes of inline values than this is written without them: its block would be as long.
const MAX_KEY_VALUE_BYTES: usize = 256 << 10;

/// What a file is told about itself before it has a key.
#[derive(Clone, Copy)]
pub(super) struct Making {
    /// No entry has a lower sequence.
    pub(super) base: u64,
    /// See [`Footer::carried_out`].
    pub(super) carried_out: u64,
    /// The seed of the hashes of keys.
    pub(super) hash_seed: u64,
    /// Whether each put asks the filter: then it has more bits for each key, and memory has it from the start.
    pub(super) is_asked_by_puts: bool,
}

/// A file that is being written; it is removed if it is not finished.
pub(super) struct RunWriter<D: Device> {
    device: D,
    accounts: Arc<Accounts>,
    /// Its own memory.
    held: Held,
    removals: Arc<Removals>,
    path: PathBuf,
    file: D::File,
    store: [u8; 16],
    number: u64,
    seed: RunSeed,
    making: Making,
    buffer: AlignedBuffer,
    /// Bytes of the buffer that are filled, and of the file that are written before them.
    filled: usize,
    written: u64,
    /// Bytes of the file that are flushed.
    flushed: u64,
    /// The table of the last key, and how its blocks are compressed. A block has keys of tables that agree in that.
    table: Option<u32>,
    compression: Compression,
    /// The block where they are not compressed.
    block: BlockBuilder,
    /// Has what comes into the next blocks where they are.
    packer: Option<Packer>,
    /// Bytes of all blocks as they would be without compression.
    plain_bytes: u64,
    /// The first key of the block, and the last one of the block before.
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    smallest_key: Vec<u8>,
    encoded: Vec<u8>,
    fences: Fences,
    /// See [`Footer::blocks_checksum`].
    blocks_checksum: u32,
    hashes: Vec<u64>,
    entries: u64,
    latest_life: u64,
    sequences: (u64, u64),
    /// See [`Footer::has_values`].
    has_values: bool,
    /// The mark of the block, and those of the blocks before; none as long as all of them are [`NEVER`].
    block_mark: u64,
    marks: Vec<u64>,
    /// The earliest of all entries.
    mark: EntryMark,
    /// When filters are to be asked about entries in this process.
    due_ms: Vec<u64>,
    is_finished: bool,
}

impl<D: Device> RunWriter<D> {
    pub(super) fn new(
        (device, accounts): (&D, &Arc<Accounts>),
        (directory, removals): (&Path, &Arc<Removals>),
        store: [u8; 16],
        number: u64,
        making: Making,
    ) -> Result<RunWriter<D>> {
        let path = path_of(directory, number);
        let made = removals.unless_over(|| device.open(&path, Access::NEW_SEGMENT)).ok_or(Error::Closed)?;
        let file = made.map_err(|e| Error::io("create", &path, &e))?;
        Ok(RunWriter {
            device: device.clone(),
            accounts: Arc::clone(accounts),
            held: Held::new(accounts, Part::Buffers, WRITE_BYTES as u64),
            removals: Arc::clone(removals),
            path,
            file,
            store,
            number,
            seed: RunSeed::new(&store, number),
            making,
            buffer: AlignedBuffer::new(WRITE_BYTES),
            filled: 0,
            written: 0,
            flushed: 0,
            table: None,
            compression: Compression::None,
            block: BlockBuilder::new(making.base),
            packer: None,
            plain_bytes: 0,
            first_key: Vec::new(),
            last_key: Vec::new(),
            smallest_key: Vec::new(),
            encoded: Vec::new(),
            fences: Fences::default(),
            blocks_checksum: crc32c(&[]),
            hashes: Vec::new(),
            entries: 0,
            latest_life: 0,
            sequences: (u64::MAX, 0),
            has_values: false,
            block_mark: NEVER,
            marks: Vec::new(),
            mark: EntryMark::NEVER,
            due_ms: Vec::new(),
            is_finished: false,
        })
    }

    /// Adds a key that comes after all others, and what is noted of it for filters; no segment to which its entries lead has a later life
    /// than this. `compression_of` says how blocks of a table are compressed.
    pub(super) fn add(
        &mut self,
        key: &[u8],
        chain: &VersionChain,
        latest_life: u64,
        mark: EntryMark,
        compression_of: &dyn Fn(u32) -> Compression,
    ) -> Result<()> {
        self.come_to(table_of(key), compression_of)?;
        let without_values: SmallVec<[Entry; 1]>;
        let entries = if chain.inline_bytes() > MAX_KEY_VALUE_BYTES {
            without_values = chain.entries().iter().map(Entry::without_value).collect();
            &without_values
        } else {
            chain.entries()
        };
        if let Some(packer) = &mut self.packer {
            packer.add(key, entries, chain.is_partial(), mark.mark);
            self.pack(Packer::is_full)?;
        } else {
            if !self.block.add(key, entries, chain.is_partial()) {
                self.finish_block()?;
                let fits = self.block.add(key, entries, chain.is_partial());
                assert!(fits, "a key fits into a block of its own");
            }
            if self.first_key.is_empty() {
                self.first_key.extend_from_slice(key);
            }
            self.block_mark = self.block_mark.min(mark.mark);
        }
        if self.hashes.is_empty() {
            self.smallest_key.extend_from_slice(key);
        }
        self.hashes.push(hash_of(self.making.hash_seed, key));
        if mark.mark != NEVER {
            self.mark = self.mark.least(mark);
            self.due_ms.extend(Some(mark.next_due_ms).filter(|due_ms| *due_ms != NEVER));
        }
        self.entries += entries.len() as u64;
        self.latest_life = self.latest_life.max(latest_life);
        for entry in entries {
            self.sequences.0 = self.sequences.0.min(entry.sequence);
            self.sequences.1 = self.sequences.1.max(entry.sequence);
            self.has_values |= entry.inline.is_some();
        }
        Ok(())
    }

    /// Bytes of the blocks so far.
    pub(super) fn bytes(&self) -> u64 {
        let waiting = self.packer.as_ref().map_or(0, Packer::waiting_bytes);
        self.offset() + (self.block.bytes() + waiting) as u64
    }

    /// Where the next block begins in the file.
    fn offset(&self) -> u64 {
        self.written + self.filled as u64
    }

    /// Cuts the block where a table begins whose blocks are compressed in another way.
    fn come_to(&mut self, table: u32, compression_of: &dyn Fn(u32) -> Compression) -> Result<()> {
        if self.table == Some(table) {
            return Ok(());
        }
        let compression = compression_of(table);
        if self.compression != compression {
            if !planted::is_on(Bug::BlockUncutAtTable) {
                self.finish_blocks()?;
            }
            self.packer = compression.compressor().map(|compressor| Packer::new(compressor, self.making.base));
        }
        (self.table, self.compression) = (Some(table), compression);
        Ok(())
    }

    /// Writes all keys that are not in a block yet.
    fn finish_blocks(&mut self) -> Result<()> {
        self.pack(|packer| !packer.is_empty())?;
        if self.block.keys() > 0 { self.finish_block() } else { Ok(()) }
    }

    fn finish_block(&mut self) -> Result<()> {
        let (first_key, last_key) = (std::mem::take(&mut self.first_key), self.block.last_key().to_vec());
        let mut encoded = std::mem::take(&mut self.encoded);
        let units = self.block.finish(self.seed, self.offset(), &mut encoded);
        let mark = std::mem::replace(&mut self.block_mark, NEVER);
        self.put_block(Packed { units, first_key, last_key, mark, plain_bytes: None }, encoded)
    }

    /// Packs keys that wait, as long as `is_due` says so.
    fn pack(&mut self, is_due: impl Fn(&Packer) -> bool) -> Result<()> {
        let (seed, mut offset) = (self.seed, self.offset());
        while let Some(packer) = self.packer.as_mut().filter(|packer| is_due(packer)) {
            let mut encoded = std::mem::take(&mut self.encoded);
            let packed = packer.pack(seed, offset, &mut encoded);
            self.put_block(packed, encoded)?;
            offset = self.offset();
        }
        Ok(())
    }

    /// Writes a block, which has these bytes.
    fn put_block(&mut self, block: Packed, mut encoded: Vec<u8>) -> Result<()> {
        let Packed { units, first_key, last_key, mark, plain_bytes } = block;
        self.fences.add(&self.last_key, &first_key, units);
        self.marks.push(mark);
        self.blocks_checksum = crc32c_append(self.blocks_checksum, &encoded[..BLOCK_CHECKSUM_BYTES]);
        self.last_key = last_key;
        self.plain_bytes += plain_bytes.unwrap_or(encoded.len()) as u64;
        self.put(&encoded)?;
        encoded.clear();
        self.encoded = encoded;
        Ok(())
    }

    /// See [`Footer::plain_units`]. A compressed block saves a unit at least.
    fn plain_units(&self) -> u32 {
        let units = u32::try_from(self.plain_bytes.div_ceil(UNIT_BYTES as u64)).expect("a file of a run is bounded");
        if units > self.fences.units() { units } else { 0 }
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

    /// Fills up a unit with zeros.
    fn pad(&mut self) -> Result<()> {
        let end = self.filled.next_multiple_of(UNIT_BYTES);
        self.buffer[self.filled..end].fill(0);
        self.filled = end;
        if self.filled == self.buffer.len() { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let written = self.file.write_at(&self.buffer[..self.filled], self.written, WriteSync::Later);
        written.map_err(|e| Error::io("write", &self.path, &e))?;
        self.written += self.filled as u64;
        self.filled = 0;
        let hashes = self.hashes.capacity() * size_of::<u64>();
        self.held.set((WRITE_BYTES + hashes + self.fences.memory_bytes()) as u64);
        Ok(())
    }

    /// Flushes what is written, so that the file's descriptor may be closed until more is.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.flushed < self.written {
            self.file.sync().map_err(|e| Error::io("flush", &self.path, &e))?;
            self.flushed = self.written;
        }
        Ok(())
    }

    /// Finishes the file, which has a key at least, and makes its bytes durable; its name is durable once its directory is flushed.
    pub(super) fn finish(mut self) -> Result<Arc<RunFile<D>>> {
        self.finish_blocks()?;
        let largest_key = std::mem::take(&mut self.last_key).into();
        if planted::is_on(Bug::RunFilterForgetsKey) {
            let last = self.hashes.len() - 1;
            self.hashes[last] = self.hashes[0];
        }
        let is_filter_kept = self.making.is_asked_by_puts;
        let filter = Filter::new(&self.hashes, if is_filter_kept { MORE_BITS_PER_KEY } else { BITS_PER_KEY });
        let (filter_bytes, fence_bytes) = (filter.encode(), self.fences.encode());
        let has_marks = self.mark.mark != NEVER;
        let blocks = std::mem::take(&mut self.marks);
        let marks = has_marks.then_some(Marks { due_ms: self.mark.due_ms, blocks });
        let mark_bytes = marks.as_ref().map(Marks::encode).unwrap_or_default();
        let mut footer = Footer {
            number: self.number,
            data_units: self.fences.units(),
            filter_bytes: u32::try_from(filter_bytes.len()).expect("a file of a run is bounded"),
            filter_checksum: 0,
            fence_bytes: u32::try_from(fence_bytes.len()).expect("a file of a run is bounded"),
            fence_checksum: 0,
            mark_bytes: u32::try_from(mark_bytes.len()).expect("a file of a run is bounded"),
            mark_checksum: 0,
            plain_units: self.plain_units(),
            blocks_checksum: self.blocks_checksum,
            keys: self.hashes.len() as u64,
            entries: self.entries,
            smallest_sequence: self.sequences.0,
            largest_sequence: self.sequences.1,
            next_life: self.latest_life + 1,
            carried_out: self.making.carried_out,
            has_values: self.has_values,
            smallest_key: std::mem::take(&mut self.smallest_key).into(),
            largest_key,
        };
        let parts = footer.parts();
        footer.filter_checksum = self.seed.checksum_at(parts.filter, &filter_bytes);
        footer.fence_checksum = self.seed.checksum_at(parts.fences, &fence_bytes);
        if has_marks {
            footer.mark_checksum = self.seed.checksum_at(parts.marks, &mark_bytes);
        }
        for part in [&filter_bytes, &fence_bytes, &mark_bytes, &footer.encode(&self.store)] {
            self.put(part)?;
            self.pad()?;
        }
        if self.filled > 0 {
            self.write()?;
        }
        if !planted::is_on(Bug::RunUnflushed) {
            self.file.sync().map_err(|e| Error::io("flush", &self.path, &e))?;
        }
        self.is_finished = true;
        let (path, file) = (self.path.clone(), self.file.clone());
        let mut fences = std::mem::take(&mut self.fences);
        fences.shrink();
        let next_due_ms = worth_asking_ms(std::mem::take(&mut self.due_ms), self.hashes.len());
        let parts = FileParts { footer, fences, filter, is_filter_kept, marks, next_due_ms };
        Ok(RunFile::written((&self.device, &self.accounts), (path, file), self.seed, parts))
    }
}

impl<D: Device> Drop for RunWriter<D> {
    fn drop(&mut self) {
        if !self.is_finished {
            // If this fails, the next opening removes it.
            self.removals.unless_over(|| drop(self.device.remove(&self.path)));
        }
    }
}
