//! From the files of a store to an engine: the last checkpoint, the log after it, and the batches that were still in memory.
//!
//! The log after the checkpoint is followed batch by batch; each names the checksum of the one before, and a segment's
//! header names the batch that it goes on with. The walk ends at the first break. If the batch there was durable once, which
//! later batches and segments tell, the break is damage and reported as such; otherwise it is the torn tail of a crash.

mod counts;
mod in_runs;
mod ingested;
pub(crate) mod pending;
mod segments;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use self::in_runs::{InRuns, Replayed};
use self::ingested::Tail;
use crate::flow::publish::Publication;
use crate::flow::room::unless_full;
use crate::format::batch::{BatchView, Found, Placed};
use crate::format::location::Location;
use crate::format::manifest::{Manifest, ManifestTable, damage_error};
use crate::format::place::beside_bytes;
use crate::format::position::Position;
use crate::format::record::{Kind, Origin, Record, decode_chunks};
use crate::format::segment::{BATCH_CONTINUES, BATCH_MOVES, HEADER_BYTES, SegmentHeader};
use crate::format::settings::Settings;
use crate::index::hash::HashIndex;
use crate::io::{Device, UNIT_BYTES};
use crate::log::scan::Scan;
use crate::log::{Claim, Segment, State};
use crate::planted::{self, Bug};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::clock;
use crate::store::engine::Engine;
use crate::store::recovered::Recovered;
use crate::{Error, IndexKind, Result};

/// Each opening goes on with lives that begin at random up to this far ahead. Where a device has lost the header of a segment
/// that it had acknowledged, the next process would otherwise begin the same life there, and take the batches behind it for its own.
const LIFE_LEAP_BITS: u32 = 24;

/// A record under the same tag as a record that is being rebuilt.
struct Known {
    same_key: bool,
    sequence: u64,
    kind: Kind,
    location: Location,
}

/// The place where the next batch must be, and the batch that it must follow.
struct Walk {
    position: Position,
    next_sequence: u64,
    /// The store's time as it was written down last.
    time_ms: u64,
}

impl<D: Device> Engine<D> {
    /// Brings a just opened engine up to date. `rebuild` names the tables whose index is to be made from the whole log.
    pub(crate) fn recover(&self, manifest: &Manifest, rebuild: &BTreeSet<u32>) -> Result<Recovered> {
        let started = self.device.clock_ms();
        let mut recovered = Recovered { rebuilt: !rebuild.is_empty(), ..Recovered::default() };
        let headers = self.load_segments(manifest, rebuild)?;
        let mut scan = Scan::new(self.segments.segment_bytes);
        // Before anything comes to them.
        let in_runs = InRuns::of(&self.ordered)?;
        if recovered.rebuilt {
            self.set_incomplete(manifest, rebuild)?;
            self.rebuild(manifest, rebuild, &mut scan)?;
        }
        let (position, next_sequence, time_ms) = (manifest.position, manifest.next_sequence, manifest.time_ms);
        let mut walk = Walk { position, next_sequence, time_ms };
        let tail = Tail { manifest, headers: &headers, rebuild, in_runs, is_read_again: Cell::new(false) };
        self.replay(&tail, &mut walk, &mut scan, &mut recovered)?;
        self.ordered.open().for_each(|ordered| ordered.set_incomplete(false));
        self.resume_clock(walk.time_ms);
        let pending = self.load_pending(&walk)?;
        let missing = walk.position.batch + pending.whole_batches + 1;
        let later = self.refuse_damage(&headers, &walk, missing, &mut scan)? || pending.later;
        self.retire_void_segments(manifest, &headers, &walk);
        if !self.options.read_only {
            self.segments.give_back_absent()?;
        }
        let next_life = headers.values().map(|header| header.life + 1).max().unwrap_or(1).max(manifest.next_life);
        let leap = self.device.random() >> (u64::BITS - LIFE_LEAP_BITS);
        // After a close no batch lies behind the end. After a crash a torn batch may: were another written over it and torn as
        // well, the two could make up the first one again. And the next segment may have got its header already: then the next
        // recovery would go on there.
        let is_clean = manifest.closed && recovered.batches == 0 && !later;
        // Earlier programs could reclaim the segment: no batch may be written to a free one, or to another life of it.
        let there = |segment: &&Segment<D>| {
            segment.state() == State::Sealed && segment.life() == walk.position.life && walk.position.batch > 0
        };
        let last = self.segments.find(walk.position.segment).filter(|segment| is_clean && there(segment));
        last.inspect(|segment| segment.set_state(State::Active));
        let goes_on = last.is_some();
        self.commit.resume(walk.position, walk.next_sequence, next_life + leap, !goes_on);
        if recovered.rebuilt {
            self.settle_rebuilt();
            // For the same reason: entries in a deleted range may name places that were used again since.
            self.commit_range_tombstones()?;
            while self.carry_out_ranges()? {}
        }
        if self.options.read_only {
            self.refuse_pending(&pending.records)?;
            let _ = self.commit.read_only.set(self.root.clone());
        } else {
            recovered.pending_records = self.append_pending(pending.records, &tail, &walk.position)?;
            if !planted::is_on(Bug::RecoveryUnflushed) {
                self.flush()?;
            }
            let mut buffers = self.map_buffers()?;
            // The log has all that was in them. A header that stayed would be taken for the batch of its number if this process dies too.
            buffers.iter_mut().for_each(|buffer| buffer[..HEADER_BYTES].fill(0));
            // No rule says which of them has the first batch.
            let last = buffers.len() - 1;
            buffers.swap(0, leap as usize % 2 * last);
            self.commit.use_buffers(buffers);
        }
        recovered.rebuilt |= tail.is_read_again.get();
        self.ordered.open().for_each(|ordered| ordered.set_incomplete(false));
        let may_count_twice = tail.in_runs.may_count_twice() || tail.is_read_again.get();
        for ordered in self.ordered.open().filter(|_| recovered.batches > 0) {
            if ordered.kind() == IndexKind::Lmdb || may_count_twice {
                ordered.set_replayed(self.commit.next_sequence());
            }
        }
        recovered.milliseconds = self.device.clock_ms() - started;
        Ok(recovered)
    }

    /// Notes which ordered indexes are made again. Their memtables have no more keys meanwhile than at any other time.
    fn set_incomplete(&self, manifest: &Manifest, rebuild: &BTreeSet<u32>) -> Result<()> {
        for ordered in self.ordered.open() {
            let has = |table: &ManifestTable| table.settings.kind == ordered.kind() && rebuild.contains(&table.id);
            if manifest.tables.iter().any(has) {
                ordered.set_incomplete(true);
                ordered.fit_memtable(self.memory.memtable_keys())?;
            }
        }
        Ok(())
    }

    /// Makes indexes again from all batches before the checkpoint's position; the replay after it does the rest.
    fn rebuild(&self, manifest: &Manifest, tables: &BTreeSet<u32>, scan: &mut Scan) -> Result<()> {
        let mut segments = manifest.segments.clone();
        segments.sort_by_key(|segment| segment.life);
        for entry in segments.iter().filter(|entry| entry.life <= manifest.position.life) {
            let segment = self.segments.get(entry.number);
            let end = if entry.life == manifest.position.life { manifest.position.offset } else { entry.end };
            let mut offset = UNIT_BYTES as u64;
            while offset < end {
                let batch = scan.batch(&self.segments, segment, offset)?.map_err(|damage| {
                    let advice = "an index cannot be rebuilt over it: restore the store from a backup, \
                                  or bring the rest back with `aiodb salvage`";
                    damage_error(&self.segments.path(entry.number), offset, damage, advice)
                })?;
                for found in batch.view.records() {
                    if tables.contains(&found.record.table) && found.record.kind.is_indexed() {
                        self.rebuild_record(&batch.view, &found)?;
                    }
                }
                offset += u64::from(batch.header.length);
                self.bound_indexes()?;
            }
        }
        Ok(())
    }

    /// Commits memtables that are full, merges the runs of an index that is made again if there are many, and brings places of `hash`
    /// tables to runs.
    fn bound_indexes(&self) -> Result<()> {
        self.unless_damaged(unless_full(self.bound_hashes()))?;
        self.bound_memtables(Claim::Recovery)?;
        let mut incomplete = self.ordered.open().filter(|ordered| ordered.is_incomplete());
        incomplete.try_for_each(|ordered| unless_full(self.bound_merges(ordered)))
    }

    /// Follows the chain of batches from the checkpoint's position to its break.
    fn replay(&self, tail: &Tail<'_>, walk: &mut Walk, scan: &mut Scan, recovered: &mut Recovered) -> Result<()> {
        let headers = tail.headers;
        loop {
            let position = walk.position;
            let (number, offset) = next_segment(headers, &position).unwrap_or((position.segment, position.offset));
            let Some(segment) = self.segments.find(number).filter(|segment| segment.state() == State::Sealed) else {
                return Ok(());
            };
            let Ok((header, _)) = scan.header(&self.segments, segment, segment.seed(), offset)? else { return Ok(()) };
            if header.flags & BATCH_CONTINUES != 0 && !self.atom_is_complete(headers, &position, scan)? {
                return Ok(());
            }
            let Ok(batch) = scan.batch(&self.segments, segment, offset)? else { return Ok(()) };
            let header = batch.header;
            let moves = header.flags & BATCH_MOVES != 0;
            let follows = header.number == position.batch + 1 && header.previous_checksum == position.checksum
                || planted::is_on(Bug::OldLifeAccepted);
            if !follows || (!moves && header.first_sequence != walk.next_sequence) {
                return Ok(());
            }
            walk.time_ms = clock::later(walk.time_ms, header.time_ms);
            for found in batch.view.records() {
                if tail.rebuild.contains(&found.record.table) && found.record.kind.is_indexed() {
                    self.rebuild_record(&batch.view, &found)?;
                } else {
                    self.replay_record(&batch.view, &found, tail, &position)?;
                }
            }
            let end = offset + u64::from(header.length);
            walk.position = Position {
                batch: header.number,
                checksum: batch.checksum,
                segment: number,
                life: segment.life(),
                offset: end,
            };
            walk.next_sequence += if moves { 0 } else { u64::from(header.records) };
            recovered.batches += 1;
            recovered.records += u64::from(header.records);
            self.mark_replayed(segment, end, header.records);
            self.commit.replayed(walk.position, walk.next_sequence);
            self.bound_indexes()?;
        }
    }

    /// Whether the batches after a position are there up to the first that does not continue in the next one.
    fn atom_is_complete(
        &self,
        headers: &BTreeMap<u32, SegmentHeader>,
        position: &Position,
        scan: &mut Scan,
    ) -> Result<bool> {
        let mut position = *position;
        loop {
            let (number, offset) = next_segment(headers, &position).unwrap_or((position.segment, position.offset));
            let Some(segment) = self.segments.find(number) else { return Ok(false) };
            let Ok(batch) = scan.batch(&self.segments, segment, offset)? else { return Ok(false) };
            if batch.header.number != position.batch + 1 || batch.header.previous_checksum != position.checksum {
                return Ok(false);
            }
            if batch.header.flags & BATCH_CONTINUES == 0 {
                return Ok(true);
            }
            let (batch_number, checksum) = (batch.header.number, batch.checksum);
            let end = offset + u64::from(batch.header.length);
            position = Position { batch: batch_number, checksum, segment: number, life: segment.life(), offset: end };
        }
    }

    fn mark_replayed(&self, segment: &Segment<D>, end: u64, records: u32) {
        use std::sync::atomic::Ordering::Relaxed;
        segment.written_end.store(end, Relaxed);
        segment.published_end.store(end, Relaxed);
        segment.end.store(end, Relaxed);
        segment.records.fetch_add(u64::from(records), Relaxed);
    }

    /// `before` is where the batch of the record begins.
    fn replay_record(&self, view: &BatchView<'_>, found: &Found<'_>, tail: &Tail<'_>, before: &Position) -> Result<()> {
        if found.record.kind.is_indexed() {
            // Where a table was read again, older records may lie above what the runs have.
            let in_runs = Some(&tail.in_runs).filter(|in_runs| in_runs.have(view.number) || !tail.is_read_again.get());
            return self.replay_indexed(view, found, in_runs);
        }
        if found.record.kind == Kind::Chunk && self.catalog.generation(found.record.table).is_none() {
            self.keep_id(found.record.table);
        }
        self.replay_table(&found.record, found.location, tail, before)
    }

    /// Publishes a record that is read back, unless the runs have it already: `in_runs` is what they have, if that is asked.
    fn replay_indexed(&self, view: &BatchView<'_>, found: &Found<'_>, in_runs: Option<&InRuns>) -> Result<()> {
        let record = &found.record;
        // Records of a table that was dropped since are dead, and of one that is ingested up to here, or never came to be.
        let Some(generation) = self.catalog.generation(record.table) else {
            self.keep_id(record.table);
            self.count_ahead(found);
            return Ok(());
        };
        let placed = placed(found);
        let mut publication = self.publication(view, found, &placed)?;
        let asked = |in_runs| self.is_replayed(in_runs, view.number, (&generation, record));
        let replayed = in_runs.map_or(Replayed::Yes, asked);
        publication.out_of_order = replayed == Replayed::OutOfOrder;
        match record.moved {
            Some(_) if replayed == Replayed::No => self.count_copied(&generation, &publication),
            None if replayed == Replayed::No => self.count_appended(&generation, &publication),
            Some(origin) => self.publish_move(&generation, &publication, origin, None),
            None => self.publish(&generation, &publication),
        }
        Ok(())
    }

    /// Like `replay_record` where the index may lack the record that a moved one replaces.
    fn rebuild_record(&self, view: &BatchView<'_>, found: &Found<'_>) -> Result<()> {
        let record = &found.record;
        let (Some(_), Some(generation)) = (record.moved, self.catalog.generation(record.table)) else {
            return self.replay_indexed(view, found, None);
        };
        let placed = placed(found);
        let publication = Publication { out_of_order: true, ..self.publication(view, found, &placed)? };
        let TableIndex::Hash(index) = &generation.index else {
            self.publish(&generation, &publication);
            return Ok(());
        };
        // The place that it was moved from is of no use here: another life of that segment may have another record there.
        let known = self.known_records(&generation, index, &publication)?;
        let newer_base = |known: &&Known| known.sequence > record.sequence && known.kind != Kind::Merge;
        if let Some(copy) = known.iter().find(|known| known.same_key && known.sequence == record.sequence) {
            // An earlier copy of the same record.
            let origin = Origin { segment: copy.location.segment, offset: copy.location.offset };
            self.publish_move(&generation, &publication, origin, None);
        } else if !known.iter().filter(|known| known.same_key).any(|known| newer_base(&known)) {
            let order =
                |location| known.iter().find(|known| known.location.same_place(location)).map(|known| known.sequence);
            let own_place = placed.location;
            self.publish_in_order(&generation, &publication, |location| {
                if location.same_place(own_place) { Some(record.sequence) } else { order(location) }
            });
        }
        Ok(())
    }

    /// The records under the tag of a publication.
    fn known_records(
        &self,
        generation: &Generation,
        index: &HashIndex,
        publication: &Publication<'_>,
    ) -> Result<Vec<Known>> {
        let mut known = Vec::new();
        for location in self.pull_up(generation, index, publication.hash, false)? {
            self.with_record(location, &mut |record| {
                let same_key = record.key == publication.key;
                known.push(Known { same_key, sequence: record.sequence, kind: record.kind, location });
            })?;
        }
        Ok(known)
    }

    fn publication<'a>(&self, view: &BatchView<'a>, found: &Found<'a>, placed: &'a Placed) -> Result<Publication<'a>> {
        let record = &found.record;
        let malformed = || self.damaged(found.location, "a malformed list of chunks");
        let matters = record.form.chunked || record.kind == Kind::RangeTombstone;
        let value = if matters { view.value(found).ok_or_else(malformed)? } else { record.value };
        if record.form.chunked {
            decode_chunks(value).ok_or_else(malformed)?;
        }
        let publication = Publication::new(record, value, self.hash(record.key), placed);
        Ok(Publication { replayed: Some(*view), ..publication })
    }

    /// Counts what a segment is told of a record whether that is current or not, as at its append: its table may come to be by an ingest.
    fn count_ahead(&self, found: &Found<'_>) {
        let record = &found.record;
        if record.moved.is_none() && record.kind == Kind::Put {
            // Only ordered tables are ingested.
            let (counting, is_separate) = (self.catalog.counting(), record.separate.is_some());
            let Location { segment, length, .. } = found.location;
            let beside = beside_bytes(record.key.len(), &record.form);
            let growth = counting.moved_growth(length, is_separate, beside);
            self.segments.add_growth(segment, growth);
            let uncounted = counting.uncounted(length, is_separate, beside);
            self.segments.add_uncounted(segment, uncounted.saturating_sub(growth));
            if let Some(expires_ms) = record.form.expires_ms {
                self.segments.add_expiring(segment, counting.bytes(length, is_separate, beside), expires_ms.get());
            }
        }
    }

    /// No other table is given an id under which there are records.
    fn keep_id(&self, table: u32) {
        if !planted::is_on(Bug::IngestIdReused) {
            self.catalog.raise_next_id(table.saturating_add(1));
        }
    }

    /// Changes the catalog as a record says. `before` is a place in the log that all records of an ingest come before.
    fn replay_table(&self, record: &Record<'_>, location: Location, tail: &Tail<'_>, before: &Position) -> Result<()> {
        let name = || String::from_utf8_lossy(record.key).into_owned();
        match record.kind {
            Kind::TableCreate => {
                let unknown = || self.damaged(location, "a table of a kind that this program does not know");
                let (settings, is_ingested) = Settings::decode_made(record.value).ok_or_else(unknown)?;
                self.open_index_of(settings.kind)?;
                self.catalog.apply_create(&name(), &settings, record.table);
                if is_ingested {
                    self.recover_ingested(record.table, tail, before)?;
                }
            }
            Kind::TableTruncate if record.value.len() == 4 => {
                let id = crate::format::segment::u32_at(record.value, 0);
                if let Ok(slot) = self.catalog.find(&name()) {
                    let settings = slot.with_settings(Settings::clone);
                    self.forget_generation(|| self.catalog.apply_create(&name(), &settings, id));
                }
            }
            Kind::TableDrop => self.forget_generation(|| self.catalog.apply_drop(&name(), record.table)),
            _ => {}
        }
        Ok(())
    }

    /// A break in the log is damage if a later batch or segment proves that the missing batch was durable. Returns whether there is
    /// any later batch, however torn.
    fn refuse_damage(
        &self,
        headers: &BTreeMap<u32, SegmentHeader>,
        walk: &Walk,
        missing: u64,
        scan: &mut Scan,
    ) -> Result<bool> {
        let (number, offset) =
            next_segment(headers, &walk.position).unwrap_or((walk.position.segment, walk.position.offset));
        let mut witness =
            headers.values().find(|h| h.life >= walk.position.life && h.durable_batch >= missing).map(|h| h.segment);
        let mut later = headers.values().any(|header| header.life > walk.position.life);
        for segment in self.segments.in_use().into_iter().filter(|segment| segment.life() >= walk.position.life) {
            let on_chain = segment.life() == walk.position.life;
            let first = if on_chain { walk.position.offset } else { UNIT_BYTES as u64 };
            let seed = segment.seed();
            for at in (first..self.segments.segment_bytes).step_by(UNIT_BYTES) {
                if let Ok((header, _)) = scan.header(&self.segments, segment, seed, at)?
                    && header.number > walk.position.batch
                {
                    later = true;
                    if header.durable_batch >= missing {
                        witness = witness.or(Some(segment.number));
                    }
                }
            }
        }
        scan.forget();
        // An index has forgotten for good the records that a later batch has deleted.
        let index = self
            .ordered
            .open()
            .try_fold(0, |last: u64, ordered| ordered.committed.last_durable_batch().map(|batch| batch.max(last)))?;
        let witness = match witness {
            Some(segment) => format!("segment {segment}"),
            None if index >= missing => "an ordered index".to_string(),
            None => return Ok(later),
        };
        let what = format!(
            "batch {missing} is missing or does not check out, but {witness} says that it was durable; \
             restore the file, or the store from a backup"
        );
        Err(Error::Corruption { path: self.segments.path(number), offset, what })
    }

    /// Segments that were activated after the checkpoint but are not on the chain have no records that count.
    fn retire_void_segments(&self, manifest: &Manifest, headers: &BTreeMap<u32, SegmentHeader>, walk: &Walk) {
        for (number, header) in headers {
            let segment = self.segments.get(*number);
            let empty = segment.published_end.load(std::sync::atomic::Ordering::Relaxed) == UNIT_BYTES as u64;
            let void = header.life >= manifest.next_life && empty && header.life != walk.position.life;
            if void && segment.state() == State::Sealed {
                self.retire(segment);
            }
        }
    }
}

/// The segment that goes on after a position, by its header; the latest life if several claim to.
fn next_segment(headers: &BTreeMap<u32, SegmentHeader>, position: &Position) -> Option<(u32, u64)> {
    let follows = |header: &&SegmentHeader| {
        header.life > position.life
            && header.first_batch == position.batch + 1
            && header.previous_checksum == position.checksum
            && (position.batch == 0
                || (header.previous_segment, header.previous_end) == (position.segment, position.offset))
    };
    headers.values().filter(follows).max_by_key(|header| header.life).map(|header| (header.segment, UNIT_BYTES as u64))
}

fn placed(found: &Found<'_>) -> Placed {
    Placed {
        location: found.location,
        separate: found.record.separate.map(|separate| separate.checksum),
        sequence: found.record.sequence,
        record_offset: 0,
    }
}

#[cfg(test)]
mod tests;
