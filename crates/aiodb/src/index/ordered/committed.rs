//! What lies below the memtable of an ordered index.

use std::collections::BTreeSet;

use crate::Result;
use crate::index::accounting::{Accounting, ChunkBytes, LiveChanges};
use crate::index::chain::{Entry, VersionChain};
use crate::index::lmdb::LmdbIndex;
use crate::index::memtable::parts::Chains;
use crate::index::memtable::{ImmutableMemtable, KeyRange, MemtableRoom, Reached};
use crate::index::range_tombstones::RangeTombstone;

/// The committed version chains of all tables of a kind.
pub(crate) enum Committed {
    Lmdb(LmdbIndex),
}

impl Committed {
    /// LMDB, for what only its file needs.
    pub(crate) fn lmdb(&self) -> Option<&LmdbIndex> {
        match self {
            Committed::Lmdb(lmdb) => Some(lmdb),
        }
    }

    /// Adds the committed entries of an index key up to a sequence, below the entries in `chain`.
    pub(super) fn lookup(&self, key: &[u8], newest: u64, chain: &mut VersionChain) -> Result<()> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.lookup(key, newest, chain),
        }
    }

    /// Adds up to `limit` committed keys of a range, with their entries up to a sequence.
    pub(super) fn range(
        &self,
        range: KeyRange<'_>,
        backward: bool,
        limit: usize,
        newest: u64,
        found: &mut Chains,
    ) -> Result<Reached> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.range(range, backward, limit, newest, found),
        }
    }

    /// Commits an immutable memtable durably; `reached` is told now and then how many of its keys are.
    pub(super) fn commit(
        &self,
        immutable: &mut ImmutableMemtable,
        accounting: &Accounting<'_>,
        reached: &dyn Fn(usize),
    ) -> Result<()> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.commit(immutable, accounting, reached),
        }
    }

    /// Carries out a bounded part of range tombstones that are due; see [`LmdbIndex::carry_out_ranges`].
    pub(super) fn carry_out_ranges(
        &self,
        due: &[RangeTombstone],
        carried_to: &mut (u64, Vec<u8>),
        accounting: &Accounting<'_>,
    ) -> Result<()> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.carry_out_ranges(due, carried_to, accounting),
        }
    }

    /// See [`MemtableRoom`].
    pub(super) fn memtable_room(&self) -> Result<MemtableRoom> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.memtable_room(),
        }
    }

    /// Deletes a bounded part of a dropped table's keys; true when none is left. `durable` is the last batch that is durable, that of
    /// the drop or a later one.
    pub(crate) fn purge(&self, table: u32, durable: u64, died: &dyn Fn(u32, &Entry)) -> Result<bool> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.purge(table, durable, died),
        }
    }

    /// The last batch that a change has relied on as durable: a log that ends before it has lost its end.
    pub(crate) fn last_durable_batch(&self) -> Result<u64> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.last_durable_batch(),
        }
    }

    /// How many changes have taken entries out: see [`LmdbIndex::taken_out`].
    pub(crate) fn taken_out(&self) -> u64 {
        match self {
            Committed::Lmdb(lmdb) => lmdb.taken_out(),
        }
    }

    /// Live bytes and records that the committed entries have in each segment.
    pub(crate) fn live(&self) -> Result<LiveChanges> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.live(),
        }
    }

    /// Bytes of chunks that the committed entries name, by table.
    pub(crate) fn live_chunks(&self) -> Result<Vec<(u32, ChunkBytes)>> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.live_chunks(),
        }
    }

    /// Sets the counts of chunks, whatever was counted before.
    pub(crate) fn set_live_chunks(&self, chunks: &[(u32, ChunkBytes)]) -> Result<()> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.set_live_chunks(chunks),
        }
    }

    /// The tables that have committed entries, or counts of earlier ones.
    pub(crate) fn tables(&self) -> Result<BTreeSet<u32>> {
        match self {
            Committed::Lmdb(lmdb) => lmdb.tables(),
        }
    }

    /// Committed keys of a table.
    pub(crate) fn count(&self, table: u32) -> u64 {
        match self {
            Committed::Lmdb(lmdb) => lmdb.count(table),
        }
    }

    /// Bytes of the files.
    pub(crate) fn disk_bytes(&self) -> u64 {
        match self {
            Committed::Lmdb(lmdb) => lmdb.disk_bytes(),
        }
    }

    /// Releases the files. Later calls fail with [`crate::Error::Closed`].
    pub(crate) fn close(&self) {
        match self {
            Committed::Lmdb(lmdb) => lmdb.close(),
        }
    }
}
