//! Storage modes of tables: what memory keeps by preference, what is refused, and that a change under load changes no answer.

mod faults;

#[path = "../support/mod.rs"]
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aiodb::{
    Db, Durability, Error, IndexKind, Options, ScanOptions, Step, StorageMode, Table, TableModes, TableOptions,
};
use support::{KINDS, assert_get, eventually, open, quiet, refusal, scratch, small, value};

use StorageMode::{Auto, Disk, Memory};

const KEYS: u64 = 2000;
const VALUE_BYTES: usize = 700;

fn key(number: u64) -> [u8; 8] {
    // Neighbouring numbers lie far apart.
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

fn modes(keys: StorageMode, values: StorageMode) -> TableModes {
    TableModes { keys, values }
}

/// Puts values of a generation of their own.
fn fill(table: &Table, generation: u64) {
    for number in 0..KEYS {
        let value = value(number + generation * KEYS, VALUE_BYTES);
        table.put_with(&key(number), &value, Durability::None).expect("a put works");
    }
}

fn check(table: &Table, generation: u64) {
    for number in 0..KEYS {
        assert_get(table, &key(number), Some(&value(number + generation * KEYS, VALUE_BYTES)), "after a fill");
    }
}

/// How often blocking gets have read a value from the device, and look-ups a block.
fn reads(db: &Db) -> (u64, u64) {
    let metrics = db.metrics();
    (metrics.get_read_wait_ns.count(), metrics.run_block_reads)
}

/// What `read` adds to [`reads`].
fn reads_of(db: &Db, read: impl FnOnce()) -> (u64, u64) {
    let before = reads(db);
    read();
    let after = reads(db);
    (after.0 - before.0, after.1 - before.1)
}

/// In a `hash` table a few keys may share their tags, and need a read more.
fn assert_each_read(reads: u64, what: &str) {
    assert!((KEYS..KEYS + 20).contains(&reads), "{what}: {reads} reads of {KEYS} values");
}

/// Does what the store's own threads would do, until nothing is due.
fn settle(db: &Db) {
    for _ in 0..200 {
        db.step(Step::Upkeep).expect("upkeep works");
    }
}

#[test]
fn modes_survive_truncates_and_openings_and_a_new_table_has_none() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        assert_eq!(table.modes(), TableModes::default());
        let wanted = if kind == IndexKind::Lsm { modes(Disk, Disk) } else { modes(Memory, Memory) };
        db.set_table_modes("t", wanted).expect("modes can be changed");
        let made = TableOptions { modes: modes(Memory, Disk), ..kind.into() };
        let other = db.create_table_with("other", made.clone()).expect("a table can be made");
        assert_eq!((table.modes(), other.options()), (wanted, made.clone()));
        // A process that dies leaves what was acknowledged.
        fill(&table, 1);
        db.truncate_table("t").expect("a table can be emptied");
        assert_eq!(table.modes(), wanted);
        std::mem::forget((db.clone(), table.clone()));
        let copied = scratch();
        copy(directory.path(), copied.path());
        for path in [copied.path(), copied.path()] {
            let (db, table) = open(path, kind, &quiet());
            assert_eq!((table.modes(), db.table("other").expect("it is there").options()), (wanted, made.clone()));
            db.close().expect("the store can be closed");
        }
        db.drop_table("t").expect("a table can be dropped");
        assert_eq!(table.modes(), TableModes::default(), "of no table");
        assert_eq!(db.create_table("t", kind).expect("a table can be made").modes(), TableModes::default());
    }
}

/// A truncate gives a table another number, by which caches know it. Nobody has to look at the memory of the store before they do.
#[test]
fn caches_know_a_table_that_was_emptied_at_once() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Lsm, &quiet());
    db.set_table_modes("t", modes(Disk, Disk)).expect("modes can be changed");
    fill(&table, 1);
    db.truncate_table("t").expect("a table can be emptied");
    let check_refused = |db: &Db, table: &Table, when: &str| {
        fill(table, 2);
        db.checkpoint().expect("a checkpoint works");
        (0..2).for_each(|_| check(table, 2));
        let stats = table.stats().expect("a table has stats");
        assert!(stats.blocks > 0 && stats.cached_blocks == 0, "{when}: {stats:?}");
    };
    // A process that died then: the next one finds the truncate in the log.
    let copied = scratch();
    copy(directory.path(), copied.path());
    check_refused(&db, &table, "emptied");
    let (db, table) = open(copied.path(), IndexKind::Lsm, &quiet());
    check_refused(&db, &table, "opened again");
}

/// Copies the files of a store, as a process that dies leaves them.
fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).expect("a directory can be made");
    for entry in std::fs::read_dir(from).expect("a directory can be listed") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}

#[test]
fn modes_that_contradict_each_other_are_refused_with_the_reason() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let mut refused = vec![(modes(Disk, Memory), "before it knows of a value in memory")];
        match kind {
            IndexKind::Hash => refused.push((modes(Disk, Auto), "where memory has no room for them")),
            IndexKind::Lmdb => refused.push((modes(Disk, Disk), "page cache")),
            IndexKind::Lsm => {}
        }
        for (modes, reason) in refused {
            let made = db.create_table_with("x", TableOptions { modes, ..kind.into() });
            for error in [refusal(db.set_table_modes("t", modes), "such modes"), refusal(made, "such a table")] {
                assert!(matches!(error, Error::Option { option: "keys", .. }), "{error:?}");
                assert!(error.to_string().contains(reason), "{error}");
            }
            assert_eq!((table.modes(), db.tables().len()), (TableModes::default(), 1));
        }
        let missing = refusal(db.set_table_modes("nobody", modes(Memory, Auto)), "modes of no table");
        assert!(matches!(missing, Error::NoSuchTable { .. }), "{missing:?}");
    }
}

#[test]
fn modes_of_several_tables_change_together_or_not_at_all() {
    let directory = scratch();
    let (db, _) = open(directory.path(), IndexKind::Lsm, &quiet());
    db.create_table("lmdb", IndexKind::Lmdb).expect("a table can be made");
    let found = |db: &Db| ["t", "lmdb"].map(|name| db.table(name).expect("it is there").modes());
    let checkpoints = || db.stats().checkpoints;
    let before = checkpoints();
    let wanted = [modes(Memory, Auto), modes(Memory, Disk)];
    db.set_modes_of_tables(&[("t", wanted[0]), ("lmdb", wanted[1])]).expect("modes can be changed");
    assert_eq!((found(&db), checkpoints()), (wanted, before + 1));
    for refused in
        [[("t", modes(Disk, Disk)), ("lmdb", modes(Disk, Disk))], [("t", modes(Disk, Disk)), ("none", wanted[0])]]
    {
        refusal(db.set_modes_of_tables(&refused), "a change of which a part makes no sense");
        assert_eq!((found(&db), checkpoints()), (wanted, before + 1));
    }
    db.close().expect("it can be closed");
    let (db, _) = open(directory.path(), IndexKind::Lsm, &quiet());
    assert_eq!(found(&db), wanted);
}

#[test]
fn values_in_memory_are_read_once_and_values_on_disk_each_time() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        fill(&table, 1);
        db.checkpoint().expect("a checkpoint works");
        let all = || check(&table, 1);
        assert_each_read(reads_of(&db, all).0, "without a cache each get reads its value");
        db.set_table_modes("t", modes(Auto, Memory)).expect("modes can be changed");
        all();
        assert_eq!(reads_of(&db, all), (0, 0), "of a {} table", kind.name());
        let stats = table.stats().expect("a table has stats");
        assert_eq!((stats.cached_values, stats.values_in_memory()), (KEYS, Some(1.0)));
        assert!(stats.value_hits >= KEYS && stats.value_misses >= KEYS, "{stats:?}");
        // What is written now is there without being read.
        fill(&table, 2);
        db.checkpoint().expect("a checkpoint works");
        assert_eq!(reads_of(&db, || check(&table, 2)).0, 0);
        db.set_table_modes("t", modes(Auto, Disk)).expect("modes can be changed");
        for _ in 0..2 {
            assert_each_read(reads_of(&db, || check(&table, 2)).0, "with values on disk");
        }
        assert_eq!(db.stats().memory.cache_bytes, 0, "memory that no table wants goes back");
    }
}

#[test]
fn keys_in_memory_are_brought_there_and_keys_on_disk_are_read_each_time() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Lsm, &quiet());
    fill(&table, 1);
    db.checkpoint().expect("a checkpoint works");
    db.set_table_modes("t", modes(Disk, Auto)).expect("modes can be changed");
    for _ in 0..2 {
        assert_eq!(reads_of(&db, || check(&table, 1)), (KEYS, KEYS), "a block and a value");
    }
    let stats = table.stats().expect("a table has stats");
    assert!(stats.blocks > 4 && stats.cached_blocks == 0 && stats.keys_in_memory() == Some(0.0), "{stats:?}");
    db.set_table_modes("t", modes(Memory, Auto)).expect("modes can be changed");
    settle(&db);
    assert_eq!(reads_of(&db, || check(&table, 1)), (KEYS, 0), "all blocks were brought to memory");
    assert_eq!(table.stats().expect("a table has stats").keys_in_memory(), Some(1.0));
    // Blocks of files that are gone do not count, nor stay.
    fill(&table, 2);
    db.checkpoint().expect("a checkpoint works");
    fill(&table, 3);
    db.checkpoint().expect("a checkpoint works");
    (0..4).for_each(|_| db.step(Step::Merge).expect("a merge works"));
    check(&table, 3);
    let stats = table.stats().expect("a table has stats");
    assert!(stats.cached_blocks <= stats.blocks, "{stats:?}");
}

/// All that is wanted in memory comes there when the store is opened, before anybody asks; what memory has no room for does not.
#[test]
fn a_store_that_is_opened_brings_to_memory_what_belongs_there() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let made = TableOptions { modes: modes(Memory, Memory), ..kind.into() };
        let warm = db.create_table_with("warm", made).expect("a table can be made");
        fill(&table, 1);
        fill(&warm, 2);
        db.close().expect("the store can be closed");
        let (db, table) = open(directory.path(), kind, &quiet());
        let warm = db.table("warm").expect("it is there");
        settle(&db);
        assert_eq!(reads_of(&db, || check(&warm, 2)), (0, 0), "of a {} table", kind.name());
        assert_each_read(reads_of(&db, || check(&table, 1)).0, "of the other table");
        db.close().expect("the store can be closed");
        // A quarter of the values fits.
        let options = Options { cache_bytes: KEYS * VALUE_BYTES as u64 / 4, ..quiet() };
        let (db, _) = open(directory.path(), kind, &options);
        settle(&db);
        let stats = db.table("warm").expect("it is there").stats().expect("a table has stats");
        let share = stats.values_in_memory().expect("it has keys");
        assert!((0.1..0.3).contains(&share), "{share} of the values");
        assert!(db.metrics().cache_bytes <= options.cache_bytes);
    }
}

#[test]
fn where_memory_does_not_suffice_a_preferred_table_keeps_its_hits() {
    for kind in KINDS {
        let directory = scratch();
        // Room for the values of one table and a half.
        let cache_bytes = KEYS * VALUE_BYTES as u64 * 3 / 2;
        let options = Options { cache_bytes, ..quiet() };
        let (db, other) = open(directory.path(), kind, &options);
        let made = TableOptions { modes: modes(Auto, Memory), ..kind.into() };
        let preferred = db.create_table_with("preferred", made).expect("a table can be made");
        for (table, generation) in [(&preferred, 1), (&other, 2)] {
            fill(table, generation);
        }
        db.checkpoint().expect("a checkpoint works");
        check(&preferred, 1);
        for _ in 0..5 {
            let of_other = reads_of(&db, || (0..3).for_each(|_| check(&other, 2))).0;
            assert!(of_other > KEYS, "the others' values do not fit: {of_other} reads");
            assert_eq!(reads_of(&db, || check(&preferred, 1)).0, 0, "of a {} table", kind.name());
        }
        // The other way round it takes a while, and nothing is lost.
        db.set_table_modes("preferred", modes(Auto, Auto)).expect("modes can be changed");
        db.set_table_modes("t", modes(Auto, Memory)).expect("modes can be changed");
        for _ in 0..4 {
            check(&other, 2);
        }
        check(&preferred, 1);
        assert_eq!(reads_of(&db, || check(&other, 2)).0, 0, "of a {} table", kind.name());
    }
}

/// A cache that has been in use for a while is full of what others have read.
#[test]
fn a_table_whose_mode_changes_comes_to_a_cache_that_is_full_of_others() {
    for kind in KINDS {
        let directory = scratch();
        let options = Options { cache_bytes: KEYS * VALUE_BYTES as u64 * 3 / 2, ..quiet() };
        let (db, other) = open(directory.path(), kind, &options);
        let table = db.create_table("late", kind).expect("a table can be made");
        fill(&table, 1);
        fill(&other, 2);
        db.checkpoint().expect("a checkpoint works");
        check(&table, 1);
        (0..3).for_each(|_| check(&other, 2));
        assert!(db.metrics().cache_bytes > options.cache_bytes * 7 / 8, "it is full");
        db.set_table_modes("late", modes(Auto, Memory)).expect("modes can be changed");
        settle(&db);
        assert_eq!(reads_of(&db, || check(&table, 1)).0, 0, "of a {} table", kind.name());
    }
}

#[test]
fn a_budget_that_is_too_small_takes_values_first_and_nothing_fails() {
    let directory = scratch();
    let options = Options { memory_bytes: Some(40 << 20), ..quiet() };
    let (db, table) = open(directory.path(), IndexKind::Lsm, &options);
    db.set_table_modes("t", modes(Memory, Memory)).expect("modes can be changed");
    // Several times what is left of the budget.
    let wanted = |number: u64| value(number, 3 << 10);
    for number in 0..10_000 {
        table.put_with(&key(number), &wanted(number), Durability::None).expect("a put works");
        if number % 1000 == 0 {
            db.step(Step::Upkeep).expect("upkeep works");
        }
    }
    db.checkpoint().expect("a checkpoint works");
    settle(&db);
    for number in 0..10_000 {
        assert_get(&table, &key(number), Some(&wanted(number)), "with a small budget");
    }
    let (stats, memory) = (table.stats().expect("a table has stats"), db.stats().memory);
    assert_eq!(stats.keys_in_memory(), Some(1.0), "keys are in memory: {stats:?}");
    assert!(stats.values_in_memory().is_some_and(|share| share < 0.7), "{stats:?}");
    assert!(memory.used_bytes() <= memory.budget_bytes + (8 << 20), "{memory:?}");
    // With less, values go, and the budget is met.
    db.set_memory_bytes(Some(30 << 20)).expect("the budget can be changed");
    settle(&db);
    let less = table.stats().expect("a table has stats");
    assert!(less.cached_values < stats.cached_values && less.keys_in_memory() == Some(1.0), "{less:?}");
}

/// Long scans leave what they read where a table's modes say so, and only there.
#[test]
fn scans_fill_the_memory_of_tables_that_want_it() {
    for (wanted, has_values) in [(modes(Memory, Memory), true), (modes(Memory, Disk), false)] {
        let directory = scratch();
        let (db, table) = open(directory.path(), IndexKind::Lsm, &quiet());
        fill(&table, 1);
        db.checkpoint().expect("a checkpoint works");
        db.set_table_modes("t", wanted).expect("modes can be changed");
        assert_eq!(table.scan(ScanOptions::all()).expect("a scan begins").count() as u64, KEYS);
        let expected = if has_values { 0 } else { KEYS };
        assert_eq!(reads_of(&db, || check(&table, 1)), (expected, 0));
    }
}

/// Writers and readers go on while the modes change, and each get sees a value that was current meanwhile.
#[test]
fn a_change_under_load_changes_no_answer() {
    for kind in KINDS {
        let directory = scratch();
        let options = Options { memory_bytes: Some(64 << 20), durability: Durability::None, ..small() };
        let (db, table) = open(directory.path(), kind, &options);
        fill(&table, 0);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                let (table, stop) = (&table, &stop);
                scope.spawn(move || {
                    // Each thread has keys of its own, so it knows their values.
                    let mut current = vec![0; KEYS as usize];
                    let mut random = fastrand::Rng::with_seed(thread);
                    while !stop.load(Ordering::Relaxed) {
                        let number = random.u64(..KEYS / 2) * 2 + thread;
                        let generation = &mut current[number as usize];
                        if random.u8(..4) == 0 {
                            *generation += 1;
                            let value = value(number + *generation * KEYS, VALUE_BYTES);
                            table.put(&key(number), &value).expect("a put works");
                        }
                        let wanted = value(number + *generation * KEYS, VALUE_BYTES);
                        assert_get(table, &key(number), Some(&wanted), "under load");
                    }
                });
            }
            let all = [
                modes(Memory, Memory),
                modes(Auto, Disk),
                modes(Memory, Auto),
                modes(Auto, Memory),
                modes(Memory, Disk),
            ];
            for modes in all.into_iter().chain(all) {
                db.set_table_modes("t", modes).expect("modes can be changed");
                std::thread::sleep(Duration::from_millis(60));
                assert_eq!(table.modes(), modes);
            }
            stop.store(true, Ordering::Relaxed);
        });
        db.sync().expect("all can be written");
        db.set_table_modes("t", modes(Memory, Memory)).expect("modes can be changed");
        eventually("all of it is in memory", || {
            table.stats().expect("a table has stats").values_in_memory().is_some_and(|share| share > 0.95)
        });
        assert_eq!(db.stats().trouble, None);
        db.close().expect("the store can be closed");
    }
}
