//! The versions of keys in the sound records of a damaged store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Included, Unbounded};

use xxhash_rust::xxh3::Xxh3;

use crate::format::entry::Entry;
use crate::format::location::Location;
use crate::format::record::{Form, Kind, Record, range_end};

/// The newest sound put or delete of a key.
struct Base {
    sequence: u64,
    deleted: bool,
    written: bool,
    in_runs: InRuns,
}

impl Base {
    fn new(sequence: u64, deleted: bool) -> Base {
        Base { sequence, deleted, written: false, in_runs: InRuns::default() }
    }
}

/// What the sorted runs have of a key.
#[derive(Clone, Copy, Default)]
struct InRuns {
    /// The records that count.
    this: bool,
    /// Newer ones that are not known.
    newer: bool,
}

/// A merge operand.
pub(super) struct Operand {
    pub(super) table: u32,
    pub(super) key: Box<[u8]>,
    pub(super) form: Form,
    pub(super) location: Location,
    /// Of a separate value.
    pub(super) checksum: Option<u32>,
}

/// A version that is known to have been written but cannot be read.
struct LostVersion {
    table: u32,
    key: Vec<u8>,
    sequence: u64,
}

/// The range deletes of one table: in records older than `sequence` nothing counts from `start` on, up to `end`.
struct RangeTombstone {
    sequence: u64,
    start: Vec<u8>,
    end: Vec<u8>,
}

/// The versions of all keys, as far as they matter.
#[derive(Default)]
pub(super) struct Versions {
    /// By table and key, hashed to 128 bits. Keys that have only operands count as deleted before everything.
    bases: HashMap<u128, Base>,
    /// By sequence: the operands of a key are applied in this order.
    operands: BTreeMap<(u64, u128), Operand>,
    ranges: BTreeMap<u32, Vec<RangeTombstone>>,
    /// For each table: the newest range delete from a key on, 0 for none.
    removed: BTreeMap<u32, BTreeMap<Vec<u8>, u64>>,
    lost: Vec<LostVersion>,
    /// Range deletes that are known to have been written but cannot be read, by table.
    lost_ranges: BTreeMap<u32, Vec<RangeTombstone>>,
}

impl Versions {
    /// Notes a put or a delete that is sound. Of two records with one sequence one is a copy of the other; reclaim writes
    /// a delete in the place of an expired record.
    pub(super) fn note_base(&mut self, record: &Record<'_>, deleted: bool) {
        let base = self.bases.entry(identify(record.table, record.key));
        let base = base.or_insert(Base::new(record.sequence, deleted));
        if (base.sequence, base.deleted) < (record.sequence, deleted) {
            *base = Base::new(record.sequence, deleted);
        }
    }

    /// Notes the records that a file of a sorted run has of a key, newest first, once all records of the log are noted: they were written, though
    /// those of the log may be lost.
    pub(super) fn note_in_runs(&mut self, table: u32, key: &[u8], entries: &[Entry]) {
        let identity = identify(table, key);
        let (Some(base), Some(newest)) = (self.bases.get_mut(&identity), entries.first()) else { return };
        let is_known = |sequence: u64| sequence == base.sequence || self.operands.contains_key(&(sequence, identity));
        let mut counting = entries.iter().map(|entry| entry.sequence).filter(|sequence| *sequence >= base.sequence);
        match (counting.clone().next(), counting.all(is_known)) {
            (None, _) => {}
            (_, true) => base.in_runs.this = true,
            (_, false) => base.in_runs.newer = true,
        }
        match newest.kind {
            Kind::Delete if base.sequence < newest.sequence => {
                *base = Base { in_runs: base.in_runs, ..Base::new(newest.sequence, true) };
            }
            // An operand may be missing because a later one stands for it.
            Kind::Put if base.sequence < newest.sequence && !base.deleted => self.lose(table, key, newest.sequence),
            _ => {}
        }
    }

    /// Notes an operand that is sound.
    pub(super) fn note_operand(&mut self, record: &Record<'_>, location: Location) {
        let identity = identify(record.table, record.key);
        let base = self.bases.entry(identity).or_insert(Base::new(0, true));
        if base.sequence < record.sequence {
            let (table, key, form) = (record.table, record.key.into(), record.form);
            let checksum = record.separate.map(|separate| separate.checksum);
            let operand = Operand { table, key, form, location, checksum };
            self.operands.entry((record.sequence, identity)).or_insert(operand);
        }
    }

    /// Notes the delete of a range.
    pub(super) fn note_range(&mut self, record: &Record<'_>) {
        self.note_removed(record.table, record.sequence, record.key, range_end(record.value));
    }

    /// Notes that a range was deleted at a sequence: up to `end`, or to the table's end if that is empty.
    pub(super) fn note_removed(&mut self, table: u32, sequence: u64, start: &[u8], end: &[u8]) {
        if let Some(range) = RangeTombstone::new(sequence, start, end) {
            self.ranges.entry(table).or_default().push(range);
        }
    }

    /// Notes a record that cannot be used.
    pub(super) fn lose(&mut self, table: u32, key: &[u8], sequence: u64) {
        self.lost.push(LostVersion { table, key: key.to_vec(), sequence });
    }

    /// Notes the delete of a range that cannot be used.
    pub(super) fn lose_range(&mut self, table: u32, sequence: u64, start: &[u8], end: &[u8]) {
        if let Some(range) = RangeTombstone::new(sequence, start, end) {
            self.lost_ranges.entry(table).or_default().push(range);
        }
    }

    /// Applies the noted puts and deletes, once all are noted: forgets operands that do not count.
    pub(super) fn apply_deletes(&mut self) {
        for (table, ranges) in std::mem::take(&mut self.ranges) {
            self.removed.insert(table, newest_by_key(ranges));
        }
        let (bases, removed) = (&self.bases, &self.removed);
        self.operands.retain(|(sequence, identity), operand| {
            let counts = bases.get(identity).is_none_or(|base| base.sequence < *sequence);
            counts && removed_before(removed, operand.table, &operand.key) < *sequence
        });
    }

    /// Whether a put is the newest version of its key, and has not been written.
    pub(super) fn wants(&self, record: &Record<'_>) -> bool {
        let wanted = |base: &Base| base.sequence == record.sequence && !base.deleted && !base.written;
        self.bases.get(&identify(record.table, record.key)).is_some_and(wanted)
            && removed_before(&self.removed, record.table, record.key) < record.sequence
    }

    /// Notes that a version of a key was written. True the first time.
    pub(super) fn set_written(&mut self, table: u32, key: &[u8]) -> bool {
        !std::mem::replace(&mut self.base_mut(table, key).written, true)
    }

    /// Whether a key that is written may have had a newer version among lost records, all of which have sequences below the bound; not if the
    /// runs prove that it had none up to `proven_to`.
    pub(super) fn may_be_superseded(&self, table: u32, key: &[u8], lost_below: u64, proven_to: u64) -> bool {
        let base = self.base(table, key);
        let is_proven = base.in_runs.this && !base.in_runs.newer && lost_below <= proven_to;
        base.sequence < lost_below && !is_proven
    }

    /// Whether the delete of a range that cannot be read was newer than the version of a key that is written.
    pub(super) fn may_be_removed(&self, table: u32, key: &[u8]) -> bool {
        let Some(ranges) = self.lost_ranges.get(&table) else { return false };
        let sequence = self.base(table, key).sequence;
        ranges.iter().any(|range| sequence < range.sequence && range.contains(key))
    }

    fn base(&self, table: u32, key: &[u8]) -> &Base {
        self.bases.get(&identify(table, key)).expect(NOTED)
    }

    fn base_mut(&mut self, table: u32, key: &[u8]) -> &mut Base {
        self.bases.get_mut(&identify(table, key)).expect(NOTED)
    }

    /// The operands that count, in the order in which they were written.
    pub(super) fn take_operands(&mut self) -> Vec<Operand> {
        std::mem::take(&mut self.operands).into_values().collect()
    }

    /// The keys of which a version newer than the one that counts is known to be lost. Asked before the operands are taken.
    pub(super) fn doubtful(&self) -> BTreeSet<(u32, Vec<u8>)> {
        let newer = |lost: &&LostVersion| {
            let identity = identify(lost.table, &lost.key);
            let base = self.bases.get(&identity).map_or(0, |base| base.sequence);
            let known = base.max(removed_before(&self.removed, lost.table, &lost.key));
            known < lost.sequence && !self.operands.contains_key(&(lost.sequence, identity))
        };
        self.lost.iter().filter(newer).map(|lost| (lost.table, lost.key.clone())).collect()
    }

    /// Whether a version of a key was written.
    pub(super) fn is_written(&self, table: u32, key: &[u8]) -> bool {
        self.bases.get(&identify(table, key)).is_some_and(|base| base.written)
    }
}

/// Why a key that is written is always found.
const NOTED: &str = "what is written was noted";

impl RangeTombstone {
    /// `None` for a range that ends before it begins.
    fn new(sequence: u64, start: &[u8], end: &[u8]) -> Option<RangeTombstone> {
        let is_range = end.is_empty() || start < end;
        is_range.then(|| RangeTombstone { sequence, start: start.to_vec(), end: end.to_vec() })
    }

    fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && (self.end.is_empty() || *key < *self.end)
    }
}

/// The newest range delete that hides a key of a table, 0 for none.
fn removed_before(removed: &BTreeMap<u32, BTreeMap<Vec<u8>, u64>>, table: u32, key: &[u8]) -> u64 {
    let steps = removed.get(&table);
    steps
        .and_then(|steps| steps.range::<[u8], _>((Unbounded, Included(key))).next_back())
        .map_or(0, |(_, sequence)| *sequence)
}

/// The newest range delete from each key on: laid over each other, the newest last.
fn newest_by_key(mut ranges: Vec<RangeTombstone>) -> BTreeMap<Vec<u8>, u64> {
    ranges.sort_by_key(|range| range.sequence);
    let mut steps: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for RangeTombstone { sequence, start, end } in ranges {
        let mut spared = if end.is_empty() { BTreeMap::new() } else { steps.split_off(&end) };
        if !end.is_empty() && !spared.contains_key(&end) {
            let before = steps.last_key_value().map_or(0, |(_, sequence)| *sequence);
            spared.insert(end, before);
        }
        steps.split_off(&start);
        steps.insert(start, sequence);
        steps.append(&mut spared);
    }
    steps
}

/// A key of a table in 128 bits: that two keys share them is not to be expected in any store.
fn identify(table: u32, key: &[u8]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(&table.to_le_bytes());
    hash.update(key);
    hash.digest128()
}

#[cfg(test)]
mod tests;
