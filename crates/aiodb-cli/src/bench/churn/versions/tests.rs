use super::*;
use aiodb::{IndexKind, Options};

const COUNT: u64 = 30_000;

fn with_table(test: impl FnOnce(&Db, &DbTable)) {
    let dir = tempfile::tempdir().expect("a directory");
    let options = Options { durability: Durability::None, segment_bytes: 1 << 20, ..Options::default() };
    let db = Db::open(dir.path(), options).expect("a store");
    let table = db.create_table("bench", IndexKind::Hash).expect("a table");
    test(&db, &table);
    db.close().expect("closed");
}

#[test]
fn each_record_of_a_sample_has_a_place_of_its_own() {
    for count in [1, 10, 1000, 1001, 10_000, 10_001, COUNT, 2_000_000] {
        let sample = Sample::new(count);
        let places: Vec<Option<usize>> = sample.ranks().map(|rank| sample.place(rank)).collect();
        assert!(places.into_iter().eq((0..sample.len()).map(Some)), "of {count} records");
        assert!((1..=10_000).contains(&sample.len()), "{} of {count} records", sample.len());
    }
}

#[test]
fn the_newest_version_is_that_of_the_last_write() {
    with_table(|db, table| {
        let (records, sample) = (Records::new(COUNT, 100), Sample::new(COUNT));
        records.load(db, table).expect("loaded");
        sample.read_back(table, &records).expect("all have version 0");
        // Two writers: the one with the greater version came first.
        let first = table.put(&records.key(0), &records.value(0, 8)).expect("put");
        let second = table.put(&records.key(0), &records.value(0, 7)).expect("put");
        sample.note(0, 7, second);
        sample.note(0, 8, first);
        sample.read_back(table, &records).expect("version 7 is the newest");
    });
}

#[test]
fn a_lost_an_old_a_foreign_and_a_damaged_value_are_found() {
    with_table(|db, table| {
        let (records, sample) = (Records::new(COUNT, 100), Sample::new(COUNT));
        records.load(db, table).expect("loaded");
        let found = |rank: u64| {
            let error = sample.read_back(table, &records).expect_err("a wrong value");
            table.put(&records.key(rank), &records.value(rank, 0)).expect("put");
            sample.read_back(table, &records).expect("all is well again");
            error.to_string()
        };
        let last = sample.ranks().last().expect("a sample");
        table.delete(&records.key(last)).expect("deleted");
        assert!(found(last).contains("is missing"));
        table.put(&records.key(0), &records.value(0, 9)).expect("put");
        assert!(found(0).contains("has version 9; the newest that was acknowledged is version 0"));
        table.put(&records.key(1), &records.value(2, 0)).expect("put");
        assert!(found(1).contains("has the value of record"));
        let mut damaged = records.value(3, 0);
        damaged[99] ^= 1;
        table.put(&records.key(3), &damaged).expect("put");
        assert!(found(3).contains("never put"));
        table.put(&records.key(4), b"short").expect("put");
        assert!(found(4).contains("has 5 bytes"));
    });
}

#[test]
fn values_are_as_long_as_asked_for() {
    for value_bytes in [STAMP_BYTES, 25, 1024] {
        let records = Records::new(10, value_bytes);
        assert_eq!(records.value(3, 1).len(), value_bytes);
        assert_ne!(records.value(3, 1), records.value(3, 2));
        assert_eq!(records.live_bytes(), 10 * (25 + value_bytes as u64));
    }
}
