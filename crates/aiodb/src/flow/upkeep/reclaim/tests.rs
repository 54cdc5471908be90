use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::flow::look_ups::Wanted;
use crate::flow::moves::Move;
use crate::flow::upkeep::reclaim::victim::TOLERATED_SEGMENTS;
use crate::format::batch::Append as Record;
use crate::format::place::Counting;
use crate::format::record::{Kind, Origin};
use crate::index::chain::Superseded;
use crate::io::Device;
use crate::io::sim::{Call, Effect, SimDevice};
use crate::log::State;
use crate::merge::Append;
use crate::store::commit::Operation;
use crate::store::engine::Engine;
use crate::store::reclaiming::Alive;
use crate::{Batch, Db, Durability, IndexKind, MergeOperators, Options, Step, Table, TableOptions};

const SEGMENT_BYTES: u64 = 256 << 10;

const KEYS: u64 = 6000;

/// A store that works only when it is told to, and has no block of a run in memory.
struct World {
    device: SimDevice,
    db: Db<SimDevice>,
    table: Table<SimDevice>,
    model: BTreeMap<u64, Vec<u8>>,
    reads: Arc<Reads>,
    _directory: tempfile::TempDir,
}

/// Reads of blocks of runs.
#[derive(Default)]
struct Reads {
    all: AtomicU64,
    /// Those that other writers had to wait for.
    waited_for: AtomicU64,
}

fn options() -> Options {
    Options {
        background: false,
        segment_bytes: SEGMENT_BYTES,
        cache_bytes: 0,
        block_cache_bytes: Some(0),
        merge_operators: MergeOperators::default().with(Append),
        ..Options::default()
    }
}

impl World {
    fn new(kind: IndexKind) -> World {
        let directory = tempfile::tempdir().expect("a directory for the test can be made");
        let device = SimDevice::new(1);
        device.set_real_directory(directory.path());
        device.create_dir("/store".as_ref()).expect("the machine runs");
        let db = Db::open_on(device.clone(), "/store", options()).expect("the store can be made");
        let table = TableOptions { merge: Some("append".into()), inline_bytes: 0, ..kind.into() };
        let table = db.create_table_with("t", table).expect("the table can be made");
        let (model, reads) = (BTreeMap::new(), Arc::default());
        World { device, db, table, model, reads, _directory: directory }
    }

    fn engine(&self) -> &Arc<Engine<SimDevice>> {
        &self.db.engine.engine
    }

    fn put(&mut self, key: u64, version: u64) {
        let value = [key, version].map(u64::to_be_bytes).concat().repeat(20);
        self.table.put_with(&key.to_be_bytes(), &value, Durability::None).expect("the machine runs");
        self.model.insert(key, value);
    }

    /// Fills several runs, of which the oldest has most keys, and segments of which three quarters are garbage that is known.
    fn fill(&mut self) {
        (0..KEYS).for_each(|key| self.put(key, 1));
        self.db.checkpoint().expect("the machine runs");
        (0..KEYS).filter(|key| !key.is_multiple_of(4)).for_each(|key| self.put(key, 2));
        self.db.checkpoint().expect("the machine runs");
        while self.engine().compact_some(u64::MAX).expect("the machine runs") {}
        for version in 3..6 {
            (0..40).for_each(|key| self.put(key * 4 + 1, version));
            self.db.checkpoint().expect("the machine runs");
        }
    }

    /// Counts the reads of blocks of runs from now on.
    fn watch(&self) {
        let (engine, reads) = (Arc::downgrade(self.engine()), Arc::clone(&self.reads));
        self.device.disturb(Call::Read, Effect::Delay(0), 0, u64::MAX, move |path| {
            if path.extension().is_some_and(|extension| extension == "run")
                && let Some(engine) = engine.upgrade()
            {
                reads.all.fetch_add(1, Ordering::Relaxed);
                // Nobody else has the lock.
                let waited_for = engine.commit.state.try_lock().map_or(true, |state| state.turn || state.busy);
                reads.waited_for.fetch_add(u64::from(waited_for), Ordering::Relaxed);
            }
            false
        });
    }

    fn reclaim_once(&self) {
        self.db.step(Step::Reclaim).expect("the machine runs");
    }

    /// Gathers records of a victim until some are to be moved. Returns their keys.
    fn gather(&self) -> Vec<u64> {
        for _ in 0..100 {
            self.reclaim_once();
            let reclaiming = self.engine().reclaiming.lock().expect("nobody panics");
            let Some(victim) = &reclaiming.victim else { continue };
            let keys = victim.alive.iter().filter(|record| record.looked_up.is_some());
            let keys = keys.map(|record| u64::from_be_bytes(record.key[..].try_into().expect("eight bytes")));
            let keys: Vec<u64> = keys.collect();
            if keys.len() > 8 {
                return keys;
            }
        }
        panic!("no segment is worth it");
    }

    fn moved_bytes(&self) -> u64 {
        self.engine().commit.counters.moved_bytes.load(Ordering::Relaxed)
    }

    fn check(self, when: &str) {
        let World { device, db, table, model, reads, _directory } = self;
        assert_eq!(reads.waited_for.load(Ordering::Relaxed), 0, "{when}: writers waited for reads");
        let check = |table: &Table<SimDevice>| {
            for key in 0..KEYS {
                let found = table.get(&key.to_be_bytes()).expect("the machine runs");
                assert_eq!(found.as_ref(), model.get(&key), "{when}, key {key}");
            }
        };
        check(&table);
        assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new(), "{when}");
        // A process that died has LMDB's file open still.
        let device = if table.kind() == IndexKind::Lsm { device.process_death() } else { device };
        drop((db, table));
        let db = Db::open_on(device, "/store", options()).expect("the store can be opened");
        check(&db.table("t").expect("it is there"));
    }
}

/// The index is not in memory: its blocks are read before writers must wait, many at a time, and once for all keys in them.
#[test]
fn no_writer_waits_until_reclaim_has_read_the_index() {
    let mut world = World::new(IndexKind::Lsm);
    world.fill();
    world.watch();
    let reclaimed = world.engine().meters.reclaimed_segments.sum();
    while world.engine().meters.reclaimed_segments.sum() < reclaimed + 3 {
        world.reclaim_once();
    }
    assert!(world.moved_bytes() > 0);
    let (reads, records) = (world.reads.all.load(Ordering::Relaxed), 3 * SEGMENT_BYTES / 400);
    assert!(reads > 0 && reads < records / 2, "{reads} reads for about {records} records");
    assert!(world.device.counters().most_queued_reads > 1);
    world.check("reclaimed");
}

/// A queue that fails, from its first entry on or from a later one, keeps no segment from being emptied.
#[test]
fn where_a_queue_fails_the_blocks_are_read_one_by_one() {
    for skip in [0, 1, 3] {
        let mut world = World::new(IndexKind::Lsm);
        world.fill();
        world.watch();
        world.device.fail(Call::Enter, skip, u64::MAX, |_| true);
        let reclaimed = world.engine().meters.reclaimed_segments.sum();
        while world.engine().meters.reclaimed_segments.sum() < reclaimed + 3 {
            world.reclaim_once();
        }
        assert!(world.moved_bytes() > 0 && world.device.counters().failed[Call::Enter as usize] > 0);
        world.check(&format!("skip {skip}"));
    }
}

/// Another life of a segment may have a record of the same key at the same place: a move of the old one does not take it for that.
#[test]
fn a_record_of_another_sequence_is_not_the_one_that_is_moved() {
    for kind in [IndexKind::Lmdb, IndexKind::Lsm] {
        let mut world = World::new(kind);
        (0..10).for_each(|key| world.put(key, 1));
        let generation = world.table.slot.generation().expect("the table is there");
        let (engine, key) = (Arc::clone(world.engine()), 7u64.to_be_bytes());
        let ordered = engine.ordered_of(&generation);
        let looked_up = ordered.look_up(generation.id, &key).expect("the machine runs");
        let entry = looked_up.chain.newest().expect("it is there").clone();
        for (sequence, is_current) in [(entry.sequence - 1, false), (entry.sequence, true)] {
            let mut append = Record::new(Kind::Put, generation.id, &key, b"value");
            let origin = Origin { segment: entry.location.segment, offset: entry.location.offset };
            append.moved = Some((origin, sequence));
            let operation = Operation { generation: Some(Arc::clone(&generation)), append, hash: 0, over: None };
            let one = Move { operation, looked_up: Some(looked_up.clone()) };
            assert_eq!(engine.still_current(&one), Some(is_current), "{}", kind.name());
            let mut moved = entry.clone();
            (moved.sequence, moved.location.offset) = (sequence, 0);
            let relocated =
                ordered.relocate(generation.id, &key, entry.location, &moved, Some(&looked_up), &mut Superseded::new());
            assert_eq!(relocated.expect("the machine runs"), is_current, "{}", kind.name());
        }
    }
}

/// Room is reserved for records as they lie: a move makes none separate that takes more room so, by whatever rule a put is separate.
#[test]
fn a_moved_record_becomes_separate_only_where_it_takes_less_room() {
    let cases = [
        (IndexKind::Lmdb, Counting::AsTheyLie, 1280, false),
        (IndexKind::Lmdb, Counting::AsTheyLie, 1500, false),
        (IndexKind::Lmdb, Counting::AsTheyLie, 2048, true),
        (IndexKind::Lsm, Counting::AsTheyLie, 1024, true),
        (IndexKind::Lsm, Counting::AsTheyLie, 1280, false),
        (IndexKind::Lmdb, Counting::ByLength, 1280, false),
        (IndexKind::Lmdb, Counting::ByLength, 2048, true),
        (IndexKind::Lsm, Counting::ByLength, 1024, false),
        (IndexKind::Lsm, Counting::ByLength, 1280, false),
        (IndexKind::Lsm, Counting::ByLength, 2048, true),
    ];
    for (kind, counting, length, becomes) in cases {
        let world = World::new(kind);
        let engine = world.engine();
        engine.catalog.counts_as_they_lie.store(counting == Counting::AsTheyLie, Ordering::SeqCst);
        let (key, value) = (7u64.to_be_bytes(), vec![7; length]);
        world.table.put_with(&key, &value, Durability::Sync).expect("the machine runs");
        let generation = world.table.slot.generation().expect("the table is there");
        let looked_up = engine.ordered_of(&generation).look_up(generation.id, &key).expect("the machine runs");
        let entry = looked_up.chain.newest().expect("it is there").clone();
        let what = format!("{}, {counting:?}, {length} bytes", kind.name());
        assert!(entry.separate.is_none(), "{what}: a lone put lies whole");
        for was in [false, true] {
            let alive = Alive {
                generation: Some(Arc::clone(&generation)),
                kind: Kind::Put,
                table: generation.id,
                hash: 0,
                key: key.to_vec(),
                value: value.clone(),
                separate: was,
                form: entry.form,
                sequence: entry.sequence,
                location: entry.location,
                tombstone: None,
                looked_up: None,
            };
            assert_eq!(engine.move_of(&alive).append.separate, was || becomes, "{what}, separate before: {was}");
        }
    }
}

/// A memtable of runs may become immutable while records of other tables are moved: those are not looked up in it.
#[test]
fn moves_of_other_tables_do_not_care_for_memtables_of_runs() {
    let mut world = World::new(IndexKind::Lsm);
    (0..10).for_each(|key| world.put(key, 1));
    let table = world.db.create_table("hash", IndexKind::Hash).expect("the table can be made");
    let (engine, generation) = (world.engine(), table.slot.generation().expect("the table is there"));
    let append = Record {
        moved: Some((Origin { segment: 0, offset: 0 }, 1)),
        ..Record::new(Kind::Put, generation.id, b"key", b"value")
    };
    let operation = Operation { generation: Some(generation), append, hash: 1, over: None };
    let asked = AtomicU64::new(0);
    let is_current = |_: &Move<'_>| {
        if asked.fetch_add(1, Ordering::Relaxed) == 0 {
            let ordered = engine.ordered.get(IndexKind::Lsm).expect("it is open");
            let (position, next_sequence) = engine.commit.completed_end();
            *ordered.lock_commit().unfinished = Some(ordered.memtable.freeze(position, next_sequence));
        }
        Some(true)
    };
    let mut written = 0;
    let moved = |_, _| {
        written += 1;
        Ok(())
    };
    let one = Move { operation, looked_up: None };
    engine.move_in_batches(&mut [one], is_current, moved).expect("the machine runs");
    assert_eq!(written, 1);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    world.check("moved");
}

/// A segment may be full of the operands of one counter: what there is of its key is in memory once, not once for each of them.
#[test]
fn records_of_one_key_share_what_is_found_of_it() {
    let world = World::new(IndexKind::Lsm);
    let counted = 7u64.to_be_bytes();
    for key in 0..20u64 {
        world.table.put_with(&key.to_be_bytes(), b"value", Durability::None).expect("the machine runs");
    }
    for _ in 0..50 {
        world.table.merge_with(&counted, b"more", Durability::None).expect("the machine runs");
    }
    world.db.checkpoint().expect("the machine runs");
    let generation = world.table.slot.generation().expect("the table is there");
    let keys: Vec<[u8; 8]> = (0..20u64).map(u64::to_be_bytes).chain([counted; 2000]).collect();
    let wanted: Vec<_> = keys.iter().map(|key| Wanted { generation: &generation, key }).collect();
    let found = world.engine().look_up_all(&wanted);
    let chains: Vec<_> = found.into_iter().map(|found| found.expect("the machine runs").chain).collect();
    assert!(chains.iter().all(|chain| !chain.entries().is_empty()));
    let of_counted = &chains[7];
    assert!(chains[20..].iter().all(|chain| Arc::ptr_eq(chain, of_counted)));
    assert!(!Arc::ptr_eq(&chains[6], of_counted));
}

/// Between the look-up of a record and its move the record is overwritten, deleted, merged into, or nothing happens; and its memtable
/// is still there, or is committed.
#[test]
fn records_that_have_changed_since_they_were_looked_up_are_not_moved() {
    for (kind, commits) in [IndexKind::Lmdb, IndexKind::Lsm].into_iter().flat_map(|kind| [(kind, false), (kind, true)])
    {
        let mut world = World::new(kind);
        world.fill();
        let gathered = world.gather();
        for (number, key) in gathered.iter().copied().enumerate() {
            let bytes = key.to_be_bytes();
            match number % 5 {
                0 => world.put(key, 9),
                1 => {
                    world.table.delete_with(&bytes, Durability::None).expect("the machine runs");
                    world.model.remove(&key);
                }
                2 => {
                    let end = (key + 1).to_be_bytes();
                    world.table.delete_range_with(&bytes, &end, Durability::None).expect("the machine runs");
                    world.model.remove(&key);
                }
                3 => {
                    world.table.merge_with(&bytes, b"more", Durability::None).expect("the machine runs");
                    world.model.get_mut(&key).expect("it is there").extend_from_slice(b"more");
                }
                _ => {}
            }
        }
        if commits {
            world.db.checkpoint().expect("the machine runs");
            world.db.step(Step::DeleteRanges).expect("the machine runs");
        }
        world.watch();
        let before = world.moved_bytes();
        while world.moved_bytes() == before {
            world.reclaim_once();
        }
        let moved = world.moved_bytes() - before;
        let unchanged = gathered.len() as u64 * 2 / 5 + 1;
        assert!(moved < (unchanged + 1) * 600, "{moved} bytes for {unchanged} records");
        world.check(&format!("{}, committed: {commits}", kind.name()));
    }
}

/// Deletes stay in the log until a merge has found what they have left. Until then no segment full of them is emptied: they would only be
/// written again.
#[test]
fn deletes_that_wait_for_a_merge_are_not_moved_again_and_again() {
    const RECORDS: u64 = 40_000;
    let world = World::new(IndexKind::Lsm);
    for key in 0..RECORDS {
        world.table.put_with(&key.to_be_bytes(), b"value", Durability::None).expect("the machine runs");
    }
    world.db.checkpoint().expect("the machine runs");
    while world.engine().compact_some(u64::MAX).expect("the machine runs") {}
    for key in 0..RECORDS {
        world.table.delete_with(&key.to_be_bytes(), Durability::None).expect("the machine runs");
    }
    world.db.checkpoint().expect("the machine runs");
    let written = world.engine().commit.counters.log_bytes.load(Ordering::Relaxed);
    for _ in 0..200 {
        world.reclaim_once();
        world.db.checkpoint().expect("the machine runs");
    }
    let moved = world.moved_bytes();
    assert!(moved < written / 4, "{moved} of {written} bytes were moved");
    for _ in 0..200 {
        world.db.step(Step::Upkeep).expect("the machine runs");
    }
    let sealed = world.engine().segments.iter().filter(|segment| segment.state() == State::Sealed).count() as u64;
    assert!(sealed <= TOLERATED_SEGMENTS, "{sealed} segments are left");
    world.check("at rest");
}

/// Durable writes of which few come at once leave a third of their units unused, and more where short records lie beside long ones. Their records
/// are not moved for that, but they are once others have died beside them.
#[test]
fn records_are_not_moved_for_the_padding_of_batches_alone() {
    const RECORDS: u64 = 2000;
    // Sixteenths of the lengths of two records. Three of the first would find room in a unit, and four of the last.
    for lengths in [[80, 80], [200, 60]] {
        let mut world = World::new(IndexKind::Hash);
        let put_two = |world: &mut World, first: u64, version: u64| {
            let mut batch = Batch::new();
            for (key, length) in (first..).zip(lengths) {
                let value = [key, version].map(u64::to_be_bytes).concat().repeat(length);
                batch.put(&world.table, &key.to_be_bytes(), &value).expect("it is short");
                world.model.insert(key, value);
            }
            world.db.write_with(&batch, Durability::Sync).expect("the machine runs");
        };
        let reclaim = |world: &World| {
            for _ in 0..100 {
                world.db.step(Step::Settle).expect("the machine runs");
                world.reclaim_once();
                world.db.checkpoint().expect("the machine runs");
            }
        };
        (0..RECORDS).step_by(2).for_each(|key| put_two(&mut world, key, 1));
        world.db.checkpoint().expect("the machine runs");
        reclaim(&world);
        assert_eq!(world.moved_bytes(), 0, "nothing has died");
        (0..RECORDS).step_by(4).for_each(|key| put_two(&mut world, key, 2));
        world.db.checkpoint().expect("the machine runs");
        reclaim(&world);
        assert!(world.moved_bytes() > 0, "half of the first records have died");
        world.check("moved");
    }
}
