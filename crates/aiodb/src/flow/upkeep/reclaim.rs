//! Takes space back: the records that are still alive in the emptiest segment are appended again, then the segment can be
//! used again.
//!
//! The index decides which records are alive; the counts of live bytes only choose the segment. A record is moved while
//! every older record is published and none can be appended, and only if its place is still the current one.
//!
//! `victim` chooses the segment, `need` says which of its records must stay, `chunks` names moved chunks in their records again.

mod chunks;
mod need;
pub(crate) mod victim;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use need::{Doubtful, Need, origin_life};
use victim::{DELETE_BYTES, MAX_LIVE_SHARE_WHEN_FULL, TOLERATED_SEGMENTS};

use crate::flow::moves::Move;
use crate::format::batch::{Append, Found};
use crate::format::location::Location;
use crate::format::manifest::damage_error;
use crate::format::record::{Chunk, Form, Kind, Origin, Record, encode_range_end, range_end};
use crate::index::ordered::OrderedIndex;
use crate::io::{Device, UNIT_BYTES};
use crate::log::Segment;
use crate::log::scan::Scan;
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::commit::Operation;
use crate::store::reclaiming::{Alive, Reclaiming, Victim, WaitingDeletes};
use crate::store::upkeep::Upkeep;
use crate::{Error, Result};

/// How much of a victim is read in one step.
const STEP_BYTES: u64 = 4 << 20;

/// So much of a victim has its keys looked up at once.
const LOOKED_UP_BYTES: u64 = 512 << 10;

/// The blocks of runs for so many records are read at once: they take little of the cache.
const LOOKED_UP_AHEAD: usize = 512;

/// Live records are moved when they have gathered to this many bytes, or at the victim's end.
const MOVE_BYTES: usize = 1 << 20;

impl<D: Device> Upkeep<D> {
    /// Does a bounded part of the work: reads some of the current victim, and moves the gathered records once they are worth a
    /// batch. True if there may be more to do.
    pub(crate) fn reclaim_some(&self) -> Result<bool> {
        self.squeeze_some(0)
    }

    /// [`Upkeep::reclaim_some`]; where no segment is worth it otherwise, a segment with a life before this one is emptied for any dead
    /// record that it has.
    pub(crate) fn squeeze_some(&self, until: u64) -> Result<bool> {
        let can_purge = self.unless_damaged(self.purge_some())?.is_some();
        let mut reclaiming = self.reclaiming.lock().expect("no code panics while it reclaims");
        let Reclaiming { victim: current, purged_before, damaged, is_stuck, waiting, cannot_purge } = &mut *reclaiming;
        *cannot_purge = !can_purge;
        if current.is_none() {
            // The records of tables that are gone would be taken for alive. Those that go meanwhile are not waited for: there may be no
            // end of them.
            let purged_first = *purged_before.get_or_insert_with(|| self.catalog.next_id());
            if can_purge && self.is_purge_due(purged_first) {
                return Ok(true);
            }
            *purged_before = None;
            // On a full disk the room of what is emptied is no gain as long as a snapshot holds it: its records take more elsewhere.
            if until == 0 && self.segments.is_refused() && self.is_hold_awaited() {
                return Ok(false);
            }
            let (is_wanted, mut chosen) = self.choose_victim(damaged, until, self.waiting_life(waiting));
            if chosen.is_none() && self.segments.is_refused() && waiting.life == 0 && self.is_any_hidden(waiting) {
                // Deletes of other tables may go once older ones lie behind them.
                self.let_all_be_emptied(waiting);
                chosen = self.choose_victim(damaged, until, waiting.life).1;
            }
            *is_stuck = is_wanted && chosen.is_none();
            let Some(segment) = chosen else { return Ok(false) };
            self.meters.victim_live_percent.record(segment.live() * 100 / self.segments.segment_bytes);
            let (number, life, offset) = (segment.number, segment.life(), UNIT_BYTES as u64);
            let scan = Scan::new(self.segments.segment_bytes);
            let (oldest_dead, alive) = (self.oldest_life_with_dead_records(Some(segment)), Vec::new());
            let (alive_bytes, waiting, waits_until) = (0, 0, 0);
            *current =
                Some(Victim { number, life, offset, scan, oldest_dead, alive, alive_bytes, waiting, waits_until });
        }
        let victim = current.as_mut().expect("just chosen");
        let segment = self.segments.get(victim.number);
        assert_eq!(segment.life(), victim.life, "a victim is not used again before it is retired");
        let emptied = self.empty_some(segment, victim);
        if let Ok(true) = emptied {
            let records = segment.records.load(Ordering::Relaxed) as f64;
            if victim.waiting > 0 && victim.waiting as f64 >= records * MAX_LIVE_SHARE_WHEN_FULL {
                self.note_waiting(waiting, victim.waits_until);
            }
            self.retire(segment);
            self.meters.reclaimed_segments.count();
        }
        let life = victim.life;
        if !matches!(emptied, Ok(false)) {
            // After an error another segment may do better; this one is chosen again when it still is the emptiest.
            *current = None;
        }
        match emptied {
            Err(damage) if damage.is_unreadable() => {
                self.note_trouble(&damage);
                damaged.insert(life);
            }
            emptied => _ = emptied?,
        }
        Ok(true)
    }

    /// The sequence up to which runs must be merged before segments full of deletes are worth emptying; `None` if there are no such segments.
    pub(crate) fn reclaim_waits_until(&self) -> Option<u64> {
        let waiting = self.reclaiming.lock().expect("no code panics while it reclaims").waiting;
        self.is_any_hidden(&waiting).then_some(waiting.until)
    }

    /// Whether runs may still hide what waiting deletes have left.
    fn is_any_hidden(&self, waiting: &WaitingDeletes) -> bool {
        let until_of = |ordered: &OrderedIndex<D>| waiting.until.min(ordered.committed_sequence());
        waiting.until > 0 && self.ordered.open().any(|ordered| ordered.counted_sequence() < until_of(ordered))
    }

    /// Takes note that deletes before a sequence wait for merges, and have filled the segment that was emptied.
    fn note_waiting(&self, waiting: &mut WaitingDeletes, until: u64) {
        if !self.is_any_hidden(waiting) {
            *waiting = WaitingDeletes { until, life: 0, deletes: self.deletes() };
        }
        waiting.until = waiting.until.max(until);
    }

    /// In segments with this life or a later one deletes wait for merges. When as many more have come, which may be deletes of other tables and
    /// can go only after older ones, all segments are emptied once if need be.
    fn waiting_life(&self, waiting: &mut WaitingDeletes) -> u64 {
        if !self.is_any_hidden(waiting) {
            return u64::MAX;
        }
        let deletes = self.deletes();
        let more_bytes = deletes.saturating_sub(waiting.deletes) * DELETE_BYTES;
        if more_bytes >= TOLERATED_SEGMENTS * self.segments.segment_bytes && deletes / 2 >= waiting.deletes {
            self.let_all_be_emptied(waiting);
        }
        waiting.life
    }

    /// Has every segment that there is emptied once if need be, whatever waits in it.
    fn let_all_be_emptied(&self, waiting: &mut WaitingDeletes) {
        (waiting.life, waiting.deletes) = (self.commit.next_life(), self.deletes());
    }

    /// Whether no segment can be emptied before emptied ones are free.
    pub(crate) fn is_reclaim_stuck(&self) -> bool {
        self.reclaiming.lock().expect("no code panics while it reclaims").is_stuck
    }

    /// Whether tables that are gone wait to be purged, and the next attempt may succeed.
    pub(crate) fn can_purge(&self) -> bool {
        let cannot = self.reclaiming.lock().expect("no code panics while it reclaims").cannot_purge;
        !cannot && self.is_purge_due(u32::MAX)
    }

    /// Works on a victim; true once all records in it are dead.
    fn empty_some(&self, segment: &Segment<D>, victim: &mut Victim) -> Result<bool> {
        let end = segment.end.load(Ordering::Acquire);
        let stop = victim.offset + STEP_BYTES;
        if victim.offset < end && victim.alive_bytes < MOVE_BYTES {
            while victim.offset < end && victim.offset < stop && victim.alive_bytes < MOVE_BYTES {
                self.gather_some(segment, victim, end.min(stop))?;
            }
            self.leave_out_tombstones(victim)?;
            // Moving is a step of its own.
            return Ok(victim.offset >= end && victim.alive.is_empty());
        }
        self.move_records(victim)?;
        victim.alive.clear();
        victim.alive_bytes = 0;
        Ok(victim.offset >= end)
    }

    /// Gathers the live records of the victim's next batches: as many as have their keys looked up at once.
    fn gather_some(&self, segment: &Segment<D>, victim: &mut Victim, stop: u64) -> Result<()> {
        let (begin, mut doubtful) = (victim.offset, Vec::new());
        while victim.offset < stop && victim.offset - begin < LOOKED_UP_BYTES {
            self.gather_batch(segment, victim, &mut doubtful)?;
        }
        self.leave_out_dead(victim, &doubtful)
    }

    /// Gathers the records of the victim's next batch that are alive, or `doubtful`.
    fn gather_batch(&self, segment: &Segment<D>, victim: &mut Victim, doubtful: &mut Vec<Doubtful>) -> Result<()> {
        let batch = victim.scan.batch(&self.segments, segment, victim.offset)?.map_err(|damage| {
            let advice = "its segment cannot be emptied; `aiodb verify` lists all damage";
            damage_error(&self.segments.path(segment.number), victim.offset, damage, advice)
        })?;
        let records: Vec<Found<'_>> = batch.view.records().collect();
        for (number, found) in records.iter().enumerate() {
            if number % LOOKED_UP_AHEAD == 0 {
                self.read_ahead_of(&records[number..records.len().min(number + LOOKED_UP_AHEAD)]);
            }
            // The manifest has the tables.
            let Some(generation) = self.catalog.generation(found.record.table) else { continue };
            let (tombstone, is_doubtful) = match self.need(segment, found, &generation, victim.oldest_dead)? {
                Need::Nothing => continue,
                Need::Record => (None, false),
                Need::Tombstone(life) => (Some(life), false),
                Need::LookUp => (None, true),
            };
            let value = batch.view.value(found).unwrap_or_default();
            let alive = Alive { tombstone, ..self.alive(segment, Some(generation), found, value) };
            let bytes = found.record.length() + value.len();
            if is_doubtful {
                doubtful.push(Doubtful { number: victim.alive.len(), bytes });
                victim.alive.push(alive);
                continue;
            }
            match self.expired_owner(&alive)? {
                // One of its chunks was met before.
                Some(owner) if victim.alive.iter().any(|other| other.is_copy(&owner)) => {}
                owner => victim.alive.push(owner.unwrap_or(alive)),
            }
            victim.alive_bytes += bytes;
        }
        victim.offset += u64::from(batch.header.length);
        Ok(())
    }

    /// Has the blocks come to the cache in which runs may have places of these records.
    fn read_ahead_of(&self, records: &[Found<'_>]) {
        if !self.spilled.is_any() {
            return;
        }
        let of_one = |found: &Found<'_>| {
            let Record { kind, table, key, .. } = &found.record;
            let generation = self.catalog.generation(*table).filter(|_| matches!(kind, Kind::Put | Kind::Merge))?;
            self.waiting_look_up(&generation, self.hash(key))
        };
        self.read_ahead(records.iter().filter_map(of_one).collect());
    }

    /// A record of a victim as it is to be appended again.
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
            looked_up: None,
        }
    }

    /// Whether a record has expired for all readers.
    fn is_over(&self, form: &Form) -> bool {
        let oldest_ms = self.snapshots.oldest().1;
        form.expires_ms.is_some_and(|expires_ms| expires_ms.get() <= self.certain_ms().min(oldest_ms))
    }

    /// Appends the gathered records again, and gives moved chunks their new names.
    fn move_records(&self, Victim { alive, .. }: &mut Victim) -> Result<()> {
        let looked_up: Vec<_> = alive.iter_mut().map(|record| record.looked_up.take()).collect();
        let alive = &*alive;
        let moves = alive.iter().zip(looked_up);
        let mut moves: Vec<_> =
            moves.map(|(record, looked_up)| Move { operation: self.move_of(record), looked_up }).collect();
        // Of others, whose records are not reclaimed.
        self.take_unmoved();
        let still_current = |one: &Move<'_>| self.still_current(one);
        self.move_in_batches(&mut moves, still_current, |number, placed| match alive[number].kind {
            Kind::Chunk => {
                let checksum = placed.separate.expect("a chunk is separate");
                self.rename_chunk(&alive[number], Chunk { location: placed.location, checksum })
            }
            _ => Ok(()),
        })?;
        self.take_unmoved().map_or(Ok(()), Err)
    }

    /// Why a record was not moved since the last call, if there was any.
    fn take_unmoved(&self) -> Option<Error> {
        self.unmoved.lock().expect("no code panics while it holds an error").take()
    }

    /// Whether a record is still current; asked while every older record is published and all writers wait, so no device is read for an
    /// entry: `None` if its key must be looked up again. Where the index cannot be asked it stays where it is, and its segment is not
    /// retired.
    pub(crate) fn still_current(&self, one: &Move<'_>) -> Option<bool> {
        let operation = &one.operation;
        let (Some(generation), Some((origin, sequence))) = (&operation.generation, operation.append.moved) else {
            return Some(false);
        };
        if self.catalog.generation(generation.id).is_none() {
            // The table has gone since the record was found alive, and was taken out of the counts as a whole.
            return Some(false);
        }
        let is_value = matches!(operation.append.kind, Kind::Put | Kind::Merge);
        if is_value && planted::is_on(Bug::MoveBeatsPut) {
            return Some(true);
        }
        let location = Location { segment: origin.segment, offset: origin.offset, length: 0 };
        match (&generation.index, &one.looked_up) {
            (TableIndex::Hash(_), _) if is_value => {
                // A superseded record must not get into a younger segment than the delete of its key.
                let settled = match planted::is_on(Bug::UnsettledMoved) {
                    true => Ok(()),
                    false => self.settle_before_move(generation, operation.hash),
                };
                let current = settled.and_then(|()| self.is_in_hash(generation, operation.hash, location));
                Some(current.inspect_err(|error| self.note_unmoved(error)).unwrap_or(false))
            }
            (TableIndex::Ordered, Some(looked_up)) => {
                let (ordered, key) = (self.ordered_of(generation), operation.append.key);
                let known = ordered.is_still_current(generation.id, key, (location, sequence), looked_up);
                if known.is_some() || ordered.committed.runs().is_some() {
                    return known;
                }
                // LMDB's pages lie in memory.
                let current = ordered.is_current(generation.id, key, (location, sequence));
                Some(current.inspect_err(|error| self.note_unmoved(error)).unwrap_or(false))
            }
            // In a hash table a delete that stands for an expired record is published only where that record is still current.
            _ => Some(true),
        }
    }

    /// The operation that appends a record again. Its value becomes separate only where that takes less room now that it is moved.
    fn move_of<'a>(&self, record: &'a Alive) -> Operation<'a> {
        let mut append = Append::new(record.kind, record.table, &record.key, &record.value);
        append.form = record.form;
        let origin = Origin { segment: record.location.segment, offset: record.location.offset };
        append.moved = Some((origin, record.sequence));
        append.separate = match (&record.generation, record.kind) {
            (Some(generation), Kind::Put | Kind::Merge) => {
                self.stays_or_becomes_separate(generation, record.separate, &append)
            }
            _ => record.separate,
        };
        Operation { generation: record.generation.clone(), append, hash: record.hash, over: None }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
