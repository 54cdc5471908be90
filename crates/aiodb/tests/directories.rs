//! Stores that lie in several directories: what is where, and what happens when one is missing, full or failing.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aiodb::io::Device;
use aiodb::io::sim::{Call, SimDevice};
use aiodb::{Db, DirectoryFault, Durability, Error, IndexKind, Options};
use support::{
    KINDS, Mount, assert_get, copy_tree, damage, open_several, quiet, refusal, scratch, scratches, segment_files,
    small, value,
};

fn put_many(table: &aiodb::Table, count: u64) {
    for number in 0..count {
        table.put_with(&number.to_be_bytes(), &value(number, 4000), Durability::None).expect("a put works");
    }
}

fn check_many(table: &aiodb::Table, count: u64, when: &str) {
    for number in 0..count {
        assert_get(table, &number.to_be_bytes(), Some(&value(number, 4000)), when);
    }
}

fn numbers(directory: &Path) -> BTreeSet<usize> {
    let name = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
    segment_files(directory).iter().map(|path| name(path).expect("a segment file has a number")).collect()
}

#[test]
fn segments_lie_in_all_directories_in_turn() {
    for kind in KINDS {
        let directories = scratches(3);
        let (db, table) = open_several(&directories, kind, &small());
        put_many(&table, 8000);
        db.close().expect("a sound store can be closed");
        drop((db, table));
        let in_each: Vec<_> = directories.iter().map(|directory| numbers(directory.path())).collect();
        for (ordinal, numbers) in in_each.iter().enumerate() {
            assert!(numbers.len() > 8, "directory {ordinal} has its share of 32 MB: {in_each:?}");
            assert!(numbers.iter().all(|number| number % 3 == ordinal), "each in its own: {in_each:?}");
        }
        let counts: Vec<_> = in_each.iter().map(BTreeSet::len).collect();
        assert!(counts.iter().max() <= counts.iter().min().map(|least| least + 3).as_ref(), "evenly: {counts:?}");
        // The order in which they are given does not matter.
        for order in [[2, 0, 1], [1, 2, 0]] {
            let paths = order.map(|position| directories[position].path());
            let (db, table) = open_several(&paths, kind, &small());
            check_many(&table, 8000, "in another order");
            assert!(damage(&db).is_empty(), "a check finds no damage, but {:?}", damage(&db));
        }
    }
}

#[test]
fn each_directory_is_needed_and_none_is_taken_for_another() {
    let directories = scratches(3);
    let [a, b, c] = [0, 1, 2].map(|position| directories[position].path());
    let (db, table) = open_several(&[a, b, c], IndexKind::Lmdb, &quiet());
    put_many(&table, 2000);
    let error = refusal(Db::open_several(&[c, b, a], quiet()), "a store in use");
    assert!(matches!(&error, Error::Locked { .. }), "it is in use, not: {error:?}");
    db.close().expect("a sound store can be closed");
    drop((db, table));

    let (other, empty, copy) = (scratches(3), scratch(), scratch());
    drop(open_several(&other, IndexKind::Lmdb, &quiet()));
    let foreign = other[1].path();
    copy_tree(b, copy.path());
    let nowhere = empty.path().join("not mounted");
    let link = empty.path().join("link");
    std::os::unix::fs::symlink(b, &link).expect("a link can be made");
    let unmounted = scratch();

    let missing = |ordinal| DirectoryFault::Missing { ordinal, count: 3 };
    let twice = |other: &Path| DirectoryFault::Twice { other: other.to_path_buf() };
    let cases: [(&[&Path], &Path, DirectoryFault); 11] = [
        (&[a], a, missing(1)),
        (&[b], b, missing(0)),
        (&[a, c], a, missing(1)),
        (&[c, b], c, missing(0)),
        (&[a, b, foreign], foreign, DirectoryFault::Foreign),
        (&[a, unmounted.path(), c], unmounted.path(), DirectoryFault::NoPart),
        (&[unmounted.path(), b, c], unmounted.path(), DirectoryFault::NoPart),
        (&[a, &nowhere, c], &nowhere, DirectoryFault::NoPart),
        (&[a, b, c, unmounted.path()], unmounted.path(), DirectoryFault::NoPart),
        (&[a, b, c, copy.path()], copy.path(), twice(b)),
        (&[a, b, &link], &link, twice(b)),
    ];
    for (given, named, wanted) in cases {
        let error = refusal(Db::open_several(given, quiet()), "directories that are not the store's");
        let Error::Directory { path, fault } = &error else { panic!("{given:?}: {error:?}") };
        assert_eq!((path.as_path(), fault), (named, &wanted), "{given:?}: {error}");
        let said = error.to_string();
        assert!(said.contains(named.to_str().expect("the path is text")), "the message names the path: {said}");
    }
    assert!(!nowhere.exists(), "nothing is made where a disk is not mounted");
    let left = std::fs::read_dir(unmounted.path()).expect("it can be listed").count();
    assert_eq!(left, 0, "nothing is left where a disk is not mounted");
    let (db, table) = open_several(&[c, a, b], IndexKind::Lmdb, &quiet());
    check_many(&table, 2000, "after all that");
    assert!(damage(&db).is_empty(), "a check finds no damage, but {:?}", damage(&db));
}

#[test]
fn numbers_of_directories_have_limits() {
    let none: [&Path; 0] = [];
    let directory = scratch();
    let many: Vec<_> = (0..65).map(|number| directory.path().join(number.to_string())).collect();
    for paths in [none.iter().map(|path| path.to_path_buf()).collect(), many.clone()] {
        let error = refusal(Db::open_several(&paths, quiet()), "such a number of directories");
        assert!(matches!(&error, Error::Option { option: "directories", .. }), "its number, not: {error:?}");
    }
    assert!(!many[0].exists(), "nothing is made");
}

#[test]
fn a_segment_in_the_wrong_directory_is_damage() {
    let directories = scratches(2);
    let (db, table) = open_several(&directories, IndexKind::Hash, &quiet());
    put_many(&table, 500);
    db.close().expect("a sound store can be closed");
    drop((db, table));
    let there = segment_files(directories[0].path()).remove(0);
    let here = directories[1].path().join("log").join(there.file_name().expect("a file has a name"));
    std::fs::rename(&there, &here).expect("a file can be moved");
    let error = refusal(Db::open_several(&directories, quiet()), "a segment in the wrong directory");
    assert!(matches!(&error, Error::Corruption { path, .. } if *path == here), "the file is named, not: {error:?}");
    std::fs::rename(&here, &there).expect("a file can be moved back");
    let (_db, table) = open_several(&directories, IndexKind::Hash, &quiet());
    check_many(&table, 500, "after it was moved back");
}

const SIMULATED: [&str; 3] = ["/a", "/b", "/c"];

fn simulated(seed: u64) -> SimDevice {
    let device = SimDevice::new(seed);
    for path in SIMULATED {
        device.create_dir(Path::new(path)).expect("a directory can be made");
    }
    device.sync_dir(Path::new("/")).expect("the root can be flushed");
    device
}

fn simulated_options() -> Options {
    Options { segment_bytes: 64 << 10, background: false, ..Options::default() }
}

#[test]
fn a_store_is_made_wholly_or_not_at_all() {
    let mut crashes = 0;
    for steps in 1.. {
        for power_cut in [false, true] {
            let device = simulated(steps);
            device.crash_after(steps);
            let made = Db::open_several_on(device.clone(), &SIMULATED, simulated_options());
            let crashed = device.has_crashed();
            drop(made);
            let device = if power_cut { device.power_cut() } else { device.process_death() };
            // In another order, as far as that is still to be decided.
            let paths = ["/a", "/c", "/b"];
            let db = Db::open_several_on(device, &paths, simulated_options())
                .unwrap_or_else(|error| panic!("after a crash at step {steps}, power cut {power_cut}: {error}"));
            let table = db.table_or_create("t", IndexKind::Hash).expect("a table can be made");
            table.put(b"k", b"v").expect("a put works");
            assert_eq!(table.get(b"k").expect("a get works").as_deref(), Some(&b"v"[..]));
            db.close().expect("a sound store can be closed");
            if !crashed {
                assert!(crashes > 100, "making a store takes many steps: {crashes}");
                return;
            }
            crashes += 1;
        }
    }
}

#[test]
fn a_failing_disk_is_named() {
    let device = simulated(1);
    let db = Db::open_several_on(device.clone(), &SIMULATED, simulated_options()).expect("a store can be made");
    let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
    for number in 0..200u64 {
        table.put(&number.to_be_bytes(), &value(number, 4000)).expect("a put works");
    }
    let on_b = |path: &Path| path.starts_with("/b");
    device.fail(Call::Read, 0, u64::MAX, on_b);
    let mut failed = 0;
    for number in 0..200u64 {
        match table.get(&number.to_be_bytes()) {
            Ok(found) => assert_eq!(found, Some(value(number, 4000))),
            Err(Error::Io { path, .. }) if path.starts_with("/b/log") => failed += 1,
            Err(error) => panic!("the failing disk is named, not: {error:?}"),
        }
    }
    assert!((40..100).contains(&failed), "a third of the records lie on the failing disk: {failed}");
    device.fail(Call::Write, 0, u64::MAX, on_b);
    let error = (0..200u64).find_map(|number| table.put(&number.to_be_bytes(), &value(number, 4000)).err());
    let error = error.expect("a write meets the failing disk");
    assert!(matches!(&error, Error::Io { path, .. } if path.starts_with("/b/log")), "it is named, not: {error:?}");
}

#[test]
fn a_full_disk_is_passed_over_while_others_have_room() {
    // Whichever of them is the small one; the first also has the indexes.
    let sizes = [["size=12m", "size=40m"], ["size=40m", "size=12m"]];
    for (kind, sizes) in KINDS.into_iter().flat_map(|kind| sizes.map(|sizes| (kind, sizes))) {
        let mounts = sizes.map(|size| Mount::new(&["-t", "tmpfs", "-o", size, "tmpfs"]));
        let [Some(first), Some(second)] = mounts else { return };
        let (db, table) = open_several(&[first.path(), second.path()], kind, &quiet());
        let mut count = 0;
        let error = loop {
            match table.put_with(&u64::to_be_bytes(count), &value(count, 4000), Durability::None) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(&error, Error::DiskFull { .. }), "a full disk is a refusal, not: {error:?}");
        let segments = [first.path(), second.path()].map(|path| segment_files(path).len());
        // Of 52 MB, the reserve takes four segments, pending batches and the index a part.
        assert!(count * 4096 > 30 << 20, "{sizes:?}: {count} records of 4 KB in {segments:?} segments");
        assert!(segments[0].abs_diff(segments[1]) > 12, "{sizes:?}: the larger disk took more: {segments:?}");
        check_many(&table, count, "when both are full");
        for number in (0..count).filter(|number| number % 3 > 0) {
            let delete = || table.delete_with(&number.to_be_bytes(), Durability::None);
            support::eventually("a delete finds room", || {
                let done = delete();
                assert!(matches!(&done, Ok(_) | Err(Error::DiskFull { .. })), "a full disk is a refusal: {done:?}");
                if done.is_err() || number % 64 == 0 {
                    work(&db);
                }
                done.is_ok()
            });
        }
        support::eventually("there is room for new records", || {
            work(&db);
            table.put(b"new", b"record").is_ok()
        });
        for number in (0..count).step_by(3) {
            assert_get(&table, &number.to_be_bytes(), Some(&value(number, 4000)), "what was kept");
        }
    }
}

/// What the store's own threads do, as far as a full disk lets them.
fn work(db: &Db) {
    use aiodb::Step::{Checkpoint, Prepare, Reclaim, Upkeep, Write};
    for step in [Write, Upkeep, Prepare, Reclaim, Reclaim, Checkpoint, Prepare] {
        if let Err(error) = db.step(step) {
            assert!(matches!(&error, Error::DiskFull { .. }), "{step:?}: a full disk is a refusal: {error:?}");
        }
    }
}
