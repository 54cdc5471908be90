//! An ordered index: a bounded memtable in front of committed version chains, for all tables of one kind.
//!
//! The index has places in the log, and short values where a table wants them here too. What is published goes into the memtable; a
//! commit brings the memtable to what lies below, which is one of [`Committed`].

mod committed;
mod kinds;
pub(crate) mod look_up;
mod ranges;

use std::sync::{Arc, TryLockError};

pub(crate) use self::committed::{Committed, Live};
pub(crate) use self::kinds::OrderedIndexes;
use super::chain::{Entry, NewEntry, Superseded, VersionChain};
use super::codec::encode_key;
use super::memtable::{ImmutableMemtable, LookedUp, Memtable, MemtableRoom};
use super::range_tombstones::Ranges;
use super::runs::{RunContext, Runs};
use super::snapshots::{Snapshots, View};
use super::throttle::Throttle;
use crate::format::location::Location;
use crate::io::Device;
use crate::planted::{self, Bug};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank};
use crate::{IndexKind, Result};

/// The index that all tables of one ordered kind share.
pub(crate) struct OrderedIndex<D: Device> {
    pub(crate) memtable: Memtable,
    pub(crate) throttle: Throttle,
    pub(crate) ranges: Arc<Ranges>,
    pub(crate) committed: Committed<D>,
    pub(super) snapshots: Arc<Snapshots>,
    /// The immutable memtable that is being committed, or that could not be. Held while it is committed.
    unfinished_commit: Mutex<Option<ImmutableMemtable>, { Rank::UnfinishedCommit as u8 }>,
    /// See [`OrderedIndex::committed_sequence`]. Release and Acquire: a thread that sees it finds the commit.
    committed_sequence: AtomicU64,
    /// The sequence after the last record that was replayed: see [`OrderedIndex::replayed`]. Relaxed: written before the store has a second thread.
    replayed: AtomicU64,
    /// See [`OrderedIndex::is_incomplete`]. Relaxed: changed before the store has a second thread.
    is_incomplete: AtomicBool,
    /// Of range tombstones up to this sequence the retained records know. Relaxed: asked and changed under the next lock.
    ended_to: AtomicU64,
    /// The sequence of the range tombstone that is being carried out, and the last key that was taken out for it.
    carried_to: Mutex<(u64, Vec<u8>), { Rank::CarriedTo as u8 }>,
}

/// The right to commit the memtable of an ordered index. Those who wait for it look again when it is given back.
pub(crate) struct Committing<'a> {
    /// The immutable memtable that an earlier commit has left.
    pub(crate) unfinished: MutexGuard<'a, Option<ImmutableMemtable>>,
    // Dropped after the lock.
    _over: Over<'a>,
}

/// Wakes those who wait for a commit when it is dropped.
struct Over<'a>(&'a Throttle);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.look_again();
    }
}

impl<D: Device> OrderedIndex<D> {
    /// An empty memtable in front of committed chains. The range tombstones are those that `committed` has been opened with.
    pub(crate) fn new(committed: Committed<D>, ranges: Arc<Ranges>, snapshots: Arc<Snapshots>) -> OrderedIndex<D> {
        // A replay leaves out what the runs have.
        let committed_sequence = committed.runs().map_or(0, Runs::next_sequence);
        OrderedIndex {
            memtable: Memtable::default(),
            throttle: Throttle::default(),
            ranges,
            committed,
            snapshots,
            unfinished_commit: Mutex::default(),
            committed_sequence: AtomicU64::new(committed_sequence),
            replayed: AtomicU64::new(0),
            is_incomplete: AtomicBool::new(false),
            ended_to: AtomicU64::new(0),
            carried_to: Mutex::default(),
        }
    }

    /// The kind of the tables that have it.
    pub(crate) fn kind(&self) -> IndexKind {
        match &self.committed {
            Committed::Lmdb(_) => IndexKind::Lmdb,
            Committed::Runs(_) => IndexKind::Lsm,
        }
    }

    /// The records of a key that a view sees.
    pub(crate) fn lookup(&self, table: u32, key: &[u8], view: &View) -> Result<VersionChain> {
        self.chain(&encode_key(table, key), view)
    }

    /// Publishes an entry in the memtable; returns how many of the key's operands are there.
    pub(crate) fn insert(&self, table: u32, key: &[u8], entry: NewEntry, superseded: &mut Superseded) -> usize {
        let key = encode_key(table, key);
        self.memtable.insert(&key, entry, superseded, |superseded| self.retain(&key, superseded))
    }

    /// The records of a key that the memtables have. Those that lie below them are older, and may count where these are not complete.
    pub(crate) fn recent(&self, table: u32, key: &[u8]) -> VersionChain {
        let key = encode_key(table, key);
        // Asked first, as in a look-up.
        let deleted = self.ranges.newest_containing(&key, View::LATEST.sequence);
        let mut chain = VersionChain::default();
        self.memtable.lookup(&key, View::LATEST.sequence, &mut chain);
        if deleted > 0 {
            chain.cut(deleted, &mut Superseded::new());
        }
        chain
    }

    /// Whether the record of a sequence is at this place, and is part of the key's value.
    pub(crate) fn is_current(&self, table: u32, key: &[u8], (from, sequence): (Location, u64)) -> Result<bool> {
        let chain = self.lookup(table, key, &View::LATEST)?;
        Ok(chain.at_place(from).is_some_and(|found| found.sequence == sequence))
    }

    /// Looks up the records of a key, for one of them to be moved.
    pub(crate) fn look_up(&self, table: u32, key: &[u8]) -> Result<LookedUp> {
        let freezes = self.memtable.freezes();
        Ok(LookedUp { chain: Arc::new(self.lookup(table, key, &View::LATEST)?), freezes })
    }

    /// Whether the record of a sequence that was found at this place is still current. Asks the memtables alone, which have all that was
    /// published since: `None` if a memtable has become immutable in between, which may be committed by now.
    pub(crate) fn is_still_current(
        &self,
        table: u32,
        key: &[u8],
        (from, sequence): (Location, u64),
        looked_up: &LookedUp,
    ) -> Option<bool> {
        let is_current = record_at(looked_up, from, sequence).is_some_and(|current| {
            let key = encode_key(table, key);
            !self.is_deleted(&key, current) && !self.memtable.hides(&key, current)
        });
        self.is_recent(looked_up).then_some(is_current)
    }

    /// Whether no memtable has become immutable since a look-up.
    pub(crate) fn is_recent(&self, looked_up: &LookedUp) -> bool {
        self.memtable.freezes() == looked_up.freezes || planted::is_on(Bug::OldLookUpBelieved)
    }

    /// Puts a later copy of a record in its place, if the record at `from` is still current. What a look-up has found counts as long as
    /// the memtables have all that was published since; else, and where none was made, the key is looked up here.
    pub(crate) fn relocate(
        &self,
        table: u32,
        key: &[u8],
        from: Location,
        entry: &Entry,
        looked_up: Option<&LookedUp>,
        superseded: &mut Superseded,
    ) -> Result<bool> {
        let index_key = encode_key(table, key);
        let mut put = |looked_up: &LookedUp| {
            let Some(current) = record_at(looked_up, from, entry.sequence) else { return Some(false) };
            // Asked first, as in a look-up.
            if self.is_deleted(&index_key, current) {
                return Some(false);
            }
            let retain = |superseded: &Superseded| self.retain(&index_key, superseded);
            self.memtable.replace(&index_key, looked_up, current, entry.clone(), superseded, retain)
        };
        if let Some(replaced) = looked_up.and_then(&mut put) {
            return Ok(replaced);
        }
        loop {
            if let Some(replaced) = put(&self.look_up(table, key)?) {
                return Ok(replaced);
            }
        }
    }

    /// Whether a range delete has an index key whose record is older.
    fn is_deleted(&self, key: &[u8], entry: &Entry) -> bool {
        self.ranges.newest_containing(key, View::LATEST.sequence) > entry.sequence
    }

    /// The right to commit the memtable, and the one that an earlier commit has left.
    pub(crate) fn lock_commit(&self) -> Committing<'_> {
        // Made first, and so dropped last, also where the lock is poisoned.
        let over = Over(&self.throttle);
        let unfinished = self.unfinished_commit.lock().expect(NO_PANIC);
        Committing { unfinished, _over: over }
    }

    /// [`OrderedIndex::lock_commit`], unless somebody else has that right now.
    pub(crate) fn try_lock_commit(&self) -> Option<Committing<'_>> {
        let unfinished = match self.unfinished_commit.try_lock() {
            Err(TryLockError::WouldBlock) => return None,
            outcome => outcome,
        };
        let over = Over(&self.throttle);
        Some(Committing { unfinished: unfinished.expect(NO_PANIC), _over: over })
    }

    /// Commits the immutable memtable durably and forgets it; the last part records the position. After an error the same memtable can be
    /// committed further.
    pub(crate) fn commit(&self, immutable: &mut ImmutableMemtable, context: &RunContext<'_>) -> Result<()> {
        let (next_sequence, keys) = (immutable.next_sequence, immutable.chains.len());
        let reached = |committed| self.throttle.proceed(committed, keys, self.memtable.most_keys());
        self.committed.commit(immutable, &self.ranges, context, &reached)?;
        self.memtable.forget_immutable();
        // Not before: a range tombstone up to here is forgotten once nothing committed needs it.
        self.committed_sequence.store(next_sequence, Ordering::Release);
        self.forget_ranges()
    }

    /// Whether the memtable may as well be committed now. Runs take it at any size, and merges make up for small ones; LMDB writes
    /// fewer pages for a larger one.
    pub(crate) fn is_commit_worthwhile(&self) -> bool {
        self.committed.runs().is_some() && self.memtable.is_half_full()
    }

    /// Everything before this sequence is committed and in no memtable, as far as this process knows.
    pub(crate) fn committed_sequence(&self) -> u64 {
        self.committed_sequence.load(Ordering::Acquire)
    }

    /// Of deletes before this sequence it is known what they delete: that is counted as dead.
    pub(crate) fn counted_sequence(&self) -> u64 {
        self.committed_sequence().min(self.committed.settled_sequence())
    }

    /// LMDB may have had some of the records that a replay has published, which count twice until everything before this sequence is
    /// committed. Runs are asked before; some only where they could not be.
    pub(crate) fn replayed(&self) -> u64 {
        self.replayed.load(Ordering::Relaxed)
    }

    /// Notes the sequence after the last record that was replayed.
    pub(crate) fn set_replayed(&self, next_sequence: u64) {
        self.replayed.store(next_sequence, Ordering::Relaxed);
    }

    /// Whether it is being made again from the log: what is committed then covers no position, and no range tombstone is known to be
    /// carried out, since one that was moved may come yet.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.is_incomplete.load(Ordering::Relaxed)
    }

    /// Notes whether it is being made again.
    pub(crate) fn set_incomplete(&self, is_incomplete: bool) {
        self.is_incomplete.store(is_incomplete, Ordering::Relaxed);
    }

    /// Sets how many keys the memtable may have by the room on the disk, at most so many. Returns how many bytes must stay free for
    /// them.
    pub(crate) fn fit_memtable(&self, most_keys: usize) -> Result<u64> {
        let room = self.committed.memtable_room()?;
        if self.memtable.limit(MemtableRoom { keys: room.keys.min(most_keys), ..room }) {
            // What was full may not be so any more, and then nobody commits it.
            self.throttle.look_again();
        }
        Ok(room.reserved_bytes)
    }

    /// Retains entries that were superseded in the memtable, for snapshots.
    fn retain(&self, key: &[u8], superseded: &Superseded) {
        if self.snapshots.is_any() {
            self.snapshots.retain(key, &self.ranges.until(key, superseded));
        }
    }
}

/// The record of a sequence that was found at a place. Another life of the segment may have another record of the key there.
fn record_at(looked_up: &LookedUp, from: Location, sequence: u64) -> Option<&Entry> {
    looked_up.chain.at_place(from).filter(|found| found.sequence == sequence)
}

/// Why the right to commit is never found poisoned.
const NO_PANIC: &str = "no code panics while it commits an index";
