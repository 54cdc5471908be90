//! Finds the records that can be proved in the bytes of one segment, whatever else has happened to them. No I/O here.
//!
//! Where batches check out they are walked as recovery does. Elsewhere every place where a record may lie is tried: its
//! checksum, which starts from the segment's life and includes the record's place, is proof enough.

use std::collections::BTreeSet;
use std::ops::Range;

use super::reading::Unread;
use crate::checksum::crc32c_append;
use crate::format::batch::{BatchView, Found};
use crate::format::location::Location;
use crate::format::record::{Kind, RECORD_ALIGNMENT, RECORD_HEADER_BYTES, Record, key_start, range_end};
use crate::format::segment::{BATCH_LINK_OFFSET, BATCH_MOVES, BatchHeader, Seed, u16_at, u32_at, u64_at};
use crate::io::UNIT_BYTES;

const BATCH_MAGIC: &[u8] = b"ABAT";

/// Bytes before the end of a range in the value of its delete.
const LIFE_BYTES: usize = 8;

/// The kinds of records that are about one key.
const KEY_KINDS: [u8; 3] = [Kind::Put as u8, Kind::Delete as u8, Kind::Merge as u8];

/// A finding of a walk over a segment.
pub(super) enum Item<'a> {
    /// A record that checks out.
    Record(Found<'a>),
    /// A batch of this number checks out; the next names its header's checksum. All that was written before has sequences below its first one.
    Batch { number: u64, checksum: u32, first_sequence: u64, time_ms: u64 },
    /// Bytes that look like a record of a damaged batch whose value, or key, is not as it was written.
    Suspect { table: u32, sequence: u64, key: &'a [u8] },
    /// The same of the delete of a range; `end` is the first key that is spared, empty for none.
    SuspectRange { table: u32, sequence: u64, start: &'a [u8], end: &'a [u8] },
    /// Bytes that do not check out, and the number of the batch if its header does. Records in them may have been told;
    /// the lost ones have sequences below the bound, if one is known: 0 where no record is lost.
    Damage { offset: u64, length: u64, batch: Option<u64>, below: Option<u64> },
}

/// A segment's bytes, which may be fewer than they should be.
pub(super) struct Bytes<'a> {
    pub(super) number: u32,
    pub(super) seed: Seed,
    pub(super) bytes: &'a [u8],
    /// Those that the device did not give, which are zeros here.
    pub(super) unread: &'a [Unread],
    /// Everything before this was written, as the manifest says; 0 if that is unknown.
    pub(super) known_end: u64,
}

impl<'a> Bytes<'a> {
    /// Tells everything that is found, front to back.
    pub(super) fn walk(&self, tell: &mut dyn FnMut(Item<'a>)) {
        let mut offset = UNIT_BYTES;
        while offset + UNIT_BYTES <= self.bytes.len() {
            offset = match self.batch(offset) {
                Some((view, header, checksum)) => {
                    let BatchHeader { number, first_sequence, time_ms, .. } = header;
                    tell(Item::Batch { number, checksum, first_sequence, time_ms });
                    view.records().for_each(|found| tell(Item::Record(found)));
                    offset + view.bytes.len()
                }
                None => self.walk_damage(offset, tell),
            };
        }
        if (self.bytes.len() as u64) < self.known_end {
            let offset = self.bytes.len() as u64;
            tell(Item::Damage { offset, length: self.known_end - offset, batch: None, below: None });
        }
    }

    /// The value of a record, wherever in the segment it lies, if it checks out.
    pub(super) fn value_of<'b>(&'b self, found: &Found<'b>) -> Option<&'b [u8]> {
        self.view(0, self.bytes.len(), 0).value(found)
    }

    fn view(&self, from: usize, to: usize, number: u64) -> BatchView<'a> {
        let bytes = &self.bytes[from..to];
        BatchView { bytes, seed: self.seed, segment: self.number, offset: from as u32, number }
    }

    /// The batch at an offset, if all of it checks out.
    fn batch(&self, offset: usize) -> Option<(BatchView<'a>, BatchHeader, u32)> {
        let (header, checksum) = BatchHeader::decode(&self.bytes[offset..], self.seed, offset as u32).ok()?;
        let end = offset + header.length as usize;
        let body = self.bytes.get(offset + BATCH_LINK_OFFSET..end)?;
        let view = self.view(offset, end, header.number);
        let sound =
            self.seed.checksum(body) == header.body_checksum && view.records().count() == header.records as usize;
        sound.then_some((view, header, checksum))
    }

    /// Tries every place from `start` to the next batch; returns where that is.
    fn walk_damage(&self, start: usize, tell: &mut dyn FnMut(Item<'a>)) -> usize {
        let header = self.header(start);
        let mut next = start + UNIT_BYTES;
        while next + UNIT_BYTES <= self.bytes.len() && self.header(next).is_none() {
            next += UNIT_BYTES;
        }
        let following = self.header(next);
        let end = if following.is_some() { next } else { self.bytes.len() };
        // Behind the batch whose header is here there may be others whose headers do not check out.
        let batch_end = header.map_or(start, |header| end.min(start + header.length as usize));
        let (mut found, mut found_behind) = (BTreeSet::new(), false);
        let mut at = start;
        while at < end {
            at += match Record::decode(&self.bytes[at..], self.seed, at as u32) {
                Some(record) => {
                    if at >= batch_end {
                        found_behind = true;
                    } else if record.kind != Kind::Large {
                        found.insert(record.sequence);
                    }
                    tell(Item::Record(self.found(record, at as u32)));
                    record.length().next_multiple_of(RECORD_ALIGNMENT)
                }
                None => {
                    header.iter().for_each(|header| self.suspect(header, &self.bytes[at..end], tell));
                    RECORD_ALIGNMENT
                }
            };
        }
        // Behind the last batch nothing need be: bytes there are of an earlier life.
        let is_known = following.is_some() || found_behind || (batch_end as u64) < self.known_end;
        // What the device does not give may have been anything.
        let damage_end = if is_known { end } else { self.unread_end(batch_end, end) };
        let has_behind = batch_end < damage_end;
        if header.is_some() || has_behind {
            let below = match header {
                Some(header) if !has_behind => Some(lost_below(&header, &found)),
                _ => following.map(|following| following.first_sequence),
            };
            let length = (damage_end.max(batch_end) - start) as u64;
            tell(Item::Damage { offset: start as u64, length, batch: header.map(|header| header.number), below });
        }
        end
    }

    /// Where the last bytes between two offsets end that the device did not give; the first offset if it gave all of them.
    fn unread_end(&self, from: usize, to: usize) -> usize {
        let within = |unread: &Unread| unread.range.start < to as u64 && unread.range.end > from as u64;
        let last = self.unread.iter().rev().find(|unread| within(unread));
        last.map_or(from, |last| to.min(last.range.end as usize))
    }

    fn header(&self, offset: usize) -> Option<BatchHeader> {
        let bytes = self.bytes.get(offset..)?;
        BatchHeader::decode(bytes, self.seed, offset as u32).ok().map(|(header, _)| header)
    }

    /// A record whose checksum is wrong still says which key it was about, if its sequence is one of the batch's.
    fn suspect(&self, header: &BatchHeader, bytes: &'a [u8], tell: &mut dyn FnMut(Item<'a>)) {
        if bytes.len() < RECORD_HEADER_BYTES || header.flags & BATCH_MOVES != 0 {
            return;
        }
        let (sequence, table, kind) = (u64_at(bytes, 16), u32_at(bytes, 12), bytes[4]);
        if !sequences_of(header).contains(&sequence) {
            return;
        }
        let start = key_start(bytes[5]);
        let end = start + usize::from(u16_at(bytes, 6)) + 1;
        let Some(key) = bytes.get(start..end) else { return };
        if KEY_KINDS.contains(&kind) {
            tell(Item::Suspect { table, sequence, key });
        } else if kind == Kind::RangeTombstone as u8 {
            let value = usize::try_from(u32_at(bytes, 8)).ok().and_then(|length| bytes[end..].get(..length));
            if let Some(end) = value.filter(|value| value.len() >= LIFE_BYTES).map(range_end) {
                tell(Item::SuspectRange { table, sequence, start: key, end });
            }
        }
    }

    fn found(&self, record: Record<'a>, offset: u32) -> Found<'a> {
        let (offset, length) = match record.separate {
            Some(separate) => (separate.offset, record.value_length),
            None => (offset, record.length() as u32),
        };
        Found { record, location: Location { segment: self.number, offset, length } }
    }
}

/// The sequences of the records of a batch that is none of moves.
fn sequences_of(header: &BatchHeader) -> Range<u64> {
    header.first_sequence..header.first_sequence + u64::from(header.records)
}

/// No record that a damaged batch has lost has this sequence or a higher one; 0 if all were found.
fn lost_below(header: &BatchHeader, found: &BTreeSet<u64>) -> u64 {
    if found.len() == header.records as usize {
        return 0;
    }
    if header.flags & BATCH_MOVES != 0 {
        // They have the sequences that they had before.
        return header.first_sequence;
    }
    let last = sequences_of(header).rev().find(|sequence| !found.contains(sequence));
    last.map_or(0, |last| last + 1)
}

/// The seed of a segment whose header is lost: that of the batch with the highest number among the batches that check out with
/// any seed. A checksum and the bytes that it is of leave only one seed, and the body must agree.
pub(super) fn seed_without_header(bytes: &[u8]) -> Option<Seed> {
    let mut newest = None;
    for offset in (UNIT_BYTES..bytes.len().saturating_sub(UNIT_BYTES - 1)).step_by(UNIT_BYTES) {
        let at = &bytes[offset..];
        if !at.starts_with(BATCH_MAGIC) {
            continue;
        }
        let Some(seed) = seed_of(u32_at(at, 4), &at[8..BATCH_LINK_OFFSET]).map(Seed::from_cached) else { continue };
        let segment = Bytes { number: 0, seed, bytes, unread: &[], known_end: 0 };
        if let Some((_, header, _)) = segment.batch(offset) {
            newest = newest.max(Some((header.number, seed.to_cached())));
        }
    }
    newest.map(|(_, seed)| Seed::from_cached(seed))
}

/// The checksum before these bytes, given the one after them. The later checksum is linear in the bits of the earlier one,
/// so 32 trials say which bits were set.
fn seed_of(after: u32, bytes: &[u8]) -> Option<u32> {
    let zero = crc32c_append(0, bytes);
    // Each row: some bits before, and the bits that they change after, reduced so that no two rows have the same highest bit.
    let mut rows: [(u32, u32); 32] = [(0, 0); 32];
    for bit in 0..32 {
        let (mut change, mut bits) = (crc32c_append(1 << bit, bytes) ^ zero, 1u32 << bit);
        while change != 0 {
            let row = &mut rows[change.ilog2() as usize];
            if row.0 == 0 {
                *row = (change, bits);
                break;
            }
            (change, bits) = (change ^ row.0, bits ^ row.1);
        }
    }
    let (mut change, mut seed) = (after ^ zero, 0);
    while change != 0 {
        let row = rows[change.ilog2() as usize];
        if row.0 == 0 {
            return None;
        }
        (change, seed) = (change ^ row.0, seed ^ row.1);
    }
    Some(seed)
}

#[cfg(test)]
mod tests {
    use super::seed_of;
    use crate::checksum::crc32c_append;

    #[test]
    fn the_seed_follows_from_a_checksum() {
        let bytes: Vec<u8> = (0..56u8).map(|number| number.wrapping_mul(37)).collect();
        for seed in [0, 1, 0xffff_ffff, 0x8000_0000, 0xdead_beef, 12345] {
            assert_eq!(seed_of(crc32c_append(seed, &bytes), &bytes), Some(seed));
        }
    }
}
