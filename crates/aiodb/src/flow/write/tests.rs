use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::flow::conditional::{Requirement, Wanted};
use crate::index::memtable::MemtableRoom;
use crate::index::ordered::{Committing, OrderedIndex};
use crate::index::throttle::Commit;
use crate::io::sim::SimDevice;
use crate::io::{Device, UNIT_BYTES};
use crate::log::Claim;
use crate::store::engine::Engine;
use crate::sync::as_another_thread;
use crate::{Batch, Db, Durability, Error, IndexKind, Options, Step};

/// A store that works only when it is told to, on a simulated machine with a real directory for the file that LMDB maps.
fn store(directory: &tempfile::TempDir) -> (SimDevice, Db<SimDevice>) {
    let device = SimDevice::new(1);
    device.set_real_directory(directory.path());
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, segment_bytes: 1 << 20, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options).expect("the store can be made");
    (device, db)
}

/// A commit of the ordered index lets no writer in: a writer that adds to an ordered table waits for it, all others go on.
#[test]
fn only_writes_to_ordered_tables_wait_for_the_ordered_index() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let (_device, db) = store(&directory);
    let ordered = db.create_table("ordered", IndexKind::Lmdb).expect("the table can be made");
    let hash = db.create_table("hash", IndexKind::Hash).expect("the table can be made");
    let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
    let commit = engine.ordered.get(IndexKind::Lmdb).expect("it is open").throttle.begin(usize::MAX / 2);
    engine.ordered.get(IndexKind::Lmdb).expect("it is open").throttle.allow(0);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut both = Batch::new();
            both.put(&hash, b"key", b"both").and_then(|batch| batch.put(&ordered, b"key", b"both")).expect("both fit");
            db.write_with(&both, Durability::None).expect("the machine runs")
        });
        for durability in [Durability::Sync, Durability::None] {
            hash.put_with(b"other", b"value", durability).expect("the machine runs");
            hash.put_with(b"large", &[1; 300_000], durability).expect("the machine runs");
        }
        db.create_table("passing", IndexKind::Lmdb).expect("the table can be made");
        db.drop_table("passing").expect("the table can be dropped");
        assert!(!waiting.is_finished(), "what goes to both waits for the ordered one");
        assert_eq!(hash.get(b"key").expect("the machine runs"), None);
        drop(commit);
        waiting.join().expect("the writer comes to its end");
    });
    assert_eq!(ordered.get(b"key").expect("the machine runs").as_deref(), Some(&b"both"[..]));
}

/// A writer finds a memtable full, and goes on once `make_room` was called, while what that returns is held.
fn wait_for_room(
    make_room: impl for<'a> Fn(&Engine<SimDevice>, &'a OrderedIndex<SimDevice>, &mut Committing<'a>) -> Option<Commit<'a>>,
) {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let (_device, db) = store(&directory);
    for kind in [IndexKind::Lmdb, IndexKind::Lsm] {
        let table = db.create_table(kind.name(), kind).expect("the table can be made");
        let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
        let ordered = engine.ordered.get(kind).expect("it is open");
        ordered.memtable.limit(MemtableRoom { keys: 3, is_short: false, reserved_bytes: 0 });
        for key in 0..3u8 {
            table.put_with(&[key], b"value", Durability::None).expect("the machine runs");
        }
        let mut committing = ordered.lock_commit();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| table.put_with(b"fourth", b"value", Durability::None));
            while !ordered.throttle.is_waited_for() {
                assert!(!writer.is_finished(), "the memtable is full");
                std::thread::yield_now();
            }
            let _held = make_room(engine, ordered, &mut committing);
            writer.join().expect("the writer does not panic").expect("the machine runs");
        });
        drop(committing);
        assert_eq!(table.get(b"fourth").expect("the machine runs").as_deref(), Some(&b"value"[..]));
        assert_eq!(table.get(&[1]).expect("the machine runs").as_deref(), Some(&b"value"[..]));
    }
}

/// A writer that finds the memtable full waits until it is immutable, not until it is committed.
#[test]
fn a_full_memtable_is_not_waited_for_until_it_is_committed() {
    wait_for_room(|engine, ordered, committing| {
        let (position, next_sequence) = engine.commit.completed_end();
        committing.unfinished.replace(ordered.memtable.freeze(position, next_sequence));
        Some(ordered.throttle.begin(usize::MAX / 2))
    });
}

/// A writer that finds the memtable full goes on once that may have more keys: it may be so far from full then that nobody commits it.
#[test]
fn a_full_memtable_is_not_waited_for_once_there_is_room_for_more() {
    wait_for_room(|_, ordered, _| {
        as_another_thread(|| ordered.fit_memtable(usize::MAX).expect("the machine runs"));
        None
    });
}

/// A writer that finds the memtable full waits for the committer, who finds it nearly empty: overwritten operands count no more.
#[test]
fn a_full_memtable_is_not_waited_for_once_it_is_nearly_empty() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let (_device, db) = store(&directory);
    let table = db.create_table("t", IndexKind::Lsm).expect("the table can be made");
    let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
    let ordered = engine.ordered.get(IndexKind::Lsm).expect("it is open");
    let limit = |keys| ordered.memtable.limit(MemtableRoom { keys, is_short: false, reserved_bytes: 0 });
    limit(3);
    for key in 0..3u8 {
        table.put_with(&[key], b"value", Durability::None).expect("the machine runs");
    }
    engine.background.commits.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| table.put_with(b"fourth", b"value", Durability::None));
        while !ordered.throttle.is_waited_for() {
            assert!(!writer.is_finished(), "the memtable is full");
            std::thread::yield_now();
        }
        as_another_thread(|| {
            limit(100);
            db.step(Step::CommitAhead).expect("the machine runs");
        });
        writer.join().expect("the writer does not panic").expect("the machine runs");
    });
    assert_eq!(ordered.memtable.active_keys(), 4, "nothing was committed");
}

/// A writer that has found no segment waits for one to be made; others append to the segment that it left room in, and end what
/// they have written.
#[test]
fn others_go_on_while_a_writer_waits_for_a_segment() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let (_device, db) = store(&directory);
    let table = db.create_table("t", IndexKind::Hash).expect("the table can be made");
    let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
    // Of a mebibyte; what is left is too little for one more, and the reserve is not for it.
    for number in 0..3 {
        table.put_with(&[number], &[number; 300_000], Durability::Sync).expect("the machine runs");
    }
    let making = engine.segments.hold_making();
    let asked_for = engine.segments.asked_for();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| table.put_with(b"large", &[3; 300_000], Durability::Sync));
        while engine.segments.asked_for() == asked_for {
            std::thread::yield_now();
        }
        as_another_thread(|| {
            for durability in [Durability::Sync, Durability::None] {
                table.put_with(b"small", b"value", durability).expect("there is room for it");
            }
            let snapshot = db.snapshot().expect("a snapshot can be taken");
            assert!(snapshot.get(&table, b"small").expect("the machine runs").is_some());
            assert_eq!(snapshot.get(&table, b"large").expect("the machine runs"), None);
        });
        assert!(!waiting.is_finished(), "there is no segment for it");
        drop(making);
        waiting.join().expect("the writer does not panic").expect("a segment was made");
    });
    assert!(table.get(b"large").expect("the machine runs").is_some());
}

/// A disk that is full is met before anything is appended, also by a writer that has waited.
#[test]
fn a_writer_without_a_segment_is_refused_and_has_changed_nothing() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let (device, db) = store(&directory);
    let table = db.create_table("t", IndexKind::Hash).expect("the table can be made");
    device.set_capacity(Some(device.used_bytes()));
    let put = |number: u32| table.put_with(&number.to_be_bytes(), &[1; 300_000], Durability::Sync);
    let (number, refused) = (0..100).find_map(|number| Some((number, put(number).err()?))).expect("the disk gets full");
    assert!(matches!(refused, Error::DiskFull { .. }), "{refused:?}");
    assert_eq!(table.get(&number.to_be_bytes()).expect("the machine runs"), None);
    table.put_with(b"small", b"value", Durability::Sync).expect("there is room for it in the last segment");
    device.set_capacity(None);
    table.put_with(b"large", &[1; 300_000], Durability::Sync).expect("there is room again");
}

/// Where moves have begun the last segment, an opening after a crash would have none for what it must append again: until another is free,
/// nothing else is appended.
#[test]
fn the_last_segment_is_for_moves_alone() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let (device, db) = store(&directory);
    let table = db.create_table("t", IndexKind::Hash).expect("the table can be made");
    for key in [b"a", b"b", b"c"] {
        table.put_with(key, b"value", Durability::Sync).expect("the machine runs");
    }
    device.set_capacity(Some(device.used_bytes()));
    let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
    table.delete_with(b"a", Durability::None).expect("there is room in the log's segment");
    let taken: Vec<_> = std::iter::from_fn(|| engine.segments.take_free(Claim::Recovery).ok()).collect();
    for durability in [Durability::None, Durability::Sync] {
        let refused = table.delete_with(b"b", durability).expect_err("no segment is free");
        assert!(matches!(refused, Error::DiskFull { .. }), "{refused:?}");
    }
    assert!(table.get(b"b").expect("the machine runs").is_some());
    engine.segments.set_free(taken[0]);
    table.delete_with(b"b", Durability::None).expect("one is free again");
}

/// A batch may be opened and put back empty while the batch before it is on its way. Its number then comes again in the other
/// buffer, and recovery must not take the empty one for it.
#[test]
fn a_batch_counts_that_takes_the_number_of_one_that_was_put_back_empty() {
    for first in [0, 1] {
        let directory = tempfile::tempdir().expect("a directory for the test can be made");
        let (device, db) = store(&directory);
        let table = db.create_table("t", IndexKind::Hash).expect("the table can be made");
        let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
        {
            let mut state = engine.commit.lock();
            assert!(state.open.is_none(), "a durable write has just ended");
            state.buffers.rotate_left(first);
            engine.open_batch(&mut state, UNIT_BYTES, Claim::Ordinary, 0).expect("there is room");
            let open = state.open.take().expect("just opened");
            engine.put_back_empty(&mut state, open);
            state.buffers.rotate_left(1);
        }
        table.put_with(b"key", b"value", Durability::None).expect("the machine runs");
        let device = device.process_death();
        drop((table, db));
        device.set_real_directory(directory.path());
        let db = Db::open_on(device, "/store", Options::default()).expect("the store opens");
        let table = db.table("t").expect("the table is there");
        let value = table.get(b"key").expect("the machine runs");
        assert_eq!(value.as_deref(), Some(&b"value"[..]), "buffer {first}");
    }
}

/// A conditional write that keeps others from the log makes room like they do, where there is garbage.
#[test]
fn a_conditional_write_that_has_the_log_to_itself_makes_room() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let (device, db) = store(&directory);
    let table = db.create_table("t", IndexKind::Hash).expect("the table can be made");
    device.set_capacity(Some(device.used_bytes() + (10 << 20)));
    let engine: &Arc<Engine<SimDevice>> = &db.engine.engine;
    for number in 0..100_u8 {
        let generation = table.slot.generation().expect("the table is there");
        let bytes = [number; 200_000];
        let value = engine.stored(&generation, b"key", &bytes).expect("the machine runs");
        let wanted = if number == 0 { Wanted::Absent } else { Wanted::Present };
        let requirement = Requirement { slot: Arc::clone(&table.slot), key: b"key".to_vec(), wanted };
        let operation = engine.put_operation(generation, b"key", &value, None);
        let appended = engine.append_alone(
            Claim::Ordinary,
            &[requirement],
            &[operation],
            Durability::None,
            engine.catalog.namings(),
        );
        let appended = appended.unwrap_or_else(|error| panic!("write {number}: {error}"));
        assert!(appended.is_some(), "the table has not changed");
        assert_eq!(table.get(b"key").expect("the machine runs").as_deref(), Some(&bytes[..]));
    }
}

/// The store may have no more segments, though the disk has room: deletes and upkeep go on, and make some.
#[test]
fn a_store_comes_back_from_its_limit() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let (_device, db) = store(&directory);
    let table = db.create_table("t", IndexKind::Hash).expect("the table can be made");
    db.engine.engine.segments.bound(16);
    let put = |number: u64| table.put_with(&number.to_be_bytes(), &[7; 30_000], Durability::None);
    let mut stored = 0;
    let refused = loop {
        assert!(stored < 1000, "there is room for fewer");
        match put(stored) {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, Error::StoreFull { .. }), "{refused}");
    for _ in 0..10 {
        db.step(Step::Upkeep).expect("upkeep goes on");
    }
    for round in 0..20 {
        // More than a segment of deletes.
        for number in 0..2000u64 {
            let key = (number % (stored - 10)).to_be_bytes();
            table.delete_with(&key, Durability::None).unwrap_or_else(|error| panic!("round {round}: {error}"));
        }
        db.step(Step::Upkeep).expect("upkeep goes on");
    }
    for _ in 0..100 {
        db.step(Step::Upkeep).expect("upkeep goes on");
    }
    (0..100).for_each(|number| _ = put(1000 + number).expect("there is room again"));
}
