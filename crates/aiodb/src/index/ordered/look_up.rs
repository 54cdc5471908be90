//! What the memtable, the committed chains, range deletes and snapshots say together of a key, or of a range of keys.

use std::ops::{Bound, RangeBounds};

use super::OrderedIndex;
use crate::Result;
use crate::index::chain::{Superseded, VersionChain};
use crate::index::memtable::parts::Chains;
use crate::index::memtable::{KeyRange, RangeQuery, Reached};
use crate::index::range_tombstones::RangeTombstone;
use crate::index::snapshots::View;
use crate::io::Device;
use crate::planted::{self, Bug};

impl<D: Device> OrderedIndex<D> {
    /// The keys of a range of index keys with the records that a view sees: about `limit` keys, from the range's start or,
    /// backward, from its end. Says how far it came. A key whose value was deleted may be among them.
    pub(crate) fn range(
        &self,
        range: KeyRange<'_>,
        backward: bool,
        limit: usize,
        view: &View,
    ) -> Result<(Chains, Reached)> {
        // Newest first, as in a look-up; the range tombstones before everything, since they are forgotten last.
        let deletes = if self.ranges.len() == 0 { Vec::new() } else { self.ranges.all() };
        let query = RangeQuery { range, backward, limit, newest: view.sequence };
        let (mut above, committed, reached) = loop {
            let freezes = self.memtable.freezes();
            let (above, reached) = self.memtable.range(query);
            let (committed, committed_reached) = self.committed.range(query)?;
            if self.memtable.freezes() == freezes {
                break (above, committed, reached.and(committed_reached, backward));
            }
        };
        let within = match &reached {
            Reached::End => range,
            Reached::Key(key) if backward => (Bound::Included(&**key), range.1),
            Reached::Key(key) => (range.0, Bound::Included(&**key)),
        };
        if !view.is_latest() {
            for key in self.snapshots.version_keys(within) {
                above.entry(key).or_default();
            }
            above.iter_mut().for_each(|(key, chain)| self.snapshots.add_versions(key, view, chain));
        }
        // Few keys have entries above the committed ones.
        let mut found = committed;
        for (key, mut chain) in above {
            if let Some(below) = found.get(&key) {
                chain.add_below(below, view.sequence);
            }
            found.insert(key, chain);
        }
        found.retain(|key, chain| {
            if !RangeBounds::<[u8]>::contains(&within, &**key) {
                return false;
            }
            let containing = |range: &&RangeTombstone| range.sequence <= view.sequence && range.contains(key);
            if let Some(delete) = deletes.iter().rev().find(containing) {
                chain.cut(delete.sequence, &mut Superseded::new());
            }
            !chain.is_empty()
        });
        Ok((found, reached))
    }

    pub(super) fn chain(&self, key: &[u8], view: &View) -> Result<VersionChain> {
        // Asked first: a range tombstone is forgotten only after its keys are gone.
        let deleted = self.ranges.newest_containing(key, view.sequence);
        let (mut chain, mut published) = (VersionChain::default(), VersionChain::default());
        loop {
            let freezes = self.memtable.freezes();
            self.memtable.lookup(key, view.sequence, &mut chain);
            if !view.is_latest() {
                published.clone_from(&chain);
            }
            if chain.is_complete() {
                break;
            }
            self.committed.lookup(key, view.sequence, &mut chain)?;
            if self.memtable.freezes() == freezes {
                break;
            }
            chain = VersionChain::default();
        }
        if !view.is_latest() {
            self.add_versions(key, view, published, &mut chain);
        }
        if deleted > 0 {
            chain.cut(deleted, &mut Superseded::new());
        }
        Ok(chain)
    }

    /// Adds the records of a key that were superseded and that a snapshot sees, to those that a look-up has found in the memtables, and in
    /// all layers. They are asked last, and count before committed ones: of a record that was moved and then superseded, a run may have
    /// nothing but the earlier copy, which nobody protects any more.
    fn add_versions(&self, key: &[u8], view: &View, published: VersionChain, chain: &mut VersionChain) {
        if planted::is_on(Bug::OperandHidesWhatWasMade) {
            self.snapshots.add_versions(key, view, chain);
            return;
        }
        let found = std::mem::replace(chain, published);
        self.snapshots.add_versions(key, view, chain);
        chain.add_below(&found, view.sequence);
    }
}
