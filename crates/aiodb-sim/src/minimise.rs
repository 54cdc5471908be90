//! Makes a script that fails shorter: parts are left out as long as it still fails.

use std::time::{Duration, Instant};

use crate::report::Report;
use crate::run::{Violation, run};
use crate::script::Script;

/// A shorter script that fails.
pub struct Shortest {
    /// Which actions of the script are left.
    pub kept: Vec<usize>,
    /// How it fails.
    pub violation: Violation,
}

/// The script with some of its actions only.
pub fn keep(script: &Script, kept: &[usize]) -> Script {
    let actions = kept.iter().filter_map(|&at| script.actions.get(at).cloned()).collect();
    Script { actions, ..script.clone() }
}

/// A part of a failing script that fails too, with as few actions as were found in the time given (delta debugging).
pub fn minimise(script: &Script, violation: Violation, time: Duration) -> Shortest {
    let started = Instant::now();
    let mut best = Shortest { kept: (0..script.actions.len()).collect(), violation };
    let mut part = best.kept.len().div_ceil(2);
    while part > 0 && started.elapsed() < time {
        let mut shorter = false;
        let mut start = 0;
        while start < best.kept.len() && started.elapsed() < time {
            let end = (start + part).min(best.kept.len());
            let kept = [&best.kept[..start], &best.kept[end..]].concat();
            match run(&keep(script, &kept), &mut Report::default()) {
                Err(violation) => (best, shorter) = (Shortest { kept, violation }, true),
                Ok(_) => start = end,
            }
        }
        if !shorter {
            part /= 2;
        }
    }
    best
}
