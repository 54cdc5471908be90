//! Reads all batches and compares them with their checksums and with the indexes.

use std::ops::Bound;

use crate::flow::read::Outcome;
use crate::format::location::Location;
use crate::format::manifest::damage_error;
use crate::format::record::{Chunk, Kind, decode_chunks};
use crate::format::segment::{Damage, SegmentHeader};
use crate::index::chain::Entry;
use crate::index::codec::{encode_key, prefix_key};
use crate::index::hash::SHARDS;
use crate::index::memtable::Reached;
use crate::index::runs::scan::RunWalk;
use crate::index::snapshots::View;
use crate::io::{AlignedBuffer, Device, File, UNIT_BYTES};
use crate::log::scan::Scan;
use crate::log::{Segment, State};
use crate::store::catalog::{Generation, TableIndex};
use crate::store::read_path::ReadPath;
use crate::store::upkeep::Upkeep;
use crate::{Error, Result};

/// More damage than this is counted, not listed.
const MAX_LISTED: usize = 1000;

/// Keys of an ordered index looked at in one transaction.
const KEYS_PER_VISIT: usize = 1000;

/// The findings of [`crate::Db::verify`].
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Segments read.
    pub segments: u64,
    /// Batches that check out.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes read from segments.
    pub bytes: u64,
    /// Index entries whose record was found.
    pub index_entries: u64,
    /// One [`Error::Corruption`] for each damaged place, or an [`Error::Io`] for one that the device does not give, at most 1000 of them.
    pub damage: Vec<Error>,
}

impl VerifyReport {
    fn add(&mut self, error: Error) {
        if self.damage.len() < MAX_LISTED {
            self.damage.push(error);
        }
    }

    /// [`VerifyReport::add`], if stored bytes cannot be read. Any other failure says nothing of them.
    fn add_unreadable(&mut self, error: Error) -> Result<()> {
        if !error.is_damage() {
            return Err(error);
        }
        self.add(error);
        Ok(())
    }

    /// Makes a check that may end at bytes that cannot be read, which are added.
    fn note(&mut self, check: impl FnOnce(&mut VerifyReport) -> Result<()>) -> Result<()> {
        match check(self) {
            Err(error) if error.is_damage() => {
                self.add_once(error);
                Ok(())
            }
            checked => checked,
        }
    }

    /// [`VerifyReport::add`], unless this place is listed.
    fn add_once(&mut self, error: Error) {
        let place = |error: &Error| match error {
            Error::Corruption { path, offset, .. } => Some((path.clone(), Some(*offset))),
            Error::Io { path, .. } => Some((path.clone(), None)),
            _ => None,
        };
        if !self.damage.iter().any(|listed| place(listed) == place(&error)) {
            self.add(error);
        }
    }
}

impl<D: Device> Upkeep<D> {
    /// Checks all batches of all segments, then that every index entry leads to a record of its key.
    pub(crate) fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        // The memtable of an index is committed first; else only entries that were committed before are followed.
        if !self.options.read_only {
            self.checkpoint()?;
        }
        let mut report = VerifyReport::default();
        // Under the guard no segment begins another life while it is read.
        let _guard = self.epochs.pin();
        self.verify_all(&mut report, progress)?;
        Ok(report)
    }
}

impl<D: Device> ReadPath<D> {
    pub(crate) fn check_segment_header(&self, segment: &Segment<D>) -> Result<SegmentHeader> {
        let path = self.segments.path(segment.number);
        let mut unit = AlignedBuffer::new(UNIT_BYTES);
        segment.file.read_at(&mut unit, 0).map_err(|e| Error::io("read", &path, &e))?;
        let advice = "the segment's header is damaged: restore the file, or the store from a backup";
        let header = SegmentHeader::decode(&unit).map_err(|damage| damage_error(&path, 0, damage, advice))?;
        let count = self.segments.directory_count();
        if header.store != self.segments.store || header.segment != segment.number || header.directories != count {
            let damage = Damage::Foreign("the header of another segment or store");
            return Err(damage_error(&path, 0, damage, advice));
        }
        Ok(header)
    }

    fn verify_all(&self, report: &mut VerifyReport, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let segments = self.segments.in_use();
        let end = |segment: &Segment<D>| segment.published_end.load(std::sync::atomic::Ordering::Acquire);
        let total: u64 = segments.iter().map(|segment| end(segment)).sum();
        let mut scan = Scan::around_errors(self.segments.segment_bytes);
        for segment in segments {
            if !matches!(segment.state(), State::Active | State::Sealed) {
                continue;
            }
            report.segments += 1;
            self.verify_segment(segment, end(segment), &mut scan, report)?;
            report.bytes += end(segment);
            progress(report.bytes, total);
        }
        for runs in self.ordered.open().filter_map(|ordered| ordered.committed.runs()) {
            report.note(|report| runs.for_each_damage(&mut |damage| report.add(damage)))?;
        }
        for generation in self.catalog.generations() {
            if let Some(runs) = self.spilled.table(generation.id) {
                report.note(|report| runs.for_each_damage(&mut |damage| report.add(damage)))?;
            }
            self.verify_index(&generation, report)?;
        }
        Ok(())
    }

    fn verify_segment(&self, segment: &Segment<D>, end: u64, scan: &mut Scan, report: &mut VerifyReport) -> Result<()> {
        let path = self.segments.path(segment.number);
        if let Err(damage) = self.check_segment_header(segment) {
            report.add_unreadable(damage)?;
        }
        let mut offset = UNIT_BYTES as u64;
        while offset < end {
            let batch = match scan.batch(&self.segments, segment, offset) {
                Err(error) if error.is_damage() => {
                    report.add(error.at_byte(offset));
                    offset = self.next_batch_offset(segment, offset, end, scan)?;
                    continue;
                }
                batch => batch?,
            };
            match batch {
                Ok(batch) => {
                    report.batches += 1;
                    report.records += u64::from(batch.header.records);
                    for found in batch.view.records() {
                        if batch.view.value(&found).is_none() {
                            report.add(self.damaged(found.location, "a value whose checksum does not match"));
                        }
                    }
                    offset += u64::from(batch.header.length);
                }
                Err(damage) => {
                    let advice = "the batch here is damaged; records outside it are checked through the index";
                    report.add(damage_error(&path, offset, damage, advice));
                    offset = self.next_batch_offset(segment, offset, end, scan)?;
                }
            }
        }
        Ok(())
    }

    /// The offset at which the walk can go on after damage.
    fn next_batch_offset(&self, segment: &Segment<D>, damaged: u64, end: u64, scan: &mut Scan) -> Result<u64> {
        let seed = segment.seed();
        // A sound header tells the length of its batch, whatever happened to the body.
        let mut header = |offset: u64| -> Result<_> {
            match scan.header(&self.segments, segment, seed, offset) {
                Err(error) if error.is_damage() => Ok(None),
                header => Ok(header?.ok()),
            }
        };
        if let Some((header, _)) = header(damaged)? {
            return Ok(damaged + u64::from(header.length));
        }
        let mut offset = damaged + UNIT_BYTES as u64;
        while offset < end && header(offset)?.is_none() {
            offset += UNIT_BYTES as u64;
        }
        Ok(offset)
    }

    fn verify_index(&self, generation: &Generation, report: &mut VerifyReport) -> Result<()> {
        match &generation.index {
            TableIndex::Hash(index) => {
                let mut locations = Vec::new();
                for shard in 0..SHARDS {
                    locations.clear();
                    let add = &mut |places: &[Location]| locations.extend_from_slice(places);
                    match self.for_each_places(generation, index, shard, add) {
                        // What lies behind a damaged block is not followed.
                        Err(damage) if damage.is_damage() => report.add_once(damage),
                        visited => visited?,
                    }
                    // Read outside of the shard's lock.
                    for location in &locations {
                        self.verify_place(generation, *location, report)?;
                    }
                }
            }
            TableIndex::Ordered => {
                let mut from = Bound::Included(prefix_key(generation.id, &[]));
                let to = prefix_key(generation.id + 1, &[]);
                // What the device has is to be seen.
                let (view, mut walk) = (View { cached: false, ..View::LATEST }, RunWalk::default());
                loop {
                    let range = (from.as_ref().map(Vec::as_slice), Bound::Excluded(&to[..]));
                    let found = self.ordered_of(generation).range(range, false, KEYS_PER_VISIT, &view, &mut walk);
                    let (found, reached) = match found {
                        // What lies behind a damaged block is not followed.
                        Err(damage) if damage.is_damage() => {
                            report.add_once(damage);
                            return Ok(());
                        }
                        found => found?,
                    };
                    for (key, chain) in &found {
                        let mut entries = chain.entries().iter();
                        entries.try_for_each(|entry| self.verify_entry(generation, key, entry, report))?;
                    }
                    match reached {
                        Reached::Key(key) => from = Bound::Excluded(key.into()),
                        Reached::End => return Ok(()),
                    }
                }
            }
        }
        Ok(())
    }

    /// A place in a `hash` index must have a record of its table.
    fn verify_place(&self, generation: &Generation, location: Location, report: &mut VerifyReport) -> Result<()> {
        let mut sound = false;
        let read = self.with_record(location, &mut |record| {
            let indexed = matches!(record.kind, Kind::Put | Kind::Delete | Kind::Merge);
            sound = record.table == generation.id && indexed;
        });
        match read {
            Ok(()) if sound => report.index_entries += 1,
            Ok(()) => {
                report.add(self.damaged(location, "the hash index refers to something that is no record of its table"));
            }
            Err(error) => report.add_unreadable(error.at_byte(u64::from(location.offset)))?,
        }
        Ok(())
    }

    fn verify_entry(
        &self,
        generation: &Generation,
        key: &[u8],
        entry: &Entry,
        report: &mut VerifyReport,
    ) -> Result<()> {
        if entry.is_delete() {
            return Ok(());
        }
        let checked = self.with_bytes(entry.location, |bytes| {
            if entry.separate.is_some() {
                // Expired records are checked all the same.
                let view = View { at_ms: Some(0), cached: false, ..View::LATEST };
                return match self.interpret(generation.id, &key[4..], &entry.candidate(), &view, bytes)? {
                    Outcome::Chunks(length, chunks) => Ok(Some((length, chunks))),
                    _ => Ok(None),
                };
            }
            self.verify_whole_record(key, entry, bytes)
        });
        let checked = checked.map_err(|error| error.at_byte(u64::from(entry.location.offset)));
        let checked = checked.and_then(|chunks| match chunks {
            Some((length, chunks)) => self.read_chunks(length, &chunks).map(drop),
            None => Ok(()),
        });
        match checked {
            Ok(()) => report.index_entries += 1,
            Err(error) => report.add_unreadable(error)?,
        }
        Ok(())
    }

    /// A record found through an entry must be of the entry's index key, which is shortened if it is long.
    fn verify_whole_record(&self, key: &[u8], entry: &Entry, bytes: &[u8]) -> Result<Option<(u64, Vec<Chunk>)>> {
        let record = self.decode(entry.location, bytes)?;
        if *encode_key(record.table, record.key) != *key
            || (record.kind, record.sequence) != (entry.kind, entry.sequence)
        {
            return Err(self.damaged(entry.location, "the index refers to another record"));
        }
        if entry.inline.as_ref().is_some_and(|value| **value != *record.value || record.form != entry.form) {
            return Err(self.damaged(entry.location, "the index has another value than the record"));
        }
        if !record.form.chunked {
            return Ok(None);
        }
        let chunks = decode_chunks(record.value).map(Some);
        chunks.ok_or_else(|| self.damaged(entry.location, "a malformed list of chunks"))
    }
}

#[cfg(test)]
mod tests;
