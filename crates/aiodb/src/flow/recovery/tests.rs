use std::path::Path;
use std::sync::Arc;

use crate::format::batch::Append;
use crate::format::manifest::Manifest;
use crate::format::record::Kind;
use crate::index::chain::Superseded;
use crate::index::codec::encode_key;
use crate::index::lmdb::LmdbIndex;
use crate::index::memtable::{ImmutableMemtable, Memtable};
use crate::index::range_tombstones::Ranges;
use crate::index::snapshots::Snapshots;
use crate::io::sim::SimDevice;
use crate::io::small_file::replace_file;
use crate::io::{Device, Phase};
use crate::merge;
use crate::retention::Retention;
use crate::store::commit::Operation;
use crate::{Db, Durability, IndexKind, MergeOperator, MergeOperators, Options, Table, TableOptions};

fn open(device: &SimDevice) -> Db<SimDevice> {
    let merge_operators = MergeOperators::default().with(merge::Append);
    let options = Options { segment_bytes: 64 << 10, background: false, merge_operators, ..Options::default() };
    Db::open_on(device.clone(), "/store", options).expect("the store opens")
}

fn machine() -> SimDevice {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    device
}

fn assert_counted(db: &Db<SimDevice>, when: &str) {
    let wrong = db.recount().expect("what is alive can be counted");
    assert!(wrong.is_empty(), "{when}: {}", wrong.join("; "));
}

/// Earlier programs counted the chunks of ordered tables in the manifest.
#[test]
fn counts_of_chunks_are_taken_over_from_a_manifest() {
    let (device, directory) = (SimDevice::new(1), tempfile::tempdir().expect("a directory can be made"));
    device.set_real_directory(directory.path());
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let db = open(&device);
    let table = db.create_table("t", IndexKind::Lmdb).expect("a table can be made");
    table.put(b"large", &vec![7; 300_000]).expect("a put works");
    let store = db.engine().segments.store;
    db.close().expect("a sound store can be closed");
    drop((db, table));

    let path = device.real_path(Path::new("/store/index/lmdb")).expect("LMDB has a place");
    let snapshots = Arc::new(Snapshots::new(Arc::new(Retention::default())));
    let index = LmdbIndex::open(&path, store, snapshots, Arc::<Ranges>::default(), false).expect("the index opens");
    let counted = index.live_chunks().expect("counts can be read");
    assert!(counted.len() >= 4, "chunks lie in {} segments", counted.len());
    index.set_live_chunks(&[]).expect("counts can be set");
    assert_eq!(index.live_chunks().expect("counts can be read"), []);
    index.close();
    drop(index);
    for name in ["/store/MANIFEST", "/store/MANIFEST.copy"] {
        let bytes = device.file_bytes(name).expect("the manifest is there");
        let mut manifest = Manifest::decode(&bytes, &store).expect("the manifest is sound");
        for segment in &mut manifest.segments {
            assert_eq!(segment.live_chunks, [], "LMDB counts them");
            let here = counted.iter().filter(|(_, chunks)| chunks.segment == segment.number);
            segment.live_chunks.extend(here.map(|(table, chunks)| (*table, chunks.bytes)));
        }
        replace_file(&device, Path::new(name), &manifest.encode(&store)).expect("the manifest can be replaced");
    }

    let db = open(&device);
    let ordered = db.engine().ordered.get(IndexKind::Lmdb).expect("it is open");
    let taken_over = ordered.committed.live_chunks().expect("counts can be read");
    assert_eq!(taken_over, counted, "as they were in the manifest");
    assert_counted(&db, "opened for the first time");
    db.close().expect("a sound store can be closed");
    drop(db);
    let db = open(&device);
    assert_counted(&db, "opened again");
}

fn put(table: &Table<SimDevice>, keys: std::ops::Range<u8>, value: &[u8]) {
    keys.for_each(|key| {
        table.put_with(&[key], value, Durability::Sync).expect("the machine runs");
    });
}

fn assert_has(table: &Table<SimDevice>, keys: std::ops::Range<u8>, value: Option<&[u8]>) {
    keys.for_each(|key| assert_eq!(table.get(&[key]).expect("the machine runs").as_deref(), value, "key {key}"));
}

/// Were they replayed, they would count twice until a merge has met both copies. Meanwhile a segment with a dead record could pass for
/// one without, and a delete go for which that record waits.
#[test]
fn what_runs_have_of_the_log_is_not_replayed() {
    let device = machine();
    let db = open(&device);
    let table = db.create_table("t", IndexKind::Lsm).expect("a table can be made");
    put(&table, 0..40, &[1; 900]);
    db.checkpoint().expect("the machine runs");
    put(&table, 20..60, &[2; 900]);
    table.delete(&[21]).expect("the machine runs");
    table.delete_range(&[30], &[35]).expect("the machine runs");
    let ordered = db.engine().ordered.get(IndexKind::Lsm).expect("it is open");
    db.engine().commit_memtable(ordered).expect("the machine runs");
    let committed = ordered.committed_sequence();
    put(&table, 50..70, &[3; 900]);
    let device = device.process_death();
    drop((db, table));

    let db = open(&device);
    let table = db.table("t").expect("it is there");
    let check = |table: &Table<SimDevice>| {
        assert_has(table, 0..20, Some(&[1; 900]));
        assert_has(table, 22..30, Some(&[2; 900]));
        assert_has(table, 21..22, None);
        assert_has(table, 30..35, None);
        assert_has(table, 35..50, Some(&[2; 900]));
        assert_has(table, 50..70, Some(&[3; 900]));
    };
    check(&table);
    let ordered = db.engine().ordered.get(IndexKind::Lsm).expect("it is open");
    assert_eq!(ordered.memtable.len(), 20, "no more than the runs lack");
    // Deletes from before are known to be committed, and wait for merges only.
    assert_eq!(ordered.committed_sequence(), committed);
    assert_counted(&db, "opened after a crash");
    check(&table);
}

/// The store as the next process opens it: this one dies when the frozen memtable is committed, and before the next one is.
fn reopened_after_commit_of(
    frozen: ImmutableMemtable,
    device: &SimDevice,
    (db, table): (Db<SimDevice>, Table<SimDevice>),
) -> (Db<SimDevice>, Table<SimDevice>) {
    let ordered = db.engine().ordered.get(IndexKind::Lsm).expect("it is open");
    *ordered.lock_commit().unfinished = Some(frozen);
    device.crash_inside(Phase::IndexCommit, 1, 1);
    assert!(db.engine().commit_memtable(ordered).is_err(), "the process dies");
    let device = device.process_death();
    drop((db, table));
    let db = open(&device);
    let table = db.table("t").expect("it is there");
    (db, table)
}

/// A memtable may have become immutable with records of batches that lie behind its position: they were published since that was asked.
#[test]
fn what_runs_have_ahead_of_their_position_is_not_replayed() {
    let device = machine();
    let db = open(&device);
    let table = db.create_table("t", IndexKind::Lsm).expect("a table can be made");
    put(&table, 0..40, &[1; 900]);
    put(&table, 60..70, &[1; 900]);
    db.checkpoint().expect("the machine runs");
    put(&table, 10..40, &[2; 900]);
    let engine = db.engine();
    let ordered = engine.ordered.get(IndexKind::Lsm).expect("it is open");
    let (position, next_sequence) = engine.commit.completed_end();
    put(&table, 20..50, &[3; 900]);
    table.delete(&[20]).expect("the machine runs");
    // Runs have it only once their position has passed it, whatever they have of the key with which it begins.
    table.delete_range(&[60], &[70]).expect("the machine runs");
    put(&table, 60..61, &[4; 900]);
    let frozen = ordered.memtable.freeze(position, next_sequence);
    let (db, table) = reopened_after_commit_of(frozen, &device, (db, table));
    let ordered = db.engine().ordered.get(IndexKind::Lsm).expect("it is open");
    assert_eq!(ordered.memtable.len(), 0, "the runs have everything");
    let check = |table: &Table<SimDevice>| {
        assert_has(table, 0..10, Some(&[1; 900]));
        assert_has(table, 10..20, Some(&[2; 900]));
        assert_has(table, 20..21, None);
        assert_has(table, 21..50, Some(&[3; 900]));
        assert_has(table, 60..61, Some(&[4; 900]));
        assert_has(table, 61..70, None);
    };
    check(&table);
    assert_counted(&db, "opened after a crash");
    check(&table);
}

/// Of two records of a key that came while a memtable became immutable the later one was published before, and the earlier one after.
#[test]
fn what_comes_late_does_not_hide_what_runs_have() {
    let device = machine();
    let db = open(&device);
    let merge = TableOptions { merge: Some(merge::Append.name().to_owned()), ..IndexKind::Lsm.into() };
    let table = db.create_table_with("t", merge).expect("a table can be made");
    put(&table, 0..4, b"old");
    db.checkpoint().expect("the machine runs");
    let engine = db.engine();
    let ordered = engine.ordered.get(IndexKind::Lsm).expect("it is open");
    let (position, next_sequence) = engine.commit.completed_end();
    // Memory has no value of this length, so what is merged into it stays an operand.
    put(&table, 1..2, &[2; 900]);
    table.merge_with(&[1], b"er", Durability::Sync).expect("the machine runs");
    let id = table.slot.generation().expect("it is there").id;
    let operand = ordered.recent(id, &[1]).newest().expect("it is there").clone();
    assert!(!operand.is_base(), "it was merged");
    let frozen = Memtable::default();
    let (key, superseded) = (encode_key(id, &[1]), &mut Superseded::new());
    frozen.insert(&key, operand.into(), superseded, |_| ());
    let (db, table) = reopened_after_commit_of(frozen.freeze(position, next_sequence), &device, (db, table));
    let expected = [&[2; 900][..], b"er"].concat();
    assert_has(&table, 1..2, Some(&expected));
    assert_has(&table, 2..4, Some(b"old"));
    assert_counted(&db, "opened after a crash");
    assert_has(&table, 1..2, Some(&expected));
}

/// A process may leave the header of an open batch in which there is nothing: if the next one dies too, its batch of that number counts.
#[test]
fn what_a_process_has_left_of_a_batch_hides_none_of_the_next_one() {
    for seed in 0..16 {
        let device = SimDevice::new(seed / 2);
        device.create_dir(Path::new("/store")).expect("a directory can be made");
        let db = open(&device);
        let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
        table.put_with(b"first", b"value", Durability::Sync).expect("a put works");
        if seed % 2 == 0 {
            db.engine().commit.lock().buffers.reverse();
        }
        let append = Append::new(Kind::Put, table.slot.generation().expect("it is there").id, b"never", b"value");
        let operation = Operation { generation: None, append, hash: 0, over: None };
        let appended = db.engine().append(&[operation], Durability::None, None, || false);
        assert!(appended.expect("nothing fails").is_none(), "nothing was permitted");
        let device = device.process_death();
        drop((db, table));
        let db = open(&device);
        let put = db.table("t").and_then(|table| table.put_with(b"second", b"value", Durability::None));
        put.expect("a put works");
        let device = device.process_death();
        drop(db);
        let db = open(&device);
        for key in [&b"first"[..], b"second"] {
            let found = db.table("t").and_then(|table| table.get(key)).expect("a get works");
            assert_eq!(found.as_deref(), Some(&b"value"[..]), "{} with seed {seed}", key.escape_ascii());
        }
    }
}
