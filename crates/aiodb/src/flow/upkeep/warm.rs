//! Brings what the modes of tables want in memory there, in steps, as long as the caches have room: values when the store is opened, and when the
//! modes of a table change, and when they are written or read later; blocks of runs then, and when a flush or a merge has written them.

use std::collections::BinaryHeap;
use std::ops::Bound;

use crate::format::location::Location;
use crate::format::record::Kind;
use crate::index::Candidate;
use crate::index::codec::{decode_key, encode_key, prefix_key};
use crate::index::hash::{HashIndex, SHARDS};
use crate::index::memtable::Reached;
use crate::index::runs::scan::RunWalk;
use crate::index::snapshots::View;
use crate::io::Device;
use crate::io::buffer::AlignedBuffer;
use crate::log::State;
use crate::store::catalog::{Generation, TableIndex};
use crate::store::upkeep::Upkeep;
use crate::store::warming::{Listed, Warm};
use crate::{IndexKind, Result};

/// Keys that a step looks at, at most.
const KEYS_PER_STEP: usize = 256;

/// Bytes of the values that it reads, unless one has more.
const BYTES_PER_STEP: usize = 2 << 20;

/// Reads that it makes, at most: no other work of upkeep is done meanwhile.
const READS_PER_STEP: usize = 16;

/// Places of a shard of a `hash` table that are listed at once.
const LISTED_PLACES: usize = 4096;

/// Values that lie no further apart come in one read...
const GAP_BYTES: u32 = 16 << 10;

/// ...of so many bytes at most, unless one value has more.
const READ_BYTES: u32 = 512 << 10;

/// A value that is to be read. A `hash` table does not know its key.
struct Wanted {
    key: Option<Vec<u8>>,
    candidate: Candidate,
}

impl Wanted {
    fn location(&self) -> Location {
        self.candidate.location
    }
}

/// What a step has come to.
enum Warmed {
    /// There is more to do, from here on.
    Until(Warm),
    Wholly,
}

impl<D: Device> Upkeep<D> {
    /// Does a step with blocks of runs, and one with the values of a table that waits. True if there was anything to do.
    pub(crate) fn warm_some(&self) -> Result<bool> {
        let (blocks, values) = (self.warm_blocks(), self.warm_table());
        // What cannot be read is left out, and waits for nothing.
        Ok(blocks? | values?)
    }

    /// Blocks of all tables that want theirs in memory, also those of files that flushes and merges have written since.
    fn warm_blocks(&self) -> Result<bool> {
        let tables = self.block_cache.preferred();
        let Some(ordered) = self.ordered.get(IndexKind::Lsm).filter(|_| !tables.is_empty()) else { return Ok(false) };
        let Some(runs) = ordered.committed.runs().filter(|_| !self.block_cache.is_full_of_preferred()) else {
            return Ok(false);
        };
        self.warming.step_with_blocks(|to| runs.warm_some(to, &tables))
    }

    /// Values of the table that waits longest.
    fn warm_table(&self) -> Result<bool> {
        let Some(warm) = self.warming.take() else { return Ok(false) };
        let Some(generation) = self.catalog.generation(warm.table) else { return Ok(true) };
        if !generation.prefers_values() || !self.cache.is_on() || self.cache.is_full_of_preferred() {
            return Ok(true);
        }
        // A table that cannot be read is left alone: who asks for it learns why.
        let warmed = match &generation.index {
            TableIndex::Ordered => self.warm_ordered(&generation, warm)?,
            TableIndex::Hash(index) => self.warm_hash(&generation, index, warm)?,
        };
        if let Warmed::Until(warm) = warmed {
            self.warming.put_back(warm);
        }
        Ok(true)
    }

    /// The next keys of an ordered table.
    fn warm_ordered(&self, generation: &Generation, warm: Warm) -> Result<Warmed> {
        let _guard = self.epochs.pin();
        let (first, end) = (prefix_key(generation.id, &[]), prefix_key(generation.id + 1, &[]));
        let from = warm.behind.as_deref().map_or(Bound::Included(&*first), Bound::Excluded);
        let (range, mut walk) = ((from, Bound::Excluded(&*end)), RunWalk::default());
        let ordered = self.ordered_of(generation);
        let (found, reached) = ordered.range(range, false, KEYS_PER_STEP, &View::LATEST, &mut walk)?;
        let mut until = match reached {
            Reached::Key(key) => Some(key.to_vec()),
            Reached::End => None,
        };
        let (mut wanted, mut bytes) = (Vec::new(), 0);
        for (index_key, chain) in found {
            let key = decode_key(&index_key).map(|(_, key)| key.to_vec());
            let candidates = chain.candidates(0).filter(|candidate| self.is_to_be_warmed(candidate));
            // Of a key that is not stored whole a get brings the value.
            for candidate in candidates.filter(|_| key.is_some()) {
                bytes += candidate.location.length as usize;
                wanted.push(Wanted { key: key.clone(), candidate });
            }
            if bytes >= BYTES_PER_STEP {
                until = Some(index_key.to_vec());
                break;
            }
        }
        let fitting = fitting(&wanted);
        if fitting < wanted.len() {
            wanted.truncate(fitting);
            let key = wanted[fitting - 1].key.as_ref().expect("in an ordered table it is known");
            until = Some(encode_key(generation.id, key).to_vec());
        }
        self.warm_values(generation, &wanted)?;
        Ok(until.map_or(Warmed::Wholly, |key| Warmed::Until(Warm { behind: Some(key), ..warm })))
    }

    /// The next places of a `hash` table: shard by shard, in each in the order of the log.
    fn warm_hash(&self, generation: &Generation, index: &HashIndex, mut warm: Warm) -> Result<Warmed> {
        let _guard = self.epochs.pin();
        let (mut wanted, mut looked, mut bytes) = (Vec::new(), 0, 0);
        while looked < KEYS_PER_STEP && bytes < BYTES_PER_STEP {
            let Some(Listed { location, life }) = warm.listed.pop() else {
                if warm.shard == SHARDS {
                    break;
                }
                self.list_places(index, &mut warm);
                continue;
            };
            looked += 1;
            let candidate = Candidate { location, known: None };
            if self.is_still_there(location, life) && self.is_to_be_warmed(&candidate) {
                bytes += location.length as usize;
                wanted.push(Wanted { key: None, candidate });
            }
        }
        let fitting = fitting(&wanted);
        // The guard keeps the lives of their segments.
        let listed = |wanted: Wanted| self.listed(wanted.location());
        warm.listed.extend(wanted.drain(fitting..).rev().map(listed));
        self.warm_values(generation, &wanted)?;
        let is_done = warm.shard == SHARDS && warm.listed.is_empty();
        Ok(if is_done { Warmed::Wholly } else { Warmed::Until(warm) })
    }

    /// Lists the places that come next in the shard at which a table has come, or goes on to the next shard. A list serves many steps, since each
    /// one looks at all slots of the shard.
    fn list_places(&self, index: &HashIndex, warm: &mut Warm) {
        let places = next_places(index, warm, LISTED_PLACES);
        match places.last() {
            Some(last) => warm.after = Some(*last),
            None => (warm.shard, warm.after) = (warm.shard + 1, None),
        }
        warm.listed = places.into_iter().rev().map(|location| self.listed(location)).collect();
    }

    fn listed(&self, location: Location) -> Listed {
        Listed { location, life: self.segments.get(location.segment).life() }
    }

    /// Whether a place that was listed under an earlier guard of the epoch still has its record, whether or not that counts: its segment is not to
    /// be used again before the guard of the caller is gone.
    fn is_still_there(&self, location: Location, life: u64) -> bool {
        let segment = self.segments.get(location.segment);
        segment.life() == life && matches!(segment.state(), State::Active | State::Sealed)
    }

    /// Whether a get would find an entry of the cache for it, if there were one. Batches that are not written yet are left out: their values are
    /// in memory, and come to the cache when they are read.
    fn is_to_be_warmed(&self, candidate: &Candidate) -> bool {
        let is_fit = candidate.known.as_ref().is_none_or(|entry| {
            let has_value = matches!(entry.kind, Kind::Put | Kind::Merge);
            has_value && !entry.form.chunked && entry.form.expires_ms.is_none() && entry.inline.is_none()
        });
        let is_written = || {
            let segment = self.segments.find(candidate.location.segment);
            segment.is_some_and(|segment| self.is_written(segment, candidate.location))
        };
        is_fit && !self.has_cached(candidate.location) && is_written()
    }

    /// Reads values into the cache: those that lie near each other together. The caller holds a guard of the epoch.
    fn warm_values(&self, generation: &Generation, wanted: &[Wanted]) -> Result<()> {
        reads_of(wanted).iter().try_for_each(|together| self.warm_together(generation, together))
    }

    /// Reads values of one segment at once.
    fn warm_together(&self, generation: &Generation, wanted: &[&Wanted]) -> Result<()> {
        let start = wanted[0].location();
        let end = |wanted: &&Wanted| wanted.location().offset as usize + self.read_length(wanted.location());
        let length = wanted.iter().map(end).max().map_or(0, |end| end - start.offset as usize);
        let segment = self.segment_of(start)?;
        let mut buffer = AlignedBuffer::new(self.blocks_bytes(start, length));
        let head = self.read_blocks(segment, start, length, &mut buffer)?;
        for Wanted { key, candidate } in wanted {
            let location = candidate.location;
            let at = head + (location.offset - start.offset) as usize;
            let bytes = &buffer[at..at + self.read_length(location)];
            match key {
                Some(key) => self.interpret(generation.id, key, candidate, &View::LATEST, bytes).map(drop)?,
                None => {
                    let record = self.decode(location, bytes)?;
                    self.interpret(generation.id, record.key, candidate, &View::LATEST, bytes).map(drop)?;
                }
            }
        }
        Ok(())
    }
}

/// How many of the values that are first in the order of the index come with few reads: all versions of a key, or none.
fn fitting(wanted: &[Wanted]) -> usize {
    let mut count = wanted.len();
    while count > READS_PER_STEP && reads_of(&wanted[..count]).len() > READS_PER_STEP {
        count = (count / 2).max(READS_PER_STEP);
    }
    let is_of_one_key = |at: usize| wanted[at].key.is_some() && wanted[at].key == wanted[at - 1].key;
    while (1..wanted.len()).contains(&count) && is_of_one_key(count) {
        count += 1;
    }
    count
}

/// Values by the reads with which they come: in the order of the log.
fn reads_of(wanted: &[Wanted]) -> Vec<Vec<&Wanted>> {
    let mut sorted: Vec<&Wanted> = wanted.iter().collect();
    sorted.sort_unstable_by_key(|wanted| order(&wanted.location()));
    let mut reads: Vec<Vec<&Wanted>> = Vec::new();
    for wanted in sorted {
        match reads.last_mut() {
            Some(read) if comes_with(read, wanted) => read.push(wanted),
            _ => reads.push(vec![wanted]),
        }
    }
    reads
}

/// Whether a value comes with a read of these, which lie before it.
fn comes_with(read: &[&Wanted], next: &Wanted) -> bool {
    let ([first, ..], [.., last], next) = (read, read, next.location()) else { return false };
    is_near(&last.location(), &next) && next.offset + next.length - first.location().offset <= READ_BYTES
}

fn is_near(one: &Location, next: &Location) -> bool {
    one.segment == next.segment && next.offset.saturating_sub(one.offset + one.length) <= GAP_BYTES
}

/// The next places of the shard at which a table has come, in the order of the log, at most so many.
fn next_places(index: &HashIndex, warm: &Warm, most: usize) -> Vec<Location> {
    let is_next = |place: &Location| warm.after.is_none_or(|after| order(place) > order(&after));
    // The last one of those that are first so far is on top.
    let mut places = BinaryHeap::with_capacity(most + 1);
    index.for_each_in(warm.shard, &mut |place| {
        if is_next(&place) {
            places.push((order(&place), place.length));
            if places.len() > most {
                places.pop();
            }
        }
    });
    let location = |((segment, offset), length)| Location { segment, offset, length };
    places.into_sorted_vec().into_iter().map(location).collect()
}

/// The order of places in the log's files.
fn order(place: &Location) -> (u32, u32) {
    (place.segment, place.offset)
}
