//! Scripts whose store has little memory, now less and now more.

use aiodb::Step;
use fastrand::Rng;

use crate::script::{Action, Script};

/// Keys of a memtable in a store that has the least memory.
const LEAST_KEYS: std::ops::RangeInclusive<usize> = 1..=12;

/// Bytes above the least: for some keys more, for a part of a cache, for all that is wanted.
const ABOVE: [u64; 6] = [0, 4 << 10, 40 << 10, 200 << 10, 800 << 10, 64 << 20];

/// One action in so many is followed by another budget, and by work behind the scenes that brings the parts closer to theirs.
const CHANGING: u32 = 20;
const WORKING: u32 = 8;

/// The script with budgets among its actions.
pub(super) fn with_budgets(mut script: Script) -> Script {
    let mut random = Rng::with_seed(script.seed.rotate_left(24));
    let setup = &mut script.setup;
    setup.least_memtable_keys = random.usize(LEAST_KEYS);
    if setup.cache_bytes > 0 {
        // From a cache without shards of any length to one that is never squeezed.
        setup.cache_bytes = [64 << 10, 256 << 10, 3 << 20][random.usize(..3)];
    }
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    actions.push(memory(&mut random));
    for action in script.actions {
        actions.push(action);
        if random.u32(..CHANGING) == 0 {
            actions.push(memory(&mut random));
        }
        if random.u32(..WORKING) == 0 {
            let step = [Step::Upkeep, Step::WriteBehind, Step::CommitAhead][random.usize(..3)];
            actions.extend([Action::Wait(random.u64(..400)), Action::Step(step)]);
        }
    }
    script.actions = actions;
    script
}

fn memory(random: &mut Rng) -> Action {
    let above = ABOVE[random.usize(..ABOVE.len())];
    Action::Memory((random.u8(..8) > 0).then(|| random.u64(..=above)))
}
