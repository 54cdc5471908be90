//! What the memtable, the committed chains, range deletes and snapshots say together of a key, or of a range of keys.

use std::io;
use std::ops::RangeBounds;

use super::OrderedIndex;
use crate::cache::Place;
use crate::index::chain::{Superseded, VersionChain};
use crate::index::codec::{Key, encode_key};
use crate::index::memtable::parts::Chains;
use crate::index::memtable::{KeyRange, RangeQuery, Reached};
use crate::index::range_tombstones::RangeTombstone;
use crate::index::runs::lookup::{AwaitedBytes, RunLookup};
use crate::index::runs::scan::RunWalk;
use crate::index::snapshots::View;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::{Error, Result};

/// A look-up as far as it has come.
pub(crate) enum LookUp<D: Device> {
    Found(VersionChain),
    /// A block of a run must be read.
    Paused(Box<PausedLookUp<D>>),
}

/// A look-up that waits for a block of a run. It holds the files of the runs that it sees; whoever has it holds a guard of the epoch.
pub(crate) struct PausedLookUp<D: Device> {
    /// The index key.
    key: Key,
    asked: Asked<D>,
}

/// What a look-up has found so far, and what it has yet to ask.
struct Asked<D: Device> {
    /// The sequence of the newest range tombstone that has the key; 0 if there is none.
    deleted: u64,
    /// What the memtables have, where the view is a snapshot's.
    published: VersionChain,
    chain: VersionChain,
    /// Runs that are to be asked yet.
    runs: Option<RunLookup<D>>,
}

impl<D: Device> Default for Asked<D> {
    fn default() -> Asked<D> {
        Asked { deleted: 0, published: VersionChain::default(), chain: VersionChain::default(), runs: None }
    }
}

impl<D: Device> PausedLookUp<D> {
    /// Where the block lies.
    pub(crate) fn awaited(&self) -> AwaitedBytes<'_, D> {
        self.runs().awaited()
    }

    /// Its place, as the cache of blocks has it.
    pub(crate) fn place(&self) -> Place {
        self.runs().place()
    }

    /// The error of a read of it that failed.
    pub(crate) fn read_error(&self, error: &io::Error) -> Error {
        self.runs().read_error(error)
    }

    fn runs(&self) -> &RunLookup<D> {
        self.asked.runs.as_ref().expect("what waits for a block asks runs")
    }
}

impl<D: Device> OrderedIndex<D> {
    /// The keys of a range of index keys with the records that a view sees: about `limit` keys, from the range's start or,
    /// backward, from its end. Says how far it came. A key whose value was deleted may be among them. The next step of a scan, whose
    /// range begins there, gives the same walk.
    pub(crate) fn range(
        &self,
        range: KeyRange<'_>,
        backward: bool,
        limit: usize,
        view: &View,
        walk: &mut RunWalk<D>,
    ) -> Result<(Chains, Reached)> {
        // Newest first, as in a look-up; the range tombstones before everything, since they are forgotten last.
        let deletes = if self.ranges.len() == 0 { Vec::new() } else { self.ranges.all() };
        let query = RangeQuery { range, backward, limit, newest: view.sequence, cached: view.cached };
        let (mut above, committed, reached) = loop {
            let freezes = self.memtable.freezes();
            let (above, reached) = self.memtable.range(query);
            // No further than the memtables have come: the walk must not pass keys that the next step looks for.
            let range = reached.part_of(range, backward);
            let (committed, committed_reached) = self.committed.range(RangeQuery { range, ..query }, walk)?;
            if self.memtable.freezes() == freezes {
                break (above, committed, reached.and(committed_reached, backward));
            }
            *walk = RunWalk::default();
        };
        let within = reached.part_of(range, backward);
        if !view.is_latest() {
            for key in self.snapshots.version_keys(within) {
                above.entry(key[..].into()).or_default();
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
        let mut asked = Asked::default();
        self.begin(key, view, &mut asked)?;
        if let Some(runs) = &mut asked.runs {
            runs.finish(key, &mut asked.chain)?;
        }
        self.end(key, view, &mut asked);
        Ok(asked.chain)
    }

    /// Begins to look a key up for a view, until a block of a run must be read.
    pub(crate) fn begin_lookup(&self, table: u32, key: &[u8], view: &View) -> Result<LookUp<D>> {
        let key = encode_key(table, key);
        let mut asked = Asked::default();
        self.begin(&key, view, &mut asked)?;
        if let Some(runs) = &mut asked.runs
            && runs.proceed(&key, &mut asked.chain)?
        {
            return Ok(LookUp::Paused(Box::new(PausedLookUp { key, asked })));
        }
        self.end(&key, view, &mut asked);
        Ok(LookUp::Found(asked.chain))
    }

    /// Goes on with the bytes of the block that a look-up waits for, until another one must be read. The view is that of its begin.
    pub(crate) fn resume_lookup(
        &self,
        mut paused: Box<PausedLookUp<D>>,
        bytes: &[u8],
        view: &View,
    ) -> Result<LookUp<D>> {
        let PausedLookUp { key, asked } = &mut *paused;
        let runs = asked.runs.as_mut().expect("what waits for a block asks runs");
        runs.take_in(key, bytes, &mut asked.chain)?;
        if runs.proceed(key, &mut asked.chain)? {
            return Ok(LookUp::Paused(paused));
        }
        self.end(key, view, asked);
        Ok(LookUp::Found(paused.asked.chain))
    }

    /// Goes on to the end: the calling thread reads the blocks.
    pub(crate) fn finish_lookup(&self, mut paused: Box<PausedLookUp<D>>, view: &View) -> Result<VersionChain> {
        let PausedLookUp { key, asked } = &mut *paused;
        asked.runs.as_mut().expect("what waits for a block asks runs").finish(key, &mut asked.chain)?;
        self.end(key, view, asked);
        Ok(paused.asked.chain)
    }

    /// Asks the memtables, and takes the runs that there are then.
    #[inline]
    fn begin(&self, key: &[u8], view: &View, asked: &mut Asked<D>) -> Result<()> {
        // Asked first: a range tombstone is forgotten only after its keys are gone.
        asked.deleted = self.ranges.newest_containing(key, view.sequence);
        loop {
            let freezes = self.memtable.freezes();
            self.memtable.lookup(key, view.sequence, &mut asked.chain);
            if !view.is_latest() {
                asked.published.clone_from(&asked.chain);
            }
            if asked.chain.is_complete() {
                return Ok(());
            }
            asked.runs = self.committed.begin_lookup(key, view.sequence, &mut asked.chain)?;
            if self.memtable.freezes() == freezes {
                return Ok(());
            }
            asked.chain = VersionChain::default();
        }
    }

    /// Makes of what was found what the view sees.
    #[inline]
    fn end(&self, key: &[u8], view: &View, asked: &mut Asked<D>) {
        if !view.is_latest() {
            self.add_versions(key, view, std::mem::take(&mut asked.published), &mut asked.chain);
        }
        if asked.deleted > 0 {
            asked.chain.cut(asked.deleted, &mut Superseded::new());
        }
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
