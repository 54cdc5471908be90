//! The engine's threads in thousands of orders that `shuttle` chooses: group commit, publication, the hash index, pins,
//! reclaim. The code is the real one on a simulated machine; only locks and atomics are `shuttle`'s. A failure prints
//! the schedule. `make race` runs it; `AIODB_SCHEDULES=n` says how many orders of each kind.

use std::path::{Path, PathBuf};
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
use tempfile::TempDir;

/// Every kind of index: what its threads do to each other is its own.
const KINDS: [IndexKind; 2] = [IndexKind::Hash, IndexKind::Lmdb];

const SCHEDULES: usize = 300;

/// Bytes of each thread's stack: opening a store takes more than `shuttle` gives by itself.
const STACK_BYTES: usize = 1 << 20;

/// Switches at chosen places, where there are few.
const SWITCHES: usize = 3;

/// Steps of a thread before the next comes: on average up to two to the power of this. A thread that does something long
/// between two steps of another needs more of them.
const RUN: u32 = 10;
const LONG_RUN: u32 = 13;

/// Runs `body` on every kind of index in many orders: with few switches here and there, at random after each step, with few at chosen places.
fn in_many_orders(run: u32, body: fn(IndexKind)) {
    let schedules = std::env::var("AIODB_SCHEDULES").map_or(SCHEDULES, |text| text.parse().expect("a number"));
    for kind in KINDS {
        let body = move || body(kind);
        let long_runs = LongRuns { left: schedules, run, steps: 1, random: Rng::with_seed(0) };
        Runner::new(long_runs, config()).run(body);
        Runner::new(RandomScheduler::new(schedules), config()).run(body);
        Runner::new(PctScheduler::new(SWITCHES, schedules), config()).run(body);
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config
}

/// Runs `body` on every kind of index with its second thread cut short after each number of its steps, by a first one that runs on from then
/// until it must wait. The second begins when the first yields.
fn cut_short_at_each_step(body: fn(IndexKind)) {
    for kind in KINDS {
        let scheduler = CutShort { after: 0, steps: 0, begun: false, random: Rng::with_seed(0) };
        Runner::new(scheduler, config()).run(move || body(kind));
    }
}

struct CutShort {
    /// Steps that the second thread has in this order.
    after: usize,
    /// Steps that it has had.
    steps: usize,
    begun: bool,
    random: Rng,
}

impl Scheduler for CutShort {
    fn new_execution(&mut self) -> Option<Schedule> {
        // It came to its end before it could be cut short.
        if self.steps < self.after {
            return None;
        }
        *self = CutShort { after: self.after + 1, steps: 0, begun: false, random: self.random.clone() };
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], _current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        self.begun |= is_yielding;
        let second = TaskId::from(1);
        let is_on = self.begun && self.steps < self.after && runnable.iter().any(|task| task.id() == second);
        self.steps += usize::from(is_on);
        let first = runnable.first().map(|task| task.id());
        if is_on { Some(second) } else { first }
    }

    fn next_u64(&mut self) -> u64 {
        self.random.u64(..)
    }
}

/// Lets a thread run for a while before another one comes: what must happen between two steps of one thread is often
/// all that another one does.
struct LongRuns {
    left: usize,
    /// See [`RUN`].
    run: u32,
    /// Of a thread before the next comes, on average.
    steps: u32,
    random: Rng,
}

impl Scheduler for LongRuns {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.left = self.left.checked_sub(1)?;
        self.steps = 1 << self.random.u32(4..self.run);
        Some(Schedule::new(0))
    }

    fn next_task(&mut self, runnable: &[&Task], current: Option<TaskId>, is_yielding: bool) -> Option<TaskId> {
        let goes_on = current.filter(|current| runnable.iter().any(|task| task.id() == *current));
        goes_on
            .filter(|_| !is_yielding && self.random.u32(..self.steps) > 0)
            .or_else(|| self.random.choice(runnable).map(|task| task.id()))
    }

    fn next_u64(&mut self) -> u64 {
        self.random.u64(..)
    }
}

fn options() -> Options {
    Options {
        segment_bytes: 64 << 10,
        cache_bytes: 128 << 10,
        merge_operators: MergeOperators::default().with(Append),
        background: false,
        ..Options::default()
    }
}

/// A simulated machine with a real directory for the file that LMDB maps.
struct Machine {
    device: SimDevice,
    kind: IndexKind,
    root: TempDir,
    processes: u32,
}

impl Machine {
    fn new(seed: u64, kind: IndexKind) -> Machine {
        // In memory where there is such a file system: no test here cuts the power of a real disk.
        let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let root = root.expect("a directory for the test can be made");
        let machine = Machine { device: SimDevice::new(seed), kind, root, processes: 0 };
        machine.device.set_real_directory(machine.directory());
        machine
    }

    fn open(&self) -> (Db<SimDevice>, Table<SimDevice>) {
        self.open_with(options())
    }

    fn open_with(&self, options: Options) -> (Db<SimDevice>, Table<SimDevice>) {
        self.device.create_dir(Path::new("/store")).expect("the machine runs");
        let db = Db::open_on(self.device.clone(), "/store", options).expect("the store can be opened");
        let options = TableOptions { merge: Some("append".into()), ..self.kind.into() };
        let table =
            db.table("t").or_else(|_| db.create_table_with("t", options)).expect("the table is there or can be made");
        (db, table)
    }

    fn process_death(self) -> Machine {
        let device = self.device.process_death();
        self.next_process(device)
    }

    /// LMDB's file keeps what was committed: a commit is durable when it returns.
    fn power_cut(self) -> Machine {
        let device = self.device.power_cut();
        self.next_process(device)
    }

    /// The dead process has the file mapped still: the next one finds a copy.
    fn next_process(self, device: SimDevice) -> Machine {
        let before = self.directory();
        let machine = Machine { device, processes: self.processes + 1, ..self };
        let file = |directory: &Path| directory.join(Path::new("store/index/lmdb/data.mdb"));
        if file(&before).exists() {
            let to = file(&machine.directory());
            std::fs::create_dir_all(to.parent().expect("it lies in a directory")).expect("directories can be made");
            std::fs::copy(file(&before), to).expect("LMDB's file can be copied");
        }
        machine.device.set_real_directory(machine.directory());
        machine
    }

    fn directory(&self) -> PathBuf {
        self.root.path().join(self.processes.to_string())
    }
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

/// One thread puts a key while another deletes it. The log says which came last; a delete that came last may be published
/// first, and may leave the index only when the put it stands before has come there.
#[test]
fn interleavings_of_puts_deletes_and_settling() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(4, kind);
        // All keys share a tag. Where it has many, whoever writes to it settles it; where it has few, the third thread does.
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

/// A thread that writes a batch which takes a while from the log to the index, with this at its end, and then writes what
/// is open to the log.
fn write_slowly(
    db: &Db<SimDevice>,
    table: &Table<SimDevice>,
    last: fn(&mut Batch<SimDevice>, &Table<SimDevice>) -> aiodb::Result<()>,
) -> thread::JoinHandle<Sequence> {
    let (db, table) = (db.clone(), table.clone());
    thread::spawn(move || {
        let mut batch = Batch::new();
        for number in 0..4_u64 {
            batch.put(&table, &number.to_le_bytes(), b"other").expect("it is short");
        }
        last(&mut batch, &table).expect("it is short");
        let sequence = db.write_with(&batch, Durability::None).expect("the machine runs");
        db.step(Step::Write).expect("the machine runs");
        sequence
    })
}

/// What the key holds, before and after everything is settled, and after the death of the process.
fn check_key(
    (db, table): (&Db<SimDevice>, &Table<SimDevice>),
    (machine, options): (Machine, Options),
    wanted: Option<&[u8]>,
) {
    let found = |table: &Table<SimDevice>| table.get(b"key").expect("the machine runs");
    assert_eq!(found(table).as_deref(), wanted);
    db.step(Step::Settle).expect("the machine runs");
    assert_eq!(found(table).as_deref(), wanted);
    let machine = machine.process_death();
    let (_db, table) = machine.open_with(options);
    assert_eq!(found(&table).as_deref(), wanted);
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
