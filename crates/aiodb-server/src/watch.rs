//! Keys that connections watch, and whether they were changed since.

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::locks::{Database, Key};

/// What one connection watches.
#[derive(Default)]
pub(crate) struct Watch {
    changed: Arc<AtomicBool>,
    /// With the time at which each expires.
    keys: Vec<(Key, Option<NonZeroU64>)>,
}

impl Watch {
    /// The keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter().map(|(key, _)| key)
    }

    /// Whether a key was changed, or has expired, since it is watched.
    pub(crate) fn is_broken(&self, now_ms: u64) -> bool {
        let has_expired = |at: &Option<NonZeroU64>| at.is_some_and(|at| at.get() <= now_ms);
        self.changed.load(Ordering::SeqCst) || self.keys.iter().any(|(_, at)| has_expired(at))
    }
}

/// All keys that are watched.
#[derive(Default)]
pub(crate) struct Watchers {
    /// How many there are, so that writers need not look while there are none.
    count: AtomicUsize,
    keys: Mutex<HashMap<Key, Vec<Arc<AtomicBool>>>>,
}

impl Watchers {
    /// Begins to watch a key. The caller has a claim on it.
    pub(crate) fn add(&self, watch: &mut Watch, key: Key, expires_ms: Option<NonZeroU64>) {
        if watch.keys().any(|other| *other == key) {
            return;
        }
        self.lock().entry(key.clone()).or_default().push(Arc::clone(&watch.changed));
        self.count.fetch_add(1, Ordering::SeqCst);
        watch.keys.push((key, expires_ms));
    }

    /// Ends a watch.
    pub(crate) fn remove(&self, watch: Watch) {
        if watch.keys.is_empty() {
            return;
        }
        let mut keys = self.lock();
        for (key, _) in &watch.keys {
            if let Some(watchers) = keys.get_mut(key) {
                watchers.retain(|changed| !Arc::ptr_eq(changed, &watch.changed));
                if watchers.is_empty() {
                    keys.remove(key);
                }
            }
        }
        self.count.fetch_sub(watch.keys.len(), Ordering::SeqCst);
    }

    /// Tells those who watch these keys that they were changed. The caller still has his claim on them.
    pub(crate) fn touch<'a>(&self, touched: impl Iterator<Item = &'a Key>) {
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let keys = self.lock();
        for watchers in touched.filter_map(|key| keys.get(key)) {
            watchers.iter().for_each(|changed| changed.store(true, Ordering::SeqCst));
        }
    }

    /// The keys of a database that are watched.
    pub(crate) fn keys_of(&self, database: Database) -> Vec<Key> {
        self.lock().keys().filter(|key| key.database == database).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Vec<Arc<AtomicBool>>>> {
        self.keys.lock().expect("no code panics while it holds the keys")
    }
}
