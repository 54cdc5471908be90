//! The engine's threads in thousands of orders that `shuttle` chooses: group commit, publication, the hash index, pins,
//! reclaim. The code is the real one on a simulated machine; only locks and atomics are `shuttle`'s. A failure prints
//! the schedule. `make race` runs it; `AIODB_SCHEDULES=n` says how many orders of each kind.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::merge::Append;
use aiodb::{Batch, Db, Durability, IndexKind, MergeOperators, Options, Sequence, Step, Table, TableOptions};
use fastrand::Rng;
use shuttle::rand::Rng as _;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::sync::Mutex;
use shuttle::{Config, Runner, thread};

const SCHEDULES: usize = 300;

/// Bytes of each thread's stack: opening a store takes more than `shuttle` gives by itself.
const STACK_BYTES: usize = 1 << 20;

/// Switches at chosen places, where there are few.
const SWITCHES: usize = 3;

/// Runs `body` in many orders: with few switches here and there, at random after each step, with few at chosen places.
fn in_many_orders(body: fn()) {
    let schedules = std::env::var("AIODB_SCHEDULES").map_or(SCHEDULES, |text| text.parse().expect("a number"));
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(LongRuns { left: schedules, random: Rng::with_seed(0) }, config.clone()).run(body);
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(body);
    Runner::new(PctScheduler::new(SWITCHES, schedules), config).run(body);
}

/// Lets a thread run for a while before another one comes: what must happen between two steps of one thread is often
/// all that another one does.
struct LongRuns {
    left: usize,
    random: Rng,
}

/// Steps of a thread before the next comes, on average.
const RUN_STEPS: u32 = 24;

impl Scheduler for LongRuns {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.left = self.left.checked_sub(1)?;
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        let goes_on = current.filter(|current| runnable.iter().any(|task| task.id() == *current));
        goes_on
            .filter(|_| !is_yielding && self.random.u32(..RUN_STEPS) > 0)
            .or_else(|| self.random.choice(runnable).map(|task| task.id()))
    }

    fn next_u64(&mut self) -> u64 {
        self.random.u64(..)
    }
}

fn open(device: &SimDevice) -> (Db<SimDevice>, Table<SimDevice>) {
    device.create_dir(Path::new("/store")).expect("the machine runs");
    let options = Options {
        segment_bytes: 64 << 10,
        cache_bytes: 128 << 10,
        merge_operators: MergeOperators::default().with(Append),
        background: false,
        ..Options::default()
    };
    let db = Db::open_on(device.clone(), "/store", options).expect("the store can be opened");
    let options = TableOptions { merge: Some("append".into()), ..IndexKind::Hash.into() };
    let table =
        db.table("t").or_else(|_| db.create_table_with("t", options)).expect("the table is there or can be made");
    (db, table)
}

fn value(key: u64, version: u64, length: usize) -> Vec<u8> {
    let mut value = [key.to_le_bytes(), version.to_le_bytes()].concat();
    value.resize(length, version as u8);
    value
}

fn version(key: u64, found: &[u8]) -> u64 {
    let version = u64::from_le_bytes(found[8..16].try_into().expect("a value has a version"));
    assert!(found == value(key, version, found.len()), "key {key} has a mixture of values");
    version
}

/// Writers of all classes commit together; each reads its own writes, and after a crash they are there.
#[test]
fn interleavings_of_group_commit() {
    in_many_orders(|| {
        let device = SimDevice::new(1);
        let (db, table) = open(&device);
        let classes = [Durability::Sync, Durability::Sync, Durability::None];
        let writers: Vec<_> = classes
            .into_iter()
            .enumerate()
            .map(|(writer, class)| {
                let (db, table) = (db.clone(), table.clone());
                thread::spawn(move || {
                    for number in 0..3 {
                        let key = (writer as u64) << 8 | number % 2;
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
        let (device, classes) = if power_cut { (device.power_cut(), 2) } else { (device.process_death(), 3) };
        let (_db, table) = open(&device);
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
    in_many_orders(|| {
        const KEYS: u64 = 4;
        const ROUNDS: u64 = 12;
        let device = SimDevice::new(2);
        let (db, table) = open(&device);
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
            }
        }
        reader.join().expect("the reader does not panic");
        upkeep.join().expect("upkeep does not panic");
        let (_db, table) = open(&device.process_death());
        for key in 0..KEYS {
            let found = table.get(&key.to_le_bytes()).expect("the machine runs").expect("it was acknowledged");
            assert_eq!(version(key, &found), ROUNDS);
        }
        assert_eq!(table.get(&still.0.to_le_bytes()).expect("the machine runs"), Some(still.1));
    });
}

/// Two threads append operands to one key; a third folds them, a fourth writes them to the log. None may be lost.
#[test]
fn interleavings_of_operands_and_folding() {
    in_many_orders(|| {
        const OPERANDS: u8 = 8;
        let device = SimDevice::new(3);
        let (db, table) = open(&device);
        let merging: Vec<_> = [b'a', b'A']
            .into_iter()
            .map(|first| {
                let table = table.clone();
                thread::spawn(move || {
                    for operand in first..first + OPERANDS {
                        table.merge_with(b"key", &[operand], Durability::None).expect("the machine runs");
                    }
                })
            })
            .collect();
        let background = in_the_background(&db, 6);
        merging.into_iter().chain(background).for_each(|thread| thread.join().expect("no thread panics"));
        let check = |table: &Table<SimDevice>| {
            let found = table.get(b"key").expect("the machine runs").expect("operands make a value");
            for first in [b'a', b'A'] {
                let of_one: Vec<u8> = found.iter().copied().filter(|byte| byte & 0x20 == first & 0x20).collect();
                assert_eq!(of_one, Vec::from_iter(first..first + OPERANDS), "each once, in the order of its thread");
            }
        };
        check(&table);
        db.step(Step::Settle).expect("the machine runs");
        check(&table);
        check(&open(&device.process_death()).1);
    });
}

/// One thread puts a key while another deletes it; a third takes settled deletes out of the index. The log says which came
/// last, and what came before it never comes back.
#[test]
fn interleavings_of_puts_deletes_and_settling() {
    in_many_orders(|| {
        let device = SimDevice::new(4);
        let (db, table) = open(&device);
        let last = Arc::new(Mutex::new((Sequence::default(), None)));
        let writing: Vec<_> = [true, false]
            .into_iter()
            .map(|puts| {
                let (table, last) = (table.clone(), Arc::clone(&last));
                thread::spawn(move || {
                    for number in 0..4 {
                        let value = puts.then(|| value(0, number, 40));
                        let written = match &value {
                            Some(value) => table.put_with(b"key", value, Durability::None),
                            None => table.delete_with(b"key", Durability::None),
                        };
                        let written = (written.expect("the machine runs"), value);
                        let mut last = last.lock().expect("nobody panics");
                        if written.0 > last.0 {
                            *last = written;
                        }
                    }
                })
            })
            .collect();
        let background = in_the_background(&db, 6);
        writing.into_iter().chain(background).for_each(|thread| thread.join().expect("no thread panics"));
        let wanted = last.lock().expect("nobody panics").1.clone();
        let check = |table: &Table<SimDevice>| assert_eq!(table.get(b"key").expect("the machine runs"), wanted);
        check(&table);
        db.step(Step::Settle).expect("the machine runs");
        check(&table);
        check(&open(&device.process_death()).1);
    });
}

/// One thread settles, another writes the open batch to the log.
fn in_the_background(db: &Db<SimDevice>, rounds: usize) -> Vec<thread::JoinHandle<()>> {
    let working = [Step::Settle, Step::Write].into_iter().map(|step| {
        let db = db.clone();
        thread::spawn(move || (0..rounds).for_each(|_| db.step(step).expect("the machine runs")))
    });
    working.collect()
}
