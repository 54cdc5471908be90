use std::cell::RefCell;

use super::*;

fn measured(per_s: f64) -> Measured {
    let mut latency_ns = empty_latencies();
    latency_ns.record(1000).expect("recorded");
    Measured {
        count: 10,
        per_s,
        per_s_caught_up: per_s / 2.0,
        is_caught_up: per_s < 150.0,
        cpu: Duration::from_micros(20),
        latency_ns,
    }
}

#[test]
fn both_take_turns_and_neither_is_always_first() {
    let turns = RefCell::new(String::new());
    let [first, second] = in_turn(3, |turn| {
        turns.borrow_mut().push(if turn == Turn::First { 'a' } else { 'b' });
        Ok(measured(if turn == Turn::First { 100.0 } else { 200.0 }))
    })
    .expect("measured");
    assert_eq!(turns.into_inner(), "abbaab");
    assert_eq!((&first.per_s, &second.per_s), (&vec![100.0; 3], &vec![200.0; 3]));
    let operations = first.operations();
    assert_eq!((operations.count, operations.per_s, operations.per_s_caught_up), (30, 100.0, 50.0));
    assert_eq!((operations.cpu_us_each, operations.rounds_not_caught_up), (2.0, 0));
    assert_eq!(second.operations().rounds_not_caught_up, 3);
}

#[test]
fn a_counter_that_has_another_sum_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let merge_operators = MergeOperators::default().with(Add);
    let db = Db::open(dir.path(), Options { merge_operators, segment_bytes: 1 << 20, ..Options::default() })
        .expect("a store");
    let counters = Counters::make(&db, IndexKind::Lsm.into(), 5000).expect("tables");
    counters.check_sums().expect("all have 0");
    for number in [0, 17, 4999] {
        counters.merge(number, 3).expect("merged");
        counters.merge(number, 4).expect("merged");
        counters.put(number, 5).expect("put");
    }
    counters.check_sums().expect("three have 7");
    for number in [4999, 0] {
        counters.merged.merge(&random_key(number), &1i64.to_le_bytes()).expect("merged");
        let error = counters.check_sums().expect_err("one operand too many").to_string();
        assert!(
            error.contains(&format!("counter {number} of table merged-5000 is 8; what was merged makes 7")),
            "{error}"
        );
    }
    counters.merged.delete(&random_key(0)).expect("deleted");
    assert!(counters.check_sums().expect_err("one is lost").to_string().contains("None"));
    db.close().expect("closed");
}
