//! Scripts some of whose tables have a compaction filter.

use aiodb::{IndexKind, Step};
use fastrand::Rng;

use crate::script::{Action, Script, Write};

/// One action in so many is followed by merges, or by a commit with merges.
const MERGING: u32 = 16;

/// The script with a filter in some of its `lsm` tables. There no operands come: what they make together would be given up as well,
/// or not, and nobody could say which.
pub(super) fn with_filters(mut script: Script) -> Script {
    let mut random = Rng::with_seed(script.seed.rotate_left(48));
    let setup = &mut script.setup;
    for (filtered, kind) in setup.filtered.iter_mut().zip(&setup.tables) {
        *filtered = *kind == IndexKind::Lsm && random.u8(..4) > 0;
    }
    let is_filtered = |table: usize| setup.filtered[table];
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    for mut action in script.actions {
        match &mut action {
            Action::Merge(table, key, value, durability) if is_filtered(*table) => {
                action = Action::Put(*table, *key, *value, *durability);
            }
            Action::Batch(writes, _) | Action::BatchIf(_, writes, _) | Action::Append(_, writes) => {
                for (_, _, write) in writes.iter_mut().filter(|(table, ..)| is_filtered(*table)) {
                    if let Write::Merge(value) = *write {
                        *write = Write::Put(value);
                    }
                }
            }
            _ => {}
        }
        actions.push(action);
        match random.u32(..MERGING) {
            0 => actions.extend([Step::Merge, Step::Merge].map(Action::Step)),
            1 => actions.extend([Action::Checkpoint, Action::Step(Step::Merge), Action::Step(Step::Upkeep)]),
            _ => {}
        }
    }
    script.actions = actions;
    script
}
