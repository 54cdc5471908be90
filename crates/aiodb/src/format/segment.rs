//! The bytes of segment, batch and pending headers, see `docs/format.md`. No I/O here.

use crate::checksum::{crc32c, crc32c_append};
use crate::io::{SECTOR_BYTES, UNIT_BYTES};
use crate::planted::{self, Bug};

/// The highest version that this program reads. It writes this one where live bytes are counted as they lie.
pub const FORMAT_VERSION: u32 = 5;

/// The version that it writes where blocks of runs are compressed: the highest of files of runs.
pub(crate) const VERSION_WITH_COMPRESSED_BLOCKS: u32 = 4;

/// The version that it writes where tables have compaction filters.
const VERSION_WITH_FILTERS: u32 = 3;

/// The version that it writes where an index has values.
const VERSION_WITH_VALUES: u32 = 2;

/// The version of files that know of no values in an index.
pub(crate) const FIRST_VERSION: u32 = 1;

/// Refuses a file of a later version than `known`; every file says its version in the same place.
pub(crate) fn check_version(bytes: &[u8], known: u32) -> Result<(), Damage> {
    let found = u32_at(bytes, 8);
    if found > known { Err(Damage::Newer { found, known }) } else { Ok(()) }
}

/// What may be in a file that earlier programs know nothing of. A version may have what came with those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    /// An index has values.
    pub(crate) values: bool,
    /// Compaction filters are asked.
    pub(crate) filters: bool,
    /// Blocks of runs are compressed.
    pub(crate) compressed_blocks: bool,
    /// Live bytes of ordered tables are counted as they lie, see `place.rs`. A version tells of this nothing: a manifest says it.
    pub(crate) counts_as_they_lie: bool,
}

impl Features {
    /// The version of a file with these.
    pub(crate) fn version(self) -> u32 {
        match self {
            Features { counts_as_they_lie: true, .. } => FORMAT_VERSION,
            Features { compressed_blocks: true, .. } => VERSION_WITH_COMPRESSED_BLOCKS,
            Features { filters: true, .. } => VERSION_WITH_FILTERS,
            Features { values: true, .. } => VERSION_WITH_VALUES,
            _ => FIRST_VERSION,
        }
    }

    /// What may be in a file, by its version.
    pub(crate) fn of(bytes: &[u8]) -> Features {
        let version = u32_at(bytes, 8);
        Features {
            values: version >= VERSION_WITH_VALUES,
            filters: version >= VERSION_WITH_FILTERS,
            compressed_blocks: version >= VERSION_WITH_COMPRESSED_BLOCKS,
            counts_as_they_lie: false,
        }
    }
}

/// Bytes of a segment header, of a pending header and of the identity that are used; the rest of the unit is zero.
pub(crate) const HEADER_BYTES: usize = 128;

/// Bytes at the start of a batch's first unit before its records.
pub(crate) const BATCH_HEADER_BYTES: usize = 128;

/// Bytes at the start of a further unit of packed records.
pub(crate) const UNIT_HEADER_BYTES: usize = 16;

/// Where a batch header's link lies: the first byte after the bytes of its own checksum.
pub(crate) const BATCH_LINK_OFFSET: usize = 64;

/// A batch of records re-appended by reclaim.
pub(crate) const BATCH_MOVES: u16 = 1;

/// A batch that counts only together with the next one.
pub(crate) const BATCH_CONTINUES: u16 = 2;

const SEGMENT_MAGIC: &[u8; 8] = b"AIODBSEG";
const PENDING_MAGIC: &[u8; 8] = b"AIODBPND";
const BATCH_MAGIC: &[u8; 4] = b"ABAT";
const UNIT_MAGIC: &[u8; 4] = b"APAK";

const _: () = assert!(HEADER_BYTES <= SECTOR_BYTES, "a header is written by the disk whole or not at all");

/// Why bytes are not the thing that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// Not this kind of thing, or not of this store, segment, life or offset.
    Foreign(&'static str),
    /// The checksum does not match.
    Checksum,
    /// Written by a newer version.
    Newer { found: u32, known: u32 },
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Damage::Foreign(what) => write!(f, "{what}"),
            Damage::Checksum => write!(f, "the checksum does not match"),
            Damage::Newer { found, .. } => write!(f, "format version {found} is newer than this program's"),
        }
    }
}

/// Where every checksum inside one life of a segment starts, so that bytes of another life never check out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed(u32);

impl Seed {
    pub(crate) fn new(store: &[u8; 16], segment: u32, life: u64) -> Seed {
        let crc = crc32c(store);
        let crc = crc32c_append(crc, &segment.to_le_bytes());
        let life = if planted::is_on(Bug::OldLifeAccepted) { 0 } else { life };
        Seed(crc32c_append(crc, &life.to_le_bytes()))
    }

    /// The seed as a number that a segment can store for its life.
    pub(crate) fn to_cached(self) -> u32 {
        self.0
    }

    pub(crate) fn from_cached(seed: u32) -> Seed {
        Seed(seed)
    }

    /// The checksum of bytes that lie at `offset` in the segment.
    pub(crate) fn checksum_at(self, offset: u32, bytes: &[u8]) -> u32 {
        crc32c_append(crc32c_append(self.0, &offset.to_le_bytes()), bytes)
    }

    /// The checksum of bytes whose position is among them.
    pub(crate) fn checksum(self, bytes: &[u8]) -> u32 {
        crc32c_append(self.0, bytes)
    }
}

/// The first sector of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) store: [u8; 16],
    pub(crate) segment: u32,
    /// The number of the store's directories; the segment lies in directory `segment % directories`.
    pub(crate) directories: u16,
    pub(crate) segment_bytes: u64,
    pub(crate) life: u64,
    pub(crate) first_batch: u64,
    pub(crate) previous_checksum: u32,
    pub(crate) previous_segment: u32,
    pub(crate) previous_end: u64,
    pub(crate) durable_batch: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        put(&mut out, 16, &self.store);
        put(&mut out, 32, &self.segment.to_le_bytes());
        put(&mut out, 36, &((self.segment % u32::from(self.directories)) as u16).to_le_bytes());
        put(&mut out, 38, &self.directories.to_le_bytes());
        put(&mut out, 40, &self.segment_bytes.to_le_bytes());
        put(&mut out, 48, &self.life.to_le_bytes());
        put(&mut out, 56, &self.first_batch.to_le_bytes());
        put(&mut out, 64, &self.previous_checksum.to_le_bytes());
        put(&mut out, 68, &self.previous_segment.to_le_bytes());
        put(&mut out, 72, &self.previous_end.to_le_bytes());
        put(&mut out, 80, &self.durable_batch.to_le_bytes());
        seal_header(&mut out, SEGMENT_MAGIC);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<SegmentHeader, Damage> {
        check_header(bytes, SEGMENT_MAGIC, "not a segment header")?;
        if u16_at(bytes, 38) == 0 {
            return Err(Damage::Foreign("a segment of a store without directories"));
        }
        Ok(SegmentHeader {
            store: array(bytes, 16),
            segment: u32_at(bytes, 32),
            directories: u16_at(bytes, 38),
            segment_bytes: u64_at(bytes, 40),
            life: u64_at(bytes, 48),
            first_batch: u64_at(bytes, 56),
            previous_checksum: u32_at(bytes, 64),
            previous_segment: u32_at(bytes, 68),
            previous_end: u64_at(bytes, 72),
            durable_batch: u64_at(bytes, 80),
        })
    }
}

/// The facts that recovery must know of a batch that was still in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingHeader {
    pub(crate) store: [u8; 16],
    pub(crate) segment: u32,
    pub(crate) offset: u32,
    pub(crate) life: u64,
    pub(crate) number: u64,
    pub(crate) first_sequence: u64,
    pub(crate) previous_checksum: u32,
    pub(crate) flags: u16,
}

impl PendingHeader {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        put(&mut out, 16, &self.store);
        put(&mut out, 32, &self.segment.to_le_bytes());
        put(&mut out, 36, &self.offset.to_le_bytes());
        put(&mut out, 40, &self.life.to_le_bytes());
        put(&mut out, 48, &self.number.to_le_bytes());
        put(&mut out, 56, &self.first_sequence.to_le_bytes());
        put(&mut out, 64, &self.previous_checksum.to_le_bytes());
        put(&mut out, 68, &u32::from(self.flags).to_le_bytes());
        seal_header(&mut out, PENDING_MAGIC);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<PendingHeader, Damage> {
        check_header(bytes, PENDING_MAGIC, "not a pending batch")?;
        Ok(PendingHeader {
            store: array(bytes, 16),
            segment: u32_at(bytes, 32),
            offset: u32_at(bytes, 36),
            life: u64_at(bytes, 40),
            number: u64_at(bytes, 48),
            first_sequence: u64_at(bytes, 56),
            previous_checksum: u32_at(bytes, 64),
            flags: u32_at(bytes, 68) as u16,
        })
    }
}

/// The first 64 bytes of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    pub(crate) number: u64,
    pub(crate) first_sequence: u64,
    pub(crate) records: u32,
    pub(crate) length: u32,
    pub(crate) offset: u32,
    pub(crate) body_checksum: u32,
    pub(crate) previous_checksum: u32,
    pub(crate) flags: u16,
    pub(crate) durable_batch: u64,
    /// The store's clock when the batch was sealed, in milliseconds since 1970.
    pub(crate) time_ms: u64,
}

impl BatchHeader {
    /// Writes the header and returns its checksum, the next link of the chain.
    pub(crate) fn encode(&self, seed: Seed, out: &mut [u8]) -> u32 {
        put(out, 0, BATCH_MAGIC);
        put(out, 8, &self.number.to_le_bytes());
        put(out, 16, &self.first_sequence.to_le_bytes());
        put(out, 24, &self.records.to_le_bytes());
        put(out, 28, &self.length.to_le_bytes());
        put(out, 32, &self.offset.to_le_bytes());
        put(out, 36, &self.body_checksum.to_le_bytes());
        put(out, 40, &self.previous_checksum.to_le_bytes());
        put(out, 44, &self.flags.to_le_bytes());
        put(out, 46, &[0; 2]);
        put(out, 48, &self.durable_batch.to_le_bytes());
        put(out, 56, &self.time_ms.to_le_bytes());
        let checksum = seed.checksum(&out[8..BATCH_LINK_OFFSET]);
        put(out, 4, &checksum.to_le_bytes());
        checksum
    }

    /// Reads a header that must lie at `offset`; returns it with its checksum.
    pub(crate) fn decode(bytes: &[u8], seed: Seed, offset: u32) -> Result<(BatchHeader, u32), Damage> {
        if bytes.len() < BATCH_HEADER_BYTES || &bytes[0..4] != BATCH_MAGIC {
            return Err(Damage::Foreign("no batch starts here"));
        }
        let checksum = u32_at(bytes, 4);
        if seed.checksum(&bytes[8..BATCH_LINK_OFFSET]) != checksum {
            return Err(Damage::Checksum);
        }
        let header = BatchHeader {
            number: u64_at(bytes, 8),
            first_sequence: u64_at(bytes, 16),
            records: u32_at(bytes, 24),
            length: u32_at(bytes, 28),
            offset: u32_at(bytes, 32),
            body_checksum: u32_at(bytes, 36),
            previous_checksum: u32_at(bytes, 40),
            flags: u16::from_le_bytes(array(bytes, 44)),
            durable_batch: u64_at(bytes, 48),
            time_ms: u64_at(bytes, 56),
        };
        let length = header.length as usize;
        if header.offset != offset || length < UNIT_BYTES || !length.is_multiple_of(UNIT_BYTES) {
            return Err(Damage::Foreign("a batch header that belongs elsewhere"));
        }
        Ok((header, checksum))
    }
}

/// Starts a further unit of packed records.
pub(crate) fn encode_unit_header(out: &mut [u8], batch: u64) {
    put(out, 0, UNIT_MAGIC);
    put(out, 4, &0u32.to_le_bytes());
    put(out, 8, &batch.to_le_bytes());
}

/// Whether a further unit of packed records of this batch starts here.
pub(crate) fn is_unit_header(bytes: &[u8], batch: u64) -> bool {
    bytes.len() >= UNIT_HEADER_BYTES && &bytes[0..4] == UNIT_MAGIC && u64_at(bytes, 8) == batch
}

/// Seals a 128-byte header: magic, version, checksum of bytes 16..128.
pub(crate) fn seal_header(out: &mut [u8; HEADER_BYTES], magic: &[u8; 8]) {
    put(out, 0, magic);
    put(out, 8, &FIRST_VERSION.to_le_bytes());
    let checksum = crc32c(&out[16..]);
    put(out, 12, &checksum.to_le_bytes());
}

/// Checks a header that [`seal_header`] wrote.
pub(crate) fn check_header(bytes: &[u8], magic: &[u8; 8], what: &'static str) -> Result<(), Damage> {
    if bytes.len() < HEADER_BYTES || &bytes[0..8] != magic {
        return Err(Damage::Foreign(what));
    }
    // The version comes before the checksum: a newer format may be checksummed in another way.
    check_version(bytes, FIRST_VERSION)?;
    if crc32c(&bytes[16..HEADER_BYTES]) != u32_at(bytes, 12) {
        return Err(Damage::Checksum);
    }
    Ok(())
}

pub(crate) fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has exactly this length")
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array(bytes, at))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array(bytes, at))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array(bytes, at))
}
