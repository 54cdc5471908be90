//! Scripts with more snapshots, whose superseded records come to files.

use aiodb::Step;
use fastrand::Rng;

use crate::script::{Action, Script};

/// Superseded records in memory.
const FEW: std::ops::RangeInclusive<usize> = 1..=8;

/// One action in so many is followed by a snapshot, by the end of one, by a look at one, and by work behind the scenes.
const TAKING: u32 = 12;
const RELEASING: u32 = 40;
const LOOKING: u32 = 6;
const WORKING: u32 = 5;

/// The script with snapshots among its actions, and memory for few of the records that they need.
pub(super) fn with_versions(mut script: Script) -> Script {
    let mut random = Rng::with_seed(script.seed.rotate_left(8));
    let setup = &mut script.setup;
    setup.versions_in_memory = random.usize(FEW);
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    for action in script.actions {
        actions.push(action);
        take_and_release(&mut actions, &mut random, (TAKING, RELEASING));
        if random.u32(..LOOKING) == 0 {
            let (table, key) = (random.usize(..setup.tables.len()), random.usize(..setup.keys));
            actions.push(Action::Look(random.usize(..4), table, key));
        }
        match random.u32(..WORKING) {
            0 => actions.push(Action::Step(Step::Spill)),
            1 => actions.push(Action::Step([Step::Settle, Step::Merge, Step::DeleteRanges][random.usize(..3)])),
            _ => {}
        }
    }
    script.actions = actions;
    script
}

/// Adds a snapshot once in so many actions, and once in so many its end.
pub(super) fn take_and_release(actions: &mut Vec<Action>, random: &mut Rng, (taking, releasing): (u32, u32)) {
    if random.u32(..taking) == 0 {
        actions.push(Action::Snapshot);
    }
    if random.u32(..releasing) == 0 {
        actions.push(Action::Release(random.usize(..4)));
    }
}
