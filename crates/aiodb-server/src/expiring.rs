//! From when on a database has collections that expire, so that nothing is read to find that none has expired.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// A time before which no collection of a database expires. It is known from searches, of which one goes on at a time, and from the
/// writes since. At first nothing is known.
#[derive(Default)]
pub(crate) struct Expiring(Mutex<Known>);

#[derive(Default)]
struct Known {
    /// No row of a collection that expires has a time before this one, in milliseconds since 1970, nor will a write that is under way
    /// bring one.
    first_ms: u64,
    /// The times that writes under way bring, and how many bring each.
    under_way: BTreeMap<u64, usize>,
    /// The least time of the writes that the search may have missed: those that were under way when it began, or have begun since.
    missed_ms: u64,
}

impl Expiring {
    /// No collection expires before this time.
    pub(crate) fn first_ms(&self) -> u64 {
        self.known().first_ms
    }

    /// A write begins after which a collection expires at this time.
    pub(crate) fn write_begins(&self, at_ms: u64) {
        let mut known = self.known();
        known.first_ms = known.first_ms.min(at_ms);
        known.missed_ms = known.missed_ms.min(at_ms);
        *known.under_way.entry(at_ms).or_default() += 1;
    }

    /// Such a write is there, or was refused. One that nobody waits for any more counts as under way from then on.
    pub(crate) fn write_ends(&self, at_ms: u64) {
        let mut known = self.known();
        if let Some(count) = known.under_way.get_mut(&at_ms) {
            *count -= 1;
            if *count == 0 {
                known.under_way.remove(&at_ms);
            }
        }
    }

    /// A search for the first time begins, at the time that is returned.
    pub(crate) fn search_begins(&self) -> u64 {
        let mut known = self.known();
        known.missed_ms = known.under_way.first_key_value().map_or(u64::MAX, |(at_ms, _)| *at_ms);
        known.first_ms
    }

    /// The search has found the first time; `None` if nothing expires.
    pub(crate) fn search_ends(&self, found_ms: Option<u64>) {
        let mut known = self.known();
        known.first_ms = found_ms.unwrap_or(u64::MAX).min(known.missed_ms);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().expect("no code panics while it holds the times")
    }
}

#[cfg(test)]
mod tests;
