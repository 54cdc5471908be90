//! Crashes at every step of an ingest, and of the recovery after it.

use aiodb::io::sim::SimDevice;
use aiodb::{Db, Durability, Error, IndexKind, Options, Step};

use super::support::value;
use super::{Contents, check, contents, fill, open, options};

/// What happens in each run before the crash: puts of another table, an ingest, upkeep.
fn work(db: &Db<SimDevice>, kind: IndexKind, contents: &Contents) -> Result<bool, Error> {
    let other = db.table_or_create("other", kind)?;
    let mut ingest = db.ingest("t", IndexKind::Lsm.into())?;
    for (number, part) in contents.iter().collect::<Vec<_>>().chunks(contents.len() / 3 + 1).enumerate() {
        part.iter().try_for_each(|(key, value)| ingest.put(key, value))?;
        other.put_with(&[number as u8], &value(number as u64, 1500), Durability::Sync)?;
        db.step(Step::Upkeep)?;
        if number == 1 {
            db.checkpoint()?;
        }
    }
    ingest.finish()?;
    db.table("t")?.put_with(b"z", b"afterwards", Durability::Sync)?;
    Ok(true)
}

/// The table is there with all records, or not at all; the other table has what was acknowledged.
fn check_whole_or_nothing(db: &Db<SimDevice>, contents: &Contents, is_acknowledged: bool, what: &str) {
    match db.table("t") {
        Ok(table) => {
            let mut expected = contents.clone();
            if table.get(b"z").expect("a get works").is_some() {
                expected.insert(b"z".to_vec(), b"afterwards".to_vec());
            }
            check(db, "t", &expected, what);
        }
        Err(error) => {
            assert!(matches!(error, Error::NoSuchTable { .. }) && !is_acknowledged, "{what}: {error}");
            // Nothing of it gets into a table that is made now, also when that is made again from the log.
            let next = db.create_table("next", IndexKind::Lsm).expect("a table can be made");
            next.put_with(b"key", b"value", Durability::Sync).expect("a put works");
            let expected = [(b"key".to_vec(), b"value".to_vec())].into_iter().collect();
            check(db, "next", &expected, what);
        }
    }
}

fn crash_at_every_step(kind: IndexKind, count: u64, stride: u64, is_power_cut: bool) {
    let contents = contents(1, count);
    let (mut step, mut whole, mut nothing) = (1, 0, 0);
    loop {
        let device = SimDevice::new(step);
        let db = open(&device);
        device.crash_after(step);
        let outcome = work(&db, kind, &contents);
        if !device.has_crashed() {
            assert!(outcome.expect("nothing fails"), "it comes to its end");
            break;
        }
        let next = if is_power_cut { device.power_cut() } else { device.process_death() };
        drop(db);
        let db = open(&next);
        let what = format!("{kind:?}, a crash at step {step}");
        assert!(!db.stats().rebuilt_indexes, "{what}: the runs have it");
        let is_there = db.table("t").is_ok();
        (whole, nothing) = (whole + u32::from(is_there), nothing + u32::from(!is_there));
        check_whole_or_nothing(&db, &contents, false, &what);
        db.close().expect("it closes");
        let last = next.process_death();
        drop(db);
        let db = Db::open_on(last, "/store", Options { rebuild_index: true, ..options() }).expect("it opens again");
        let is_still = db.table("t").is_ok();
        assert_eq!(is_still, is_there, "{what}: a rebuild finds the same");
        if !is_there {
            let next = db.table("next").expect("it was made");
            assert_eq!(super::all(&next).len(), 1, "{what}: nothing of an unfinished ingest comes to another table");
        }
        step += stride;
    }
    assert!(whole > 1 && nothing > 1, "{kind:?}: {whole} times all of it was there, {nothing} times nothing");
}

#[test]
fn a_power_cut_leaves_all_or_nothing() {
    crash_at_every_step(IndexKind::Hash, 60, 1, true);
    crash_at_every_step(IndexKind::Lsm, 60, 1, true);
}

#[test]
fn the_death_of_the_process_leaves_all_or_nothing() {
    crash_at_every_step(IndexKind::Hash, 60, 1, false);
    crash_at_every_step(IndexKind::Lsm, 60, 3, false);
}

/// A write or flush fails while the table is made: the store does not know whether it is there, the next opening does.
#[test]
fn a_failed_write_leaves_all_or_nothing() {
    let contents = contents(1, 60);
    for call in [aiodb::io::sim::Call::Write, aiodb::io::sim::Call::Sync] {
        for skip in 0.. {
            let device = SimDevice::new(skip);
            let db = open(&device);
            db.create_table("other", IndexKind::Hash).expect("a table can be made");
            let mut ingest = db.ingest("t", IndexKind::Lsm.into()).expect("it begins");
            fill(&mut ingest, &contents).expect("all is taken");
            device.fail(call, skip, 1, |_| true);
            let finished = ingest.finish();
            let failed = device.counters().failed.iter().any(|count| *count > 0);
            if !failed {
                finished.expect("nothing fails");
                break;
            }
            device.clear_faults();
            let _ = (0..100).try_for_each(|_| db.step(Step::Upkeep));
            let (is_acknowledged, device) = (finished.is_ok(), device.power_cut());
            drop((db, finished));
            let db = open(&device);
            check_whole_or_nothing(&db, &contents, is_acknowledged, &format!("{call:?} {skip} fails"));
        }
    }
}
