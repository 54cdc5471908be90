//! The room on the disk that the index needs: the memtable takes only as many keys as can be committed when no more room is to be had.
//!
//! A transaction writes each page that it changes to another place, and the old page is free for the transaction after the
//! next. So small transactions go on with the pages that are free in the file; they need more only where leaves are split.

use std::os::unix::fs::MetadataExt;

use super::LmdbIndex;
use super::environment::known_bytes;
use super::limits::{KEYS_PER_TRANSACTION, MIN_KEYS_PER_TRANSACTION, PAGE_BYTES};
use crate::Result;
use crate::index::memtable::{MAX_ACTIVE_KEYS, MemtableRoom};
use crate::io::disk::free_bytes;
use crate::sync::atomic::Ordering;

/// The fewest keys that the memtable takes; with no room for so many, ordered tables take deletes only.
const MIN_MEMTABLE_KEYS: u64 = 256;

/// Bytes reserved for deletes: the pages that three of the smallest transactions write, each key through a tree of five levels.
const RESERVED_FOR_DELETES_BYTES: u64 = 3 * MIN_KEYS_PER_TRANSACTION as u64 * 5 * PAGE_BYTES;

/// Pages that a transaction writes besides the paths to its keys: counters, and the list of free pages.
const OTHER_PAGES: u64 = 24;

/// A key splits a leaf at most, and every fifth a page above it.
const SPLIT_BYTES: u64 = PAGE_BYTES + PAGE_BYTES / 4;
/// Where every leaf has been split, a key takes as much as its entry does in a page that is half full.
const ENTRY_BYTES: u64 = 1200;

/// The memtable takes at most one in so many of the free bytes of the disk.
const SHARE_OF_FREE: u64 = 4;

/// The room that the index takes and may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Room {
    /// Bytes of pages in use.
    used: u64,
    /// Bytes of the file that are not in use.
    spare: u64,
    /// Bytes that the file system has left.
    free: u64,
    /// Pages from the root to a leaf.
    depth: u64,
}

impl Room {
    /// The most bytes that so many keys can add.
    fn need(&self, keys: u64) -> u64 {
        (keys * SPLIT_BYTES).min(self.used + keys * ENTRY_BYTES)
    }

    /// How many keys each of the two memtables may have so that both find room.
    fn memtable_keys(&self) -> u64 {
        let there_is = (self.spare + self.free / SHARE_OF_FREE).saturating_sub(RESERVED_FOR_DELETES_BYTES) / 2;
        let split = there_is / SPLIT_BYTES;
        let entered = there_is.saturating_sub(self.used) / ENTRY_BYTES;
        split.max(entered).clamp(MIN_MEMTABLE_KEYS, MAX_ACTIVE_KEYS as u64)
    }

    /// The bytes of the disk that are reserved while the memtable has so many keys: not less than an index of any size needs.
    fn reserved(&self, keys: u64) -> u64 {
        let least = MIN_MEMTABLE_KEYS * SPLIT_BYTES;
        (2 * self.need(keys).max(least) + RESERVED_FOR_DELETES_BYTES).saturating_sub(self.spare)
    }

    /// Whether the disk has too little for the fewest keys.
    fn is_short(&self) -> bool {
        2 * self.need(MIN_MEMTABLE_KEYS) + RESERVED_FOR_DELETES_BYTES > self.spare + self.free
    }

    /// Bytes of the pages that a transaction over so many keys writes at most.
    fn written(&self, keys: usize) -> u64 {
        let changed = keys as u64 * self.depth;
        (changed.min(self.used / PAGE_BYTES + keys as u64) + OTHER_PAGES) * PAGE_BYTES
    }

    /// How many keys go into one transaction, where the file may grow by so many bytes. It takes half of the room, so that
    /// the next transaction finds room too: for that one the old pages of this one are not free yet.
    fn transaction_keys(&self, reserved: u64, last_written: u64) -> usize {
        let half = (self.spare.saturating_sub(last_written) + reserved.min(self.free)) / 2;
        if self.written(KEYS_PER_TRANSACTION) <= half {
            return KEYS_PER_TRANSACTION;
        }
        let pages = (half / PAGE_BYTES).saturating_sub(OTHER_PAGES);
        ((pages / self.depth) as usize).clamp(MIN_KEYS_PER_TRANSACTION, KEYS_PER_TRANSACTION)
    }
}

impl LmdbIndex {
    /// How many keys the memtable may have by the room on the disk.
    pub(crate) fn memtable_room(&self) -> Result<MemtableRoom> {
        let room = self.room()?;
        let keys = room.memtable_keys();
        let reserved_bytes = room.reserved(keys);
        self.reserved_bytes.store(reserved_bytes, Ordering::Relaxed);
        Ok(MemtableRoom { keys: keys as usize, is_short: room.is_short(), reserved_bytes })
    }

    /// How many keys the next transaction may change, and how many bytes it writes with so many.
    pub(super) fn next_transaction(&self) -> Result<(usize, u64)> {
        let (room, reserved) = (self.room()?, self.reserved_bytes.load(Ordering::Relaxed));
        let fit = room.transaction_keys(reserved, self.last_written.load(Ordering::Relaxed));
        let keys = fit.min(self.transaction_keys.load(Ordering::Relaxed));
        if keys < KEYS_PER_TRANSACTION {
            self.wait_for_readers();
        }
        Ok((keys, room.written(keys)))
    }

    /// Returns when no reader sees the old pages of an earlier transaction any more, unless the index is being copied: while a
    /// reader is stopped by the system, no transaction could use those pages.
    fn wait_for_readers(&self) {
        if let Ok(_no_copy) = self.copying.try_lock() {
            drop(self.env.write().expect("no code panics while it holds the environment"));
        }
    }

    /// Gives the room back that a transaction took before it was refused more: no page there is known.
    pub(super) fn trim_file(&self) {
        let env = self.env();
        let Some(env) = env.as_ref() else { return };
        // Nothing is written meanwhile.
        let Ok(_txn) = env.write_txn() else { return };
        let (path, known_bytes) = (self.path.join("data.mdb"), known_bytes(env));
        if std::fs::metadata(&path).is_ok_and(|file| file.len() > known_bytes) {
            // Without it the room only stays with the index.
            let _ = std::fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(known_bytes));
        }
    }

    fn room(&self) -> Result<Room> {
        let env = self.env();
        let txn = env.as_ref().ok_or(crate::Error::Closed)?.read_txn().map_err(|e| self.failed(&e))?;
        let stat = self.database.stat(&txn).map_err(|e| self.failed(&e))?;
        let used = (stat.branch_pages + stat.leaf_pages + stat.overflow_pages) as u64 * PAGE_BYTES;
        // Holes in the file are no room.
        let has = std::fs::metadata(self.path.join("data.mdb")).map_or(0, |file| file.blocks() * 512);
        let free = free_bytes(&self.path).unwrap_or(u64::MAX);
        Ok(Room { used, spare: has.saturating_sub(used), free, depth: u64::from(stat.depth).max(1) })
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::{MAX_ACTIVE_KEYS, MIN_MEMTABLE_KEYS, RESERVED_FOR_DELETES_BYTES, Room};

    #[test]
    fn both_memtables_find_room() {
        for used in [0, 1 << 20, 100 << 20, 100 << 30] {
            for spare in [0, 1 << 20, 50 << 20, 10 << 30] {
                for free in [0, 1 << 20, 30 << 20, 1 << 30, 100 << 30, 10 << 40] {
                    let room = Room { used, spare, free, depth: 3 };
                    let keys = room.memtable_keys();
                    let needed = 2 * room.need(keys) + RESERVED_FOR_DELETES_BYTES;
                    let is_least = keys == MIN_MEMTABLE_KEYS;
                    assert!(is_least || needed <= spare + free / 4, "{room:?}: {keys} keys need {needed} bytes");
                    assert!(needed <= spare + room.reserved(keys), "{room:?}: what {keys} keys need is reserved");
                    assert!(is_least || room.reserved(keys) <= free / 4, "{room:?}: the rest is for the log");
                }
            }
        }
    }

    #[test]
    fn a_large_disk_limits_nothing_and_a_full_one_all_but_deletes() {
        let large = Room { used: 60 << 20, spare: 0, free: 50 << 30, depth: 3 };
        assert_eq!(large.memtable_keys(), MAX_ACTIVE_KEYS as u64);
        let full = Room { used: 60 << 20, spare: RESERVED_FOR_DELETES_BYTES, free: 0, depth: 3 };
        assert!(full.is_short(), "puts are refused");
    }

    /// The old pages of a transaction are free for the transaction after the next.
    #[test]
    fn small_transactions_go_on_with_the_reserve_for_deletes() {
        for depth in 1..=5 {
            let room = Room { used: 60 << 20, spare: RESERVED_FOR_DELETES_BYTES, free: 0, depth };
            let (mut usable, mut last_written) = (room.spare, 0);
            for _ in 0..1000 {
                let written = room.written(room.transaction_keys(0, last_written));
                assert!(written <= usable, "depth {depth}: {written} bytes of {usable}");
                usable = usable - written + last_written;
                last_written = written;
            }
        }
    }
}
