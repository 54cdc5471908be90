//! Files of which filters are to be asked though no merge comes by: they are written again.

use super::filtering::Filtering;
use super::set::Piece;
use super::steps::places;
use super::{RunContext, Runs};
use crate::Result;
use crate::filter::TableFilter;
use crate::index::codec::table_of;
use crate::io::Device;

/// A file is written again where the disk has room for so many of its length: nothing is freed for that.
const FILES_OF_ROOM: u64 = 2;

/// Where the keys of a file lie so many tables apart, one of them counts as one with a filter.
const MANY_TABLES: u32 = 64;

impl<D: Device> Runs<D> {
    /// A bounded part of asking filters about what may go since a merge came by: writes the file again that is due for longest. So all have
    /// their turn: what is due in a file once it was written is due later. False if there is nothing to ask, or no room.
    pub(crate) fn filter_step(&self, context: &RunContext<'_>) -> Result<bool> {
        let may_ask = |filtering: &&Filtering<'_>| filtering.asks && (filtering.has_room)();
        let Some(filtering) = context.filtering.filter(may_ask) else { return Ok(false) };
        let _turn = self.turns.lock_alone();
        let set = self.set()?;
        let oldest_snapshot = context.snapshots.oldest().0;
        let is_due = |piece: Piece<'_, D>| {
            let file = piece.file;
            let is_visible = file.footer.largest_sequence <= oldest_snapshot;
            file.next_due_ms() <= filtering.now_ms
                && is_visible
                && !file.is_unreadable()
                && has_filter(piece, filtering)
        };
        let mut due: Vec<_> = places(&set).filter(|place| is_due(place.piece(&set))).collect();
        if due.is_empty() {
            return Ok(false);
        }
        let most_bytes = self.free_bytes() / FILES_OF_ROOM;
        due.retain(|place| place.piece(&set).file.bytes() <= most_bytes);
        let first = due.into_iter().min_by_key(|place| place.piece(&set).file.next_due_ms());
        let Some(place) = first else { return Ok(false) };
        self.rewrite(&set, place, None, context)?;
        Ok(true)
    }
}

/// Whether there may be keys of a table whose filter is registered.
fn has_filter<D: Device>(piece: Piece<'_, D>, filtering: &Filtering<'_>) -> bool {
    let footer = &piece.file.footer;
    let (first, last) = (table_of(&footer.smallest_key), table_of(&footer.largest_key));
    let is_registered = |table| matches!((filtering.filter_of)(table), TableFilter::Registered(..));
    last - first >= MANY_TABLES || (first..=last).any(is_registered)
}
