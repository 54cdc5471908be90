//! Brings blocks of runs into the cache before anybody asks for them, file by file: those that flushes and merges have written last come last.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Runs;
use super::file::RunFile;
use super::lookup::place_of;
use super::shares::blocks_with;
use crate::Result;
use crate::io::{Device, UNIT_BYTES};

/// Units that a step reads at once, unless one block has more.
const WARM_UNITS: u32 = 64;

/// Blocks that a step looks at, at most.
const LOOKED_PER_STEP: usize = 16 << 10;

/// How far that has come.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WarmedTo {
    /// The files that are done, by their numbers, of those that are named. Files are not named in the order of their numbers: one that is being
    /// written has one already.
    done: BTreeSet<u64>,
    /// Of this file the blocks before this one are.
    file: u64,
    block: usize,
    /// The edit whose files were all done.
    edit: Option<u64>,
}

impl WarmedTo {
    fn finish(&mut self, file: u64) {
        self.done.insert(file);
        (self.file, self.block) = (0, 0);
    }
}

impl<D: Device> Runs<D> {
    /// Reads some blocks that have keys of these tables and that the cache has not. Returns whether there may be more. A file with a block that
    /// cannot be read is left there: who asks for one of its blocks learns why.
    pub(crate) fn warm_some(&self, to: &mut WarmedTo, tables: &[u32]) -> Result<bool> {
        let set = self.set()?;
        if to.edit == Some(set.manifest.edit) {
            return Ok(false);
        }
        let mut files: Vec<&Arc<RunFile<D>>> = set.pieces().map(|piece| piece.file).collect();
        files.sort_unstable_by_key(|file| file.name.number);
        to.done.retain(|done| files.binary_search_by_key(done, |file| file.name.number).is_ok());
        let mut left = LOOKED_PER_STEP;
        for file in files {
            let number = file.name.number;
            if to.done.contains(&number) {
                continue;
            }
            if to.file != number {
                (to.file, to.block) = (number, 0);
            }
            match self.warm_file(file, to.block, tables, &mut left).inspect_err(|_| to.finish(number))? {
                Some(block) => {
                    to.block = block;
                    return Ok(true);
                }
                None => to.finish(number),
            }
        }
        to.edit = Some(set.manifest.edit);
        Ok(false)
    }

    /// Looks at the blocks of a file from one on, `left` ones at most, and reads the first window of which the cache has not all. Returns with
    /// which block to go on; `None` where the file is done.
    fn warm_file(&self, file: &RunFile<D>, first: usize, tables: &[u32], left: &mut usize) -> Result<Option<usize>> {
        for (table, blocks) in tables.iter().filter_map(|table| Some((*table, blocks_with(file, *table)?))) {
            for block in first.max(*blocks.start())..=*blocks.end() {
                if *left == 0 {
                    return Ok(Some(block));
                }
                *left -= 1;
                if !self.cache.contains(place_of(file, block)) {
                    return Ok(Some(self.warm_window(file, table, block, *blocks.end())? + 1));
                }
            }
        }
        Ok(None)
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
