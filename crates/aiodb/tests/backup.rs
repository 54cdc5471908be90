//! Backups made under load, chains of them, damage to them, and the stores that come back.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aiodb::{BackupOptions, Batch, Db, Durability, Error, IndexKind, Options, Repository, Table};
use support::{
    KINDS, Known, Mount, Varied, assert_get, copy_tree, damage, merging, open, quiet, refusal, scratch, small, upkeep,
    value,
};
use tempfile::TempDir;

const WRITERS: u64 = 3;
const KEYS_PER_WRITER: u64 = 200;
const UNIT: u64 = 4096;

fn back_up(db: &Db, repository: &Path) -> aiodb::BackupReport {
    db.backup(repository, &BackupOptions::default(), &mut |_, _| {}).expect("a backup can be made")
}

/// Restores into a fresh directory.
fn restore(repository: &Path, point: Option<u64>) -> TempDir {
    let target = scratch();
    let repository = Repository::open(repository).expect("the repository can be opened");
    repository.restore(point, target.path(), &mut |_, _| {}).expect("a restore point can be restored");
    target
}

/// A store as it comes back; the directory must outlive it.
fn restored(repository: &Path, point: u64) -> (TempDir, Db) {
    let directory = restore(repository, Some(point));
    let db = reopen(directory.path());
    (directory, db)
}

fn reopen(path: &Path) -> Db {
    Db::open(path, Options { create: false, ..quiet() }).expect("a restored store can be opened")
}

/// What a writer does in its `number`th operation: to which key, and the value if it is a put. Each value says which
/// operation it is of.
fn operation(writer: u64, number: u64) -> (Vec<u8>, Option<Vec<u8>>) {
    let key = format!("writer {writer} key {}", number.wrapping_mul(7919) % KEYS_PER_WRITER).into_bytes();
    let length = match number % 50 {
        0 => 300_000,
        1..10 => 1500 + (number % 3000) as usize,
        _ => 40 + (number % 300) as usize,
    };
    (key, (number % 5 != 4).then(|| value(number, length)))
}

/// What a writer has left after this many operations.
fn after(writer: u64, operations: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for (key, value) in (0..operations).map(|number| operation(writer, number)) {
        match value {
            Some(value) => contents.insert(key, value),
            None => contents.remove(&key),
        };
    }
    contents
}

/// Everything that a table holds of a writer.
fn found(table: &Table, writer: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let keys = (0..KEYS_PER_WRITER).map(|key| format!("writer {writer} key {key}").into_bytes());
    keys.filter_map(|key| table.get(&key).expect("a get works").map(|value| (key, value))).collect()
}

/// The number of operations after which a writer has left exactly this.
fn operations_of(contents: &BTreeMap<Vec<u8>, Vec<u8>>, writer: u64, from: u64, to: u64) -> Option<u64> {
    let mut state = after(writer, from);
    for number in from..=to {
        if state == *contents {
            return Some(number);
        }
        let (key, value) = operation(writer, number);
        match value {
            Some(value) => state.insert(key, value),
            None => state.remove(&key),
        };
    }
    None
}

/// Writes its operations in order, alternately alone and together with a note of their number in an atomic batch.
fn write_on(db: &Db, table: &Table, writer: u64, acknowledged: &AtomicU64, stop: &AtomicBool) {
    let note = format!("note of {writer}").into_bytes();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let (key, value) = operation(writer, number);
        let durability = if number.is_multiple_of(10) { Durability::Sync } else { Durability::None };
        let mut batch = Batch::new();
        match &value {
            Some(value) => batch.put(table, &key, value),
            None => batch.delete(table, &key),
        }
        .expect("a batch takes it");
        batch.put(table, &note, &number.to_be_bytes()).expect("a batch takes it");
        db.write_with(&batch, durability).expect("a write works");
        number += 1;
        acknowledged.store(number, Ordering::SeqCst);
    }
}

#[test]
fn under_load_each_restore_point_is_a_moment_of_the_store() {
    for kind in KINDS {
        let (directory, repository) = (scratch(), scratch());
        let (db, table) = open(directory.path(), kind, &small());
        let acknowledged: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        let counts = || acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).collect::<Vec<_>>();
        let mut bounds = Vec::new();
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (db, table, acknowledged, stop) = (&db, &table, &acknowledged[writer as usize], &stop);
                scope.spawn(move || write_on(db, table, writer, acknowledged, stop));
            }
            for round in 1..=4 {
                let wanted = round * 3000;
                support::eventually("the writers go on", || counts().iter().sum::<u64>() >= wanted);
                let before = counts();
                let report = back_up(&db, repository.path());
                assert_eq!(report.point.number, round, "restore points are counted");
                bounds.push((before, counts()));
            }
            stop.store(true, Ordering::Relaxed);
        });
        println!("{}: {} bytes were moved by reclaim", kind.name(), db.stats().bytes_moved_by_reclaim);
        assert_eq!(db.stats().trouble, None, "{}: background work went through", kind.name());
        for (point, (least, most)) in bounds.iter().enumerate() {
            let (_directory, db) = restored(repository.path(), point as u64 + 1);
            let table = db.table("t").expect("the table is there");
            for writer in 0..WRITERS {
                // One more may have been on its way.
                let (least, most) = (least[writer as usize], most[writer as usize] + 1);
                let contents = found(&table, writer);
                let note = table.get(format!("note of {writer}").as_bytes()).expect("a get works");
                let note = note.map_or(0, |note| u64::from_be_bytes(note.try_into().expect("a number")) + 1);
                assert!((least..=most).contains(&note), "point {point}: {note} operations, not {least} to {most}");
                let same = operations_of(&contents, writer, note, note);
                assert_eq!(same, Some(note), "{}: point {point}, writer {writer}: a batch as a whole", kind.name());
            }
            assert!(damage(&db).is_empty(), "point {point}: a check finds no damage, but {:?}", damage(&db));
            db.close().expect("a restored store can be closed");
        }
    }
}

#[test]
fn a_chain_of_backups_keeps_every_state() {
    for kind in KINDS {
        let (directory, repository) = (scratch(), scratch());
        let options = Options { segment_bytes: 256 << 10, ..quiet() };
        let db = Db::open(directory.path(), options).expect("a store can be made");
        let mut rng = fastrand::Rng::with_seed(11);
        let mut known = Known::new(db.create_table("t", kind).expect("a table can be made"));
        let mut other = Known::new(db.create_table("other", kind).expect("a table can be made"));
        let mut states = Vec::new();
        for round in 0..12 {
            known.change(&mut rng, 600);
            other.change(&mut rng, 50);
            if round == 4 || round == 8 {
                db.truncate_table("t").expect("a table can be emptied");
                known.contents.clear();
                known.change(&mut rng, 100);
            }
            if round == 6 {
                db.drop_table("other").expect("a table can be dropped");
                other = Known::new(db.create_table("other", kind).expect("a table can be made"));
            }
            if round % 3 == 1 {
                upkeep(&db);
            }
            let report = back_up(&db, repository.path());
            println!("{}: copied {} of {} bytes", kind.name(), report.copied_bytes, report.point.bytes);
            if round % 4 == 3 {
                let again = back_up(&db, repository.path());
                assert!(again.copied_bytes < report.point.bytes / 4, "what is there is not copied again");
                states.push((again.point.number, known.contents.clone(), other.contents.clone()));
            }
            states.push((report.point.number, known.contents.clone(), other.contents.clone()));
        }
        assert!(db.stats().bytes_moved_by_reclaim > 0, "segments were emptied between the backups");
        db.close().expect("the store can be closed");
        fs::remove_dir_all(directory.path()).expect("the original can be removed");
        let mut opened = Repository::open(repository.path()).expect("the repository can be opened");
        assert_eq!(opened.points().len(), states.len());
        assert!(opened.verify(&mut |_, _| {}).expect("it can be checked").damage.is_empty());
        let files = |name: &str| fs::read_dir(repository.path().join(name)).expect("a directory").count();
        let before = files("segments");
        for number in [2, 3, 4, 5] {
            opened.remove(number).expect("a restore point can be removed");
            refusal(opened.restore(Some(number), scratch().path(), &mut |_, _| {}), "a removed restore point");
            states.retain(|(point, ..)| *point != number);
        }
        assert!(files("segments") < before, "removing restore points gives space back");
        drop(opened);
        for (point, contents, others) in states {
            let (_directory, db) = restored(repository.path(), point);
            for (name, contents) in [("t", contents), ("other", others)] {
                let table = db.table(name).expect("the table is there");
                Known { table, contents }.check(&db, &format!("{}: point {point}", kind.name()));
            }
            assert!(damage(&db).is_empty(), "point {point}: a check finds no damage, but {:?}", damage(&db));
            assert_eq!(db.tables().len(), 2);
        }
    }
}

#[test]
fn operands_expiry_and_deleted_ranges_come_back() {
    for kind in KINDS {
        let (directory, repository) = (scratch(), scratch());
        let options = Options { segment_bytes: 256 << 10, ..merging() };
        let db = Db::open(directory.path(), options).expect("a store can be made");
        let mut rng = fastrand::Rng::with_seed(23);
        let mut varied = Varied::new(&db, "t", kind);
        let (mut states, mut snapshots) = (Vec::new(), Vec::new());
        for round in 0..8 {
            varied.change(&mut rng, 400);
            if round % 3 == 1 {
                upkeep(&db);
                varied.change(&mut rng, 60);
            }
            // Each snapshot keeps what a backup must not take for current.
            snapshots.push(db.snapshot().expect("a snapshot can be taken"));
            if round == 5 {
                snapshots.clear();
            }
            let report = back_up(&db, repository.path());
            states.push((report.point.number, varied.clone()));
        }
        varied.change(&mut rng, 400);
        let (_directory, now) = (directory, varied);
        now.check(&db, "the original goes on");
        for (point, varied) in states {
            let directory = restore(repository.path(), Some(point));
            let when = format!("{}: point {point}", kind.name());
            for rebuild_index in [false, true] {
                let options = Options { create: false, rebuild_index, ..merging() };
                let db = Db::open(directory.path(), options).expect("a restored store can be opened");
                varied.check(&db, &when);
                assert!(damage(&db).is_empty(), "{when}: a check finds no damage, but {:?}", damage(&db));
                db.close().expect("a restored store can be closed");
            }
        }
    }
}

#[test]
fn a_store_of_several_directories_is_restored_into_one() {
    for kind in KINDS {
        let (directories, repository) = (support::scratches(3), scratch());
        let paths: Vec<_> = directories.iter().map(TempDir::path).collect();
        let (db, table) = support::open_several(&paths, kind, &quiet());
        let put = |table: &Table, round: u64| {
            for number in 0..150u64 {
                table.put(&number.to_be_bytes(), &value(number + 1000 * round, 30_000)).expect("a put works");
            }
        };
        let check = |db: &Db, round: u64, when: &str| {
            let table = db.table("t").expect("the table is there");
            for number in 0..150u64 {
                assert_get(&table, &number.to_be_bytes(), Some(&value(number + 1000 * round, 30_000)), when);
            }
        };
        put(&table, 1);
        back_up(&db, repository.path());
        let (copy, restored) = restored(repository.path(), 1);
        check(&restored, 1, "restored");
        assert!(damage(&restored).is_empty(), "{:?}", damage(&restored));
        put(&restored.table("t").expect("the table is there"), 2);
        restored.checkpoint().expect("a checkpoint can be made");
        restored.close().expect("a restored store can be closed");
        let restored = reopen(copy.path());
        check(&restored, 2, "after the restored store was used");
        // Both go on in the same repository.
        let second = back_up(&restored, repository.path()).point.number;
        put(&table, 3);
        let third = back_up(&db, repository.path()).point.number;
        for (point, round) in [(1, 1), (second, 2), (third, 3)] {
            let (_directory, db) = self::restored(repository.path(), point);
            check(&db, round, &format!("{}: point {point}", kind.name()));
        }
        let opened = Repository::open(repository.path()).expect("the repository can be opened");
        assert!(opened.verify(&mut |_, _| {}).expect("it can be checked").damage.is_empty());
    }
}

/// A store with two restore points, and a third one beside it that is used to tell them apart.
fn sample(kind: IndexKind) -> (TempDir, TempDir, Db, Table) {
    let (directory, repository) = (scratch(), scratch());
    let (db, table) = open(directory.path(), kind, &quiet());
    for round in 0..2u64 {
        for number in 0..60u64 {
            let length = if number == 7 { 700_000 } else { 40 * number as usize };
            table.put(&number.to_be_bytes(), &value(number + 100 * round, length)).expect("a put works");
        }
        back_up(&db, repository.path());
    }
    (directory, repository, db, table)
}

fn check_sample(db: &Db, round: u64, when: &str) {
    let table = db.table("t").expect("the table is there");
    for number in 0..60u64 {
        let length = if number == 7 { 700_000 } else { 40 * number as usize };
        assert_get(&table, &number.to_be_bytes(), Some(&value(number + 100 * round, length)), when);
    }
}

fn files_of(repository: &Path) -> Vec<PathBuf> {
    let listed = |name: &str| fs::read_dir(repository.join(name)).expect("a directory can be listed");
    let mut paths: Vec<_> = ["segments", "points"]
        .iter()
        .flat_map(|name| listed(name))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

#[test]
fn damage_to_a_repository_is_found_and_never_restored() {
    for kind in KINDS {
        let (_directory, sound, db, _) = sample(kind);
        db.close().expect("the store can be closed");
        for name in files_of(sound.path()) {
            let name = name.strip_prefix(sound.path()).expect("it lies there").to_path_buf();
            let length = fs::metadata(sound.path().join(&name)).expect("it is there").len();
            for harm in ["first byte", "last byte", "cut", "missing"] {
                let copy = scratch();
                copy_tree(sound.path(), copy.path());
                let path = copy.path().join(&name);
                let mut bytes = fs::read(&path).expect("the file can be read");
                match harm {
                    "first byte" => bytes[0] ^= 1,
                    "last byte" => bytes[length as usize - 1] ^= 0x80,
                    "cut" => bytes.truncate(length as usize / 2),
                    _ => {}
                }
                fs::write(&path, bytes).expect("the file can be written");
                if harm == "missing" {
                    fs::remove_file(&path).expect("the file can be removed");
                }
                let what = format!("{}: {harm} of {}", kind.name(), name.display());
                check_harmed(copy.path(), &path, harm, &what);
            }
        }
    }
}

fn check_harmed(repository: &Path, path: &Path, harm: &str, what: &str) {
    let of_point = path.extension().is_some_and(|extension| extension == "point");
    let opened = match Repository::open(repository) {
        Ok(opened) => opened,
        Err(error) => {
            let names = matches!(&error, Error::Corruption { path: said, .. } if said == path);
            assert!(of_point && names, "{what}: the file is named: {error}");
            return;
        }
    };
    if of_point {
        // Without its file a restore point is not there; the other one is.
        assert_eq!((harm, opened.points().len()), ("missing", 1), "{what}");
    }
    let report = opened.verify(&mut |_, _| {}).expect("it can be checked");
    assert_eq!(report.damage.is_empty(), of_point, "{what}: {:?}", report.damage);
    for (round, point) in opened.points().iter().enumerate() {
        let target = scratch();
        let outcome = opened.restore(Some(point.number), target.path(), &mut |_, _| {});
        if report.damaged_points.contains(&point.number) {
            let error = refusal(outcome, what);
            assert!(matches!(&error, Error::Corruption { path: said, .. } if said == path), "{what}: {error}");
            let error = refusal(Db::open(target.path(), quiet()), "half a store");
            assert!(matches!(error, Error::NotAStore { .. }), "{what}: half a store is no store: {error}");
        } else {
            outcome.unwrap_or_else(|error| panic!("{what}: point {}: {error}", point.number));
            let round = if of_point { point.number - 1 } else { round as u64 };
            check_sample(&reopen(target.path()), round, what);
        }
    }
}

#[test]
fn a_damaged_repository_is_mended_by_the_next_backup_where_the_store_has_the_bytes() {
    let (_directory, repository, db, _) = sample(IndexKind::Lmdb);
    let segments = files_of(repository.path()).into_iter().filter(|path| path.extension().is_some_and(|e| e == "seg"));
    for (position, path) in segments.enumerate() {
        if position % 2 == 0 {
            fs::remove_file(path).expect("the file can be removed");
        } else {
            let file = fs::File::options().write(true).open(path).expect("the file can be opened");
            file.set_len(3 * UNIT + 100).expect("the file can be cut");
        }
    }
    back_up(&db, repository.path());
    let opened = Repository::open(repository.path()).expect("the repository can be opened");
    assert_eq!(opened.verify(&mut |_, _| {}).expect("it can be checked").damage.len(), 0);
    drop(opened);
    let (_restored, first) = restored(repository.path(), 1);
    check_sample(&first, 0, "the first restore point");
}

#[test]
fn wrong_places_are_refused_with_advice() {
    let (directory, repository, db, _) = sample(IndexKind::Hash);
    let occupied = scratch();
    fs::write(occupied.path().join("photo.jpg"), "mine").expect("a file can be written");
    let backup = |path: &Path| db.backup(path, &BackupOptions::default(), &mut |_, _| {});
    let error = refusal(backup(occupied.path()), "a backup among other files");
    assert!(matches!(error, Error::NotARepository { .. }), "{error}");
    let error = refusal(backup(directory.path()), "a backup into the store itself");
    assert!(matches!(error, Error::NotARepository { .. }), "{error}");
    let elsewhere = scratch();
    let (other, _) = open(elsewhere.path(), IndexKind::Hash, &quiet());
    let error = refusal(
        other.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {}),
        "a backup into another store's repository",
    );
    assert!(matches!(error, Error::OtherStore { .. }), "{error}");

    let opened = Repository::open(repository.path()).expect("the repository can be opened");
    let error = refusal(backup(repository.path()), "a backup into a repository in use");
    assert!(matches!(error, Error::RepositoryInUse { .. }), "{error}");
    for target in [occupied.path(), repository.path()] {
        let outcome = opened.restore(None, target, &mut |_, _| {});
        assert!(
            matches!(outcome, Err(Error::Occupied { .. } | Error::Locked { .. })),
            "a restore over {}: {outcome:?}",
            target.display()
        );
    }
    let error = refusal(opened.restore(None, directory.path(), &mut |_, _| {}), "a restore over a store in use");
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    let error = refusal(opened.restore(Some(9), scratch().path(), &mut |_, _| {}), "an unknown restore point");
    assert!(matches!(error, Error::NoRestorePoint { .. }), "{error}");
    db.close().expect("the store can be closed");
    let error = refusal(opened.restore(None, directory.path(), &mut |_, _| {}), "a restore over a closed store");
    assert!(matches!(error, Error::Occupied { .. }), "{error}");
    drop(opened);
    let error = refusal(backup(repository.path()), "a backup of a closed store");
    assert!(matches!(error, Error::Closed), "{error}");
    check_sample(&reopen(directory.path()), 1, "after all refusals");
    let error = refusal(Repository::open(occupied.path()), "an empty directory is no repository");
    assert!(matches!(error, Error::NotARepository { .. }), "{error}");
}

#[test]
fn a_restored_store_goes_its_own_way_in_the_same_repository() {
    for kind in KINDS {
        let (_directory, repository, db, table) = sample(kind);
        let fork = restore(repository.path(), Some(1));
        let fork_db = reopen(fork.path());
        let fork_table = fork_db.table("t").expect("the table is there");
        check_sample(&fork_db, 0, "the fork");
        for number in 0..60u64 {
            table.put(&number.to_be_bytes(), &value(300 + number, 40 * number as usize)).expect("a put works");
            fork_table.put(&number.to_be_bytes(), &value(400 + number, 40 * number as usize)).expect("a put works");
        }
        for (db, wanted) in [(&db, 300), (&fork_db, 400), (&db, 300), (&fork_db, 400)] {
            let number = back_up(db, repository.path()).point.number;
            let (_directory, restored) = restored(repository.path(), number);
            let restored_table = restored.table("t").expect("the table is there");
            for number in 0..60u64 {
                let wanted = value(wanted + number, 40 * number as usize);
                assert_get(&restored_table, &number.to_be_bytes(), Some(&wanted), kind.name());
            }
            assert!(damage(&restored).is_empty(), "a check finds no damage, but {:?}", damage(&restored));
        }
        let opened = Repository::open(repository.path()).expect("the repository can be opened");
        assert!(opened.verify(&mut |_, _| {}).expect("it can be checked").damage.is_empty());
    }
}

#[test]
fn a_copy_that_changed_on_its_own_is_told_from_the_store() {
    let (directory, repository, db, table) = sample(IndexKind::Hash);
    db.close().expect("the store can be closed");
    let copy = scratch();
    copy_tree(directory.path(), copy.path());
    drop(table);
    for (path, seed, allowed) in [(directory.path(), 1000, true), (copy.path(), 2000, false)] {
        let db = reopen(path);
        let table = db.table("t").expect("the table is there");
        for number in 0..200u64 {
            table.put(&number.to_be_bytes(), &value(seed + number, 500)).expect("a put works");
        }
        let outcome = db.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {});
        match outcome {
            Ok(_) => assert!(allowed, "the copy is not the store"),
            Err(error) => assert!(!allowed && matches!(error, Error::OtherStore { .. }), "{error}"),
        }
    }
    let opened = Repository::open(repository.path()).expect("the repository can be opened");
    assert!(opened.verify(&mut |_, _| {}).expect("it can be checked").damage.is_empty());
    assert_eq!(opened.points().len(), 3);
}

#[test]
fn a_full_disk_leaves_earlier_restore_points_whole() {
    for kind in KINDS {
        let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=12m", "tmpfs"]) else { return };
        let repository = mount.path().join("backups");
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let put = |seed: u64, count: u64| {
            for number in 0..count {
                table
                    .put_with(&number.to_be_bytes(), &value(seed + number, 4000), Durability::None)
                    .expect("a put works");
            }
        };
        put(0, 1000);
        back_up(&db, &repository);
        put(10_000, 2500);
        let full = |db: &Db| {
            let error = refusal(
                db.backup(&repository, &BackupOptions::default(), &mut |_, _| {}),
                "a backup that does not fit",
            );
            assert!(matches!(error, Error::DestinationFull { .. }), "{error}");
            assert!(error.to_string().contains("free some"), "{error}");
        };
        full(&db);
        full(&db);
        let check = |point, seed, count: u64| {
            let (_directory, restored) = restored(&repository, point);
            let table = restored.table("t").expect("the table is there");
            for number in 0..count {
                assert_get(&table, &number.to_be_bytes(), Some(&value(seed + number, 4000)), kind.name());
            }
        };
        check(1, 0, 1000);
        let error = {
            let opened = Repository::open(&repository).expect("the repository can be opened");
            assert_eq!(opened.points().len(), 1);
            refusal(opened.restore(None, mount.path().join("store"), &mut |_, _| {}), "a restore that does not fit")
        };
        assert!(matches!(error, Error::DestinationFull { .. }), "{error}");
        fs::remove_dir_all(mount.path().join("store")).expect("half a store can be removed");
        mount.remount("size=64m");
        back_up(&db, &repository);
        check(2, 10_000, 2500);
    }
}

#[test]
fn a_backup_can_be_slowed_down() {
    let (directory, repository) = (scratch(), scratch());
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    for number in 0..500u64 {
        table.put_with(&number.to_be_bytes(), &value(number, 4000), Durability::None).expect("a put works");
    }
    let options = BackupOptions { bytes_per_second: Some(8 << 20) };
    let began = std::time::Instant::now();
    let mut last = (0, 0);
    let report = db.backup(repository.path(), &options, &mut |done, total| {
        assert!(done >= last.0 && done <= total, "progress goes on: {done} of {total}");
        last = (done, total);
    });
    let copied = report.expect("a backup can be made").copied_bytes;
    assert_eq!(last, (copied, copied), "progress comes to its end");
    let least = copied as f64 / (8 << 20) as f64 * 0.8;
    assert!(began.elapsed().as_secs_f64() >= least, "{copied} bytes took {:?}", began.elapsed());
}
