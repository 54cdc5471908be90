//! The bytes of a script, as they are taken for operations.

use std::time::Duration;

use super::model::KEYS;
use crate::config::MergePolicy;
use crate::merge::Append;
use crate::{Compression, Durability, IndexKind, MAX_INLINE_BYTES, MergeOperators, Options, TableOptions};

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum End {
    Closed,
    Killed,
    PowerCut,
}

/// Hands out the bytes of a script; after its end there are only zeros.
pub(super) struct Script<'a> {
    bytes: &'a [u8],
}

/// What a script says of its store, before the operations.
pub(super) struct Settings {
    pub(super) options: Options,
    pub(super) block_bytes: usize,
    /// Whether there is an `lmdb` table. Its file lies in a real directory, which takes time.
    pub(super) has_lmdb: bool,
    /// Of tables of kind `lsm`.
    pub(super) inline_bytes: usize,
    pub(super) block_compression: Compression,
    /// Of values.
    pub(super) compression: Compression,
}

impl Settings {
    pub(super) fn table_options(&self, kind: IndexKind) -> TableOptions {
        let (compression, merge) = (self.compression, Some("append".into()));
        match kind {
            IndexKind::Lsm => {
                let (inline_bytes, block_compression) = (self.inline_bytes, self.block_compression);
                TableOptions { compression, merge, inline_bytes, block_compression, ..kind.into() }
            }
            _ => TableOptions { compression, merge, ..kind.into() },
        }
    }
}

impl<'a> Script<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Script<'a> {
        Script { bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        *first
    }

    /// Takes the bytes that stand before the operations.
    pub(super) fn settings(&mut self) -> Settings {
        let (hash, runs, tables) = (self.byte(), self.byte(), self.byte());
        let options = Options {
            segment_bytes: 64 << 10,
            background: false,
            merge_operators: MergeOperators::default().with(Append),
            // Few hash bits make keys share tags.
            hash_mask: if hash & 1 == 0 { u64::MAX } else { !0 << 61 },
            // Keys come to files as soon as they may.
            hash_bytes: (hash & 4 != 0).then_some(0),
            // Superseded records that snapshots need come to files.
            versions_in_memory: if hash & 8 == 0 { 2 } else { Options::default().versions_in_memory },
            cache_bytes: if hash & 16 == 0 { 0 } else { 64 << 10 },
            cache_writes: hash & 32 != 0,
            memtable_keys: [2, 4, 9, usize::MAX][usize::from(runs & 3)],
            merge_policy: MergePolicy {
                fan_out: 2 + usize::from(runs >> 2 & 1),
                oldest_ratio: 1 + u64::from(runs >> 3 & 3),
            },
            ..Options::default()
        };
        Settings {
            options,
            block_bytes: if hash & 2 == 0 { 512 } else { 4096 },
            has_lmdb: tables & 3 == 3,
            inline_bytes: [0, 1, 60, MAX_INLINE_BYTES][usize::from(tables >> 2 & 3)],
            block_compression: [Compression::None, Compression::Lz4, Compression::Zstd(1)]
                [usize::from(tables >> 4 & 3) % 3],
            compression: if tables & 64 == 0 { Compression::None } else { Compression::Lz4 },
        }
    }

    pub(super) fn key(&mut self) -> u8 {
        self.byte() % KEYS
    }

    /// A value that its length and first byte make different from most others.
    pub(super) fn value(&mut self) -> Vec<u8> {
        let (size, fill) = (self.byte(), self.byte());
        let length = match size {
            0..80 => usize::from(size),
            80..200 => usize::from(size) * 3,
            200..240 => usize::from(size) * 20,
            // Too long to be stored in one piece.
            _ => usize::from(size) * 100,
        };
        (0..length).map(|position| fill.wrapping_add((position % 251) as u8)).collect()
    }

    pub(super) fn operand(&mut self) -> Vec<u8> {
        let (size, fill) = (self.byte(), self.byte());
        vec![fill; 1 + usize::from(size % 64)]
    }

    pub(super) fn crash(&mut self) -> End {
        if self.byte() & 1 == 0 { End::Killed } else { End::PowerCut }
    }

    pub(super) fn durability(&mut self) -> Durability {
        match self.byte() % 3 {
            0 => Durability::None,
            1 => Durability::Interval(Duration::from_millis(100)),
            _ => Durability::Sync,
        }
    }
}
