//! Sorted runs: the part of an ordered index that is on disk, for tables of kind `lsm`.
//!
//! A memtable becomes a run by sequential writes, without a look at older runs; merges make few runs of many, a bounded part at
//! a time. A look-up asks the newest run first. What a newer entry supersedes in an older run is found out by the merge in which both
//! meet, and counts as alive until then.
//!
//! An entry may stay in a run long after the segment that it leads to was emptied and used again: no look-up comes to it, since
//! what superseded it is in a newer run. A merge tells it by the life of that segment, and leaves it out.

mod ahead;
mod asking;
mod block_cursor;
mod choosing;
mod claims;
mod copy;
pub(crate) mod counts;
mod cursor;
mod due;
mod edits;
mod file;
pub(crate) mod filtering;
pub(crate) mod filters;
mod flush;
pub(crate) mod ingest;
mod inputs;
pub(crate) mod lookup;
mod merge;
mod outlook;
mod packing;
mod policy;
pub(crate) mod scan;
mod set;
mod shares;
pub(crate) mod spilled;
mod steps;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
mod turns;
pub(crate) mod warm;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use self::claims::Claims;
pub(crate) use self::copy::CapturedRuns;
use self::edits::Editing;
pub(crate) use self::file::{CapturedFile, path_of};
use self::file::{Removals, hash_of};
use self::filtering::{BegunPasses, Filtering};
use self::lookup::RunLookup;
pub(crate) use self::policy::Compaction;
use self::set::RunSet;
use self::turns::Turns;
use crate::budget::Accounts;
use crate::cache::Cache;
use crate::config::MergePolicy;
use crate::format::position::Position;
pub(crate) use crate::format::run::manifest::LiveCount;
use crate::format::segment::u64_at;
use crate::index::accounting::{Accounting, ChunkBytes};
use crate::index::range_tombstones::{RangeTombstone, Ranges};
use crate::index::snapshots::Snapshots;
use crate::io::Device;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{InOrder, Mutex, Rank, RwLock};
use crate::{Compression, Error, Result};

/// Bytes of one file on a disk with room, see [`Runs::file_bytes`].
pub(crate) const FILE_BYTES: u64 = 8 << 20;

/// The questions of flushes and merges to the store, and its answers.
#[derive(Clone, Copy)]
pub(crate) struct RunContext<'a> {
    /// `died` is told of each occurrence of an entry that has left the runs, once that is durable.
    pub(crate) accounting: &'a Accounting<'a>,
    pub(crate) snapshots: &'a Snapshots,
    /// All range tombstones that are published and not carried out.
    pub(crate) ranges: &'a Ranges,
    /// The life that a segment is in; 0 for one that is free or not there. A life that begins later is above all of them.
    pub(crate) life_of: &'a dyn Fn(u32) -> u64,
    /// How blocks of a table are compressed.
    pub(crate) compression_of: &'a dyn Fn(u32) -> Compression,
    /// Up to how many bytes values of a table lie in runs.
    pub(crate) inline_bytes_of: &'a dyn Fn(u32) -> usize,
    /// `None` where no table has a compaction filter.
    pub(crate) filtering: Option<&'a Filtering<'a>>,
}

#[cfg(test)]
impl<'a> RunContext<'a> {
    /// What a store answers in which nothing dies and no segment is used again.
    pub(crate) fn quiet(snapshots: &'a Snapshots, ranges: &'a Ranges) -> RunContext<'a> {
        RunContext {
            accounting: &Accounting::NONE,
            snapshots,
            ranges,
            life_of: &|_| 1,
            compression_of: &|_| Compression::None,
            inline_bytes_of: &|_| usize::MAX,
            filtering: None,
        }
    }
}

/// What a table has of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunShare {
    /// Runs with keys of it.
    pub(crate) runs: u64,
    /// Their blocks that have such keys...
    pub(crate) blocks: u64,
    /// ...and the bytes of these on the disk.
    pub(crate) bytes: u64,
    /// Those of them that merges wait for or have begun, and have yet to take in.
    pub(crate) debt_bytes: u64,
}

/// All runs of a store.
pub(crate) struct Runs<D: Device> {
    device: D,
    /// For the memory of files, and of those who write and merge them.
    accounts: Arc<Accounts>,
    directory: PathBuf,
    store: [u8; 16],
    /// Has blocks that look-ups have read.
    cache: Arc<Cache>,
    removals: Arc<Removals>,
    /// `None` once they are closed. Held to clone the set, or to replace it.
    set: RwLock<Option<Arc<RunSet<D>>>, { Rank::RunSet as u8 }>,
    /// Held for an edit.
    editing: Mutex<Editing<D>, { Rank::RunEdit as u8 }>,
    policy: MergePolicy,
    /// The turns of steps: merges, range tombstones and purges. A flush does not wait for them.
    turns: Turns,
    /// What steps of merges under way have to themselves.
    claims: Claims,
    /// Held to take out what filters know of a merge, and to put it back.
    passes: Mutex<BegunPasses, { Rank::RunPasses as u8 }>,
    /// Held for a flush.
    flushes: InOrder<{ Rank::RunFlush as u8 }>,
    /// How many runs the set has. Relaxed: every put asks, and may learn of a new one late.
    count: AtomicUsize,
    /// The number of the next file. Relaxed: all that matters is that none is given away twice.
    next_file: AtomicU64,
}

impl<D: Device> Runs<D> {
    /// The same runs, of which a cache keeps blocks.
    pub(crate) fn with_cache(self, cache: Arc<Cache>) -> Runs<D> {
        Runs { cache, ..self }
    }

    /// Has them merged by another policy.
    pub(crate) fn merged_by(self, policy: MergePolicy) -> Runs<D> {
        Runs { policy, ..self }
    }

    /// The position up to which the runs have the log; `None` before the first flush.
    pub(crate) fn position(&self) -> Result<Option<Position>> {
        Ok(self.set()?.manifest.position)
    }

    /// The sequence after that position; 0 of runs that are closed.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.set().map_or(0, |set| set.manifest.next_sequence)
    }

    /// The last batch that an edit has relied on as durable: a log that ends before it has lost its end.
    pub(crate) fn last_durable_batch(&self) -> Result<u64> {
        let set = self.set()?;
        let position = set.manifest.position.map_or(0, |position| position.batch);
        Ok(set.manifest.durable_batch.max(position))
    }

    /// The sequences, from the position on, that entries may have: of records that were published before a memtable became immutable,
    /// though their batches lie behind its position.
    pub(crate) fn sequences_ahead(&self) -> Result<Range<u64>> {
        let set = self.set()?;
        let end = set.pieces().map(|piece| piece.file.footer.largest_sequence + 1).max();
        Ok(set.manifest.next_sequence..end.unwrap_or(0))
    }

    /// All deletes before this sequence have met every older entry of their keys.
    pub(crate) fn settled_sequence(&self) -> Result<u64> {
        let set = self.set()?;
        Ok(set.manifest.runs.last().map_or(set.manifest.next_sequence, |oldest| oldest.until))
    }

    /// The range tombstones that some run has not carried out, by sequence.
    pub(crate) fn range_tombstones(&self) -> Result<Vec<RangeTombstone>> {
        Ok(self.set()?.manifest.ranges.clone())
    }

    /// The range tombstones before a sequence that every run has carried out, oldest first. No memtable may have entries before that
    /// sequence any more, which a flush has left out for a range tombstone.
    pub(crate) fn carried_out(&self, ranges: &Ranges, sequence: u64) -> Result<Vec<RangeTombstone>> {
        let set = self.set()?;
        let waiting = &set.manifest.ranges;
        let is_waiting = |sequence| waiting.binary_search_by_key(&sequence, |range| range.sequence).is_ok();
        let below = sequence.min(set.manifest.next_sequence);
        Ok(ranges
            .oldest_while(usize::MAX, |range| range.sequence < below)
            .into_iter()
            .filter(|range| !is_waiting(range.sequence))
            .collect())
    }

    /// Begins a look-up of a key's entries up to a sequence, in the runs that there are now.
    pub(crate) fn begin_lookup(&self, key: &[u8], newest: u64) -> Result<RunLookup<D>> {
        Ok(RunLookup::new(self.set()?, Arc::clone(&self.cache), hash_of(self.hash_seed(), key), newest))
    }

    /// Live bytes and records that the entries of all runs have, by segment: of its latest life that was counted.
    pub(crate) fn live(&self) -> Result<Vec<LiveCount>> {
        Ok(self.set()?.manifest.live.clone())
    }

    /// Bytes of chunks that entries name, by table.
    pub(crate) fn live_chunks(&self) -> Result<Vec<(u32, ChunkBytes)>> {
        let mut sums = BTreeMap::<_, i64>::new();
        for count in &self.set()?.manifest.chunks {
            *sums.entry((count.table, count.segment, count.life)).or_default() += count.bytes;
        }
        let sums = sums.into_iter();
        Ok(sums.map(|((table, segment, life), bytes)| (table, ChunkBytes { segment, life, bytes })).collect())
    }

    /// The tables that have entries, or counts of earlier ones.
    pub(crate) fn tables(&self) -> Result<BTreeSet<u32>> {
        let set = self.set()?;
        let with_keys = set.manifest.keys.iter().map(|count| count.table);
        Ok(with_keys.chain(set.manifest.chunks.iter().map(|count| count.table)).collect())
    }

    /// About how many keys a table has: a key counts once for each run that has it.
    pub(crate) fn count_estimate(&self, table: u32) -> Result<u64> {
        let set = self.set()?;
        let count = set.manifest.keys.iter().find(|count| count.table == table);
        Ok(count.map_or(0, |count| count.alive.max(0) as u64))
    }

    /// Bytes of all files of runs.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.set().map_or(0, |set| set.pieces().map(|piece| piece.file.bytes()).sum())
    }

    /// Bytes that the files of runs would have without compression of blocks.
    pub(crate) fn plain_bytes(&self) -> u64 {
        self.set().map_or(0, |set| set.pieces().map(|piece| piece.file.plain_bytes()).sum())
    }

    /// Bytes of the files of the oldest run.
    pub(crate) fn oldest_bytes(&self) -> u64 {
        let set = self.set();
        set.map_or(0, |set| set.runs.last().map_or(0, |run| run.pieces().map(|piece| piece.file.bytes()).sum()))
    }

    /// Bytes that filters and fences take in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.set().map_or(0, |set| set.pieces().map(|piece| piece.file.memory_bytes()).sum())
    }

    /// How many runs there are: so many filters a look-up may ask.
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The sequence up to which the newest run has all entries.
    pub(crate) fn until(&self) -> u64 {
        self.set().map_or(0, |set| set.runs.first().map_or(0, |newest| newest.until))
    }

    /// Releases the files, once no flush and no step is at work: another process may open them then. Later calls fail with
    /// [`Error::Closed`].
    pub(crate) fn close(&self) {
        let _no_step = self.turns.lock_alone();
        let _no_flush = self.flushes.lock();
        let _no_edit = self.editing.lock().expect("no code panics while it makes an edit");
        drop(self.set.write().expect("no code panics while it holds the set").take());
        self.removals.end();
    }

    fn set(&self) -> Result<Arc<RunSet<D>>> {
        self.set.read().expect("no code panics while it holds the set").clone().ok_or(Error::Closed)
    }

    fn hash_seed(&self) -> u64 {
        u64_at(&self.store, 0)
    }
}
