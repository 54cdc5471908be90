//! The ordered tail of an on-disk index: what was published but is not yet in the index's own durable state.
//!
//! Two generations: the active one takes new entries, the frozen one is being committed. A look-up asks the active one,
//! the frozen one, then the index on disk; an entry leaves the tail only after the commit that holds it is durable.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::Location;
use crate::log::Position;

/// Entries that the active generation may have before it must be frozen.
pub(crate) const MAX_ACTIVE_ENTRIES: usize = 512 << 10;

/// One entry of an ordered index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) sequence: u64,
    pub(crate) location: Location,
    pub(crate) separate: Option<u32>,
    pub(crate) chunked: bool,
    pub(crate) deleted: bool,
}

/// Entries by index key.
pub(crate) type Entries = BTreeMap<Box<[u8]>, Entry>;

/// What became of an inserted entry.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// It is the newest now; the entry that it replaced in the active generation is dead.
    Newest { replaced: Option<Entry> },
    /// A newer one was there already.
    Older,
}

/// What the tail knows about a key's entry at a place.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The tail's entry.
    Here(Entry),
    /// The index on disk must be asked.
    Unknown,
}

#[derive(Default)]
struct Generations {
    active: Entries,
    frozen: Option<Arc<Entries>>,
}

/// A frozen generation on its way to disk.
#[derive(Clone)]
pub(crate) struct Frozen {
    pub(crate) entries: Arc<Entries>,
    /// What the index covers once all entries are committed.
    pub(crate) position: Position,
    /// Entries that are committed already, in the order of their keys.
    pub(crate) committed: usize,
}

/// The tail.
#[derive(Default)]
pub(crate) struct Tail {
    generations: RwLock<Generations>,
    /// Whether there may be any entry: most look-ups find none and need no lock. Set before an entry is there, cleared
    /// after its commit is durable.
    occupied: AtomicBool,
}

impl Tail {
    /// The newest entry of a key, as far as the tail knows.
    pub(crate) fn lookup(&self, key: &[u8]) -> Known {
        if !self.occupied.load(Ordering::Acquire) {
            return Known::Unknown;
        }
        let generations = self.read();
        let frozen = || generations.frozen.as_ref().and_then(|frozen| frozen.get(key));
        generations.active.get(key).or_else(frozen).map_or(Known::Unknown, |entry| Known::Here(*entry))
    }

    /// Inserts an entry unless a newer one of the key is there.
    pub(crate) fn insert(&self, key: &[u8], entry: Entry) -> Inserted {
        let mut generations = self.write();
        self.occupied.store(true, Ordering::Release);
        let newer = |other: &Entry| other.sequence > entry.sequence;
        if generations.frozen.as_ref().and_then(|frozen| frozen.get(key)).is_some_and(newer) {
            return Inserted::Older;
        }
        match generations.active.get_mut(key) {
            Some(old) if newer(old) => Inserted::Older,
            Some(old) => Inserted::Newest { replaced: Some(std::mem::replace(old, entry)) },
            None => {
                generations.active.insert(key.into(), entry);
                Inserted::Newest { replaced: None }
            }
        }
    }

    /// Replaces what [`Tail::lookup`] or the index on disk gave as the current entry, if the tail still agrees.
    /// `Some(replaced)` is the entry of the active generation that is dead now.
    pub(crate) fn replace(&self, key: &[u8], current: Entry, entry: Entry) -> Option<Option<Entry>> {
        let mut generations = self.write();
        self.occupied.store(true, Ordering::Release);
        match generations.active.get_mut(key) {
            Some(old) if *old == current => return Some(Some(std::mem::replace(old, entry))),
            Some(_) => return None,
            None => {}
        }
        if generations.frozen.as_ref().and_then(|frozen| frozen.get(key)).is_some_and(|old| *old != current) {
            return None;
        }
        generations.active.insert(key.into(), entry);
        Some(None)
    }

    /// Entries in both generations.
    pub(crate) fn len(&self) -> usize {
        let generations = self.read();
        generations.active.len() + generations.frozen.as_ref().map_or(0, |frozen| frozen.len())
    }

    /// Whether the active generation should be frozen before more is inserted.
    pub(crate) fn is_full(&self) -> bool {
        self.read().active.len() >= MAX_ACTIVE_ENTRIES
    }

    /// Freezes the active generation. Only after [`Tail::forget_frozen`] can the next one be frozen.
    pub(crate) fn freeze(&self, position: Position) -> Frozen {
        let mut generations = self.write();
        assert!(generations.frozen.is_none(), "one generation is committed at a time");
        let entries = Arc::new(std::mem::take(&mut generations.active));
        generations.frozen = Some(Arc::clone(&entries));
        Frozen { entries, position, committed: 0 }
    }

    /// Drops the frozen generation, whose commit is durable.
    pub(crate) fn forget_frozen(&self) {
        let mut generations = self.write();
        let frozen = generations.frozen.take();
        self.occupied.store(!generations.active.is_empty(), Ordering::Release);
        drop(generations);
        // Freeing many entries takes time: not under the lock.
        drop(frozen);
    }

    fn read(&self) -> RwLockReadGuard<'_, Generations> {
        self.generations.read().expect("no code panics while it holds the tail")
    }

    fn write(&self) -> RwLockWriteGuard<'_, Generations> {
        self.generations.write().expect("no code panics while it holds the tail")
    }
}
