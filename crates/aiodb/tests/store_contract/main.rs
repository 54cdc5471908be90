//! What every store does, whatever its index and however its reads reach the device.

mod readers;
#[path = "../support/mod.rs"]
mod support;
mod values;

use std::time::Duration;

use aiodb::{Backend, Batch, Db, Durability, Error, IndexKind, Options, Table};
use readers::{a_reader_sees_what_is_written_meanwhile, readers};
use support::{assert_get, assert_value, open_several, refusal, scratch, small, value};
use tempfile::TempDir;
use values::{key_lengths, limits, many_keys_at_once, value_lengths, what_was_put_is_got};

/// What the same test is run with.
#[derive(Clone)]
struct Setup {
    kind: IndexKind,
    options: Options,
    /// How many directories the store lies in.
    directories: usize,
}

impl Setup {
    /// The same with other options.
    fn with(&self, change: impl FnOnce(&mut Options)) -> Setup {
        let mut setup = self.clone();
        change(&mut setup.options);
        setup
    }
}

/// A store with one table, in directories of its own.
struct Store {
    directories: Vec<TempDir>,
    options: Options,
    kind: IndexKind,
    db: Db,
    table: Table,
}

impl Store {
    fn new(setup: &Setup) -> Store {
        let Setup { kind, options, directories } = setup.clone();
        let directories = support::scratches(directories);
        let (db, table) = open_several(&directories, kind, &options);
        Store { directories, options, kind, db, table }
    }

    /// Closes the store and opens it again.
    fn reopened(self) -> Store {
        let Store { directories, options, kind, db, table } = self;
        db.close().expect("a sound store can be closed");
        drop((db, table));
        let (db, table) = open_several(&directories, kind, &options);
        Store { directories, options, kind, db, table }
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        self.table.put(key, value).unwrap_or_else(|error| panic!("a put of {}: {error}", support::name(key)));
    }

    fn delete(&self, key: &[u8]) {
        self.table.delete(key).unwrap_or_else(|error| panic!("a delete of {}: {error}", support::name(key)));
    }
}

/// Runs each of the named functions as a test for each kind of index and each backend.
macro_rules! contract {
    ($($test:ident)*) => {
        contract!(@ lmdb_uring Lmdb Uring 1 $($test)*);
        contract!(@ lmdb_libaio Lmdb Libaio 1 $($test)*);
        contract!(@ lmdb_threads Lmdb Threads 1 $($test)*);
        contract!(@ lsm_uring Lsm Uring 1 $($test)*);
        contract!(@ lsm_libaio Lsm Libaio 1 $($test)*);
        contract!(@ lsm_threads Lsm Threads 1 $($test)*);
        contract!(@ hash_uring Hash Uring 1 $($test)*);
        contract!(@ hash_libaio Hash Libaio 1 $($test)*);
        contract!(@ hash_threads Hash Threads 1 $($test)*);
        contract!(@ lmdb_in_three_directories Lmdb Uring 3 $($test)*);
        contract!(@ lsm_in_two_directories Lsm Uring 2 $($test)*);
        contract!(@ hash_in_two_directories Hash Threads 2 $($test)*);
    };
    (@ $module:ident $kind:ident $backend:ident $directories:literal $($test:ident)*) => {
        mod $module {
            $(#[test]
            fn $test() {
                let directory = super::scratch();
                if super::support::is_available(super::Backend::$backend, directory.path()) {
                    let options = super::Options { backend: super::Backend::$backend, ..super::small() };
                    let (kind, directories) = (super::IndexKind::$kind, $directories);
                    super::$test(&super::Setup { kind, options, directories });
                }
            })*
        }
    };
}

contract! {
    what_was_put_is_got
    key_lengths
    value_lengths
    limits
    many_keys_at_once
    readers
    a_reader_sees_what_is_written_meanwhile
    batches
    tables
    durability_classes
    a_closed_store_opens_as_it_was
    the_forced_backend_is_used
}

fn batches(setup: &Setup) {
    let kind = setup.kind;
    let other_kind = if kind == IndexKind::Hash { IndexKind::Lmdb } else { IndexKind::Hash };
    let store = Store::new(setup);
    let other = store.db.create_table("other", other_kind).expect("a second table can be made");
    store.db.write(&Batch::new()).expect("an empty batch is no error");
    let large = value(1, 700_000);
    let mut batch = Batch::new();
    let filled = batch
        .put(&store.table, b"a", b"first")
        .and_then(|batch| batch.put(&other, b"a", b"beside"))
        .and_then(|batch| batch.put(&store.table, b"large", &large))
        .and_then(|batch| batch.put(&store.table, b"gone", b"x"))
        .and_then(|batch| batch.delete(&store.table, b"gone"))
        .and_then(|batch| batch.delete(&other, b"back"))
        .and_then(|batch| batch.put(&other, b"back", b"again"))
        .and_then(|batch| batch.put(&store.table, b"a", b"last"));
    assert_eq!(filled.expect("the operations are in their limits").len(), 8, "a batch counts its operations");
    for durability in [Durability::Sync, Durability::None, Durability::Interval(Duration::from_millis(5))] {
        store.delete(b"a");
        store.put(b"gone", b"y");
        store.db.write_with(&batch, durability).unwrap_or_else(|error| panic!("a batch in {durability:?}: {error}"));
        assert_get(&store.table, b"a", Some(b"last"), "the later put of a key wins");
        assert_get(&store.table, b"gone", None, "a delete after a put wins");
        assert_get(&other, b"a", Some(b"beside"), "the same key in another table");
        assert_get(&other, b"back", Some(b"again"), "a put after a delete wins");
        assert_get(&store.table, b"large", Some(&large), "a large value in a batch");
    }
    let store = store.reopened();
    let other = store.db.table("other").expect("the second table is there");
    assert_get(&store.table, b"a", Some(b"last"), "after a close");
    assert_get(&other, b"a", Some(b"beside"), "after a close");
    assert_get(&store.table, b"large", Some(&large), "after a close");

    let mut batch = Batch::new();
    for number in 0..8u8 {
        batch.put(&store.table, &[number], &vec![number; 200_000]).expect("the operation is in its limits");
    }
    let error = refusal(store.db.write(&batch), "a batch longer than a segment");
    assert!(
        matches!(error, Error::BatchTooLarge { length, max } if length > 1_600_000 && max < 1 << 20),
        "it is refused with its length and the limit, not with: {error:?}"
    );
    assert_get(&store.table, &[0], None, "nothing of a refused batch is there");
    batch = Batch::new();
    batch.put(&store.table, b"x", b"1").expect("the operation is in its limits");
    store.db.drop_table("t").expect("a table can be dropped");
    let error = refusal(store.db.write(&batch), "a batch for a dropped table");
    assert!(matches!(error, Error::NoSuchTable { .. }), "a dropped table is named, not: {error:?}");
}

fn tables(setup: &Setup) {
    let kind = setup.kind;
    let store = Store::new(setup);
    let name_error = |name: &str| refusal(store.db.create_table(name, kind).map(drop), "such a name");
    for bad in ["", "a\nb", "\0", &"n".repeat(256)] {
        assert!(matches!(name_error(bad), Error::TableName { .. }), "{bad:?} cannot name a table");
    }
    assert!(matches!(name_error("t"), Error::TableExists { .. }), "a name is given once");
    let long_name = "名".repeat(85);
    let names = ["a table", &long_name, "T"];
    for (number, name) in names.iter().enumerate() {
        let table = store.db.create_table(name, kind).unwrap_or_else(|error| panic!("{name:?} names a table: {error}"));
        assert_eq!((table.name(), table.kind()), (*name, kind), "a table knows its name and kind");
        table.put(b"k", &[number as u8]).expect("a put works");
    }
    let other_kind = if kind == IndexKind::Hash { IndexKind::Lmdb } else { IndexKind::Hash };
    let error = refusal(store.db.table_or_create("t", other_kind).map(drop), "another kind of index");
    assert!(
        matches!(&error, Error::TableExists { kind: said, .. } if *said == kind.name()),
        "it is refused with the kind that the table has, not with: {error:?}"
    );
    let error = refusal(store.db.table("nowhere").map(drop), "a table that is not there");
    assert!(matches!(&error, Error::NoSuchTable { name } if name == "nowhere"), "it is named, not: {error:?}");
    for outcome in [store.db.truncate_table("nowhere"), store.db.drop_table("nowhere")] {
        let error = refusal(outcome, "a table that is not there");
        assert!(matches!(&error, Error::NoSuchTable { name } if name == "nowhere"), "it is named, not: {error:?}");
    }

    store.put(b"k", b"before");
    let handle = store.db.table("t").expect("the table is there");
    store.db.truncate_table("t").expect("a table can be emptied");
    assert_get(&handle, b"k", None, "an old handle after a truncate");
    assert_get(&store.db.table("T").expect("it is there"), b"k", Some(&[2]), "another table after a truncate");
    handle.put(b"k", b"after").expect("an old handle can be used after a truncate");
    let dropped = store.db.table("a table").expect("it is there");
    store.db.drop_table("a table").expect("a table can be dropped");
    let refused = [
        refusal(dropped.get(b"k"), "a get of a dropped table"),
        refusal(dropped.put(b"k", b"v"), "a put into a dropped table"),
        refusal(dropped.delete(b"k"), "a delete in a dropped table"),
    ];
    for error in refused {
        assert!(matches!(&error, Error::NoSuchTable { name } if name == "a table"), "it is named, not: {error:?}");
    }
    // The name is free again; the old handle does not come back with it.
    let again = store.db.create_table("a table", other_kind).expect("the name is free again");
    assert_get(&again, b"k", None, "a new table under an old name");
    assert!(dropped.get(b"k").is_err(), "a handle on a dropped table stays without one");

    let store = store.reopened();
    let mut wanted = vec![("T".to_string(), kind), ("a table".to_string(), other_kind)];
    wanted.extend([("t".to_string(), setup.kind), (long_name, setup.kind)]);
    assert_eq!(store.db.tables(), wanted, "all tables are there after a close, by name");
    assert_get(&store.table, b"k", Some(b"after"), "a truncated table after a close");
    assert_get(&store.db.table("a table").expect("it is there"), b"k", None, "a table made again after a close");
}

fn durability_classes(setup: &Setup) {
    let store = Store::new(&setup.with(|options| options.background = false));
    store.put(b"sync", b"1");
    let stats = store.db.stats();
    assert_eq!(stats.durable_batch, stats.last_batch, "a put in the class sync is durable when it returns");
    for (key, durability) in
        [(&b"none"[..], Durability::None), (b"interval", Durability::Interval(Duration::from_secs(1)))]
    {
        store.table.put_with(key, b"2", durability).expect("a put works");
        assert_get(&store.table, key, Some(b"2"), "a put is seen when it returns");
        assert_eq!(
            store.db.stats().last_batch,
            stats.last_batch,
            "a put in the class {durability:?} waits for no device"
        );
    }
    store.db.step(aiodb::Step::Write).expect("the open batch can be written");
    let written = store.db.stats();
    assert!(
        written.last_batch > written.durable_batch,
        "what was merely written is not called durable: batch {} of {}",
        written.durable_batch,
        written.last_batch
    );
    store.db.sync().expect("everything can be flushed");
    let flushed = store.db.stats();
    assert_eq!(flushed.durable_batch, flushed.last_batch, "everything is durable after a sync");
    store.table.put_with(b"none", b"3", Durability::None).expect("a put works");
    store.table.put_with(b"sync", b"3", Durability::Sync).expect("a put works");
    let both = store.db.stats();
    assert_eq!(both.durable_batch, both.last_batch, "a durable put takes what came before it along");
    assert_eq!(both.last_batch, flushed.last_batch + 1, "the two share one batch");
    assert_get(&store.table, b"none", Some(b"3"), "after the other put");
}

fn a_closed_store_opens_as_it_was(setup: &Setup) {
    let mut store = Store::new(setup);
    for round in 0..4u64 {
        for key in 0..100u64 {
            let old = round.checked_sub(1).filter(|old| (key + old) % 3 > 0).map(|old| value(key + old * 1000, 200));
            assert_get(&store.table, &key.to_be_bytes(), old.as_deref(), &format!("round {round}"));
            if (key + round).is_multiple_of(3) {
                store.table.delete_with(&key.to_be_bytes(), Durability::None).expect("a delete works");
            } else {
                let value = value(key + round * 1000, 200);
                store.table.put_with(&key.to_be_bytes(), &value, Durability::None).expect("a put works");
            }
        }
        if round == 1 {
            store.db.checkpoint().expect("a checkpoint can be made");
        }
        let before = store.db.clone();
        let handle = store.table.clone();
        store = store.reopened();
        let stats = store.db.stats();
        assert_eq!(stats.recovered_records, 0, "a closed store has nothing to replay");
        assert_eq!(stats.recovered_pending_records, 0, "a closed store has nothing pending");
        for error in [refusal(handle.get(b"k").map(drop), "a get"), refusal(before.sync(), "a flush")] {
            assert!(matches!(error, Error::Closed), "handles of a closed store say so, not: {error:?}");
        }
    }
    // The last handle is dropped: the store is free for the next one when the drop returns.
    for _ in 0..3 {
        let Store { directories, options, kind, db, table } = store;
        table.put_with(b"dropped", b"kept", Durability::None).expect("a put works");
        drop((db, table));
        let (db, table) = open_several(&directories, kind, &options);
        assert_get(&table, b"dropped", Some(b"kept"), "after the last handle was dropped");
        store = Store { directories, options, kind, db, table };
    }
}

fn the_forced_backend_is_used(setup: &Setup) {
    let wanted = match setup.options.backend {
        Backend::Uring => "uring",
        Backend::Libaio => "libaio",
        Backend::Threads => "threads",
        Backend::Auto => unreachable!("the contract forces a backend"),
    };
    let store = Store::new(setup);
    assert_eq!(store.db.stats().backend, wanted, "the forced backend is in use");
}

/// A value longer than a segment of the usual size.
#[test]
fn a_value_of_100_mib() {
    let wanted = value(7, 100 << 20);
    for kind in support::KINDS {
        let store =
            Store::new(&Setup { kind, options: Options { background: false, ..Options::default() }, directories: 1 });
        store.put(b"k", &wanted);
        assert_get(&store.table, b"k", Some(&wanted), kind.name());
        let mut reader = store.table.reader(2).expect("a reader can be made");
        reader.submit(b"k", 1).expect("a get can be submitted");
        let got = reader.poll().expect("a reader can be asked").expect("one get is in flight");
        assert_value(got.value.expect("the value can be read"), Some(&wanted), "through a reader");
    }
}
