//! The bytes of a checkpoint of a hash index.

use crate::checksum::crc32c;
use crate::format::segment::{Damage, FIRST_VERSION, check_version, u32_at, u64_at};
use crate::format::spilled::SpilledManifest;
use crate::index::hash::{HashIndex, SHARDS};

/// The version of a checkpoint of an index of which runs have a part; without runs it is the first.
pub(crate) const SPILLED_VERSION: u32 = 2;

/// Whether the bytes of a checkpoint say that runs have a part of the index.
pub(crate) fn names_runs(bytes: &[u8]) -> bool {
    bytes.len() >= HASH_HEADER_BYTES && u32_at(bytes, 8) >= SPILLED_VERSION
}

/// What a checkpoint has beside the shards.
#[derive(Debug, Default)]
pub(crate) struct HashTail {
    /// The hashes of tags that were not settled.
    pub(crate) unsettled: Vec<u64>,
    /// `None` if the index has no runs.
    pub(crate) spilled: Option<SpilledManifest>,
}

impl HashTail {
    /// Appends the bytes of the checkpoint after the shards, without their checksum.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.unsettled.len() as u64).to_le_bytes());
        self.unsettled.iter().for_each(|hash| out.extend_from_slice(&hash.to_le_bytes()));
        if let Some(spilled) = &self.spilled {
            spilled.encode(out);
        }
    }

    fn decode(bytes: &[u8], is_spilled: bool) -> Option<HashTail> {
        let numbers = |bytes: &[u8]| bytes.chunks_exact(8).map(|hash| u64_at(hash, 0)).collect();
        if !is_spilled {
            return Some(HashTail { unsettled: numbers(bytes.get(8..).unwrap_or_default()), spilled: None });
        }
        let (count, rest) = bytes.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(8)?;
        let (hashes, rest) = rest.split_at_checked(length)?;
        Some(HashTail { unsettled: numbers(hashes), spilled: Some(SpilledManifest::decode(rest)?) })
    }
}

pub(crate) const HASH_MAGIC: &[u8; 8] = b"AIODBHSH";

pub(crate) const HASH_HEADER_BYTES: usize = 64;

pub(crate) const SHARD_HEADER_BYTES: usize = 16;

pub(crate) fn decode_hash(
    index: &HashIndex,
    bytes: &[u8],
    store: &[u8; 16],
    table: u32,
    number: u64,
) -> std::result::Result<HashTail, (usize, Damage)> {
    let header = bytes.get(..HASH_HEADER_BYTES).ok_or((0, Damage::Foreign("the file is too short")))?;
    if &header[0..8] != HASH_MAGIC {
        return Err((0, Damage::Foreign("not the checkpoint of a hash index")));
    }
    check_version(header, SPILLED_VERSION).map_err(|damage| (0, damage))?;
    if crc32c(&header[16..]) != u32_at(header, 12) {
        return Err((0, Damage::Checksum));
    }
    let expected = (&header[16..32], u32_at(header, 32), u32_at(header, 36), u64_at(header, 40));
    if expected != (&store[..], table, SHARDS as u32, number) {
        return Err((0, Damage::Foreign("the checkpoint of another index")));
    }
    let mut at = HASH_HEADER_BYTES;
    for shard in 0..SHARDS {
        let short = (at, Damage::Foreign("the file is too short"));
        let shard_header = bytes.get(at..at + SHARD_HEADER_BYTES).ok_or(short)?;
        let start = at + SHARD_HEADER_BYTES;
        let end =
            usize::try_from(u64_at(shard_header, 0)).ok().and_then(|length| start.checked_add(length)).ok_or(short)?;
        let body = bytes.get(start..end).ok_or(short)?;
        if crc32c(body) != u32_at(shard_header, 8) || u32_at(shard_header, 12) != 0 {
            return Err((at, Damage::Checksum));
        }
        index.decode_shard(shard, body).map_err(|what| (at, Damage::Foreign(what)))?;
        at = end;
    }
    let (tail, checksum) = bytes[at..].split_last_chunk::<4>().ok_or((at, Damage::Foreign("the file is too short")))?;
    if crc32c(tail) != u32::from_le_bytes(*checksum) {
        return Err((at, Damage::Checksum));
    }
    let is_spilled = u32_at(header, 8) > FIRST_VERSION;
    HashTail::decode(tail, is_spilled).ok_or((at, Damage::Foreign("what follows the index shards is malformed")))
}
