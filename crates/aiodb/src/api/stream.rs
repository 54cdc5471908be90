//! Values that are written and read piece by piece, so that memory holds one chunk of them at a time.
//!
//! A value that is too long to lie in one piece lies in chunks, and a record written after them names them all
//! (`docs/format.md`). So a writer appends chunks as bytes come, and one record at the end makes the value visible; if
//! that never comes, nothing names the chunks, and reclaim takes them for dead. A reader notes the chunks at its
//! beginning and holds their segments (`retention.rs`), whatever becomes of the key meanwhile.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::Arc;

use crate::flow::lifecycle::Handle;
use crate::flow::operation::Stored;
use crate::flow::read::Outcome;
use crate::flow::write::last_sequence;
use crate::format::record::{Chunk, encode_chunks};
use crate::index::Candidates;
use crate::index::snapshots::View;
use crate::io::{Device, Disk};
use crate::store::catalog::{Generation, TableSlot};
use crate::store::read_path::ReadPath;
use crate::{Durability, Error, Result, Sequence, Table};

/// How much is asked of a source at once.
const SOURCE_BYTES: usize = 64 << 10;

impl<D: Device> Table<D> {
    /// Stores all that a source gives as the value of a key, in the store's durability class, without ever holding more
    /// than about 1 MiB of it in memory. The value becomes visible as a whole, at the end.
    ///
    /// When the source fails ([`Error::Source`]), or gives too much ([`Error::ValueLength`]), nothing is stored: the value of
    /// the key stays as it was.
    ///
    /// ```
    /// # use aiodb::{Db, IndexKind, Options};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let film = directory.path().join("film");
    /// # std::fs::write(&film, vec![7; 3 << 20])?;
    /// # let db = Db::open(directory.path().join("store"), Options::default())?;
    /// let films = db.table_or_create("films", IndexKind::Lsm)?;
    /// films.put_stream(b"metropolis", std::fs::File::open(&film)?)?;
    /// assert_eq!(films.get_range(b"metropolis", 2 << 20, 3)?, Some(vec![7, 7, 7]));
    ///
    /// let mut reader = films.read_stream(b"metropolis")?.expect("it was stored");
    /// assert_eq!(std::io::copy(&mut reader, &mut std::io::sink())?, 3 << 20);
    /// # Ok(()) }
    /// ```
    pub fn put_stream(&self, key: &[u8], source: impl Read) -> Result<Sequence> {
        self.put_stream_with(key, source, self.engine.options.durability)
    }

    /// [`Table::put_stream`] in a class of its own.
    pub fn put_stream_with(&self, key: &[u8], mut source: impl Read, durability: Durability) -> Result<Sequence> {
        let mut writer = self.write_stream(key)?;
        let mut bytes = vec![0; SOURCE_BYTES];
        loop {
            match source.read(&mut bytes) {
                Ok(0) => return writer.finish_with(durability),
                Ok(length) => writer.push(&bytes[..length])?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Source { bytes: writer.length(), cause: Arc::new(error) }),
            }
        }
    }

    /// Begins to write the value of a key piece by piece; [`ValueWriter::finish`] makes it visible.
    pub fn write_stream(&self, key: &[u8]) -> Result<ValueWriter<D>> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        let generation = self.slot.generation()?;
        Ok(ValueWriter {
            staged: self.engine.stage(),
            engine: Arc::clone(&self.engine),
            slot: Arc::clone(&self.slot),
            generation,
            key: key.to_vec(),
            chunks: Vec::new(),
            chunked_bytes: 0,
            rest: Vec::new(),
            failed: None,
        })
    }

    /// Up to `length` bytes of a value from byte `offset` on, less where the value ends; `None` if the key is absent. Of
    /// a value over 1 MiB (or a quarter of a segment) only the parts that hold these bytes are read.
    pub fn get_range(&self, key: &[u8], offset: u64, length: usize) -> Result<Option<Vec<u8>>> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        let generation = self.slot.generation()?;
        let _guard = self.engine.epochs.pin();
        self.engine.get_range(&generation, key, offset, length)
    }

    /// Begins to read the value of a key piece by piece; `None` if the key is absent.
    ///
    /// The reader goes on with this value when the key is overwritten or deleted, and even when the table is dropped. For a
    /// value over 1 MiB (or a quarter of a segment) no space of superseded records is used again until the reader is dropped.
    pub fn read_stream(&self, key: &[u8]) -> Result<Option<ValueReader<D>>> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        let generation = self.slot.generation()?;
        // It comes before the look-up: records that this finds stay readable.
        let hold = Hold::begin(&self.engine);
        let found = {
            let _guard = self.engine.epochs.pin();
            self.engine.find_value(&generation, key, <[u8]>::to_vec)?
        };
        Ok(found.map(|found| ValueReader::new(Arc::clone(&self.engine), hold, found)))
    }
}

/// Writes one value piece by piece, through [`Write`] too. Nothing of it is visible before [`ValueWriter::finish`], and
/// dropping the writer gives it up. Errors of [`Write::write`] contain an [`Error`]; after one, nothing more is taken.
///
/// While a writer exists, the space of records that are overwritten or deleted after its beginning does not come back.
#[must_use = "a value that is not finished is given up"]
pub struct ValueWriter<D: Device = Disk> {
    engine: Arc<Handle<D>>,
    slot: Arc<TableSlot>,
    generation: Arc<Generation>,
    key: Vec<u8>,
    /// Protects the chunks from reclaim, see `WritePath::stage`.
    staged: u64,
    chunks: Vec<Chunk>,
    chunked_bytes: u64,
    /// The bytes that are not yet in a chunk: at most as many as fit in one.
    rest: Vec<u8>,
    failed: Option<Error>,
}

impl<D: Device> ValueWriter<D> {
    /// Bytes taken so far.
    pub fn length(&self) -> u64 {
        self.chunked_bytes + self.rest.len() as u64
    }

    /// Makes the value visible in the store's durability class. [`Error::TableEmptied`] if the table was truncated since
    /// the writer was made.
    pub fn finish(self) -> Result<Sequence> {
        let durability = self.engine.options.durability;
        self.finish_with(durability)
    }

    /// [`ValueWriter::finish`] in a class of its own.
    pub fn finish_with(mut self, durability: Durability) -> Result<Sequence> {
        self.check()?;
        let stored = if self.chunks.is_empty() {
            // Short enough to be written whole.
            self.engine.stored(&self.generation, &self.key, &self.rest)?
        } else {
            let length = self.length();
            self.write_chunk()?;
            Stored::chunked(encode_chunks(length, &self.chunks))
        };
        let engine = &self.engine;
        let operation = [engine.put_operation(Arc::clone(&self.generation), &self.key, &stored, None)];
        // The chunks belong to this generation of the table.
        let is_current = || engine.catalog.generation(self.generation.id).is_some() && self.slot.has(&self.generation);
        let Some(appended) = engine.append(&operation, durability, None, is_current)? else {
            self.slot.check_has(&self.generation)?;
            return Err(Error::TableEmptied { name: self.slot.name.clone() });
        };
        let sequence = last_sequence(&appended.placed);
        if let Some((state, number)) = appended.unpublished {
            engine.wait_durable(state, number)?;
        }
        Ok(sequence)
    }

    /// Takes more of the value.
    fn push(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.check()?;
        let taken = self.take(&mut bytes);
        if let Err(error) = &taken {
            self.failed = Some(error.clone());
        }
        taken
    }

    fn take(&mut self, bytes: &mut &[u8]) -> Result<()> {
        let length = usize::try_from(self.length()).unwrap_or(usize::MAX).saturating_add(bytes.len());
        let (max, chunk_bytes) = (self.engine.max_value_bytes(), self.engine.whole_value_bytes());
        if length > max {
            return Err(Error::ValueLength { length, max });
        }
        while !bytes.is_empty() {
            if self.rest.len() == chunk_bytes {
                // There is more, so the value lies in chunks.
                self.write_chunk()?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(chunk_bytes - self.rest.len()));
            self.rest.extend_from_slice(now);
            *bytes = later;
        }
        Ok(())
    }

    fn write_chunk(&mut self) -> Result<()> {
        self.chunks.push(self.engine.write_chunk(&self.generation, &self.key, &self.rest)?);
        self.chunked_bytes += self.rest.len() as u64;
        self.rest.clear();
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.engine.check_open()?;
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl<D: Device> Write for ValueWriter<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes)?;
        Ok(bytes.len())
    }

    /// Does nothing: there is no part of a value that could be made durable or visible before the rest.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<D: Device> Drop for ValueWriter<D> {
    fn drop(&mut self) {
        self.engine.staging.end(self.staged);
    }
}

/// Reads one value piece by piece, see [`Table::read_stream`]. Errors contain an [`Error`]; damage is one, never an end.
pub struct ValueReader<D: Device = Disk> {
    engine: Arc<Handle<D>>,
    /// `None` once the whole value is in memory.
    _hold: Option<Hold<D>>,
    /// The parts of the value and where in it each begins; none for a value in one piece.
    chunks: Vec<(u64, Chunk)>,
    length: u64,
    position: u64,
    /// The part that is in memory: its range of the value, and its bytes.
    loaded: (Range<u64>, Vec<u8>),
}

impl<D: Device> ValueReader<D> {
    fn new(engine: Arc<Handle<D>>, hold: Hold<D>, found: Found<Vec<u8>>) -> ValueReader<D> {
        match found {
            Found::Whole(bytes) => {
                let length = bytes.len() as u64;
                let loaded = (0..length, bytes);
                ValueReader { engine, _hold: None, chunks: Vec::new(), length, position: 0, loaded }
            }
            Found::Chunks(length, chunks) => {
                let chunks = with_starts(&chunks).collect();
                ValueReader { engine, _hold: Some(hold), chunks, length, position: 0, loaded: (0..0, Vec::new()) }
            }
        }
    }

    /// Bytes of the whole value.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Brings the part at the position into memory.
    fn load(&mut self) -> Result<()> {
        self.engine.check_open()?;
        let number = self.chunks.partition_point(|(start, _)| *start <= self.position) - 1;
        let (start, chunk) = &self.chunks[number];
        let (range, bytes) = &mut self.loaded;
        *range = 0..0;
        bytes.clear();
        let _guard = self.engine.epochs.pin();
        self.engine.with_chunk(chunk, |part| bytes.extend_from_slice(part))?;
        *range = *start..start + u64::from(chunk.location.length);
        Ok(())
    }
}

impl<D: Device> Read for ValueReader<D> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.position >= self.length || out.is_empty() {
            return Ok(0);
        }
        if !self.loaded.0.contains(&self.position) {
            self.load()?;
        }
        let (range, bytes) = &self.loaded;
        let bytes = &bytes[(self.position - range.start) as usize..];
        let length = bytes.len().min(out.len());
        out[..length].copy_from_slice(&bytes[..length]);
        self.position += length as u64;
        Ok(length)
    }
}

impl<D: Device> Seek for ValueReader<D> {
    /// A position beyond the end is no error; nothing is read there.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.length.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        let before = || io::Error::new(ErrorKind::InvalidInput, "a position before the value's beginning");
        self.position = position.ok_or_else(before)?;
        Ok(self.position)
    }
}

/// A hold on all segments, for as long as it lives.
struct Hold<D: Device> {
    engine: Arc<Handle<D>>,
    number: u64,
}

impl<D: Device> Hold<D> {
    fn begin(engine: &Arc<Handle<D>>) -> Hold<D> {
        Hold { engine: Arc::clone(engine), number: engine.retention.begin() }
    }
}

impl<D: Device> Drop for Hold<D> {
    fn drop(&mut self) {
        self.engine.retention.end(self.number);
    }
}

/// Where a value was found.
enum Found<T> {
    /// The result for a value in one piece.
    Whole(T),
    /// Its length, and the parts that are still to be read.
    Chunks(u64, Vec<Chunk>),
}

impl<D: Device> ReadPath<D> {
    /// Finds the newest value of a key and lends it to `take` if it lies in one piece. The caller holds a guard of the epoch.
    fn find_value<T>(
        &self,
        generation: &Generation,
        key: &[u8],
        mut take: impl FnMut(&[u8]) -> T,
    ) -> Result<Option<Found<T>>> {
        let (view, mut candidates) = (View::LATEST, Candidates::new());
        self.lookup_whole(generation, key, &view, &mut candidates)?;
        for candidate in &candidates {
            if candidate.is_inline() {
                let value = self.resolve(generation, key, &candidates, &view)?;
                return Ok(value.map(|value| Found::Whole(take(&value))));
            }
            if let Some(cached) = self.cached(candidate, generation, key, &view) {
                return Ok(Some(Found::Whole(take(cached.value()))));
            }
            let mut merged = false;
            let found = self.with_bytes(candidate.location, |bytes| {
                Ok(match self.interpret(generation.id, key, candidate, &view, bytes)? {
                    Outcome::Value(value) => Some(Some(Found::Whole(take(&value)))),
                    Outcome::Chunks(length, chunks) => Some(Some(Found::Chunks(length, chunks))),
                    Outcome::Deleted => Some(None),
                    Outcome::Operand(_) => {
                        merged = true;
                        None
                    }
                    Outcome::Unseen => None,
                })
            })?;
            if merged {
                // A value merged from operands is in no place of the log.
                let value = self.resolve(generation, key, &candidates, &view)?;
                return Ok(value.map(|value| Found::Whole(take(&value))));
            }
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// [`Table::get_range`] under a guard of the epoch.
    fn get_range(&self, generation: &Generation, key: &[u8], offset: u64, length: usize) -> Result<Option<Vec<u8>>> {
        let end = offset.saturating_add(length as u64);
        let slice = |value: &[u8]| value[part_of(offset..end, 0, value.len())].to_vec();
        let (length, chunks) = match self.find_value(generation, key, slice)? {
            None => return Ok(None),
            Some(Found::Whole(bytes)) => return Ok(Some(bytes)),
            Some(Found::Chunks(length, chunks)) => (length, chunks),
        };
        let end = end.min(length);
        let mut bytes = Vec::with_capacity(end.saturating_sub(offset) as usize);
        for (start, chunk) in with_starts(&chunks) {
            let wanted = part_of(offset..end, start, chunk.location.length as usize);
            if !wanted.is_empty() {
                self.with_chunk(&chunk, |part| bytes.extend_from_slice(&part[wanted]))?;
            }
        }
        Ok(Some(bytes))
    }

    /// Reads a whole part of a large value, since it has one checksum, and lends it. The caller holds a guard of the epoch.
    fn with_chunk<T>(&self, chunk: &Chunk, use_part: impl FnOnce(&[u8]) -> T) -> Result<T> {
        self.with_bytes(chunk.location, |bytes| {
            self.check_chunk(chunk, bytes)?;
            Ok(use_part(bytes))
        })
    }
}

/// Chunks with the places in the value where they begin.
fn with_starts(chunks: &[Chunk]) -> impl Iterator<Item = (u64, Chunk)> {
    chunks.iter().scan(0, |next, chunk| {
        let start = *next;
        *next += u64::from(chunk.location.length);
        Some((start, *chunk))
    })
}

/// The intersection of a range of a value with a part that begins at `start` and has `length` bytes, as a range of the part.
fn part_of(range: Range<u64>, start: u64, length: usize) -> Range<usize> {
    let within = |position: u64| position.saturating_sub(start).min(length as u64) as usize;
    within(range.start)..within(range.end).max(within(range.start))
}
