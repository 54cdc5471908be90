//! The settings that a table is made with, and their bytes.

use crate::format::segment::Features;
use crate::{Compression, Error, IndexKind, MAX_INLINE_BYTES, Result, StorageMode, TableModes, TableOptions};

/// The first id of a user's table; lower ones prefix the ordered index's own keys.
pub(crate) const FIRST_TABLE_ID: u32 = 16;

/// The byte by which the format names [`IndexKind::Lsm`] where the index has values.
const LSM_WITH_VALUES: u8 = 4;

/// The byte by which the format names [`IndexKind::Lsm`] where the table has a compaction filter, and perhaps values in the index.
const LSM_WITH_FILTER: u8 = 5;

/// The byte by which the format names [`IndexKind::Lsm`] where blocks of its runs are compressed, and perhaps with the others.
const LSM_WITH_COMPRESSED_BLOCKS: u8 = 6;

/// Set beside the kind of a table whose records come before the record that makes it.
const INGESTED: u8 = 128;

/// Of a table that merges, memory has values of so many bytes for the operands that come: of kind `lsm` the memtable, also where none lie in
/// its runs ([`Settings::memtable_bytes`]), of kind `hash` the store's sums.
pub(crate) const MERGED_IN_MEMORY_BYTES: usize = 64;

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
    /// How blocks of its runs are compressed.
    pub(crate) block_compression: Compression,
    /// The name of its compaction filter.
    pub(crate) compaction_filter: Option<String>,
}

impl Settings {
    pub(crate) fn new(options: &TableOptions) -> Settings {
        // Modes are no settings: they change.
        let TableOptions { kind, compression, merge, inline_bytes, block_compression, compaction_filter, modes: _ } =
            options.clone();
        Settings { kind, compression, merge, inline_bytes, block_compression, compaction_filter }
    }

    /// The options of a table with these settings, which has these modes now.
    pub(crate) fn options(&self, modes: TableModes) -> TableOptions {
        let Settings { kind, compression, merge, inline_bytes, block_compression, compaction_filter } = self.clone();
        TableOptions { kind, compression, merge, inline_bytes, block_compression, compaction_filter, modes }
    }

    /// Values of up to so many bytes lie in the memtable: those that come to its runs, and of a table that merges what operands are applied
    /// to as they come.
    pub(crate) fn memtable_bytes(&self) -> usize {
        let merges = self.merge.is_some() && self.kind == IndexKind::Lsm;
        if merges { self.inline_bytes.max(MERGED_IN_MEMORY_BYTES) } else { self.inline_bytes }
    }

    /// What it has that earlier programs know nothing of.
    pub(crate) fn features(&self) -> Features {
        Features {
            values: self.inline_bytes > 0,
            filters: self.compaction_filter.is_some(),
            compressed_blocks: self.block_compression != Compression::None,
            ..Features::default()
        }
    }

    /// Its part of a manifest.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let kind = match self.features() {
            Features { compressed_blocks: true, .. } => LSM_WITH_COMPRESSED_BLOCKS,
            Features { filters: true, .. } => LSM_WITH_FILTER,
            Features { values: true, .. } => LSM_WITH_VALUES,
            _ => kind_byte(self.kind),
        };
        let mut out = vec![kind];
        out.extend_from_slice(&self.compression.to_bytes());
        if kind >= LSM_WITH_VALUES {
            out.extend_from_slice(&(self.inline_bytes as u32).to_le_bytes());
        }
        if kind >= LSM_WITH_FILTER {
            let filter = self.compaction_filter.as_deref().unwrap_or_default();
            out.push(u8::try_from(filter.len()).expect("the name of a filter has its limit"));
            out.extend_from_slice(filter.as_bytes());
        }
        if kind >= LSM_WITH_COMPRESSED_BLOCKS {
            out.extend_from_slice(&self.block_compression.to_bytes());
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
        let (&[byte, method, level], mut rest) = bytes.split_first_chunk()?;
        let kind = match byte {
            LSM_WITH_VALUES..=LSM_WITH_COMPRESSED_BLOCKS => IndexKind::Lsm,
            byte => kind_from_byte(byte)?,
        };
        let mut settings = Settings {
            kind,
            compression: Compression::from_bytes([method, level])?,
            merge: None,
            inline_bytes: 0,
            block_compression: Compression::None,
            compaction_filter: None,
        };
        if byte >= LSM_WITH_VALUES {
            settings.inline_bytes = u32::from_le_bytes(*take(&mut rest)?) as usize;
        }
        if byte >= LSM_WITH_FILTER {
            let [length] = *take(&mut rest)?;
            let (name, behind) = rest.split_at_checked(usize::from(length))?;
            settings.compaction_filter = text(name)?;
            rest = behind;
        }
        if byte >= LSM_WITH_COMPRESSED_BLOCKS {
            settings.block_compression = Compression::from_bytes(*take(&mut rest)?)?;
        }
        settings.merge = text(rest)?;
        // One form for each table.
        let fits = settings.inline_bytes <= MAX_INLINE_BYTES && settings.encode()[0] == byte;
        fits.then_some(settings)
    }
}

impl TableModes {
    /// By which the format names them: first that of the keys.
    pub(crate) fn to_bytes(self) -> [u8; 2] {
        [self.keys, self.values].map(|mode| match mode {
            StorageMode::Auto => 0,
            StorageMode::Memory => 1,
            StorageMode::Disk => 2,
        })
    }

    pub(crate) fn from_bytes(bytes: [u8; 2]) -> Option<TableModes> {
        let [keys, values] = bytes.map(|byte| match byte {
            0 => Some(StorageMode::Auto),
            1 => Some(StorageMode::Memory),
            2 => Some(StorageMode::Disk),
            _ => None,
        });
        Some(TableModes { keys: keys?, values: values? })
    }
}

/// Takes so many bytes off the front.
fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(taken)
}

/// A name, or none where it has no bytes; an outer `None` where it is no text.
fn text(bytes: &[u8]) -> Option<Option<String>> {
    let name = String::from_utf8(bytes.to_vec()).ok()?;
    Some((!name.is_empty()).then_some(name))
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
    use crate::{Compression, IndexKind, StorageMode, TableModes, TableOptions};

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

    #[test]
    fn settings_with_compressed_blocks_come_back() {
        let named = |name: &str| Some(name.to_string());
        for (block_compression, bytes) in [(Compression::Lz4, [1, 0]), (Compression::Zstd(19), [2, 19])] {
            for (inline_bytes, merge, filter) in
                [(0, None, None), (1024, named("add"), None), (7, None, named("expiry"))]
            {
                let options = TableOptions {
                    compression: Compression::Zstd(3),
                    inline_bytes,
                    merge,
                    compaction_filter: filter.clone(),
                    block_compression,
                    ..IndexKind::Lsm.into()
                };
                let settings = Settings::new(&options);
                assert_eq!(settings.options(TableModes::default()), options);
                let encoded = settings.encode();
                let at = 8 + filter.map_or(0, |name| name.len());
                assert_eq!((encoded[0], &encoded[at..at + 2]), (6, &bytes[..]));
                assert_eq!(Settings::decode(&encoded), Some(settings));
                assert_eq!(Settings::decode(&encoded[..at + 1]), None, "the method is cut");
            }
        }
        assert_eq!(Settings::decode(&[6, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None, "a table without has another kind");
        assert_eq!(Settings::decode(&[6, 0, 0, 0, 0, 0, 0, 0, 3, 1]), None, "an unknown method");
    }

    #[test]
    fn modes_come_back_by_their_bytes() {
        let all =
            StorageMode::ALL.into_iter().flat_map(|keys| StorageMode::ALL.map(|values| TableModes { keys, values }));
        for modes in all {
            assert_eq!(TableModes::from_bytes(modes.to_bytes()), Some(modes));
        }
        assert_eq!(TableModes::default().to_bytes(), [0, 0]);
        let modes = TableModes { keys: StorageMode::Memory, values: StorageMode::Disk };
        assert_eq!((modes.to_bytes(), TableModes::from_bytes([1, 3])), ([1, 2], None));
    }
}
