use super::{LATE_RUNS, MANY_RUNS, Turns, keys_for_step};

#[test]
fn the_more_runs_wait_the_fewer_keys_come_with_each_step() {
    assert_eq!(keys_for_step(MANY_RUNS, 256 << 10), 64 << 10);
    assert_eq!(keys_for_step(MANY_RUNS + LATE_RUNS, 256 << 10), 1 << 10);
    assert_eq!(keys_for_step(MANY_RUNS + 10 * LATE_RUNS, 256 << 10), 1 << 10, "slowed, never stopped");
    assert_eq!(keys_for_step(MANY_RUNS, 1), 1);
    for memtable_keys in [1, 100, 4096, 500_000] {
        let keys = |runs| keys_for_step(runs, memtable_keys);
        assert!((MANY_RUNS..2 * MANY_RUNS).all(|runs| keys(runs + 1) <= keys(runs) && keys(runs) > 0));
    }
}

#[test]
fn a_step_lets_so_many_keys_in() {
    let turns = Turns::default();
    assert!(turns.take(3, 4) && turns.take(3, 4), "a write is let in whole");
    assert!(!turns.take(1, 4));
    let last = turns.last();
    drop(turns.lock());
    turns.wait_after(last);
    assert!(turns.take(4, 4) && !turns.take(1, 4));
}

#[test]
fn one_step_is_under_way_at_a_time() {
    let turns = Turns::default();
    let turn = turns.try_lock();
    assert!(turn.is_some());
    assert!(std::thread::scope(|scope| scope.spawn(|| turns.try_lock().is_none()).join().expect("no panic")));
    drop(turn);
    assert!(turns.try_lock().is_some());
}
