//! What memory and runs do with each other: places are taken out that a run has, and come back when their tag is in doubt.

use std::ops::Range;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::shard::Shard;
use super::slot::{Slot, TAG_BITS};
use super::{HashIndex, SHARD_BITS, shard_of, tag_of};
use crate::format::location::Location;
use crate::planted::{self, Bug};

/// What lies under a tag: places, newest first, and perhaps a floor under them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TagPlaces {
    /// The bits of the hash that the index knows; the others are 0.
    pub(crate) hash: u64,
    pub(crate) places: SmallVec<[Location; 2]>,
    /// Whether nothing below counts.
    pub(crate) has_floor: bool,
}

impl HashIndex {
    /// Whether there may be places in runs.
    pub(crate) fn has_runs(&self) -> bool {
        self.has_runs.load(Ordering::Relaxed)
    }

    /// Says that there are runs, before the first place leaves memory.
    pub(crate) fn set_has_runs(&self) {
        self.has_runs.store(true, Ordering::Relaxed);
    }

    /// Bytes of memory that the slots take.
    pub(crate) fn slot_bytes(&self) -> u64 {
        self.held.bytes().saturating_sub(size_of_val(&*self.shards) as u64)
    }

    /// Calls `f` with what lies under each tag of a shard, in the order of tags, under the shard's read lock: `f` must not change the index.
    /// What `before` returns was so at the same moment.
    pub(crate) fn for_each_tag<T>(
        &self,
        number: usize,
        before: impl FnOnce() -> T,
        f: &mut dyn FnMut(u64, &[Location], bool),
    ) -> T {
        let shard = self.read(number);
        let before = before();
        let mut places = SmallVec::<[Location; 4]>::new();
        let mut slots = shard.live().peekable();
        while let Some(slot) = slots.next() {
            let (tag, has_floor) = (slot.tag(), slot.is_floor());
            if !has_floor {
                places.push(self.location(slot));
            }
            if slots.peek().is_none_or(|next| next.tag() != tag) {
                f(hash_at(number, tag), &places, has_floor);
                places.clear();
            }
        }
        before
    }

    /// Puts older places under those of the hash's tag, which runs have had, and a floor under them, so that nothing in runs counts under the
    /// tag from then on. Does nothing but look if there is a floor already, or there are no such places.
    ///
    /// `is_current` is asked under the shard's lock whether these are the places in runs still, and `came` told of each that has come from
    /// there; they must not call the index. `None` if the first says no. Else all places under the tag, newest first.
    pub(crate) fn pull_up(
        &self,
        hash: u64,
        below: &[Location],
        must_floor: bool,
        is_current: impl FnOnce() -> bool,
        came: impl FnMut(Location),
    ) -> Option<SmallVec<[Location; 4]>> {
        let tag = tag_of(hash);
        let mut shard = self.write(shard_of(hash));
        let before = shard.memory_bytes();
        let (places, has_floor) = shard.places(tag);
        if !has_floor && !is_current() {
            return None;
        }
        let mut found: SmallVec<[Location; 4]> = places.clone().map(|at| self.location(shard.slot(at))).collect();
        if has_floor || below.is_empty() && !must_floor {
            return Some(found);
        }
        for place in below {
            let end = shard.places(tag).0.end;
            shard.insert(end, self.slot(hash, *place));
        }
        if must_floor || !planted::is_on(Bug::FloorForgotten) {
            let end = shard.run(tag).end;
            shard.insert(end, Slot::floor(tag));
            self.floors.fetch_add(1, Ordering::Relaxed);
        }
        self.held.change(before as u64, shard.memory_bytes() as u64);
        found.extend_from_slice(below);
        below.iter().copied().for_each(came);
        self.count_change(hash);
        Some(found)
    }

    /// Takes out of a shard what a run has by now: of each of these tags the last places, and the floor if they had one. The tags ascend.
    ///
    /// Where other places lie by now at the end of a tag's places, they stay, and a floor under them hides those of the run. The tags that
    /// have none are returned, to be pulled up first; nothing has happened then. A first place that is not `is_old` is another one: its record has
    /// come to where that of the run lay in an earlier life of the segment. `taken` is called for each tag of which places were taken out, then
    /// `done`, all under the shard's lock.
    pub(crate) fn take_out(
        &self,
        number: usize,
        spilled: &[TagPlaces],
        is_old: &dyn Fn(Location) -> bool,
        mut taken: impl FnMut(&TagPlaces),
        done: impl FnOnce(),
    ) -> Vec<u64> {
        let mut shard = self.write(number);
        let (mut ranges, mut of_run, mut unfounded) = (Vec::<Range<usize>>::new(), Vec::new(), Vec::new());
        for tag in spilled {
            let (places, has_floor) = shard.places(tag_of(tag.hash));
            let same_end = self.same_end(&shard, tag, places, has_floor);
            // Those behind the first are older, but may have been moved since.
            if let Some(range) = same_end.filter(|_| tag.places.first().is_none_or(|place| is_old(*place))) {
                ranges.push(range);
                of_run.push(tag);
            } else if !has_floor {
                unfounded.push(tag.hash);
            }
        }
        if !unfounded.is_empty() {
            return unfounded;
        }
        if !ranges.is_empty() {
            let before = shard.memory_bytes();
            *shard = shard.without(&ranges);
            if !planted::is_on(Bug::GivenUpStillCounted) {
                self.held.change(before as u64, shard.memory_bytes() as u64);
            }
        }
        let floors = of_run.iter().filter(|tag| tag.has_floor).count() as u64;
        self.floors.fetch_sub(floors, Ordering::Relaxed);
        of_run.iter().for_each(|tag| taken(tag));
        self.count_change(hash_at(number, 0));
        done();
        unfounded
    }

    /// Puts back into a shard what was taken out of it for a run: under each tag below what has come since, unless a floor says that all of
    /// the tag has come back already. `put` is called for each tag that was put back, then `done`, all under the shard's lock. Returns the hashes
    /// of those under which others have come since.
    pub(crate) fn put_back(
        &self,
        number: usize,
        spilled: &[TagPlaces],
        mut put: impl FnMut(&TagPlaces),
        done: impl FnOnce(),
    ) -> Vec<u64> {
        let mut shared = Vec::new();
        let mut shard = self.write(number);
        let before = shard.memory_bytes();
        for tag in spilled {
            let (above, has_floor) = shard.places(tag_of(tag.hash));
            if has_floor {
                continue;
            }
            if !above.is_empty() {
                shared.push(tag.hash);
            }
            let floor = tag.has_floor.then(|| Slot::floor(tag_of(tag.hash)));
            for slot in tag.places.iter().map(|place| self.slot(tag.hash, *place)).chain(floor) {
                let end = shard.run(tag_of(tag.hash)).end;
                shard.insert(end, slot);
            }
            self.floors.fetch_add(u64::from(tag.has_floor), Ordering::Relaxed);
            put(tag);
        }
        self.held.change(before as u64, shard.memory_bytes() as u64);
        self.count_change(hash_at(number, 0));
        done();
        shared
    }

    /// The positions of the last places of a tag, and of its floor, if they are those of a run.
    fn same_end(&self, shard: &Shard, tag: &TagPlaces, places: Range<usize>, has_floor: bool) -> Option<Range<usize>> {
        let start = places.end.checked_sub(tag.places.len()).filter(|start| *start >= places.start)?;
        let is_same =
            (start..places.end).zip(&tag.places).all(|(at, place)| shard.slot(at) == self.slot(tag.hash, *place));
        let is_same = is_same && has_floor == tag.has_floor || planted::is_on(Bug::SpillUnchecked);
        is_same.then(|| start..places.end + usize::from(has_floor))
    }
}

/// The bits of a hash that a shard and a tag are.
fn hash_at(shard: usize, tag: u64) -> u64 {
    (shard as u64) << (u64::BITS - SHARD_BITS) | tag << (u64::BITS - SHARD_BITS - TAG_BITS)
}
