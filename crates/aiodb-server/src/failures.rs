//! Failures of the store, for a load: it must know the first command that one of them stopped, and carry out none behind it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::refusal::Refusal;

/// The first failure of the store since somebody asked. Nothing is noted, and nothing refused for it, before [`Failures::watch`].
#[derive(Default)]
pub(crate) struct Failures {
    is_watched: AtomicBool,
    first: Mutex<Option<aiodb::Error>>,
}

impl Failures {
    /// From now on a failure is noted, and refuses all writes until it was asked for.
    pub(crate) fn watch(&self) {
        // Relaxed: whoever asks for failures has called this.
        self.is_watched.store(true, Ordering::Relaxed);
    }

    /// The first failure since the last call. Until then writes were refused with it, and whatever else has failed, too.
    pub(crate) fn take(&self) -> Option<aiodb::Error> {
        self.first().take()
    }

    /// Notes what came of a call of the store. One that fails after the first has its error, by which all of them are known.
    pub(crate) fn note<T>(&self, outcome: Result<T, Refusal>) -> Result<T, Refusal> {
        match outcome {
            Err(Refusal::Engine(error)) if is_failure(&error) && self.is_watched() => {
                Err(Refusal::Engine(self.first().get_or_insert(error).clone()))
            }
            outcome => outcome,
        }
    }

    /// Refuses a write after a failure.
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if !self.is_watched() {
            return Ok(());
        }
        self.first().as_ref().map_or(Ok(()), |first| Err(Refusal::Engine(first.clone())))
    }

    fn is_watched(&self) -> bool {
        self.is_watched.load(Ordering::Relaxed)
    }

    fn first(&self) -> MutexGuard<'_, Option<aiodb::Error>> {
        self.first.lock().expect("no code panics while it holds the first failure")
    }
}

/// Whether an error says nothing of the command that met it: the same command may succeed once the cause is gone.
fn is_failure(error: &aiodb::Error) -> bool {
    use aiodb::Error;
    matches!(
        error,
        Error::DiskFull { .. }
            | Error::StoreFull { .. }
            | Error::Failed { .. }
            | Error::Io { .. }
            | Error::TooManyOpenFiles { .. }
            | Error::Index { .. }
            | Error::Closed
    )
}

#[cfg(test)]
mod tests;
