//! The ordered indexes of a store.

use std::sync::OnceLock;

use super::OrderedIndex;
use crate::IndexKind;

/// At most one index of each ordered kind, opened with the first table of that kind.
#[derive(Default)]
pub(crate) struct OrderedIndexes {
    lmdb: OnceLock<OrderedIndex>,
}

impl OrderedIndexes {
    /// The index of a kind; `None` if no table of that kind was there yet.
    pub(crate) fn get(&self, kind: IndexKind) -> Option<&OrderedIndex> {
        self.place(kind)?.get()
    }

    /// Those that are open.
    pub(crate) fn open(&self) -> impl Iterator<Item = &OrderedIndex> {
        [&self.lmdb].into_iter().filter_map(|place| place.get())
    }

    /// Sets the index of its kind. False if another one was there.
    pub(crate) fn set(&self, index: OrderedIndex) -> bool {
        self.place(index.kind()).expect("its kind is ordered").set(index).is_ok()
    }

    fn place(&self, kind: IndexKind) -> Option<&OnceLock<OrderedIndex>> {
        match kind {
            IndexKind::Lmdb => Some(&self.lmdb),
            IndexKind::Hash => None,
        }
    }
}
