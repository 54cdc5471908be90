//! A look-up of one key in all runs, newest first, as steps between which a block is read: by the caller's thread, or by a queue of
//! reads that never blocks one.

use std::sync::Arc;

use super::file::RunFile;
use super::set::RunSet;
use crate::Result;
use crate::cache::{Cache, Place};
use crate::index::chain::VersionChain;
use crate::index::codec::table_of;
use crate::io::{Device, UNIT_BYTES};

/// A look-up on its way. It sees the runs that there were when it began.
pub(crate) struct RunLookup<D: Device> {
    set: Arc<RunSet<D>>,
    cache: Arc<Cache>,
    /// The key's hash, for filters.
    hash: u64,
    /// Later entries do not count.
    newest: u64,
    /// The place in the set of the run that is asked next.
    next_run: usize,
    awaited: Option<AwaitedBlock<D>>,
}

/// A block that may have the key, and that must be read.
struct AwaitedBlock<D: Device> {
    file: Arc<RunFile<D>>,
    number: usize,
}

/// Where bytes lie that must be read.
pub(crate) struct AwaitedBytes<'a, D: Device> {
    pub(crate) file: &'a D::File,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

impl<D: Device> RunLookup<D> {
    pub(super) fn new(set: Arc<RunSet<D>>, cache: Arc<Cache>, hash: u64, newest: u64) -> RunLookup<D> {
        RunLookup { set, cache, hash, newest, next_run: 0, awaited: None }
    }

    /// Goes on until a block must be read: then there is one that is awaited. False once the look-up is at its end: `chain` has the
    /// key's entries below those that it had.
    pub(crate) fn proceed(&mut self, key: &[u8], chain: &mut VersionChain) -> Result<bool> {
        debug_assert!(self.awaited.is_none(), "the awaited block comes first");
        while !chain.is_complete()
            && let Some(run) = self.set.runs.get(self.next_run)
        {
            self.next_run += 1;
            let Some(file) = run.file_of(key, self.hash) else { continue };
            let number = file.fences.block_of(key);
            let Some(cached) = self.cache.get_block(place_of(file, number)) else {
                self.awaited = Some(AwaitedBlock { file: Arc::clone(file), number });
                return Ok(true);
            };
            if let Some(found) = file.find(key, number, cached.value())? {
                chain.add_found(found, self.newest);
            }
        }
        Ok(false)
    }

    /// Where the awaited block lies. There must be one.
    pub(crate) fn awaited(&self) -> AwaitedBytes<'_, D> {
        let AwaitedBlock { file, number } = self.awaited.as_ref().expect("a block is awaited");
        let (start, end) = file.fences.units_of(*number);
        let (offset, length) = (u64::from(start) * UNIT_BYTES as u64, (end - start) as usize * UNIT_BYTES);
        AwaitedBytes { file: file.device_file(), offset, length }
    }

    /// The place of the awaited block in the cache.
    pub(crate) fn place(&self) -> Place {
        let AwaitedBlock { file, number } = self.awaited.as_ref().expect("a block is awaited");
        place_of(file, *number)
    }

    /// Takes in the units of the awaited block, and leaves its plain bytes in the cache.
    pub(crate) fn take_in(&mut self, key: &[u8], bytes: &[u8], chain: &mut VersionChain) -> Result<()> {
        let AwaitedBlock { file, number } = self.awaited.take().expect("a block is awaited");
        let plain = file.plain(number, bytes)?;
        if let Some(found) = file.find(key, number, &plain)? {
            chain.add_found(found, self.newest);
        }
        self.cache.insert(place_of(&file, number), table_of(key), &[], &plain);
        Ok(())
    }

    /// The error of a read of the awaited block that failed.
    pub(crate) fn read_error(&self, error: &std::io::Error) -> crate::Error {
        self.awaited.as_ref().expect("a block is awaited").file.read_error(error)
    }

    /// Goes on to the end: the calling thread reads the blocks.
    pub(crate) fn finish(&mut self, key: &[u8], chain: &mut VersionChain) -> Result<()> {
        loop {
            if let Some(AwaitedBlock { file, number }) = &self.awaited {
                let (start, end) = file.fences.units_of(*number);
                let bytes = file.read(start, end)?;
                self.take_in(key, &bytes, chain)?;
            }
            if !self.proceed(key, chain)? {
                return Ok(());
            }
        }
    }
}

/// The place of a block in the cache.
pub(super) fn place_of<D: Device>(file: &RunFile<D>, block: usize) -> Place {
    Place::of_block(file.name.number, file.fences.units_of(block).0)
}
