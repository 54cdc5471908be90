//! What the runs say of the work that is ahead of them.

use super::set::{Run, RunSet};
use super::turns::{MANY_RUNS, MOST_RUNS, steps_for};
use super::{FILE_BYTES, Runs};
use crate::index::memtable::{BYTES_PER_KEY, MAX_ACTIVE_KEYS, MemtableRoom};
use crate::io::{Device, UNIT_BYTES};
use crate::{Error, Result};

/// Steps of merges that a write waits for at most, however many keys it has.
const MOST_STEPS: usize = 32;

/// Bytes that a key takes in a run, at most: keys of the greatest length, and several operands.
const KEY_BYTES: u64 = 640;

/// New keys take at most so many times the bytes of those that there are, as a rule...
const KEY_BYTES_RATIO: u64 = 2;

/// ...where there are so many.
const LEAST_KNOWN_KEYS: u64 = 4096;

/// And no less than this: so many bytes beside a key count as another one.
const LEAST_KEY_BYTES: u64 = BYTES_PER_KEY as u64;

/// Bytes of two manifests, about.
const MANIFEST_BYTES: u64 = 64 << 10;

/// The fewest keys that the memtable takes; with no room for so many, tables take deletes only.
const MIN_MEMTABLE_KEYS: u64 = 256;

/// The memtable takes at most one in so many of the free bytes of the disk.
const SHARE_OF_FREE: u64 = 4;

/// But room is kept for as many as take one in so many of the bytes of all runs: a memtable of few keys is flushed often, and each flush waits
/// for the disk several times.
const SHARE_OF_RUNS: u64 = 2;

/// And for no more than so many.
const MOST_KEPT_KEYS: u64 = 128 << 10;

/// A file has at most one in so many of the free bytes of the disk, since a merge needs room for as much as a file of each run that
/// it takes in.
const FILES_OF_FREE: u64 = 64;

/// But files are not made smaller than this.
const LEAST_FILE_BYTES: u64 = 128 << 10;

/// With less room than this no step of a merge begins.
const LEAST_FREE_BYTES: u64 = 64 << 10;

/// Files that a merge makes are longer than those that it takes in by at most one in so many bytes: each has a footer.
const FOOTERS_SHARE: u64 = 8;

impl<D: Device> Runs<D> {
    /// Whether so many runs wait to be merged that writers are slowed.
    pub(crate) fn is_behind(&self) -> bool {
        self.len() >= MANY_RUNS
    }

    /// Whether there are so many that no write may go on.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= MOST_RUNS
    }

    /// How many steps a write of so many keys waits for at most while merges are behind. A memtable may have `memtable_keys`.
    pub(crate) fn steps_for(&self, keys: usize, memtable_keys: usize) -> usize {
        steps_for(self.len(), keys, memtable_keys).min(MOST_STEPS)
    }

    /// Whether a write of so many keys may come before the next step ends.
    pub(crate) fn lets_in(&self, keys: usize, memtable_keys: usize) -> bool {
        self.turns.take(self.len(), keys, memtable_keys)
    }

    /// A write comes that has waited for as many steps as it must.
    pub(crate) fn let_in(&self, keys: usize, memtable_keys: usize) {
        self.turns.charge(keys, memtable_keys);
    }

    /// What [`Runs::wait_for_step`] is to be told, taken before it is found that another thread does a step.
    pub(crate) fn last_step(&self) -> u32 {
        self.turns.last()
    }

    /// Returns when a step has ended since that one.
    pub(crate) fn wait_for_step(&self, last: u32) {
        self.turns.wait_after(last);
    }

    /// Does a step of nothing until what this returns is dropped.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn hold_step(&self) -> impl Drop {
        self.turns.lock_alone()
    }

    /// How many writers wait for a step.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn waiting_for_step(&self) -> usize {
        self.turns.waiting()
    }

    /// Bytes of one file, at most, unless one key needs more: what a step of a merge writes.
    pub(crate) fn file_bytes(&self) -> u64 {
        (self.free_bytes() / FILES_OF_FREE).clamp(LEAST_FILE_BYTES, FILE_BYTES)
    }

    /// Bytes that a step of a merge may write where `budget_bytes` are wanted: half of the room that there is, beside what is promised to
    /// another. An error if there is hardly any: a step that is refused in its middle has written in vain.
    pub(super) fn step_bytes(&self, budget_bytes: u64, promised: u64) -> Result<u64> {
        let free = self.free_bytes().saturating_sub(promised);
        if free < LEAST_FREE_BYTES {
            return Err(Error::DiskFull { path: self.directory.clone() });
        }
        Ok(budget_bytes.min(self.file_bytes()).min(free / 2))
    }

    /// How many keys both memtables may have so that their runs find room, and the merges that follow.
    pub(crate) fn memtable_room(&self) -> MemtableRoom {
        let free = self.free_bytes();
        let (merges, run_bytes, key_bytes) = self.set().map_or((0, 0, KEY_BYTES), |set| sizes(&set, self.file_bytes()));
        let merges = merges + MANIFEST_BYTES;
        let need = |keys, key_bytes| 2 * keys * key_bytes + merges;
        let fit = free.saturating_sub(merges) / (2 * key_bytes);
        let kept = (run_bytes / SHARE_OF_RUNS / (2 * key_bytes)).min(MOST_KEPT_KEYS);
        let range = MIN_MEMTABLE_KEYS..=MAX_ACTIVE_KEYS as u64;
        let keys = (fit / SHARE_OF_FREE).max(kept.min(fit / 2)).clamp(*range.start(), *range.end());
        MemtableRoom {
            keys: keys as usize,
            is_short: free < need(MIN_MEMTABLE_KEYS, KEY_BYTES),
            reserved_bytes: need(keys.max(kept), key_bytes).max(need(MIN_MEMTABLE_KEYS, KEY_BYTES)),
        }
    }

    pub(super) fn free_bytes(&self) -> u64 {
        self.device.free_bytes(&self.directory).unwrap_or(u64::MAX)
    }
}

/// Bytes that merges may yet have to write before files of their inputs go: a file goes when its last key is merged. Then, bytes of all runs, and
/// what a key takes in them.
fn sizes<D: Device>(set: &RunSet<D>, file_bytes: u64) -> (u64, u64, u64) {
    let unmerged: u64 = set.runs.iter().map(unmerged_bytes).sum();
    let merges = if unmerged == 0 { 0 } else { unmerged + unmerged / FOOTERS_SHARE + file_bytes.min(unmerged) };
    let (bytes, keys) =
        set.pieces().fold((0, 0), |(bytes, keys), piece| (bytes + piece.file.bytes(), keys + piece.file.footer.keys));
    let known = (keys >= LEAST_KNOWN_KEYS).then(|| KEY_BYTES_RATIO * bytes / keys);
    (merges, bytes, known.map_or(KEY_BYTES, |known| known.clamp(LEAST_KEY_BYTES, KEY_BYTES)))
}

/// Bytes of the longest file of a run that are not merged: of the first file, a part may be.
fn unmerged_bytes<D: Device>(run: &Run<D>) -> u64 {
    let longest = run.files.iter().map(|file| file.bytes()).max().unwrap_or(0);
    let merged_units = run.files.first().filter(|file| *run.from > *file.footer.smallest_key).map_or(0, |file| {
        let block = file.fences.block_of(&run.from);
        file.fences.units_of(block).0
    });
    longest.saturating_sub(u64::from(merged_units) * UNIT_BYTES as u64)
}
