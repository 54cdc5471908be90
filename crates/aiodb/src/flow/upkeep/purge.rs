//! Takes the records of dropped and truncated tables out of the counts and the indexes, a bounded part at a time.
//!
//! A drop or a truncate only puts the generation on a list, unless that is long. Nothing that a purge holds while it works is waited
//! for by writers, by threads that change tables, or by snapshots; its transactions and those of a commit of the memtable take turns.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::Result;
use crate::flow::room::unless_full;
use crate::format::spilled::SpilledLive;
use crate::index::accounting::Accounting;
use crate::index::chain::Entry;
use crate::index::hash::{HashIndex, SHARDS};
use crate::io::Device;
use crate::store::catalog::{Generation, TableIndex};
use crate::store::purging::{Gone, Purge};
use crate::store::upkeep::Upkeep;

/// Where so many generations are gone, who drops or truncates another table does a part of the work first: the list would grow for as
/// long as tables go faster than they are purged.
const MAX_GONE: usize = 16;

/// Places of a hash index that are counted off in one step.
const PLACES_PER_STEP: usize = 64 << 10;

impl<D: Device> Upkeep<D> {
    /// Changes the catalog, and queues the generation that no table has any more since. A thread that finds the catalog changed finds it
    /// queued: a segment without records that count for any table is not used again before it is purged.
    pub(crate) fn forget_generation(&self, change: impl FnOnce() -> Option<Arc<Generation>>) {
        let mut waiting = self.purging.lock();
        let Some(generation) = change() else { return };
        generation.set_gone();
        // After the change: a snapshot from before it may look at the generation.
        let hold = self.retention.stamp();
        waiting.push(Gone { generation, hold, is_unreadable: false });
    }

    /// Whether indexes may still refer to places that only a table needed that is gone, of those with lower ids than this one.
    pub(crate) fn is_purge_due(&self, before: u32) -> bool {
        self.purging.is_any_ready(before, |hold| self.retention.are_over(hold))
    }

    /// Like [`Upkeep::is_purge_due`], for a segment that is to begin another life.
    pub(crate) fn is_purge_awaited(&self, before: u32) -> bool {
        self.purging.is_any_in_segments(before, |hold| self.retention.are_over(hold))
    }

    /// Does a bounded part of the work where too much of it waits.
    pub(crate) fn bound_gone(&self) -> Result<()> {
        let waiting = self.purging.lock().len();
        if waiting < MAX_GONE {
            return Ok(());
        }
        self.unless_damaged(unless_full(self.purge_some())).map(drop)
    }

    /// Does a bounded part of the work. True when no work is left.
    pub(crate) fn purge_some(&self) -> Result<bool> {
        let mut current = self.purging.current.lock().expect("no code panics while it purges");
        self.commit.check_open()?;
        if current.is_none() {
            let ready = self.purging.first_ready(|hold| self.retention.are_over(hold));
            let Some(generation) = ready else { return Ok(true) };
            // A publisher that has not seen that the table is gone may still add records.
            self.publishers.wait_for_present();
            *current = Some(Purge { generation, shards: 0, has_left_memtable: false });
        }
        let purge = current.as_mut().expect("just chosen");
        let done = match &purge.generation.index {
            TableIndex::Hash(index) => {
                if purge.shards == 0 && self.may_spill() {
                    // From here on no place comes to a run.
                    self.spilling.lock().leave_gone();
                }
                self.purge_places(index, &mut purge.shards);
                if purge.shards == SHARDS {
                    self.purge_runs(purge.generation.id);
                }
                purge.shards == SHARDS
            }
            TableIndex::Ordered => match self.making_room(|| self.purge_keys(purge)) {
                Err(error) if error.is_unreadable() => {
                    // Others are not to wait for it.
                    if error.is_damage() {
                        self.purging.set_unreadable(purge.generation.id);
                    }
                    *current = None;
                    return Err(error);
                }
                purged => purged?,
            },
        };
        if done {
            let id = purge.generation.id;
            for segment in self.segments.iter() {
                segment.live_chunks().remove(&id);
            }
            self.purging.lock().retain(|gone| gone.generation.id != id);
            self.catalog.forget(id);
            *current = None;
        }
        Ok(done && self.purging.first_ready(|hold| self.retention.are_over(hold)).is_none())
    }

    /// Counts off the places of some shards.
    fn purge_places(&self, index: &HashIndex, shards: &mut usize) {
        let mut places = 0;
        while *shards < SHARDS && places < PLACES_PER_STEP {
            index.for_each_in(*shards, &mut |location| {
                self.remove_live(location);
                places += 1;
            });
            *shards += 1;
        }
    }

    /// Counts off the places that a table had in runs.
    fn purge_runs(&self, table: u32) {
        for SpilledLive { segment, bytes, records } in self.spilled.forget(table) {
            if let Some(segment) = self.segments.find(segment) {
                segment.live_bytes.fetch_sub(bytes, Ordering::Relaxed);
                segment.live_records.fetch_sub(records, Ordering::Relaxed);
            }
        }
    }

    /// Takes some keys out of an ordered index; true when none is left.
    fn purge_keys(&self, purge: &mut Purge) -> Result<bool> {
        let ordered = self.ordered_of(&purge.generation);
        if !purge.has_left_memtable {
            if ordered.memtable.len() > 0 {
                self.commit_memtable(ordered)?;
            }
            purge.has_left_memtable = true;
        }
        // Its chunks leave the counts as a whole, with the last keys.
        let (table, durable) = (purge.generation.id, self.commit.durable());
        let died = |_, dead: &Entry, bytes| self.remove_live_bytes(dead.location, bytes);
        let accounting = Accounting { chunks_of: &|entry| self.chunks_of(entry), died: &died, ..Accounting::NONE };
        self.with_context(ordered, &accounting, |context| ordered.purge(table, durable, context))
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
