//! The records that make up a key's value, as an index knows them.

use smallvec::SmallVec;

use super::Candidate;
pub(crate) use crate::format::entry::Entry;
use crate::format::location::Location;
use crate::format::record::Kind;
use crate::merge::Cover;
use crate::planted::{self, Bug};

/// Operands of one key that are worth folding.
pub(crate) const FOLD_AT: usize = 8;

impl Entry {
    /// Whether older records of the key do not matter: it is no operand.
    pub(crate) fn is_base(&self) -> bool {
        self.kind != Kind::Merge
    }

    /// Whether there is no value here.
    pub(crate) fn is_delete(&self) -> bool {
        self.kind == Kind::Delete
    }

    /// The place that a get must read of a put or an operand.
    pub(crate) fn candidate(&self) -> Candidate {
        Candidate { location: self.location, known: Some(self.clone()) }
    }
}

/// An entry to be inserted.
#[derive(Clone, Debug)]
pub(crate) struct NewEntry {
    pub(crate) entry: Entry,
    /// The cover of an operand that is in no layer below, if it has one: others may stand for it, or it for others.
    pub(crate) cover: Option<Cover>,
    /// Whether layers below may have newer entries of the key, as while an index is made again from records that were moved since.
    pub(crate) out_of_order: bool,
}

impl From<Entry> for NewEntry {
    fn from(entry: Entry) -> NewEntry {
        NewEntry { entry, cover: None, out_of_order: false }
    }
}

/// Entries that no longer count, each with the sequence from which on that is so.
pub(crate) type Superseded = SmallVec<[(Entry, u64); 2]>;

/// A key's records that count, newest first: merge operands, then at most one put or delete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionChain {
    entries: SmallVec<[Entry; 1]>,
    /// The covers of operands, by their sequences: only of operands that are in no layer below, from where they would come back.
    covers: Vec<(u64, Cover)>,
    /// A layer below has newer operands than the base here, which is a later copy that was put on top.
    partial: bool,
}

impl VersionChain {
    /// What a run has of a key, newest first.
    pub(crate) fn of_run(entries: SmallVec<[Entry; 1]>, partial: bool) -> VersionChain {
        VersionChain { entries, covers: Vec::new(), partial }
    }

    /// The entries, newest first.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The places that must be read for the key's value, newest first, without the `left_out` newest records. A delete need not
    /// be read, and its place may have another record by now.
    pub(crate) fn candidates(&self, left_out: usize) -> impl Iterator<Item = Candidate> {
        self.entries.iter().skip(left_out).filter(|entry| !entry.is_delete()).map(Entry::candidate)
    }

    /// The newest entry.
    pub(crate) fn newest(&self) -> Option<&Entry> {
        self.entries.first()
    }

    /// Bytes of inline values.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.entries.iter().map(Entry::inline_bytes).sum()
    }

    /// Bytes that lie beside the place of a chain of one entry: inline values, further entries, covers.
    pub(crate) fn beside_bytes(&self) -> usize {
        let entries = if self.entries.spilled() { self.entries.capacity() * size_of::<Entry>() } else { 0 };
        entries + self.covers.capacity() * size_of::<(u64, Cover)>() + self.inline_bytes()
    }

    /// How many of them are operands.
    pub(crate) fn operands(&self) -> usize {
        self.entries.len() - usize::from(self.has_base())
    }

    /// Whether only one operand has to be read.
    pub(crate) fn is_one_operand(&self) -> bool {
        self.operands() == 1 && self.entries[1..].iter().all(Entry::is_delete)
    }

    /// Whether nothing older than these entries matters.
    pub(crate) fn is_complete(&self) -> bool {
        !self.partial && self.has_base()
    }

    fn has_base(&self) -> bool {
        self.entries.last().is_some_and(Entry::is_base)
    }

    /// Puts an entry in the order of sequences. Entries that no longer count, perhaps this one, go to `superseded`. Of
    /// two entries with one sequence the second counts: it is a later copy of the same record.
    pub(crate) fn insert(&mut self, entry: Entry, superseded: &mut Superseded) {
        let (sequence, is_base) = (entry.sequence, entry.is_base());
        let at = self.entries.iter().position(|other| other.sequence <= sequence).unwrap_or(self.entries.len());
        if let Some(base) = self.entries[..at].last().filter(|newer| newer.is_base()) {
            superseded.push((entry, base.sequence));
            return;
        }
        match self.entries.get_mut(at).filter(|other| other.sequence == sequence) {
            Some(copy) if *copy == entry => {}
            Some(copy) => superseded.push((std::mem::replace(copy, entry), sequence)),
            None => self.entries.insert(at, entry),
        }
        if is_base {
            superseded.extend(self.entries.drain(at + 1..).map(|older| (older, sequence)));
            self.covers.retain(|(of, _)| *of > sequence);
            self.partial &= at > 0;
        }
    }

    /// Inserts an operand that is in no layer below, unless a later one stands for it. The operands for which
    /// it stands, or it itself, go to `superseded`.
    pub(crate) fn insert_covering(&mut self, entry: Entry, cover: Cover, superseded: &mut Superseded) {
        let sequence = entry.sequence;
        if let Some((later, _)) = self.covers.iter().find(|(later, of)| *later > sequence && of.covers(&cover)) {
            superseded.push((entry, *later));
            return;
        }
        let is_known = self.entries.iter().any(|other| other.sequence == sequence);
        self.insert(entry.clone(), superseded);
        if is_known || !self.entries.contains(&entry) {
            return;
        }
        let entries = &mut self.entries;
        self.covers.retain(|(older, of)| {
            let stands = *older < sequence && cover.covers(of);
            if stands {
                let at =
                    entries.iter().position(|other| other.sequence == *older).expect("a cover goes with its entry");
                superseded.push((entries.remove(at), sequence));
            }
            !stands
        });
        self.covers.push((sequence, cover));
    }

    /// Whether a layer below may have newer operands than the base here.
    pub(crate) fn is_partial(&self) -> bool {
        self.partial
    }

    /// Notes that a layer below has newer operands than the base here.
    pub(crate) fn set_partial(&mut self) {
        self.partial = true;
    }

    /// Leaves values out that are longer than this; all of them if it is 0.
    pub(crate) fn leave_out_values(&mut self, most: usize) {
        let is_long = |entry: &&mut Entry| most == 0 || entry.inline_bytes() > most;
        self.entries.iter_mut().filter(is_long).for_each(|entry| entry.inline = None);
    }

    /// Adds an entry that is older than all others, and counts.
    pub(crate) fn push_oldest(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Adds the entries of a layer below, up to a sequence.
    pub(crate) fn add_below(&mut self, other: &VersionChain, newest: u64) {
        other.entries.iter().filter(|entry| entry.sequence <= newest).for_each(|entry| self.insert_below(entry));
        self.partial |= other.partial;
    }

    /// [`VersionChain::add_below`] where the layer has given a chain away.
    #[inline]
    pub(crate) fn add_found(&mut self, found: VersionChain, newest: u64) {
        if self.entries.is_empty() && found.newest().is_none_or(|entry| entry.sequence <= newest) {
            self.entries = found.entries;
            self.partial |= found.partial;
        } else {
            self.add_below(&found, newest);
        }
    }

    /// Adds an entry from a layer below, or a superseded one. Of two copies of one record the copy in this chain counts, with one
    /// exception: if it is an operand and the other is a base, the other is the fold of this operand and all older ones. A superseded
    /// fold meets its operand here when its successor has not reached a layer that has the operand still, and perhaps not all older
    /// ones.
    pub(crate) fn insert_below(&mut self, entry: &Entry) {
        let is_made_of =
            |other: &Entry| entry.is_base() && !other.is_base() && !planted::is_on(Bug::OperandHidesWhatWasMade);
        if !self.entries.iter().any(|other| other.sequence == entry.sequence && !is_made_of(other)) {
            self.insert(entry.clone(), &mut Superseded::new());
        }
    }

    /// Takes out the entries that are older than a sequence.
    pub(crate) fn cut(&mut self, sequence: u64, superseded: &mut Superseded) {
        let at = self.entries.iter().position(|entry| entry.sequence < sequence).unwrap_or(self.entries.len());
        superseded.extend(self.entries.drain(at..).map(|older| (older, sequence)));
        self.covers.retain(|(of, _)| *of >= sequence);
    }

    /// The entry at a place, if it has a value.
    pub(crate) fn at_place(&self, location: Location) -> Option<&Entry> {
        self.entries.iter().find(|entry| !entry.is_delete() && entry.location.same_place(location))
    }

    /// Takes off a delete at the end, where nothing older can be.
    pub(crate) fn without_delete(mut self) -> VersionChain {
        if self.entries.last().is_some_and(Entry::is_delete) {
            self.entries.pop();
        }
        self
    }
}

impl FromIterator<Entry> for VersionChain {
    /// The entries must come newest first, as [`VersionChain::entries`] gives them.
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> VersionChain {
        let mut chain = VersionChain::default();
        entries.into_iter().for_each(|entry| chain.push_oldest(entry));
        chain
    }
}

#[cfg(test)]
mod tests;
