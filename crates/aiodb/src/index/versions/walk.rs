//! Walks through all versions of a range in the order of their keys, in either direction.

use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

use super::file::VersionFile;
use super::layer::{Held, Layer, Map, end_by, put_on_top};
use crate::Result;
use crate::format::versions::{KeyVersions, KeyWithVersions};
use crate::index::memtable::KeyRange;
use crate::index::range_tombstones::RangeTombstone;
use crate::io::{AlignedBuffer, UNIT_BYTES};

/// Units that a scan reads at once, and a merge.
pub(super) const SCAN_UNITS: u32 = 4;
pub(super) const MERGE_UNITS: u32 = 64;

/// A range of index keys with its own bounds.
type OwnRange = (Bound<Box<[u8]>>, Bound<Box<[u8]>>);

/// A walk through several layers, and perhaps what the list has in front of them.
pub(super) struct Walk {
    /// Newest first.
    sources: Vec<Source>,
    backward: bool,
}

/// One of the layers, or the list.
struct Source {
    /// The next key.
    next: Option<KeyWithVersions>,
    rest: Rest,
    ended: Vec<Arc<RangeTombstone>>,
}

/// The keys after the next one.
enum Rest {
    Listed(std::vec::IntoIter<KeyWithVersions>),
    Memory(MemoryWalk),
    Files(FileWalk),
}

impl Walk {
    /// A walk through layers, newest first. `listed` are newer than all of them, in the order of the walk.
    pub(super) fn new(
        listed: Vec<KeyWithVersions>,
        layers: &[Arc<Layer>],
        range: KeyRange<'_>,
        backward: bool,
        units: u32,
    ) -> Result<Walk> {
        let mut sources = Vec::with_capacity(1 + layers.len());
        sources.push(Source { next: None, rest: Rest::Listed(listed.into_iter()), ended: Vec::new() });
        for layer in layers {
            let rest = match &layer.held {
                Held::Memory(map) => Rest::Memory(MemoryWalk::new(map, range, backward)),
                Held::Files(files) => Rest::Files(FileWalk::new(files, range, backward, units)),
            };
            sources.push(Source { next: None, rest, ended: layer.ended.clone() });
        }
        sources.iter_mut().try_for_each(Source::advance)?;
        Ok(Walk { sources, backward })
    }

    /// The next key with its versions; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<KeyWithVersions>> {
        let keys = self.sources.iter().filter_map(Source::key);
        let next = if self.backward { keys.max() } else { keys.min() };
        let Some(key) = next.map(Box::<[u8]>::from) else { return Ok(None) };
        let mut all = KeyVersions::new();
        for source in self.sources.iter_mut().rev().filter(|source| source.key() == Some(&key)) {
            for version in source.take()? {
                put_on_top(&mut all, version);
            }
        }
        Ok(Some((key, all)))
    }
}

impl Source {
    fn key(&self) -> Option<&[u8]> {
        self.next.as_ref().map(|(key, _)| &**key)
    }

    fn take(&mut self) -> Result<KeyVersions> {
        let (key, mut versions) = self.next.take().expect("there is a next key");
        end_by(&self.ended, &key, &mut versions);
        self.advance().map(|()| versions)
    }

    fn advance(&mut self) -> Result<()> {
        self.next = match &mut self.rest {
            Rest::Listed(listed) => listed.next(),
            Rest::Memory(memory) => memory.next(),
            Rest::Files(files) => files.next()?,
        };
        Ok(())
    }
}

/// A walk through a layer in memory.
struct MemoryWalk {
    map: Arc<Map>,
    range: OwnRange,
    backward: bool,
}

impl MemoryWalk {
    fn new(map: &Arc<Map>, range: KeyRange<'_>, backward: bool) -> MemoryWalk {
        MemoryWalk { map: Arc::clone(map), range: owned(range), backward }
    }

    fn next(&mut self) -> Option<KeyWithVersions> {
        if is_empty(borrowed(&self.range)) {
            return None;
        }
        let mut left = self.map.range::<[u8], _>(borrowed(&self.range));
        let (key, versions) = if self.backward { left.next_back() } else { left.next() }?;
        let found = (key.clone(), versions.clone());
        *(if self.backward { &mut self.range.1 } else { &mut self.range.0 }) = Bound::Excluded(found.0.clone());
        Some(found)
    }
}

/// A walk through a layer in files, a block at a time.
struct FileWalk {
    files: Arc<[VersionFile]>,
    range: OwnRange,
    backward: bool,
    /// The file and the block in it that come next; `None` at the end.
    place: Option<(usize, usize)>,
    /// What is left of the block before.
    keys: VecDeque<KeyWithVersions>,
    window: Option<Window>,
    /// Units of a read.
    units: u32,
}

/// Units of a file that were read.
struct Window {
    file: usize,
    start: u32,
    end: u32,
    bytes: AlignedBuffer,
}

impl FileWalk {
    fn new(files: &Arc<[VersionFile]>, range: KeyRange<'_>, backward: bool, units: u32) -> FileWalk {
        let (files, range) = (Arc::clone(files), owned(range));
        let mut walk = FileWalk { files, range, backward, place: None, keys: VecDeque::new(), window: None, units };
        walk.place = walk.first_place();
        walk
    }

    /// The only block in which the first key can be.
    fn first_place(&self) -> Option<(usize, usize)> {
        let (from, to) = borrowed(&self.range);
        if is_empty((from, to)) {
            return None;
        }
        let block_of = |file: usize, key: &[u8]| (file, self.files[file].fences.block_of(key));
        if self.backward {
            let file = self.files.partition_point(|file| !is_beyond(&file.smallest_key, to)).checked_sub(1)?;
            if is_before(&self.files[file].largest_key, from) {
                return None;
            }
            let last = self.files[file].fences.len() - 1;
            Some(key_of(to).map_or((file, last), |key| block_of(file, key)))
        } else {
            let file = self.files.partition_point(|file| is_before(&file.largest_key, from));
            let may_have = self.files.get(file).is_some_and(|file| !is_beyond(&file.smallest_key, to));
            may_have.then(|| key_of(from).map_or((file, 0), |key| block_of(file, key)))
        }
    }

    fn next(&mut self) -> Result<Option<KeyWithVersions>> {
        loop {
            let next = if self.backward { self.keys.pop_back() } else { self.keys.pop_front() };
            let Some(next) = next else {
                if !self.load_block()? {
                    return Ok(None);
                }
                continue;
            };
            let (from, to) = borrowed(&self.range);
            let (is_early, is_late) = (is_before(&next.0, from), is_beyond(&next.0, to));
            match if self.backward { (is_late, is_early) } else { (is_early, is_late) } {
                (true, _) => {}
                (_, true) => {
                    self.place = None;
                    self.keys.clear();
                }
                _ => return Ok(Some(next)),
            }
        }
    }

    /// Reads the next block; false at the end.
    fn load_block(&mut self) -> Result<bool> {
        let Some((number, block)) = self.place else { return Ok(false) };
        let file = &self.files[number];
        let (start, end) = file.fences.units_of(block);
        let is_here = |window: &Window| window.file == number && window.start <= start && end <= window.end;
        if !self.window.as_ref().is_some_and(is_here) {
            let units = self.units.max(end - start);
            let (first, last) = match self.backward {
                true => (end.saturating_sub(units), end),
                false => (start, (start + units).min(file.fences.units())),
            };
            self.window = Some(Window { file: number, start: first, end: last, bytes: file.read(first, last)? });
        }
        let window = self.window.as_ref().expect("it was just read");
        let at = |unit: u32| (unit - window.start) as usize * UNIT_BYTES;
        self.keys = file.decode(block, &window.bytes[at(start)..at(end)])?.into();
        self.place = if self.backward {
            let before = || number.checked_sub(1).map(|number| (number, self.files[number].fences.len() - 1));
            block.checked_sub(1).map(|block| (number, block)).or_else(before)
        } else if block + 1 < file.fences.len() {
            Some((number, block + 1))
        } else {
            (number + 1 < self.files.len()).then_some((number + 1, 0))
        };
        Ok(true)
    }
}

/// Whether a range begins behind a key.
fn is_before(key: &[u8], from: Bound<&[u8]>) -> bool {
    match from {
        Bound::Unbounded => false,
        Bound::Included(from) => key < from,
        Bound::Excluded(from) => key <= from,
    }
}

/// Whether a range ends before a key.
fn is_beyond(key: &[u8], to: Bound<&[u8]>) -> bool {
    match to {
        Bound::Unbounded => false,
        Bound::Included(to) => key > to,
        Bound::Excluded(to) => key >= to,
    }
}

/// Whether no key can be in a range; an ordered map panics over some of these.
pub(super) fn is_empty(range: KeyRange<'_>) -> bool {
    match range {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
        _ => false,
    }
}

fn key_of(bound: Bound<&[u8]>) -> Option<&[u8]> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => Some(key),
        Bound::Unbounded => None,
    }
}

fn owned((from, to): KeyRange<'_>) -> OwnRange {
    (from.map(Box::from), to.map(Box::from))
}

fn borrowed((from, to): &OwnRange) -> KeyRange<'_> {
    (from.as_ref().map(|key| &**key), to.as_ref().map(|key| &**key))
}
