//! What the runs of `lsm` tables have of the log after the checkpoint. A replay leaves it out: it would count twice until a merge has
//! met both copies.
//!
//! The runs have everything up to their position. They may have some records of later batches as well, which were published while the
//! memtable became immutable: only their sequences tell which, and the runs are asked for each of these.

use std::cell::Cell;
use std::ops::Range;

use crate::format::record::{Kind, Record};
use crate::index::chain::Entry;
use crate::index::ordered::OrderedIndexes;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::store::catalog::Generation;
use crate::store::read_path::ReadPath;
use crate::{IndexKind, Result};

/// The part of the log that the runs had when the store was opened.
#[derive(Debug, Default)]
pub(super) struct InRuns {
    /// They have all records of this batch and of those before it.
    batch: u64,
    /// Of later batches they may have records with these sequences, and no others.
    doubtful: Range<u64>,
    /// Whether a record was published that they may have.
    may_count_twice: Cell<bool>,
}

/// Whether a record is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replayed {
    /// The runs do not have it.
    Yes,
    /// The runs do not have it, and may have later ones of its key.
    OutOfOrder,
    /// The runs have it, or a later one that it does not matter beside.
    No,
}

impl InRuns {
    /// What the runs have now.
    pub(super) fn of<D: Device>(indexes: &OrderedIndexes<D>) -> Result<InRuns> {
        let Some(runs) = indexes.get(IndexKind::Lsm).and_then(|lsm| lsm.committed.runs()) else {
            return Ok(InRuns::default());
        };
        let Some(position) = runs.position()? else { return Ok(InRuns::default()) };
        let (batch, doubtful) = (position.batch, runs.sequences_ahead()?);
        Ok(InRuns { batch, doubtful, may_count_twice: Cell::new(false) })
    }

    /// Whether they have all records of a batch.
    pub(super) fn have(&self, batch: u64) -> bool {
        batch <= self.batch
    }

    /// Whether a record was published that they may have.
    pub(super) fn may_count_twice(&self) -> bool {
        self.may_count_twice.get()
    }
}

impl<D: Device> ReadPath<D> {
    /// Whether a record of a batch with this number is to be published again.
    pub(super) fn is_replayed(
        &self,
        in_runs: &InRuns,
        batch: u64,
        (generation, record): (&Generation, &Record<'_>),
    ) -> Replayed {
        if generation.kind() != IndexKind::Lsm || planted::is_on(Bug::ReplayedTwice) {
            return Replayed::Yes;
        }
        if in_runs.have(batch) {
            return Replayed::No;
        }
        // Runs have no range tombstone from behind their position. A moved record is looked for where it was, and not published if it has
        // come on already.
        let is_told_apart = record.kind == Kind::RangeTombstone || record.moved.is_some();
        if is_told_apart || !in_runs.doubtful.contains(&record.sequence) {
            return Replayed::Yes;
        }
        match self.ordered_of(generation).committed_chain(generation.id, record.key) {
            Ok(chain) if chain.entries().iter().any(|there| stands_for(there, record.sequence)) => Replayed::No,
            Ok(_) => Replayed::OutOfOrder,
            Err(error) => {
                self.note_trouble(&error);
                in_runs.may_count_twice.set(true);
                Replayed::OutOfOrder
            }
        }
    }
}

/// Whether an entry is the record of a sequence, or does without it.
fn stands_for(entry: &Entry, sequence: u64) -> bool {
    entry.sequence == sequence || entry.sequence > sequence && entry.is_base()
}
