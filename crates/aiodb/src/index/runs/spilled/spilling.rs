//! How places come from memory to a run: first they are written, shard by shard, then each shard gives up what the run has.
//!
//! Others change the index meanwhile. As long as a shard has not given up its places, those in memory count, and the run does not. Then, under
//! the lock of the shard, what is in memory still as it was written goes, and the run counts from there on; where anything has changed
//! under a tag, all of that tag stays in memory, above a floor.
//!
//! A floor needs what older runs have under the tag. Where they cannot be read, the shards take back what they have given up, and the run
//! is removed: a checkpoint cannot be made in between.

use std::sync::Arc;

use super::super::file::{Removals, RunFile};
use super::super::set::RunSet;
use super::super::writer::RunWriter;
use super::tables::{SpilledTable, SpilledTables, set_of};
use super::tag::add;
use super::walk::TagWalk;
use crate::Result;
use crate::format::location::Location;
use crate::format::run::manifest::{ManifestRun, RunManifest};
use crate::index::hash::{HashIndex, SHARDS, TagPlaces, shard_of};
use crate::index::runs::FILE_BYTES;
use crate::io::Device;

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
    /// How many tags memory has given up places of.
    gave_up: usize,
}

/// The shards are giving up their places.
struct GivingUp<D: Device> {
    set: Arc<RunSet<D>>,
    /// `None` where the next shard's part of the run is to be looked for.
    walk: Option<TagWalk>,
    /// So many shards have given up theirs.
    shard: usize,
    /// Whether they take them back, the last shard first.
    takes_back: bool,
}

/// How far a spill has come with a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Progress {
    /// There is more to do.
    Part,
    /// The run is one of the table's.
    Done,
    /// Memory has all again, and the run is gone.
    TakenBack,
}

/// What a spill needs of those who know the records.
pub(crate) struct Above<'a> {
    pub(crate) index: &'a HashIndex,
    /// Whether a place is brought to a run with all older ones under its tag. The answer must not depend on when this is asked, and every
    /// record that is older than an old one must be published.
    pub(crate) is_old: &'a dyn Fn(Location) -> bool,
    /// Pulls up a tag of this hash, with a floor whatever is below; false if the table is gone.
    pub(crate) pull_up: &'a dyn Fn(u64) -> Result<bool>,
    /// Told of each tag whose places come back to memory under others: the writer of those may have found nothing below.
    pub(crate) shares: &'a dyn Fn(u64),
    /// Tags that are written, given up or taken back in one step, unless one shard has more.
    pub(crate) step_tags: usize,
}

impl<D: Device> Spill<D> {
    /// Whether the disk has room for a run of so many places and floors.
    pub(crate) fn has_room(tables: &SpilledTables<D>, slots: usize) -> bool {
        tables.has_room(slots as u64 * PLACE_BYTES)
    }

    /// Begins to bring places of a table to a run. No other spill of this table may be under way.
    pub(crate) fn begin(tables: &SpilledTables<D>, table: u32) -> Spill<D> {
        let runs = tables.table_or_new(table);
        let number = runs.set().manifest.next_run;
        let removals = Arc::clone(&tables.removals);
        Spill { runs, removals, number, shard: 0, output: None, made: Vec::new(), giving_up: None, gave_up: 0 }
    }

    /// Whether shards are giving up places, or take them back: no merge may end, and no checkpoint begin, before that is over.
    pub(crate) fn is_giving_up(&self) -> bool {
        self.giving_up.is_some()
    }

    /// How many tags memory has given up places of.
    pub(crate) fn gave_up(&self) -> usize {
        self.gave_up
    }

    /// Whether shards take back what they have given up.
    pub(crate) fn takes_back(&self) -> bool {
        self.giving_up.as_ref().is_some_and(|giving_up| giving_up.takes_back)
    }

    /// How many shards are to be written or to give up places.
    pub(crate) fn shards_left(&self) -> usize {
        match &self.giving_up {
            Some(giving_up) if giving_up.takes_back => giving_up.shard,
            Some(giving_up) => SHARDS - giving_up.shard,
            None => 2 * SHARDS - self.shard,
        }
    }

    /// Does a bounded part of the work. Where the table is gone it does nothing: the caller then drops the spill.
    pub(crate) fn advance(&mut self, tables: &SpilledTables<D>, above: &Above<'_>) -> Result<Progress> {
        if self.takes_back() {
            return self.take_back_some(above);
        }
        if self.giving_up.is_some() {
            return self.give_up_some(above);
        }
        let mut written = 0;
        while self.shard < SHARDS && written < above.step_tags {
            written += self.write_shard(tables, above)?;
            self.shard += 1;
        }
        if self.shard < SHARDS {
            // Its descriptor may be closed until the next step.
            self.output.as_mut().map_or(Ok(()), RunWriter::flush)?;
            return Ok(Progress::Part);
        }
        self.finish_file()?;
        if self.made.is_empty() {
            return Ok(Progress::Done);
        }
        tables.sync_names()?;
        self.begin_giving_up(above.index);
        Ok(Progress::Part)
    }

    /// Writes what is old of a shard. Returns how many tags that are.
    fn write_shard(&mut self, tables: &SpilledTables<D>, above: &Above<'_>) -> Result<usize> {
        let mut tags = Vec::new();
        above.index.for_each_tag(self.shard, || (), &mut |hash, places, has_floor| {
            let first = places.iter().position(|place| (above.is_old)(*place));
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
        self.giving_up = Some(GivingUp { set, walk: None, shard: 0, takes_back: false });
    }

    /// Has some shards give up what the run has. After an error they take it back.
    fn give_up_some(&mut self, above: &Above<'_>) -> Result<Progress> {
        let giving_up = self.giving_up.as_mut().expect("the caller has looked");
        let mut given = 0;
        while giving_up.shard < SHARDS && given < above.step_tags {
            match giving_up.next_shard(&self.runs, above, &mut self.gave_up) {
                Ok(Some(tags)) => given += tags,
                Ok(None) => return Ok(Progress::Part),
                Err(error) => {
                    giving_up.takes_back = true;
                    return Err(error);
                }
            }
        }
        if giving_up.shard < SHARDS {
            return Ok(Progress::Part);
        }
        let mut layers = self.runs.write();
        // Its filters may have come or gone since it was made.
        let (set, _) = layers.next.take().expect("it is being given places");
        layers.set = set;
        drop(layers);
        self.giving_up = None;
        Ok(Progress::Done)
    }

    /// Has some shards take back what the run has.
    fn take_back_some(&mut self, above: &Above<'_>) -> Result<Progress> {
        let giving_up = self.giving_up.as_mut().expect("the caller has looked");
        let mut taken = 0;
        while giving_up.shard > 0 && taken < above.step_tags {
            taken += giving_up.take_back_last(&self.runs, above)?;
        }
        if giving_up.shard > 0 {
            return Ok(Progress::Part);
        }
        self.made.extend(giving_up.set.runs[0].files.iter().cloned());
        let mut layers = self.runs.write();
        // Who has seen the run must take neither the set without it nor the next run for what he saw.
        let next_run = giving_up.set.manifest.next_run + 1;
        layers.set =
            Arc::new(RunSet::new(RunManifest { next_run, ..layers.set.manifest.clone() }, &layers.set.files()));
        layers.next = None;
        drop(layers);
        self.giving_up = None;
        Ok(Progress::TakenBack)
    }
}

impl<D: Device> GivingUp<D> {
    /// Has the next shard give up what the run has. Returns how many tags that are; `None` if the table is gone.
    /// Those that have are added to `gave_up`.
    fn next_shard(&mut self, runs: &SpilledTable<D>, above: &Above<'_>, gave_up: &mut usize) -> Result<Option<usize>> {
        let shard = self.shard;
        let tags = self.tags_of(shard, runs.table)?;
        loop {
            let count = |tag: &TagPlaces| {
                tag.places.iter().for_each(|place| runs.count(shard, *place, 1));
                *gave_up += 1;
            };
            let unfounded = above.index.take_out(shard, &tags, above.is_old, count, || self.count_in(runs, shard + 1));
            if unfounded.is_empty() {
                self.shard += 1;
                return Ok(Some(tags.len()));
            }
            for hash in unfounded {
                if !(above.pull_up)(hash)? {
                    return Ok(None);
                }
            }
        }
    }

    /// Has the last shard that has given up what the run has take it back. Returns how many tags that are.
    fn take_back_last(&mut self, runs: &SpilledTable<D>, above: &Above<'_>) -> Result<usize> {
        let shard = self.shard - 1;
        self.walk = None;
        let tags = self.tags_of(shard, runs.table)?;
        let count = |tag: &TagPlaces| tag.places.iter().for_each(|place| runs.count(shard, *place, -1));
        let shared = above.index.put_back(shard, &tags, count, || self.count_in(runs, shard));
        shared.into_iter().for_each(above.shares);
        self.shard = shard;
        Ok(tags.len())
    }

    /// What the run has of a shard, to which the walk has come if there is one.
    fn tags_of(&mut self, shard: usize, table: u32) -> Result<Vec<TagPlaces>> {
        let walk = match &mut self.walk {
            Some(walk) => walk,
            none => none.insert(TagWalk::from_shard(&self.set, table, 0..1, shard, None)?),
        };
        let mut tags = Vec::new();
        while walk.hash().is_some_and(|hash| shard_of(hash) == shard) {
            tags.extend(walk.next(&self.set)?);
        }
        Ok(tags)
    }

    /// Has the run count in so many shards.
    fn count_in(&self, runs: &SpilledTable<D>, shards: usize) {
        runs.write().next.as_mut().expect("only this spill ends it").1 = shards;
    }
}

impl<D: Device> Drop for Spill<D> {
    fn drop(&mut self) {
        self.made.iter().for_each(|file| file.set_dropped(&self.removals));
    }
}
