//! The functions that fuzzers call: each takes any bytes, and panics if something is wrong with the engine.
//!
//! Random bytes do not get past a decoder's checksums. So the first byte of an input says whether the rest is
//! taken as it is, or gets right checksums first (`repaired`).

mod batch;
mod operations;
mod run;
#[cfg(test)]
mod tests;

use crate::checksum::crc32c;
use crate::format::batch::BatchView;
use crate::format::manifest::{Identity, Manifest};
use crate::format::record::{Record, decode_chunks, encode_chunks};
use crate::format::segment::{
    BATCH_HEADER_BYTES, BATCH_LINK_OFFSET, BatchHeader, FIRST_VERSION, HEADER_BYTES, PendingHeader, Seed,
    SegmentHeader, put, u32_at,
};
use crate::index::hash::checkpoint::{HASH_HEADER_BYTES, HASH_MAGIC, SHARD_HEADER_BYTES, decode_hash};
use crate::index::hash::{HashIndex, SHARDS};

/// The store of an input's batch.
pub(crate) const STORE: [u8; 16] = *b"a store's number";
pub(crate) const SEGMENT: u32 = 3;
pub(crate) const LIFE: u64 = 9;

/// A function for a fuzzer, under the name of its corpus.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 10] = [
    ("record", record),
    ("batch", batch::walk),
    ("batch_round_trip", batch::round_trip),
    ("segment_header", segment_header),
    ("pending_header", pending_header),
    ("manifest", manifest),
    ("hash_checkpoint", hash_checkpoint),
    ("run", run::run),
    ("run_manifest", run::run_manifest),
    ("operations", operations::run),
];

/// Calls a target by its name.
pub fn fuzz(target: &str, input: &[u8]) {
    let found = TARGETS.iter().find(|(name, _)| *name == target);
    found.expect("a target of this name").1(input);
}

/// Splits an input into whether checksums are to be repaired, and the rest.
fn mode(input: &[u8]) -> Option<(bool, &[u8])> {
    let (mode, rest) = input.split_first()?;
    Some((mode & 1 == 1, rest))
}

/// A record, or the list of a chunked value.
fn record(input: &[u8]) {
    const OFFSET: u32 = 4224;
    let Some((repaired, bytes)) = mode(input) else { return };
    let (seed, mut bytes) = (Seed::new(&STORE, SEGMENT, LIFE), bytes.to_vec());
    if repaired {
        batch::repair_record(&mut bytes, seed, OFFSET);
    }
    if let Some((total, chunks)) = decode_chunks(&bytes) {
        assert_eq!(encode_chunks(total, &chunks), bytes);
    }
    let Some(record) = Record::decode(&bytes, seed, OFFSET) else { return };
    let mut encoded = vec![0; record.length()];
    record.encode(seed, OFFSET, &mut encoded);
    assert_eq!(encoded, bytes[..record.length()]);
    assert!(Record::decode(&bytes, seed, OFFSET + 16).is_none(), "a record belongs to its place");
}

/// The headers of 128 bytes are checksummed from the 16th byte on.
fn repair_header(bytes: &mut [u8]) {
    if let Some(header) = bytes.get_mut(..HEADER_BYTES) {
        let checksum = crc32c(&header[16..]);
        put(header, 12, &checksum.to_le_bytes());
    }
}

/// A segment's header, and the header of a batch.
fn segment_header(input: &[u8]) {
    let Some((repaired, bytes)) = mode(input) else { return };
    let mut bytes = bytes.to_vec();
    if repaired {
        repair_header(&mut bytes);
    }
    if let Ok(header) = SegmentHeader::decode(&bytes) {
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
    }
    if let Ok(identity) = Identity::decode(&bytes) {
        assert_eq!(Identity::decode(&identity.encode()), Ok(identity));
    }
    batch_header(bytes, repaired);
}

fn batch_header(mut bytes: Vec<u8>, repaired: bool) {
    const OFFSET: u32 = 8192;
    let seed = Seed::new(&STORE, SEGMENT, LIFE);
    if let Some(header) = bytes.get_mut(..BATCH_HEADER_BYTES).filter(|_| repaired) {
        let checksum = seed.checksum(&header[8..BATCH_LINK_OFFSET]);
        put(header, 4, &checksum.to_le_bytes());
    }
    let Ok((header, checksum)) = BatchHeader::decode(&bytes, seed, OFFSET) else { return };
    assert_eq!(checksum, u32_at(&bytes, 4));
    let mut encoded = [0; BATCH_HEADER_BYTES];
    let link = header.encode(seed, &mut encoded);
    assert_eq!(BatchHeader::decode(&encoded, seed, OFFSET), Ok((header, link)));
}

/// The header of a batch that was still in memory.
fn pending_header(input: &[u8]) {
    let Some((repaired, bytes)) = mode(input) else { return };
    let mut bytes = bytes.to_vec();
    if repaired {
        repair_header(&mut bytes);
    }
    if let Ok(header) = PendingHeader::decode(&bytes) {
        assert_eq!(PendingHeader::decode(&header.encode()), Ok(header));
        let seed = Seed::new(&header.store, header.segment, header.life);
        let (segment, offset, number) = (header.segment, header.offset, header.number);
        let bytes = &bytes[HEADER_BYTES..];
        let view = BatchView { bytes, seed, segment, offset, number };
        let _ = (BatchHeader::decode(bytes, seed, offset), view.records().count());
    }
}

/// A manifest, of the store or of its runs, perhaps with store, length and checksum put right.
fn manifest_bytes(input: &[u8]) -> Option<Vec<u8>> {
    let (repaired, bytes) = mode(input)?;
    let mut bytes = bytes.to_vec();
    if repaired && bytes.len() >= 64 {
        let length = bytes.len() as u64;
        put(&mut bytes, 16, &STORE);
        put(&mut bytes, 32, &length.to_le_bytes());
        let checksum = crc32c(&bytes[16..]);
        put(&mut bytes, 12, &checksum.to_le_bytes());
    }
    Some(bytes)
}

/// A checkpoint's lists of tables and segments.
fn manifest(input: &[u8]) {
    let Some(bytes) = manifest_bytes(input) else { return };
    if let Ok(manifest) = Manifest::decode(&bytes, &STORE) {
        assert_eq!(Manifest::decode(&manifest.encode(&STORE), &STORE), Ok(manifest));
    }
}

/// The checkpoint of a hash index: the input is the file, or has the bytes of some of its shards.
fn hash_checkpoint(input: &[u8]) {
    const TABLE: u32 = 16;
    const NUMBER: u64 = 5;
    let Some((repaired, bytes)) = mode(input) else { return };
    let file = if repaired { hash_file(bytes, TABLE, NUMBER) } else { bytes.to_vec() };
    let index = HashIndex::new(1 << 20);
    let Ok(tail) = decode_hash(&index, &file, &STORE, TABLE, NUMBER) else { return };
    assert!(tail.unsettled.len() * 8 <= file.len());
    let mut at = HASH_HEADER_BYTES;
    for shard in 0..SHARDS {
        let mut encoded = Vec::new();
        index.encode_shard(shard, &mut encoded);
        at += SHARD_HEADER_BYTES;
        assert!(file[at..].starts_with(&encoded), "shard {shard} is encoded as it was");
        at += encoded.len();
    }
}

/// A file with right checksums, whose shards the input gives: a shard's number, its length, and its bytes.
fn hash_file(mut input: &[u8], table: u32, number: u64) -> Vec<u8> {
    let mut shards = vec![vec![0; 8]; SHARDS];
    while let Some((&[low, high, length], rest)) = input.split_first_chunk::<3>() {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(length)));
        shards[usize::from(u16::from_le_bytes([low, high])) % SHARDS] = body.to_vec();
        input = rest;
    }
    let mut file = vec![0; HASH_HEADER_BYTES];
    put(&mut file, 0, HASH_MAGIC);
    put(&mut file, 8, &FIRST_VERSION.to_le_bytes());
    put(&mut file, 16, &STORE);
    put(&mut file, 32, &table.to_le_bytes());
    put(&mut file, 36, &(SHARDS as u32).to_le_bytes());
    put(&mut file, 40, &number.to_le_bytes());
    let checksum = crc32c(&file[16..]);
    put(&mut file, 12, &checksum.to_le_bytes());
    for body in shards {
        file.extend_from_slice(&(body.len() as u64).to_le_bytes());
        file.extend_from_slice(&crc32c(&body).to_le_bytes());
        file.extend_from_slice(&[0; 4]);
        file.extend_from_slice(&body);
    }
    // The rest of the input is the list of unsettled hashes.
    let checksum = crc32c(input);
    file.extend_from_slice(input);
    file.extend_from_slice(&checksum.to_le_bytes());
    file
}
