//! What was deleted stays deleted when an index is made again from the log, whatever reclaim has taken out of that: random
//! writes and upkeep, and now and then a copy of the store that has lost its indexes.

mod support;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;

use aiodb::io::sim::SimDevice;
use aiodb::io::{Access, Device, File, WriteSync};
use aiodb::merge::Append;
use aiodb::{
    Batch, Db, Durability, Error, IndexKind, MergeOperators, Options, Step, Table, TableOptions, WriteOptions,
};
use fastrand::Rng;
use support::scratch;

/// Sequences for each kind of table, unless `AIODB_REBUILT_SEED` names one.
const SEEDS: u64 = 6;
const ROUNDS: usize = 50;

/// Keys that are overwritten with large values: what lies beside them is moved again and again.
const FILLERS: u64 = 3;

/// A key's put with the time at which it expires, and its operands since.
type Pile = (Option<(Vec<u8>, u64)>, Vec<u8>);

struct Run {
    what: String,
    rng: Rng,
    kind: IndexKind,
    device: SimDevice,
    directory: tempfile::TempDir,
    options: Options,
    piles: BTreeMap<u64, Pile>,
    keys: u64,
    done: Vec<String>,
}

fn key(number: u64) -> Vec<u8> {
    format!("key {number:06}").into_bytes()
}

impl Run {
    fn new(kind: IndexKind, seed: u64) -> Run {
        let rng = Rng::with_seed(seed);
        let options = Options {
            background: false,
            segment_bytes: 64 << 10,
            merge_operators: MergeOperators::default().with(Append),
            hash_mask: if seed.is_multiple_of(4) { 7 << 40 } else { u64::MAX },
            // In half of the runs most keys of a `hash` table come to files.
            hash_bytes: (seed % 2 == 1).then_some(4000),
            ..Options::default()
        };
        let (device, directory) = (SimDevice::new(seed), scratch());
        device.create_dir(directory.path()).expect("a directory can be made");
        let what = format!("{} seed {seed}", kind.name());
        Run { what, rng, kind, device, directory, options, piles: BTreeMap::new(), keys: FILLERS, done: Vec::new() }
    }

    fn open(&self) -> (Db<SimDevice>, Table<SimDevice>) {
        let db = Db::open_on(self.device.clone(), self.directory.path(), self.options.clone());
        let db = db.unwrap_or_else(|error| panic!("{}: opening: {error}", self.what));
        let table = db.table("t").unwrap_or_else(|_| {
            let options = TableOptions { merge: Some("append".into()), ..support::with_values(self.kind) };
            db.create_table_with("t", options).expect("the table can be made")
        });
        (db, table)
    }

    fn value(&mut self) -> Vec<u8> {
        let length = if self.rng.u8(..6) == 0 { self.rng.usize(1300..6000) } else { self.rng.usize(1..300) };
        vec![self.rng.u8(..); length]
    }

    /// Whether a write was done; a full disk may refuse it.
    fn is_done<T>(&self, outcome: aiodb::Result<T>) -> bool {
        match outcome {
            Ok(_) => true,
            Err(Error::DiskFull { .. }) => false,
            Err(error) => panic!("{}: {error}", self.what),
        }
    }

    fn put(&mut self, table: &Table<SimDevice>, number: u64) {
        let value = self.value();
        // Never, or so soon that it is over before anybody looks.
        let expires_ms = if self.rng.u8(..8) == 0 { self.device.wall_ms() + 1 } else { u64::MAX };
        let expires = NonZeroU64::new(expires_ms).filter(|_| expires_ms < u64::MAX);
        let options = WriteOptions { expires_ms: expires, ..Durability::None.into() };
        if self.is_done(table.put_with(&key(number), &value, options)) {
            self.piles.insert(number, (Some((value, expires_ms)), Vec::new()));
        }
    }

    fn fill(&mut self, table: &Table<SimDevice>, count: usize) {
        for _ in 0..count {
            let number = self.rng.u64(..FILLERS);
            let value = vec![self.rng.u8(..); self.rng.usize(4000..15_000)];
            if self.is_done(table.put_with(&key(number), &value, Durability::None)) {
                self.piles.insert(number, (Some((value, u64::MAX)), Vec::new()));
            }
        }
    }

    fn delete_range(&mut self, table: &Table<SimDevice>) {
        let from = self.rng.u64(..self.keys);
        let to = from + self.rng.u64(1..40);
        if self.is_done(table.delete_range_with(&key(from), &key(to), Durability::None)) {
            self.piles.retain(|number, _| !(from..to).contains(number));
        }
    }

    fn steps(&mut self, db: &Db<SimDevice>, step: Step, count: usize) {
        for _ in 0..count {
            self.is_done(db.step(step));
        }
    }

    fn write(&mut self, db: &Db<SimDevice>, table: &Table<SimDevice>) {
        let number = self.rng.u64(..self.keys);
        match self.rng.u8(..12) {
            0..4 => self.put(table, number),
            4..8 => {
                if self.is_done(table.delete_with(&key(number), Durability::None)) {
                    self.piles.remove(&number);
                }
            }
            8..10 => {
                let operand = vec![self.rng.u8(..); self.rng.usize(1..20)];
                if self.is_done(table.merge_with(&key(number), &operand, Durability::None)) {
                    self.piles.entry(number).or_default().1.extend_from_slice(&operand);
                }
            }
            10 if self.kind.is_ordered() => self.delete_range(table),
            _ => {
                let mut batch = Batch::new();
                batch.delete(table, &key(number)).expect("a delete");
                batch.merge(table, &key(number), b"+").expect("a merge");
                if self.is_done(db.write_with(&batch, Durability::None)) {
                    self.piles.insert(number, (None, b"+".to_vec()));
                }
            }
        }
    }

    /// One thing after the other until nothing is left to be taken back.
    fn settle_down(&mut self, db: &Db<SimDevice>) {
        for _ in 0..3 {
            self.steps(db, Step::Write, 1);
            self.steps(db, Step::Settle, 8);
            self.steps(db, Step::Spill, 4);
            self.steps(db, Step::DeleteRanges, 8);
            self.steps(db, Step::Reclaim, 200);
            self.steps(db, Step::Checkpoint, 1);
            self.steps(db, Step::Prepare, 1);
        }
    }

    fn act(&mut self, db: &Db<SimDevice>, table: &Table<SimDevice>) -> &'static str {
        match self.rng.u8(..24) {
            0..3 => {
                for _ in 0..self.rng.usize(20..200) {
                    self.put(table, self.keys);
                    self.keys += 1;
                }
                "new keys"
            }
            3..8 => {
                for _ in 0..self.rng.usize(1..60) {
                    self.write(db, table);
                }
                "writes"
            }
            8..11 => {
                let count = self.rng.usize(1..60);
                self.fill(table, count);
                "large values"
            }
            11..14 => {
                let count = self.rng.usize(1..300);
                self.steps(db, Step::Reclaim, count);
                "reclaim"
            }
            14 => {
                self.steps(db, Step::Checkpoint, 1);
                "a checkpoint"
            }
            15 => {
                self.steps(db, Step::DeleteRanges, 1);
                "a carried out range delete"
            }
            16 => {
                self.steps(db, Step::Settle, 1);
                self.steps(db, Step::Spill, 3);
                "settling"
            }
            17..20 => {
                self.settle_down(db);
                "settling down"
            }
            20 => {
                self.device.set_capacity(Some(0));
                self.fill(table, 12);
                self.settle_down(db);
                self.device.set_capacity(None);
                "a full disk"
            }
            21 => {
                // Much is deleted at once, with little else.
                let numbers: Vec<u64> = self.piles.keys().copied().collect();
                for number in numbers {
                    if self.rng.u8(..3) == 0 && self.is_done(table.delete_with(&key(number), Durability::None)) {
                        self.piles.remove(&number);
                    }
                }
                "deletes"
            }
            _ => {
                self.steps(db, Step::Write, 1);
                self.steps(db, Step::Prepare, 1);
                "a write of the open batch"
            }
        }
    }

    /// Copies the store as it is, but for its indexes, and compares what is made again with the model.
    fn check(&mut self) {
        self.device.advance_clock(1000);
        let (copy, index) = (copy_of(&self.device), scratch());
        copy.set_real_directory(index.path());
        let _ = copy.create_dir(&self.directory.path().join("index"));
        copy.advance_clock(self.device.clock_ms());
        // Often in many parts.
        let memtable_keys = [usize::MAX, 40, 12][self.done.len() % 3];
        let options = Options { rebuild_index: true, create: false, memtable_keys, ..self.options.clone() };
        let db = Db::open_on(copy, self.directory.path(), options);
        let db = db.unwrap_or_else(|error| panic!("{}: opening a copy: {error}", self.what));
        let table = db.table("t").expect("the table is there");
        self.compare(&table, "made again");
    }

    fn compare(&mut self, table: &Table<SimDevice>, when: &str) {
        self.device.advance_clock(1000);
        for number in 0..self.keys {
            let (put, operands) = self.piles.get(&number).cloned().unwrap_or_default();
            let base = put.filter(|(_, until)| *until == u64::MAX).map(|(value, _)| value);
            let is_there = base.is_some() || !operands.is_empty();
            let wanted = is_there.then(|| [base.unwrap_or_default(), operands].concat());
            let found = table.get(&key(number)).unwrap_or_else(|error| panic!("{}, {when}: {error}", self.what));
            let lengths = [&found, &wanted].map(|value| value.as_ref().map(Vec::len));
            assert!(found == wanted, "{}, {when}: key {number}: {lengths:?} bytes; {:?}", self.what, self.done);
        }
    }

    fn run(&mut self) {
        let (mut db, mut table) = self.open();
        for _ in 0..ROUNDS {
            let what = self.act(&db, &table);
            self.done.push(what.to_string());
            match self.rng.u8(..12) {
                0 => {
                    self.compare(&table, "as it is");
                    drop((db, table));
                    (db, table) = self.open();
                    self.done.push("reopened".into());
                }
                1 => {
                    self.device = self.device.process_death();
                    drop((db, table));
                    (db, table) = self.open();
                    self.done.push("killed".into());
                }
                2..6 => self.check(),
                _ => {}
            }
        }
        self.check();
        self.compare(&table, "at the end");
        let report = db.verify(&mut |_, _| {}).expect("a check");
        assert!(report.damage.is_empty(), "{}: {:?}", self.what, report.damage);
    }
}

/// Another machine with the same files, all of which are durable.
fn copy_of(device: &SimDevice) -> SimDevice {
    let copy = SimDevice::new(1);
    for path in device.file_names() {
        let parents: Vec<&Path> = path.ancestors().skip(1).collect();
        for parent in parents.into_iter().rev().skip(1) {
            let _ = copy.create_dir(parent);
        }
        let bytes = device.file_bytes(&path).expect("a file that is listed is there");
        let file = copy.open(&path, Access::CREATE).expect("a file can be made");
        if !bytes.is_empty() {
            file.write_at(&bytes, 0, WriteSync::Later).expect("a file can be written");
        }
        file.sync().expect("a file can be flushed");
        path.ancestors().skip(1).for_each(|parent| copy.sync_dir(parent).expect("a directory can be flushed"));
    }
    copy
}

fn run(kind: IndexKind) {
    let seed = std::env::var("AIODB_REBUILT_SEED").ok().map(|text| text.parse::<u64>().expect("a number"));
    let count = std::env::var("AIODB_REBUILT_SEEDS").ok().map_or(SEEDS, |text| text.parse::<u64>().expect("a number"));
    for seed in seed.map_or(0..count, |seed| seed..seed + 1) {
        Run::new(kind, seed).run();
    }
}

#[test]
fn what_was_deleted_in_an_ordered_table_does_not_come_back() {
    run(IndexKind::Lmdb);
}

#[test]
fn what_was_deleted_in_an_ordered_table_of_runs_does_not_come_back() {
    run(IndexKind::Lsm);
}

#[test]
fn what_was_deleted_in_an_unordered_table_does_not_come_back() {
    run(IndexKind::Hash);
}

/// The ordered index knows of deletes in its memtable alone when their segment is emptied: the index on disk has what they delete still, which
/// so counts as alive.
#[test]
fn deletes_stay_while_only_the_memtable_has_them() {
    // One of these fills the segment before that of the deletes.
    for others in (40..64).step_by(3) {
        delete_from_memtable(others);
    }
}

fn delete_from_memtable(others: u64) {
    let mut run = Run::new(IndexKind::Lmdb, others);
    let (db, table) = run.open();
    let mut numbers = FILLERS..FILLERS + 200;
    // Nothing but garbage, and segments that have none.
    overwrite(&mut run, &db, &table);
    put_all(&mut run, &table, numbers.clone());
    overwrite(&mut run, &db, &table);
    run.device.set_capacity(Some(0));
    while run.is_done(table.put_with(&key(0), &vec![30; 15_000], Durability::None)) {}
    for _ in 0..3 {
        run.steps(&db, Step::Reclaim, 200);
        run.steps(&db, Step::Checkpoint, 1);
        run.steps(&db, Step::Prepare, 1);
    }
    run.device.set_capacity(None);
    for _ in 0..3 {
        run.steps(&db, Step::Reclaim, 200);
        run.steps(&db, Step::Checkpoint, 1);
    }
    run.steps(&db, Step::Prepare, 1);
    put_all(&mut run, &table, numbers.end..numbers.end + others);
    run.steps(&db, Step::Write, 1);
    run.keys = numbers.end + others;
    for number in numbers.by_ref().skip(100).take(20) {
        table.delete_with(&key(number), Durability::None).expect("a delete");
        run.piles.remove(&number);
    }
    overwrite(&mut run, &db, &table);
    run.steps(&db, Step::Reclaim, 200);
    run.steps(&db, Step::Checkpoint, 1);
    run.steps(&db, Step::Prepare, 1);
    overwrite(&mut run, &db, &table);
    run.check();
}

/// Overwrites one key until there are segments that hold nothing else.
fn overwrite(run: &mut Run, db: &Db<SimDevice>, table: &Table<SimDevice>) {
    for byte in 0..30 {
        put_value(run, table, 0, vec![byte; 15_000]);
    }
    run.steps(db, Step::Write, 1);
}

fn put_all(run: &mut Run, table: &Table<SimDevice>, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| put_value(run, table, number, vec![1; 1000]));
}

fn put_value(run: &mut Run, table: &Table<SimDevice>, number: u64, value: Vec<u8>) {
    table.put_with(&key(number), &value, Durability::None).expect("a put");
    run.piles.insert(number, (Some((value, u64::MAX)), Vec::new()));
}

/// Keys of the memtables in which an index is made again below.
const FEW_KEYS: usize = 16;

/// A store on a machine, closed, whose ordered table has many more keys than that. Operands and deletes are among its records, some of
/// which were moved.
fn store_of_many_keys(kind: IndexKind) -> Run {
    let mut run = Run::new(kind, 3);
    let (db, table) = run.open();
    for number in FILLERS..FILLERS + 400 {
        put_value(&mut run, &table, number, vec![number as u8; 100]);
        if number.is_multiple_of(20) {
            run.steps(&db, Step::Write, 1);
            put_value(&mut run, &table, number % FILLERS, vec![number as u8; 15_000]);
        }
        if number.is_multiple_of(7) {
            table.delete_with(&key(number - 2), Durability::None).expect("a delete");
            run.piles.remove(&(number - 2));
        }
        if number.is_multiple_of(5) {
            table.merge_with(&key(number), b"more", Durability::None).expect("a merge");
            run.piles.entry(number).or_default().1.extend_from_slice(b"more");
        }
    }
    table.delete_range_with(&key(100), &key(110), Durability::None).expect("a range delete");
    run.piles.retain(|number, _| !(100..110).contains(number));
    run.keys = FILLERS + 400;
    run.settle_down(&db);
    assert!(db.stats().bytes_moved_by_reclaim > 0, "some records were moved");
    db.close().expect("the store can be closed");
    run.options.memtable_keys = FEW_KEYS;
    run
}

/// A machine with a copy of the store, and the directory of its LMDB file.
fn copy_without_index(run: &Run) -> (SimDevice, tempfile::TempDir) {
    let (copy, index) = (copy_of(&run.device), scratch());
    copy.set_real_directory(index.path());
    let _ = copy.create_dir(&run.directory.path().join("index"));
    copy.sync_dir(run.directory.path()).expect("a directory can be flushed");
    (copy, index)
}

#[test]
fn an_index_is_made_again_in_memtables_of_the_usual_size() {
    for kind in support::ORDERED {
        let mut run = store_of_many_keys(kind);
        let (copy, _index) = copy_without_index(&run);
        let options = Options { rebuild_index: true, ..run.options.clone() };
        let db = Db::open_on(copy, run.directory.path(), options).expect("the index can be made again");
        let metrics = db.metrics();
        let (commits, entries) = (metrics.memtable_commit_ns.count(), metrics.memtable_committed_entries);
        assert!(entries >= 300, "{}: all keys are committed: {entries}", run.what);
        // A batch of the log comes as a whole, and some that reclaim has written are long.
        assert!(commits >= 10, "{}: {entries} entries in {commits} commits", run.what);
        run.compare(&db.table("t").expect("the table is there"), "made again in parts");
        let report = db.verify(&mut |_, _| {}).expect("a check");
        assert!(report.damage.is_empty(), "{}: {:?}", run.what, report.damage);
    }
}

#[test]
fn an_index_that_is_half_made_again_is_begun_anew() {
    for kind in support::ORDERED {
        let mut run = store_of_many_keys(kind);
        let (mut calls, mut crashes) = (1, 0);
        loop {
            let (copy, _index) = copy_without_index(&run);
            copy.crash_after(calls);
            let rebuilding = Options { rebuild_index: true, ..run.options.clone() };
            let opened = Db::open_on(copy.clone(), run.directory.path(), rebuilding);
            if !copy.has_crashed() {
                opened.expect("without a crash the index is made again");
                break;
            }
            drop(opened);
            crashes += 1;
            let copy = if run.rng.bool() { copy.power_cut() } else { copy.process_death() };
            let db = Db::open_on(copy, run.directory.path(), run.options.clone());
            let db = db.unwrap_or_else(|error| panic!("{}: after a crash in call {calls}: {error}", run.what));
            run.compare(&db.table("t").expect("the table is there"), &format!("after a crash in call {calls}"));
            calls += run.rng.u64(1..5);
        }
        println!("{}: {crashes} crashes", run.what);
        assert!(crashes > 10, "{}: enough of them: {crashes}", run.what);
    }
}
