//! What the runs say of the work that is ahead of them.

use super::{FILE_BYTES, Runs};
use crate::index::memtable::{MAX_ACTIVE_KEYS, MemtableRoom};
use crate::io::Device;

/// With so many runs, a look-up asks so many filters that writers wait for merges.
const MANY_RUNS: usize = 48;

/// Bytes that a key takes in a run, at most: keys of the greatest length, and several operands.
const KEY_BYTES: u64 = 640;

/// Bytes of two manifests, about.
const MANIFEST_BYTES: u64 = 64 << 10;

/// The fewest keys that the memtable takes; with no room for so many, tables take deletes only.
const MIN_MEMTABLE_KEYS: u64 = 256;

/// The memtable takes at most one in so many of the free bytes of the disk.
const SHARE_OF_FREE: u64 = 4;

/// Merges may take as much of the free bytes.
const MERGES_SHARE_OF_FREE: u64 = 8;

impl<D: Device> Runs<D> {
    /// Whether so many runs wait to be merged that who adds another one should help first.
    pub(crate) fn is_behind(&self) -> bool {
        self.len() >= MANY_RUNS
    }

    /// How many keys both memtables may have so that their runs find room, and the step of a merge that follows.
    pub(crate) fn memtable_room(&self) -> MemtableRoom {
        let free = self.device.free_bytes(&self.directory).unwrap_or(u64::MAX);
        // The runs of flushes have one file each, which goes only when all of it is merged.
        let merges =
            (self.debt() + FILE_BYTES).min(self.disk_bytes()).min(free / MERGES_SHARE_OF_FREE) + MANIFEST_BYTES;
        let fit = (free / SHARE_OF_FREE).saturating_sub(merges) / (2 * KEY_BYTES);
        let keys = fit.clamp(MIN_MEMTABLE_KEYS, MAX_ACTIVE_KEYS as u64);
        let need = |keys| 2 * keys * KEY_BYTES + merges;
        MemtableRoom { keys: keys as usize, is_short: free < need(MIN_MEMTABLE_KEYS), reserved_bytes: need(keys) }
    }
}
