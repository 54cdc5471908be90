//! The work that publications leave to the background, tag by tag and key by key.
//!
//! A `hash` index cannot tell whether a put overwrites an older record under the same tag or merely shares its tag, so
//! both places stay, newest first, and the tag is queued. To settle a tag is to read the records under it, to tell their keys apart,
//! and to count each record as dead that a newer one of its key supersedes. Until then counts of live bytes are estimates on the
//! high side.
//!
//! In both kinds of index the operands of a merge pile up on their base. When there are many, they are folded (`fold.rs`).

use std::sync::Arc;

use smallvec::SmallVec;

use crate::Result;
use crate::format::location::Location;
use crate::index::chain::{Entry, FOLD_AT};
use crate::index::codec::{decode_key, hashed_key};
use crate::index::hash::HashIndex;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::store::append_path::AppendPath;
use crate::store::catalog::{Generation, TableIndex};
use crate::store::commit::Operation;
use crate::store::settling::Unsettled;

/// A tag under which more older places lie is settled by the writer itself, or a key that is overwritten again and again
/// would make its tag's run long.
const MAX_RUN: usize = 8;

/// If a key has so many operands, the next writer folds them before it goes on.
pub(crate) const MAX_OPERANDS: usize = 64;

/// Whether a key is to be queued when it has just got so many operands: once for upkeep, once for writers. A key whose
/// operands cannot be folded, by an operator that fails or over a base that will expire, is tried ever more seldom.
pub(crate) fn is_fold_due(operands: usize) -> bool {
    operands >= FOLD_AT && operands.is_power_of_two()
}

/// What settling a tag or key has left to do.
#[derive(Default)]
pub(crate) struct Settled {
    /// A delete cannot go yet, or a move has come in between: the tag must be settled again.
    pub(crate) again: bool,
    /// A key that has many operands, for the caller to fold if it may.
    pub(crate) fold: Option<Vec<u8>>,
}

impl<D: Device> AppendPath<D> {
    /// Queues the tag or key of a publication; `older` says how many places have piled up.
    pub(crate) fn must_settle(&self, unsettled: Unsettled, older: usize) {
        let crowded = unsettled.key.is_empty() && older >= MAX_RUN;
        let refused = if crowded { Err(unsettled) } else { self.settling.push(unsettled) };
        let Err(unsettled) = refused else { return };
        // Folding writes, and this caller is in the middle of a write.
        let Settled { again, fold } = self.settle(&unsettled);
        if again {
            self.settling.push_anyway(unsettled);
        } else if fold.is_some() {
            let _ = self.settling.push(unsettled);
        }
    }

    /// Whether [`AppendPath::must_settle`] may settle the tag of this operation at once, for which it reads records.
    pub(crate) fn settles_itself(&self, operation: &Operation<'_>) -> bool {
        let Some(TableIndex::Hash(index)) = operation.generation.as_ref().map(|generation| &generation.index) else {
            return false;
        };
        let mut run = SmallVec::new();
        index.lookup(operation.hash, &mut run);
        run.len() >= MAX_RUN
    }

    /// Queues a tag or key that has so many operands; the next writer folds them if they are many. A full queue only means
    /// that more operands will queue it again.
    pub(crate) fn must_fold_operands(&self, unsettled: Unsettled, operands: usize) {
        let unsettled = unsettled.for_folding();
        if operands >= MAX_OPERANDS {
            self.settling.urgent.push(unsettled.clone(), operands);
        }
        let _ = self.settling.push(unsettled);
    }

    /// Queues an index key whose operands have piled up over several commits of the ordered index. If there is no room, the
    /// next commit of the key finds them again. A shortened key is left: only its record knows the whole key.
    pub(crate) fn must_fold(&self, index_key: &[u8], operands: usize) {
        let Some((table, key)) = decode_key(index_key) else { return };
        let Some(generation) = self.catalog.generation(table) else { return };
        self.must_fold_operands(Unsettled::key(&generation, key), operands);
    }

    /// Settles up to `limit` of the tags that are queued now, without folds, for a writer that makes room: the chunks of a large
    /// fold would need room themselves. True if any of them is done with.
    pub(crate) fn settle_tags(&self, limit: usize) -> bool {
        let mut progress = false;
        for _ in 0..limit.min(self.settling.len()) {
            let Some(done) = self.settle_front(false, |_, unsettled| Some(unsettled.clone().for_folding())) else {
                // Other threads are at what there is.
                return progress || self.settling.is_any_claimed();
            };
            progress |= done;
        }
        progress
    }

    /// Settles what waits longest, and has `fold` see to a key with many operands, which answers what must be done again. `None` if
    /// nothing waits, or other threads are at all that does; true if it is done with.
    pub(crate) fn settle_front(
        &self,
        folds: bool,
        fold: impl FnOnce(Vec<u8>, &Unsettled) -> Option<Unsettled>,
    ) -> Option<bool> {
        let claim = self.settling.claim()?;
        let unsettled = &claim.unsettled;
        if (unsettled.folds && !folds) || self.is_for_writers(unsettled) {
            // Writers fold it if it gets more operands; once these are written, there is time to read them.
            let again = unsettled.clone();
            claim.again(again);
            return Some(false);
        }
        let settled = self.settle(unsettled);
        let again = settled.again.then(|| Unsettled::tag(&unsettled.generation, unsettled.hash));
        let again = settled.fold.and_then(|key| fold(key, unsettled)).or(again);
        let is_done = again.is_none();
        match again {
            Some(again) => claim.again(again),
            None => claim.done(),
        }
        Some(is_done)
    }

    /// Whether the newest of a tag's many operands waits to be written, so that they cannot be folded yet and would be read in
    /// vain, or a writer may be folding them.
    fn is_for_writers(&self, unsettled: &Unsettled) -> bool {
        if unsettled.folds && self.settling.urgent.is_folding() {
            return true;
        }
        let TableIndex::Hash(index) = &unsettled.generation.index else { return false };
        let mut run = SmallVec::new();
        if unsettled.folds {
            index.lookup(unsettled.hash, &mut run);
        }
        run.first().is_some_and(|newest| self.commit.pending_sequence(*newest).is_some())
    }

    /// Settles the tags that the publications of a rebuild have queued, before any segment begins another life: lists of chunks that
    /// count no more may name places of an earlier one. It does not write.
    pub(crate) fn settle_rebuilt(&self) {
        for _ in 0..self.settling.len() {
            if self.settle_front(true, |_, unsettled| Some(unsettled.clone())).is_none() {
                break;
            }
        }
    }

    /// Settles the tag of a hash, or queues it.
    fn settle_hash(&self, generation: &Arc<Generation>, hash: u64) {
        let unsettled = Unsettled::tag(generation, hash);
        if self.settle(&unsettled).again {
            self.settling.push_anyway(unsettled);
        }
    }

    /// Settles a tag that has several places, so that the places left count. The error is of runs that may have some of them.
    pub(crate) fn settle_before_move(&self, generation: &Arc<Generation>, hash: u64) -> Result<()> {
        let TableIndex::Hash(index) = &generation.index else { return Ok(()) };
        if self.pull_up(generation, index, hash, false)?.len() > 1 {
            self.settle_hash(generation, hash);
        }
        Ok(())
    }

    /// Settles the tag of a delete to which the index refers still: a delete without records below it need not be there.
    pub(crate) fn settle_delete(&self, generation: &Arc<Generation>, hash: u64, location: Location) -> Result<()> {
        if self.is_in_hash(generation, hash, location)? {
            self.settle_hash(generation, hash);
        }
        Ok(())
    }

    /// Settles a tag or key; the caller queues it where it must be done again.
    pub(crate) fn settle(&self, unsettled: &Unsettled) -> Settled {
        if unsettled.generation.is_gone() {
            return Settled::default();
        }
        let TableIndex::Hash(index) = &unsettled.generation.index else {
            return Settled { fold: Some(unsettled.key.to_vec()), ..Settled::default() };
        };
        self.meters.settled_tags.count();
        let _guard = self.epochs.pin();
        self.settle_tag(index, unsettled).unwrap_or_else(|error| {
            self.note_trouble(&error);
            // What is damaged stays as it is. After any other error nobody else would look at the tag again.
            Settled { again: error.is_passing(), ..Settled::default() }
        })
    }

    /// A record that cannot be read stays in the index, so that a get of it reports the damage.
    pub(crate) fn note_failure(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.note_trouble(&error);
        }
    }

    /// Reads the records under a tag and retires the ones that do not count.
    fn settle_tag(&self, index: &HashIndex, unsettled: &Unsettled) -> Result<Settled> {
        let generation = &unsettled.generation;
        // No snapshot may begin between the decision which records no snapshot sees and their removal.
        let _publisher = self.publishers.pin();
        let published = self.published_sequence();
        // All of a table that was dropped or truncated is taken out of the counts at once.
        let is_gone = generation.is_gone();
        if unsettled.is_put_alone && self.pull_up(generation, index, unsettled.hash, false)?.len() <= 1 {
            return Ok(Settled::default());
        }
        let keys = if is_gone { Ok(Vec::new()) } else { self.keys_under_tag(generation, index, unsettled.hash) };
        let published = if planted::is_on(Bug::PublishedAskedLate) { self.published_sequence() } else { published };
        let mut settled = Settled::default();
        for mut key in keys? {
            settled.again |= self.settle_key(index, unsettled, &mut key, published);
            if key.operands() >= FOLD_AT {
                settled.fold = Some(key.key);
            }
        }
        Ok(settled)
    }

    /// The records under a tag by key, newest first. They all come to memory.
    fn keys_under_tag(&self, generation: &Generation, index: &HashIndex, hash: u64) -> Result<Vec<KeyRecords>> {
        let mut run = SmallVec::new();
        if planted::is_on(Bug::DeleteOverSpilled) {
            index.lookup(hash, &mut run);
        } else {
            run = self.pull_up(generation, index, hash, false)?;
        }
        let mut keys: Vec<KeyRecords> = Vec::new();
        for &location in &run {
            self.with_record(location, &mut |record| {
                let list = if record.form.chunked { record.value.to_vec() } else { Vec::new() };
                let (kind, sequence, form) = (record.kind, record.sequence, record.form);
                let found = (Entry { kind, sequence, location, separate: None, form, inline: None }, list);
                let taken_for_same = planted::is_on(Bug::CollisionTakenForOverwrite);
                match keys.iter_mut().find(|known| known.key == record.key || taken_for_same) {
                    Some(known) => known.records.push(found),
                    None => keys.push(KeyRecords { key: record.key.to_vec(), records: vec![found] }),
                }
            })?;
        }
        Ok(keys)
    }

    /// Retires a key's records below its base, and a delete without records below it. True if that has to be done again.
    /// `published` is `published_sequence` before the records were looked up.
    fn settle_key(&self, index: &HashIndex, unsettled: &Unsettled, key: &mut KeyRecords, published: u64) -> bool {
        let generation = &unsettled.generation;
        let Some(base) = key.records.iter().position(|(entry, _)| entry.is_base()) else { return false };
        let (base_entry, mut older_left) = (key.records[base].0.clone(), false);
        let index_key = hashed_key(generation.id, self.hash(&key.key), &key.key);
        for (entry, list) in key.records.drain(base + 1..) {
            self.snapshots.retain(&index_key, &std::iter::once((entry.clone(), base_entry.sequence)).collect());
            let retired = index.remove(unsettled.hash, entry.location);
            // A move that came in between has put the place elsewhere in the run; another round finds it.
            older_left |= !retired;
            if retired {
                self.remove_live(entry.location);
                self.count_chunks(generation.id, entry.location, &list, -1);
            }
        }
        if !base_entry.is_delete() {
            return older_left;
        }
        let published = if planted::is_on(Bug::DeleteGoneEarly) { u64::MAX } else { published };
        let gone = !older_left && base_entry.sequence <= published;
        if gone && index.remove(unsettled.hash, base_entry.location) {
            self.remove_live(base_entry.location);
            return false;
        }
        true
    }

    /// Every record up to this sequence is published. Two writers publish in any order: a thread that looks up a key's records
    /// and finds one that is newer than this, as it was before the look-up, may have missed an older one.
    pub(crate) fn published_sequence(&self) -> u64 {
        let (_, next_sequence) = self.commit.completed_end();
        next_sequence - 1
    }
}

/// A key's records under a tag, newest first; each with its chunk list, if it has one.
struct KeyRecords {
    key: Vec<u8>,
    records: Vec<(Entry, Vec<u8>)>,
}

impl KeyRecords {
    fn operands(&self) -> usize {
        self.records.iter().take_while(|(entry, _)| !entry.is_base()).count()
    }
}
