//! Sorted runs that are written and merged beside everything else. On the other kinds of index the same changes are made.

use aiodb::io::sim::SimDevice;
use aiodb::{Db, Durability, MergePolicy, Options, Snapshot, Step, Table};
use shuttle::rand::Rng as _;
use shuttle::thread;

use crate::machine::{Machine, options};
use crate::schedules::{LONG_RUN, in_fewer_orders};

const KEYS: u8 = 3;

/// Changes of each key that one thread makes.
const CHANGES: u8 = 8;

/// A change with its sequence: the key, and what it holds from then on.
#[derive(Clone, Debug)]
struct Change {
    sequence: u64,
    key: u8,
    value: Option<Vec<u8>>,
}

/// Keys are put and deleted by one thread, read by another and seen by snapshots, while runs are made of them and merged, with the
/// oldest run or without, and their segments are emptied. Each answer is that of its moment.
#[test]
fn interleavings_of_merges() {
    in_fewer_orders(LONG_RUN, |kind| {
        let machine = Machine::new(14, kind);
        let chance = |of: f64| shuttle::rand::thread_rng().gen_bool(of);
        let merge_policy = MergePolicy { fan_out: 2, oldest_ratio: if chance(0.5) { 0 } else { 4 } };
        let memtable_keys = if chance(0.5) { 2 } else { usize::MAX };
        let options = Options { cache_bytes: 0, merge_policy, memtable_keys, ..options() };
        let (db, table) = machine.open_with(options.clone());
        let writing = thread::spawn({
            let (db, table) = (db.clone(), table.clone());
            move || change(&db, &table)
        });
        let merging = thread::spawn({
            let db = db.clone();
            move || {
                for _ in 0..2 * CHANGES {
                    db.step(Step::Merge).expect("the machine runs");
                }
            }
        });
        let committing = thread::spawn({
            let db = db.clone();
            move || {
                for _ in 0..CHANGES {
                    db.step(Step::CommitAhead).expect("the machine runs");
                }
            }
        });
        let upkeep = thread::spawn({
            let db = db.clone();
            move || {
                let steps =
                    [Step::Checkpoint, Step::Merge, Step::Reclaim, Step::Reclaim, Step::DeleteRanges, Step::Prepare];
                for step in steps.into_iter().chain(steps).filter(|_| chance(0.7)) {
                    db.step(step).expect("the machine runs");
                }
            }
        });
        for _ in 0..3 {
            let snapshot = db.snapshot().expect("the machine runs");
            let found = contents(&snapshot, &table);
            for key in 0..KEYS {
                table.get(&[key]).expect("the machine runs");
            }
            assert_eq!(contents(&snapshot, &table), found, "as of {}", snapshot.sequence());
        }
        let (changes, snapshots) = writing.join().expect("no thread panics");
        [merging, committing, upkeep].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        let check = |when: &str| {
            for snapshot in &snapshots {
                let wanted = contents_at(&changes, snapshot.sequence());
                assert_eq!(contents(snapshot, &table), wanted, "{when}, as of {}", snapshot.sequence());
            }
            let found = (0..KEYS).map(|key| table.get(&[key]).expect("the machine runs"));
            assert_eq!(found.collect::<Vec<_>>(), contents_at(&changes, u64::MAX), "{when}");
        };
        check("at once");
        for step in [Step::Checkpoint, Step::Merge, Step::Merge, Step::DeleteRanges] {
            db.step(step).expect("the machine runs");
        }
        check("when all is merged");
        drop(snapshots);
        let machine = machine.process_death();
        let (_db, table) = machine.open_with(options);
        let found = (0..KEYS).map(|key| table.get(&[key]).expect("the machine runs"));
        assert_eq!(found.collect::<Vec<_>>(), contents_at(&changes, u64::MAX), "after a death");
    });
}

/// Records whose entries are in runs are moved, while one thread changes their keys and others commit what is published: what was looked up
/// before may be old by then.
#[test]
fn interleavings_of_moves_and_commits() {
    in_fewer_orders(LONG_RUN, |kind| {
        const SEGMENTS: u8 = 6;
        let machine = Machine::new(15, kind);
        let options = Options { cache_bytes: 0, block_cache_bytes: Some(0), ..options() };
        let (db, table) = machine.open_with(options.clone());
        let put = |table: &Table<SimDevice>, key: u8, version: u8, length| {
            table.put_with(&[key], &vec![version; length], Durability::None).expect("the machine runs");
        };
        // Values that stay in each segment, among others that do not: more than upkeep leaves alone.
        for segment in 0..SEGMENTS {
            put(&table, segment, 1, 3000);
            put(&table, SEGMENTS + segment, 1, 3000);
            (0..3).for_each(|round| put(&table, u8::MAX, round, 15_000));
        }
        put(&table, u8::MAX, 3, 15_000);
        for step in [Step::Write, Step::Settle, Step::Checkpoint, Step::Reclaim] {
            db.step(step).expect("the machine runs");
        }
        let committing = [Step::Checkpoint, Step::CommitAhead, Step::Merge].map(|step| {
            let db = db.clone();
            thread::spawn(move || (0..3).for_each(|_| db.step(step).expect("the machine runs")))
        });
        let moving = thread::spawn({
            let db = db.clone();
            move || (0..6).for_each(|_| db.step(Step::Reclaim).expect("the machine runs"))
        });
        put(&table, 0, 2, 3000);
        table.delete_with(&[1], Durability::None).expect("the machine runs");
        put(&table, 2, 2, 3000);
        table.merge_with(&[3], &[2], Durability::None).expect("the machine runs");
        if kind.is_ordered() {
            table.delete_range_with(&[4], &[5], Durability::None).expect("the machine runs");
        }
        committing.into_iter().chain([moving]).for_each(|thread| thread.join().expect("no thread panics"));
        let check = |table: &Table<SimDevice>, when: &str| {
            for key in 0..2 * SEGMENTS {
                let wanted = match key {
                    0 | 2 => Some(vec![2; 3000]),
                    1 => None,
                    3 => Some([vec![1; 3000], vec![2]].concat()),
                    4 if kind.is_ordered() => None,
                    _ => Some(vec![1; 3000]),
                };
                assert_eq!(table.get(&[key]).expect("the machine runs"), wanted, "{when}, key {key}");
            }
        };
        check(&table, "at once");
        for step in [Step::Checkpoint, Step::Merge, Step::DeleteRanges, Step::Prepare] {
            db.step(step).expect("the machine runs");
        }
        check(&table, "when all is committed");
        let machine = machine.process_death();
        check(&machine.open_with(options.clone()).1, "after a death");
    });
}

/// Puts and deletes at random, with commits of the index and snapshots between them.
fn change(db: &Db<SimDevice>, table: &Table<SimDevice>) -> (Vec<Change>, Vec<Snapshot<SimDevice>>) {
    let (mut changes, mut snapshots) = (Vec::new(), Vec::new());
    for round in 0..CHANGES {
        for key in 0..KEYS {
            let pick = shuttle::rand::thread_rng().gen_range(0..8);
            let value = (pick > 1).then(|| vec![round; 2000]);
            let sequence = match &value {
                Some(value) => table.put_with(&[key], value, Durability::None),
                None if pick == 0 && table.kind().is_ordered() => {
                    table.delete_range_with(&[key], &[key + 1], Durability::None)
                }
                None => table.delete_with(&[key], Durability::None),
            };
            changes.push(Change { sequence: sequence.expect("the machine runs").number(), key, value });
        }
        if round % 3 == 1 {
            snapshots.push(db.snapshot().expect("the machine runs"));
        }
        db.step(Step::Checkpoint).expect("the machine runs");
    }
    (changes, snapshots)
}

fn contents(snapshot: &Snapshot<SimDevice>, table: &Table<SimDevice>) -> Vec<Option<Vec<u8>>> {
    (0..KEYS).map(|key| snapshot.get(table, &[key]).expect("the machine runs")).collect()
}

/// What the keys hold after the changes up to a sequence.
fn contents_at(changes: &[Change], sequence: u64) -> Vec<Option<Vec<u8>>> {
    let mut contents = vec![None; KEYS as usize];
    for change in changes.iter().filter(|change| change.sequence <= sequence) {
        contents[change.key as usize].clone_from(&change.value);
    }
    contents
}
