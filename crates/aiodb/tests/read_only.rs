//! Stores that are opened for reading only: everything can be read, nothing changes, and nobody writes meanwhile.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Db, Durability, Error, IndexKind, Options, Step};
use support::{
    KINDS, Mount, Role, assert_get, copy_tree, open, open_several, quiet, refusal, say, scratch, scratches, small,
    value,
};

/// What a process does as a child of a test.
#[test]
fn child() {
    let Some(role) = support::role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    let ["read", path] = role[..] else { panic!("no such role: {role:?}") };
    check(&Db::open(path, reading()).expect("several processes may read at once"), "in another process");
    say("read");
}

fn reading() -> Options {
    Options { read_only: true, ..small() }
}

/// Every file below a directory: its bytes, and when they changed.
fn files(directory: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).expect("the directory can be listed") {
        let entry = entry.expect("the directory can be listed");
        let metadata = entry.metadata().expect("the entry can be looked at");
        if metadata.is_dir() {
            found.extend(files(&entry.path()));
        } else {
            let changed = metadata.modified().expect("the file system keeps times");
            found.insert(entry.path(), (std::fs::read(entry.path()).expect("the file can be read"), changed));
        }
    }
    found
}

fn assert_same(directory: &Path, before: &BTreeMap<PathBuf, (Vec<u8>, SystemTime)>, when: &str) {
    let after = files(directory);
    let changed: Vec<_> =
        before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
    assert!(changed.is_empty(), "{when}: these files changed: {changed:?}");
}

/// Reads everything that [`fill`] put.
fn check(db: &Db, when: &str) {
    let table = db.table("t").expect("the table is there");
    for number in 0..2000u64 {
        let wanted = match number {
            0..100 => Some(b"newer".to_vec()),
            100..200 => None,
            _ => Some(value(number, 1000 + number as usize)),
        };
        assert_get(&table, &number.to_be_bytes(), wanted.as_deref(), when);
    }
    let keys: Vec<_> = (0..300u64).map(u64::to_be_bytes).collect();
    let found = table.get_many(&keys).expect("a reader works");
    assert_eq!(found.iter().filter(|value| value.is_none()).count(), 100, "{when}");
    let report = db.verify(&mut |_, _| {}).expect("a check goes through");
    assert!(report.damage.is_empty(), "{when}: a check finds no damage, but {:?}", report.damage);
    let stats = db.stats();
    assert_eq!(stats.trouble, None, "{when}");
}

/// A checkpoint, and something after it that has to be replayed.
fn fill(db: &Db, kind: IndexKind) {
    let table = db.table_or_create("t", kind).expect("a table can be made");
    for number in 0..2000u64 {
        let put = table.put_with(&number.to_be_bytes(), &value(number, 1000 + number as usize), Durability::None);
        put.expect("a put works");
    }
    db.checkpoint().expect("a checkpoint can be made");
    for number in 0..100u64 {
        table.put_with(&number.to_be_bytes(), b"newer", Durability::None).expect("a put works");
        table.delete_with(&(number + 100).to_be_bytes(), Durability::None).expect("a delete works");
    }
    db.sync().expect("everything can be flushed");
}

#[test]
fn everything_is_there_and_nothing_changes() {
    for kind in KINDS {
        for closed in [true, false] {
            let when = format!("{}, closed {closed}", kind.name());
            let (original, image) = (scratch(), scratch());
            let (db, table) = open(original.path(), kind, &quiet());
            fill(&db, kind);
            if closed {
                db.close().expect("a sound store can be closed");
            }
            // What a kill leaves behind, if it was not closed.
            copy_tree(original.path(), image.path());
            std::fs::write(image.path().join("LOCK"), "process 1 (gone)").expect("a file can be written");
            drop((db, table));
            let before = files(image.path());
            let db = Db::open(image.path(), reading()).unwrap_or_else(|error| panic!("{when}: {error}"));
            check(&db, &when);
            assert_eq!(db.stats().recovered_batches > 0, !closed, "{when}: replayed in memory");
            let mut second = Role::start(&["read", image.path().to_str().expect("the path is text")]);
            assert_eq!(second.line().as_deref(), Some("read"), "{when}: several processes may read at once");
            db.close().expect("a store can be closed");
            drop(db);
            assert_eq!(second.line(), None, "{when}: the other process has ended");
            assert_same(image.path(), &before, &when);
            // Afterwards it can be written as ever.
            let (db, table) = open(image.path(), kind, &quiet());
            table.put(b"after", b"wards").expect("a put works");
            check(&db, &when);
        }
    }
}

#[test]
fn every_change_is_refused() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        table.put(b"k", b"v").expect("a put works");
        db.close().expect("a sound store can be closed");
        drop((db, table));
        let before = files(directory.path());
        let db = Db::open(directory.path(), reading()).expect("a store can be read");
        let table = db.table("t").expect("the table is there");
        let mut batch = Batch::new();
        batch.put(&table, b"k", b"w").expect("the operation is in its limits");
        let large = vec![7; 3 << 20];
        type Change<'a> = (&'a str, &'a dyn Fn() -> aiodb::Result<()>);
        let changes: [Change<'_>; 12] = [
            ("a put", &|| table.put(b"k", b"w").map(drop)),
            ("a put without waiting", &|| table.put_with(b"k", b"w", Durability::None).map(drop)),
            ("a put in parts", &|| table.put(b"k", &large).map(drop)),
            ("a delete", &|| table.delete(b"k").map(drop)),
            ("a batch", &|| db.write(&batch).map(drop)),
            ("a new table", &|| db.create_table("u", kind).map(drop)),
            ("another kind of table", &|| db.create_table("u", KINDS[usize::from(kind == KINDS[0])]).map(drop)),
            ("a truncate", &|| db.truncate_table("t")),
            ("a drop", &|| db.drop_table("t")),
            ("a flush", &|| db.sync()),
            ("a checkpoint", &|| db.checkpoint()),
            ("background work", &|| db.step(Step::Prepare)),
        ];
        for (what, change) in changes {
            let error = refusal(change(), what);
            let named = matches!(&error, Error::ReadOnly { path } if path == directory.path());
            assert!(named, "{}: {what} is refused as such, not: {error:?}", kind.name());
        }
        assert_get(&table, b"k", Some(b"v"), "after all that");
        drop((batch, table, db));
        assert_same(directory.path(), &before, kind.name());
    }
}

#[test]
fn nobody_writes_while_others_read() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    table.put(b"k", b"v").expect("a put works");
    let error = refusal(Db::open(directory.path(), reading()), "a store that is open for writing");
    assert!(matches!(&error, Error::Locked { path, .. } if path == directory.path()), "in use, not: {error:?}");
    drop((db, table));
    let readers: Vec<_> =
        (0..3).map(|_| Db::open(directory.path(), reading()).expect("several may read at once")).collect();
    for left in (0..3).rev() {
        let error = refusal(Db::open(directory.path(), quiet()), "writing while others read");
        let said = matches!(&error, Error::Locked { holder, .. } if holder.contains("only read"));
        assert!(said, "{} readers: in use by them, not: {error:?}", left + 1);
        readers[left].close().expect("a store can be closed");
    }
    drop(open(directory.path(), IndexKind::Hash, &quiet()));
}

#[test]
fn what_is_not_in_the_log_yet_must_be_recovered_first() {
    for kind in KINDS {
        let (original, image) = (scratch(), scratch());
        let (_db, table) = open(original.path(), kind, &quiet());
        table.put_with(b"k", b"acknowledged", Durability::None).expect("a put works");
        copy_tree(original.path(), image.path());
        let error = refusal(Db::open(image.path(), reading()), "a store with pending records");
        assert!(
            matches!(&error, Error::Unrecovered { path, .. } if path == image.path()),
            "it says so, not: {error:?}"
        );
        drop(open(image.path(), kind, &quiet()));
        let db = Db::open(image.path(), reading()).expect("it was recovered");
        let table = db.table("t").expect("the table is there");
        assert_get(&table, b"k", Some(b"acknowledged"), kind.name());
    }
}

#[test]
fn a_lost_index_must_be_made_again_first() {
    let lost = [(IndexKind::Lmdb, "index/lmdb"), (IndexKind::Hash, "index"), (IndexKind::Lsm, "index/runs")];
    for (kind, lost) in lost {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        fill(&db, kind);
        db.close().expect("a sound store can be closed");
        drop((db, table));
        let lost = directory.path().join(lost);
        std::fs::remove_dir_all(&lost).expect("it can be removed");
        std::fs::create_dir_all(&lost).expect("it can be made anew");
        let error = refusal(Db::open(directory.path(), reading()), "a store without an index");
        assert!(
            matches!(&error, Error::Unrecovered { .. } | Error::Index { .. }),
            "{}: it says so, not: {error:?}",
            kind.name()
        );
        drop(open(directory.path(), kind, &quiet()));
        check(&Db::open(directory.path(), reading()).expect("it was recovered"), kind.name());
    }
}

#[test]
fn a_read_only_file_system() {
    for kind in KINDS {
        let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=64m", "tmpfs"]) else { return };
        let (original, store) = (scratch(), mount.path().join("store"));
        let (db, table) = open(original.path(), kind, &quiet());
        fill(&db, kind);
        // Without its lock, as a backup is, and not closed.
        copy_tree(original.path(), &store);
        mount.remount("ro");
        let read = Db::open(&store, reading()).unwrap_or_else(|error| panic!("{}: {error}", kind.name()));
        check(&read, kind.name());
        read.close().expect("a store can be closed");
        drop((db, table));
    }
}

#[test]
fn several_directories() {
    for kind in KINDS {
        let directories = scratches(2);
        let (db, table) = open_several(&directories, kind, &quiet());
        fill(&db, kind);
        db.close().expect("a sound store can be closed");
        drop((db, table));
        let before: Vec<_> = directories.iter().map(|directory| files(directory.path())).collect();
        let paths = [directories[1].path(), directories[0].path()];
        let db = Db::open_several(&paths, reading()).expect("the store can be read");
        check(&db, kind.name());
        drop(db);
        for (directory, before) in directories.iter().zip(&before) {
            assert_same(directory.path(), before, kind.name());
        }
    }
}

#[test]
fn stores_that_are_not_there_are_not_made() {
    let directory = scratch();
    for path in [directory.path().to_path_buf(), directory.path().join("nowhere")] {
        let error = refusal(Db::open(&path, reading()), "a store that is not there");
        assert!(matches!(&error, Error::NoStore { path: said } if *said == path), "there is none, not: {error:?}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("it can be listed").count(), 0, "nothing is made");
    let error = refusal(Db::open(directory.path(), Options { rebuild_index: true, ..reading() }), "a rebuild");
    assert!(matches!(&error, Error::Option { option: "rebuild_index", .. }), "that option, not: {error:?}");
    drop(Db::open(directory.path(), quiet()).expect("a store can be made"));
    let empty = Db::open(directory.path(), reading()).expect("a store without tables can be read");
    assert!(empty.tables().is_empty());
}

/// On the simulated disk, which counts: not one write or flush.
#[test]
fn nothing_is_written() {
    let device = SimDevice::new(7);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let options = Options { segment_bytes: 64 << 10, ..quiet() };
    let db = Db::open_on(device.clone(), "/store", options.clone()).expect("a store can be made");
    let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
    for number in 0..200u64 {
        table.put(&number.to_be_bytes(), &value(number, 1000)).expect("a put works");
    }
    let device = device.process_death();
    drop((db, table));
    let before = device.counters();
    let db = Db::open_on(device.clone(), "/store", Options { read_only: true, ..options }).expect("it can be read");
    let table = db.table("t").expect("the table is there");
    for number in 0..200u64 {
        let found = table.get(&number.to_be_bytes()).expect("a get works");
        assert_eq!(found, Some(value(number, 1000)));
    }
    assert!(db.stats().recovered_batches >= 200, "the log was replayed");
    db.close().expect("a store can be closed");
    let after = device.counters();
    assert_eq!((before.writes, before.syncs), (after.writes, after.syncs));
}
