//! What the memtable, the committed chains, range deletes and snapshots say together of a key, or of a range of keys.

use std::io;
use std::ops::RangeBounds;

use super::OrderedIndex;
use crate::cache::Place;
use crate::index::chain::{Superseded, VersionChain};
use crate::index::codec::{Key, encode_key};
use crate::index::memtable::parts::{ChainList, Chains};
use crate::index::memtable::{KeyRange, RangeQuery, Reached};
use crate::index::range_tombstones::RangeTombstone;
use crate::index::runs::lookup::{AwaitedBytes, RunLookup};
use crate::index::runs::scan::RunWalk;
use crate::index::snapshots::View;
use crate::index::versions::insert_seen;
use crate::index::versions::look_up::VersionLookUp;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::{Error, Result};

/// A look-up as far as it has come.
pub(crate) enum LookUp<D: Device> {
    Found(VersionChain),
    /// A block must be read.
    Paused(Box<PausedLookUp<D>>),
}

/// A look-up that waits for a block of a run, or of versions. It holds the files that it sees; whoever has it holds a guard of the epoch.
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
    /// Versions that are to be asked after them, once all runs are. Boxed: most look-ups ask none.
    versions: Option<Box<VersionLookUp>>,
}

impl<D: Device> Default for Asked<D> {
    fn default() -> Asked<D> {
        Asked {
            deleted: 0,
            published: VersionChain::default(),
            chain: VersionChain::default(),
            runs: None,
            versions: None,
        }
    }
}

impl<D: Device> Asked<D> {
    /// The look-up of versions, if it waits for a block.
    fn paused_versions(&self) -> Option<&VersionLookUp> {
        self.versions.as_deref().filter(|versions| versions.is_paused())
    }
}

impl<D: Device> PausedLookUp<D> {
    /// Where the block lies.
    pub(crate) fn awaited(&self) -> AwaitedBytes<'_, D> {
        let Some(versions) = self.asked.paused_versions() else { return self.runs().awaited() };
        let (file, offset, length) = versions.awaited::<D>();
        AwaitedBytes { file, offset, length }
    }

    /// Its place, as the cache of blocks has it. It must be a block of a run.
    pub(crate) fn place(&self) -> Place {
        self.runs().place()
    }

    /// The error of a read of it that failed.
    pub(crate) fn read_error(&self, error: &io::Error) -> Error {
        let of_runs = || self.runs().read_error(error);
        self.asked.paused_versions().map_or_else(of_runs, |versions| versions.read_error(error))
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
    ) -> Result<(ChainList, Reached)> {
        // Newest first, as in a look-up; the range tombstones before everything, since they are forgotten last.
        let deletes = if self.ranges.len() == 0 { Vec::new() } else { self.ranges.all() };
        let query = RangeQuery { range, whole: range, backward, limit, newest: view.sequence, cached: view.cached };
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
        let reached = self.add_version_range(reached, query, &mut above, walk)?;
        let within = reached.part_of(range, backward);
        let mut found = if above.is_empty() { committed } else { merged(above, committed, view.sequence) };
        found.retain_mut(|(key, chain)| {
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

    /// Adds the records of a range that were superseded and that a view sees to those that the memtables have. Says how far that came, of what
    /// the other layers have reached. They are asked last: a record is retained before a layer forgets it.
    fn add_version_range(
        &self,
        reached: Reached,
        query: RangeQuery<'_>,
        above: &mut Chains,
        walk: &mut RunWalk<D>,
    ) -> Result<Reached> {
        let RangeQuery { range, backward, limit, newest, .. } = query;
        if newest == View::LATEST.sequence {
            return Ok(reached);
        }
        let within = reached.part_of(range, backward);
        let (found, found_reached) = self.snapshots.versions_in(within, backward, limit)?;
        for (key, versions) in found {
            insert_seen(&versions, newest, above.entry(key[..].into()).or_default());
        }
        if found_reached == Reached::End || found_reached == reached {
            return Ok(reached);
        }
        // The walk has passed keys that the next step looks for.
        *walk = RunWalk::default();
        Ok(found_reached)
    }

    /// The records of a key that are committed, also those that a range delete hides.
    pub(crate) fn committed_chain(&self, table: u32, key: &[u8]) -> Result<VersionChain> {
        let (key, mut chain) = (encode_key(table, key), VersionChain::default());
        if let Some(mut runs) = self.committed.begin_lookup(&key, View::LATEST.sequence, &mut chain)? {
            runs.finish(&key, &mut chain)?;
        }
        Ok(chain)
    }

    pub(super) fn chain(&self, key: &[u8], view: &View) -> Result<VersionChain> {
        let mut asked = Asked::default();
        self.begin(key, view, &mut asked)?;
        self.finish(key, view, &mut asked)?;
        Ok(asked.chain)
    }

    /// Begins to look a key up for a view, until a block of a run must be read.
    pub(crate) fn begin_lookup(&self, table: u32, key: &[u8], view: &View) -> Result<LookUp<D>> {
        let key = encode_key(table, key);
        let mut asked = Asked::default();
        self.begin(&key, view, &mut asked)?;
        if self.proceed(&key, view, &mut asked)? {
            return Ok(LookUp::Paused(Box::new(PausedLookUp { key, asked })));
        }
        Ok(LookUp::Found(asked.chain))
    }

    /// Goes on until a block must be read; false at the end.
    #[inline]
    fn proceed(&self, key: &[u8], view: &View, asked: &mut Asked<D>) -> Result<bool> {
        if let Some(runs) = &mut asked.runs
            && runs.proceed(key, &mut asked.chain)?
        {
            return Ok(true);
        }
        if !view.is_latest() {
            // Begun after all else was asked: a record is retained before a layer forgets it.
            if asked.versions.is_none() {
                asked.versions = self.snapshots.begin_version_look_up(key).map(Box::new);
            }
            if asked.versions.as_mut().is_some_and(|versions| versions.proceed(key)) {
                return Ok(true);
            }
        }
        Self::end(view, asked);
        Ok(false)
    }

    /// Goes on with the bytes of the block that a look-up waits for, until another one must be read. The view is that of its begin.
    pub(crate) fn resume_lookup(
        &self,
        mut paused: Box<PausedLookUp<D>>,
        bytes: &[u8],
        view: &View,
    ) -> Result<LookUp<D>> {
        let PausedLookUp { key, asked } = &mut *paused;
        match asked.versions.as_mut().filter(|versions| versions.is_paused()) {
            Some(versions) => versions.take_in(key, bytes)?,
            None => {
                let runs = asked.runs.as_mut().expect("what waits for a block asks runs");
                runs.take_in(key, bytes, &mut asked.chain)?;
            }
        }
        if self.proceed(key, view, asked)? {
            return Ok(LookUp::Paused(paused));
        }
        Ok(LookUp::Found(paused.asked.chain))
    }

    /// Goes on to the end: the calling thread reads the blocks.
    pub(crate) fn finish_lookup(&self, mut paused: Box<PausedLookUp<D>>, view: &View) -> Result<VersionChain> {
        let PausedLookUp { key, asked } = &mut *paused;
        self.finish(key, view, asked)?;
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

    /// Goes on to the end, with what the view sees: the calling thread reads blocks.
    fn finish(&self, key: &[u8], view: &View, asked: &mut Asked<D>) -> Result<()> {
        if let Some(runs) = &mut asked.runs {
            runs.finish(key, &mut asked.chain)?;
        }
        if !view.is_latest() {
            if asked.versions.is_none() {
                asked.versions = self.snapshots.begin_version_look_up(key).map(Box::new);
            }
            asked.versions.as_mut().map_or(Ok(()), |versions| versions.finish(key))?;
        }
        Self::end(view, asked);
        Ok(())
    }

    /// Makes of what was found what the view sees.
    #[inline]
    fn end(view: &View, asked: &mut Asked<D>) {
        if !view.is_latest() {
            Self::add_versions(view, asked);
        }
        if asked.deleted > 0 {
            asked.chain.cut(asked.deleted, &mut Superseded::new());
        }
    }

    /// Adds the records of a key that were superseded and that a snapshot sees, to those that a look-up has found in the memtables, and in
    /// all layers. They are asked last, and count before committed ones: of a record that was moved and then superseded, a run may have
    /// nothing but the earlier copy, which nobody protects any more.
    fn add_versions(view: &View, asked: &mut Asked<D>) {
        let published = std::mem::take(&mut asked.published);
        let versions = asked.versions.as_ref().map_or(&[][..], |versions| &versions.found()[..]);
        if planted::is_on(Bug::OperandHidesWhatWasMade) {
            insert_seen(versions, view.sequence, &mut asked.chain);
            return;
        }
        let found = std::mem::replace(&mut asked.chain, published);
        insert_seen(versions, view.sequence, &mut asked.chain);
        asked.chain.add_below(&found, view.sequence);
    }
}

/// The keys of both layers in order, each with what the upper one has of it first.
fn merged(above: Chains, below: ChainList, newest: u64) -> ChainList {
    let mut found = Vec::with_capacity(above.len() + below.len());
    let mut below = below.into_iter().peekable();
    for (key, mut chain) in above {
        while let Some(earlier) = below.next_if(|(other, _)| *other < key) {
            found.push(earlier);
        }
        if let Some((_, under)) = below.next_if(|(other, _)| *other == key) {
            chain.add_below(&under, newest);
        }
        found.push((key, chain));
    }
    found.extend(below);
    found
}
