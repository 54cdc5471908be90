//! Records that newer ones have superseded, for the snapshots that can see them. The list knows nothing of index kinds:
//! its keys are a table's id and a key as that table's index has it; of a `hash` table its hash comes before the key.
//!
//! The list in memory is bounded. When it has reached a bound it becomes a layer that takes no more versions, and a new list begins; layers
//! are brought to files, and files are merged (`spill.rs`). Who looks a key up takes what the list has,
//! then asks the layers, oldest first, and puts what the list had on top.

mod file;
mod layer;
pub(super) mod look_up;
pub(crate) mod scratch;
mod spill;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
mod walk;

use std::sync::Arc;

use self::layer::{Held, Layer, Map, Span, end_at, load_of, put_on_top};
use self::look_up::VersionLookUp;
pub(super) use self::spill::Seen;
use self::spill::Spill;
use self::walk::{SCAN_UNITS, Walk, is_empty};
use crate::Result;
pub(super) use crate::format::versions::Version;
use crate::format::versions::{KeyVersions, KeyWithVersions};
use crate::index::chain::VersionChain;
use crate::index::memtable::{KeyRange, Reached};
use crate::index::range_tombstones::RangeTombstone;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Rank, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The list is searched for versions that no snapshot needs any more when it has grown by this many.
const PRUNE_STEP: usize = 1024;

/// All versions of a store.
#[derive(Default)]
pub(super) struct Versions {
    state: RwLock<State, { Rank::Versions as u8 }>,
    /// How many there are. Release and Acquire, which is more than it needs: a version is counted before the index forgets its
    /// entry under a lock of its own, so a look-up that misses the entry finds the count raised.
    count: AtomicUsize,
    /// What those in memory count, long keys among them. Relaxed: a bound that may be met late.
    load: AtomicUsize,
    /// How many the list had after the last search. Relaxed: it only says when to search next.
    pruned_to: AtomicUsize,
    /// What memory counted after the last search of all that it has. Relaxed, as above.
    searched_to: AtomicUsize,
    /// `None` where there is no place for files.
    spill: Option<Spill>,
}

/// The list, and the layers below it.
struct State {
    list: Map,
    /// As those of a layer.
    versions: usize,
    load: usize,
    span: Span,
    /// Newest first.
    layers: Arc<Vec<Arc<Layer>>>,
    next_layer: u64,
}

impl Default for State {
    fn default() -> State {
        let (list, layers) = (Map::new(), Arc::default());
        State { list, versions: 0, load: 0, span: Span::NONE, layers, next_layer: 1 }
    }
}

/// How many versions there are, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionCounts {
    pub(crate) in_memory: usize,
    pub(crate) in_files: usize,
    pub(crate) file_bytes: u64,
}

impl Versions {
    pub(super) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(super) fn counts(&self) -> VersionCounts {
        let state = self.read();
        let mut counts = VersionCounts { in_memory: state.versions, ..VersionCounts::default() };
        for layer in &**state.layers {
            *(if layer.is_in_memory() { &mut counts.in_memory } else { &mut counts.in_files }) += layer.versions;
            counts.file_bytes += layer.bytes();
        }
        counts
    }

    /// Adds a version.
    pub(super) fn insert(&self, key: &[u8], version: Version) {
        let mut state = self.write();
        let load = state.insert(key, version);
        if load > 0 {
            self.count.fetch_add(1, Ordering::AcqRel);
            self.load.fetch_add(load, Ordering::Relaxed);
        }
        self.freeze_if_full(&mut state);
    }

    /// Makes the list a layer if it is as long as it may be.
    fn freeze_if_full(&self, state: &mut State) {
        if self.spill.as_ref().is_some_and(|spill| state.load >= spill.list_load()) {
            state.freeze();
            self.pruned_to.store(0, Ordering::Relaxed);
        }
    }

    /// Begins to look a key up. `None` if there is no version at all.
    pub(super) fn begin_look_up(&self, key: &[u8]) -> Option<VersionLookUp> {
        if self.len() == 0 {
            return None;
        }
        let state = self.read();
        let listed = state.list.get(key).cloned().unwrap_or_default();
        Some(VersionLookUp::new(listed, Arc::clone(&state.layers)))
    }

    /// Adds the versions of a key that count at a sequence.
    pub(super) fn add(&self, key: &[u8], sequence: u64, chain: &mut VersionChain) -> Result<()> {
        // Files are read without the lock.
        let Some(mut look_up) = self.begin_look_up(key) else { return Ok(()) };
        look_up.finish(key)?;
        insert_seen(look_up.found(), sequence, chain);
        Ok(())
    }

    /// Keys of a range with all their versions, at most so many. Says how far it came.
    pub(super) fn range(
        &self,
        range: KeyRange<'_>,
        backward: bool,
        limit: usize,
    ) -> Result<(Vec<KeyWithVersions>, Reached)> {
        if self.len() == 0 || is_empty(range) {
            return Ok((Vec::new(), Reached::End));
        }
        let state = self.read();
        let (listed, reached) = state.list(range, backward, limit);
        if state.layers.is_empty() {
            return Ok((listed, reached));
        }
        let layers = Arc::clone(&state.layers);
        drop(state);
        let within = reached.part_of(range, backward);
        let mut walk = Walk::new(listed, &layers, within, backward, SCAN_UNITS)?;
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(next) = walk.next()? else { return Ok((found, reached)) };
            found.push(next);
        }
        Ok(with_reached(found, limit))
    }

    /// Ends the versions that range tombstones superseded before what did so in their key.
    pub(super) fn end_at(&self, ranges: &[RangeTombstone]) {
        if self.len() == 0 || ranges.is_empty() {
            return;
        }
        let mut state = self.write();
        for range in ranges {
            let within = (std::ops::Bound::Included(&*range.start), std::ops::Bound::Excluded(&*range.end));
            // A user's range may end before it begins.
            if !is_empty(within) {
                let versions = state.list.range_mut::<[u8], _>(within).flat_map(|(_, versions)| versions);
                versions.for_each(|version| end_at(version, range));
            }
        }
        let is_concerned = |layer: &Layer| ranges.iter().any(|range| layer.may_be_ended_by(range));
        if !state.layers.iter().any(|layer| is_concerned(layer)) {
            return;
        }
        for layer in Arc::make_mut(&mut state.layers) {
            let concerned: Vec<_> = ranges.iter().filter(|range| layer.may_be_ended_by(range)).collect();
            if !concerned.is_empty() {
                let ended = &mut Arc::make_mut(layer).ended;
                ended.extend(concerned.into_iter().map(|range| Arc::new(range.clone())));
            }
        }
    }

    /// Forgets versions that are not `needed` since a snapshot has ended: all at once when `none` is, else when enough have gathered since the
    /// last time. A layer is forgotten as a whole. Returns layers that may be dropped, which takes time, without a lock.
    pub(super) fn prune(&self, none: bool, was_oldest: bool, needed: impl Fn(u64, u64) -> bool) -> Vec<Arc<Layer>> {
        if self.len() == 0 {
            return Vec::new();
        }
        let mut state = self.write();
        if none {
            let dropped = std::mem::take(&mut state.layers);
            *state = State { next_layer: state.next_layer, ..State::default() };
            self.recount(&state);
            self.spill.iter().for_each(|spill| spill.note(None));
            return dropped.to_vec();
        }
        // Where there is no room for what is in memory elsewhere, only this makes some. The oldest snapshot alone may have needed much.
        let has_grown = || self.load() >= self.searched_to.load(Ordering::Relaxed).saturating_add(PRUNE_STEP);
        let is_pressed = self.spill.is_some() && self.is_stuck() && (was_oldest || has_grown());
        if is_pressed || state.versions >= 2 * self.pruned_to.load(Ordering::Relaxed) + PRUNE_STEP {
            state.prune(&needed);
            self.pruned_to.store(state.versions, Ordering::Relaxed);
        }
        let is_needed = |layer: &&Arc<Layer>| needed(layer.span.from, layer.span.until);
        let mut dropped = Vec::new();
        if is_pressed || !state.layers.iter().all(|layer| is_needed(&layer)) {
            let pruned = |layer: &Arc<Layer>| {
                if is_pressed { layer.pruned(&needed).map(Arc::new) } else { Some(Arc::clone(layer)) }
            };
            let left = state.layers.iter().filter(is_needed).filter_map(pruned).collect();
            dropped = std::mem::replace(&mut state.layers, Arc::new(left)).to_vec();
        }
        self.recount(&state);
        if is_pressed {
            self.searched_to.store(self.load(), Ordering::Relaxed);
        } else {
            self.searched_to.fetch_min(self.load(), Ordering::Relaxed);
        }
        dropped
    }

    /// How many range tombstones layers know of, each as often as it was noted.
    #[cfg(test)]
    pub(super) fn noted_ranges(&self) -> (usize, usize) {
        let layers = Arc::clone(&self.read().layers);
        (layers.iter().map(|layer| layer.ended.len()).sum(), layers.len())
    }

    fn recount(&self, state: &State) {
        let below: usize = state.layers.iter().map(|layer| layer.versions).sum();
        let load: usize = state.layers.iter().map(|layer| layer.load).sum();
        self.count.store(state.versions + below, Ordering::Release);
        self.load.store(state.load + load, Ordering::Relaxed);
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().expect(NO_PANIC)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().expect(NO_PANIC)
    }
}

/// Why the lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it holds the versions";

impl State {
    /// Adds a version to the list. Returns what it counts, if there was none of its record.
    fn insert(&mut self, key: &[u8], version: Version) -> usize {
        self.span.include(&version);
        let mut load = 1;
        if !self.list.contains_key(key) {
            self.list.insert(key.into(), KeyVersions::new());
            load += load_of(key);
        }
        let versions = self.list.get_mut(key).expect("just made");
        if !put_on_top(versions, version) {
            return 0;
        }
        self.versions += 1;
        self.load += load;
        load
    }

    /// Makes a layer of the list, and begins a new one.
    fn freeze(&mut self) {
        let layer = Layer {
            id: self.next_layer,
            held: Held::Memory(Arc::new(std::mem::take(&mut self.list))),
            versions: std::mem::take(&mut self.versions),
            load: std::mem::take(&mut self.load),
            span: std::mem::replace(&mut self.span, Span::NONE),
            ended: Vec::new(),
        };
        self.next_layer += 1;
        Arc::make_mut(&mut self.layers).insert(0, Arc::new(layer));
    }

    /// Keys of the list in a range.
    fn list(&self, range: KeyRange<'_>, backward: bool, limit: usize) -> (Vec<KeyWithVersions>, Reached) {
        let keys = self.list.range::<[u8], _>(range).map(|(key, versions)| (key.clone(), versions.clone()));
        let found = if backward { keys.rev().take(limit).collect() } else { keys.take(limit).collect() };
        with_reached(found, limit)
    }

    /// Forgets versions of the list that are not needed.
    fn prune(&mut self, needed: &impl Fn(u64, u64) -> bool) {
        let (mut versions, mut load) = (0, 0);
        self.list.retain(|key, all| {
            all.retain(|version| needed(version.entry.sequence, version.until));
            versions += all.len();
            load += if all.is_empty() { 0 } else { load_of(key) + all.len() };
            !all.is_empty()
        });
        (self.versions, self.load) = (versions, load);
    }
}

/// Some keys, and how far those have come who took at most so many.
fn with_reached(found: Vec<KeyWithVersions>, limit: usize) -> (Vec<KeyWithVersions>, Reached) {
    let last = found.last().filter(|_| found.len() >= limit).map(|(key, _)| key.clone());
    let reached = last.map_or(Reached::End, Reached::Key);
    (found, reached)
}

/// Adds the versions that count at a sequence to a chain.
pub(super) fn insert_seen(versions: &[Version], sequence: u64, chain: &mut VersionChain) {
    let is_seen = |version: &&Version| version.entry.sequence <= sequence && sequence < version.until;
    versions.iter().filter(is_seen).for_each(|version| chain.insert_below(&version.entry));
}
