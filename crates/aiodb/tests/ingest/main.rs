//! Tables that are made with their contents, from a sorted stream.

mod copies;
mod crashes;
mod lost;
mod saved;

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{
    Compression, Db, Durability, Error, IndexKind, Ingest, Options, ScanOptions, Snapshot, Step, Table, TableOptions,
};
use support::{quiet, refusal, scratch, value};

pub(crate) const SEGMENT_BYTES: u64 = 64 << 10;

/// The records of a table.
pub(crate) type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn options() -> Options {
    Options { segment_bytes: SEGMENT_BYTES, background: false, memtable_keys: 12, ..Options::default() }
}

pub(crate) fn open(device: &SimDevice) -> Db<SimDevice> {
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    Db::open_on(device.clone(), "/store", options()).expect("the store opens")
}

/// Records with values of many lengths: inline, separate, in chunks.
pub(crate) fn contents(seed: u64, count: u64) -> Contents {
    let length = |number: u64| match number % 9 {
        0 => 0,
        1..=5 => 5 + number as usize % 60,
        6 => 900,
        7 => 3000,
        _ => 20_000,
    };
    let record = |number: u64| (format!("key {number:06}").into_bytes(), value(seed + number, length(number)));
    (0..count).map(record).collect()
}

pub(crate) fn fill<D: Device>(ingest: &mut Ingest<D>, contents: &Contents) -> Result<(), Error> {
    contents.iter().try_for_each(|(key, value)| ingest.put(key, value))
}

/// An ingest that has taken these records.
pub(crate) fn begun<D: Device>(db: &Db<D>, name: &str, contents: &Contents) -> Ingest<D> {
    let mut ingest = db.ingest(name, IndexKind::Lsm.into()).expect("it begins");
    fill(&mut ingest, contents).expect("all is taken");
    ingest
}

pub(crate) fn ingest<D: Device>(db: &Db<D>, name: &str, contents: &Contents) -> Result<Table<D>, Error> {
    let mut ingest = db.ingest(name, IndexKind::Lsm.into())?;
    fill(&mut ingest, contents)?;
    ingest.finish()
}

pub(crate) fn all<D: Device>(table: &Table<D>) -> Contents {
    let scan = table.scan(ScanOptions::all()).expect("a scan begins");
    scan.collect::<Result<Contents, _>>().expect("a scan goes through")
}

/// The table has just these records, for gets and scans, and all counts are right.
pub(crate) fn check<D: Device>(db: &Db<D>, name: &str, contents: &Contents, what: &str) {
    let table = db.table(name).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(all(&table) == *contents, "{what}: a scan finds just what was ingested");
    for (key, value) in contents {
        assert!(table.get(key).expect("a get works").as_ref() == Some(value), "{what}: {key:?}");
    }
    let report = db.verify(&mut |_, _| {}).expect("the check goes through");
    assert!(report.damage.is_empty(), "{what}: {:?}", report.damage);
    let differences = db.recount().expect("it can be counted");
    assert!(differences.is_empty(), "{what}: {differences:?}");
}

#[test]
fn a_table_is_made_with_its_contents() {
    let (directory, contents) = (scratch(), contents(1, 900));
    let variants = [
        TableOptions::from(IndexKind::Lsm),
        TableOptions { inline_bytes: 40, ..IndexKind::Lsm.into() },
        TableOptions { compression: Compression::Lz4, inline_bytes: 1024, ..IndexKind::Lsm.into() },
        TableOptions { inline_bytes: 1024, block_compression: Compression::Zstd(3), ..IndexKind::Lsm.into() },
    ];
    for (number, variant) in variants.into_iter().enumerate() {
        let path = directory.path().join(number.to_string());
        let db = Db::open(&path, quiet()).expect("the store opens");
        let mut ingest = db.ingest("t", variant.clone()).expect("it begins");
        fill(&mut ingest, &contents).expect("all is taken");
        assert_eq!(ingest.records(), contents.len() as u64);
        let table = ingest.finish().expect("the table is made");
        assert_eq!(table.options(), variant);
        assert_eq!(db.stats().tables[0].keys, contents.len() as u64, "nothing is counted twice");
        check(&db, "t", &contents, "at once");
        let backward = table.scan(ScanOptions::all().backward()).expect("a scan begins");
        let backward: Vec<_> = backward.map(|record| record.expect("it is there").0).collect();
        assert!(backward.iter().rev().eq(contents.keys()), "scans go both ways");
        drop(table);
        db.close().expect("it closes");
        let db = Db::open(&path, quiet()).expect("it opens again");
        check(&db, "t", &contents, "after a close");
        let db = reopened(db, &path, Options { rebuild_index: true, ..quiet() });
        assert!(db.stats().rebuilt_indexes);
        check(&db, "t", &contents, "made again from the log");
    }
}

fn reopened(db: Db, path: &Path, options: Options) -> Db {
    db.close().expect("it closes");
    drop(db);
    Db::open(path, options).expect("it opens again")
}

#[test]
fn an_ingested_table_is_one_like_any_other() {
    let device = SimDevice::new(1);
    let (db, mut contents) = (open(&device), contents(1, 300));
    let table = ingest(&db, "t", &contents).expect("the table is made");
    for number in (0..300).step_by(3) {
        let key = format!("key {number:06}").into_bytes();
        if number % 2 == 0 {
            table.delete(&key).expect("a delete works");
            contents.remove(&key);
        } else {
            table.put(&key, b"new").expect("a put works");
            contents.insert(key, b"new".to_vec());
        }
    }
    table.delete_range(b"key 000100", b"key 000150").expect("a range can be deleted");
    contents.retain(|key, _| !(&b"key 000100"[..]..&b"key 000150"[..]).contains(&&key[..]));
    check(&db, "t", &contents, "changed");
    for _ in 0..200 {
        db.step(Step::Upkeep).expect("a step works");
    }
    check(&db, "t", &contents, "after upkeep");
    db.truncate_table("t").expect("it can be emptied");
    db.drop_table("t").expect("it can be dropped");
    ingest(&db, "t", &contents).expect("the name is free");
    check(&db, "t", &contents, "the second of its name");
}

/// In the index, keys over 479 bytes are in order only as far as their first 448 bytes tell.
#[test]
fn long_keys_are_put_in_the_order_of_the_index() {
    let device = SimDevice::new(1);
    let db = open(&device);
    let key = |first: u8, number: u32, length: usize| {
        let mut key = vec![first; 448];
        key.extend_from_slice(&number.to_be_bytes());
        key.resize(length.max(449), 1);
        key
    };
    let mut contents = Contents::new();
    for number in 0..3000u32 {
        contents.insert(key(b'b', number, 600), number.to_le_bytes().to_vec());
        contents.insert(key(b'c' + (number % 3) as u8, number, 449 + number as usize % 60), b"other".to_vec());
    }
    contents.insert(b"a".to_vec(), b"short".to_vec());
    contents.insert(vec![b'b'; 448], b"a prefix".to_vec());
    let table = ingest(&db, "t", &contents).expect("the table is made");
    for (key, value) in &contents {
        assert!(table.get(key).expect("a get works").as_ref() == Some(value), "{key:?}");
    }
    assert_eq!(all(&table).len(), contents.len());
    assert!(db.recount().expect("it can be counted").is_empty());
}

#[test]
fn expiry_is_kept() {
    let device = SimDevice::new(1);
    let db = open(&device);
    let mut ingest = db.ingest("t", IndexKind::Lsm.into()).expect("it begins");
    let soon = NonZeroU64::new(device.wall_ms() + 1000).expect("it is not 1970");
    ingest.put_until(b"a", &value(1, 20_000), soon).expect("it is taken");
    ingest.put(b"b", b"stays").expect("it is taken");
    let table = ingest.finish().expect("the table is made");
    assert!(table.get(b"a").expect("a get works").is_some());
    device.advance_clock(2000);
    assert_eq!(table.get(b"a").expect("a get works"), None);
    assert_eq!(table.get(b"b").expect("a get works").as_deref(), Some(&b"stays"[..]));
}

#[test]
fn an_empty_table_is_a_table() {
    let device = SimDevice::new(1);
    let db = open(&device);
    let table = db.ingest("t", IndexKind::Lsm.into()).and_then(Ingest::finish).expect("the table is made");
    assert_eq!(table.get(b"key").expect("a get works"), None);
    let device = device.power_cut();
    drop((db, table));
    let db = open(&device);
    check(&db, "t", &Contents::new(), "after a power cut");
}

#[test]
fn keys_must_rise() {
    let device = SimDevice::new(1);
    let db = open(&device);
    for key in [&b"b"[..], b"a", b"azz"] {
        let mut ingest = db.ingest("t", IndexKind::Lsm.into()).expect("nothing is left of the one before");
        ingest.put(b"b", b"1").expect("it is taken");
        let error = refusal(ingest.put(key, b"2"), "a key that is not greater");
        let Error::NotAscending { record: 2, key: said, previous } = &error else { panic!("{error}") };
        assert_eq!((&said[..], &previous[..]), (key, &b"b"[..]));
        let again = refusal(ingest.put(b"c", b"3"), "a record after an error");
        assert!(matches!(again, Error::NotAscending { .. }), "{again}");
        assert!(matches!(refusal(ingest.finish(), "the end of it"), Error::NotAscending { .. }));
    }
    assert!(matches!(refusal(db.table("t"), "a table that was given up"), Error::NoSuchTable { .. }));
    assert!(db.recount().expect("it can be counted").is_empty());
}

#[test]
fn only_sorted_runs_are_ingested_into() {
    let device = SimDevice::new(1);
    let db = open(&device);
    for kind in [IndexKind::Hash, IndexKind::Lmdb] {
        assert!(matches!(refusal(db.ingest("t", kind.into()), "another kind"), Error::Option { .. }));
    }
    assert!(matches!(refusal(db.ingest("", IndexKind::Lsm.into()), "no name"), Error::TableName { .. }));
}

#[test]
fn a_name_is_taken_while_its_table_is_ingested() {
    let device = SimDevice::new(1);
    let (db, contents) = (open(&device), contents(1, 100));
    let first = begun(&db, "t", &contents);
    let being_made = |error: Error| assert!(matches!(error, Error::TableBeingMade { .. }), "{error}");
    being_made(refusal(db.ingest("t", IndexKind::Lsm.into()), "a second one of the name"));
    being_made(refusal(db.create_table("t", IndexKind::Hash), "another table of the name"));
    assert!(matches!(refusal(db.table("t"), "a get"), Error::NoSuchTable { .. }), "nobody sees it");
    assert!(matches!(refusal(db.drop_table("t"), "a drop"), Error::NoSuchTable { .. }), "there is nothing to drop");
    assert!(db.tables().is_empty());
    let second = begun(&db, "u", &contents);
    first.finish().expect("the first is made");
    check(&db, "t", &contents, "the first");
    drop(second);
    being_made_never(&db);
    let exists = refusal(db.ingest("t", IndexKind::Lsm.into()), "a table that is there");
    assert!(matches!(exists, Error::TableExists { .. }), "{exists}");
}

fn being_made_never(db: &Db<SimDevice>) {
    db.create_table("u", IndexKind::Hash).expect("the name of one that was given up is free");
}

#[test]
fn snapshots_do_not_see_it() {
    let device = SimDevice::new(1);
    let (db, contents) = (open(&device), contents(1, 200));
    let ingest = begun(&db, "t", &contents);
    let snapshot: Snapshot<SimDevice> = db.snapshot().expect("a snapshot can be taken");
    let table = ingest.finish().expect("the table is made");
    assert!(matches!(refusal(snapshot.get(&table, b"key 000001"), "a table of later"), Error::NoSuchTable { .. }));
    let snapshot = db.snapshot().expect("a snapshot can be taken");
    for key in contents.keys() {
        table.put_with(key, b"new", Durability::None).expect("a put works");
    }
    for _ in 0..200 {
        db.step(Step::Upkeep).expect("a step works");
    }
    let seen = snapshot.scan(&table, ScanOptions::all()).expect("a scan begins").collect::<Result<Contents, _>>();
    assert!(seen.expect("a scan goes through") == contents, "a snapshot of after it sees all of it");
}

/// Records of an ingest have no entry that anybody finds, so reclaim would take them for dead.
#[test]
fn reclaim_leaves_alone_what_is_being_ingested() {
    let device = SimDevice::new(1);
    let (db, contents) = (open(&device), contents(1, 500));
    let other = db.create_table("other", IndexKind::Hash).expect("a table can be made");
    let mut ingest = db.ingest("t", IndexKind::Lsm.into()).expect("it begins");
    for (number, (key, value)) in contents.iter().enumerate() {
        ingest.put(key, value).expect("it is taken");
        other.put_with(&[number as u8 % 8], &[7; 2000], Durability::None).expect("a put works");
        db.step(Step::Upkeep).expect("a step works");
    }
    ingest.finish().expect("the table is made");
    check(&db, "t", &contents, "at the end");
    // From now on it is moved like all others.
    let moved = db.stats().bytes_moved_by_reclaim;
    for round in 0..600 {
        other.put_with(&[round as u8 % 8], &[7; 2000], Durability::None).expect("a put works");
        db.step(Step::Upkeep).expect("a step works");
    }
    assert!(db.stats().bytes_moved_by_reclaim > moved, "segments with some of it were emptied");
    check(&db, "t", &contents, "after it was moved");
    let device = device.power_cut();
    drop((db, other));
    check(&open(&device), "t", &contents, "after a power cut");
}

#[test]
fn the_space_of_one_that_was_given_up_comes_back() {
    let device = SimDevice::new(1);
    let (db, contents) = (open(&device), contents(1, 2000));
    let settle = |db: &Db<SimDevice>| (0..300).for_each(|_| db.step(Step::Upkeep).expect("a step works"));
    db.create_table("other", IndexKind::Hash).expect("a table can be made");
    settle(&db);
    let before = device.used_bytes();
    let ingest = begun(&db, "t", &contents);
    let during = device.used_bytes();
    drop(ingest);
    let files = device.file_names();
    assert!(files.iter().all(|path| path.extension().is_none_or(|end| end != "run")), "no file of a run is left");
    settle(&db);
    assert!(db.recount().expect("it can be counted").is_empty());
    let (after, few) = (device.used_bytes(), 24 * SEGMENT_BYTES);
    assert!(during > before + 3 * few && after < before + few, "{before} bytes, {during} during it, {after} after it");
}

#[test]
fn a_full_disk_refuses_it_and_leaves_nothing() {
    let device = SimDevice::new(1);
    let (db, contents) = (open(&device), contents(1, 2000));
    let other = db.create_table("other", IndexKind::Lsm).expect("a table can be made");
    other.put(b"key", b"value").expect("a put works");
    device.set_capacity(Some(device.used_bytes() + 40 * SEGMENT_BYTES));
    let mut ingest = db.ingest("t", IndexKind::Lsm.into()).expect("it begins");
    let error = refusal(fill(&mut ingest, &contents), "more than the disk has room for");
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert_eq!(other.get(b"key").expect("reads go on").as_deref(), Some(&b"value"[..]));
    assert!(matches!(refusal(ingest.finish(), "the end of it"), Error::DiskFull { .. }));
    for number in 0..200u32 {
        other.put(&number.to_be_bytes(), &[1; 3000]).expect("puts go on");
    }
    assert!(matches!(refusal(db.table("t"), "a table that was refused"), Error::NoSuchTable { .. }));
    assert!(db.recount().expect("it can be counted").is_empty());
}

/// What was refused is of no use to anybody, also where the caller keeps it.
#[test]
fn one_that_was_refused_protects_nothing() {
    let device = SimDevice::new(1);
    let (db, contents) = (open(&device), contents(1, 2000));
    let other = db.create_table("other", IndexKind::Hash).expect("a table can be made");
    device.set_capacity(Some(device.used_bytes() + 40 * SEGMENT_BYTES));
    let mut ingest = db.ingest("t", IndexKind::Lsm.into()).expect("it begins");
    let error = refusal(fill(&mut ingest, &contents), "more than the disk has room for");
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    for number in 0..2000u32 {
        other.put_with(&(number % 4).to_be_bytes(), &[1; 3000], Durability::None).expect("its room is there");
    }
    assert!(device.file_names().iter().all(|path| path.extension().is_none_or(|end| end != "run")));
    let second = db.ingest("t", IndexKind::Lsm.into()).expect("its name is free");
    assert!(matches!(refusal(ingest.put(b"z", b""), "a record"), Error::DiskFull { .. }));
    drop(ingest);
    let taken = refusal(db.create_table("t", IndexKind::Hash), "a table of the second one's name");
    assert!(matches!(taken, Error::TableBeingMade { .. }), "{taken}");
    drop(second);
}

/// A run's file with writes that are not flushed keeps its descriptor, and an ingest may rest for hours.
#[test]
fn those_that_rest_leave_the_descriptors_to_others() {
    let directory = scratch();
    let options = Options { segment_bytes: SEGMENT_BYTES, max_open_files: 8, ..quiet() };
    let db = Db::open(directory.path(), options).expect("the store opens");
    let old = db.create_table("old", IndexKind::Hash).expect("a table can be made");
    for number in 0..500u64 {
        old.put_with(&number.to_be_bytes(), &value(number, 3000), Durability::None).expect("a put works");
    }
    let mut resting: Vec<_> = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let mut ingest = db.ingest(name, IndexKind::Lsm.into()).expect("it begins");
        (0..30_000u64).try_for_each(|number| ingest.put(&number.to_be_bytes(), b"")).expect("all is taken");
        resting.push(ingest);
    }
    for number in 0..500u64 {
        old.put_with(&(1000 + number).to_be_bytes(), &value(number, 3000), Durability::None).expect("a put works");
        assert!(old.get(&number.to_be_bytes()).expect("a get works") == Some(value(number, 3000)));
    }
    for ingest in resting {
        let table = ingest.finish().expect("the table is made");
        assert_eq!(table.get(&29_999u64.to_be_bytes()).expect("a get works").as_deref(), Some(&b""[..]));
    }
}

#[test]
fn a_closed_store_ends_it() {
    let device = SimDevice::new(1);
    let (db, contents) = (open(&device), contents(1, 400));
    let ingest = begun(&db, "t", &contents);
    let mut second = begun(&db, "u", &contents);
    db.close().expect("it closes");
    assert!(matches!(refusal(second.put(b"z", b""), "a record"), Error::Closed));
    let next = device.process_death();
    let db = open(&next);
    self::ingest(&db, "t", &contents).expect("the next process may have the name");
    assert!(matches!(refusal(ingest.finish(), "the end of it"), Error::Closed));
    drop(second);
    check(&db, "t", &contents, "the next process's");
}
