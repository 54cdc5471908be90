//! From a key to the place of its value.
//!
//! An index is the volatile or lagging half of the store: the log alone is the truth, and every index can be made
//! again from it. Both kinds answer a look-up with candidates, newest first, which the reader checks against the
//! record: the operands and the base of a merged key, and in `hash` the records of other keys with the same tag.

pub mod hash;
pub(crate) mod lmdb;
mod pace;
pub(crate) mod ranges;
pub(crate) mod stack;
pub(crate) mod tail;

use smallvec::SmallVec;
use stack::Entry;

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
    /// What an ordered index says of the record. It has compared the whole key, so a record of another key at this place
    /// is damage; a hash index says nothing but the place.
    pub(crate) known: Option<Entry>,
}

impl Candidate {
    /// Whether the index knows that it is an operand.
    pub(crate) fn is_operand(&self) -> bool {
        self.known.is_some_and(|entry| !entry.is_base())
    }
}

/// Candidates for one key, newest first.
pub(crate) type Candidates = SmallVec<[Candidate; 4]>;
