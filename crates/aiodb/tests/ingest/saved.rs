//! Backups of stores with tables that are ingested, and what salvage finds of these.

use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{BackupOptions, Db, Error, IndexKind, Repository, Step};

use super::{Contents, all, begun, check, contents, ingest, open};
use crate::support::{copy_tree, damage, quiet, scratch};

/// A backup that has copied the runs before the edit, and the log after the table was made, has no runs of it.
#[test]
fn backups_have_all_of_it_or_nothing() {
    for moment in 0..4 {
        let device = SimDevice::new(1);
        let (db, contents) = (open(&device), contents(1, 200));
        let before = ingest(&db, "before", &contents).expect("the table is made");
        before.put(b"z", b"z").expect("a put works");
        let mut ingesting = Some(begun(&db, "t", &contents));
        let mut finish = |now: usize| {
            if moment == now {
                ingesting.take().expect("once").finish().expect("the table is made");
            }
        };
        finish(0);
        let backups = SimDevice::new(2);
        backups.create_dir(Path::new("/backups")).expect("a directory can be made");
        let mut calls = 0;
        let mut progress = |_, _| {
            calls += 1;
            // The first piece is of a run.
            finish(if calls == 1 { 1 } else { 2 + calls });
        };
        db.backup_on(backups.clone(), "/backups", &BackupOptions::default(), &mut progress).expect("it is made");
        finish(2);
        let restored = SimDevice::new(3);
        let repository = Repository::open_on(backups, "/backups").expect("it opens");
        restored.create_dir(Path::new("/store")).expect("a directory can be made");
        repository.restore_on(None, restored.clone(), "/store", &mut |_, _| {}).expect("it is restored");
        let there = open(&restored);
        let before: Contents =
            contents.iter().map(|(k, v)| (k.clone(), v.clone())).chain([(b"z".to_vec(), b"z".to_vec())]).collect();
        check(&there, "before", &before, "the other table");
        match there.table("t") {
            Ok(_) => check(&there, "t", &contents, &format!("finished at moment {moment}")),
            Err(error) => assert!(moment >= 2 && matches!(error, Error::NoSuchTable { .. }), "{moment}: {error}"),
        }
        if moment < 2 {
            assert!(there.table("t").is_ok(), "it was finished before the end of the log");
        }
    }
}

#[test]
fn salvage_knows_it() {
    let directory = scratch();
    let (path, contents) = (directory.path().join("store"), contents(1, 200));
    let db = Db::open(&path, quiet()).expect("the store opens");
    ingest(&db, "t", &contents).expect("the table is made");
    let _unfinished = begun(&db, "u", &contents);
    db.sync().expect("it can be flushed");
    let copy = directory.path().join("copy");
    copy_tree(&path, &copy);
    let out = directory.path().join("out");
    aiodb::salvage(&copy, &out, &mut |_, _| {}).expect("it can be salvaged");
    let salvaged = Db::open(&out, quiet()).expect("the store opens");
    let names: Vec<_> = salvaged.tables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["t"], "no table is made of one that was not finished");
    assert!(all(&salvaged.table("t").expect("it is there")) == contents);
    assert!(damage(&salvaged).is_empty());
}

/// Its id is older than the checkpoint then, as that of a table that was dropped.
#[test]
fn salvage_finds_one_whose_making_is_lost() {
    let directory = scratch();
    let (path, contents) = (directory.path().join("store"), contents(1, 200));
    let db = Db::open(&path, quiet()).expect("the store opens");
    let gone = db.create_table("gone", IndexKind::Lsm).expect("a table can be made");
    gone.put(b"key", b"value").expect("a put works");
    let ingesting = begun(&db, "the ingested one", &contents);
    db.drop_table("gone").expect("it can be dropped");
    db.step(Step::Reclaim).expect("a step works");
    db.checkpoint().expect("a checkpoint can be made");
    ingesting.finish().expect("the table is made");
    let copy = directory.path().join("copy");
    copy_tree(&path, &copy);
    assert!(damage_name(&copy, b"the ingested one") > 0);
    let out = directory.path().join("out");
    let report = aiodb::salvage(&copy, &out, &mut |_, _| {}).expect("it can be salvaged");
    let salvaged = Db::open(&out, quiet()).expect("the store opens");
    let names: Vec<_> = salvaged.tables().into_iter().map(|(name, _)| name).collect();
    assert_eq!((&names[..], report.tables.len()), (&["table-017".to_string()][..], 1), "{report:?}");
    assert!(all(&salvaged.table("table-017").expect("it is there")) == contents);
    assert!(report.notes.iter().any(|note| note.contains("table 17")), "{report:?}");
}

/// Changes a byte of each place in the log where this name stands; returns how many there are.
fn damage_name(store: &Path, name: &[u8]) -> usize {
    let mut damaged = 0;
    for directory in ["log", "pending"] {
        let Ok(files) = std::fs::read_dir(store.join(directory)) else { continue };
        for path in files.map(|file| file.expect("it can be listed").path()) {
            let mut bytes = std::fs::read(&path).expect("it can be read");
            let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(name)).collect();
            places.iter().for_each(|at| bytes[*at] ^= 1);
            damaged += places.len();
            std::fs::write(&path, bytes).expect("it can be written");
        }
    }
    damaged
}
