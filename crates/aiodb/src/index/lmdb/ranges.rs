//! Range deletes: kept beside the entries until their keys are taken out, a bounded part at a time.

use std::ops::Bound;

use heed::RwTxn;

use super::codec::{RANGE_PREFIX, decode_range, decode_stack, encode_range, prefix_key, range_key};
use super::counters::Accounting;
use super::{KEYS_PER_TRANSACTION, LmdbIndex};
use crate::Result;
use crate::index::ranges::RangeDelete;
use crate::index::stack::{Displaced, Stack};
use crate::planted::{self, Bug};

impl LmdbIndex {
    /// Publishes a range delete.
    pub(crate) fn insert_range(&self, table: u32, start: &[u8], end: &[u8], sequence: u64) {
        let end = if end.is_empty() { (table + 1).to_be_bytes().to_vec() } else { prefix_key(table, end) };
        self.ranges.insert(RangeDelete { start: prefix_key(table, start).into(), end: end.into(), sequence });
    }

    /// The oldest range delete, if it is covered and no snapshot looks behind it. Until it is carried out, entries may refer
    /// to places that nobody needs any more.
    pub(crate) fn due_range(&self) -> Option<RangeDelete> {
        let is_due =
            |range: &RangeDelete| range.sequence < self.covered() && range.sequence <= self.snapshots.oldest().0;
        self.ranges.oldest().filter(is_due)
    }

    /// Carries out a bounded part of the oldest range delete, if no snapshot looks behind it. True if there may be more
    /// to do.
    pub(crate) fn carry_out_ranges(&self, accounting: &Accounting<'_>) -> Result<bool> {
        let Some(range) = self.due_range() else { return Ok(false) };
        let mut carried_to = self.carried_to.lock().expect("no code panics while it carries out a range delete");
        let from = if carried_to.0 == range.sequence { std::mem::take(&mut carried_to.1) } else { Vec::new() };
        let mut reached = None;
        self.transact(accounting, |txn, changes| {
            let start = if from.is_empty() { Bound::Included(&*range.start) } else { Bound::Excluded(&from[..]) };
            let mut keys: Vec<(Box<[u8]>, Stack)> = Vec::new();
            for item in self.database.range(txn, &(start, Bound::Excluded(&*range.end)))?.take(KEYS_PER_TRANSACTION) {
                let (key, value) = item?;
                keys.push((key.into(), decode_stack(value).unwrap_or_default()));
            }
            reached = (keys.len() == KEYS_PER_TRANSACTION).then(|| keys.last().expect("there are some").0.to_vec());
            for (key, mut stack) in keys {
                let mut displaced = Displaced::new();
                stack.cut(range.sequence, &mut displaced);
                if !displaced.is_empty() {
                    self.snapshots.keep(&key, &displaced);
                    self.store(txn, &key, &stack, changes)?;
                    changes.died(&key, displaced.into_iter().map(|(entry, _)| entry));
                }
            }
            if reached.is_none() { self.database.delete(txn, &range_key(&range)).map(drop) } else { Ok(()) }
        })?;
        match reached {
            Some(key) => *carried_to = (range.sequence, key),
            None => self.ranges.forget(|known| known.sequence == range.sequence),
        }
        Ok(true)
    }

    /// Writes down the range deletes before a sequence.
    pub(super) fn store_ranges(&self, txn: &mut RwTxn<'_>, next_sequence: u64) -> heed::Result<()> {
        let written =
            |range: &&RangeDelete| range.sequence < next_sequence && !planted::is_on(Bug::RangeDeleteForgotten);
        for range in self.ranges.all().iter().filter(written) {
            self.database.put(txn, &range_key(range), &encode_range(range))?;
        }
        Ok(())
    }

    pub(super) fn load_ranges(&self) -> Result<()> {
        self.for_each_with_prefix(&RANGE_PREFIX, |key, value| {
            self.ranges.insert(decode_range(key, value).ok_or_else(|| self.bad_entry())?);
            Ok(())
        })
    }
}
