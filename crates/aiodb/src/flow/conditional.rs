//! Writes that happen only if certain keys meet conditions: compare-and-set, and batches with conditions.
//!
//! The log is the one order of all writes, so a condition must hold at the place in the log where the write goes. It is
//! checked optimistically. For every key that is conditional, its stripe (a part of all keys, by hash) knows the last
//! sequence that was appended to it and how many of its records are not yet published. A conditional write notes where
//! the log ends, waits until its stripes have no unpublished record (so that a get sees all that the log held at the note),
//! evaluates its conditions with ordinary gets, and then appends under the commit lock if no record went to its stripes
//! since the note. If one did, it starts over.
//!
//! A round fails only because another write came in between, so all writers together always proceed; and a write that was
//! overtaken in [`MOST_ROUNDS`] rounds has the log to itself for the next one (`Turn`), so each of them proceeds too.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::flow::room::MOST_ROUNDS as MOST_ROUNDS_FOR_ROOM;
use crate::flow::write::{Appended, claim_of, last_sequence};
use crate::format::record::Kind;
use crate::index::snapshots::View;
use crate::io::Device;
use crate::log::Claim;
use crate::log::stripes::{RANGES, Stripes};
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableSlot};
use crate::store::commit::{Operation, Turn};
use crate::store::write_path::WritePath;
use crate::sync::yield_now;
use crate::{Durability, Error, Result, Sequence};

/// How often a conditional write is tried beside others before it makes them wait.
const MOST_ROUNDS: usize = 16;

/// How often a conditional write looks whether other writers have published before it sleeps on the log.
const MOST_GLANCES: usize = 32;

/// Conditions of one batch.
pub(crate) const MAX_CONDITIONS: usize = 4096;

/// A condition on a key for a batch to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition<'a> {
    /// The key is absent.
    Absent,
    /// The key has a value, whichever.
    Present,
    /// The key has this value.
    Equals(&'a [u8]),
}

/// A condition in a batch, with its key.
pub(crate) struct Requirement {
    pub(crate) slot: Arc<TableSlot>,
    pub(crate) key: Vec<u8>,
    pub(crate) wanted: Wanted,
}

pub(crate) enum Wanted {
    Absent,
    Present,
    Equals(Vec<u8>),
    /// Of an ordered table: its newest record is the put of this sequence, or a later copy of it.
    Put(u64),
}

/// How a conditional write ended that was not refused.
#[cfg_attr(feature = "shuttle", expect(clippy::large_enum_variant, reason = "the caller takes it apart at once"))]
enum Attempt<'a> {
    Appended(Option<Appended<'a>>, Sequence),
    /// Another write came between the conditions and the append.
    Overtaken,
    /// A table of the operations was emptied or dropped, or tables have other names.
    TableChanged,
}

/// A conditional write that is in the log.
pub(crate) type Conditional<'a> = (Option<Appended<'a>>, Sequence);

impl<D: Device> WritePath<D> {
    /// Appends the operations if all requirements hold at that place in the log, else fails with
    /// [`Error::ConditionFailed`]. `None`: a table of the operations has another generation now, or tables have other names since there
    /// were so many `namings` (see [`crate::store::catalog::Catalog::namings`]); make them anew.
    pub(crate) fn append_conditional<'a>(
        &'a self,
        requirements: &[Requirement],
        operations: &[Operation<'_>],
        durability: Durability,
        namings: u64,
    ) -> Result<Option<Conditional<'a>>> {
        self.append_conditional_claiming(claim_of(operations), requirements, operations, durability, namings)
    }

    /// [`WritePath::append_conditional`] with a claim of the caller's.
    pub(super) fn append_conditional_claiming<'a>(
        &'a self,
        claim: Claim,
        requirements: &[Requirement],
        operations: &[Operation<'_>],
        durability: Durability,
        namings: u64,
    ) -> Result<Option<Conditional<'a>>> {
        for _ in 0..MOST_ROUNDS {
            match self.try_conditional(claim, requirements, operations, durability, None, namings)? {
                Attempt::Appended(appended, sequence) => return Ok(Some((appended, sequence))),
                Attempt::TableChanged => return Ok(None),
                Attempt::Overtaken => {}
            }
        }
        self.append_alone(claim, requirements, operations, durability, namings)
    }

    /// [`WritePath::append_conditional`] while no other write is appended.
    pub(super) fn append_alone<'a>(
        &'a self,
        claim: Claim,
        requirements: &[Requirement],
        operations: &[Operation<'_>],
        durability: Durability,
        namings: u64,
    ) -> Result<Option<Conditional<'a>>> {
        let mut rounds = MOST_ROUNDS_FOR_ROOM;
        loop {
            let turn = self.take_turn()?;
            let released = self.segments.released();
            match self.try_conditional(claim, requirements, operations, durability, Some(&turn), namings) {
                Ok(Attempt::Appended(mut appended, sequence)) => {
                    if let Some((state, _)) = appended.as_mut().and_then(|appended| appended.unpublished.as_mut()) {
                        turn.end(state);
                    }
                    return Ok(Some((appended, sequence)));
                }
                Ok(Attempt::TableChanged) => return Ok(None),
                // A table of the requirements was emptied.
                Ok(Attempt::Overtaken) => {}
                // Reclaim appends its moves in turns of its own.
                Err(error) if error.is_full() && rounds > 0 => {
                    drop(turn);
                    rounds -= 1;
                    if !self.make_room(claim, released)? {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Fails if a requirement does not hold at some moment during the call. (That all hold says nothing yet.)
    pub(crate) fn check_requirements(&self, requirements: &[Requirement]) -> Result<()> {
        for (number, requirement) in requirements.iter().enumerate() {
            self.check_requirement(number, requirement, &requirement.slot.generation()?)?;
        }
        Ok(())
    }

    pub(super) fn check_requirement(
        &self,
        number: usize,
        requirement: &Requirement,
        generation: &Arc<Generation>,
    ) -> Result<()> {
        let get = || self.get(generation, &requirement.key, &View::LATEST);
        let holds = match &requirement.wanted {
            Wanted::Absent => get()?.is_none(),
            Wanted::Present => get()?.is_some(),
            Wanted::Equals(value) => get()?.as_ref() == Some(value),
            Wanted::Put(sequence) => {
                let _guard = self.epochs.pin();
                let chain = self.chain(generation, &requirement.key, &View::LATEST)?;
                chain.newest().is_some_and(|newest| (newest.kind, newest.sequence) == (Kind::Put, *sequence))
            }
        };
        let failed = || Error::ConditionFailed { condition: number, table: requirement.slot.name.clone() };
        holds.then_some(()).ok_or_else(failed)
    }

    fn try_conditional<'a>(
        &'a self,
        claim: Claim,
        requirements: &[Requirement],
        operations: &[Operation<'_>],
        durability: Durability,
        turn: Option<&Turn<'_>>,
        namings: u64,
    ) -> Result<Attempt<'a>> {
        let began = self.commit.next_sequence();
        let mut generations = SmallVec::<[_; 4]>::new();
        let mut stripes: SmallVec<[usize; 4]> = smallvec::smallvec![RANGES];
        for requirement in requirements {
            let generation = requirement.slot.generation()?;
            stripes.push(Stripes::number(generation.id, self.hash(&requirement.key)));
            generations.push(generation);
        }
        if !planted::is_on(Bug::WaitingWriteOverlooked) {
            // Alone, it waits for nothing that comes later.
            if !self.wait_published(&stripes, turn.is_some())? {
                return Ok(Attempt::Overtaken);
            }
        }
        for (number, (requirement, generation)) in requirements.iter().zip(&generations).enumerate() {
            self.check_requirement(number, requirement, generation)?;
        }
        let known = |table: u32| self.catalog.generation(table).is_some();
        let are_named = || self.catalog.are_names_of(namings);
        let unchanged = || {
            self.commit.stripes.are_unchanged(&stripes, began)
                && are_named()
                && generations.iter().all(|generation| known(generation.id))
                && operations.iter().all(|operation| known(operation.append.table))
        };
        if operations.is_empty() {
            let state = self.commit.lock();
            let sequence = Sequence(state.appended_sequence());
            return Ok(match unchanged() {
                true => Attempt::Appended(None, sequence),
                false if are_named() => Attempt::Overtaken,
                false => Attempt::TableChanged,
            });
        }
        match self.append_claiming(claim, operations, durability, turn, unchanged)? {
            Some(appended) => {
                let sequence = last_sequence(&appended.placed);
                Ok(Attempt::Appended(Some(appended), sequence))
            }
            None if are_named() && operations.iter().all(|operation| known(operation.append.table)) => {
                Ok(Attempt::Overtaken)
            }
            None => Ok(Attempt::TableChanged),
        }
    }

    /// Waits until the stripes have no record that is appended and not published: one of another thread that is about
    /// to publish it, or one in a batch that is still to be written. False if all batches are published that there were at first, and
    /// others have come meanwhile: without an end of these, there may be no end of waiting, unless the caller `is_alone`.
    fn wait_published(&self, stripes: &[usize], is_alone: bool) -> Result<bool> {
        let mut last_at_first = None;
        for glance in 0.. {
            if self.commit.stripes.are_published(stripes) {
                break;
            }
            self.commit.check()?;
            if glance < MOST_GLANCES {
                yield_now();
                continue;
            }
            let state = self.commit.lock();
            // A batch that has failed meanwhile is followed by no other.
            self.commit.check()?;
            let last = *last_at_first.get_or_insert(state.last_begun());
            if self.commit.completed() >= last && !is_alone {
                return Ok(self.commit.stripes.are_published(stripes));
            }
            if state.busy {
                drop(self.wait_idle(state));
            } else if state.open.as_ref().is_some_and(|open| open.sync_wanted) {
                self.lead(state)?;
            } else {
                drop(state);
                yield_now();
            }
        }
        Ok(true)
    }
}
