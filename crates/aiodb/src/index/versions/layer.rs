//! Layers of versions that take no more of them: those that memory had at one time, there still or in files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::VersionFile;
use crate::Result;
use crate::format::versions::{KeyVersions, Version};
use crate::index::range_tombstones::RangeTombstone;

/// Versions by index key.
pub(super) type Map = BTreeMap<Box<[u8]>, KeyVersions>;

/// Versions that were superseded one after the other. What is newer lies in layers above this one, and in the list.
#[derive(Clone)]
pub(in crate::index) struct Layer {
    /// Its number, by which it is known as long as it is not merged.
    pub(super) id: u64,
    pub(super) held: Held,
    /// How many versions it has, and what they count in memory.
    pub(super) versions: usize,
    pub(super) load: usize,
    pub(super) span: Span,
    /// Range tombstones that were forgotten since: versions here may have been superseded by one of them.
    pub(super) ended: Vec<Arc<RangeTombstone>>,
}

/// The place of a layer's versions.
#[derive(Clone)]
pub(super) enum Held {
    Memory(Arc<Map>),
    /// In the order of their keys.
    Files(Arc<[VersionFile]>),
}

/// What a layer knows of a key without a read of the device.
pub(super) enum Found {
    Versions(KeyVersions),
    /// They may be in a block of a file.
    Block {
        file: usize,
        block: usize,
    },
}

/// From the lowest sequence of some versions to the highest one that has superseded one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) until: u64,
}

impl Span {
    /// That of no version.
    pub(super) const NONE: Span = Span { from: u64::MAX, until: 0 };

    pub(super) fn include(&mut self, version: &Version) {
        self.from = self.from.min(version.entry.sequence);
        self.until = self.until.max(version.until);
    }
}

impl Layer {
    /// Looks a key up.
    pub(super) fn find(&self, key: &[u8]) -> Found {
        match &self.held {
            Held::Memory(map) => {
                let mut versions = map.get(key).cloned().unwrap_or_default();
                end_by(&self.ended, key, &mut versions);
                Found::Versions(versions)
            }
            Held::Files(files) => {
                let file = files.partition_point(|file| *file.largest_key < *key);
                let may_have = files.get(file).filter(|file| *file.smallest_key <= *key);
                let block = may_have.and_then(|file| file.block_of(key));
                block.map_or_else(|| Found::Versions(KeyVersions::new()), |block| Found::Block { file, block })
            }
        }
    }

    /// The versions of a key in a block that [`Layer::find`] has named.
    pub(super) fn find_in(&self, key: &[u8], (file, block): (usize, usize), bytes: &[u8]) -> Result<KeyVersions> {
        let mut versions = self.file(file).find(key, block, bytes)?;
        end_by(&self.ended, key, &mut versions);
        Ok(versions)
    }

    /// A file that [`Layer::find`] has named.
    pub(super) fn file(&self, number: usize) -> &VersionFile {
        let Held::Files(files) = &self.held else { unreachable!("a layer in memory has no files") };
        &files[number]
    }

    pub(super) fn is_in_memory(&self) -> bool {
        matches!(self.held, Held::Memory(_))
    }

    /// Bytes of its files.
    pub(super) fn bytes(&self) -> u64 {
        match &self.held {
            Held::Memory(_) => 0,
            Held::Files(files) => files.iter().map(VersionFile::bytes).sum(),
        }
    }

    /// Whether a range tombstone that is forgotten may have superseded a version before what did so in its key.
    pub(super) fn may_be_ended_by(&self, range: &RangeTombstone) -> bool {
        let RangeTombstone { start, end, sequence } = range;
        let (smallest, largest) = match &self.held {
            Held::Memory(map) => (map.first_key_value().map(|(key, _)| key), map.last_key_value().map(|(key, _)| key)),
            Held::Files(files) => {
                (files.first().map(|file| &file.smallest_key), files.last().map(|file| &file.largest_key))
            }
        };
        let overlaps =
            smallest.is_some_and(|smallest| smallest < end) && largest.is_some_and(|largest| largest >= start);
        overlaps && start < end && self.span.from < *sequence && *sequence < self.span.until
    }

    /// Without the versions that are not needed, if it is in memory; `None` if none is left.
    pub(super) fn pruned(&self, needed: &impl Fn(u64, u64) -> bool) -> Option<Layer> {
        let Held::Memory(map) = &self.held else { return Some(self.clone()) };
        let mut all = map.values().flatten();
        if all.all(|version| needed(version.entry.sequence, version.until)) {
            return Some(self.clone());
        }
        let (mut left, mut load, mut versions, mut span) = (Map::new(), 0, 0, Span::NONE);
        for (key, all) in &**map {
            let is_needed = |version: &&Version| needed(version.entry.sequence, version.until);
            let kept: KeyVersions = all.iter().filter(is_needed).cloned().collect();
            if !kept.is_empty() {
                kept.iter().for_each(|version| span.include(version));
                versions += kept.len();
                load += load_of(key) + kept.len();
                left.insert(key.clone(), kept);
            }
        }
        (versions > 0).then(|| Layer { held: Held::Memory(Arc::new(left)), versions, load, span, ..self.clone() })
    }
}

/// Ends the versions of a key that range tombstones superseded before what did so in the key.
pub(super) fn end_by(ended: &[Arc<RangeTombstone>], key: &[u8], versions: &mut KeyVersions) {
    for range in ended.iter().filter(|range| range.contains(key)) {
        versions.iter_mut().for_each(|version| end_at(version, range));
    }
}

/// Ends a version that a range tombstone with its key superseded before what did so in the key.
pub(super) fn end_at(version: &mut Version, range: &RangeTombstone) {
    if version.entry.sequence < range.sequence {
        version.until = version.until.min(range.sequence);
    }
}

/// Puts a version on top of older ones of its key; true if none of them is of the same record. Of two copies of one record the later
/// counts, for as long as either would.
pub(super) fn put_on_top(versions: &mut KeyVersions, newer: Version) -> bool {
    match versions.iter_mut().find(|version| version.entry.sequence == newer.entry.sequence) {
        Some(known) => {
            known.until = known.until.max(newer.until);
            if newer.later {
                (known.entry, known.later) = (newer.entry, true);
            }
            false
        }
        None => {
            versions.push(newer);
            true
        }
    }
}

/// So many bytes of a key count as one version more in the bounds of memory: what a version takes, about.
const KEY_BYTES_PER_VERSION: usize = 128;

/// What a key counts in memory, beside its versions.
pub(super) fn load_of(key: &[u8]) -> usize {
    key.len() / KEY_BYTES_PER_VERSION
}
