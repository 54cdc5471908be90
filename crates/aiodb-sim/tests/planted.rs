//! The simulator can fail: it finds every bug that is planted for it.

use aiodb::Bug;
use aiodb_sim::planted::hunt;

/// Seeds after which a bug counts as missed. Each was found within 300.
const MOST_SEEDS: u64 = 2000;

/// A process has one bug at a time, so they are hunted one after the other.
#[test]
fn every_bug_planted_for_the_simulator_is_found() {
    // A panic of the engine is a way to be found.
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        match hunt(bug, MOST_SEEDS) {
            Some(found) => println!("{bug:?}: found after {} seeds", found.seeds),
            None => missed.push(bug),
        }
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "not found in {MOST_SEEDS} seeds: {missed:?}");
}
