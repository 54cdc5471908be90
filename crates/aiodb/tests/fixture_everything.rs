//! A store of this version with all that a store may have on disk: sorted runs of several tiers, runs of a `hash` table, compressed blocks, an ingested
//! table, storage modes, files of superseded records, values in chunks, operands, waiting range deletes; and a repository with two of its restore points.
//! Later programs must open both, and find what they held.
//!
//! `fixture_everything/` was written by this test with `AIODB_WRITE_FIXTURE=tests`. A later version of the format leaves it as it is, and gets one beside it.

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use aiodb::merge::Append;
use aiodb::{
    BackupOptions, Compression, Db, Durability, IndexKind, MAX_INLINE_BYTES, MergeOperators, MergePolicy, Options,
    Repository, ScanOptions, Step, StorageMode, Table, TableModes, TableOptions, WriteOptions,
};
use support::{copy_tree, damage, quiet, scratch, trim_store, value};
use tempfile::TempDir;

const FORMAT_VERSION: u32 = 5;

/// Each is followed by a checkpoint, and the first of them by the first restore point.
const ROUNDS: u64 = 7;
const FIRST_POINT: u64 = 4;

/// Records that expire then: in the year 2100, and long ago.
const LATER_MS: u64 = 4_102_444_800_000;
const EARLIER_MS: u64 = 1_000_000;

const AUTO: TableModes = TableModes { keys: StorageMode::Auto, values: StorageMode::Auto };

/// The tables, in the order in which they are made.
fn tables() -> [(&'static str, TableOptions); 5] {
    let modes = |keys, values| TableModes { keys, values };
    let lsm = || TableOptions { inline_bytes: 0, modes: AUTO, ..IndexKind::Lsm.into() };
    let merge = || Some("append".to_string());
    [
        ("runs", TableOptions { merge: merge(), modes: modes(StorageMode::Memory, StorageMode::Auto), ..lsm() }),
        (
            "compressed",
            TableOptions {
                inline_bytes: MAX_INLINE_BYTES,
                block_compression: Compression::Zstd(3),
                modes: modes(StorageMode::Disk, StorageMode::Disk),
                ..lsm()
            },
        ),
        (
            "spilled",
            TableOptions {
                merge: merge(),
                compression: Compression::Lz4,
                modes: modes(StorageMode::Auto, StorageMode::Memory),
                ..IndexKind::Hash.into()
            },
        ),
        ("lmdb", TableOptions { merge: merge(), compression: Compression::Zstd(1), ..IndexKind::Lmdb.into() }),
        ("ingested", TableOptions { inline_bytes: 60, ..lsm() }),
    ]
}

fn options() -> Options {
    Options {
        segment_bytes: 64 << 10,
        merge_operators: MergeOperators::default().with(Append),
        hash_bytes: Some(0),
        versions_in_memory: 2,
        merge_policy: MergePolicy { fan_out: 2, oldest_ratio: 1 },
        ..quiet()
    }
}

type Records = BTreeMap<Vec<u8>, Vec<u8>>;
type Contents = BTreeMap<&'static str, Records>;

enum Operation {
    Put(Vec<u8>, Vec<u8>, Option<u64>),
    Delete(Vec<u8>),
    Merge(Vec<u8>, Vec<u8>),
    DeleteRange(Vec<u8>, Vec<u8>),
}

use Operation::{Delete, DeleteRange, Merge, Put};

fn key(number: u64) -> Vec<u8> {
    match number % 20 {
        // So long that an index keeps a digest of it.
        19 => [&vec![b'l'; 500][..], format!("{number:05}").as_bytes()].concat(),
        _ => format!("key {number:05}").into_bytes(),
    }
}

fn a_value(number: u64, round: u64) -> Vec<u8> {
    match number % 16 {
        0 => Vec::new(),
        1 if number.is_multiple_of(3) => value(number + round, 2500),
        2 => vec![b'a' + (round % 26) as u8; 900],
        3 if number < 16 => (0..20_000u64).map(|at| ((at + round) % 251) as u8).collect(),
        _ => format!("a value of key {number}, written in round {round}").into_bytes(),
    }
}

/// What happens to a table in a round; the last one is not followed by a checkpoint.
fn operations(table: &str, round: u64) -> Vec<Operation> {
    let is_ordered = table != "spilled";
    let has_operands = ["runs", "spilled", "lmdb"].contains(&table);
    let (first, new) = (round * 24, 24);
    let mut operations: Vec<_> =
        (first..first + new).map(|number| Put(key(number), a_value(number, round), None)).collect();
    if round > 0 {
        let old = |step: u64| (0..first).filter(move |number| (number + round) % 9 == step);
        operations.extend(old(0).map(|number| Put(key(number), a_value(number, round), None)));
        operations.extend(old(1).map(|number| Delete(key(number))));
        if has_operands {
            operations.extend(old(2).map(|number| Merge(key(number), format!(" and {round}").into_bytes())));
        }
        operations.extend(old(3).take(2).map(|number| Put(key(number), b"for a time".to_vec(), Some(LATER_MS))));
        operations.extend(old(4).take(2).map(|number| Put(key(number), b"it was there".to_vec(), Some(EARLIER_MS))));
    }
    if is_ordered && round.is_multiple_of(3) && round > 0 {
        operations.push(DeleteRange(key(first - 20), key(first - 14)));
    }
    operations
}

fn apply(records: &mut Records, operation: &Operation) {
    match operation {
        Put(key, _, Some(EARLIER_MS)) => drop(records.remove(key)),
        Put(key, value, _) => drop(records.insert(key.clone(), value.clone())),
        Delete(key) => drop(records.remove(key)),
        Merge(key, operand) => records.entry(key.clone()).or_default().extend_from_slice(operand),
        DeleteRange(start, end) => records.retain(|key, _| key < start || key >= end),
    }
}

fn ingested() -> Records {
    (0..100).map(|number| (key(number), a_value(number, 50))).collect()
}

/// What the tables hold after some rounds.
fn contents(rounds: u64) -> Contents {
    let mut contents: Contents = tables().iter().map(|(name, _)| (*name, Records::new())).collect();
    contents.insert("ingested", ingested());
    for (name, records) in contents.iter_mut().filter(|(name, _)| **name != "ingested") {
        (0..rounds).flat_map(|round| operations(name, round)).for_each(|operation| apply(records, &operation));
    }
    contents
}

fn carry_out(table: &Table, operation: &Operation, durability: Durability) {
    let written = match operation {
        Put(key, value, until) => {
            let expires_ms = until.and_then(NonZeroU64::new);
            table.put_with(key, value, WriteOptions { durability: Some(durability), expires_ms })
        }
        Delete(key) => table.delete_with(key, durability),
        Merge(key, operand) => table.merge_with(key, operand, durability),
        DeleteRange(start, end) => table.delete_range_with(start, end, durability),
    };
    written.expect("a write works");
}

fn steps(db: &Db, step: Step, times: usize) {
    (0..times).for_each(|_| db.step(step).unwrap_or_else(|error| panic!("{step:?} can be done: {error}")));
}

fn write(target: &Path) {
    let (live, repository) = (scratch(), scratch());
    let db = Db::open(live.path(), options()).expect("a store can be made");
    for (name, options) in tables().into_iter().filter(|(name, _)| *name != "ingested") {
        db.create_table_with(name, options).expect("a table can be made");
    }
    let mut snapshots = Vec::new();
    for round in 0..ROUNDS {
        for (name, _) in tables() {
            if name != "ingested" {
                let table = db.table(name).expect("the table is there");
                operations(name, round).iter().for_each(|operation| carry_out(&table, operation, Durability::None));
            } else if round == 1 {
                let [.., (_, options)] = tables();
                let mut ingest = db.ingest(name, options).expect("it begins");
                ingested().iter().for_each(|(key, value)| ingest.put(key, value).expect("it is taken"));
                ingest.finish().expect("the table is made");
            }
        }
        steps(&db, Step::Settle, 3);
        steps(&db, Step::Spill, 20);
        db.checkpoint().expect("a checkpoint can be made");
        // Of the last round runs and range deletes stay as they are.
        steps(&db, Step::Merge, if round + 1 < ROUNDS { 20 } else { 0 });
        if round == FIRST_POINT - 1 || round == ROUNDS - 1 {
            db.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {}).expect("a backup can be made");
        }
        snapshots.push(db.snapshot().expect("a snapshot can be taken"));
    }
    // What is not in a checkpoint: one part is in the log, one still in memory.
    for (name, _) in tables().into_iter().filter(|(name, _)| *name != "ingested") {
        let (table, operations) = (db.table(name).expect("the table is there"), operations(name, ROUNDS));
        let (logged, pending) = operations.split_at(operations.len() / 2);
        logged.iter().for_each(|operation| carry_out(&table, operation, Durability::None));
        db.sync().expect("it can be flushed");
        pending.iter().for_each(|operation| carry_out(&table, operation, Durability::None));
    }
    // As the death of the process would leave it.
    copy_tree(live.path(), &target.join("store"));
    trim_store(&target.join("store"));
    copy_tree(repository.path(), &target.join("repository"));
    drop(snapshots);
}

fn fixture() -> PathBuf {
    let write_to = std::env::var_os("AIODB_WRITE_FIXTURE");
    static WRITTEN: std::sync::Once = std::sync::Once::new();
    if let Some(target) = write_to {
        WRITTEN.call_once(|| write(&Path::new(&target).join("fixture_everything")));
    }
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture_everything")
}

/// The files of a directory of the store whose names end like this; none where it is missing.
fn files(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).map(|entries| entries.flatten().map(|entry| entry.path()).collect());
    let all: Vec<PathBuf> = entries.unwrap_or_default();
    all.into_iter().filter(|path| path.to_string_lossy().ends_with(suffix)).collect()
}

fn all(table: &Table) -> Records {
    let scan = if table.kind().is_ordered() { table.scan(ScanOptions::all()) } else { table.iterate() };
    scan.expect("it can be scanned").collect::<aiodb::Result<_>>().expect("all can be read")
}

fn check(db: &Db, wanted: &Contents, when: &str) {
    assert_eq!(db.tables().len(), wanted.len(), "{when}: {:?}", db.tables());
    for (name, records) in wanted {
        let table = db.table(name).expect("the table is there");
        assert!(all(&table) == *records, "{when}: the records of {name}");
        for (key, value) in records {
            support::assert_get(&table, key, Some(value), &format!("{when}: {name}"));
        }
    }
    assert!(damage(db).is_empty(), "{when}: {:?}", damage(db));
    let wrong = db.recount().expect("it can be counted");
    assert!(wrong.is_empty(), "{when}: {}", wrong.join("; "));
}

/// Overwrites, deletes and new keys, twice, with upkeep; then the store is opened again.
fn use_it(db: Db, directory: &Path, mut wanted: Contents, when: &str) {
    for round in ROUNDS + 1..ROUNDS + 3 {
        for (name, records) in &mut wanted {
            let table = db.table(name).expect("the table is there");
            for operation in operations(if *name == "ingested" { "compressed" } else { name }, round) {
                carry_out(&table, &operation, Durability::None);
                apply(records, &operation);
            }
        }
        steps(&db, Step::Spill, 10);
        support::upkeep(&db);
        check(&db, &wanted, &format!("{when}, after writes"));
    }
    db.close().expect("a sound store can be closed");
    let db = Db::open(directory, Options { create: false, ..options() }).expect("it opens again");
    check(&db, &wanted, &format!("{when}, after writes, opened again"));
}

/// A copy of a directory of the fixture.
fn copy(name: &str) -> TempDir {
    let directory = scratch();
    copy_tree(&fixture().join(name), directory.path());
    directory
}

/// The tiers of the runs that a manifest of runs names, as `docs/format.md` has them.
fn tiers(manifest: &[u8]) -> Vec<u32> {
    let u32_at = |at: usize| u32::from_le_bytes(manifest[at..at + 4].try_into().expect("four bytes"));
    // Header, position, counters.
    let mut at = 64 + 32 + 4 * 8;
    let count = u32_at(at);
    at += 4;
    let mut tiers = Vec::new();
    for _ in 0..count {
        tiers.push(u32_at(at + 16));
        at += 28;
        at += 4 + u32_at(at) as usize;
        for _ in 0..2 {
            at += 4 + 16 * u32_at(at) as usize;
        }
    }
    tiers
}

#[test]
fn it_has_what_it_is_for() {
    let store = fixture().join("store");
    let tiers = tiers(&fs::read(store.join("index/runs/MANIFEST")).expect("there are runs"));
    assert!(tiers.contains(&0) && tiers.iter().any(|tier| *tier > 0), "runs of several tiers: {tiers:?}");
    assert!(!files(&store.join("index/spilled"), ".run").is_empty(), "runs of a `hash` table");
    assert!(!files(&store.join("index/versions"), ".versions").is_empty(), "superseded records");
    let checkpoints = files(&store.join("index"), ".ckp");
    let version = |path: &PathBuf| fs::read(path).expect("it can be read")[8];
    assert!(checkpoints.iter().any(|path| version(path) == 2), "a checkpoint that names runs");
    let of_runs: Vec<u8> = files(&store.join("index/runs"), ".run")
        .iter()
        .map(|path| {
            let bytes = fs::read(path).expect("it can be read");
            bytes[bytes.len() - 4096 + 8]
        })
        .collect();
    assert!(of_runs.contains(&4), "a file with compressed blocks: {of_runs:?}");
    let points = files(&fixture().join("repository/points"), ".point");
    assert_eq!(points.len(), 2, "restore points");
}

#[test]
fn a_store_with_everything_opens() {
    for rebuild_index in [false, true] {
        let (directory, when) = (copy("store"), format!("rebuilt: {rebuild_index}"));
        let db = Db::open(directory.path(), Options { create: false, rebuild_index, ..options() });
        let db = db.unwrap_or_else(|error| panic!("{when}: {error}"));
        let stats = db.stats();
        assert_eq!(stats.format_version, FORMAT_VERSION, "it is of its version");
        assert!(stats.recovered_records > 0 && stats.recovered_pending_records > 0, "{when}: it has a tail");
        assert!(
            files(&directory.path().join("index/versions"), ".versions").is_empty(),
            "what a dead process needed goes"
        );
        for (name, options) in tables() {
            assert_eq!(db.table(name).expect("the table is there").options(), options, "the table has its options");
        }
        let table = |name: &str| stats.tables.iter().find(|table| table.name == name).expect("the table is there");
        assert!(table("compressed").index_disk_bytes < table("compressed").index_plain_bytes || rebuild_index);
        assert!(table("spilled").keys_in_files > 0 || rebuild_index, "keys of a `hash` table are in files");
        let wanted = contents(ROUNDS + 1);
        check(&db, &wanted, &when);
        use_it(db, directory.path(), wanted, &when);
    }
}

#[test]
fn a_store_with_everything_is_read_when_it_was_closed() {
    let directory = copy("store");
    // Only an opening for writing brings the tail to the log.
    let db = Db::open(directory.path(), Options { create: false, ..options() }).expect("it opens");
    db.close().expect("a sound store can be closed");
    let options = Options { create: false, read_only: true, ..options() };
    let db = Db::open(directory.path(), options).expect("it opens for reading");
    for (name, records) in contents(ROUNDS + 1) {
        assert!(all(&db.table(name).expect("the table is there")) == records, "the records of {name}");
    }
}

#[test]
fn a_repository_of_it_is_restored() {
    let repository = copy("repository");
    let open = Repository::open(repository.path()).expect("the repository opens");
    let report = open.verify(&mut |_, _| {}).expect("it can be checked");
    assert!(report.damage.is_empty() && report.points_without_index.is_empty(), "{:?}", report.damage);
    let points: Vec<u64> = open.points().iter().map(|point| point.number).collect();
    assert_eq!(points.len(), 2);
    for (number, rounds) in points.into_iter().zip([FIRST_POINT, ROUNDS]) {
        let (directory, when) = (scratch(), format!("restore point {number}"));
        let report = open.restore(Some(number), directory.path(), &mut |_, _| {}).expect("it can be restored");
        assert!(report.index_damage.is_none(), "{when}: {:?}", report.index_damage);
        let db = Db::open(directory.path(), Options { create: false, ..options() }).expect("it opens");
        let wanted = contents(rounds);
        check(&db, &wanted, &when);
        use_it(db, directory.path(), wanted, &when);
    }
}

/// One more restore point of the store is made in the repository that an earlier program began.
#[test]
fn a_repository_of_it_takes_a_restore_point() {
    let (store, repository) = (copy("store"), copy("repository"));
    let db = Db::open(store.path(), Options { create: false, ..options() }).expect("it opens");
    let report = db.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {}).expect("a backup can be made");
    let open = Repository::open(repository.path()).expect("the repository opens");
    let directory = scratch();
    open.restore(Some(report.point.number), directory.path(), &mut |_, _| {}).expect("it can be restored");
    let restored = Db::open(directory.path(), Options { create: false, ..options() }).expect("it opens");
    check(&restored, &contents(ROUNDS + 1), "the new restore point");
}
