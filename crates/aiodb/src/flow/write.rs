//! The whole path of a put: encode into the open batch, let one waiting caller write the batch for all (group commit),
//! publish in the index, acknowledge.
//!
//! The open batch lies in memory that survives the process (`io::Device::map`), and every record's place in the log is
//! known when it is appended. So a write in the classes `interval` and `none` is published and acknowledged at once, and
//! read from the pending batch until that is written; a write in the class `sync` is published when its batch is durable.

use smallvec::SmallVec;

use crate::flow::publish::Publication;
use crate::flow::room::frees_much;
use crate::format::batch::{Append, Placed};
use crate::format::place::batch_bytes;
use crate::format::record::Kind;
use crate::index::ordered::OrderedIndex;
use crate::io::{Device, InPhase, Phase};
use crate::log::Claim;
use crate::log::commit::WORDS;
use crate::store::commit::{Guard, Operation, Turn};
use crate::store::groups::GroupKey;
use crate::store::write_path::WritePath;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::{Durability, Error, Result, Sequence};

/// Batches of the classes `interval` and `none` are written when they have this many bytes.
pub(crate) const BATCH_TARGET_BYTES: usize = 1 << 20;

/// How many tags a writer settles at least where too many are queued; else twice as many as it adds.
const SETTLED_WHEN_CROWDED: usize = 16;

/// Where the records of one write went.
pub(crate) type PlacedList = SmallVec<[Placed; 4]>;

/// A group of operations in the log.
pub(crate) struct Appended<'a> {
    pub(crate) placed: PlacedList,
    /// The batch that must be durable before the records are published, with the lock for the writer that leads it.
    pub(crate) unpublished: Option<(Guard<'a>, u64)>,
}

/// The sequence of a write is that of its last record.
pub(crate) fn last_sequence(placed: &PlacedList) -> Sequence {
    Sequence(placed.last().expect("a write has a record").sequence)
}

/// An operand of at most so many bytes, with its key, counts: it may come with a delete.
const COUNT_BYTES: usize = 32;

/// How much of the last free segments these operations may take. Deletes may have counts with them, one for each: a program that
/// counts its records must be able to delete them.
pub(crate) fn claim_of(operations: &[Operation<'_>]) -> Claim {
    let frees = |kind| matches!(kind, Kind::Delete | Kind::RangeTombstone | Kind::TableDrop | Kind::TableTruncate);
    let counts =
        |append: &Append<'_>| append.kind == Kind::Merge && append.key.len() + append.value.len() <= COUNT_BYTES;
    let freeing = operations.iter().filter(|operation| frees(operation.append.kind)).count();
    let counting = operations.iter().filter(|operation| counts(&operation.append)).count();
    if counting <= freeing && freeing + counting == operations.len() { Claim::Deletes } else { Claim::Ordinary }
}

/// A writer between append and publication, until this is dropped.
struct Publishing<'a>(&'a AtomicU32);

impl Publishing<'_> {
    fn begin(count: &AtomicU32) -> Publishing<'_> {
        count.fetch_add(1, Ordering::Relaxed);
        Publishing(count)
    }
}

impl Drop for Publishing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

impl<D: Device> WritePath<D> {
    /// Writes a group of operations atomically and returns when it is acknowledged in its class.
    pub(crate) fn write(&self, operations: &[Operation<'_>], durability: Durability) -> Result<Sequence> {
        self.write_placed(operations, durability).map(|placed| last_sequence(&placed))
    }

    /// Like [`WritePath::write`]; says where each record went.
    pub(crate) fn write_placed(&self, operations: &[Operation<'_>], durability: Durability) -> Result<PlacedList> {
        let appended = self.append(operations, durability, None, || true)?;
        let Appended { placed, unpublished } = appended.expect("what is always permitted is appended");
        if let Some((state, number)) = unpublished {
            self.timed(&self.meters.acknowledge_wait, || self.wait_durable(state, number))?;
        }
        if operations.iter().any(|operation| frees_much(operation.append.kind)) {
            self.note_freeing();
        }
        Ok(placed)
    }

    /// Writes the records that recovery has found in memory: it takes any room that there is, and helps with no upkeep.
    pub(crate) fn write_recovered(&self, operations: &[Operation<'_>]) -> Result<PlacedList> {
        let appended = self.append_claiming(Claim::Recovery, operations, Durability::None, None, || true)?;
        Ok(appended.expect("what is always permitted is appended").placed)
    }

    /// Appends a group of operations if `permitted` says so under the commit lock, and publishes it unless its batch must
    /// be durable first: then `AppendPath::wait_durable` is left to do. `None` means that it was not permitted.
    pub(crate) fn append(
        &self,
        operations: &[Operation<'_>],
        durability: Durability,
        turn: Option<&Turn<'_>>,
        permitted: impl FnOnce() -> bool,
    ) -> Result<Option<Appended<'_>>> {
        self.append_claiming(claim_of(operations), operations, durability, turn, permitted)
    }

    /// [`WritePath::append`] with a claim of the caller's.
    pub(super) fn append_claiming(
        &self,
        claim: Claim,
        operations: &[Operation<'_>],
        durability: Durability,
        turn: Option<&Turn<'_>>,
        permitted: impl FnOnce() -> bool,
    ) -> Result<Option<Appended<'_>>> {
        // Asked before the first wait.
        self.commit.check()?;
        let length = batch_bytes(operations.iter().map(|operation| &operation.append));
        if length > self.max_batch_bytes() {
            return Err(Error::BatchTooLarge { length, max: self.max_batch_bytes() });
        }
        let at_once = if turn.is_none() { self.room_without_work(operations, claim, length)? } else { None };
        let state = match at_once {
            Some(state) => state,
            None => {
                if turn.is_none() {
                    self.apply_backpressure(operations, claim)?;
                }
                self.room_or_reclaim(operations, claim, length, turn)?
            }
        };
        Ok(permitted().then(|| self.append_in(state, operations, durability)))
    }

    /// [`WritePath::append`] in a class that does not wait for the batch, if there is room in the open batch and no backpressure. `None`
    /// if there is not, or it was not permitted: nothing has happened then.
    pub(crate) fn append_at_once(
        &self,
        operations: &[Operation<'_>],
        durability: Durability,
        permitted: impl FnOnce() -> bool,
    ) -> Result<Option<Appended<'_>>> {
        self.commit.check()?;
        let length = batch_bytes(operations.iter().map(|operation| &operation.append));
        if durability == Durability::Sync || length > self.max_batch_bytes() {
            return Ok(None);
        }
        let room = self.room_without_work(operations, claim_of(operations), length)?;
        let Some(state) = room else { return Ok(None) };
        Ok(permitted().then(|| self.append_in(state, operations, durability)))
    }

    /// Appends a group of operations to the open batch, which has room for it, and publishes it as [`WritePath::append`] says.
    fn append_in<'a>(
        &'a self,
        mut state: Guard<'a>,
        operations: &[Operation<'_>],
        durability: Durability,
    ) -> Appended<'a> {
        let open = state.open.as_mut().expect("there is room");
        let number = open.batch.start.number;
        open.writers += 1;
        if durability == Durability::Sync {
            let append = |operation| {
                let _phase = InPhase::enter(&self.device, Phase::Append);
                open.append(operation)
            };
            let placed: PlacedList = operations.iter().map(append).collect();
            self.commit.stripes.appended(operations, &placed);
            open.sync_wanted = true;
            return Appended { placed, unpublished: Some((state, number)) };
        }
        let publishing = Publishing::begin(&self.commit.publishing[number as usize % WORDS]);
        let publisher = self.publishers.pin();
        let append = |operation: &Operation<'_>| {
            let _phase = InPhase::enter(&self.device, Phase::Append);
            open.batch.append(&operation.append)
        };
        let placed: PlacedList = operations.iter().map(append).collect();
        self.commit.stripes.appended(operations, &placed);
        let due = open.batch.used_bytes() >= BATCH_TARGET_BYTES && !state.busy;
        drop(state);
        let phase = InPhase::enter(&self.device, Phase::Publish);
        let key = |operation: &Operation<'_>| {
            GroupKey::of(operation.append.kind, operation.generation.as_deref()?, operation.hash)
        };
        let keys = || operations.iter().filter_map(key);
        let is_listed = operations.len() > 1 || operations[0].append.kind == Kind::RangeTombstone;
        let group = is_listed.then(|| self.groups.begin(keys()));
        for (operation, placed) in operations.iter().zip(&placed) {
            let Append { kind, form, key, value, .. } = operation.append;
            let (hash, replayed, out_of_order) = (operation.hash, None, false);
            let over = operation.over;
            let publication = Publication { key, hash, placed, kind, form, value, replayed, out_of_order, over };
            if let Some(generation) = operation.generation.as_ref().filter(|_| kind.is_indexed()) {
                self.publish(generation, &publication);
                self.cache_written(generation, &publication, value);
                self.commit.stripes.published(generation.id, operation.hash, kind);
            }
        }
        drop(group);
        drop(phase);
        drop(publisher);
        drop(publishing);
        self.background.note(durability, due);
        Appended { placed, unpublished: None }
    }

    /// An open batch with room, if neither backpressure nor the making of room asks this write for work or for a wait.
    fn room_without_work(
        &self,
        operations: &[Operation<'_>],
        claim: Claim,
        length: usize,
    ) -> Result<Option<Guard<'_>>> {
        if self.has_backpressure(operations) { Ok(None) } else { self.room_at_once(operations, length, claim) }
    }

    /// Whether [`WritePath::apply_backpressure`] would do anything but look.
    pub(super) fn has_backpressure(&self, operations: &[Operation<'_>]) -> bool {
        let is_held_up = |ordered: &OrderedIndex<D>| {
            ordered.throttle.is_ahead(|| ordered.memtable.active_load())
                || ordered.memtable.is_full()
                || ordered.memtable.is_short()
                || ordered.committed.runs().is_some_and(|runs| runs.is_behind())
        };
        let is_concerned = |ordered: &OrderedIndex<D>| operations.iter().any(|operation| operation.is_in(ordered));
        self.settling.urgent.is_any()
            || self.settling.is_crowded()
            || self.snapshots.is_behind()
            || self.is_slowed_by_spills(operations)
            || operations.iter().any(|operation| operation.append.kind == Kind::RangeTombstone)
            || self.ordered.open().any(|ordered| is_concerned(ordered) && is_held_up(ordered))
    }

    /// Whether `hash` tables have so many keys in memory that writers to them are slowed.
    fn is_slowed_by_spills(&self, operations: &[Operation<'_>]) -> bool {
        self.spilling.is_crowded() && operations.iter().any(Operation::is_of_hash)
    }

    /// Backpressure: helps with, or waits for, background work that this write would add to, where that has reached a bound.
    fn apply_backpressure(&self, operations: &[Operation<'_>], claim: Claim) -> Result<()> {
        for ordered in self.ordered.open() {
            if operations.iter().any(|operation| operation.is_in(ordered)) {
                ordered.throttle.wait(|| ordered.memtable.active_load());
                self.bound_memtable(ordered, claim)?;
                let keys = operations.iter().filter(|operation| operation.is_in(ordered)).count();
                let throttled = || self.throttle_by_merges(ordered, keys);
                match claim {
                    Claim::Ordinary => throttled()?,
                    // Where merges find no room, or damage, deletes go on.
                    Claim::Deletes => throttled().unwrap_or_else(|error| self.note_trouble(&error)),
                    Claim::Moves | Claim::Recovery => {}
                }
                if claim == Claim::Ordinary && ordered.memtable.is_short() {
                    self.find_index_room(ordered)?;
                }
            }
        }
        // Chunks are part of a larger write, maybe of background work itself.
        let is_part = operations.iter().any(|operation| operation.append.kind == Kind::Chunk);
        if claim == Claim::Recovery || is_part {
            return Ok(());
        }
        if claim != Claim::Moves {
            self.bound_versions(claim)?;
            if self.is_slowed_by_spills(operations) {
                self.slow_by_spills(operations.iter().filter(|operation| operation.is_of_hash()).count())?;
            }
        }
        if self.settling.urgent.is_any() {
            self.fold_urgent(operations.iter().any(|operation| operation.append.kind == Kind::Merge));
        }
        if self.settling.is_crowded() {
            let limit = SETTLED_WHEN_CROWDED.max(2 * operations.len());
            // Tags with records in the open batch cannot be settled.
            if operations.len() > SETTLED_WHEN_CROWDED || !self.settle_some(limit) {
                self.write_open_batch()?;
                self.settle_some(limit);
            }
        }
        if operations.iter().any(|operation| operation.append.kind == Kind::RangeTombstone) {
            self.ordered.open().try_for_each(|ordered| {
                let is_range = |operation: &&Operation<'_>| operation.append.kind == Kind::RangeTombstone;
                let ranges = operations.iter().filter(is_range).filter(|operation| operation.is_in(ordered)).count();
                if ranges > 0 { self.bound_range_tombstones(ordered, ranges) } else { Ok(()) }
            })?;
        }
        Ok(())
    }
}

/// The tables that operations write to.
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
