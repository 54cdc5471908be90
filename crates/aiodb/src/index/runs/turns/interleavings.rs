//! Waits for steps in thousands of orders that `shuttle` chooses.

use std::sync::Arc;

use super::{MANY_RUNS, Turns};
use crate::sync::yield_now;

const WRITES: usize = 2;

/// Writers are let in by steps, which others do or they themselves: each comes to its end, however few steps there are.
fn write_as_steps_end() {
    let turns = Arc::new(Turns::default());
    let step = {
        let turns = Arc::clone(&turns);
        move || {
            let mut turn = turns.lock();
            turn.has_merged(MANY_RUNS);
            yield_now();
            drop(turn);
        }
    };
    let writers = (0..2).map(|_| {
        let turns = Arc::clone(&turns);
        shuttle::thread::spawn(move || {
            for _ in 0..WRITES {
                let last = turns.last();
                if turns.take(MANY_RUNS, 1, 1) {
                    continue;
                }
                match turns.try_lock() {
                    Some(turn) => drop(turn),
                    None => turns.wait_after(last),
                }
            }
        })
    });
    let threads: Vec<_> = writers.chain([shuttle::thread::spawn(step)]).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
}

#[test]
fn interleavings_of_steps_and_writers() {
    shuttle::check_random(write_as_steps_end, 1_000);
    shuttle::check_pct(write_as_steps_end, 1_000, 3);
}
