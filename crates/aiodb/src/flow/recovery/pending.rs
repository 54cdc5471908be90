//! The pending batches, which were still in memory when the process died, read back and written into the log again.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Walk;
use super::ingested::Tail;
use crate::flow::write::PlacedList;
use crate::format::batch::{Append, BatchView};
use crate::format::location::Location;
use crate::format::manifest::damage_error;
use crate::format::position::Position;
use crate::format::record::{Chunk, Form, Kind, Record, decode_chunks, encode_chunks};
use crate::format::segment::{BATCH_LINK_OFFSET, BATCH_MOVES, BatchHeader, Damage, HEADER_BYTES, PendingHeader, Seed};
use crate::io::small_file::read_file;
use crate::io::{Device, Mapping, UNIT_BYTES};
use crate::log::commit::{PENDING_BUFFERS, buffer_bytes};
use crate::planted::{self, Bug};
use crate::store::commit::Operation;
use crate::store::engine::Engine;
use crate::{Error, Result};

/// The records of the pending batches beyond the log's end.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) records: Vec<PendingRecord>,
    /// Batches that are here as they were sealed, and so as they would be in the log.
    pub(super) whole_batches: u64,
    /// Whether there is any batch, however little of it, that the log does not have.
    pub(super) later: bool,
}

/// A record that was acknowledged but not yet in the log, copied out of its pending batch.
pub(super) struct PendingRecord {
    kind: Kind,
    table: u32,
    key: Vec<u8>,
    value: Vec<u8>,
    separate: bool,
    more: bool,
    form: Form,
    location: Location,
}

impl<D: Device> Engine<D> {
    /// Copies out the records of the pending batches beyond the log's end: acknowledged, but not written when the process
    /// died. A batch that does not follow the log's end is of an earlier time.
    pub(super) fn load_pending(&self, walk: &Walk) -> Result<Pending> {
        let mut files = Vec::new();
        for number in 0..PENDING_BUFFERS {
            let path = self.pending_path(number);
            let file = read_file(&self.device, &path)?;
            if let Some(Err(damage @ Damage::Newer { .. })) = file.as_deref().map(PendingHeader::decode) {
                return Err(damage_error(&path, 0, damage, ""));
            }
            files.extend(file);
        }
        let (mut expected, mut checksum) = (walk.position.batch + 1, walk.position.checksum);
        let mut next_sequence = walk.next_sequence;
        let numbers = files.iter().filter_map(|bytes| PendingHeader::decode(bytes).ok()).map(|header| header.number);
        let later = numbers.max().is_some_and(|number| number > walk.position.batch);
        let mut out = Pending { later, ..Pending::default() };
        if planted::is_on(Bug::PendingForgotten) {
            return Ok(out);
        }
        while let Some((header, batch)) =
            files.iter().find_map(|bytes| pending_batch(bytes, &self.segments.store, expected))
        {
            if header.previous_checksum != checksum
                || (header.flags & BATCH_MOVES == 0 && header.first_sequence != next_sequence)
            {
                break;
            }
            let seed = Seed::new(&header.store, header.segment, header.life);
            let sealed = BatchHeader::decode(batch, seed, header.offset).ok().filter(|(sealed, _)| {
                batch
                    .get(BATCH_LINK_OFFSET..sealed.length as usize)
                    .is_some_and(|body| seed.checksum(body) == sealed.body_checksum)
            });
            let view =
                BatchView { bytes: batch, seed, segment: header.segment, offset: header.offset, number: header.number };
            // Moves need not be saved: the moved records are still where they were.
            if header.flags & BATCH_MOVES == 0 {
                next_sequence = copy_pending(&view, next_sequence, &mut out.records);
            }
            let Some((_, sealed_checksum)) = sealed else { break };
            out.whole_batches += 1;
            (expected, checksum) = (expected + 1, sealed_checksum);
        }
        Ok(out)
    }

    /// Refuses to open a store for reading only that has pending records: they must be written into the log before they can be read.
    pub(super) fn refuse_pending(&self, pending: &[PendingRecord]) -> Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let reason = format!("{} of its last records are not in the log yet", pending.len());
        Err(Error::Unrecovered { path: self.root.clone(), reason })
    }

    /// Writes pending records into the log again, durably, in their groups. The pending files still have them
    /// until that is done.
    pub(super) fn append_pending(&self, pending: Vec<PendingRecord>, tail: &Tail<'_>, end: &Position) -> Result<u64> {
        let mut count = 0;
        let mut moved: BTreeMap<Location, Chunk> = BTreeMap::new();
        // However many batches it takes: after a crash in between, the pending files count.
        self.commit.set_continues(true);
        let mut group = Vec::new();
        for mut record in pending {
            if record.form.chunked {
                record.value = relocate_chunks(&record.value, &moved);
            }
            let more = record.more && !planted::is_on(Bug::GroupSplit);
            group.push(record);
            if more {
                continue;
            }
            for (record, placed) in group.iter().zip(self.append_group(&group, tail, end)?) {
                if let (Kind::Chunk, Some(checksum)) = (record.kind, placed.separate) {
                    moved.insert(record.location, Chunk { location: placed.location, checksum });
                }
            }
            count += group.len() as u64;
            group.clear();
        }
        self.commit.set_continues(false);
        if !planted::is_on(Bug::RecoveryUnflushed) {
            self.flush()?;
        }
        Ok(count)
    }

    fn append_group(&self, group: &[PendingRecord], tail: &Tail<'_>, end: &Position) -> Result<PlacedList> {
        let mut operations = Vec::new();
        for (position, record) in group.iter().enumerate() {
            let mut append = Append::new(record.kind, record.table, &record.key, &record.value);
            (append.separate, append.more, append.form) = (record.separate, position + 1 < group.len(), record.form);
            let generation = self.catalog.generation(record.table);
            if generation.is_none() && record.kind.is_indexed() {
                self.keep_id(record.table);
            }
            operations.push(Operation { generation, append, hash: self.hash(&record.key), over: None });
        }
        let placed = self.write_recovered(&operations)?;
        for (record, placed) in group.iter().zip(&placed) {
            let record = Record::new(record.kind, record.table, 0, &record.key, &record.value);
            self.replay_table(&record, placed.location, tail, end)?;
        }
        Ok(placed)
    }

    /// Memory that survives the process, for the open batches.
    pub(crate) fn map_buffers(&self) -> Result<Vec<Mapping>> {
        let length = buffer_bytes(self.segments.segment_bytes);
        let map = |number| {
            let path = self.pending_path(number);
            self.device.map(&path, length).map_err(|e| Error::io("map", &path, &e))
        };
        (0..PENDING_BUFFERS).map(map).collect()
    }

    fn pending_path(&self, number: usize) -> PathBuf {
        self.root.join("pending").join(number.to_string())
    }
}

/// The pending batch with this number, if these bytes hold it.
fn pending_batch<'a>(bytes: &'a [u8], store: &[u8; 16], number: u64) -> Option<(PendingHeader, &'a [u8])> {
    let header = PendingHeader::decode(bytes.get(..HEADER_BYTES)?).ok()?;
    let batch = bytes.get(UNIT_BYTES..)?;
    (header.store == *store && header.number == number).then_some((header, batch))
}

/// Copies a pending batch's records up to the first that does not check out or does not follow, whole groups only.
/// Returns the sequence after the last one.
fn copy_pending(view: &BatchView<'_>, mut next_sequence: u64, out: &mut Vec<PendingRecord>) -> u64 {
    let mut group = Vec::new();
    for (count, found) in view.records().enumerate() {
        let record = &found.record;
        let follows = record.sequence == next_sequence + group.len() as u64 && count < u32::MAX as usize;
        let Some(value) = view.value(&found).filter(|_| follows) else { break };
        group.push(PendingRecord {
            kind: record.kind,
            table: record.table,
            key: record.key.to_vec(),
            value: value.to_vec(),
            separate: record.separate.is_some(),
            more: record.more,
            form: record.form,
            location: found.location,
        });
        if !record.more || planted::is_on(Bug::GroupSplit) {
            next_sequence += group.len() as u64;
            out.append(&mut group);
        }
    }
    next_sequence
}

/// A chunk list whose pending chunks have found new places.
fn relocate_chunks(list: &[u8], moved: &BTreeMap<Location, Chunk>) -> Vec<u8> {
    let Some((length, mut chunks)) = decode_chunks(list) else { return list.to_vec() };
    for chunk in &mut chunks {
        if let Some(new) = moved.get(&chunk.location) {
            *chunk = *new;
        }
    }
    encode_chunks(length, &chunks)
}
