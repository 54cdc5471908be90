//! The settings that a table is made with, and their bytes.

use crate::{Compression, Error, IndexKind, Result, TableOptions};

/// The first id of a user's table; lower ones prefix the ordered index's own keys.
pub(crate) const FIRST_TABLE_ID: u32 = 16;

/// The longest name of a table, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The settings that a table was made with; truncating it changes none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) kind: IndexKind,
    pub(crate) compression: Compression,
    /// The name of its merge operator.
    pub(crate) merge: Option<String>,
}

impl Settings {
    pub(crate) fn new(options: &TableOptions) -> Settings {
        Settings { kind: options.kind, compression: options.compression, merge: options.merge.clone() }
    }

    /// The value of the record that makes the table, and its part of a manifest.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![kind_byte(self.kind)];
        out.extend_from_slice(&self.compression.to_bytes());
        out.extend_from_slice(self.merge.as_deref().unwrap_or_default().as_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Settings> {
        let ([kind, method, level], merge) = bytes.split_first_chunk()?;
        let merge = String::from_utf8(merge.to_vec()).ok()?;
        Some(Settings {
            kind: kind_from_byte(*kind)?,
            compression: Compression::from_bytes([*method, *level])?,
            merge: (!merge.is_empty()).then_some(merge),
        })
    }
}

/// Refuses names that a person could not type or read.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if !is_name(name) { Err(Error::TableName { name: name.to_string() }) } else { Ok(()) }
}

/// Whether a table, or a merge operator, can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.chars().any(char::is_control)
}

/// The byte by which the format names an index kind.
fn kind_byte(kind: IndexKind) -> u8 {
    match kind {
        IndexKind::Lmdb => 1,
        IndexKind::Hash => 2,
        IndexKind::Lsm => 3,
    }
}

/// The index kind named by a byte.
fn kind_from_byte(byte: u8) -> Option<IndexKind> {
    match byte {
        1 => Some(IndexKind::Lmdb),
        2 => Some(IndexKind::Hash),
        3 => Some(IndexKind::Lsm),
        _ => None,
    }
}
