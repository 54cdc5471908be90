use std::path::Path;

use fastrand::Rng;

use super::world::{DIRECTORY, World};
use super::{act_up_to, in_worlds, named_files};
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
    in_worlds(60, |world, random| {
        for _ in 0..8 {
            act_up_to(100, world, random);
            world.end_snapshots();
            world.device.crash_after(random.u64(1..60));
            while !world.device.has_crashed() {
                let outcome = disturbed(world, random);
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
    });
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    let mut refused = 0;
    in_worlds(40, |world, random| {
        for _ in 0..10 {
            act_up_to(60, world, random);
            let used = world.device.used_bytes();
            world.device.set_capacity(Some(used + random.u64(0..12) * 4096));
            for _ in 0..random.usize(1..5) {
                match disturbed(world, random) {
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
        world.flush(random).expect("there is room again");
        while world.merge(random).expect("there is room again") {}
        world.check();
        let files = world.device.list(Path::new(DIRECTORY)).expect("it is there");
        let named = named_files(world.runs()).len();
        assert_eq!(files.len(), named + 2, "nothing but the manifests and what they name");
    });
    assert!(refused > 100, "{refused} operations found no room");
}

/// Calls that fail, also where it stays unknown whether an edit is durable; then everything goes on, and the power fails.
#[test]
fn a_failed_call_leaves_everything_as_it_was() {
    let mut failed = 0;
    in_worlds(20, |world, random| {
        for _ in 0..10 {
            act_up_to(60, world, random);
            let call = *random.choice(&[Call::Read, Call::Write, Call::Sync]).expect("there are some");
            world.device.fail(call, random.u64(..12), random.u64(1..3), |_| true);
            for _ in 0..random.usize(1..6) {
                failed += usize::from(disturbed(world, random).is_err());
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
    });
    assert!(failed > 30, "{failed} operations have failed");
}

/// The files of an edit of which it is not known whether it is durable go with the next one.
#[test]
fn files_of_an_edit_in_doubt_do_not_stay() {
    in_worlds(10, |world, random| {
        act_up_to(20, world, random);
        world.end_snapshots();
        while world.merge(random).expect("nothing fails") {}
        world.write(random);
        // The directory is flushed before the manifest gets its name, and then again.
        world.device.fail(Call::Sync, 1, 1, |path| path == Path::new(DIRECTORY));
        world.flush(random).expect_err("the name is not durable");
        world.device.clear_faults();
        world.check();
        world.write(random);
        world.flush(random).expect("nothing fails");
        while world.merge(random).expect("nothing fails") {}
        let files = world.device.list(Path::new(DIRECTORY)).expect("it is there");
        assert_eq!(files.len(), named_files(world.runs()).len() + 2, "nothing but the manifests and what they name");
        world.check();
    });
}
