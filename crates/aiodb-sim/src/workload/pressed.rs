//! Scripts in which spills take many steps, and crashes fall into them.

use aiodb::Step;
use aiodb::io::Phase;
use fastrand::Rng;

use crate::script::{Action, Script};

/// Tags of a step of a spill.
const FEW: std::ops::RangeInclusive<usize> = 1..=12;

/// One crash inside a phase in so many is one inside a spill.
const CRASHES_IN_SPILLS: u32 = 4;

/// Steps of spills that pass before it.
const PASSING: u64 = 12;

/// Steps of a spill that are done then.
const STEPS: usize = 16;

/// The script with steps of spills that are short, another bound for keys of `hash` tables in each process, and crashes inside spills.
pub(super) fn pressed(mut script: Script) -> Script {
    let mut random = Rng::with_seed(script.seed.rotate_left(48));
    script.setup.spill_step_tags = random.usize(FEW);
    script.setup.hash_bytes_change = random.bool();
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    for action in script.actions {
        match action {
            Action::CrashInside(_, _, steps, crash) if random.u32(..CRASHES_IN_SPILLS) == 0 => {
                actions.push(Action::CrashInside(Phase::Spill, random.u64(..PASSING), steps, crash));
                actions.extend([Action::Step(Step::Write), Action::Steps(Step::Spill, STEPS)]);
            }
            action => actions.push(action),
        }
    }
    script.actions = actions;
    script
}
