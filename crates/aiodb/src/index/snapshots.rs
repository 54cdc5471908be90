//! The views of reads, the snapshots of a store, and the superseded records that are retained for them.
//!
//! A snapshot is a sequence: it sees the records up to it. Records that an index no longer refers to, because newer ones superseded
//! them, are listed as versions until no snapshot can see them. What memory has of them is bounded, and goes to files beyond that
//! (`versions.rs`). The oldest snapshot ends where the disk has no room for those, where they cannot be written, and where too many range
//! deletes wait behind it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::Result;
use crate::budget::Accounts;
use crate::format::versions::KeyWithVersions;
use crate::index::chain::{Superseded, VersionChain};
use crate::index::memtable::{KeyRange, Reached};
use crate::index::range_tombstones::RangeTombstone;
use crate::index::versions::look_up::VersionLookUp;
use crate::index::versions::scratch::Scratch;
use crate::index::versions::{Seen, Version, VersionCounts, Versions};
use crate::planted::{self, Bug};
use crate::retention::Retention;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank};

/// Superseded records that memory may have for all snapshots together where there is no way to bring them to files; about 150 bytes each.
/// Inline values are not retained: the log has them.
pub(crate) const MAX_VERSIONS: usize = 256 << 10;

/// Bytes of memory of a retained record, about, for what it counts.
pub(crate) const VERSION_MEMORY_BYTES: u64 = 160;

/// The records that a read sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Records up to this sequence.
    pub(crate) sequence: u64,
    /// Records that expire after this time, in milliseconds since 1970; `None` = now.
    pub(crate) at_ms: Option<u64>,
    /// Whether it asks the cache, and leaves there the values that it reads.
    pub(crate) cached: bool,
}

impl Default for View {
    fn default() -> View {
        View::LATEST
    }
}

impl View {
    /// All published records.
    pub(crate) const LATEST: View = View { sequence: u64::MAX, at_ms: None, cached: true };

    pub(crate) fn is_latest(&self) -> bool {
        self.sequence == u64::MAX
    }
}

/// The snapshots of one store, and the versions retained for them.
pub(crate) struct Snapshots {
    alive: Mutex<BTreeMap<u64, Alive>, { Rank::Alive as u8 }>,
    /// The highest sequence that a snapshot may still have: superseded records that are older might be needed. 0 = there is
    /// no snapshot. SeqCst: a thread that begins a snapshot raises this and then looks for publishers (`publishers`), a
    /// publisher counts itself there and then reads this, and one of the two must see the other.
    newest: AtomicU64,
    versions: Versions,
    retention: Arc<Retention>,
}

/// Bytes of the disk that are for others as long as this lives.
pub(crate) struct Lent<'a> {
    versions: &'a Versions,
    bytes: u64,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.versions.lend(self.bytes, false);
    }
}

struct Alive {
    view: View,
    /// SeqCst, which is more than it needs: it is set under the lock before versions are given up under the same lock, and readers
    /// look at it after they have read.
    ended: Arc<AtomicBool>,
}

impl Snapshots {
    pub(crate) fn new(retention: Arc<Retention>) -> Snapshots {
        Snapshots { alive: Mutex::default(), newest: AtomicU64::new(0), versions: Versions::default(), retention }
    }

    /// The same snapshots, whose versions come to files when so many have gathered in memory; what is kept in memory of the files counts in
    /// these accounts.
    pub(crate) fn spilling_to(
        self,
        scratch: Arc<dyn Scratch>,
        accounts: &Arc<Accounts>,
        store: [u8; 16],
        versions: usize,
    ) -> Snapshots {
        Snapshots { versions: Versions::spilling(scratch, accounts, store, versions), ..self }
    }

    /// Whether superseded records might be needed. Most writes find that they are not.
    pub(crate) fn is_any(&self) -> bool {
        self.newest.load(Ordering::SeqCst) > 0
    }

    /// Retains the superseded records of an index key that a snapshot can see. Called before the index forgets them.
    pub(crate) fn retain(&self, key: &[u8], superseded: &Superseded) {
        self.retain_and_bound(key, superseded, true);
    }

    /// Like [`Snapshots::retain`] for records of which later copies may have been retained already.
    pub(crate) fn retain_earlier(&self, key: &[u8], superseded: &Superseded) {
        self.retain_and_bound(key, superseded, planted::is_on(Bug::EarlierCopyKept));
    }

    fn retain_and_bound(&self, key: &[u8], superseded: &Superseded, later: bool) {
        self.retain_copies(key, superseded, later);
        if self.versions.is_overfull(MAX_VERSIONS) {
            self.end_oldest();
        }
    }

    /// Like [`Snapshots::retain`] for records of a layer below, of which later copies may have been superseded already.
    ///
    /// Whoever commits or merges layers supersedes many at a time, and brings them to files himself.
    pub(crate) fn retain_below(&self, key: &[u8], superseded: &Superseded) {
        self.retain_copies(key, superseded, planted::is_on(Bug::EarlierCopyKept));
        // An error is met by upkeep, too, which tells of it.
        let helps = || self.help_to_spill().unwrap_or(false);
        while self.versions.is_behind() && !self.versions.is_stuck() && helps() {}
        // An attempt that failed earlier says little of the next one.
        while self.versions.is_overfull(MAX_VERSIONS) && helps() {}
        if self.versions.is_overfull(MAX_VERSIONS) {
            self.end_oldest();
        }
    }

    fn retain_copies(&self, key: &[u8], superseded: &Superseded, later: bool) {
        if !self.is_any() || superseded.is_empty() || planted::is_on(Bug::SnapshotVersionsForgotten) {
            return;
        }
        let alive = self.lock();
        for (entry, until) in superseded {
            if alive.values().any(|alive| alive.sees(entry.sequence, *until)) {
                self.versions.insert(key, Version { entry: entry.without_value(), until: *until, later });
            }
        }
    }

    /// Ends the retained records that range tombstones have deleted, before those are forgotten. A range tombstone that waited for the
    /// device may have come after what superseded a record in its key.
    pub(crate) fn end_at(&self, ranges: &[RangeTombstone]) {
        self.versions.end_at(ranges);
    }

    /// Begins to look an index key up in the retained records. `None` if there are none of any key.
    pub(super) fn begin_version_look_up(&self, key: &[u8]) -> Option<VersionLookUp> {
        self.versions.begin_look_up(key)
    }

    /// Adds the retained records of an index key that a view sees. May read the device, with the caller's thread.
    pub(crate) fn add_versions(&self, key: &[u8], view: &View, chain: &mut VersionChain) -> Result<()> {
        self.versions.add(key, view.sequence, chain)
    }

    /// The keys of retained records in a range of index keys, with all of these: at most `limit` keys, from the range's start or, backward,
    /// from its end. Says how far it came.
    pub(crate) fn versions_in(
        &self,
        range: KeyRange<'_>,
        backward: bool,
        limit: usize,
    ) -> Result<(Vec<KeyWithVersions>, Reached)> {
        self.versions.range(range, backward, limit)
    }

    /// Does a bounded part of bringing retained records to files, and of merging these files. True if there may be more to do.
    pub(crate) fn spill_some(&self) -> Result<bool> {
        self.versions.spill_some(&|| self.seen())
    }

    /// [`Snapshots::spill_some`] for a thread that adds to what memory has: without merges, and mostly without a wait for another one.
    pub(crate) fn help_to_spill(&self) -> Result<bool> {
        self.versions.help_to_spill(&|| self.seen())
    }

    /// Whether memory has so many retained records that writers should help.
    pub(crate) fn is_behind(&self) -> bool {
        self.versions.is_behind()
    }

    /// Whether memory has so many of them that no put should add to them, since the disk has no room for more.
    pub(crate) fn is_short(&self) -> bool {
        self.versions.is_short()
    }

    /// Bytes of the disk that retained records in memory may take, and so many more that may be superseded.
    pub(crate) fn unwritten_bytes(&self, more: usize) -> u64 {
        if self.is_any() { self.versions.unwritten_bytes(more) } else { 0 }
    }

    /// Sets how many retained records memory has before they come to a file.
    pub(crate) fn bound_versions(&self, versions: usize) {
        self.versions.bound(versions);
    }

    /// Bytes of memory of the retained records that are in no file, about.
    pub(crate) fn version_memory_bytes(&self) -> u64 {
        self.versions.load_in_memory() as u64 * VERSION_MEMORY_BYTES
    }

    /// Says how many bytes of the disk they must leave free.
    pub(crate) fn leave_free(&self, bytes: u64) {
        self.versions.leave_free(bytes);
    }

    /// Counts bytes of the disk that are lent to others until what this returns is dropped.
    pub(crate) fn lend(&self, bytes: u64) -> Lent<'_> {
        self.versions.lend(bytes, true);
        Lent { versions: &self.versions, bytes }
    }

    /// Where the retained records are.
    pub(crate) fn version_counts(&self) -> VersionCounts {
        self.versions.counts()
    }

    /// How many range tombstones layers of retained records know of, each as often as it was noted, and how many layers there are.
    #[cfg(test)]
    pub(crate) fn noted_ranges(&self) -> (usize, usize) {
        self.versions.noted_ranges()
    }

    /// Removes all files: no read of a snapshot comes any more.
    pub(crate) fn close(&self) -> Result<()> {
        self.versions.close()
    }

    fn seen(&self) -> Seen {
        Seen::new(self.lock().values().map(|alive| alive.view.sequence))
    }

    /// The oldest sequence and the oldest time that a snapshot sees; the highest numbers if there is none.
    pub(crate) fn oldest(&self) -> (u64, u64) {
        let alive = self.lock();
        let sequence = alive.values().map(|alive| alive.view.sequence).min();
        let at_ms = alive.values().filter_map(|alive| alive.view.at_ms).min();
        (sequence.unwrap_or(u64::MAX), at_ms.unwrap_or(u64::MAX))
    }

    /// Snapshots and retained records.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.lock().len(), self.versions.len())
    }

    /// The hold of the oldest snapshot.
    pub(crate) fn oldest_hold(&self) -> Option<u64> {
        self.lock().first_key_value().map(|(hold, _)| *hold)
    }

    /// Ends the oldest snapshot, so that the records retained for it can go. False if there is none.
    pub(crate) fn end_oldest(&self) -> bool {
        let alive = self.lock();
        let Some((&hold, _)) = alive.first_key_value() else { return false };
        alive[&hold].ended.store(true, Ordering::SeqCst);
        self.remove(alive, hold);
        true
    }

    /// Begins a snapshot without a sequence yet: from now on all superseded records are retained.
    pub(crate) fn begin(&self, at_ms: u64) -> (u64, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        let mut alive = self.lock();
        let hold = self.retention.begin();
        let view = View { sequence: u64::MAX, at_ms: Some(at_ms), cached: false };
        alive.insert(hold, Alive { view, ended: Arc::clone(&ended) });
        self.newest.store(u64::MAX, Ordering::SeqCst);
        (hold, ended)
    }

    /// Sets the sequence up to which a snapshot sees records.
    pub(crate) fn set_sequence(&self, hold: u64, sequence: u64) {
        let mut alive = self.lock();
        if let Some(alive) = alive.get_mut(&hold) {
            alive.view.sequence = sequence;
        }
        self.newest.store(newest(&alive), Ordering::SeqCst);
    }

    pub(crate) fn end(&self, hold: u64) {
        self.remove(self.lock(), hold);
    }

    fn remove(&self, mut alive: MutexGuard<'_, BTreeMap<u64, Alive>>, hold: u64) {
        let was_oldest = alive.first_key_value().is_some_and(|(oldest, _)| *oldest == hold);
        alive.remove(&hold);
        self.newest.store(newest(&alive), Ordering::SeqCst);
        let needed = |from, until| alive.values().any(|alive| alive.sees(from, until));
        let dropped = self.versions.prune(alive.is_empty(), was_oldest, needed);
        drop(alive);
        self.retention.end(hold);
        if !dropped.is_empty() {
            self.versions.give_up_jobs();
        }
        // Their files are removed.
        drop(dropped);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Alive>> {
        self.alive.lock().expect("no code panics while it holds the snapshots")
    }
}

impl Alive {
    /// Whether this snapshot sees a record that was written at `from` and superseded at `until`.
    fn sees(&self, from: u64, until: u64) -> bool {
        let undecided = self.view.sequence == u64::MAX;
        // A record that a later copy of itself superseded is seen by no snapshot: retained, it would be taken for the later copy.
        from < until && (undecided || (from <= self.view.sequence && self.view.sequence < until))
    }
}

fn newest(alive: &BTreeMap<u64, Alive>) -> u64 {
    alive.values().map(|alive| alive.view.sequence).max().unwrap_or(0)
}
