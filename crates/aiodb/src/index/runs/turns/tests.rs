use super::{LATE_RUNS, MANY_RUNS, MEMTABLE, Turns, parts_for_step, steps_for};

/// Of a memtable, in keys, so that one part is one key.
const KEYS: usize = MEMTABLE;

#[test]
fn the_more_runs_wait_the_less_comes_with_each_step() {
    assert_eq!(parts_for_step(MANY_RUNS), MEMTABLE / 4);
    assert_eq!(parts_for_step(MANY_RUNS + LATE_RUNS), MEMTABLE / 256);
    assert_eq!(parts_for_step(MANY_RUNS + 10 * LATE_RUNS), MEMTABLE / 256, "slowed, never stopped");
    assert!((MANY_RUNS..2 * MANY_RUNS).all(|runs| parts_for_step(runs + 1) <= parts_for_step(runs)));
    assert_eq!(steps_for(MANY_RUNS, 1, KEYS), 1);
    assert_eq!(steps_for(MANY_RUNS, KEYS, KEYS), 4);
    assert_eq!(steps_for(MANY_RUNS + LATE_RUNS, KEYS / 2, KEYS), 128);
    assert_eq!(steps_for(MANY_RUNS, 1, 1), 4, "a memtable of one key");
}

#[test]
fn a_step_that_merges_lets_so_much_in() {
    let turns = Turns::default();
    let step = |merges: bool| {
        let mut turn = turns.lock();
        if merges {
            turn.has_merged(MANY_RUNS);
        }
        drop(turn);
    };
    let take = |keys| turns.take(MANY_RUNS, keys, KEYS);
    assert!(take(KEYS / 8) && take(KEYS / 4), "a write is let in whole");
    assert!(!take(1));
    step(false);
    assert!(!take(1), "a step that has merged nothing");
    step(true);
    assert!(take(KEYS), "an eighth of a memtable came too much, and a quarter may come");
    for _ in 0..4 {
        assert!(!take(1), "what came is paid for, step by step");
        step(true);
    }
    assert!(take(1));
}

#[test]
fn writes_that_have_waited_are_paid_for_by_later_ones() {
    let turns = Turns::default();
    turns.charge(KEYS / 2, KEYS);
    for _ in 0..2 {
        assert!(!turns.take(MANY_RUNS, 1, KEYS));
        let mut turn = turns.try_lock().expect("nobody has it");
        turn.has_merged(MANY_RUNS);
    }
    assert!(turns.take(MANY_RUNS, 1, KEYS));
}

#[test]
fn one_step_is_under_way_at_a_time() {
    let turns = Turns::default();
    let turn = turns.try_lock();
    assert!(turn.is_some());
    assert!(std::thread::scope(|scope| scope.spawn(|| turns.try_lock().is_none()).join().expect("no panic")));
    let last = turns.last();
    drop(turn);
    turns.wait_after(last);
    assert!(turns.try_lock().is_some());
}

#[test]
fn two_merges_are_under_way_at_a_time_or_one_step_that_is_alone() {
    let turns = Turns::default();
    let by_another =
        |work: &(dyn Fn() -> bool + Sync)| std::thread::scope(|scope| scope.spawn(work).join().expect("no panic"));
    let turn = turns.lock();
    let last = turns.last();
    assert!(by_another(&|| turns.try_lock_beside().is_some()));
    assert_eq!(turns.last(), last, "one that finds nothing to merge wakes nobody");
    {
        let mut beside = turns.try_lock_beside().expect("one may be beside");
        assert!(by_another(&|| turns.try_lock_beside().is_none() && turns.try_lock().is_none()));
        beside.has_merged(MANY_RUNS);
    }
    assert_ne!(turns.last(), last, "writers look again");
    drop(turn);
    let alone = turns.lock_alone();
    assert!(by_another(&|| turns.try_lock_beside().is_none() && turns.try_lock().is_none()));
    drop(alone);
    assert!(turns.try_lock_beside().is_some());
}
