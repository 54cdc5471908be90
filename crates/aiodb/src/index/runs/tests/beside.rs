//! Steps of two merges side by side.

use std::path::Path;

use fastrand::Rng;

use super::world::{DIRECTORY, World};
use super::{in_worlds, named_files};
use crate::io::Device;

/// Makes runs of several lengths, without a merge.
fn flush_some(world: &mut World, random: &mut Rng) {
    for _ in 0..random.usize(2..12) {
        let writes = if random.u8(..4) == 0 { 400 } else { 8 };
        (0..random.usize(1..writes)).for_each(|_| world.write(random));
        match random.u32(..10) {
            0..4 => world.relocate(random),
            4 => world.delete_range(random),
            5 => world.change_snapshots(random),
            _ => {}
        }
        world.flush(random).expect("nothing fails");
    }
}

/// In the middle of a step another thread does one: whatever both merge, and a model knows no difference.
#[test]
fn two_merges_side_by_side_say_what_a_model_says() {
    let mut pairs = 0;
    in_worlds(40, |world, random| {
        for _ in 0..8 {
            flush_some(world, random);
            for _ in 0..random.usize(1..12) {
                pairs += u32::from(world.merge_two(random).expect("nothing fails"));
                world.check();
            }
            if random.u8(..4) == 0 {
                world.reopen();
                world.check();
            }
        }
        world.end_snapshots();
        while world.merge(random).expect("nothing fails") {}
        world.check();
        let files = world.device.list(Path::new(DIRECTORY)).expect("it is there");
        assert_eq!(files.len(), named_files(world.runs()).len() + 2, "nothing but the manifests and what they name");
    });
    assert!(pairs > 30, "{pairs} steps had another beside them");
}

#[test]
fn a_crash_loses_neither_of_two_merges() {
    let mut pairs = 0;
    in_worlds(60, |world, random| {
        for _ in 0..6 {
            flush_some(world, random);
            world.end_snapshots();
            world.device.crash_after(random.u64(1..80));
            while !world.device.has_crashed() {
                let is_flush = random.u8(..4) == 0;
                let outcome = if is_flush { world.flush(random).map(|()| false) } else { world.merge_two(random) };
                match outcome {
                    Ok(was_pair) => pairs += u32::from(was_pair),
                    Err(error) => assert!(world.device.has_crashed(), "{error}"),
                }
            }
            let is_power_cut = random.bool();
            world.device = if is_power_cut { world.device.power_cut() } else { world.device.process_death() };
            world.recover().expect("the runs can be opened");
            world.check();
        }
    });
    assert!(pairs > 30, "{pairs} steps had another beside them");
}

/// With little room one merge goes on alone.
#[test]
fn a_full_disk_has_one_merge_at_a_time() {
    in_worlds(10, |world, random| {
        flush_some(world, random);
        flush_some(world, random);
        let used = world.device.used_bytes();
        world.device.set_capacity(Some(used + (64 << 20)));
        for _ in 0..8 {
            assert!(!world.merge_two(random).expect("there is room"));
        }
        world.check();
    });
}
