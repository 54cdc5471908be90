//! The keys that the next writers fold.

use std::collections::VecDeque;
use std::sync::{PoisonError, TryLockError};

use crate::store::settling::Unsettled;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::{Mutex, MutexGuard, Rank};

/// Keys that wait for a writer to fold them; more than this wait for upkeep, like all others.
const MAX_URGENT: usize = 1024;

/// If a key has so many operands, all writers of operands wait until they are folded.
const MAX_CROWDED_OPERANDS: usize = 256;

/// The keys that the next writers fold.
#[derive(Default)]
pub(crate) struct Urgent {
    /// Each once.
    keys: Mutex<VecDeque<Unsettled>, { Rank::Urgent as u8 }>,
    /// How many there are. Relaxed, like the next: a hint, changed under the lock of the keys.
    count: AtomicUsize,
    /// Whether one of them has so many operands that writers of operands must wait.
    is_crowded: AtomicBool,
    /// Held by the writer that folds.
    folding: Mutex<(), { Rank::Folding as u8 }>,
}

impl Urgent {
    pub(crate) fn push(&self, unsettled: Unsettled, operands: usize) {
        let mut keys = self.lock();
        if keys.len() < MAX_URGENT && !keys.iter().any(|known| known.is_same(&unsettled)) {
            keys.push_back(unsettled);
            self.count.store(keys.len(), Ordering::Relaxed);
        }
        if operands >= MAX_CROWDED_OPERANDS {
            self.is_crowded.store(true, Ordering::Relaxed);
        }
    }

    /// A key that this caller folds. It stays queued for upkeep, in case that cannot be done yet.
    pub(crate) fn take(&self) -> Option<Unsettled> {
        let mut keys = self.lock();
        let taken = keys.pop_front();
        self.count.store(keys.len(), Ordering::Relaxed);
        if keys.is_empty() {
            self.is_crowded.store(false, Ordering::Relaxed);
        }
        taken
    }

    /// Whether a writer should fold something before it adds more.
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// The right to fold, for one writer at a time: two would fold the same operands. Where a key is crowded, a writer that
    /// `adds_operands` waits for it.
    pub(crate) fn begin(&self, adds_operands: bool) -> Option<MutexGuard<'_, ()>> {
        // A writer that panicked has left nothing half done: the key that it took is still queued.
        if adds_operands && self.is_crowded.load(Ordering::Relaxed) {
            return Some(self.folding.lock().unwrap_or_else(PoisonError::into_inner));
        }
        match self.folding.try_lock() {
            Ok(folding) => Some(folding),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether a writer folds at this moment.
    pub(crate) fn is_folding(&self) -> bool {
        self.begin(false).is_none()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Unsettled>> {
        self.keys.lock().expect("no code panics while it holds the queue")
    }
}
