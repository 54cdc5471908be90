//! The whole path of a get: look the key up, read the place from the pending batches or the device, check the bytes
//! against their checksum and key.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use crate::cache::Reuse;
use crate::catalog::{Generation, TableIndex};
use crate::engine::Engine;
use crate::index::tail::Entry;
use crate::index::{Candidate, Candidates, Location};
use crate::io::{AlignedBuffer, Device, File, UNIT_BYTES};
use crate::log::Segment;
use crate::log::record::{Chunk, Kind, Record, decode_chunks};
use crate::{Error, Result};

/// What the bytes of a candidate turned out to be.
pub(crate) enum Outcome<'a> {
    /// The key's value.
    Value(&'a [u8]),
    /// The key's value lies in chunks.
    Chunks(u64, Vec<Chunk>),
    /// The key was deleted.
    Deleted,
    /// Another key with the same tag.
    OtherKey,
}

impl<D: Device> Engine<D> {
    /// A blocking get: the caller's thread, one read for a value up to a quarter of a segment.
    pub(crate) fn get(&self, generation: &Arc<Generation>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let pin = self.pins.pin();
        let value = self.get_pinned(generation, key);
        self.pins.unpin(pin);
        value
    }

    fn get_pinned(&self, generation: &Arc<Generation>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut candidates = Candidates::new();
        self.lookup(generation, key, &mut candidates)?;
        for candidate in &candidates {
            if let Some(cached) = self.cached(candidate.location, generation.id, key) {
                return Ok(Some(cached.value().to_vec()));
            }
            let outcome = self.with_bytes(candidate.location, |bytes| {
                Ok(match self.interpret(generation.id, key, candidate, bytes)? {
                    Outcome::Value(value) => {
                        self.keep(candidate.location, generation.id, key, value, Reuse::Likely);
                        Some(Ok(Some(value.to_vec())))
                    }
                    Outcome::Chunks(length, chunks) => Some(Err((length, chunks))),
                    Outcome::Deleted => Some(Ok(None)),
                    Outcome::OtherKey => None,
                })
            })?;
            match outcome {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err((length, chunks))) => return self.read_chunks(length, &chunks).map(Some),
                None => {}
            }
        }
        Ok(None)
    }

    /// The places where the key's value may be, newest first.
    pub(crate) fn lookup(&self, generation: &Generation, key: &[u8], found: &mut Candidates) -> Result<()> {
        found.clear();
        match &generation.index {
            TableIndex::Lmdb => found.extend(self.lmdb().lookup(generation.id, key)?),
            TableIndex::Hash(index) => {
                let mut locations = SmallVec::new();
                index.lookup(self.hash(key), &mut locations);
                let whole = |location| Candidate { location, separate: None, chunked: false, exact: false };
                found.extend(locations.into_iter().map(whole));
            }
        }
        self.meters.looked_up(found.len());
        Ok(())
    }

    /// The bytes of a location that must be read: a size class's bound may reach beyond the record.
    pub(crate) fn read_length(&self, location: Location) -> usize {
        let in_unit = location.offset as usize % UNIT_BYTES;
        let length = location.length as usize;
        // What fits a unit lies in one unit.
        let length = if length <= UNIT_BYTES { length.min(UNIT_BYTES - in_unit) } else { length };
        length.min((self.segments.segment_bytes - u64::from(location.offset)) as usize)
    }

    /// Whether the place is on the device; otherwise it is (or was a moment ago) in a pending batch.
    pub(crate) fn is_written(&self, segment: &Segment<D>, location: Location) -> bool {
        u64::from(location.offset) < segment.written_end.load(Ordering::Acquire)
    }

    /// Checks the bytes at a candidate's location and says what they are to this key.
    pub(crate) fn interpret<'a>(
        &self,
        table: u32,
        key: &[u8],
        candidate: &Candidate,
        bytes: &'a [u8],
    ) -> Result<Outcome<'a>> {
        let location = candidate.location;
        if let Some(checksum) = candidate.separate {
            let seed = self.segments.get(location.segment).seed();
            if seed.checksum_at(location.offset, bytes) != checksum {
                return Err(self.damaged(location, "a value whose checksum does not match"));
            }
            return if candidate.chunked { self.chunks(location, bytes) } else { Ok(Outcome::Value(bytes)) };
        }
        let record = self.decode(location, bytes)?;
        if record.key != key || record.table != table {
            if candidate.exact {
                return Err(self.damaged(location, "the index refers to the record of another key"));
            }
            return Ok(Outcome::OtherKey);
        }
        match record.kind {
            Kind::Put if record.chunked => self.chunks(location, record.value),
            Kind::Put => Ok(Outcome::Value(record.value)),
            Kind::Delete => Ok(Outcome::Deleted),
            _ => Err(self.damaged(location, "the index refers to a record that is no put or delete")),
        }
    }

    fn chunks<'a>(&self, location: Location, list: &[u8]) -> Result<Outcome<'a>> {
        let (length, chunks) =
            decode_chunks(list).ok_or_else(|| self.damaged(location, "a malformed list of chunks"))?;
        Ok(Outcome::Chunks(length, chunks))
    }

    pub(crate) fn decode<'a>(&self, location: Location, bytes: &'a [u8]) -> Result<Record<'a>> {
        let seed = self.segments.get(location.segment).seed();
        Record::decode(bytes, seed, location.offset)
            .ok_or_else(|| self.damaged(location, "the index refers to a record that does not check out"))
    }

    /// Assembles a large value.
    pub(crate) fn read_chunks(&self, length: u64, chunks: &[Chunk]) -> Result<Vec<u8>> {
        let mut value = Vec::with_capacity(length as usize);
        for chunk in chunks {
            self.with_bytes(chunk.location, |bytes| {
                self.check_chunk(chunk, bytes)?;
                value.extend_from_slice(bytes);
                Ok(())
            })?;
        }
        Ok(value)
    }

    pub(crate) fn check_chunk(&self, chunk: &Chunk, bytes: &[u8]) -> Result<()> {
        let seed = self.segments.get(chunk.location.segment).seed();
        if seed.checksum_at(chunk.location.offset, bytes) == chunk.checksum {
            return Ok(());
        }
        Err(self.damaged(chunk.location, "a part of a large value whose checksum does not match"))
    }

    /// The chunk list that an entry of an ordered index refers to.
    pub(crate) fn read_chunk_list(&self, entry: &Entry) -> Result<Vec<u8>> {
        self.with_bytes(entry.location, |bytes| {
            let list = if entry.separate.is_some() { bytes } else { self.decode(entry.location, bytes)?.value };
            decode_chunks(list).ok_or_else(|| self.damaged(entry.location, "a malformed list of chunks"))?;
            Ok(list.to_vec())
        })
    }

    /// Reads and decodes the whole record at a location.
    pub(crate) fn with_record(&self, location: Location, use_record: &mut dyn FnMut(&Record<'_>)) -> Result<()> {
        self.with_bytes(location, |bytes| {
            use_record(&self.decode(location, bytes)?);
            Ok(())
        })
    }

    /// Reads a location with the caller's thread and lends its bytes. The caller holds a pin.
    pub(crate) fn with_bytes<T>(&self, location: Location, use_bytes: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let Some(segment) = self.segments.find(location.segment) else {
            return Err(self.damaged(location, "the index refers to a segment that does not exist"));
        };
        let length = self.read_length(location);
        if !self.is_written(segment, location) {
            let mut copy = Vec::with_capacity(length);
            if self.commit.read_pending(Location { length: length as u32, ..location }, &mut copy) {
                return use_bytes(&copy);
            }
            // It has been written in the meantime.
        }
        let block = self.block_bytes as u64;
        let start = u64::from(location.offset) / block * block;
        let head = (u64::from(location.offset) - start) as usize;
        let span = (head + length).next_multiple_of(block as usize);
        with_scratch(span, |buffer| {
            let read = self.timed(&self.meters.get_read_wait, || segment.file.read_at(&mut buffer[..span], start));
            let read = read.map_err(|e| Error::io("read", self.segments.path(segment.number), &e))?;
            if read < head + length {
                return Err(self.damaged(location, "the file ends before the record does"));
            }
            use_bytes(&buffer[head..head + length])
        })
    }

    /// A report of damage at a location.
    pub(crate) fn damaged(&self, location: Location, what: &str) -> Error {
        let what = format!("{what}; `aiodb verify` lists all damage");
        Error::Corruption { path: self.segments.path(location.segment), offset: u64::from(location.offset), what }
    }
}

/// Scratch buffers up to this size stay with their thread.
const KEPT_SCRATCH_BYTES: usize = 64 << 10;

/// Lends the calling thread's aligned buffer of at least `length` bytes.
fn with_scratch<T>(length: usize, use_buffer: impl FnOnce(&mut [u8]) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Option<AlignedBuffer>> = const { RefCell::new(None) };
    }
    let kept = SCRATCH.with(|scratch| scratch.borrow_mut().take());
    let mut buffer = match kept {
        Some(buffer) if buffer.len() >= length => buffer,
        _ => AlignedBuffer::new(length),
    };
    let outcome = use_buffer(&mut buffer);
    if buffer.len() <= KEPT_SCRATCH_BYTES {
        SCRATCH.with(|scratch| *scratch.borrow_mut() = Some(buffer));
    }
    outcome
}
