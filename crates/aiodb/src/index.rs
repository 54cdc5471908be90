//! From a key to the place of its value.
//!
//! An index is the volatile or lagging half of the store: the log alone is the truth, and every index can be made
//! again from it. Both kinds answer a look-up with candidates, newest first, which the reader checks against the
//! record; only `hash` ever has more than one.

pub mod hash;
pub(crate) mod lmdb;
pub(crate) mod tail;

use smallvec::SmallVec;

/// A place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The segment's number, which is also its file's name.
    pub segment: u32,
    /// Bytes from the segment's start; a multiple of 16.
    pub offset: u32,
    /// Bytes to read. Exact in `lmdb` tables; in `hash` tables the upper bound of a size class.
    pub length: u32,
}

impl Location {
    /// Whether both name the same place; lengths may be exact in one and a bound in the other.
    pub(crate) fn same_place(&self, other: Location) -> bool {
        self.segment == other.segment && self.offset == other.offset
    }
}

/// What a look-up found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) location: Location,
    /// For a separate value its checksum: the index vouches for the key, and the location holds the value alone.
    pub(crate) separate: Option<u32>,
    /// The separate value is a list of chunks (for a whole record, its own flags say so).
    pub(crate) chunked: bool,
    /// The index has compared the whole key: a record of another key at this place is damage.
    pub(crate) exact: bool,
}

/// Candidates for one key, newest first.
pub(crate) type Candidates = SmallVec<[Candidate; 4]>;
