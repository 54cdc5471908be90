//! Copies of tables, as tables of any kind.

use std::num::NonZeroU64;

use aiodb::merge::Append;
use aiodb::{
    Compression, Db, Durability, Error, IndexKind, MergeOperator, MergeOperators, Options, Table, TableOptions,
};
use aiodb::{WriteOptions, merge};

use super::{Contents, contents};
use crate::support::{KINDS, damage, quiet, refusal, scratch};

/// Long after any test.
const LATER_MS: u64 = 1 << 50;

fn records(table: &Table) -> Contents {
    let iterated = table.iterate().expect("an iteration begins");
    iterated.collect::<Result<Contents, _>>().expect("it goes through")
}

fn until(ms: u64) -> WriteOptions {
    WriteOptions { durability: Some(Durability::None), expires_ms: NonZeroU64::new(ms) }
}

fn now_ms() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("it is later than 1970").as_millis() as u64
}

#[test]
fn a_table_of_any_kind_is_copied_into_one_of_any_kind() {
    for from in KINDS {
        let (directory, contents) = (scratch(), contents(1, 400));
        let db = Db::open(directory.path(), quiet()).expect("the store opens");
        let compression = Compression::Lz4;
        let table = db.create_table_with("from", TableOptions { compression, ..from.into() });
        let table = table.expect("a table can be made");
        for (number, (key, value)) in contents.iter().enumerate() {
            let options = if number % 5 == 0 { until(LATER_MS) } else { Durability::None.into() };
            table.put_with(key, value, options).expect("a put works");
        }
        table.put_with(b"over", b"", until(1)).expect("a put works");
        table.put_with(b"soon", b"it expires", until(now_ms() + 2000)).expect("a put works");
        for to in KINDS {
            let mut told = (0, 0);
            let mut tell = |records, bytes| {
                told = (records, bytes);
                // What is written meanwhile is not in the copy.
                table.put_with(b"zzz", b"later", Durability::None).expect("the table can be written to");
            };
            table.delete_with(b"zzz", Durability::None).expect("a delete works");
            let options = TableOptions { kind: to, ..table.options() };
            let copy = db.copy_table(&table, to.name(), options, &mut tell).expect("it is copied");
            let (found, bytes) =
                (records(&copy), contents.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>());
            let expected = contents.iter().filter(|(key, _)| found.get(*key) != contents.get(*key)).count();
            assert_eq!(expected, 0, "{from:?} into {to:?}: all records are there");
            let others: Vec<_> = found.keys().filter(|key| !contents.contains_key(*key)).collect();
            assert!(others.is_empty() || others == [b"soon"], "{from:?} into {to:?}: {others:?}");
            assert!(told.0 >= contents.len() as u64 && told.1 >= bytes as u64, "{told:?}");
            assert_eq!((copy.kind(), copy.options().compression), (to, compression));
        }
        std::thread::sleep(std::time::Duration::from_millis(2100));
        for to in KINDS {
            let copy = db.table(to.name()).expect("it is there");
            assert_eq!(copy.get(b"soon").expect("a get works"), None, "{from:?} into {to:?}: it expires there too");
        }
        assert!(damage(&db).is_empty());
        db.close().expect("it closes");
    }
}

#[test]
fn operands_are_copied_as_what_they_make() {
    for from in KINDS {
        let directory = scratch();
        let merge_operators = MergeOperators::default().with(Append);
        let db = Db::open(directory.path(), Options { merge_operators, ..quiet() }).expect("the store opens");
        let merge = Some(merge::Append.name().into());
        let table = db.create_table_with("from", TableOptions { merge, ..from.into() }).expect("a table can be made");
        table.put(b"key", b"a").expect("a put works");
        table.merge(b"key", b"b").expect("a merge works");
        table.merge(b"none", b"c").expect("a merge works");
        let copy =
            db.copy_table(&table, "to", TableOptions { kind: IndexKind::Lsm, ..table.options() }, &mut |_, _| {});
        let copy = copy.expect("it is copied");
        assert_eq!(copy.get(b"key").expect("a get works").as_deref(), Some(&b"ab"[..]));
        assert_eq!(copy.get(b"none").expect("a get works").as_deref(), Some(&b"c"[..]));
        table.put_with(b"mixed", b"a", until(LATER_MS)).expect("a put works");
        table.merge(b"mixed", b"b").expect("a merge works");
        for to in KINDS {
            let refused = db.copy_table(&table, "again", TableOptions { kind: to, ..table.options() }, &mut |_, _| {});
            let error = refusal(refused, "a value that expires with operands that do not");
            assert!(matches!(&error, Error::MergedExpiry { key, .. } if key == b"mixed"), "{from:?}: {error}");
            assert!(matches!(refusal(db.table("again"), "half a copy"), Error::NoSuchTable { .. }));
        }
        let exists = db.copy_table(&table, "to", IndexKind::Lsm.into(), &mut |_, _| {});
        assert!(matches!(refusal(exists, "a copy into a table"), Error::TableExists { .. }));
    }
}

/// A copy that fails since its table was dropped leaves the next one of its name alone.
#[test]
fn a_copy_that_fails_drops_its_own_table_only() {
    let directory = scratch();
    let db = Db::open(directory.path(), quiet()).expect("the store opens");
    let table = db.create_table("from", IndexKind::Lmdb).expect("a table can be made");
    for number in 0..100u8 {
        table.put(&[number], b"value").expect("a put works");
    }
    let mut progress = |records, _| {
        if records == 1 {
            db.drop_table("to").expect("it can be dropped");
            db.create_table("to", IndexKind::Hash).and_then(|to| to.put(b"other", b"")).expect("a table can be made");
        }
    };
    let refused = db.copy_table(&table, "to", IndexKind::Lmdb.into(), &mut progress);
    assert!(matches!(refusal(refused, "a copy into a dropped table"), Error::NoSuchTable { .. }));
    assert!(db.table("to").and_then(|to| to.get(b"other")).expect("it is there").is_some());
}
