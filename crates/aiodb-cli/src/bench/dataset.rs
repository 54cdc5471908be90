//! The pairs that are stored and read: keys in no order, values that can be checked from the key alone.

use std::path::{Path, PathBuf};

use aiodb::{Backend, Batch, Db, Options, Table, TableOptions};
use tempfile::TempDir;

use super::terminal::progress;
use crate::CliError;

/// The paper's size of a value in bytes.
pub(crate) const VALUE_BYTES: usize = 4096;

/// The name of the table that is measured.
const TABLE: &str = "bench";

/// Bytes of values in one batch while loading: large enough for the device's full write rate.
const LOAD_BATCH_BYTES: usize = 1 << 20;

/// Numbered pairs: 8-byte keys, values of a fixed size made from the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dataset {
    pub pairs: u64,
    /// A multiple of 8, at least 16.
    pub value_bytes: usize,
}

impl Dataset {
    /// The key of pair `number`. Neighbouring numbers lie far apart in key order; no two numbers share a key.
    pub(crate) fn key(&self, number: u64) -> [u8; 8] {
        mix(number).to_be_bytes()
    }

    /// Writes the value of pair `number`.
    pub(crate) fn fill_value(&self, number: u64, value: &mut [u8]) {
        for (index, word) in value.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&word_of(number, index).to_le_bytes());
        }
    }

    /// Whether `value` belongs to pair `number`: its length, its first 16 bytes, and words at its quarters and its end.
    pub(crate) fn is_value(&self, number: u64, value: &[u8]) -> bool {
        let words = self.value_bytes / 8;
        let holds = |index: usize| value[index * 8..index * 8 + 8] == word_of(number, index).to_le_bytes();
        value.len() == self.value_bytes && [0, 1, words / 4, words / 2, words - 1].into_iter().all(holds)
    }

    /// The numbers of all pairs in the order of their keys.
    pub(crate) fn sorted(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = (0..self.pairs).collect();
        numbers.sort_unstable_by_key(|number| self.key(*number));
        numbers
    }

    pub(crate) fn data_bytes(&self) -> u64 {
        self.pairs * (8 + self.value_bytes as u64)
    }
}

/// Word `index` of the value of pair `number`.
fn word_of(number: u64, index: usize) -> u64 {
    mix(number ^ (index as u64 + 1) << 40)
}

/// The finaliser of SplitMix64: a permutation of the 64-bit numbers that looks random.
pub(crate) fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Bytes of a [`random_key`].
pub(crate) const KEY_BYTES: usize = 25;

/// Key `number`: bytes that look random; no two numbers share a key.
pub(crate) fn random_key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    for (index, part) in key.chunks_mut(8).enumerate() {
        part.copy_from_slice(&mix(number ^ (index as u64) << 56).to_be_bytes()[..part.len()]);
    }
    key
}

/// Bytes that look random, the same each time.
pub(crate) fn random_bytes(count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    fastrand::Rng::with_seed(1).fill(&mut bytes);
    bytes
}

/// A fresh directory for a benchmark's files, removed at the end unless it is to be kept.
pub(crate) struct Scratch {
    dir: Option<TempDir>,
    path: PathBuf,
    keep: bool,
}

impl Scratch {
    pub(crate) fn new(parent: &Path, keep: bool) -> Result<Scratch, CliError> {
        let dir = tempfile::Builder::new()
            .prefix("aiodb-bench-")
            .tempdir_in(parent)
            .map_err(|error| CliError::failed(format!("cannot make a directory in {}: {error}", parent.display())))?;
        Ok(Scratch { path: dir.path().to_owned(), dir: Some(dir), keep })
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.keep
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Some(dir) = self.dir.take().filter(|_| self.keep) {
            progress(&format!("kept {}", dir.keep().display()));
        }
    }
}

/// Removes a store that has been measured, unless it is to be kept: the next one may want its space.
pub(crate) fn remove_unless(kept: bool, store: &Path) -> Result<(), CliError> {
    if kept {
        return Ok(());
    }
    std::fs::remove_dir_all(store)
        .map_err(|error| CliError::failed(format!("cannot remove {}: {error}", store.display())))
}

/// The order in which pairs are put, and so lie in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// That of their numbers, which is none in keys.
    Numbers,
    Keys,
}

/// An open store with one loaded table.
pub(crate) struct LoadedStore {
    pub db: Db,
    pub table: Table,
}

impl LoadedStore {
    /// Makes a store in these directories and puts every pair into it; everything is durable and indexed when this returns.
    /// It has no cache of values: each get reads the device.
    pub(crate) fn build(
        paths: &[PathBuf],
        options: impl Into<TableOptions>,
        data: Dataset,
        order: Order,
    ) -> Result<LoadedStore, CliError> {
        let db = Db::open_several(paths, Options { cache_bytes: 0, ..Options::default() })?;
        let table = db.create_table_with(TABLE, options.into())?;
        let pairs_per_batch = (LOAD_BATCH_BYTES / data.value_bytes).max(1) as u64;
        let mut value = vec![0; data.value_bytes];
        let numbers = match order {
            Order::Numbers => (0..data.pairs).collect(),
            Order::Keys => data.sorted(),
        };
        for numbers in numbers.chunks(pairs_per_batch as usize) {
            let mut batch = Batch::new();
            for &number in numbers {
                data.fill_value(number, &mut value);
                batch.put(&table, &data.key(number), &value)?;
            }
            db.write(&batch)?;
        }
        db.checkpoint()?;
        Ok(LoadedStore { db, table })
    }

    /// Opens a store made by [`LoadedStore::build`] with a certain device backend and a cache of this size.
    pub(crate) fn open(paths: &[PathBuf], backend: Backend, cache_bytes: u64) -> aiodb::Result<LoadedStore> {
        let db = Db::open_several(paths, Options { create: false, backend, cache_bytes, ..Options::default() })?;
        let table = db.table(TABLE)?;
        Ok(LoadedStore { db, table })
    }
}

#[cfg(test)]
mod tests;
