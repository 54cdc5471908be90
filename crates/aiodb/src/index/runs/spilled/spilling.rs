//! How places come from memory to a run: first they are written, shard by shard, then each shard gives up what the run has.
//!
//! Others change the index meanwhile. As long as a shard has not given up its places, those in memory count, and the run does not. Then, under
//! the lock of the shard, what is in memory still as it was written goes, and the run counts from there on; where anything has changed
//! under a tag, all of that tag stays in memory, above a floor.

use std::sync::Arc;

use super::super::file::{Removals, RunFile};
use super::super::set::RunSet;
use super::super::writer::RunWriter;
use super::tables::{SpilledTable, SpilledTables, set_of};
use super::tag::add;
use super::walk::TagWalk;
use crate::Result;
use crate::format::location::Location;
use crate::format::run::manifest::ManifestRun;
use crate::index::hash::{HashIndex, SHARDS, TagPlaces, shard_of};
use crate::index::runs::FILE_BYTES;
use crate::io::Device;

/// Tags that are written, or given up, in one step, unless one shard has more.
const STEP_TAGS: usize = 32 << 10;

/// Bytes of a run that a place takes, at most, with its part of filters and fences.
const PLACE_BYTES: u64 = 32;

/// A spill under way. Dropped, it leaves nothing behind, unless shards have given up places.
pub(crate) struct Spill<D: Device> {
    runs: Arc<SpilledTable<D>>,
    removals: Arc<Removals>,
    number: u64,
    /// The shard that is written next.
    shard: usize,
    output: Option<RunWriter<D>>,
    made: Vec<Arc<RunFile<D>>>,
    /// Once all is written.
    giving_up: Option<GivingUp<D>>,
}

/// The shards are giving up their places.
struct GivingUp<D: Device> {
    set: Arc<RunSet<D>>,
    /// `None` where the next shard's part of the run is to be looked for.
    walk: Option<TagWalk>,
    shard: usize,
}

impl<D: Device> Spill<D> {
    /// Whether the disk has room for a run of so many places.
    pub(crate) fn has_room(tables: &SpilledTables<D>, places: usize) -> bool {
        tables.has_room(places as u64 * PLACE_BYTES)
    }

    /// Begins to bring places of a table to a run. No other spill of this table may be under way.
    pub(crate) fn begin(tables: &SpilledTables<D>, table: u32) -> Spill<D> {
        let runs = tables.table_or_new(table);
        let number = runs.set().manifest.next_run;
        let removals = Arc::clone(&tables.removals);
        Spill { runs, removals, number, shard: 0, output: None, made: Vec::new(), giving_up: None }
    }

    /// Whether shards are giving up places: no merge may end, and no checkpoint begin, before that is over.
    pub(crate) fn is_giving_up(&self) -> bool {
        self.giving_up.is_some()
    }

    /// Does a bounded part of the work; true once all is done. Of each tag the places from the first one on that `is_old` are brought to the
    /// run: what it says must not depend on when it is asked, and every record that is older than an old one must be published. `pull_up` is
    /// to pull up a tag of this hash, with a floor whatever is below.
    pub(crate) fn advance(
        &mut self,
        tables: &SpilledTables<D>,
        index: &HashIndex,
        is_old: &dyn Fn(Location) -> bool,
        pull_up: &dyn Fn(u64) -> Result<()>,
    ) -> Result<bool> {
        if self.giving_up.is_some() {
            return self.give_up_some(index, pull_up);
        }
        let mut written = 0;
        while self.shard < SHARDS && written < STEP_TAGS {
            written += self.write_shard(tables, index, is_old)?;
            self.shard += 1;
        }
        if self.shard < SHARDS {
            // Its descriptor may be closed until the next step.
            self.output.as_mut().map_or(Ok(()), RunWriter::flush)?;
            return Ok(false);
        }
        self.finish_file()?;
        if self.made.is_empty() {
            return Ok(true);
        }
        tables.sync_names()?;
        self.begin_giving_up(index);
        Ok(false)
    }

    /// Writes what is old of a shard. Returns how many tags that are.
    fn write_shard(
        &mut self,
        tables: &SpilledTables<D>,
        index: &HashIndex,
        is_old: &dyn Fn(Location) -> bool,
    ) -> Result<usize> {
        let mut tags = Vec::new();
        index.for_each_tag(self.shard, || (), &mut |hash, places, has_floor| {
            let first = places.iter().position(|place| is_old(*place));
            if first.is_some() || places.is_empty() {
                let places = places[first.unwrap_or(0)..].into();
                tags.push(TagPlaces { hash, places, has_floor });
            }
        });
        for tag in &tags {
            if self.output.as_ref().is_some_and(|output| output.bytes() >= FILE_BYTES) {
                self.finish_file()?;
            }
            let output = match &mut self.output {
                Some(output) => output,
                none => none.insert(tables.new_writer(self.number)?),
            };
            add(output, self.runs.table, tag, self.number)?;
        }
        Ok(tags.len())
    }

    fn finish_file(&mut self) -> Result<()> {
        let file = self.output.take().map(RunWriter::finish).transpose()?;
        self.made.extend(file);
        Ok(())
    }

    fn begin_giving_up(&mut self, index: &HashIndex) {
        let files = self.made.iter().map(|file| file.name).collect();
        let mut layers = self.runs.write();
        let mut runs = layers.set.manifest.runs.clone();
        runs.insert(0, ManifestRun { number: self.number, files, ..ManifestRun::default() });
        let set = set_of(&layers.set, runs, &self.made);
        layers.next = Some((Arc::clone(&set), 0));
        drop(layers);
        // Before any shard gives up a place.
        index.set_has_runs();
        self.made.clear();
        self.giving_up = Some(GivingUp { set, walk: None, shard: 0 });
    }

    /// Has some shards give up what the run has; true once all have.
    fn give_up_some(&mut self, index: &HashIndex, pull_up: &dyn Fn(u64) -> Result<()>) -> Result<bool> {
        let giving_up = self.giving_up.as_mut().expect("the caller has looked");
        let mut given = 0;
        while giving_up.shard < SHARDS && given < STEP_TAGS {
            let outcome = giving_up.next_shard(&self.runs, index, pull_up);
            // After an error the shard is begun anew.
            given += outcome.inspect_err(|_| giving_up.walk = None)?;
            giving_up.shard += 1;
        }
        if giving_up.shard < SHARDS {
            return Ok(false);
        }
        let mut layers = self.runs.write();
        (layers.set, layers.next) = (Arc::clone(&giving_up.set), None);
        drop(layers);
        self.giving_up = None;
        Ok(true)
    }
}

impl<D: Device> GivingUp<D> {
    /// Has the next shard give up what the run has. Returns how many tags that are.
    fn next_shard(
        &mut self,
        runs: &SpilledTable<D>,
        index: &HashIndex,
        pull_up: &dyn Fn(u64) -> Result<()>,
    ) -> Result<usize> {
        let (shard, mut tags) = (self.shard, Vec::new());
        let walk = match &mut self.walk {
            Some(walk) => walk,
            none => none.insert(TagWalk::from_shard(&self.set, runs.table, 0..1, shard, None)?),
        };
        while walk.hash().is_some_and(|hash| shard_of(hash) == shard) {
            tags.extend(walk.next(&self.set)?);
        }
        loop {
            let count = |tag: &TagPlaces| tag.places.iter().for_each(|place| runs.count(shard, *place, 1));
            let counts_here = || {
                let mut layers = runs.write();
                layers.next.as_mut().expect("only this spill ends it").1 = shard + 1;
            };
            let unfounded = index.take_out(shard, &tags, count, counts_here);
            if unfounded.is_empty() {
                return Ok(tags.len());
            }
            unfounded.into_iter().try_for_each(pull_up)?;
        }
    }
}

impl<D: Device> Drop for Spill<D> {
    fn drop(&mut self) {
        self.made.iter().for_each(|file| file.set_dropped(&self.removals));
    }
}
