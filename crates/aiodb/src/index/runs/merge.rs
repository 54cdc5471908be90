//! What several runs make of each key together.

use smallvec::SmallVec;

use super::RunContext;
use super::asking::{Asking, Taken};
use super::counts::Changes;
use super::cursor::RunCursor;
use super::filtering::{EntryMark, Passes};
use super::inputs::Inputs;
use super::set::RunSet;
use crate::Result;
use crate::format::entry::RangeTombstone;
use crate::index::chain::{Entry, Superseded, VersionChain};
use crate::index::codec::table_of;
use crate::io::Device;
use crate::planted::{self, Bug};

/// A merge of runs, or of a part of one, from key to key.
pub(super) struct Merge<'a, D: Device> {
    set: &'a RunSet<D>,
    inputs: Inputs,
    /// Whether no run is older.
    is_oldest: bool,
    /// A table that is left out.
    gone: Option<u32>,
    /// The range tombstones up to this sequence are carried out.
    pub(super) carried_out: u64,
    pub(super) visited_keys: u64,
    pub(super) changes: Changes<'a>,
    /// `None` where no table has a compaction filter.
    pub(super) asking: Option<Asking<'a>>,
}

/// An entry of an input.
struct Occurrence {
    entry: Entry,
    /// The life of its segment. `None` if it does not count: it is a delete, or its segment has begun another life.
    life: Option<u64>,
}

/// The entries of a key in all inputs.
type Occurrences = SmallVec<[Occurrence; 4]>;

/// The range tombstones up to this sequence can be carried out: all of them are known, and no snapshot looks behind one.
pub(super) fn due_ranges(context: &RunContext<'_>, next_sequence: u64) -> u64 {
    context.snapshots.oldest().0.min(next_sequence.saturating_sub(1))
}

/// Takes out the entries that range tombstones up to `due` have deleted.
pub(super) fn cut(
    key: &[u8],
    chain: &mut VersionChain,
    ranges: &[RangeTombstone],
    due: u64,
    superseded: &mut Superseded,
) {
    let contains = |range: &&RangeTombstone| range.sequence <= due && range.contains(key);
    if let Some(range) = ranges.iter().rev().find(contains) {
        chain.cut(range.sequence, superseded);
    }
}

/// Retains superseded entries of a key for snapshots; where a range tombstone came first, it is what superseded them.
pub(super) fn retain(key: &[u8], superseded: &Superseded, context: &RunContext<'_>) {
    if context.snapshots.is_any() {
        context.snapshots.retain_below(key, &context.ranges.until(key, superseded));
    }
}

/// Puts the entries of a newer run on top of those of an older one. Where both have the same record, the newer run has a later
/// copy, or a replay has published it again; a base that an operand of its sequence meets is the fold of that operand.
fn put_on_top(chain: &mut VersionChain, newer: &VersionChain, superseded: &mut Superseded) {
    for entry in newer.entries() {
        let is_part_of =
            |other: &Entry| other.sequence == entry.sequence && (other == entry || other.is_base() && !entry.is_base());
        let is_lost = planted::is_on(Bug::MergeKeepsOlder) && !chain.is_empty();
        if is_lost || chain.entries().iter().any(is_part_of) {
            superseded.push((entry.clone(), entry.sequence));
        } else {
            chain.insert(entry.clone(), superseded);
        }
    }
    if newer.is_partial() {
        chain.set_partial();
    }
}

impl<'a, D: Device> Merge<'a, D> {
    pub(super) fn new(
        set: &'a RunSet<D>,
        cursors: Vec<RunCursor>,
        is_oldest: bool,
        passes: Passes,
        context: &'a RunContext<'a>,
    ) -> Merge<'a, D> {
        let carried_out = due_ranges(context, set.manifest.next_sequence);
        let newest = || context.snapshots.oldest().0;
        let asking = context.filtering.map(|filtering| Asking::new(filtering, passes, newest(), is_oldest));
        let changes = Changes::new(context);
        Merge {
            set,
            inputs: Inputs::new(cursors, false),
            is_oldest,
            gone: None,
            carried_out,
            visited_keys: 0,
            changes,
            asking,
        }
    }

    /// Leaves out a table.
    pub(super) fn leave_out(&mut self, table: u32) {
        self.gone = Some(table);
    }

    /// Bytes of the blocks that were taken in.
    pub(super) fn visited_bytes(&self) -> u64 {
        self.inputs.visited_bytes()
    }

    /// Puts the next key in the place of what is in `key`; false at the end.
    pub(super) fn next_key(&self, key: &mut Vec<u8>) -> bool {
        key.clear();
        let next = self.inputs.key();
        key.extend_from_slice(next.unwrap_or_default());
        next.is_some()
    }

    /// Takes the entries of a key, which is the next one, and counts the changes. Returns what is left of them, perhaps nothing.
    pub(super) fn take(&mut self, key: &[u8]) -> Result<Taken> {
        self.visited_keys += 1;
        let (mut occurrences, mut inputs) = (Occurrences::new(), SmallVec::<[VersionChain; 4]>::new());
        let mut carried = EntryMark::NEVER;
        while let Some(cursor) = self.inputs.at(key) {
            let next_life = cursor.piece(self.set).file.footer.next_life;
            if self.asking.is_some() {
                carried = carried.least(cursor.mark(self.set));
            }
            let chain = cursor.take(self.set)?;
            occurrences.extend(chain.entries().iter().map(|entry| {
                let life = (self.changes.context.life_of)(entry.location.segment);
                let outlives = planted::is_on(Bug::RunEntryOutlivesSegment);
                let counts = !entry.is_delete() && life > 0 && (life < next_life || outlives);
                Occurrence { entry: entry.without_value(), life: counts.then_some(life) }
            }));
            inputs.push(chain);
            self.inputs.advance(self.set, None)?;
        }
        if self.stays(key, &inputs, &occurrences) {
            let chain = inputs.remove(0);
            self.changes.written(key, &chain.entries()[0]);
            self.changes.operands(key, &chain);
            return Ok(Taken { chain, latest_life: occurrences[0].life.unwrap_or(0), carried });
        }
        inputs.iter().for_each(|chain| self.changes.key(key, chain, -1));
        let table = table_of(key);
        if self.is_gone(table) {
            self.remove(key, &occurrences);
            return Ok(Taken::default());
        }
        let chain = self.combine(key, &inputs, &occurrences);
        let taken = Taken { carried, ..self.keep(key, chain, occurrences) };
        if !taken.chain.is_empty() {
            self.changes.key(key, &taken.chain, 1);
            self.changes.operands(key, &taken.chain);
        }
        Ok(taken)
    }

    /// Whether a key is in one input alone, with one entry that has a value, and nothing has deleted it: all counts stay as they are, too.
    fn stays(&self, key: &[u8], inputs: &[VersionChain], occurrences: &Occurrences) -> bool {
        let is_one = inputs.len() == 1 && matches!(&occurrences[..], [one] if one.life.is_some());
        is_one
            && !(self.is_oldest && inputs[0].is_partial())
            && self.set.manifest.ranges.is_empty()
            && !self.is_gone(table_of(key))
    }

    fn is_gone(&self, table: u32) -> bool {
        self.gone == Some(table) || (self.changes.context.accounting.is_gone)(table)
    }

    /// What the inputs, newest first, make of a key.
    fn combine(&self, key: &[u8], inputs: &[VersionChain], occurrences: &Occurrences) -> VersionChain {
        let (mut chain, mut superseded) = (VersionChain::default(), Superseded::new());
        inputs.iter().rev().for_each(|newer| put_on_top(&mut chain, newer, &mut superseded));
        let ranges = &self.set.manifest.ranges;
        cut(key, &mut chain, ranges, self.carried_out, &mut superseded);
        // A delete hides what older runs have from a snapshot that sees it.
        let counts = |entry: &Entry| {
            let hides = entry.is_delete() && !self.is_oldest;
            hides || occurrences.iter().any(|known| known.life.is_some() && known.entry == *entry)
        };
        superseded.retain(|(entry, _)| counts(entry));
        if !planted::is_on(Bug::MergeForgetsVersions) {
            retain(key, &superseded, self.changes.context);
        }
        // Nothing is older.
        let has_all = self.is_oldest || planted::is_on(Bug::MergeDropsDeletes);
        if has_all { chain.without_delete().entries().iter().cloned().collect() } else { chain }
    }

    /// Leaves out the entries that do not count, and counts off those that are not in the chain any more: all but one occurrence
    /// of each that is.
    fn keep(&mut self, key: &[u8], chain: VersionChain, mut occurrences: Occurrences) -> Taken {
        let mut latest_life = 0;
        let mut is_kept = |entry: &Entry| {
            let mut counting = occurrences.iter_mut().filter(|known| known.entry == *entry);
            let life = counting.find_map(|known| known.life.take());
            latest_life = latest_life.max(life.unwrap_or(0));
            life.is_some() || entry.is_delete()
        };
        let mut kept: VersionChain = chain.entries().iter().filter(|entry| is_kept(entry)).cloned().collect();
        if chain.is_partial() {
            kept.set_partial();
        }
        kept.entries().iter().for_each(|entry| self.changes.written(key, entry));
        self.remove(key, &occurrences);
        Taken { chain: kept, latest_life, carried: EntryMark::NEVER }
    }

    /// Leaves out what a filter has given up, as the planted bug has it.
    pub(super) fn leave_out_dropped(&mut self, key: &[u8], chain: &VersionChain) {
        self.changes.key(key, chain, -1);
        for entry in chain.entries() {
            let life = (self.changes.context.life_of)(entry.location.segment);
            self.changes.removed(key, entry, life);
        }
    }

    fn remove(&mut self, key: &[u8], occurrences: &Occurrences) {
        for Occurrence { entry, life } in occurrences {
            if let Some(life) = *life {
                self.changes.removed(key, entry, life);
            }
        }
    }
}
