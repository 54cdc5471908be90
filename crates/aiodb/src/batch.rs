//! From a user's batch to operations in the log.

use crate::commit::Guard;
use crate::db::Batch;
use crate::engine::{Engine, Staging};
use crate::io::Device;
use crate::write::{Operation, last_sequence};
use crate::{Durability, Error, Result, Sequence};

/// A batch in the log.
pub(crate) struct AppendedBatch<'a> {
    pub(crate) sequence: Sequence,
    /// As in [`crate::write::Appended`].
    pub(crate) unpublished: Option<(Guard<'a>, u64)>,
    /// Keeps the batch's chunks until its records are published.
    pub(crate) staging: Option<Staging<'a>>,
}

impl<D: Device> Engine<D> {
    /// Applies a batch and returns when it is acknowledged in its class.
    pub(crate) fn write_batch(&self, batch: &Batch<D>, durability: Durability) -> Result<Sequence> {
        let AppendedBatch { sequence, unpublished, staging: _staging } = self.append_batch(batch, durability)?;
        if let Some((state, number)) = unpublished {
            self.wait_durable(state, number)?;
        }
        Ok(sequence)
    }

    /// Appends a batch whose conditions hold; what is left to do for its acknowledgement is said by the result.
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

    /// `None` if a table was emptied meanwhile.
    fn append_batch_once(&self, batch: &Batch<D>, durability: Durability) -> Result<Option<AppendedBatch<'_>>> {
        let large = batch.has_large(self);
        if large {
            // Large values go ahead in chunks; a batch that is refused anyway should not write them.
            self.check_requirements(&batch.requirements)?;
        }
        let staging = large.then(|| self.begin_staging());
        // The batch holds only the lists of chunks.
        let mut lists = Vec::with_capacity(batch.operations.len());
        for operation in &batch.operations {
            let large = operation.value.as_ref().filter(|value| value.len() > self.whole_value_bytes());
            lists.push(match large {
                Some(value) => Some(self.write_chunks(&operation.slot.generation()?, &operation.key, value)?),
                None => None,
            });
        }
        let mut operations: Vec<Operation<'_>> = Vec::with_capacity(batch.operations.len());
        for (operation, list) in batch.operations.iter().zip(&lists) {
            let generation = operation.slot.generation()?;
            operations.push(match (&operation.value, list) {
                (_, Some(list)) => self.put_operation(generation, &operation.key, list, true),
                (Some(value), None) => self.put_operation(generation, &operation.key, value, false),
                (None, None) => self.delete_operation(generation, &operation.key),
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
        let appended = self.append(&operations, durability, None, || true)?.expect("it is always permitted");
        let sequence = last_sequence(&appended.placed);
        Ok(Some(AppendedBatch { sequence, unpublished: appended.unpublished, staging }))
    }
}
