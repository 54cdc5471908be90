//! What every store does, whatever its index and however its reads reach the device.

mod support;

use std::time::Duration;

use aiodb::{Backend, Batch, Db, Durability, Error, IndexKind, MAX_KEY_BYTES, MAX_VALUE_BYTES, Options, Table};
use support::{assert_get, assert_value, damage, open_several, refusal, scratch, small, value};
use tempfile::TempDir;

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
        contract!(@ hash_uring Hash Uring 1 $($test)*);
        contract!(@ hash_libaio Hash Libaio 1 $($test)*);
        contract!(@ hash_threads Hash Threads 1 $($test)*);
        contract!(@ lmdb_in_three_directories Lmdb Uring 3 $($test)*);
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

fn what_was_put_is_got(setup: &Setup) {
    let store = Store::new(setup);
    assert_get(&store.table, b"a", None, "before anything was put");
    store.delete(b"a");
    assert_get(&store.table, b"a", None, "after a delete of an absent key");
    store.put(b"a", b"1");
    assert_get(&store.table, b"a", Some(b"1"), "after a put");
    assert_get(&store.table, b"b", None, "another key");
    store.put(b"a", b"two");
    assert_get(&store.table, b"a", Some(b"two"), "after an overwrite");
    store.put(b"a", b"");
    assert_get(&store.table, b"a", Some(b""), "after a put of an empty value");
    store.delete(b"a");
    assert_get(&store.table, b"a", None, "after a delete");
    store.put(b"a", b"3");
    assert_get(&store.table, b"a", Some(b"3"), "after a put of a deleted key");
    store.put(&[0], b"zero");
    store.put(&[0, 0], b"zeros");
    store.put(&[255; 16], b"ones");
    let store = store.reopened();
    for (key, value) in [(&b"a"[..], &b"3"[..]), (&[0], b"zero"), (&[0, 0], b"zeros"), (&[255; 16], b"ones")] {
        assert_get(&store.table, key, Some(value), "after a close");
    }
}

/// A key of this length whose last byte is `last`; keys of one length differ in nothing else.
fn long_key(length: usize, last: u8) -> Vec<u8> {
    let mut key = vec![b'k'; length];
    *key.last_mut().expect("keys have at least a byte") = last;
    key
}

fn key_lengths(setup: &Setup) {
    const LENGTHS: [usize; 10] = [1, 2, 447, 448, 480, 481, 511, 512, 600, MAX_KEY_BYTES];
    let mut store = Store::new(setup);
    for (number, length) in LENGTHS.into_iter().enumerate() {
        for last in [0, 1, 255] {
            // A small value next to the key, and one on blocks of its own.
            let bytes = if last == 1 { 3000 } else { 40 };
            store.put(&long_key(length, last), &value(number as u64 * 256 + u64::from(last), bytes));
        }
        store.delete(&long_key(length, 255));
    }
    for when in ["at once", "after a close"] {
        for (number, length) in LENGTHS.into_iter().enumerate() {
            let wanted = |last: u8, bytes| value(number as u64 * 256 + u64::from(last), bytes);
            assert_get(&store.table, &long_key(length, 0), Some(&wanted(0, 40)), when);
            assert_get(&store.table, &long_key(length, 1), Some(&wanted(1, 3000)), when);
            assert_get(&store.table, &long_key(length, 255), None, "a deleted key beside others as long");
            assert_get(&store.table, &long_key(length, 7), None, "a key that was never put beside others as long");
        }
        store = store.reopened();
    }
}

fn value_lengths(setup: &Setup) {
    const MIB: usize = 1 << 20;
    const LENGTHS: [usize; 18] =
        [0, 1, 1279, 1280, 3000, 4000, 4055, 4056, 4080, 4081, 4095, 4096, 4097, 8192, 65_536, MIB - 1, MIB, MIB + 1];
    let mut store = Store::new(&setup.with(|options| options.segment_bytes = 4 << 20));
    for (seed, length) in LENGTHS.into_iter().enumerate() {
        store.put(&length.to_be_bytes(), &value(seed as u64, length));
    }
    for when in ["at once", "after a close"] {
        for (seed, length) in LENGTHS.into_iter().enumerate() {
            assert_get(&store.table, &length.to_be_bytes(), Some(&value(seed as u64, length)), when);
        }
        // A value of another length takes the place of each.
        for (seed, length) in LENGTHS.into_iter().enumerate() {
            let other = LENGTHS[LENGTHS.len() - 1 - seed];
            store.put(&length.to_be_bytes(), &value(seed as u64, other));
            assert_get(&store.table, &length.to_be_bytes(), Some(&value(seed as u64, other)), "another length");
            store.put(&length.to_be_bytes(), &value(seed as u64, length));
        }
        store = store.reopened();
    }
    assert!(damage(&store.db).is_empty(), "a check finds no damage, but: {:?}", damage(&store.db));
}

fn limits(setup: &Setup) {
    let store = Store::new(setup);
    let too_long = vec![b'k'; MAX_KEY_BYTES + 1];
    for key in [&[][..], &too_long] {
        let mut batch = Batch::new();
        let refused = [
            refusal(store.table.get(key), "a get"),
            refusal(store.table.put(key, b"v"), "a put"),
            refusal(store.table.delete(key), "a delete"),
            refusal(batch.put(&store.table, key, b"v").map(drop), "a put in a batch"),
            refusal(batch.delete(&store.table, key).map(drop), "a delete in a batch"),
            refusal(store.table.get_many(&[key]), "a get of many"),
        ];
        for error in refused {
            let length = key.len();
            assert!(
                matches!(error, Error::KeyLength { length: said, max: MAX_KEY_BYTES } if said == length),
                "a key of {length} bytes is refused with its length and the limit, not with: {error:?}"
            );
        }
        assert!(batch.is_empty(), "what was refused is not in the batch");
    }
    // A store's segments may allow less than the format does.
    let zeros = vec![0; MAX_VALUE_BYTES + 1];
    let large = Store::new(&setup.with(|options| options.segment_bytes = 4 << 20));
    let error = refusal(large.table.put(b"k", &zeros), "a value of 1 GiB and a byte");
    assert!(
        matches!(error, Error::ValueLength { length, max: MAX_VALUE_BYTES } if length == zeros.len()),
        "a value that is too long is refused with its length and the limit, not with: {error:?}"
    );
    let error = refusal(Batch::new().put(&large.table, b"k", &zeros).map(drop), "a value of 1 GiB and a byte");
    assert!(matches!(error, Error::ValueLength { .. }), "also in a batch, not with: {error:?}");
    assert_get(&large.table, b"k", None, "after a refused put");
    for segment_bytes in [0, 32 << 10, 100_000, 2 << 30] {
        let directory = scratch();
        let error =
            refusal(Db::open(directory.path(), Options { segment_bytes, ..setup.options.clone() }), "such a segment");
        assert!(
            matches!(error, Error::Option { option: "segment_bytes", .. }),
            "segments of {segment_bytes} bytes are refused by name, not with: {error:?}"
        );
    }
    for depth in [0, 4097] {
        let error = refusal(store.table.reader(depth).map(drop), "such a depth");
        assert!(
            matches!(error, Error::Option { option: "depth", .. }),
            "a reader of depth {depth} is refused by name, not with: {error:?}"
        );
    }
}

fn many_keys_at_once(setup: &Setup) {
    let store = Store::new(setup);
    let none: [&[u8]; 0] = [];
    assert!(store.table.get_many(&none).expect("no key is no error").is_empty(), "no keys have no values");
    for seed in 0..200u64 {
        let length = if seed % 50 == 0 { 300_000 } else { seed as usize * 37 % 6000 };
        store.table.put_with(&seed.to_be_bytes(), &value(seed, length), Durability::None).expect("a put works");
    }
    // Present and absent keys, some twice, more than are read at a time.
    let keys: Vec<u64> = (0..600).map(|number| number * 7 % 311).collect();
    let encoded: Vec<_> = keys.iter().map(|key| key.to_be_bytes()).collect();
    for when in ["before they are written", "after a checkpoint"] {
        let values = store.table.get_many(&encoded).expect("all keys can be read");
        assert_eq!(values.len(), keys.len(), "{when}: each key has an answer");
        for (&key, found) in keys.iter().zip(&values) {
            let length = if key % 50 == 0 { 300_000 } else { key as usize * 37 % 6000 };
            let wanted = (key < 200).then(|| value(key, length));
            assert_value(found.as_deref(), wanted.as_deref(), &format!("{when}: key {key}"));
        }
        store.db.checkpoint().expect("a checkpoint can be made");
    }
}

fn readers(setup: &Setup) {
    const KEYS: u64 = 1500;
    let store = Store::new(setup);
    // Among small values some that span units and some in chunks.
    let length = |seed: u64| match seed % 100 {
        0 => 300_000,
        1..10 => 3000 + seed as usize,
        _ => 20 + seed as usize % 100,
    };
    for seed in (0..KEYS).filter(|seed| seed % 10 != 5) {
        store.table.put_with(&seed.to_be_bytes(), &value(seed, length(seed)), Durability::None).expect("a put works");
    }
    store.db.sync().expect("everything can be flushed");
    for depth in [1, 7, 64, 1024] {
        let mut reader = store.table.reader(depth).expect("a reader can be made");
        assert!(reader.poll().expect("an idle reader can be asked").is_none(), "an idle reader has no answer");
        let mut seen = vec![false; KEYS as usize];
        let mut next = 0;
        loop {
            while next < KEYS && reader.has_room() {
                reader.submit(&next.to_be_bytes(), next + 9000).expect("a get can be submitted");
                next += 1;
                assert!(reader.in_flight() <= depth, "a reader of depth {depth} never has more in flight");
            }
            let Some(got) = reader.poll().expect("a reader in use can be asked") else { break };
            let seed = got.token - 9000;
            assert!(!seen[seed as usize], "depth {depth}: get {seed} is answered once");
            seen[seed as usize] = true;
            let wanted = (seed % 10 != 5).then(|| value(seed, length(seed)));
            let found = got.value.unwrap_or_else(|error| panic!("depth {depth}: get {seed}: {error}"));
            assert_value(found, wanted.as_deref(), &format!("depth {depth}: get {seed}"));
        }
        assert!(seen.iter().all(|seen| *seen), "depth {depth}: every get is answered");
        assert_eq!(reader.in_flight(), 0, "depth {depth}: nothing is left in flight");
        let error = refusal(reader.submit(b"", 1), "an empty key");
        assert!(matches!(error, Error::KeyLength { .. }), "a reader refuses an empty key, not with: {error:?}");
        assert!(reader.poll().expect("a reader can be asked").is_none(), "what was refused was not started");
        // Dropped with gets in flight.
        for seed in 0..depth.min(100) as u64 {
            reader.submit(&seed.to_be_bytes(), seed).expect("a get can be submitted");
        }
    }
}

fn a_reader_sees_what_is_written_meanwhile(setup: &Setup) {
    let store = Store::new(setup);
    let mut reader = store.table.reader(4).expect("a reader can be made");
    for round in 0..200u64 {
        let durability = if round % 20 == 0 { Durability::Sync } else { Durability::None };
        let wanted = value(round, round as usize * 11);
        store.table.put_with(b"k", &wanted, durability).expect("a put works");
        reader.submit(b"k", round).expect("a get can be submitted");
        let got = reader.poll().expect("a reader can be asked").expect("one get is in flight");
        assert_eq!(got.token, round, "the answer carries the token of its get");
        assert_value(got.value.expect("the key can be read"), Some(&wanted), "the reader sees the last put");
    }
    store.db.truncate_table("t").expect("a table can be emptied");
    reader.submit(b"k", 1).expect("a reader follows its table through a truncate");
    let got = reader.poll().expect("a reader can be asked").expect("one get is in flight");
    assert_value(got.value.expect("an absent key is no error"), None, "after a truncate");
    store.db.drop_table("t").expect("a table can be dropped");
    let error = refusal(reader.submit(b"k", 1), "a get of a dropped table");
    assert!(matches!(error, Error::NoSuchTable { .. }), "a dropped table is named, not: {error:?}");
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
