//! What runs note for compaction filters: from when on something in a block may go.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::filter::{FilterEntry, GuardedPass, Mark, TableFilter, guarded};
use crate::format::compression::decompress;
use crate::format::record::Kind;
use crate::format::run::marks::{Marks, NEVER};
use crate::index::chain::{Entry, VersionChain};
use crate::index::codec::{decode_key, table_of};
use crate::{Error, Sequence};

/// A compressed value that is longer than this is not shown to a filter.
const MAX_PLAIN_BYTES: usize = 64 << 10;

/// A file is written again for the sake of filters when one in so many of its entries is due, or all that have a time...
const DUE_SHARE: usize = 8;

/// ...or so long after the first.
const MAX_OVERDUE_MS: u64 = 24 * 60 * 60 * 1000;

/// The questions of flushes and merges to the store about filters, and what they tell it.
pub(crate) struct Filtering<'a> {
    /// The filter of a table.
    pub(crate) filter_of: &'a dyn Fn(u32) -> TableFilter,
    /// Whether filters may be asked what goes. They are not as long as the store is being opened: an index may be incomplete, and the time
    /// is not known. Marks are all that they say then.
    pub(crate) asks: bool,
    /// The store's time.
    pub(crate) now_ms: u64,
    /// Whether a file that is begun now may give up more.
    pub(crate) has_room: &'a dyn Fn() -> bool,
    /// Called with a table, a user's key of it, and the sequence of the put that is given up.
    pub(crate) dropped: &'a dyn Fn(u32, &[u8], u64),
    /// Called with the number of entries that a filter was asked about.
    pub(crate) asked: &'a dyn Fn(usize),
    /// Called with the panic of a filter.
    pub(crate) failed: &'a dyn Fn(&Error),
}

/// What a file notes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryMark {
    /// The time from which on a filter may give it up.
    pub(super) mark: u64,
    /// The time at which it is to be asked, for who opens the file later...
    pub(super) due_ms: u64,
    /// ...and for this process, which has asked already where the two differ.
    pub(super) next_due_ms: u64,
}

impl Default for EntryMark {
    fn default() -> EntryMark {
        EntryMark::NEVER
    }
}

impl EntryMark {
    pub(super) const NEVER: EntryMark = EntryMark { mark: NEVER, due_ms: NEVER, next_due_ms: NEVER };

    /// No filter has said anything.
    const UNKNOWN: EntryMark = EntryMark { mark: 0, due_ms: 0, next_due_ms: NEVER };

    fn new(mark: Mark) -> EntryMark {
        match mark {
            Mark::Never => EntryMark::NEVER,
            Mark::From(time_ms) => EntryMark { mark: time_ms, due_ms: time_ms, next_due_ms: time_ms },
            Mark::Always => EntryMark { mark: 0, ..EntryMark::NEVER },
        }
    }

    /// What is known of an entry by the mark of its block, and what is due in its file.
    pub(super) fn carried(mark: u64, due_ms: u64) -> EntryMark {
        let due_ms = due_ms.max(mark);
        EntryMark { mark, due_ms, next_due_ms: due_ms }
    }

    /// The earliest of each.
    pub(super) fn least(self, other: EntryMark) -> EntryMark {
        EntryMark {
            mark: self.mark.min(other.mark),
            due_ms: self.due_ms.min(other.due_ms),
            next_due_ms: self.next_due_ms.min(other.next_due_ms),
        }
    }

    /// The mark of an entry of which a filter has been asked, or cannot be, until the store is opened again.
    pub(super) fn asked(self) -> EntryMark {
        EntryMark { next_due_ms: NEVER, ..self }
    }
}

/// The time from which on a file of so many entries, or blocks, is worth writing again for the sake of those that are due at these times: so
/// what is written for a record that may go is bounded, however far the times of a file lie apart.
pub(super) fn worth_asking_ms(mut due_ms: Vec<u64>, all: usize) -> u64 {
    let Some(first_ms) = due_ms.iter().min().copied() else { return NEVER };
    let enough = all.div_ceil(DUE_SHARE).clamp(1, due_ms.len());
    let (_, enough_ms, _) = due_ms.select_nth_unstable(enough - 1);
    (*enough_ms).min(first_ms.saturating_add(MAX_OVERDUE_MS))
}

/// The same of a file that is opened.
pub(super) fn opened_worth_asking_ms(marks: &Marks) -> u64 {
    let due_ms = marks.blocks.iter().filter(|mark| **mark != NEVER).map(|mark| marks.due_ms.max(*mark));
    worth_asking_ms(due_ms.filter(|due_ms| *due_ms != NEVER).collect(), marks.blocks.len())
}

/// The mark of a key that comes into a run for the first time. A filter that panics is not asked again.
pub(super) fn mark_of(
    filter: &mut TableFilter,
    key: &[u8],
    chain: &VersionChain,
    failed: &dyn Fn(&Error),
) -> EntryMark {
    let Some((user_key, entry)) = only_put(key, chain) else { return EntryMark::NEVER };
    let marked = match filter {
        TableFilter::None => return EntryMark::NEVER,
        TableFilter::Unregistered => return EntryMark::UNKNOWN,
        TableFilter::Registered(name, filter) => {
            let value = plain_value(entry);
            guarded(name, || filter.mark(&seen(user_key, entry, value.as_deref())))
        }
    };
    marked.map_or_else(
        |error| {
            failed(&error);
            *filter = TableFilter::Unregistered;
            EntryMark::UNKNOWN
        },
        EntryMark::new,
    )
}

/// The user's key and the put that a filter may be asked about, if there is nothing else of the key here. Where the chain is partial, an older run may
/// have operands that are newer: then it is not asked yet.
pub(super) fn only_put<'a>(key: &'a [u8], chain: &'a VersionChain) -> Option<(&'a [u8], &'a Entry)> {
    let [entry] = chain.entries() else { return None };
    let (_, user_key) = decode_key(key)?;
    (entry.kind == Kind::Put).then_some((user_key, entry))
}

/// An entry as its filter sees it.
pub(super) fn seen<'a>(user_key: &'a [u8], entry: &Entry, value: Option<&'a [u8]>) -> FilterEntry<'a> {
    FilterEntry::new(user_key, value, entry.location.length, Sequence(entry.sequence))
}

/// The value of an entry as its user knows it, if the index has it.
pub(super) fn plain_value(entry: &Entry) -> Option<Arc<[u8]>> {
    let value = entry.inline.as_ref()?;
    if entry.form.compressed { decompress(value, MAX_PLAIN_BYTES).ok().map(Arc::from) } else { Some(Arc::clone(value)) }
}

/// The filter of the table that a flush or a merge has come to.
pub(super) struct Marker<'a> {
    pub(super) filtering: &'a Filtering<'a>,
    pub(super) table: u32,
    pub(super) filter: TableFilter,
}

impl<'a> Marker<'a> {
    pub(super) fn new(filtering: &'a Filtering<'a>) -> Marker<'a> {
        // No table has this id.
        Marker { filtering, table: 0, filter: TableFilter::None }
    }

    /// Takes the filter of a table.
    pub(super) fn come_to(&mut self, table: u32) {
        if self.table != table {
            (self.table, self.filter) = (table, (self.filtering.filter_of)(table));
        }
    }

    /// See [`mark_of`].
    pub(super) fn mark(&mut self, key: &[u8], chain: &VersionChain) -> EntryMark {
        self.come_to(table_of(key));
        self.mark_here(key, chain)
    }

    /// See [`mark_of`], of a key of the table that it has come to.
    pub(super) fn mark_here(&mut self, key: &[u8], chain: &VersionChain) -> EntryMark {
        mark_of(&mut self.filter, key, chain, self.filtering.failed)
    }
}

/// What filters know of a merge, from step to step.
pub(super) struct Passes {
    /// The time of the merge.
    pub(super) now_ms: u64,
    /// A pass through a table. It has begun at the first block where something may go; `None` in its place after a panic.
    pub(super) pass: Option<(u32, Option<GuardedPass>)>,
}

impl Passes {
    pub(super) fn new(now_ms: u64) -> Passes {
        Passes { now_ms, pass: None }
    }
}

/// Those of the merges that were begun, by the numbers of their oldest runs.
pub(super) type BegunPasses = BTreeMap<u64, Passes>;
