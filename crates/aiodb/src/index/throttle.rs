//! How fast the memtable of an ordered index may grow while its immutable memtable is being committed.
//!
//! A commit takes seconds where the index is larger than memory. Were writers held up only when the active memtable is full,
//! all would stand still until its end; so they are let in as it proceeds. Those who find it full wait until it has become
//! immutable, not until it is committed.

use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, Rank};

/// The part of its keys that the active memtable may have when a commit begins.
const FIRST_SHARE: usize = 8;

/// So many keys it may have then at least: a short commit does not say how far it has come.
const LEAST_FIRST_KEYS: usize = 2048;

/// Lets writers in.
pub(crate) struct Throttle {
    /// Keys that the active memtable may have by now. Relaxed: it publishes nothing, it is changed under the lock, and a writer
    /// looks again under the lock before it sleeps.
    allowed: AtomicUsize,
    waiting: Mutex<Waiting, { Rank::Throttle as u8 }>,
    changed: Condvar,
}

/// What those who wait know.
#[derive(Default)]
struct Waiting {
    last: Turn,
    /// How many wait for another turn.
    for_turn: usize,
}

/// How many commits have begun or ended.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Turn(u64);

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle { allowed: AtomicUsize::new(usize::MAX), waiting: Mutex::default(), changed: Condvar::default() }
    }
}

impl Throttle {
    /// A commit has come so far. A memtable may have `most_keys`.
    pub(crate) fn proceed(&self, committed_keys: usize, all_keys: usize, most_keys: usize) {
        let first_keys = first_keys(most_keys);
        self.allow(first_keys + (most_keys - first_keys) * committed_keys.min(all_keys) / all_keys.max(1));
    }

    /// A commit begins, of a memtable that has just become immutable; none is under way once this is dropped, however it ends. The
    /// next one may have `most_keys`.
    pub(crate) fn begin(&self, most_keys: usize) -> Commit<'_> {
        self.turn(first_keys(most_keys));
        Commit(self)
    }

    /// Whether the active memtable, which has so many keys, may have no more for now.
    pub(crate) fn is_ahead(&self, keys: impl Fn() -> usize) -> bool {
        // Most of the time no commit is under way, and keys need not be counted.
        let allowed = self.allowed.load(Ordering::Relaxed);
        allowed < usize::MAX && keys() >= allowed
    }

    /// Returns when the active memtable, which has so many keys, may have one more.
    pub(crate) fn wait(&self, keys: impl Fn() -> usize) {
        if !self.is_ahead(&keys) {
            return;
        }
        let mut waiting = self.lock();
        while self.is_ahead(&keys) {
            waiting = self.changed.wait(waiting).expect(NO_PANIC);
        }
    }

    /// What [`Throttle::wait_after`] is to be told, taken before looking whether it is needed.
    pub(crate) fn last_turn(&self) -> Turn {
        self.lock().last
    }

    /// Returns when a commit has begun or ended since that turn.
    pub(crate) fn wait_after(&self, last: Turn) {
        let mut waiting = self.lock();
        waiting.for_turn += 1;
        while waiting.last == last {
            waiting = self.changed.wait(waiting).expect(NO_PANIC);
        }
        waiting.for_turn -= 1;
    }

    /// Whether anybody waits for another turn.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn is_waited_for(&self) -> bool {
        self.lock().for_turn > 0
    }

    /// [`Throttle::look_again`], if anybody waits.
    pub(crate) fn answer(&self) {
        if self.lock().for_turn > 0 {
            self.look_again();
        }
    }

    /// Wakes those who wait for a turn: something else has changed that they wait for.
    pub(crate) fn look_again(&self) {
        self.lock().last.0 += 1;
        self.changed.notify_all();
    }

    /// The active memtable may have so many keys.
    pub(crate) fn allow(&self, keys: usize) {
        let _waiting = self.lock();
        self.allowed.store(keys, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// A commit has begun or ended.
    fn turn(&self, allowed: usize) {
        let mut waiting = self.lock();
        waiting.last.0 += 1;
        self.allowed.store(allowed, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect(NO_PANIC)
    }
}

/// Keys that the active memtable may have when a commit begins.
fn first_keys(most_keys: usize) -> usize {
    (most_keys / FIRST_SHARE).max(most_keys.min(LEAST_FIRST_KEYS))
}

/// A commit under way.
pub(crate) struct Commit<'a>(&'a Throttle);

impl Drop for Commit<'_> {
    fn drop(&mut self) {
        self.0.turn(usize::MAX);
    }
}

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it waits for a commit";

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::{Throttle, first_keys};

    #[test]
    fn writers_are_let_in_as_a_commit_proceeds() {
        [80_000, 800_000].into_iter().for_each(let_in);
        assert_eq!([10, 2_048, 10_000, 80_000].map(first_keys), [10, 2_048, 2_048, 10_000]);
    }

    fn let_in(most: usize) {
        let throttle = Throttle::default();
        throttle.wait(|| usize::MAX - 1);
        let keys = AtomicUsize::new(0);
        throttle.proceed(0, 100, most);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                while keys.load(Ordering::SeqCst) < most + 10 {
                    throttle.wait(|| keys.load(Ordering::SeqCst));
                    keys.fetch_add(1, Ordering::SeqCst);
                }
            });
            for done in 0..=100 {
                throttle.proceed(done, 100, most);
                let allowed = most / 8 + most / 8 * 7 * done / 100;
                while keys.load(Ordering::SeqCst) < allowed {
                    std::thread::yield_now();
                }
                assert!(!writer.is_finished());
                assert!(keys.load(Ordering::SeqCst) <= allowed + 1, "not more than was let in at {done} %");
            }
            throttle.turn(usize::MAX);
            writer.join().expect("the writer comes to its end");
        });
    }
}
