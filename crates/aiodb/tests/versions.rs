//! Scans and snapshots under more overwrites than memory keeps records for, and what is left of the files that have the others.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Db, Durability, IndexKind, Options, Scan, ScanOptions, Snapshot, Step, Table};
use support::{KINDS, eventually, open, scratch, small};

const FILES: &str = "/store/index/versions";

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// Begins a scan over all records.
fn scan<D: Device>(table: &Table<D>, kind: IndexKind) -> Scan<D> {
    let scan = if kind.is_ordered() { table.scan(ScanOptions::all()) } else { table.iterate() };
    scan.expect("a scan can be begun")
}

/// Scans of a snapshot in both directions, and gets, show the same, which is this.
fn assert_shows<D: Device>(
    snapshot: &Snapshot<D>,
    table: &Table<D>,
    kind: IndexKind,
    wanted: &BTreeMap<Vec<u8>, Vec<u8>>,
    what: &str,
) {
    let scans = match kind.is_ordered() {
        true => [ScanOptions::all(), ScanOptions::all().backward()].map(|options| snapshot.scan(table, options)).into(),
        false => vec![snapshot.iterate(table)],
    };
    for scan in scans {
        let found: aiodb::Result<Vec<_>> = scan.and_then(Iterator::collect);
        let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found.len(), wanted.len(), "{what}");
        assert!(found.into_iter().collect::<BTreeMap<_, _>>() == *wanted, "{what}");
    }
    let mut reader = snapshot.reader(table, 16).expect("a reader can be made");
    let mut numbers = (0..1000).step_by(7);
    loop {
        while reader.has_room()
            && let Some(number) = numbers.next()
        {
            reader.submit(&key(number), number).expect("a get can be submitted");
            let found = snapshot.get(table, &key(number)).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(found.as_ref(), wanted.get(&key(number)[..]), "{what}: key {number}");
        }
        let Some(got) = reader.poll().expect("a reader can be asked") else { break };
        let found = got.value.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(found, wanted.get(&key(got.token)[..]).map(Vec::as_slice), "{what}: key {} by a reader", got.token);
    }
}

/// Puts the same value to all keys below `keys`.
fn overwrite(db: &Db, table: &Table, keys: u64, value: u64) {
    for first in (0..keys).step_by(4096) {
        let mut batch = Batch::new();
        for number in first..keys.min(first + 4096) {
            batch.put(table, &key(number), &value.to_le_bytes()).expect("it is short");
        }
        db.write_with(&batch, Durability::None).expect("there is room");
    }
}

/// With the bounds that users have: memory had 262,144 superseded records at most, and the scan ended with the next one.
#[test]
fn a_scan_goes_on_under_five_times_as_many_overwrites_as_memory_had_records() {
    const KEYS: u64 = 265_000;
    const ROUNDS: u64 = 5;
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &Options::default());
        overwrite(&db, &table, KEYS, 0);
        let mut scan = scan(&table, kind);
        let mut seen = vec![false; KEYS as usize];
        let mut take = |record: Option<(&[u8], &[u8])>| {
            let Some((found, value)) = record else { return false };
            let number = u64::from_be_bytes(found.try_into().expect("a key has eight bytes"));
            assert_eq!(value, 0u64.to_le_bytes(), "{}: key {number}", kind.name());
            assert!(!std::mem::replace(&mut seen[number as usize], true), "{}: {number} comes twice", kind.name());
            true
        };
        for _ in 0..10 {
            assert!(take(scan.next_record().expect("a record")));
        }
        for round in 1..=ROUNDS {
            overwrite(&db, &table, KEYS, round);
        }
        // Of `hash` and `lsm` tables superseded records are found out behind the scenes.
        eventually("memory has few of the records that the scan needs", || {
            let stats = db.stats();
            let is_in_files = kind == IndexKind::Lsm || stats.kept_versions_in_files > 0;
            is_in_files && stats.kept_versions - stats.kept_versions_in_files < 1 << 17
        });
        let stats = db.stats();
        assert!(kind != IndexKind::Lmdb || stats.kept_versions_in_files > KEYS / 2, "{stats:?}");
        assert_eq!(stats.snapshots, 1);
        assert!(stats.kept_versions_in_files == 0 || stats.held_bytes > 0, "{stats:?}");
        while take(scan.next_record().unwrap_or_else(|error| panic!("{}: {error}", kind.name()))) {}
        assert!(seen.iter().all(|seen| *seen), "{}: a record is missing", kind.name());
        drop(scan);
        assert_eq!((db.stats().kept_versions, db.stats().held_bytes), (0, 0), "{}", kind.name());
        let is_there = |number| table.get(&key(number)).expect("a get works") == Some(ROUNDS.to_le_bytes().to_vec());
        assert!((0..KEYS).step_by(997).all(is_there), "{}", kind.name());
        db.close().expect("the store can be closed");
    }
}

/// A store on a simulated machine, in which memory has room for few superseded records.
fn simulated(device: &SimDevice, kind: IndexKind) -> (Db<SimDevice>, Table<SimDevice>) {
    let options = Options { background: false, versions_in_memory: 16, memtable_keys: 64, ..small() };
    let db = Db::open_on(device.clone(), Path::new("/store"), options).expect("the store opens");
    let table = db.table_or_create("t", kind).expect("the table is there or can be made");
    (db, table)
}

fn machine(directory: &Path) -> SimDevice {
    let device = SimDevice::new(54);
    device.set_real_directory(directory);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    device
}

fn files(device: &SimDevice) -> usize {
    device.file_names().iter().filter(|path| path.starts_with(FILES)).count()
}

/// All that a store does behind the scenes.
fn work(db: &Db<SimDevice>) {
    for step in [Step::Checkpoint, Step::Settle, Step::DeleteRanges, Step::Merge, Step::Spill, Step::Upkeep] {
        db.step(step).expect("a step works");
    }
}

fn contents<D: Device>(table: &Table<D>, kind: IndexKind) -> BTreeMap<Vec<u8>, Vec<u8>> {
    scan(table, kind).collect::<aiodb::Result<_>>().expect("a scan works")
}

/// Several snapshots, each of which sees its moment, whatever is overwritten, deleted, deleted by ranges, and emptied.
#[test]
fn each_snapshot_sees_its_moment() {
    for kind in KINDS {
        let (directory, mut taken) = (scratch(), Vec::new());
        let device = machine(directory.path());
        let (db, table) = simulated(&device, kind);
        for round in 0..8u64 {
            for number in 0..250 {
                if (number + round) % 5 == 0 {
                    table.delete_with(&key(number), Durability::None).expect("a delete works");
                } else {
                    table
                        .put_with(&key(number), &(round << 32 | number).to_le_bytes(), Durability::None)
                        .expect("a put");
                }
            }
            if kind.is_ordered() && round % 3 == 2 {
                table.delete_range(&key(40 * round), &key(40 * round + 100)).expect("a range delete works");
            }
            work(&db);
            taken.push((round, db.snapshot().expect("a snapshot"), contents(&table, kind)));
            if round % 4 == 3 {
                taken.remove(round as usize % taken.len());
            }
            for (of, snapshot, wanted) in &taken {
                assert_shows(snapshot, &table, kind, wanted, &format!("{}, round {round}: that of {of}", kind.name()));
            }
        }
        assert!(files(&device) > 0, "{}", kind.name());
        db.truncate_table("t").expect("the table can be emptied");
        work(&db);
        let what = format!("{}, of an emptied table", kind.name());
        taken.iter().for_each(|(_, snapshot, wanted)| assert_shows(snapshot, &table, kind, wanted, &what));
        taken.clear();
        assert_eq!(files(&device), 0, "{}: no snapshot needs them", kind.name());
    }
}

/// Most keys are gone from the index, or were never in it: a scan finds them in files alone, in bounded steps.
#[test]
fn a_scan_finds_what_was_deleted_since() {
    for kind in KINDS {
        let directory = scratch();
        let device = machine(directory.path());
        let (db, table) = simulated(&device, kind);
        for number in 0..2000 {
            table.put_with(&key(number), &number.to_le_bytes(), Durability::None).expect("a put works");
        }
        work(&db);
        let (before, snapshot) = (contents(&table, kind), db.snapshot().expect("a snapshot"));
        for number in 0..2000 {
            table.delete_with(&key(number), Durability::None).expect("a delete works");
            if number % 500 == 0 {
                work(&db);
            }
        }
        (0..20).for_each(|_| work(&db));
        assert!(contents(&table, kind).is_empty());
        // Sorted runs have the others until they are merged.
        let least = if kind == IndexKind::Lsm { 0 } else { 1500 };
        assert!(db.stats().kept_versions_in_files >= least, "{}: {:?}", kind.name(), db.stats());
        assert_shows(&snapshot, &table, kind, &before, kind.name());
    }
}

/// Whether it died or the machine did: nothing of them is needed, and their names are given to others.
#[test]
fn opening_removes_the_files_of_an_earlier_process() {
    for kind in KINDS {
        for power_cut in [false, true] {
            let directory = scratch();
            let device = machine(directory.path());
            let (db, table) = simulated(&device, kind);
            let put = |table: &Table<SimDevice>, round: u64| {
                for number in 0..100 {
                    table.put_with(&key(number), &round.to_le_bytes(), Durability::Sync).expect("a put works");
                }
            };
            put(&table, 1);
            work(&db);
            let snapshot = db.snapshot().expect("a snapshot");
            put(&table, 2);
            (0..4).for_each(|_| work(&db));
            assert!(files(&device) > 0, "{}", kind.name());
            let after = if power_cut { device.power_cut() } else { device.process_death() };
            // The dead process has the file of LMDB mapped still: the next one finds a copy.
            let another = scratch();
            support::copy_tree(directory.path(), another.path());
            after.set_real_directory(another.path());
            let (db_again, table_again) = simulated(&after, kind);
            assert_eq!(files(&after), 0, "{}, power cut: {power_cut}", kind.name());
            let all_new = |value: &Vec<u8>| *value == 2u64.to_le_bytes();
            let found = contents(&table_again, kind);
            assert!(found.len() == 100 && found.values().all(all_new), "{}", kind.name());
            // What the dead process still had is not its own any more.
            let again = db_again.snapshot().expect("a snapshot");
            put(&table_again, 3);
            (0..4).for_each(|_| work(&db_again));
            let kept = files(&after);
            assert!(kept > 0);
            drop((snapshot, table, db));
            assert_eq!(files(&after), kept, "{}", kind.name());
            assert!(again.get(&table_again, &key(7)).expect("a get") == Some(2u64.to_le_bytes().to_vec()));
        }
    }
}

/// A store's directory may have files of others, under the same name too.
#[test]
fn opening_removes_no_files_of_others() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Lsm, &small());
    drop((table, db));
    let others = ["versions/notes", "versions/1.versions", "log/versions/notes", "index/versions/notes"];
    for other in others.map(|other| directory.path().join(other)) {
        std::fs::create_dir_all(other.parent().expect("it lies in a directory")).expect("a directory can be made");
        std::fs::write(&other, "mine").expect("a file can be written");
    }
    let left = directory.path().join("index/versions/000000000007.versions");
    std::fs::write(&left, "of a process that died").expect("a file can be written");
    let (db, table) = open(directory.path(), IndexKind::Lsm, &small());
    assert!(!left.exists());
    for other in others.map(|other| directory.path().join(other)) {
        assert_eq!(std::fs::read(&other).expect("it is there"), b"mine", "{}", other.display());
    }
    drop((table, db));
}

/// The disk is full, and memory has as many superseded records as it may. Who drops a table that the snapshot sees makes room for puts.
#[test]
fn a_dropped_table_makes_room_for_puts_though_a_snapshot_sees_it() {
    for kind in [IndexKind::Hash, IndexKind::Lsm] {
        let directory = scratch();
        let device = machine(directory.path());
        let (db, table) = simulated(&device, kind);
        let large = db.create_table("large", kind).expect("the table can be made");
        for number in 0..400 {
            large.put_with(&key(number), &[7; 16 << 10], Durability::None).expect("there is room");
            table.put_with(&key(number), &number.to_le_bytes(), Durability::None).expect("there is room");
        }
        work(&db);
        device.set_capacity(Some(device.used_bytes() + (1 << 20)));
        let snapshot = db.snapshot().expect("a snapshot");
        let put = |number: u64| table.put_with(&key(number % 400), &[7; 100], Durability::None);
        let refused = (0..200_000).find_map(|number| put(number).err());
        assert!(matches!(refused, Some(aiodb::Error::DiskFull { .. })), "{}: {refused:?}", kind.name());
        assert!(snapshot.get(&table, &key(5)).expect("a get works").is_some(), "puts end no snapshot");
        db.drop_table("large").expect("a table can be dropped on a full disk");
        put(5).unwrap_or_else(|error| panic!("{}: {error}", kind.name()));
    }
}

/// Threads that overwrite, and threads that scan and read many keys: each sees values of one moment.
#[test]
fn scans_beside_writers_see_one_moment() {
    const KEYS: u64 = 2000;
    for kind in KINDS {
        let directory = scratch();
        let options = Options { versions_in_memory: 64, ..small() };
        let (db, table) = open(directory.path(), kind, &options);
        overwrite(&db, &table, KEYS, 0);
        let keys: Vec<_> = (0..KEYS).map(key).collect();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 1..=40 {
                    // One batch is one moment.
                    let mut batch = Batch::new();
                    for number in 0..KEYS {
                        batch.put(&table, &key(number), &u64::to_le_bytes(round)).expect("it is short");
                    }
                    db.write_with(&batch, Durability::None).expect("there is room");
                }
                is_over.store(true, Ordering::SeqCst);
            });
            let scans = [(); 2].map(|()| {
                scope.spawn(|| {
                    let mut scans = 0;
                    while !is_over.load(Ordering::SeqCst) || scans == 0 {
                        let mut values = BTreeMap::<Vec<u8>, u64>::new();
                        let mut scan = scan(&table, kind);
                        while let Some((_, value)) = scan.next_record().expect("a scan comes to its end") {
                            *values.entry(value.to_vec()).or_default() += 1;
                        }
                        let counts: Vec<u64> = values.into_values().collect();
                        assert_eq!(counts, [KEYS], "{}: values of one moment", kind.name());
                        let snapshot = db.snapshot().expect("a snapshot can be taken");
                        let values = snapshot.get_many(&table, &keys).expect("the keys can be read");
                        let is_first = |value: &Option<Vec<u8>>| value.is_some() && *value == values[0];
                        assert!(values.iter().all(is_first), "{}: values of one moment", kind.name());
                        scans += 1;
                    }
                })
            });
            writer.join().expect("no write fails");
            scans.into_iter().for_each(|scan| scan.join().expect("no scan fails"));
        });
        db.close().expect("the store can be closed");
        let left = std::fs::read_dir(directory.path().join("index/versions")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{}: closing a store removes its files", kind.name());
    }
}

/// Long keys of an ordered table have a digest in its index, those of a `hash` table are whole.
#[test]
fn long_keys_are_found_in_files() {
    for kind in KINDS {
        let directory = scratch();
        let device = machine(directory.path());
        let (db, table) = simulated(&device, kind);
        let long = |number: u64| {
            let mut key = vec![b'k'; 450 + 100 * number as usize];
            key.extend_from_slice(&number.to_be_bytes());
            key
        };
        for number in 0..100 {
            table.put_with(&long(number), b"old", Durability::None).expect("a put works");
        }
        work(&db);
        let (before, snapshot) = (contents(&table, kind), db.snapshot().expect("a snapshot"));
        for number in 0..100 {
            table.put_with(&long(number), b"new", Durability::None).expect("a put works");
        }
        (0..8).for_each(|_| work(&db));
        let least = if kind == IndexKind::Lsm { 0 } else { 50 };
        assert!(db.stats().kept_versions_in_files >= least, "{}: {:?}", kind.name(), db.stats());
        assert_shows(&snapshot, &table, kind, &before, kind.name());
        assert_eq!(snapshot.get(&table, &long(99)).expect("a get"), Some(b"old".to_vec()));
    }
}
