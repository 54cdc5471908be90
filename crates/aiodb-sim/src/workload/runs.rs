//! Scripts whose ordered tables have sorted runs.

use aiodb::io::Phase;
use aiodb::{IndexKind, Step};
use fastrand::Rng;

use crate::script::{Action, Script};

/// One action in so many is followed by a merge.
const MERGING: u32 = 12;

/// One crash of those in the commit of an index in so many is one in a merge.
const CRASHES_IN_MERGES: u8 = 2;

/// The script with `lsm` in place of `lmdb`, and merges among its actions.
pub(super) fn with_runs(mut script: Script) -> Script {
    // Another generator: what the seed means otherwise stays as it is.
    let mut random = Rng::with_seed(!script.seed);
    script.setup.tables.iter_mut().filter(|kind| **kind == IndexKind::Lmdb).for_each(|kind| *kind = IndexKind::Lsm);
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    for action in script.actions {
        match action {
            Action::CrashInside(Phase::IndexCommit, skip, steps, crash) if random.u8(..CRASHES_IN_MERGES) == 0 => {
                actions.extend([Action::Checkpoint, Action::CrashInside(Phase::Merge, skip, steps, crash)]);
                actions.extend([Step::Merge; 4].map(Action::Step));
            }
            action => actions.push(action),
        }
        if random.u32(..MERGING) == 0 {
            actions.push(Action::Step(Step::Merge));
        }
    }
    script.actions = actions;
    script
}
