//! How fast the memtable of an ordered index may grow while its immutable memtable is being committed.
//!
//! A commit takes seconds where the index is larger than memory. Were writers held up only when the active memtable is full,
//! all would stand still until its end; so they are let in as it proceeds.

use super::memtable::MAX_ACTIVE_KEYS;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, Rank};

/// Keys that the active memtable may have when a commit begins: as many as are written in about a second.
const FIRST_KEYS: usize = MAX_ACTIVE_KEYS / 8;

/// Lets writers in.
pub(crate) struct Throttle {
    /// Keys that the active memtable may have by now. Relaxed: it publishes nothing, it is changed under the lock, and a writer
    /// looks again under the lock before it sleeps.
    allowed: AtomicUsize,
    waiting: Mutex<(), { Rank::Throttle as u8 }>,
    changed: Condvar,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle { allowed: AtomicUsize::new(usize::MAX), waiting: Mutex::default(), changed: Condvar::default() }
    }
}

impl Throttle {
    /// A commit has come so far.
    pub(crate) fn proceed(&self, committed_keys: usize, all_keys: usize) {
        self.allow(FIRST_KEYS + (MAX_ACTIVE_KEYS - FIRST_KEYS) * committed_keys / all_keys.max(1));
    }

    /// No commit is under way once this is dropped, however that ends.
    pub(crate) fn begin(&self) -> Commit<'_> {
        Commit(self)
    }

    /// No commit is under way.
    fn end(&self) {
        self.allow(usize::MAX);
    }

    /// Returns when the active memtable, which has so many keys, may have one more.
    pub(crate) fn wait(&self, keys: impl Fn() -> usize) {
        // Most of the time no commit is under way, and keys need not be counted.
        let is_ahead = || {
            let allowed = self.allowed.load(Ordering::Relaxed);
            allowed < usize::MAX && keys() >= allowed
        };
        if !is_ahead() {
            return;
        }
        let mut waiting = self.waiting.lock().expect(NO_PANIC);
        while is_ahead() {
            waiting = self.changed.wait(waiting).expect(NO_PANIC);
        }
    }

    /// The active memtable may have so many keys.
    pub(crate) fn allow(&self, keys: usize) {
        let _waiting = self.waiting.lock().expect(NO_PANIC);
        self.allowed.store(keys, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// A commit under way.
pub(crate) struct Commit<'a>(&'a Throttle);

impl Drop for Commit<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it waits for a commit";

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{FIRST_KEYS, MAX_ACTIVE_KEYS, Throttle};

    #[test]
    fn writers_are_let_in_as_a_commit_proceeds() {
        let throttle = Throttle::default();
        throttle.wait(|| usize::MAX - 1);
        let keys = AtomicUsize::new(0);
        throttle.proceed(0, 100);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                while keys.load(Ordering::SeqCst) < MAX_ACTIVE_KEYS + 10 {
                    throttle.wait(|| keys.load(Ordering::SeqCst));
                    keys.fetch_add(1, Ordering::SeqCst);
                }
            });
            for done in 0..=100 {
                throttle.proceed(done, 100);
                let allowed = FIRST_KEYS + (MAX_ACTIVE_KEYS - FIRST_KEYS) * done / 100;
                while keys.load(Ordering::SeqCst) < allowed {
                    std::thread::yield_now();
                }
                assert!(!writer.is_finished());
                assert!(keys.load(Ordering::SeqCst) <= allowed + 1, "not more than was let in at {done} %");
            }
            throttle.end();
            writer.join().expect("the writer comes to its end");
        });
    }
}
