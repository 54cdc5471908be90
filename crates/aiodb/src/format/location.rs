//! Where a record lies in the log.

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
