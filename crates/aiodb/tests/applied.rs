//! Merges that are written as puts of what they make: when that is so, and that the value is always the same.

mod support;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::merge::{Append, MergeOperator};
use aiodb::{
    Batch, Condition, Db, Durability, Error, IndexKind, MergeOperators, Options, ScanOptions, Step, Table,
    TableOptions, WriteOptions,
};
use support::{assert_get, damage, quiet, scratch};
use tempfile::TempDir;

/// Bytes up to which a table that merges has values in its memtable, whatever lies in its runs.
const IN_MEMTABLE: usize = 64;

/// What the operator does when it is called.
const WORKS: u8 = 0;
const FAILS: u8 = 1;
const PANICS: u8 = 2;

/// [`Append`], which counts its calls, and fails or panics when it is told to.
#[derive(Clone, Default)]
struct Watched {
    calls: Arc<AtomicU64>,
    does: Arc<AtomicU8>,
}

impl Watched {
    fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    fn set(&self, does: u8) {
        self.does.store(does, Ordering::SeqCst);
    }
}

impl MergeOperator for Watched {
    fn name(&self) -> &str {
        "append"
    }

    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match self.does.load(Ordering::SeqCst) {
            FAILS => Err("it does not want to".to_owned()),
            PANICS => panic!("the operator has a bug"),
            _ => Append.merge(key, base, operands),
        }
    }
}

struct Store {
    directory: TempDir,
    db: Db,
    table: Table,
    operator: Watched,
}

fn options(operator: &Watched) -> Options {
    Options { merge_operators: MergeOperators::default().with(operator.clone()), ..quiet() }
}

impl Store {
    fn new(inline_bytes: usize) -> Store {
        let (directory, operator) = (scratch(), Watched::default());
        let db = Db::open(directory.path(), options(&operator)).expect("a store can be made");
        let options = TableOptions { merge: Some("append".into()), inline_bytes, ..IndexKind::Lsm.into() };
        let table = db.create_table_with("t", options).expect("a table can be made");
        Store { directory, db, table, operator }
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        self.table.put_with(key, value, Durability::None).expect("a put works");
    }

    fn merge(&self, key: &[u8], operand: &[u8]) {
        self.table.merge_with(key, operand, Durability::None).expect("a merge works");
    }

    fn step(&self, step: Step) {
        self.db.step(step).expect("a step works");
    }

    /// Whether a get of the key need not merge.
    fn is_put(&self, key: &[u8]) -> bool {
        let before = self.operator.calls();
        self.table.get(key).expect("a get works");
        self.operator.calls() == before
    }

    /// Opens the store again, without its last close.
    fn after_a_death(self) -> Store {
        let Store { directory, db, table, operator } = self;
        let copy = scratch();
        support::copy_tree(directory.path(), copy.path());
        drop((table, db));
        let db = Db::open(copy.path(), options(&operator)).expect("the copy can be opened");
        let table = db.table("t").expect("the table is there");
        Store { directory: copy, db, table, operator }
    }
}

#[test]
fn a_counter_is_one_put_whose_value_is_in_memory() {
    for class in [Durability::None, Durability::Interval(Duration::from_millis(1)), Durability::Sync] {
        let store = Store::new(0);
        let mut wanted = b"0".to_vec();
        store.put(b"key", &wanted);
        for number in 0..60 {
            store.table.merge_with(b"key", &[number], class).expect("a merge works");
            wanted.push(number);
            assert!(store.is_put(b"key"), "operand {number} in class {class:?}");
            assert_get(&store.table, b"key", Some(&wanted), "at once");
        }
        assert_eq!(store.db.metrics().folded_keys, 0, "nothing was left to fold");
        store.step(Step::Write);
        let store = store.after_a_death();
        assert_get(&store.table, b"key", Some(&wanted), "after a death");
        store.db.checkpoint().expect("a checkpoint can be made");
        let reads = store.db.metrics().get_read_wait_ns.count();
        assert_get(&store.table, b"key", Some(&wanted), "from a run");
        assert_eq!(store.db.metrics().get_read_wait_ns.count(), reads + 1, "runs have no values of this table");
        assert_eq!(
            damage(&store.db).len(),
            0,
            "runs have what the records have, and no value that the table has none of"
        );
    }
}

#[test]
fn a_key_that_was_deleted_is_put_too() {
    let store = Store::new(0);
    store.put(b"key", b"old");
    store.table.delete_with(b"key", Durability::None).expect("a delete works");
    store.merge(b"key", b"new");
    assert!(store.is_put(b"key"));
    assert_get(&store.table, b"key", Some(b"new"), "nothing comes back");
    store.put(b"key", b"old");
    store.table.delete_range_with(b"k", b"l", Durability::None).expect("a delete of a range works");
    store.merge(b"key", b"a");
    store.merge(b"key", b"b");
    assert_get(&store.table, b"key", Some(b"ab"), "over a range that was deleted");
}

#[test]
fn operands_are_left_where_the_value_is_not_at_hand() {
    let store = Store::new(0);
    let long = vec![b'x'; IN_MEMTABLE + 1];
    store.merge(b"unknown", b"1");
    store.put(b"long", &long);
    store.merge(b"long", b"1");
    let expires = WriteOptions { expires_ms: NonZeroU64::new(u64::MAX), ..Durability::None.into() };
    store.table.put_with(b"expiring", b"0", expires).expect("a put works");
    store.merge(b"expiring", b"1");
    store.put(b"grows", &long[1..]);
    store.merge(b"grows", b"1");
    store.put(b"committed", b"0");
    store.db.checkpoint().expect("a checkpoint can be made");
    for key in [&b"unknown"[..], b"long", b"expiring", b"grows", b"committed"] {
        store.merge(key, b"2");
        assert!(!store.is_put(key), "{}", support::name(key));
    }
    assert_get(&store.table, b"unknown", Some(b"12"), "operands alone");
    assert_get(&store.table, b"long", Some(&[&long[..], b"12"].concat()), "over a long value");
    assert_get(&store.table, b"expiring", Some(b"012"), "over a value that expires");
    assert_get(&store.table, b"grows", Some(&[&long[1..], b"12"].concat()), "a value that grows");
    assert_get(&store.table, b"committed", Some(b"02"), "over a value in a run");
}

/// A value that expires takes what was merged into it along only where the operands say so: they stay when it has.
#[test]
fn operands_outlive_what_expires() {
    let store = Store::new(100);
    let soon = NonZeroU64::new(1).expect("it is not 0");
    let expired = WriteOptions { expires_ms: Some(soon), ..Durability::None.into() };
    store.table.put_with(b"key", b"0", expired).expect("a put works");
    store.merge(b"key", b"1");
    assert_get(&store.table, b"key", Some(b"1"), "the operand stays");
}

#[test]
fn what_lies_in_runs_is_found_where_its_value_lies_there() {
    let store = Store::new(100);
    store.put(b"key", b"0");
    store.db.checkpoint().expect("a checkpoint can be made");
    // The block is in memory now.
    assert_get(&store.table, b"key", Some(b"0"), "from a run");
    for operand in b"1234567" {
        store.merge(b"key", &[*operand]);
        assert!(!store.is_put(b"key"), "few merges read nothing");
    }
    store.merge(b"key", b"8");
    assert!(store.is_put(b"key"), "eight are worth a look-up");
    assert_get(&store.table, b"key", Some(b"012345678"), "all count");
    store.db.checkpoint().expect("a checkpoint can be made");
    assert_get(&store.table, b"key", Some(b"012345678"), "from the next run");
    assert_eq!(damage(&store.db).len(), 0);
}

/// A put of a longer value is written when the operands have taken as many bytes in the log.
#[test]
fn a_longer_value_is_not_written_for_every_operand() {
    let store = Store::new(1024);
    let base = [b'x'; 500];
    store.put(b"key", &base);
    let mut puts = 0;
    for _ in 0..200 {
        store.merge(b"key", b"y");
        puts += u32::from(store.is_put(b"key"));
    }
    let wanted = [&base[..], &[b'y'; 200]].concat();
    assert_get(&store.table, b"key", Some(&wanted), "all count");
    assert!((4..40).contains(&puts), "{puts} puts for 200 operands");
}

#[test]
fn an_operator_that_fails_fails_gets_and_no_merge() {
    for does in [FAILS, PANICS] {
        let store = Store::new(0);
        store.put(b"key", b"0");
        store.operator.set(does);
        store.merge(b"key", b"1");
        let failed = matches!(store.table.get(b"key"), Err(Error::Merge { .. }));
        assert!(failed, "a get meets what the operator does");
        store.operator.set(WORKS);
        assert_get(&store.table, b"key", Some(b"01"), "the operand was kept");
        store.merge(b"key", b"2");
        assert!(store.is_put(b"key"));
        assert_get(&store.table, b"key", Some(b"012"), "no lock was poisoned");
    }
}

#[test]
fn snapshots_see_what_was_merged_before_them() {
    let store = Store::new(0);
    store.put(b"key", b"0");
    let mut snapshots = Vec::new();
    let mut wanted = b"0".to_vec();
    for number in 1..40u8 {
        snapshots.push((store.db.snapshot().expect("a snapshot works"), wanted.clone()));
        store.merge(b"key", &[number]);
        wanted.push(number);
    }
    let check = |when: &str| {
        for (snapshot, wanted) in &snapshots {
            let found = snapshot.get(&store.table, b"key").expect("a get works");
            assert_eq!(found.as_ref(), Some(wanted), "{when}");
            let scan = snapshot.scan(&store.table, ScanOptions::all()).expect("a scan");
            let found: Vec<_> = scan.map(|record| record.expect("a scan works").1).collect();
            assert_eq!(found, std::slice::from_ref(wanted), "{when}, by a scan");
        }
    };
    check("at once");
    for step in [Step::Write, Step::Settle, Step::Checkpoint, Step::Merge] {
        store.step(step);
        check("after a step");
    }
}

/// A condition that a merge comes before does not hold because the merge was a put.
#[test]
fn conditions_meet_the_value_of_merges() {
    let store = Store::new(0);
    store.put(b"key", b"0");
    store.merge(b"key", b"1");
    let mut batch = Batch::new();
    batch.require(&store.table, b"key", Condition::Equals(b"0")).expect("it is short");
    batch.put(&store.table, b"key", b"x").expect("it is short");
    assert!(matches!(store.db.write(&batch), Err(Error::ConditionFailed { .. })));
    let mut batch = Batch::new();
    batch.require(&store.table, b"key", Condition::Equals(b"01")).expect("it is short");
    batch.put(&store.table, b"key", b"x").expect("it is short");
    store.db.write(&batch).expect("the condition holds");
    assert_get(&store.table, b"key", Some(b"x"), "the put came last");
}

/// What each of several threads merges counts once, whoever comes between whose look-up and write.
#[test]
fn merges_of_several_threads_count_once() {
    const THREADS: usize = 4;
    const MERGES: usize = 5_000;
    for inline_bytes in [0, 64] {
        let (directory, operators) = (scratch(), MergeOperators::default().with(aiodb::merge::Add));
        let options = Options { merge_operators: operators, ..Options::default() };
        let db = Db::open(directory.path(), options).expect("a store can be made");
        let options = TableOptions { merge: Some("add".into()), inline_bytes, ..IndexKind::Lsm.into() };
        let table = db.create_table_with("t", options).expect("a table can be made");
        table.put(b"key", &0i64.to_le_bytes()).expect("a put works");
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (table, db) = (&table, &db);
                scope.spawn(move || {
                    for number in 0..MERGES {
                        let class = if number % 500 == 0 { Durability::Sync } else { Durability::None };
                        table.merge_with(b"key", &1i64.to_le_bytes(), class).expect("a merge works");
                        if thread == 0 && number % 1000 == 0 {
                            db.checkpoint().expect("a checkpoint can be made");
                        }
                    }
                });
            }
        });
        let found = table.get(b"key").expect("a get works").expect("there is a value");
        assert_eq!(found, (THREADS as i64 * MERGES as i64).to_le_bytes(), "with {inline_bytes} bytes inline");
    }
}

/// Values of an ingest come to runs without a memtable, which alone has those that the table's runs have not.
#[test]
fn an_ingest_brings_no_value_into_runs_that_have_none() {
    const KEYS: u64 = 2000;
    let store = Store::new(0);
    let options = TableOptions { merge: Some("append".into()), inline_bytes: 0, ..IndexKind::Lsm.into() };
    let mut ingest = store.db.ingest("ingested", options).expect("an ingest can begin");
    for key in 0..KEYS {
        ingest.put(&key.to_be_bytes(), &[7; 64]).expect("keys come in order");
    }
    let table = ingest.finish().expect("the ingest comes to its end");
    let bytes = table.stats().expect("it is open").index_disk_bytes;
    assert!(bytes < KEYS * 48, "{bytes} bytes of runs");
    assert_eq!(table.get(&1u64.to_be_bytes()).expect("a get works").as_deref(), Some(&[7; 64][..]));
}

/// Nobody reads what a merge into a `hash` table applies to, or settles: neither at once nor behind the writer.
#[test]
fn counters_of_a_hash_table_are_merged_without_a_read() {
    for class in [Durability::None, Durability::Interval(Duration::from_millis(1)), Durability::Sync] {
        let device = SimDevice::new(3);
        device.create_dir(Path::new("/store")).expect("the machine runs");
        let operator = Watched::default();
        let db = Db::open_on(device.clone(), "/store", options(&operator)).expect("a store can be made");
        let options = TableOptions { merge: Some("append".into()), ..IndexKind::Hash.into() };
        let table = db.create_table_with("t", options).expect("a table can be made");
        let read_before = device.counters().read_bytes;
        let mut wanted = vec![Vec::new(); 50];
        for round in 0..40u8 {
            for (key, wanted) in wanted.iter_mut().enumerate() {
                table.merge_with(&key.to_le_bytes(), &[round], class).expect("a merge works");
                wanted.push(round);
            }
            db.step(Step::Write).expect("a step works");
            db.step(Step::Settle).expect("a step works");
        }
        assert_eq!(device.counters().read_bytes, read_before, "{class:?}");
        for (key, wanted) in wanted.iter().enumerate() {
            let calls = operator.calls();
            assert_eq!(table.get(&key.to_le_bytes()).expect("a get works").as_deref(), Some(&wanted[..]), "{class:?}");
            assert_eq!(operator.calls(), calls, "a get of a counter merges nothing");
        }
        assert_eq!(db.stats().tables[0].keys, 50);
        assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new());
    }
}

/// Moves, deletes, puts, checkpoints, deaths, values that are too long and keys that memory has forgotten: the value is that of all operands.
#[test]
fn a_merge_into_a_hash_table_finds_the_present_value() {
    let (directory, operator) = (scratch(), Watched::default());
    let mut directory = directory;
    let mut db = Db::open(directory.path(), options(&operator)).expect("a store can be made");
    let made = TableOptions { merge: Some("append".into()), ..IndexKind::Hash.into() };
    let mut table = db.create_table_with("t", made).expect("a table can be made");
    let mut random = fastrand::Rng::with_seed(11);
    let mut contents = BTreeMap::<u8, Vec<u8>>::new();
    let mut snapshots = Vec::new();
    for number in 0..20_000u32 {
        let (key, operand) = (random.u8(..40), random.u8(..));
        let class = if random.u8(..50) == 0 { Durability::Sync } else { Durability::None };
        match random.u32(..1000) {
            0..100 => {
                let value = vec![operand; random.usize(..80)];
                table.put_with(&[key], &value, class).expect("a put works");
                contents.insert(key, value);
            }
            100..140 => {
                table.delete_with(&[key], class).expect("a delete works");
                contents.remove(&key);
            }
            140..150 => {
                let mut batch = Batch::new();
                for key in [key, key.wrapping_add(1) % 40] {
                    batch.merge(&table, &[key], &[operand]).expect("it is short");
                    contents.entry(key).or_default().push(operand);
                }
                db.write_with(&batch, class).expect("a batch works");
            }
            150..160 if snapshots.len() < 3 => {
                snapshots.push((db.snapshot().expect("a snapshot can be taken"), contents.clone()));
            }
            150..160 => {
                let (snapshot, contents) = snapshots.remove(0);
                for key in 0..40 {
                    let found = snapshot.get(&table, &[key]).expect("a snapshot can be asked");
                    assert_eq!(found.as_ref(), contents.get(&key), "key {key} of a snapshot, {number}");
                }
            }
            160..170 => {
                let step = [Step::Write, Step::Settle, Step::Checkpoint, Step::Prepare, Step::Reclaim, Step::Upkeep];
                db.step(step[random.usize(..6)]).expect("a step works");
            }
            170 if random.u8(..4) == 0 => {
                snapshots.clear();
                db.step(Step::Write).expect("a step works");
                let copy = scratch();
                support::copy_tree(directory.path(), copy.path());
                drop((table, db));
                directory = copy;
                db = Db::open(directory.path(), options(&operator)).expect("the copy can be opened");
                table = db.table("t").expect("the table is there");
            }
            171 if random.u8(..4) == 0 => {
                // Its segments are emptied: what is left is moved.
                support::upkeep(&db);
            }
            _ => {
                table.merge_with(&[key], &[operand], class).expect("a merge works");
                contents.entry(key).or_default().push(operand);
            }
        }
        let found = table.get(&[key]).expect("a get works");
        assert_eq!(found.as_ref(), contents.get(&key), "key {key}, {number}");
    }
    drop(snapshots);
    assert!(damage(&db).is_empty());
    assert_eq!(db.recount().expect("it can be counted"), Vec::<String>::new());
}
