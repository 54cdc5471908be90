//! The settings that a table is made with, and their bytes.

use crate::{Compression, Error, IndexKind, MAX_INLINE_BYTES, Result, TableOptions};

/// The first id of a user's table; lower ones prefix the ordered index's own keys.
pub(crate) const FIRST_TABLE_ID: u32 = 16;

/// The byte by which the format names [`IndexKind::Lsm`] where the index has values.
const LSM_WITH_VALUES: u8 = 4;

/// Set beside the kind of a table whose records come before the record that makes it.
const INGESTED: u8 = 128;

/// The longest name of a table, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The settings that a table was made with; truncating it changes none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) kind: IndexKind,
    pub(crate) compression: Compression,
    /// The name of its merge operator.
    pub(crate) merge: Option<String>,
    /// Values of up to so many bytes lie in the index too; 0 for none.
    pub(crate) inline_bytes: usize,
}

impl Settings {
    pub(crate) fn new(options: &TableOptions) -> Settings {
        let TableOptions { kind, compression, merge, inline_bytes } = options.clone();
        Settings { kind, compression, merge, inline_bytes }
    }

    pub(crate) fn options(&self) -> TableOptions {
        let Settings { kind, compression, merge, inline_bytes } = self.clone();
        TableOptions { kind, compression, merge, inline_bytes }
    }

    /// Its part of a manifest.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let has_values = self.inline_bytes > 0;
        let mut out = vec![if has_values { LSM_WITH_VALUES } else { kind_byte(self.kind) }];
        out.extend_from_slice(&self.compression.to_bytes());
        if has_values {
            out.extend_from_slice(&(self.inline_bytes as u32).to_le_bytes());
        }
        out.extend_from_slice(self.merge.as_deref().unwrap_or_default().as_bytes());
        out
    }

    /// The value of the record that makes the table. `is_ingested`: records of the table come before it in the log.
    pub(crate) fn encode_made(&self, is_ingested: bool) -> Vec<u8> {
        let mut out = self.encode();
        out[0] |= if is_ingested { INGESTED } else { 0 };
        out
    }

    /// The value of such a record: the settings, and whether the table was ingested.
    pub(crate) fn decode_made(bytes: &[u8]) -> Option<(Settings, bool)> {
        let mut value = bytes.to_vec();
        let kind = value.first_mut()?;
        let is_ingested = *kind & INGESTED != 0;
        *kind &= !INGESTED;
        Settings::decode(&value).map(|settings| (settings, is_ingested))
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Settings> {
        let ([kind, method, level], rest) = bytes.split_first_chunk()?;
        let (kind, inline_bytes, merge) = match *kind {
            LSM_WITH_VALUES => {
                let (inline_bytes, merge) = rest.split_first_chunk()?;
                let inline_bytes = u32::from_le_bytes(*inline_bytes) as usize;
                (IndexKind::Lsm, Some(inline_bytes).filter(|bytes| (1..=MAX_INLINE_BYTES).contains(bytes))?, merge)
            }
            kind => (kind_from_byte(kind)?, 0, rest),
        };
        let merge = String::from_utf8(merge.to_vec()).ok()?;
        Some(Settings {
            kind,
            compression: Compression::from_bytes([*method, *level])?,
            merge: (!merge.is_empty()).then_some(merge),
            inline_bytes,
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
