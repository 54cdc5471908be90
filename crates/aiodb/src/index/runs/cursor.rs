//! Walks through a run in either direction, a block at a time.

use std::ops::{Bound, Range};
use std::sync::Arc;

use super::block_cursor::BlockCursor;
use super::filtering::EntryMark;
use super::lookup::place_of;
use super::set::{Piece, RunSet};
use crate::Result;
use crate::cache::Cache;
use crate::format::run::marks::NEVER;
use crate::index::chain::VersionChain;
use crate::index::codec::table_of;
use crate::io::buffer::AlignedBuffer;
use crate::io::{Device, UNIT_BYTES};

/// Units that a merge reads at once.
pub(super) const MERGE_UNITS: u32 = 64;

/// And its bytes.
pub(super) const MERGE_WINDOW_BYTES: u64 = MERGE_UNITS as u64 * UNIT_BYTES as u64;

/// Units that a scan reads at once in the end, of all its runs together: each read begins with one and doubles.
const SCAN_UNITS: usize = 1024;

/// And of each run, at least and at most. With shorter reads most of a long scan is the wait for each, with longer ones the device gets no faster.
const SCAN_UNITS_OF_RUN: (usize, usize) = (16, 256);

/// Units of the longest read of which a scan leaves the blocks in the cache.
const CACHED_UNITS: u32 = 2;

/// A place in a run: at a key, or at its end. It does not hold the set that the run is in, so it keeps no file from being removed;
/// the caller gives that set each time.
pub(super) struct RunCursor {
    /// The run's place in the set, and the pieces of it that are walked through.
    run: usize,
    pieces: Range<usize>,
    backward: bool,
    /// The piece, the block in it, and the place in that.
    piece: usize,
    number: usize,
    keys: BlockCursor,
    window: Option<Window>,
    /// Units of the next read, and of the longest one.
    units: u32,
    most_units: u32,
    /// Units of the blocks that were looked at.
    visited_units: u64,
    /// Is asked for blocks, and given the first ones that are read.
    cache: Option<Arc<Cache>>,
}

/// Units that were read of the current piece.
struct Window {
    start: u32,
    end: u32,
    bytes: AlignedBuffer,
}

impl RunCursor {
    /// A cursor for a merge of some pieces of a run, at the first key that counts.
    pub(super) fn merging<D: Device>(set: &RunSet<D>, run: usize, pieces: Range<usize>) -> Result<RunCursor> {
        let mut cursor = Self::new(run, pieces, false, MERGE_UNITS);
        cursor.seek(set, Bound::Unbounded)?;
        Ok(cursor)
    }

    /// A cursor for a scan, at the first key of a range or, backward, at its last: `bound` is where the range begins for it.
    pub(super) fn scanning<D: Device>(
        set: &RunSet<D>,
        run: usize,
        pieces: Range<usize>,
        backward: bool,
        bound: Bound<&[u8]>,
        cache: Option<Arc<Cache>>,
    ) -> Result<RunCursor> {
        let cursor = Self::new(run, pieces, backward, 1);
        let mut cursor = RunCursor { cache, most_units: most_units(set.runs.len()), ..cursor };
        cursor.seek(set, bound)?;
        Ok(cursor)
    }

    /// Asks the cache no more.
    pub(super) fn leave_cache(&mut self) {
        self.cache = None;
    }

    fn new(run: usize, pieces: Range<usize>, backward: bool, units: u32) -> RunCursor {
        RunCursor {
            run,
            piece: pieces.start,
            pieces,
            backward,
            number: 0,
            keys: BlockCursor::new(backward),
            window: None,
            units,
            most_units: units,
            visited_units: 0,
            cache: None,
        }
    }

    /// The key here; `None` at the end.
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.keys.key()
    }

    /// The entries here, which can be taken once.
    pub(super) fn take<D: Device>(&mut self, set: &RunSet<D>) -> Result<VersionChain> {
        let Piece { file, .. } = self.piece(set);
        self.keys.take(file, self.number)
    }

    /// The piece that the key here is in.
    pub(super) fn piece<'a, D: Device>(&self, set: &'a RunSet<D>) -> Piece<'a, D> {
        set.runs[self.run].piece(self.piece)
    }

    /// What is noted of the block here for filters.
    pub(super) fn mark<D: Device>(&self, set: &RunSet<D>) -> EntryMark {
        let file = self.piece(set).file;
        let Some(marks) = &file.marks else { return EntryMark::NEVER };
        let mark = EntryMark::carried(marks.blocks[self.number], marks.due_ms);
        // In this process filters have been asked about all of it, or cannot be.
        if file.next_due_ms() == NEVER { mark.asked() } else { mark }
    }

    /// Bytes of the blocks that it has looked at.
    pub(super) fn visited_bytes(&self) -> u64 {
        self.visited_units * UNIT_BYTES as u64
    }

    /// Goes on by one key.
    pub(super) fn advance<D: Device>(&mut self, set: &RunSet<D>) -> Result<()> {
        let Piece { file, .. } = self.piece(set);
        self.keys.advance(file, self.number)?;
        self.leave_empty_blocks(set)
    }

    /// Goes on to the next block that has a key, if there is none here.
    fn leave_empty_blocks<D: Device>(&mut self, set: &RunSet<D>) -> Result<()> {
        while self.key().is_none() {
            if !self.next_block(set)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn seek<D: Device>(&mut self, set: &RunSet<D>, bound: Bound<&[u8]>) -> Result<()> {
        let (key, is_included) = match bound {
            Bound::Included(key) => (Some(key), true),
            Bound::Excluded(key) => (Some(key), false),
            Bound::Unbounded => (None, true),
        };
        let backward = self.backward;
        let is_before = |known: &[u8]| {
            key.is_some_and(|key| match (if backward { key.cmp(known) } else { known.cmp(key) }, is_included) {
                (std::cmp::Ordering::Less, _) => true,
                (order, is_included) => order.is_eq() && !is_included,
            })
        };
        // Pieces are in order, so those before the bound come first, or last.
        let is_first = |number| {
            let Piece { file, from } = set.runs[self.run].piece(number);
            let footer = &file.footer;
            if backward { !is_before(from.max(&footer.smallest_key)) } else { is_before(&footer.largest_key) }
        };
        let first = partition_point(self.pieces.clone(), is_first);
        let piece =
            if backward { first.checked_sub(1).filter(|piece| *piece >= self.pieces.start) } else { Some(first) };
        let Some(piece) = piece.filter(|piece| *piece < self.pieces.end) else { return Ok(()) };
        self.piece = piece;
        let Piece { file, from } = self.piece(set);
        let number = match key {
            Some(key) if backward => file.fences.block_of(key),
            None if backward => file.fences.len() - 1,
            key => file.fences.block_of(key.unwrap_or(&[]).max(from)),
        };
        let first = key.filter(|_| !backward).unwrap_or(&[]);
        self.load(set, number, first)?;
        let Piece { file, .. } = self.piece(set);
        while self.key().is_some_and(is_before) {
            self.keys.advance(file, number)?;
        }
        self.leave_empty_blocks(set)
    }

    /// Goes on to the next block, perhaps of the next piece; false at the end.
    fn next_block<D: Device>(&mut self, set: &RunSet<D>) -> Result<bool> {
        self.keys.leave();
        if self.pieces.is_empty() {
            return Ok(false);
        }
        let Piece { file, from } = self.piece(set);
        let blocks = file.fences.block_of(from)..file.fences.len();
        if let Some(number) = self.next_to(self.number).filter(|number| blocks.contains(number)) {
            self.load(set, number, &[])?;
            return Ok(true);
        }
        let next = self.next_to(self.piece).filter(|piece| self.pieces.contains(piece));
        let Some(piece) = next else { return Ok(false) };
        (self.piece, self.window) = (piece, None);
        let Piece { file, from } = self.piece(set);
        self.load(set, if self.backward { file.fences.len() - 1 } else { file.fences.block_of(from) }, &[])?;
        Ok(true)
    }

    /// The number that comes after another one in this direction.
    fn next_to(&self, number: usize) -> Option<usize> {
        if self.backward { number.checked_sub(1) } else { Some(number + 1) }
    }

    /// Enters a block of the current piece, without the keys that do not count, and without those before `first`.
    fn load<D: Device>(&mut self, set: &RunSet<D>, number: usize, first: &[u8]) -> Result<()> {
        let Piece { file, from } = self.piece(set);
        let from = from.max(first);
        let (start, end) = file.fences.units_of(number);
        self.number = number;
        self.visited_units += u64::from(end - start);
        if !self.window.as_ref().is_some_and(|window| window.start <= start && end <= window.end) {
            let cached = self.cache.as_ref().and_then(|cache| cache.get_block(place_of(file, number)));
            if let Some(cached) = cached {
                return self.keys.enter(file, number, cached.value(), from);
            }
            let units = self.units.max(end - start);
            let (mut first, mut last) = match self.backward {
                true => (end.saturating_sub(units), end),
                false => (start, (start + units).min(file.name.data_units)),
            };
            let bytes = file.read(first, last).or_else(|_| {
                // What is read ahead may be what cannot be read.
                (first, last) = (start, end);
                file.read(first, last)
            })?;
            self.window = Some(Window { start: first, end: last, bytes });
            self.units = (2 * self.units).min(self.most_units);
        }
        let window = self.window.as_ref().expect("it was just read");
        let at = |unit: u32| (unit - window.start) as usize * UNIT_BYTES;
        let plain = file.plain(number, &window.bytes[at(start)..at(end)])?;
        self.keys.enter(file, number, &plain, from)?;
        let Some(cache) = &self.cache else { return Ok(()) };
        // Where no key of it counts, the block is read for those that were asked for.
        let counts = self.keys.key().or(Some(from).filter(|from| from.len() >= 4));
        let table = counts.map_or(0, table_of);
        if window.end - window.start <= CACHED_UNITS {
            cache.insert(place_of(file, number), table, &[], &plain);
        } else {
            cache.insert_preferred(place_of(file, number), table, &plain);
        }
        Ok(())
    }
}

/// Units of the longest read of each run, where a scan goes through so many.
fn most_units(runs: usize) -> u32 {
    let (least, most) = SCAN_UNITS_OF_RUN;
    (SCAN_UNITS / runs.max(1)).clamp(least, most) as u32
}

/// Bytes that a scan through so many runs has in memory of them, at most, but for longer blocks.
pub(super) fn scan_bytes(runs: usize) -> u64 {
    runs as u64 * u64::from(most_units(runs)) * UNIT_BYTES as u64
}

/// The first number of a range of which `is_first` does not say so; all of which it does come before.
fn partition_point(range: Range<usize>, is_first: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = range;
    while low < high {
        let middle = low + (high - low) / 2;
        if is_first(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
