//! From a user's batch to operations in the log.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::flow::conditional::Requirement;
use crate::flow::operation::Stored;
use crate::flow::write::last_sequence;
use crate::format::record::{Kind, encode_range_end};
use crate::io::{Device, Disk};
use crate::planted::{self, Bug};
use crate::store::catalog::TableSlot;
use crate::store::commit::{Guard, Operation};
use crate::store::staging::Staged;
use crate::store::write_path::WritePath;
use crate::{Durability, Error, Result, Sequence};

/// A batch in the log.
pub(crate) struct AppendedBatch<'a> {
    pub(crate) sequence: Sequence,
    /// As in [`crate::flow::write::Appended`].
    pub(crate) unpublished: Option<(Guard<'a>, u64)>,
    /// Protects the batch's chunks from reclaim until its records are published.
    pub(crate) staging: Option<Staged<'a>>,
}

impl<D: Device> WritePath<D> {
    /// Applies a batch and returns when it is acknowledged in its class.
    pub(crate) fn write_batch(&self, batch: &Batch<D>, durability: Durability) -> Result<Sequence> {
        let AppendedBatch { sequence, unpublished, staging: _staging } = self.append_batch(batch, durability)?;
        if let Some((state, number)) = unpublished {
            self.timed(&self.meters.acknowledge_wait, || self.wait_durable(state, number))?;
        }
        self.note_freeing(batch.operations.iter().map(|operation| operation.change.kind()));
        Ok(sequence)
    }

    /// Appends a batch whose conditions hold; the result says what is left to do for its acknowledgement.
    pub(crate) fn append_batch(&self, batch: &Batch<D>, durability: Durability) -> Result<AppendedBatch<'_>> {
        let slots = batch.operations.iter().map(|operation| &operation.slot);
        let mut slots = slots.chain(batch.requirements.iter().map(|requirement| &requirement.slot));
        if let Some(foreign) = slots.find(|slot| slot.store != self.segments.store) {
            return Err(Error::NoSuchTable { name: format!("{} (of another store)", foreign.name) });
        }
        loop {
            if let Some(appended) = self.append_batch_once(batch, durability)? {
                return Ok(appended);
            }
        }
    }

    /// `None` if a table was emptied or dropped meanwhile.
    fn append_batch_once(&self, batch: &Batch<D>, durability: Durability) -> Result<Option<AppendedBatch<'_>>> {
        let large = batch.has_large(self);
        if large {
            // Large values go ahead in chunks; a batch that is refused anyway should not write them.
            self.check_requirements(&batch.requirements)?;
        }
        let staging = large.then(|| self.begin_staging());
        // The batch holds only the lists of chunks. Both belong to one generation of the table, or reclaim would take the chunks for
        // those of a table that is gone.
        let mut values = Vec::with_capacity(batch.operations.len());
        for BatchOperation { slot, key, change } in &batch.operations {
            let generation = slot.generation()?;
            let value = match change {
                Change::Put(value, _) | Change::Merge(value) => self.stored(&generation, key, value)?,
                Change::Delete => Stored::empty(),
                Change::DeleteRange(end) => Stored::whole(encode_range_end(0, end)),
            };
            values.push((generation, value));
        }
        let mut operations: Vec<Operation<'_>> = Vec::with_capacity(batch.operations.len());
        for (BatchOperation { slot, key, change }, (generation, value)) in batch.operations.iter().zip(&values) {
            let generation =
                if planted::is_on(Bug::ChunksOfAnotherTable) { slot.generation()? } else { Arc::clone(generation) };
            operations.push(match change {
                Change::Put(_, expires_ms) => self.put_operation(generation, key, value, *expires_ms),
                Change::Merge(_) => self.merge_operation(generation, key, value),
                Change::Delete => self.delete_operation(generation, key),
                Change::DeleteRange(_) => self.range_operation(generation, key, &value.bytes),
            });
        }
        let members = operations.len().saturating_sub(1);
        operations[..members].iter_mut().for_each(|operation| operation.append.more = true);
        if !batch.requirements.is_empty() {
            let conditional = self.append_conditional(&batch.requirements, &operations, durability)?;
            return Ok(conditional.map(|(appended, sequence)| {
                let unpublished = appended.and_then(|appended| appended.unpublished);
                AppendedBatch { sequence, unpublished, staging }
            }));
        }
        if operations.is_empty() {
            let sequence = Sequence(self.commit.next_sequence() - 1);
            return Ok(Some(AppendedBatch { sequence, unpublished: None, staging }));
        }
        // Whole in the tables as they are then: in one that was emptied before, its part would be missing beside those in others.
        let are_there = || {
            let mut generations = operations.iter().filter_map(|operation| operation.generation.as_ref());
            !generations.any(|generation| generation.is_gone()) || planted::is_on(Bug::BatchTornByTruncate)
        };
        let appended = self.append(&operations, durability, None, are_there)?;
        Ok(appended.map(|appended| {
            let sequence = last_sequence(&appended.placed);
            AppendedBatch { sequence, unpublished: appended.unpublished, staging }
        }))
    }
}

pub(crate) struct BatchOperation {
    pub(crate) slot: Arc<TableSlot>,
    pub(crate) key: Vec<u8>,
    pub(crate) change: Change,
}

/// The change of a key.
pub(crate) enum Change {
    /// A value, and the time until which it counts.
    Put(Vec<u8>, Option<NonZeroU64>),
    Merge(Vec<u8>),
    Delete,
    /// All keys from this one to the given end.
    DeleteRange(Vec<u8>),
}

impl Change {
    fn kind(&self) -> Kind {
        match self {
            Change::Put(..) => Kind::Put,
            Change::Merge(_) => Kind::Merge,
            Change::Delete => Kind::Delete,
            Change::DeleteRange(_) => Kind::RangeTombstone,
        }
    }
}

/// An atomic group of writes, possibly to several tables of one store. Later operations on a key win.
pub struct Batch<D: Device = Disk> {
    pub(crate) operations: Vec<BatchOperation>,
    pub(crate) requirements: Vec<Requirement>,
    _store: std::marker::PhantomData<fn() -> D>,
}

impl<D: Device> Batch<D> {
    /// An empty batch.
    pub fn new() -> Batch<D> {
        Batch { operations: Vec::new(), requirements: Vec::new(), _store: std::marker::PhantomData }
    }
}

impl<D: Device> Default for Batch<D> {
    fn default() -> Self {
        Batch::new()
    }
}
