//! One budget for the memory of a store: what the process takes in fact, and budgets that change.

mod machine;
mod moments;

#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Db, Durability, Error, IndexKind, Options, Step, Table};
use support::{Role, eventually, refusal, role, say, scratch, value};

const MIB: u64 = 1 << 20;

/// The budget of the store in the child process, and its keys in each table.
const BUDGET: u64 = 64 * MIB;
const KEYS: u64 = 1_000_000;

const VALUE_BYTES: usize = 24;

/// Memory that the process may have with a budget: the program itself takes some, and the allocator.
fn allowed(budget: u64) -> u64 {
    budget + budget / 10 + 32 * MIB
}

/// All memory of this process, that of files which it has mapped too, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has this file");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("every process has this line");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

fn key(number: u64) -> [u8; 16] {
    // Neighbouring numbers lie far apart.
    let first = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
    let mut key = [0; 16];
    key[..8].copy_from_slice(&first);
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

fn options(memory_bytes: u64) -> Options {
    Options {
        memory_bytes: Some(memory_bytes),
        cache_bytes: 32 * MIB,
        cache_writes: true,
        durability: Durability::None,
        ..Options::default()
    }
}

#[test]
fn child() {
    let Some(role) = role() else { return };
    let [name, path, keys] = &role[..] else { panic!("the arguments are known") };
    let (path, keys) = (Path::new(path), keys.parse().expect("a number"));
    match name.as_str() {
        "load" => load(path, keys),
        "moments" => moments::live(path, keys),
        name => panic!("{name} is no role"),
    }
}

/// Fills both tables, and reads what was written, while another thread looks at the memory of the process.
fn load(path: &Path, keys: u64) {
    let db = Db::open(path, options(BUDGET)).expect("a store can be made");
    let tables = [IndexKind::Lsm, IndexKind::Hash].map(|kind| db.create_table(kind.name(), kind).expect("it is made"));
    let (written, is_over) = ([(); 2].map(|()| AtomicU64::new(0)), AtomicBool::new(false));
    let peak = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut peak = 0;
            while !is_over.load(Ordering::SeqCst) {
                let (resident, memory) = (resident_bytes(), db.stats().memory);
                if resident > allowed(BUDGET) {
                    say(&format!("{resident} bytes are resident with {memory:?}"));
                }
                peak = resident.max(peak);
                std::thread::sleep(Duration::from_millis(100));
            }
            peak
        });
        let readers: Vec<_> = (0..2)
            .map(|at| {
                let (table, written, is_over) = (&tables[at], &written[at], &is_over);
                scope.spawn(move || read(table, written, is_over))
            })
            .collect();
        let write = |at: usize| {
            for number in 0..keys {
                tables[at].put(&key(number), &value(number, VALUE_BYTES)).expect("a put works");
                written[at].store(number + 1, Ordering::SeqCst);
            }
        };
        let writers: Vec<_> = (0..2).map(|at| scope.spawn(move || write(at))).collect();
        writers.into_iter().for_each(|writer| writer.join().expect("the writer comes to its end"));
        is_over.store(true, Ordering::SeqCst);
        readers.into_iter().for_each(|reader| reader.join().expect("the reader comes to its end"));
        watcher.join().expect("the watcher comes to its end")
    });
    let memory = db.stats().memory;
    db.close().expect("it can be closed");
    say(&format!("peak {peak} with {memory:?}"));
}

/// Gets of keys that are there, until it is over.
fn read(table: &Table, written: &AtomicU64, is_over: &AtomicBool) {
    let mut random = fastrand::Rng::with_seed(1);
    while !is_over.load(Ordering::SeqCst) {
        let written = written.load(Ordering::SeqCst);
        if written > 0 {
            let number = random.u64(..written);
            let found = table.get(&key(number)).expect("a get works");
            assert_eq!(found, Some(value(number, VALUE_BYTES)), "key {number}");
        }
    }
}

fn stays_within_its_budget(name: &str, keys: u64) {
    let directory = scratch();
    let path = directory.path().to_str().expect("the path is text");
    let mut child = Role::start(&[name, path, &keys.to_string()]);
    let said = child.line().expect("it comes to its end");
    assert!(said.starts_with("peak "), "with a budget of {BUDGET} bytes {said}");
    println!("{said}");
}

#[test]
fn the_process_stays_within_the_budget_of_its_store() {
    stays_within_its_budget("load", KEYS);
}

#[test]
fn the_process_stays_within_the_budget_whatever_the_store_does() {
    stays_within_its_budget("moments", moments::KEYS);
}

/// Slots of so many keys are more than the budget has room for, and their filters take a part of it.
#[test]
#[ignore = "minutes"]
fn the_process_stays_within_the_budget_with_millions_of_keys() {
    stays_within_its_budget("load", 2_500_000);
}

#[test]
fn a_budget_of_an_open_store_shrinks_and_grows() {
    let directory = scratch();
    let large = Options { block_cache_bytes: Some(32 * MIB), ..options(512 * MIB) };
    let db = Db::open(directory.path(), large.clone()).expect("a store can be made");
    let table = db.create_table("t", IndexKind::Lsm).expect("a table can be made");
    let keys = 40_000;
    for number in 0..keys {
        table.put(&key(number), &value(number, 1000)).expect("a put works");
    }
    db.checkpoint().expect("a checkpoint can be made");
    let read = || {
        for number in 0..keys {
            assert_eq!(table.get(&key(number)).expect("a get works"), Some(value(number, 1000)), "key {number}");
        }
    };
    read();
    let before = db.stats().memory;
    assert_eq!(before.budget_bytes, 512 * MIB);
    assert!(before.cache_bytes > 24 * MIB, "the cache of values is full: {before:?}");
    db.set_memory_bytes(Some(40 * MIB)).expect("it is enough");
    eventually("the caches give memory back", || db.stats().memory.used_bytes() <= 40 * MIB);
    let budgets = || (db.metrics().cache_budget_bytes, db.metrics().block_cache_budget_bytes);
    let (cache, block_cache) = budgets();
    assert!(cache < 24 * MIB && cache.abs_diff(block_cache) < MIB, "{cache} and {block_cache} bytes");
    read();
    let shrunk = db.stats().memory;
    assert!(shrunk.used_bytes() <= 40 * MIB, "{shrunk:?}");
    db.set_memory_bytes(Some(512 * MIB)).expect("it is enough");
    eventually("the caches are told", || budgets() == (32 * MIB, 32 * MIB));
    read();
    read();
    assert!(db.stats().memory.cache_bytes > 24 * MIB, "they are used again: {:?}", db.stats().memory);
    db.close().expect("it can be closed");
    // Opened with less than it had, it works.
    let db = Db::open(directory.path(), Options { memory_bytes: Some(40 * MIB), ..large }).expect("it opens");
    let table = db.table("t").expect("it is there");
    assert_eq!(table.get(&key(7)).expect("a get works"), Some(value(7, 1000)));
    assert!(db.stats().memory.used_bytes() <= 40 * MIB, "{:?}", db.stats().memory);
}

#[test]
fn too_little_is_refused_with_the_least() {
    let directory = scratch();
    let error = refusal(Db::open(directory.path(), options(MIB)), "a mebibyte");
    let Error::TooLittleMemory { bytes: MIB, least } = error else { panic!("{error}") };
    assert!(error.to_string().contains(&least.to_string()), "{error}");
    let db = Db::open(directory.path(), options(least)).expect("the least is enough");
    for kind in support::KINDS {
        let table = db.create_table(kind.name(), kind).expect("a table can be made");
        for number in 0..20_000 {
            table.put(&key(number), b"small").expect("a put works");
        }
        assert_eq!(table.get(&key(19_999)).expect("a get works").as_deref(), Some(&b"small"[..]));
    }
    assert!(matches!(db.set_memory_bytes(Some(least - 1)), Err(Error::TooLittleMemory { .. })));
    assert_eq!(db.stats().memory.budget_bytes, least);
}

#[test]
fn more_than_there_is_is_a_warning() {
    let directory = scratch();
    let options = |memory_bytes| Options { memory_bytes, background: false, ..Options::default() };
    let db = Db::open(directory.path(), options(Some(1 << 50))).expect("it opens");
    let warnings = db.stats().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("memory_bytes"), "{warnings:?}");
    db.set_memory_bytes(None).expect("the store decides");
    assert_eq!(db.stats().warnings, [""; 0]);
}

/// Nobody would come back to them: the store has no threads, and nobody asks it for steps. Writers commit what is too much.
#[test]
fn memtables_of_a_store_without_threads_learn_of_a_smaller_budget_at_once() {
    for kind in support::ORDERED {
        let directory = scratch();
        let options = Options { background: false, least_memtable_keys: 100, ..options(512 * MIB) };
        let (db, table) = support::open(directory.path(), kind, &options);
        let Err(Error::TooLittleMemory { least, .. }) = db.set_memory_bytes(Some(1)) else {
            panic!("a byte is enough")
        };
        let put = |numbers: std::ops::Range<u64>| {
            for number in numbers {
                table.put(&key(number), b"small").expect("a put works");
            }
            db.stats().memory.memtable_bytes
        };
        let before = put(0..10_000);
        assert!(before > 10_000 * 200, "{before} bytes in memtables");
        db.set_memory_bytes(Some(least)).expect("it is enough");
        for number in 10_000..10_500 {
            let bytes = put(number..number + 1);
            assert!(bytes <= 2 * 100 * 400, "{}, key {number}: {bytes} bytes in memtables", kind.name());
        }
        for number in 0..10_500 {
            assert_eq!(table.get(&key(number)).expect("a get works").as_deref(), Some(&b"small"[..]), "key {number}");
        }
    }
}

/// Nobody would come back to it.
#[test]
fn a_store_without_threads_shrinks_at_once() {
    let directory = scratch();
    let large = Options { block_cache_bytes: Some(32 * MIB), background: false, ..options(512 * MIB) };
    let db = Db::open(directory.path(), large.clone()).expect("a store can be made");
    let table = db.create_table("t", IndexKind::Lsm).expect("a table can be made");
    let keys = 40_000;
    for number in 0..keys {
        table.put(&key(number), &value(number, 1000)).expect("a put works");
    }
    let shrinks = |db: &Db, table: &Table| {
        for number in 0..keys {
            assert_eq!(table.get(&key(number)).expect("a get works"), Some(value(number, 1000)), "key {number}");
        }
        assert!(db.stats().memory.cache_bytes > 24 * MIB, "it is full: {:?}", db.stats().memory);
        db.set_memory_bytes(Some(40 * MIB)).expect("it is enough");
        let memory = db.stats().memory;
        assert!(memory.cache_bytes < 16 * MIB, "{memory:?}");
    };
    shrinks(&db, &table);
    db.close().expect("it can be closed");
    let db = Db::open(directory.path(), Options { read_only: true, ..large }).expect("it opens");
    shrinks(&db, &db.table("t").expect("it is there"));
}

/// Else a store that was killed for its memory would be killed at each start: memtables have no more keys while the log is replayed than later.
#[test]
fn what_is_replayed_stays_within_the_budget() {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let options = |memory_bytes| Options {
        background: false,
        segment_bytes: MIB,
        durability: Durability::None,
        memory_bytes: Some(memory_bytes),
        ..Options::default()
    };
    let db = Db::open_on(device.clone(), "/store", options(1024 * MIB)).expect("a store can be made");
    let made = db.create_table("made", IndexKind::Lsm).expect("a table can be made");
    db.checkpoint().expect("a checkpoint can be made");
    // The runs of the one are there when the store is opened.
    for number in 0..50_000 {
        made.put(&key(number), b"small").expect("a put works");
    }
    db.sync().expect("a sync works");
    assert!(db.stats().memory.memtable_bytes > 14 * MIB, "{:?}", db.stats().memory);
    let device = device.process_death();
    let db = Db::open_on(device, "/store", options(24 * MIB)).expect("it opens");
    let memory = db.stats().memory;
    assert!(memory.memtable_bytes < 10 * MIB, "{memory:?}");
    let table = db.table("made").expect("it is there");
    for number in (0..50_000).step_by(101) {
        assert_eq!(table.get(&key(number)).expect("a get works").as_deref(), Some(&b"small"[..]), "key {number}");
    }
}

/// Places that share a tag are copied as the others are.
#[test]
fn a_scan_of_a_hash_table_copies_a_part_of_the_budget_whatever_the_tags_are() {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let options = Options {
        background: false,
        segment_bytes: 64 << 10,
        durability: Durability::None,
        memory_bytes: Some(10 * MIB),
        least_memtable_keys: 1,
        // Four keys have one tag.
        hash_mask: !0 << 50,
        ..Options::default()
    };
    let db = Db::open_on(device, "/store", options).expect("a store can be made");
    let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
    let keys = 4 << 14;
    for number in 0..keys {
        table.put(&key(number), b"small").expect("a put works");
    }
    let before = db.stats().memory.buffer_bytes;
    let mut scan = table.iterate().expect("a scan can begin");
    scan.next().expect("there are keys").expect("a scan works");
    let copied = db.stats().memory.buffer_bytes - before;
    // Beside the scan's own buffers; a shard has a thousandth of all.
    assert!((MIB / 2..MIB).contains(&copied), "{copied} bytes");
    drop(scan);
    assert_eq!(db.stats().memory.buffer_bytes, before);
}

/// What slots of `hash` tables have no room for is in files. A budget that is raised has room for more, and one that is lowered for fewer.
#[test]
fn slots_of_hash_tables_stay_within_the_budget() {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let options = Options {
        background: false,
        segment_bytes: MIB,
        durability: Durability::None,
        memory_bytes: Some(32 * MIB),
        ..Options::default()
    };
    let db = Db::open_on(device, "/store", options).expect("a store can be made");
    let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
    let step = |step| db.step(step).expect("the work can be done");
    let spill = || {
        step(Step::Write);
        (0..150).for_each(|_| step(Step::Spill));
        db.stats().memory
    };
    let put = |numbers: std::ops::Range<u64>| {
        for number in numbers {
            table.put(&key(number), b"small").expect("a put works");
            if number % 20_000 == 0 {
                let memory = spill();
                assert!(memory.used_bytes() <= memory.budget_bytes, "{memory:?} with {number} keys");
            }
        }
        spill()
    };
    let memory = put(0..800_000);
    let in_files = || db.stats().tables[0].index_disk_bytes;
    assert!(memory.hash_bytes < 7 * MIB && in_files() > 2 * MIB, "{memory:?}");
    assert!(memory.run_bytes > 200 << 10, "filters count, too: {memory:?}");
    db.set_memory_bytes(Some(256 * MIB)).expect("it is enough");
    let before = in_files();
    let memory = put(800_000..1_400_000);
    assert!(memory.hash_bytes > 8 * MIB && in_files() <= before, "{memory:?}");
    db.set_memory_bytes(Some(32 * MIB)).expect("it is enough");
    let memory = spill();
    assert!(memory.hash_bytes < 7 * MIB && memory.used_bytes() <= 32 * MIB, "{memory:?}");
    for number in (0..1_400_000).step_by(997) {
        assert_eq!(table.get(&key(number)).expect("a get works").as_deref(), Some(&b"small"[..]), "key {number}");
    }
}

/// Filters that do not fit are left out: gets read more, and find the same. They come back where there is room, which upkeep sees and an opening.
#[test]
fn filters_that_do_not_fit_are_left_out() {
    const NUMBERS: u64 = 40_000;
    let directory = scratch();
    let open = |filter_bytes, read_only| {
        let options = Options {
            filter_bytes,
            read_only,
            memory_bytes: Some(64 * MIB),
            segment_bytes: MIB,
            durability: Durability::None,
            ..Options::default()
        };
        Db::open(directory.path(), options).expect("the store can be opened")
    };
    let check = |db: &Db| {
        for (name, _) in db.tables() {
            let table = db.table(&name).expect("it is there");
            for number in (0..2 * NUMBERS).step_by(37) {
                let expected = (number < NUMBERS).then_some(&b"small"[..]);
                assert_eq!(table.get(&key(number)).expect("a get works").as_deref(), expected, "{name}, key {number}");
            }
        }
    };
    let left_out = |db: &Db| {
        let stats = db.stats();
        let is_said = stats.warnings.iter().any(|warning| warning.contains("filters of sorted runs"));
        assert_eq!(is_said, stats.memory.filters_left_out_bytes > 0, "{stats:?}");
        stats.memory.filters_left_out_bytes
    };
    let db = open(None, false);
    for name in ["t", "other"] {
        let table = db.create_table(name, IndexKind::Lsm).expect("a table can be made");
        for number in 0..NUMBERS {
            table.put(&key(number), b"small").expect("a put works");
        }
    }
    db.checkpoint().expect("the disk works");
    assert_eq!(left_out(&db), 0);
    let filters = db.stats().memory.run_bytes;
    db.close().expect("the store closes");
    drop(db);

    let db = open(Some(0), true);
    // Ten bits a key, in both tables.
    assert!(left_out(&db) >= 2 * NUMBERS * 10 / 8, "{:?}", db.stats());
    let without = db.stats().memory.run_bytes;
    assert!(without + left_out(&db) <= filters + filters / 10, "{filters} bytes with filters: {:?}", db.stats());
    check(&db);
    drop(db);

    let db = open(Some(2 * NUMBERS), false);
    assert!(left_out(&db) > 0, "{:?}", db.stats());
    check(&db);
    db.drop_table("other").expect("it can be dropped");
    eventually("filters are back where others are gone", || left_out(&db) == 0);
    check(&db);
    db.close().expect("the store closes");
    drop(db);
    assert_eq!(left_out(&open(None, true)), 0);
}

/// Memtables of long keys have fewer of them.
#[test]
fn long_keys_count_for_what_they_are() {
    let directory = scratch();
    let options = Options { memory_bytes: Some(64 * MIB), background: false, ..Options::default() };
    let db = Db::open(directory.path(), options).expect("a store can be made");
    let table = db.create_table("t", IndexKind::Lsm).expect("a table can be made");
    let mut most = 0;
    for number in 0..20_000_u64 {
        let long = [&key(number)[..], &[7; 4000]].concat();
        table.put_with(&long, b"", Durability::None).expect("a put works");
        most = most.max(db.stats().memory.memtable_bytes);
    }
    assert!((4 * MIB..20 * MIB).contains(&most), "{most} bytes in memtables");
}
