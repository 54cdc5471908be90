//! Counts beside the entries of the index, changed in the same transactions, so that both agree after every crash.
//!
//! A count of chunks belongs to one life of their segment: bytes that could not be counted off, because a list of chunks was
//! unreadable, are forgotten with the life.

use std::collections::{BTreeMap, BTreeSet};

use heed::{Env, MdbError, RwTxn};

use super::LmdbIndex;
use super::keys::{CHUNK_PREFIX, chunk_key, decode_chunk_count, encode_chunk_count, prefixed, table_and_segment_of};
use super::limits::{KEYS_PER_TRANSACTION, MIN_KEYS_PER_TRANSACTION};
use crate::format::segment::{put, u64_at};
use crate::index::accounting::{Accounting, ChunkBytes, LiveChanges};
use crate::index::chain::{Entry, FOLD_AT, VersionChain};
use crate::index::codec::{encode_chain, table_of};
use crate::sync::atomic::Ordering;
use crate::sync::{InOrderGuard, Rank};
use crate::{Error, Result};

const SEGMENT_PREFIX: [u8; 4] = 1u32.to_be_bytes();
pub(super) const COUNT_PREFIX: [u8; 4] = 2u32.to_be_bytes();

/// Keys by table.
pub(super) type Counts = BTreeMap<u32, i64>;

/// What a transaction changes besides keys.
pub(super) struct Changes<'a> {
    accounting: &'a Accounting<'a>,
    live: LiveChanges,
    /// By table, segment and life.
    chunks: BTreeMap<(u32, u32, u64), i64>,
    counts: Counts,
    /// Entries that died, with their tables and the bytes that they counted.
    dead: Vec<(u32, Entry, i64)>,
    piled_up: Vec<(Box<[u8]>, usize)>,
}

impl Changes<'_> {
    /// Notes a key's new chain: its operands may be worth folding.
    pub(super) fn stored(&mut self, key: &[u8], chain: &VersionChain) {
        if chain.operands() >= FOLD_AT {
            self.piled_up.push((key.into(), chain.operands()));
        }
    }

    /// Notes that a key of a table that is gone leaves the index with all its records. Its chunks leave the counts with the table's.
    pub(super) fn purged(&mut self, key: &[u8], chain: &VersionChain) {
        *self.counts.entry(table_of(key)).or_default() -= 1;
        for entry in chain.entries() {
            self.count(key, entry, -1);
        }
        self.died(key, chain.entries().iter().cloned());
    }

    /// Notes that entries of a key died.
    pub(super) fn died(&mut self, key: &[u8], entries: impl Iterator<Item = Entry>) {
        let accounting = self.accounting;
        self.dead.extend(entries.map(|entry| {
            let bytes = accounting.bytes_of(key, &entry);
            (table_of(key), entry, bytes)
        }));
    }

    /// Whether the table of a key is gone.
    pub(super) fn is_gone(&self, key: &[u8]) -> bool {
        (self.accounting.is_gone)(table_of(key))
    }

    fn count(&mut self, key: &[u8], entry: &Entry, sign: i64) {
        let Entry { location, form, .. } = entry;
        let change = self.live.entry(location.segment).or_default();
        change.0 += sign * self.accounting.bytes_of(key, entry);
        change.1 += sign;
        if form.chunked {
            for ChunkBytes { segment, life, bytes } in (self.accounting.chunks_of)(entry) {
                *self.chunks.entry((table_of(key), segment, life)).or_default() += sign * bytes;
            }
        }
    }
}

impl LmdbIndex {
    /// Live bytes and records that the committed entries have in each segment.
    pub(crate) fn live(&self) -> Result<LiveChanges> {
        self.load_prefix(SEGMENT_PREFIX, |value| (u64_at(value, 0) as i64, u64_at(value, 8) as i64))
    }

    /// Bytes of chunks that the committed entries name, by table.
    pub(crate) fn live_chunks(&self) -> Result<Vec<(u32, ChunkBytes)>> {
        let mut out = Vec::new();
        self.for_each_with_prefix(&CHUNK_PREFIX, |key, value| {
            let (table, segment) = table_and_segment_of(key).ok_or_else(|| self.bad_entry())?;
            let (life, bytes) = decode_chunk_count(value).ok_or_else(|| self.bad_entry())?;
            out.push((table, ChunkBytes { segment, life, bytes }));
            Ok(())
        })?;
        Ok(out)
    }

    /// Sets the counts of chunks, whatever was counted before.
    pub(crate) fn set_live_chunks(&self, chunks: &[(u32, ChunkBytes)]) -> Result<()> {
        self.transact(&Accounting::NONE, |txn, _| {
            self.forget_prefix(txn, &CHUNK_PREFIX)?;
            for (table, ChunkBytes { segment, life, bytes }) in chunks {
                self.database.put(txn, &chunk_key(*table, *segment), &encode_chunk_count(*life, *bytes))?;
            }
            Ok(())
        })
        .map(drop)
    }

    /// The tables that have committed entries, or counts of earlier ones.
    pub(crate) fn tables(&self) -> Result<BTreeSet<u32>> {
        let mut tables: BTreeSet<u32> = self.live_chunks()?.into_iter().map(|(table, _)| table).collect();
        let counts = self.counts.lock().expect("no code panics while it holds the counts");
        tables.extend(counts.iter().filter(|(_, count)| **count > 0).map(|(table, _)| *table));
        Ok(tables)
    }

    /// Committed keys of a table.
    pub(crate) fn count(&self, table: u32) -> u64 {
        let counts = self.counts.lock().expect("no code panics while it holds the counts");
        counts.get(&table).map_or(0, |&count| count.max(0) as u64)
    }

    /// Stores a key's chain, and counts the difference.
    pub(super) fn store(
        &self,
        txn: &mut RwTxn<'_>,
        key: &[u8],
        chain: &VersionChain,
        changes: &mut Changes<'_>,
    ) -> heed::Result<()> {
        let table = table_of(key);
        let old = self.committed_in(txn, key)?;
        let is_new = old.is_none();
        *changes.counts.entry(table).or_default() += i64::from(!chain.is_empty()) - i64::from(!is_new);
        let old = old.unwrap_or_default();
        let added = chain.entries().iter().filter(|entry| !old.entries().contains(entry));
        added.for_each(|entry| changes.count(key, entry, 1));
        let removed = old.entries().iter().filter(|entry| !chain.entries().contains(entry));
        removed.for_each(|entry| changes.count(key, entry, -1));
        match chain.is_empty() {
            true if is_new => Ok(()),
            true => self.database.delete(txn, key).map(drop),
            false => self.database.put(txn, key, &encode_chain(chain)),
        }
    }

    /// Forgets the counts of a table's chunks.
    pub(super) fn forget_chunks(&self, txn: &mut RwTxn<'_>, table: u32) -> heed::Result<()> {
        self.forget_prefix(txn, &[CHUNK_PREFIX, table.to_be_bytes()].concat())
    }

    fn forget_prefix(&self, txn: &mut RwTxn<'_>, prefix: &[u8]) -> heed::Result<()> {
        let items = self.database.prefix_iter(txn, prefix)?;
        let keys = items.map(|item| item.map(|(key, _)| key.to_vec())).collect::<heed::Result<Vec<_>>>()?;
        keys.iter().try_for_each(|key| self.database.delete(txn, key).map(drop))
    }

    /// Runs `work` in a transaction, again after growing the map when it was full, and changes the counters in the same
    /// transaction. The next one begins once the returned turn is dropped.
    pub(super) fn transact(
        &self,
        accounting: &Accounting<'_>,
        work: impl FnMut(&mut RwTxn<'_>, &mut Changes<'_>) -> heed::Result<()>,
    ) -> Result<InOrderGuard<'_, { Rank::Transactions as u8 }>> {
        let turn = self.transactions.lock();
        self.transact_in_turn(accounting, work).map(|()| turn)
    }

    /// [`LmdbIndex::transact`] with at most as many keys as `work` is told: with ever fewer where the disk has no room for the
    /// pages that they touch. The old pages of a small transaction are free for the transaction after the next.
    pub(super) fn transact_some<T>(
        &self,
        accounting: &Accounting<'_>,
        mut work: impl FnMut(&mut RwTxn<'_>, &mut Changes<'_>, usize) -> heed::Result<T>,
    ) -> Result<(T, InOrderGuard<'_, { Rank::Transactions as u8 }>)> {
        let turn = self.transactions.lock();
        loop {
            let (keys, written) = self.next_transaction()?;
            let mut done = None;
            let outcome = self.transact_in_turn(accounting, |txn, changes| {
                done = Some(work(txn, changes, keys)?);
                Ok(())
            });
            let next = match &outcome {
                Ok(()) => KEYS_PER_TRANSACTION.min(keys + keys / 8 + 1),
                Err(error) if error.is_full() => (keys / 4).max(MIN_KEYS_PER_TRANSACTION),
                Err(_) => keys,
            };
            self.transaction_keys.store(next, Ordering::Relaxed);
            match outcome {
                Ok(()) => {
                    self.last_written.store(written, Ordering::Relaxed);
                    return Ok((done.expect("the transaction did it"), turn));
                }
                Err(error) if error.is_full() => {
                    self.trim_file();
                    if next == keys {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn transact_in_turn(
        &self,
        accounting: &Accounting<'_>,
        mut work: impl FnMut(&mut RwTxn<'_>, &mut Changes<'_>) -> heed::Result<()>,
    ) -> Result<()> {
        if self.has_room.get().is_some_and(|has_room| !has_room()) {
            return Err(Error::DiskFull { path: self.path.clone() });
        }
        loop {
            let counts = self.counts.lock().expect("no code panics while it holds the counts").clone();
            let (live, chunks, dead, piled_up) = Default::default();
            let mut changes = Changes { accounting, live, chunks, counts, dead, piled_up };
            let outcome = self.try_transact(self.env().as_ref().ok_or(Error::Closed)?, &mut work, &mut changes);
            match outcome {
                Ok(()) => {
                    *self.counts.lock().expect("no code panics while it holds the counts") = changes.counts;
                    changes.dead.iter().for_each(|(table, entry, bytes)| (accounting.died)(*table, entry, *bytes));
                    changes.piled_up.iter().for_each(|(key, operands)| (accounting.piled_up)(key, *operands));
                    return Ok(());
                }
                Err(heed::Error::Mdb(MdbError::MapFull)) => self.grow()?,
                Err(error) => return Err(self.failed(&error)),
            }
        }
    }

    fn try_transact(
        &self,
        env: &Env,
        work: &mut impl FnMut(&mut RwTxn<'_>, &mut Changes<'_>) -> heed::Result<()>,
        changes: &mut Changes<'_>,
    ) -> heed::Result<()> {
        let mut txn = env.write_txn()?;
        work(&mut txn, changes)?;
        for (segment, (bytes, records)) in &changes.live {
            let key = prefixed(SEGMENT_PREFIX, *segment);
            let old = self.database.get(&txn, &key)?.map_or((0, 0), |v| (u64_at(v, 0) as i64, u64_at(v, 8) as i64));
            let mut value = [0; 16];
            put(&mut value, 0, &(old.0 + bytes).to_le_bytes());
            put(&mut value, 8, &(old.1 + records).to_le_bytes());
            self.database.put(&mut txn, &key, &value)?;
        }
        for ((table, segment, life), bytes) in &changes.chunks {
            let key = chunk_key(*table, *segment);
            let old = self.database.get(&txn, &key)?.and_then(decode_chunk_count);
            let of_life = old.filter(|(old_life, _)| old_life == life).map_or(0, |(_, bytes)| bytes);
            match of_life + bytes {
                0 => drop(self.database.delete(&mut txn, &key)?),
                bytes => self.database.put(&mut txn, &key, &encode_chunk_count(*life, bytes))?,
            }
        }
        for (table, count) in &changes.counts {
            self.database.put(&mut txn, &prefixed(COUNT_PREFIX, *table), &count.to_le_bytes())?;
        }
        // No step that could fail comes after it: entries that are committed and said not to be would be counted again.
        txn.commit()
    }

    pub(super) fn load_prefix<T>(&self, prefix: [u8; 4], decode: impl Fn(&[u8]) -> T) -> Result<BTreeMap<u32, T>> {
        let mut out = BTreeMap::new();
        self.for_each_with_prefix(&prefix, |key, value| {
            if key.len() == 8 && value.len() >= 8 {
                out.insert(u32::from_be_bytes([key[4], key[5], key[6], key[7]]), decode(value));
            }
            Ok(())
        })?;
        Ok(out)
    }

    pub(super) fn for_each_with_prefix(
        &self,
        prefix: &[u8],
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let env = self.env();
        let failed = |e: heed::Error| self.failed(&e);
        let txn = env.as_ref().ok_or(Error::Closed)?.read_txn().map_err(failed)?;
        for item in self.database.prefix_iter(&txn, prefix).map_err(failed)? {
            let (key, value) = item.map_err(failed)?;
            visit(key, value)?;
        }
        Ok(())
    }
}
