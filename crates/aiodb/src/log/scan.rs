//! Reading a segment from front to back, batch by batch.

use super::{Segment, Segments};
use crate::format::batch::BatchView;
use crate::format::segment::{BATCH_LINK_OFFSET, BatchHeader, Damage, Seed};
use crate::io::{AlignedBuffer, Device, File, UNIT_BYTES};
use crate::planted::{self, Bug};
use crate::{Error, Result};

/// How much is read at a time; at least the longest batch.
const WINDOW_BYTES: usize = crate::log::commit::MAX_BATCH_BYTES;

/// A moving window over one segment at a time.
pub(crate) struct Scan {
    window: AlignedBuffer,
    segment: u32,
    life: u64,
    start: u64,
    length: usize,
    /// Whether less is read where the device does not give a whole window.
    goes_around: bool,
}

/// A batch that checks out.
pub(crate) struct ScannedBatch<'a> {
    pub(crate) header: BatchHeader,
    pub(crate) checksum: u32,
    pub(crate) view: BatchView<'a>,
}

impl Scan {
    pub(crate) fn new(segment_bytes: u64) -> Scan {
        let window = AlignedBuffer::new(WINDOW_BYTES.min(segment_bytes as usize));
        Scan { window, segment: 0, life: 0, start: 0, length: 0, goes_around: false }
    }

    /// Like [`Scan::new`]. Bytes that the device does not give fail only what is asked of them.
    pub(crate) fn around_errors(segment_bytes: u64) -> Scan {
        Scan { goes_around: true, ..Scan::new(segment_bytes) }
    }

    /// The batch at an offset, header and body checked; `Err(damage)` inside says why there is none.
    pub(crate) fn batch<D: Device>(
        &mut self,
        segments: &Segments<D>,
        segment: &Segment<D>,
        offset: u64,
    ) -> Result<std::result::Result<ScannedBatch<'_>, Damage>> {
        let seed = segment.seed();
        let (header, checksum) = match self.header(segments, segment, seed, offset)? {
            Ok(found) => found,
            Err(damage) => return Ok(Err(damage)),
        };
        let bytes = self.bytes(segments, segment, offset, header.length as usize)?;
        let matches = |bytes: &[u8]| {
            planted::is_on(Bug::BatchUnchecked) || seed.checksum(&bytes[BATCH_LINK_OFFSET..]) == header.body_checksum
        };
        if bytes.len() < header.length as usize || !matches(bytes) {
            return Ok(Err(Damage::Checksum));
        }
        let view = BatchView { bytes, seed, segment: segment.number, offset: header.offset, number: header.number };
        if view.records().count() != header.records as usize && !planted::is_on(Bug::BatchUnchecked) {
            return Ok(Err(Damage::Foreign("a batch with another number of records than its header says")));
        }
        Ok(Ok(ScannedBatch { header, checksum, view }))
    }

    /// The batch header at an offset, without a look at the body.
    pub(crate) fn header<D: Device>(
        &mut self,
        segments: &Segments<D>,
        segment: &Segment<D>,
        seed: Seed,
        offset: u64,
    ) -> Result<std::result::Result<(BatchHeader, u32), Damage>> {
        if offset + UNIT_BYTES as u64 > segments.segment_bytes {
            return Ok(Err(Damage::Foreign("the segment ends here")));
        }
        let bytes = self.bytes(segments, segment, offset, UNIT_BYTES)?;
        Ok(BatchHeader::decode(bytes, seed, offset as u32))
    }

    fn bytes<D: Device>(
        &mut self,
        segments: &Segments<D>,
        segment: &Segment<D>,
        offset: u64,
        length: usize,
    ) -> Result<&[u8]> {
        let same = self.segment == segment.number && self.life == segment.life();
        let inside = offset >= self.start && offset + length as u64 <= self.start + self.length as u64;
        if !same || !inside {
            let mut wanted = self.window.len().min((segments.segment_bytes - offset) as usize);
            // Until the read has succeeded the window has nothing.
            self.length = 0;
            self.length = loop {
                let read = segment.file.read_at(&mut self.window[..wanted], offset);
                match read.map_err(|e| Error::io("read", segments.path(segment.number), &e)) {
                    Err(error) if self.goes_around && error.is_damage() && wanted > length => {
                        wanted = (wanted / 2).next_multiple_of(UNIT_BYTES).max(length);
                    }
                    read => break read?,
                }
            };
            (self.segment, self.life, self.start) = (segment.number, segment.life(), offset);
        }
        let from = (offset - self.start) as usize;
        let to = (from + length).min(self.length);
        Ok(&self.window[from.min(to)..to])
    }

    /// Forgets the bytes that were read, because they may be written again.
    pub(crate) fn forget(&mut self) {
        self.length = 0;
    }
}
