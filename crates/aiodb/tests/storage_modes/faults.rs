//! Modes where the machine fails.

use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::{Call, SimDevice};
use aiodb::{Db, Durability, Error, IndexKind, Options, Step, StorageMode, Table, TableModes, TableOptions};

use super::support::{KINDS, open, quiet, refusal, scratch, value};
use super::{Auto, KEYS, Memory, check, fill, modes, reads_of, settle};

const WANTED: TableModes = TableModes { keys: StorageMode::Memory, values: StorageMode::Memory };

fn machine() -> SimDevice {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    device
}

fn open_on(device: &SimDevice) -> Db<SimDevice> {
    let options = Options { segment_bytes: 256 << 10, background: false, ..Options::default() };
    Db::open_on(device.clone(), "/store", options).expect("the store opens")
}

/// The next manifest of the store cannot be written.
fn fail_manifest(device: &SimDevice) {
    device.fail(Call::Write, 0, 1, |path| path == Path::new("/store/MANIFEST.new"));
}

/// A table is there, with its record and without modes, and an error said so; they can be set now, and last.
fn check_made_without(device: SimDevice, db: Db<SimDevice>, error: &Error, what: &str) {
    assert!(matches!(error, Error::MadeWithoutModes { name, .. } if name == "t"), "{what}: {error}");
    assert!(error.to_string().contains("MANIFEST") && error.to_string().contains("alter-table"), "{what}: {error}");
    let table = db.table("t").unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(table.modes(), TableModes::default(), "{what}");
    table.put_with(b"key", b"value", Durability::Sync).expect("a put works");
    let next = device.process_death();
    drop((db, table));
    let db = open_on(&next);
    let found = |db: &Db<SimDevice>| {
        let table = db.table("t").expect("the table is there");
        (table.get(b"key").expect("a get works"), table.modes())
    };
    assert_eq!(found(&db), (Some(b"value".to_vec()), TableModes::default()), "{what}");
    db.set_table_modes("t", WANTED).expect("modes can be set");
    let last = next.process_death();
    drop(db);
    assert_eq!(found(&open_on(&last)), (Some(b"value".to_vec()), WANTED), "{what}");
}

/// Others may have found it, and written to it, before that.
#[test]
fn a_table_whose_modes_cannot_be_kept_is_there_without_them() {
    for kind in KINDS.into_iter().filter(|kind| *kind != IndexKind::Lmdb) {
        let device = machine();
        let db = open_on(&device);
        db.create_table("other", kind).expect("a table can be made");
        fail_manifest(&device);
        let made = db.create_table_with("t", TableOptions { modes: WANTED, ..kind.into() });
        let error = refusal(made.map(drop), "a table whose modes cannot be kept");
        check_made_without(device, db, &error, kind.name());
    }
}

#[test]
fn an_ingested_table_whose_modes_cannot_be_kept_has_all_records() {
    let device = machine();
    let db = open_on(&device);
    db.create_table("other", IndexKind::Lsm).expect("a table can be made");
    let mut ingest = db.ingest("t", TableOptions { modes: WANTED, ..IndexKind::Lsm.into() }).expect("it begins");
    for number in 0..100 {
        ingest.put(&[b'a', number], &value(number.into(), 2000)).expect("a record is taken");
    }
    fail_manifest(&device);
    let error = refusal(ingest.finish().map(drop), "a table whose modes cannot be kept");
    let table = db.table("t").expect("the table is there");
    for number in 0..100 {
        assert_eq!(table.get(&[b'a', number]).expect("a get works"), Some(value(number.into(), 2000)));
    }
    drop(table);
    check_made_without(device, db, &error, "an ingested table");
}

#[test]
fn where_the_modes_of_several_tables_cannot_be_kept_all_are_as_before() {
    let device = machine();
    let db = open_on(&device);
    for name in ["first", "second"] {
        db.create_table(name, IndexKind::Lsm).expect("a table can be made");
    }
    fail_manifest(&device);
    let outcome = db.set_modes_of_tables(&[("first", WANTED), ("second", WANTED), ("first", TableModes::default())]);
    refusal(outcome, "modes that cannot be kept");
    for name in ["first", "second"] {
        assert_eq!(db.table(name).expect("it is there").modes(), TableModes::default(), "{name}");
    }
    device.clear_faults();
    db.set_modes_of_tables(&[("first", WANTED), ("second", WANTED)]).expect("modes can be changed");
    assert_eq!(db.table("second").expect("it is there").modes(), WANTED);
}

/// What cannot be read is left out once, and keeps nothing else from memory.
#[test]
fn a_damaged_block_keeps_no_other_table_from_memory() {
    let directory = scratch();
    let (db, damaged) = open(directory.path(), IndexKind::Lsm, &quiet());
    let of = |kind: IndexKind| TableOptions { modes: modes(Auto, Memory), ..kind.into() };
    let [hash, later] = [("hash", IndexKind::Hash), ("later", IndexKind::Lsm)]
        .map(|(name, kind)| db.create_table_with(name, of(kind)).expect("a table can be made"));
    fill(&damaged, 1);
    db.checkpoint().expect("a checkpoint works");
    let runs = || {
        let entries = std::fs::read_dir(directory.path().join("index/runs")).expect("it can be listed");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "run")).collect::<Vec<_>>()
    };
    let [first] = &runs()[..] else { panic!("one run: {:?}", runs()) };
    fill(&hash, 2);
    fill(&later, 3);
    db.set_table_modes("t", WANTED).expect("modes can be set");
    db.close().expect("the store can be closed");
    assert_eq!(runs().len(), 2, "runs stay as they were");
    drop((db, damaged, hash, later));
    let mut bytes = std::fs::read(first).expect("the run can be read");
    bytes[9000] ^= 1;
    std::fs::write(first, bytes).expect("the run can be written");
    let db = Db::open(directory.path(), quiet()).expect("the store opens");
    settle(&db);
    assert!(db.stats().trouble.is_some_and(|trouble| trouble.contains("damaged")), "it is said");
    let table = |name: &str| db.table(name).expect("it is there");
    assert_eq!(reads_of(&db, || check(&table("hash"), 2)), (0, 0));
    assert_eq!(reads_of(&db, || check(&table("later"), 3)), (0, 0));
}

/// A step of warming reads a bounded number of times, however far the values lie apart.
#[test]
fn a_step_reads_few_values_that_lie_far_apart() {
    for kind in [IndexKind::Hash, IndexKind::Lsm] {
        let device = machine();
        let db = open_on(&device);
        let table = db.create_table("t", kind).expect("a table can be made");
        let between = db.create_table("between", kind).expect("a table can be made");
        let put = |table: &Table<SimDevice>, number: u64, length| {
            table.put_with(&number.to_be_bytes(), &value(number, length), Durability::None).expect("a put works");
        };
        for number in 0..300 {
            put(&table, number, 1000);
            put(&between, number, 40_000);
        }
        db.checkpoint().expect("a checkpoint works");
        db.set_table_modes("t", modes(Auto, Memory)).expect("modes can be set");
        let cached = || table.stats().expect("a table has stats").cached_values;
        let mut steps = 0;
        while cached() < 300 {
            let before = cached();
            db.step(Step::Upkeep).expect("upkeep works");
            // A few lie side by side all the same.
            assert!(cached() - before <= 32, "{} values at once", cached() - before);
            steps += 1;
            assert!(steps < 1000, "{} values are there", cached());
        }
    }
    // Where they lie side by side many come with one read.
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    fill(&table, 1);
    db.checkpoint().expect("a checkpoint works");
    db.set_table_modes("t", modes(Auto, Memory)).expect("modes can be set");
    (0..64).for_each(|_| db.step(Step::Upkeep).expect("upkeep works"));
    assert_eq!(table.stats().expect("a table has stats").cached_values, KEYS);
}
