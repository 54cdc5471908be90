//! The last unit of a run's file: what is in it, and where.

use super::{MAX_INDEX_KEY_BYTES, RunSeed};
use crate::format::segment::{
    Damage, Features, VERSION_WITH_COMPRESSED_BLOCKS, check_version, put, u16_at, u32_at, u64_at,
};
use crate::io::UNIT_BYTES;

const RUN_MAGIC: &[u8; 8] = b"AIODBRUN";
const KEYS_OFFSET: usize = 128;

const _: () = assert!(KEYS_OFFSET + 2 * MAX_INDEX_KEY_BYTES <= UNIT_BYTES);

/// What the footer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) number: u64,
    /// Units of the data blocks, with which the file begins.
    pub(crate) data_units: u32,
    /// The filter begins after the blocks, the fences on the next unit after it, then the marks, and the footer, each on the next unit.
    pub(crate) filter_bytes: u32,
    pub(crate) filter_checksum: u32,
    pub(crate) fence_bytes: u32,
    pub(crate) fence_checksum: u32,
    /// 0 where no compaction filter has anything to do with the entries: the version says so.
    pub(crate) mark_bytes: u32,
    pub(crate) mark_checksum: u32,
    /// About how many units the data blocks would take if none were compressed: their padding is left out. 0 where none is: the version says so.
    pub(crate) plain_units: u32,
    /// Of the checksums of all data blocks, in their order: so files with the same footer are the same. 0 in files of earlier programs.
    pub(crate) blocks_checksum: u32,
    pub(crate) keys: u64,
    pub(crate) entries: u64,
    pub(crate) smallest_sequence: u64,
    pub(crate) largest_sequence: u64,
    /// Higher than the lives of all segments to which entries led when the file was made: an entry whose segment has this life by now,
    /// or a later one, leads to other records.
    pub(crate) next_life: u64,
    /// The entries are without those that range deletes up to this sequence have deleted.
    pub(crate) carried_out: u64,
    /// Some entries have their values: the version says so.
    pub(crate) has_values: bool,
    pub(crate) smallest_key: Box<[u8]>,
    pub(crate) largest_key: Box<[u8]>,
}

/// Where the parts of a file's end begin, and its length, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) filter: u64,
    pub(crate) fences: u64,
    pub(crate) marks: u64,
    pub(crate) footer: u64,
    pub(crate) end: u64,
}

impl Footer {
    /// Where the parts are.
    pub(crate) fn parts(&self) -> Parts {
        let unit = UNIT_BYTES as u64;
        let filter = u64::from(self.data_units) * unit;
        let fences = (filter + u64::from(self.filter_bytes)).next_multiple_of(unit);
        let marks = (fences + u64::from(self.fence_bytes)).next_multiple_of(unit);
        let footer = (marks + u64::from(self.mark_bytes)).next_multiple_of(unit);
        Parts { filter, fences, marks, footer, end: footer + unit }
    }

    fn features(&self) -> Features {
        Features {
            values: self.has_values,
            filters: self.mark_bytes > 0,
            compressed_blocks: self.plain_units > 0,
            ..Features::default()
        }
    }

    pub(crate) fn encode(&self, store: &[u8; 16]) -> Vec<u8> {
        let mut out = vec![0; UNIT_BYTES];
        put(&mut out, 0, RUN_MAGIC);
        put(&mut out, 8, &self.features().version().to_le_bytes());
        put(&mut out, 16, store);
        for (at, number) in [
            (32, self.number),
            (64, self.keys),
            (72, self.entries),
            (80, self.smallest_sequence),
            (88, self.largest_sequence),
            (96, self.next_life),
            (104, self.carried_out),
        ] {
            put(&mut out, at, &number.to_le_bytes());
        }
        for (at, number) in [
            (40, self.data_units),
            (44, self.filter_bytes),
            (48, self.filter_checksum),
            (52, self.fence_bytes),
            (56, self.fence_checksum),
            (60, self.blocks_checksum),
            (116, self.mark_bytes),
            (120, self.mark_checksum),
            (124, self.plain_units),
        ] {
            put(&mut out, at, &number.to_le_bytes());
        }
        put(&mut out, 112, &(self.smallest_key.len() as u16).to_le_bytes());
        put(&mut out, 114, &(self.largest_key.len() as u16).to_le_bytes());
        put(&mut out, KEYS_OFFSET, &self.smallest_key);
        put(&mut out, KEYS_OFFSET + self.smallest_key.len(), &self.largest_key);
        let checksum = RunSeed::new(store, self.number).checksum_at(self.parts().footer, &out[16..]);
        put(&mut out, 12, &checksum.to_le_bytes());
        out
    }

    /// The footer in the unit at `offset` of a store's file with this number.
    pub(crate) fn decode(bytes: &[u8], store: &[u8; 16], number: u64, offset: u64) -> Result<Footer, Damage> {
        if bytes.len() != UNIT_BYTES || &bytes[0..8] != RUN_MAGIC {
            return Err(Damage::Foreign("not the end of a run"));
        }
        check_version(bytes, VERSION_WITH_COMPRESSED_BLOCKS)?;
        if RunSeed::new(store, number).checksum_at(offset, &bytes[16..]) != u32_at(bytes, 12) {
            return Err(Damage::Checksum);
        }
        if &bytes[16..32] != store || u64_at(bytes, 32) != number {
            return Err(Damage::Foreign("a run of another store, or another file of this one"));
        }
        let footer = Self::decode_body(bytes).filter(|footer| footer.parts().footer == offset);
        footer.ok_or(Damage::Foreign("a run whose parts do not fit"))
    }

    fn decode_body(bytes: &[u8]) -> Option<Footer> {
        let (smallest, largest) = (usize::from(u16_at(bytes, 112)), usize::from(u16_at(bytes, 114)));
        let (smallest_key, rest) = bytes[KEYS_OFFSET..].split_at_checked(smallest)?;
        let features = Features::of(bytes);
        let footer = Footer {
            number: u64_at(bytes, 32),
            data_units: u32_at(bytes, 40),
            filter_bytes: u32_at(bytes, 44),
            filter_checksum: u32_at(bytes, 48),
            fence_bytes: u32_at(bytes, 52),
            fence_checksum: u32_at(bytes, 56),
            mark_bytes: u32_at(bytes, 116),
            mark_checksum: u32_at(bytes, 120),
            plain_units: u32_at(bytes, 124),
            blocks_checksum: u32_at(bytes, 60),
            keys: u64_at(bytes, 64),
            entries: u64_at(bytes, 72),
            smallest_sequence: u64_at(bytes, 80),
            largest_sequence: u64_at(bytes, 88),
            next_life: u64_at(bytes, 96),
            carried_out: u64_at(bytes, 104),
            has_values: features.values,
            smallest_key: smallest_key.into(),
            largest_key: rest.get(..largest)?.into(),
        };
        // The last version may have marks.
        let has_its_parts = footer.features().version() == features.version();
        let fits = footer.data_units > 0 && has_its_parts && footer.smallest_key <= footer.largest_key;
        (fits && smallest.max(largest) <= MAX_INDEX_KEY_BYTES).then_some(footer)
    }
}
