//! The records of a `hash` table: the index is copied piece by piece, and each piece is read in the order of the log.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::fetch::Fetch;
use crate::Result;
use crate::format::location::Location;
use crate::index::codec::{HASHED_KEY_PREFIX_BYTES, hashed_key, prefix_key};
use crate::index::hash::{SHARDS, first_hash_of};
use crate::index::memtable::Reached;
use crate::io::Device;
use crate::store::catalog::TableIndex;

/// Locations copied from the index at a time, unless one shard has more: about 50 MB.
const MAX_COPIED: usize = 4 << 20;

/// Keys whose records are retained for snapshots, of the same shards, unless one shard has more.
const MAX_SUPERSEDED: usize = 256 << 10;

/// So many of them are asked for at a time.
const LISTED_PER_STEP: usize = 4096;

/// Locations added in one step.
const LOCATIONS_PER_STEP: usize = 256;

/// A walk through the shards.
#[derive(Default)]
pub(super) struct Unordered {
    next_shard: usize,
    /// Places that are alone under their tag, last first.
    single: Vec<Location>,
    /// Places that share a tag.
    shared: Vec<Vec<Location>>,
    /// Keys of these shards of which the index may have forgotten records. They are read key by key...
    superseded: BTreeSet<Vec<u8>>,
    /// ...and left out where a place leads to them.
    listed: Option<Arc<BTreeSet<Vec<u8>>>>,
}

impl Unordered {
    /// Adds some records; false when there are no more.
    pub(super) fn add_some<D: Device>(&mut self, fetch: &mut Fetch<D>) -> Result<bool> {
        if let Some(places) = self.shared.pop() {
            for key in fetch.keys_at(&places)? {
                self.superseded.remove(&key);
                fetch.add_key(&key);
            }
            return Ok(true);
        }
        if !self.single.is_empty() {
            let from = self.single.len().saturating_sub(LOCATIONS_PER_STEP);
            for location in self.single.drain(from..).rev() {
                fetch.add_place(location, self.listed.clone());
            }
            return Ok(true);
        }
        if let Some(key) = self.superseded.pop_first() {
            fetch.add_key(&key);
            return Ok(true);
        }
        if self.next_shard == SHARDS {
            return Ok(false);
        }
        self.copy_shards(fetch)?;
        Ok(true)
    }

    fn copy_shards<D: Device>(&mut self, fetch: &Fetch<D>) -> Result<()> {
        let TableIndex::Hash(index) = &fetch.generation.index else { unreachable!("only hash tables are unordered") };
        while self.next_shard < SHARDS && self.single.len() < MAX_COPIED && self.superseded.len() < MAX_SUPERSEDED {
            index.for_each_run(self.next_shard, &mut |run| match run {
                [location] => self.single.push(*location),
                run => self.shared.push(run.to_vec()),
            });
            // Asked after the index: a record is retained before the index forgets it.
            self.add_superseded(fetch)?;
            self.next_shard += 1;
        }
        self.listed = (!self.superseded.is_empty()).then(|| Arc::new(self.superseded.clone()));
        self.single.sort_unstable_by(|one, other| other.cmp(one));
        Ok(())
    }

    /// Lists the keys of the next shard of which records are retained.
    fn add_superseded<D: Device>(&mut self, fetch: &Fetch<D>) -> Result<()> {
        let (table, snapshots) = (fetch.generation.id, &fetch.engine.snapshots);
        let start = |shard: usize| match shard {
            SHARDS => prefix_key(table + 1, &[]),
            shard => hashed_key(table, first_hash_of(shard), &[]),
        };
        let (mut from, to) = (Bound::Included(start(self.next_shard)), start(self.next_shard + 1));
        loop {
            let range = (from.as_ref().map(Vec::as_slice), Bound::Excluded(&*to));
            let (keys, reached) = snapshots.versions_in(range, false, LISTED_PER_STEP)?;
            self.superseded.extend(keys.iter().map(|(key, _)| key[HASHED_KEY_PREFIX_BYTES..].to_vec()));
            let Reached::Key(last) = reached else { return Ok(()) };
            from = Bound::Excluded(last.into());
        }
    }
}
