//! A store that an earlier version wrote must still open, and hold what it held.
//!
//! `fixture/` was written by this test with `AIODB_WRITE_FIXTURE=tests/fixture`; it is written anew only when the format
//! changes before its first release. A later version of the format gets a fixture of its own beside this one.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use aiodb::{Db, Durability, IndexKind, Options, Step, Table};
use support::{KINDS, assert_get, copy_tree, damage, quiet, scratch, value};

const KEYS: u64 = 60;
/// Keys that are put after the checkpoint: one is in the log, one still in memory.
const LATE: [&[u8]; 2] = [b"after the checkpoint", b"pending"];

fn options() -> Options {
    Options { segment_bytes: 64 << 10, ..quiet() }
}

fn long_key(number: u64) -> Vec<u8> {
    let mut key = vec![b'l'; 600];
    *key.last_mut().expect("it has bytes") = number as u8;
    key
}

/// What each of the two tables holds.
fn contents() -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for number in (0..KEYS).filter(|number| number % 7 != 3) {
        let version = if number % 3 == 0 { 2 } else { 1 };
        let length = if number % 10 == 0 { 3000 } else { 20 + number as usize };
        contents.insert(format!("key {number}").into_bytes(), value(number + version * 1000, length));
    }
    contents.insert(b"empty".to_vec(), Vec::new());
    contents.insert(b"large".to_vec(), value(7, 40_000));
    contents.insert(long_key(1), value(8, 10));
    contents.insert(long_key(2), value(9, 2000));
    contents.insert(b"after the checkpoint".to_vec(), value(10, 100));
    contents.insert(b"pending".to_vec(), value(11, 100));
    contents
}

fn put(table: &Table, key: &[u8], value: &[u8], durability: Durability) {
    table.put_with(key, value, durability).expect("a put works");
}

/// Writes the contents in a way that leaves all kinds of records and files behind.
fn write(store: &Path) {
    let live = scratch();
    let db = Db::open(live.path(), options()).expect("a store can be made");
    let contents = contents();
    for kind in KINDS {
        let table = db.create_table(kind.name(), kind).expect("a table can be made");
        for number in 0..KEYS {
            put(
                &table,
                format!("key {number}").as_bytes(),
                &value(number + 1000, 20 + number as usize),
                Durability::None,
            );
        }
        for (key, value) in contents.iter().filter(|(key, _)| !LATE.contains(&key.as_slice())) {
            put(&table, key, value, Durability::None);
        }
        for number in (0..KEYS).filter(|number| number % 7 == 3) {
            table.delete_with(format!("key {number}").as_bytes(), Durability::None).expect("a delete works");
        }
        let emptied = db.create_table(&format!("emptied {}", kind.name()), kind).expect("a table can be made");
        put(&emptied, b"gone", b"x", Durability::None);
        db.truncate_table(emptied.name()).expect("a table can be emptied");
        put(&emptied, b"kept", b"y", Durability::None);
        db.create_table("dropped", kind).expect("a table can be made");
        db.drop_table("dropped").expect("a table can be dropped");
    }
    db.checkpoint().expect("a checkpoint can be made");
    for key in LATE {
        for kind in KINDS {
            let table = db.table(kind.name()).expect("the table is there");
            put(&table, key, &contents[key], if key == b"pending" { Durability::None } else { Durability::Sync });
        }
    }
    // As the death of the process would leave it; the free segments hold nothing.
    copy_tree(live.path(), store);
    std::fs::remove_file(store.join("index/lmdb/lock.mdb")).expect("the lock file can be removed");
    for path in support::segment_files(store) {
        let free = std::fs::read(&path).expect("the segment can be read")[4096..].iter().all(|byte| *byte == 0);
        if free {
            std::fs::remove_file(path).expect("the segment can be removed");
        }
    }
    for number in 0..2 {
        let path = store.join("pending").join(number.to_string());
        let bytes = std::fs::read(&path).expect("the pending batch can be read");
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| (last + 1).next_multiple_of(4096));
        std::fs::write(&path, &bytes[..used]).expect("the pending batch can be written");
    }
}

#[test]
fn a_store_of_an_earlier_version_opens() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture");
    if let Ok(target) = std::env::var("AIODB_WRITE_FIXTURE") {
        write(Path::new(&target));
    }
    for rebuild_index in [false, true] {
        let directory = scratch();
        copy_tree(&fixture, directory.path());
        let db = Db::open(directory.path(), Options { create: false, rebuild_index, ..options() })
            .unwrap_or_else(|error| panic!("the fixture opens: {error}"));
        let stats = db.stats();
        assert!(stats.recovered_records > 0, "the fixture has a tail that is replayed");
        assert!(stats.recovered_pending_records > 0, "the fixture has records that were still in memory");
        for when in ["at once", "after upkeep"] {
            for kind in KINDS {
                let table = db.table(kind.name()).expect("the table is there");
                assert_eq!(table.kind(), kind, "the table has its kind of index");
                for (key, value) in contents() {
                    assert_get(&table, &key, Some(&value), &format!("{}, {when}", kind.name()));
                }
                for number in (0..KEYS).filter(|number| number % 7 == 3) {
                    assert_get(&table, format!("key {number}").as_bytes(), None, "a deleted key");
                }
                assert_get(&table, &long_key(3), None, "a long key that was never put");
                let emptied = db.table(&format!("emptied {}", kind.name())).expect("the table is there");
                assert_get(&emptied, b"gone", None, "a key from before a truncate");
                assert_get(&emptied, b"kept", Some(b"y"), "a key from after a truncate");
            }
            assert!(db.table("dropped").is_err(), "a dropped table is gone");
            assert!(damage(&db).is_empty(), "a check finds no damage, but {:?}", damage(&db));
            support::upkeep(&db);
            db.step(Step::Settle).expect("tags can be settled");
        }
        let kinds: Vec<IndexKind> = db.tables().into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(kinds.len(), 4, "four tables are left: {:?}", db.tables());
    }
}
