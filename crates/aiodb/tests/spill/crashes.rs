//! Crashes at any step of spills, merges and what goes on beside them.

use std::path::Path;

use aiodb::io::sim::{Call, SimDevice};
use aiodb::io::{Access, Device, File, Phase};
use aiodb::{Db, Durability, Error, Options, Step};

use crate::support::value;
use crate::{Contents, check, key, options, settle, steps, table_of};

/// Puts, deletes, operands, spills, merges and reclaim; `Err` once the machine has crashed.
fn work(db: &Db<SimDevice>, contents: &mut Vec<Contents>) -> Result<(), Error> {
    let table = db.table("t")?;
    let mut now = contents.last().cloned().unwrap_or_default();
    for round in 0..6_u64 {
        for number in (0..24).filter(|number| (number + round) % 3 != 0) {
            let name = key(number);
            match (number + round) % 7 {
                0 if round > 0 => now.remove(&number).map_or((), drop),
                1 => now.entry(number).or_default().push(b'+'),
                _ => _ = now.insert(number, value(number * 100 + round, 30 + 200 * (number as usize % 5))),
            }
            contents.push(now.clone());
            match (number + round) % 7 {
                0 if round > 0 => table.delete_with(&name, Durability::Sync)?,
                1 => table.merge_with(&name, b"+", Durability::Sync)?,
                _ => table.put_with(&name, &now[&number], Durability::Sync)?,
            };
        }
        for step in [Step::Spill, Step::Settle, Step::Spill, Step::Reclaim, Step::Reclaim, Step::Spill, Step::Prepare] {
            db.step(step)?;
        }
        if round % 2 == 1 {
            (0..8).try_for_each(|_| db.step(Step::Spill))?;
        }
    }
    Ok(())
}

/// Crashes of this kind, of which `arm` says for each number when it comes, until one does not come; spills take steps of so many tags.
fn crash_at_each(is_power_cut: bool, spill_step_tags: usize, arm: impl Fn(&SimDevice, u64)) {
    let open = |device: &SimDevice, rebuild_index: bool| {
        device.create_dir(Path::new("/store")).expect("the machine runs");
        let options = Options { segment_bytes: 64 << 10, rebuild_index, spill_step_tags, ..options(0) };
        let db = Db::open_on(device.clone(), "/store", options).expect("it opens");
        drop(table_of(&db));
        db
    };
    let mut with_runs = 0;
    for number in 0.. {
        let device = SimDevice::new(number);
        let db = open(&device, false);
        let mut contents = vec![Contents::new()];
        arm(&device, number);
        let outcome = work(&db, &mut contents);
        if !device.has_crashed() {
            outcome.expect("nothing fails");
            break;
        }
        let next = if is_power_cut { device.power_cut() } else { device.process_death() };
        drop(db);
        let when = format!("crash {number}");
        let db = open(&next, false);
        assert!(!db.stats().rebuilt_indexes, "{when}: the index is there");
        with_runs += u32::from(db.stats().tables[0].index_disk_bytes > 0);
        // All that was acknowledged, and perhaps the write that the crash came in.
        let table = table_of(&db);
        let is = |contents: &&Contents| {
            (0..24).all(|number| table.get(&key(number)).expect("a get works").as_ref() == contents.get(&number))
        };
        let found = contents.iter().rev().take(2).find(is).unwrap_or_else(|| panic!("{when}: neither state"));
        check(&db, found, 24, &when);
        settle(&db);
        steps(&db, Step::Spill, 12);
        steps(&db, Step::Reclaim, 20);
        check(&db, found, 24, &format!("{when}, after more work"));
        assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new(), "{when}");
        db.close().expect("it closes");
        let last = next.process_death();
        drop((table, db));
        let db = open(&last, true);
        check(&db, found, 24, &format!("{when}, made again"));
    }
    assert!(with_runs > 20, "only {with_runs} crashes came when there were runs");
}

/// Steps between two crashes that may come anywhere.
const STRIDE: u64 = 7;

/// All that a step of a spill takes.
const ALL_TAGS: usize = 32 << 10;

#[test]
fn a_power_cut_at_any_step_loses_nothing() {
    crash_at_each(true, ALL_TAGS, |device, number| device.crash_after(1 + STRIDE * number));
}

#[test]
fn the_death_of_the_process_at_any_step_loses_nothing() {
    crash_at_each(false, ALL_TAGS, |device, number| device.crash_after(1 + STRIDE * number));
}

/// Calls of the device in a step of a spill, about. A crash comes at the end of a step that has fewer.
const CALLS: u64 = 8;

#[test]
fn a_power_cut_inside_any_step_of_a_spill_loses_nothing() {
    crash_at_each(true, 3, |device, number| device.crash_inside(Phase::Spill, number / CALLS, 1 + number % CALLS));
}

#[test]
fn the_death_of_the_process_inside_any_step_of_a_spill_loses_nothing() {
    crash_at_each(false, 3, |device, number| device.crash_inside(Phase::Spill, number / CALLS, 1 + number % CALLS));
}

/// A file of the store on a simulated machine.
fn contents_of(device: &SimDevice, name: &str) -> Vec<u8> {
    let file = device.open(&Path::new("/store").join(name), Access::READ).expect("it is there");
    let mut bytes = vec![0; file.length().expect("the machine runs") as usize];
    file.read_at(&mut bytes, 0).expect("the machine runs");
    bytes
}

/// A process that dies between the manifest and its copy leaves two that name different files. The copy counts where the first is damaged.
#[test]
fn files_that_the_copy_of_a_manifest_names_are_not_removed() {
    let mut differing = 0;
    for skip in 0..12 {
        let device = SimDevice::new(skip);
        device.create_dir(Path::new("/store")).expect("the machine runs");
        let open = |device: &SimDevice| {
            let options = Options { segment_bytes: 64 << 10, ..options(0) };
            Db::open_on(device.clone(), "/store", options).unwrap_or_else(|error| panic!("checkpoint {skip}: {error}"))
        };
        let db = open(&device);
        drop(table_of(&db));
        let mut contents = vec![Contents::new()];
        device.fail(Call::Sync, skip, 1, |path| path == Path::new("/store"));
        // It dies of it.
        let outcome = work(&db, &mut contents);
        device.clear_faults();
        let next = device.process_death();
        drop(db);
        if outcome.is_ok() || contents_of(&next, "MANIFEST") == contents_of(&next, "MANIFEST.copy") {
            continue;
        }
        differing += 1;
        let contents = contents.last().expect("there is one");
        let db = open(&next);
        check(&db, contents, 24, &format!("checkpoint {skip}"));
        let next = next.process_death();
        drop(db);
        next.corrupt("/store/MANIFEST", 100, 1);
        let db = open(&next);
        check(&db, contents, 24, &format!("checkpoint {skip}, of the copy"));
    }
    assert!(differing > 4, "only {differing} manifests came without their copies");
}
