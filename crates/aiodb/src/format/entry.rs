//! What ordered indexes store of records.

use crate::format::location::Location;
use crate::format::record::{Form, Kind};

/// One record of a key: a put, a delete or a merge operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) sequence: u64,
    pub(crate) location: Location,
    /// For a separate value its checksum.
    pub(crate) separate: Option<u32>,
    pub(crate) form: Form,
}

/// A range of index keys, in which records older than the sequence do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RangeTombstone {
    /// The first key, with its table.
    pub(crate) start: Box<[u8]>,
    /// The first key that is spared, with the same table or the next one.
    pub(crate) end: Box<[u8]>,
    pub(crate) sequence: u64,
}
