//! Range tombstones, stored beside the entries until their keys are taken out, a bounded part at a time.

use std::ops::Bound;

use heed::RwTxn;

use super::LmdbIndex;
use super::counters::Changes;
use super::keys::{RANGE_PREFIX, decode_range, encode_range, range_key};
use crate::Result;
use crate::index::accounting::Accounting;
use crate::index::chain::{Superseded, VersionChain};
use crate::index::codec::decode_chain;
use crate::index::range_tombstones::RangeTombstone;
use crate::planted::{self, Bug};
use crate::sync::atomic::Ordering;

impl LmdbIndex {
    /// Carries out a bounded part of range tombstones: all older records are committed, and no snapshot looks behind them. `carried_to` is
    /// the sequence of the one that the last call has not come to the end of, and the last key that it took out.
    pub(crate) fn carry_out_ranges(
        &self,
        due: &[RangeTombstone],
        carried_to: &mut (u64, Vec<u8>),
        accounting: &Accounting<'_>,
    ) -> Result<()> {
        let ((done, reached, taken_out), turn) = self.transact_some(accounting, |txn, changes, mut left| {
            let (mut done, mut reached) = (0, (0, Vec::new()));
            for range in due {
                let from = if carried_to.0 == range.sequence { &carried_to.1[..] } else { &[] };
                if let Some(key) = self.carry_out(txn, changes, range, from, &mut left)? {
                    reached = (range.sequence, key);
                    break;
                }
                self.database.delete(txn, &range_key(range))?;
                done = range.sequence;
            }
            Ok((done, reached, self.store_taken_out(txn)?))
        })?;
        self.taken_out.store(taken_out, Ordering::Relaxed);
        *carried_to = reached;
        self.ranges.forget(|known| known.sequence <= done);
        // Not before: a commit of the memtable writes down the range tombstones that are known.
        drop(turn);
        Ok(())
    }

    /// Takes out the keys of a range tombstone, after the key `from` unless that is empty, at most `left` keys. Returns the last
    /// one if there may be more.
    fn carry_out(
        &self,
        txn: &mut RwTxn<'_>,
        changes: &mut Changes<'_>,
        range: &RangeTombstone,
        from: &[u8],
        left: &mut usize,
    ) -> heed::Result<Option<Vec<u8>>> {
        let start = if from.is_empty() { Bound::Included(&*range.start) } else { Bound::Excluded(from) };
        let mut keys: Vec<(Box<[u8]>, VersionChain)> = Vec::new();
        for item in self.database.range(txn, &(start, Bound::Excluded(&*range.end)))?.take(*left) {
            let (key, value) = item?;
            keys.push((key.into(), decode_chain(value).unwrap_or_default()));
        }
        let last = if keys.len() == *left { keys.last().map(|(key, _)| key.to_vec()) } else { None };
        // Without room for a key, the end of the range is found in the next transaction.
        let reached = if *left == 0 { Some(from.to_vec()) } else { last };
        *left -= keys.len();
        for (key, mut chain) in keys {
            let mut superseded = Superseded::new();
            chain.cut(range.sequence, &mut superseded);
            if !superseded.is_empty() {
                self.snapshots.retain(&key, &superseded);
                self.store(txn, &key, &chain, changes)?;
                changes.died(&key, superseded.into_iter().map(|(entry, _)| entry));
            }
        }
        Ok(reached)
    }

    /// Writes down the range tombstones before a sequence.
    pub(super) fn store_ranges(&self, txn: &mut RwTxn<'_>, next_sequence: u64) -> heed::Result<()> {
        let written =
            |range: &&RangeTombstone| range.sequence < next_sequence && !planted::is_on(Bug::RangeDeleteForgotten);
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
