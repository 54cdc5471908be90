//! From a key to the place of its value.
//!
//! An index is the volatile or lagging half of the store: the log alone is the truth, and every index can be made
//! again from it. Both kinds answer a look-up with candidates, newest first, which the reader checks against the
//! record: the operands and the base of a merged key, and in `hash` the records of other keys with the same tag.
//!
//! The room of indexes. It owns both kinds, versions for snapshots and range tombstones, and tells which entries a new record
//! superseded. It promises that its durable state lags the durable log, and says up to which position. It never reads a record of
//! the log.

pub(crate) mod accounting;
pub(crate) mod chain;
pub(crate) mod codec;
pub mod hash;
pub(crate) mod lmdb;
pub(crate) mod memtable;
pub(crate) mod ordered;
pub(crate) mod range_tombstones;
pub(crate) mod runs;
pub(crate) mod snapshots;
pub(crate) mod throttle;
pub(crate) mod versions;

pub use crate::format::location::Location;
use chain::Entry;
use smallvec::SmallVec;

/// A place that a look-up found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) location: Location,
    /// The entry of an ordered index. It has compared the whole key, so a record of another key at this place
    /// is damage; a hash index knows nothing but the place.
    pub(crate) known: Option<Entry>,
}

impl Candidate {
    /// Whether the index has its value.
    pub(crate) fn is_inline(&self) -> bool {
        self.known.as_ref().is_some_and(|entry| entry.inline.is_some())
    }

    /// Bytes of the value that the index has, 0 without one.
    pub(crate) fn inline_bytes(&self) -> usize {
        self.known.as_ref().and_then(|entry| entry.inline.as_ref()).map_or(0, |value| value.len())
    }

    /// Whether the index knows that it is an operand.
    pub(crate) fn is_operand(&self) -> bool {
        self.known.as_ref().is_some_and(|entry| !entry.is_base())
    }
}

/// Candidates for one key, newest first.
pub(crate) type Candidates = SmallVec<[Candidate; 4]>;
