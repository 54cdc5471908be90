//! Lets keys in while memory has more of them than it is for: so many with each step of the work that brings them elsewhere.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A writer waits so long for a step at most, for instance where the disk does not answer: then memory has more.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A writer of many keys waits for a step more for each so many of them, and for so many steps at most.
const STEP_KEYS: usize = 1024;
const MOST_STEPS: usize = 10;

/// What came without being let in is taken off what the next steps let in, up to so many keys.
const MOST_OWED: i64 = 1 << 20;

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
    /// A step has ended: so many keys may come before the next one does, less those that came before they were let in; any number where this is
    /// `None`.
    pub(crate) fn admit(&self, keys: Option<u64>) {
        let keys = keys.and_then(|keys| i64::try_from(keys).ok());
        let owed = self.left.load(Ordering::Relaxed).clamp(-MOST_OWED, 0);
        // What comes at this moment may be forgotten.
        self.left.store(keys.map_or(i64::MAX, |keys| owed.saturating_add(keys)), Ordering::Relaxed);
        let signal = self.signal.lock().expect("no code panics while it signals");
        self.ended.fetch_add(1, Ordering::Relaxed);
        drop(signal);
        self.next.notify_all();
    }

    /// Whether keys that come now must wait.
    pub(crate) fn is_closed(&self) -> bool {
        self.left.load(Ordering::Relaxed) <= 0
    }

    /// Some keys come: while no more may come, the caller waits for the ends of steps, of no more than the keys are worth.
    pub(crate) fn come(&self, keys: usize) {
        for _ in 0..(1 + keys / STEP_KEYS).min(MOST_STEPS) {
            let ended = self.ended.load(Ordering::Relaxed);
            if !self.is_closed() {
                break;
            }
            let signal = self.signal.lock().expect("no code panics while it signals");
            let is_same = |(): &mut ()| self.ended.load(Ordering::Relaxed) == ended;
            let wait = self.next.wait_timeout_while(signal, LONGEST_WAIT, is_same);
            drop(wait.expect("no code panics while it signals"));
        }
        self.left.fetch_sub(keys as i64, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn as_many_keys_come_as_steps_let_in() {
        let admission = Arc::new(Admission::default());
        (0..100).for_each(|_| admission.come(1_000_000));
        admission.admit(Some(2));
        admission.come(1);
        assert!(!admission.is_closed());
        admission.come(6);
        assert!(admission.is_closed());
        let late = thread::spawn({
            let admission = Arc::clone(&admission);
            move || admission.come(7)
        });
        admission.admit(Some(15));
        late.join().expect("no thread panics");
        // It has waited for the step, or come after it; or it has come before it, and was taken off what that let in, if not at that moment.
        let left = admission.left.load(Ordering::Relaxed);
        assert!([3, 10].contains(&left), "{left}");
        admission.admit(None);
        assert!(!admission.is_closed());
    }

    #[test]
    fn nobody_waits_for_ever() {
        let admission = Admission::default();
        admission.admit(Some(0));
        admission.come(3);
        admission.come(3 * STEP_KEYS);
        assert_eq!(admission.left.load(Ordering::Relaxed), -3 - 3 * STEP_KEYS as i64);
    }
}
