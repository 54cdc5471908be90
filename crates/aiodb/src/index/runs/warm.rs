//! Brings blocks of runs into the cache before anybody asks for them, file by file: those that flushes and merges have written last come last.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Runs;
use super::file::RunFile;
use super::lookup::place_of;
use crate::Result;
use crate::index::codec::prefix_key;
use crate::io::{Device, UNIT_BYTES};
use crate::sync::atomic::Ordering;

/// Units that a step reads at once, unless one block has more.
const WARM_UNITS: u32 = 64;

/// Blocks that a step looks at, at most.
const LOOKED_PER_STEP: usize = 16 << 10;

/// How far that has come: files with lower numbers are done, and of this one the blocks before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WarmedTo {
    file: u64,
    block: usize,
}

impl<D: Device> Runs<D> {
    /// How many blocks have keys of a table.
    pub(crate) fn blocks_of(&self, table: u32) -> u64 {
        let set = self.set();
        set.map_or(0, |set| {
            let of = |file: &RunFile<D>| blocks_with(file, table).map_or(0, |blocks| blocks.count() as u64);
            set.pieces().map(|piece| of(piece.file)).sum()
        })
    }

    /// Reads some blocks that have keys of these tables and that the cache has not, from a place on. Returns how far that is done, and whether
    /// there may be more.
    pub(crate) fn warm_some(&self, from: WarmedTo, tables: &[u32]) -> Result<(WarmedTo, bool)> {
        if from.file >= self.next_file.load(Ordering::Relaxed) {
            return Ok((from, false));
        }
        let set = self.set()?;
        let mut files: Vec<&Arc<RunFile<D>>> = set.pieces().map(|piece| piece.file).collect();
        files.retain(|file| file.name.number >= from.file);
        files.sort_unstable_by_key(|file| file.name.number);
        let (mut looked, mut to) = (0, from);
        for file in files {
            let number = file.name.number;
            let first = if number == from.file { from.block } else { 0 };
            for blocks in tables.iter().filter_map(|table| Some((*table, blocks_with(file, *table)?))) {
                let (table, blocks) = blocks;
                for block in blocks.clone().filter(|block| *block >= first) {
                    looked += 1;
                    if looked > LOOKED_PER_STEP {
                        return Ok((WarmedTo { file: number, block }, true));
                    }
                    if !self.cache.contains(place_of(file, block)) {
                        let last = self.warm_window(file, table, block, *blocks.end())?;
                        return Ok((WarmedTo { file: number, block: last + 1 }, true));
                    }
                }
            }
            to = WarmedTo { file: number + 1, block: 0 };
        }
        Ok((to, false))
    }

    /// Reads a block, and those behind it up to another one that come with one read. Returns the last of them.
    fn warm_window(&self, file: &RunFile<D>, table: u32, first: usize, most: usize) -> Result<usize> {
        let start = file.fences.units_of(first).0;
        let fits = |block: &usize| file.fences.units_of(*block).1 - start <= WARM_UNITS;
        let last = (first..=most).take_while(fits).last().unwrap_or(first);
        let bytes = file.read(start, file.fences.units_of(last).1)?;
        for block in first..=last {
            let (from, to) = file.fences.units_of(block);
            let at = |unit: u32| (unit - start) as usize * UNIT_BYTES;
            let plain = file.plain(block, &bytes[at(from)..at(to)])?;
            self.cache.insert(place_of(file, block), table, &[], &plain);
        }
        Ok(last)
    }
}

/// The blocks of a file that have keys of a table.
fn blocks_with<D: Device>(file: &RunFile<D>, table: u32) -> Option<RangeInclusive<usize>> {
    let (first, next) = (prefix_key(table, &[]), prefix_key(table + 1, &[]));
    let has_some = *file.footer.smallest_key < *next && *file.footer.largest_key >= *first;
    has_some.then(|| file.fences.block_of(&first)..=file.fences.block_of(&next))
}
