//! Ranges of keys in all runs together, and all entries of all runs.

use std::ops::RangeBounds;

use super::Runs;
use super::cursor::RunCursor;
use crate::Result;
use crate::index::chain::{Entry, VersionChain};
use crate::index::memtable::parts::Chains;
use crate::index::memtable::{RangeQuery, Reached};
use crate::io::Device;

/// Is given an index key, an entry, and the life from which on the entry's segment has other records.
pub(crate) type VisitEntry<'a> = dyn FnMut(&[u8], &Entry, u64) -> Result<()> + 'a;

impl<D: Device> Runs<D> {
    /// Keys of a range, with their entries. Says how far it came. Keys that were deleted may be among them.
    pub(crate) fn range(&self, query: RangeQuery<'_>) -> Result<(Chains, Reached)> {
        let RangeQuery { range, backward, limit, newest } = query;
        let mut found = Chains::new();
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
            let mut chain = VersionChain::default();
            for cursor in cursors.iter_mut().filter(|cursor| cursor.key() == Some(&key)) {
                if !chain.is_complete() {
                    chain.add_below(&cursor.take(), newest);
                }
                cursor.advance()?;
            }
            found.insert(key.clone(), chain);
            if taken == limit {
                return Ok((found, Reached::Key(key)));
            }
        }
        Ok((found, Reached::End))
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
