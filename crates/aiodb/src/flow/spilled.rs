//! `hash` tables of which runs have a part: what lies under a tag in memory and in runs together, and how all of it comes to memory.

use std::cell::Cell;

use smallvec::SmallVec;

use crate::Result;
use crate::format::location::Location;
use crate::format::spilled::SpilledLive;
use crate::index::hash::{HashIndex, TagPlaces, shard_of};
use crate::index::runs::spilled::SpilledLookUp;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::store::append_path::AppendPath;
use crate::store::catalog::{Generation, TableIndex};
use crate::store::read_path::ReadPath;

/// Places under one tag, newest first.
pub(crate) type Places = SmallVec<[Location; 4]>;

impl<D: Device> ReadPath<D> {
    /// The places under the tag of a hash in memory, newest first, and a look-up of the runs below, if they may have some.
    pub(crate) fn look_under(
        &self,
        table: u32,
        index: &HashIndex,
        hash: u64,
    ) -> (Places, Option<Box<SpilledLookUp<D>>>) {
        let mut places = Places::new();
        let below = index.lookup_over(hash, &mut places, || self.spilled.below(table, shard_of(hash)));
        let below = below.flatten().and_then(|below| self.spilled.begin_look_up(table, hash, &below));
        (places, below)
    }

    /// All places under the tag of a hash, newest first: the calling thread reads the blocks of runs.
    pub(crate) fn all_places_under(&self, table: u32, index: &HashIndex, hash: u64) -> Result<Places> {
        let (mut places, below) = self.look_under(table, index, hash);
        if let Some(mut look_up) = below {
            look_up.finish()?;
            places.extend(look_up.places());
        }
        Ok(places)
    }

    /// Whether runs may have places under the tag of a hash, below those in memory.
    pub(crate) fn may_be_below(&self, table: u32, hash: u64) -> bool {
        self.spilled.may_have(table, shard_of(hash), hash)
    }

    /// Calls `f` with all places under each tag of a shard, newest first.
    pub(crate) fn for_each_places(
        &self,
        generation: &Generation,
        index: &HashIndex,
        shard: usize,
        f: &mut dyn FnMut(&[Location]),
    ) -> Result<()> {
        let asked_early = planted::is_on(Bug::RunsAskedEarly).then(|| index.has_runs());
        // Asked under the shard's lock: until then the first spill may take places out of it.
        let has_runs = Cell::new(false);
        let before = || {
            has_runs.set(asked_early.unwrap_or_else(|| index.has_runs()));
            has_runs.get().then(|| self.spilled.below(generation.id, shard)).flatten()
        };
        let mut in_memory = Vec::new();
        let below = index.for_each_tag(shard, before, &mut |hash, places, has_floor| match has_runs.get() {
            true => in_memory.push(TagPlaces { hash, places: places.into(), has_floor }),
            false => f(places),
        });
        if !has_runs.get() {
            return Ok(());
        }
        let in_runs = match (self.spilled.table(generation.id), below) {
            (Some(runs), Some(below)) => runs.tags_of_shard(&below, shard, &self.block_cache)?,
            _ => Vec::new(),
        };
        for_each_of_both(in_memory, in_runs, &mut |places| {
            if !places.is_empty() {
                f(places);
            }
        });
        Ok(())
    }

    /// What the places in the runs of a table take of segments.
    pub(crate) fn live_in_runs(&self, generation: &Generation) -> Vec<SpilledLive> {
        self.spilled.table(generation.id).map_or_else(Vec::new, |runs| runs.live())
    }
}

/// Calls `f` with the places under each tag of two lists in the order of tags, those of the first before those of the second, and without
/// these where there is a floor.
fn for_each_of_both(above: Vec<TagPlaces>, below: Vec<TagPlaces>, f: &mut dyn FnMut(&[Location])) {
    let mut below = below.into_iter().peekable();
    for mut tag in above {
        while let Some(only) = below.next_if(|other| other.hash < tag.hash) {
            f(&only.places);
        }
        if let Some(other) = below.next_if(|other| other.hash == tag.hash)
            && !tag.has_floor
        {
            tag.places.extend(other.places);
        }
        f(&tag.places);
    }
    below.for_each(|only| f(&only.places));
}

impl<D: Device> AppendPath<D> {
    /// Has all places under a tag come to memory, and a floor under them, if runs have some; with `must_floor` there is a floor in any case.
    /// Returns all places, newest first. As long as none of them is taken away again, nothing else counts under the tag.
    pub(crate) fn pull_up(
        &self,
        generation: &Generation,
        index: &HashIndex,
        hash: u64,
        must_floor: bool,
    ) -> Result<Places> {
        // All of a table that is gone is taken out of the counts as a whole, in memory first: nothing may come there then.
        let _publisher = self.publishers.pin();
        let (table, shard) = (generation.id, shard_of(hash));
        let mut above = Places::new();
        loop {
            let below =
                index.lookup_over(hash, &mut above, || self.spilled.table(table).map(|runs| (runs.below(shard), runs)));
            let Some((below, runs)) = below.flatten().filter(|_| !generation.is_gone()) else { return Ok(above) };
            let look_up = self.spilled.begin_look_up(table, hash, &below);
            if look_up.is_none() && !must_floor {
                return Ok(above);
            }
            let mut places = Places::new();
            if let Some(mut look_up) = look_up {
                look_up.finish()?;
                places.extend(look_up.places());
            }
            let is_current = || runs.below(shard).is_as(&below);
            let came = |place| runs.count(shard, place, -1);
            if let Some(all) = index.pull_up(hash, &places, must_floor, is_current, came) {
                return Ok(all);
            }
        }
    }

    /// Whether a place is under a tag, in memory or in runs. In runs it comes to memory, since it is about to be changed.
    pub(crate) fn is_in_hash(&self, generation: &Generation, hash: u64, location: Location) -> Result<bool> {
        let TableIndex::Hash(index) = &generation.index else { return Ok(false) };
        if index.contains(hash, location) {
            return Ok(true);
        }
        if !index.has_runs() || planted::is_on(Bug::SpilledNotMoved) {
            return Ok(false);
        }
        // Both at one moment: it may be on its way from one to the other.
        let places = self.all_places_under(generation.id, index, hash)?;
        let is_there = places.iter().any(|place| place.same_place(location));
        if is_there {
            self.pull_up(generation, index, hash, false)?;
        }
        Ok(is_there)
    }
}
