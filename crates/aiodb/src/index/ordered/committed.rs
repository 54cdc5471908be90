//! What lies below the memtable of an ordered index.

use std::collections::BTreeSet;

use crate::Result;
use crate::index::accounting::ChunkBytes;
use crate::index::chain::VersionChain;
use crate::index::lmdb::LmdbIndex;
use crate::index::memtable::parts::ChainList;
use crate::index::memtable::{ImmutableMemtable, MemtableRoom, RangeQuery, Reached};
use crate::index::range_tombstones::{RangeTombstone, Ranges, Urgency};
use crate::index::runs::lookup::RunLookup;
use crate::index::runs::scan::RunWalk;
use crate::index::runs::{Compaction, LiveCount, RunContext, RunShare, Runs};
use crate::io::Device;

/// Bytes that one step of a merge writes, about.
const MERGED_PER_STEP: u64 = 8 << 20;

/// The committed version chains of all tables of a kind.
pub(crate) enum Committed<D: Device> {
    Lmdb(LmdbIndex),
    Runs(Runs<D>),
}

/// What committed entries count in one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Live {
    pub(crate) segment: u32,
    /// The life of the segment in which they lie, where that is known.
    pub(crate) life: Option<u64>,
    pub(crate) bytes: i64,
    pub(crate) records: i64,
}

impl<D: Device> Committed<D> {
    /// LMDB, for what only its file needs.
    pub(crate) fn lmdb(&self) -> Option<&LmdbIndex> {
        match self {
            Committed::Lmdb(lmdb) => Some(lmdb),
            Committed::Runs(_) => None,
        }
    }

    /// The runs, for what only they need.
    pub(crate) fn runs(&self) -> Option<&Runs<D>> {
        match self {
            Committed::Lmdb(_) => None,
            Committed::Runs(runs) => Some(runs),
        }
    }

    /// Adds the committed entries of an index key up to a sequence, below the entries in `chain`. Of runs nothing yet: they are to be
    /// asked by the look-up that it returns.
    #[inline]
    pub(super) fn begin_lookup(
        &self,
        key: &[u8],
        newest: u64,
        chain: &mut VersionChain,
    ) -> Result<Option<RunLookup<D>>> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.lookup(key, newest, chain).map(|()| None),
            Committed::Runs(runs) => runs.begin_lookup(key, newest).map(Some),
        }
    }

    /// Committed keys of a range, with their entries. Says how far it came.
    pub(super) fn range(&self, query: RangeQuery<'_>, walk: &mut RunWalk<D>) -> Result<(ChainList, Reached)> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.range(query),
            Committed::Runs(runs) => runs.range(query, walk),
        }
    }

    /// Commits an immutable memtable durably, with the range tombstones before its next sequence; `reached` is told now and then how
    /// many of its keys are.
    pub(super) fn commit(
        &self,
        immutable: &mut ImmutableMemtable,
        ranges: &Ranges,
        context: &RunContext<'_>,
        reached: &dyn Fn(usize),
    ) -> Result<()> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.commit(immutable, context.accounting, reached),
            Committed::Runs(runs) => {
                let next_sequence = immutable.next_sequence;
                let known = ranges.oldest_while(usize::MAX, |range| range.sequence < next_sequence);
                runs.flush(immutable, &known, context, reached)
            }
        }
    }

    /// Carries out a bounded part of range tombstones that are due, see [`LmdbIndex::carry_out_ranges`]. False if there was nothing to
    /// do.
    pub(super) fn carry_out_ranges(
        &self,
        due: &[RangeTombstone],
        carried_to: &mut (u64, Vec<u8>),
        urgency: Urgency,
        context: &RunContext<'_>,
    ) -> Result<bool> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.carry_out_ranges(due, carried_to, context.accounting).map(|()| true),
            Committed::Runs(runs) => runs.range_step(urgency, context),
        }
    }

    /// Does a bounded part of the most useful merge. False if there was nothing to do.
    pub(super) fn merge_some(&self, context: &RunContext<'_>) -> Result<bool> {
        match self {
            Committed::Lmdb(_) => Ok(false),
            Committed::Runs(runs) => runs.merge_step(MERGED_PER_STEP, context),
        }
    }

    /// See [`Runs::merge_step_unless_busy`] and, for a step that is not `beside` another, [`Runs::merge_step_if_free`].
    pub(super) fn merge_some_unless_busy(&self, beside: bool, context: &RunContext<'_>) -> Result<Option<bool>> {
        match self {
            Committed::Lmdb(_) => Ok(Some(false)),
            Committed::Runs(runs) if beside => runs.merge_step_unless_busy(MERGED_PER_STEP, context),
            Committed::Runs(runs) => runs.merge_step_if_free(MERGED_PER_STEP, context),
        }
    }

    /// See [`Runs::compact_step`].
    pub(super) fn compact_some(&self, wanted: Compaction, context: &RunContext<'_>) -> Result<bool> {
        match self {
            Committed::Lmdb(_) => Ok(false),
            Committed::Runs(runs) => runs.compact_step(MERGED_PER_STEP, wanted, context),
        }
    }

    /// See [`Runs::filter_step`].
    pub(super) fn filter_some(&self, context: &RunContext<'_>) -> Result<bool> {
        match self {
            Committed::Lmdb(_) => Ok(false),
            Committed::Runs(runs) => runs.filter_step(context),
        }
    }

    /// Does a bounded part of the merges of a store in which nothing else is to be done. False if there was nothing to do.
    pub(super) fn merge_at_rest(&self, context: &RunContext<'_>) -> Result<bool> {
        match self {
            Committed::Lmdb(_) => Ok(false),
            Committed::Runs(runs) => runs.rest_step(MERGED_PER_STEP, context),
        }
    }

    /// All deletes before this sequence have met all older entries of their keys, once they are committed.
    pub(super) fn settled_sequence(&self) -> u64 {
        match self {
            // A commit looks for them.
            Committed::Lmdb(_) => u64::MAX,
            Committed::Runs(runs) => runs.settled_sequence().unwrap_or(0),
        }
    }

    /// See [`MemtableRoom`].
    pub(super) fn memtable_room(&self) -> Result<MemtableRoom> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.memtable_room(),
            Committed::Runs(runs) => Ok(runs.memtable_room()),
        }
    }

    /// Deletes a bounded part of a dropped table's keys; true when none is left. `durable` is the last batch that is durable, that of
    /// the drop or a later one.
    pub(super) fn purge(&self, table: u32, durable: u64, context: &RunContext<'_>) -> Result<bool> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.purge(table, durable, context.accounting),
            Committed::Runs(runs) => runs.purge_step(table, durable, context),
        }
    }

    /// The last batch that a change has relied on as durable: a log that ends before it has lost its end.
    pub(crate) fn last_durable_batch(&self) -> Result<u64> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.last_durable_batch(),
            Committed::Runs(runs) => runs.last_durable_batch(),
        }
    }

    /// Live bytes and records that the committed entries have in each segment. Of runs, entries that newer ones have superseded are
    /// among them until a merge has found that out.
    pub(crate) fn live(&self) -> Result<Vec<Live>> {
        match self {
            Committed::Lmdb(lmdb) => {
                let live = lmdb.live()?.into_iter();
                Ok(live.map(|(segment, (bytes, records))| Live { segment, life: None, bytes, records }).collect())
            }
            Committed::Runs(runs) => {
                let live = runs.live()?.into_iter();
                let of_life = |count: LiveCount| Live {
                    segment: count.segment,
                    life: Some(count.life),
                    bytes: count.bytes,
                    records: count.records,
                };
                Ok(live.map(of_life).collect())
            }
        }
    }

    /// Bytes of chunks that the committed entries name, by table.
    pub(crate) fn live_chunks(&self) -> Result<Vec<(u32, ChunkBytes)>> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.live_chunks(),
            Committed::Runs(runs) => runs.live_chunks(),
        }
    }

    /// The tables that have committed entries, or counts of earlier ones.
    pub(crate) fn tables(&self) -> Result<BTreeSet<u32>> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.tables(),
            Committed::Runs(runs) => runs.tables(),
        }
    }

    /// Whether there are entries of a table, in an index that is whole.
    pub(crate) fn has_whole(&self, table: u32) -> Result<bool> {
        let position = match self {
            Committed::Lmdb(lmdb) => lmdb.position()?,
            Committed::Runs(runs) => runs.position()?,
        };
        Ok(position.is_some_and(|position| position.batch > 0) && self.tables()?.contains(&table))
    }

    /// Committed keys of a table; of runs an estimate.
    pub(crate) fn count(&self, table: u32) -> u64 {
        match self {
            Committed::Lmdb(lmdb) => lmdb.count(table),
            // None of a store that is closed.
            Committed::Runs(runs) => runs.count_estimate(table).unwrap_or(0),
        }
    }

    /// Whether [`Committed::count`] is exact.
    pub(crate) fn counts_exactly(&self) -> bool {
        matches!(self, Committed::Lmdb(_))
    }

    /// Bytes of the files.
    pub(crate) fn disk_bytes(&self) -> u64 {
        match self {
            Committed::Lmdb(lmdb) => lmdb.disk_bytes(),
            Committed::Runs(runs) => runs.disk_bytes(),
        }
    }

    /// What a table has of runs.
    pub(crate) fn share_of(&self, table: u32) -> RunShare {
        match self {
            Committed::Lmdb(_) => RunShare::default(),
            Committed::Runs(runs) => runs.share_of(table),
        }
    }

    /// Bytes that the files would have if no block of runs were compressed.
    pub(crate) fn plain_bytes(&self) -> u64 {
        match self {
            Committed::Lmdb(lmdb) => lmdb.disk_bytes(),
            Committed::Runs(runs) => runs.plain_bytes(),
        }
    }

    /// Bytes of memory that it keeps of its files, of all tables together.
    pub(crate) fn memory_bytes(&self) -> u64 {
        match self {
            // The page cache does that work.
            Committed::Lmdb(_) => 0,
            Committed::Runs(runs) => runs.memory_bytes(),
        }
    }

    /// Releases the files. Later calls fail with [`crate::Error::Closed`].
    pub(crate) fn close(&self) {
        match self {
            Committed::Lmdb(lmdb) => lmdb.close(),
            Committed::Runs(runs) => runs.close(),
        }
    }
}
