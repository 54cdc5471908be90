//! The segment files at an opening, and the state of each: in use, free, being filled, or lost.

use crate::format::manifest::{Manifest, ManifestSegment};
use crate::format::segment::{HEADER_BYTES, SegmentHeader};
use crate::io::{AlignedBuffer, Device, File, UNIT_BYTES};
use crate::log::{Segment, State, UNFILLED_END};
use crate::store::upkeep::Upkeep;
use crate::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

/// The segments of the last checkpoint, by number.
type Listed<'a> = BTreeMap<u32, &'a ManifestSegment>;

/// The files of the log as they are found.
struct SegmentFiles<'a, D: Device> {
    headers: BTreeMap<u32, SegmentHeader>,
    /// Files that were being filled or emptied: not even a header is there.
    unfilled: Vec<&'a Segment<D>>,
}

impl<D: Device> Upkeep<D> {
    /// Opens all segment files, reads their headers, and marks those in use. Returns the headers by segment.
    pub(super) fn load_segments(
        &self,
        manifest: &Manifest,
        rebuild: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, SegmentHeader>> {
        let listed: Listed<'_> = manifest.segments.iter().map(|segment| (segment.number, segment)).collect();
        let SegmentFiles { headers, unfilled } = self.open_segments(&listed)?;
        self.check_listed(&listed, &headers)?;
        let chunks_in_ordered = self.chunks_in_ordered(manifest, rebuild)?;
        let referred = self.referred_by_ordered(&headers, &chunks_in_ordered)?;
        for segment in unfilled {
            if referred.contains(&segment.number) {
                // As below. Only an index from before these entries were taken out still refers to it.
                segment.begin(&self.segments.store, 0, State::Sealed, UNFILLED_END);
                self.retire(segment);
            } else {
                self.segments.set_absent(segment);
            }
        }
        for (number, header) in &headers {
            let segment = self.segments.get(*number);
            if let Some(entry) = listed.get(number) {
                self.begin_listed(segment, entry, rebuild);
            } else if header.life >= manifest.next_life {
                segment.begin(&self.segments.store, header.life, State::Sealed, UNIT_BYTES as u64);
            } else if referred.contains(number) {
                // Records of a dropped table or a deleted range here are still to be taken out of the index, and off the
                // counts of this life.
                segment.begin(&self.segments.store, header.life, State::Sealed, UNIT_BYTES as u64);
                self.retire(segment);
            } else {
                if header.life == 0 && !self.options.read_only {
                    // The process that filled it may have died before its length survived a power cut.
                    segment.file.sync().map_err(|e| Error::io("flush", self.segments.path(*number), &e))?;
                }
                self.segments.set_free(segment);
            }
        }
        self.count_live(&chunks_in_ordered)?;
        Ok(headers)
    }

    /// The headers of all segments that have one, and the segments that were being filled or emptied.
    fn open_segments(&self, listed: &Listed<'_>) -> Result<SegmentFiles<'_, D>> {
        let mut headers = BTreeMap::new();
        let mut unfilled = Vec::new();
        for number in self.segments.list()? {
            let (segment, length) = self.segments.open_existing(number)?;
            let whole = length == self.segments.segment_bytes;
            if whole && (listed.contains_key(&number) || !self.is_unfilled(segment)?) {
                headers.insert(number, self.check_segment_header(segment)?);
            } else if !listed.contains_key(&number) {
                unfilled.push(segment);
            } else {
                let what = format!("the file has {length} bytes instead of {}", self.segments.segment_bytes);
                return Err(self.lost_segment(number, length, &what));
            }
        }
        Ok(SegmentFiles { headers, unfilled })
    }

    /// Fails if a segment that the checkpoint names is missing or has another life.
    fn check_listed(&self, listed: &Listed<'_>, headers: &BTreeMap<u32, SegmentHeader>) -> Result<()> {
        for (number, entry) in listed {
            match headers.get(number).map(|header| header.life) {
                Some(life) if life == entry.life => {}
                None => return Err(self.lost_segment(*number, 0, "the segment is missing")),
                Some(life) => {
                    let what = format!("its life is {life}, the last checkpoint knows {}", entry.life);
                    return Err(self.lost_segment(*number, 0, &what));
                }
            }
        }
        Ok(())
    }

    fn lost_segment(&self, number: u32, offset: u64, what: &str) -> Error {
        let what = format!("{what}; restore the file, or the store from a backup");
        Error::Corruption { path: self.segments.path(number), offset, what }
    }

    /// Takes over the checkpoint's counts of a segment.
    fn begin_listed(&self, segment: &Segment<D>, entry: &ManifestSegment, rebuild: &BTreeSet<u32>) {
        segment.begin(&self.segments.store, entry.life, State::Sealed, entry.end);
        segment.records.store(u64::from(entry.records), std::sync::atomic::Ordering::Relaxed);
        segment.deletes.store(u64::from(entry.deletes), std::sync::atomic::Ordering::Relaxed);
        segment.growth_bytes.store(entry.growth_bytes, std::sync::atomic::Ordering::Relaxed);
        // The counts of a table that is gone, or whose index is made again, are left out.
        let known = |(table, _): &&(u32, i64)| self.is_hash(*table) && !rebuild.contains(table);
        self.segments.load_live_chunks(segment, entry.live_chunks.iter().filter(known).copied());
        segment.expiring().extend(entry.expiring.iter().copied());
    }

    /// Whether the first sector is all zeros, as while an emptied segment is being filled again. A segment that was ever
    /// free has a header.
    fn is_unfilled(&self, segment: &Segment<D>) -> Result<bool> {
        let mut unit = AlignedBuffer::new(UNIT_BYTES);
        let read = segment.file.read_at(&mut unit, 0);
        read.map_err(|e| Error::io("read", self.segments.path(segment.number), &e))?;
        Ok(unit[..HEADER_BYTES].iter().all(|byte| *byte == 0))
    }
}
