//! Operands of one key: folded while others come, overtake each other and are seen by snapshots.

use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Db, Durability, IndexKind, Options, Step, Table};
use shuttle::rand::Rng as _;
use shuttle::thread;

use crate::machine::{Machine, check_key, options, write_slowly};
use crate::schedules::{RUN, in_fewer_orders, in_many_orders};

/// Two threads append operands to a key that has some, and a third folds them. The later one may be published first, and
/// the earlier one and the end of the batch while the third is at work; none may be lost.
#[test]
fn interleavings_of_operands_and_folding() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(3, kind);
        let (db, table) = machine.open();
        for operand in b'0'..b'8' {
            table.merge_with(b"key", &[operand], Durability::None).expect("the machine runs");
        }
        db.step(Step::Write).expect("the machine runs");
        let slow = write_slowly(&db, &table, |batch, table| batch.merge(table, b"key", b"s").map(drop));
        let quick = thread::spawn({
            let table = table.clone();
            move || table.merge_with(b"key", b"q", Durability::None).expect("the machine runs")
        });
        let folding = thread::spawn({
            let db = db.clone();
            move || db.step(Step::Settle).expect("the machine runs")
        });
        let [slow, quick] = [slow, quick].map(|thread| thread.join().expect("no thread panics"));
        folding.join().expect("no thread panics");
        let wanted: &[u8] = if slow < quick { b"01234567sq" } else { b"01234567qs" };
        check_key((&db, &table), (machine, options()), Some(wanted));
    });
}

/// Durable puts and deletes wait for the device while later operands of their keys are published, and the ordered index takes
/// up what it has. Whichever comes last in the log, an operand applies to what was put or deleted before it.
#[test]
fn interleavings_of_durable_writes_operands_and_checkpoints() {
    in_many_orders(RUN, |kind| {
        const KEYS: u8 = 6;
        let machine = Machine::new(7, kind);
        let (db, table) = machine.open();
        let is_deleted = |key: u8| key.is_multiple_of(3);
        let bases = thread::spawn({
            let (db, table) = (db.clone(), table.clone());
            move || {
                let write = |key: u8| {
                    let mut batch = Batch::new();
                    let written =
                        if is_deleted(key) { batch.delete(&table, &[key]) } else { batch.put(&table, &[key], b"p") };
                    written.expect("it is short");
                    db.write_with(&batch, Durability::Sync).expect("the machine runs")
                };
                (0..KEYS).map(write).collect::<Vec<_>>()
            }
        });
        let operands = thread::spawn({
            let table = table.clone();
            let merge = move |key: u8| table.merge_with(&[key], b"m", Durability::None).expect("the machine runs");
            move || (0..KEYS).map(merge).collect::<Vec<_>>()
        });
        let upkeep = thread::spawn({
            let db = db.clone();
            move || db.step(Step::Checkpoint).expect("the machine runs")
        });
        let [bases, operands] = [bases, operands].map(|thread| thread.join().expect("no thread panics"));
        upkeep.join().expect("no thread panics");
        let wanted = |key: u8| -> Option<&[u8]> {
            match (is_deleted(key), bases[key as usize] < operands[key as usize]) {
                (true, true) => Some(b"m"),
                (true, false) => None,
                (false, true) => Some(b"pm"),
                (false, false) => Some(b"p"),
            }
        };
        let check = |table: &Table<SimDevice>| {
            for key in 0..KEYS {
                assert_eq!(table.get(&[key]).expect("the machine runs").as_deref(), wanted(key), "key {key}");
            }
        };
        check(&table);
        let machine = machine.process_death();
        let (_db, table) = machine.open();
        check(&table);
    });
}

/// A snapshot begins while the operands of a key are folded, and then folded again, and the ordered index takes up what it has.
/// The snapshot sees all operands up to it, whichever copy of them is left.
#[test]
fn interleavings_of_snapshots_and_folding() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(8, kind);
        let (db, table) = machine.open();
        let merge = |table: &Table<SimDevice>, operand: u8| {
            table.merge_with(b"key", &[operand], Durability::None).expect("the machine runs").number()
        };
        let mut operands: Vec<(u64, u8)> = (0..10).map(|operand| (merge(&table, operand), operand)).collect();
        let merging = thread::spawn({
            let table = table.clone();
            move || (10..24).map(|operand| (merge(&table, operand), operand)).collect::<Vec<_>>()
        });
        let snapshots = thread::spawn({
            let db = db.clone();
            move || (0..3).map(|_| db.snapshot().expect("the machine runs")).collect::<Vec<_>>()
        });
        for step in [Step::Write, Step::Settle, Step::Checkpoint, Step::Settle, Step::Checkpoint] {
            db.step(step).expect("the machine runs");
        }
        operands.extend(merging.join().expect("no thread panics"));
        let snapshots = snapshots.join().expect("no thread panics");
        for step in [Step::Write, Step::Settle, Step::Checkpoint] {
            db.step(step).expect("the machine runs");
        }
        for snapshot in snapshots {
            let seen = operands.iter().filter(|(sequence, _)| *sequence <= snapshot.sequence());
            let wanted: Vec<u8> = seen.map(|(_, operand)| *operand).collect();
            let found = snapshot.get(&table, b"key").expect("the machine runs");
            assert_eq!(found, Some(wanted), "as of {}, in {}", snapshot.sequence(), kind.name());
        }
    });
}

/// An operand that waits for the device is overtaken by another one, which the ordered index takes up without it; then all are
/// folded, and what was made of them is deleted. A snapshot of before sees them all, whichever layer knows of which.
#[test]
fn interleavings_of_snapshots_and_overtaken_operands() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(9, kind);
        let (db, table) = machine.open();
        let merge = |table: &Table<SimDevice>, operand: u8, class| {
            let sequence = table.merge_with(b"key", &[operand], class).expect("the machine runs");
            (sequence.number(), operand)
        };
        let mut operands: Vec<(u64, u8)> = (0..8).map(|operand| merge(&table, operand, Durability::None)).collect();
        let writers = [(8, Durability::Sync), (9, Durability::None)].map(|(operand, class)| {
            let table = table.clone();
            thread::spawn(move || merge(&table, operand, class))
        });
        db.step(Step::Checkpoint).expect("the machine runs");
        operands.extend(writers.map(|writer| writer.join().expect("no thread panics")));
        operands.sort_unstable();
        let wanted: Vec<u8> = operands.iter().map(|(_, operand)| *operand).collect();
        for step in [Step::Write, Step::Settle] {
            db.step(step).expect("the machine runs");
        }
        let snapshot = db.snapshot().expect("the machine runs");
        table.delete_with(b"key", Durability::None).expect("the machine runs");
        assert_eq!(snapshot.get(&table, b"key").expect("the machine runs").as_ref(), Some(&wanted));
        db.step(Step::Checkpoint).expect("the machine runs");
        assert_eq!(snapshot.get(&table, b"key").expect("the machine runs").as_ref(), Some(&wanted));
    });
}

/// What a thread does to the key.
#[derive(Clone, Debug)]
enum Change {
    Merge(u8),
    Put(u8),
    Delete,
    /// A delete of a range with the key in it.
    DeleteRange,
}

/// What the key holds after the changes up to a sequence.
fn value_at(changes: &[(u64, Change)], sequence: u64) -> Option<Vec<u8>> {
    let mut value: Option<Vec<u8>> = None;
    for (_, change) in changes.iter().take_while(|(other, _)| *other <= sequence) {
        match change {
            Change::Merge(operand) => value.get_or_insert_default().push(*operand),
            Change::Put(byte) => value = Some(vec![*byte]),
            Change::Delete | Change::DeleteRange => value = None,
        }
    }
    value
}

/// Makes a change, sometimes behind another key's in one batch. Returns its sequence.
fn make(db: &Db<SimDevice>, table: &Table<SimDevice>, change: &Change, class: Durability) -> u64 {
    let mut batch = Batch::new();
    if shuttle::rand::thread_rng().gen_bool(0.3) {
        batch.put(table, b"other", b"x").expect("it is short");
    }
    let changed = match change {
        Change::Merge(operand) => batch.merge(table, b"key", &[*operand]),
        Change::Put(byte) => batch.put(table, b"key", &[*byte]),
        Change::Delete => batch.delete(table, b"key"),
        Change::DeleteRange => batch.delete_range(table, b"k", b"l"),
    };
    changed.expect("it is short");
    db.write_with(&batch, class).expect("the machine runs").number()
}

/// Merges find in memory what they apply to, and are written as puts of what they make, while others merge into the key, delete it or a range
/// with it, and snapshots begin. Each counts once, in the order of the log, for gets, for snapshots and after a death.
#[test]
fn interleavings_of_merges_that_are_applied() {
    in_many_orders(RUN, |kind| {
        let chance = |of: f64| shuttle::rand::thread_rng().gen_bool(of);
        let machine = Machine::new(12, kind);
        let (db, table) = machine.open();
        let base = Change::Put(b'0');
        let mut changes = vec![(make(&db, &table, &base, Durability::None), base)];
        let writers = [10, 20].map(|first| {
            let (db, table) = (db.clone(), table.clone());
            thread::spawn(move || {
                let change = |operand: u8| match shuttle::rand::thread_rng().gen_range(0..12) {
                    0 => Change::Put(operand),
                    1 => Change::Delete,
                    2 if kind.is_ordered() => Change::DeleteRange,
                    _ => Change::Merge(operand),
                };
                let write = |operand: u8| {
                    let class = if chance(0.2) { Durability::Sync } else { Durability::None };
                    let change = change(operand);
                    let sequence = match &change {
                        Change::Merge(operand) if chance(0.7) => {
                            table.merge_with(b"key", &[*operand], class).expect("the machine runs").number()
                        }
                        change => make(&db, &table, change, class),
                    };
                    (sequence, change)
                };
                (first..first + 3).map(write).collect::<Vec<_>>()
            })
        });
        let reader = thread::spawn({
            let (table, db) = (table.clone(), db.clone());
            move || {
                let look = |_| {
                    let snapshot = db.snapshot().expect("the machine runs");
                    let found = snapshot.get(&table, b"key").expect("the machine runs");
                    table.get(b"key").expect("the machine runs");
                    (snapshot, found)
                };
                (0..2).map(look).collect::<Vec<_>>()
            }
        });
        if chance(0.5) {
            db.step(Step::Checkpoint).expect("the machine runs");
        }
        changes.extend(writers.into_iter().flat_map(|writer| writer.join().expect("no thread panics")));
        changes.sort_unstable_by_key(|(sequence, _)| *sequence);
        let looks = reader.join().expect("no thread panics");
        let wanted = value_at(&changes, u64::MAX);
        for step in [Step::Settle, Step::Write, Step::Checkpoint] {
            assert_eq!(table.get(b"key").expect("the machine runs"), wanted, "{changes:?}");
            for (snapshot, found) in &looks {
                let seen = value_at(&changes, snapshot.sequence());
                assert_eq!(*found, seen, "as of {}: {changes:?}", snapshot.sequence());
                assert_eq!(snapshot.get(&table, b"key").expect("the machine runs"), seen, "later: {changes:?}");
            }
            db.step(step).expect("the machine runs");
        }
        drop(looks);
        let machine = machine.process_death();
        let (_db, table) = machine.open();
        assert_eq!(table.get(b"key").expect("the machine runs"), wanted, "after a death: {changes:?}");
    });
}

/// Two threads add so many operands to a key that they fold them themselves, and now and then put or delete it, while upkeep
/// folds, commits and deletes ranges and snapshots come and go. Nothing acknowledged is lost to any of them, nor by a death.
#[test]
fn interleavings_of_folding_by_writers() {
    in_fewer_orders(RUN, |kind| {
        /// So many that the next writers fold them.
        const OPERANDS: u8 = 62;
        const CHANGES: u8 = 5;
        let chance = |of: f64| shuttle::rand::thread_rng().gen_bool(of);
        let machine = Machine::new(11, kind);
        let options = if chance(0.3) { Options { hash_mask: 0, ..options() } } else { options() };
        let is_bare = kind == IndexKind::Lsm && chance(0.8);
        let (db, table) = machine.open_with(options.clone());
        let (mut changes, mut snapshots) = (Vec::new(), Vec::new());
        for operand in 0..OPERANDS {
            // A short value in memory takes the operands as they come.
            let is_put = operand == 0 && !is_bare;
            let change = if is_put { Change::Put(operand) } else { Change::Merge(operand) };
            changes.push((make(&db, &table, &change, Durability::None), change));
            if operand == 40 && chance(0.5) {
                let step = if chance(0.5) { Step::Checkpoint } else { Step::Write };
                db.step(step).expect("the machine runs");
            }
            if operand == 50 {
                snapshots.push(db.snapshot().expect("the machine runs"));
            }
        }
        let writers = [100, 110].map(|first| {
            let (db, table) = (db.clone(), table.clone());
            thread::spawn(move || {
                let (mut changes, mut snapshots) = (Vec::new(), Vec::new());
                for operand in first..first + CHANGES {
                    let change = match shuttle::rand::thread_rng().gen_range(0..20) {
                        0 => Change::Put(operand),
                        1 => Change::Delete,
                        2 if kind.is_ordered() => Change::DeleteRange,
                        _ => Change::Merge(operand),
                    };
                    let class = if chance(0.25) { Durability::Sync } else { Durability::None };
                    changes.push((make(&db, &table, &change, class), change));
                    if operand == first + 2 {
                        snapshots.push(db.snapshot().expect("the machine runs"));
                    }
                }
                (changes, snapshots)
            })
        });
        let upkeep = thread::spawn({
            let db = db.clone();
            move || {
                let steps = [Step::Settle, Step::Write, Step::Checkpoint, Step::DeleteRanges, Step::Settle];
                for step in steps.into_iter().chain(steps).filter(|_| chance(0.5)) {
                    db.step(step).expect("the machine runs");
                }
            }
        });
        let reader = thread::spawn({
            let (table, db) = (table.clone(), db.clone());
            move || {
                for _ in 0..3 {
                    let snapshot = db.snapshot().expect("the machine runs");
                    let found = snapshot.get(&table, b"key").expect("the machine runs");
                    table.get(b"key").expect("the machine runs");
                    assert_eq!(snapshot.get(&table, b"key").expect("the machine runs"), found);
                }
            }
        });
        for writer in writers {
            let (made, taken) = writer.join().expect("no thread panics");
            changes.extend(made);
            snapshots.extend(taken);
        }
        [upkeep, reader].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        changes.sort_unstable_by_key(|(sequence, _)| *sequence);
        let wanted = value_at(&changes, u64::MAX);
        let check = |when: &str| {
            assert_eq!(table.get(b"key").expect("the machine runs"), wanted, "{when}: {changes:?}");
            for snapshot in &snapshots {
                let (found, sequence) = (snapshot.get(&table, b"key"), snapshot.sequence());
                let seen = value_at(&changes, sequence);
                assert_eq!(found.expect("the machine runs"), seen, "{when}, as of {sequence}: {changes:?}");
            }
        };
        check("at once");
        db.step(Step::Settle).expect("the machine runs");
        check("settled");
        for step in [Step::Checkpoint, Step::DeleteRanges, Step::Settle] {
            db.step(step).expect("the machine runs");
        }
        check("committed");
        drop(snapshots);
        let rebuild_index = chance(0.5);
        let machine = machine.process_death();
        let (_db, table) = machine.open_with(Options { rebuild_index, ..options });
        let found = table.get(b"key").expect("the machine runs");
        assert_eq!(found, wanted, "after a death, with an index that was made again: {rebuild_index}");
    });
}

/// A table is emptied while a batch merges into a key of it that is put and merged into anew. What is looked up in one generation of the table is
/// not written over what came to the other.
#[test]
fn interleavings_of_batches_that_are_applied_and_truncates() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(21, kind);
        let (db, table) = machine.open();
        table.put_with(b"key", b"0", Durability::None).expect("the machine runs");
        let batches = thread::spawn({
            let (db, table) = (db.clone(), table.clone());
            move || {
                for operand in [b"x", b"y"] {
                    let mut batch = Batch::new();
                    batch.merge(&table, b"key", operand).expect("it is short");
                    db.write_with(&batch, Durability::None).expect("the machine runs");
                }
            }
        });
        db.truncate_table("t").expect("the machine runs");
        table.put_with(b"key", b"1", Durability::None).expect("the machine runs");
        table.merge_with(b"key", b"m", Durability::None).expect("the machine runs");
        batches.join().expect("no thread panics");
        let found = table.get(b"key").expect("the machine runs").expect("it was put after all was deleted");
        assert!(found[0] == b'1' && found.iter().filter(|operand| **operand == b'm').count() == 1, "{found:?}");
        check_key((&db, &table), (machine, options()), Some(&found));
    });
}
