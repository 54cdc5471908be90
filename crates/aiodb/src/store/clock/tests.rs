use super::{BELIEVED_AFTER_MS, MAX_STEP_MS, Reading, StoreClock};

const START_MS: u64 = 1_700_000_000_000;
const YEAR_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// Both clocks after so many milliseconds, with the system's set by so much.
fn at(monotonic_ms: u64, set_by_ms: i64) -> Reading {
    Reading { wall_ms: (START_MS + monotonic_ms).saturating_add_signed(set_by_ms), monotonic_ms }
}

fn clock() -> StoreClock {
    let clock = StoreClock::new();
    clock.resume(0, at(0, 0), false);
    clock
}

#[test]
fn small_steps_are_followed_ahead_and_stood_out_back() {
    let (clock, step_ms) = (clock(), MAX_STEP_MS as i64);
    assert_eq!(clock.now_ms(at(10, 0)), START_MS + 10);
    assert_eq!(clock.now_ms(at(20, step_ms)), START_MS + 20 + MAX_STEP_MS);
    let stands = START_MS + 20 + MAX_STEP_MS;
    assert_eq!(clock.now_ms(at(30, 0)), stands);
    assert_eq!(clock.ahead_ms(at(30, 0)), 10 - step_ms);
    assert_eq!(clock.now_ms(at(20 + MAX_STEP_MS, 0)), stands);
    assert_eq!(clock.now_ms(at(21 + MAX_STEP_MS, 0)), stands + 1);
    assert_eq!(clock.ahead_ms(at(21 + MAX_STEP_MS, 0)), 0);
}

#[test]
fn one_wrong_reading_does_nothing() {
    let clock = clock();
    for wrong in [10 * YEAR_MS as i64, -10 * (YEAR_MS as i64)] {
        assert_eq!(clock.now_ms(at(1000, wrong)), START_MS + 1000);
        assert_eq!(clock.ahead_ms(at(1000, wrong)), wrong);
        assert_eq!(clock.now_ms(at(2000, 0)), START_MS + 2000);
        // The first reading does not count for one that comes much later.
        assert_eq!(clock.now_ms(at(BELIEVED_AFTER_MS + 3000, wrong)), START_MS + BELIEVED_AFTER_MS + 3000);
        clock.resume(0, at(0, 0), false);
    }
}

#[test]
fn a_clock_that_has_stood_long_enough_is_believed_either_way() {
    let (clock, wrong) = (clock(), 10 * YEAR_MS);
    let (first, then) = (1000, 1000 + BELIEVED_AFTER_MS);
    assert_eq!(clock.now_ms(at(first, wrong as i64)), START_MS + first);
    assert_eq!(clock.now_ms(at(then - 1, wrong as i64)), START_MS + then - 1);
    assert_eq!(clock.now_ms(at(then, wrong as i64)), START_MS + then + wrong);
    // It was wrong, and is put right.
    assert_eq!(clock.now_ms(at(then + 10, 0)), START_MS + then + 10 + wrong);
    assert_eq!(clock.certain_ms(at(then + 20, 0)), START_MS + then + 20, "what was doubted is not final");
    let back = then + 10 + BELIEVED_AFTER_MS;
    assert_eq!(clock.now_ms(at(back, 0)), START_MS + back);
    assert_eq!(clock.now_ms(at(back + 5, 0)), START_MS + back + 5);
}

#[test]
fn many_small_steps_back_are_one_large_one() {
    let (clock, step_ms) = (clock(), MAX_STEP_MS as i64 / 2 + 1);
    for steps in 0..4 {
        clock.now_ms(at(steps, -step_ms * steps as i64));
    }
    let stands = clock.now_ms(at(4, -step_ms * 4));
    assert!((START_MS..START_MS + 10).contains(&stands));
    let later = 4 + BELIEVED_AFTER_MS;
    let shown = at(later, -step_ms * 4);
    assert_eq!(clock.now_ms(shown), shown.wall_ms);
}

#[test]
fn a_time_that_was_written_down_is_believed_as_far_as_a_step() {
    let clock = clock();
    clock.resume(START_MS + MAX_STEP_MS, at(5, 0), false);
    assert_eq!(clock.now_ms(at(6, 0)), START_MS + MAX_STEP_MS);
    clock.resume(START_MS + YEAR_MS, at(5, 0), false);
    assert_eq!(clock.now_ms(at(6, 0)), START_MS + YEAR_MS + 1);
    assert_eq!(clock.certain_ms(at(6, 0)), START_MS + 6);
    assert_eq!(clock.now_ms(at(5 + BELIEVED_AFTER_MS, 0)), START_MS + 5 + BELIEVED_AFTER_MS);
    // A store that cannot write down that the doubt is over does not wait for it.
    clock.resume(START_MS + YEAR_MS, at(5, 0), true);
    assert_eq!(clock.now_ms(at(6, 0)), START_MS + 6);
    // A store may have been closed for long.
    clock.resume(START_MS, at(5, YEAR_MS as i64), false);
    assert_eq!(clock.now_ms(at(6, YEAR_MS as i64)), START_MS + YEAR_MS + 6);
}
