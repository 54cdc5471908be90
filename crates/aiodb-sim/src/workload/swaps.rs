//! Scripts in which tables get each other's names.

use aiodb::io::Phase;
use fastrand::Rng;

use crate::script::{Action, Crash, Script};

/// One action in so many is followed by a swap.
const SWAPPING: u32 = 12;

/// One swap in so many is the last of its process, and as many are cut off by a crash.
const LAST: u32 = 8;

/// The script with swaps of two tables among its actions, if it has two of one kind. They get the same options.
pub(super) fn with_swaps(mut script: Script) -> Script {
    let mut random = Rng::with_seed(script.seed.rotate_left(48));
    let setup = &mut script.setup;
    let tables = setup.tables.len();
    let pairs = (0..tables).flat_map(|one| (one + 1..tables).map(move |other| (one, other)));
    let Some((one, other)) = pairs.into_iter().find(|(one, other)| setup.tables[*one] == setup.tables[*other]) else {
        return script;
    };
    setup.compression[other] = setup.compression[one];
    setup.inline_bytes[other] = setup.inline_bytes[one];
    setup.block_compression[other] = setup.block_compression[one];
    // Which values a filter may give up is known by the name of the table.
    (setup.filtered[one], setup.filtered[other]) = (false, false);
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    for action in script.actions {
        actions.push(action);
        if random.u32(..SWAPPING) == 0 {
            let swap = Action::Swap(one, other);
            let crash = Crash::between_calls(random.bool());
            match random.u32(..LAST) {
                0 => actions.extend([swap, Action::CrashNow(crash)]),
                1 => actions.extend([Action::CrashInside(Phase::TableRename, 0, random.u64(1..=24), crash), swap]),
                _ => actions.push(swap),
            }
        }
    }
    script.actions = actions;
    script
}
