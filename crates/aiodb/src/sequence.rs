//! The order of writes as users see it, and waiting until their writes are durable.

use std::fmt;

/// The place of a write in the one order of all writes of a store. Later writes have greater sequences, also after the
/// store was closed and opened again; the sequence of a batch is that of its last operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sequence(pub(crate) u64);

impl Sequence {
    /// The sequence as a number: the first record of a store has 1, and the default, 0, comes before all.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
