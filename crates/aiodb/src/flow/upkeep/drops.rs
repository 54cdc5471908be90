//! What compaction filters give up is deleted: each key by a delete in the log, on the condition that its newest record is still the put
//! that the filter has seen. So nothing of it comes back when an index is made again, and snapshots see it as long as they last.

use std::sync::Arc;

use crate::flow::conditional::{Requirement, Wanted};
use crate::format::place::batch_bytes;
use crate::io::Device;
use crate::log::Claim;
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableSlot};
use crate::store::dropping::Dropped;
use crate::store::write_path::WritePath;
use crate::sync::atomic::Ordering;
use crate::{Durability, Error, Result};

/// Deletes of one atomic group.
const DELETED_AT_ONCE: usize = 64;

/// Groups of a round of upkeep.
const GROUPS_PER_ROUND: usize = 64;

/// What became of a group.
enum Outcome {
    /// So many keys were deleted.
    Deleted(usize),
    /// Writers would have to wait, or room would have to be made: the round ends.
    NoRoom,
    /// Tables were swapped meanwhile: it is tried again.
    TablesChanged,
}

impl<D: Device> WritePath<D> {
    /// Asks filters of what may go by now, and deletes some of what they have given up. True if there may be more to do.
    pub(crate) fn filter_some(&self) -> Result<bool> {
        if !self.catalog.has_filters() {
            return Ok(false);
        }
        let asked = self.ask_filters();
        let deleted = self.delete_dropped()?;
        Ok(asked? || deleted)
    }

    /// Deletes some of what filters have given up. True if there was any.
    fn delete_dropped(&self) -> Result<bool> {
        for group in 0..GROUPS_PER_ROUND {
            let mut dropped = self.dropping.take(DELETED_AT_ONCE, self.max_batch_bytes() / 2);
            if dropped.is_empty() {
                return Ok(group > 0);
            }
            match self.delete_taken(&mut dropped) {
                Ok(Outcome::Deleted(deleted)) => {
                    self.meters.filter_dropped_keys.fetch_add(deleted as u64, Ordering::Relaxed);
                }
                Ok(Outcome::NoRoom) => {
                    self.dropping.put_back(dropped);
                    return Ok(group > 0);
                }
                Ok(Outcome::TablesChanged) => self.dropping.put_back(dropped),
                // Who opens the store next asks again.
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Deletes those keys of one table that are as a filter has seen them, and leaves out the others.
    fn delete_taken(&self, dropped: &mut Vec<Dropped>) -> Result<Outcome> {
        let Some(first) = dropped.first() else { return Ok(Outcome::Deleted(0)) };
        // What is gone with its table need not be deleted.
        let (slot, generation) = (self.catalog.slot_of(first.table), self.catalog.generation(first.table));
        let (Some(slot), Some(generation)) = (slot, generation) else { return Ok(Outcome::Deleted(0)) };
        while !dropped.is_empty() {
            let keys = dropped.len();
            match self.delete_group(&slot, &generation, dropped) {
                Err(Error::NoSuchTable { .. }) => break,
                // Room that there was has gone to others.
                Err(error) if error.is_full() => return Ok(Outcome::NoRoom),
                // The condition was of what has the table's name now.
                Err(Error::ConditionFailed { .. }) if !slot.has(&generation) => return Ok(Outcome::TablesChanged),
                // It was written to, or deleted, since the filter has seen it.
                Err(Error::ConditionFailed { condition, .. }) => drop(dropped.remove(condition)),
                Err(error) if error.is_unreadable() => {
                    self.leave_out_changed(&slot, &generation, dropped)?;
                    if dropped.len() == keys {
                        return Err(error);
                    }
                    continue;
                }
                outcome => return outcome,
            }
            self.leave_out_changed(&slot, &generation, dropped)?;
        }
        Ok(Outcome::Deleted(0))
    }

    /// Leaves out the keys that are not as a filter has seen them. So are those that cannot be read: the others need not wait for them.
    fn leave_out_changed(
        &self,
        slot: &Arc<TableSlot>,
        generation: &Arc<Generation>,
        dropped: &mut Vec<Dropped>,
    ) -> Result<()> {
        let mut outcome = Ok(());
        dropped.retain(|dropped| match self.check_requirement(0, &requirement(slot, dropped), generation) {
            Err(Error::ConditionFailed { .. }) => false,
            Err(error) if error.is_unreadable() => {
                self.note_trouble(&error);
                false
            }
            checked => {
                outcome = std::mem::replace(&mut outcome, Ok(())).and(checked);
                true
            }
        });
        outcome
    }

    /// Deletes keys of one table if all of them are as a filter has seen them. It claims no more room than a put: nothing is gained for
    /// other writes before reclaim comes by.
    fn delete_group(
        &self,
        slot: &Arc<TableSlot>,
        generation: &Arc<Generation>,
        dropped: &[Dropped],
    ) -> Result<Outcome> {
        let is_unconditional = planted::is_on(Bug::DropBeatsPut);
        let requirements: Vec<_> =
            dropped.iter().filter(|_| !is_unconditional).map(|dropped| requirement(slot, dropped)).collect();
        let mut operations: Vec<_> =
            dropped.iter().map(|dropped| self.delete_operation(generation.clone(), &dropped.key)).collect();
        let members = operations.len() - 1;
        operations[..members].iter_mut().for_each(|operation| operation.append.more = true);
        let length = batch_bytes(operations.iter().map(|operation| &operation.append));
        if self.has_backpressure(&operations) || !self.has_room_to_spare(&operations, length) {
            return Ok(Outcome::NoRoom);
        }
        let (claim, namings) = (Claim::Ordinary, self.catalog.namings());
        let appended =
            self.append_conditional_claiming(claim, &requirements, &operations, Durability::None, namings)?;
        Ok(appended.map_or(Outcome::TablesChanged, |_| Outcome::Deleted(dropped.len())))
    }
}

/// That a key is as a filter has seen it.
fn requirement(slot: &Arc<TableSlot>, dropped: &Dropped) -> Requirement {
    Requirement { slot: Arc::clone(slot), key: dropped.key.to_vec(), wanted: Wanted::Put(dropped.sequence) }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
