//! The bytes of superseded records that snapshots need, in files of their own. No I/O here.
//!
//! Such a file is read by the process that has written it, and by no other, so it has no version and no end that says what is in it. It is
//! a row of blocks. A block is one unit or, where one key does not fit into that, as many units as this key needs; filled up with zeros:
//!
//! | offset | size | meaning                                                                              |
//! | ------ | ---- | ------------------------------------------------------------------------------------ |
//! | 0      | 4    | checksum of the rest of the block, from the file's seed and the block's offset       |
//! | 4      | 4    | bytes of the keys                                                                    |
//! | 8      |      | the keys in their order, each with what it does not share with the one before        |
//!
//! A key is: bytes that it shares, other bytes (two varints), those bytes, how many versions it has (varint), and for each of them an entry
//! as blocks of runs have it (`run/chain.rs`), by how much the sequence that has superseded it is higher (varint), and a byte that is 1 where
//! it is a later copy.

use smallvec::SmallVec;

use crate::format::entry::Entry;
use crate::format::run::chain::{encode_chain, take_chain};
use crate::format::run::{RunSeed, shared_bytes};
use crate::format::segment::{Damage, put, u32_at};
use crate::format::varint::{put_varint, take_varint};
use crate::io::UNIT_BYTES;

const HEADER_BYTES: usize = 8;

/// A superseded record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) entry: Entry,
    /// The sequence that superseded it.
    pub(crate) until: u64,
    /// Whether this is a later copy of its record than any that was superseded before.
    pub(crate) later: bool,
}

/// The versions of one key, one for each of its records.
pub(crate) type KeyVersions = SmallVec<[Version; 1]>;

/// A key with its versions.
pub(crate) type KeyWithVersions = (Box<[u8]>, KeyVersions);

/// A block that is being filled.
#[derive(Default)]
pub(crate) struct BlockBuilder {
    keys: Vec<u8>,
    count: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// The key that was added last.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Bytes without the padding at the end.
    pub(crate) fn bytes(&self) -> usize {
        HEADER_BYTES + self.keys.len()
    }

    /// Adds a key that comes after all others. False if it does not fit: then nothing has changed.
    #[must_use]
    pub(crate) fn add(&mut self, key: &[u8], versions: &[Version]) -> bool {
        debug_assert!(self.count == 0 || *self.last_key < *key, "keys are added in order");
        let before = self.keys.len();
        let shared = if self.count == 0 { 0 } else { shared_bytes(&self.last_key, key) };
        put_varint(&mut self.keys, shared as u64);
        put_varint(&mut self.keys, (key.len() - shared) as u64);
        self.keys.extend_from_slice(&key[shared..]);
        put_varint(&mut self.keys, versions.len() as u64);
        for Version { entry, until, later } in versions {
            encode_chain(&mut self.keys, std::slice::from_ref(entry), false, 0);
            put_varint(&mut self.keys, until.checked_sub(entry.sequence).expect("what supersedes a record is newer"));
            self.keys.push(u8::from(*later));
        }
        if self.bytes() > UNIT_BYTES && self.count > 0 {
            self.keys.truncate(before);
            return false;
        }
        self.count += 1;
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        true
    }

    /// Appends the block's bytes, which will lie at `offset` in the file, and begins the next block. Returns its units.
    pub(crate) fn finish(&mut self, seed: RunSeed, offset: u64, out: &mut Vec<u8>) -> usize {
        let (start, units) = (out.len(), self.bytes().div_ceil(UNIT_BYTES));
        out.resize(start + HEADER_BYTES, 0);
        out.extend_from_slice(&self.keys);
        out.resize(start + units * UNIT_BYTES, 0);
        let block = &mut out[start..];
        put(block, 4, &u32::try_from(self.keys.len()).expect("a key's versions are bounded").to_le_bytes());
        let checksum = seed.checksum_at(offset, &block[4..]);
        put(block, 0, &checksum.to_le_bytes());
        self.keys.clear();
        self.last_key.clear();
        self.count = 0;
        units
    }
}

/// The keys of the block in these bytes, which lie at `offset` in the file.
pub(crate) fn decode_block(bytes: &[u8], seed: RunSeed, offset: u64) -> Result<Vec<KeyWithVersions>, Damage> {
    if bytes.len() < UNIT_BYTES || seed.checksum_at(offset, &bytes[4..]) != u32_at(bytes, 0) {
        return Err(Damage::Checksum);
    }
    let keys = usize::try_from(u32_at(bytes, 4)).ok().and_then(|length| bytes[HEADER_BYTES..].get(..length));
    keys.and_then(decode_keys).ok_or(Damage::Foreign("a block of versions whose parts do not fit"))
}

fn decode_keys(mut bytes: &[u8]) -> Option<Vec<KeyWithVersions>> {
    let (mut found, mut key) = (Vec::new(), Vec::new());
    while !bytes.is_empty() {
        let shared = usize::try_from(take_varint(&mut bytes)?).ok()?;
        let unshared = usize::try_from(take_varint(&mut bytes)?).ok()?;
        let (suffix, rest) = bytes.split_at_checked(unshared)?;
        key.get(..shared)?;
        key.truncate(shared);
        key.extend_from_slice(suffix);
        bytes = rest;
        let count = take_varint(&mut bytes)?;
        let versions = (0..count).map(|_| take_version(&mut bytes)).collect::<Option<KeyVersions>>()?;
        found.push((key[..].into(), versions));
    }
    Some(found)
}

fn take_version(bytes: &mut &[u8]) -> Option<Version> {
    let (entries, _) = take_chain(bytes, 0)?;
    let [entry] = &entries[..] else { return None };
    let until = entry.sequence.checked_add(take_varint(bytes)?)?;
    let (&later, rest) = bytes.split_first()?;
    *bytes = rest;
    Some(Version { entry: entry.clone(), until, later: later == 1 })
}

#[cfg(test)]
mod tests;
