//! The whole path of a get: look the key up, read the place from the pending batches or the device, check the bytes
//! against their checksum and key.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::format::compression::decompress;
use crate::format::location::Location;
use crate::format::record::{Chunk, Form, Kind, Record, decode_chunks};
use crate::index::chain::{Entry, VersionChain};
use crate::index::codec::hashed_key;
use crate::index::memtable::LookedUp;
use crate::index::snapshots::View;
use crate::index::{Candidate, Candidates};
use crate::io::{AlignedBuffer, Device, File, UNIT_BYTES};
use crate::log::Segment;
use crate::store::catalog::{Generation, TableIndex};
use crate::store::groups::group_key;
use crate::store::read_path::ReadPath;
use crate::{Error, Result};

/// The meaning of a candidate's bytes.
pub(crate) enum Outcome<'a> {
    /// The key's value, or the base of its operands.
    Value(Cow<'a, [u8]>),
    /// The key's value lies in chunks.
    Chunks(u64, Vec<Chunk>),
    /// The key was deleted, or has expired.
    Deleted,
    /// An operand; the value that it is applied to is older.
    Operand(Cow<'a, [u8]>),
    /// Another key with the same tag, or a record that the view does not see.
    Unseen,
}

/// The value of a base, and the operands after it, newest first.
pub(crate) type Parts = (Option<Vec<u8>>, Vec<Vec<u8>>);

impl<D: Device> ReadPath<D> {
    /// A blocking get: the caller's thread, one read for a value up to a quarter of a segment.
    pub(crate) fn get(&self, generation: &Arc<Generation>, key: &[u8], view: &View) -> Result<Option<Vec<u8>>> {
        let _guard = self.epochs.pin();
        let mut candidates = Candidates::new();
        self.lookup_whole(generation, key, view, &mut candidates)?;
        self.resolve(generation, key, &candidates, view)
    }

    /// Reads candidates, newest first, until they make a value. The caller holds a guard of the epoch.
    pub(crate) fn resolve(
        &self,
        generation: &Generation,
        key: &[u8],
        candidates: &[Candidate],
        view: &View,
    ) -> Result<Option<Vec<u8>>> {
        let (base, mut operands) = self.read_parts(generation, key, candidates, view)?;
        if operands.is_empty() {
            return Ok(base);
        }
        self.merged(generation, key, base.as_deref(), &mut operands).map(Some)
    }

    /// Reads candidates, newest first, down to a base: its value, and the operands after it, newest first. The caller holds
    /// a guard of the epoch.
    pub(crate) fn read_parts(
        &self,
        generation: &Generation,
        key: &[u8],
        candidates: &[Candidate],
        view: &View,
    ) -> Result<Parts> {
        let (mut base, mut operands) = (None, Vec::new());
        for candidate in candidates {
            match self.interpret_inline(candidate, view)? {
                Some(Outcome::Operand(operand)) => {
                    operands.push(operand.into_owned());
                    continue;
                }
                Some(Outcome::Value(value)) => {
                    base = Some(value.into_owned());
                    break;
                }
                Some(_) => break,
                None => {}
            }
            if let Some(cached) = self.cached(candidate, generation, key, view) {
                base = Some(cached.value().to_vec());
                break;
            }
            if let Some(cached) = self.cached_operand(candidate, generation, key, view) {
                operands.push(cached.value().to_vec());
                continue;
            }
            let found = self.with_bytes(candidate.location, |bytes| {
                Ok(match self.interpret(generation.id, key, candidate, view, bytes)? {
                    Outcome::Value(value) => Some(Ok(Some(value.into_owned()))),
                    Outcome::Chunks(length, chunks) => Some(Err((length, chunks))),
                    Outcome::Deleted => Some(Ok(None)),
                    Outcome::Operand(operand) => {
                        operands.push(operand.into_owned());
                        None
                    }
                    Outcome::Unseen => None,
                })
            })?;
            match found {
                Some(Ok(value)) => base = value,
                Some(Err((length, chunks))) => base = Some(self.read_chunks(length, &chunks)?),
                None => continue,
            }
            break;
        }
        Ok((base, operands))
    }

    /// The places where the records of the key's value may be, newest first.
    pub(crate) fn lookup(
        &self,
        generation: &Generation,
        key: &[u8],
        view: &View,
        found: &mut Candidates,
    ) -> Result<()> {
        found.clear();
        match &generation.index {
            TableIndex::Hash(index) if view.is_latest() => {
                let locations = self.all_places_under(generation.id, index, self.hash(key))?;
                found.extend(locations.into_iter().map(|location| Candidate { location, known: None }));
            }
            _ => self.chain(generation, key, view)?.candidates(0).for_each(|candidate| found.push(candidate)),
        }
        self.meters.looked_up(found.len());
        Ok(())
    }

    /// [`ReadPath::lookup`] of a key, and what batches have of it is there as a whole.
    pub(crate) fn lookup_whole(
        &self,
        generation: &Generation,
        key: &[u8],
        view: &View,
        found: &mut Candidates,
    ) -> Result<()> {
        loop {
            let again = self.groups.again();
            self.lookup(generation, key, view, found)?;
            if !self.wait_for_groups(generation, key, view, again) {
                return Ok(());
            }
        }
    }

    /// What a look-up of the present has found may be a part of a batch: returns when all of that is there. True if the key must be looked up
    /// again: a batch has changed it more than once since there were `again` of them when the look-up began. That happens again only where
    /// another such batch with this key has come meanwhile.
    pub(crate) fn wait_for_groups(&self, generation: &Generation, key: &[u8], view: &View, again: u64) -> bool {
        view.is_latest() && self.groups.wait_for(again, || group_key(generation.id, self.hash(key)))
    }

    /// The records of a key that a view sees. In a `hash` table this reads them. The caller holds a guard of the epoch.
    pub(crate) fn chain(&self, generation: &Generation, key: &[u8], view: &View) -> Result<VersionChain> {
        let TableIndex::Hash(index) = &generation.index else {
            return self.ordered_of(generation).lookup(generation.id, key, view);
        };
        let mut chain = VersionChain::default();
        for location in self.all_places_under(generation.id, index, self.hash(key))? {
            self.with_record(location, &mut |record| {
                if record.key == key && record.table == generation.id && record.sequence <= view.sequence {
                    let (kind, sequence, form) = (record.kind, record.sequence, record.form);
                    chain.insert_below(&Entry { kind, sequence, location, separate: None, form, inline: None });
                }
            })?;
        }
        if !view.is_latest() {
            // Asked last: a record is retained there before the index forgets it.
            let retained_as = hashed_key(generation.id, self.hash(key), key);
            self.snapshots.add_versions(&retained_as, view, &mut chain)?;
        }
        Ok(chain)
    }

    /// Looks up the present records of a key, for one of them to be replaced by a later copy. The caller holds a guard of the epoch.
    pub(crate) fn look_up(&self, generation: &Generation, key: &[u8]) -> Result<LookedUp> {
        match &generation.index {
            TableIndex::Hash(_) => {
                Ok(LookedUp { chain: Arc::new(self.chain(generation, key, &View::LATEST)?), freezes: 0 })
            }
            TableIndex::Ordered => self.ordered_of(generation).look_up(generation.id, key),
        }
    }

    /// Whether a record has expired for a view.
    pub(crate) fn has_expired(&self, form: &Form, view: &View) -> bool {
        form.expires_ms.is_some_and(|expires_ms| expires_ms.get() <= view.at_ms.unwrap_or_else(|| self.now_ms()))
    }

    /// The bytes of a location that must be read: a size class's bound may reach beyond the record.
    pub(crate) fn read_length(&self, location: Location) -> usize {
        let in_unit = location.offset as usize % UNIT_BYTES;
        let length = location.length as usize;
        // A record that fits a unit lies in one unit.
        let length = if length <= UNIT_BYTES { length.min(UNIT_BYTES - in_unit) } else { length };
        length.min((self.segments.segment_bytes - u64::from(location.offset)) as usize)
    }

    /// Whether the place is on the device; otherwise it is (or was a moment ago) in a pending batch.
    pub(crate) fn is_written(&self, segment: &Segment<D>, location: Location) -> bool {
        u64::from(location.offset) < segment.written_end.load(Ordering::Acquire)
    }

    /// Checks the bytes at a candidate's location and tells their meaning for this key. A value or an operand is left in
    /// the cache if the view wants that.
    pub(crate) fn interpret<'a>(
        &self,
        table: u32,
        key: &[u8],
        candidate: &Candidate,
        view: &View,
        bytes: &'a [u8],
    ) -> Result<Outcome<'a>> {
        let location = candidate.location;
        let separate = candidate.known.as_ref().and_then(|entry| Some((entry, entry.separate?)));
        let (kind, form, stored) = if let Some((entry, checksum)) = separate {
            let seed = self.segments.get(location.segment).seed();
            if seed.checksum_at(location.offset, bytes) != checksum {
                return Err(self.damaged(location, "a value whose checksum does not match"));
            }
            (entry.kind, entry.form, bytes)
        } else {
            let record = self.decode(location, bytes)?;
            if record.key != key || record.table != table {
                if candidate.known.is_some() {
                    return Err(self.damaged(location, "the index refers to the record of another key"));
                }
                return Ok(Outcome::Unseen);
            }
            if record.sequence > view.sequence {
                return Ok(Outcome::Unseen);
            }
            (record.kind, record.form, record.value)
        };
        let outcome = self.say(location, kind, &form, view, stored)?;
        self.balance_memory_of_reader();
        if form.expires_ms.is_none() && view.cached {
            match &outcome {
                Outcome::Value(value) => self.cache_value(location, table, key, value),
                Outcome::Operand(operand) if candidate.is_operand() => {
                    self.cache_operand(location, table, key, operand)
                }
                _ => {}
            }
        }
        Ok(outcome)
    }

    /// [`ReadPath::interpret`] of a candidate with an inline value; `None` of any other. What the index has of it was checked with the
    /// block of a run, or lay in memory only.
    pub(crate) fn interpret_inline<'a>(&self, candidate: &'a Candidate, view: &View) -> Result<Option<Outcome<'a>>> {
        let Some(entry) = &candidate.known else { return Ok(None) };
        let Some(value) = &entry.inline else { return Ok(None) };
        self.say(candidate.location, entry.kind, &entry.form, view, value).map(Some)
    }

    /// The meaning of a sound record.
    fn say<'a>(
        &self,
        location: Location,
        kind: Kind,
        form: &Form,
        view: &View,
        value: &'a [u8],
    ) -> Result<Outcome<'a>> {
        match kind {
            Kind::Delete => Ok(Outcome::Deleted),
            Kind::Put if self.has_expired(form, view) => Ok(Outcome::Deleted),
            Kind::Put if form.chunked => self.chunks(location, value),
            Kind::Put => Ok(Outcome::Value(self.plain(location, form, value)?)),
            Kind::Merge => Ok(Outcome::Operand(self.plain(location, form, value)?)),
            _ => Err(self.damaged(location, "the index refers to a record that is no put or delete")),
        }
    }

    /// A stored value as it was put.
    pub(crate) fn plain<'a>(&self, location: Location, form: &Form, value: &'a [u8]) -> Result<Cow<'a, [u8]>> {
        if !form.compressed {
            return Ok(Cow::Borrowed(value));
        }
        let plain = decompress(value, self.whole_value_bytes());
        plain.map(Cow::Owned).map_err(|what| self.damaged(location, what))
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

    /// The chunk list that an entry refers to.
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

    /// Reads a location with the caller's thread and lends its bytes. The caller holds a guard of the epoch.
    pub(crate) fn with_bytes<T>(&self, location: Location, use_bytes: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        let segment = self.segment_of(location)?;
        let length = self.read_length(location);
        if !self.is_written(segment, location) {
            let mut copy = Vec::with_capacity(length);
            if self.commit.read_pending(Location { length: length as u32, ..location }, &mut copy) {
                return use_bytes(&copy);
            }
            // It has been written in the meantime.
        }
        with_scratch(self.blocks_bytes(location, length), |buffer| {
            let read = || self.read_blocks(segment, location, length, buffer);
            let head = self.timed(&self.meters.get_read_wait, read)?;
            use_bytes(&buffer[head..head + length])
        })
    }

    /// The segment that a location lies in.
    pub(crate) fn segment_of(&self, location: Location) -> Result<&Segment<D>> {
        let missing = || self.damaged(location, "the index refers to a segment that does not exist");
        self.segments.find(location.segment).ok_or_else(missing)
    }

    /// Bytes of the whole blocks in which so many bytes from a location on lie.
    pub(crate) fn blocks_bytes(&self, location: Location, length: usize) -> usize {
        (location.offset as usize % self.block_bytes + length).next_multiple_of(self.block_bytes)
    }

    /// Reads the whole blocks in which so many bytes from a location on lie. Returns how many bytes come before them.
    pub(crate) fn read_blocks(
        &self,
        segment: &Segment<D>,
        location: Location,
        length: usize,
        buffer: &mut [u8],
    ) -> Result<usize> {
        let head = location.offset as usize % self.block_bytes;
        let blocks = &mut buffer[..self.blocks_bytes(location, length)];
        let read = segment.file.read_at(blocks, u64::from(location.offset) - head as u64);
        let read = read.map_err(|e| Error::io("read", self.segments.path(segment.number), &e))?;
        if read < head + length {
            return Err(self.damaged(location, "the file ends before the record does"));
        }
        Ok(head)
    }

    /// A report of damage at a location.
    pub(crate) fn damaged(&self, location: Location, what: &str) -> Error {
        let what = format!("{what}; `aiodb verify` lists all damage");
        Error::Corruption { path: self.segments.path(location.segment), offset: u64::from(location.offset), what }
    }
}

/// Scratch buffers up to this size stay with their thread.
const THREAD_SCRATCH_BYTES: usize = 64 << 10;

/// Lends the calling thread's aligned buffer of at least `length` bytes.
fn with_scratch<T>(length: usize, use_buffer: impl FnOnce(&mut [u8]) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Option<AlignedBuffer>> = const { RefCell::new(None) };
    }
    let own = SCRATCH.with(|scratch| scratch.borrow_mut().take());
    let mut buffer = match own {
        Some(buffer) if buffer.len() >= length => buffer,
        _ => AlignedBuffer::new(length),
    };
    let outcome = use_buffer(&mut buffer);
    if buffer.len() <= THREAD_SCRATCH_BYTES {
        SCRATCH.with(|scratch| *scratch.borrow_mut() = Some(buffer));
    }
    outcome
}
