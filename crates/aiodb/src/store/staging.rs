//! Large values on their way: their chunks are in the log, and no record names them yet.

use std::collections::BTreeMap;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank};

/// The large values that are being written.
#[derive(Default)]
pub(crate) struct Staging {
    /// The life of the log's last segment when each began, by token: its chunks lie there or later.
    begun: Mutex<BTreeMap<u64, u64>, { Rank::Staging as u8 }>,
    next: AtomicU64,
}

/// A large value between its first chunk and the record that names them.
pub(crate) struct Staged<'a> {
    staging: &'a Staging,
    token: u64,
}

impl Staging {
    /// Protects chunks that no record names yet from reclaim. `life` gives the life of the log's last segment.
    pub(crate) fn begin(&self, life: impl FnOnce() -> u64) -> Staged<'_> {
        Staged { staging: self, token: self.begin_unowned(life) }
    }

    /// [`Staging::begin`] for an owner that cannot borrow: to be ended by [`Staging::end`].
    pub(crate) fn begin_unowned(&self, life: impl FnOnce() -> u64) -> u64 {
        // Relaxed: only a name for this value.
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        let mut begun = self.lock();
        begun.insert(token, life());
        token
    }

    pub(crate) fn end(&self, token: u64) {
        self.lock().remove(&token);
    }

    /// Segments of this life or a later one may hold chunks that no record names yet.
    pub(crate) fn floor(&self) -> u64 {
        self.lock().values().copied().min().unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.begun.lock().expect("no code panics while it stages")
    }
}

impl Staged<'_> {
    /// Goes on without the borrow, until [`Staging::end`].
    pub(crate) fn into_token(self) -> u64 {
        std::mem::ManuallyDrop::new(self).token
    }
}

impl Drop for Staged<'_> {
    fn drop(&mut self) {
        self.staging.end(self.token);
    }
}
