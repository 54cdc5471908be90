//! What compaction filters give up is deleted: each key by a delete in the log, on the condition that its newest record is still the put
//! that the filter has seen. So nothing of it comes back when an index is made again, and snapshots see it as long as they last.

use crate::flow::conditional::{Requirement, Wanted};
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::store::dropping::Dropped;
use crate::store::write_path::WritePath;
use crate::sync::atomic::Ordering;
use crate::{Durability, Error, Result};

/// Deletes of one atomic group.
const DELETED_AT_ONCE: usize = 64;

/// Groups of a round of upkeep.
const GROUPS_PER_ROUND: usize = 64;

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
            while !dropped.is_empty() {
                match self.delete_group(&dropped) {
                    Ok(deleted) => {
                        self.meters.filter_dropped_keys.fetch_add(deleted as u64, Ordering::Relaxed);
                        break;
                    }
                    // It was written to, or deleted, since the filter has seen it.
                    Err(Error::ConditionFailed { condition, .. }) => drop(dropped.remove(condition)),
                    Err(error) => {
                        // Where an index cannot be read it will not be soon: the others need not wait. Who opens the store next asks again.
                        if error.is_full() {
                            self.dropping.put_back(dropped);
                        }
                        return Err(error);
                    }
                }
            }
        }
        Ok(true)
    }

    /// Deletes keys of one table if all of them are as a filter has seen them. Returns how many.
    fn delete_group(&self, dropped: &[Dropped]) -> Result<usize> {
        let first = dropped.first().expect("there is a key");
        // What is gone with its table need not be deleted.
        let Some(slot) = self.catalog.slot_of(first.table) else { return Ok(0) };
        let Some(generation) = self.catalog.generation(first.table) else { return Ok(0) };
        let requirement = |dropped: &Dropped| Requirement {
            slot: slot.clone(),
            key: dropped.key.to_vec(),
            wanted: Wanted::Put(dropped.sequence),
        };
        let is_unconditional = planted::is_on(Bug::DropBeatsPut);
        let requirements: Vec<_> = dropped.iter().filter(|_| !is_unconditional).map(requirement).collect();
        let mut operations: Vec<_> =
            dropped.iter().map(|dropped| self.delete_operation(generation.clone(), &dropped.key)).collect();
        let members = operations.len() - 1;
        operations[..members].iter_mut().for_each(|operation| operation.append.more = true);
        let appended = self.append_conditional(&requirements, &operations, Durability::None)?;
        Ok(appended.map_or(0, |_| dropped.len()))
    }
}
