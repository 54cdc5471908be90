//! A look-up of what runs have under one tag, as steps between which a block is read.

use std::sync::Arc;

use super::super::file::hash_of;
use super::super::lookup::{AwaitedBytes, RunLookup};
use super::super::set::{Run, RunSet};
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

impl<D: Device> SpilledLookUp<D> {
    /// `None` if no filter says that there may be something.
    pub(super) fn new(
        set: Arc<RunSet<D>>,
        cache: Arc<Cache>,
        hash_seed: u64,
        table: u32,
        hash: u64,
    ) -> Option<SpilledLookUp<D>> {
        let key = tag_key(table, known_bits(hash));
        let hash = hash_of(hash_seed, &key);
        // All are asked, since each waits for memory: that costs less than to wait for one after the other.
        let in_run = |run: &Run<D>| run.first_up_to(&key).is_some_and(|file| file.may_contain(hash));
        let may_have = set.runs.iter().fold(false, |may_have, run| may_have | in_run(run));
        let runs = may_have.then(|| RunLookup::new(set, cache, hash, u64::MAX))?;
        Some(SpilledLookUp { key, runs, chain: VersionChain::default() })
    }

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
