//! Snapshots: reads as of one moment, while writes go on.
//!
//! A snapshot is a sequence: it sees the records up to it. What it needs is kept in two ways. Records that an index no
//! longer refers to, because newer ones took their place, are listed as versions until no snapshot can see them; and
//! segments that are retired after a snapshot began keep their bytes (`holds.rs`). Both are bounded: when the list is
//! full, or the disk, the oldest snapshot ends, and what is read through it from then on is a typed error.

mod versions;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::catalog::{Generation, TableSlot};
use crate::engine::{Engine, Handle};
use crate::holds::Holds;
use crate::index::stack::{Displaced, Stack};
use crate::io::{Device, Disk};
use crate::planted::{self, Bug};
use crate::reader::Reader;
use crate::scan::{Scan, ScanOptions};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::{Error, Result, Table};
use versions::Versions;

/// Superseded records that are kept for all snapshots together; about 150 bytes each.
const MAX_VERSIONS: usize = 256 << 10;

/// What a read sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Records up to this sequence.
    pub(crate) sequence: u64,
    /// Records that expire after this time, in milliseconds since 1970; `None` = now.
    pub(crate) at_ms: Option<u64>,
    /// Whether it asks the cache, and leaves there what it reads.
    pub(crate) cached: bool,
}

impl Default for View {
    fn default() -> View {
        View::LATEST
    }
}

impl View {
    /// Whatever is published.
    pub(crate) const LATEST: View = View { sequence: u64::MAX, at_ms: None, cached: true };

    pub(crate) fn is_latest(&self) -> bool {
        self.sequence == u64::MAX
    }
}

/// The snapshots of one store, and the versions kept for them.
pub(crate) struct Snapshots {
    alive: Mutex<BTreeMap<u64, Alive>>,
    /// The highest sequence that a snapshot may still have: what is superseded and older might be needed. 0 = there is
    /// no snapshot.
    newest: AtomicU64,
    versions: Versions,
    holds: Arc<Holds>,
}

struct Alive {
    view: View,
    ended: Arc<AtomicBool>,
}

impl Snapshots {
    pub(crate) fn new(holds: Arc<Holds>) -> Snapshots {
        Snapshots { alive: Mutex::default(), newest: AtomicU64::new(0), versions: Versions::default(), holds }
    }

    /// Whether what is superseded might be needed. Most writes find that it is not.
    pub(crate) fn is_any(&self) -> bool {
        self.newest.load(Ordering::SeqCst) > 0
    }

    /// Keeps the displaced records of an index key that a snapshot can see. Called before the index forgets them.
    pub(crate) fn keep(&self, key: &[u8], displaced: &Displaced) {
        self.keep_copy(key, displaced, true);
    }

    /// Like [`Snapshots::keep`] for records of a layer below, of which later copies may have been displaced already.
    pub(crate) fn keep_below(&self, key: &[u8], displaced: &Displaced) {
        self.keep_copy(key, displaced, planted::is_on(Bug::EarlierCopyKept));
    }

    fn keep_copy(&self, key: &[u8], displaced: &Displaced, later: bool) {
        if !self.is_any() || displaced.is_empty() || planted::is_on(Bug::SnapshotVersionsForgotten) {
            return;
        }
        let alive = self.lock();
        for (entry, until) in displaced {
            if alive.values().any(|alive| alive.sees(entry.sequence, *until)) {
                self.versions.insert(key, *entry, *until, later);
            }
        }
        let full = self.versions.len() > MAX_VERSIONS;
        drop(alive);
        if full {
            self.end_oldest();
        }
    }

    /// Adds the kept records of an index key that a view sees.
    pub(crate) fn add_versions(&self, key: &[u8], view: &View, stack: &mut Stack) {
        self.versions.add(key, view.sequence, stack);
    }

    /// The keys of kept records in a range of index keys.
    pub(crate) fn version_keys(&self, range: (std::ops::Bound<&[u8]>, std::ops::Bound<&[u8]>)) -> Vec<Box<[u8]>> {
        self.versions.keys(range)
    }

    /// The oldest sequence and the oldest time that a snapshot sees; the highest numbers if there is none.
    pub(crate) fn oldest(&self) -> (u64, u64) {
        let alive = self.lock();
        let sequence = alive.values().map(|alive| alive.view.sequence).min();
        let at_ms = alive.values().filter_map(|alive| alive.view.at_ms).min();
        (sequence.unwrap_or(u64::MAX), at_ms.unwrap_or(u64::MAX))
    }

    /// Snapshots and kept records.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.lock().len(), self.versions.len())
    }

    /// Ends the oldest snapshot, so that what was kept for it can go. False if there is none.
    pub(crate) fn end_oldest(&self) -> bool {
        let alive = self.lock();
        let Some((&hold, _)) = alive.first_key_value() else { return false };
        alive[&hold].ended.store(true, Ordering::SeqCst);
        self.remove(alive, hold);
        true
    }

    /// Begins a snapshot that sees nothing definite yet: from now on everything that is superseded is kept.
    fn begin(&self, at_ms: u64) -> (u64, Arc<AtomicBool>) {
        let ended = Arc::new(AtomicBool::new(false));
        let mut alive = self.lock();
        let hold = self.holds.begin();
        let view = View { sequence: u64::MAX, at_ms: Some(at_ms), cached: false };
        alive.insert(hold, Alive { view, ended: Arc::clone(&ended) });
        self.newest.store(u64::MAX, Ordering::SeqCst);
        (hold, ended)
    }

    /// Says what a snapshot sees.
    fn settle(&self, hold: u64, sequence: u64) {
        let mut alive = self.lock();
        if let Some(alive) = alive.get_mut(&hold) {
            alive.view.sequence = sequence;
        }
        self.newest.store(newest(&alive), Ordering::SeqCst);
    }

    fn end(&self, hold: u64) {
        self.remove(self.lock(), hold);
    }

    fn remove(&self, mut alive: MutexGuard<'_, BTreeMap<u64, Alive>>, hold: u64) {
        alive.remove(&hold);
        self.newest.store(newest(&alive), Ordering::SeqCst);
        self.versions.prune(alive.is_empty(), |from, until| alive.values().any(|alive| alive.sees(from, until)));
        drop(alive);
        self.holds.end(hold);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Alive>> {
        self.alive.lock().expect("no code panics while it holds the snapshots")
    }
}

impl Alive {
    /// Whether this snapshot sees a record that was written at `from` and superseded at `until`.
    fn sees(&self, from: u64, until: u64) -> bool {
        let undecided = self.view.sequence == u64::MAX;
        // What a later copy of the same record displaces is seen by nobody: kept, it would be taken for the later one.
        from < until && (undecided || (from <= self.view.sequence && self.view.sequence < until))
    }
}

fn newest(alive: &BTreeMap<u64, Alive>) -> u64 {
    alive.values().map(|alive| alive.view.sequence).max().unwrap_or(0)
}

/// A hold on one moment of a store.
pub(crate) struct Moment<D: Device> {
    engine: Arc<Handle<D>>,
    hold: u64,
    pub(crate) view: View,
    ended: Arc<AtomicBool>,
}

impl<D: Device> Moment<D> {
    /// Takes the present moment: all writes that were acknowledged before are seen.
    pub(crate) fn take(engine: &Arc<Handle<D>>) -> Result<Moment<D>> {
        engine.check_open()?;
        let at_ms = engine.now_ms();
        let (hold, ended) = engine.snapshots.begin(at_ms);
        let view = View { sequence: u64::MAX, at_ms: Some(at_ms), cached: false };
        let mut moment = Moment { engine: Arc::clone(engine), hold, view, ended };
        // Whoever was about to publish before has not seen that there is a snapshot.
        engine.publishers.wait_for_present();
        moment.view.sequence = engine.settled_sequence()?;
        engine.snapshots.settle(hold, moment.view.sequence);
        Ok(moment)
    }

    /// What was read before this call is right unless the store has ended the snapshot.
    pub(crate) fn check(&self) -> Result<()> {
        let has_ended = self.ended.load(Ordering::SeqCst) && !planted::is_on(Bug::EndedSnapshotRead);
        if has_ended { Err(Error::SnapshotEnded) } else { Ok(()) }
    }
}

impl<D: Device> Drop for Moment<D> {
    fn drop(&mut self) {
        self.engine.snapshots.end(self.hold);
    }
}

/// A consistent view of a whole store, made by [`crate::Db::snapshot`]. It sees every write acknowledged before it was
/// made, whole batches or nothing of them, and nothing later; records that expire later stay visible in it.
///
/// It keeps overwritten records and emptied segments from being given up. When too much has gathered, or the disk is
/// full, the store ends its oldest snapshot, and reads through it fail with [`Error::SnapshotEnded`]. It is not kept
/// over a restart.
pub struct Snapshot<D: Device = Disk> {
    pub(crate) moment: Arc<Moment<D>>,
    tables: Arc<Vec<(Arc<TableSlot>, Arc<Generation>)>>,
}

impl<D: Device> Clone for Snapshot<D> {
    fn clone(&self) -> Self {
        Snapshot { moment: Arc::clone(&self.moment), tables: Arc::clone(&self.tables) }
    }
}

impl<D: Device> Snapshot<D> {
    pub(crate) fn take(engine: &Arc<Handle<D>>) -> Result<Snapshot<D>> {
        // No table changes while the moment is taken.
        let _changing = engine.catalog.changing.lock().expect("no code panics while it changes the catalog");
        let moment = Arc::new(Moment::take(engine)?);
        let slots = engine.catalog.slots();
        let tables = slots.into_iter().filter_map(|slot| slot.generation().ok().map(|generation| (slot, generation)));
        Ok(Snapshot { moment, tables: Arc::new(tables.collect()) })
    }

    /// The highest sequence that is seen.
    pub fn sequence(&self) -> u64 {
        self.moment.view.sequence
    }

    /// The value of a key at the snapshot's moment, as [`Table::get`].
    pub fn get(&self, table: &Table<D>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let engine = &self.moment.engine;
        engine.check_open()?;
        engine.check_key(key)?;
        let value = engine.get(&self.generation_of(&table.slot)?, key, &self.moment.view);
        self.moment.check()?;
        value
    }

    /// Ordered records at the snapshot's moment, as [`Table::scan`].
    pub fn scan(&self, table: &Table<D>, options: ScanOptions) -> Result<Scan<D>> {
        Scan::new(&self.moment.engine, self.generation_of(&table.slot)?, Arc::clone(&self.moment), options)
    }

    /// All records at the snapshot's moment, as [`Table::iterate`].
    pub fn iterate(&self, table: &Table<D>) -> Result<Scan<D>> {
        Scan::unordered(&self.moment.engine, self.generation_of(&table.slot)?, Arc::clone(&self.moment))
    }

    /// A reader at the snapshot's moment, as [`Table::reader`].
    pub fn reader(&self, table: &Table<D>, depth: usize) -> Result<Reader<D>> {
        self.generation_of(&table.slot)?;
        let reader = Reader::new(Arc::clone(&self.moment.engine), Arc::clone(&table.slot), depth)?;
        Ok(reader.at(self.clone()))
    }

    /// What the table was at the snapshot's moment.
    pub(crate) fn generation_of(&self, table: &Arc<TableSlot>) -> Result<Arc<Generation>> {
        let found = self.tables.iter().find(|(slot, _)| Arc::ptr_eq(slot, table));
        found
            .map(|(_, generation)| Arc::clone(generation))
            .ok_or_else(|| Error::NoSuchTable { name: table.name.clone() })
    }
}

impl<D: Device> Engine<D> {
    /// A sequence up to which everything is published, not below that of any acknowledged write.
    fn settled_sequence(&self) -> Result<u64> {
        let (sequence, batch) = self.commit.sequence_to_settle();
        if let Some(batch) = batch {
            match self.wait_for_batch(batch) {
                // What a failed write has left unpublished never will be: neither gets nor snapshots see it.
                Err(Error::Failed { .. }) => {}
                outcome => outcome?,
            }
            self.publishers.wait_for_present();
        }
        Ok(sequence)
    }
}

#[cfg(test)]
mod tests;
