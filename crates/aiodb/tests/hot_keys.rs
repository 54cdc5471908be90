//! Operands that come faster than upkeep folds them are folded by those who write them, however they overtake each other.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aiodb::merge::{Add, Append, MergeOperator};
use aiodb::{Db, Durability, IndexKind, MergeOperators, Options, Step, TableOptions};

use support::{KINDS, quiet, scratch};

const OPERANDS: i64 = 40_000;

/// Operands of a key that may lie there unfolded: four times as many as have writers wait for a fold.
const MOST_OPERANDS: u64 = 1024;

/// [`Add`], which notes how many operands it was given at most: as many as a get or a fold had to read.
#[derive(Clone, Default)]
struct Counting(Arc<AtomicU64>);

impl MergeOperator for Counting {
    fn name(&self) -> &str {
        "add"
    }

    fn merge(&self, key: &[u8], base: Option<&[u8]>, operands: &[&[u8]]) -> Result<Vec<u8>, String> {
        self.0.fetch_max(operands.len() as u64, Ordering::Relaxed);
        Add.merge(key, base, operands)
    }
}

#[test]
fn operands_of_a_key_that_several_threads_write_do_not_pile_up() {
    for kind in KINDS {
        for threads in [1, 2, 4, 8] {
            check_pile(kind, threads, Durability::None);
        }
    }
}

#[test]
fn operands_that_are_flushed_all_the_time_do_not_pile_up() {
    KINDS.into_iter().for_each(|kind| check_pile(kind, 4, Durability::Interval(Duration::from_millis(1))));
}

/// Threads write operands to one key, and get it now and then.
fn check_pile(kind: IndexKind, threads: i64, class: Durability) {
    let (directory, operator) = (scratch(), Counting::default());
    let merge_operators = MergeOperators::default().with(operator.clone());
    let options = Options { merge_operators, ..Options::default() };
    let db = Db::open(directory.path(), options).expect("a store can be made");
    let options = TableOptions { merge: Some("add".into()), ..kind.into() };
    let table = db.create_table_with("t", options).expect("a table can be made");
    let most_places = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for number in 0..OPERANDS / threads {
                    table.merge_with(b"key", &1i64.to_le_bytes(), class).expect("a merge works");
                    if number % 100 == 0 {
                        table.get(b"key").expect("a get works");
                        // Each operand of the one key is a place in a `hash` index.
                        most_places.fetch_max(table.stats().expect("it is open").keys, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let sum = table.get(b"key").expect("a get works").expect("there is a value");
    assert_eq!(sum, OPERANDS.to_le_bytes());
    let (read, places) = (operator.0.load(Ordering::Relaxed), most_places.into_inner());
    let (most, folds, kind) = (read.max(places), db.metrics().folded_keys, kind.name());
    assert!(most <= MOST_OPERANDS, "{kind}: {most} operands of {threads} threads were unfolded, with {folds} folds");
    println!("{kind}, {threads} threads: {read} operands read, {places} places, {folds} folds");
}

#[test]
fn a_writer_that_folds_holds_a_bounded_part_of_what_waits() {
    const KEYS: u8 = 64;
    const BASE_BYTES: usize = 100 << 10;
    /// What it folds at once, and one more key that goes beyond it.
    const MOST_FOLDED: u64 = (1 << 20) / BASE_BYTES as u64 + 1;
    for kind in KINDS {
        let directory = scratch();
        let options = Options { merge_operators: MergeOperators::default().with(Append), ..quiet() };
        let db = Db::open(directory.path(), options).expect("a store can be made");
        let options = TableOptions { merge: Some("append".into()), ..kind.into() };
        let table = db.create_table_with("t", options).expect("a table can be made");
        let merge = |key: u8, times: usize| {
            (0..times).for_each(|_| _ = table.merge_with(&[key], b"m", Durability::None).expect("a merge works"));
        };
        for key in 0..KEYS {
            table.put_with(&[key], &vec![key; BASE_BYTES], Durability::None).expect("a put works");
            // Enough to be queued for upkeep.
            merge(key, 8);
        }
        assert_eq!(db.metrics().folded_keys, 0);
        // Enough to have the next writer fold.
        merge(0, 56);
        merge(1, 1);
        let folded = db.metrics().folded_keys;
        assert!((1..=MOST_FOLDED).contains(&folded), "{}: {folded} keys were folded at once", kind.name());
        db.step(Step::Write).and_then(|()| db.step(Step::Settle)).expect("a step works");
        for key in 0..KEYS {
            let found = table.get(&[key]).expect("a get works").expect("there is a value");
            let operands = [64, 9].get(usize::from(key)).copied().unwrap_or(8);
            let wanted = [vec![key; BASE_BYTES], vec![b'm'; operands]].concat();
            assert!(found == wanted, "{}: key {key} has {} bytes", kind.name(), found.len());
        }
    }
}
