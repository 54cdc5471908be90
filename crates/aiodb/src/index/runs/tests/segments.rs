//! Segments of a log, as far as runs know them: their lives, and what is counted in memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

use crate::format::location::Location;
use crate::format::place::Counting;
use crate::index::accounting::{Accounting, ChunkBytes};
use crate::index::chain::Entry;
use crate::index::codec::table_of;

/// Records in a segment.
pub(super) const SEGMENT_RECORDS: u32 = 40;

/// Segments that snapshots and garbage leave at most: a workload does not need more.
const SEGMENTS: u32 = 200;

/// Bytes and records by segment, and bytes of chunks by table and segment.
pub(super) type Counts = (BTreeMap<u32, (i64, i64)>, BTreeMap<(u32, u32), i64>);

/// Segments, as the log of a store knows them.
#[derive(Default)]
pub(super) struct Segments {
    /// The life of each, 0 if it is free.
    pub(super) lives: BTreeMap<u32, u64>,
    /// Live bytes and records that are counted in memory, by segment.
    pub(super) live: RefCell<BTreeMap<u32, (i64, i64)>>,
    /// Bytes of chunks, by table and segment.
    pub(super) chunks: RefCell<BTreeMap<(u32, u32), i64>>,
    /// Emptied segments, and the length of the log then.
    pub(super) retired: Vec<(u32, usize)>,
    pub(super) current: u32,
    pub(super) next_life: u64,
    pub(super) next_offset: u32,
}

impl Segments {
    pub(super) fn life_of(&self, segment: u32) -> u64 {
        self.lives.get(&segment).copied().unwrap_or(0)
    }

    /// Counts an entry under its index key.
    pub(super) fn count(&self, key: &[u8], entry: &Entry, sign: i64) {
        let accounting = Accounting { counting: Counting::AsTheyLie, ..Accounting::NONE };
        self.count_bytes(table_of(key), entry, sign, accounting.bytes_of(key, entry));
    }

    pub(super) fn count_bytes(&self, table: u32, entry: &Entry, sign: i64, bytes: i64) {
        let Location { segment, length, .. } = entry.location;
        if !entry.is_delete() {
            let mut live = self.live.borrow_mut();
            let count = live.entry(segment).or_default();
            *count = (count.0 + sign * bytes, count.1 + sign);
        }
        if entry.form.chunked {
            *self.chunks.borrow_mut().entry((table, segment)).or_default() += sign * i64::from(length);
        }
    }

    /// Counts chunks of one life of a segment.
    pub(super) fn count_chunks(&self, table: u32, chunks: ChunkBytes) {
        if self.life_of(chunks.segment) == chunks.life {
            *self.chunks.borrow_mut().entry((table, chunks.segment)).or_default() += chunks.bytes;
        }
    }

    /// What is counted in memory, without zeros and without the chunks of tables that are gone.
    pub(super) fn counts(&self, gone: &BTreeSet<u32>) -> Counts {
        let mut counts = (self.live.borrow().clone(), self.chunks.borrow().clone());
        counts.0.retain(|_, count| *count != (0, 0));
        counts.1.retain(|(table, _), count| *count != 0 && !gone.contains(table));
        counts
    }

    /// Where the next record goes.
    pub(super) fn place(&mut self, random: &mut Rng) -> Location {
        if self.next_offset >= SEGMENT_RECORDS {
            let free = (1..).find(|segment| self.life_of(*segment) == 0).expect("there are many numbers");
            assert!(free < SEGMENTS, "segments are used again");
            self.lives.insert(free, self.next_life);
            (self.current, self.next_offset) = (free, 0);
            self.next_life += 1;
        }
        self.next_offset += 1;
        Location { segment: self.current, offset: self.next_offset * 16, length: random.u32(30..5000) }
    }
}
