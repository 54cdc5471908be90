//! Makes a script that fails shorter: parts are left out as long as it still fails.

use std::time::{Duration, Instant};

use crate::report::Report;
use crate::run::{Violation, run};
use crate::script::Script;

/// A shorter script that fails.
pub struct Shortest {
    /// The actions of the script that are left.
    pub actions: Vec<usize>,
    /// How it fails.
    pub violation: Violation,
}

/// The script with some of its actions only.
pub fn part_of(script: &Script, actions: &[usize]) -> Script {
    let actions = actions.iter().filter_map(|&at| script.actions.get(at).cloned()).collect();
    Script { actions, ..script.clone() }
}

/// A part of a failing script that fails too, with as few actions as were found in the time given (delta debugging).
pub fn minimise(script: &Script, violation: Violation, time: Duration) -> Shortest {
    let started = Instant::now();
    let mut best = Shortest { actions: (0..script.actions.len()).collect(), violation };
    let mut part = best.actions.len().div_ceil(2);
    while part > 0 && started.elapsed() < time {
        let mut shorter = false;
        let mut start = 0;
        while start < best.actions.len() && started.elapsed() < time {
            let end = (start + part).min(best.actions.len());
            let actions = [&best.actions[..start], &best.actions[end..]].concat();
            match run(&part_of(script, &actions), &mut Report::default()) {
                Err(violation) => (best, shorter) = (Shortest { actions, violation }, true),
                Ok(_) => start = end,
            }
        }
        if !shorter {
            part /= 2;
        }
    }
    best
}
