//! The bytes of a backup repository's identity and of its restore points, see `docs/format.md`. No I/O here.

use crate::checksum::crc32c;
use crate::format::manifest::{Identity, Manifest};
use crate::format::position::{POSITION_BYTES, Position};
use crate::format::segment::{
    Damage, FIRST_VERSION, FORMAT_VERSION, HEADER_BYTES, array, check_header, check_version, put, seal_header, u32_at,
    u64_at,
};
use crate::index::runs::spilled::FIRST_FILE;

const REPOSITORY_MAGIC: &[u8; 8] = b"AIODBREP";
const POINT_MAGIC: &[u8; 8] = b"AIODBPNT";

const POINT_HEADER_BYTES: usize = 64;
const COUNTS_BYTES: usize = 24;
const SEGMENT_BYTES: usize = 24;
const FILE_BYTES: usize = 32;

const FILE_LMDB: u32 = 1;
const FILE_HASH: u32 = 2;
const FILE_RUNS: u32 = 3;
const FILE_RUN: u32 = 4;

/// The version of a restore point that has runs of `lsm` tables. Those without runs are of the first one.
const VERSION_WITH_RUNS: u32 = 2;

/// The version of one that has runs of `hash` tables.
const VERSION_WITH_SPILLED: u32 = 3;

/// The identity that all restore points of a repository share: that of their store.
pub(super) fn encode_repository(identity: &Identity) -> [u8; HEADER_BYTES] {
    let mut out = [0; HEADER_BYTES];
    put(&mut out, 16, &identity.store);
    put(&mut out, 40, &identity.segment_bytes.to_le_bytes());
    put(&mut out, 48, &identity.hash_seed.to_le_bytes());
    seal_header(&mut out, REPOSITORY_MAGIC);
    out
}

pub(super) fn decode_repository(bytes: &[u8]) -> Result<Identity, Damage> {
    check_header(bytes, REPOSITORY_MAGIC, "not a backup repository's identity")?;
    // A store is restored into one directory, whatever it lay in.
    let (ordinal, count) = (0, 1);
    let (segment_bytes, hash_seed) = (u64_at(bytes, 40), u64_at(bytes, 48));
    Ok(Identity { store: array(bytes, 16), ordinal, count, segment_bytes, hash_seed })
}

/// The first bytes of one life of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PointSegment {
    pub(super) number: u32,
    pub(super) life: u64,
    pub(super) length: u64,
    /// Of the first `length` bytes.
    pub(super) checksum: u32,
}

/// A file of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// The environment of the `lmdb` tables.
    Lmdb,
    /// The checkpoint of a `hash` table.
    Hash { table: u32, checkpoint: u64 },
    /// The manifest of the runs of the `lsm` tables.
    Runs,
    /// A file of a run, by its number in the store, and the restore point that brought it. It never changes, and later points refer to
    /// it too. Of two stores that come from one, both may have a file of one number. Runs of `hash` tables have high numbers.
    Run { number: u64, brought_by: u32 },
}

impl FileKind {
    /// Whether it belongs to runs, which a restore can do without.
    pub(super) fn is_of_runs(self) -> bool {
        matches!(self, FileKind::Runs | FileKind::Run { .. })
    }

    /// Whether it belongs to a run of a `hash` table.
    pub(super) fn is_spilled(self) -> bool {
        matches!(self, FileKind::Run { number, .. } if number >= FIRST_FILE)
    }
}

/// A file of an index. Only those of runs belong to several restore points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PointFile {
    pub(super) kind: FileKind,
    pub(super) length: u64,
    pub(super) checksum: u32,
}

/// A restore point: the store at `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) number: u64,
    /// Milliseconds since 1970.
    pub(super) created_ms: u64,
    /// Nothing after this position belongs to the restore point.
    pub(super) end: Position,
    pub(super) next_sequence: u64,
    pub(super) segments: Vec<PointSegment>,
    pub(super) files: Vec<PointFile>,
    /// The last checkpoint before `end`.
    pub(super) manifest: Manifest,
}

impl Point {
    /// Bytes of everything that the restore point refers to.
    pub(super) fn bytes(&self) -> u64 {
        let segments: u64 = self.segments.iter().map(|segment| segment.length).sum();
        segments + self.files.iter().map(|file| file.length).sum::<u64>()
    }

    pub(super) fn encode(&self, store: &[u8; 16]) -> Vec<u8> {
        let manifest = self.manifest.encode(store);
        let mut out = vec![0; POINT_HEADER_BYTES + POSITION_BYTES];
        self.end.encode(&mut out[POINT_HEADER_BYTES..]);
        out.extend_from_slice(&self.next_sequence.to_le_bytes());
        for count in [self.segments.len(), self.files.len(), manifest.len(), 0] {
            out.extend_from_slice(&(count as u32).to_le_bytes());
        }
        for segment in &self.segments {
            out.extend_from_slice(&segment.number.to_le_bytes());
            out.extend_from_slice(&segment.checksum.to_le_bytes());
            out.extend_from_slice(&segment.life.to_le_bytes());
            out.extend_from_slice(&segment.length.to_le_bytes());
        }
        for file in &self.files {
            let (kind, table, checkpoint) = match file.kind {
                FileKind::Lmdb => (FILE_LMDB, 0, 0),
                FileKind::Hash { table, checkpoint } => (FILE_HASH, table, checkpoint),
                FileKind::Runs => (FILE_RUNS, 0, 0),
                FileKind::Run { number, brought_by } => (FILE_RUN, brought_by, number),
            };
            out.extend_from_slice(&kind.to_le_bytes());
            out.extend_from_slice(&table.to_le_bytes());
            out.extend_from_slice(&checkpoint.to_le_bytes());
            out.extend_from_slice(&file.length.to_le_bytes());
            out.extend_from_slice(&file.checksum.to_le_bytes());
            out.extend_from_slice(&[0; 4]);
        }
        out.extend_from_slice(&manifest);
        let length = out.len() as u64;
        put(&mut out, 0, POINT_MAGIC);
        let has = |is_such: fn(FileKind) -> bool| self.files.iter().any(|file| is_such(file.kind));
        let version = match (has(FileKind::is_spilled), has(FileKind::is_of_runs)) {
            (true, _) => VERSION_WITH_SPILLED,
            (false, true) => VERSION_WITH_RUNS,
            (false, false) => FIRST_VERSION,
        };
        // An earlier program would take a manifest that it does not know for damage.
        let version =
            if self.manifest.features.counts_as_they_lie { self.manifest.features.version() } else { version };
        put(&mut out, 8, &version.to_le_bytes());
        put(&mut out, 16, store);
        put(&mut out, 32, &length.to_le_bytes());
        put(&mut out, 40, &self.number.to_le_bytes());
        put(&mut out, 48, &self.created_ms.to_le_bytes());
        let checksum = crc32c(&out[16..]);
        put(&mut out, 12, &checksum.to_le_bytes());
        out
    }

    pub(super) fn decode(bytes: &[u8], store: &[u8; 16]) -> Result<Point, Damage> {
        if bytes.len() < POINT_HEADER_BYTES + POSITION_BYTES + COUNTS_BYTES || &bytes[0..8] != POINT_MAGIC {
            return Err(Damage::Foreign("not a restore point"));
        }
        check_version(bytes, FORMAT_VERSION)?;
        if u64_at(bytes, 32) != bytes.len() as u64 || crc32c(&bytes[16..]) != u32_at(bytes, 12) {
            return Err(Damage::Checksum);
        }
        if &bytes[16..32] != store {
            return Err(Damage::Foreign("a restore point of another store"));
        }
        let misfit = Damage::Foreign("a restore point whose parts do not fit");
        let starts = Starts::of(bytes).ok_or(misfit)?;
        let manifest = Manifest::decode(&bytes[starts.manifest..], store).map_err(|damage| match damage {
            Damage::Newer { .. } => damage,
            _ => misfit,
        })?;
        Self::decode_body(bytes, &starts, manifest).ok_or(misfit)
    }

    fn decode_body(bytes: &[u8], starts: &Starts, manifest: Manifest) -> Option<Point> {
        let segment = |entry: &[u8]| PointSegment {
            number: u32_at(entry, 0),
            checksum: u32_at(entry, 4),
            life: u64_at(entry, 8),
            length: u64_at(entry, 16),
        };
        let file = |entry: &[u8]| {
            let kind = match u32_at(entry, 0) {
                FILE_LMDB => FileKind::Lmdb,
                FILE_HASH => FileKind::Hash { table: u32_at(entry, 4), checkpoint: u64_at(entry, 8) },
                FILE_RUNS => FileKind::Runs,
                FILE_RUN => FileKind::Run { number: u64_at(entry, 8), brought_by: u32_at(entry, 4) },
                _ => return None,
            };
            Some(PointFile { kind, length: u64_at(entry, 16), checksum: u32_at(entry, 24) })
        };
        Some(Point {
            number: u64_at(bytes, 40),
            created_ms: u64_at(bytes, 48),
            end: Position::decode(&bytes[POINT_HEADER_BYTES..]),
            next_sequence: u64_at(bytes, POINT_HEADER_BYTES + POSITION_BYTES),
            segments: bytes[starts.segments..starts.files].chunks_exact(SEGMENT_BYTES).map(segment).collect(),
            files: bytes[starts.files..starts.manifest].chunks_exact(FILE_BYTES).map(file).collect::<Option<_>>()?,
            manifest,
        })
    }
}

/// Where the parts of a restore point begin. The manifest goes to the end.
struct Starts {
    segments: usize,
    files: usize,
    manifest: usize,
}

impl Starts {
    fn of(bytes: &[u8]) -> Option<Starts> {
        let counts = POINT_HEADER_BYTES + POSITION_BYTES;
        let count = |position: usize| u32_at(bytes, counts + 8 + 4 * position) as usize;
        let segments = counts + COUNTS_BYTES;
        let files = count(0).checked_mul(SEGMENT_BYTES)?.checked_add(segments)?;
        let manifest = count(1).checked_mul(FILE_BYTES)?.checked_add(files)?;
        (manifest.checked_add(count(2))? == bytes.len()).then_some(Starts { segments, files, manifest })
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
