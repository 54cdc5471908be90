//! Dropped and truncated generations, until indexes and counts have forgotten them.

use std::sync::Arc;

use crate::IndexKind;
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
    /// Some of its keys could not be read: they stay until the store is opened again.
    pub(crate) is_unreadable: bool,
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
        let waiting = self.lock();
        let ready = waiting.iter().find(|gone| !gone.is_unreadable && is_over(gone.hold));
        ready.map(|gone| Arc::clone(&gone.generation))
    }

    /// Whether no reader looks any more at a generation with a lower id than this.
    pub(crate) fn is_any_ready(&self, before: u32, is_over: impl Fn(u64) -> bool) -> bool {
        self.lock().iter().any(|gone| gone.generation.id < before && !gone.is_unreadable && is_over(gone.hold))
    }

    /// Whether a segment must not begin another life, since an index refers to its records for a generation with a lower id than this, and
    /// no reader looks at that any more. Runs know lives, and need not be waited for.
    pub(crate) fn is_any_in_segments(&self, before: u32, is_over: impl Fn(u64) -> bool) -> bool {
        let knows_lives = |gone: &Gone| gone.generation.kind() == IndexKind::Lsm;
        self.lock().iter().any(|gone| gone.generation.id < before && !knows_lives(gone) && is_over(gone.hold))
    }

    /// Leaves the keys of a generation where they are.
    pub(crate) fn set_unreadable(&self, id: u32) {
        self.lock().iter_mut().filter(|gone| gone.generation.id == id).for_each(|gone| gone.is_unreadable = true);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Gone>> {
        self.waiting.lock().expect("no code panics while it looks at the list")
    }
}
