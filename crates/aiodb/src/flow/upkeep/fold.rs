//! Folding: where a key has many operands, their fold, the value that they make, is put as a later copy of the newest of them, and
//! supersedes them all.
//!
//! Upkeep folds the keys in the queue (`settle.rs`). A key that gets operands faster than that is folded by its writers, while the
//! operands are still in memory. Only operands that are older than every record still on its way are folded, so that operands
//! that others add meanwhile stay on top of the fold.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::Result;
use crate::flow::moves::Move;
use crate::flow::upkeep::settle::MAX_OPERANDS;
use crate::format::location::Location;
use crate::format::record::{Kind, Origin};
use crate::index::Candidates;
use crate::index::chain::{Entry, FOLD_AT};
use crate::index::codec::hashed_key;
use crate::index::memtable::LookedUp;
use crate::index::snapshots::View;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::settling::Unsettled;
use crate::store::write_path::WritePath;

/// Keys that a writer folds at once.
const FOLDED_AT_ONCE: usize = 256;

/// Folds are written when so many bytes of them, or of their operands, have gathered.
pub(crate) const MAX_FOLDED_BYTES: usize = 1 << 20;

/// A key's operands and its base, as they were when they were looked up.
pub(crate) struct Gathered {
    generation: Arc<Generation>,
    key: Vec<u8>,
    /// Its records, newest first: operands, then at most one put or delete; each with the life of its segment.
    entries: Vec<(Entry, u64)>,
    /// The operands themselves, newest first.
    operands: Vec<Vec<u8>>,
    /// The value put before them.
    base: Option<Vec<u8>>,
    /// The places where records of the key may be, newest first: of a `hash` table all those under its tag.
    places: Vec<Location>,
    /// What an ordered index has of the key.
    looked_up: Option<LookedUp>,
}

impl Gathered {
    /// Bytes held in memory.
    fn bytes(&self) -> usize {
        self.operands.iter().chain(&self.base).map(Vec::len).sum()
    }

    /// Leaves out the newest records, down to the first that `stays`.
    fn leave_out(&mut self, stays: impl Fn(&Entry) -> bool) {
        let newest = self.entries.iter().position(|(entry, _)| stays(entry)).unwrap_or(self.entries.len());
        self.entries.drain(..newest);
        self.operands.drain(..newest.min(self.operands.len()));
        let place = self.entries.first().map(|(entry, _)| entry.location);
        let at = self.places.iter().position(|known| place.is_some_and(|place| known.same_place(place)));
        self.places.drain(..at.unwrap_or(self.places.len()));
    }

    /// Leaves out records that are newer than a sequence up to which all had been published when they were looked up.
    fn leave_out_unpublished(&mut self, published: u64) {
        self.leave_out(|entry| entry.sequence <= published);
    }

    /// Leaves out the records above one that was missed: `places` are the present ones, and every record up to `published` is
    /// there.
    fn leave_out_missed(&mut self, places: &[Location], published: u64) {
        let same = |(one, other): &(&Location, &Location)| one.same_place(**other);
        let common = self.places.iter().rev().zip(places.iter().rev()).take_while(same).count();
        let missed_is_overlooked = planted::is_on(Bug::MissedOperandOverlooked);
        let common = if missed_is_overlooked { self.places.len() } else { common };
        let whole = self.places[self.places.len() - common..].to_vec();
        self.leave_out(|entry| {
            entry.sequence <= published && whole.iter().any(|place| place.same_place(entry.location))
        });
    }

    fn unsettled(&self, hash: u64) -> Unsettled {
        match &self.generation.index {
            TableIndex::Hash(_) => Unsettled::tag(&self.generation, hash),
            TableIndex::Ordered => Unsettled::key(&self.generation, &self.key),
        }
    }
}

/// The fold to be put in place of a key's operands.
pub(crate) struct Folded {
    from: Gathered,
    value: Vec<u8>,
}

impl Folded {
    /// The record of which the fold is a copy.
    fn newest(&self) -> &Entry {
        &self.from.entries[0].0
    }
}

/// Bytes that wait to be written, of many keys.
pub(crate) fn folded_bytes(folded: &[Folded]) -> usize {
    folded.iter().map(|fold| fold.value.len()).sum()
}

impl<D: Device> WritePath<D> {
    /// Settles up to `limit` of what is queued, and folds. True if any of it is done with.
    pub(crate) fn settle_some(&self, limit: usize) -> bool {
        let (mut progress, mut folded) = (false, Vec::new());
        for _ in 0..limit {
            let fold = |key, unsettled: &Unsettled| {
                let again = self.fold_published(key, unsettled, &mut folded);
                let again = again.inspect_err(|error| self.note_trouble(error)).unwrap_or(false);
                again.then(|| unsettled.clone())
            };
            let Some(done) = self.settle_front(true, fold) else { break };
            progress |= done;
            if folded_bytes(&folded) >= MAX_FOLDED_BYTES {
                self.note_failure(self.write_folded(&std::mem::take(&mut folded)));
            }
        }
        self.note_failure(self.write_folded(&folded));
        progress
    }

    /// Folds the keys that wait for a writer, and with them the other keys in the queue: the operands of all are still in memory, and
    /// would have to be read back one by one once the open batch is written for the first. Keys after [`MAX_FOLDED_BYTES`] wait for
    /// the next writer. A writer that `adds_operands` may have to wait for another that folds.
    pub(crate) fn fold_urgent(&self, adds_operands: bool) {
        let Some(_folding) = self.settling.urgent.begin(adds_operands) else { return };
        let Some(first) = self.settling.urgent.take() else { return };
        let urgent = std::iter::once(first).chain(std::iter::from_fn(|| self.settling.urgent.take()));
        let queued = self.settling.first(FOLDED_AT_ONCE).into_iter();
        let (mut known, mut gathered) = (Vec::<Unsettled>::new(), Vec::<Gathered>::new());
        for unsettled in urgent.chain(queued) {
            if known.iter().any(|known| known.is_same(&unsettled)) {
                continue;
            }
            let settled = self.settle(&unsettled);
            if settled.again {
                self.settling.push_anyway(Unsettled::tag(unsettled.generation(), unsettled.hash));
            }
            if let Some(key) = settled.fold {
                match self.gather(unsettled.generation(), key) {
                    Ok(found) => gathered.extend(found.map(|(found, _)| found)),
                    Err(error) => self.note_trouble(&error),
                }
            }
            known.push(unsettled);
            if known.len() == FOLDED_AT_ONCE || gathered.iter().map(Gathered::bytes).sum::<usize>() >= MAX_FOLDED_BYTES
            {
                break;
            }
        }
        self.note_failure(self.fold_gathered(gathered));
    }

    /// Folds operands of which some are in the open batch. That is written first, so that all older records are published: operands
    /// above a record that was missed are left to the next attempt.
    fn fold_gathered(&self, gathered: Vec<Gathered>) -> Result<()> {
        if gathered.is_empty() {
            return Ok(());
        }
        self.write_open_batch()?;
        let published = self.published_sequence();
        let mut folded = Vec::with_capacity(gathered.len());
        for mut from in gathered {
            from.leave_out_missed(&self.places_of(&from)?, published);
            let unsettled = from.unsettled(self.hash(&from.key));
            match self.made_of(from)? {
                Some(fold) => folded.push(fold),
                None => self.settling.urgent.push(unsettled, 0),
            }
        }
        self.write_folded(&folded)
    }

    /// Adds the fold of a queued key's operands, as far as all older records are published, to the folds to be written. True if these are
    /// too few, and the key must be queued again.
    fn fold_published(&self, key: Vec<u8>, unsettled: &Unsettled, folded: &mut Vec<Folded>) -> Result<bool> {
        let generation = unsettled.generation();
        // A key may be queued more than once, and one batch has one copy of a record.
        let is_same = |known: &Folded| known.from.generation.id == generation.id && known.from.key == key;
        if folded.iter().any(is_same) {
            return Ok(false);
        }
        let Some((mut from, published)) = self.gather(generation, key)? else { return Ok(false) };
        from.leave_out_unpublished(published);
        let fold = self.made_of(from)?;
        let is_none = fold.is_none();
        folded.extend(fold);
        Ok(is_none)
    }

    /// A key's operands, if they are many, and its base; with a sequence up to which no record can be missing. None if the base
    /// will expire: the operands stay when it has.
    fn gather(&self, generation: &Arc<Generation>, key: Vec<u8>) -> Result<Option<(Gathered, u64)>> {
        let _guard = self.epochs.pin();
        let published = self.published_sequence();
        let run = self.places_under(generation, &key);
        let looked_up = self.look_up(generation, &key)?;
        let chain = &looked_up.chain;
        let published = if planted::is_on(Bug::PublishedAskedLate) { self.published_sequence() } else { published };
        let expires = chain.entries().iter().any(|entry| entry.is_base() && entry.form.expires_ms.is_some());
        if chain.operands() < FOLD_AT || expires {
            return Ok(None);
        }
        let candidates: Candidates = chain.candidates(0).collect();
        let (base, operands) = self.read_parts(generation, &key, &candidates, &View::LATEST)?;
        let life = |entry: &Entry| self.segments.find(entry.location.segment).map_or(0, |segment| segment.life());
        let entries: Vec<_> = chain.entries().iter().map(|entry| (entry.without_value(), life(entry))).collect();
        let (places, looked_up) = match &generation.index {
            TableIndex::Hash(_) => (run, None),
            TableIndex::Ordered => (chain.entries().iter().map(|entry| entry.location).collect(), Some(looked_up)),
        };
        let generation = Arc::clone(generation);
        Ok(Some((Gathered { generation, key, entries, operands, base, places, looked_up }, published)))
    }

    /// The fold of operands, unless they are too few.
    fn made_of(&self, mut from: Gathered) -> Result<Option<Folded>> {
        if from.operands.len() < FOLD_AT {
            return Ok(None);
        }
        let left_out = usize::from(planted::is_on(Bug::OperandDropped));
        from.operands.drain(..left_out);
        let mut operands = std::mem::take(&mut from.operands);
        let value = self.merged(&from.generation, &from.key, from.base.take().as_deref(), &mut operands)?;
        Ok(Some(Folded { from, value }))
    }

    /// The present places of a gathered key's records.
    fn places_of(&self, gathered: &Gathered) -> Result<Vec<Location>> {
        let Gathered { generation, key, .. } = gathered;
        match &generation.index {
            TableIndex::Hash(_) => Ok(self.places_under(generation, key)),
            TableIndex::Ordered => {
                let chain = self.chain(generation, key, &View::LATEST)?;
                Ok(chain.entries().iter().map(|entry| entry.location).collect())
            }
        }
    }

    /// The places under a key's tag, newest first; nothing in an ordered table.
    fn places_under(&self, generation: &Generation, key: &[u8]) -> Vec<Location> {
        let mut run = SmallVec::new();
        if let TableIndex::Hash(index) = &generation.index {
            index.lookup(self.hash(key), &mut run);
        }
        run.to_vec()
    }

    /// Puts folds as later copies of their newest operands, many in one batch: writers wait for each batch.
    pub(crate) fn write_folded(&self, folded: &[Folded]) -> Result<()> {
        let large = folded.iter().any(|fold| fold.value.len() > self.whole_value_bytes());
        let _staging = large.then(|| self.begin_staging());
        let stored = folded
            .iter()
            .map(|fold| self.stored(&fold.from.generation, &fold.from.key, &fold.value))
            .collect::<Result<Vec<_>>>()?;
        let mut moves: Vec<_> = folded
            .iter()
            .zip(&stored)
            .map(|(fold, stored)| {
                let Gathered { generation, key, looked_up, .. } = &fold.from;
                let mut operation = self.put_operation(Arc::clone(generation), key, stored, None);
                let Location { segment, offset, .. } = fold.newest().location;
                operation.append.moved = Some((Origin { segment, offset }, fold.newest().sequence));
                Move { operation, looked_up: looked_up.clone() }
            })
            .collect();
        let by_key: HashMap<_, _> =
            folded.iter().map(|fold| ((fold.from.generation.id, &fold.from.key[..]), fold)).collect();
        let still_current = |one: &Move<'_>| {
            let fold = by_key.get(&(one.operation.append.table, one.operation.append.key));
            fold.map_or(Some(false), |fold| self.may_be_folded(fold, one))
        };
        self.move_in_batches(&mut moves, still_current, |number, _| {
            self.meters.folded_keys.count();
            self.retire_folded(&folded[number]);
            self.fold_what_came(&folded[number].from);
            Ok(())
        })
    }

    /// `Upkeep::still_current` for a fold. In a `hash` table only records that came after the look-up are read, and only if
    /// a put or delete may be among them: all writers wait meanwhile.
    fn may_be_folded(&self, fold: &Folded, one: &Move<'_>) -> Option<bool> {
        let Gathered { generation, key, places, .. } = &fold.from;
        let run = self.places_under(generation, key);
        let newer = run.strip_suffix(&places[..]);
        let is_known = matches!(generation.index, TableIndex::Hash(_)) && !places.is_empty();
        let Some(newer) = newer.filter(|_| is_known) else {
            return self.still_current(one);
        };
        if self.catalog.generation(generation.id).is_none() {
            return Some(false);
        }
        if self.commit.stripes.last_base(generation.id, one.operation.hash) <= fold.newest().sequence {
            return Some(true);
        }
        let _guard = self.epochs.pin();
        let leaves_it = |location: &Location| {
            let mut leaves = false;
            let read = self.with_record(*location, &mut |record| {
                leaves = record.kind == Kind::Merge || record.key != *key;
            });
            read.is_ok() && leaves
        };
        Some(newer.iter().all(leaves_it))
    }

    /// Takes the records that a fold has superseded out of a `hash` index. Settling would find them by reading all of them
    /// again; it is left the records that name chunks, or were moved meanwhile.
    fn retire_folded(&self, folded: &Folded) {
        let Gathered { generation, key, entries, .. } = &folded.from;
        let TableIndex::Hash(index) = &generation.index else { return };
        // Between the decision which records no snapshot sees and their removal no snapshot may begin, and no segment another life.
        let (_publisher, _guard) = (self.publishers.pin(), self.epochs.pin());
        // All of a table that was dropped or truncated is taken out of the counts at once.
        if generation.is_gone() {
            return;
        }
        let hash = self.hash(key);
        // A fold that came too late has superseded no record, and one whose table cannot be asked may not have.
        let Ok(run) = self.all_places_under(generation.id, index, hash) else { return };
        if run.iter().any(|location| location.same_place(folded.newest().location)) {
            return;
        }
        let index_key = hashed_key(generation.id, hash, key);
        for (entry, life) in entries[1..].iter().filter(|(entry, _)| !entry.form.chunked) {
            if self.segments.get(entry.location.segment).life() != *life {
                continue;
            }
            self.snapshots.retain(&index_key, &std::iter::once((entry.clone(), folded.newest().sequence)).collect());
            if index.remove(hash, entry.location) {
                self.remove_live(entry.location);
            }
        }
    }

    /// Queues the key for the next writer again, if others have added many operands meanwhile.
    fn fold_what_came(&self, gathered: &Gathered) {
        // An index that cannot be asked is found out by the next get of the key.
        let operands = self.places_of(gathered).map_or(0, |places| places.len());
        if operands >= MAX_OPERANDS {
            self.must_fold_operands(gathered.unsettled(self.hash(&gathered.key)), operands);
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
