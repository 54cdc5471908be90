//! Where scans go on: SCAN's cursors are numbers, and a database is in the order of its keys.

use std::collections::VecDeque;
use std::sync::Mutex;

use bytes::Bytes;

/// Bytes of keys that are remembered.
const MAX_BYTES: usize = 16 << 20;

/// Cursors that are remembered.
const MAX_CURSORS: usize = 65_536;

/// The places of the scans under way. The oldest is forgotten when there are too many.
pub(crate) struct ScanCursors(Mutex<State>);

struct State {
    next: u64,
    bytes: usize,
    /// Cursors in ascending order with the last key that each has given.
    places: VecDeque<(u64, Bytes)>,
}

impl ScanCursors {
    /// Cursors that an earlier process gave are told from its own by where they begin. They stay below 2^53: some clients keep numbers as
    /// doubles.
    pub(crate) fn new() -> ScanCursors {
        let next = fastrand::u64(1..1 << 52);
        ScanCursors(Mutex::new(State { next, bytes: 0, places: VecDeque::new() }))
    }

    /// The cursor of a scan that has come to a key.
    pub(crate) fn remember(&self, after: Bytes) -> u64 {
        let mut state = self.0.lock().expect("no code panics while it holds the cursors");
        let cursor = state.next;
        state.next += 1;
        state.bytes += after.len();
        state.places.push_back((cursor, after));
        while state.bytes > MAX_BYTES || state.places.len() > MAX_CURSORS {
            let (_, forgotten) = state.places.pop_front().expect("there are some");
            state.bytes -= forgotten.len();
        }
        cursor
    }

    /// The key after which a cursor's scan goes on.
    pub(crate) fn find(&self, cursor: u64) -> Option<Bytes> {
        let state = self.0.lock().expect("no code panics while it holds the cursors");
        let at = state.places.binary_search_by_key(&cursor, |(cursor, _)| *cursor).ok()?;
        Some(state.places[at].1.clone())
    }
}

#[cfg(test)]
mod tests;
