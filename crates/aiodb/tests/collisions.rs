//! Keys that share a tag of the `hash` index: different keys never take each other's place, however few bits of their
//! hashes are kept.

mod support;

use std::collections::BTreeMap;

use aiodb::{Db, Durability, IndexKind, Options, Step, Table};
use support::{assert_value, damage, open, quiet, scratch, value};

/// Hash bits that are kept, and a number of keys that makes the runs of one tag long but not endless.
const MASKS: [(u64, u64); 4] = [(0, 60), (!0 << 62, 150), (0xF, 150), (!0 << 56, 1500)];

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

fn settle(db: &Db) {
    // A delete is over only when everything before it is published.
    db.step(Step::Write).expect("the open batch can be written");
    while db.stats().unsettled_tags > 0 {
        db.step(Step::Settle).expect("tags can be settled");
    }
}

#[test]
fn keys_that_share_a_tag_keep_apart() {
    for (hash_mask, keys) in MASKS {
        let directory = scratch();
        let options = Options { hash_mask, ..quiet() };
        let (mut db, mut table) = open(directory.path(), IndexKind::Hash, &options);
        let mut wanted = Contents::new();
        let write = |table: &Table, wanted: &mut Contents, number: u64, value: Option<Vec<u8>>| {
            let outcome = match &value {
                Some(value) => table.put_with(&key(number), value, Durability::None),
                None => table.delete_with(&key(number), Durability::None),
            };
            outcome.expect("a write works");
            match value {
                Some(value) => wanted.insert(number, value),
                None => wanted.remove(&number),
            };
        };
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
