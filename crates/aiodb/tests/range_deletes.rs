//! Range deletes that wait to be carried out: more of them than may.

mod support;

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use aiodb::{Batch, Durability, Options, ScanOptions, Step};
use support::{ORDERED, open, quiet, scratch};

/// One range delete that is left to a merge, since it has deleted little of a run, and then one after the other: more than may
/// wait at a time.
#[test]
fn range_deletes_go_on_behind_one_that_is_left_to_a_merge() {
    const KEYS: u32 = 20_000;
    const RANGES: u32 = 1_100;
    let key = |number: u32| number.to_be_bytes();
    for kind in ORDERED {
        for in_one_batch in [false, true] {
            let directory = scratch();
            let (db, table) = open(directory.path(), kind, &quiet());
            for number in 0..KEYS {
                table.put_with(&key(number), b"value", Durability::None).expect("a put works");
            }
            db.checkpoint().expect("a checkpoint works");
            let delete = |number: u32| table.delete_range_with(&key(number), &key(number + 1), Durability::None);
            delete(0).expect("a range delete works");
            db.checkpoint().expect("a checkpoint works");
            let (told, done) = mpsc::channel();
            let (db, table) = (Arc::new(db), Arc::new(table));
            thread::spawn({
                let (db, table) = (Arc::clone(&db), Arc::clone(&table));
                move || {
                    let mut batch = Batch::new();
                    for number in (2..2 * RANGES).step_by(2) {
                        let (start, end) = (number.to_be_bytes(), (number + 1).to_be_bytes());
                        if in_one_batch {
                            batch.delete_range(&table, &start, &end).expect("it is short");
                        } else {
                            table.delete_range_with(&start, &end, Durability::None).expect("a range delete works");
                        }
                    }
                    db.write_with(&batch, Durability::None).expect("the batch is written");
                    told.send(()).expect("the test waits");
                }
            });
            let ended = done.recv_timeout(Duration::from_secs(60));
            ended.unwrap_or_else(|_| panic!("{}: a range delete waits for ever", kind.name()));
            for number in 0..KEYS {
                let gone = number % 2 == 0 && number < 2 * RANGES;
                assert_eq!(table.get(&key(number)).expect("a get works").is_none(), gone, "{number}, {}", kind.name());
            }
        }
    }
}

/// More range deletes than may wait for the background at a time, in one batch, and another such batch behind it.
#[test]
fn a_batch_takes_any_number_of_range_deletes() {
    const RANGES: u32 = 1500;
    for kind in ORDERED {
        for background in [false, true] {
            let directory = scratch();
            let options = Options { background, ..quiet() };
            let (db, table) = open(directory.path(), kind, &options);
            let key = |number: u32| number.to_be_bytes();
            for round in 0..2 {
                let mut puts = Batch::new();
                for number in 0..2 * RANGES {
                    puts.put(&table, &key(number), b"value").expect("it is short");
                }
                db.write_with(&puts, Durability::None).expect("the batch is written");
                let mut batch = Batch::new();
                // Every other key is spared.
                for number in (0..2 * RANGES).step_by(2) {
                    batch.delete_range(&table, &key(number), &key(number + 1)).expect("it is short");
                }
                db.write_with(&batch, Durability::None).expect("the batch is written");
                assert_eq!(table.get(&key(6)).expect("a get works"), None, "round {round}");
                assert!(table.get(&key(7)).expect("a get works").is_some(), "round {round}");
            }
            let count = || {
                let mut scan = table.scan(ScanOptions::all()).expect("a scan begins");
                std::iter::from_fn(|| scan.next_record().expect("a scan goes on").map(drop)).count()
            };
            assert_eq!(count(), RANGES as usize);
            while db.stats().waiting_range_deletes > 0 {
                db.step(Step::DeleteRanges).expect("ranges are carried out");
            }
            assert_eq!(count(), RANGES as usize);
            db.close().expect("it closes");
        }
    }
}
