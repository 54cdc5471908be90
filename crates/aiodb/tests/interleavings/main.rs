//! The engine's threads in thousands of orders that `shuttle` chooses: group commit, publication, the hash index, pins,
//! reclaim. The code is the real one on a simulated machine; only locks and atomics are `shuttle`'s. A failure prints
//! the schedule. `make race` runs it; `AIODB_SCHEDULES=n` says how many orders of each kind.

mod budgets;
mod checkpoints;
mod folding;
mod machine;
mod modes;
mod runs;
mod schedules;
mod spills;
mod tables;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Durability, Options, Step, Table};
use shuttle::rand::Rng as _;
use shuttle::sync::Mutex;
use shuttle::thread;

use machine::{Machine, check_key, options, value, version, write_slowly};
use schedules::{LONG_RUN, RUN, cut_short_at_each_step, in_many_orders};

/// Writers of all classes commit together; each reads its own writes, and after a crash they are there.
#[test]
fn interleavings_of_group_commit() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(1, kind);
        let (db, table) = machine.open();
        let classes = [Durability::Sync, Durability::Sync, Durability::None];
        let writers: Vec<_> = classes
            .into_iter()
            .enumerate()
            .map(|(writer, class)| {
                let (db, table) = (db.clone(), table.clone());
                thread::spawn(move || {
                    for number in 0..3 {
                        let key = ((writer as u64) << 8) | (number % 2);
                        let wanted = value(key, number, 40 + 3000 * (number as usize % 2));
                        if number == 1 {
                            let mut batch = Batch::new();
                            batch.put(&table, &key.to_le_bytes(), &wanted).expect("it is short");
                            batch.delete(&table, b"other").expect("it is short");
                            db.write_with(&batch, class).expect("the machine runs");
                        } else {
                            table.put_with(&key.to_le_bytes(), &wanted, class).expect("the machine runs");
                        }
                        assert_eq!(table.get(&key.to_le_bytes()).expect("the machine runs"), Some(wanted));
                    }
                })
            })
            .collect();
        let flusher = thread::spawn({
            let db = db.clone();
            move || db.step(Step::Write).and_then(|()| db.sync()).expect("the machine runs")
        });
        writers.into_iter().for_each(|writer| writer.join().expect("a writer does not panic"));
        flusher.join().expect("the flusher does not panic");
        let power_cut = shuttle::rand::thread_rng().gen_bool(0.5);
        let (machine, classes) = if power_cut { (machine.power_cut(), 2) } else { (machine.process_death(), 3) };
        let (_db, table) = machine.open();
        for writer in 0..classes {
            for (key, last) in [(writer << 8, 2), (writer << 8 | 1, 1u64)] {
                let found = table.get(&u64::to_le_bytes(key)).expect("the machine runs").expect("it was acknowledged");
                assert_eq!(version(key, &found), last);
            }
        }
    });
}

/// Readers look on while values are replaced, segments are emptied and used again.
#[test]
fn interleavings_of_readers_and_reclaim() {
    in_many_orders(RUN, |kind| {
        // As many as fill a segment: a key lies at the same offset in each of them, and only the segment's life says whether
        // what is cached of it is of now.
        const KEYS: u64 = 3;
        const ROUNDS: u64 = 16;
        let machine = Machine::new(2, kind);
        let (db, table) = machine.open_with(Options { cache_bytes: 1 << 20, ..options() });
        let still = (100u64, value(100, 7, 6000));
        table.put(&still.0.to_le_bytes(), &still.1).expect("the machine runs");
        let latest = Arc::new(Mutex::new([0; KEYS as usize]));
        for key in 0..KEYS {
            table.put_with(&key.to_le_bytes(), &value(key, 0, 15_000), Durability::None).expect("the machine runs");
        }
        let reader = thread::spawn({
            let (table, latest, still) = (table.clone(), Arc::clone(&latest), still.clone());
            move || {
                // Not until the others are done: an order in which they wait for this loop would never end.
                for _ in 0..12 {
                    assert_eq!(table.get(&still.0.to_le_bytes()).expect("the machine runs").as_ref(), Some(&still.1));
                    for key in 0..KEYS {
                        let least = latest.lock().expect("nobody panics")[key as usize];
                        let found = table.get(&key.to_le_bytes()).expect("the machine runs").expect("it is there");
                        assert!(version(key, &found) >= least, "key {key} is older than it was");
                    }
                }
            }
        });
        let upkeep = thread::spawn({
            let db = db.clone();
            move || {
                for _ in 0..10 {
                    for step in [Step::Settle, Step::Reclaim, Step::Checkpoint, Step::Prepare] {
                        db.step(step).expect("the machine runs");
                    }
                }
            }
        });
        for round in 1..=ROUNDS {
            for key in 0..KEYS {
                let class = if key == 0 { Durability::Interval(Duration::from_millis(5)) } else { Durability::None };
                table.put_with(&key.to_le_bytes(), &value(key, round, 15_000), class).expect("the machine runs");
                latest.lock().expect("nobody panics")[key as usize] = round;
                let found = table.get(&key.to_le_bytes()).expect("the machine runs").expect("it was acknowledged");
                assert_eq!(version(key, &found), round, "nobody else writes");
            }
        }
        reader.join().expect("the reader does not panic");
        upkeep.join().expect("upkeep does not panic");
        let machine = machine.process_death();
        let (_db, table) = machine.open();
        for key in 0..KEYS {
            let found = table.get(&key.to_le_bytes()).expect("the machine runs").expect("it was acknowledged");
            assert_eq!(version(key, &found), ROUNDS);
        }
        assert_eq!(table.get(&still.0.to_le_bytes()).expect("the machine runs"), Some(still.1));
    });
}

/// A reader follows the index to a place while one thread moves what lies there, and lets the place's segment begin
/// another life, and a third one overwrites it.
#[test]
fn interleavings_of_reads_moves_and_reuse() {
    in_many_orders(LONG_RUN, |kind| {
        const SEGMENTS: u64 = 6;
        const READS: usize = 40;
        let machine = Machine::new(5, kind);
        let (db, table) = machine.open_with(Options { cache_bytes: 0, ..options() });
        let put = |table: &Table<SimDevice>, key: u64, version, length| {
            let value = value(key, version, length);
            table.put_with(&key.to_le_bytes(), &value, Durability::None).expect("the machine runs");
        };
        let get = |table: &Table<SimDevice>| {
            let found = table.get(&u64::to_le_bytes(0)).expect("the machine runs").expect("it is there");
            version(0, &found)
        };
        // A value that stays in each segment, among others that do not: more than upkeep leaves alone.
        for segment in 0..SEGMENTS {
            put(&table, segment, 1, 6000);
            (0..3).for_each(|round| put(&table, SEGMENTS, round, 15_000));
        }
        put(&table, SEGMENTS, 3, 15_000);
        db.step(Step::Write).and_then(|()| db.step(Step::Settle)).expect("the machine runs");
        let reader = thread::spawn({
            let table = table.clone();
            move || {
                let mut newest = 1;
                for _ in 0..READS {
                    let found = get(&table);
                    assert!(found >= newest, "a value came back");
                    newest = found;
                }
            }
        });
        let writer = thread::spawn({
            let (db, table) = (db.clone(), table.clone());
            move || {
                put(&table, 0, 2, 6000);
                db.step(Step::Settle).expect("the machine runs");
            }
        });
        for step in [Step::Reclaim, Step::Reclaim, Step::Checkpoint, Step::Prepare] {
            db.step(step).expect("the machine runs");
        }
        (4..12).for_each(|round| put(&table, SEGMENTS, round, 15_000));
        db.step(Step::Write).expect("the machine runs");
        [reader, writer].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        assert_eq!(get(&table), 2);
    });
}

/// A process dies while a batch of moves is on its way to the log and others append after it. What they were told is there,
/// and what they wrote over is not.
#[test]
fn interleavings_of_moves_and_deaths() {
    cut_short_at_each_step(|kind| {
        const SEGMENTS: u64 = 6;
        let machine = Machine::new(6, kind);
        let (db, table) = machine.open_with(Options { cache_bytes: 0, ..options() });
        let put = |key: u64, version, length| {
            let value = value(key, version, length);
            table.put_with(&key.to_le_bytes(), &value, Durability::None).expect("the machine runs");
        };
        // A value that stays in each segment, among others that do not: more than upkeep leaves alone.
        for segment in 0..SEGMENTS {
            put(segment, 1, 6000);
            (0..3).for_each(|round| put(SEGMENTS, round, 15_000));
        }
        put(SEGMENTS, 3, 15_000);
        // What is alive of a segment is gathered; moving it is the next step.
        for step in [Step::Write, Step::Settle, Step::Reclaim] {
            db.step(step).expect("the machine runs");
        }
        let upkeep = thread::spawn({
            let db = db.clone();
            // The process dies under it.
            move || drop(db.step(Step::Reclaim))
        });
        thread::yield_now();
        put(0, 2, 6000);
        table.delete_with(&u64::to_le_bytes(1), Durability::None).expect("the machine runs");
        let machine = machine.process_death();
        upkeep.join().expect("upkeep does not panic");
        let (_db, table) = machine.open();
        let get = |key: u64| table.get(&key.to_le_bytes()).expect("the machine runs");
        for (key, last) in [(0, 2), (2, 1), (3, 1), (4, 1), (5, 1), (SEGMENTS, 3)] {
            assert_eq!(version(key, &get(key).expect("it was acknowledged")), last);
        }
        assert_eq!(get(1), None);
    });
}

/// One thread puts a key while another deletes it. The log says which came last; a delete that came last may be published
/// first, and may leave the index only when the put it stands before has come there.
#[test]
fn interleavings_of_puts_deletes_and_settling() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(4, kind);
        // All keys share a tag. Where it has many, a writer to it settles it; where it has few, the third thread does.
        let one_tag = Options { hash_mask: 0, ..options() };
        let (db, table) = machine.open_with(one_tag.clone());
        let others = if shuttle::rand::thread_rng().gen_bool(0.5) { 8 } else { 1_u64 };
        for number in 0..others {
            table.put_with(&number.to_be_bytes(), b"other", Durability::None).expect("the machine runs");
        }
        db.step(Step::Write).expect("the machine runs");
        let putting = write_slowly(&db, &table, |batch, table| batch.put(table, b"key", b"value").map(drop));
        let deleting = thread::spawn({
            let table = table.clone();
            move || table.delete_with(b"key", Durability::None).expect("the machine runs")
        });
        let settling = thread::spawn({
            let db = db.clone();
            move || (0..3).for_each(|_| db.step(Step::Settle).expect("the machine runs"))
        });
        let [put, deleted] = [putting, deleting].map(|thread| thread.join().expect("no thread panics"));
        settling.join().expect("no thread panics");
        check_key((&db, &table), (machine, one_tag), (put > deleted).then_some(b"value"));
    });
}
