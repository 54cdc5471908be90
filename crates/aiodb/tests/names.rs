//! Tables that get other names, and each other's.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aiodb::io::Device;
use aiodb::io::sim::{Call, SimDevice};
use aiodb::{BackupOptions, Batch, Db, Durability, Error, IndexKind, Options, Repository, Table, TableOptions};
use support::{KINDS, assert_get, damage, open, quiet, refusal, scratch};

const STORE: &str = "/store";

fn names<D: Device>(db: &Db<D>) -> Vec<String> {
    db.tables().into_iter().map(|(name, _)| name).collect()
}

fn put<D: Device>(table: &Table<D>, key: &[u8], value: &[u8]) {
    table.put_with(key, value, Durability::Sync).expect("a put works");
}

fn value<D: Device>(table: &Table<D>, key: &[u8]) -> Option<Vec<u8>> {
    table.get(key).expect("a get works")
}

/// A store on a simulated machine, with tables `one` and `other` of which each has a key that says so.
fn simulated(kind: IndexKind) -> (SimDevice, Db<SimDevice>) {
    let device = SimDevice::new(7);
    device.create_dir(Path::new(STORE)).expect("the machine runs");
    let db = reopened(&device);
    for name in ["one", "other"] {
        put(&db.create_table(name, kind).expect("a table can be made"), b"is", name.as_bytes());
    }
    (device, db)
}

fn reopened(device: &SimDevice) -> Db<SimDevice> {
    let options = Options { segment_bytes: 64 << 10, ..quiet() };
    Db::open_on(device.clone(), STORE, options).expect("the store can be opened")
}

/// A copy of another kind takes the place of its table, for a handle that was there before, and after another opening.
#[test]
fn a_copy_takes_the_place_of_its_table() {
    for from in KINDS {
        for to in KINDS {
            let directory = scratch();
            let (db, table) = open(directory.path(), from, &quiet());
            for number in 0..100u8 {
                put(&table, &[number], b"before");
            }
            let options = TableOptions { kind: to, ..from.into() };
            let copy = db.copy_table(&table, "copy", options, &mut |_, _| {}).expect("it is copied");
            put(&table, b"late", b"not in the copy");
            let snapshot = db.snapshot().expect("a snapshot can be taken");
            db.swap_tables("t", "copy").expect("tables can be swapped");
            assert_eq!((table.kind(), copy.kind()), (to, from), "handles follow the name");
            assert_eq!(names(&db), ["copy", "t"]);
            put(&table, &[1], b"after");
            put(&copy, &[2], b"in the former one");
            let check = |table: &Table, copy: &Table, when: &str| {
                assert_get(table, &[1], Some(b"after"), when);
                assert_get(table, &[2], Some(b"before"), when);
                assert_get(table, b"late", None, when);
                assert_get(copy, &[1], Some(b"before"), when);
                assert_get(copy, &[2], Some(b"in the former one"), when);
                assert_get(copy, b"late", Some(b"not in the copy"), when);
            };
            check(&table, &copy, "at once");
            let seen = |table, key: &[u8]| snapshot.get(table, key).expect("a snapshot can be asked");
            assert_eq!(
                seen(&table, b"late").as_deref(),
                Some(&b"not in the copy"[..]),
                "{from:?}: a snapshot from before"
            );
            assert_eq!(seen(&copy, b"late"), None, "{from:?}: a snapshot from before");
            assert_eq!(seen(&table, &[1]).as_deref(), Some(&b"before"[..]));
            drop((snapshot, table, copy));
            db.close().expect("it closes");
            let (db, table) = open(directory.path(), to, &quiet());
            check(&table, &db.table("copy").expect("it is there"), "after another opening");
            db.drop_table("copy").expect("it can be dropped");
            db.truncate_table("t").expect("it can be emptied");
            assert_eq!((names(&db), value(&table, &[1])), (vec!["t".to_string()], None));
            assert!(damage(&db).is_empty());
        }
    }
}

#[test]
fn a_table_gets_another_name() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        put(&table, b"key", b"value");
        db.create_table("taken", kind).expect("a table can be made");
        let refused = |outcome, what: &str| refusal(outcome, what);
        assert!(matches!(refused(db.rename_table("t", "taken"), "a name of a table"), Error::TableExists { .. }));
        assert!(matches!(refused(db.rename_table("t", "t"), "its own name"), Error::TableExists { .. }));
        assert!(matches!(refused(db.rename_table("none", "new"), "no table"), Error::NoSuchTable { .. }));
        assert!(matches!(refused(db.swap_tables("t", "none"), "no table"), Error::NoSuchTable { .. }));
        assert!(matches!(refused(db.rename_table("t", ""), "no name"), Error::TableName { .. }));
        let ingest = db.ingest("made", IndexKind::Lsm.into()).expect("a table can be ingested");
        assert!(matches!(refused(db.rename_table("t", "made"), "a table to be"), Error::TableBeingMade { .. }));
        drop(ingest);
        db.swap_tables("t", "t").expect("nothing changes");
        db.rename_table("t", "new").expect("it can be renamed");
        assert!(matches!(refusal(table.get(b"key"), "the old name"), Error::NoSuchTable { name } if name == "t"));
        assert_eq!(table.kind(), kind, "what had the name");
        assert_eq!(names(&db), ["new", "taken"]);
        let renamed = db.table("new").expect("it is there");
        assert_get(&renamed, b"key", Some(b"value"), "under its new name");
        // The name is free, and a handle from before is none on the next table that has it.
        let next = db.create_table("t", kind).expect("the name is free");
        assert_eq!(value(&next, b"key"), None);
        put(&next, b"key", b"of the next one");
        assert!(matches!(refusal(table.get(b"key"), "the old handle"), Error::NoSuchTable { .. }));
        drop((table, renamed, next));
        db.close().expect("it closes");
        let (db, table) = open(directory.path(), kind, &quiet());
        assert_get(&table, b"key", Some(b"of the next one"), "after another opening");
        assert_get(&db.table("new").expect("it is there"), b"key", Some(b"value"), "after another opening");
    }
}

/// What was acknowledged under a name is found under it, whatever fails in the swap, and whether the power is cut after it.
#[test]
fn a_swap_that_fails_loses_no_write() {
    for kind in [IndexKind::Hash, IndexKind::Lsm] {
        let (mut swapped, mut refused, mut closed) = (0, 0, 0);
        for call in [Call::Write, Call::Sync] {
            for skip in 0..24 {
                for times in [1, 2, u64::MAX] {
                    let (device, db) = simulated(kind);
                    let (one, other) = (db.table("one").expect("it is there"), db.table("other").expect("it is there"));
                    device.fail(call, skip, times, |_| true);
                    let outcome = db.swap_tables("one", "other");
                    device.clear_faults();
                    let what = format!("{kind:?}, {times} of {call:?} after {skip}: {outcome:?}");
                    let is = if outcome.is_ok() { ["other", "one"] } else { ["one", "other"] };
                    assert_eq!(value(&one, b"is").as_deref(), Some(is[0].as_bytes()), "{what}");
                    assert_eq!(value(&other, b"is").as_deref(), Some(is[1].as_bytes()), "{what}");
                    let is_written = one.put_with(b"later", b"one", Durability::Sync).is_ok();
                    let device = device.power_cut();
                    drop((one, other, db));
                    let db = reopened(&device);
                    let (one, other) = (db.table("one").expect("it is there"), db.table("other").expect("it is there"));
                    let found = [&one, &other].map(|table| value(table, b"is").expect("it was durable"));
                    let known = [is.map(|name| name.as_bytes().to_vec()), [b"other".to_vec(), b"one".to_vec()]];
                    match (&outcome, is_written) {
                        (Err(_), false) => assert!(known.contains(&found), "{what}"),
                        _ => assert_eq!(found, known[0], "{what}"),
                    }
                    if is_written {
                        assert_eq!(value(&one, b"later").as_deref(), Some(&b"one"[..]), "{what}");
                        assert_eq!(value(&other, b"later"), None, "{what}");
                    }
                    swapped += u32::from(outcome.is_ok());
                    refused += u32::from(outcome.is_err() && is_written);
                    closed += u32::from(outcome.is_err() && !is_written);
                }
            }
        }
        assert!(swapped > 0 && refused > 0 && closed > 0, "{kind:?}: {swapped} {refused} {closed}");
    }
}

/// A restore point has the names that its log goes on with.
#[test]
fn a_backup_beside_swaps_is_of_one_moment() {
    for kind in KINDS {
        let (directory, repository, target) = (scratch(), scratch(), scratch());
        let (db, table) = open(directory.path(), kind, &quiet());
        let other = db.create_table("other", kind).expect("a table can be made");
        for number in 0..2000u16 {
            for (table, value) in [(&table, b"of t"), (&other, b"of o")] {
                table.put_with(&number.to_be_bytes(), value, Durability::None).expect("a put works");
            }
        }
        let state = |db: &Db| {
            let keys = [b"swapped".to_vec(), 0u16.to_be_bytes().to_vec(), 1999u16.to_be_bytes().to_vec()];
            let of = |name| db.table(name).expect("it is there");
            ["t", "other"].map(|name| keys.each_ref().map(|key| value(&of(name), key)))
        };
        // What a program does with its tables while their indexes, or the log, are copied.
        let mut states = vec![state(&db)];
        let mut beside = |_, _| {
            if states.len() < 3 {
                db.swap_tables("t", "other").expect("tables can be swapped");
                db.truncate_table("t").expect("it can be emptied");
                put(&table, b"swapped", &[states.len() as u8]);
                states.push(state(&db));
            }
        };
        db.backup(repository.path(), &BackupOptions::default(), &mut beside).expect("a backup can be made");
        assert!(states.len() > 1, "{kind:?}: nothing was copied");
        let repository = Repository::open(repository.path()).expect("it is one");
        repository.restore(None, target.path(), &mut |_, _| {}).expect("it can be restored");
        let restored = state(&Db::open(target.path(), quiet()).expect("it opens"));
        assert!(states.contains(&restored), "{kind:?}: {restored:?} was never so: {states:?}");
        // What comes while the log is copied comes after the restore point; LMDB's file is copied in one.
        assert!(
            kind == IndexKind::Lmdb || restored != states[0],
            "{kind:?}: tables were swapped while their indexes were copied"
        );
    }
}

/// Where names change faster than indexes are copied, no restore point is made, and the next backup makes one.
#[test]
fn a_backup_ends_beside_endless_swaps() {
    let (directory, repository) = (scratch(), scratch());
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    db.create_table("other", IndexKind::Hash).expect("a table can be made");
    let puts = AtomicU64::new(0);
    let put_another = || put(&table, &puts.fetch_add(1, Ordering::Relaxed).to_be_bytes(), b"value");
    put_another();
    let mut beside = |_, _| {
        put_another();
        db.swap_tables("t", "other").expect("tables can be swapped");
        put_another();
    };
    let refused = db.backup(repository.path(), &BackupOptions::default(), &mut beside);
    assert!(matches!(refusal(refused, "a backup of no moment"), Error::TablesRenamed));
    let points = || Repository::open(repository.path()).expect("it is one").points().len();
    assert_eq!(points(), 0);
    db.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {}).expect("a backup can be made");
    assert_eq!(points(), 1);
}

/// A value that is written piece by piece, and a copy that is filled, belong to the table that they were begun in.
#[test]
fn what_takes_long_stays_in_its_table() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    let other = db.create_table("other", IndexKind::Hash).expect("a table can be made");
    let writer = table.write_stream(b"key").expect("a stream can be begun");
    db.swap_tables("t", "other").expect("tables can be swapped");
    assert!(matches!(refusal(writer.finish(), "a stream into another table"), Error::TableEmptied { .. }));
    assert_eq!([&table, &other].map(|table| value(table, b"key")), [None, None]);
    for number in 0..10u8 {
        put(&table, &[number], b"value");
    }
    let mut swap = |_, _| {
        // At the first record: the copy is there under its name, and puts go on to fill it.
        let _ = db.swap_tables("copy", "other");
    };
    let copied = db.copy_table(&table, "copy", IndexKind::Hash.into(), &mut swap);
    assert!(matches!(refusal(copied, "a copy that is elsewhere"), Error::TableEmptied { .. }));
    assert_eq!(
        value(&db.table("copy").expect("it has the name now"), &[5]),
        None,
        "nothing was put into another table"
    );
}

/// A program goes on with its handle while another thread swaps: each put is in one table, as a whole batch is in those of one moment.
#[test]
fn writers_go_on_beside_swaps() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let other = db.create_table("other", kind).expect("a table can be made");
        let written = Arc::new(AtomicU64::new(0));
        std::thread::scope(|scope| {
            let writing = scope.spawn(|| {
                for number in 0..600u64 {
                    let mut batch = Batch::new();
                    batch.put(&table, &number.to_be_bytes(), b"t").expect("it is short");
                    batch.put(&other, &number.to_be_bytes(), b"o").expect("it is short");
                    db.write_with(&batch, Durability::None).expect("a batch can be written");
                    written.store(number + 1, Ordering::Relaxed);
                }
            });
            while !writing.is_finished() {
                db.swap_tables("t", "other").expect("tables can be swapped");
            }
        });
        assert_eq!(written.load(Ordering::Relaxed), 600);
        for number in 0..600u64 {
            let mut found = [&table, &other].map(|table| value(table, &number.to_be_bytes()));
            found.sort();
            assert_eq!(found, [Some(b"o".to_vec()), Some(b"t".to_vec())], "{kind:?}: batch {number}");
        }
        assert!(damage(&db).is_empty());
    }
}
