//! The cache of values and of blocks, seen from outside: what is read once, what stays, and that nothing old comes back.

mod support;

use std::time::Duration;

use aiodb::{Durability, IndexKind, Options, ScanOptions, Table, WriteOptions};
use support::{KINDS, ORDERED, open, open_appending, quiet, scratch, upkeep, value};

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// A value of one, a few or many blocks, which no memtable has.
fn length(number: u64) -> usize {
    [100, 900, 1500, 4096, 9000][number as usize % 5]
}

fn with_cache(cache_bytes: u64) -> Options {
    Options { cache_bytes, ..quiet() }
}

fn with_block_cache(block_cache_bytes: u64) -> Options {
    Options { block_cache_bytes: Some(block_cache_bytes), ..quiet() }
}

/// Reads every key by a get and by a reader, and checks what comes.
fn check_all(table: &Table, keys: u64, wanted: impl Fn(u64) -> Option<Vec<u8>>) {
    for number in 0..keys {
        assert_eq!(table.get(&key(number)).expect("a get works"), wanted(number), "key {number}");
    }
    let mut reader = table.reader(8).expect("a reader can be made");
    let mut numbers = 0..keys;
    let mut seen = 0;
    loop {
        while reader.has_room() {
            let Some(number) = numbers.next() else { break };
            reader.submit(&key(number), number).expect("a get can be submitted");
        }
        let Some(got) = reader.poll().expect("the reader works") else { break };
        assert_eq!(got.value.expect("a get works").map(<[u8]>::to_vec), wanted(got.token), "key {}", got.token);
        seen += 1;
    }
    assert_eq!(seen, keys);
}

#[test]
fn a_get_of_an_lsm_table_reads_a_block_and_a_value_and_the_cache_has_the_blocks() {
    const KEYS: u64 = 3000;
    for block_cache_bytes in [0, 1 << 20] {
        let directory = scratch();
        let (db, table) = open(directory.path(), IndexKind::Lsm, &with_block_cache(block_cache_bytes));
        for number in 0..KEYS {
            table.put(&key(number), &value(number, length(number))).expect("a put works");
        }
        check_all(&table, KEYS, |number| Some(value(number, length(number))));
        let in_memtable = db.metrics();
        assert_eq!((in_memtable.run_block_reads, in_memtable.run_block_hits, in_memtable.runs), (0, 0, 0));
        db.checkpoint().expect("a checkpoint works");
        check_all(&table, KEYS, |number| Some(value(number, length(number))));
        let metrics = db.metrics();
        assert_eq!(metrics.runs, 1);
        assert_eq!(metrics.run_block_reads + metrics.run_block_hits, 2 * KEYS, "one block by a get, one by a reader");
        assert_eq!((metrics.cache_bytes, metrics.block_cache_budget_bytes), (0, block_cache_bytes));
        if block_cache_bytes == 0 {
            assert_eq!(metrics.run_block_hits, 0);
            continue;
        }
        assert!((1..=block_cache_bytes).contains(&metrics.block_cache_bytes), "{} bytes", metrics.block_cache_bytes);
        let blocks = metrics.run_file_bytes / 4096;
        assert!((1..blocks).contains(&metrics.run_block_reads), "{} of {blocks}", metrics.run_block_reads);
        check_all(&table, KEYS, |number| Some(value(number, length(number))));
        assert_eq!(db.metrics().run_block_reads, metrics.run_block_reads);
    }
}

/// Rows of several runs in turn, as those of a partition, of a list or of a sorted set.
#[test]
fn a_short_scan_of_an_lsm_table_is_read_once_from_the_device() {
    const KEYS: u64 = 6000;
    const RUNS: u64 = 3;
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Lsm, &with_cache(32 << 20));
    for run in 0..RUNS {
        for number in (run..KEYS).step_by(RUNS as usize) {
            table.put_with(&key(number), &value(number, 100), Durability::None).expect("a put works");
        }
        db.checkpoint().expect("a checkpoint works");
    }
    assert_eq!(db.metrics().runs, RUNS);
    for backward in [false, true] {
        let scan = || {
            let options = ScanOptions::all().limit(20);
            let options = if backward { options.to(&key(3000)).backward() } else { options.from(&key(3000)) };
            let found: Vec<_> =
                table.scan(options).expect("a scan begins").map(|record| record.expect("a record").0).collect();
            let wanted = (0..20).map(|step| if backward { 3000 - step } else { 3000 + step });
            assert!(found.iter().eq(wanted.map(|number| key(number).to_vec()).collect::<Vec<_>>().iter()));
        };
        let before = db.metrics();
        scan();
        let once = db.metrics();
        scan();
        let twice = db.metrics();
        // Backward the same blocks are asked for again, or their neighbours.
        let read = |from: &aiodb::Metrics, to: &aiodb::Metrics| to.run_block_reads - from.run_block_reads;
        assert!(backward || read(&before, &once) >= RUNS, "{} blocks", read(&before, &once));
        assert_eq!(read(&once, &twice), 0);
        assert!(twice.run_block_hits - once.run_block_hits >= RUNS);
        assert_eq!(twice.cache_misses, once.cache_misses, "values too");
    }
    // All that a long scan reads is not left there.
    let before = db.metrics().cache_bytes;
    assert_eq!(table.scan(ScanOptions::all()).expect("a scan begins").count() as u64, KEYS);
    let more_bytes = db.metrics().cache_bytes - before;
    assert!(more_bytes < 100_000, "{more_bytes} bytes more");
}

#[test]
fn blocks_have_a_share_of_the_memory_unless_the_options_say_otherwise() {
    let directory = scratch();
    let (db, _table) = open(directory.path(), IndexKind::Lsm, &quiet());
    let budget = db.metrics().block_cache_budget_bytes;
    assert!((8 << 20..=1 << 30).contains(&budget), "{budget} bytes");
}

#[test]
fn a_cached_value_is_read_once_from_the_device() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &with_cache(32 << 20));
        for number in 0..100 {
            table.put(&key(number), &value(number, length(number))).expect("a put works");
        }
        check_all(&table, 100, |number| Some(value(number, length(number))));
        let once = db.metrics();
        assert_eq!((once.cache_misses, once.cache_hits), (100, 100), "{}: the reader finds all", kind.name());
        assert_eq!(once.get_read_wait_ns.count(), 100, "{}", kind.name());
        check_all(&table, 100, |number| Some(value(number, length(number))));
        let part = table.get_range(&key(3), 5, 7).expect("a get works");
        assert_eq!(part.as_deref(), Some(&value(3, length(3))[5..12]));
        let twice = db.metrics();
        assert_eq!((twice.cache_misses, twice.cache_hits), (100, 301), "{}", kind.name());
        assert_eq!((twice.get_read_wait_ns.count(), twice.reader_read_wait_ns.count()), (100, 0));
        assert!(twice.cache_bytes > 0 && twice.cache_bytes <= twice.cache_budget_bytes);
    }
}

#[test]
fn without_a_cache_every_get_reads_the_device() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &with_cache(0));
        table.put(&key(1), b"value").expect("a put works");
        for _ in 0..3 {
            assert!(table.get(&key(1)).expect("a get works").is_some());
        }
        let metrics = db.metrics();
        assert_eq!((metrics.cache_hits, metrics.cache_misses, metrics.cache_bytes), (0, 0, 0));
        assert_eq!(metrics.get_read_wait_ns.count(), 3, "{}", kind.name());
    }
}

fn get_by_reader(table: &Table, key: &[u8]) -> Option<Vec<u8>> {
    let mut reader = table.reader(1).expect("a reader can be made");
    reader.submit(key, 0).expect("a get can be submitted");
    let got = reader.poll().expect("the reader works").expect("a get is in flight");
    got.value.expect("a get works").map(<[u8]>::to_vec)
}

#[test]
fn operands_are_applied_to_a_cached_value() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open_appending(&directory, kind, with_cache(1 << 20));
        // So long that no memtable has it.
        let base = [b'-'; 100];
        let with = |operands: &[u8]| Some([&base[..], operands].concat());
        table.put(&key(1), &base).expect("a put works");
        table.get(&key(1)).expect("a get works");
        let put = db.metrics();
        assert_eq!((put.cache_hits, put.get_read_wait_ns.count()), (0, 1));
        table.merge(&key(1), b"+1").expect("a merge works");
        table.merge(&key(1), b"+2").expect("a merge works");
        assert_eq!(table.get(&key(1)).expect("a get works"), with(b"+1+2"));
        assert_eq!(get_by_reader(&table, &key(1)), with(b"+1+2"));
        let merged = db.metrics();
        // Only an ordered index knows which of its places are operands.
        let has_read = merged.reader_read_wait_ns.count() > 0;
        assert_eq!(has_read, kind == IndexKind::Hash, "{}: what the get has read is cached", kind.name());
        // The memtable of an `lsm` table has short operands.
        let reads = if kind == IndexKind::Lsm { 1 } else { 3 };
        assert_eq!(merged.get_read_wait_ns.count(), reads, "{}: the get has read two operands", kind.name());
        assert_eq!(table.get(&key(1)).expect("a get works"), with(b"+1+2"));
        // An unordered index does not know which of its places are operands, so it has to look.
        let again = if kind.is_ordered() { 0 } else { 2 };
        assert_eq!(db.metrics().get_read_wait_ns.count(), reads + again, "{}", kind.name());
        table.merge(&key(1), b"+3").expect("a merge works");
        assert_eq!(table.get(&key(1)).expect("a get works"), with(b"+1+2+3"));
        table.delete(&key(1)).expect("a delete works");
        assert_eq!(table.get(&key(1)).expect("a get works"), None);
        table.merge(&key(1), b"+4").expect("a merge works");
        for _ in 0..2 {
            assert_eq!(table.get(&key(1)).expect("a get works").as_deref(), Some(&b"+4"[..]));
        }
    }
}

#[test]
fn what_is_written_is_cached_if_that_is_wanted() {
    for durability in [Durability::Sync, Durability::None] {
        for kind in KINDS {
            let directory = scratch();
            let options = Options { cache_writes: true, durability, ..with_cache(1 << 20) };
            let (db, table) = open_appending(&directory, kind, options);
            for number in 0..10 {
                table.put(&key(number), &value(number, length(number))).expect("a put works");
            }
            table.merge(&key(10), b"operand").expect("a merge works");
            db.sync().expect("what is pending can be written");
            for number in 0..10 {
                let found = table.get(&key(number)).expect("a get works");
                assert_eq!(found, Some(value(number, length(number))), "{} key {number}", kind.name());
            }
            let puts = db.metrics();
            assert_eq!((puts.cache_hits, puts.get_read_wait_ns.count()), (10, 0), "{}", kind.name());
            assert_eq!(table.get(&key(10)).expect("a get works").as_deref(), Some(&b"operand"[..]));
            // In an ordered index an operand is told from a value; in a `hash` table the first one of a key is a put.
            assert_eq!(db.metrics().get_read_wait_ns.count(), 0, "{}", kind.name());
        }
    }
}

#[test]
fn a_table_can_leave_the_cache_to_others() {
    for kind in KINDS {
        let directory = scratch();
        let options = Options { cache_writes: true, ..with_cache(1 << 20) };
        let (db, table) = open_appending(&directory, kind, options);
        table.set_cached(false).expect("the table is there");
        let other = db.create_table("other", kind).expect("a table can be made");
        for number in 0..10 {
            table.put(&key(number), &value(number, length(number))).expect("a put works");
            other.put(&key(number), &value(number, length(number))).expect("a put works");
        }
        db.sync().expect("what is pending can be written");
        for _ in 0..2 {
            check_all(&table, 10, |number| Some(value(number, length(number))));
            check_all(&other, 10, |number| Some(value(number, length(number))));
        }
        let metrics = db.metrics();
        assert_eq!((metrics.cache_hits, metrics.get_read_wait_ns.count()), (40, 20), "{}", kind.name());
        table.set_cached(true).expect("the table is there");
        check_all(&table, 10, |number| Some(value(number, length(number))));
        assert_eq!(db.metrics().cache_hits, 50, "{}", kind.name());
    }
}

#[test]
fn a_short_scan_asks_the_cache_and_fills_it() {
    for kind in ORDERED {
        let directory = scratch();
        let (db, table) = open_appending(&directory, kind, with_cache(1 << 20));
        for number in 0..20 {
            table.put(&key(number), &value(number, length(number))).expect("a put works");
        }
        let alone = value(20, length(20));
        table.merge(&key(20), &alone).expect("a merge works");
        for round in 0..3 {
            let before = db.metrics();
            let mut scan = table.scan(ScanOptions::all()).expect("a scan");
            for number in 0..20 {
                let (found, bytes) = scan.next_record().expect("a scan works").expect("a record");
                assert_eq!((found, bytes), (&key(number)[..], &value(number, length(number))[..]));
            }
            assert_eq!(scan.next_record().expect("a scan works"), Some((&key(20)[..], &alone[..])));
            assert_eq!(scan.next_record().expect("a scan works"), None);
            let after = db.metrics();
            let hits = after.cache_hits - before.cache_hits;
            assert_eq!(hits, if round == 0 { 0 } else { 21 }, "round {round}");
            assert_eq!(after.cache_misses - before.cache_misses, if round == 0 { 21 } else { 0 });
        }
    }
}

#[test]
fn long_scans_snapshots_and_values_that_expire_leave_the_cache_as_it_is() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &with_cache(1 << 20));
        table.put(&key(1), b"value").expect("a put works");
        let soon = WriteOptions::expiring(Duration::from_secs(3600));
        table.put_with(&key(2), b"short-lived", soon).expect("a put works");
        let empty = db.metrics().cache_bytes;
        let snapshot = db.snapshot().expect("a snapshot");
        assert!(snapshot.get(&table, &key(1)).expect("a get works").is_some());
        assert!(table.get(&key(2)).expect("a get works").is_some());
        assert!(get_by_reader(&table, &key(2)).is_some());
        assert_eq!((db.metrics().cache_hits, db.metrics().cache_bytes), (0, empty), "{}", kind.name());
        assert!(table.get(&key(1)).expect("a get works").is_some());
        assert!(db.metrics().cache_bytes > empty, "{}: a plain get fills it", kind.name());
        for number in 0..1000 {
            table.put(&key(number), &value(number, 100)).expect("a put works");
        }
        db.checkpoint().expect("a checkpoint");
        assert_eq!(table.iterate().expect("a scan").count(), 1000);
        let cached = db.metrics().cache_bytes - empty;
        assert!(cached < 300 * 200, "{}: most of a scan's thousand records stay out: {cached} bytes", kind.name());
    }
}

/// Keys are overwritten and deleted, their segments emptied and used for other keys, while the cache remembers places of
/// all of them.
#[test]
fn what_was_cached_never_comes_back_after_overwrites_moves_and_reuse_of_segments() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &with_cache(8 << 20));
        let keys = 400;
        let mut reused = 0;
        for round in 0..12u64 {
            for number in 0..keys {
                if (number + round).is_multiple_of(7) {
                    table.delete_with(&key(number), Durability::None).expect("a delete works");
                } else if !(number + round).is_multiple_of(5) || round == 0 {
                    let seed = number + round * 1000;
                    table.put_with(&key(number), &value(seed, length(number)), Durability::None).expect("a put works");
                }
            }
            let wanted = |number: u64| {
                let changed = |round: &u64| !(number + round).is_multiple_of(5) || *round == 0;
                let last = (0..=round).rev().find(|round| (number + round).is_multiple_of(7) || changed(round));
                let round = last.filter(|round| !(number + round).is_multiple_of(7))?;
                Some(value(number + round * 1000, length(number)))
            };
            check_all(&table, keys, wanted);
            upkeep(&db);
            check_all(&table, keys, wanted);
            reused = db.metrics().reclaimed_segments;
        }
        assert!(reused >= 4, "{}: segments are used again: {reused}", kind.name());
        assert!(db.metrics().cache_hits > 1000, "{}: the cache answers", kind.name());
    }
}

/// A cache with more room than there is data has all of it, also after everything was written over many times and what is
/// rarely written was moved. Before any of that was read.
#[test]
fn what_is_current_stays_in_a_cache_that_has_room_for_it() {
    const KEYS: u64 = 1000;
    for kind in KINDS {
        let directory = scratch();
        // What was overwritten leaves the cache when that is known, which in sorted runs is when they are merged.
        let cache_bytes = if kind == IndexKind::Lsm { 16 << 20 } else { 4 << 20 };
        let options = Options { cache_writes: true, durability: Durability::None, ..with_cache(cache_bytes) };
        let (db, table) = open(directory.path(), kind, &options);
        let mut random = fastrand::Rng::with_seed(7);
        let mut newest: Vec<u64> = (0..KEYS).collect();
        let put = |number: u64, seed: u64| table.put(&key(number), &value(seed, 1000)).expect("a put works");
        (0..KEYS).for_each(|number| _ = put(number, number));
        for round in 1..=40 {
            for change in 0..KEYS {
                // A tenth of the keys is never written again.
                let number = random.u64(KEYS / 10..KEYS);
                newest[number as usize] = round * KEYS + change;
                put(number, newest[number as usize]);
            }
            upkeep(&db);
        }
        let before = db.metrics();
        assert!(before.reclaim_moved_bytes > 0, "{}: what is not written is moved", kind.name());
        check_all(&table, KEYS, |number| Some(value(newest[number as usize], 1000)));
        let after = db.metrics();
        assert_eq!(after.cache_misses - before.cache_misses, 0, "{}", kind.name());
        assert_eq!(after.cache_hits - before.cache_hits, 2 * KEYS, "{}", kind.name());
    }
}
