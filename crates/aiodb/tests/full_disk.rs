//! A full disk is never for ever: reads and whatever makes room go on, and a store that was emptied can be used again.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use aiodb::merge::Add;
use aiodb::{Batch, Db, Durability, Error, IndexKind, MergeOperators, Options, Step, Table, TableOptions};
use fastrand::Rng;
use support::{KINDS, Mount, open, quiet, segment_files, small, value};

/// As for [`small`], on a disk that has room for these many segments and little else.
fn disk(segments: usize) -> Option<Mount> {
    Mount::new(&["-t", "tmpfs", "-o", &format!("size={segments}m"), "tmpfs"])
}

/// Keys in an order that has nothing to do with their numbers.
fn key(number: u64) -> Vec<u8> {
    let mut key = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
    key.extend_from_slice(&number.to_be_bytes());
    key
}

/// Puts records until the disk is full; says how many there are.
fn fill(table: &Table, first: u64, length: usize, what: &str) -> u64 {
    for number in first..first + 10_000_000 {
        match table.put_with(&key(number), &value(number, length), Durability::None) {
            Ok(_) => {}
            Err(Error::DiskFull { .. }) => return number - first,
            Err(error) => panic!("{what}: put {number}: {error}"),
        }
    }
    panic!("{what}: a disk so small gets full");
}

fn assert_contents(table: &Table, numbers: impl Iterator<Item = u64>, length: usize, what: &str) {
    for number in numbers {
        let found = table.get(&key(number)).unwrap_or_else(|error| panic!("{what}: get {number}: {error}"));
        assert_eq!(found, Some(value(number, length)), "{what}: key {number}");
    }
}

/// The index of records so small takes as much as the records, and needs room itself before it can forget any of them.
#[test]
fn a_disk_full_of_small_records_can_be_emptied() {
    for kind in KINDS {
        for how in ["deletes", "counted deletes", "a drop", "a truncate", "a truncate after it was closed"] {
            let Some(mount) = disk(40) else { return };
            let what = format!("{}, {how}", kind.name());
            let store = mount.path().join("store");
            let merge_operators = MergeOperators::default().with(Add);
            let (mut db, mut table) = open(&store, kind, &Options { merge_operators, ..small() });
            let counting = TableOptions { merge: Some("add".into()), ..kind.into() };
            let counts = db.create_table_with("counts", counting).unwrap_or_else(|error| panic!("{what}: {error}"));
            let count = fill(&table, 0, 4, &what);
            println!("{what}: {count} records");
            assert_contents(&table, (0..count).step_by(977), 4, &what);
            match how {
                "deletes" => {
                    for number in 0..count {
                        let deleted = table.delete_with(&key(number), Durability::None);
                        deleted.unwrap_or_else(|error| panic!("{what}: delete {number} of {count}: {error}"));
                    }
                }
                "counted deletes" => {
                    for number in 0..count {
                        let mut batch = Batch::new();
                        batch.delete(&table, &key(number)).unwrap();
                        batch.merge(&counts, b"deleted", &1i64.to_le_bytes()).unwrap();
                        let deleted = db.write_with(&batch, Durability::None);
                        deleted.unwrap_or_else(|error| panic!("{what}: delete {number} of {count}: {error}"));
                    }
                    let counted = counts.get(b"deleted").unwrap_or_else(|error| panic!("{what}: {error}"));
                    assert_eq!(counted, Some(count.to_le_bytes().to_vec()), "{what}");
                }
                "a drop" => db.drop_table("t").unwrap_or_else(|error| panic!("{what}: {error}")),
                "a truncate" => db.truncate_table("t").unwrap_or_else(|error| panic!("{what}: {error}")),
                _ => {
                    db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
                    drop((db, table));
                    (db, table) = open(&store, kind, &small());
                    assert_contents(&table, (0..count).step_by(977), 4, &what);
                    db.truncate_table("t").unwrap_or_else(|error| panic!("{what}: {error}"));
                }
            }
            drop((table, counts));
            let table = db.table_or_create("t", kind).unwrap_or_else(|error| panic!("{what}: {error}"));
            support::eventually(&format!("{what}: the log's space comes back"), || segment_files(&store).len() <= 16);
            // Nothing is left behind that takes room for good, but for a reserve.
            let again = fill_when_there_is_room(&table, count / 2, &what);
            assert_contents(&table, (1 << 40..(1 << 40) + again).step_by(977), 4, &what);
            db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
            drop((db, table));
            let (db, table) = open(&store, kind, &small());
            assert_contents(&table, (1 << 40..(1 << 40) + again).step_by(977), 4, &what);
            drop(db);
        }
    }
}

/// Puts so many new records; a put that is refused is tried again, while the store works.
fn fill_when_there_is_room(table: &Table, count: u64, what: &str) -> u64 {
    for number in 1 << 40..(1 << 40) + count {
        put_when_there_is_room(
            table,
            number,
            4,
            &format!("{what}: put {number} of {count} on a disk that was emptied"),
        );
    }
    count
}

fn put_when_there_is_room(table: &Table, number: u64, length: usize, what: &str) {
    support::eventually(what, || match table.put_with(&key(number), &value(number, length), Durability::None) {
        Ok(_) => true,
        Err(Error::DiskFull { .. }) => false,
        Err(error) => panic!("{what}: {error}"),
    });
}

/// A snapshot may see what is dropped, but not for ever: the disk that it keeps full is worth more.
#[test]
fn a_snapshot_does_not_keep_a_disk_full_that_was_emptied() {
    for kind in KINDS {
        for how in ["a drop", "a truncate", "a range delete"] {
            if kind == IndexKind::Hash && how == "a range delete" {
                continue;
            }
            let Some(mount) = disk(24) else { return };
            let what = format!("{}, {how} under a snapshot", kind.name());
            let (db, table) = open(&mount.path().join("store"), kind, &small());
            let count = fill(&table, 0, 3000, &what);
            let snapshot = db.snapshot().unwrap_or_else(|error| panic!("{what}: {error}"));
            match how {
                "a drop" => db.drop_table("t").unwrap_or_else(|error| panic!("{what}: {error}")),
                "a truncate" => db.truncate_table("t").unwrap_or_else(|error| panic!("{what}: {error}")),
                _ => {
                    let deleted = table.delete_range(b"\0", b"");
                    deleted.map(drop).unwrap_or_else(|error| panic!("{what}: {error}"));
                }
            }
            let again = db.table_or_create("t", kind).unwrap_or_else(|error| panic!("{what}: {error}"));
            let numbers = 1 << 40..(1 << 40) + count / 2;
            for number in numbers.clone() {
                put_when_there_is_room(&again, number, 3000, &format!("{what}: put {number}, half of {count}"));
            }
            let seen = snapshot.get(&table, &key(0));
            assert!(matches!(seen, Err(Error::SnapshotEnded)), "{what}: the snapshot has ended, not: {seen:?}");
            assert_contents(&again, numbers.step_by(97), 3000, &what);
            assert_eq!(again.get(&key(0)).expect("a get works"), None, "{what}");
        }
    }
}

/// Nor is a put refused because tables go all the time, one after the other.
#[test]
fn overwrites_beside_truncates_are_never_refused() {
    for kind in KINDS {
        let Some(mount) = disk(20) else { return };
        let what = kind.name();
        let (db, table) = open(&mount.path().join("store"), kind, &small());
        let emptied = db.create_table("emptied", kind).expect("there is room");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let put = emptied.put_with(b"key", b"value", Durability::None);
                    put.and_then(|_| db.truncate_table("emptied")).unwrap_or_else(|error| panic!("{what}: {error}"));
                }
            });
            // Also when a put panics.
            let _over = Over(&is_over);
            for round in 0..20 {
                for number in 0..250 {
                    let put = table.put_with(&key(number), &value(number + round, 2000), Durability::None);
                    put.unwrap_or_else(|error| panic!("{what}: round {round}, put {number}: {error}"));
                }
            }
        });
        db.close().expect("a sound store can be closed");
    }
}

/// Deletes help with merges as puts do: else each commit of their keys would leave one more run for look-ups to ask.
#[test]
fn deletes_leave_few_runs() {
    const KEYS: u64 = 1000;
    let Some(mount) = disk(64) else { return };
    let options = Options { memtable_keys: 4, ..support::quiet() };
    let (db, table) = open(&mount.path().join("store"), IndexKind::Lsm, &options);
    for number in 0..KEYS {
        table.put_with(&key(number), b"value", Durability::None).expect("a put works");
    }
    for number in 0..KEYS {
        table.delete_with(&key(number), Durability::None).expect("a delete works");
    }
    let runs = db.metrics().runs;
    assert!(runs < 64, "{runs} runs");
}

/// Says that it is over when it is dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// There is always garbage enough to be taken back: a put waits for that rather than being refused.
#[test]
fn overwrites_of_little_data_are_never_refused() {
    for kind in KINDS {
        for durability in [Durability::None, Durability::Sync] {
            let Some(mount) = disk(14) else { return };
            let what = format!("{}, {durability:?}", kind.name());
            let (db, table) = open(&mount.path().join("store"), kind, &small());
            let rounds = if durability == Durability::Sync { 10 } else { 60 };
            for round in 0..rounds {
                for number in 0..250 {
                    let put = table.put_with(&key(number), &value(number + round, 2000), durability);
                    put.unwrap_or_else(|error| panic!("{what}: round {round}, put {number}: {error}"));
                }
            }
            for number in 0..250 {
                assert_eq!(table.get(&key(number)).expect("a get works"), Some(value(number + rounds - 1, 2000)));
            }
            db.close().expect("a sound store can be closed");
        }
    }
}

/// Any operations on a disk that is full most of the time: what was acknowledged is there, and after all is deleted the disk
/// takes again what it took.
#[test]
fn a_random_sequence_on_a_full_disk_ends_with_a_store_that_can_be_used() {
    for seed in 1..=4 {
        for kind in KINDS {
            let Some(mount) = disk(32) else { return };
            run_on_a_full_disk(&mount.path().join("store"), kind, seed);
        }
    }
}

fn run_on_a_full_disk(store: &Path, kind: IndexKind, seed: u64) {
    let what = format!("{}, seed {seed}", kind.name());
    let mut random = Rng::with_seed(seed);
    let mut model: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    let (mut db, mut table) = open(store, kind, &small());
    let mut refused = 0;
    // As many as make the disk full: every table has its own length of values.
    let length = [4, 100, 3000, 40_000][seed as usize % 4];
    let keys = (48 << 20) / (length as u64 + 90);
    for step in 0..keys * 3 / 2 {
        let number = random.u64(..keys);
        let outcome = match random.u32(..1000) {
            0 if random.u32(..500) == 0 => {
                let truncated = db.truncate_table("t");
                truncated.unwrap_or_else(|error| panic!("{what}: step {step}: truncate: {error}"));
                model.clear();
                Ok(())
            }
            1 if random.u32(..20) == 0 => {
                (db, table) = reopened(db, table, store, kind, &format!("{what}: step {step}"));
                Ok(())
            }
            0..200 => {
                delete_when_there_is_room(&table, number, &format!("{what}: step {step}"));
                model.remove(&number);
                Ok(())
            }
            _ => {
                let put = table.put_with(&key(number), &value(step, length), Durability::None);
                put.map(|_| {
                    model.insert(number, (step, length));
                })
            }
        };
        match outcome {
            Err(Error::DiskFull { .. }) => refused += 1,
            outcome => outcome.unwrap_or_else(|error| panic!("{what}: step {step}: {error}")),
        }
    }
    println!("{what}: {} records, {refused} refusals", model.len());
    assert!(refused > 0, "{what}: the disk was full");
    (db, table) = reopened(db, table, store, kind, &what);
    for number in 0..keys {
        let found = table.get(&key(number)).unwrap_or_else(|error| panic!("{what}: get {number}: {error}"));
        let wanted = model.get(&number).map(|(seed, length)| value(*seed, *length));
        assert_eq!(found, wanted, "{what}: key {number}");
    }
    for number in model.keys() {
        delete_when_there_is_room(&table, *number, &what);
    }
    let again = (model.len() / 2).max(1) as u64;
    for number in 0..again {
        let put = format!("{what}: put {number} of {again} on a disk that was emptied");
        put_when_there_is_room(&table, number, length, &put);
    }
    let report = db.verify(&mut |_, _| {}).unwrap_or_else(|error| panic!("{what}: verify: {error}"));
    assert!(report.damage.is_empty(), "{what}: {:?}", report.damage);
}

/// Merges for room meet the damage; what other tables have overwritten makes room all the same.
#[test]
fn a_damaged_run_keeps_no_disk_full() {
    let Some(mount) = disk(40) else { return };
    let store = mount.path().join("store");
    let (db, table) = open(&store, IndexKind::Lsm, &quiet());
    for numbers in [0..20_000, 20_000..30_000] {
        for number in numbers {
            table.put_with(&key(number), &value(number, 4), Durability::None).expect("there is room");
        }
        db.step(Step::Checkpoint).expect("there is room");
    }
    let directory = store.join("index").join("runs");
    let runs: Vec<_> = std::fs::read_dir(&directory)
        .expect("the runs lie here")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "run"))
        .collect();
    assert!(runs.len() >= 2, "there is a file of each run at least");
    for run in &runs {
        let mut bytes = std::fs::read(run).expect("it can be read");
        bytes[100] ^= 1;
        std::fs::write(run, bytes).expect("it can be written");
    }
    let other = db.create_table("other", IndexKind::Hash).expect("there is room");
    for round in 0..20_000 {
        let put = other.put_with(&key(round % 100), &value(round, 10_000), Durability::None);
        put.unwrap_or_else(|error| panic!("overwrite {round}: {error}"));
    }
    for number in (0..100).map(|number| number + 19_900) {
        assert_eq!(other.get(&key(number % 100)).expect("it can be read"), Some(value(number, 10_000)));
    }
    assert!((0..30_000).any(|number| table.get(&key(number)).is_err()), "the runs are damaged");
}

/// A delete may be refused for a moment, while reclaim has all the room that it could take, but not for long.
fn delete_when_there_is_room(table: &Table, number: u64, what: &str) {
    support::eventually(&format!("{what}: delete {number}"), || {
        match table.delete_with(&key(number), Durability::None) {
            Ok(_) => true,
            Err(Error::DiskFull { .. }) => false,
            Err(error) => panic!("{what}: delete {number}: {error}"),
        }
    });
}

fn reopened(db: Db, table: Table, store: &Path, kind: IndexKind, what: &str) -> (Db, Table) {
    db.close().unwrap_or_else(|error| panic!("{what}: close: {error}"));
    drop((db, table));
    open(store, kind, &small())
}
