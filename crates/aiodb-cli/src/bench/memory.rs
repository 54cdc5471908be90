//! LMDB alone with the values inside it, all in memory: what the paper measured its store against.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, WithoutTls};

use super::dataset::Dataset;
use super::environment::memory_bytes;
use super::round::{self, Round, Tally};
use super::table::bytes;
use crate::CliError;

/// What one pair takes: a value of 4096 bytes and LMDB's page header need two pages, the leaves a few per cent more.
const FILE_BYTES_PER_PAIR: u64 = 8192 + 256;

/// LMDB's map has whole pages of the largest size that systems have.
const PAGE_BYTES: u64 = 64 << 10;

/// Pairs put in one transaction while loading.
const PAIRS_PER_TRANSACTION: usize = 10_000;

/// The clock is read once in this many gets.
const GETS_PER_LOOK: u64 = 64;

/// A loaded and warmed LMDB.
pub(crate) struct MemoryStore {
    env: Env<WithoutTls>,
    pairs: Database<'static, Bytes, Bytes>,
    data: Dataset,
}

impl MemoryStore {
    /// Puts every pair in, in key order, then reads every value once so that all pages are in memory.
    pub(crate) fn build(dir: &Path, data: Dataset) -> Result<MemoryStore, CliError> {
        let map_bytes = (data.pairs * FILE_BYTES_PER_PAIR).next_multiple_of(PAGE_BYTES) + (64 << 20);
        let available = memory_bytes("MemAvailable");
        if map_bytes > available {
            return Err(CliError::failed(format!(
                "LMDB with {} pairs needs {} of memory, {} are available: use fewer --pairs",
                data.pairs,
                bytes(map_bytes),
                bytes(available)
            )));
        }
        std::fs::create_dir(dir)
            .map_err(|error| CliError::failed(format!("cannot make the directory {}: {error}", dir.display())))?;
        let store = Self::open(dir, map_bytes as usize, data).map_err(failed)?;
        store.load().map_err(failed)?;
        store.warm()?;
        Ok(store)
    }

    fn open(dir: &Path, map_bytes: usize, data: Dataset) -> heed::Result<MemoryStore> {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        // SAFETY: without syncing only a power cut can damage the file, and the file ends with this benchmark.
        unsafe { options.map_size(map_bytes).flags(EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD) };
        // SAFETY: the directory was just made by this process, so no other process has the file open or changes it.
        let env = unsafe { options.open(dir)? };
        let pairs = env
            .create_databases_and_commit(env.write_txn()?, |opener, transaction| -> heed::Result<_> {
                Ok(CommitOrAbort::<_, ()>::Commit(opener.create_database(transaction, None)?))
            })?
            .unwrap_commit();
        Ok(MemoryStore { env, pairs, data })
    }

    fn load(&self) -> heed::Result<()> {
        let mut numbers: Vec<u64> = (0..self.data.pairs).collect();
        numbers.sort_unstable_by_key(|number| self.data.key(*number));
        let mut value = vec![0; self.data.value_bytes];
        for numbers in numbers.chunks(PAIRS_PER_TRANSACTION) {
            let mut transaction = self.env.write_txn()?;
            for &number in numbers {
                self.data.fill_value(number, &mut value);
                self.pairs.put_with_flags(&mut transaction, PutFlags::APPEND, &self.data.key(number), &value)?;
            }
            transaction.commit()?;
        }
        // Written back before anything is measured, so that the disk is quiet by then.
        self.env.force_sync()
    }

    fn warm(&self) -> Result<(), CliError> {
        let transaction = self.env.read_txn().map_err(failed)?;
        for number in 0..self.data.pairs {
            let value = self.get(&transaction, number)?;
            if !self.data.is_value(number, value) {
                return Err(CliError::failed(format!("LMDB returned another value for pair {number}")));
            }
        }
        Ok(())
    }

    fn get<'t>(&self, transaction: &'t RoTxn<WithoutTls>, number: u64) -> Result<&'t [u8], CliError> {
        let value = self.pairs.get(transaction, &self.data.key(number)).map_err(failed)?;
        value.ok_or_else(|| CliError::failed(format!("LMDB lost pair {number}")))
    }

    /// Random gets on one thread, each followed by a copy of the value's first `copy_bytes` bytes. With 0 the value's
    /// page is not touched, as in the paper.
    pub(crate) fn run(&self, copy_bytes: usize, duration: Duration) -> Result<Round, CliError> {
        round::run(1, None, |_| Ok(vec![0; copy_bytes]), |copy, start| self.copy_values(copy, start, start + duration))
    }

    fn copy_values(&self, mut copy: Vec<u8>, start: Instant, deadline: Instant) -> Result<Tally, CliError> {
        let transaction = self.env.read_txn().map_err(failed)?;
        let copy_bytes = copy.len();
        let mut random = fastrand::Rng::new();
        let mut finished = 0;
        loop {
            for _ in 0..GETS_PER_LOOK {
                let value = self.get(&transaction, random.u64(..self.data.pairs))?;
                copy.copy_from_slice(&value[..copy_bytes]);
                black_box((value.as_ptr(), &mut copy));
            }
            finished += GETS_PER_LOOK;
            let now = Instant::now();
            if now >= deadline {
                return Ok(Tally::untimed(finished, finished, now - start));
            }
        }
    }
}

fn failed(error: heed::Error) -> CliError {
    CliError::failed(format!("LMDB failed: {error}"))
}
