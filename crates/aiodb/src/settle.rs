//! What publications leave to be done in the background, key by key.
//!
//! A `hash` index cannot tell whether a put overwrites an older record under the same tag or merely shares its tag, so
//! both places are kept, newest first, and the tag is queued. Settling reads the records, keeps those of each key that
//! count and counts the others as dead. Until then counts of live bytes are estimates on the high side.
//!
//! In both kinds of index the operands of a merge pile up on their base. When there are many, they are folded: what they
//! make is put as a later copy of the newest one, which displaces them all.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use crate::Result;
use crate::catalog::{Generation, TableIndex};
use crate::engine::Engine;
use crate::index::hash::HashIndex;
use crate::index::lmdb::codec::decode_key;
use crate::index::stack::{Entry, FOLD_AT};
use crate::index::{Candidates, Location};
use crate::io::Device;
use crate::log::record::{Kind, Origin};
use crate::operation::Operation;
use crate::planted::{self, Bug};
use crate::snapshot::View;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard};

/// Keys and tags waiting to be settled; a writer that finds the queue full settles its own.
pub(crate) const MAX_UNSETTLED: usize = 64 << 10;
/// Room in the queue for what writers add that have not seen yet that it is nearly full.
const LEFT_FOR_WRITERS: usize = 8 << 10;

/// A tag under which more older places lie is settled by the writer itself, or a key that is overwritten again and again
/// would make its tag's run long.
const MAX_RUN: usize = 8;

/// A key with so many operands has the next writer fold them before it goes on.
const MAX_OPERANDS: usize = 64;

/// Keys that wait for a writer to fold them; more than this wait for upkeep, like all others.
const MAX_URGENT: usize = 1024;

/// Keys that a writer folds at once.
const FOLDED_AT_ONCE: usize = 256;

/// What operands make is written when so much of it has gathered.
const MAX_FOLDED_BYTES: usize = 1 << 20;

/// A tag of a hash index that may hold dead places, or a key whose operands are to be folded.
#[derive(Clone)]
pub(crate) struct Unsettled {
    generation: Arc<Generation>,
    /// Of a `hash` table.
    hash: u64,
    /// Of an ordered table; empty in a `hash` table.
    key: Box<[u8]>,
    /// Whether operands have piled up.
    folds: bool,
}

impl Unsettled {
    pub(crate) fn tag(generation: &Arc<Generation>, hash: u64) -> Unsettled {
        Unsettled { generation: Arc::clone(generation), hash, key: Box::default(), folds: false }
    }

    pub(crate) fn key(generation: &Arc<Generation>, key: &[u8]) -> Unsettled {
        Unsettled { generation: Arc::clone(generation), hash: 0, key: key.into(), folds: true }
    }

    fn is_same(&self, other: &Unsettled) -> bool {
        (self.generation.id, self.hash, &self.key) == (other.generation.id, other.hash, &other.key)
    }
}

/// Whether a key is to be queued when it gets the operand that makes them so many: once for upkeep, once for writers. One whose
/// operands cannot be folded, by an operator that fails or over a base that will expire, is tried ever more seldom.
pub(crate) fn is_fold_due(operands: usize) -> bool {
    operands >= FOLD_AT && operands.is_power_of_two()
}

/// The queue of what is to be settled.
#[derive(Default)]
pub(crate) struct Settling {
    queue: Mutex<Queue>,
    /// Keys of the queue that the next writers fold, each once.
    urgent: Mutex<VecDeque<Unsettled>>,
    urgent_count: AtomicUsize,
    /// Whether the queue is nearly full.
    is_crowded: AtomicBool,
    /// Held by the writer that folds.
    folding: Mutex<()>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Unsettled>,
    /// How many have left the queue: the number of the one in front.
    popped: u64,
}

impl Settling {
    /// Queues a tag or key; gives it back if the queue is full.
    pub(crate) fn push(&self, unsettled: Unsettled) -> std::result::Result<(), Unsettled> {
        let mut queue = self.lock();
        if queue.waiting.len() >= MAX_UNSETTLED {
            return Err(unsettled);
        }
        queue.waiting.push_back(unsettled);
        self.is_crowded.store(queue.waiting.len() >= MAX_UNSETTLED - LEFT_FOR_WRITERS, Ordering::Relaxed);
        Ok(())
    }

    /// Has the next writer fold a key that is queued.
    fn push_urgent(&self, unsettled: Unsettled) {
        let mut urgent = self.lock_urgent();
        if urgent.len() < MAX_URGENT && !urgent.iter().any(|known| known.is_same(&unsettled)) {
            urgent.push_back(unsettled);
            self.urgent_count.store(urgent.len(), Ordering::Release);
        }
    }

    /// A key that this caller folds. It stays queued, in case that cannot be done yet.
    fn take_urgent(&self) -> Option<Unsettled> {
        let mut urgent = self.lock_urgent();
        let taken = urgent.pop_front();
        self.urgent_count.store(urgent.len(), Ordering::Release);
        taken
    }

    /// What waits longest, and its number; it stays queued until [`Settling::pop`].
    fn front(&self) -> Option<(u64, Unsettled)> {
        let queue = self.lock();
        queue.waiting.front().map(|unsettled| (queue.popped, unsettled.clone()))
    }

    /// Some of those that wait longest; they stay queued.
    fn first(&self, limit: usize) -> Vec<Unsettled> {
        self.lock().waiting.iter().take(limit).cloned().collect()
    }

    /// Takes the one of this number off the queue, unless another thread that settled it too has done so.
    fn pop(&self, number: u64) {
        let mut queue = self.lock();
        if queue.popped == number {
            queue.waiting.pop_front().expect("what was in front stays until it is popped");
            queue.popped += 1;
            self.is_crowded.store(queue.waiting.len() >= MAX_UNSETTLED - LEFT_FOR_WRITERS, Ordering::Relaxed);
        }
    }

    /// Whether a writer should fold something before it adds more.
    pub(crate) fn is_urgent(&self) -> bool {
        self.urgent_count.load(Ordering::Acquire) > 0
    }

    /// Whether a writer should settle something before it adds more: what finds no room in the queue may never be settled.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded.load(Ordering::Relaxed)
    }

    /// The hashes of a `hash` table's queued tags.
    pub(crate) fn hashes(&self, table: u32) -> Vec<u64> {
        let queue = self.lock();
        queue
            .waiting
            .iter()
            .filter(|unsettled| unsettled.generation.id == table)
            .map(|unsettled| unsettled.hash)
            .collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().waiting.len()
    }

    fn lock_urgent(&self) -> MutexGuard<'_, VecDeque<Unsettled>> {
        self.urgent.lock().expect("no code panics while it holds the queue")
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("no code panics while it holds the queue")
    }
}

impl<D: Device> Engine<D> {
    /// Queues what a publication leaves; `older` says how much has piled up.
    pub(crate) fn must_settle(&self, unsettled: Unsettled, older: usize) {
        let crowded = unsettled.key.is_empty() && older >= MAX_RUN;
        let refused = if crowded { Err(unsettled) } else { self.settling.push(unsettled) };
        if let Err(unsettled) = refused {
            // Folding writes, and this caller is in the middle of a write.
            if self.settle(&unsettled).is_some() {
                let _ = self.settling.push(unsettled);
            }
        }
    }

    /// Queues a tag or key that has so many operands; the next writer folds them if they are many. A full queue only means
    /// that more operands will queue it again.
    pub(crate) fn must_fold_operands(&self, unsettled: Unsettled, operands: usize) {
        let unsettled = Unsettled { folds: true, ..unsettled };
        if operands >= MAX_OPERANDS {
            self.settling.push_urgent(unsettled.clone());
        }
        let _ = self.settling.push(unsettled);
    }

    /// Folds what waits for a writer, and with it what is queued anyway: the operands of all are in memory still, and would have
    /// to be read back one by one once the open batch is written for the first.
    pub(crate) fn fold_urgent(&self) {
        // Two would make the same of the same operands.
        let Ok(_folding) = self.settling.folding.try_lock() else { return };
        let Some(first) = self.settling.take_urgent() else { return };
        let urgent = std::iter::once(first).chain(std::iter::from_fn(|| self.settling.take_urgent()));
        let mut waiting: Vec<Unsettled> = urgent.take(FOLDED_AT_ONCE).collect();
        for queued in self.settling.first(FOLDED_AT_ONCE) {
            if !waiting.iter().any(|known| known.is_same(&queued)) {
                waiting.push(queued);
            }
        }
        let mut folded = Vec::new();
        for unsettled in &waiting {
            if let Some(key) = self.settle(unsettled) {
                self.note_failure(self.fold(key, unsettled, true, &mut folded));
            }
        }
        self.note_failure(self.write_folded_now(folded));
    }

    /// [`Engine::write_folded`] of what was made of operands of which some are in the open batch. That is written first, so
    /// that all older records are published; where one was missed, the key is left to the next attempt.
    fn write_folded_now(&self, mut folded: Vec<Folded>) -> Result<()> {
        if folded.iter().any(|fold| !fold.is_whole) {
            self.write_open_batch()?;
            let published = self.published_sequence();
            let mut whole = Vec::with_capacity(folded.len());
            for fold in folded {
                if fold.is_whole || self.was_whole(&fold, published)? {
                    whole.push(fold);
                }
            }
            folded = whole;
        }
        self.write_folded(&folded)
    }

    /// Queues an index key whose operands have piled up over several commits of the ordered index. If there is no room, the
    /// next commit of the key finds them again. One that is shortened is left: only its record knows the key.
    pub(crate) fn must_fold(&self, index_key: &[u8], operands: usize) {
        let Some((table, key)) = decode_key(index_key) else { return };
        let Some(generation) = self.catalog.generation(table) else { return };
        self.must_fold_operands(Unsettled::key(&generation, key), operands);
    }

    /// Settles up to `limit` of what is queued. True if any of it is done with.
    pub(crate) fn settle_some(&self, limit: usize) -> bool {
        let mut progress = false;
        let mut folded = Vec::new();
        for _ in 0..limit {
            let Some((number, unsettled)) = self.settling.front() else { break };
            if self.is_for_writers(&unsettled) {
                // They fold it if it gets more operands; once these are written, there is time to read them.
                let _ = self.settling.push(unsettled);
                self.settling.pop(number);
                continue;
            }
            let before = self.settling.len();
            if let Some(key) = self.settle(&unsettled) {
                self.note_failure(self.fold(key, &unsettled, false, &mut folded));
            }
            self.settling.pop(number);
            // What could not be settled has been queued again.
            progress |= self.settling.len() < before;
            if folded.iter().map(|fold: &Folded| fold.value.len()).sum::<usize>() >= MAX_FOLDED_BYTES {
                self.note_failure(self.write_folded(&std::mem::take(&mut folded)));
            }
        }
        self.note_failure(self.write_folded(&folded));
        progress
    }

    /// Whether the newest of a tag's many operands waits to be written, so that they cannot be folded yet and would be read in
    /// vain, or a writer may be folding them.
    fn is_for_writers(&self, unsettled: &Unsettled) -> bool {
        if unsettled.folds && self.settling.folding.try_lock().is_err() {
            return true;
        }
        let TableIndex::Hash(index) = &unsettled.generation.index else { return false };
        let mut run = SmallVec::new();
        if unsettled.folds {
            index.lookup(unsettled.hash, &mut run);
        }
        run.first().is_some_and(|newest| self.commit.pending_sequence(*newest).is_some())
    }

    /// Settles what the publications of a rebuild have queued, before any segment begins another life: lists of chunks that
    /// count no more may name places of an earlier one. Writes nothing.
    pub(crate) fn settle_rebuilt(&self) {
        for _ in 0..self.settling.len() {
            let Some((number, unsettled)) = self.settling.front() else { break };
            let folds = self.settle(&unsettled).is_some();
            self.settling.pop(number);
            if folds {
                let _ = self.settling.push(unsettled);
            }
        }
    }

    /// Settles a tag that has several places, so that those left count.
    pub(crate) fn settle_before_move(&self, generation: &Arc<Generation>, hash: u64) {
        let TableIndex::Hash(index) = &generation.index else { return };
        let mut run = SmallVec::new();
        index.lookup(hash, &mut run);
        if run.len() > 1 {
            self.settle(&Unsettled::tag(generation, hash));
        }
    }

    /// Settles the tag of a delete to which the index refers still: one with nothing below it need not be there.
    pub(crate) fn settle_delete(&self, generation: &Arc<Generation>, hash: u64, location: Location) {
        let TableIndex::Hash(index) = &generation.index else { return };
        if index.contains(hash, location) {
            self.settle(&Unsettled::tag(generation, hash));
        }
    }

    /// Settles a tag. Returns a key that has many operands, for the caller to fold if it may.
    fn settle(&self, unsettled: &Unsettled) -> Option<Vec<u8>> {
        if unsettled.generation.is_gone() {
            return None;
        }
        let TableIndex::Hash(index) = &unsettled.generation.index else { return Some(unsettled.key.to_vec()) };
        self.meters.settled_tags.count();
        let _pin = self.pins.pin();
        self.settle_tag(index, unsettled).inspect_err(|error| self.note_trouble(error)).unwrap_or(None)
    }

    /// A record that cannot be read stays in the index, so that a get of it reports the damage.
    fn note_failure(&self, outcome: Result<()>) {
        if let Err(error) = outcome {
            self.note_trouble(&error);
        }
    }

    /// Reads the records under a tag and retires those that do not count. Returns a key with many operands.
    fn settle_tag(&self, index: &HashIndex, unsettled: &Unsettled) -> Result<Option<Vec<u8>>> {
        let generation = &unsettled.generation;
        // No snapshot may begin between the decision what no snapshot sees and the removal.
        let _publisher = self.publishers.pin();
        let published = self.published_sequence();
        // All of a table that was dropped or truncated is taken out of the counts at once.
        let is_gone = generation.is_gone();
        let keys = if is_gone { Ok(Vec::new()) } else { self.keys_under_tag(index, unsettled.hash) };
        let published = if planted::is_on(Bug::PublishedAskedLate) { self.published_sequence() } else { published };
        let (mut again, mut foldable) = (false, None);
        for mut key in keys? {
            again |= self.settle_key(index, unsettled, &mut key, published);
            if key.operands() >= FOLD_AT {
                foldable = Some(key.key);
            }
        }
        if again {
            // A full queue only means that the next write to this tag settles it.
            let _ = self.settling.push(Unsettled::tag(generation, unsettled.hash));
        }
        Ok(foldable)
    }

    /// The records under a tag by key, newest first.
    fn keys_under_tag(&self, index: &HashIndex, hash: u64) -> Result<Vec<KeyRecords>> {
        let mut run = SmallVec::new();
        index.lookup(hash, &mut run);
        let mut keys: Vec<KeyRecords> = Vec::new();
        for &location in &run {
            self.with_record(location, &mut |record| {
                let list = if record.form.chunked { record.value.to_vec() } else { Vec::new() };
                let (kind, sequence, form) = (record.kind, record.sequence, record.form);
                let found = (Entry { kind, sequence, location, separate: None, form }, list);
                let taken_for_same = planted::is_on(Bug::CollisionTakenForOverwrite);
                match keys.iter_mut().find(|known| known.key == record.key || taken_for_same) {
                    Some(known) => known.records.push(found),
                    None => keys.push(KeyRecords { key: record.key.to_vec(), records: vec![found] }),
                }
            })?;
        }
        Ok(keys)
    }

    /// Retires a key's records below its base, and a delete with nothing below it. True if that has to be done again.
    /// `published` is of before the records were looked up.
    fn settle_key(&self, index: &HashIndex, unsettled: &Unsettled, key: &mut KeyRecords, published: u64) -> bool {
        let generation = &unsettled.generation;
        let Some(base) = key.records.iter().position(|(entry, _)| entry.is_base()) else { return false };
        let (base_entry, mut older_left) = (key.records[base].0, false);
        let index_key = crate::index::lmdb::codec::prefix_key(generation.id, &key.key);
        for (entry, list) in key.records.drain(base + 1..) {
            self.snapshots.keep(&index_key, &std::iter::once((entry, base_entry.sequence)).collect());
            let retired = index.remove(unsettled.hash, entry.location);
            // A move that came in between has put the place elsewhere in the run; another round finds it.
            older_left |= !retired;
            if retired {
                generation.count_change();
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
            generation.count_change();
            self.remove_live(base_entry.location);
            return false;
        }
        true
    }

    /// Every record up to this sequence is published. Two writers publish in any order: whoever looks up a key's records
    /// and finds one that is newer than this, as it was before the look-up, may have missed an older one.
    fn published_sequence(&self) -> u64 {
        let (_, next_sequence) = self.commit.completed_end();
        next_sequence - 1
    }

    /// Adds what a key's operands make to what is to be written. Queued again where that cannot be known yet; `now` says to
    /// write the open batch for it.
    fn fold(&self, key: Vec<u8>, unsettled: &Unsettled, now: bool, folded: &mut Vec<Folded>) -> Result<()> {
        let generation = &unsettled.generation;
        // A key may be queued more than once, and one batch has one copy of a record.
        if folded.iter().any(|known| known.generation.id == generation.id && known.key == key) {
            return Ok(());
        }
        let made = {
            let _pin = self.pins.pin();
            self.made_of_operands(generation, &key, now)?
        };
        match made {
            Foldable::Nothing => {}
            Foldable::Later => _ = self.settling.push(unsettled.clone()),
            Foldable::Now(fold) => folded.push(fold),
        }
        Ok(())
    }

    /// Puts what operands make as later copies of the newest of them, many in one batch: writers wait for each batch.
    fn write_folded(&self, folded: &[Folded]) -> Result<()> {
        let large = folded.iter().any(|fold| fold.value.len() > self.whole_value_bytes());
        let _staging = large.then(|| self.begin_staging());
        let stored = folded
            .iter()
            .map(|fold| self.stored(&fold.generation, &fold.key, &fold.value))
            .collect::<Result<Vec<_>>>()?;
        let operations: Vec<_> = folded
            .iter()
            .zip(&stored)
            .map(|(fold, stored)| {
                let mut operation = self.put_operation(Arc::clone(&fold.generation), &fold.key, stored, None);
                let Location { segment, offset, .. } = fold.newest.location;
                operation.append.moved = Some((Origin { segment, offset }, fold.newest.sequence));
                operation
            })
            .collect();
        let by_key: HashMap<_, _> = folded.iter().map(|fold| ((fold.generation.id, &fold.key[..]), fold)).collect();
        let still_current = |operation: &Operation<'_>| {
            by_key
                .get(&(operation.append.table, operation.append.key))
                .is_some_and(|fold| self.may_be_folded(fold, operation))
        };
        self.move_in_batches(&operations, still_current, |number, _| {
            self.meters.folded_keys.count();
            self.retire_folded(&folded[number]);
            Ok(())
        })
    }

    /// [`Engine::still_current`] for what operands make. In a `hash` table only what came after the look-up is read: everybody
    /// waits meanwhile.
    fn may_be_folded(&self, fold: &Folded, operation: &Operation<'_>) -> bool {
        let run = self.places_under(&fold.generation, &fold.key);
        let newer = run.strip_suffix(&fold.places[..]);
        let Some(newer) = newer.filter(|_| matches!(fold.generation.index, TableIndex::Hash(_))) else {
            return self.still_current(operation);
        };
        let _pin = self.pins.pin();
        let leaves_it = |location: &Location| {
            let mut leaves = false;
            let read = self.with_record(*location, &mut |record| {
                leaves = record.kind == Kind::Merge || record.key != fold.key;
            });
            read.is_ok() && leaves
        };
        self.catalog.generation(fold.generation.id).is_some() && newer.iter().all(leaves_it)
    }

    /// Takes out of a `hash` index what a copy that is there by now has displaced. Settling would find it by reading it all
    /// again; it is left those that name chunks, or were moved meanwhile.
    fn retire_folded(&self, folded: &Folded) {
        let generation = &folded.generation;
        let TableIndex::Hash(index) = &generation.index else { return };
        // No snapshot may begin between the decision what no snapshot sees and the removal, no segment another life.
        let (_publisher, _pin) = (self.publishers.pin(), self.pins.pin());
        // All of a table that was dropped or truncated is taken out of the counts at once.
        if generation.is_gone() {
            return;
        }
        let hash = self.hash(&folded.key);
        let mut run = SmallVec::new();
        index.lookup(hash, &mut run);
        // A copy that came too late has displaced nothing.
        if run.iter().any(|location| location.same_place(folded.newest.location)) {
            return;
        }
        let index_key = crate::index::lmdb::codec::prefix_key(generation.id, &folded.key);
        for (entry, life) in folded.older.iter().filter(|(entry, _)| !entry.form.chunked) {
            if self.segments.get(entry.location.segment).life() != *life {
                continue;
            }
            self.snapshots.keep(&index_key, &std::iter::once((*entry, folded.newest.sequence)).collect());
            if index.remove(hash, entry.location) {
                generation.count_change();
                self.remove_live(entry.location);
            }
        }
    }

    /// What a key's operands make. If the base will expire, they stay when it has. Where an older one may still be on its way,
    /// nothing is known yet, or, `now`, only once the open batch is written.
    fn made_of_operands(&self, generation: &Arc<Generation>, key: &[u8], now: bool) -> Result<Foldable> {
        let published = self.published_sequence();
        let places = self.places_under(generation, key);
        let stack = self.stack(generation, key, &View::LATEST)?;
        let published = if planted::is_on(Bug::PublishedAskedLate) { self.published_sequence() } else { published };
        let expires = stack.entries().iter().any(|entry| entry.is_base() && entry.form.expires_ms.is_some());
        let Some(newest) = stack.newest().copied().filter(|_| stack.operands() >= FOLD_AT && !expires) else {
            return Ok(Foldable::Nothing);
        };
        let is_whole = newest.sequence <= published;
        if !is_whole && (!now || self.places_under(generation, key) != places) {
            return Ok(Foldable::Later);
        }
        let left_out = usize::from(planted::is_on(Bug::OperandDropped));
        let candidates: Candidates = stack.candidates(left_out).collect();
        let Some(value) = self.resolve(generation, key, &candidates, &View::LATEST)? else {
            return Ok(Foldable::Nothing);
        };
        let life = |entry: &Entry| self.segments.find(entry.location.segment).map_or(0, |segment| segment.life());
        let older = stack.entries()[1..].iter().map(|entry| (*entry, life(entry))).collect();
        let (generation, key) = (Arc::clone(generation), key.to_vec());
        Ok(Foldable::Now(Folded { generation, key, newest, older, value, is_whole, places }))
    }

    /// Whether all records of a key that are older than the newest operand had been published when it was looked up: now that
    /// those up to `published` are, there are no more of them than were found.
    fn was_whole(&self, fold: &Folded, published: u64) -> Result<bool> {
        let newest = fold.newest.sequence;
        if newest > published {
            return Ok(false);
        }
        if let TableIndex::Hash(_) = &fold.generation.index {
            return Ok(self.places_under(&fold.generation, &fold.key).ends_with(&fold.places));
        }
        let stack = self.stack(&fold.generation, &fold.key, &View::LATEST)?;
        let found = stack.entries().iter().map(|entry| entry.sequence).filter(|sequence| *sequence <= newest);
        let known = fold.older.iter().map(|(entry, _)| entry.sequence);
        Ok(found.eq(std::iter::once(newest).chain(known)))
    }

    /// The places under a key's tag, newest first; nothing in an ordered table.
    fn places_under(&self, generation: &Generation, key: &[u8]) -> Vec<Location> {
        let mut run = SmallVec::new();
        if let TableIndex::Hash(index) = &generation.index {
            index.lookup(self.hash(key), &mut run);
        }
        run.to_vec()
    }
}

/// What is to be done about a key's operands.
enum Foldable {
    Nothing,
    /// An older one may still be on its way.
    Later,
    Now(Folded),
}

/// What is to be put in place of a key's operands.
struct Folded {
    generation: Arc<Generation>,
    key: Vec<u8>,
    /// The record of which it is a copy.
    newest: Entry,
    /// Those that it displaces, each with the life of its segment.
    older: Vec<(Entry, u64)>,
    value: Vec<u8>,
    /// Whether all older records were published before they were looked up.
    is_whole: bool,
    /// Of a `hash` table: what lay under the key's tag.
    places: Vec<Location>,
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
