//! The bytes of a data block: keys in order, each with what it does not share with the key before, and its entries.
//!
//! Every few keys there is a restart point, whose key shares nothing, so that a look-up reads few of them. A block is one unit,
//! or, where one key does not fit into that, as many units as this key needs. In the file it may be compressed, see `sealed.rs`.

use super::chain::{Entries, encode_chain, skip_chain, take_chain};
use super::sealed::seal;
use super::{MAX_INDEX_KEY_BYTES, RunSeed, shared_bytes};
use crate::format::entry::Entry;
use crate::format::segment::{Damage, put, u16_at, u32_at, u64_at};
use crate::format::varint::{put_varint, take_varint};
use crate::io::UNIT_BYTES;

pub(crate) const BLOCK_HEADER_BYTES: usize = 20;

/// Keys from one restart point to the next.
const RESTART_KEYS: usize = 16;

/// Bytes of a restart point.
const RESTART_BYTES: usize = 2;

/// A block that is being filled.
pub(crate) struct BlockBuilder {
    base: u64,
    most_bytes: usize,
    entries: Vec<u8>,
    restarts: Vec<u16>,
    keys: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    /// An empty block for entries whose sequences are not below `base`.
    pub(crate) fn new(base: u64) -> BlockBuilder {
        let (entries, restarts, last_key) = (Vec::new(), Vec::new(), Vec::new());
        BlockBuilder { base, most_bytes: UNIT_BYTES, entries, restarts, keys: 0, last_key }
    }

    /// Begins the next block, which has at most so many bytes, if it has more keys than one.
    pub(crate) fn begin(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
        self.entries.clear();
        self.restarts.clear();
        self.last_key.clear();
        self.keys = 0;
    }

    /// How many keys it has.
    pub(crate) fn keys(&self) -> usize {
        self.keys
    }

    /// The key that was added last.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Bytes without the padding at the end.
    pub(crate) fn bytes(&self) -> usize {
        BLOCK_HEADER_BYTES + self.entries.len() + self.restarts.len() * RESTART_BYTES
    }

    /// Adds a key that comes after all others, with its entries. False if it does not fit: then nothing has changed.
    #[must_use]
    pub(crate) fn add(&mut self, key: &[u8], entries: &[Entry], partial: bool) -> bool {
        let base = self.base;
        self.add_with(key, |out| encode_chain(out, entries, partial, base))
    }

    /// [`BlockBuilder::add`] of entries that [`encode_chain`] has encoded.
    #[must_use]
    pub(crate) fn add_encoded(&mut self, key: &[u8], chain: &[u8]) -> bool {
        self.add_with(key, |out| out.extend_from_slice(chain))
    }

    fn add_with(&mut self, key: &[u8], put_chain: impl FnOnce(&mut Vec<u8>)) -> bool {
        assert!(key.len() <= MAX_INDEX_KEY_BYTES, "an index key of {} bytes", key.len());
        debug_assert!(self.keys == 0 || *self.last_key < *key, "keys are added in order");
        let before = self.entries.len();
        let restarts = self.keys.is_multiple_of(RESTART_KEYS);
        let shared = if restarts { 0 } else { shared_bytes(&self.last_key, key) };
        if restarts {
            let Ok(at) = u16::try_from(before) else { return false };
            self.restarts.push(at);
        }
        put_varint(&mut self.entries, shared as u64);
        put_varint(&mut self.entries, (key.len() - shared) as u64);
        self.entries.extend_from_slice(&key[shared..]);
        put_chain(&mut self.entries);
        if self.bytes() > self.most_bytes && self.keys > 0 {
            self.entries.truncate(before);
            self.restarts.truncate(self.keys.div_ceil(RESTART_KEYS));
            return false;
        }
        self.keys += 1;
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&key[shared..]);
        true
    }

    /// Appends the block's bytes, which will lie at `offset` in the file, and begins the next block. Returns its units.
    pub(crate) fn finish(&mut self, seed: RunSeed, offset: u64, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        self.encode(out);
        self.begin(self.most_bytes);
        seal(out, start, seed, offset)
    }

    /// Appends the block's bytes as they are before it is sealed: [`Block::decode`] takes them so, too.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + BLOCK_HEADER_BYTES, 0);
        out.extend_from_slice(&self.entries);
        self.restarts.iter().for_each(|at| out.extend_from_slice(&at.to_le_bytes()));
        let block = &mut out[start..];
        put(block, 6, &(self.restarts.len() as u16).to_le_bytes());
        put(block, 8, &(self.entries.len() as u32).to_le_bytes());
        put(block, 12, &self.base.to_le_bytes());
    }
}

/// A block that has been read.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    base: u64,
    entries: &'a [u8],
    restarts: &'a [u8],
}

pub(super) const MALFORMED: Damage = Damage::Foreign("a block whose parts do not fit");

impl<'a> Block<'a> {
    /// The block in these bytes, which [`super::sealed::unseal`] has checked and decompressed.
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Block<'a>, Damage> {
        Self::decode_parts(bytes).ok_or(MALFORMED)
    }

    fn decode_parts(bytes: &'a [u8]) -> Option<Block<'a>> {
        let body = bytes.get(BLOCK_HEADER_BYTES..)?;
        let restarts_bytes = usize::from(u16_at(bytes, 6)) * RESTART_BYTES;
        let (entries, rest) = body.split_at_checked(usize::try_from(u32_at(bytes, 8)).ok()?)?;
        let restarts = rest.get(..restarts_bytes)?;
        Some(Block { base: u64_at(bytes, 12), entries, restarts })
    }

    /// All keys in order.
    pub(crate) fn keys(&self) -> BlockKeys<'a> {
        BlockKeys { base: self.base, rest: self.entries, key: Vec::new() }
    }

    /// Goes to the first key that is not before this one.
    pub(crate) fn seek(&self, from: &[u8], walk: &mut BlockWalk) -> Result<(), Damage> {
        let rest = self.restart_before(from).ok_or(MALFORMED)?;
        walk.clear();
        walk.base = self.base;
        walk.entries.extend_from_slice(rest);
        walk.step()?;
        while walk.key().is_some_and(|key| key < from) {
            walk.advance()?;
        }
        Ok(())
    }

    /// The entries of a key, if it is here.
    pub(crate) fn find(&self, key: &[u8]) -> Result<Option<(Entries, bool)>, Damage> {
        let rest = self.restart_before(key).ok_or(MALFORMED)?;
        let mut keys = BlockKeys { rest, ..self.keys() };
        loop {
            match keys.next_before(key).ok_or(MALFORMED)? {
                Found::Before => {}
                Found::Is(entries, partial) => return Ok(Some((entries, partial))),
                Found::Beyond => return Ok(None),
            }
        }
    }

    /// The bytes from the last restart point on whose key is not beyond this one.
    fn restart_before(&self, key: &[u8]) -> Option<&'a [u8]> {
        let (mut low, mut high) = (0, self.restarts.len() / RESTART_BYTES);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let mut rest = self.at_restart(middle)?;
            let (shared, unshared) = (take_varint(&mut rest)?, take_varint(&mut rest)?);
            if shared != 0 {
                return None;
            }
            let known = rest.get(..usize::try_from(unshared).ok()?)?;
            if known <= key { low = middle } else { high = middle }
        }
        if self.restarts.is_empty() { Some(self.entries) } else { self.at_restart(low) }
    }

    fn at_restart(&self, number: usize) -> Option<&'a [u8]> {
        self.entries.get(usize::from(u16_at(self.restarts, number * RESTART_BYTES))..)
    }
}

/// What a step through a block finds when it looks for a key.
enum Found {
    Before,
    Is(Entries, bool),
    /// A later key, or the end.
    Beyond,
}

/// The keys of a block, from some restart point on.
pub(crate) struct BlockKeys<'a> {
    base: u64,
    rest: &'a [u8],
    /// The key that was read last.
    key: Vec<u8>,
}

/// A key's entries, and whether they are partial.
pub(crate) type Chain = (Entries, bool);

impl BlockKeys<'_> {
    /// The next key and its entries; `Ok(None)` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], Chain)>, Damage> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let chain = self.take_key().and_then(|()| take_chain(&mut self.rest, self.base)).ok_or(MALFORMED)?;
        Ok(Some((&self.key, chain)))
    }

    fn next_before(&mut self, key: &[u8]) -> Option<Found> {
        if self.rest.is_empty() {
            return Some(Found::Beyond);
        }
        self.take_key()?;
        if *self.key > *key {
            return Some(Found::Beyond);
        }
        if *self.key != *key {
            return skip_chain(&mut self.rest, self.base).map(|()| Found::Before);
        }
        take_chain(&mut self.rest, self.base).map(|(entries, partial)| Found::Is(entries, partial))
    }

    fn take_key(&mut self) -> Option<()> {
        take_key(&mut self.rest, &mut self.key)
    }
}

/// Takes a key off the front; `key` has the one before it.
fn take_key(rest: &mut &[u8], key: &mut Vec<u8>) -> Option<()> {
    let shared = usize::try_from(take_varint(rest)?).ok()?;
    let unshared = usize::try_from(take_varint(rest)?).ok()?;
    let (suffix, behind) = rest.split_at_checked(unshared)?;
    if shared > key.len() || shared + unshared > MAX_INDEX_KEY_BYTES {
        return None;
    }
    key.truncate(shared);
    key.extend_from_slice(suffix);
    *rest = behind;
    Some(())
}

/// A place in a block that moves on from key to key: see [`Block::seek`]. It has a copy of what lies ahead, so the block can go.
#[derive(Default)]
pub(crate) struct BlockWalk {
    base: u64,
    entries: Vec<u8>,
    /// How many bytes of these have been read.
    read: usize,
    key: Vec<u8>,
    /// False at the end.
    has_key: bool,
    /// Whether the entries of the key have been read.
    is_taken: bool,
}

impl BlockWalk {
    /// Goes to the end.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.key.clear();
        (self.read, self.has_key) = (0, false);
    }

    /// The key here; `None` at the end.
    pub(crate) fn key(&self) -> Option<&[u8]> {
        self.has_key.then_some(&self.key)
    }

    /// Goes on to the next key.
    pub(crate) fn advance(&mut self) -> Result<(), Damage> {
        if self.has_key && !self.is_taken {
            self.read(|rest, base, _| skip_chain(rest, base))?;
        }
        self.step()
    }

    /// The entries of the key here, which can be taken once.
    pub(crate) fn take(&mut self) -> Result<Chain, Damage> {
        debug_assert!(self.has_key && !self.is_taken, "entries are taken once");
        self.is_taken = true;
        self.read(|rest, base, _| take_chain(rest, base))
    }

    /// Reads the key that follows.
    fn step(&mut self) -> Result<(), Damage> {
        self.has_key = self.read < self.entries.len();
        self.is_taken = false;
        if self.has_key { self.read(|rest, _, key| take_key(rest, key)) } else { Ok(()) }
    }

    fn read<T>(&mut self, take: impl FnOnce(&mut &[u8], u64, &mut Vec<u8>) -> Option<T>) -> Result<T, Damage> {
        let mut rest = &self.entries[self.read..];
        let taken = take(&mut rest, self.base, &mut self.key).ok_or(MALFORMED)?;
        self.read = self.entries.len() - rest.len();
        Ok(taken)
    }
}
