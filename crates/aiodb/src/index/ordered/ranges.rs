//! Range tombstones of an ordered index, from their publication until they are carried out.

use super::OrderedIndex;
use crate::Result;
use crate::index::accounting::Accounting;
use crate::index::codec::prefix_key;
use crate::index::range_tombstones::RangeTombstone;

/// Range tombstones that are carried out at once.
const RANGES_AT_ONCE: usize = 1024;

impl OrderedIndex {
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
    pub(crate) fn carry_out_ranges(&self, accounting: &Accounting<'_>) -> Result<bool> {
        let mut carried_to = self.carried_to.lock().expect("no code panics while it carries out a range tombstone");
        let due = self.ranges.oldest_while(RANGES_AT_ONCE, self.is_due());
        if due.is_empty() {
            return Ok(false);
        }
        // Before they are forgotten, after all that may have retained a record without knowing of them.
        self.snapshots.end_at(&due);
        self.committed.carry_out_ranges(&due, &mut carried_to, accounting)?;
        Ok(true)
    }
}
