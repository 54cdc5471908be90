//! What ordered indexes store of records.

use std::sync::Arc;

use crate::format::location::Location;
use crate::format::record::{Form, Kind};

/// One record of a key: a put, a delete or a merge operand.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) sequence: u64,
    pub(crate) location: Location,
    /// For a separate value its checksum.
    pub(crate) separate: Option<u32>,
    pub(crate) form: Form,
    /// The value of a put or an operand, as its record has it, where that is short enough for the table. What is at a place never
    /// changes: an entry with these bytes and one without say the same, and are equal.
    pub(crate) inline: Option<Arc<[u8]>>,
}

impl Entry {
    /// The same without its inline value, for who needs to know the place only.
    pub(crate) fn without_value(&self) -> Entry {
        let Entry { kind, sequence, location, separate, form, .. } = *self;
        Entry { kind, sequence, location, separate, form, inline: None }
    }

    /// Bytes of its inline value.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.inline.as_ref().map_or(0, |value| value.len())
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        let parts = |entry: &Entry| (entry.kind, entry.sequence, entry.location, entry.separate, entry.form);
        parts(self) == parts(other)
    }
}

impl Eq for Entry {}

/// A range of index keys, in which records older than the sequence do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeTombstone {
    /// The first key, with its table.
    pub(crate) start: Box<[u8]>,
    /// The first key that is spared, with the same table or the next one.
    pub(crate) end: Box<[u8]>,
    pub(crate) sequence: u64,
}
