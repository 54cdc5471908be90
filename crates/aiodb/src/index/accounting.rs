//! What the committed part of an ordered index asks of the log, and what it tells: which entries died, and what its entries count.

use std::collections::BTreeMap;

use super::chain::Entry;
use super::codec::decode_key;
use crate::format::place::Counting;

/// Changes of live bytes and live records, by segment.
pub(crate) type LiveChanges = BTreeMap<u32, (i64, i64)>;

/// Bytes of chunks in one life of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkBytes {
    pub(crate) segment: u32,
    pub(crate) life: u64,
    pub(crate) bytes: i64,
}

/// The questions of a commit to the log, and its answers.
pub(crate) struct Accounting<'a> {
    /// The chunks that a chunked entry names; none if its list cannot be read.
    pub(crate) chunks_of: &'a dyn Fn(&Entry) -> Vec<ChunkBytes>,
    /// Called with a table and what runs name more of its chunks, or less, than before a merge, once that is committed.
    pub(crate) named: &'a dyn Fn(u32, ChunkBytes),
    /// Called with each entry that died, its table and the bytes that it counted, once that is committed.
    pub(crate) died: &'a dyn Fn(u32, &Entry, i64),
    /// Called with each index key that has many operands, and how many, once that is committed.
    pub(crate) piled_up: &'a dyn Fn(&[u8], usize),
    /// Whether a table is gone: its keys in the memtable take no room in the index.
    pub(crate) is_gone: &'a dyn Fn(u32) -> bool,
    /// How live bytes are counted.
    pub(crate) counting: Counting,
}

impl Accounting<'_> {
    /// Bytes of its segment that an entry under this index key counts. The value under a key that is not stored whole is never separate.
    pub(crate) fn bytes_of(&self, key: &[u8], entry: &Entry) -> i64 {
        self.counting.bytes_of(entry, decode_key(key).map_or(0, |(_, key)| key.len()))
    }
}

impl Accounting<'_> {
    /// Ignores all.
    pub(crate) const NONE: Accounting<'static> = Accounting {
        chunks_of: &|_| Vec::new(),
        named: &|_, _| (),
        died: &|_, _, _| (),
        piled_up: &|_, _| (),
        is_gone: &|_| false,
        counting: Counting::ByLength,
    };
}
