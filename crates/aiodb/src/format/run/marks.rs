//! Marks: for each block of a file the earliest time from which on a compaction filter may give up something in it.

use crate::format::varint::{put_varint, take_varint};

/// The mark of what no filter gives up. What may go at any time has 0.
pub(crate) const NEVER: u64 = u64::MAX;

/// The marks of a file's blocks, as they are in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The earliest time for which a filter is to be asked. Later than that of a block where it was asked, and has kept what is there.
    pub(crate) due_ms: u64,
    /// For each block.
    pub(crate) blocks: Vec<u64>,
}

impl Marks {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        std::iter::once(&self.due_ms).chain(&self.blocks).for_each(|mark| put_varint(&mut out, mark.wrapping_add(1)));
        out
    }

    /// The marks of so many blocks in these bytes; `None` where they are malformed.
    pub(crate) fn decode(mut bytes: &[u8], blocks: usize) -> Option<Marks> {
        let mut take = || take_varint(&mut bytes).map(|mark| mark.wrapping_sub(1));
        let due_ms = take()?;
        let marks = Marks { due_ms, blocks: (0..blocks).map(|_| take()).collect::<Option<_>>()? };
        bytes.is_empty().then_some(marks)
    }

    /// Bytes that this takes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::{Marks, NEVER};

    #[test]
    fn marks_come_back_and_what_is_not_theirs_is_refused() {
        let marks = Marks { due_ms: 7, blocks: vec![0, 1, NEVER, 1_700_000_000_000, NEVER - 1] };
        let bytes = marks.encode();
        assert_eq!(Marks::decode(&bytes, 5), Some(marks));
        assert_eq!(Marks::decode(&bytes, 4), None);
        assert_eq!(Marks::decode(&bytes, 6), None);
        assert_eq!(Marks::decode(&bytes[..bytes.len() - 1], 5), None);
        assert_eq!(bytes[3], 0, "a block without anything for a filter takes a byte");
    }
}
