//! Whether the simulator finds bugs: each is planted in the engine, and seeds are run until one fails.

use aiodb::{Bug, plant};

use crate::report::Report;
use crate::run::{Violation, run};
use crate::workload::{FIRST_AIMED, Tables, script};

/// How a planted bug was found.
pub struct Found {
    /// Seeds that it took.
    pub seeds: u64,
    /// What was seen of it.
    pub violation: Violation,
}

/// Runs up to `seeds` seeds with this bug in the engine, until one fails that does not fail without it.
pub fn hunt(bug: Bug, seeds: u64) -> Option<Found> {
    (FIRST_AIMED..FIRST_AIMED + seeds).find_map(|seed| {
        let script = script(seed, Tables::Any);
        plant(Some(bug));
        let planted = run(&script, &mut Report::default());
        plant(None);
        let violation = planted.err()?;
        run(&script, &mut Report::default()).ok().map(|_| Found { seeds: seed - FIRST_AIMED + 1, violation })
    })
}
