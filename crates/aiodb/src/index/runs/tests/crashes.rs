use fastrand::Rng;

use super::act;
use super::world::World;
use crate::io::Device;
use crate::io::sim::Call;

/// What may fail or be cut short.
fn disturbed(world: &mut World, random: &mut Rng) -> crate::Result<()> {
    match random.u32(..10) {
        0..5 => world.flush(random),
        5..8 => world.merge(random).map(drop),
        8 => world.carry_out_ranges().map(drop),
        _ => world.purge().map(drop),
    }
}

/// Crashes at any call to the machine, also while the runs are being opened again.
#[test]
fn a_crash_loses_nothing_that_was_said_to_be_done() {
    for seed in 0..60 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut world = World::new(seed);
        for _ in 0..8 {
            for _ in 0..random.usize(1..100) {
                act(&mut world, &mut random);
            }
            world.end_snapshots();
            world.device.crash_after(random.u64(1..60));
            while !world.device.has_crashed() {
                let outcome = disturbed(&mut world, &mut random);
                assert!(outcome.is_ok() || world.device.has_crashed(), "{outcome:?}");
            }
            loop {
                let is_power_cut = random.bool();
                world.device = if is_power_cut { world.device.power_cut() } else { world.device.process_death() };
                if random.u8(..3) > 0 {
                    break;
                }
                world.device.crash_after(random.u64(1..15));
                if world.open().is_ok() {
                    world.device.crash_after(u64::MAX);
                    break;
                }
            }
            world.recover().expect("the runs can be opened");
            world.check();
        }
    }
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    let mut refused = 0;
    for seed in 0..40 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut world = World::new(seed);
        for _ in 0..10 {
            for _ in 0..random.usize(1..60) {
                act(&mut world, &mut random);
            }
            let used = world.device.used_bytes();
            world.device.set_capacity(Some(used + random.u64(0..12) * 4096));
            for _ in 0..random.usize(1..5) {
                match disturbed(&mut world, &mut random) {
                    Ok(()) => {}
                    Err(error) => {
                        assert!(error.is_full(), "{error}");
                        refused += 1;
                    }
                }
                world.check();
            }
            if random.bool() {
                world.reopen();
                world.check();
            }
            world.device.set_capacity(None);
        }
        world.flush(&mut random).expect("there is room again");
        while world.merge(&mut random).expect("there is room again") {}
        world.check();
        let files = world.device.list(std::path::Path::new(super::world::DIRECTORY)).expect("it is there");
        let named = world.runs().files().expect("it is open").paths().count();
        assert_eq!(files.len(), named + 2, "seed {seed}: nothing but the manifests and what they name");
    }
    assert!(refused > 100, "{refused} operations found no room");
}

/// Calls that fail, also where it stays unknown whether an edit is durable; then everything goes on, and the power fails.
#[test]
fn a_failed_call_leaves_everything_as_it_was() {
    let mut failed = 0;
    for seed in 0..20 {
        println!("seed {seed}");
        let mut random = Rng::with_seed(seed);
        let mut world = World::new(seed);
        for _ in 0..10 {
            for _ in 0..random.usize(1..60) {
                act(&mut world, &mut random);
            }
            let call = *random.choice(&[Call::Read, Call::Write, Call::Sync]).expect("there are some");
            world.device.fail(call, random.u64(..12), random.u64(1..3), |_| true);
            for _ in 0..random.usize(1..6) {
                failed += usize::from(disturbed(&mut world, &mut random).is_err());
            }
            world.device.clear_faults();
            world.check();
            if random.bool() {
                world.end_snapshots();
                world.device = world.device.power_cut();
                world.recover().expect("the runs can be opened");
                world.check();
            }
        }
    }
    assert!(failed > 30, "{failed} operations have failed");
}
