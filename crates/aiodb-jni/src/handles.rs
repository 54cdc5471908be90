//! What Java holds in the place of pointers: numbers that are never used again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::failure::{Failure, Result};

/// Objects of one kind that Java may have open at a time. A program that reaches it forgets to close them.
const MAX_OPEN: usize = 1 << 16;

/// Numbered objects. A number that was closed, or that never was one, is an error and nothing worse; what is being used
/// while it is closed lives until that use ends.
pub(crate) struct Handles<T> {
    /// What the objects are called in messages.
    kind: &'static str,
    /// The last handle given. Relaxed: only a name; the lock publishes the object.
    last: AtomicI64,
    objects: RwLock<HashMap<i64, Arc<T>>>,
}

impl<T> Handles<T> {
    pub(crate) fn new(kind: &'static str) -> Handles<T> {
        Handles { kind, last: AtomicI64::new(0), objects: RwLock::default() }
    }

    pub(crate) fn insert(&self, object: T) -> Result<i64> {
        // A panic cannot leave a map of numbers half changed, so a poisoned lock means nothing.
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        if objects.len() >= MAX_OPEN {
            return Err(Failure::TooManyOpen { kind: self.kind, max: MAX_OPEN });
        }
        let handle = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        objects.insert(handle, Arc::new(object));
        Ok(handle)
    }

    pub(crate) fn get(&self, handle: i64) -> Result<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(&handle).cloned().ok_or(Failure::Closed { kind: self.kind })
    }

    /// Forgets an object; `None` if that was done before.
    pub(crate) fn remove(&self, handle: i64) -> Option<Arc<T>> {
        self.objects.write().unwrap_or_else(PoisonError::into_inner).remove(&handle)
    }
}

#[cfg(test)]
mod tests;
