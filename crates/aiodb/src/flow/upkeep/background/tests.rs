use std::sync::Arc;

use super::survive;
use crate::io::Device;
use crate::io::sim::{Call, SimDevice};
use crate::store::background::Asked;
use crate::store::engine::Engine;
use crate::{Db, Durability, Error, IndexKind, Options};

#[test]
fn the_shortest_interval_counts_until_its_writes_are_flushed() {
    let asked = Asked::default();
    assert_eq!(asked.shortest(), None);
    assert!(asked.note(1000) && asked.note(10) && !asked.note(500) && !asked.note(10));
    assert_eq!(asked.shortest(), Some(10));
    asked.begin_flush();
    assert_eq!(asked.shortest(), None);
    assert!(asked.note(1000), "the long one counts again");
    assert_eq!(asked.shortest(), Some(1000));
}

#[test]
fn of_two_first_writers_the_shorter_interval_stays() {
    for _ in 0..2000 {
        let asked = Asked::default();
        let both = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for interval in [1000, 10] {
                let (asked, both) = (&asked, &both);
                scope.spawn(move || {
                    both.wait();
                    asked.note(interval);
                });
            }
        });
        assert_eq!(asked.shortest(), Some(10));
    }
}

/// Where a run cannot be read, or is damaged, the keys of a table that is gone stay in it. The thread of upkeep rests all the same.
#[test]
fn upkeep_rests_where_a_table_cannot_be_purged() {
    for is_damaged in [false, true] {
        let device = SimDevice::new(1);
        device.create_dir("/store".as_ref()).expect("the machine runs");
        let options = Options { background: false, ..Options::default() };
        let db = Db::open_on(device.clone(), "/store", options).expect("the store can be made");
        let table = db.create_table("t", IndexKind::Lsm).expect("the table can be made");
        for key in 0..100u64 {
            table.put_with(&key.to_be_bytes(), b"value", Durability::None).expect("the machine runs");
        }
        db.checkpoint().expect("the machine runs");
        let is_run = |path: &std::path::Path| path.extension().is_some_and(|extension| extension == "run");
        match is_damaged {
            true => {
                device.file_names().iter().filter(|path| is_run(path)).for_each(|path| device.corrupt(path, 100, 1))
            }
            false => device.fail(Call::Read, 0, u64::MAX, is_run),
        }
        db.drop_table("t").expect("the machine runs");
        let engine = &db.engine.engine;
        let busy: Vec<bool> = (0..20).map(|_| engine.maintain_once().expect("it goes round the run")).collect();
        assert_eq!(busy.last(), Some(&false), "damaged: {is_damaged}");
        assert!(!engine.is_purge_due(u32::MAX) && engine.purging.lock().len() == 1, "its keys are still there");
        assert!(db.stats().trouble.is_some());
    }
}

/// A thread of the store's own panics while a writer waits for the end of a write: writes stop with that reason, waiting ones
/// too, and so does the close.
#[test]
fn a_thread_that_panics_stops_writes_with_its_reason() {
    let device = SimDevice::new(1);
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, ..Options::default() };
    let db = Db::open_on(device, "/store", options).expect("the store can be made");
    let table = db.create_table("t", IndexKind::Hash).expect("the table can be made");
    table.put_with(b"key", b"value", Durability::None).expect("a put works");
    let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
    let turn = engine.take_turn().expect("nobody has it");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| table.put_with(b"key", b"other", Durability::None));
        while engine.commit.lock().idle_waiters == 0 {
            std::thread::yield_now();
        }
        assert!(!survive(engine, "aiodb-upkeep", || panic!("a bug")));
        let refused = waiting.join().expect("a writer does not panic");
        let Err(Error::Failed { cause }) = refused else { panic!("it was not refused: {refused:?}") };
        assert!(cause.contains("aiodb-upkeep") && cause.contains("a bug"), "{cause}");
    });
    drop(turn);
    assert!(db.stats().trouble.expect("it is shown").contains("a bug"));
    assert_eq!(table.get(b"key").expect("gets go on").as_deref(), Some(&b"value"[..]));
    assert!(matches!(db.close(), Err(Error::Failed { .. })));
}

/// A thread that panics while it holds the commit lock leaves no thread waiting: neither for a batch nor for the end of a write.
#[test]
fn a_panic_under_the_commit_lock_ends_all_waits_with_an_error() {
    let device = SimDevice::new(1);
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, ..Options::default() };
    let db = Db::open_on(device, "/store", options).expect("the store can be made");
    let table = db.create_table("t", IndexKind::Hash).expect("the table can be made");
    table.put_with(b"key", b"value", Durability::None).expect("a put works");
    let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
    // As if a batch were on its way.
    engine.commit.lock().busy = true;
    std::thread::scope(|scope| {
        let for_batch = scope.spawn(|| table.put_with(b"key", b"other", Durability::Sync).map(drop));
        let for_idleness = scope.spawn(|| engine.flush());
        let all_wait = || {
            let state = engine.commit.lock();
            state.idle_waiters == 1 && state.open.as_ref().is_some_and(|open| open.waiters == 1)
        };
        while !all_wait() {
            std::thread::yield_now();
        }
        let panics = || {
            let _state = engine.commit.lock();
            panic!("a bug");
        };
        // In a thread of the store's own, or in anybody's.
        scope.spawn(panics).join().expect_err("it panics");
        for waiting in [for_batch, for_idleness] {
            let refused = waiting.join().expect("who waits does not panic");
            assert!(matches!(refused, Err(Error::Failed { .. })), "{refused:?}");
        }
    });
    assert!(!survive(engine, "aiodb-upkeep", || panic!("a second bug")));
    assert!(db.stats().trouble.expect("it is shown").contains("panicked"));
    assert_eq!(table.get(b"key").expect("gets go on").as_deref(), Some(&b"value"[..]));
    assert!(matches!(db.close(), Err(Error::Failed { .. })));
}
