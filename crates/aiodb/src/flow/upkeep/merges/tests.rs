use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::worth_of_merge;
use crate::filter::TableFilter;
use crate::index::memtable::MemtableRoom;
use crate::io::Device;
use crate::io::sim::{Call, Effect, SimDevice};
use crate::{Batch, Compression, Db, Durability, IndexKind, Options, Step, Table, TableOptions};

const LARGE_BYTES: usize = 64 << 10;

const SMALL_KEYS: u64 = 200_000;

/// Bytes of a record of the table of small ones, at least.
const SMALL_RECORD_BYTES: u64 = 40;

/// A store that works only when it is told to, with a table of many small records and one of few large ones.
struct World {
    device: SimDevice,
    db: Db<SimDevice>,
    small: Table<SimDevice>,
    large: Table<SimDevice>,
    small_keys: u64,
    large_keys: u64,
}

impl World {
    /// All records are in one run.
    fn new(large_keys: u64) -> World {
        World::with_segments(1 << 20, SMALL_KEYS, large_keys)
    }

    /// [`World::new`] with segments of so many bytes.
    fn with_segments(segment_bytes: u64, small_keys: u64, large_keys: u64) -> World {
        let device = SimDevice::new(1);
        device.create_dir("/store".as_ref()).expect("the machine runs");
        let options = Options { background: false, segment_bytes, ..Options::default() };
        let db = Db::open_on(device.clone(), "/store", options).expect("the store can be made");
        let create = |name: &str| db.create_table(name, IndexKind::Lsm).expect("the table can be made");
        let (small, large) = (create("small"), create("large"));
        let world = World { device, db, small, large, small_keys, large_keys };
        world.put_small(0..small_keys);
        (0..large_keys).for_each(|key| world.put_large(key));
        world.checkpoint();
        while world.db.engine.engine.compact_some(u64::MAX).expect("the machine runs") {}
        world
    }

    fn put_small(&self, keys: std::ops::Range<u64>) {
        let keys: Vec<u64> = keys.collect();
        for some in keys.chunks(1000) {
            let mut batch = Batch::new();
            for key in some {
                batch.put(&self.small, &key.to_be_bytes(), b"value").expect("it fits");
            }
            self.db.write_with(&batch, Durability::None).expect("the machine runs");
        }
    }

    fn put_large(&self, key: u64) {
        self.large.put_with(&key.to_be_bytes(), &vec![7; LARGE_BYTES], Durability::None).expect("the machine runs");
    }

    fn upkeep(&self, steps: usize) {
        (0..steps).for_each(|_| self.db.step(Step::Upkeep).expect("the machine runs"));
    }

    fn checkpoint(&self) {
        self.db.checkpoint().expect("the machine runs");
    }

    /// The files of all runs.
    fn run_files(&self) -> Vec<PathBuf> {
        let names = self.device.file_names().into_iter();
        names.filter(|name| name.extension().is_some_and(|extension| extension == "run")).collect()
    }

    /// Bytes that are alive.
    fn alive(&self) -> u64 {
        self.small_keys * SMALL_RECORD_BYTES + self.large_keys * LARGE_BYTES as u64
    }

    fn check_garbage_is_known(&self) {
        let (live, alive) = (self.live(), self.alive());
        assert!(live < alive * 5 / 4, "{live} bytes count as alive, {alive} are");
    }

    /// Bytes that count as alive.
    fn live(&self) -> u64 {
        self.db.engine.engine.segments.iter().map(|segment| segment.live()).sum()
    }
}

/// Few keys with large values are overwritten all the time. Their runs are short, and have the same keys again and again: what they hide
/// of old values does not grow with the number of merges.
#[test]
fn what_short_runs_hide_does_not_grow() {
    let world = World::new(100);
    for round in 0..256 {
        (0..20).for_each(|number| world.put_large((round * 20 + number) % 100));
        world.checkpoint();
        world.upkeep(4);
        let (live, alive) = (world.live(), world.alive());
        assert!(live < 2 * alive, "round {round}: {live} bytes count as alive, {alive} are");
    }
}

/// What has been superseded lies in the oldest run, of whose bytes the runs after it have a small part. They are merged with it, because so much
/// more counts as alive than before.
#[test]
fn much_garbage_that_the_oldest_run_hides_is_looked_for() {
    let world = World::new(300);
    world.upkeep(4);
    (0..300).for_each(|key| world.put_large(key));
    world.checkpoint();
    assert!(world.live() > world.alive() * 3 / 2, "the old values count as alive");
    // It is written to all the time.
    for key in 0..30 {
        world.put_large(key);
        world.upkeep(1);
    }
    world.check_garbage_is_known();
}

/// As above, while so many short runs come that there is something to merge all the time.
#[test]
fn garbage_is_looked_for_though_there_are_other_merges() {
    let world = World::new(300);
    world.upkeep(4);
    (0..300).for_each(|key| world.put_large(key));
    for key in 0..100 {
        for _ in 0..4 {
            world.put_small(key..key + 1);
            world.checkpoint();
        }
        world.upkeep(1);
    }
    world.check_garbage_is_known();
}

/// On a full disk less garbage is worth a merge with the oldest run: as much as that has bytes.
#[test]
fn garbage_that_the_oldest_run_hides_makes_room_on_a_full_disk() {
    // Large segments, of which little is left unused: one that counts as full is not emptied.
    let world = World::with_segments(4 << 20, 2 * SMALL_KEYS, 1000);
    world.upkeep(4);
    world.device.set_capacity(Some(world.device.used_bytes() + (40 << 20)));
    for key in (0..3).flat_map(|_| 0..1000) {
        world.put_large(key);
    }
}

/// Large values are overwritten on a disk with little room, beside many small records. The index of all is not written again for each segment
/// that is emptied.
#[test]
fn on_a_full_disk_runs_are_merged_as_often_as_that_pays() {
    let world = World::with_segments(1 << 20, SMALL_KEYS, 800);
    world.device.set_capacity(Some(world.device.used_bytes() / 5 * 7));
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..4000 {
        world.put_large(random.u64(..800));
        [Step::WriteBehind, Step::CommitAhead, Step::Upkeep]
            .into_iter()
            .for_each(|step| world.db.step(step).expect("the machine runs"));
    }
    let last = world.run_files().into_iter().max().expect("there are runs");
    let files: u64 = last.file_stem().and_then(|stem| stem.to_str()?.parse().ok()).expect("its name is its number");
    // Merged for whatever garbage there may be, they would be three and a half thousand.
    assert!(files < 1500, "{files} files of runs were made");
}

/// See docs/decisions/0064-merges-for-garbage-on-a-full-disk.md.
#[test]
fn a_merge_is_worth_more_garbage_where_segments_are_emptier() {
    let worth = |moved| worth_of_merge(moved, 50_000, 400);
    assert_eq!([1.0, 0.75, 0.5, 0.0].map(worth), [0, 1581, 3162, 6324]);
}

/// What a merge finds is retained for a snapshot that is older than the newest run, and takes room until that ends.
#[test]
fn garbage_that_a_snapshot_needs_is_not_looked_for() {
    let world = World::new(300);
    world.upkeep(4);
    let snapshot = world.db.snapshot().expect("the machine runs");
    for key in 0..300 {
        world.large.put_with(&u64::to_be_bytes(key), &[8; LARGE_BYTES], Durability::None).expect("the machine runs");
    }
    world.put_small(0..SMALL_KEYS / 10);
    world.checkpoint();
    for key in 0..30 {
        world.put_small(key..key + 1);
        world.upkeep(1);
    }
    let (_, retained) = world.db.engine.engine.snapshots.counts();
    assert!(retained < 300, "{retained} records are retained");
    for key in 0..300 {
        let value = snapshot.get(&world.large, &u64::to_be_bytes(key)).expect("the machine runs");
        assert_eq!(value.as_deref(), Some(&[7; LARGE_BYTES][..]), "key {key}");
    }
    drop(snapshot);
    for key in 0..30 {
        world.put_small(key..key + 1);
        world.upkeep(1);
    }
    world.check_garbage_is_known();
}

/// The device gives a block of the oldest run no more, the first or a later one. Merges write nothing in vain for long, and the rest of upkeep
/// goes on.
#[test]
fn a_run_that_cannot_be_read_is_left_alone() {
    for skip in [8, 0] {
        let world = World::new(300);
        let other = world.db.create_table("other", IndexKind::Hash).expect("the table can be made");
        world.upkeep(4);
        let oldest = world.run_files();
        world.device.fail(Call::Read, skip, u64::MAX, move |path| oldest.iter().any(|file| file == path));
        let written = Arc::new(AtomicU64::new(0));
        let counts = Arc::clone(&written);
        world.device.disturb(Call::Write, Effect::Delay(0), 0, u64::MAX, move |path| {
            let is_run = path.extension().is_some_and(|extension| extension == "run");
            counts.fetch_add(u64::from(is_run), Ordering::Relaxed);
            false
        });
        (0..300).for_each(|key| world.put_large(key));
        world.put_small(0..SMALL_KEYS / 10);
        world.checkpoint();
        let upkeep = |steps| (0..steps).for_each(|_| drop(world.db.step(Step::Upkeep)));
        upkeep(20);
        let (before, released) = (written.load(Ordering::Relaxed), world.db.engine.engine.segments.released());
        for round in 0..200 {
            let value = vec![round; 4 * LARGE_BYTES];
            other.put_with(b"key", &value, Durability::None).expect("the machine runs");
            upkeep(1);
        }
        assert_eq!(written.load(Ordering::Relaxed), before, "skip {skip}: runs are written in vain");
        assert!(world.db.engine.engine.segments.released() > released, "skip {skip}: nothing is freed");
        let trouble = world.db.stats().trouble.expect("it is shown");
        assert!(trouble.contains("cannot read"), "{trouble}");
    }
}

/// An ingest names its runs before the catalog has the table: no merge takes their marks away.
#[test]
fn a_table_that_the_catalog_does_not_have_may_have_a_filter() {
    let world = World::with_segments(1 << 20, 10, 0);
    let engine = &world.db.engine.engine;
    let generation = world.small.slot.generation().expect("the table is there");
    assert!(matches!(engine.filter_of_table(generation.id), TableFilter::None));
    assert!(matches!(engine.filter_of_table(generation.id + 1000), TableFilter::Unregistered));
}

/// While a snapshot sees a dropped table, merges write its keys again, and nobody finds the table any more: its blocks are as short as before.
#[test]
fn blocks_of_a_dropped_table_stay_compressed_while_a_snapshot_sees_it() {
    let device = SimDevice::new(1);
    device.create_dir("/store".as_ref()).expect("the machine runs");
    let options = Options { background: false, segment_bytes: 1 << 20, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options).expect("the store can be made");
    let compressed =
        TableOptions { inline_bytes: 200, block_compression: Compression::Zstd(1), ..IndexKind::Lsm.into() };
    let dropped = db.create_table_with("dropped", compressed).expect("the table can be made");
    let other = db.create_table("other", IndexKind::Lsm).expect("the table can be made");
    let fill = |table: &Table<SimDevice>, keys: std::ops::Range<u64>| {
        let mut batch = Batch::new();
        for key in keys {
            batch.put(table, &key.to_be_bytes(), &[b'v'; 150]).expect("it fits");
        }
        db.write_with(&batch, Durability::None).expect("the machine runs");
        db.checkpoint().expect("the machine runs");
    };
    (0..10).for_each(|round| fill(&dropped, round * 1000..(round + 1) * 1000));
    fill(&other, 0..10);
    while db.engine.engine.compact_some(u64::MAX).expect("the machine runs") {}
    let disk_bytes = || other.stats().expect("the table is there").index_disk_bytes;
    let before = disk_bytes();

    let files = || device.file_names().into_iter().filter(|name| name.extension().is_some_and(|end| end == "run"));
    let (snapshot, merged) = (db.snapshot().expect("the store is open"), files().collect::<Vec<_>>());
    db.drop_table("dropped").expect("the table is there");
    fill(&other, 0..10);
    while db.engine.engine.compact_some(u64::MAX).expect("the machine runs") {}
    let after = disk_bytes();
    assert!(files().all(|file| !merged.contains(&file)), "its keys were written again");
    assert!(after < before * 5 / 4, "{before} bytes of runs became {after}");
    drop(snapshot);
}

/// A store with so many runs of one key each, and no threads of its own.
fn with_runs(runs: usize) -> World {
    let world = World::with_segments(1 << 20, 0, 0);
    for key in 0..runs as u64 {
        world.put_small(key..key + 1);
        world.checkpoint();
    }
    world
}

/// Merges are behind, and a step is under way. Writers wait for its end, and not for a step of each of the others that wait.
#[test]
fn writers_wait_for_one_step_where_merges_are_behind() {
    const WRITERS: usize = 40;
    let world = with_runs(48);
    let ordered = world.db.engine.engine.ordered.get(IndexKind::Lsm).expect("it is open");
    let runs = ordered.committed.runs().expect("it has runs");
    ordered.memtable.limit(MemtableRoom { keys: 64, is_short: false, reserved_bytes: 0 });
    // A quarter of a memtable may come with each step, and has come.
    world.put_small(1000..1017);
    let (step, before) = (runs.hold_step(), runs.last_step());
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS as u64)
            .map(|writer| {
                let (key, world) = (u64::MAX - writer, &world);
                scope.spawn(move || world.small.put_with(&key.to_be_bytes(), b"value", Durability::None))
            })
            .collect();
        while runs.waiting_for_step() < WRITERS {
            assert!(!writers.iter().any(|writer| writer.is_finished()), "none may come now");
            std::thread::yield_now();
        }
        drop(step);
        for writer in writers {
            writer.join().expect("no writer panics").expect("the machine runs");
        }
    });
    assert_eq!(runs.last_step() - before, 1);
}

/// Runs of one key each come at no cost in keys. There are not more of them than there may be, all the same.
#[test]
fn runs_are_bounded_where_they_have_few_keys() {
    let world = with_runs(48);
    let ordered = world.db.engine.engine.ordered.get(IndexKind::Lsm).expect("it is open");
    let runs = ordered.committed.runs().expect("it has runs");
    let mut most = 0;
    for key in 0..200 {
        world.put_small(key..key + 1);
        world.checkpoint();
        most = most.max(runs.len());
    }
    assert_eq!(most, 96);
}
