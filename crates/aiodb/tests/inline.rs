//! Values in the index of `lsm` tables: which values lie there, how often a get of one reads the device, and that it is always the
//! value of the record.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use aiodb::merge::Append;
use aiodb::{
    Compression, Db, Durability, Error, IndexKind, MAX_INLINE_BYTES, MergeOperators, Options, ScanOptions, Step, Table,
    TableOptions,
};
use support::{assert_value, copy_tree, damage, quiet, refusal, scratch, value};

/// Bytes up to which values lie in the index.
const BOUND: usize = 100;

/// Lengths about the bound, and beyond a record's.
const LENGTHS: [usize; 6] = [0, BOUND - 1, BOUND, BOUND + 1, 1279, 3000];

/// More operands than are left unfolded.
const MANY: usize = 10;

fn options() -> Options {
    let merge_operators = MergeOperators::default().with(Append);
    Options { segment_bytes: 64 << 10, cache_bytes: 0, block_cache_bytes: Some(0), merge_operators, ..quiet() }
}

fn table_options(compression: Compression) -> TableOptions {
    let merge = Some("append".to_owned());
    TableOptions { compression, merge, inline_bytes: BOUND, ..IndexKind::Lsm.into() }
}

fn put(table: &Table, key: &[u8], value: &[u8]) {
    table.put_with(key, value, Durability::None).expect("a put works");
}

fn merge(table: &Table, key: &[u8], operand: &[u8]) {
    table.merge_with(key, operand, Durability::None).expect("a merge works");
}

/// Reads of the device that plain gets wait for, blocks of runs aside.
fn value_reads(db: &Db, gets: impl FnOnce()) -> u64 {
    let before = db.metrics().get_read_wait_ns.count();
    gets();
    db.metrics().get_read_wait_ns.count() - before
}

/// How often a reader waited for the device, blocks of runs included.
fn reader_waits(db: &Db, table: &Table, contents: &BTreeMap<Vec<u8>, Vec<u8>>) -> u64 {
    let before = db.metrics().reader_read_wait_ns.count();
    let mut reader = table.reader(8).expect("a reader can be made");
    for (key, value) in contents {
        reader.submit(key, 0).expect("a get can be submitted");
        let got = reader.poll().expect("reads work").expect("one is in flight");
        assert_value(got.value.expect("a get works"), Some(value), "by a reader");
    }
    db.metrics().reader_read_wait_ns.count() - before
}

fn get_all(table: &Table, contents: &BTreeMap<Vec<u8>, Vec<u8>>, when: &str) {
    for (key, value) in contents {
        let found = table.get(key).expect("a get works");
        assert_value(found.as_deref(), Some(value), &format!("{when}: {}", support::name(key)));
    }
}

/// Every way to read says what the contents are.
fn check(table: &Table, contents: &BTreeMap<Vec<u8>, Vec<u8>>, when: &str) {
    get_all(table, contents, when);
    let keys: Vec<_> = contents.keys().collect();
    for (found, value) in table.get_many(&keys).expect("gets work").iter().zip(contents.values()) {
        assert_value(found.as_deref(), Some(value), when);
    }
    for backward in [false, true] {
        let options = if backward { ScanOptions::all().backward() } else { ScanOptions::all() };
        let mut found: Vec<_> = table.scan(options).expect("a scan").collect::<Result<_, _>>().expect("a scan works");
        if backward {
            found.reverse();
        }
        assert!(found.iter().map(|(key, value)| (key, value)).eq(contents), "{when}, backward: {backward}");
    }
    for (key, value) in contents {
        let part = table.get_range(key, 3, 50).expect("a read of a part works");
        let end = value.len().min(53);
        assert_value(part.as_deref(), Some(&value[end.min(3)..end]), when);
        assert!(table.compare_and_set(key, Some(value), Some(value)).expect("a comparison works"), "{when}");
    }
}

#[test]
fn a_short_value_is_read_with_its_key() {
    let directory = scratch();
    let db = Db::open(directory.path(), options()).expect("a store can be made");
    let table = db.create_table_with("t", table_options(Compression::None)).expect("a table can be made");
    let contents: BTreeMap<_, _> =
        (0..60u64).map(|n| (n.to_be_bytes().to_vec(), value(n, LENGTHS[n as usize % 6]))).collect();
    contents.iter().for_each(|(key, value)| put(&table, key, value));
    let long = contents.values().filter(|value| value.len() > BOUND).count() as u64;
    let keys = contents.len() as u64;
    db.sync().expect("a flush works");
    assert_eq!(value_reads(&db, || get_all(&table, &contents, "in the memtable")), long);
    db.checkpoint().expect("a checkpoint works");
    let blocks = db.metrics().run_block_reads;
    assert_eq!(value_reads(&db, || get_all(&table, &contents, "in a run")), long);
    assert_eq!(db.metrics().run_block_reads, blocks + keys, "a block for each");
    let short = ScanOptions::all().before(&1u64.to_be_bytes());
    assert_eq!(value_reads(&db, || assert_eq!(table.scan(short).expect("a scan").count(), 1)), 0);
}

#[test]
fn a_reader_needs_no_device_where_memory_has_the_key() {
    let directory = scratch();
    let cached = Options { cache_bytes: 1 << 20, block_cache_bytes: Some(1 << 20), ..options() };
    let db = Db::open(directory.path(), cached).expect("a store can be made");
    let table = db.create_table_with("t", table_options(Compression::None)).expect("a table can be made");
    let contents: BTreeMap<_, _> = (0..60u64).map(|n| (n.to_be_bytes().to_vec(), value(n, n as usize))).collect();
    contents.iter().for_each(|(key, value)| put(&table, key, value));
    db.sync().expect("a flush works");
    assert_eq!(reader_waits(&db, &table, &contents), 0, "in the memtable");
    db.checkpoint().expect("a checkpoint works");
    assert!(reader_waits(&db, &table, &contents) > 0, "for blocks");
    assert_eq!(reader_waits(&db, &table, &contents), 0, "the cache has the blocks");
    let metrics = db.metrics();
    assert_eq!((metrics.get_read_wait_ns.count(), metrics.cache_hits), (0, 0), "no value is cached for itself");
}

#[test]
fn operands_and_what_they_make_are_read_and_put_without_the_log() {
    let directory = scratch();
    let db = Db::open(directory.path(), options()).expect("a store can be made");
    let table = db.create_table_with("t", table_options(Compression::None)).expect("a table can be made");
    let operand = value(1, BOUND / MANY);
    put(&table, b"based", &operand);
    for _ in 1..MANY {
        merge(&table, b"based", &operand);
        merge(&table, b"bare", &operand);
    }
    merge(&table, b"bare", &operand);
    db.sync().expect("a flush works");
    let contents =
        BTreeMap::from([(b"bare".to_vec(), operand.repeat(MANY)), (b"based".to_vec(), operand.repeat(MANY))]);
    assert_eq!(value_reads(&db, || get_all(&table, &contents, "in the memtable")), 0);
    db.step(Step::Settle).expect("upkeep works");
    assert_eq!(db.metrics().folded_keys, 0, "operands were applied as they came");
    db.checkpoint().expect("a checkpoint works");
    assert_eq!(value_reads(&db, || get_all(&table, &contents, "in a run")), 0);
    check(&table, &contents, "in a run");
}

/// Each key is written twice, with each pair of lengths: put over put, operand on put, many operands.
fn write_pairs(table: &Table) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for (number, first) in LENGTHS.into_iter().enumerate() {
        for (other, second) in LENGTHS.into_iter().enumerate() {
            let (old, new) = (value(number as u64 + 100, first), value(other as u64 + 200, second));
            let key = |what: &str| format!("{what} {first:04} {second:04}").into_bytes();
            for what in ["put", "merged", "piled", "deleted"] {
                put(table, &key(what), &old);
            }
            put(table, &key("put"), &new);
            merge(table, &key("merged"), &new);
            (0..MANY).for_each(|_| merge(table, &key("piled"), &new));
            for what in ["alone", "deleted"] {
                table.delete_with(&key(what), Durability::None).expect("a delete works");
            }
            merge(table, &key("alone"), &new);
            contents.insert(key("put"), new.clone());
            contents.insert(key("merged"), [&old[..], &new].concat());
            contents.insert(key("piled"), [&old[..], &new.repeat(MANY)].concat());
            contents.insert(key("alone"), new);
        }
    }
    contents
}

#[test]
fn values_about_the_bound_are_those_of_their_records_wherever_they_lie() {
    for compression in [Compression::None, Compression::Lz4] {
        let directory = scratch();
        let db = Db::open(directory.path(), options()).expect("a store can be made");
        let table = db.create_table_with("t", table_options(compression)).expect("a table can be made");
        let older = write_pairs(&table);
        let before = db.snapshot().expect("a snapshot can be taken");
        check(&table, &older, "in the memtable");
        db.checkpoint().expect("a checkpoint works");
        check(&table, &older, "in a run");
        let contents = write_pairs(&table);
        check(&table, &contents, "over a run");
        for step in [Step::Settle, Step::Checkpoint, Step::Merge, Step::Reclaim, Step::Checkpoint, Step::Prepare] {
            (0..20).for_each(|_| db.step(step).expect("upkeep works"));
            check(&table, &contents, &format!("after {step:?}"));
        }
        for (key, value) in &older {
            let found = before.get(&table, key).expect("a get of a snapshot works");
            assert_value(found.as_deref(), Some(value), "in a snapshot");
        }
        drop((before, table));
        db.close().expect("a close works");
        for rebuild_index in [false, true] {
            let db = Db::open(directory.path(), Options { rebuild_index, ..options() }).expect("the store opens");
            let table = db.table("t").expect("the table is there");
            assert_eq!(table.options(), table_options(compression));
            check(&table, &contents, "opened again");
            assert!(damage(&db).is_empty(), "{:?}", damage(&db));
            db.close().expect("a close works");
        }
    }
}

/// Short values keep their places in the index when reclaim moves their records.
#[test]
fn a_moved_record_is_read_without_the_log() {
    let directory = scratch();
    let db = Db::open(directory.path(), options()).expect("a store can be made");
    let table = db.create_table_with("t", table_options(Compression::None)).expect("a table can be made");
    let contents: BTreeMap<_, _> = (0..100u64).map(|n| (n.to_be_bytes().to_vec(), value(n, BOUND))).collect();
    for (key, value) in &contents {
        put(&table, key, value);
        put(&table, b"filler", &support::value(1, 9000));
    }
    while db.metrics().reclaim_moved_bytes < 100 * BOUND as u64 {
        put(&table, b"filler", &value(2, 9000));
        for step in [Step::Checkpoint, Step::Merge, Step::Reclaim, Step::Prepare] {
            db.step(step).expect("upkeep works");
        }
    }
    for when in ["moved", "moved, and committed"] {
        assert_eq!(value_reads(&db, || get_all(&table, &contents, when)), 0, "{when}");
        db.checkpoint().expect("a checkpoint works");
    }
}

/// Records that only the log has when a process dies come to the index with their values.
#[test]
fn a_replay_brings_values_to_the_index() {
    let directory = scratch();
    let db = Db::open(directory.path(), options()).expect("a store can be made");
    let table = db.create_table_with("t", table_options(Compression::None)).expect("a table can be made");
    let contents: BTreeMap<_, _> = (0..100u64).map(|n| (n.to_be_bytes().to_vec(), value(n, BOUND))).collect();
    contents.iter().for_each(|(key, value)| put(&table, key, value));
    db.sync().expect("a flush works");
    let copy = scratch();
    support::copy_tree(directory.path(), copy.path());
    let db = Db::open(copy.path(), options()).expect("the store opens");
    let table = db.table("t").expect("the table is there");
    assert!(db.stats().recovered_records >= 100);
    assert_eq!(value_reads(&db, || get_all(&table, &contents, "replayed")), 0);
}

#[test]
fn only_lsm_tables_have_inline_values_and_only_short_ones() {
    let directory = scratch();
    let db = Db::open(directory.path(), options()).expect("a store can be made");
    let of = |kind: IndexKind, inline_bytes| TableOptions { inline_bytes, ..kind.into() };
    let refused = [of(IndexKind::Lmdb, 1), of(IndexKind::Hash, 1), of(IndexKind::Lsm, MAX_INLINE_BYTES + 1)];
    for options in refused {
        let error = refusal(db.create_table_with("t", options), "such a table");
        assert!(matches!(error, Error::Option { option: "inline_bytes", .. }), "{error:?}");
    }
    for inline_bytes in [0, 1, MAX_INLINE_BYTES] {
        let name = format!("t{inline_bytes}");
        let table = db.create_table_with(&name, of(IndexKind::Lsm, inline_bytes)).expect("a table can be made");
        db.truncate_table(&name).expect("a table can be emptied");
        let stats = table.stats().expect("the table is there");
        assert_eq!((table.options().inline_bytes, stats.inline_bytes), (inline_bytes, inline_bytes));
    }
}

/// A program that does not know values in the index passes over the making of such a table: the manifest says so before the log does.
#[test]
fn an_older_program_refuses_a_store_before_it_has_such_a_table() {
    let directory = scratch();
    let store = directory.path().join("store");
    let version = || {
        let manifests = ["MANIFEST", "MANIFEST.copy"].map(|name| std::fs::read(store.join(name)).expect("it is there"));
        manifests.map(|bytes| u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes")))
    };
    // New ones with ordered tables are of a later version from the first on.
    copy_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture_runs"), &store);
    let db = Db::open(&store, options()).expect("a store can be opened");
    db.create_table("plain", IndexKind::Lsm).expect("a table can be made");
    db.step(Step::Checkpoint).expect("nothing fails");
    assert_eq!((version(), db.stats().format_version), ([1, 1], 1));
    db.create_table_with("short", table_options(Compression::None)).expect("a table can be made");
    assert_eq!((version(), db.stats().format_version), ([2, 2], 2), "no checkpoint was asked for");
    db.drop_table("short").expect("a table can be dropped");
    db.step(Step::Checkpoint).expect("nothing fails");
    assert_eq!(version(), [2, 2], "its records are in the log");
    db.close().expect("a store can be closed");
    let db = Db::open(&store, options()).expect("a store can be opened");
    db.step(Step::Checkpoint).expect("nothing fails");
    assert_eq!((version(), db.stats().format_version), ([2, 2], 2));
}
