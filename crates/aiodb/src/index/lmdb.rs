//! The ordered index on disk: LMDB behind a bounded tail, one environment for all tables of this kind.
//!
//! LMDB holds no value, only Locations. Its map grows when it is full, under a lock that no read transaction spans; a
//! transaction lasts one look-up. NOSYNC and WRITEMAP stay off: a power cut must not corrupt the index, a full disk must
//! not be a SIGBUS.

mod copy;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, MdbError, RwTxn};
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

use super::tail::{Entry, Frozen, Inserted, Known, Tail};
use super::{Candidate, Location};
use crate::checksum::crc32c;
use crate::log::Position;
use crate::log::place::footprint;
use crate::log::segment::{put, u32_at, u64_at};
use crate::{Error, Result};

/// The first id of a user's table; lower ones prefix the index's own keys.
pub(crate) const FIRST_TABLE_ID: u32 = 16;

const POSITION_KEY: [u8; 4] = 0u32.to_be_bytes();
const SEGMENT_PREFIX: [u8; 4] = 1u32.to_be_bytes();
const COUNT_PREFIX: [u8; 4] = 2u32.to_be_bytes();

/// Keys up to this length are kept whole; LMDB's limit is 511 bytes with the table's id.
const MAX_WHOLE_KEY_BYTES: usize = 480;
/// Of a longer key this much is kept before its digest, so that order is kept as far as it goes.
const KEPT_PREFIX_BYTES: usize = 448;

const ENTRY_BYTES: usize = 32;
const POSITION_VALUE_BYTES: usize = 64;

/// Entries in one transaction: bounds its dirty pages.
const ENTRIES_PER_TRANSACTION: usize = 32 << 10;

/// LMDB's pages are those of the system.
const PAGE_BYTES: u64 = 4096;

const INITIAL_MAP_BYTES: usize = 1 << 30;
const MAX_READERS: u32 = 4096;

type Key = SmallVec<[u8; 64]>;

/// Changes of live bytes and live records, by segment.
pub(crate) type LiveChanges = BTreeMap<u32, (i64, i64)>;

/// What a commit tells its caller about each entry that died: its table and itself.
pub(crate) type Died<'a> = &'a mut dyn FnMut(u32, Entry);

/// The environment of all `lmdb` tables.
pub(crate) struct LmdbIndex {
    /// Read for the time of a transaction, written while the map grows; `None` once the index is closed.
    env: RwLock<Option<Env>>,
    database: Database<'static, Bytes, Bytes>,
    path: PathBuf,
    store: [u8; 16],
    pub(crate) tail: Tail,
    /// Entries in LMDB, by table.
    counts: Mutex<BTreeMap<u32, i64>>,
}

impl LmdbIndex {
    /// Opens or makes the environment.
    pub(crate) fn open(path: &Path, store: [u8; 16]) -> Result<LmdbIndex> {
        std::fs::create_dir_all(path).map_err(|e| Error::io("create", path, &e))?;
        let failed = |error: heed::Error| index_error(path, &error);
        let file_bytes = std::fs::metadata(path.join("data.mdb")).map_or(0, |metadata| metadata.len());
        let mut options = EnvOpenOptions::new();
        options.map_size(INITIAL_MAP_BYTES.max(existing_bytes(path))).max_readers(MAX_READERS);
        // SAFETY: NO_READ_AHEAD is only advice to the kernel; none of the flags that give up safety is set.
        unsafe { options.flags(EnvFlags::NO_READ_AHEAD) };
        // SAFETY: the store's lock keeps other processes from this file, and nothing else here writes to it.
        let env = unsafe { options.open(path) }.map_err(failed)?;
        // A page that the file no longer has would end the process (`SIGBUS`).
        let known_bytes = (env.info().last_page_number as u64 + 1) * PAGE_BYTES;
        if file_bytes > 0 && known_bytes > file_bytes {
            let reason = format!("its file has {file_bytes} bytes and should have {known_bytes}");
            return Err(Error::Index { path: path.to_path_buf(), reason });
        }
        let txn = env.write_txn().map_err(failed)?;
        let made = env.create_databases_and_commit(txn, |opener, txn| -> heed::Result<_> {
            Ok(CommitOrAbort::<_, ()>::Commit(opener.create_database(txn, None)?))
        });
        let database = made.map_err(failed)?.unwrap_commit();
        let index = LmdbIndex {
            env: RwLock::new(Some(env)),
            database,
            path: path.to_path_buf(),
            store,
            tail: Tail::default(),
            counts: Mutex::default(),
        };
        let counts = index.load_prefix(COUNT_PREFIX, |value| u64_at(value, 0) as i64)?;
        *index.counts.lock().expect("nobody else has it yet") = counts;
        Ok(index)
    }

    /// The newest entry of a key, if the key is there.
    pub(crate) fn lookup(&self, table: u32, key: &[u8]) -> Result<Option<Candidate>> {
        let current = self.current(&encode_key(table, key))?;
        Ok(current.filter(|entry| !entry.deleted).map(|entry| Candidate {
            location: entry.location,
            separate: entry.separate,
            chunked: entry.chunked,
            exact: true,
        }))
    }

    /// Publishes an entry in the tail.
    pub(crate) fn insert(&self, table: u32, key: &[u8], entry: Entry) -> Inserted {
        self.tail.insert(&encode_key(table, key), entry)
    }

    /// Whether the key's current entry is at this place.
    pub(crate) fn is_current(&self, table: u32, key: &[u8], location: Location) -> Result<bool> {
        let current = self.current(&encode_key(table, key))?;
        Ok(current.is_some_and(|entry| !entry.deleted && entry.location.same_place(location)))
    }

    /// The sequence of a key's current entry; 0 if there is none.
    pub(crate) fn sequence(&self, table: u32, key: &[u8]) -> Result<u64> {
        Ok(self.current(&encode_key(table, key))?.map_or(0, |entry| entry.sequence))
    }

    /// Publishes a moved record if what it replaces is still current. `Some(replaced)` as [`Tail::replace`].
    pub(crate) fn relocate(
        &self,
        table: u32,
        key: &[u8],
        from: Location,
        entry: Entry,
    ) -> Result<Option<Option<Entry>>> {
        let key = encode_key(table, key);
        match self.current(&key)? {
            Some(current) if !current.deleted && current.location.same_place(from) => {
                Ok(self.tail.replace(&key, current, entry))
            }
            _ => Ok(None),
        }
    }

    /// Commits a frozen tail durably in bounded transactions; the last one records the covered position. `died` is told
    /// of every entry that was replaced or deleted. After an error the same tail can be committed further.
    pub(crate) fn commit(&self, frozen: &mut Frozen, died: Died<'_>) -> Result<()> {
        let entries = Arc::clone(&frozen.entries);
        let mut rest = entries.iter().skip(frozen.committed).peekable();
        loop {
            let chunk: Vec<_> = rest.by_ref().take(ENTRIES_PER_TRANSACTION).collect();
            let last = rest.peek().is_none();
            let mut dead = Vec::new();
            self.transact(|txn, changes, counts| {
                dead.clear();
                for &(key, entry) in &chunk {
                    self.apply(txn, key, entry, changes, counts, &mut dead)?;
                }
                let position = self.encode_position(&frozen.position);
                if last { self.database.put(txn, &POSITION_KEY, &position) } else { Ok(()) }
            })?;
            frozen.committed += chunk.len();
            dead.drain(..).for_each(|(table, entry)| died(table, entry));
            if last {
                return Ok(());
            }
        }
    }

    /// Deletes up to a transaction's worth of a dropped table's entries; true when none is left.
    pub(crate) fn purge(&self, table: u32, died: Died<'_>) -> Result<bool> {
        let mut dead = Vec::new();
        let mut done = false;
        self.transact(|txn, changes, counts| {
            dead.clear();
            let prefix = table.to_be_bytes();
            let mut keys: Vec<Box<[u8]>> = Vec::new();
            for item in self.database.prefix_iter(txn, &prefix)?.take(ENTRIES_PER_TRANSACTION) {
                let (key, value) = item?;
                keys.push(key.into());
                dead.extend(decode_entry(value));
            }
            for key in &keys {
                self.database.delete(txn, key)?;
            }
            for entry in &dead {
                add(changes, entry.location, -1);
            }
            done = keys.len() < ENTRIES_PER_TRANSACTION;
            *counts.entry(table).or_default() -= keys.len() as i64;
            Ok(())
        })?;
        dead.drain(..).for_each(|entry| died(table, entry));
        Ok(done)
    }

    /// The position that the index covers, `None` in a new environment.
    pub(crate) fn position(&self) -> Result<Option<Position>> {
        let env = self.env();
        let txn = env.as_ref().ok_or(Error::Closed)?.read_txn().map_err(|e| self.failed(&e))?;
        let Some(bytes) = self.database.get(&txn, &POSITION_KEY).map_err(|e| self.failed(&e))? else {
            return Ok(None);
        };
        self.decode_position(bytes).map(Some).ok_or_else(|| Error::Index {
            path: self.path.clone(),
            reason: "the covered position does not check out, or belongs to another store".into(),
        })
    }

    /// Live bytes and records that the committed entries have in each segment.
    pub(crate) fn live(&self) -> Result<LiveChanges> {
        self.load_prefix(SEGMENT_PREFIX, |value| (u64_at(value, 0) as i64, u64_at(value, 8) as i64))
    }

    /// The tables that have committed entries.
    pub(crate) fn tables(&self) -> Vec<u32> {
        let counts = self.counts.lock().expect("no code panics while it holds the counts");
        counts.iter().filter(|(_, count)| **count > 0).map(|(table, _)| *table).collect()
    }

    /// Committed entries of a table.
    pub(crate) fn count(&self, table: u32) -> u64 {
        let counts = self.counts.lock().expect("no code panics while it holds the counts");
        counts.get(&table).map_or(0, |&count| count.max(0) as u64)
    }

    /// Bytes of the environment's file.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.env().as_ref().map_or(0, |env| env.real_disk_size().unwrap_or(0))
    }

    /// Visits up to `limit` committed entries of a table after `after`; returns the last key seen, `None` at the end.
    /// Keys that were too long are given as they are stored.
    pub(crate) fn visit(
        &self,
        table: u32,
        after: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], Entry),
    ) -> Result<Option<Vec<u8>>> {
        let env = self.env();
        let failed = |e: heed::Error| self.failed(&e);
        let txn = env.as_ref().ok_or(Error::Closed)?.read_txn().map_err(failed)?;
        let first = table.to_be_bytes().to_vec();
        let end = (table + 1).to_be_bytes().to_vec();
        let start = after.map_or(Bound::Included(&first[..]), Bound::Excluded);
        let range = (start, Bound::Excluded(&end[..]));
        let mut last = None;
        let mut seen = 0;
        for item in self.database.range(&txn, &range).map_err(failed)?.take(limit) {
            let (key, value) = item.map_err(failed)?;
            seen += 1;
            last = Some(key.to_vec());
            if let Some(entry) = decode_entry(value) {
                visit(&key[4..], entry);
            }
        }
        Ok(last.filter(|_| seen == limit))
    }

    fn current(&self, key: &[u8]) -> Result<Option<Entry>> {
        match self.tail.lookup(key) {
            Known::Here(entry) => Ok(Some(entry)),
            Known::Unknown => self.committed(key),
        }
    }

    fn committed(&self, key: &[u8]) -> Result<Option<Entry>> {
        let env = self.env();
        let txn = env.as_ref().ok_or(Error::Closed)?.read_txn().map_err(|e| self.failed(&e))?;
        let value = self.database.get(&txn, key).map_err(|e| self.failed(&e))?;
        value.map_or(Ok(None), |value| decode_entry(value).map(Some).ok_or_else(|| self.bad_entry()))
    }

    fn apply(
        &self,
        txn: &mut RwTxn<'_>,
        key: &[u8],
        entry: &Entry,
        changes: &mut LiveChanges,
        counts: &mut BTreeMap<u32, i64>,
        dead: &mut Vec<(u32, Entry)>,
    ) -> heed::Result<()> {
        let old = self.database.get(txn, key)?.and_then(decode_entry);
        let table = u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
        if let Some(old) = old {
            if old.sequence > entry.sequence {
                // Replay met a record that the index had already gone beyond.
                dead.extend((!entry.deleted).then_some((table, *entry)));
                return Ok(());
            }
            add(changes, old.location, -1);
            dead.push((table, old));
            *counts.entry(table).or_default() -= 1;
        }
        if entry.deleted {
            self.database.delete(txn, key)?;
            return Ok(());
        }
        add(changes, entry.location, 1);
        *counts.entry(table).or_default() += 1;
        self.database.put(txn, key, &encode_entry(entry))
    }

    /// Runs `work` in a transaction, again after growing the map when it was full, and keeps the live counters in the
    /// same transaction.
    fn transact(
        &self,
        mut work: impl FnMut(&mut RwTxn<'_>, &mut LiveChanges, &mut BTreeMap<u32, i64>) -> heed::Result<()>,
    ) -> Result<()> {
        loop {
            let mut counts = self.counts.lock().expect("no code panics while it holds the counts").clone();
            let outcome = self.try_transact(self.env().as_ref().ok_or(Error::Closed)?, &mut work, &mut counts);
            match outcome {
                Ok(()) => {
                    *self.counts.lock().expect("no code panics while it holds the counts") = counts;
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
        work: &mut impl FnMut(&mut RwTxn<'_>, &mut LiveChanges, &mut BTreeMap<u32, i64>) -> heed::Result<()>,
        counts: &mut BTreeMap<u32, i64>,
    ) -> heed::Result<()> {
        let mut txn = env.write_txn()?;
        let mut changes = LiveChanges::new();
        work(&mut txn, &mut changes, counts)?;
        for (segment, (bytes, records)) in changes {
            let key = prefixed(SEGMENT_PREFIX, segment);
            let old = self.database.get(&txn, &key)?.map_or((0, 0), |v| (u64_at(v, 0) as i64, u64_at(v, 8) as i64));
            let mut value = [0; 16];
            put(&mut value, 0, &(old.0 + bytes).to_le_bytes());
            put(&mut value, 8, &(old.1 + records).to_le_bytes());
            self.database.put(&mut txn, &key, &value)?;
        }
        for (table, count) in counts.iter() {
            self.database.put(&mut txn, &prefixed(COUNT_PREFIX, *table), &count.to_le_bytes())?;
        }
        txn.commit()
    }

    fn grow(&self) -> Result<()> {
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

    fn load_prefix<T>(&self, prefix: [u8; 4], decode: impl Fn(&[u8]) -> T) -> Result<BTreeMap<u32, T>> {
        let env = self.env();
        let failed = |e: heed::Error| self.failed(&e);
        let txn = env.as_ref().ok_or(Error::Closed)?.read_txn().map_err(failed)?;
        let mut out = BTreeMap::new();
        for item in self.database.prefix_iter(&txn, &prefix).map_err(failed)? {
            let (key, value) = item.map_err(failed)?;
            if key.len() == 8 && value.len() >= 8 {
                out.insert(u32::from_be_bytes([key[4], key[5], key[6], key[7]]), decode(value));
            }
        }
        Ok(out)
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

/// The key under which a user's key is stored.
fn encode_key(table: u32, key: &[u8]) -> Key {
    let mut out = Key::new();
    out.extend_from_slice(&table.to_be_bytes());
    if key.len() <= MAX_WHOLE_KEY_BYTES {
        out.extend_from_slice(key);
    } else {
        out.extend_from_slice(&key[..KEPT_PREFIX_BYTES]);
        out.extend_from_slice(&Sha256::digest(key));
    }
    out
}

/// What a user's key looks like in [`LmdbIndex::visit`].
pub(crate) fn stored_key(key: &[u8]) -> Vec<u8> {
    encode_key(0, key)[4..].to_vec()
}

fn prefixed(prefix: [u8; 4], number: u32) -> [u8; 8] {
    let mut key = [0; 8];
    put(&mut key, 0, &prefix);
    put(&mut key, 4, &number.to_be_bytes());
    key
}

fn add(changes: &mut LiveChanges, location: Location, sign: i64) {
    let change = changes.entry(location.segment).or_default();
    change.0 += sign * footprint(location.length);
    change.1 += sign;
}

const SHAPE_RECORD: u8 = 1;
const SHAPE_SEPARATE: u8 = 2;
const SHAPE_CHUNKED: u8 = 16;

fn encode_entry(entry: &Entry) -> [u8; ENTRY_BYTES] {
    let mut out = [0; ENTRY_BYTES];
    put(&mut out, 0, &entry.sequence.to_le_bytes());
    put(&mut out, 8, &entry.location.segment.to_le_bytes());
    put(&mut out, 12, &entry.location.offset.to_le_bytes());
    put(&mut out, 16, &entry.location.length.to_le_bytes());
    put(&mut out, 20, &entry.separate.unwrap_or(0).to_le_bytes());
    let shape = if entry.separate.is_some() { SHAPE_SEPARATE } else { SHAPE_RECORD };
    out[24] = shape + if entry.chunked { SHAPE_CHUNKED } else { 0 };
    out
}

fn decode_entry(bytes: &[u8]) -> Option<Entry> {
    if bytes.len() != ENTRY_BYTES {
        return None;
    }
    let shape = bytes[24] & !SHAPE_CHUNKED;
    let location = Location { segment: u32_at(bytes, 8), offset: u32_at(bytes, 12), length: u32_at(bytes, 16) };
    Some(Entry {
        sequence: u64_at(bytes, 0),
        location,
        separate: (shape == SHAPE_SEPARATE).then(|| u32_at(bytes, 20)),
        chunked: bytes[24] & SHAPE_CHUNKED != 0,
        deleted: false,
    })
}

fn existing_bytes(path: &Path) -> usize {
    let bytes = std::fs::metadata(path.join("data.mdb")).map_or(0, |metadata| metadata.len() as usize);
    // Room to grow, in whole pages.
    (bytes * 2).next_multiple_of(1 << 20)
}

fn index_error(path: &Path, error: &heed::Error) -> Error {
    if let heed::Error::Io(error) = error
        && error.kind() == std::io::ErrorKind::StorageFull
    {
        return Error::DiskFull { path: path.to_path_buf() };
    }
    Error::Index { path: path.to_path_buf(), reason: error.to_string() }
}
