mod concurrency;
mod crashes;
mod damage;
mod policy;
mod segments;
mod sizes;
mod world;

use fastrand::Rng;

use crate::format::record::Kind;
use world::World;

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
    for seed in 0..30 {
        let mut random = Rng::with_seed(seed);
        println!("seed {seed}");
        let mut world = World::new(seed);
        for number in 0..600 {
            act(&mut world, &mut random);
            if number % 30 == 0 {
                world.check();
            }
        }
        world.check();
        // At the end, all that has to be done is done.
        world.end_snapshots();
        world.flush(&mut random).expect("nothing fails");
        while world.merge(&mut random).expect("nothing fails") {}
        while world.carry_out_ranges().expect("nothing fails") {}
        while !world.purge().expect("nothing fails") {}
        world.check();
        assert!(world.runs().range_tombstones().expect("it is open").is_empty(), "seed {seed}");
        assert_eq!(world.runs().debt(), 0);
    }
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
