//! A store that an earlier version wrote must still open, and hold what it held.
//!
//! Each was written by this test with `AIODB_WRITE_FIXTURE=tests` when its version was the latest. A later version of the format gets a fixture of its own
//! beside these. `fixture_values`, of version 2, was written later, by the last commit before version 3 (7c70b59b): in a work tree of that commit this
//! file had `fixture_values` with `IndexKind::Lsm` as its only fixture, and made the table with `TableOptions { inline_bytes: 100, ..kind.into() }`. What
//! else a store of the latest version may have is in `fixture_everything.rs`.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use aiodb::filter::{CompactionFilter, FilterEntry, FilterPass, FilterRange, Mark, Verdict};
use aiodb::{
    CompactionFilters, Compression, Db, Durability, IndexKind, Options, Step, Table, TableOptions, TableStats,
};
use support::{assert_get, copy_tree, damage, quiet, scratch, trim_store, value};

/// A store that is kept: its directory, the kinds of its tables, whether they have a compaction filter and values in the index, and the version
/// of its format. From version 4 on blocks of runs are compressed.
type Fixture = (&'static str, &'static [IndexKind], bool, u32);

const FIXTURES: [Fixture; 6] = [
    ("fixture", &[IndexKind::Lmdb, IndexKind::Hash], false, 1),
    ("fixture_runs", &[IndexKind::Lsm], false, 1),
    ("fixture_values", &[IndexKind::Lsm], false, 2),
    ("fixture_filter", &[IndexKind::Lsm], true, 3),
    ("fixture_compressed", &[IndexKind::Lsm], true, 4),
    ("fixture_as_they_lie", &[IndexKind::Lsm], true, LATEST_VERSION),
];

/// The version of the format in which live bytes are counted as they lie.
const LATEST_VERSION: u32 = 5;

/// Marks all records, some for later, and gives up none.
struct Marking;

impl CompactionFilter for Marking {
    fn name(&self) -> &str {
        "marking"
    }

    fn mark(&self, entry: &FilterEntry<'_>) -> Mark {
        if entry.key.len().is_multiple_of(2) { Mark::From(100_000_000_000_000) } else { Mark::Always }
    }

    fn begin(&self, _range: &FilterRange<'_>) -> Box<dyn FilterPass> {
        Box::new(Marking)
    }
}

impl FilterPass for Marking {
    fn judge(&mut self, _entries: &[FilterEntry<'_>], _verdicts: &mut [Verdict]) {}
}

const KEYS: u64 = 60;
/// Keys that fill several blocks, where blocks are compressed.
const ALIKE: u64 = 300;
/// Keys that are put after the checkpoint: one is in the log, one still in memory.
const LATE: [&[u8]; 2] = [b"after the checkpoint", b"pending"];

fn options() -> Options {
    let compaction_filters = CompactionFilters::default().with(Marking);
    Options { segment_bytes: 64 << 10, compaction_filters, ..quiet() }
}

fn table_options(kind: IndexKind, (_, _, filtered, version): Fixture) -> TableOptions {
    let compaction_filter = filtered.then(|| "marking".to_string());
    let block_compression = if version < 4 { Compression::None } else { Compression::Zstd(3) };
    let inline_bytes = if version < 2 { 0 } else { 100 };
    TableOptions { inline_bytes, block_compression, compaction_filter, ..kind.into() }
}

fn long_key(number: u64) -> Vec<u8> {
    let mut key = vec![b'l'; 600];
    *key.last_mut().expect("it has bytes") = number as u8;
    key
}

/// What a table of each kind holds.
fn contents((_, _, _, version): Fixture) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut contents = BTreeMap::new();
    for number in 0..if version < 4 { 0 } else { ALIKE } {
        let value = format!("a value like others, of key {number}");
        contents.insert(format!("one of many keys {number:05}").into_bytes(), value.into_bytes());
    }
    let is_latest = version == LATEST_VERSION;
    for number in (0..KEYS).filter(|number| number % 7 != 3) {
        let version = if number % 3 == 0 { 2 } else { 1 };
        let length = match number % 10 {
            0 => 3000,
            1 if is_latest => 1000,
            2 if is_latest => 2048,
            _ => 20 + number as usize,
        };
        contents.insert(format!("key {number}").into_bytes(), value(number + version * 1000, length));
    }
    contents.insert(b"empty".to_vec(), Vec::new());
    contents.insert(b"large".to_vec(), value(7, 40_000));
    contents.insert(long_key(1), value(8, 10));
    contents.insert(long_key(2), value(9, 2000));
    contents.insert(b"after the checkpoint".to_vec(), value(10, 100));
    contents.insert(b"pending".to_vec(), value(11, 100));
    contents
}

fn put(table: &Table, key: &[u8], value: &[u8], durability: Durability) {
    table.put_with(key, value, durability).expect("a put works");
}

/// Writes the contents in a way that leaves all kinds of records and files behind.
fn write(store: &Path, fixture: Fixture) {
    let (_, kinds, ..) = fixture;
    let live = scratch();
    let db = Db::open(live.path(), options()).expect("a store can be made");
    let contents = contents(fixture);
    for &kind in kinds {
        let table = db.create_table_with(kind.name(), table_options(kind, fixture)).expect("a table can be made");
        for number in 0..KEYS {
            put(
                &table,
                format!("key {number}").as_bytes(),
                &value(number + 1000, 20 + number as usize),
                Durability::None,
            );
        }
        for (key, value) in contents.iter().filter(|(key, _)| !LATE.contains(&key.as_slice())) {
            put(&table, key, value, Durability::None);
        }
        for number in (0..KEYS).filter(|number| number % 7 == 3) {
            table.delete_with(format!("key {number}").as_bytes(), Durability::None).expect("a delete works");
        }
        let emptied = db.create_table(&format!("emptied {}", kind.name()), kind).expect("a table can be made");
        put(&emptied, b"gone", b"x", Durability::None);
        db.truncate_table(emptied.name()).expect("a table can be emptied");
        put(&emptied, b"kept", b"y", Durability::None);
        db.create_table("dropped", kind).expect("a table can be made");
        db.drop_table("dropped").expect("a table can be dropped");
        if kind == IndexKind::Lsm {
            two_runs(&db, &table, &contents);
        }
    }
    db.checkpoint().expect("a checkpoint can be made");
    for key in LATE {
        for kind in kinds {
            let table = db.table(kind.name()).expect("the table is there");
            put(&table, key, &contents[key], if key == b"pending" { Durability::None } else { Durability::Sync });
        }
    }
    // As the death of the process would leave it; the free segments hold nothing.
    copy_tree(live.path(), store);
    trim_store(store);
}

/// Has a newer run that supersedes some keys of an older one, deletes others and has operands.
fn two_runs(db: &Db, table: &Table, contents: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let superseded = b"key 1".as_slice();
    put(table, superseded, b"superseded", Durability::None);
    put(table, b"deleted later", b"x", Durability::None);
    db.checkpoint().expect("a checkpoint can be made");
    put(table, superseded, &contents[superseded], Durability::None);
    table.delete_with(b"deleted later", Durability::None).expect("a delete works");
    put(table, b"range 1", b"x", Durability::None);
    table.delete_range(b"range", b"range 2").expect("a range can be deleted");
}

#[test]
fn a_store_of_an_earlier_version_opens() {
    for fixture in FIXTURES {
        // New stores are of the latest version.
        if let Some(target) = std::env::var_os("AIODB_WRITE_FIXTURE").filter(|_| fixture.3 == LATEST_VERSION) {
            write(&Path::new(&target).join(fixture.0), fixture);
        }
        [false, true].iter().for_each(|rebuild_index| check(fixture, *rebuild_index));
    }
}

fn check(of: Fixture, rebuild_index: bool) {
    let (fixture, kinds, _, version) = of;
    let directory = scratch();
    copy_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(fixture), directory.path());
    let db = Db::open(directory.path(), Options { create: false, rebuild_index, ..options() })
        .unwrap_or_else(|error| panic!("{fixture} opens: {error}"));
    let stats = db.stats();
    assert_eq!(stats.format_version, version, "{fixture} is of its version");
    let is_shorter = |table: &TableStats| table.index_disk_bytes < table.index_plain_bytes;
    let has_compressed = stats.tables.iter().any(is_shorter);
    assert!(has_compressed == (version >= 4) || rebuild_index, "{fixture} has compressed blocks if it may");
    assert!(stats.recovered_records > 0, "{fixture} has a tail that is replayed");
    assert!(stats.recovered_pending_records > 0, "{fixture} has records that were still in memory");
    for when in ["at once", "after upkeep"] {
        for &kind in kinds {
            let table = db.table(kind.name()).expect("the table is there");
            assert_eq!(table.options(), table_options(kind, of), "the table has its options");
            for (key, value) in contents(of) {
                assert_get(&table, &key, Some(&value), &format!("{}, {when}", kind.name()));
            }
            for number in (0..KEYS).filter(|number| number % 7 == 3) {
                assert_get(&table, format!("key {number}").as_bytes(), None, "a deleted key");
            }
            for gone in [&long_key(3)[..], b"deleted later", b"range 1"] {
                assert_get(&table, gone, None, "a key that was never put, or is not there any more");
            }
            let emptied = db.table(&format!("emptied {}", kind.name())).expect("the table is there");
            assert_get(&emptied, b"gone", None, "a key from before a truncate");
            assert_get(&emptied, b"kept", Some(b"y"), "a key from after a truncate");
        }
        assert!(db.table("dropped").is_err(), "a dropped table is gone");
        assert!(damage(&db).is_empty(), "a check finds no damage, but {:?}", damage(&db));
        support::upkeep(&db);
        db.step(Step::Settle).expect("tags can be settled");
    }
    assert_eq!(db.tables().len(), 2 * kinds.len(), "two tables of each kind are left: {:?}", db.tables());
}

/// A separate value of 1300 bytes counts 1365 there, and takes 2113: what is not counted is no garbage. Records from before the store was opened are
/// moved once before that is known.
#[test]
fn a_store_of_an_earlier_version_comes_to_rest() {
    const VALUES: u64 = 2000;
    for (name, kinds, _, _) in FIXTURES.into_iter().filter(|(.., version)| *version < LATEST_VERSION) {
        let directory = scratch();
        copy_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name), directory.path());
        let open = || Db::open(directory.path(), Options { create: false, ..options() }).expect("the store opens");
        let mut db = open();
        for &kind in kinds.iter().filter(|kind| **kind != IndexKind::Hash) {
            let table = db.table(kind.name()).expect("the table is there");
            for number in 0..VALUES {
                put(&table, &number.to_be_bytes(), &value(number, 1300), Durability::None);
            }
        }
        for when in ["once they are written", "opened again"] {
            let mut rounds = 0;
            loop {
                let before = db.metrics().reclaimed_segments;
                support::upkeep(&db);
                if db.metrics().reclaimed_segments == before {
                    break;
                }
                rounds += 1;
                assert!(rounds < 10, "{name}, {when}: segments are emptied without end");
            }
            println!("{name}, {when}: {} segments were emptied", db.metrics().reclaimed_segments);
            let wrong = db.recount().expect("it can be counted");
            assert!(wrong.is_empty(), "{name}, {when}: {}", wrong.join("; "));
            db.close().expect("a sound store can be closed");
            db = open();
        }
        for &kind in kinds.iter().filter(|kind| **kind != IndexKind::Hash) {
            let table = db.table(kind.name()).expect("the table is there");
            for number in 0..VALUES {
                assert_get(&table, &number.to_be_bytes(), Some(&value(number, 1300)), name);
            }
        }
    }
}

/// Counts of live bytes are durable: a store goes on with the way in which it has always counted. Its segments are emptied, and the counts are
/// right.
#[test]
fn a_store_of_an_earlier_version_is_reclaimed() {
    const LENGTHS: [usize; 6] = [1000, 2048, 3000, 1400, 100, 5000];
    for fixture in FIXTURES {
        let (name, kinds, _, version) = fixture;
        let directory = scratch();
        copy_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name), directory.path());
        let open = || Db::open(directory.path(), Options { create: false, ..options() }).expect("the store opens");
        let mut db = open();
        let wrong = db.recount().expect("it can be counted");
        assert!(wrong.is_empty(), "{name}, as it was: {}", wrong.join("; "));
        let (mut reclaimed, mut latest) = (0, BTreeMap::new());
        for round in 0..40u64 {
            for (&kind, number) in kinds.iter().flat_map(|kind| (0..KEYS).map(move |number| (kind, number))) {
                // Some stay where they are until they are moved.
                if round > 0 && (number + round) % 4 == 0 {
                    continue;
                }
                let (seed, length) = (number + round * KEYS, LENGTHS[(number + round) as usize % LENGTHS.len()]);
                let table = db.table(kind.name()).expect("the table is there");
                put(&table, format!("key {number}").as_bytes(), &value(seed, length), Durability::None);
                latest.insert((kind.name(), number), (seed, length));
            }
            support::upkeep(&db);
            if round % 10 == 9 {
                let wrong = db.recount().expect("it can be counted");
                assert!(wrong.is_empty(), "{name}, after round {round}: {}", wrong.join("; "));
                assert!(damage(&db).is_empty(), "a check finds no damage, but {:?}", damage(&db));
                reclaimed += db.metrics().reclaimed_segments;
                assert_eq!(db.stats().format_version, version, "{name} stays of its version");
                db.close().expect("a sound store can be closed");
                db = open();
            }
        }
        assert!(reclaimed > 10, "{name}: {reclaimed} segments were emptied");
        for ((kind, number), (seed, length)) in latest {
            let table = db.table(kind).expect("the table is there");
            assert_get(&table, format!("key {number}").as_bytes(), Some(&value(seed, length)), name);
        }
    }
}
