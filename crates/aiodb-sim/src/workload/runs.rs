//! Scripts whose ordered tables have sorted runs.

use aiodb::io::Phase;
use aiodb::{Compression, IndexKind, MAX_INLINE_BYTES, Step};
use fastrand::Rng;

use super::filters::with_filters;
use super::ingests::with_ingests;
use super::ranges::{
    FIRST_AHEAD, FIRST_BESIDE, FIRST_BOUNDED, FIRST_COMPRESSED, FIRST_FILTERED, FIRST_INGESTED, FIRST_INLINE,
    FIRST_SORTED,
};
use crate::script::{Action, Script, Setup};

/// Bounds of the values that indexes have, as many as their likelihoods want.
const INLINE_BYTES: [usize; 5] = [0, 8, 100, 200, MAX_INLINE_BYTES];

/// One action in so many is followed by a merge.
const MERGING: u32 = 12;

/// One crash of those in the commit of an index in so many is one in a merge.
const CRASHES_IN_MERGES: u8 = 2;

/// Keys of a small memtable.
const FEW_KEYS: std::ops::RangeInclusive<usize> = 2..=16;

/// One action in so many is followed by a commit of memtables that are half full.
const COMMITTING: u32 = 4;

/// One action in so many is followed by a backup, and as many by a restore.
const BACKING_UP: u32 = 150;

/// The script with `lsm` in place of `lmdb`, in some tables or in all, and merges among its actions.
pub(super) fn with_runs(mut script: Script, in_some: bool) -> Script {
    // Other generators: what the seed means otherwise stays as it is.
    let (mut random, mut choice) = (Rng::with_seed(!script.seed), Rng::with_seed(script.seed.rotate_left(32)));
    let (setup, is_sorted) = (&mut script.setup, (FIRST_SORTED..FIRST_BOUNDED).contains(&script.seed));
    for kind in setup.tables.iter_mut().filter(|kind| **kind == IndexKind::Lmdb) {
        *kind = if in_some && choice.bool() { IndexKind::Lmdb } else { IndexKind::Lsm };
    }
    if !setup.tables.contains(&IndexKind::Lsm) {
        return script;
    }
    if (FIRST_INLINE..FIRST_BOUNDED).contains(&script.seed) {
        let mut bounds = Rng::with_seed(script.seed.rotate_left(16));
        for (inline_bytes, _) in
            setup.inline_bytes.iter_mut().zip(&setup.tables).filter(|(_, kind)| **kind == IndexKind::Lsm)
        {
            *inline_bytes = INLINE_BYTES[bounds.usize(..INLINE_BYTES.len())];
        }
    }
    if (FIRST_COMPRESSED..FIRST_BOUNDED).contains(&script.seed) {
        compress_blocks(setup, &mut Rng::with_seed(script.seed.rotate_left(40)));
    }
    setup.works_beside_backups = (FIRST_BESIDE..FIRST_BOUNDED).contains(&script.seed);
    if is_sorted {
        (setup.fan_out, setup.merges_apart) = (choice.usize(2..=4), choice.bool());
    }
    let is_ahead = (FIRST_AHEAD..FIRST_BOUNDED).contains(&script.seed);
    if is_ahead {
        setup.memtable_keys = choice.usize(FEW_KEYS);
    }
    // LMDB's file does not lie on the simulated machine.
    let backs_up = is_sorted && !setup.tables.contains(&IndexKind::Lmdb);
    let mut actions = Vec::with_capacity(script.actions.len() * 2);
    for action in script.actions {
        match action {
            Action::CrashInside(Phase::IndexCommit, skip, steps, mut crash) if random.u8(..CRASHES_IN_MERGES) == 0 => {
                crash.rotten_runs = (is_sorted && choice.bool()).then(|| choice.u64(..));
                actions.extend([Action::Checkpoint, Action::CrashInside(Phase::Merge, skip, steps, crash)]);
                actions.extend([Step::Merge; 4].map(Action::Step));
            }
            action => actions.push(action),
        }
        if random.u32(..MERGING) == 0 {
            actions.push(Action::Step(Step::Merge));
        }
        if is_ahead && choice.u32(..COMMITTING) == 0 {
            actions.push(Action::Step(Step::CommitAhead));
        }
        match choice.u32(..BACKING_UP) {
            0 if backs_up => actions.push(Action::BackUp),
            1 if backs_up => actions.push(Action::Restore(choice.usize(..3))),
            _ => {}
        }
    }
    script.actions = actions;
    if (FIRST_INGESTED..FIRST_BOUNDED).contains(&script.seed) {
        script = with_ingests(script);
    }
    if (FIRST_FILTERED..FIRST_BOUNDED).contains(&script.seed) { with_filters(script) } else { script }
}

/// Compresses blocks of most `lsm` tables, which mostly have values in them.
fn compress_blocks(setup: &mut Setup, random: &mut Rng) {
    for table in (0..setup.tables.len()).filter(|table| setup.tables[*table] == IndexKind::Lsm) {
        setup.block_compression[table] = match random.u8(..4) {
            0 => Compression::None,
            1 => Compression::Zstd(1),
            _ => Compression::Lz4,
        };
        if random.u8(..4) > 0 {
            setup.inline_bytes[table] = MAX_INLINE_BYTES;
        }
    }
}
