//! Operands of one key from several threads at a time: they are folded as they come, however they overtake each other.

mod support;

use aiodb::{Db, Durability, IndexKind, MergeOperators, Options, TableOptions};
use std::sync::atomic::{AtomicU64, Ordering};

use support::scratch;

const THREADS: i64 = 4;
const OPERANDS: i64 = 10_000;

/// Operands of a key that may lie there unfolded: sixteen times as many as have a writer fold them.
const MOST_OPERANDS: u64 = 1024;

#[test]
#[ignore = "operands that several threads write to one key pile up: not mended yet"]
fn operands_of_a_key_that_several_threads_write_do_not_pile_up() {
    let directory = scratch();
    let merge_operators = MergeOperators::default().with(aiodb::merge::Add);
    let db =
        Db::open(directory.path(), Options { merge_operators, ..Options::default() }).expect("a store can be made");
    let options = TableOptions { merge: Some("add".into()), ..IndexKind::Hash.into() };
    let table = db.create_table_with("t", options).expect("a table can be made");
    let most = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for number in 0..OPERANDS {
                    table.merge_with(b"key", &1i64.to_le_bytes(), Durability::None).expect("a merge works");
                    if number % 100 == 0 {
                        // Each operand of the one key is a place in a `hash` index.
                        most.fetch_max(table.stats().expect("it is open").keys, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let sum = table.get(b"key").expect("a get works").expect("there is a value");
    assert_eq!(sum, (THREADS * OPERANDS).to_le_bytes());
    let (most, folds) = (most.into_inner(), db.metrics().folded_keys);
    assert!(most <= MOST_OPERANDS, "{most} operands were there unfolded, of {} in {folds} folds", THREADS * OPERANDS);
}
