//! The versions of keys in the sound records of a damaged store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound::{Included, Unbounded};

use xxhash_rust::xxh3::Xxh3;

use crate::format::location::Location;
use crate::format::record::{Form, Record, range_end};

/// The newest sound put or delete of a key.
struct Base {
    sequence: u64,
    deleted: bool,
    written: bool,
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
}

impl Versions {
    /// Notes a put or a delete that is sound. Of two records with one sequence one is a copy of the other; reclaim writes
    /// a delete in the place of an expired record.
    pub(super) fn note_base(&mut self, record: &Record<'_>, deleted: bool) {
        let new = Base { sequence: record.sequence, deleted, written: false };
        let base = self.bases.entry(identify(record.table, record.key)).or_insert(Base { ..new });
        if (base.sequence, base.deleted) < (new.sequence, new.deleted) {
            *base = new;
        }
    }

    /// Notes an operand that is sound.
    pub(super) fn note_operand(&mut self, record: &Record<'_>, location: Location) {
        let identity = identify(record.table, record.key);
        let base = self.bases.entry(identity).or_insert(Base { sequence: 0, deleted: true, written: false });
        if base.sequence < record.sequence {
            let (table, key, form) = (record.table, record.key.into(), record.form);
            let checksum = record.separate.map(|separate| separate.checksum);
            let operand = Operand { table, key, form, location, checksum };
            self.operands.entry((record.sequence, identity)).or_insert(operand);
        }
    }

    /// Notes the delete of a range.
    pub(super) fn note_range(&mut self, record: &Record<'_>) {
        let (start, end) = (record.key.to_vec(), range_end(record.value).to_vec());
        if end.is_empty() || start < end {
            let range = RangeTombstone { sequence: record.sequence, start, end };
            self.ranges.entry(record.table).or_default().push(range);
        }
    }

    /// Notes a record that cannot be used.
    pub(super) fn lose(&mut self, table: u32, key: &[u8], sequence: u64) {
        self.lost.push(LostVersion { table, key: key.to_vec(), sequence });
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
        let base = self.bases.get_mut(&identify(table, key)).expect("what is written was noted");
        !std::mem::replace(&mut base.written, true)
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

    /// How many of the keys that were written have a base older than a sequence.
    pub(super) fn written_before(&self, sequence: u64) -> u64 {
        self.bases.values().filter(|base| base.written && base.sequence < sequence).count() as u64
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
