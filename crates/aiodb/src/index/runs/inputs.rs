//! The cursors of a merge or of a scan in the order of their next keys.

use super::ahead::WindowsAhead;
use super::cursor::RunCursor;
use super::set::RunSet;
use crate::Result;
use crate::io::Device;

/// Cursors at their next keys.
#[derive(Default)]
pub(super) struct Inputs {
    /// Newest first.
    cursors: Vec<RunCursor>,
    /// The numbers of the cursors that have a key: that with the next key is last and, of those with one key, the newest.
    order: Vec<usize>,
    backward: bool,
    visited_bytes: u64,
}

impl Inputs {
    /// Of cursors, newest first, which all go in this direction.
    pub(super) fn new(cursors: Vec<RunCursor>, backward: bool) -> Inputs {
        let mut order: Vec<_> = (0..cursors.len()).filter(|number| cursors[*number].key().is_some()).collect();
        order.sort_by(|one, other| later_first(&cursors, backward, *one, *other));
        let visited_bytes = cursors.iter().map(RunCursor::visited_bytes).sum();
        Inputs { cursors, order, backward, visited_bytes }
    }

    /// The next key, which is the least one or, backward, the greatest; `None` at the end.
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.cursors[*self.order.last()?].key()
    }

    /// The newest cursor that is at this key, which is the next one. It has to go on then.
    pub(super) fn at(&mut self, key: &[u8]) -> Option<&mut RunCursor> {
        let number = *self.order.last()?;
        Some(&mut self.cursors[number]).filter(|cursor| cursor.key() == Some(key))
    }

    /// Has the cursor with the next key go on.
    pub(super) fn advance<D: Device>(&mut self, set: &RunSet<D>, ahead: Option<&mut WindowsAhead<D>>) -> Result<()> {
        let Some(number) = self.order.pop() else { return Ok(()) };
        let cursor = &mut self.cursors[number];
        let before = cursor.visited_bytes();
        cursor.advance_with(set, ahead)?;
        self.visited_bytes += cursor.visited_bytes() - before;
        if cursor.key().is_some() {
            let comes_later = |other: &usize| later_first(&self.cursors, self.backward, *other, number).is_lt();
            let at = self.order.partition_point(comes_later);
            self.order.insert(at, number);
        }
        Ok(())
    }

    /// Asks the cache for no more blocks.
    pub(super) fn leave_cache(&mut self) {
        self.cursors.iter_mut().for_each(RunCursor::leave_cache);
    }

    /// Whether some cursor has come so far that reading ahead is worth it.
    pub(super) fn read_long(&self) -> bool {
        self.cursors.iter().any(RunCursor::reads_long)
    }

    /// Bytes of the blocks that were taken in.
    pub(super) fn visited_bytes(&self) -> u64 {
        self.visited_bytes
    }
}

/// The order of two cursors that have a key: that whose turn comes later is less.
fn later_first(cursors: &[RunCursor], backward: bool, one: usize, other: usize) -> std::cmp::Ordering {
    let (one_key, other_key) = (cursors[one].key(), cursors[other].key());
    let keys = if backward { one_key.cmp(&other_key) } else { other_key.cmp(&one_key) };
    keys.then_with(|| other.cmp(&one))
}
