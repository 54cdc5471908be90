//! Retention of segments and indexes that the log no longer needs, for as long as a snapshot or a backup may still read them.
//!
//! A hold is long, where the guard of an epoch (`store/epochs.rs`) is short: segments that are retired after a hold began retain
//! their bytes until it ends, and tables that were dropped or truncated retain their index.

use std::collections::BTreeSet;

use crate::sync::{Mutex, MutexGuard, Rank};

/// The snapshots and backups of one store.
#[derive(Default)]
pub(crate) struct Retention {
    state: Mutex<State, { Rank::Retention as u8 }>,
}

#[derive(Default)]
struct State {
    next: u64,
    held: BTreeSet<u64>,
}

impl Retention {
    /// Begins a hold on everything that is not retired yet.
    pub(crate) fn begin(&self) -> u64 {
        let mut state = self.lock();
        let hold = state.next;
        state.next += 1;
        state.held.insert(hold);
        hold
    }

    /// Ends a hold; ending it twice does nothing.
    pub(crate) fn end(&self, hold: u64) {
        self.lock().held.remove(&hold);
    }

    /// To be noted when something is retired: the holds before it may need it.
    pub(crate) fn stamp(&self) -> u64 {
        self.lock().next
    }

    /// Whether there is a snapshot or backup.
    pub(crate) fn is_any(&self) -> bool {
        !self.lock().held.is_empty()
    }

    /// Whether no hold from before the stamp is left.
    pub(crate) fn are_over(&self, stamp: u64) -> bool {
        self.lock().held.first().is_none_or(|oldest| *oldest >= stamp)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the holds")
    }
}

#[cfg(test)]
mod tests {
    use super::Retention;

    #[test]
    fn what_was_retired_waits_for_the_holds_before_it() {
        let holds = Retention::default();
        let (first, second) = (holds.begin(), holds.begin());
        let retired = holds.stamp();
        let later = holds.begin();
        holds.end(second);
        assert!(!holds.are_over(retired), "the first hold may need it");
        holds.end(first);
        assert!(holds.are_over(retired), "a later hold does not");
        holds.end(later);
        assert!(holds.are_over(holds.stamp()));
    }
}
