//! Range tombstones of an ordered index, from their publication until they are carried out.

use super::OrderedIndex;
use crate::Result;
use crate::index::codec::prefix_key;
use crate::index::range_tombstones::{RangeTombstone, Urgency};
use crate::index::runs::{Compaction, RunContext};
use crate::io::Device;
use crate::sync::atomic::Ordering;

/// Range tombstones that are carried out at once.
const RANGES_AT_ONCE: usize = 1024;

impl<D: Device> OrderedIndex<D> {
    /// Publishes a range tombstone.
    pub(crate) fn insert_range(&self, table: u32, start: &[u8], end: &[u8], sequence: u64) {
        let end = if end.is_empty() { (table + 1).to_be_bytes().to_vec() } else { prefix_key(table, end) };
        self.ranges.insert(RangeTombstone { start: prefix_key(table, start).into(), end: end.into(), sequence });
    }

    /// The oldest range tombstone, if it is due.
    pub(crate) fn due_range(&self) -> Option<RangeTombstone> {
        self.ranges.oldest_while(1, self.is_due()).pop()
    }

    /// Says of a range tombstone whether all older records are committed and no snapshot looks behind it. Until it is carried out,
    /// entries may refer to places that no read needs any more.
    fn is_due(&self) -> impl Fn(&RangeTombstone) -> bool {
        let (committed, (seen, _)) = (self.committed_sequence(), self.snapshots.oldest());
        move |range| range.sequence < committed && range.sequence <= seen
    }

    /// Carries out a bounded part of the oldest range tombstones that are due. True if there may be more to do.
    pub(crate) fn carry_out_ranges(&self, urgency: Urgency, context: &RunContext<'_>) -> Result<bool> {
        let mut carried_to = self.carried_to.lock().expect("no code panics while it carries out a range tombstone");
        let due = self.ranges.oldest_while(RANGES_AT_ONCE, self.is_due());
        if due.is_empty() {
            return Ok(false);
        }
        if self.committed.lmdb().is_some() {
            // Once, before they are forgotten, and after all that may have retained a record without knowing of them: older ones than those
            // that are due do not come any more.
            let known = self.ended_to.load(Ordering::Relaxed);
            self.snapshots.end_at(&due[due.partition_point(|range| range.sequence <= known)..]);
            self.ended_to.store(due.last().map_or(known, |range| range.sequence), Ordering::Relaxed);
        }
        let worked = self.committed.carry_out_ranges(&due, &mut carried_to, urgency, context)?;
        self.forget_ranges().map(|()| worked)
    }

    /// Does a bounded part of the most useful merge of runs. False if there was nothing to do.
    pub(crate) fn merge_some(&self, context: &RunContext<'_>) -> Result<bool> {
        let merged = self.committed.merge_some(context)?;
        self.forget_ranges().map(|()| merged)
    }

    /// [`OrderedIndex::merge_some`], unless another thread works on the runs: then `None`.
    pub(crate) fn merge_some_unless_busy(&self, beside: bool, context: &RunContext<'_>) -> Result<Option<bool>> {
        let merged = self.committed.merge_some_unless_busy(beside, context)?;
        if merged.is_some() { self.forget_ranges().map(|()| merged) } else { Ok(None) }
    }

    /// Does a bounded part of merging the runs that are wanted into one. False if there was nothing to do.
    pub(crate) fn compact_some(&self, wanted: Compaction, context: &RunContext<'_>) -> Result<bool> {
        let merged = self.committed.compact_some(wanted, context)?;
        self.forget_ranges().map(|()| merged)
    }

    /// See [`crate::index::runs::Runs::filter_step`].
    pub(crate) fn filter_some(&self, context: &RunContext<'_>) -> Result<bool> {
        let asked = self.committed.filter_some(context)?;
        self.forget_ranges().map(|()| asked)
    }

    /// Does a bounded part of the merges of a store in which nothing else is to be done. False if there was nothing to do.
    pub(crate) fn merge_at_rest(&self, context: &RunContext<'_>) -> Result<bool> {
        let merged = self.committed.merge_at_rest(context)?;
        self.forget_ranges().map(|()| merged)
    }

    /// Does a bounded part of leaving out a dropped table; true when nothing of it is left. `durable` is the last batch that is durable,
    /// that of the drop or a later one.
    pub(crate) fn purge(&self, table: u32, durable: u64, context: &RunContext<'_>) -> Result<bool> {
        let done = self.committed.purge(table, durable, context)?;
        self.forget_ranges().map(|()| done)
    }

    /// Forgets the range tombstones that committed runs carry themselves out.
    pub(super) fn forget_ranges(&self) -> Result<()> {
        let Some(runs) = self.committed.runs().filter(|_| self.ranges.len() > 0) else { return Ok(()) };
        // First, as above.
        let gone = runs.carried_out(&self.ranges, self.committed_sequence())?;
        self.snapshots.end_at(&gone);
        self.ranges.forget(|range| gone.binary_search_by_key(&range.sequence, |gone| gone.sequence).is_ok());
        Ok(())
    }
}
