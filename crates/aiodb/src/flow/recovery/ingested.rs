//! Tables that were ingested: their records come before the record that makes them.
//!
//! The runs have an ingested table before the log makes it. Where they do not, since they were lost or come from a backup that copied
//! them before, the log is read again up to there.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use super::in_runs::InRuns;
use super::next_segment;
use crate::format::manifest::{Manifest, damage_error};
use crate::format::position::Position;
use crate::format::segment::SegmentHeader;
use crate::io::{Device, UNIT_BYTES};
use crate::log::Segment;
use crate::log::scan::Scan;
use crate::store::engine::Engine;
use crate::{Error, IndexKind, Result};

/// The log as an opening finds it.
pub(super) struct Tail<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) headers: &'a BTreeMap<u32, SegmentHeader>,
    /// The tables that are made again from the whole log.
    pub(super) rebuild: &'a BTreeSet<u32>,
    /// What the runs had of it.
    pub(super) in_runs: InRuns,
    /// Whether the log was read again for an ingested table.
    pub(super) is_read_again: Cell<bool>,
}

impl<D: Device> Engine<D> {
    /// Reads the log again for a table that it has just made, if the runs do not have it. Its records come before `end`.
    pub(super) fn recover_ingested(&self, table: u32, tail: &Tail<'_>, end: &Position) -> Result<()> {
        let Some(ordered) = self.ordered.get(IndexKind::Lsm) else { return Ok(()) };
        let is_there = self.catalog.generation(table).is_some();
        // What the runs had of it when they came past its record is all there is, also where that is nothing any more.
        let was_there = tail.in_runs.have(end.batch + 1);
        if !is_there || was_there || tail.rebuild.contains(&table) || ordered.committed.has_whole(table)? {
            return Ok(());
        }
        if self.options.read_only {
            let reason = "the index of an ingested table has to be made again from the log".to_string();
            return Err(Error::Unrecovered { path: self.root.clone(), reason });
        }
        // After a crash it is begun anew: else a part of the table would pass for all of it.
        ordered.set_incomplete(true);
        ordered.fit_memtable(self.memory.memtable_keys())?;
        tail.is_read_again.set(true);
        let mut scan = Scan::new(self.segments.segment_bytes);
        let mut segments: Vec<_> = tail.manifest.segments.iter().collect();
        segments.sort_by_key(|segment| segment.life);
        let position = tail.manifest.position;
        for entry in segments.into_iter().filter(|entry| entry.life <= position.life) {
            let to = if entry.life == position.life { position.offset } else { entry.end };
            self.publish_ingested(table, self.segments.get(entry.number), (UNIT_BYTES as u64, to), &mut scan)?;
        }
        let mut at = position;
        while at.batch < end.batch {
            let (number, offset) = next_segment(tail.headers, &at).unwrap_or((at.segment, at.offset));
            let segment = self.segments.get(number);
            at = self.publish_batch(table, segment, offset, &mut scan)?;
        }
        Ok(())
    }

    /// Publishes the records of a table in a part of a segment.
    fn publish_ingested(
        &self,
        table: u32,
        segment: &Segment<D>,
        (mut offset, to): (u64, u64),
        scan: &mut Scan,
    ) -> Result<()> {
        while offset < to {
            offset = self.publish_batch(table, segment, offset, scan)?.offset;
        }
        Ok(())
    }

    /// Publishes the records of a table in a batch. Returns where the batch ends.
    fn publish_batch(&self, table: u32, segment: &Segment<D>, offset: u64, scan: &mut Scan) -> Result<Position> {
        let batch = scan.batch(&self.segments, segment, offset)?.map_err(|damage| {
            let advice = "an ingested table cannot be made again over it: restore the store from a backup, or bring the rest \
                          back with `aiodb salvage`";
            damage_error(&self.segments.path(segment.number), offset, damage, advice)
        })?;
        for found in batch.view.records().filter(|found| found.record.table == table && found.record.kind.is_indexed())
        {
            self.replay_indexed(&batch.view, &found, None)?;
        }
        let (header, checksum) = (batch.header, batch.checksum);
        self.bound_indexes()?;
        let (batch, life) = (header.number, segment.life());
        Ok(Position { batch, checksum, segment: segment.number, life, offset: offset + u64::from(header.length) })
    }
}
