//! The whole path of a merge: an operand in the log or, where memory has what it applies to, the put of what it makes.
//!
//! So a counter that is merged into again and again is one put over the other: it costs little more than puts, its operands do not pile up, and
//! a get of it merges nothing. The put is a record as any other: all that holds of puts for snapshots, crashes, counts of live bytes and
//! reclaim holds of it. It is right only at its place in the log: every older record of the key must have been seen, and none may
//! have come in between. That is found out as for conditions (`conditional.rs`), but no merge waits for it: where it does not hold, or
//! the value is not at hand, the operand itself is written, and folded later (`upkeep/fold.rs`).
//!
//! An ordered index has the value in its memtable. A `hash` index has places only: the values are in `store/sums.rs`. Since the put that is
//! superseded is known there, it leaves the index in the step in which the new one comes: nobody has to read it to settle the tag.

use std::borrow::Cow;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::flow::write::last_sequence;
use crate::format::record::RECORD_HEADER_BYTES;
use crate::format::settings::MERGED_IN_MEMORY_BYTES;
use crate::index::chain::{Entry, FOLD_AT, VersionChain};
use crate::index::hash::HashIndex;
use crate::index::ordered::look_up::LookUp;
use crate::index::snapshots::View;
use crate::io::Device;
use crate::log::commit::Over;
use crate::log::stripes::{Ends, RANGES, Stripes};
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableIndex, TableSlot};
use crate::store::commit::Operation;
use crate::store::write_path::WritePath;
use crate::{Durability, IndexKind, Result, Sequence};

/// A put of so few bytes is written for each operand. Of a longer value one is written when the operands have taken as many.
const ALWAYS_APPLIED_BYTES: usize = MERGED_IN_MEMORY_BYTES;

/// Below the memtable a key is looked up when it has so many operands there, and twice as many, and so on.
const LOOKED_UP_AT: usize = FOLD_AT;

/// A put or a merge of a batch.
pub(crate) struct BatchWrite<'a> {
    pub(crate) slot: &'a Arc<TableSlot>,
    pub(crate) key: &'a [u8],
    /// Of a merge.
    pub(crate) operand: Option<&'a [u8]>,
}

/// Merges of a batch that are written as puts.
pub(crate) struct Applied {
    /// What is put in which generation of a table, by the number of the write; none for those that stay as they are.
    values: Vec<Option<(u32, Made)>>,
    /// The stripes of all keys that are merged into, and where they ended before the keys were looked up.
    stripes: SmallVec<[usize; 4]>,
    ends: Ends,
}

impl Applied {
    /// What is put for a write. None if the table has another generation by now.
    pub(crate) fn made(&self, number: usize, generation: &Generation) -> Option<&Made> {
        let (looked_up_in, made) = self.values[number].as_ref()?;
        (*looked_up_in == generation.id).then_some(made)
    }
}

/// What an operand makes of a key's records.
pub(crate) struct Made {
    pub(crate) value: Vec<u8>,
    /// In a `hash` table, the put that it was applied to.
    pub(crate) over: Option<Over>,
}

impl<D: Device> WritePath<D> {
    /// Adds an operand to a key's value, and returns when it is acknowledged in its class.
    pub(crate) fn merge(
        &self,
        generation: Arc<Generation>,
        key: &[u8],
        operand: &[u8],
        durability: Durability,
    ) -> Result<Sequence> {
        if generation.kind() != IndexKind::Lmdb
            && let Some(sequence) = self.put_applied(&generation, key, operand, durability)?
        {
            return Ok(sequence);
        }
        let stored = self.stored(&generation, key, operand)?;
        let operation = self.merge_operation(generation, key, &stored);
        self.write(&[operation], durability)
    }

    /// Puts what an operand makes of a key's value. `None` if it cannot be: nothing has happened then.
    fn put_applied(
        &self,
        generation: &Arc<Generation>,
        key: &[u8],
        operand: &[u8],
        durability: Durability,
    ) -> Result<Option<Sequence>> {
        let stripes = [RANGES, Stripes::number(generation.id, self.hash(key))];
        let Some(ends) = self.commit.stripes.published_ends(&stripes) else { return Ok(None) };
        let Some(Made { value, over }) = self.made_with(generation, key, operand) else { return Ok(None) };
        let stored = self.stored(generation, key, &value)?;
        let operation = Operation { over, ..self.put_operation(Arc::clone(generation), key, &stored, None) };
        let is_right = || self.commit.stripes.end_at(&stripes, &ends);
        let Some(appended) = self.append(&[operation], durability, None, is_right)? else { return Ok(None) };
        if let Some((state, number)) = appended.unpublished {
            self.timed(&self.meters.acknowledge_wait, || self.wait_durable(state, number))?;
        }
        Ok(Some(last_sequence(&appended.placed)))
    }

    /// Those of a batch's writes, all puts and merges, that may be written as puts of what merges make; `None` if there are none.
    pub(crate) fn applied_of(&self, writes: &[BatchWrite<'_>]) -> Option<Applied> {
        let is_merge = |write: &&BatchWrite<'_>| write.operand.is_some() && write.slot.kind() != IndexKind::Lmdb;
        let is_alone = |write: &BatchWrite<'_>| {
            let same = |other: &&BatchWrite<'_>| other.key == write.key && Arc::ptr_eq(other.slot, write.slot);
            writes.iter().filter(same).count() == 1
        };
        // A table may be emptied meanwhile: what is looked up in a generation is right as long as nothing comes to the stripes of that one.
        let mut generations: SmallVec<[Option<Arc<Generation>>; 4]> = SmallVec::new();
        let mut stripes: SmallVec<[usize; 4]> = smallvec::smallvec![RANGES];
        for write in writes {
            let merged = is_merge(&write).then(|| write.slot.generation());
            generations.push(merged.transpose().ok()?);
            if let Some(Some(generation)) = generations.last() {
                stripes.push(Stripes::number(generation.id, self.hash(write.key)));
            }
        }
        if stripes.len() == 1 {
            return None;
        }
        let ends = self.commit.stripes.published_ends(&stripes)?;
        let value = |(write, generation): (&BatchWrite<'_>, &Option<Arc<Generation>>)| {
            let (operand, generation) = (write.operand.filter(|_| is_alone(write))?, generation.as_ref()?);
            Some((generation.id, self.made_with(generation, write.key, operand)?))
        };
        let values: Vec<_> = writes.iter().zip(&generations).map(value).collect();
        values.iter().any(Option::is_some).then_some(Applied { values, stripes, ends })
    }

    /// Whether no key that is merged into was written since it was looked up. Asked under the commit lock.
    pub(crate) fn are_right(&self, applied: Option<&Applied>) -> bool {
        applied.is_none_or(|applied| self.commit.stripes.end_at(&applied.stripes, &applied.ends))
    }

    /// What an operand makes of the records of a key, if memory has them, and the value is worth a put. An operator that fails fails those who
    /// get the key: the operand stays.
    fn made_with(&self, generation: &Generation, key: &[u8], operand: &[u8]) -> Option<Made> {
        match &generation.index {
            TableIndex::Hash(index) => self.made_of_sum(index, generation, key, operand),
            TableIndex::Ordered => self.value_with(generation, key, operand).map(|value| Made { value, over: None }),
        }
    }

    /// [`WritePath::made_with`] in a `hash` table: the newest record under the tag of the key is the put that is known, or there is none.
    fn made_of_sum(&self, index: &HashIndex, generation: &Generation, key: &[u8], operand: &[u8]) -> Option<Made> {
        let (hash, mut places) = (self.hash(key), SmallVec::new());
        // The place of a record that is moved now is not that of another one before this is over.
        let _guard = self.epochs.pin();
        let is_below = index.lookup_over(hash, &mut places, || self.may_be_below(generation.id, hash));
        let sum = match places.first() {
            Some(newest) => {
                let sum = self.sums.get((generation.id, hash), key)?;
                let life = self.segments.find(newest.segment).map(|segment| segment.life());
                let is_newest = newest.same_place(sum.over.location) && life == Some(sum.over.life);
                (is_newest || planted::is_on(Bug::SumUnchecked)).then_some(Some(sum))?
            }
            None => (is_below != Some(true)).then_some(None)?,
        };
        let base = sum.as_ref().map(|sum| &sum.value[..]);
        let value = self.applied(generation, key, base, &[operand]).ok()?;
        (value.len() <= ALWAYS_APPLIED_BYTES).then_some(Made { value, over: sum.map(|sum| sum.over) })
    }

    fn value_with(&self, generation: &Generation, key: &[u8], operand: &[u8]) -> Option<Vec<u8>> {
        let chain = self.records_in_memory(generation, key)?;
        let mut parts = SmallVec::<[Cow<'_, [u8]>; 4]>::new();
        for entry in chain.entries().iter().rev().filter(|entry| !entry.is_delete()) {
            parts.push(self.plain(entry.location, &entry.form, entry.inline.as_ref()?).ok()?);
        }
        let has_base = chain.entries().last().is_some_and(|oldest| oldest.is_base() && !oldest.is_delete());
        let mut values = parts.iter().map(|part| &**part);
        let base = if has_base { values.next() } else { None };
        let operands: SmallVec<[&[u8]; 4]> = values.chain(std::iter::once(operand)).collect();
        let value = self.applied(generation, key, base, &operands).ok()?;
        let of_operands = chain.entries().iter().filter(|entry| !entry.is_base());
        let written = of_operands.map(|entry| entry.location.length as usize).sum::<usize>()
            + RECORD_HEADER_BYTES
            + key.len()
            + operand.len();
        let is_worthwhile = value.len() <= ALWAYS_APPLIED_BYTES.max(written);
        (is_worthwhile && value.len() <= generation.settings.memtable_bytes()).then_some(value)
    }

    /// All records of a key that count, if memory has them with their values and none will expire.
    fn records_in_memory(&self, generation: &Generation, key: &[u8]) -> Option<VersionChain> {
        let ordered = self.ordered_of(generation);
        let mut chain = ordered.recent(generation.id, key);
        let depth = chain.operands() + 1;
        // What cannot be applied, by an operator that fails say, is tried ever more seldom.
        if depth > FOLD_AT && !depth.is_power_of_two() {
            return None;
        }
        if !chain.is_complete() {
            let is_due = depth >= LOOKED_UP_AT && depth.is_power_of_two();
            if !is_due || generation.settings.inline_bytes == 0 {
                return None;
            }
            let _guard = self.epochs.pin();
            // Who would have to read the device leaves the key to upkeep.
            let Ok(LookUp::Found(found)) = ordered.begin_lookup(generation.id, key, &View::LATEST) else { return None };
            chain = found;
        }
        let outlives = planted::is_on(Bug::FoldOutlivesBase);
        let is_at_hand = |entry: &Entry| {
            entry.is_delete() || entry.inline.is_some() && (entry.form.expires_ms.is_none() || outlives)
        };
        chain.entries().iter().all(is_at_hand).then_some(chain)
    }
}
