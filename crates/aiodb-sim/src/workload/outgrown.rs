//! Scripts with `hash` tables that outgrow their memory: their keys come to runs sorted by hash.

use aiodb::Step;
use fastrand::Rng;

use super::versions::take_and_release;
use crate::script::{Action, Script};

/// Bytes of memory for the keys of a table: with none all that can be comes to runs at once.
const MEMORY: std::ops::Range<u64> = 0..6000;

/// Filters have memory for as many lines as one of so many numbers says. A line has the bits of about forty keys.
pub(super) const FILTER_SIZES: u64 = 7;
pub(super) const LINE_BYTES: u64 = 64;

/// One script in so many has no memory at all.
const WITHOUT: u8 = 3;

/// One action in so many is followed by a snapshot, by the end of one, and by work behind the scenes.
const TAKING: u32 = 40;
const RELEASING: u32 = 60;
const WORKING: u32 = 4;

/// A spill and a merge of what it has made are several steps.
const STEPS: std::ops::RangeInclusive<usize> = 1..=4;

/// The script with little memory for `hash` tables, and the work that comes of that.
pub(super) fn outgrown(mut script: Script) -> Script {
    let mut random = Rng::with_seed(script.seed.rotate_left(16));
    let setup = &mut script.setup;
    setup.hash_bytes = Some(if random.u8(..WITHOUT) == 0 { 0 } else { random.u64(MEMORY) });
    setup.filter_bytes = Some(script.seed % FILTER_SIZES * LINE_BYTES);
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    for action in script.actions {
        actions.push(action);
        take_and_release(&mut actions, &mut random, (TAKING, RELEASING));
        match random.u32(..WORKING) {
            0 => actions.extend(vec![Action::Step(Step::Spill); random.usize(STEPS)]),
            1 => actions.push(Action::Step([Step::Settle, Step::Write, Step::Reclaim][random.usize(..3)])),
            _ => {}
        }
    }
    script.actions = actions;
    script
}
