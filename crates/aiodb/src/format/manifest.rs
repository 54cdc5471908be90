//! The bytes of a checkpoint's manifest and of the store's identity, see `docs/format.md`, and how they are replaced.

use std::path::Path;

use crate::checksum::crc32c;
use crate::format::position::{POSITION_BYTES, Position};
use crate::format::record::RECORD_ALIGNMENT;
use crate::format::segment::{
    Damage, FORMAT_VERSION, Features, HEADER_BYTES, array, check_header, check_version, put, seal_header, u16_at,
    u32_at, u64_at,
};
use crate::format::settings::Settings;
use crate::io::UNIT_BYTES;
use crate::{Error, TableModes};

/// The names of a manifest, that of the store and that of the sorted runs, and of its other copy.
pub(crate) const MANIFEST_NAMES: [&str; 2] = ["MANIFEST", "MANIFEST.copy"];

const MANIFEST_MAGIC: &[u8; 8] = b"AIODBMAN";
const IDENTITY_MAGIC: &[u8; 8] = b"AIODBSTO";
const MANIFEST_HEADER_BYTES: usize = 64;

/// The identity of a store, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) store: [u8; 16],
    /// Which of the store's directories this is...
    pub(crate) ordinal: u16,
    /// ...of how many.
    pub(crate) count: u16,
    pub(crate) segment_bytes: u64,
    pub(crate) hash_seed: u64,
}

impl Identity {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        put(&mut out, 16, &self.store);
        put(&mut out, 32, &self.ordinal.to_le_bytes());
        put(&mut out, 34, &self.count.to_le_bytes());
        put(&mut out, 40, &self.segment_bytes.to_le_bytes());
        put(&mut out, 48, &self.hash_seed.to_le_bytes());
        seal_header(&mut out, IDENTITY_MAGIC);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> std::result::Result<Identity, Damage> {
        check_header(bytes, IDENTITY_MAGIC, "not a store's identity")?;
        let (ordinal, count) = (u16_at(bytes, 32), u16_at(bytes, 34));
        if ordinal >= count {
            return Err(Damage::Foreign("a directory beyond the store's last"));
        }
        let (segment_bytes, hash_seed) = (u64_at(bytes, 40), u64_at(bytes, 48));
        Ok(Identity { store: array(bytes, 16), ordinal, count, segment_bytes, hash_seed })
    }
}

/// A table in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestTable {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) settings: Settings,
    /// The checkpoint that holds its hash index, 0 for none.
    pub(crate) checkpoint: u64,
    /// What of it memory keeps by preference.
    pub(crate) modes: TableModes,
}

/// A segment in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ManifestSegment {
    pub(crate) number: u32,
    pub(crate) records: u32,
    pub(crate) deletes: u32,
    pub(crate) life: u64,
    pub(crate) end: u64,
    /// Live bytes in chunks, by table.
    pub(crate) live_chunks: Vec<(u32, i64)>,
    /// Bytes of records that expire, by the time at which they do.
    pub(crate) expiring: Vec<(u64, i64)>,
    /// Bytes by which its records grow when they are moved for the first time.
    pub(crate) growth_bytes: u64,
}

/// A checkpoint: the position where replay starts, and the tables and segments there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) checkpoint: u64,
    /// Written by a close: nothing came after the position.
    pub(crate) closed: bool,
    pub(crate) position: Position,
    pub(crate) next_sequence: u64,
    pub(crate) next_life: u64,
    pub(crate) next_table: u32,
    /// Transactions that took entries out of the ordered index: one that has seen fewer is older than this checkpoint.
    pub(crate) taken_out: u64,
    /// The store's clock, in milliseconds since 1970: it never goes back behind this.
    pub(crate) time_ms: u64,
    /// What tables may have, or may soon: a program that would pass over the making of such a table refuses it.
    pub(crate) features: Features,
    pub(crate) tables: Vec<ManifestTable>,
    pub(crate) segments: Vec<ManifestSegment>,
}

impl Manifest {
    pub(crate) fn encode(&self, store: &[u8; 16]) -> Vec<u8> {
        let mut out = vec![0; MANIFEST_HEADER_BYTES + POSITION_BYTES];
        self.position.encode(&mut out[MANIFEST_HEADER_BYTES..]);
        out.extend_from_slice(&self.next_sequence.to_le_bytes());
        out.extend_from_slice(&self.next_life.to_le_bytes());
        out.extend_from_slice(&self.next_table.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.time_ms.to_le_bytes());
        out.extend_from_slice(&(self.tables.len() as u32).to_le_bytes());
        for table in &self.tables {
            out.extend_from_slice(&table.id.to_le_bytes());
            for part in [table.name.as_bytes(), &table.settings.encode()] {
                out.extend_from_slice(&(part.len() as u16).to_le_bytes());
                out.extend_from_slice(part);
            }
            out.extend_from_slice(&table.checkpoint.to_le_bytes());
        }
        out.extend_from_slice(&(self.segments.len() as u32).to_le_bytes());
        for segment in &self.segments {
            out.extend_from_slice(&segment.number.to_le_bytes());
            out.extend_from_slice(&segment.records.to_le_bytes());
            out.extend_from_slice(&segment.deletes.to_le_bytes());
            out.extend_from_slice(&segment.life.to_le_bytes());
            out.extend_from_slice(&segment.end.to_le_bytes());
            out.extend_from_slice(&(segment.live_chunks.len() as u32).to_le_bytes());
            for (table, bytes) in &segment.live_chunks {
                out.extend_from_slice(&table.to_le_bytes());
                out.extend_from_slice(&bytes.to_le_bytes());
            }
            out.extend_from_slice(&(segment.expiring.len() as u32).to_le_bytes());
            for (time_ms, bytes) in &segment.expiring {
                out.extend_from_slice(&time_ms.to_le_bytes());
                out.extend_from_slice(&bytes.to_le_bytes());
            }
        }
        // Earlier programs read no further than this.
        for segment in &self.segments {
            out.extend_from_slice(&segment.growth_bytes.to_le_bytes());
        }
        out.extend_from_slice(&self.taken_out.to_le_bytes());
        let with_modes = self.tables.iter().filter(|table| table.modes != TableModes::default());
        out.extend_from_slice(&(with_modes.clone().count() as u32).to_le_bytes());
        for table in with_modes {
            out.extend_from_slice(&table.id.to_le_bytes());
            out.extend_from_slice(&table.modes.to_bytes());
            out.extend_from_slice(&[0; 2]);
        }
        let length = out.len() as u64;
        put(&mut out, 0, MANIFEST_MAGIC);
        put(&mut out, 8, &self.features.version().to_le_bytes());
        put(&mut out, 16, store);
        put(&mut out, 32, &length.to_le_bytes());
        put(&mut out, 40, &self.checkpoint.to_le_bytes());
        out[48] = u8::from(self.closed);
        out[49] = u8::from(self.features.counts_as_they_lie);
        let checksum = crc32c(&out[16..]);
        put(&mut out, 12, &checksum.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8], store: &[u8; 16]) -> std::result::Result<Manifest, Damage> {
        if bytes.len() < MANIFEST_HEADER_BYTES || &bytes[0..8] != MANIFEST_MAGIC {
            return Err(Damage::Foreign("not a manifest"));
        }
        check_version(bytes, FORMAT_VERSION)?;
        if u64_at(bytes, 32) != bytes.len() as u64 || crc32c(&bytes[16..]) != u32_at(bytes, 12) {
            return Err(Damage::Checksum);
        }
        if &bytes[16..32] != store {
            return Err(Damage::Foreign("the manifest of another store"));
        }
        Self::decode_body(bytes).ok_or(Damage::Foreign("a manifest whose parts do not fit"))
    }

    fn decode_body(bytes: &[u8]) -> Option<Manifest> {
        let mut rest = Cursor(bytes.get(MANIFEST_HEADER_BYTES..)?);
        let position = Position::decode(rest.take(POSITION_BYTES)?);
        let (next_sequence, next_life, next_table, _) = (rest.u64()?, rest.u64()?, rest.u32()?, rest.u32()?);
        let time_ms = rest.u64()?;
        let mut tables = Vec::new();
        for _ in 0..rest.u32()? {
            let id = rest.u32()?;
            let name = String::from_utf8(rest.part()?.to_vec()).ok()?;
            let settings = Settings::decode(rest.part()?)?;
            let (checkpoint, modes) = (rest.u64()?, TableModes::default());
            tables.push(ManifestTable { id, name, settings, checkpoint, modes });
        }
        let mut segments = Vec::new();
        for _ in 0..rest.u32()? {
            let (number, records, deletes) = (rest.u32()?, rest.u32()?, rest.u32()?);
            let (life, end) = (rest.u64()?, rest.u64()?);
            let mut live_chunks = Vec::new();
            for _ in 0..rest.u32()? {
                live_chunks.push((rest.u32()?, rest.u64()? as i64));
            }
            let mut expiring = Vec::new();
            for _ in 0..rest.u32()? {
                expiring.push((rest.u64()?, rest.u64()? as i64));
            }
            // Earlier programs have not counted it; most records grow by the step on which they lie.
            let growth_bytes = u64::from(records) * RECORD_ALIGNMENT as u64;
            segments.push(ManifestSegment { number, records, deletes, life, end, live_chunks, expiring, growth_bytes });
        }
        if !rest.0.is_empty() {
            for segment in &mut segments {
                segment.growth_bytes = rest.u64()?;
            }
        }
        let taken_out = if rest.0.is_empty() { 0 } else { rest.u64()? };
        // What later programs write behind them is left alone.
        let count = if rest.0.is_empty() { 0 } else { rest.u32()? };
        for _ in 0..count {
            let id = rest.u32()?;
            let modes = TableModes::from_bytes(array(rest.take(4)?, 0))?;
            let table = tables.iter_mut().find(|table| table.id == id)?;
            // One form for each manifest.
            if modes == TableModes::default() || table.modes != TableModes::default() {
                return None;
            }
            table.modes = modes;
        }
        let (checkpoint, closed) = (u64_at(bytes, 40), bytes[48] == 1);
        Some(Manifest {
            checkpoint,
            closed,
            position,
            next_sequence,
            next_life,
            next_table,
            taken_out,
            time_ms,
            features: Features { counts_as_they_lie: bytes[49] == 1, ..Features::of(bytes) },
            tables,
            segments,
        })
    }
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(length)?;
        self.0 = tail;
        Some(head)
    }

    /// A part behind its length of two bytes.
    fn part(&mut self) -> Option<&'a [u8]> {
        let length = self.take(2)?;
        self.take(usize::from(u16_at(length, 0)))
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4).map(|bytes| u32_at(bytes, 0))
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8).map(|bytes| u64_at(bytes, 0))
    }
}

/// An error about a damaged file, or about one of a newer version.
pub(crate) fn damage_error(path: &Path, offset: u64, damage: Damage, advice: &str) -> Error {
    match damage {
        Damage::Newer { found, known } => Error::NewerVersion { path: path.to_path_buf(), found, known },
        damage => Error::Corruption { path: path.to_path_buf(), offset, what: format!("{damage}; {advice}") },
    }
}

const _: () = assert!(HEADER_BYTES <= UNIT_BYTES);

#[cfg(test)]
mod tests;
