//! Superseded records come to files while others are superseded, and snapshots begin, read and end.

use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Db, Durability, Options, Step, Table};
use shuttle::thread;

use crate::machine::{Machine, options, value, version};
use crate::schedules::{RUN, in_many_orders};

const KEYS: u64 = 6;

/// One batch for all keys: no reader sees a part of it.
fn overwrite(db: &Db<SimDevice>, table: &Table<SimDevice>, round: u64) {
    let mut batch = Batch::new();
    for key in 0..KEYS {
        batch.put(table, &key.to_le_bytes(), &value(key, round, 30)).expect("it is short");
    }
    db.write_with(&batch, Durability::None).expect("the machine runs");
}

/// Each snapshot sees all keys as of one moment, and the same again later.
#[test]
fn interleavings_of_snapshots_and_spills() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(9, kind);
        let (db, table) = machine.open_with(Options { versions_in_memory: 3, memtable_keys: 8, ..options() });
        overwrite(&db, &table, 0);
        let writer = thread::spawn({
            let (db, table) = (db.clone(), table.clone());
            move || (1..=5).for_each(|round| overwrite(&db, &table, round))
        });
        let upkeep = thread::spawn({
            let db = db.clone();
            move || {
                for _ in 0..5 {
                    for step in [Step::Spill, Step::Settle, Step::CommitAhead, Step::Spill, Step::Merge] {
                        db.step(step).expect("the machine runs");
                    }
                }
            }
        });
        let mut held = Vec::new();
        for round in 0..4 {
            let snapshot = db.snapshot().expect("the machine runs");
            held.push((snapshot, None));
            for (snapshot, seen) in &mut held {
                for key in 0..KEYS {
                    let found =
                        snapshot.get(&table, &key.to_le_bytes()).expect("the machine runs").expect("it is there");
                    let found = version(key, &found);
                    assert_eq!(found, *seen.get_or_insert(found), "key {key}: all keys are of one moment");
                }
            }
            if round % 2 == 1 {
                held.remove(0);
            }
        }
        [writer, upkeep].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        for (snapshot, seen) in &held {
            for key in 0..KEYS {
                let found = snapshot.get(&table, &key.to_le_bytes()).expect("the machine runs").expect("it is there");
                assert_eq!(Some(version(key, &found)), *seen, "key {key}: as before");
            }
        }
    });
}
