//! `hash` tables with more keys than memory is for: what has come to files is found, overwritten, deleted, merged and moved like the
//! rest, and comes through crashes, backups and damage.

mod crashes;

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::{Call, Effect, SimDevice};
use aiodb::merge::Append;
use aiodb::{
    BackupOptions, Db, Durability, Error, IndexKind, MergeOperators, Options, Repository, Step, Table, TableOptions,
};
use fastrand::Rng;
use support::{damage, scratch, value};

const SPILLED: &str = "index/spilled";

type Contents = BTreeMap<u64, Vec<u8>>;

fn key(number: u64) -> Vec<u8> {
    format!("key {number:08}").into_bytes()
}

/// Options of a store that works only when it is told to, and has memory for few keys.
fn options(hash_bytes: u64) -> Options {
    Options {
        segment_bytes: 256 << 10,
        background: false,
        hash_bytes: Some(hash_bytes),
        merge_operators: MergeOperators::default().with(Append),
        ..Options::default()
    }
}

fn table_of<D: Device>(db: &Db<D>) -> Table<D> {
    let made = || db.create_table_with("t", TableOptions { merge: Some("append".into()), ..IndexKind::Hash.into() });
    db.table("t").or_else(|_| made()).expect("the table is there or can be made")
}

fn put<D: Device>(table: &Table<D>, contents: &mut Contents, number: u64, value: Vec<u8>) {
    table.put_with(&key(number), &value, Durability::None).expect("a put works");
    contents.insert(number, value);
}

fn steps<D: Device>(db: &Db<D>, step: Step, count: usize) {
    (0..count).for_each(|_| db.step(step).expect("the work can be done"));
}

/// Brings all that is old enough to files, and merges them.
fn spill<D: Device>(db: &Db<D>) {
    steps(db, Step::Write, 1);
    steps(db, Step::Spill, 40);
}

/// Settles all tags.
fn settle<D: Device>(db: &Db<D>) {
    for _ in 0..1000 {
        if db.stats().unsettled_tags == 0 {
            return;
        }
        steps(db, Step::Write, 1);
        steps(db, Step::Settle, 1);
    }
    panic!("{} tags cannot be settled", db.stats().unsettled_tags);
}

fn check<D: Device>(db: &Db<D>, contents: &Contents, keys: u64, when: &str) {
    let table = table_of(db);
    let names: Vec<_> = (0..keys).map(key).collect();
    let values = table.get_many(&names).unwrap_or_else(|error| panic!("{when}: {error}"));
    for number in 0..keys {
        let found = table.get(&key(number)).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert_eq!(found.as_ref(), contents.get(&number), "{when}: key {number}");
        assert_eq!(values[number as usize], found, "{when}: key {number} by a reader");
    }
    let found: aiodb::Result<Vec<_>> = table.iterate().and_then(Iterator::collect);
    let found = found.unwrap_or_else(|error| panic!("{when}: {error}"));
    assert_eq!(found.len(), contents.len(), "{when}: each key once");
    let found: BTreeMap<_, _> = found.into_iter().collect();
    let wanted: BTreeMap<_, _> = contents.iter().map(|(number, value)| (key(*number), value.clone())).collect();
    assert!(found == wanted, "{when}: what is iterated");
}

/// What is counted of the table: keys, bytes in memory, bytes on disk.
fn counted<D: Device>(db: &Db<D>) -> (u64, u64, u64) {
    let stats = db.stats();
    let table = &stats.tables[0];
    assert!(table.keys_exact, "all tags are settled");
    (table.keys, table.index_memory_bytes, table.index_disk_bytes)
}

#[test]
fn a_tag_that_cannot_be_settled_for_want_of_memory_waits() {
    const KEYS: u64 = 24;
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("the machine runs");
    let options = Options { segment_bytes: 64 << 10, ..options(0) };
    let db = Db::open_on(device.clone(), "/store", options).expect("the store can be made");
    let (table, mut contents) = (table_of(&db), Contents::new());
    (0..KEYS).for_each(|number| put(&table, &mut contents, number, value(number, 100)));
    spill(&db);
    settle(&db);
    put(&table, &mut contents, 0, value(KEYS, 100));
    steps(&db, Step::Write, 1);
    device.disturb(Call::Read, Effect::Shortage, 0, 1, |_| true);
    settle(&db);
    assert!(db.stats().trouble.is_some(), "the read failed");
    assert_eq!(counted(&db).0, KEYS);
    check(&db, &contents, KEYS, "afterwards");
}

/// The directory of runs takes no file: keys stay in memory, and segments are emptied all the same.
#[test]
fn the_rest_of_upkeep_goes_on_where_nothing_can_be_spilled() {
    const KEYS: u64 = 1000;
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("the machine runs");
    let db = Db::open_on(device.clone(), "/store", options(0)).expect("the store can be made");
    let (table, mut contents) = (table_of(&db), Contents::new());
    device.fail(Call::Write, 0, u64::MAX, |path| path.starts_with("/store/index/spilled"));
    for round in 0..20 {
        (0..KEYS).for_each(|number| put(&table, &mut contents, number, value(round * KEYS + number, 500)));
        steps(&db, Step::Write, 1);
        steps(&db, Step::Upkeep, 10);
    }
    let (stats, metrics) = (db.stats(), db.metrics());
    assert!(stats.trouble.is_some(), "it is said");
    assert!(stats.checkpoints > 1 && metrics.reclaimed_segments > 0, "{} checkpoints", stats.checkpoints);
    device.clear_faults();
    spill(&db);
    settle(&db);
    assert!(db.stats().tables[0].index_disk_bytes > 0, "keys come to files now");
    check(&db, &contents, KEYS, "afterwards");
}

#[test]
fn everything_is_there_where_files_have_most_keys() {
    const KEYS: u64 = 30_000;
    const BOUND: u64 = 300 << 10;
    let directory = scratch();
    // Through the page cache, for the sake of the many gets.
    let options = Options { direct: false, ..options(BOUND) };
    let open = |options: Options| Db::open(directory.path(), options).expect("the store can be opened");
    let (mut db, mut contents, mut rng) = (open(options.clone()), Contents::new(), Rng::with_seed(7));
    // Records that count: an operand counts beside its base.
    let mut records = BTreeMap::<u64, u64>::new();
    for round in 0..3 {
        let table = table_of(&db);
        for number in 0..KEYS {
            match (round, rng.u8(..16)) {
                (0, _) | (_, 0..3) => {
                    put(&table, &mut contents, number, value(number + round, 20 + number as usize % 80));
                    records.insert(number, 1);
                }
                (_, 3) => {
                    table.delete_with(&key(number), Durability::None).expect("a delete works");
                    contents.remove(&number);
                    records.remove(&number);
                }
                (_, 4..6) => {
                    *records.entry(number).or_default() += 1;
                    table.merge_with(&key(number), b"+", Durability::None).expect("a merge works");
                    contents.entry(number).or_default().push(b'+');
                }
                _ => {}
            }
            if number % 4000 == 0 {
                spill(&db);
            }
        }
        spill(&db);
        check(&db, &contents, KEYS + 10, "before tags are settled");
        settle(&db);
        spill(&db);
        let (keys, _, disk) = counted(&db);
        assert_eq!(keys, records.values().sum::<u64>(), "round {round}");
        assert!(disk > KEYS * 8, "files have most keys: {disk} bytes");
        check(&db, &contents, KEYS + 10, "settled");
        assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new(), "round {round}");
        assert!(damage(&db).is_empty(), "round {round}: {:?}", damage(&db));
        db.close().expect("it closes");
        drop((table, db));
        db = open(options.clone());
        assert!(!db.stats().rebuilt_indexes, "round {round}");
        check(&db, &contents, KEYS + 10, "opened again");
    }
    drop(db);
    let db = open(Options { read_only: true, create: false, ..options.clone() });
    check(&db, &contents, KEYS, "opened for reading");
    drop(db);
    let db = open(Options { rebuild_index: true, ..options.clone() });
    assert!(db.stats().rebuilt_indexes);
    check(&db, &contents, KEYS + 10, "made again");
    settle(&db);
    assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new());
    // Where memory has room for all, what runs have stays there.
    db.close().expect("it closes");
    drop(db);
    check(&open(Options { hash_bytes: None, ..options.clone() }), &contents, KEYS, "with much memory");
}

/// The figures that the documentation promises.
#[test]
fn a_spilled_key_takes_two_bytes_of_memory_and_a_read() {
    const KEYS: u64 = 100_000;
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("the machine runs");
    let options = Options { segment_bytes: 4 << 20, block_cache_bytes: Some(0), ..options(0) };
    let db = Db::open_on(device, "/store", options).expect("it opens");
    let table = table_of(&db);
    let empty = db.stats().tables[0].index_memory_bytes;
    for number in 0..KEYS {
        table.put_with(&key(number), b"value", Durability::None).expect("a put works");
        if number % 10_000 == 0 {
            steps(&db, Step::Write, 1);
            steps(&db, Step::Spill, 3);
        }
    }
    settle(&db);
    spill(&db);
    let (keys, memory, disk) = counted(&db);
    let bytes_per_key = (memory - empty) as f64 / keys as f64;
    println!("{bytes_per_key:.2} bytes of memory and {:.2} of the disk for each key", disk as f64 / keys as f64);
    assert_eq!(keys, KEYS);
    assert!(bytes_per_key <= 2.0, "{bytes_per_key} bytes of memory");
    assert!(disk <= 20 * KEYS, "{disk} bytes on disk");
    let stats = &db.stats().tables[0];
    assert!(stats.runs > 0 && stats.run_bytes == disk, "{} runs of {} bytes", stats.runs, stats.run_bytes);
    assert_eq!(stats.merge_debt_bytes, 0, "all that is worth it is merged");
    let in_memory = stats.keys_in_memory();
    assert!(in_memory.is_some_and(|share| share < 0.2), "{in_memory:?} of the keys are in memory");
    let reads = |db: &Db<SimDevice>| db.metrics().run_block_reads;
    let before = reads(&db);
    for number in (0..KEYS).step_by(20) {
        assert!(table.get(&key(number)).expect("a get works").is_some());
    }
    let reads_per_get = (reads(&db) - before) as f64 / (KEYS / 20) as f64;
    println!("{reads_per_get:.3} reads of blocks for each get");
    assert!(reads_per_get <= 1.1, "{reads_per_get} reads");
}

/// Tables share the memory that there is: the one that takes most gives up keys.
#[test]
fn the_largest_table_gives_up_keys_first() {
    let directory = scratch();
    let db = Db::open(directory.path(), options(1 << 20)).expect("it opens");
    let tables = ["few", "many"].map(|name| db.create_table(name, IndexKind::Hash).expect("it can be made"));
    let in_files = |table: &Table| {
        let stats = db.stats();
        let of_table = stats.tables.iter().find(|found| found.name == table.name()).expect("it is there");
        of_table.index_disk_bytes
    };
    let put = |table: &Table, numbers: std::ops::Range<u64>| {
        for number in numbers {
            table.put_with(&key(number), &value(number, 20), Durability::None).expect("a put works");
        }
        spill(&db);
    };
    put(&tables[0], 0..2000);
    put(&tables[1], 0..150_000);
    assert!(in_files(&tables[1]) > 500_000 && in_files(&tables[0]) == 0);
    assert!(db.stats().memory.hash_bytes < 1_200_000, "{:?}", db.stats().memory);
    put(&tables[0], 2000..150_000);
    assert!(in_files(&tables[0]) > 500_000, "it is the largest by now");
    assert!(db.stats().memory.hash_bytes < 1_200_000, "{:?}", db.stats().memory);
    for number in (0..150_000).step_by(101) {
        for table in &tables {
            assert_eq!(table.get(&key(number)).expect("a get works"), Some(value(number, 20)), "key {number}");
        }
    }
}

/// Where the disk has no room to merge runs they become more, and memory has no more than it should have all the same.
#[test]
fn spills_go_on_where_the_disk_has_no_room_for_merges() {
    const ROUNDS: u64 = 24;
    const KEYS: u64 = 5000;
    let device = SimDevice::new(3);
    device.create_dir(Path::new("/store")).expect("the machine runs");
    // One segment is enough: nothing is reserved for the next.
    let options = Options { segment_bytes: 16 << 20, ..options(0) };
    let db = Db::open_on(device.clone(), "/store", options).expect("it opens");
    let table = table_of(&db);
    for round in 0..ROUNDS {
        for number in round * KEYS..(round + 1) * KEYS {
            table.put_with(&key(number), b"value", Durability::None).expect("a put works");
        }
        steps(&db, Step::Write, 1);
        // More than a run of these keys takes, with a checkpoint and the tags that are unsettled by then, and less than a merge of four.
        device.set_capacity(Some(device.used_bytes() + 44 * KEYS));
        steps(&db, Step::Spill, 6);
        device.set_capacity(None);
        let in_files = db.stats().tables[0].index_disk_bytes;
        assert!(in_files > (round + 1) * KEYS * 12, "round {round}: {in_files} bytes in files");
    }
    let spilled = |device: &SimDevice| {
        device.file_names().iter().filter(|name| name.starts_with(Path::new("/store").join(SPILLED))).count()
    };
    assert!(spilled(&device) > 16, "{} runs", spilled(&device));
    for number in (0..ROUNDS * KEYS).step_by(37) {
        assert_eq!(table.get(&key(number)).expect("a get works").as_deref(), Some(&b"value"[..]));
    }
    steps(&db, Step::Spill, 100);
    steps(&db, Step::Checkpoint, 1);
    assert!(spilled(&device) < 4, "{} runs, with room", spilled(&device));
}

/// A store with spilled keys, in a directory.
fn sample(directory: &Path, keys: u64) -> (Db, Contents) {
    let (db, mut contents) = (Db::open(directory, options(0)).expect("it opens"), Contents::new());
    let table = table_of(&db);
    for round in 0..3 {
        for number in (0..keys).filter(|number| round == 0 || number % 5 == round) {
            put(&table, &mut contents, number, value(number + round, 50));
        }
        spill(&db);
    }
    settle(&db);
    spill(&db);
    (db, contents)
}

#[test]
fn a_store_from_a_backup_has_its_runs() {
    let (directory, repository) = (scratch(), scratch());
    let (db, mut contents) = sample(directory.path(), 3000);
    let back_up = || db.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {}).expect("it can be made");
    let first = (back_up().point, contents.clone());
    for number in (0..3000).step_by(9) {
        put(&table_of(&db), &mut contents, number, b"later".to_vec());
    }
    settle(&db);
    spill(&db);
    let second = (back_up().point, contents.clone());
    // One more has nothing to copy but what lies in memory.
    assert!(back_up().copied_bytes < 64 << 10, "files of runs come once");
    let opened = Repository::open(repository.path()).expect("the repository can be opened");
    assert!(opened.verify(&mut |_, _| {}).expect("it can be checked").damage.is_empty());
    for (point, contents) in [first, second] {
        let target = scratch();
        let report = opened.restore(Some(point.number), target.path(), &mut |_, _| {}).expect("it can be restored");
        assert!(report.index_damage.is_none());
        let db = Db::open(target.path(), options(0)).expect("it opens");
        assert!(!db.stats().rebuilt_indexes, "point {}: the runs are there", point.number);
        check(&db, &contents, 3010, "restored");
        assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new());
        let mut contents = contents;
        put(&table_of(&db), &mut contents, 2, b"afterwards".to_vec());
        spill(&db);
        check(&db, &contents, 3010, "written to");
    }
}

#[test]
fn a_damaged_run_costs_a_restore_point_its_index_alone() {
    let (directory, repository, target) = (scratch(), scratch(), scratch());
    let (db, contents) = sample(directory.path(), 3000);
    db.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {}).expect("it can be made");
    for entry in std::fs::read_dir(repository.path().join("runs")).expect("there are runs") {
        let path = entry.expect("it can be listed").path();
        let mut bytes = std::fs::read(&path).expect("it can be read");
        bytes[100] ^= 1;
        std::fs::write(&path, &bytes).expect("it can be written");
    }
    let opened = Repository::open(repository.path()).expect("the repository can be opened");
    let found = opened.verify(&mut |_, _| {}).expect("it can be checked");
    assert!(found.damaged_points.is_empty() && found.points_without_index.len() == 1, "{found:?}");
    let report = opened.restore(None, target.path(), &mut |_, _| {}).expect("it can be restored");
    assert!(report.index_damage.is_some());
    let db = Db::open(target.path(), options(0)).expect("it opens");
    assert!(db.stats().rebuilt_indexes, "the index is made again");
    check(&db, &contents, 3010, "restored");
}

#[test]
fn damage_to_a_run_is_reported_and_the_log_makes_up_for_it() {
    let directory = scratch();
    let (db, contents) = sample(directory.path(), 3000);
    db.close().expect("it closes");
    drop(db);
    let runs = std::fs::read_dir(directory.path().join(SPILLED)).expect("there are runs");
    let run =
        runs.map(|entry| entry.expect("it can be listed").path()).max_by_key(|path| path.metadata().unwrap().len());
    let run = run.expect("there is a run");
    let mut bytes = std::fs::read(&run).expect("it can be read");
    bytes[2000] ^= 0x10;
    std::fs::write(&run, &bytes).expect("it can be written");
    let db = Db::open(directory.path(), options(0)).expect("blocks are read when they are asked for");
    let table = table_of(&db);
    let outcomes: Vec<_> = (0..3000).map(|number| (number, table.get(&key(number)))).collect();
    let damaged = outcomes.iter().filter(|(_, found)| matches!(found, Err(Error::Corruption { .. }))).count();
    let right = outcomes.iter().filter(|(number, found)| found.as_ref().ok() == Some(&contents.get(number).cloned()));
    assert!(damaged > 0, "some keys lie in the block");
    assert_eq!(right.count() + damaged, 3000, "no key is absent for it");
    assert!(!damage(&db).is_empty());
    drop((table, db));
    std::fs::remove_file(&run).expect("it can be removed");
    let missing = Db::open(directory.path(), options(0)).map(drop).expect_err("a file is missing");
    assert!(matches!(missing, Error::Corruption { .. }), "{missing}");
    let db = Db::open(directory.path(), Options { rebuild_index: true, ..options(0) }).expect("the log has everything");
    check(&db, &contents, 3010, "made again");
    assert!(damage(&db).is_empty());
}

#[test]
fn dropped_and_truncated_tables_leave_nothing() {
    let directory = scratch();
    let (db, _) = sample(directory.path(), 3000);
    db.truncate_table("t").expect("it can be emptied");
    check(&db, &Contents::new(), 100, "truncated");
    let mut contents = Contents::new();
    (0..500).for_each(|number| put(&table_of(&db), &mut contents, number, value(number, 40)));
    for _ in 0..3 {
        spill(&db);
        steps(&db, Step::Reclaim, 50);
        steps(&db, Step::Checkpoint, 1);
    }
    check(&db, &contents, 3000, "filled again");
    assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new());
    db.drop_table("t").expect("it can be dropped");
    assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new());
    steps(&db, Step::Checkpoint, 2);
    let left = std::fs::read_dir(directory.path().join(SPILLED)).expect("the directory is there").count();
    assert_eq!(left, 0, "files of runs");
}

/// Threads of the store's own, and clients beside them.
#[test]
fn spills_go_on_beside_writers_and_readers() {
    const KEYS: u64 = 6000;
    let directory = scratch();
    let options = Options { background: true, checkpoint_bytes: 1 << 20, ..options(60 << 10) };
    let db = Db::open(directory.path(), options.clone()).expect("it opens");
    let table = table_of(&db);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let table = table.clone();
            scope.spawn(move || {
                for round in 0..5 {
                    for number in (0..KEYS).filter(|number| number % 2 == writer) {
                        let value = value(number * 10 + round, 60);
                        table.put_with(&key(number), &value, Durability::None).expect("a put works");
                        let found = table.get(&key(number)).expect("a get works");
                        assert_eq!(found, Some(value), "key {number}: what was just written");
                    }
                }
            });
        }
    });
    support::eventually("memory has no more than it is for", || counted_memory(&db) <= 100 << 10);
    let contents: Contents = (0..KEYS).map(|number| (number, value(number * 10 + 4, 60))).collect();
    check(&db, &contents, KEYS + 10, "written");
    support::eventually("all tags are settled", || db.stats().unsettled_tags == 0);
    db.close().expect("it closes");
    drop((table, db));
    let db = Db::open(directory.path(), options).expect("it opens");
    check(&db, &contents, KEYS + 10, "opened again");
    assert!(damage(&db).is_empty());
}

/// Bytes of the slots of the table in memory: the shards themselves take 64 KiB.
fn counted_memory(db: &Db) -> u64 {
    db.stats().tables[0].index_memory_bytes - (64 << 10)
}

/// Filters of `hash` tables come first, since each put asks them; those of an `lsm` table beside them are left out.
#[test]
fn filters_of_hash_tables_have_the_room_first() {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let open = |filter_bytes| {
        let options = Options { filter_bytes, ..options(0) };
        Db::open_on(device.clone(), "/store", options).expect("the store can be opened")
    };
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let check = |db: &Db<SimDevice>, when: &str| {
        for name in ["lsm", "hash"] {
            let table = db.table(name).expect("it is there");
            for number in (0..40_000).step_by(13) {
                let expected = (number < 20_000).then_some(&b"value"[..]);
                assert_eq!(
                    table.get(&key(number)).expect("a get works").as_deref(),
                    expected,
                    "{name} {number} {when}"
                );
            }
        }
    };
    let left_out = |db: &Db<SimDevice>| db.stats().memory.filters_left_out_bytes;
    let db = open(None);
    for kind in [IndexKind::Lsm, IndexKind::Hash] {
        let table = db.create_table(kind.name(), kind).expect("a table can be made");
        for number in 0..20_000 {
            table.put_with(&key(number), b"value", Durability::None).expect("a put works");
        }
    }
    db.checkpoint().expect("a checkpoint can be made");
    (0..400).for_each(|_| db.step(Step::Spill).expect("a step works"));
    db.close().expect("it closes");
    drop(db);
    // About 25,000 bytes of the one, and 35,000 of the other.
    let db = open(Some(0));
    let all = left_out(&db);
    check(&db, "without filters");
    db.close().expect("it closes");
    drop(db);
    let db = open(Some(45_000));
    let of_lsm = left_out(&db);
    assert!((20_000..30_000).contains(&of_lsm) && (50_000..70_000).contains(&all), "{of_lsm} of {all}");
    check(&db, "with those of the hash table");
    db.drop_table("hash").expect("it can be dropped");
    (0..20).for_each(|_| db.step(Step::Upkeep).expect("a step works"));
    assert_eq!(left_out(&db), 0, "there is room for those of the other table");
    db.close().expect("it closes");
    drop(db);
    let db = open(None);
    assert_eq!(left_out(&db), 0);
    db.close().expect("it closes");
}
