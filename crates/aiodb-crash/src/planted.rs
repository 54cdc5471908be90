//! Whether the harness can fail: bugs are planted in the command's engine, and what it loses must be seen.

use crate::kill;
use crate::process::Aiodb;
use std::path::Path;

/// Bugs that lose something when a process dies, by the names of the engine's `Bug`. Those that only a power cut shows, those
/// that need what `aiodb apply` does not do, and those that need a death between two stores into memory, as `GroupSplit`,
/// are the simulator's.
pub const BUGS: &[&str] = &["PendingForgotten"];

/// Kills after which the command without a bug counts as sound.
const KILLS_WITHOUT_BUG: u64 = 20;

/// Kills the command with each bug up to so many times, and calls `found` with what was seen of it. Fails if the command
/// without a bug loses something too, or if a bug was not seen.
pub fn hunt(
    aiodb: &Aiodb,
    directory: &Path,
    seed: u64,
    kills: u64,
    found: &mut dyn FnMut(&str, &str),
) -> Result<(), String> {
    run(aiodb, directory, "none", seed, KILLS_WITHOUT_BUG)?
        .map_or(Ok(()), |lost| Err(format!("without any bug: {lost}")))?;
    for bug in BUGS {
        let lost = run(&aiodb.with_bug(bug), directory, bug, seed, kills)?;
        let lost = lost.ok_or_else(|| format!("seed {seed}: {bug} was not seen in {kills} kills"))?;
        found(bug, &lost);
    }
    Ok(())
}

/// What was lost, if anything was.
fn run(aiodb: &Aiodb, directory: &Path, name: &str, seed: u64, kills: u64) -> Result<Option<String>, String> {
    let directory = directory.join(name);
    std::fs::create_dir(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(kill::run(aiodb, &directory, seed, kills).err())
}
