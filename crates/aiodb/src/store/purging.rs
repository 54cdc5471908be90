//! Dropped and truncated generations, until indexes and counts have forgotten them.

use std::sync::Arc;

use crate::store::catalog::Generation;
use crate::sync::{Mutex, MutexGuard, Rank};

/// Generations that no table has any more, until indexes and counts have forgotten them.
#[derive(Default)]
pub(crate) struct Purging {
    /// The generation that is being purged. Held for a step.
    pub(crate) current: Mutex<Option<Purge>, { Rank::Purge as u8 }>,
    /// Held for moments only.
    pub(crate) waiting: Mutex<Vec<Gone>, { Rank::Gone as u8 }>,
}

/// A generation that is to be purged.
pub(crate) struct Gone {
    pub(crate) generation: Arc<Generation>,
    /// The purge waits for the end of the snapshots that look at it: of the holds before this stamp.
    pub(crate) hold: u64,
}

/// A generation that is being purged, and how far that has come.
pub(crate) struct Purge {
    pub(crate) generation: Arc<Generation>,
    /// For a hash index: shards that are counted off.
    pub(crate) shards: usize,
    /// For an ordered table: whether none of its records is in the memtable, where none comes any more.
    pub(crate) has_left_memtable: bool,
}

impl Purging {
    /// The first generation that no reader looks at any more.
    pub(crate) fn first_ready(&self, is_over: impl Fn(u64) -> bool) -> Option<Arc<Generation>> {
        self.lock().iter().find(|gone| is_over(gone.hold)).map(|gone| Arc::clone(&gone.generation))
    }

    /// Whether no reader looks any more at a generation with a lower id than this.
    pub(crate) fn is_any_ready(&self, before: u32, is_over: impl Fn(u64) -> bool) -> bool {
        self.lock().iter().any(|gone| gone.generation.id < before && is_over(gone.hold))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Gone>> {
        self.waiting.lock().expect("no code panics while it looks at the list")
    }
}
