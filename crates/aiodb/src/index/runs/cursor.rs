//! Walks through a run in either direction, a block at a time.

use std::ops::{Bound, Range};
use std::sync::Arc;

use super::ahead::{WINDOWS_OF_RUN, WindowsAhead};
use super::block_cursor::BlockCursor;
use super::file::RunFile;
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

/// Units of all windows of a long scan together. The window of each run begins with one and doubles.
const SCAN_UNITS: usize = 1024;

/// Units of the longest window of a run at least, however many runs there are.
const LEAST_SCAN_UNITS: usize = 8;

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
    /// Whether the cache had a block since the last window was read.
    was_cached: bool,
}

/// Units of a piece of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    piece: usize,
    start: u32,
    end: u32,
}

impl Span {
    pub(super) fn contains(&self, other: &Span) -> bool {
        self.piece == other.piece && self.start <= other.start && other.end <= self.end
    }

    fn units(&self) -> u32 {
        self.end - self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.units() as usize * UNIT_BYTES
    }

    /// Where it begins in its file, in bytes.
    pub(super) fn offset(&self) -> u64 {
        u64::from(self.start) * UNIT_BYTES as u64
    }
}

/// Units that were read at once.
struct Window {
    span: Span,
    bytes: WindowBytes,
}

enum WindowBytes {
    /// At the begin of a buffer.
    Own(AlignedBuffer),
    /// In this slot of what the scan reads ahead.
    Ahead(u32),
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
        let mut cursor = RunCursor { cache, most_units: most_units(set), ..cursor };
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
            was_cached: false,
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

    /// Whether its next window is the longest one, so that reading ahead is worth it.
    pub(super) fn reads_long(&self) -> bool {
        self.units == self.most_units
    }

    /// Goes on by one key.
    pub(super) fn advance<D: Device>(&mut self, set: &RunSet<D>) -> Result<()> {
        self.advance_with(set, None)
    }

    /// Goes on by one key in a scan that may read ahead: if it does, at each step with the same windows.
    pub(super) fn advance_with<D: Device>(
        &mut self,
        set: &RunSet<D>,
        ahead: Option<&mut WindowsAhead<D>>,
    ) -> Result<()> {
        let Piece { file, .. } = self.piece(set);
        self.keys.advance(file, self.number)?;
        self.leave_empty_blocks(set, ahead)
    }

    /// Goes on to the next block that has a key, if there is none here.
    fn leave_empty_blocks<D: Device>(
        &mut self,
        set: &RunSet<D>,
        mut ahead: Option<&mut WindowsAhead<D>>,
    ) -> Result<()> {
        while self.key().is_none() {
            if !self.next_block(set, ahead.as_deref_mut())? {
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
        self.load(set, number, first, None)?;
        let Piece { file, .. } = self.piece(set);
        while self.key().is_some_and(is_before) {
            self.keys.advance(file, number)?;
        }
        self.leave_empty_blocks(set, None)
    }

    /// Goes on to the next block, perhaps of the next piece; false at the end.
    fn next_block<D: Device>(&mut self, set: &RunSet<D>, ahead: Option<&mut WindowsAhead<D>>) -> Result<bool> {
        self.keys.leave();
        if self.pieces.is_empty() {
            return Ok(false);
        }
        let Piece { file, from } = self.piece(set);
        let blocks = file.fences.block_of(from)..file.fences.len();
        let in_piece = self.next_to(self.number).filter(|number| blocks.contains(number));
        let in_next = || self.next_piece(set, self.piece);
        let Some((piece, number)) = in_piece.map(|number| (self.piece, number)).or_else(in_next) else {
            return Ok(false);
        };
        self.piece = piece;
        self.load(set, number, &[], ahead)?;
        Ok(true)
    }

    /// The piece that comes after another one, and its first block in this direction.
    fn next_piece<D: Device>(&self, set: &RunSet<D>, piece: usize) -> Option<(usize, usize)> {
        let piece = self.next_to(piece).filter(|piece| self.pieces.contains(piece))?;
        let Piece { file, from } = set.runs[self.run].piece(piece);
        Some((piece, if self.backward { file.fences.len() - 1 } else { file.fences.block_of(from) }))
    }

    /// The number that comes after another one in this direction.
    fn next_to(&self, number: usize) -> Option<usize> {
        if self.backward { number.checked_sub(1) } else { Some(number + 1) }
    }

    /// Enters a block of the current piece, without the keys that do not count, and without those before `first`.
    fn load<D: Device>(
        &mut self,
        set: &RunSet<D>,
        number: usize,
        first: &[u8],
        mut ahead: Option<&mut WindowsAhead<D>>,
    ) -> Result<()> {
        let Piece { file, from } = self.piece(set);
        let from = from.max(first);
        let (start, end) = file.fences.units_of(number);
        let block = Span { piece: self.piece, start, end };
        self.number = number;
        self.visited_units += u64::from(block.units());
        if !self.window.as_ref().is_some_and(|window| window.span.contains(&block)) {
            let cached = self.cache.as_ref().and_then(|cache| cache.get_block(place_of(file, number)));
            if let Some(cached) = cached {
                self.was_cached = true;
                return self.keys.enter(file, number, cached.value(), from);
            }
            self.read_window(set, number, block, ahead.as_deref_mut())?;
        }
        let Window { span, bytes } = self.window.as_ref().expect("it was just read");
        let bytes = match bytes {
            WindowBytes::Own(buffer) => &buffer[..],
            WindowBytes::Ahead(slot) => ahead.expect("a scan that reads ahead goes on so").bytes(*slot),
        };
        let at = |unit: u32| (unit - span.start) as usize * UNIT_BYTES;
        let plain = file.plain(number, &bytes[at(start)..at(end)])?;
        self.keys.enter(file, number, &plain, from)?;
        let Some(cache) = &self.cache else { return Ok(()) };
        // Where no key of it counts, the block is read for those that were asked for.
        let counts = self.keys.key().or(Some(from).filter(|from| from.len() >= 4));
        let table = counts.map_or(0, table_of);
        if span.units() <= CACHED_UNITS {
            cache.insert(place_of(file, number), table, &[], &plain);
        } else {
            cache.insert_preferred(place_of(file, number), table, &plain);
        }
        Ok(())
    }

    /// Has the window begin with a block or, backward, end with it.
    fn read_window<D: Device>(
        &mut self,
        set: &RunSet<D>,
        number: usize,
        block: Span,
        mut ahead: Option<&mut WindowsAhead<D>>,
    ) -> Result<()> {
        let mut own = None;
        match self.window.take() {
            Some(Window { bytes: WindowBytes::Own(buffer), .. }) => own = Some(buffer),
            Some(Window { bytes: WindowBytes::Ahead(slot), .. }) => {
                ahead.as_deref_mut().expect("a scan that reads ahead goes on so").give_back(slot);
            }
            None => {}
        }
        let taken = ahead.as_deref_mut().and_then(|ahead| ahead.take(self.run, &block));
        let window = match taken {
            Some((span, slot)) => Window { span, bytes: WindowBytes::Ahead(slot) },
            None => {
                let span = self.span_from(set, self.piece, number);
                let window = read_alone(self.piece(set).file, span, block, own)?;
                if window.span.units() < span.units() {
                    // What is nearby cannot be read: it is not tried again with every block before it.
                    self.units = 1;
                }
                window
            }
        };
        self.window = Some(window);
        self.units = (2 * self.units).min(self.most_units);
        // Where the cache has some blocks it may have the next ones too.
        let goes_on = self.reads_long() && !std::mem::take(&mut self.was_cached);
        if let Some(ahead) = ahead.filter(|_| goes_on) {
            self.read_ahead(set, ahead);
        }
        Ok(())
    }

    /// Has what comes after the window read.
    fn read_ahead<D: Device>(&self, set: &RunSet<D>, ahead: &mut WindowsAhead<D>) {
        let window = self.window.as_ref().map(|window| window.span);
        while let (true, last) = ahead.last_of(self.run)
            && let Some(last) = last.or(window)
            && let Some(next) = self.next_span(set, last, ahead.end())
        {
            ahead.begin(self.run, set.runs[self.run].piece(next.piece).file, next);
        }
    }

    /// The units that are read together with a block, from it on in this direction.
    fn span_from<D: Device>(&self, set: &RunSet<D>, piece: usize, number: usize) -> Span {
        let file = set.runs[self.run].piece(piece).file;
        let (start, end) = file.fences.units_of(number);
        let units = self.units.max(end - start);
        match self.backward {
            true => Span { piece, start: end.saturating_sub(units), end },
            false => Span { piece, start, end: (start + units).min(file.name.data_units) },
        }
    }

    /// What is read after other units; `None` at the end of the run, and of a scan that ends at this key in its direction.
    fn next_span<D: Device>(&self, set: &RunSet<D>, last: Span, end: Bound<&[u8]>) -> Option<Span> {
        let Span { piece, start, end: last_end } = last;
        let Piece { file, from } = set.runs[self.run].piece(piece);
        let fences = &file.fences;
        let has_more = match self.backward {
            true => start > fences.units_of(fences.block_of(from)).0,
            false => last_end < fences.units(),
        };
        // The others may have a part of that block.
        let in_piece = || (piece, fences.block_at(if self.backward { start - 1 } else { last_end }));
        let (piece, number) = if has_more { in_piece() } else { self.next_piece(set, piece)? };
        let file = set.runs[self.run].piece(piece).file;
        // The least key that the block may have or, backward, one that is above all of its keys, or the last of them.
        let nearest: &[u8] = match self.backward {
            true if number + 1 < file.fences.len() => file.fences.fence(number + 1),
            true => &file.footer.largest_key,
            false => file.fences.fence(number).max(&file.footer.smallest_key),
        };
        let is_wanted = match end {
            Bound::Unbounded => true,
            Bound::Included(end) | Bound::Excluded(end) if self.backward => nearest >= end,
            Bound::Included(end) => nearest <= end,
            Bound::Excluded(end) => nearest < end,
        };
        is_wanted.then(|| self.span_from(set, piece, number))
    }
}

/// Reads units of a file on the caller's thread; alone those of the block that is wanted, if the others cannot be read.
fn read_alone<D: Device>(file: &RunFile<D>, span: Span, block: Span, own: Option<AlignedBuffer>) -> Result<Window> {
    let mut buffer = own.filter(|own| own.len() >= span.bytes()).unwrap_or_else(|| AlignedBuffer::new(span.bytes()));
    let mut read = |span: Span| file.read_into(span.start, span.end, &mut buffer).map(|()| span);
    let span = read(span).or_else(|_| read(block))?;
    Ok(Window { span, bytes: WindowBytes::Own(buffer) })
}

/// Units of the longest window of each run, where a scan goes through all of them.
pub(super) fn most_units<D: Device>(set: &RunSet<D>) -> u32 {
    let stream_units = set.stream_bytes() / UNIT_BYTES;
    let of_run = SCAN_UNITS / (WINDOWS_OF_RUN * set.runs.len().max(1));
    of_run.max(LEAST_SCAN_UNITS).min(stream_units) as u32
}

/// Bytes that the cursors of a scan through all runs have in memory, at most, but for longer blocks and what is read ahead.
pub(super) fn scan_bytes<D: Device>(set: &RunSet<D>) -> u64 {
    set.runs.len() as u64 * u64::from(most_units(set)) * UNIT_BYTES as u64
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
