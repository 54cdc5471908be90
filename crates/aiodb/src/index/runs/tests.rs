mod ahead;
mod beside;
mod compression;
mod concurrency;
mod crashes;
mod damage;
mod filtering;
mod filters;
mod ingest;
mod policy;
mod room;
mod segments;
mod shares;
mod sizes;
mod warm;
mod world;

use std::collections::BTreeMap;
use std::path::PathBuf;

use fastrand::Rng;

use super::Runs;
use super::file::path_of;
use crate::format::record::Kind;
use crate::io::Device;
use world::World;

/// The files that the runs name, with their lengths in bytes.
fn named_files<D: Device>(runs: &Runs<D>) -> BTreeMap<PathBuf, u64> {
    let set = runs.set().expect("it is open");
    set.pieces().map(|piece| (path_of(&runs.directory, piece.file.name.number), piece.file.bytes())).collect()
}

/// Shows a world of each seed to a test, which is told by the last line of the output if it fails.
fn in_worlds(seeds: u64, mut test: impl FnMut(&mut World, &mut Rng)) {
    for seed in 0..seeds {
        println!("seed {seed}");
        test(&mut World::new(seed), &mut Rng::with_seed(seed));
    }
}

/// Does up to so many things.
fn act_up_to(most: usize, world: &mut World, random: &mut Rng) {
    (0..random.usize(1..most)).for_each(|_| act(world, random));
}

/// What a random test does next.
fn act(world: &mut World, random: &mut Rng) {
    match random.u32(..100) {
        0..60 => world.write(random),
        60..70 => world.relocate(random),
        70..74 => world.delete_range(random),
        74..80 => world.flush(random).expect("nothing fails"),
        80..92 => drop(world.merge(random).expect("nothing fails")),
        92..94 => drop(world.carry_out_ranges().expect("nothing fails")),
        94..95 => world.change_table(random),
        95..96 => drop(world.purge().expect("nothing fails")),
        96..98 => world.change_snapshots(random),
        _ => world.reopen(),
    }
}

#[test]
fn runs_say_what_a_model_says() {
    in_worlds(30, |world, random| {
        for number in 0..600 {
            act(world, random);
            if number % 30 == 0 {
                world.check();
            }
        }
        world.check();
        // At the end, all that has to be done is done.
        world.end_snapshots();
        world.flush(random).expect("nothing fails");
        while world.merge(random).expect("nothing fails") {}
        while world.carry_out_ranges().expect("nothing fails") {}
        while !world.purge().expect("nothing fails") {}
        world.check();
        assert!(world.runs().range_tombstones().expect("it is open").is_empty());
    });
}

/// A merge that leaves out the oldest run finds a delete and what came after it, but not what it has deleted.
#[test]
fn a_delete_hides_from_a_snapshot_what_older_runs_have() {
    let mut random = Rng::with_seed(1);
    let mut world = World::new(1);
    world.flush_one(1, Kind::Put, &mut random);
    world.flush_one(1, Kind::Delete, &mut random);
    world.begin_snapshot();
    for number in [1, 2, 3, 4, 5] {
        world.flush_one(number, Kind::Put, &mut random);
        while world.merge(&mut random).expect("nothing fails") {}
        world.check();
    }
    assert!(world.runs().len() > 1, "the oldest run was left out");
}
