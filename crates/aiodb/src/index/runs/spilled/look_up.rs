//! A look-up of what runs have under one tag, as steps between which a block is read.

use std::sync::Arc;

use super::super::file::hash_of;
use super::super::lookup::{AwaitedBytes, RunLookup};
use super::super::set::RunSet;
use super::tag::places_of;
use crate::cache::Cache;
use crate::format::location::Location;
use crate::index::chain::VersionChain;
use crate::index::codec::{TAG_KEY_BYTES, tag_key};
use crate::index::hash::known_bits;
use crate::io::Device;
use crate::{Error, Result};

/// A look-up on its way. It holds the files that it sees; whoever has it holds a guard of the epoch.
pub(crate) struct SpilledLookUp<D: Device> {
    key: [u8; TAG_KEY_BYTES],
    runs: RunLookup<D>,
    chain: VersionChain,
}

/// A tag that runs are asked for.
pub(super) struct AskedTag {
    key: [u8; TAG_KEY_BYTES],
    /// The key's hash, for filters.
    hash: u64,
}

impl AskedTag {
    /// The tag of a hash in a table.
    pub(super) fn new(hash_seed: u64, table: u32, hash: u64) -> AskedTag {
        let key = tag_key(table, known_bits(hash));
        AskedTag { key, hash: hash_of(hash_seed, &key) }
    }

    /// Whether a filter says that there may be something.
    pub(super) fn may_be_in<D: Device>(&self, set: &RunSet<D>) -> bool {
        // All are asked, since each waits for memory: that costs less than to wait for one after the other.
        set.runs.iter().fold(false, |may_have, run| may_have | run.may_have(&self.key, self.hash))
    }

    /// A look-up of it.
    pub(super) fn look_up<D: Device>(&self, set: Arc<RunSet<D>>, cache: Arc<Cache>) -> SpilledLookUp<D> {
        let runs = RunLookup::new(set, cache, self.hash, u64::MAX);
        SpilledLookUp { key: self.key, runs, chain: VersionChain::default() }
    }
}

impl<D: Device> SpilledLookUp<D> {
    /// Goes on until a block must be read: then there is one that is awaited. False once the look-up is at its end.
    pub(crate) fn proceed(&mut self) -> Result<bool> {
        self.runs.proceed(&self.key, &mut self.chain)
    }

    /// Where the awaited block lies.
    pub(crate) fn awaited(&self) -> AwaitedBytes<'_, D> {
        self.runs.awaited()
    }

    /// The error of a read of it that failed.
    pub(crate) fn read_error(&self, error: &std::io::Error) -> Error {
        self.runs.read_error(error)
    }

    /// Takes in the units of the awaited block.
    pub(crate) fn take_in(&mut self, bytes: &[u8]) -> Result<()> {
        self.runs.take_in(&self.key, bytes, &mut self.chain)
    }

    /// Goes on to the end: the calling thread reads the blocks.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.runs.finish(&self.key, &mut self.chain)
    }

    /// The places that were found, newest first.
    pub(crate) fn places(&self) -> impl Iterator<Item = Location> {
        places_of(&self.chain).0
    }
}
