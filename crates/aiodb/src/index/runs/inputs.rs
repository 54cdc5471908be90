//! The inputs of a merge in the order of their next keys.

use std::cmp::Reverse;

use super::cursor::RunCursor;
use super::set::RunSet;
use crate::Result;
use crate::io::Device;

/// Cursors at their next keys.
pub(super) struct Inputs {
    /// Newest first.
    cursors: Vec<RunCursor>,
    /// The numbers of the cursors that have a key: that with the least key is last and, of those with one key, the newest.
    order: Vec<usize>,
    visited_bytes: u64,
}

impl Inputs {
    /// Of cursors, newest first.
    pub(super) fn new(cursors: Vec<RunCursor>) -> Inputs {
        let mut order: Vec<_> = (0..cursors.len()).filter(|number| cursors[*number].key().is_some()).collect();
        order.sort_by_key(|number| Reverse((cursors[*number].key(), *number)));
        let visited_bytes = cursors.iter().map(RunCursor::visited_bytes).sum();
        Inputs { cursors, order, visited_bytes }
    }

    /// The least key; `None` at the end.
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.cursors[*self.order.last()?].key()
    }

    /// The newest cursor that is at this key, which is the least one. It has to go on then.
    pub(super) fn at(&mut self, key: &[u8]) -> Option<&mut RunCursor> {
        let number = *self.order.last()?;
        Some(&mut self.cursors[number]).filter(|cursor| cursor.key() == Some(key))
    }

    /// Has the cursor with the least key go on.
    pub(super) fn advance<D: Device>(&mut self, set: &RunSet<D>) -> Result<()> {
        let Some(number) = self.order.pop() else { return Ok(()) };
        let cursor = &mut self.cursors[number];
        let before = cursor.visited_bytes();
        cursor.advance(set)?;
        self.visited_bytes += cursor.visited_bytes() - before;
        if let Some(key) = self.cursors[number].key() {
            let key = (key, number);
            let is_later = |other: &usize| (self.cursors[*other].key().unwrap_or_default(), *other) > key;
            let at = self.order.partition_point(is_later);
            self.order.insert(at, number);
        }
        Ok(())
    }

    /// Bytes of the blocks that were taken in.
    pub(super) fn visited_bytes(&self) -> u64 {
        self.visited_bytes
    }
}
