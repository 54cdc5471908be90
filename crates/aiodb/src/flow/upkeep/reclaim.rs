//! Takes space back: the records that are still alive in the emptiest segment are appended again, then the segment can be
//! used again.
//!
//! The index decides which records are alive; the counts of live bytes only choose the segment. A record is moved while
//! every older record is published and none can be appended, and only if its place is still the current one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::flow::read::Outcome;
use crate::format::batch::{Append, Found};
use crate::format::location::Location;
use crate::format::manifest::damage_error;
use crate::format::record::{Chunk, Form, Kind, Origin, encode_chunks, encode_range_end, range_end};
use crate::format::segment::array;
use crate::index::Candidates;
use crate::index::chain::Entry;
use crate::index::snapshots::View;
use crate::io::{Device, UNIT_BYTES};
use crate::log::scan::Scan;
use crate::log::{Segment, State};
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::commit::Operation;
use crate::store::reclaiming::{Alive, Reclaiming, Victim};
use crate::store::upkeep::Upkeep;
use crate::{Error, IndexKind, Result};

/// Garbage is left alone until it is this share of all bytes in sealed segments...
const GARBAGE_SHARE: f64 = 0.3;
/// ...and a segment is not worth moving if more than this share of it is alive.
const MAX_LIVE_SHARE: f64 = 0.8;

/// Bytes of a delete that must stay, roughly.
pub(crate) const DELETE_BYTES: u64 = 64;

/// On a full disk more is moved for less.
const MAX_LIVE_SHARE_WHEN_FULL: f64 = 0.95;

/// How much of a victim is read in one step.
const STEP_BYTES: u64 = 4 << 20;

/// Live records are moved when they have gathered to this many bytes, or at the victim's end.
const MOVE_BYTES: usize = 1 << 20;

/// Segments whose garbage is always tolerated: a store this small is not worth the writes.
const TOLERATED_SEGMENTS: u64 = 4;

/// The reason why a record of a victim must stay.
enum Need {
    /// None.
    Nothing,
    /// An index refers to it.
    Record,
    /// Older records might come back without it; see [`Alive::tombstone`].
    Tombstone(u64),
}

impl<D: Device> Upkeep<D> {
    /// Does a bounded part of the work: reads some of the current victim, and moves the gathered records once they are worth a
    /// batch. True if there may be more to do.
    pub(crate) fn reclaim_some(&self) -> Result<bool> {
        self.squeeze_some(0)
    }

    /// [`Upkeep::reclaim_some`]; where no segment is worth it otherwise, a segment with a life before this one is emptied for any dead
    /// record that it has.
    pub(crate) fn squeeze_some(&self, until: u64) -> Result<bool> {
        self.purge_some()?;
        let mut reclaiming = self.reclaiming.lock().expect("no code panics while it reclaims");
        let Reclaiming { victim: current, purged_before, damaged, is_stuck } = &mut *reclaiming;
        if current.is_none() {
            // The records of tables that are gone would be taken for alive. Those that go meanwhile are not waited for: there may be no
            // end of them.
            if self.is_purge_due(*purged_before.get_or_insert_with(|| self.catalog.next_id())) {
                return Ok(true);
            }
            *purged_before = None;
            let (is_wanted, chosen) = self.choose_victim(damaged, until);
            *is_stuck = is_wanted && chosen.is_none();
            let Some(segment) = chosen else { return Ok(false) };
            self.meters.victim_live_percent.record(segment.live() * 100 / self.segments.segment_bytes);
            let (number, life, offset) = (segment.number, segment.life(), UNIT_BYTES as u64);
            let scan = Scan::new(self.segments.segment_bytes);
            let oldest_dead = self.oldest_life_with_dead_records(Some(segment));
            *current = Some(Victim { number, life, offset, scan, oldest_dead, alive: Vec::new(), alive_bytes: 0 });
        }
        let victim = current.as_mut().expect("just chosen");
        let segment = self.segments.get(victim.number);
        assert_eq!(segment.life(), victim.life, "a victim is not used again before it is retired");
        let emptied = self.empty_some(segment, victim);
        if let Ok(true) = emptied {
            self.retire(segment);
            self.meters.reclaimed_segments.count();
        }
        let life = victim.life;
        if !matches!(emptied, Ok(false)) {
            // After an error another segment may do better; this one is chosen again when it still is the emptiest.
            *current = None;
        }
        match emptied {
            Err(damage @ (Error::Corruption { .. } | Error::Io { action: "read", .. })) => {
                self.note_trouble(&damage);
                damaged.insert(life);
            }
            emptied => _ = emptied?,
        }
        Ok(true)
    }

    /// Whether no segment can be emptied before emptied ones are free.
    pub(crate) fn is_reclaim_stuck(&self) -> bool {
        self.reclaiming.lock().expect("no code panics while it reclaims").is_stuck
    }

    /// Works on a victim; true once all records in it are dead.
    fn empty_some(&self, segment: &Segment<D>, victim: &mut Victim) -> Result<bool> {
        let end = segment.end.load(Ordering::Acquire);
        let stop = victim.offset + STEP_BYTES;
        if victim.offset < end && victim.alive_bytes < MOVE_BYTES {
            while victim.offset < end && victim.offset < stop && victim.alive_bytes < MOVE_BYTES {
                self.gather_batch(segment, victim)?;
            }
            self.leave_out_tombstones(victim)?;
            // Moving is a step of its own.
            return Ok(victim.offset >= end && victim.alive.is_empty());
        }
        self.move_records(&victim.alive)?;
        victim.alive.clear();
        victim.alive_bytes = 0;
        Ok(victim.offset >= end)
    }

    /// The sealed segment with the smallest live share, if garbage has reached its threshold. Else, of the segments with a life before
    /// `squeezed_until`, the oldest with dead records. Says first whether any is wanted.
    fn choose_victim(&self, damaged: &BTreeSet<u64>, squeezed_until: u64) -> (bool, Option<&Segment<D>>) {
        // The log's last batch is needed wherever it lies. It lies in a sealed segment after a recovery, until the next batch is
        // written, and where the next batch has a fresh segment to which no batch has been written yet.
        let end = if planted::is_on(Bug::LogEndFreed) { u64::MAX } else { self.commit.completed_end().0.life };
        let floor = self.staging.floor().min(end);
        let sealed = |segment: &&Segment<D>| {
            let end = segment.end.load(Ordering::Acquire);
            let published = segment.published_end.load(Ordering::Acquire) >= end;
            let life = segment.life();
            segment.state() == State::Sealed && published && life < floor && !damaged.contains(&life)
        };
        let segments: Vec<_> = self.segments.iter().filter(sealed).collect();
        let segment_bytes = self.segments.segment_bytes;
        let total = segments.len() as u64 * segment_bytes;
        let oldest_dead = self.oldest_life_with_dead_records(None);
        let now_ms = self.certain_ms();
        // On a full disk every bit counts; otherwise garbage is cheaper than moving the live records beside it.
        let full = self.segments.is_refused() || squeezed_until > 0;
        let live = |segment: &Segment<D>| {
            let live = if full { segment.bytes_to_move() } else { segment.live_but_deletes() };
            live.saturating_sub(segment.expired(now_ms)).min(segment_bytes)
        };
        let stays = |segment: &Segment<D>| {
            // The deletes of the oldest segment go with the records that they delete.
            let deletes = if oldest_dead < segment.life() { segment.deletes.load(Ordering::Relaxed) } else { 0 };
            (live(segment) + deletes * DELETE_BYTES).min(segment_bytes)
        };
        let garbage = total - segments.iter().map(|segment| live(segment)).sum::<u64>();
        let tolerated = (TOLERATED_SEGMENTS * segment_bytes).max((total as f64 * GARBAGE_SHARE) as u64);
        if garbage <= tolerated && !full {
            return (false, None);
        }
        let most = if full { MAX_LIVE_SHARE_WHEN_FULL } else { MAX_LIVE_SHARE };
        let emptiest = segments.iter().min_by_key(|segment| (stays(segment), segment.life())).copied();
        let victim = emptiest.filter(|segment| stays(segment) as f64 <= segment_bytes as f64 * most);
        if victim.is_some() {
            return (true, victim);
        }
        // Where deletes take the space, the segments whose dead records need them are emptied, from the oldest on.
        let deletes: u64 = segments.iter().map(|segment| segment.deletes.load(Ordering::Relaxed)).sum();
        let are_many = deletes * DELETE_BYTES >= if full { segment_bytes / 2 } else { tolerated };
        let oldest = segments.into_iter().filter(|segment| holds_dead(segment)).min_by_key(|segment| segment.life());
        let is_worth_it =
            |oldest: &&Segment<D>| are_many && oldest.life() == oldest_dead || oldest.life() < squeezed_until;
        (true, oldest.filter(is_worth_it))
    }

    /// Gathers the live records of the victim's next batch.
    fn gather_batch(&self, segment: &Segment<D>, victim: &mut Victim) -> Result<()> {
        let batch = victim.scan.batch(&self.segments, segment, victim.offset)?.map_err(|damage| {
            let advice = "its segment cannot be emptied; `aiodb verify` lists all damage";
            damage_error(&self.segments.path(segment.number), victim.offset, damage, advice)
        })?;
        for found in batch.view.records() {
            // The manifest has the tables.
            let Some(generation) = self.catalog.generation(found.record.table) else { continue };
            let tombstone = match self.need(segment, &found, &generation, victim.oldest_dead)? {
                Need::Nothing => continue,
                Need::Record => None,
                Need::Tombstone(life) => Some(life),
            };
            let value = batch.view.value(&found).unwrap_or_default();
            let alive = Alive { tombstone, ..self.alive(segment, Some(generation), &found, value) };
            match self.expired_owner(&alive)? {
                // One of its chunks was met before.
                Some(owner) if victim.alive.iter().any(|other| other.is_copy(&owner)) => {}
                owner => victim.alive.push(owner.unwrap_or(alive)),
            }
            victim.alive_bytes += found.record.length() + value.len();
        }
        victim.offset += u64::from(batch.header.length);
        Ok(())
    }

    /// The reason why a record must stay. `oldest_dead` is [`Victim::oldest_dead`].
    fn need(
        &self,
        segment: &Segment<D>,
        found: &Found<'_>,
        generation: &Arc<Generation>,
        oldest_dead: u64,
    ) -> Result<Need> {
        let record = &found.record;
        let needed = match record.kind {
            Kind::Put | Kind::Merge => self.is_current(generation, record.key, found.location)?,
            Kind::Delete | Kind::RangeTombstone => {
                if record.kind == Kind::Delete {
                    self.settle_delete(generation, self.hash(record.key), found.location);
                }
                let life = origin_life(segment, found);
                // Records that were dead then are dead now, unless their segment has gone since: no other segment need be asked.
                if is_tombstone_needed(oldest_dead, life) {
                    return Ok(Need::Record);
                }
                let is_referred_to = match record.kind {
                    Kind::Delete => self.is_current(generation, record.key, found.location)?,
                    _ => self.lmdb.get().is_some_and(|lmdb| lmdb.ranges.is_waiting(record.sequence)),
                };
                if !is_referred_to {
                    return Ok(Need::Tombstone(life));
                }
                true
            }
            Kind::Chunk => {
                let named = self.naming_record(generation, record.key, found.location)?.is_some();
                if !named {
                    self.count_off_naming_record(generation, self.hash(record.key));
                }
                named
            }
            // The manifest has the tables.
            _ => false,
        };
        Ok(if needed { Need::Record } else { Need::Nothing })
    }

    /// Leaves out the deletes that no index refers to where no record is left that could come back. The segments are asked after
    /// the index, which forgets a delete only after the records below it are counted as dead; and once for all deletes, since there
    /// may be many of both. The victim is not asked: its dead records go with it.
    fn leave_out_tombstones(&self, victim: &mut Victim) -> Result<()> {
        if victim.alive.iter().all(|alive| alive.tombstone.is_none()) {
            return Ok(());
        }
        if !self.count_what_deletes_have_left(&victim.alive)? {
            victim.alive.iter_mut().for_each(|alive| alive.tombstone = None);
            return Ok(());
        }
        let oldest_dead = self.oldest_life_with_dead_records(self.segments.find(victim.number));
        let is_needed =
            |alive: &mut Alive| alive.tombstone.take().is_none_or(|life| is_tombstone_needed(oldest_dead, life));
        victim.alive.retain_mut(is_needed);
        Ok(())
    }

    /// Sees to it that what deletes stand before is counted as dead: in an ordered index that is so once the file has them, and a replay
    /// counts twice what the file had already. False if the disk has no room for that.
    fn count_what_deletes_have_left(&self, alive: &[Alive]) -> Result<bool> {
        let Some(lmdb) = self.lmdb.get() else { return Ok(true) };
        let is_ordered =
            |alive: &&Alive| alive.generation.as_ref().is_some_and(|table| table.kind() == IndexKind::Lmdb);
        let deletes = alive.iter().filter(|alive| alive.tombstone.is_some() && is_ordered(alive));
        let newest = deletes.map(|delete| delete.sequence + 1).max().unwrap_or(0);
        let wanted = newest.max(lmdb.replayed());
        if lmdb.committed_sequence() >= wanted {
            return Ok(true);
        }
        match self.making_room(|| self.commit_memtable()) {
            Err(error) if error.is_full() => Ok(false),
            committed => committed.map(|()| lmdb.committed_sequence() >= wanted),
        }
    }

    fn alive(
        &self,
        segment: &Segment<D>,
        generation: Option<Arc<Generation>>,
        found: &Found<'_>,
        value: &[u8],
    ) -> Alive {
        let record = &found.record;
        let (mut kind, mut separate, mut form) = (record.kind, record.separate.is_some(), record.form);
        form.compressed &= !planted::is_on(Bug::CompressionForgotten);
        let value = match record.kind {
            Kind::Delete => origin_life(segment, found).to_le_bytes().to_vec(),
            Kind::RangeTombstone => encode_range_end(origin_life(segment, found), range_end(value)),
            Kind::Put if self.is_over(&record.form) && planted::is_on(Bug::ExpiredComesBack) => {
                form.expires_ms = None;
                value.to_vec()
            }
            Kind::Put if self.is_over(&record.form) => {
                // A delete takes its place, without which older records of the key would come back.
                (kind, separate, form) = (Kind::Delete, false, Form::default());
                segment.life().to_le_bytes().to_vec()
            }
            _ => value.to_vec(),
        };
        Alive {
            generation,
            kind,
            table: record.table,
            hash: self.hash(record.key),
            key: record.key.to_vec(),
            value,
            separate,
            form,
            sequence: record.sequence,
            location: found.location,
            tombstone: None,
        }
    }

    /// The delete that takes the place of the record which names a chunk, if that has expired: without it older records of
    /// the key would come back. The chunk is not needed then.
    fn expired_owner(&self, chunk: &Alive) -> Result<Option<Alive>> {
        let Some(generation) = chunk.generation.as_ref().filter(|_| chunk.kind == Kind::Chunk) else { return Ok(None) };
        let Some((location, ..)) = self.naming_record(generation, &chunk.key, chunk.location)? else { return Ok(None) };
        let named = self.entry_at(generation, &chunk.key, location)?;
        Ok(named.filter(|named| self.is_over(&named.form)).map(|named| Alive {
            generation: Some(Arc::clone(generation)),
            kind: Kind::Delete,
            key: chunk.key.clone(),
            value: self.segments.get(location.segment).life().to_le_bytes().to_vec(),
            separate: false,
            form: Form::default(),
            sequence: named.sequence,
            location,
            tombstone: None,
            ..*chunk
        }))
    }

    /// Whether a record has expired for all readers.
    fn is_over(&self, form: &Form) -> bool {
        let oldest_ms = self.snapshots.oldest().1;
        form.expires_ms.is_some_and(|expires_ms| expires_ms.get() <= self.certain_ms().min(oldest_ms))
    }

    fn move_records(&self, alive: &[Alive]) -> Result<()> {
        let operations: Vec<_> = alive.iter().map(operation).collect();
        let still_current = |operation: &Operation<'_>| self.still_current(operation);
        self.move_in_batches(&operations, still_current, |number, placed| match alive[number].kind {
            Kind::Chunk => {
                let checksum = placed.separate.expect("a chunk is separate");
                self.rename_chunk(&alive[number], Chunk { location: placed.location, checksum })
            }
            _ => Ok(()),
        })
    }

    /// Whether a record is still current; asked while every older record is published. It is not, if the index cannot be asked.
    pub(crate) fn still_current(&self, operation: &Operation<'_>) -> bool {
        let (Some(generation), Some((origin, _))) = (&operation.generation, operation.append.moved) else {
            return false;
        };
        if self.catalog.generation(generation.id).is_none() {
            // The table has gone since the record was found alive, and was taken out of the counts as a whole.
            return false;
        }
        let location = Location { segment: origin.segment, offset: origin.offset, length: 0 };
        match operation.append.kind {
            Kind::Put | Kind::Merge if !planted::is_on(Bug::MoveBeatsPut) => {
                // A superseded record must not get into a younger segment than the delete of its key.
                if !planted::is_on(Bug::UnsettledMoved) {
                    self.settle_before_move(generation, operation.hash);
                }
                self.is_current(generation, operation.append.key, location).unwrap_or(false)
            }
            // A delete that stands for an expired record is published only where that record is still current.
            _ => true,
        }
    }

    /// Whether an index refers to this place for the key.
    fn is_current(&self, generation: &Generation, key: &[u8], location: Location) -> Result<bool> {
        match &generation.index {
            TableIndex::Hash(index) => Ok(index.contains(self.hash(key), location)),
            TableIndex::Lmdb => self.lmdb().is_current(generation.id, key, location),
        }
    }

    /// The life of the oldest segment, but for one, that holds records which no index refers to; the highest number if there is
    /// none.
    fn oldest_life_with_dead_records(&self, but: Option<&Segment<D>>) -> u64 {
        let holds_dead = |segment: &&Segment<D>| {
            matches!(segment.state(), State::Active | State::Sealed | State::Retiring)
                && holds_dead(segment)
                && but.is_none_or(|but| but.number != segment.number)
        };
        self.segments.iter().filter(holds_dead).map(|segment| segment.life()).min().unwrap_or(u64::MAX)
    }

    /// The current record that names a chunk: its location, length and list.
    fn naming_record(
        &self,
        generation: &Arc<Generation>,
        key: &[u8],
        chunk: Location,
    ) -> Result<Option<(Location, u64, Vec<Chunk>)>> {
        let _guard = self.epochs.pin();
        self.naming_record_pinned(generation, key, chunk)
    }

    fn naming_record_pinned(
        &self,
        generation: &Arc<Generation>,
        key: &[u8],
        chunk: Location,
    ) -> Result<Option<(Location, u64, Vec<Chunk>)>> {
        let mut candidates = Candidates::new();
        // A record that has expired for gets still has its chunks.
        let view = View { at_ms: Some(0), cached: false, ..View::LATEST };
        self.lookup(generation, key, &view, &mut candidates)?;
        for candidate in &candidates {
            let list = self.with_bytes(candidate.location, |bytes| {
                Ok(match self.interpret(generation.id, key, candidate, &view, bytes)? {
                    Outcome::Chunks(length, chunks) => Some(Some((length, chunks))),
                    Outcome::Unseen | Outcome::Operand(_) => None,
                    Outcome::Value(_) | Outcome::Deleted => Some(None),
                })
            })?;
            let Some(answer) = list else { continue };
            return Ok(answer
                .filter(|(_, chunks)| chunks.iter().any(|named| named.location.same_place(chunk)))
                .map(|(length, chunks)| (candidate.location, length, chunks)));
        }
        Ok(None)
    }

    /// Counts off the record that named a dead chunk, before the chunk's segment begins another life.
    fn count_off_naming_record(&self, generation: &Arc<Generation>, hash: u64) {
        self.settle_before_move(generation, hash);
    }

    /// After a chunk was moved: the record that names it is written again with the new place.
    fn rename_chunk(&self, old: &Alive, new: Chunk) -> Result<()> {
        let generation = old.generation.as_ref().expect("a live chunk has a table");
        if planted::is_on(Bug::ChunkMoveForgotten) {
            return Ok(());
        }
        let Some((location, length, mut chunks)) = self.naming_record(generation, &old.key, old.location)? else {
            self.count_off_naming_record(generation, old.hash);
            return Ok(());
        };
        for chunk in chunks.iter_mut().filter(|chunk| chunk.location.same_place(old.location)) {
            *chunk = new;
        }
        let list = encode_chunks(length, &chunks);
        let Some(named) = self.entry_at(generation, &old.key, location)? else { return Ok(()) };
        let mut append = Append::new(Kind::Put, old.table, &old.key, &list);
        append.form = named.form;
        append.separate = generation.separates(&old.key, list.len());
        append.moved = Some((Origin { segment: location.segment, offset: location.offset }, named.sequence));
        let operation = Operation { generation: Some(Arc::clone(generation)), append, hash: old.hash };
        let placed = self.write_moves(&[operation], |operation| self.still_current(operation))?;
        if let (Some(expires_ms), Some(_)) = (named.form.expires_ms, placed[0]) {
            self.segments.add_expiring(new.location, expires_ms.get());
        }
        Ok(())
    }

    /// The record of a key at a location, if that is current.
    fn entry_at(&self, generation: &Generation, key: &[u8], location: Location) -> Result<Option<Entry>> {
        let _guard = self.epochs.pin();
        Ok(self.chain(generation, key, &View::LATEST)?.at_place(location).copied())
    }
}

fn operation(record: &Alive) -> Operation<'_> {
    let mut append = Append::new(record.kind, record.table, &record.key, &record.value);
    (append.separate, append.form) = (record.separate, record.form);
    let origin = Origin { segment: record.location.segment, offset: record.location.offset };
    append.moved = Some((origin, record.sequence));
    Operation { generation: record.generation.clone(), append, hash: record.hash }
}

/// Whether a segment holds records that no index refers to.
fn holds_dead<D: Device>(segment: &Segment<D>) -> bool {
    segment.live_records.load(Ordering::Relaxed) < segment.records.load(Ordering::Relaxed) as i64
}

/// A delete must stay in the log while an older record of its key may lie in a segment that was in use when it was written, or
/// a rebuilt index would bring that record back.
fn is_tombstone_needed(oldest_dead: u64, origin_life: u64) -> bool {
    oldest_dead <= origin_life && !planted::is_on(Bug::TombstoneDroppedEarly)
}

/// The life of the segment in which a delete, of a key or a range, was first written.
fn origin_life<D: Device>(segment: &Segment<D>, found: &Found<'_>) -> u64 {
    let value = found.record.value;
    if found.record.moved.is_some() && value.len() >= 8 { u64::from_le_bytes(array(value, 0)) } else { segment.life() }
}
