//! The ordered indexes of a store.

use std::sync::OnceLock;

use super::OrderedIndex;
use crate::IndexKind;
use crate::io::Device;

/// At most one index of each ordered kind, opened with the first table of that kind.
pub(crate) struct OrderedIndexes<D: Device> {
    lmdb: OnceLock<OrderedIndex<D>>,
    lsm: OnceLock<OrderedIndex<D>>,
}

impl<D: Device> Default for OrderedIndexes<D> {
    fn default() -> OrderedIndexes<D> {
        OrderedIndexes { lmdb: OnceLock::new(), lsm: OnceLock::new() }
    }
}

impl<D: Device> OrderedIndexes<D> {
    /// The index of a kind; `None` if no table of that kind was there yet.
    pub(crate) fn get(&self, kind: IndexKind) -> Option<&OrderedIndex<D>> {
        self.place(kind)?.get()
    }

    /// Those that are open.
    pub(crate) fn open(&self) -> impl Iterator<Item = &OrderedIndex<D>> {
        [&self.lmdb, &self.lsm].into_iter().filter_map(|place| place.get())
    }

    /// Sets the index of its kind. False if another one was there.
    pub(crate) fn set(&self, index: OrderedIndex<D>) -> bool {
        self.place(index.kind()).expect("its kind is ordered").set(index).is_ok()
    }

    fn place(&self, kind: IndexKind) -> Option<&OnceLock<OrderedIndex<D>>> {
        match kind {
            IndexKind::Lmdb => Some(&self.lmdb),
            IndexKind::Lsm => Some(&self.lsm),
            IndexKind::Hash => None,
        }
    }
}
