//! Backups made under load, chains of them, damage to them, and the stores that come back.

mod harm;
mod places;
mod runs;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aiodb::{BackupOptions, Batch, Db, Durability, Options, Repository, Table};
use support::{KINDS, Known, Varied, assert_get, damage, merging, open, quiet, refusal, scratch, small, upkeep, value};
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
