use super::*;

/// A caller that has slept so often, in windows that end one after the other.
#[derive(Default)]
struct Caller {
    submission: Submission,
    slept: u64,
}

impl Caller {
    fn window(&mut self, sleeps: u64) {
        self.slept += sleeps;
        for _ in 0..WINDOW {
            self.submission.end(|| self.slept);
        }
    }
}

#[test]
fn a_caller_who_waits_for_the_device_gives_it_small_batches() {
    let mut caller = Caller::default();
    for _ in 0..10 {
        caller.window(MANY_SLEEPS);
    }
    assert_eq!([17, 64, 128, 1024].map(|in_flight| caller.submission.batch(in_flight)), [2, 4, 4, 4]);
    assert_eq!([1, 8, FEW].map(|in_flight| caller.submission.batch(in_flight)), [2, 2, 2]);
}

#[test]
fn a_caller_who_is_the_limit_enters_the_kernel_seldom() {
    let mut caller = Caller::default();
    caller.window(0);
    assert_eq!(caller.submission.batch(64), 16);
    caller.window(MANY_SLEEPS - 1);
    assert_eq!([17, 32, 64, 1024].map(|in_flight| caller.submission.batch(in_flight)), [8, 16, 32, 32]);
    caller.window(MANY_SLEEPS);
    assert_eq!(caller.submission.batch(64), 4);
}

#[test]
fn a_caller_who_moves_to_another_thread_begins_with_small_batches() {
    let mut caller = Caller::default();
    caller.window(1000);
    (0..3).for_each(|_| caller.window(0));
    assert_eq!(caller.submission.batch(64), 32);
    caller.slept = 3;
    caller.window(0);
    assert_eq!(caller.submission.batch(64), 4);
}

#[test]
fn few_in_flight_are_hardly_held_back() {
    let mut caller = Caller::default();
    (0..4).for_each(|_| caller.window(0));
    assert_eq!([1, 4, 8, FEW].map(|in_flight| caller.submission.batch(in_flight)), [2, 2, 2, 4]);
}
