//! The settings that a table is made with, and their bytes.

use crate::{Compression, Error, IndexKind, MAX_INLINE_BYTES, Result, TableOptions};

/// The first id of a user's table; lower ones prefix the ordered index's own keys.
pub(crate) const FIRST_TABLE_ID: u32 = 16;

/// The byte by which the format names [`IndexKind::Lsm`] where the index has values.
const LSM_WITH_VALUES: u8 = 4;

/// The byte by which the format names [`IndexKind::Lsm`] where the table has a compaction filter, and perhaps values in the index.
const LSM_WITH_FILTER: u8 = 5;

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
    /// The name of its compaction filter.
    pub(crate) compaction_filter: Option<String>,
}

impl Settings {
    pub(crate) fn new(options: &TableOptions) -> Settings {
        let TableOptions { kind, compression, merge, inline_bytes, compaction_filter } = options.clone();
        Settings { kind, compression, merge, inline_bytes, compaction_filter }
    }

    pub(crate) fn options(&self) -> TableOptions {
        let Settings { kind, compression, merge, inline_bytes, compaction_filter } = self.clone();
        TableOptions { kind, compression, merge, inline_bytes, compaction_filter }
    }

    /// Its part of a manifest.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let kind = match (&self.compaction_filter, self.inline_bytes) {
            (Some(_), _) => LSM_WITH_FILTER,
            (None, 0) => kind_byte(self.kind),
            (None, _) => LSM_WITH_VALUES,
        };
        let mut out = vec![kind];
        out.extend_from_slice(&self.compression.to_bytes());
        if kind == LSM_WITH_FILTER || kind == LSM_WITH_VALUES {
            out.extend_from_slice(&(self.inline_bytes as u32).to_le_bytes());
        }
        if let Some(filter) = &self.compaction_filter {
            out.push(u8::try_from(filter.len()).expect("the name of a filter has its limit"));
            out.extend_from_slice(filter.as_bytes());
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
        let take_inline_bytes = |rest: &'_ [u8], least: usize| {
            let inline_bytes = u32::from_le_bytes(*rest.first_chunk()?) as usize;
            Some(inline_bytes).filter(|bytes| (least..=MAX_INLINE_BYTES).contains(bytes))
        };
        let (kind, inline_bytes, filter, merge) = match *kind {
            LSM_WITH_VALUES => (IndexKind::Lsm, take_inline_bytes(rest, 1)?, None, &rest[4..]),
            LSM_WITH_FILTER => {
                let inline_bytes = take_inline_bytes(rest, 0)?;
                let (length, rest) = rest[4..].split_first()?;
                let (filter, merge) =
                    rest.split_at_checked(usize::from(*length)).filter(|(name, _)| !name.is_empty())?;
                (IndexKind::Lsm, inline_bytes, Some(String::from_utf8(filter.to_vec()).ok()?), merge)
            }
            kind => (kind_from_byte(kind)?, 0, None, rest),
        };
        let merge = String::from_utf8(merge.to_vec()).ok()?;
        Some(Settings {
            kind,
            compression: Compression::from_bytes([*method, *level])?,
            merge: (!merge.is_empty()).then_some(merge),
            inline_bytes,
            compaction_filter: filter,
        })
    }
}

/// Refuses names that a person could not type or read.
pub(crate) fn check_name(name: &str) -> Result<()> {
    if !is_name(name) { Err(Error::TableName { name: name.to_string() }) } else { Ok(()) }
}

/// Whether a table, a merge operator or a compaction filter can have this name.
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

#[cfg(test)]
mod tests {
    use super::Settings;
    use crate::{Compression, IndexKind, TableOptions};

    #[test]
    fn settings_with_a_filter_come_back_and_others_stay_as_they_were() {
        let named = |name: &str| Some(name.to_string());
        for (inline_bytes, merge, first) in [(0, None, 5), (1024, named("add"), 5)] {
            let options = TableOptions {
                compression: Compression::Lz4,
                inline_bytes,
                merge,
                compaction_filter: named("expiry"),
                ..IndexKind::Lsm.into()
            };
            let settings = Settings::new(&options);
            let bytes = settings.encode();
            assert_eq!((bytes[0], &bytes[7..14]), (first, &b"\x06expiry"[..]));
            assert_eq!(Settings::decode(&bytes), Some(settings));
            assert_eq!(Settings::decode(&bytes[..13]), None, "the name is cut");
            let mut made = bytes.clone();
            made[0] |= 128;
            assert!(Settings::decode_made(&made).is_some_and(|(_, is_ingested)| is_ingested));
        }
        let plain = |inline_bytes| Settings::new(&TableOptions { inline_bytes, ..IndexKind::Lsm.into() }).encode();
        assert_eq!(plain(0), [3, 0, 0]);
        assert_eq!(plain(7), [4, 0, 0, 7, 0, 0, 0]);
        assert_eq!(Settings::decode(&[4, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(Settings::decode(&[5, 0, 0, 0, 0, 0, 0, 0]), None, "a filter has a name");
        assert_eq!(Settings::decode(&[5, 0, 0]), None);
    }
}
