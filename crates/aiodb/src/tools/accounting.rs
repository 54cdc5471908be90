//! A recount of live bytes, to compare the counters with. For tests: the counters only choose which segments reclaim empties,
//! so a wrong one shows as space that never comes back. The same of the memory of `hash` tables, whose part of the budget it is.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::format::place::footprint;
use crate::format::record::decode_chunks;
use crate::index::accounting::Accounting;
use crate::index::chain::Entry;
use crate::index::codec::prefix_key;
use crate::index::hash::{HashIndex, SHARDS, hash_location};
use crate::index::memtable::Reached;
use crate::index::runs::scan::RunWalk;
use crate::index::snapshots::View;
use crate::io::Device;
use crate::store::catalog::{Generation, TableIndex};
use crate::store::upkeep::Upkeep;
use crate::{Db, IndexKind, Result};

/// Keys of an ordered index that are looked at in one transaction.
const KEYS_PER_VISIT: usize = 1000;

/// The records and bytes that the indexes refer to in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Live {
    records: i64,
    bytes: i64,
    chunk_bytes: i64,
}

impl<D: Device> Db<D> {
    /// Counts the records that the indexes refer to in each segment, and says in words where the counters differ. Makes a checkpoint
    /// first. Nothing else may use the store or hold a snapshot meanwhile.
    #[doc(hidden)]
    pub fn recount(&self) -> Result<Vec<String>> {
        self.engine().check_open()?;
        self.engine().recount()
    }
}

impl<D: Device> Upkeep<D> {
    fn recount(&self) -> Result<Vec<String>> {
        while !self.purge_some()? {}
        // The memtable of an ordered index has entries beside the committed ones that they will replace.
        self.checkpoint()?;
        // Records that a range delete hides are counted until it is carried out.
        while self.carry_out_ranges()? {}
        let mut counted: BTreeMap<u32, Live> = BTreeMap::new();
        for generation in self.catalog.generations() {
            match &generation.index {
                TableIndex::Hash(index) => self.count_hash(&generation, index, &mut counted)?,
                TableIndex::Ordered if generation.kind() == IndexKind::Lsm => {}
                TableIndex::Ordered => self.count_ordered(&generation, &mut counted)?,
            }
        }
        let mut differences = self.count_runs(&mut counted)?;
        differences.extend(self.differences(&counted));
        differences.extend(self.miscounted_slots());
        Ok(differences)
    }

    /// Says of which `hash` tables the slots take another part of the budget than they have memory.
    fn miscounted_slots(&self) -> Vec<String> {
        let mut out = Vec::new();
        for generation in self.catalog.generations() {
            let TableIndex::Hash(index) = &generation.index else { continue };
            let (counted, there_are) = (index.held_bytes(), index.memory_bytes() as u64);
            if counted != there_are {
                out.push(format!("slots of table {}: counted {counted} bytes, there are {there_are}", generation.id));
            }
        }
        out
    }

    fn count_hash(&self, generation: &Generation, index: &HashIndex, counted: &mut BTreeMap<u32, Live>) -> Result<()> {
        let mut locations = Vec::new();
        for shard in 0..SHARDS {
            self.for_each_places(generation, index, shard, &mut |places| locations.extend_from_slice(places))?;
        }
        for location in locations {
            let mut list = Vec::new();
            self.with_record(location, &mut |record| {
                list.extend_from_slice(if record.form.chunked { record.value } else { &[] });
            })?;
            let location = hash_location(location);
            count(counted, location.segment, footprint(location.length), &list);
        }
        Ok(())
    }

    /// Counts what runs hold, superseded entries too, but for those whose segment was emptied. Chunks are counted by the files of runs:
    /// those of entries that a merge has taken in already are among them until their file goes. Says where they count too few, and which records
    /// count twice.
    fn count_runs(&self, counted: &mut BTreeMap<u32, Live>) -> Result<Vec<String>> {
        let Some(runs) = self.ordered.get(IndexKind::Lsm).and_then(|lsm| lsm.committed.runs()) else {
            return Ok(Vec::new());
        };
        let life_of = |number| self.segments.find(number).map_or(u64::MAX, |segment| segment.life());
        let (mut named, mut by_files) = (BTreeMap::<u32, i64>::new(), BTreeMap::<u32, i64>::new());
        let (mut places, mut twice) = (BTreeSet::new(), Vec::new());
        runs.for_each_entry(&mut |key, entry, next_life| {
            let number = entry.location.segment;
            if !entry.is_delete() && life_of(number) < next_life && self.is_in_use(number) {
                count(counted, number, self.bytes_in_index(key, entry), &[]);
                if !places.insert((number, entry.location.offset, entry.sequence)) {
                    twice.push(format!("segment {number}: record {} counts twice", entry.sequence));
                }
                let chunks = if entry.form.chunked { self.chunks_of(entry) } else { Vec::new() };
                chunks.iter().for_each(|chunk| *named.entry(chunk.segment).or_default() += chunk.bytes);
            }
            Ok(())
        })?;
        for (_, chunks) in runs.live_chunks()?.into_iter().filter(|(_, chunks)| life_of(chunks.segment) == chunks.life)
        {
            counted.entry(chunks.segment).or_default().chunk_bytes += chunks.bytes;
            *by_files.entry(chunks.segment).or_default() += chunks.bytes;
        }
        // Of a segment that is free, nothing is counted.
        named.retain(|number, _| self.is_in_use(*number));
        let too_few =
            named.into_iter().filter(|(number, named)| by_files.get(number).is_none_or(|count| count < named));
        let too_few = too_few
            .map(|(number, named)| format!("segment {number}: runs name {named} bytes of chunks, and count fewer"));
        Ok(too_few.chain(twice).collect())
    }

    fn count_ordered(&self, generation: &Generation, counted: &mut BTreeMap<u32, Live>) -> Result<()> {
        let mut from = Bound::Included(prefix_key(generation.id, &[]));
        let to = prefix_key(generation.id + 1, &[]);
        let (view, mut walk) = (View { cached: false, ..View::LATEST }, RunWalk::default());
        loop {
            let range = (from.as_ref().map(Vec::as_slice), Bound::Excluded(&to[..]));
            let (found, reached) = self.ordered_of(generation).range(range, false, KEYS_PER_VISIT, &view, &mut walk)?;
            let entries = found.iter().flat_map(|(key, chain)| chain.entries().iter().map(move |entry| (key, entry)));
            for (key, entry) in entries {
                let list = if entry.form.chunked { self.read_chunk_list(entry)? } else { Vec::new() };
                count(counted, entry.location.segment, self.bytes_in_index(key, entry), &list);
            }
            match reached {
                Reached::Key(key) => from = Bound::Excluded(key.into()),
                Reached::End => return Ok(()),
            }
        }
    }

    fn bytes_in_index(&self, key: &[u8], entry: &Entry) -> i64 {
        Accounting { counting: self.catalog.counting(), ..Accounting::NONE }.bytes_of(key, entry)
    }

    fn differences(&self, counted: &BTreeMap<u32, Live>) -> Vec<String> {
        use std::sync::atomic::Ordering::Relaxed;
        let mut out = Vec::new();
        for segment in self.segments.in_use() {
            let known = Live {
                records: segment.live_records.load(Relaxed),
                bytes: segment.live_bytes.load(Relaxed),
                chunk_bytes: segment.live_chunks().values().sum(),
            };
            let found = counted.get(&segment.number).copied().unwrap_or_default();
            if known != found {
                out.push(format!("segment {}: counted {known:?}, there are {found:?}", segment.number));
            }
        }
        out
    }
}

/// Counts a record in a segment that takes so many bytes there, and the chunks of its list.
fn count(counted: &mut BTreeMap<u32, Live>, segment: u32, bytes: i64, list: &[u8]) {
    let live = counted.entry(segment).or_default();
    live.records += 1;
    live.bytes += bytes;
    for chunk in decode_chunks(list).map(|(_, chunks)| chunks).unwrap_or_default() {
        counted.entry(chunk.location.segment).or_default().chunk_bytes += footprint(chunk.location.length);
    }
}
