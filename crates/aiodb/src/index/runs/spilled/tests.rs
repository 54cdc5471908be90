//! Memory and runs together against a model: places come and go, spills and merges go on meanwhile, and all is loaded again from what a
//! checkpoint has.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use smallvec::SmallVec;

use super::merging::choose;
use super::{Above, Progress, Spill, SpilledMerge, SpilledTables};
use crate::cache::Cache;
use crate::format::location::Location;
use crate::format::place::footprint;
use crate::format::spilled::SpilledManifest;
use crate::index::hash::{HashIndex, SHARDS, TagPlaces, class_bound, known_bits, shard_of};
use crate::io::Device;
use crate::io::sim::{Call, SimDevice};

const SEGMENT_BYTES: u64 = 64 << 10;
const TABLE: u32 = 16;
const DIRECTORY: &str = "/store/index/spilled";

struct World {
    device: SimDevice,
    tables: SpilledTables<SimDevice>,
    index: HashIndex,
    /// Places by hash, newest first.
    model: BTreeMap<u64, Vec<Location>>,
    hashes: Vec<u64>,
    /// How many places there ever were.
    places: u64,
    random: fastrand::Rng,
    spill: Option<(Spill<SimDevice>, u64)>,
    /// What pulling up says where a spill asks for it.
    pulls_up: fn() -> crate::Result<bool>,
    /// How many spills were taken back.
    taken_back: usize,
    /// Tags of a step: few in a third of the worlds, so that others come between the shards.
    step_tags: usize,
    merge: Option<SpilledMerge<SimDevice>>,
    most_runs: usize,
}

/// The place of this number.
fn place(number: u64) -> Location {
    let at = number * 64;
    let (segment, offset) = (at / (SEGMENT_BYTES - 4096), at % (SEGMENT_BYTES - 4096));
    Location { segment: segment as u32, offset: offset as u32 + 4096, length: class_bound(64) }
}

/// The number of a [`place`].
fn number(place: Location) -> u64 {
    (u64::from(place.segment) * (SEGMENT_BYTES - 4096) + u64::from(place.offset) - 4096) / 64
}

fn new_tables(device: &SimDevice) -> SpilledTables<SimDevice> {
    let cache = Cache::of_blocks(1 << 20, 1 << 20).expect("there is memory");
    SpilledTables::new((device, &Arc::default()), DIRECTORY.into(), [7; 16], Arc::new(cache))
}

impl World {
    fn new(seed: u64) -> World {
        let device = SimDevice::new(seed);
        ["/store", "/store/index"].iter().for_each(|path| device.create_dir(Path::new(path)).expect("it runs"));
        let mut random = fastrand::Rng::with_seed(seed);
        // Few shards, and in half of the worlds few tags.
        let tags = if seed.is_multiple_of(2) { 4 } else { 400 };
        let hash = |random: &mut fastrand::Rng| (random.u64(0..4) * 341) << 54 | random.u64(..256) << 46;
        let hashes = (0..tags).map(|_| hash(&mut random)).collect();
        World {
            tables: new_tables(&device),
            device,
            index: HashIndex::new(SEGMENT_BYTES),
            model: BTreeMap::new(),
            hashes,
            places: 0,
            random,
            spill: None,
            pulls_up: || Ok(true),
            taken_back: 0,
            step_tags: if seed.is_multiple_of(3) { 8 } else { 32 << 10 },
            merge: None,
            most_runs: 0,
        }
    }

    fn hash(&mut self) -> u64 {
        self.hashes[self.random.usize(..self.hashes.len())]
    }

    fn next_place(&mut self) -> Location {
        self.places += 1;
        place(self.places - 1)
    }

    fn publish(&mut self) {
        let (hash, place) = (self.hash(), self.next_place());
        self.index.publish(hash, place, number);
        self.model.entry(hash).or_default().insert(0, place);
    }

    /// All places under a tag come to memory, as the engine has it.
    fn pull_up(&self, hash: u64, must_floor: bool) -> crate::Result<SmallVec<[Location; 4]>> {
        pull_up(&self.tables, &self.index, hash, must_floor)
    }

    /// A place of a tag that has any, and the rank of it.
    fn existing(&mut self) -> Option<(u64, usize)> {
        let hash = self.hash();
        let count = self.model.get(&hash).map_or(0, Vec::len);
        (count > 0).then(|| (hash, self.random.usize(..count)))
    }

    fn remove(&mut self) {
        let Some((hash, rank)) = self.existing() else { return };
        let places = self.pull_up(hash, false).expect("it can be read");
        assert_eq!(places.to_vec(), self.model[&hash], "hash {hash:x}");
        let place = self.model.get_mut(&hash).expect("it has places").remove(rank);
        assert!(self.index.remove(hash, place), "a place that was pulled up is in memory");
    }

    fn relocate(&mut self) {
        if let Some((hash, rank)) = self.existing() {
            self.relocate_at(hash, rank);
        }
    }

    fn relocate_at(&mut self, hash: u64, rank: usize) {
        let to = self.next_place();
        self.pull_up(hash, false).expect("it can be read");
        let from = std::mem::replace(&mut self.model.get_mut(&hash).expect("it has places")[rank], to);
        assert!(self.index.replace(hash, from, to).is_some(), "a place that was pulled up is in memory");
    }

    /// A step of a spill, or the beginning of one.
    fn spill(&mut self) -> crate::Result<()> {
        if self.spill.is_none() {
            let before = self.random.u64(0..=self.places);
            self.spill = Some((Spill::begin(&self.tables, TABLE), before));
        }
        let (spill, before) = self.spill.as_mut().expect("just begun");
        let pulls_up = self.pulls_up;
        let pull_up = |hash| match pulls_up()? {
            true => pull_up(&self.tables, &self.index, hash, true).map(|_| true),
            false => Ok(false),
        };
        let is_old = |place| number(place) < *before;
        let (index, step_tags) = (&self.index, self.step_tags);
        let above = Above { index, is_old: &is_old, pull_up: &pull_up, shares: &|_| (), step_tags };
        let progress = spill.advance(&self.tables, &above)?;
        self.taken_back += usize::from(progress == Progress::TakenBack);
        if progress != Progress::Part {
            self.spill = None;
        }
        Ok(())
    }

    /// A step of a merge, or the beginning of one.
    fn merge(&mut self) {
        if self.spill.as_ref().is_some_and(|(spill, _)| spill.is_giving_up()) {
            return;
        }
        let runs = self.tables.table(TABLE).map_or(0, |table| table.runs());
        self.most_runs = self.most_runs.max(runs);
        if self.merge.is_none() {
            self.merge = SpilledMerge::begin(&self.tables, TABLE).expect("the runs can be read");
        }
        if let Some(merge) = &mut self.merge
            && merge.advance(&self.tables, &self.index).expect("the runs can be read")
        {
            self.merge = None;
        }
    }

    /// What a checkpoint has: the shards, and what it says of the runs.
    fn checkpoint(&mut self) -> (Vec<Vec<u8>>, SpilledManifest) {
        while self.spill.as_ref().is_some_and(|(spill, _)| spill.is_giving_up()) {
            self.spill().expect("the runs can be read");
        }
        let obsolete = self.tables.obsolete();
        let table = self.tables.table(TABLE);
        table.iter().for_each(|table| table.begin_checkpoint());
        let mut shards = vec![Vec::new(); SHARDS];
        for (shard, bytes) in shards.iter_mut().enumerate() {
            let note = || table.iter().for_each(|table| table.note_encoded(shard));
            self.index.encode_shard_and(shard, bytes, note);
            if self.random.u8(..) == 0 {
                // Others go on meanwhile: what comes to memory from runs is in neither or in both parts.
                let hash = self.hash();
                self.pull_up(hash, false).expect("it can be read");
            }
        }
        let next_file = self.tables.next_file();
        let manifest = table.map_or_else(SpilledManifest::default, |table| table.end_checkpoint(next_file));
        // From here on it is durable.
        self.tables.release(obsolete);
        (shards, manifest)
    }

    /// A process that dies, and the next one, which finds a checkpoint.
    fn restart(&mut self) {
        let (shards, manifest) = self.checkpoint();
        (self.spill, self.merge) = (None, None);
        self.tables.close();
        self.tables = new_tables(&self.device);
        self.index = HashIndex::new(SEGMENT_BYTES);
        for (shard, bytes) in shards.iter().enumerate() {
            self.index.decode_shard(shard, bytes).expect("it is as it was encoded");
        }
        let mut bytes = Vec::new();
        manifest.encode(&mut bytes);
        let manifest = SpilledManifest::decode(&bytes).expect("it is as it was encoded");
        self.tables.open(TABLE, &manifest, false).expect("the files are there");
        self.index.set_has_runs();
        self.tables.clear(|| Ok(true)).expect("files can be removed");
        let named: usize = manifest.runs.iter().map(|run| run.files.len()).sum();
        let there = self.device.list(Path::new(DIRECTORY)).map_or(0, |names| names.len());
        assert_eq!(there, named, "only what the checkpoint names is left");
    }

    fn check(&self) {
        let mut expected = BTreeMap::<u32, (i64, i64)>::new();
        let mut add = |place: Location, sign: i64| {
            let sum = expected.entry(place.segment).or_default();
            *sum = (sum.0 + sign * footprint(place.length), sum.1 + sign);
        };
        for hash in &self.hashes {
            let places = places(&self.tables, &self.index, *hash);
            assert_eq!(places, self.model.get(hash).cloned().unwrap_or_default(), "hash {hash:x}");
        }
        let memory_bytes = self.index.memory_bytes() - HashIndex::new(SEGMENT_BYTES).memory_bytes();
        assert_eq!(self.index.slot_bytes(), memory_bytes as u64, "what is counted of memory");
        self.model.values().flatten().for_each(|place| add(*place, 1));
        self.index.for_each(&mut |place| add(place, -1));
        expected.retain(|_, sum| *sum != (0, 0));
        let live = self.tables.table(TABLE).map_or_else(Vec::new, |table| table.live());
        let live: BTreeMap<_, _> = live.into_iter().map(|live| (live.segment, (live.bytes, live.records))).collect();
        assert_eq!(live, expected, "what the places in runs take");
        self.check_walk();
    }

    /// What a walk through the shards finds.
    fn check_walk(&self) {
        let Some(table) = self.tables.table(TABLE) else { return };
        for shard in 0..SHARDS {
            let mut above = BTreeMap::new();
            let below = self.index.for_each_tag(shard, || table.below(shard), &mut |hash, places, has_floor| {
                above.insert(hash, (places.to_vec(), has_floor));
            });
            for TagPlaces { hash, places, .. } in
                table.tags_of_shard(&below, shard, &Arc::default()).expect("it can be read")
            {
                let (above, has_floor) = above.entry(hash).or_default();
                above.extend(places.into_iter().filter(|_| !*has_floor));
            }
            let in_shard = |hash: &&u64| shard_of(**hash) == shard;
            for hash in self.hashes.iter().filter(in_shard) {
                let found = above.get(&known_bits(*hash)).map(|(places, _)| places.clone()).unwrap_or_default();
                assert_eq!(found, self.model.get(hash).cloned().unwrap_or_default(), "hash {hash:x}");
            }
        }
    }
}

fn pull_up(
    tables: &SpilledTables<SimDevice>,
    index: &HashIndex,
    hash: u64,
    must_floor: bool,
) -> crate::Result<SmallVec<[Location; 4]>> {
    let (mut above, shard) = (SmallVec::new(), shard_of(hash));
    let below = index.lookup_over(hash, &mut above, || tables.below(TABLE, shard)).flatten();
    let (Some(below), Some(table)) = (below, tables.table(TABLE)) else { return Ok(above) };
    let mut places: SmallVec<[Location; 4]> = SmallVec::new();
    match tables.begin_look_up(TABLE, hash, &below) {
        Some(mut look_up) => {
            look_up.finish()?;
            places.extend(look_up.places());
        }
        None if !must_floor => return Ok(above),
        None => {}
    }
    let came = |place| table.count(shard, place, -1);
    let all = index.pull_up(hash, &places, must_floor, || table.below(shard).is_as(&below), came);
    Ok(all.expect("nobody else changes the runs"))
}

fn places(tables: &SpilledTables<SimDevice>, index: &HashIndex, hash: u64) -> Vec<Location> {
    let mut above = SmallVec::new();
    let below = index.lookup_over(hash, &mut above, || tables.below(TABLE, shard_of(hash))).flatten();
    let look_up = below.and_then(|below| tables.begin_look_up(TABLE, hash, &below));
    let mut places = above.to_vec();
    if let Some(mut look_up) = look_up {
        look_up.finish().expect("it can be read");
        places.extend(look_up.places());
    }
    places
}

/// The seed of a random test: random, or `AIODB_TEST_SEED` to replay a failure.
fn seeds(count: u64) -> impl Iterator<Item = u64> {
    let replayed = std::env::var("AIODB_TEST_SEED").ok().map(|seed| seed.parse::<u64>().expect("a seed is a number"));
    let first = replayed.unwrap_or_else(|| fastrand::u64(..u64::MAX / 2));
    let count = if replayed.is_some() { 1 } else { count };
    (first..first + count).inspect(|seed| println!("replay with AIODB_TEST_SEED={seed}"))
}

#[test]
fn memory_and_runs_are_what_the_model_is() {
    for seed in seeds(6) {
        let mut world = World::new(seed);
        for round in 0..40 {
            for _ in 0..100 {
                match world.random.u8(..32) {
                    0..14 => world.publish(),
                    14..18 => world.remove(),
                    18..20 => world.relocate(),
                    20..26 => world.spill().expect("the machine runs"),
                    26..31 => world.merge(),
                    _ => drop(world.checkpoint()),
                }
            }
            world.check();
            if round % 8 == 7 {
                world.restart();
                world.check();
            }
        }
        assert!(world.most_runs > 1, "there was something to merge");
    }
}

/// A tag that changes between the write of a run and the moment at which its shard gives up places stays in memory, as it is then.
#[test]
fn what_changes_during_a_spill_stays_in_memory() {
    for change in [World::publish, World::remove, World::relocate] {
        let mut world = World::new(2);
        (0..200).for_each(|_| world.publish());
        while world.spill.as_ref().is_none_or(|(spill, _)| !spill.is_giving_up()) {
            world.spill().expect("the machine runs");
        }
        (0..50).for_each(|_| change(&mut world));
        while world.spill.is_some() {
            world.spill().expect("the machine runs");
            world.check();
        }
        (0..50).for_each(|_| change(&mut world));
        world.check();
        world.restart();
        world.check();
    }
}

fn unreadable() -> crate::Result<bool> {
    Err(crate::Error::Closed)
}

/// Where older runs cannot be read, memory takes back what it has given up, whatever has happened to that, and spills go on later.
#[test]
fn a_spill_that_cannot_go_on_is_taken_back() {
    let mut taken_back = 0;
    for seed in seeds(20) {
        let mut world = World::new(seed);
        for round in 0..4 {
            (0..400).for_each(|_| world.publish());
            while world.spill.as_ref().is_none_or(|(spill, _)| !spill.is_giving_up()) {
                world.spill().expect("the machine runs");
            }
            (0..50).for_each(|_| world.relocate());
            world.pulls_up = if round % 2 == 0 { unreadable } else { || Ok(true) };
            while world.spill.is_some() {
                let _ = world.spill();
                (0..5).for_each(|_| world.publish());
                (0..5).for_each(|_| world.remove());
                world.check();
            }
            world.pulls_up = || Ok(true);
        }
        taken_back += world.taken_back;
        world.restart();
        world.check();
    }
    assert!(taken_back > 0, "tags had changed in some of them");
}

/// Who has looked into a run that is taken back then knows nothing of what counts.
#[test]
fn places_of_a_run_that_was_taken_back_are_not_pulled_up() {
    let mut world = World::new(3);
    (0..2000).for_each(|_| world.publish());
    while world.spill.as_ref().is_none_or(|(spill, _)| !spill.is_giving_up()) {
        world.spill().expect("the machine runs");
    }
    // In the last shard.
    let (hash, places) = world.model.last_key_value().expect("there are places");
    let (hash, oldest) = (*hash, places.len() - 1);
    world.relocate_at(hash, oldest);
    world.pulls_up = unreadable;
    while world.spill().is_ok() {}
    let table = world.tables.table(TABLE).expect("it has a run");
    let seen: Vec<_> = (0..SHARDS).map(|shard| table.below(shard)).collect();
    while world.spill.is_some() {
        world.spill().expect("the machine runs");
    }
    assert!(world.taken_back > 0);
    let gave_up = |seen: &&super::tables::Below<SimDevice>| !seen.0.runs.is_empty();
    assert!(seen.iter().filter(gave_up).count() > 0, "some shard had given up");
    for (shard, below) in seen.iter().enumerate().filter(|(_, below)| gave_up(below)) {
        assert!(!table.below(shard).is_as(below), "shard {shard}");
    }
}

/// A table that goes while its shards give up places keeps nobody: the step ends, and so does the spill with the table.
#[test]
fn the_spill_of_a_table_that_is_gone_ends() {
    let mut world = World::new(2);
    (0..200).for_each(|_| world.publish());
    while world.spill.as_ref().is_none_or(|(spill, _)| !spill.is_giving_up()) {
        world.spill().expect("the machine runs");
    }
    (0..50).for_each(|_| world.relocate());
    world.pulls_up = || Ok(false);
    (0..3).for_each(|_| world.spill().expect("the machine runs"));
    assert!(world.spill.is_some(), "a tag that had changed could not be pulled up");
}

/// Errors of the device leave what there was: the spill ends, or goes on where it was.
#[test]
fn failed_writes_and_reads_lose_nothing() {
    for call in [Call::Write, Call::Read] {
        for skip in 0..40 {
            let mut world = World::new(skip);
            (0..300).for_each(|_| world.publish());
            world.device.fail(call, skip, 1, |_| true);
            let mut failed = 0;
            for _ in 0..20 {
                let outcome = world.spill();
                failed += u32::from(outcome.is_err());
                if outcome.is_err() && world.spill.as_ref().is_some_and(|(spill, _)| !spill.is_giving_up()) {
                    world.spill = None;
                }
            }
            world.device.clear_faults();
            assert!(failed <= 1, "one call fails");
            world.check();
            world.restart();
            world.check();
        }
    }
}

/// All runs, where that is worth it and the disk has room; else as many as are of one size; and none below one that cannot be read.
#[test]
fn merges_take_what_is_worth_it_and_fits() {
    const MIB: u64 = 1 << 20;
    let free = |bytes: u64| move |wanted: u64| wanted <= bytes;
    let runs = [MIB, MIB, MIB, MIB, 8 * MIB];
    assert_eq!(choose(&runs, 5, free(100 * MIB)), Some(0..5), "half as much as the oldest");
    assert_eq!(choose(&runs, 5, free(11 * MIB)), Some(0..4), "less room than for all");
    assert_eq!(choose(&runs, 5, free(3 * MIB)), None, "no room");
    let many = [MIB, MIB, MIB, MIB, MIB, MIB, 40 * MIB];
    assert_eq!(choose(&many, 7, free(100 * MIB)), Some(0..6), "all that are of one size");
    assert_eq!(choose(&many, 7, free(5 * MIB)), Some(0..4), "as many of them as there is room for");
    assert_eq!(choose(&runs, 4, free(100 * MIB)), Some(0..4), "the oldest cannot be read");
    assert_eq!(choose(&runs, 3, free(100 * MIB)), None, "too few can be read");
    assert_eq!(choose(&[MIB, MIB, MIB, 8 * MIB], 4, free(100 * MIB)), None, "too few of one size");
    assert_eq!(choose(&[8 * MIB], 1, free(100 * MIB)), None, "one run");
    assert_eq!(choose(&[], 0, free(100 * MIB)), None, "none");
}
