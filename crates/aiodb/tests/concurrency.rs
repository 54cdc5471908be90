//! Many threads on one store: what a get returns was written, and never goes back in time.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use aiodb::merge::{Add, Append};
use aiodb::{Db, Durability, IndexKind, MergeOperators, Options, Step, Table, TableOptions};
use fastrand::Rng;
use support::{KINDS, ORDERED, damage, open, scratch, small};

const THREADS: u64 = 8;
const OPERATIONS: u64 = 1500;

/// A value that says what it is: which version of which key; the rest follows from that.
fn versioned(key: u64, version: u64) -> Vec<u8> {
    let length = match version % 40 {
        0 => 300_000,
        1..6 => 2000 + version as usize % 3000,
        _ => 40 + version as usize % 100,
    };
    let mut bytes = support::value(key << 32 | version, length);
    bytes[8..16].copy_from_slice(&version.to_le_bytes());
    bytes
}

/// The version that a value says it is, checked in full.
fn version(key: u64, found: &[u8]) -> u64 {
    let version = u64::from_le_bytes(found[8..16].try_into().expect("a value has at least 16 bytes"));
    assert!(
        found == versioned(key, version),
        "key {key}: what was read as version {version} is what was written as it"
    );
    version
}

fn durability(rng: &mut Rng) -> Durability {
    match rng.u8(..50) {
        0 => Durability::Sync,
        1..10 => Durability::Interval(std::time::Duration::from_millis(20)),
        _ => Durability::None,
    }
}

/// Each thread alone writes its keys, so it knows exactly what they hold.
fn own_keys(table: &Table, thread: u64, seed: u64) {
    const KEYS: u64 = 50;
    let mut rng = Rng::with_seed(seed);
    let mut held = [None; KEYS as usize];
    for number in 1..=OPERATIONS {
        let own = rng.u64(..KEYS);
        let key = thread << 16 | own;
        let known = &mut held[own as usize];
        match rng.u8(..10) {
            0..4 => {
                let durability = durability(&mut rng);
                table.put_with(&key.to_be_bytes(), &versioned(key, number), durability).expect("a put works");
                *known = Some(number);
            }
            4 => {
                table.delete_with(&key.to_be_bytes(), durability(&mut rng)).expect("a delete works");
                *known = None;
            }
            _ => {
                let found = table.get(&key.to_be_bytes()).expect("the key can be read");
                let found = found.map(|found| version(key, &found));
                assert_eq!(
                    found, *known,
                    "seed {seed}: only this thread writes key {key}, and it wrote this version last"
                );
            }
        }
    }
}

/// Keys that one thread writes in rising versions, never deletes, and all threads read.
struct Shared {
    /// The last version whose put was begun, and the last that was acknowledged.
    begun: Vec<AtomicU64>,
    acknowledged: Vec<AtomicU64>,
}

/// Storms until records are moved in one.
const MOST_STORMS: usize = 20;

const SHARED_KEYS: u64 = 16;

impl Shared {
    fn write(&self, table: &Table, seed: u64, done: &AtomicBool) {
        let mut rng = Rng::with_seed(seed);
        for number in 1..=OPERATIONS * 4 {
            let key = number % SHARED_KEYS;
            self.begun[key as usize].store(number, Ordering::SeqCst);
            table.put_with(&key.to_be_bytes(), &versioned(key, number), durability(&mut rng)).expect("a put works");
            self.acknowledged[key as usize].store(number, Ordering::SeqCst);
        }
        done.store(true, Ordering::SeqCst);
    }

    /// Reads until the writer is done; half of the readers have many gets in flight.
    fn read(&self, table: &Table, seed: u64, done: &AtomicBool) {
        let mut rng = Rng::with_seed(seed);
        let mut seen = [0; SHARED_KEYS as usize];
        while !done.load(Ordering::SeqCst) {
            let keys: Vec<u64> =
                (0..if seed.is_multiple_of(2) { 1 } else { 20 }).map(|_| rng.u64(..SHARED_KEYS)).collect();
            let acknowledged: Vec<_> =
                keys.iter().map(|&key| self.acknowledged[key as usize].load(Ordering::SeqCst)).collect();
            let names: Vec<_> = keys.iter().map(|key| key.to_be_bytes()).collect();
            let values = match &names[..] {
                [name] => vec![table.get(name).expect("the key can be read")],
                names => table.get_many(names).expect("the keys can be read"),
            };
            for ((&key, value), acknowledged) in keys.iter().zip(values).zip(acknowledged) {
                let version = value.map_or(0, |value| version(key, &value));
                let begun = self.begun[key as usize].load(Ordering::SeqCst);
                assert!(
                    (acknowledged..=begun).contains(&version),
                    "key {key} has version {version}, but {acknowledged} was acknowledged before the get and {begun} begun after it"
                );
                // The gets of one round may overtake each other; those of different rounds may not.
                assert!(
                    version >= seen[key as usize] || names.len() > 1,
                    "key {key} went back from {}",
                    seen[key as usize]
                );
                seen[key as usize] =
                    seen[key as usize].max(acknowledged).max(if names.len() == 1 { version } else { 0 });
            }
        }
    }
}

fn storm(db: &Db, table: &Table) {
    let shared = Shared {
        begun: (0..SHARED_KEYS).map(|_| AtomicU64::new(0)).collect(),
        acknowledged: (0..SHARED_KEYS).map(|_| AtomicU64::new(0)).collect(),
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 1..=THREADS / 2 {
            scope.spawn(move || own_keys(table, thread, thread * 77));
        }
        scope.spawn(|| shared.write(table, 5, &done));
        for reader in 0..THREADS / 2 - 1 {
            let (shared, done) = (&shared, &done);
            scope.spawn(move || shared.read(table, reader, done));
        }
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                db.checkpoint().expect("a checkpoint can be made");
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
    });
}

#[test]
fn gets_return_what_was_written_last() {
    for kind in KINDS {
        for hash_mask in [u64::MAX, !0 << 58] {
            if kind.is_ordered() && hash_mask != u64::MAX {
                continue;
            }
            // Reclaim moves records when it finds enough garbage in a segment that is not all garbage: often, not each time.
            let has_moved = (0..MOST_STORMS).any(|_| {
                let directory = scratch();
                let options = Options { hash_mask, ..small() };
                let (db, table) = open(directory.path(), kind, &options);
                storm(&db, &table);
                let stats = db.stats();
                assert_eq!(stats.trouble, None, "{}: background work went through", kind.name());
                assert!(damage(&db).is_empty(), "{}: a check finds no damage, but {:?}", kind.name(), damage(&db));
                stats.bytes_moved_by_reclaim > 0
            });
            assert!(has_moved, "{}: reads went on while records were moved", kind.name());
        }
    }
}

/// Operands are folded while others are on their way: which of two writers publishes first has nothing to do with the
/// order of their records in the log.
#[test]
fn no_operand_is_lost_to_a_fold() {
    const WRITERS: u64 = 4;
    const OPERANDS: u64 = 300;
    for kind in KINDS {
        let directory = scratch();
        let options = Options { merge_operators: MergeOperators::default().with(Append), ..small() };
        let db = Db::open(directory.path(), options).expect("the store can be opened");
        let append = TableOptions { merge: Some("append".into()), ..kind.into() };
        let table = db.create_table_with("t", append).expect("a table can be made");
        for round in 0..4_u64 {
            let key = round.to_be_bytes();
            std::thread::scope(|scope| {
                for _ in 0..WRITERS {
                    scope.spawn(|| {
                        for number in 0..OPERANDS {
                            table.merge_with(&key, b".", Durability::None).expect("a merge works");
                            table
                                .put_with(&(number | 1 << 32).to_be_bytes(), b"other", Durability::None)
                                .expect("a put works");
                        }
                    });
                }
            });
            let found = table.get(&key).expect("the key can be read").expect("the key is there");
            assert_eq!(found.len() as u64, WRITERS * OPERANDS, "{}, round {round}: an operand is missing", kind.name());
        }
    }
}

/// Counters that many threads count in, some of them durably, while segments are emptied: not one is counted twice or left out.
#[test]
fn hot_counters_add_up() {
    const WRITERS: u64 = 4;
    const COUNTS: u64 = 3000;
    const COUNTERS: u64 = 3;
    for kind in KINDS {
        let directory = scratch();
        let options = Options { merge_operators: MergeOperators::default().with(Add), ..small() };
        let db = Db::open(directory.path(), options).expect("the store can be opened");
        let add = TableOptions { merge: Some("add".into()), ..kind.into() };
        let table = db.create_table_with("t", add).expect("a table can be made");
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let table = &table;
                scope.spawn(move || {
                    for number in 0..COUNTS {
                        let class = if number % 500 == writer { Durability::Sync } else { Durability::None };
                        let key = (number % COUNTERS).to_be_bytes();
                        table.merge_with(&key, &1_i64.to_le_bytes(), class).expect("a merge works");
                    }
                });
            }
        });
        let counted = |table: &Table| -> Vec<i64> {
            let value = |key: u64| table.get(&key.to_be_bytes()).expect("it can be read").expect("it is there");
            (0..COUNTERS).map(|key| i64::from_le_bytes(value(key).try_into().expect("8 bytes"))).collect()
        };
        let wanted = [(WRITERS * COUNTS / COUNTERS) as i64; COUNTERS as usize];
        assert_eq!(counted(&table), wanted, "{}", kind.name());
        db.step(Step::Write).and_then(|()| db.step(Step::Settle)).expect("what is left is folded");
        assert_eq!(counted(&table), wanted, "{}: folded", kind.name());
        let copy = scratch();
        db.close().expect("the store closes");
        support::copy_tree(directory.path(), copy.path());
        let options = Options { merge_operators: MergeOperators::default().with(Add), ..small() };
        let db = Db::open(copy.path(), options).expect("the store can be opened");
        assert_eq!(counted(&db.table("t").expect("it is there")), wanted, "{}: opened again", kind.name());
    }
}

/// Operands that pile up are folded out of memory: the device is read for what they stand on, not for each of them.
#[test]
fn operands_are_folded_out_of_memory() {
    const MERGES: u64 = 4000;
    for kind in KINDS {
        for keys in [1, 20] {
            let directory = scratch();
            let options = Options { merge_operators: MergeOperators::default().with(Add), ..support::quiet() };
            let db = Db::open(directory.path(), options).expect("the store can be opened");
            let add = TableOptions { merge: Some("add".into()), ..kind.into() };
            let table = db.create_table_with("t", add).expect("a table can be made");
            for number in 0..MERGES {
                let key = (number % keys).to_be_bytes();
                table.merge_with(&key, &1_i64.to_le_bytes(), Durability::None).expect("a merge works");
            }
            let metrics = db.metrics();
            let (reads, folded) = (metrics.get_read_wait_ns.count(), metrics.folded_keys);
            // What memory has once it is folded takes the next operands as they come; in a `hash` table the first one is a put already.
            let least = match kind {
                IndexKind::Lmdb => MERGES / 128,
                IndexKind::Lsm => keys,
                IndexKind::Hash => 0,
            };
            assert!(folded >= least, "{}: {folded} folds for {keys} keys", kind.name());
            assert!(reads < MERGES / 4, "{}: {reads} reads of the device for {keys} keys", kind.name());
            let before = metrics.lookups;
            let value = table.get(&0_u64.to_be_bytes()).expect("it can be read").expect("it is there");
            assert_eq!(value, ((MERGES / keys) as i64).to_le_bytes(), "{}", kind.name());
            let after = db.metrics();
            assert_eq!(after.lookups - before, 1);
            assert!(after.get_read_wait_ns.count() - reads <= 130, "{}: a get reads all", kind.name());
        }
    }
}

/// A snapshot waits for the batch that is being written. Where no writer waits for that batch too, it must be woken all
/// the same.
#[test]
fn a_snapshot_is_given_while_unwaited_batches_are_written() {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);
    for kind in ORDERED {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        let (done, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let writing = AtomicBool::new(true);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for number in 0..3000_u64 {
                        let value = support::value(number, 20_000);
                        table.put_with(&(number % 100).to_be_bytes(), &value, Durability::None).expect("a put works");
                    }
                    writing.store(false, Ordering::Relaxed);
                });
                while writing.load(Ordering::Relaxed) {
                    db.snapshot().expect("a snapshot");
                }
            });
            done.send(()).expect("the test waits");
        });
        wait.recv_timeout(PATIENCE).expect("a snapshot was waited for in vain");
    }
}
