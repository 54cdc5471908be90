//! Keys that share a tag of the `hash` index: different keys never take each other's place, however few bits of their
//! hashes are kept.

mod support;

use std::collections::BTreeMap;

use aiodb::{Db, Durability, IndexKind, Options, Step, Table};
use support::{assert_value, damage, open, quiet, scratch, value};

/// Hash bits that are kept, and a number of keys that makes the runs of one tag long but not endless.
const MASKS: [(u64, u64); 4] = [(0, 40), (!0 << 62, 100), (0xF, 100), (!0 << 56, 800)];

fn key(number: u64) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// What the table must hold.
type Contents = BTreeMap<u64, Vec<u8>>;

fn check(table: &Table, keys: u64, wanted: &Contents, when: &str) {
    let names: Vec<_> = (0..keys).map(key).collect();
    let values = table.get_many(&names).expect("all keys can be read");
    for number in 0..keys {
        let wanted = wanted.get(&number).map(Vec::as_slice);
        assert_value(values[number as usize].as_deref(), wanted, &format!("{when}: key {number}"));
        let found = table.get(&key(number)).expect("the key can be read");
        assert_value(found.as_deref(), wanted, &format!("{when}, one by one: key {number}"));
    }
}

/// Settles what can be settled at once, then the rest: a delete stays in the index while its batch is not written.
fn settle(db: &Db) {
    for round in 0..1000 {
        if db.stats().unsettled_tags == 0 {
            return;
        }
        db.step(Step::Settle).expect("tags can be settled");
        if round >= 20 {
            db.step(Step::Write).expect("the open batch can be written");
        }
    }
    panic!("everything that is written can be settled, but {} tags are left", db.stats().unsettled_tags);
}

/// Puts a value, or deletes the key, and notes what it has then.
fn write(table: &Table, wanted: &mut Contents, number: u64, value: Option<Vec<u8>>) {
    let outcome = match &value {
        Some(value) => table.put_with(&key(number), value, Durability::None),
        None => table.delete_with(&key(number), Durability::None),
    };
    outcome.expect("a write works");
    match value {
        Some(value) => wanted.insert(number, value),
        None => wanted.remove(&number),
    };
}

#[test]
fn keys_that_share_a_tag_keep_apart() {
    for (hash_mask, keys) in MASKS {
        let directory = scratch();
        // Through the page cache, for the sake of the many gets.
        let options = Options { hash_mask, direct: false, ..quiet() };
        let (mut db, mut table) = open(directory.path(), IndexKind::Hash, &options);
        let mut wanted = Contents::new();
        for number in 0..keys {
            write(&table, &mut wanted, number, Some(value(number, number as usize % 200)));
        }
        let when = |what: &str| format!("mask {hash_mask:x}, {what}");
        check(&table, keys, &wanted, &when("after the first puts"));
        settle(&db);
        check(&table, keys, &wanted, &when("after the first puts were settled"));
        for round in 1..4u64 {
            for number in (0..keys).filter(|number| (number + round) % 3 == 0) {
                write(&table, &mut wanted, number, Some(value(number + round * 10_000, 100)));
            }
            for number in (0..keys).filter(|number| (number + round) % 5 == 0) {
                write(&table, &mut wanted, number, None);
            }
            // Written again at once, and deleted twice.
            for number in (0..keys).filter(|number| (number + round) % 20 == 0) {
                write(&table, &mut wanted, number, Some(value(number + round * 20_000, 50)));
            }
            for number in (0..keys).filter(|number| (number + round) % 20 == 5) {
                write(&table, &mut wanted, number, None);
            }
            check(&table, keys, &wanted, &when("while tags are unsettled"));
            if round == 2 {
                db.step(Step::Write).expect("the open batch can be written");
                check(&table, keys, &wanted, &when("after the batch was written"));
            }
            settle(&db);
            check(&table, keys, &wanted, &when("after everything was settled"));
            let stats = db.stats();
            assert!(stats.tables[0].keys_exact, "{}", when("a settled table counts its keys exactly"));
            if round == 3 {
                db.sync().expect("everything can be flushed");
            } else {
                db.close().expect("a sound store can be closed");
            }
            drop((db, table));
            (db, table) = open(directory.path(), IndexKind::Hash, &options);
            check(&table, keys, &wanted, &when("after it was opened again"));
            settle(&db);
            check(&table, keys, &wanted, &when("after it was opened again and settled"));
        }
        // Deletes are only known to be over when everything before them is in the log.
        db.sync().expect("everything can be flushed");
        for number in 0..keys {
            write(&table, &mut wanted, number, Some(Vec::new()));
        }
        db.sync().expect("everything can be flushed");
        settle(&db);
        let counted = db.stats().tables[0].keys;
        assert_eq!(counted, keys, "{}", when("when each key was put last, the index counts as many entries as keys"));
        assert!(damage(&db).is_empty(), "{}: {:?}", when("a check finds no damage"), damage(&db));
    }
}

/// With background work, nothing is left to settle after a while, and the index holds an entry for each key.
#[test]
fn overwrites_are_settled_in_the_background() {
    for hash_mask in [u64::MAX, !0 << 54] {
        let directory = scratch();
        let (db, table) = open(directory.path(), IndexKind::Hash, &Options { hash_mask, ..support::small() });
        for round in 0..5u64 {
            for number in 0..1000 {
                table.put_with(&key(number), &value(number + round * 1000, 30), Durability::None).expect("a put works");
            }
        }
        db.sync().expect("everything can be flushed");
        support::eventually("all tags are settled", || db.stats().unsettled_tags == 0);
        let stats = db.stats();
        assert_eq!((stats.tables[0].keys, stats.trouble), (1000, None), "an entry for each key, and no trouble");
        for number in 0..1000 {
            let found = table.get(&key(number)).expect("the key can be read");
            assert_value(found.as_deref(), Some(&value(number + 4000, 30)), &format!("key {number}"));
        }
    }
}

/// What an index needs for a key that is gone, or was overwritten, is taken out in the end: a delete that was settled
/// before its batch was written, and records that a crash left unsettled.
#[test]
fn nothing_dead_stays_in_the_index() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    for number in 0..300 {
        table.put_with(&key(number), b"old", Durability::None).expect("a put works");
        table.put_with(&key(number), b"new", Durability::None).expect("a put works");
    }
    for number in 0..100 {
        table.delete_with(&key(number), Durability::None).expect("a delete works");
    }
    db.step(Step::Settle).expect("tags can be settled");
    db.checkpoint().expect("a checkpoint can be made");
    let image = scratch();
    support::copy_tree(directory.path(), image.path());
    settle(&db);
    let counted = &db.stats().tables[0];
    assert!(!counted.keys_exact || counted.keys == 200, "a count that is called exact is: {counted:?}");
    support::upkeep(&db);
    settle(&db);
    assert_eq!(db.stats().tables[0].keys, 200, "after everything was written and settled, an entry for each key");
    let (db, _table) = open(image.path(), IndexKind::Hash, &quiet());
    let counted = &db.stats().tables[0];
    assert!(!counted.keys_exact || counted.keys == 200, "after a crash, a count that is called exact is: {counted:?}");
    settle(&db);
    assert_eq!(db.stats().tables[0].keys, 200, "after a crash and settling, an entry for each key");
}
