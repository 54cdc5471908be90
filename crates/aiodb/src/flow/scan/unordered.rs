//! The records of a `hash` table: the index is copied piece by piece, and each piece is read in the order of the log.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::fetch::Fetch;
use crate::Result;
use crate::budget::{Held, Part};
use crate::format::location::Location;
use crate::index::codec::{HASHED_KEY_PREFIX_BYTES, hashed_key, prefix_key};
use crate::index::hash::{SHARDS, first_hash_of};
use crate::index::memtable::Reached;
use crate::io::Device;
use crate::store::catalog::TableIndex;

/// Bytes of locations copied from the index at a time, unless one shard has more.
const MAX_COPIED_BYTES: usize = 48 << 20;

/// What places that share a tag take beside themselves: where they are, and what the allocator adds.
const SHARED_OVERHEAD: usize = size_of::<Vec<Location>>() + 16;

/// Bytes of keys whose records are retained for snapshots, of the same shards, unless one shard has more.
const MAX_SUPERSEDED_BYTES: usize = 32 << 20;

/// Neither takes more than one part in so many of the store's budget of memory.
const COPIED_SHARE: u64 = 16;

/// What such a key takes beside itself, about.
const SUPERSEDED_OVERHEAD: usize = 64;

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
    /// Bytes of these.
    shared_bytes: usize,
    /// Keys of these shards of which the index may have forgotten records. They are left out where a place leads to them...
    superseded: Arc<BTreeSet<Vec<u8>>>,
    /// ...and read key by key, up to this one by now...
    read_to: Option<Vec<u8>>,
    /// ...but for those that have been read because they share a tag.
    read: BTreeSet<Vec<u8>>,
    /// What the places and keys take.
    held: Option<Held>,
}

impl Unordered {
    /// Adds some records; false when there are no more.
    pub(super) fn add_some<D: Device>(&mut self, fetch: &mut Fetch<D>) -> Result<bool> {
        if let Some(places) = self.shared.pop() {
            for key in fetch.keys_at(&places)? {
                fetch.add_key(&key);
                if self.superseded.contains(&key) {
                    self.read.insert(key);
                }
            }
            return Ok(true);
        }
        if !self.single.is_empty() {
            let from = self.single.len().saturating_sub(LOCATIONS_PER_STEP);
            let listed = (!self.superseded.is_empty()).then(|| Arc::clone(&self.superseded));
            for location in self.single.drain(from..).rev() {
                fetch.add_place(location, listed.clone());
            }
            return Ok(true);
        }
        if let Some(key) = self.next_superseded() {
            if !self.read.remove(&key) {
                fetch.add_key(&key);
            }
            self.read_to = Some(key);
            return Ok(true);
        }
        if self.next_shard == SHARDS {
            return Ok(false);
        }
        self.copy_shards(fetch)?;
        Ok(true)
    }

    /// The next key that is to be read by itself.
    fn next_superseded(&self) -> Option<Vec<u8>> {
        let from = self.read_to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        self.superseded.range::<[u8], _>((from, Bound::Unbounded)).next().cloned()
    }

    fn copy_shards<D: Device>(&mut self, fetch: &Fetch<D>) -> Result<()> {
        let TableIndex::Hash(index) = &fetch.generation.index else { unreachable!("only hash tables are unordered") };
        let (mut superseded, mut superseded_bytes) = (BTreeSet::new(), 0);
        let memory = &fetch.engine.memory;
        let share = usize::try_from(fetch.engine.memory_demand().budget / COPIED_SHARE).unwrap_or(usize::MAX);
        let (most_copied, most_superseded) = (MAX_COPIED_BYTES.min(share), MAX_SUPERSEDED_BYTES.min(share));
        self.shared_bytes = 0;
        while self.next_shard < SHARDS && self.copied_bytes() < most_copied && superseded_bytes < most_superseded {
            let (engine, shard) = (&fetch.engine, self.next_shard);
            engine.for_each_places(&fetch.generation, index, shard, &mut |places| match places {
                [] => {}
                [location] => self.single.push(*location),
                places => {
                    self.shared_bytes += SHARED_OVERHEAD + size_of_val(places);
                    self.shared.push(places.to_vec());
                }
            })?;
            // Asked after the index: a record is retained before the index forgets it.
            superseded_bytes += self.add_superseded(fetch, &mut superseded)?;
            self.next_shard += 1;
        }
        (self.superseded, self.read_to) = (Arc::new(superseded), None);
        let bytes = self.single.capacity() * size_of::<Location>() + self.shared_bytes + superseded_bytes;
        self.held.get_or_insert_with(|| Held::new(&memory.accounts, Part::Buffers, 0)).set(bytes as u64);
        self.single.sort_unstable_by(|one, other| other.cmp(one));
        Ok(())
    }

    /// Bytes of places that have been copied.
    fn copied_bytes(&self) -> usize {
        self.single.len() * size_of::<Location>() + self.shared_bytes
    }

    /// Lists the keys of the next shard of which records are retained. Returns about how many bytes they take.
    fn add_superseded<D: Device>(&self, fetch: &Fetch<D>, superseded: &mut BTreeSet<Vec<u8>>) -> Result<usize> {
        let mut bytes = 0;
        let (table, snapshots) = (fetch.generation.id, &fetch.engine.snapshots);
        let start = |shard: usize| match shard {
            SHARDS => prefix_key(table + 1, &[]),
            shard => hashed_key(table, first_hash_of(shard), &[]),
        };
        let (mut from, to) = (Bound::Included(start(self.next_shard)), start(self.next_shard + 1));
        loop {
            let range = (from.as_ref().map(Vec::as_slice), Bound::Excluded(&*to));
            let (keys, reached) = snapshots.versions_in(range, false, LISTED_PER_STEP)?;
            for key in keys.iter().map(|(key, _)| &key[HASHED_KEY_PREFIX_BYTES..]) {
                bytes += key.len() + SUPERSEDED_OVERHEAD;
                superseded.insert(key.to_vec());
            }
            let Reached::Key(last) = reached else { return Ok(bytes) };
            from = Bound::Excluded(last.into());
        }
    }
}
