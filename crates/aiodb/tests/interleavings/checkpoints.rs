//! Checkpoints that are made while others write.

use aiodb::io::sim::SimDevice;
use aiodb::{Durability, IndexKind, Options, Step, Table};
use shuttle::thread;

use crate::machine::{Machine, options};
use crate::schedules::{LONG_RUN, RUN, in_many_orders};

/// Bits of a key's hash that choose the shard of a `hash` index.
const SHARD_BITS: u32 = 10;

/// A put comes to the index while a checkpoint writes it, too late for that one. The next one, for which nothing else has changed,
/// has it.
#[test]
fn interleavings_of_puts_and_checkpoints() {
    // Few orders have it: both threads must be stopped at the right place.
    in_many_orders(RUN, puts_beside_a_checkpoint);
    in_many_orders(LONG_RUN, puts_beside_a_checkpoint);
}

fn puts_beside_a_checkpoint(kind: IndexKind) {
    const PUTS: u8 = 3;
    let machine = Machine::new(12, kind);
    // All keys are in the shard that is written first.
    let one_shard = Options { hash_mask: u64::MAX >> SHARD_BITS, ..options() };
    let (db, table) = machine.open_with(one_shard.clone());
    table.put_with(b"first", b"value", Durability::None).expect("the machine runs");
    let putting = thread::spawn({
        let table = table.clone();
        move || {
            for key in 0..PUTS {
                table.put_with(&[key], b"value", Durability::None).expect("the machine runs");
            }
        }
    });
    db.step(Step::Checkpoint).expect("the machine runs");
    putting.join().expect("no thread panics");
    db.step(Step::Checkpoint).expect("the machine runs");
    let machine = machine.process_death();
    let (_db, table) = machine.open_with(one_shard);
    for key in 0..PUTS {
        let found = table.get(&[key]).expect("the machine runs");
        assert_eq!(found.as_deref(), Some(&b"value"[..]), "key {key}");
    }
}

/// Keys are overwritten while a checkpoint is made, which may have both places of one and not that they are to be looked at. The
/// next checkpoint has that, or the replay after the first one finds it out: each key is counted once.
#[test]
fn interleavings_of_overwrites_and_checkpoints() {
    in_many_orders(LONG_RUN, |kind| {
        const KEYS: u8 = 8;
        let machine = Machine::new(13, kind);
        let (db, table) = machine.open();
        let put_all = |table: &Table<SimDevice>, value: &[u8]| {
            for key in 0..KEYS {
                table.put_with(&[key], value, Durability::None).expect("the machine runs");
            }
        };
        put_all(&table, b"old");
        let putting = thread::spawn({
            let table = table.clone();
            move || put_all(&table, b"new")
        });
        db.step(Step::Checkpoint).expect("the machine runs");
        putting.join().expect("no thread panics");
        let machine = machine.process_death();
        let (db, table) = machine.open();
        for step in [Step::Settle, Step::Checkpoint] {
            db.step(step).expect("the machine runs");
        }
        for key in 0..KEYS {
            assert_eq!(table.get(&[key]).expect("the machine runs").as_deref(), Some(&b"new"[..]));
        }
        let stats = table.stats().expect("it is open");
        // Sorted runs count a key once for each run that has it.
        assert!(stats.keys == u64::from(KEYS) || !stats.keys_exact, "{} keys", stats.keys);
    });
}

/// Writers that find the memtable full wait for a commit of another thread to begin, or commit it. No wake-up is lost.
#[test]
fn interleavings_of_full_memtables() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(15, kind);
        let options = Options { memtable_keys: 2, ..options() };
        let (db, table) = machine.open_with(options.clone());
        let writers: Vec<_> = (0..3u8)
            .map(|writer| {
                let table = table.clone();
                thread::spawn(move || {
                    for number in 0..4 {
                        table.put_with(&[writer, number], &[number], Durability::None).expect("the machine runs");
                    }
                })
            })
            .collect();
        let committer = thread::spawn({
            let db = db.clone();
            move || (0..2).for_each(|_| db.step(Step::CommitAhead).expect("the machine runs"))
        });
        writers.into_iter().for_each(|writer| writer.join().expect("a writer does not panic"));
        committer.join().expect("the committer does not panic");
        for (writer, number) in (0..3u8).flat_map(|writer| (0..4).map(move |number| (writer, number))) {
            assert_eq!(table.get(&[writer, number]).expect("the machine runs"), Some(vec![number]));
        }
    });
}
