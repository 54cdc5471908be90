//! Whether the simulator finds bugs: each is planted in the engine, and seeds are run until one fails.

use aiodb::{Bug, plant};

use crate::report::Report;
use crate::run::{Violation, run};
use crate::workload::{
    FIRST_AIMED, FIRST_BESIDE, FIRST_BOUNDED, FIRST_COMPRESSED, FIRST_FILTERED, FIRST_INGESTED, FIRST_INLINE,
    FIRST_MODED, FIRST_OUTGROWN, FIRST_PRESSED, FIRST_SORTED, FIRST_SPILLED, FIRST_SWAPPED, FIRST_TIMED, FIRST_WAITING,
    Tables, script,
};

/// How a planted bug was found.
pub struct Found {
    /// Seeds that it took.
    pub seeds: u64,
    /// What was seen of it.
    pub violation: Violation,
}

/// Runs up to `seeds` seeds with this bug in the engine, until one fails that does not fail without it.
pub fn hunt(bug: Bug, seeds: u64) -> Option<Found> {
    // Seeds with scenes, with a second client, and without either take turns: some bugs want a long life without one.
    let (firsts, tables) = match bug {
        // Only there must work that makes room never be refused.
        Bug::ReserveTakenByPuts => (&[FIRST_BOUNDED][..], Tables::Any),
        Bug::InlineSurvivesOverwrite | Bug::MovedValueLost | Bug::FoldOverlooksWaiting | Bug::FoldOutlivesBase => {
            (&[FIRST_INLINE][..], Tables::Lsm)
        }
        Bug::BackupForgetsRun | Bug::BackupLetsRunsGo => (&[FIRST_BESIDE][..], Tables::Lsm),
        Bug::IngestUnprotected | Bug::IngestUncounted | Bug::IngestIdReused => (&[FIRST_INGESTED][..], Tables::Lsm),
        Bug::FilteredInPlace | Bug::DropBeatsPut | Bug::AskedAboveSnapshot | Bug::VerdictOfNeighbour => {
            (&[FIRST_FILTERED][..], Tables::Lsm)
        }
        Bug::PackedKeysLost | Bug::BlockUncutAtTable => (&[FIRST_COMPRESSED][..], Tables::Lsm),
        Bug::FrozenVersionsUnseen | Bug::VersionFilterForgetsKey | Bug::VersionMergeForgetsOldest => {
            (&[FIRST_SPILLED][..], Tables::Any)
        }
        Bug::FloorForgotten
        | Bug::FloorPassed
        | Bug::SpillUnchecked
        | Bug::SpillMergeReversed
        | Bug::SpilledGoneEarly
        | Bug::DeleteOverSpilled
        | Bug::SpilledNotMoved => (&[FIRST_OUTGROWN][..], Tables::Hash),
        Bug::NamesForgotten => (&[FIRST_SWAPPED][..], Tables::Any),
        Bug::ModesForgotten | Bug::ModesLostByTruncate => (&[FIRST_MODED][..], Tables::Any),
        Bug::GivenUpStillCounted | Bug::CheckpointAmidSpill => (&[FIRST_PRESSED][..], Tables::Hash),
        Bug::FilterLeftOutHidesKeys => (&[FIRST_MODED, FIRST_OUTGROWN][..], Tables::Any),
        Bug::ReplayedTwice => (&[FIRST_SORTED][..], Tables::Lsm),
        bug if bug.is_of_runs() => (&[FIRST_SORTED][..], Tables::Lsm),
        _ => (&[FIRST_TIMED, FIRST_AIMED, FIRST_WAITING][..], Tables::Any),
    };
    let count = firsts.len() as u64;
    let tried = (0..seeds).map(|number| number / count + firsts[(number % count) as usize]);
    tried.enumerate().find_map(|(before, seed)| {
        let script = script(seed, tables);
        plant(Some(bug));
        let planted = run(&script, &mut Report::default());
        plant(None);
        let violation = planted.err()?;
        run(&script, &mut Report::default()).ok().map(|_| Found { seeds: before as u64 + 1, violation })
    })
}
