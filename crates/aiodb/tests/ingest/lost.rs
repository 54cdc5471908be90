//! Indexes that are lost or damaged: an ingested table is made again from the log, wherever the checkpoint lies.

use std::path::{Path, PathBuf};

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Db, Durability, Error, IndexKind, Options, Step};

use super::{Contents, check, contents, fill, ingest, open, options};
use crate::support::refusal;

/// Removes the files of runs.
fn lose_runs(device: &SimDevice) {
    let paths: Vec<PathBuf> = device.file_names();
    for path in paths.into_iter().filter(|path| path.starts_with("/store/index/runs")) {
        device.remove(&path).expect("it can be removed");
    }
    device.sync_dir(Path::new("/store/index/runs")).expect("it can be flushed");
}

/// A store with an ingested table that its last checkpoint does not know, part of it before that checkpoint; and puts after it.
fn crashed(has_other: bool) -> (SimDevice, Contents) {
    let device = SimDevice::new(1);
    let (db, mut contents) = (open(&device), contents(1, 150));
    if has_other {
        let other = db.create_table("other", IndexKind::Lsm).expect("a table can be made");
        other.put(b"key", b"value").expect("a put works");
    }
    let mut ingest = db.ingest("t", IndexKind::Lsm.into()).expect("it begins");
    for (number, (key, value)) in contents.iter().enumerate() {
        ingest.put(key, value).expect("it is taken");
        if number == 80 {
            db.checkpoint().expect("a checkpoint can be made");
        }
    }
    let table = ingest.finish().expect("the table is made");
    for number in [3, 50, 149] {
        let key = format!("key {number:06}").into_bytes();
        table.delete_with(&key, Durability::None).expect("a delete works");
        contents.remove(&key);
    }
    table.put_with(b"key 000004", b"new", Durability::Sync).expect("a put works");
    contents.insert(b"key 000004".to_vec(), b"new".to_vec());
    let device = device.power_cut();
    drop((db, table));
    (device, contents)
}

#[test]
fn it_is_there_without_a_look_at_the_log() {
    for has_other in [false, true] {
        let (device, contents) = crashed(has_other);
        let db = open(&device);
        assert!(!db.stats().rebuilt_indexes, "the runs have it");
        check(&db, "t", &contents, "after a crash");
    }
}

#[test]
fn lost_runs_are_made_again() {
    for has_other in [false, true] {
        let (device, contents) = crashed(has_other);
        lose_runs(&device);
        let db = open(&device);
        assert!(db.stats().rebuilt_indexes, "the log was read again");
        check(&db, "t", &contents, "made again");
        let device = device.power_cut();
        drop(db);
        let db = open(&device);
        assert!(!db.stats().rebuilt_indexes);
        check(&db, "t", &contents, "and there");
    }
}

#[test]
fn a_crash_while_they_are_made_again_loses_nothing() {
    for has_other in [false, true] {
        for step in 1.. {
            let (device, contents) = crashed(has_other);
            lose_runs(&device);
            device.crash_after(step);
            let opened = Db::open_on(device.clone(), "/store", options());
            if !device.has_crashed() {
                opened.expect("nothing fails");
                break;
            }
            let next = device.power_cut();
            drop(opened);
            check(&open(&next), "t", &contents, &format!("a crash at step {step}"));
        }
    }
}

#[test]
fn reading_alone_does_not_make_them_again() {
    let (device, _) = crashed(true);
    lose_runs(&device);
    let opened = Db::open_on(device, "/store", Options { read_only: true, ..options() });
    assert!(matches!(refusal(opened, "an opening without an index"), Error::Unrecovered { .. } | Error::Index { .. }));
}

#[test]
fn reading_alone_sees_it() {
    let (device, contents) = crashed(true);
    let db = Db::open_on(device, "/store", Options { read_only: true, ..options() }).expect("it opens for reading");
    assert!(super::all(&db.table("t").expect("it is there")) == contents);
    assert!(matches!(refusal(db.ingest("u", IndexKind::Lsm.into()), "an ingest"), Error::ReadOnly { .. }));
}

/// A damaged block of an ingested run is damage for the reads that meet it, and the log has all of it.
#[test]
fn damage_of_an_ingested_run_is_reported_and_repaired() {
    let device = SimDevice::new(1);
    let (db, contents) = (open(&device), contents(1, 400));
    let table = ingest(&db, "t", &contents).expect("the table is made");
    let is_run = |path: &PathBuf| path.extension().is_some_and(|end| end == "run");
    let run = device.file_names().into_iter().find(is_run).expect("there is a file of a run");
    device.corrupt(&run, 5000, 1);
    let (mut found, mut damaged) = (0, 0);
    for (key, value) in &contents {
        match table.get(key) {
            Ok(got) => {
                assert!(got.as_ref() == Some(value), "what is found is right, and nothing is absent");
                found += 1;
            }
            Err(Error::Corruption { path, .. }) => {
                assert_eq!(path, run);
                damaged += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert!(found > 0 && damaged > 0, "{found} keys are found, {damaged} lie in the damaged block");
    assert!(!db.verify(&mut |_, _| {}).expect("the check goes through").damage.is_empty());
    db.close().expect("it closes");
    let next = device.process_death();
    drop((db, table));
    let db = Db::open_on(next, "/store", Options { rebuild_index: true, ..options() }).expect("it opens again");
    check(&db, "t", &contents, "made again from the log");
}

/// A table that was ingested, dropped and taken out of the runs since the checkpoint is gone.
#[test]
fn a_dropped_one_does_not_come_back() {
    let device = SimDevice::new(1);
    let (db, contents) = (open(&device), contents(1, 100));
    db.create_table("other", IndexKind::Lsm).expect("a table can be made");
    db.checkpoint().expect("a checkpoint can be made");
    ingest(&db, "t", &contents).expect("the table is made");
    db.drop_table("t").expect("it can be dropped");
    for _ in 0..50 {
        db.step(Step::Reclaim).expect("a step works");
    }
    let mut unfinished = db.ingest("t", IndexKind::Lsm.into()).expect("it begins");
    fill(&mut unfinished, &contents).expect("all is taken");
    let device = device.power_cut();
    drop((db, unfinished));
    let db = open(&device);
    assert!(matches!(refusal(db.table("t"), "a dropped table"), Error::NoSuchTable { .. }));
    (0..50).for_each(|_| db.step(Step::Upkeep).expect("a step works"));
    assert!(db.recount().expect("it can be counted").is_empty());
    db.close().expect("it closes");
}

/// Tables that were ingested since the checkpoint, and one of them emptied. The runs have nothing of that one any more, and are believed: were
/// its records published again, the delete would not be.
#[test]
fn an_emptied_one_stays_empty() {
    let device = SimDevice::new(1);
    let open = |device: &SimDevice| {
        let options = Options { checkpoint_bytes: u64::MAX, ..options() };
        Db::open_on(device.clone(), "/store", options).expect("it opens")
    };
    drop(super::open(&device));
    let device = device.process_death();
    let (db, contents) = (open(&device), contents(1, 100));
    db.create_table("other", IndexKind::Lsm).expect("a table can be made");
    db.checkpoint().expect("a checkpoint can be made");
    let table = ingest(&db, "t", &contents).expect("the table is made");
    let kept = ingest(&db, "u", &contents).expect("the table is made");
    let first = contents.keys().next().expect("there are some").clone();
    kept.put(&first, b"later").expect("a put works");
    table.delete_range(b"k", b"").expect("all can be deleted");
    while db.stats().waiting_range_deletes > 0 {
        db.step(Step::Upkeep).expect("a step works");
    }
    db.sync().expect("the log can be flushed");
    let device = device.process_death();
    drop((db, table, kept));
    let db = open(&device);
    assert!(db.stats().recovered_batches > 0, "there was no checkpoint");
    assert!(super::all(&db.table("t").expect("it is there")).is_empty());
    let kept = db.table("u").expect("it is there");
    assert_eq!(kept.get(&first).expect("a get works").as_deref(), Some(&b"later"[..]));
    assert_eq!(super::all(&kept).len(), contents.len());
    assert!(db.recount().expect("it can be counted").is_empty());
    db.close().expect("it closes");
}
