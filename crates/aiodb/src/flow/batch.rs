//! From a user's batch to operations in the log.

use std::num::NonZeroU64;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::flow::applied::{Applied, BatchWrite};
use crate::flow::conditional::Requirement;
use crate::flow::operation::Stored;
use crate::flow::room::frees_much;
use crate::flow::write::{Appended, last_sequence};
use crate::format::place::batch_bytes;
use crate::format::record::{Kind, encode_range_end};
use crate::io::{Device, Disk};
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableSlot};
use crate::store::commit::{Guard, Operation};
use crate::store::staging::Staged;
use crate::store::write_path::WritePath;
use crate::sync::yield_now;
use crate::{Compression, Durability, Error, Result, Sequence};

/// Operations, and bytes of values, of a batch that the thread of a runtime may append by itself: more would keep it from its other tasks.
const MOST_AT_ONCE: usize = 256;
const MOST_BYTES_AT_ONCE: usize = 256 << 10;

/// Operations of a batch whose merges may be written as puts: the key of each is compared with all others.
const MOST_COMPARED: usize = 16;

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
        if batch.kinds().any(frees_much) {
            self.note_freeing();
        }
        Ok(sequence)
    }

    /// Applies a batch that can be acknowledged without a wait, and without work of upkeep: in a class that does not wait for the device,
    /// where the open batch has room. `None` if this one cannot: nothing has happened then.
    pub(crate) fn write_batch_at_once(&self, batch: &Batch<D>, durability: Durability) -> Result<Option<Sequence>> {
        let is_short = batch.operations.len() <= MOST_AT_ONCE && batch.value_bytes() <= MOST_BYTES_AT_ONCE;
        let is_plain = batch.requirements.is_empty() && !batch.operations.is_empty();
        if durability == Durability::Sync || !is_short || !is_plain || batch.has_large(self) {
            return Ok(None);
        }
        let is_compressed = |operation: &BatchOperation| {
            operation.slot.with_settings(|settings| settings.compression != Compression::None)
        };
        if batch.operations.iter().any(is_compressed) {
            return Ok(None);
        }
        self.check_tables(batch)?;
        let namings = self.catalog.namings();
        let applied = self.applied_in(batch);
        for applied in applied.iter().map(Some).chain([None]) {
            let values = self.stored_values(batch, applied)?;
            let operations = self.operations_of(batch, &values, applied)?;
            if operations.iter().any(|operation| self.settles_itself(operation)) {
                return Ok(None);
            }
            let is_right = || self.are_there(&operations, namings) && self.are_right(applied);
            if let Some(appended) = self.append_at_once(&operations, durability, is_right)? {
                return Ok(Some(last_sequence(&appended.placed)));
            }
        }
        Ok(None)
    }

    /// Appends a batch whose conditions hold; the result says what is left to do for its acknowledgement.
    pub(crate) fn append_batch(&self, batch: &Batch<D>, durability: Durability) -> Result<AppendedBatch<'_>> {
        self.check_tables(batch)?;
        loop {
            if let Some(appended) = self.append_batch_once(batch, durability)? {
                return Ok(appended);
            }
            // Another thread is about to make the next generation of the table.
            yield_now();
        }
    }

    /// The merges of a batch that may be written as puts. None of a batch with conditions or with anything but puts and merges: deletes may
    /// come with counts where there is no room for anything else, and these are told by being operands.
    fn applied_in(&self, batch: &Batch<D>) -> Option<Applied> {
        let merges = |operation: &BatchOperation| matches!(operation.change, Change::Merge(_));
        let is_short = batch.operations.len() <= MOST_COMPARED;
        if !is_short || !batch.requirements.is_empty() || !batch.operations.iter().any(merges) {
            return None;
        }
        let writes = batch.operations.iter().map(|BatchOperation { slot, key, change }| match change {
            Change::Put(..) => Some(BatchWrite { slot, key, operand: None }),
            Change::Merge(operand) => Some(BatchWrite { slot, key, operand: Some(operand) }),
            Change::Delete | Change::DeleteRange(_) => None,
        });
        let writes: SmallVec<[_; MOST_COMPARED]> = writes.collect::<Option<_>>()?;
        self.applied_of(&writes)
    }

    /// All tables of a batch must be of this store.
    fn check_tables(&self, batch: &Batch<D>) -> Result<()> {
        let slots = batch.operations.iter().map(|operation| &operation.slot);
        let mut slots = slots.chain(batch.requirements.iter().map(|requirement| &requirement.slot));
        match slots.find(|slot| slot.store != self.segments.store) {
            Some(foreign) => Err(Error::NoSuchTable { name: format!("{} (of another store)", foreign.name) }),
            None => Ok(()),
        }
    }

    /// The values of a batch as their records have them, each with the generation of its table. The batch holds only the lists of chunks.
    /// Both belong to one generation of the table, or reclaim would take the chunks for those of a table that is gone.
    fn stored_values<'b>(&self, batch: &'b Batch<D>, applied: Option<&'b Applied>) -> Result<Vec<StoredIn<'b>>> {
        let stored = |(number, BatchOperation { slot, key, change }): (usize, &'b BatchOperation)| {
            let generation = slot.generation()?;
            let value = match change {
                Change::Put(value, _) => self.stored(&generation, key, value)?,
                Change::Merge(operand) => {
                    // The name may be that of another table than when the batch was made.
                    self.check_merge_operator(&generation)?;
                    let made = applied.and_then(|applied| applied.made(number, &generation));
                    self.stored(&generation, key, made.map_or(operand, |made| &made.value))?
                }
                Change::Delete => Stored::empty(),
                Change::DeleteRange(_) if !generation.kind().is_ordered() => {
                    return Err(Error::Unordered { name: slot.name.clone() });
                }
                Change::DeleteRange(end) => Stored::whole(encode_range_end(0, end)),
            };
            Ok((generation, value))
        };
        batch.operations.iter().enumerate().map(stored).collect()
    }

    /// The operations of a batch, all of one group.
    fn operations_of<'b>(
        &self,
        batch: &'b Batch<D>,
        values: &'b [StoredIn<'b>],
        applied: Option<&Applied>,
    ) -> Result<Vec<Operation<'b>>> {
        let operation =
            |(number, (operation, (generation, value))): (usize, (&'b BatchOperation, &'b StoredIn<'b>))| {
                let BatchOperation { slot, key, change } = operation;
                let generation =
                    if planted::is_on(Bug::ChunksOfAnotherTable) { slot.generation()? } else { Arc::clone(generation) };
                Ok(match change {
                    Change::Put(_, expires_ms) => self.put_operation(generation, key, value, *expires_ms),
                    Change::Merge(_) => match applied.and_then(|applied| applied.made(number, &generation)) {
                        Some(made) => Operation { over: made.over, ..self.put_operation(generation, key, value, None) },
                        None => self.merge_operation(generation, key, value),
                    },
                    Change::Delete => self.delete_operation(generation, key),
                    Change::DeleteRange(_) => self.range_operation(generation, key, &value.bytes),
                })
            };
        let numbered = batch.operations.iter().zip(values).enumerate();
        let mut operations = numbered.map(operation).collect::<Result<Vec<_>>>()?;
        let members = operations.len().saturating_sub(1);
        operations[..members].iter_mut().for_each(|operation| operation.append.more = true);
        Ok(operations)
    }

    /// Whether no table of these operations was emptied or dropped: in one that was, their part would be missing beside those in others. Nor
    /// may tables have got other names since the generations were found: two of a batch would belong to different moments.
    fn are_there(&self, operations: &[Operation<'_>], namings: u64) -> bool {
        let mut generations = operations.iter().filter_map(|operation| operation.generation.as_ref());
        let are_there = !generations.any(|generation| generation.is_gone()) || planted::is_on(Bug::BatchTornByTruncate);
        are_there && self.catalog.are_names_of(namings)
    }

    /// `None` if a table was emptied, renamed or dropped meanwhile.
    fn append_batch_once(&self, batch: &Batch<D>, durability: Durability) -> Result<Option<AppendedBatch<'_>>> {
        let namings = self.catalog.namings();
        let large = batch.has_large(self);
        if large {
            // Large values go ahead in chunks; a batch that is refused anyway should not write them.
            self.check_requirements(&batch.requirements)?;
        }
        let staging = large.then(|| self.begin_staging());
        if let Some(applied) = self.applied_in(batch).filter(|_| !large) {
            let values = self.stored_values(batch, Some(&applied))?;
            let operations = self.operations_of(batch, &values, Some(&applied))?;
            let is_right = || self.are_there(&operations, namings) && self.are_right(Some(&applied));
            // A value is longer than its operand.
            let fits = batch_bytes(operations.iter().map(|one| &one.append)) <= self.max_batch_bytes();
            if fits && let Some(appended) = self.append(&operations, durability, None, is_right)? {
                return Ok(Some(AppendedBatch::of(appended, staging)));
            }
        }
        let values = self.stored_values(batch, None)?;
        let operations = self.operations_of(batch, &values, None)?;
        if !batch.requirements.is_empty() {
            let conditional = self.append_conditional(&batch.requirements, &operations, durability, namings)?;
            return Ok(conditional.map(|(appended, sequence)| {
                let unpublished = appended.and_then(|appended| appended.unpublished);
                AppendedBatch { sequence, unpublished, staging }
            }));
        }
        if operations.is_empty() {
            let sequence = Sequence(self.commit.next_sequence() - 1);
            return Ok(Some(AppendedBatch { sequence, unpublished: None, staging }));
        }
        let appended = self.append(&operations, durability, None, || self.are_there(&operations, namings))?;
        Ok(appended.map(|appended| AppendedBatch::of(appended, staging)))
    }
}

impl<'a> AppendedBatch<'a> {
    fn of(appended: Appended<'a>, staging: Option<Staged<'a>>) -> AppendedBatch<'a> {
        let sequence = last_sequence(&appended.placed);
        AppendedBatch { sequence, unpublished: appended.unpublished, staging }
    }
}

/// A value, and the generation of the table that it goes into.
type StoredIn<'a> = (Arc<Generation>, Stored<'a>);

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
    /// Bytes of its values and operands.
    fn value_bytes(&self) -> usize {
        let bytes = |operation: &BatchOperation| match &operation.change {
            Change::Put(value, _) | Change::Merge(value) => value.len(),
            Change::Delete | Change::DeleteRange(_) => 0,
        };
        self.operations.iter().map(bytes).sum()
    }

    /// The kinds of its records.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.operations.iter().map(|operation| operation.change.kind())
    }

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
