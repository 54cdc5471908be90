//! Whether a store is open, its last trouble, and its right to its directories.

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Mutex, Rank};
use crate::{Error, Result};

/// The status of an open store; `L` is a lock on a directory.
pub(crate) struct Status<L> {
    closed: AtomicBool,
    /// The last failure of background work, for `stat`; foreground calls report their own.
    trouble: Mutex<Option<String>, { Rank::Trouble as u8 }>,
    /// Taken out, and so released, when the store is closed.
    locks: Mutex<Vec<L>, { Rank::StoreLocks as u8 }>,
}

impl<L> Status<L> {
    pub(crate) fn new(locks: Vec<L>) -> Status<L> {
        Status { closed: AtomicBool::new(false), trouble: Mutex::default(), locks: Mutex::new(locks) }
    }

    /// Refuses further calls. False if it was closed before.
    pub(crate) fn close(&self) -> bool {
        !self.closed.swap(true, Ordering::SeqCst)
    }

    /// Relaxed: a call that comes in the same moment may go either way.
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Remembers a failure of which no caller can be told.
    pub(crate) fn note_trouble(&self, error: &Error) {
        *self.trouble.lock().expect("no code panics while it notes trouble") = Some(error.to_string());
    }

    /// The last failure of background work.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().expect("no code panics while it notes trouble").clone()
    }

    /// Gives the directories up.
    pub(crate) fn release(&self) {
        self.locks.lock().expect("no code panics while it releases the locks").clear();
    }
}
