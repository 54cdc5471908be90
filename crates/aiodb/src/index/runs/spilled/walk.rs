//! Walks through all runs of a set at once, tag by tag: what newer runs have under a tag comes first, and a floor ends it.

use std::ops::{Bound, Range};
use std::sync::Arc;

use super::super::cursor::RunCursor;
use super::super::set::RunSet;
use super::tables::{Below, SpilledTable};
use super::tag::places_of;
use crate::Result;
use crate::cache::Cache;
use crate::index::codec::{hash_of_tag_key, tag_key};
use crate::index::hash::{SHARDS, TagPlaces, first_hash_of, shard_of};
use crate::io::Device;
use crate::planted::{self, Bug};

/// A walk through runs of one table.
pub(super) struct TagWalk {
    /// Newest first.
    cursors: Vec<RunCursor>,
}

impl TagWalk {
    /// A walk for a merge of some runs.
    pub(super) fn merging<D: Device>(set: &RunSet<D>, runs: Range<usize>) -> Result<TagWalk> {
        let cursors = runs.map(|run| RunCursor::merging(set, run, set.runs[run].all())).collect::<Result<_>>()?;
        Ok(TagWalk { cursors })
    }

    /// A walk through what some runs have from the first tag of a shard on. A cache is asked for its first blocks.
    pub(super) fn from_shard<D: Device>(
        set: &RunSet<D>,
        table: u32,
        runs: Range<usize>,
        shard: usize,
        cache: Option<&Arc<Cache>>,
    ) -> Result<TagWalk> {
        let start = tag_key(table, first_hash_of(shard));
        let from = Bound::Included(&start[..]);
        let cursor = |run: usize| RunCursor::scanning(set, run, set.runs[run].all(), false, from, cache.cloned());
        Ok(TagWalk { cursors: runs.map(cursor).collect::<Result<_>>()? })
    }

    /// The hash of the next tag.
    pub(super) fn hash(&self) -> Option<u64> {
        self.cursors.iter().filter_map(RunCursor::key).min().and_then(hash_of_tag_key)
    }

    /// What counts under the next tag.
    pub(super) fn next<D: Device>(&mut self, set: &RunSet<D>) -> Result<Option<TagPlaces>> {
        let Some(key) = self.cursors.iter().filter_map(RunCursor::key).min().map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        let hash = hash_of_tag_key(&key).unwrap_or_default();
        let mut tag = TagPlaces { hash, ..TagPlaces::default() };
        for cursor in self.cursors.iter_mut().filter(|cursor| cursor.key() == Some(&key[..])) {
            if !tag.has_floor || planted::is_on(Bug::FloorPassed) {
                let chain = cursor.take(set)?;
                let (places, has_floor) = places_of(&chain);
                tag.places.extend(places);
                tag.has_floor |= has_floor;
            }
            cursor.advance(set)?;
        }
        Ok(Some(tag))
    }

    /// Bytes of the blocks that it has looked at.
    pub(super) fn visited_bytes(&self) -> u64 {
        self.cursors.iter().map(RunCursor::visited_bytes).sum()
    }
}

impl<D: Device> SpilledTable<D> {
    /// What the runs below the memory of a shard have under each of its tags, in their order. Shards of a small table share blocks, which the
    /// cache has then.
    pub(crate) fn tags_of_shard(&self, below: &Below<D>, shard: usize, cache: &Arc<Cache>) -> Result<Vec<TagPlaces>> {
        debug_assert!(shard < SHARDS, "there is no shard {shard}");
        let set = Arc::clone(&below.0);
        let mut walk = TagWalk::from_shard(&set, self.table, 0..set.runs.len(), shard, Some(cache))?;
        let mut tags = Vec::new();
        while walk.hash().is_some_and(|hash| shard_of(hash) == shard) {
            tags.extend(walk.next(&set)?);
        }
        Ok(tags)
    }
}
