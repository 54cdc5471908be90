use std::sync::Arc;

use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::store::engine::Engine;
use crate::{Batch, Db, Durability, IndexKind, Options, Step, Table};

/// More keys than one step purges, of either kind of index.
const MANY: u64 = 100_000;

/// A store that works only when it is told to, on a simulated machine with a real directory for the file that LMDB maps.
fn store(directory: &tempfile::TempDir) -> Db<SimDevice> {
    let device = SimDevice::new(1);
    device.set_real_directory(directory.path());
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, segment_bytes: 1 << 20, ..Options::default() };
    Db::open_on(device, "/store", options).expect("the store can be made")
}

fn fill(db: &Db<SimDevice>, table: &Table<SimDevice>, keys: u64) {
    let numbers: Vec<u64> = (0..keys).collect();
    for some in numbers.chunks(1000) {
        let mut batch = Batch::new();
        for number in some {
            batch.put(table, &number.to_be_bytes(), b"value").expect("it fits");
        }
        db.write_with(&batch, Durability::None).expect("the machine runs");
    }
    db.checkpoint().expect("the machine runs");
}

/// A purge has begun and has to wait for LMDB: writers, changes of tables and snapshots do not.
#[test]
fn nobody_waits_for_a_purge() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let db = store(&directory);
    let create = |name: &str, kind| db.create_table(name, kind).expect("the table can be made");
    let tables = [create("ordered", IndexKind::Lmdb), create("hash", IndexKind::Hash)];
    fill(&db, &create("gone", IndexKind::Lmdb), 100);
    fill(&db, &create("also gone", IndexKind::Lmdb), 100);
    fill(&db, &create("emptied", IndexKind::Hash), 100);
    let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
    let ordered = engine.ordered.get(IndexKind::Lmdb).expect("it is open");
    let lmdb = ordered.committed.lmdb().expect("it is of that kind");
    let gone = engine.catalog.find("gone").and_then(|slot| slot.generation()).expect("it is there").id;
    db.drop_table("gone").expect("the table can be dropped");
    std::thread::scope(|scope| {
        lmdb.with_writer_held(|| {
            let purging = scope.spawn(|| while !engine.purge_some().expect("the machine runs") {});
            while engine.purging.current.try_lock().is_ok() {
                std::thread::yield_now();
            }
            for (table, durability) in
                tables.iter().flat_map(|table| [(table, Durability::Sync), (table, Durability::None)])
            {
                table.put_with(b"key", b"value", durability).expect("the machine runs");
            }
            db.drop_table("also gone").expect("the table can be dropped");
            db.truncate_table("emptied").expect("the table can be emptied");
            create("new", IndexKind::Lmdb).put(b"key", b"value").expect("the machine runs");
            let snapshot = db.snapshot().expect("a snapshot can be taken");
            assert!(tables.iter().all(|table| snapshot.get(table, b"key").expect("the machine runs").is_some()));
            assert!(!purging.is_finished(), "nobody else can write to LMDB");
        });
    });
    while !engine.purge_some().expect("the machine runs") {}
    assert_eq!(lmdb.count(gone), 0);
    let wrong = db.recount().expect("what is alive can be counted");
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}

/// Each step of upkeep purges a part, and the counts agree with the indexes once the last is done; other tables lose nothing.
#[test]
fn a_purge_is_done_in_parts() {
    for kind in [IndexKind::Lmdb, IndexKind::Hash] {
        let directory = tempfile::tempdir().expect("a directory for the test can be made");
        let db = store(&directory);
        let [before, gone, after] =
            ["before", "gone", "after"].map(|name| db.create_table(name, kind).expect("the table can be made"));
        fill(&db, &gone, MANY);
        fill(&db, &before, 10);
        fill(&db, &after, 10);
        // One key of it is in the memtable.
        gone.put_with(b"late", b"value", Durability::None).expect("the machine runs");
        db.truncate_table("gone").expect("the table can be emptied");
        let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
        let mut steps = 1;
        db.step(Step::Reclaim).expect("the machine runs");
        while engine.is_purge_due(u32::MAX) {
            db.step(Step::Reclaim).expect("the machine runs");
            steps += 1;
        }
        assert!(steps > 1, "{}: {MANY} keys in one step", kind.name());
        let wrong = db.recount().expect("what is alive can be counted");
        assert!(wrong.is_empty(), "{}: {}", kind.name(), wrong.join("; "));
        let keys = |table: &Table<SimDevice>| {
            let mut records = table.iterate().expect("the machine runs");
            std::iter::from_fn(|| records.next_record().expect("the machine runs").map(drop)).count()
        };
        assert_eq!([&before, &gone, &after].map(keys), [10, 0, 10], "{}", kind.name());
    }
}

/// Tables that go one after the other keep no segment from being emptied and freed: there is never a moment at which none is to be
/// purged.
#[test]
fn a_stream_of_truncates_leaves_room() {
    for kind in [IndexKind::Hash, IndexKind::Lmdb] {
        const ROUNDS: u64 = 40;
        let directory = tempfile::tempdir().expect("a directory for the test can be made");
        let db = store(&directory);
        let [kept, emptied] =
            ["kept", "emptied"].map(|name| db.create_table(name, kind).expect("the table can be made"));
        let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
        let truncate = || db.truncate_table("emptied").expect("the table can be emptied");
        let steps = |steps: &[Step]| steps.iter().for_each(|step| db.step(*step).expect("the machine runs"));
        for round in 0..ROUNDS {
            for key in 0..10_u64 {
                let value = vec![round as u8; 100_000];
                kept.put_with(&key.to_be_bytes(), &value, Durability::None).expect("the machine runs");
            }
            emptied.put_with(b"key", b"value", Durability::None).expect("the machine runs");
            steps(&[Step::Write, Step::Settle]);
            // At least as many go as are purged meanwhile.
            for step in [Step::Reclaim, Step::Reclaim, Step::Checkpoint, Step::Reclaim, Step::Prepare] {
                truncate();
                truncate();
                steps(&[step]);
            }
        }
        assert!(engine.is_purge_due(u32::MAX));
        assert!(engine.segments.released() > ROUNDS / 8, "{}: {}", kind.name(), engine.segments.released());
        assert!(engine.purging.lock().len() <= 2 * super::MAX_GONE);
        let wrong = db.recount().expect("what is alive can be counted");
        assert!(wrong.is_empty(), "{}: {}", kind.name(), wrong.join("; "));
    }
}
