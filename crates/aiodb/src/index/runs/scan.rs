//! Ranges of keys in all runs together, all entries of all runs, and whether their blocks are sound.

use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Weak};

use super::Runs;
use super::ahead::WindowsAhead;
use super::cursor::{RunCursor, scan_bytes};
use super::file::RunFile;
use super::inputs::Inputs;
use super::set::{Run, RunSet};
use crate::budget::{Held, Part};
use crate::index::chain::{Entry, VersionChain};
use crate::index::memtable::parts::{ChainList, StoredKey};
use crate::index::memtable::{RangeQuery, Reached};
use crate::io::{Device, UNIT_BYTES};
use crate::{Error, Result};

/// Blocks that are read at once where all are checked.
const BLOCKS_AT_ONCE: usize = 64;

/// Is given an index key, an entry, and the life from which on the entry's segment has other records.
pub(crate) type VisitEntry<'a> = dyn FnMut(&[u8], &Entry, u64) -> Result<()> + 'a;

/// Where the steps of one scan have come to in the runs, so that a step need not read again the blocks that the last one has read.
///
/// It counts only for the set of runs that it was made with, and does not hold that set: between two steps, however long that is, the
/// files of runs that were merged can be removed.
pub(crate) struct RunWalk<D: Device> {
    set: Weak<RunSet<D>>,
    /// Of all runs, each at its first key that was not taken.
    inputs: Inputs,
    /// What the cursors of a scan that goes on have read; `None` before its second step.
    held: Option<Held>,
    /// `None` before some run is read in long windows.
    ahead: Option<Box<WindowsAhead<D>>>,
}

impl<D: Device> Default for RunWalk<D> {
    fn default() -> RunWalk<D> {
        RunWalk { set: Weak::new(), inputs: Inputs::default(), held: None, ahead: None }
    }
}

impl<D: Device> RunWalk<D> {
    /// The walk where the last step has left it, if that was in this set.
    fn take(&mut self, set: &Arc<RunSet<D>>, query: RangeQuery<'_>) -> Option<RunWalk<D>> {
        let mut walk = std::mem::take(self);
        if !std::ptr::eq(walk.set.as_ptr(), Arc::as_ptr(set)) {
            return None;
        }
        let RangeQuery { range: (from, to), backward, cached, .. } = query;
        let rest = if backward { (Bound::Unbounded, to) } else { (from, Bound::Unbounded) };
        let is_ahead = |key: &[u8]| RangeBounds::<[u8]>::contains(&rest, key);
        debug_assert!(walk.inputs.key().is_none_or(is_ahead), "a walk goes on where it was left");
        if !cached {
            walk.inputs.leave_cache();
        }
        Some(walk)
    }
}

impl<D: Device> Runs<D> {
    /// Keys of a range, with their entries. Says how far it came. Keys that were deleted may be among them. A walk that is not new was
    /// left by a step of the same scan that has come to where this range begins.
    pub(crate) fn range(&self, query: RangeQuery<'_>, walk: &mut RunWalk<D>) -> Result<(ChainList, Reached)> {
        let RangeQuery { range, limit, newest, .. } = query;
        let (mut found, mut reached) = (ChainList::new(), Reached::End);
        let set = self.set()?;
        // After an error nothing is left of the walk.
        let mut taken = match walk.take(&set, query) {
            Some(walk) => self.go_on(walk, &set, query),
            None => self.begin_walk(&set, query)?,
        };
        let RunWalk { inputs, ahead, .. } = &mut taken;
        while let Some(next) = inputs.key().filter(|key| RangeBounds::<[u8]>::contains(&range, *key)) {
            let key = StoredKey::from(next);
            let mut chain = VersionChain::default();
            while let Some(cursor) = inputs.at(&key) {
                if !chain.is_complete() {
                    chain.add_found(cursor.take(&set)?, newest);
                }
                inputs.advance(&set, ahead.as_deref_mut())?;
            }
            if found.len() + 1 == limit {
                reached = Reached::Key(key[..].into());
            }
            found.push((key, chain));
            if found.len() == limit {
                break;
            }
        }
        if query.backward {
            found.reverse();
        }
        *walk = taken;
        Ok((found, reached))
    }

    /// A walk of which another step is wanted.
    fn go_on(&self, walk: RunWalk<D>, set: &RunSet<D>, query: RangeQuery<'_>) -> RunWalk<D> {
        let RunWalk { inputs, held, ahead, .. } = walk;
        let RangeQuery { whole: (from, to), backward, .. } = query;
        let held = held.unwrap_or_else(|| Held::new(&self.accounts, Part::Buffers, scan_bytes(set)));
        let end = if backward { from } else { to };
        let begin = || Box::new(WindowsAhead::new(&self.device, &self.accounts, set, end));
        let ahead = ahead.or_else(|| inputs.read_long().then(begin));
        RunWalk { set: walk.set, inputs, held: Some(held), ahead }
    }

    /// A walk through a range, at its begin.
    fn begin_walk(&self, set: &Arc<RunSet<D>>, query: RangeQuery<'_>) -> Result<RunWalk<D>> {
        let inputs = Inputs::new(self.cursors(set, query)?, query.backward);
        Ok(RunWalk { set: Arc::downgrade(set), inputs, ..RunWalk::default() })
    }

    /// The cursors of a range, at its begin.
    fn cursors(&self, set: &RunSet<D>, query: RangeQuery<'_>) -> Result<Vec<RunCursor>> {
        let RangeQuery { range, backward, cached, .. } = query;
        let bound = if backward { range.1 } else { range.0 };
        let cache = Some(&self.cache).filter(|cache| cached && cache.is_on());
        let of = |(number, run): (usize, &Run<D>)| {
            RunCursor::scanning(set, number, run.all(), backward, bound, cache.cloned())
        };
        set.runs.iter().enumerate().map(of).collect()
    }

    /// Visits each entry of each run, superseded ones too.
    pub(crate) fn for_each_entry(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        let set = self.set()?;
        for (number, run) in set.runs.iter().enumerate() {
            let mut cursor = RunCursor::merging(&set, number, run.all())?;
            while let Some(key) = cursor.key().map(Box::<[u8]>::from) {
                let next_life = cursor.piece(&set).file.footer.next_life;
                for entry in cursor.take(&set)?.entries() {
                    visit(&key, entry, next_life)?;
                }
                cursor.advance(&set)?;
            }
        }
        Ok(())
    }

    /// Reads all blocks, and tells of each that is damaged.
    pub(crate) fn for_each_damage(&self, tell: &mut dyn FnMut(Error)) -> Result<()> {
        self.set()?.without_filters().pieces().try_for_each(|piece| for_each_damage_of(piece.file, tell))
    }
}

/// Reads all blocks of a file, and tells of each that is damaged.
pub(super) fn for_each_damage_of<D: Device>(file: &RunFile<D>, tell: &mut dyn FnMut(Error)) -> Result<()> {
    let fences = &file.fences;
    for first in (0..fences.len()).step_by(BLOCKS_AT_ONCE) {
        let blocks = first..fences.len().min(first + BLOCKS_AT_ONCE);
        let (start, end) = (fences.units_of(first).0, fences.units_of(blocks.end - 1).1);
        let bytes = match file.read(start, end) {
            Err(damage @ Error::Corruption { .. }) => {
                tell(damage);
                break;
            }
            read => read?,
        };
        for block in blocks {
            let (from, to) = fences.units_of(block);
            let units = (from - start) as usize * UNIT_BYTES..(to - start) as usize * UNIT_BYTES;
            let plain = file.plain(block, &bytes[units]);
            if let Err(damage) = plain.and_then(|plain| file.block(block, &plain).map(drop)) {
                tell(damage);
            }
        }
    }
    Ok(())
}
