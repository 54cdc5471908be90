//! When a store owes nothing any more: what a write costs is known only then.

use std::thread;
use std::time::{Duration, Instant};

use aiodb::Db;

use super::counters::{Transfers, process_transfers};
use crate::CliError;

/// A store is at rest when nothing has happened for so long: upkeep looks for work twenty times a second.
const QUIET: Duration = Duration::from_secs(1);
const LOOKED_EVERY: Duration = Duration::from_millis(50);

/// It is not waited for longer.
const MOST_WAIT: Duration = Duration::from_secs(600);

/// What changes while a store works.
#[derive(PartialEq, Eq)]
struct Counts {
    log_bytes_written: u64,
    reclaimed_segments: u64,
    segments_free: u64,
    segments_retiring: u64,
    memtable_entries: u64,
    unsettled_tags: u64,
    runs: u64,
    /// Those of the whole process: merges show nothing else while they go on.
    transfers: Option<Transfers>,
}

impl Counts {
    fn of(db: &Db) -> Counts {
        let metrics = db.metrics();
        Counts {
            log_bytes_written: metrics.log_bytes_written,
            reclaimed_segments: metrics.reclaimed_segments,
            segments_free: metrics.segments_free,
            segments_retiring: metrics.segments_retiring,
            memtable_entries: metrics.memtable_entries,
            unsettled_tags: metrics.unsettled_tags,
            runs: metrics.runs,
            transfers: process_transfers(),
        }
    }
}

/// Brings everything to the disk and the index, and waits until upkeep has nothing left to do. False if it still had after ten minutes.
pub(crate) fn wait_for_rest(db: &Db) -> Result<bool, CliError> {
    let deadline = Instant::now() + MOST_WAIT;
    db.sync()?;
    loop {
        let before = db.metrics().segments_retiring;
        db.checkpoint()?;
        if !wait_until_quiet(db, deadline) {
            return Ok(false);
        }
        // Segments that were emptied after the checkpoint need another one.
        let now = db.metrics().segments_retiring;
        if now == 0 || now == before {
            return Ok(true);
        }
    }
}

fn wait_until_quiet(db: &Db, deadline: Instant) -> bool {
    let (mut last, mut since) = (Counts::of(db), Instant::now());
    while since.elapsed() < QUIET {
        thread::sleep(LOOKED_EVERY);
        let now = Counts::of(db);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        if Instant::now() > deadline {
            return false;
        }
    }
    true
}

/// Brings everything to the disk and the index, and waits until no operands wait to be folded and no tags of `hash` tables to be settled.
/// False if some still did after `most_wait`.
pub(crate) fn catch_up(db: &Db, most_wait: Duration) -> Result<bool, CliError> {
    let deadline = Instant::now() + most_wait;
    db.sync()?;
    db.checkpoint()?;
    while db.metrics().unsettled_tags > 0 {
        if Instant::now() > deadline {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(true)
}
