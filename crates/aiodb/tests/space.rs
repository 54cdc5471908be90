//! Space is taken back: by overwrites, deletes and truncates, also when the disk is full.

mod support;

use std::num::NonZeroU64;
use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{
    Batch, Db, Durability, Error, IndexKind, MergeOperator, MergeOperators, MergePolicy, Options, Step, Table,
    TableOptions, WriteOptions,
};
use support::{
    KINDS, OVERHEAD_SEGMENTS, assert_get, assert_value, damage, open, scratch, segment_files, small, upkeep, value,
};

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A machine with a directory for a store, and the real one that LMDB has.
fn simulated() -> (SimDevice, tempfile::TempDir) {
    let (device, directory) = (SimDevice::new(1), scratch());
    device.set_real_directory(directory.path());
    device.create_dir(Path::new("/store")).expect("the simulated disk has room");
    (device, directory)
}

#[test]
fn overwriting_one_data_set_does_not_fill_the_disk() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &support::quiet());
        // Two segments of values; each round writes them anew.
        let length = |number: u64| 500 + number as usize % 3000;
        let mut most = 0;
        for round in 0..60u64 {
            for number in 0..1000 {
                table
                    .put_with(&key(number), &value(number + round * 1000, length(number)), Durability::None)
                    .expect("a put works");
            }
            upkeep(&db);
            most = most.max(segment_files(directory.path()).len());
        }
        let written = db.stats().log_bytes_written >> 20;
        println!("{}: {written} MiB written into at most {most} segments", kind.name());
        assert!(written > 60, "{}: the log has gone around: {written} MiB written", kind.name());
        assert!(most <= 2 + OVERHEAD_SEGMENTS, "{}: {written} MiB written into {most} segments of 1 MiB", kind.name());
        for number in 0..1000 {
            let wanted = value(number + 59_000, length(number));
            assert_get(&table, &key(number), Some(&wanted), "after the last round");
        }
        assert!(damage(&db).is_empty(), "{}: a check finds no damage, but {:?}", kind.name(), damage(&db));
    }
}

/// Records are moved while nothing else can be appended: the blocks of runs are read before that.
#[test]
fn what_is_moved_is_not_looked_up_in_runs_while_writers_wait() {
    const KEYS: u64 = 30_000;
    const LEFT: u64 = 3_000;
    let directory = scratch();
    let merge_policy = MergePolicy { fan_out: 1, ..MergePolicy::default() };
    let options = Options { block_cache_bytes: Some(0), merge_policy, ..support::quiet() };
    let (db, table) = open(directory.path(), IndexKind::Lsm, &options);
    let put = |number: u64, seed: u64| {
        table.put_with(&key(number), &value(seed, 1000), Durability::None).expect("a put works");
    };
    (0..KEYS).for_each(|number| put(number, number));
    db.checkpoint().expect("a checkpoint works");
    // A tenth is never written again, and lies among the others.
    let is_left = |number: &u64| number.is_multiple_of(KEYS / LEFT);
    (0..KEYS).filter(|number| !is_left(number)).for_each(|number| put(number, number + KEYS));
    db.checkpoint().expect("a checkpoint works");
    // All garbage is known once there is one run.
    db.step(Step::Merge).expect("runs can be merged");
    assert_eq!(db.metrics().runs, 1);
    let before = db.metrics();
    for _ in 0..40 {
        db.step(Step::Reclaim).expect("segments can be emptied");
    }
    let after = db.metrics();
    let moved = (after.reclaim_moved_bytes - before.reclaim_moved_bytes) / 1000;
    let emptied = after.reclaimed_segments - before.reclaimed_segments;
    let reads = after.run_block_reads - before.run_block_reads;
    println!("{emptied} segments emptied, about {moved} records moved, {reads} blocks read");
    assert!(emptied >= 2 && moved >= 100, "{emptied} segments are emptied, {moved} records moved");
    // One for each record that was met, of a kilobyte or a little more, and one for each that was moved.
    let met = (emptied + 1) * (1 << 20) / 1000;
    assert!(reads <= met + moved + moved / 4, "{reads} blocks read for {met} records, {moved} of them moved");
    for number in 0..KEYS {
        let seed = if is_left(&number) { number } else { number + KEYS };
        assert_get(&table, &key(number), Some(&value(seed, 1000)), "after they were moved");
    }
}

/// The same with the store's own thread, which is not told when to work.
#[test]
fn overwriting_is_kept_up_with_in_the_background() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        for round in 0..30u64 {
            for number in 0..1000 {
                table
                    .put_with(&key(number), &value(number + round * 1000, 2000), Durability::None)
                    .expect("a put works");
            }
        }
        db.sync().expect("everything can be flushed");
        support::eventually("overwritten records give their space back", || {
            segment_files(directory.path()).len() <= 2 + OVERHEAD_SEGMENTS
        });
        for number in 0..1000 {
            assert_get(&table, &key(number), Some(&value(number + 29_000, 2000)), kind.name());
        }
        assert_eq!(db.stats().trouble, None, "{}: background work went through", kind.name());
    }
}

#[test]
fn what_is_gone_gives_its_space_back() {
    type Remove = fn(&Db, &Table);
    let ways: [(&str, Remove); 3] = [
        ("deletes", |_, table| {
            for number in 0..4000 {
                table.delete_with(&key(number), Durability::None).expect("a delete works");
            }
        }),
        ("a truncate", |db, _| db.truncate_table("t").expect("a table can be emptied")),
        ("a drop", |db, _| db.drop_table("t").expect("a table can be dropped")),
    ];
    for kind in KINDS {
        for (how, remove) in &ways {
            let directory = scratch();
            let (db, table) = open(directory.path(), kind, &small());
            for number in 0..4000 {
                // Some in chunks.
                let length = if number % 400 == 0 { 600_000 } else { 4500 };
                table.put_with(&key(number), &value(number, length), Durability::None).expect("a put works");
            }
            db.sync().expect("everything can be flushed");
            let before = segment_files(directory.path()).len();
            assert!(before >= 20, "the values fill {before} segments");
            remove(&db, &table);
            support::eventually(&format!("{}: the space comes back after {how}", kind.name()), || {
                segment_files(directory.path()).len() <= OVERHEAD_SEGMENTS
            });
            assert_eq!(db.stats().trouble, None, "{}: background work went through", kind.name());
        }
    }
}

#[test]
fn large_values_are_reclaimed_with_their_parts() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &support::quiet());
        // Of 12 values in 5 to 8 parts each, half stay as they are while the others are overwritten around them.
        let length = |number: u64| (5 << 18) + number as usize * 70_000;
        for number in 0..12 {
            table.put_with(&key(number), &value(number, length(number)), Durability::None).expect("a put works");
        }
        let mut most = 0;
        for round in 1..=8u64 {
            for number in (0..12).step_by(2) {
                let value = value(number + round * 100, length(number));
                table.put_with(&key(number), &value, Durability::None).expect("a put works");
            }
            upkeep(&db);
            most = most.max(segment_files(directory.path()).len());
            for number in 0..12u64 {
                let last = if number.is_multiple_of(2) { number + round * 100 } else { number };
                let when = format!("{}: after round {round}", kind.name());
                assert_get(&table, &key(number), Some(&value(last, length(number))), &when);
            }
        }
        let stats = db.stats();
        let written = stats.log_bytes_written >> 20;
        println!("{}: {written} MiB written into at most {most} segments", kind.name());
        assert!(stats.bytes_moved_by_reclaim > 0, "{}: parts were moved", kind.name());
        // 20 MiB of values; parts of 256 KiB leave a part of each segment unused, and a third may be garbage.
        assert!(most <= 45 + OVERHEAD_SEGMENTS, "{}: {written} MiB written into {most} segments of 1 MiB", kind.name());
        assert!(damage(&db).is_empty(), "{}: a check finds no damage, but {:?}", kind.name(), damage(&db));
        db.close().expect("a sound store can be closed");
        drop((db, table));
        let (_db, table) = open(directory.path(), kind, &support::quiet());
        for number in 0..12u64 {
            let last = if number.is_multiple_of(2) { number + 800 } else { number };
            assert_get(&table, &key(number), Some(&value(last, length(number))), "after it was opened again");
        }
    }
}

/// Where sorted runs learn late what was overwritten, the records that named its parts may lie in segments that were used again by then:
/// the parts give their space back all the same.
#[test]
fn large_values_that_were_overwritten_long_ago_give_their_space_back() {
    const ROUNDS: u64 = 100;
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &support::quiet());
        let small = |round: u64, number: u64| value(round * 100 + number, 3000);
        for round in 0..ROUNDS {
            let large = value(round, 1 << 20);
            table.put_with(&key(round % 4), &large, Durability::None).expect("a put works");
            for number in 10..110 {
                table.put_with(&key(number), &small(round, number), Durability::None).expect("a put works");
            }
            if round % 4 == 3 {
                db.checkpoint().expect("a checkpoint can be made");
            }
            for step in [Step::Settle, Step::Reclaim, Step::Reclaim, Step::Reclaim, Step::Prepare] {
                db.step(step).unwrap_or_else(|error| panic!("{}: {step:?}: {error}", kind.name()));
            }
        }
        upkeep(&db);
        upkeep(&db);
        let left = segment_files(directory.path()).len();
        println!("{}: {left} segments are left", kind.name());
        // 4 MiB in parts of 256 KiB, of which a third may be garbage.
        assert!(left <= 8 + OVERHEAD_SEGMENTS, "{}: {left} segments of 1 MiB", kind.name());
        assert_eq!(db.recount().expect("everything can be counted"), Vec::<String>::new(), "{}", kind.name());
        for round in ROUNDS - 4..ROUNDS {
            assert_get(&table, &key(round % 4), Some(&value(round, 1 << 20)), kind.name());
        }
        for number in 10..110 {
            assert_get(&table, &key(number), Some(&small(ROUNDS - 1, number)), kind.name());
        }
    }
}

/// The record that names the parts of a value is small, and lies in one segment; the parts are what takes space.
#[test]
fn large_values_that_have_expired_give_their_space_back() {
    for kind in KINDS {
        let (device, _directory) = simulated();
        let options = Options { segment_bytes: 64 << 10, background: false, ..Options::default() };
        let open = || Db::open_on(device.clone(), "/store", options.clone()).expect("the store opens");
        let db = open();
        let table = db.create_table("t", kind).expect("a table can be made");
        let length = |number: u64| 150_000 + number as usize * 1000;
        let wanted = |number: u64| (number % 4 == 3).then(|| value(number, length(number)));
        let expires_ms = device.wall_ms() + 100_000;
        for number in 0..20 {
            let expires_ms = if wanted(number).is_some() { None } else { NonZeroU64::new(expires_ms) };
            let options = WriteOptions { durability: Some(Durability::None), expires_ms };
            table.put_with(&key(number), &value(number, length(number)), options).expect("a put works");
        }
        db.checkpoint().expect("a checkpoint can be made");
        let work = |db: &Db<SimDevice>| (0..200).for_each(|_| db.step(Step::Upkeep).expect("upkeep works"));
        work(&db);
        let before = device.used_bytes();
        db.close().expect("a sound store can be closed");
        drop((db, table));
        let db = open();
        device.advance_clock(200_000);
        work(&db);
        db.checkpoint().expect("a checkpoint can be made");
        work(&db);
        let after = device.used_bytes();
        println!("{}: {before} bytes before, {after} after", kind.name());
        // Of 3 MB, 0.8 MB have not expired; a third may be garbage, and some segments are kept.
        assert!(after < before * 3 / 4, "{}: {before} bytes before, {after} after", kind.name());
        let wrong = db.recount().expect("what is alive can be counted");
        assert!(wrong.is_empty(), "{}: {}", kind.name(), wrong.join("; "));
        let table = db.table("t").expect("the table is there");
        for number in 0..20 {
            let found = table.get(&key(number)).expect("a get works");
            assert_value(found.as_deref(), wanted(number).as_deref(), &format!("{}: key {number}", kind.name()));
        }
    }
}

/// Until what a key now holds is in the ordered index itself, the record that it held before counts as alive.
#[test]
fn a_full_store_makes_room_of_what_is_dead() {
    /// So long that five of them, each in a batch, leave nothing of a segment unused: none is worth emptying for less
    /// than what is dead.
    const VALUE_BYTES: usize = 203_000;
    /// What the batch that makes the table leaves for the first segment's fifth value.
    const FIRST_VALUE_BYTES: usize = 200_700;
    const SEGMENT_BYTES: u64 = 1 << 20;
    const DEAD: u64 = 30;
    for kind in KINDS {
        for how in ["overwrites", "deletes"] {
            let what = format!("{} after {how}", kind.name());
            let (device, _directory) = simulated();
            let options = Options { segment_bytes: SEGMENT_BYTES, background: false, ..Options::default() };
            let db = Db::open_on(device.clone(), "/store", options).expect("a store can be made");
            let table = db.create_table("t", kind).expect("a table can be made");
            let put = |at: u64, number: u64| {
                table.put_with(&key(at), &value(number, VALUE_BYTES), Durability::None)?;
                db.step(Step::Write)
            };
            table.put_with(b"first", &value(0, FIRST_VALUE_BYTES), Durability::None).expect("a put works");
            db.step(Step::Write).expect("the batch can be written");
            for number in 0..DEAD {
                put(number, number).unwrap_or_else(|error| panic!("{what}: put {number}: {error}"));
            }
            db.checkpoint().expect("a checkpoint can be made");
            device.set_capacity(Some(device.used_bytes() + 12 * SEGMENT_BYTES));
            if how == "overwrites" {
                for number in 0..DEAD {
                    put(number, number + 1000).unwrap_or_else(|error| panic!("{what}: overwrite {number}: {error}"));
                }
            }
            let full = (0..1000).find_map(|number| put(1000 + number, number).err().map(|error| (number, error)));
            let Some((filled, error)) = full else { panic!("{what}: the store gets full") };
            assert!(is_full(&error), "{what}: the store gets full: {error}");
            if how == "overwrites" {
                // Puts wait for what is dead already, so that nothing is left of it.
                assert!(filled > DEAD, "{what}: {filled} puts had room");
                continue;
            }
            if how == "deletes" {
                for number in 0..DEAD {
                    let deleted = table.delete_with(&key(number), Durability::None);
                    deleted.unwrap_or_else(|error| panic!("{what}: delete {number}: {error}"));
                }
            }
            // A put is tried again while the store works.
            for number in 0..DEAD / 2 {
                let mut rounds = 0;
                while let Err(error) = put(5000 + number, number) {
                    rounds += 1;
                    assert!(is_full(&error) && rounds < 100, "{what}: {number} puts had room, then: {error}");
                    let worked = db.step(Step::Upkeep);
                    assert!(worked.as_ref().err().is_none_or(is_full), "{what}: {worked:?}");
                }
            }
            let report = db.verify(&mut |_, _| {}).expect("the store can be checked");
            assert!(report.damage.is_empty(), "{what}: {:?}", report.damage);
        }
    }
}

/// What live records take is counted as they lie: else garbage is taken for alive, and a disk for full. Values of 2048 bytes lie on sectors,
/// two in a unit; those of 1024 bytes four in a unit where that is denser.
#[test]
fn overwrites_of_much_data_are_never_refused() {
    const SEGMENT_BYTES: u64 = 256 << 10;
    const SEGMENTS: u64 = 48;
    for (kind, length) in [(IndexKind::Lmdb, 2048), (IndexKind::Lsm, 2048), (IndexKind::Lsm, 1024)] {
        let what = format!("{}, values of {length} bytes", kind.name());
        let (device, _directory) = simulated();
        let options = Options { segment_bytes: SEGMENT_BYTES, background: false, ..Options::default() };
        let db = Db::open_on(device.clone(), "/store", options).expect("a store can be made");
        let table = db.create_table("t", kind).expect("a table can be made");
        device.set_capacity(Some(device.used_bytes() + SEGMENTS * SEGMENT_BYTES));
        // With the record beside it a value takes this much.
        let records = SEGMENTS * SEGMENT_BYTES * 3 / 5 / (length as u64 + 64);
        let mut latest = vec![0; records as usize];
        let mut random = fastrand::Rng::with_seed(7);
        for put in 0..records * 8 {
            let number = if put < records { put } else { random.u64(..records) };
            let put_it = table.put_with(&key(number), &value(put, length), Durability::None);
            put_it.unwrap_or_else(|error| panic!("{what}: put {put} of {records} records: {error}"));
            latest[number as usize] = put;
            if put % 100 == 0 {
                let worked = db.step(Step::Upkeep);
                assert!(worked.as_ref().err().is_none_or(is_full), "{what}: {worked:?}");
            }
        }
        let live = db.stats().live_bytes;
        println!("{what}: {records} records, {live} bytes count as alive");
        for (number, put) in latest.into_iter().enumerate() {
            let found = table.get(&key(number as u64)).expect("a get works");
            assert_value(found.as_deref(), Some(&value(put, length)), &format!("{what}: key {number}"));
        }
        let wrong = db.recount().expect("what is alive can be counted");
        assert!(wrong.is_empty(), "{what}: {}", wrong.join("; "));
    }
}

/// A durable write waits for its batch while a later one of its key, which waits for nothing, is published.
#[test]
fn what_is_overwritten_before_it_is_published_is_counted_as_dead() {
    for kind in KINDS {
        let directory = scratch();
        let options = Options { merge_operators: MergeOperators::default().with(Last), ..support::quiet() };
        let db = Db::open(directory.path(), options).expect("a store can be made");
        let settings = TableOptions { merge: Some(Last.name().into()), ..kind.into() };
        let table = db.create_table_with("late", settings).expect("a table can be made");
        let late: [fn(&mut Batch, &Table); 3] = [
            |batch, table| _ = batch.put(table, b"key", b"earlier").expect("it is short"),
            |batch, table| _ = batch.merge(table, b"key", b"earlier").expect("it is short"),
            |batch, table| _ = batch.delete(table, b"key").expect("it is short"),
        ];
        for write in late {
            let mut batch = Batch::new();
            write(&mut batch, &table);
            let waiting = db.append_with(&batch, Durability::Sync).expect("the disk works");
            table.put_with(b"key", b"later", Durability::None).expect("the disk works");
            assert!(!waiting.is_acknowledged(), "nothing has written its batch");
            waiting.wait().expect("the disk works");
            assert_get(&table, b"key", Some(b"later"), "the later one counts");
            db.checkpoint().expect("the disk works");
            for _ in 0..2 {
                db.step(Step::Settle).expect("the disk works");
            }
            let stats = db.stats();
            let known = &stats.tables[0];
            // Sorted runs count a key once for each of them that has it.
            let is_estimate = kind == IndexKind::Lsm;
            assert!(known.keys_exact || is_estimate, "{}: nothing is left to be settled", kind.name());
            assert!(known.keys == 1 || is_estimate, "{}: the other record counts no more", kind.name());
            assert_eq!(db.recount().expect("everything can be counted"), Vec::<String>::new(), "{}", kind.name());
            table.delete_with(b"key", Durability::Sync).expect("the disk works");
            upkeep(&db);
        }
    }
}

/// Of several operands, and what they are added to, the last one counts.
struct Last;

impl MergeOperator for Last {
    fn name(&self) -> &str {
        "last"
    }

    fn merge(&self, _key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        Ok(operands.last().copied().or(base).unwrap_or_default().to_vec())
    }
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::DiskFull { .. } | Error::Io { kind: std::io::ErrorKind::StorageFull, .. })
}
