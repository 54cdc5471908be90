//! Damage to the sorted runs of `lsm` tables, while a store is in use: it is said of the block that has it, and all other work goes
//! on.

use std::fs;
use std::path::{Path, PathBuf};

use aiodb::{Durability, IndexKind, Options, Step, Table};

use super::{UNIT, assert_corruption, flip};
use crate::support::{damage, open, quiet, refusal, scratch, value};

const KEYS: u64 = 4_000;
/// More commits than runs may wait for merges.
const COMMITS: u64 = 60;

/// Keys in which each number has its own place in the order.
fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn put_all(table: &Table, round: u64) {
    for number in 0..KEYS {
        table.put_with(&key(number), &value(round, 100), Durability::None).expect("a put works");
    }
}

fn run_files(store: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(store.join("index/runs")).expect("the store has runs");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut runs: Vec<_> = paths.filter(|path| path.extension().is_some_and(|found| found == "run")).collect();
    runs.sort();
    runs
}

#[test]
fn upkeep_and_writes_go_round_a_damaged_block() {
    let directory = scratch();
    let options = Options { checkpoint_bytes: 1 << 20, ..quiet() };
    let (db, table) = open(directory.path(), IndexKind::Lsm, &options);
    put_all(&table, 0);
    db.checkpoint().expect("a checkpoint works");
    db.close().expect("it closes");
    drop((db, table));
    let oldest = run_files(directory.path()).remove(0);
    // In the second of its blocks.
    flip(&oldest, UNIT + 100, 1);

    let (db, table) = open(directory.path(), IndexKind::Lsm, &options);
    for round in 1..=COMMITS {
        put_all(&table, round);
        db.checkpoint().expect("a checkpoint works");
        for _ in 0..10 {
            db.step(Step::Upkeep).expect("upkeep goes on");
        }
    }
    let metrics = db.metrics();
    assert!(metrics.runs < 20, "newer runs are merged: {} runs", metrics.runs);
    assert!(metrics.reclaimed_segments > 0, "segments are emptied");
    for number in 0..KEYS {
        let found = table.get(&key(number)).expect("a newer run has it");
        assert_eq!(found, Some(value(COMMITS, 100)), "{number}");
    }
    let found = damage(&db);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_corruption(&found[0], &oldest, Some(UNIT), "a check");
}

/// Runs know lives of segments: nobody waits for a table that cannot be taken out of them.
#[test]
fn a_dropped_table_with_a_damaged_block_holds_nothing_up() {
    let directory = scratch();
    let options = Options { checkpoint_bytes: 1 << 20, ..quiet() };
    let (db, table) = open(directory.path(), IndexKind::Lsm, &options);
    put_all(&table, 0);
    db.checkpoint().expect("a checkpoint works");
    db.close().expect("it closes");
    drop((db, table));
    flip(&run_files(directory.path()).remove(0), UNIT + 100, 1);

    let (db, _) = open(directory.path(), IndexKind::Lsm, &options);
    let [kept, gone] = [("kept", IndexKind::Lsm), ("gone", IndexKind::Hash)]
        .map(|(name, kind)| db.create_table(name, kind).expect("a table can be made"));
    put_all(&gone, 0);
    db.drop_table("t").expect("it can be dropped");
    db.drop_table("gone").expect("it can be dropped");
    for round in 1..=COMMITS {
        put_all(&kept, round);
        db.checkpoint().expect("a checkpoint works");
        for _ in 0..10 {
            db.step(Step::Upkeep).expect("upkeep goes on");
        }
    }
    let stats = db.stats();
    assert!(stats.trouble.is_some(), "the damage is said");
    let segments = stats.segments_in_use + stats.segments_retiring;
    // One round fills about half a segment.
    assert!(segments < COMMITS / 3, "{segments} segments, of which {} retiring", stats.segments_retiring);
    for number in 0..KEYS {
        assert_eq!(kept.get(&key(number)).expect("it is sound"), Some(value(COMMITS, 100)), "{number}");
    }
}

#[test]
fn a_check_lists_each_damaged_block() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Lsm, &quiet());
    put_all(&table, 0);
    db.checkpoint().expect("a checkpoint works");
    db.close().expect("it closes");
    drop((db, table));
    let run = run_files(directory.path()).remove(0);
    for block in [1, 3] {
        flip(&run, block * UNIT + 100, 1);
    }
    let (db, table) = open(directory.path(), IndexKind::Lsm, &quiet());
    let found = damage(&db);
    assert_eq!(found.len(), 2, "{found:?}");
    for (damage, block) in found.iter().zip([1, 3]) {
        assert_corruption(damage, &run, Some(block * UNIT), "a check");
    }
    assert!(table.get(&key(0)).expect("its block is sound").is_some());
    assert!(table.get(&key(KEYS - 1)).expect("its block is sound").is_some());
}

#[test]
fn a_run_that_is_missing_is_said_to_be() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Lsm, &quiet());
    put_all(&table, 0);
    db.close().expect("it closes");
    drop((db, table));
    let run = run_files(directory.path()).remove(0);
    fs::remove_file(&run).expect("it can be removed");
    let error = refusal(aiodb::Db::open(directory.path(), quiet()), "a run is missing");
    assert_corruption(&error, &run, Some(0), "a missing run");
    assert!(error.to_string().contains("verify --rebuild"), "it says what to do: {error}");
}
