//! Clients that wait for elements of collections: who waits at which key, in the order in which they came.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;

use crate::collection::Kind;
use crate::locks::Key;
use crate::refusal::{Refusal, words};
use crate::score::parse_score;

/// All clients that wait.
#[derive(Default)]
pub(crate) struct Waiters {
    /// How many clients there are, so that writers need not look while there are none.
    count: AtomicUsize,
    queues: Mutex<HashMap<Key, VecDeque<Arc<Waiter>>>>,
}

/// A client in the queues of its keys. It waits for collections of one kind: those who wait for others stand in no one's way.
pub(crate) struct Waiter {
    kind: Kind,
    woken: Notify,
}

/// The client that came first of those who wait for a kind.
fn first(queue: &VecDeque<Arc<Waiter>>, kind: Kind) -> Option<&Arc<Waiter>> {
    queue.iter().find(|waiter| waiter.kind == kind)
}

impl Waiter {
    /// Returns when a key at which the client is the first one may have something. One task waits at a time.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }
}

impl Waiters {
    /// Puts a client at the end of the queues of some keys, which may name one more than once.
    pub(crate) fn add(&self, keys: &[Key], kind: Kind) -> Arc<Waiter> {
        let waiter = Arc::new(Waiter { kind, woken: Notify::new() });
        let mut queues = self.lock();
        for key in keys {
            let queue = queues.entry(key.clone()).or_default();
            if queue.back().is_none_or(|last| !Arc::ptr_eq(last, &waiter)) {
                queue.push_back(Arc::clone(&waiter));
            }
        }
        self.count.fetch_add(usize::from(!keys.is_empty()), Ordering::SeqCst);
        waiter
    }

    /// Takes a client out of the queues of its keys, if it is there still. Those who come next look whether it has left something.
    pub(crate) fn remove(&self, keys: &[Key], waiter: &Arc<Waiter>) {
        let mut queues = self.lock();
        let mut was_there = false;
        for key in keys {
            let Some(queue) = queues.get_mut(key) else { continue };
            let Some(at) = queue.iter().position(|other| Arc::ptr_eq(other, waiter)) else { continue };
            queue.remove(at);
            was_there = true;
            if let Some(next) = first(queue, waiter.kind) {
                next.woken.notify_one();
            }
            if queue.is_empty() {
                queues.remove(key);
            }
        }
        self.count.fetch_sub(usize::from(was_there), Ordering::SeqCst);
    }

    /// Whether nobody has waited longer than this client for what it waits for at a key.
    pub(crate) fn is_first(&self, key: &Key, waiter: &Arc<Waiter>) -> bool {
        let queues = self.lock();
        let first = queues.get(key).and_then(|queue| first(queue, waiter.kind));
        first.is_none_or(|first| Arc::ptr_eq(first, waiter))
    }

    /// Wakes those who wait at keys that were changed.
    pub(crate) fn wake<'a>(&self, touched: impl Iterator<Item = &'a Key>) {
        if self.count() == 0 {
            return;
        }
        let queues = self.lock();
        for queue in touched.filter_map(|key| queues.get(key)) {
            Kind::ALL.into_iter().filter_map(|kind| first(queue, kind)).for_each(|first| first.woken.notify_one());
        }
    }

    /// How many clients wait.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, VecDeque<Arc<Waiter>>>> {
        self.queues.lock().expect("no code panics while it holds the queues")
    }
}

/// How long a client waits at most that gives this number of seconds; `None` for 0, which is for ever.
pub(crate) fn parse_timeout(seconds: &Bytes, now_ms: u64) -> Result<Option<Duration>, Refusal> {
    let seconds = parse_score(seconds).ok_or(words("ERR timeout is not a float or out of range"))?;
    let ms = (seconds * 1000.0).ceil();
    // What is no integer of 64 bits comes out below zero in Redis, too.
    if ms < 0.0 || ms >= i64::MAX as f64 {
        return Err(words("ERR timeout is negative"));
    }
    let ms = ms as u64;
    if ms > i64::MAX as u64 - now_ms {
        return Err(words("ERR timeout is out of range"));
    }
    Ok((ms > 0).then(|| Duration::from_millis(ms)))
}

#[cfg(test)]
mod tests;
