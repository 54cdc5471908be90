//! Keys of `hash` tables come to runs, and back to memory, while others write, read and move them.

use std::sync::Arc;

use aiodb::io::sim::SimDevice;
use aiodb::{Db, Durability, Options, Step, Table};
use shuttle::rand::Rng as _;
use shuttle::sync::Mutex;
use shuttle::thread;

use crate::machine::{Machine, options, value};
use crate::schedules::{LONG_RUN, RUN, in_many_orders};

const KEYS: u64 = 5;

/// Nothing of a `hash` table needs to stay in memory.
fn without_memory() -> Options {
    Options { hash_bytes: Some(0), ..options() }
}

fn put_all(table: &Table<SimDevice>, round: u64) {
    for key in 0..KEYS {
        table.put_with(&key.to_le_bytes(), &value(key, round, 60), Durability::None).expect("the machine runs");
    }
}

fn steps(db: &Db<SimDevice>, steps: &[Step]) {
    steps.iter().for_each(|step| db.step(*step).expect("the machine runs"));
}

/// What was put, deleted and merged last is seen at once, later, and by the next process.
fn writes_beside_spills(machine: Machine, one_tag: bool, spill_step_tags: usize) {
    let options = Options { hash_mask: if one_tag { 0 } else { u64::MAX }, spill_step_tags, ..without_memory() };
    let (db, table) = machine.open_with(options.clone());
    put_all(&table, 0);
    steps(&db, &[Step::Write, Step::Spill, Step::Spill]);
    let writer = thread::spawn({
        let table = table.clone();
        move || {
            for key in 0..KEYS {
                let name = key.to_le_bytes();
                let wanted = match key % 3 {
                    0 => {
                        table.put_with(&name, &value(key, 1, 60), Durability::None).expect("the machine runs");
                        Some(value(key, 1, 60))
                    }
                    1 => {
                        table.delete_with(&name, Durability::None).expect("the machine runs");
                        None
                    }
                    _ => {
                        table.merge_with(&name, b"+", Durability::None).expect("the machine runs");
                        Some([&value(key, 0, 60)[..], b"+"].concat())
                    }
                };
                assert_eq!(table.get(&name).expect("the machine runs"), wanted, "key {key}");
            }
        }
    });
    let upkeep = thread::spawn({
        let db = db.clone();
        move || {
            steps(&db, &[Step::Write, Step::Spill, Step::Settle, Step::Spill, Step::Spill, Step::Settle, Step::Spill]);
        }
    });
    let reader = thread::spawn({
        let table = table.clone();
        move || {
            for key in (0..KEYS).filter(|key| key % 3 != 1) {
                assert!(table.get(&key.to_le_bytes()).expect("the machine runs").is_some(), "key {key} is never away");
            }
        }
    });
    [writer, upkeep, reader].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    let check = |table: &Table<SimDevice>| {
        for key in 0..KEYS {
            let wanted = match key % 3 {
                0 => Some(value(key, 1, 60)),
                1 => None,
                _ => Some([&value(key, 0, 60)[..], b"+"].concat()),
            };
            assert_eq!(table.get(&key.to_le_bytes()).expect("the machine runs"), wanted, "key {key}");
        }
    };
    check(&table);
    let machine = machine.process_death();
    let (db, table) = machine.open_with(options);
    check(&table);
    steps(&db, &[Step::Write, Step::Settle, Step::Spill, Step::Spill, Step::Settle, Step::Spill]);
    check(&table);
    assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new());
}

#[test]
fn interleavings_of_writes_and_spills() {
    in_many_orders(RUN, |kind| writes_beside_spills(Machine::new(21, kind), false, usize::MAX));
    in_many_orders(LONG_RUN, |kind| writes_beside_spills(Machine::new(22, kind), true, usize::MAX));
    in_many_orders(RUN, |kind| writes_beside_spills(Machine::new(26, kind), false, 1));
}

/// A table is gone through while its first keys come to a run: none is left out.
#[test]
fn interleavings_of_scans_and_spills() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(27, kind);
        // All keys are in the first shard, to which both come at once.
        let (db, table) = machine.open_with(Options { hash_mask: 0, ..without_memory() });
        put_all(&table, 0);
        steps(&db, &[Step::Write]);
        // In some orders the run is written before, and no key has left memory.
        let begun = shuttle::rand::thread_rng().gen_range(0..2);
        (0..begun).for_each(|_| steps(&db, &[Step::Spill]));
        let spilling = thread::spawn({
            let db = db.clone();
            move || steps(&db, &[Step::Spill, Step::Spill])
        });
        let found: Vec<_> = table.iterate().and_then(Iterator::collect).expect("the machine runs");
        assert_eq!(found.len() as u64, KEYS, "each key once");
        spilling.join().expect("no thread panics");
    });
}

/// Segments are emptied, and so records moved, while their places come to runs; checkpoints are made meanwhile.
#[test]
fn interleavings_of_moves_and_spills() {
    in_many_orders(LONG_RUN, |kind| {
        let machine = Machine::new(23, kind);
        let (db, table) = machine.open_with(without_memory());
        put_all(&table, 0);
        // What is dead around them makes their segments worth it.
        for round in 0..8 {
            table.put_with(b"large", &value(9, round, 30_000), Durability::None).expect("the machine runs");
        }
        steps(&db, &[Step::Write, Step::Settle, Step::Checkpoint, Step::Spill]);
        let moving = thread::spawn({
            let db = db.clone();
            move || steps(&db, &[Step::Reclaim, Step::Reclaim, Step::Reclaim, Step::Reclaim, Step::Checkpoint])
        });
        let spilling = thread::spawn({
            let db = db.clone();
            move || steps(&db, &[Step::Spill, Step::Spill, Step::Settle, Step::Spill, Step::Spill, Step::Spill])
        });
        [moving, spilling].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        steps(&db, &[Step::Reclaim, Step::Reclaim, Step::Reclaim, Step::Prepare, Step::Checkpoint, Step::Prepare]);
        let check = |table: &Table<SimDevice>| {
            for key in 0..KEYS {
                let found = table.get(&key.to_le_bytes()).expect("the machine runs");
                assert_eq!(found, Some(value(key, 0, 60)), "key {key}");
            }
        };
        check(&table);
        let machine = machine.power_cut();
        let (_db, table) = machine.open_with(without_memory());
        check(&table);
    });
}

/// A checkpoint is made while keys come to a run in many steps, and others write. The process dies when it is made, wherever the spill is by then:
/// each key is in memory or in a run, once, as the checkpoint has it.
#[test]
fn interleavings_of_spills_and_checkpoints() {
    in_many_orders(LONG_RUN, |kind| {
        let machine = Machine::new(25, kind);
        let options = Options { spill_step_tags: 1, ..without_memory() };
        let (db, table) = machine.open_with(options.clone());
        put_all(&table, 0);
        steps(&db, &[Step::Write]);
        // In some orders a part of it is done before.
        let begun = shuttle::rand::thread_rng().gen_range(0..3 * KEYS);
        (0..begun).for_each(|_| steps(&db, &[Step::Spill]));
        let spilling = thread::spawn({
            let db = db.clone();
            // The process dies under it, and under the other.
            move || (0..3 * KEYS).for_each(|_| drop(db.step(Step::Spill)))
        });
        let acknowledged = Arc::new(Mutex::new(0));
        let writing = thread::spawn({
            let (table, acknowledged) = (table.clone(), Arc::clone(&acknowledged));
            move || {
                for key in 0..KEYS {
                    let name = key.to_le_bytes();
                    let outcome = match key % 2 {
                        0 => table.put_with(&name, &value(key, 1, 60), Durability::None),
                        _ => table.delete_with(&name, Durability::None),
                    };
                    *acknowledged.lock().expect("nobody panics") += u64::from(outcome.is_ok());
                }
            }
        });
        steps(&db, &[Step::Checkpoint]);
        let acknowledged = *acknowledged.lock().expect("nobody panics");
        let machine = machine.process_death();
        [spilling, writing].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        let (db, table) = machine.open_with(options);
        for key in 0..KEYS {
            let found = table.get(&key.to_le_bytes()).expect("the machine runs");
            let (before, after) = (Some(value(key, 0, 60)), (key % 2 == 0).then(|| value(key, 1, 60)));
            assert!(found == after || (key >= acknowledged && found == before), "key {key}: {found:?}");
        }
        assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new());
    });
}

/// A table goes while its shards give up places, some of whose tags have changed since they were written: neither the step nor a checkpoint
/// goes on for ever.
#[test]
fn interleavings_of_drops_and_spills() {
    in_many_orders(LONG_RUN, |kind| {
        let machine = Machine::new(24, kind);
        let (db, table) = machine.open_with(without_memory());
        // Each tag is written with two places, and has one when its shard is to give them up.
        put_all(&table, 0);
        put_all(&table, 1);
        steps(&db, &[Step::Write, Step::Spill, Step::Settle]);
        let spilling = thread::spawn({
            let db = db.clone();
            move || steps(&db, &[Step::Spill, Step::Spill, Step::Checkpoint])
        });
        let dropping = thread::spawn({
            let db = db.clone();
            move || db.drop_table(table.name()).expect("the machine runs")
        });
        [spilling, dropping].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        steps(&db, &[Step::Spill, Step::Checkpoint]);
    });
}
