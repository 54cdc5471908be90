//! From a user's batch to operations in the log.

use std::sync::Arc;

use crate::commit::Guard;
use crate::db::{Batch, BatchOperation, Change};
use crate::engine::{Engine, Handle};
use crate::io::Device;
use crate::log::record::encode_range_end;
use crate::operation::{Operation, Staging, Stored};
use crate::write::last_sequence;
use crate::{Db, Durability, Error, Result, Sequence};

/// A batch in the log.
pub(crate) struct AppendedBatch<'a> {
    pub(crate) sequence: Sequence,
    /// As in [`crate::write::Appended`].
    pub(crate) unpublished: Option<(Guard<'a>, u64)>,
    /// Keeps the batch's chunks until its records are published.
    pub(crate) staging: Option<Staging<'a>>,
}

/// A batch that is in the log and waits for its acknowledgement. For tests of one thread, in which it stands for the thread
/// that would sleep meanwhile.
#[doc(hidden)]
pub struct WaitingWrite<D: Device> {
    engine: Arc<Handle<D>>,
    sequence: Sequence,
    /// The batch of the log that must be durable; `None` if it is acknowledged.
    number: Option<u64>,
    /// Keeps the batch's chunks until its records are published.
    staging: Option<u64>,
}

impl<D: Device> WaitingWrite<D> {
    /// Whether nothing is left to wait for.
    #[doc(hidden)]
    pub fn is_acknowledged(&self) -> bool {
        self.number.is_none_or(|number| self.engine.commit.completed() >= number)
    }

    /// Returns when the write is acknowledged in its class. The caller leads its batch unless another write has.
    #[doc(hidden)]
    pub fn wait(&self) -> Result<Sequence> {
        self.number.map_or(Ok(()), |number| self.engine.wait_for_batch(number)).map(|()| self.sequence)
    }
}

impl<D: Device> Drop for WaitingWrite<D> {
    fn drop(&mut self) {
        if let Some(token) = self.staging {
            self.engine.unstage(token);
        }
    }
}

impl<D: Device> Db<D> {
    /// Does the first half of [`Db::write_with`], and leaves the waiting to the caller.
    #[doc(hidden)]
    pub fn append_with(&self, batch: &Batch<D>, durability: Durability) -> Result<WaitingWrite<D>> {
        self.engine.check_open()?;
        let AppendedBatch { sequence, unpublished, staging } = self.engine.append_batch(batch, durability)?;
        let (number, staging) = (unpublished.map(|(_, number)| number), staging.map(Staging::into_token));
        Ok(WaitingWrite { engine: Arc::clone(&self.engine), sequence, number, staging })
    }
}

impl<D: Device> Engine<D> {
    /// Applies a batch and returns when it is acknowledged in its class.
    pub(crate) fn write_batch(&self, batch: &Batch<D>, durability: Durability) -> Result<Sequence> {
        let AppendedBatch { sequence, unpublished, staging: _staging } = self.append_batch(batch, durability)?;
        if let Some((state, number)) = unpublished {
            self.timed(&self.meters.acknowledge_wait, || self.wait_durable(state, number))?;
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
        let mut values = Vec::with_capacity(batch.operations.len());
        for BatchOperation { slot, key, change } in &batch.operations {
            values.push(match change {
                Change::Put(value, _) | Change::Merge(value) => self.stored(&slot.generation()?, key, value)?,
                Change::Delete => Stored::empty(),
                Change::DeleteRange(end) => Stored::whole(encode_range_end(0, end)),
            });
        }
        let mut operations: Vec<Operation<'_>> = Vec::with_capacity(batch.operations.len());
        for (BatchOperation { slot, key, change }, value) in batch.operations.iter().zip(&values) {
            let generation = slot.generation()?;
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
        let appended = self.append(&operations, durability, None, || true)?.expect("it is always permitted");
        let sequence = last_sequence(&appended.placed);
        Ok(Some(AppendedBatch { sequence, unpublished: appended.unpublished, staging }))
    }
}
