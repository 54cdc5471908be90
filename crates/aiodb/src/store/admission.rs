//! Lets keys in while memory has more of them than it is for: so many with each step of the work that brings them elsewhere.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A writer waits so long at most, for instance where the disk does not answer: then memory has more.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// How many keys may come before the next step ends.
pub(crate) struct Admission {
    /// Relaxed: a bound.
    left: AtomicI64,
    /// Steps that have ended. Changed with `signal` held.
    ended: AtomicU64,
    signal: Mutex<()>,
    next: Condvar,
}

impl Default for Admission {
    fn default() -> Admission {
        let (ended, signal, next) = (AtomicU64::default(), Mutex::default(), Condvar::default());
        Admission { left: AtomicI64::new(i64::MAX), ended, signal, next }
    }
}

impl Admission {
    /// A step has ended: so many keys may come before the next one does; any number where this is `None`.
    pub(crate) fn admit(&self, keys: Option<u64>) {
        let keys = keys.and_then(|keys| i64::try_from(keys).ok()).unwrap_or(i64::MAX);
        self.left.store(keys, Ordering::Relaxed);
        let signal = self.signal.lock().expect("no code panics while it signals");
        self.ended.fetch_add(1, Ordering::Relaxed);
        drop(signal);
        self.next.notify_all();
    }

    /// Some keys come: where no more may come, the caller waits for the end of a step.
    pub(crate) fn come(&self, keys: usize) {
        let ended = self.ended.load(Ordering::Relaxed);
        if self.left.load(Ordering::Relaxed) > 0 {
            self.left.fetch_sub(keys as i64, Ordering::Relaxed);
            return;
        }
        let signal = self.signal.lock().expect("no code panics while it signals");
        let is_same = |(): &mut ()| self.ended.load(Ordering::Relaxed) == ended;
        let wait = self.next.wait_timeout_while(signal, LONGEST_WAIT, is_same);
        drop(wait.expect("no code panics while it signals"));
        self.left.fetch_sub(keys as i64, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn as_many_keys_come_as_a_step_lets_in() {
        let admission = Arc::new(Admission::default());
        (0..100).for_each(|_| admission.come(1_000_000));
        admission.admit(Some(2));
        admission.come(1);
        admission.come(5);
        let late = thread::spawn({
            let admission = Arc::clone(&admission);
            move || admission.come(7)
        });
        // A writer that is late by then has looked before this, or finds that it may come.
        admission.admit(Some(10));
        late.join().expect("no thread panics");
        assert_eq!(admission.left.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn nobody_waits_for_ever() {
        let admission = Admission::default();
        admission.admit(Some(0));
        admission.come(3);
        assert_eq!(admission.left.load(Ordering::Relaxed), -3);
    }
}
