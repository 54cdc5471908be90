//! Compare-and-set and conditional batches: the conditions hold at the write's place in the order of all writes.

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Condition, Db, Durability, Error, IndexKind, Options, Sequence, Table};
use fastrand::Rng;
use support::{KINDS, open, quiet, refusal, scratch, small};

const CLASSES: [Durability; 3] = [Durability::Sync, Durability::Interval(Duration::from_millis(10)), Durability::None];

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value[..8].try_into().expect("a counter has 8 bytes")))
}

/// Adds one by compare-and-set, however often that takes.
fn increment(table: &Table, key: &[u8], durability: Durability) {
    loop {
        let found = table.get(key).expect("the counter can be read");
        let next = (number(found.clone()) + 1).to_le_bytes();
        if table.compare_and_set_with(key, found.as_deref(), Some(&next), durability).expect("it is not refused") {
            return;
        }
    }
}

#[test]
fn counters_lose_no_increment() {
    const THREADS: u64 = 6;
    for kind in KINDS {
        for class in CLASSES {
            let directory = scratch();
            let (db, table) = open(directory.path(), kind, &small());
            let increments = if class == Durability::Sync { 40 } else { 400 };
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let table = &table;
                    scope.spawn(move || {
                        for round in 0..increments {
                            // Now and then another class takes part in the same counter.
                            let class = if round % 20 == 7 { CLASSES[thread as usize % 3] } else { class };
                            increment(table, b"counter", class);
                        }
                    });
                }
            });
            let sum = number(table.get(b"counter").expect("the counter can be read"));
            assert_eq!(sum, THREADS * increments, "{} {class:?}", kind.name());
            db.close().expect("the store can be closed");
            let (_db, table) = open(directory.path(), kind, &small());
            let sum = number(table.get(b"counter").expect("the counter can be read"));
            assert_eq!(sum, THREADS * increments, "{} {class:?} after a restart", kind.name());
        }
    }
}

/// One write that went through: what it needed to find there, and what it left.
struct Write {
    key: u8,
    expected: Option<Option<Vec<u8>>>,
    left: Option<Vec<u8>>,
}

/// Puts, deletes and conditional batches of all classes at random, noted with their sequences.
fn write_at_random(db: &Db, table: &Table, seed: u64, written: &Mutex<BTreeMap<Sequence, Write>>) {
    const WRITES: usize = 250;
    let mut rng = Rng::with_seed(seed);
    for round in 0..WRITES {
        let key = rng.u8(..3);
        let durability = if rng.u8(..12) == 0 { Durability::Sync } else { CLASSES[rng.usize(1..3)] };
        let length = match rng.u8(..30) {
            0 => 40_000,
            1..6 => rng.usize(1300..5000),
            _ => rng.usize(16..200),
        };
        let left = (rng.u8(..5) > 0).then(|| support::value(seed << 32 | round as u64, length));
        let (expected, sequence) = if rng.bool() {
            let sequence = match &left {
                Some(value) => table.put_with(&[key], value, durability),
                None => table.delete_with(&[key], durability),
            };
            (None, sequence)
        } else {
            let found = table.get(&[key]).expect("the key can be read");
            let mut batch = Batch::new();
            batch
                .require(table, &[key], found.as_deref().map_or(Condition::Absent, Condition::Equals))
                .and_then(|batch| match &left {
                    Some(value) => batch.put(table, &[key], value),
                    None => batch.delete(table, &[key]),
                })
                .expect("the operation is in its limits");
            (Some(found), db.write_with(&batch, durability))
        };
        match sequence {
            Ok(sequence) => {
                let other = written.lock().expect("it is free").insert(sequence, Write { key, expected, left });
                assert!(other.is_none(), "sequence {sequence} was given once");
            }
            Err(Error::ConditionFailed { condition: 0, .. }) if expected.is_some() => {}
            Err(error) => panic!("a write: {error}"),
        }
    }
}

#[test]
fn a_condition_holds_at_the_place_of_its_write_in_the_log() {
    for kind in KINDS {
        for hash_mask in [u64::MAX, !0 << 62, 0] {
            let directory = scratch();
            let options = Options { hash_mask, segment_bytes: 64 << 10, ..small() };
            let (db, table) = open(directory.path(), kind, &options);
            let written = Mutex::new(BTreeMap::new());
            std::thread::scope(|scope| {
                for thread in 0..6 {
                    let (db, table, written) = (&db, &table, &written);
                    scope.spawn(move || write_at_random(db, table, thread, written));
                }
            });
            let mut held: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
            let (mut conditional, written) = (0, written.into_inner().expect("nobody panicked"));
            for (sequence, write) in written {
                if let Some(expected) = write.expected {
                    conditional += 1;
                    let what = format!("{}, mask {hash_mask:x}: the condition of {sequence}", kind.name());
                    support::assert_value(held.get(&write.key).map(Vec::as_slice), expected.as_deref(), &what);
                }
                match write.left {
                    Some(value) => held.insert(write.key, value),
                    None => held.remove(&write.key),
                };
            }
            assert!(conditional > 20, "{}: only {conditional} conditional writes went through", kind.name());
            for key in 0..3 {
                support::assert_get(&table, &[key], held.get(&key).map(Vec::as_slice), "the last write is there");
            }
        }
    }
}

#[test]
fn only_one_of_many_puts_if_absent() {
    const THREADS: u64 = 6;
    for kind in KINDS {
        for class in CLASSES {
            let directory = scratch();
            let (_db, table) = open(directory.path(), kind, &small());
            let wins = [const { AtomicU64::new(0) }; 30];
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (table, wins) = (&table, &wins);
                    scope.spawn(move || {
                        for (name, wins) in wins.iter().enumerate() {
                            let (name, mine) = (name.to_le_bytes(), thread.to_le_bytes());
                            let won = table.compare_and_set_with(&name, None, Some(&mine), class);
                            if won.expect("it is not refused") {
                                wins.fetch_add(1, Ordering::Relaxed);
                                let found = table.get(&name).expect("the key can be read");
                                assert_eq!(found, Some(mine.to_vec()), "the winner's value stays");
                            }
                        }
                    });
                }
            });
            for (name, wins) in wins.iter().enumerate() {
                assert_eq!(wins.load(Ordering::Relaxed), 1, "{} {class:?}: winners of name {name}", kind.name());
            }
        }
    }
}

/// Moves one from an account to another if neither has changed since it looked. False if one has.
fn transfer<D: Device>(
    db: &Db<D>,
    from: (&Table<D>, &[u8]),
    to: (&Table<D>, &[u8]),
    durability: Durability,
) -> aiodb::Result<bool> {
    let (rich, poor) = (from.0.get(from.1)?, to.0.get(to.1)?);
    if number(rich.clone()) == 0 {
        return Ok(true);
    }
    let (less, more) = (number(rich.clone()) - 1, number(poor.clone()) + 1);
    let mut batch = Batch::new();
    batch.require(from.0, from.1, rich.as_deref().map_or(Condition::Absent, Condition::Equals))?;
    batch.require(to.0, to.1, poor.as_deref().map_or(Condition::Absent, Condition::Equals))?;
    batch.put(from.0, from.1, &less.to_le_bytes())?.put(to.0, to.1, &more.to_le_bytes())?;
    match db.write_with(&batch, durability) {
        Ok(_) => Ok(true),
        Err(Error::ConditionFailed { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

#[test]
fn conditional_batches_over_several_tables_keep_a_sum() {
    const ACCOUNTS: u64 = 4;
    const EACH: u64 = 1000;
    let directory = scratch();
    let db = Db::open(directory.path(), small()).expect("a store can be made");
    let tables = KINDS.map(|kind| db.create_table(kind.name(), kind).expect("a table can be made"));
    for account in 0..ACCOUNTS {
        tables.iter().for_each(|table| {
            table.put(&account.to_be_bytes(), &EACH.to_le_bytes()).expect("a put works");
        });
    }
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (db, tables) = (&db, &tables);
            scope.spawn(move || {
                let mut rng = Rng::with_seed(thread);
                let mut done = 0;
                while done < 100 {
                    let (from, to) = (rng.u64(..ACCOUNTS).to_be_bytes(), rng.u64(..ACCOUNTS).to_be_bytes());
                    let (rich, further) = (rng.usize(..KINDS.len()), rng.usize(1..KINDS.len()));
                    let poor = (rich + further) % KINDS.len();
                    let class = if rng.u8(..10) == 0 { Durability::Sync } else { Durability::None };
                    let (from, to) = ((&tables[rich], &from[..]), (&tables[poor], &to[..]));
                    done += u64::from(transfer(db, from, to, class).expect("it is not refused"));
                }
            });
        }
    });
    let balance = |table: &Table, account: u64| number(table.get(&account.to_be_bytes()).expect("it can be read"));
    let sum: u64 = tables.iter().map(|table| (0..ACCOUNTS).map(|account| balance(table, account)).sum::<u64>()).sum();
    assert_eq!(sum, KINDS.len() as u64 * ACCOUNTS * EACH, "transfers neither make nor lose anything");
}

#[test]
fn a_conditional_write_gets_through_while_others_overwrite_its_key() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        table.put(b"hot", b"first").expect("a put works");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..3u8 {
                let (table, done) = (&table, &done);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let class = if thread == 0 { Durability::Sync } else { Durability::None };
                        table.put_with(b"hot", &vec![thread; 20_000], class).expect("a put works");
                    }
                });
            }
            for round in 0..50u64 {
                let mut batch = Batch::new();
                batch.require(&table, b"hot", Condition::Present).expect("it is in its limits");
                batch.put(&table, b"beside", &round.to_le_bytes()).expect("it is in its limits");
                db.write_with(&batch, CLASSES[round as usize % 3]).expect("the key is always there");
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(table.get(b"beside").expect("it can be read"), Some(49u64.to_le_bytes().to_vec()));
        assert_eq!(db.stats().trouble, None, "background work went through");
    }
}

#[test]
fn a_failed_condition_is_named_and_changes_nothing() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let large = support::value(1, 600_000);
        table.put(b"large", &large).expect("a put works");
        table.put(b"gone", b"x").expect("a put works");
        table.delete(b"gone").expect("a delete works");
        let before = db.sequence();
        let cases: [(&[u8], Condition, bool); 9] = [
            (b"large", Condition::Equals(&large), true),
            (b"large", Condition::Present, true),
            (b"large", Condition::Absent, false),
            (b"large", Condition::Equals(&large[1..]), false),
            (b"gone", Condition::Absent, true),
            (b"gone", Condition::Present, false),
            (b"gone", Condition::Equals(b"x"), false),
            (b"never", Condition::Equals(b""), false),
            (b"never", Condition::Absent, true),
        ];
        for (key, condition, holds) in cases {
            let mut batch = Batch::new();
            batch
                .require(&table, b"never", Condition::Absent)
                .and_then(|batch| batch.require(&table, key, condition))
                .expect("the condition is in its limits");
            let what = format!("{}: {} {holds}", kind.name(), support::name(key));
            match db.write(&batch) {
                Ok(sequence) => assert!(holds && sequence == before, "{what}: a check alone writes nothing"),
                Err(Error::ConditionFailed { condition: 1, table }) => assert!(!holds && table == "t", "{what}"),
                Err(error) => panic!("{what}: {error}"),
            }
            if !holds {
                let added = batch.put(&table, b"new", b"v");
                added.and_then(|batch| batch.put(&table, b"new and large", &large)).expect("it is in its limits");
                let error = refusal(db.write(&batch), &what);
                assert!(matches!(error, Error::ConditionFailed { condition: 1, .. }), "{what}: {error}");
                assert_eq!(table.get(b"new").expect("it can be read"), None, "{what}: nothing was written");
                assert_eq!(table.get(b"new and large").expect("it can be read"), None, "{what}: nothing was written");
                assert_eq!(db.sequence(), before, "{what}: nothing was appended");
            }
        }
        let other = support::value(2, 700_000);
        assert!(table.compare_and_set(b"large", Some(&large), Some(&other)).expect("it is not refused"));
        assert!(!table.compare_and_set(b"large", Some(&large), None).expect("it is not refused"));
        support::assert_get(&table, b"large", Some(&other), "after both");
        assert!(table.compare_and_set(b"large", Some(&other), None).expect("it is not refused"));
        support::assert_get(&table, b"large", None, "after it was deleted");
    }
}

#[test]
fn conditions_are_checked_like_operations() {
    let (ours, theirs) = (scratch(), scratch());
    let (db, table) = open(ours.path(), IndexKind::Lmdb, &quiet());
    let (_other, foreign) = open(theirs.path(), IndexKind::Lmdb, &quiet());
    let mut batch = Batch::new();
    for key in [&b""[..], &vec![b'k'; (64 << 10) + 1]] {
        let error = refusal(batch.require(&table, key, Condition::Absent).map(drop), "a key out of its limits");
        assert!(matches!(error, Error::KeyLength { .. }), "{error}");
        let error = refusal(table.compare_and_set(key, None, None), "a key out of its limits");
        assert!(matches!(error, Error::KeyLength { .. }), "{error}");
    }
    batch.require(&foreign, b"k", Condition::Absent).expect("it is in its limits");
    let error = refusal(db.write(&batch), "a condition on another store");
    assert!(matches!(error, Error::NoSuchTable { .. }), "{error}");
    let mut batch = Batch::new();
    (0..4096).for_each(|_| batch.require(&table, b"k", Condition::Absent).map(drop).expect("it is in its limits"));
    let error = refusal(batch.require(&table, b"k", Condition::Absent).map(drop), "a condition too many");
    assert!(matches!(error, Error::Option { .. }), "{error}");
    db.write(&batch).expect("they all hold");

    table.put(b"k", b"before").expect("a put works");
    db.truncate_table("t").expect("a table can be emptied");
    assert!(!table.compare_and_set(b"k", Some(b"before"), Some(b"x")).expect("it is not refused"), "it was emptied");
    assert!(table.compare_and_set(b"k", None, Some(b"after")).expect("it is not refused"));
    db.drop_table("t").expect("a table can be dropped");
    let error = refusal(table.compare_and_set(b"k", None, None), "a write to a dropped table");
    assert!(matches!(error, Error::NoSuchTable { .. }), "{error}");
    db.close().expect("the store can be closed");
    let error = refusal(table.compare_and_set(b"k", None, None), "a write after a close");
    assert!(matches!(error, Error::Closed), "{error}");
}

#[test]
fn after_a_crash_a_conditional_batch_is_there_wholly_or_not_at_all() {
    const FUNDS: u64 = 100;
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let device = SimDevice::with_block_bytes(seed, 512);
        device.create_dir(Path::new("/store")).expect("a directory can be made");
        let options = Options { segment_bytes: 64 << 10, ..quiet() };
        let db = Db::open_on(device.clone(), "/store", options.clone()).expect("a store can be made");
        let from = db.create_table("from", IndexKind::Hash).expect("a table can be made");
        let to = db.create_table("to", IndexKind::Hash).expect("a table can be made");
        from.put(b"k", &FUNDS.to_le_bytes()).expect("a put works");
        device.crash_after(rng.u64(1..80));
        let (mut attempted, mut acknowledged, mut durable) = (0, 0, 0);
        while attempted < FUNDS && !device.has_crashed() {
            attempted += 1;
            let class = if rng.u8(..3) == 0 { Durability::Sync } else { Durability::None };
            let written = transfer(&db, (&from, b"k"), (&to, b"k"), class);
            if written.is_ok() && !device.has_crashed() {
                acknowledged = attempted;
                durable = if class == Durability::Sync { attempted } else { durable };
            }
            if rng.u8(..8) == 0 {
                let _ = db.step(aiodb::Step::Write);
            }
        }
        let power_cut = rng.bool();
        let after = if power_cut { device.power_cut() } else { device.process_death() };
        let again = Db::open_on(after, "/store", options).expect("the store can be opened again");
        let balance = |name: &str| {
            let table = again.table(name).expect("the table is there");
            number(table.get(b"k").expect("the key can be read"))
        };
        let (left, moved) = (balance("from"), balance("to"));
        assert_eq!(left + moved, FUNDS, "seed {seed}: half a batch");
        let required = if power_cut { durable } else { acknowledged };
        assert!((required..=attempted).contains(&moved), "seed {seed}: {moved} of {required} to {attempted}");
    }
}
