//! Panics of what a program hands to the store: they are errors of the calls that run into them, and of nothing else. And operators that
//! do not keep what they promise: that costs their own keys their values, and nothing else anything.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use aiodb::merge::{Cover, MergeOperator};
use aiodb::{
    Batch, Condition, Db, Durability, Error, IndexKind, MergeOperators, Options, ScanOptions, Step, Table, TableOptions,
};
use support::{KINDS, quiet, scratch, small};
use tempfile::TempDir;

/// Appends operands, and panics in the method that it is told to.
#[derive(Clone, Default)]
struct Panicking(Arc<AtomicU8>);

const NOWHERE: u8 = 0;
const IN_MERGE: u8 = 1;
const IN_COVER: u8 = 2;
const IN_VALUE_ALONE: u8 = 3;

impl Panicking {
    fn set(&self, method: u8) {
        self.0.store(method, Ordering::SeqCst);
    }

    fn enter(&self, method: u8) {
        assert!(self.0.load(Ordering::SeqCst) != method, "the operator has a bug");
    }
}

impl MergeOperator for Panicking {
    fn name(&self) -> &str {
        "panicking"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        self.enter(IN_MERGE);
        Ok([base.unwrap_or_default(), &operands.concat()].concat())
    }

    fn is_value_alone(&self) -> bool {
        self.enter(IN_VALUE_ALONE);
        false
    }

    fn cover(&self, _operand: &[u8]) -> Option<Cover> {
        self.enter(IN_COVER);
        None
    }
}

fn open(kind: IndexKind, options: Options) -> (TempDir, Db, Table, Panicking) {
    let (directory, operator) = (scratch(), Panicking::default());
    let merge_operators = MergeOperators::default().with(operator.clone());
    let db = Db::open(directory.path(), Options { merge_operators, ..options }).expect("the store can be made");
    let options = TableOptions { merge: Some("panicking".into()), ..kind.into() };
    let table = db.create_table_with("t", options).expect("the table can be made");
    (directory, db, table, operator)
}

fn panicked<T: std::fmt::Debug>(outcome: Result<T, Error>) {
    let Err(Error::Merge { operator, reason }) = outcome else { panic!("no error of the operator: {outcome:?}") };
    assert_eq!(operator, "panicking");
    assert!(reason.contains("panicked: the operator has a bug"), "{reason}");
}

/// Every way to read a key meets the panic as an error of its own, and leaves no pin: segments are used again afterwards.
#[test]
fn a_panic_in_a_read_is_its_error_and_keeps_no_segment() {
    for kind in KINDS {
        let (_directory, db, table, operator) = open(kind, quiet());
        // So long that no merge is written as the put of what it makes.
        let long = [&b"a"[..], &[b'-'; 100]].concat();
        let merged = [&long[..], b"b"].concat();
        table.put_with(b"key", &long, Durability::None).expect("a put works");
        table.merge_with(b"key", b"b", Durability::None).expect("a merge works");
        operator.set(IN_MERGE);
        panicked(table.get(b"key"));
        let snapshot = db.snapshot().expect("a snapshot works");
        panicked(snapshot.get(&table, b"key"));
        drop(snapshot);
        let mut reader = table.reader(4).expect("a reader can be made");
        reader.submit(b"key", 7).expect("there is room");
        panicked(
            reader
                .poll()
                .expect("the queue works")
                .expect("one is in flight")
                .value
                .map(|value| value.map(<[u8]>::to_vec)),
        );
        let mut batch = Batch::new();
        batch.require(&table, b"key", Condition::Equals(&merged)).expect("it is short");
        panicked(db.write(&batch));
        panicked(table.get_range(b"key", 0, 1));
        let mut scan =
            if kind.is_ordered() { table.scan(ScanOptions::all()) } else { table.iterate() }.expect("a scan begins");
        panicked(scan.next_record().map(|record| record.is_some()));
        drop(scan);
        operator.set(IN_VALUE_ALONE);
        table.merge_with(b"alone", b"c", Durability::None).expect("a merge works");
        assert_eq!(table.get(b"alone").expect("it can be merged").as_deref(), Some(&b"c"[..]));
        operator.set(NOWHERE);
        assert_eq!(table.get(b"key").expect("the operator works"), Some(merged));
        frees_segments(&db, &table);
        db.close().expect("it closes");
    }
}

/// Overwrites more than upkeep leaves alone, and sees segments go and come back.
fn frees_segments(db: &Db, table: &Table) {
    for round in 0..16_u32 {
        for key in 0..8_u32 {
            table.put_with(&key.to_le_bytes(), &vec![round as u8; 200_000], Durability::None).expect("a put works");
        }
        for step in [Step::Write, Step::Settle, Step::Reclaim, Step::Reclaim, Step::Checkpoint, Step::Prepare] {
            db.step(step).expect("a step works");
        }
    }
    (0..20).for_each(|_| db.step(Step::Upkeep).expect("upkeep works"));
    let stats = db.stats();
    assert!(stats.segments_retiring <= 4, "{} segments wait for readers that are gone", stats.segments_retiring);
}

/// A fold in the background meets a panic: the next one succeeds, and until then the store says what is wrong.
#[test]
fn a_panic_in_a_fold_is_trouble_and_ends_nothing() {
    for kind in KINDS {
        let (_directory, db, table, operator) = open(kind, quiet());
        operator.set(IN_MERGE);
        for _ in 0..20 {
            table.merge_with(b"key", b"x", Durability::None).expect("a merge works");
        }
        db.step(Step::Write).expect("a write works");
        (0..3).for_each(|_| db.step(Step::Settle).expect("settling works"));
        let trouble = db.stats().trouble.expect("the panic is trouble");
        assert!(trouble.contains("panicking"), "{trouble}");
        operator.set(NOWHERE);
        assert_eq!(table.get(b"key").expect("the operator works"), Some(vec![b'x'; 20]));
        table.put(b"key", b"y").expect("a durable put works");
        frees_segments(&db, &table);
        db.close().expect("it closes");
    }
}

/// While a record is published it is acknowledged already, or soon will be: what the operator has to say is left out.
#[test]
fn a_panic_while_a_record_is_published_loses_nothing_and_holds_nobody_up() {
    for kind in KINDS {
        let (_directory, db, table, operator) = open(kind, small());
        operator.set(IN_COVER);
        table.merge_with(b"key", b"a", Durability::None).expect("a merge works");
        table.merge_with(b"key", b"b", Durability::Sync).expect("a durable merge works");
        table.put_with(b"other", b"value", Durability::Sync).expect("a durable put works");
        assert_eq!(table.get(b"key").expect("it can be read").as_deref(), Some(&b"ab"[..]));
        db.snapshot().expect("a snapshot works");
        db.close().expect("it closes");
    }
}

/// An operand of before a restart is published again by an operator that panics.
#[test]
fn a_panic_in_a_recovery_is_no_failure_of_it() {
    for kind in KINDS {
        let (directory, db, table, operator) = open(kind, quiet());
        table.merge_with(b"key", b"a", Durability::Sync).expect("a merge works");
        std::mem::forget((db, table));
        let copy = scratch();
        support::copy_tree(directory.path(), copy.path());
        operator.set(IN_COVER);
        let merge_operators = MergeOperators::default().with(operator.clone());
        let db = Db::open(copy.path(), Options { merge_operators, ..quiet() }).expect("the store can be opened");
        let table = db.table("t").expect("the table is there");
        assert_eq!(table.get(b"key").expect("it can be read").as_deref(), Some(&b"a"[..]));
        db.close().expect("it closes");
    }
}

/// A reader that is kept, and its last answer not given back, keeps no segment from being used again.
#[test]
fn an_answer_that_was_given_out_keeps_no_segment() {
    for kind in KINDS {
        let (_directory, db, table, _) = open(kind, quiet());
        table.put_with(b"key", b"value", Durability::None).expect("a put works");
        db.step(Step::Write).expect("a write works");
        let mut reader = table.reader(8).expect("a reader can be made");
        for token in 0..4 {
            reader.submit(b"key", token).expect("there is room");
        }
        for _ in 0..4 {
            let value = reader.poll().expect("the queue works").expect("one is in flight").value.expect("it is read");
            assert_eq!(value, Some(&b"value"[..]));
        }
        frees_segments(&db, &table);
        assert_eq!(db.stats().oldest_pin_ms, 0);
        drop(reader);
        // One that is in flight is seen to be.
        let mut reader = table.reader(8).expect("a reader can be made");
        reader.submit(b"key", 1).expect("there is room");
        let is_old = AtomicBool::new(false);
        for _ in 0..200 {
            db.step(Step::Upkeep).expect("upkeep works");
            std::thread::sleep(std::time::Duration::from_millis(1));
            is_old.fetch_or(db.stats().oldest_pin_ms > 20, Ordering::Relaxed);
        }
        assert!(is_old.load(Ordering::Relaxed), "{}: the get in flight has an age", kind.name());
        while reader.poll().expect("the queue works").is_some() {}
        db.step(Step::Upkeep).expect("upkeep works");
        assert_eq!(db.stats().oldest_pin_ms, 0);
    }
}

/// An operator whose answers depend on how operands come together, and on how often it was asked.
#[derive(Clone, Default)]
struct Lying(Arc<AtomicU64>);

impl Lying {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

impl MergeOperator for Lying {
    fn name(&self) -> &str {
        "lying"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        let base = base.unwrap_or_default();
        Ok([&base[base.len().min(20)..], &operands.concat(), &self.next().to_le_bytes()].concat())
    }

    fn is_value_alone(&self) -> bool {
        self.next().is_multiple_of(2)
    }

    fn cover(&self, _operand: &[u8]) -> Option<Cover> {
        let number = self.next();
        let (earliest, latest) = (number as i64 % 5, -(number as i64) % 3);
        (!number.is_multiple_of(3)).then_some(Cover { meaning: number % 2, parts: number % 4, earliest, latest })
    }
}

/// Keys without operands, and keys that were deleted, are as the program left them; and each record is counted once.
#[test]
fn an_operator_that_lies_about_order_spoils_its_own_keys_alone() {
    for kind in KINDS {
        println!("{}", kind.name());
        let (directory, operator) = (scratch(), Lying::default());
        let options = || Options { merge_operators: MergeOperators::default().with(operator.clone()), ..quiet() };
        let db = Db::open(directory.path(), options()).expect("the store can be made");
        let table_options = TableOptions { merge: Some("lying".into()), ..kind.into() };
        let table = db.create_table_with("t", table_options).expect("the table can be made");
        let lie = |number: u32| format!("lie {}", number % 7).into_bytes();
        let plain = |number: u32| format!("plain {}", number % 50).into_bytes();
        let mut snapshot = None;
        for number in 0..600 {
            table.merge_with(&lie(number), &number.to_le_bytes(), Durability::None).expect("a merge works");
            table.put_with(&plain(number), &number.to_le_bytes(), Durability::None).expect("a put works");
            if number % 90 == 10 {
                table.put_with(&lie(number), b"base", Durability::None).expect("a put works");
            }
            if number % 40 == 39 {
                for step in [Step::Write, Step::Settle, Step::Checkpoint, Step::Upkeep, Step::Upkeep] {
                    db.step(step).expect("a step works");
                }
                table.get(&lie(number)).expect("it has some value");
                snapshot = Some(db.snapshot().expect("a snapshot works"));
            }
        }
        drop(snapshot);
        table.delete_with(&lie(3), Durability::None).expect("a delete works");
        frees_segments(&db, &table);
        let check = |db: &Db, table: &Table| {
            for number in 550..600 {
                let found = table.get(&plain(number)).expect("a get works");
                assert_eq!(found.as_deref(), Some(&number.to_le_bytes()[..]), "{number}");
            }
            for number in 0..7 {
                let found = table.get(&lie(number)).expect("a get works");
                assert_eq!(found.is_some(), number != 3, "{number}");
            }
            assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new());
        };
        check(&db, &table);
        db.close().expect("it closes");
        drop((db, table));
        let db = Db::open(directory.path(), options()).expect("the store can be opened");
        let table = db.table("t").expect("the table is there");
        check(&db, &table);
        db.close().expect("it closes");
    }
}
