//! Scripts in which tables change what memory keeps of them.

use aiodb::io::Phase;
use aiodb::{IndexKind, Step, StorageMode, TableModes};
use fastrand::Rng;

use super::outgrown::{FILTER_SIZES, LINE_BYTES};
use crate::script::{Action, Crash, Script};

/// One action in so many is followed by other modes of a table, and one by work behind the scenes, which brings to memory what is to be there.
const CHANGING: u32 = 15;
const WORKING: u32 = 10;

/// One change in so many is the last of its process, and as many are cut off by a crash.
const LAST: u32 = 12;

/// One making of a table in so many is cut off by a crash in a checkpoint: that which keeps the modes it is made with, as a rule.
const UNMADE: u32 = 6;

/// The script with modes among its actions.
pub(super) fn with_modes(mut script: Script) -> Script {
    let mut random = Rng::with_seed(script.seed.rotate_left(40));
    let kinds = script.setup.tables.clone();
    // Half of the tables are made with modes.
    for (made, kind) in script.setup.modes.iter_mut().zip(&kinds) {
        if random.bool() {
            *made = modes(*kind, &mut random);
        }
    }
    script.setup.filter_bytes = Some(script.seed % FILTER_SIZES * LINE_BYTES);
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    for action in script.actions {
        if matches!(action, Action::Create(_) | Action::FinishIngest) && random.u32(..UNMADE) == 0 {
            let crash = Crash::between_calls(random.bool());
            actions.push(Action::CrashInside(Phase::Checkpoint, 0, random.u64(1..=12), crash));
        }
        actions.push(action);
        if random.u32(..CHANGING) == 0 {
            let table = random.usize(..kinds.len());
            let change = Action::Modes(table, modes(kinds[table], &mut random));
            let crash = Crash::between_calls(random.bool());
            match random.u32(..LAST) {
                0 => actions.extend([change, Action::CrashNow(crash)]),
                1 => actions.extend([Action::CrashInside(Phase::Checkpoint, 0, random.u64(1..=12), crash), change]),
                _ => actions.push(change),
            }
        }
        if random.u32(..WORKING) == 0 {
            actions.extend([Action::Wait(random.u64(..400)), Action::Steps(Step::Upkeep, random.usize(1..4))]);
        }
    }
    script.actions = actions;
    script
}

/// Modes that a table of this kind can have.
pub(super) fn modes(kind: IndexKind, random: &mut Rng) -> TableModes {
    use StorageMode::{Auto, Disk, Memory};
    let values = [Auto, Memory, Memory, Disk][random.usize(..4)];
    let keys = match kind {
        IndexKind::Lsm if values != Memory => [Auto, Memory, Disk][random.usize(..3)],
        _ => [Auto, Memory][random.usize(..2)],
    };
    TableModes { keys, values }
}
