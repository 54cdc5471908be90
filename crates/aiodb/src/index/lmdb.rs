//! The committed chains of `lmdb` tables: LMDB, one environment for all tables of this kind.
//!
//! LMDB holds no value, only locations. Its map grows when it is full, under a lock that no read transaction spans; a
//! transaction lasts one look-up. NOSYNC and WRITEMAP stay off: a power cut must not corrupt the index, a full disk must
//! not be a SIGBUS.

mod copy;
mod counters;
mod environment;
mod keys;
mod limits;
mod ranges;
mod reads;
mod room;
mod unwritten;

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, RwTxn};

use super::accounting::Accounting;
use super::chain::{Entry, Superseded, VersionChain};
use super::codec::{decode_chain, table_of};
use super::memtable::ImmutableMemtable;
use super::range_tombstones::{RangeTombstone, Ranges};
use super::snapshots::Snapshots;
use crate::checksum::crc32c;
use crate::format::position::Position;
use crate::format::segment::{put, u32_at, u64_at};
use crate::io::disk::with_descriptors;
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{InOrder, Mutex, Rank, RwLock, RwLockReadGuard};
use crate::{Error, Result};
use counters::{COUNT_PREFIX, Changes, Counts};
use environment::{
    INITIAL_MAP_BYTES, MAX_READERS, cause, existing_bytes, index_error, known_bytes, lacks_only_free_pages,
    make_database, open_database,
};
use keys::range_key;
use limits::KEYS_PER_TRANSACTION;

const POSITION_KEY: [u8; 4] = 0u32.to_be_bytes();
const PURGED_KEY: [u8; 4] = 5u32.to_be_bytes();
const TAKEN_OUT_KEY: [u8; 4] = 6u32.to_be_bytes();

const POSITION_VALUE_BYTES: usize = 64;

/// Keys of a dropped table in one transaction: so few that a commit of the memtable, which has to wait for it, hardly notices.
const PURGED_PER_TRANSACTION: usize = 8 << 10;

/// Keys between two reports of a commit's progress to the throttle.
const KEYS_PER_PROGRESS: usize = 1 << 10;

/// The environment of all `lmdb` tables.
pub(crate) struct LmdbIndex {
    /// Read for the time of a transaction, written while the map grows; `None` once the index is closed.
    env: RwLock<Option<Env>, { Rank::Env as u8 }>,
    /// Held while the environment is copied, and before the map grows: a thread that waits for `env` to be free locks new readers out.
    copying: Mutex<(), { Rank::Copying as u8 }>,
    database: Database<'static, Bytes, Bytes>,
    path: PathBuf,
    store: [u8; 16],
    ranges: Arc<Ranges>,
    snapshots: Arc<Snapshots>,
    /// Held for a transaction that writes, and for the changes here that follow it: commits of the memtable, purges and range
    /// tombstones take turns.
    transactions: InOrder<{ Rank::Transactions as u8 }>,
    /// Whether a simulated disk has room for a commit.
    has_room: OnceLock<Box<dyn Fn() -> bool + Send + Sync>>,
    /// Keys in LMDB, by table.
    counts: Mutex<Counts, { Rank::Counts as u8 }>,
    /// Transactions that took entries out of LMDB without a record in the log that would say so. Relaxed: it is changed only in
    /// turns of `transactions`; a checkpoint may read an older value, which asks less of the file than it has.
    taken_out: AtomicU64,
    /// Keys in the next transaction: fewer than usual where the disk has no room for more pages. Relaxed, like the next two: an
    /// estimate that publishes nothing.
    transaction_keys: AtomicUsize,
    /// Bytes that the last transaction wrote at most: as many are not free yet for the next one.
    last_written: AtomicU64,
    /// Bytes of the disk that are reserved for the file to grow.
    reserved_bytes: AtomicU64,
}

impl LmdbIndex {
    /// Opens or makes the environment. With `read_only` it must be there, and nothing in it changes. Range tombstones that it knows are
    /// added to `ranges`.
    pub(crate) fn open(
        path: &Path,
        store: [u8; 16],
        snapshots: Arc<Snapshots>,
        ranges: Arc<Ranges>,
        read_only: bool,
    ) -> Result<LmdbIndex> {
        if !read_only {
            std::fs::create_dir_all(path).map_err(|e| Error::io("create", path, &e))?;
        }
        let failed = |error: heed::Error| index_error(path, &error);
        let file_bytes = std::fs::metadata(path.join("data.mdb")).map_or(0, |metadata| metadata.len());
        let mut options = EnvOpenOptions::new();
        options.map_size(INITIAL_MAP_BYTES.max(existing_bytes(path))).max_readers(MAX_READERS);
        // Without a lock file writers do not know of readers; a shared lock on the store excludes all writers.
        let reading = if read_only { EnvFlags::READ_ONLY | EnvFlags::NO_LOCK } else { EnvFlags::empty() };
        // SAFETY: NO_READ_AHEAD is only advice to the kernel, and no other flag that gives up safety is set for writers.
        unsafe { options.flags(EnvFlags::NO_READ_AHEAD | reading) };
        // SAFETY: the store's lock excludes other processes from this file, and nothing else here writes to it.
        let open = || unsafe { options.open(path) };
        let env = with_descriptors(open, cause).map_err(failed)?;
        // A page that the file no longer has would end the process (`SIGBUS`).
        let known_bytes = known_bytes(&env);
        if file_bytes > 0 && known_bytes > file_bytes && !lacks_only_free_pages(path)? {
            let reason = format!("its file has {file_bytes} bytes and should have {known_bytes}");
            return Err(Error::Index { path: path.to_path_buf(), reason });
        }
        let database = if read_only { open_database(&env) } else { make_database(&env) }.map_err(failed)?;
        let index = LmdbIndex {
            env: RwLock::new(Some(env)),
            copying: Mutex::default(),
            database,
            path: path.to_path_buf(),
            store,
            ranges,
            snapshots,
            transactions: InOrder::default(),
            has_room: OnceLock::new(),
            counts: Mutex::default(),
            taken_out: AtomicU64::new(0),
            transaction_keys: AtomicUsize::new(KEYS_PER_TRANSACTION),
            last_written: AtomicU64::new(0),
            reserved_bytes: AtomicU64::new(0),
        };
        index.load_ranges()?;
        let counts = index.load_prefix(COUNT_PREFIX, |value| u64_at(value, 0) as i64)?;
        *index.counts.lock().expect("nobody else has it yet") = counts;
        index.taken_out.store(index.committed_number(&TAKEN_OUT_KEY)?, Ordering::Relaxed);
        Ok(index)
    }

    /// Asks this before each transaction that writes.
    pub(crate) fn ask_for_room(&self, has_room: impl Fn() -> bool + Send + Sync + 'static) {
        let _ = self.has_room.set(Box::new(has_room));
    }

    /// Commits an immutable memtable durably in bounded transactions; the last one records the position. After
    /// an error the same memtable can be committed further. `reached` is told now and then how many keys are.
    pub(crate) fn commit(
        &self,
        immutable: &mut ImmutableMemtable,
        accounting: &Accounting<'_>,
        reached: &dyn Fn(usize),
    ) -> Result<()> {
        let chains = Arc::clone(&immutable.chains);
        let mut rest = chains.iter().skip(immutable.committed).peekable();
        loop {
            let part: Vec<_> = rest.by_ref().take(KEYS_PER_TRANSACTION).collect();
            let is_last = rest.peek().is_none();
            let mut left = &part[..];
            loop {
                let (committed, turn) = self.transact_some(accounting, |txn, changes, keys| {
                    let (some, others) = left.split_at(keys.min(left.len()));
                    self.commit_some(txn, changes, some, &|number| {
                        reached(immutable.committed + number);
                    })?;
                    if is_last && others.is_empty() {
                        self.seal(txn, immutable)?;
                    }
                    Ok(some.len())
                })?;
                drop(turn);
                immutable.committed += committed;
                left = &left[committed..];
                if left.is_empty() {
                    break;
                }
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Brings some keys of an immutable memtable into a transaction; `reached` is told now and then how many.
    fn commit_some(
        &self,
        txn: &mut RwTxn<'_>,
        changes: &mut Changes<'_>,
        keys: &[(&[u8], &VersionChain)],
        reached: &dyn Fn(usize),
    ) -> heed::Result<()> {
        for (number, &(key, chain)) in keys.iter().enumerate() {
            if number.is_multiple_of(KEYS_PER_PROGRESS) {
                reached(number);
            }
            if changes.is_gone(key) {
                // The committed entries of the key are purged with the rest of its table.
                changes.died(key, chain.entries().iter().cloned());
                continue;
            }
            let (chain, superseded) = self.apply(txn, key, chain)?;
            self.store(txn, key, &chain, changes)?;
            changes.stored(key, &chain);
            changes.died(key, superseded.into_iter().map(|(entry, _)| entry));
        }
        Ok(())
    }

    /// How many transactions of purges and range tombstones the file has seen. A file that has seen fewer than a checkpoint knows
    /// of is older, also where it has the same position of the log: its entries may lead into segments that were used again.
    pub(crate) fn taken_out(&self) -> u64 {
        self.taken_out.load(Ordering::Relaxed)
    }

    /// Goes on with the number of a checkpoint, in an index that is made again.
    pub(crate) fn count_taken_out_from(&self, taken_out: u64) {
        self.taken_out.fetch_max(taken_out, Ordering::Relaxed);
    }

    /// Writes down that this transaction takes entries out; the number counts once it is committed.
    fn store_taken_out(&self, txn: &mut RwTxn<'_>) -> heed::Result<u64> {
        let taken_out = self.taken_out() + 1;
        self.database.put(txn, &TAKEN_OUT_KEY, &taken_out.to_le_bytes())?;
        Ok(taken_out)
    }

    /// Deletes up to a transaction's worth of a dropped table's keys; true when none is left. `durable` is the last batch
    /// that is durable, that of the drop or a later one.
    pub(crate) fn purge(&self, table: u32, durable: u64, accounting: &Accounting<'_>) -> Result<bool> {
        let of_table = |range: &RangeTombstone| table_of(&range.start) == table;
        let ranges: Vec<_> = self.ranges.all().into_iter().filter(of_table).collect();
        // The counts of its chunks are forgotten as a whole.
        let Accounting { died, counting, .. } = *accounting;
        let accounting = Accounting { died, counting, ..Accounting::NONE };
        let ((done, taken_out), turn) = self.transact_some(&accounting, |txn, changes, most| {
            let most = most.min(PURGED_PER_TRANSACTION);
            let (mut keys, mut last) = (0, Vec::new());
            for item in self.database.prefix_iter(txn, &table.to_be_bytes())?.take(most) {
                let (key, value) = item?;
                changes.purged(key, &decode_chain(value).unwrap_or_default());
                keys += 1;
                if keys == most {
                    last.extend_from_slice(key);
                }
            }
            // All of the table's, unless there may be more than these.
            let done = keys < most;
            let next = (table + 1).to_be_bytes();
            let end = if done { Bound::Excluded(&next[..]) } else { Bound::Included(&last[..]) };
            self.database.delete_range(txn, &(Bound::Included(&table.to_be_bytes()[..]), end))?;
            for range in &ranges {
                self.database.delete(txn, &range_key(range))?;
            }
            self.database.put(txn, &PURGED_KEY, &durable.to_le_bytes())?;
            if done {
                self.forget_chunks(txn, table)?;
            }
            Ok((done, self.store_taken_out(txn)?))
        })?;
        self.taken_out.store(taken_out, Ordering::Relaxed);
        self.ranges.forget(of_table);
        // Not before: a commit of the memtable writes down the range tombstones that are known.
        drop(turn);
        Ok(done)
    }

    /// The position up to which the index has the log, `None` in a new environment.
    pub(crate) fn position(&self) -> Result<Option<Position>> {
        let env = self.env();
        let txn = env.as_ref().ok_or(Error::Closed)?.read_txn().map_err(|e| self.failed(&e))?;
        let Some(bytes) = self.database.get(&txn, &POSITION_KEY).map_err(|e| self.failed(&e))? else {
            return Ok(None);
        };
        self.decode_position(bytes).map(Some).ok_or_else(|| Error::Index {
            path: self.path.clone(),
            reason: "its position in the log does not check out, or belongs to another store".into(),
        })
    }

    /// The last batch that a change of this index has relied on as durable: a log that ends before it has lost its end.
    pub(crate) fn last_durable_batch(&self) -> Result<u64> {
        let committed = self.position()?.map_or(0, |position| position.batch);
        Ok(self.committed_number(&PURGED_KEY)?.max(committed))
    }

    /// A number under a key of the index's own; 0 if there is none.
    fn committed_number(&self, key: &[u8]) -> Result<u64> {
        let env = self.env();
        let txn = env.as_ref().ok_or(Error::Closed)?.read_txn().map_err(|e| self.failed(&e))?;
        let number = self.database.get(&txn, key).map_err(|e| self.failed(&e))?;
        Ok(number.filter(|bytes| bytes.len() == 8).map_or(0, |bytes| u64_at(bytes, 0)))
    }

    /// Bytes of the environment's file.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.env().as_ref().map_or(0, |env| env.real_disk_size().unwrap_or(0))
    }

    /// The chain of a key that a transaction finds; an empty one in an entry of the wrong length.
    fn committed_in(&self, txn: &RwTxn<'_>, key: &[u8]) -> heed::Result<Option<VersionChain>> {
        Ok(self.database.get(txn, key)?.map(|value| decode_chain(value).unwrap_or_default()))
    }

    /// A key's chain with the entries of the memtable, and the entries that count no more.
    fn apply(&self, txn: &RwTxn<'_>, key: &[u8], memtable: &VersionChain) -> heed::Result<(VersionChain, Superseded)> {
        let mut superseded = Superseded::new();
        let mut chain = self.committed_in(txn, key)?.unwrap_or_default();
        for entry in memtable.entries() {
            // The fold of an operand has its sequence, and stands for older ones too.
            let is_fold = |other: &Entry| other.sequence == entry.sequence && other.is_base() && !entry.is_base();
            if chain.entries().iter().any(|other| other == entry || is_fold(other)) {
                // A replay has published a record that is here already, and counted it a second time.
                superseded.push((entry.clone(), entry.sequence));
            } else {
                chain.insert(entry.clone(), &mut superseded);
            }
        }
        if self.snapshots.is_any() {
            self.snapshots.retain_below(key, &self.ranges.until(key, &superseded));
        }
        Ok((chain.without_delete(), superseded))
    }

    /// Records that everything up to the memtable's position is in LMDB.
    fn seal(&self, txn: &mut RwTxn<'_>, immutable: &ImmutableMemtable) -> heed::Result<()> {
        self.store_ranges(txn, immutable.next_sequence)?;
        // An index that was made again goes on from a checkpoint's number.
        self.database.put(txn, &TAKEN_OUT_KEY, &self.taken_out().to_le_bytes())?;
        self.database.put(txn, &POSITION_KEY, &self.encode_position(&immutable.position))
    }

    fn grow(&self) -> Result<()> {
        let _no_copy = self.copying.lock().expect("no code panics while it copies the environment");
        let env = self.env.write().expect("no code panics while it holds the environment");
        let env = env.as_ref().ok_or(Error::Closed)?;
        let bytes = env.info().map_size * 2;
        // SAFETY: every transaction of this environment holds the lock for reading, so none is open now.
        unsafe { env.resize(bytes) }.map_err(|e| self.failed(&e))
    }

    /// Releases the files. Later calls fail with [`Error::Closed`].
    pub(crate) fn close(&self) {
        drop(self.env.write().expect("no code panics while it holds the environment").take());
    }

    fn env(&self) -> RwLockReadGuard<'_, Option<Env>> {
        self.env.read().expect("no code panics while it holds the environment")
    }

    /// Does something while no other thread can write to the environment.
    #[cfg(all(test, not(feature = "shuttle")))]
    pub(crate) fn with_writer_held(&self, work: impl FnOnce()) {
        let env = self.env();
        let _txn = env.as_ref().expect("it is open").write_txn().expect("a transaction can begin");
        crate::sync::as_another_thread(work);
    }

    fn encode_position(&self, position: &Position) -> [u8; POSITION_VALUE_BYTES] {
        let mut out = [0; POSITION_VALUE_BYTES];
        position.encode(&mut out);
        put(&mut out, 32, &self.store);
        let checksum = crc32c(&out[..48]);
        put(&mut out, 48, &checksum.to_le_bytes());
        out
    }

    fn decode_position(&self, bytes: &[u8]) -> Option<Position> {
        let valid = bytes.len() == POSITION_VALUE_BYTES
            && crc32c(&bytes[..48]) == u32_at(bytes, 48)
            && bytes[32..48] == self.store;
        valid.then(|| Position::decode(bytes))
    }

    fn bad_entry(&self) -> Error {
        Error::Index { path: self.path.clone(), reason: "an entry has the wrong length".into() }
    }

    fn failed(&self, error: &heed::Error) -> Error {
        index_error(&self.path, error)
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
