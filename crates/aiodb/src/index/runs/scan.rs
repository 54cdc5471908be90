//! Ranges of keys in all runs together, and all entries of all runs.

use std::ops::RangeBounds;

use super::Runs;
use super::cursor::RunCursor;
use crate::Result;
use crate::index::chain::Entry;
use crate::index::memtable::parts::Chains;
use crate::index::memtable::{KeyRange, Reached};
use crate::io::Device;

/// Is given an index key, an entry, and the life from which on the entry's segment has other records.
pub(crate) type VisitEntry<'a> = dyn FnMut(&[u8], &Entry, u64) -> Result<()> + 'a;

impl<D: Device> Runs<D> {
    /// Adds up to `limit` keys of a range, from its start or, backward, from its end, with their entries up to a sequence, below
    /// those in `found`. Says how far it came. Keys that were deleted may be among them.
    pub(crate) fn range(
        &self,
        range: KeyRange<'_>,
        backward: bool,
        limit: usize,
        newest: u64,
        found: &mut Chains,
    ) -> Result<Reached> {
        let set = self.set()?;
        let bound = if backward { range.1 } else { range.0 };
        let runs = set.runs.iter().enumerate();
        let cursors = runs.map(|(number, run)| RunCursor::scanning(&set, number, run.all(), backward, bound));
        let mut cursors = cursors.collect::<Result<Vec<_>>>()?;
        for taken in 1.. {
            let keys = cursors.iter().filter_map(RunCursor::key);
            let next = if backward { keys.max() } else { keys.min() };
            let is_within = |key: &&[u8]| RangeBounds::<[u8]>::contains(&range, *key);
            let Some(key) = next.filter(is_within).map(Box::<[u8]>::from) else { break };
            let chain = found.entry(key.clone()).or_default();
            for cursor in cursors.iter_mut().filter(|cursor| cursor.key() == Some(&key)) {
                if !chain.is_complete() {
                    chain.add_below(&cursor.take(), newest);
                }
                cursor.advance()?;
            }
            if taken == limit {
                return Ok(Reached::Key(key));
            }
        }
        Ok(Reached::End)
    }

    /// Visits each entry of each run, superseded ones too.
    pub(crate) fn for_each_entry(&self, visit: &mut VisitEntry<'_>) -> Result<()> {
        let set = self.set()?;
        for (number, run) in set.runs.iter().enumerate() {
            let mut cursor = RunCursor::merging(&set, number, run.all())?;
            while let Some(key) = cursor.key().map(Box::<[u8]>::from) {
                let next_life = cursor.file().footer.next_life;
                for entry in cursor.take().entries() {
                    visit(&key, entry, next_life)?;
                }
                cursor.advance()?;
            }
        }
        Ok(())
    }
}
