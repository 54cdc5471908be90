//! What of the runs each table has, and what of that merges are behind with.

use std::ops::RangeInclusive;

use super::file::RunFile;
use super::policy::waiting;
use super::turns::MANY_RUNS;
use super::{RunShare, Runs};
use crate::index::codec::prefix_key;
use crate::io::{Device, UNIT_BYTES};

impl<D: Device> Runs<D> {
    /// What a table has of the runs; nothing once they are closed. A block with keys of two tables counts for either.
    pub(crate) fn share_of(&self, table: u32) -> RunShare {
        let Ok(set) = self.set() else { return RunShare::default() };
        let behind = waiting(self.policy, &set.shapes());
        let mut share = RunShare::default();
        for (place, run) in set.runs.iter().enumerate() {
            let (is_behind, unmerged) = (behind.iter().any(|runs| runs.contains(&place)), run.unmerged());
            let before = share.blocks;
            for number in run.all() {
                let file = run.piece(number).file;
                let Some(blocks) = blocks_with(file, table) else { continue };
                let bytes = bytes_of(file, &blocks);
                share.blocks += blocks.count() as u64;
                share.bytes += bytes;
                share.debt_bytes += if is_behind && unmerged.contains(&number) { bytes } else { 0 };
            }
            share.runs += u64::from(share.blocks > before);
        }
        share
    }

    /// Bytes of the runs that merges wait for or have begun, and have yet to take in: what merges are behind.
    pub(crate) fn debt_bytes(&self) -> u64 {
        let Ok(set) = self.set() else { return 0 };
        let shapes = set.shapes();
        waiting(self.policy, &shapes).into_iter().flat_map(|runs| &shapes[runs]).map(|shape| shape.bytes).sum()
    }

    /// How many runs there are beyond those with which no writer waits for merges.
    pub(crate) fn above_bound(&self) -> u64 {
        (self.len() + 1).saturating_sub(MANY_RUNS) as u64
    }
}

/// The blocks of a file that have keys of a table.
pub(super) fn blocks_with<D: Device>(file: &RunFile<D>, table: u32) -> Option<RangeInclusive<usize>> {
    let (first, next) = (prefix_key(table, &[]), prefix_key(table + 1, &[]));
    let has_some = *file.footer.smallest_key < *next && *file.footer.largest_key >= *first;
    has_some.then(|| file.fences.block_of(&first)..=file.fences.block_of(&next))
}

/// Bytes of blocks that follow each other.
fn bytes_of<D: Device>(file: &RunFile<D>, blocks: &RangeInclusive<usize>) -> u64 {
    let (from, to) = (file.fences.units_of(*blocks.start()).0, file.fences.units_of(*blocks.end()).1);
    u64::from(to - from) * UNIT_BYTES as u64
}
