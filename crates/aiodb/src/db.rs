//! The public face: stores, tables and batches.

use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;

use crate::background::Step;
use crate::catalog::{Settings, TableSlot};
use crate::conditional::Requirement;
use crate::engine::{Engine, Handle};
use crate::index::lmdb::codec::KEPT_PREFIX_BYTES;
use crate::io::{Device, Disk};
use crate::log::record::encode_range_end;
use crate::reader::Reader;
use crate::scan::{Scan, ScanOptions};
use crate::snapshot::{Moment, Snapshot, View};
use crate::stats::Stats;
use crate::verify::VerifyReport;
use crate::{Durability, Error, IndexKind, Options, Result, Sequence, TableOptions, WriteOptions};

/// An open store. Cheap to clone; all methods may be called from many threads.
///
/// The store is closed by [`Db::close`], or when the last handle on it (of tables and readers too) is dropped; the first
/// reports failures, the second cannot.
pub struct Db<D: Device = Disk> {
    pub(crate) engine: Arc<Handle<D>>,
}

impl<D: Device> Clone for Db<D> {
    fn clone(&self) -> Self {
        Db { engine: Arc::clone(&self.engine) }
    }
}

impl Db<Disk> {
    /// Opens the store in the directory `path`, or makes one there (see [`Options::create`]), and recovers what an
    /// earlier process acknowledged.
    ///
    /// Fails with [`Error::NoStore`], [`Error::NotAStore`], [`Error::Locked`] (another process has it),
    /// [`Error::Directory`] (the store lies in several), [`Error::NewerVersion`], [`Error::Corruption`],
    /// [`Error::Backend`], [`Error::Option`], [`Error::DiskFull`], [`Error::Index`] or [`Error::Io`]; with
    /// [`Options::read_only`] also with [`Error::Unrecovered`].
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        Db::open_several(&[path], options)
    }
}

impl<D: Device> Db<D> {
    pub(crate) fn engine(&self) -> &Engine<D> {
        &self.engine
    }

    /// Like [`Db::open`] on another device; the directory must exist.
    pub fn open_on(device: D, path: impl AsRef<Path>, options: Options) -> Result<Db<D>> {
        Db::open_several_on(device, &[path], options)
    }

    /// Makes everything durable, writes a checkpoint and releases the store. Later calls on any handle fail with
    /// [`Error::Closed`].
    pub fn close(&self) -> Result<()> {
        self.engine.close()
    }

    /// Makes a table. Durable when it returns, whatever the store's class.
    pub fn create_table(&self, name: &str, kind: IndexKind) -> Result<Table<D>> {
        self.create_table_with(name, kind.into())
    }

    /// Makes a table that compresses its values or merges.
    pub fn create_table_with(&self, name: &str, options: TableOptions) -> Result<Table<D>> {
        self.engine.check_open()?;
        self.engine.create_table(name, &options)?;
        self.table(name)
    }

    /// The table of this name, or [`Error::NoSuchTable`].
    pub fn table(&self, name: &str) -> Result<Table<D>> {
        self.engine.check_open()?;
        Ok(Table { engine: Arc::clone(&self.engine), slot: self.engine.catalog.find(name)? })
    }

    /// The table of this name, made if it is missing; [`Error::TableExists`] if it has another kind of index.
    pub fn table_or_create(&self, name: &str, kind: IndexKind) -> Result<Table<D>> {
        let table = match self.table(name) {
            Err(Error::NoSuchTable { .. }) => match self.create_table(name, kind) {
                // Another thread was faster.
                Err(Error::TableExists { .. }) => self.table(name)?,
                made => made?,
            },
            found => found?,
        };
        if table.kind() != kind {
            return Err(Error::TableExists { name: name.to_string(), kind: table.kind().name() });
        }
        Ok(table)
    }

    /// Names and kinds of all tables, by name.
    pub fn tables(&self) -> Vec<(String, IndexKind)> {
        self.engine.catalog.slots().iter().map(|slot| (slot.name.clone(), slot.settings.kind)).collect()
    }

    /// Empties a table in constant time; its space comes back in the background. Durable when it returns.
    pub fn truncate_table(&self, name: &str) -> Result<()> {
        self.engine.check_open()?;
        self.engine.truncate_table(name)
    }

    /// Removes a table in constant time; its space comes back in the background. Durable when it returns.
    pub fn drop_table(&self, name: &str) -> Result<()> {
        self.engine.check_open()?;
        self.engine.drop_table(name)
    }

    /// Applies a batch in the store's durability class: all of it or, after a crash before the acknowledgement,
    /// possibly nothing. Returns the sequence of its last operation; an empty batch changes nothing and returns the last
    /// one given.
    pub fn write(&self, batch: &Batch<D>) -> Result<Sequence> {
        self.write_with(batch, self.engine.options.durability)
    }

    /// Applies a batch in a class of its own.
    pub fn write_with(&self, batch: &Batch<D>, durability: Durability) -> Result<Sequence> {
        self.engine.check_open()?;
        self.engine.write_batch(batch, durability)
    }

    /// The store as it is now, for reads that go on while it changes.
    pub fn snapshot(&self) -> Result<Snapshot<D>> {
        Snapshot::take(&self.engine)
    }

    /// Everything acknowledged so far survives a power cut when this returns.
    pub fn sync(&self) -> Result<()> {
        self.engine.check_open()?;
        self.engine.flush()
    }

    /// Brings the indexes' durable state up to now, so that a restart has nothing to replay. Also done in the background.
    pub fn checkpoint(&self) -> Result<()> {
        self.engine.check_open()?;
        self.engine.checkpoint()
    }

    /// Sizes and counters at this moment.
    pub fn stats(&self) -> Stats {
        self.engine.stats()
    }

    /// Reads every batch and follows every index entry. `progress` is told the bytes read and the bytes in all.
    /// Damage is listed in the report; an error means that the check itself could not go on.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport> {
        self.engine.check_open()?;
        self.engine.verify(progress)
    }

    /// Runs a bounded piece of background work; for stores opened without [`Options::background`].
    pub fn step(&self, step: Step) -> Result<()> {
        self.engine.check_open()?;
        self.engine.step(step)
    }
}

/// A handle on a named table. Cheap to clone; it follows the table through truncates, and fails with
/// [`Error::NoSuchTable`] once it was dropped.
pub struct Table<D: Device = Disk> {
    pub(crate) engine: Arc<Handle<D>>,
    pub(crate) slot: Arc<TableSlot>,
}

impl<D: Device> Clone for Table<D> {
    fn clone(&self) -> Self {
        Table { engine: Arc::clone(&self.engine), slot: Arc::clone(&self.slot) }
    }
}

impl<D: Device> Table<D> {
    /// The table's name.
    pub fn name(&self) -> &str {
        &self.slot.name
    }

    /// The kind of its index.
    pub fn kind(&self) -> IndexKind {
        self.slot.settings.kind
    }

    /// What the table was made with.
    pub fn options(&self) -> TableOptions {
        let Settings { kind, compression, merge } = self.slot.settings.clone();
        TableOptions { kind, compression, merge }
    }

    /// The value of a key, `None` if the key is absent. One device read, with the calling thread. Damage is
    /// [`Error::Corruption`], never `None`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        self.engine.get(&self.slot.generation()?, key, &View::LATEST)
    }

    /// The values of many keys, in their order, read side by side.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        const MOST_IN_FLIGHT: usize = 64;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut reader = self.reader(keys.len().min(MOST_IN_FLIGHT))?;
        let mut values = vec![None; keys.len()];
        let mut rest = keys.iter().enumerate();
        loop {
            while reader.has_room() {
                let Some((position, key)) = rest.next() else { break };
                reader.submit(key.as_ref(), position as u64)?;
            }
            let Some(got) = reader.poll()? else { return Ok(values) };
            values[got.token as usize] = got.value?.map(<[u8]>::to_vec);
        }
    }

    /// Stores a value in the store's durability class. Returns the write's place in the order of all writes.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<Sequence> {
        self.put_with(key, value, WriteOptions::default())
    }

    /// Stores a value in a class of its own ([`Durability`] will do), or until a time. A value longer than 1 MiB (or a
    /// quarter of a segment) is written in parts; it becomes visible as a whole.
    pub fn put_with(&self, key: &[u8], value: &[u8], options: impl Into<WriteOptions>) -> Result<Sequence> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        self.engine.check_value(value)?;
        let options = options.into();
        let durability = self.durability(&options);
        self.engine.put(self.slot.generation()?, key, value, durability, options.expires_ms)
    }

    /// Adds an operand to a key's value in the store's durability class, without reading it: the table's merge operator
    /// combines them when the key is read. At most 1 MiB, or a quarter of a segment.
    pub fn merge(&self, key: &[u8], operand: &[u8]) -> Result<Sequence> {
        self.merge_with(key, operand, WriteOptions::default())
    }

    /// Adds an operand in a class of its own.
    pub fn merge_with(&self, key: &[u8], operand: &[u8], options: impl Into<WriteOptions>) -> Result<Sequence> {
        self.engine.check_open()?;
        self.check_merge(key, operand)?;
        let generation = self.slot.generation()?;
        let stored = self.engine.stored(&generation, key, operand)?;
        let operation = self.engine.merge_operation(generation, key, &stored);
        self.engine.write(&[operation], self.durability(&options.into()))
    }

    /// Removes all keys from `start` (inclusive) to `end` (exclusive; empty = to the table's end) in the store's
    /// durability class, atomically and in constant time; the space comes back in the background. Bounds have at most
    /// 448 bytes. Ordered tables only.
    pub fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<Sequence> {
        self.delete_range_with(start, end, WriteOptions::default())
    }

    /// Removes a range of keys in a class of its own.
    pub fn delete_range_with(&self, start: &[u8], end: &[u8], options: impl Into<WriteOptions>) -> Result<Sequence> {
        self.engine.check_open()?;
        self.check_range(start, end)?;
        let end = encode_range_end(0, end);
        let operation = self.engine.range_operation(self.slot.generation()?, start, &end);
        self.engine.write(&[operation], self.durability(&options.into()))
    }

    /// The records of a range in the order of their keys, at this moment. Ordered tables only.
    pub fn scan(&self, options: ScanOptions) -> Result<Scan<D>> {
        let generation = self.slot.generation()?;
        Scan::new(&self.engine, generation, Arc::new(Moment::take(&self.engine)?), options)
    }

    /// All records at this moment: in `hash` tables in no order.
    pub fn iterate(&self) -> Result<Scan<D>> {
        let generation = self.slot.generation()?;
        Scan::unordered(&self.engine, generation, Arc::new(Moment::take(&self.engine)?))
    }

    pub(crate) fn durability(&self, options: &WriteOptions) -> Durability {
        options.durability.unwrap_or(self.engine.options.durability)
    }

    fn check_merge(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.engine.check_key(key)?;
        self.engine.check_merge_operator(&*self.slot.generation()?)?;
        let (length, max) = (operand.len(), self.engine.whole_value_bytes());
        if length > max { Err(Error::ValueLength { length, max }) } else { Ok(()) }
    }

    fn check_range(&self, start: &[u8], end: &[u8]) -> Result<()> {
        if self.kind() != IndexKind::Lmdb {
            return Err(Error::Unordered { name: self.name().to_string() });
        }
        for bound in [start, end] {
            if bound.len() > KEPT_PREFIX_BYTES {
                return Err(Error::KeyLength { length: bound.len(), max: KEPT_PREFIX_BYTES });
            }
        }
        self.engine.check_key(start)
    }

    /// Removes a key in the store's durability class. Deleting an absent key is no error.
    pub fn delete(&self, key: &[u8]) -> Result<Sequence> {
        self.delete_with(key, self.engine.options.durability)
    }

    /// Removes a key in a class of its own.
    pub fn delete_with(&self, key: &[u8], durability: Durability) -> Result<Sequence> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        let operation = self.engine.delete_operation(self.slot.generation()?, key);
        self.engine.write(&[operation], durability)
    }

    /// A reader with a device queue of its own that keeps up to `depth` (1 to 4096) gets in flight. It may be moved
    /// to another thread before its first use, not after.
    pub fn reader(&self, depth: usize) -> Result<Reader<D>> {
        self.engine.check_open()?;
        Reader::new(Arc::clone(&self.engine), Arc::clone(&self.slot), depth)
    }
}

pub(crate) struct BatchOperation {
    pub(crate) slot: Arc<TableSlot>,
    pub(crate) key: Vec<u8>,
    pub(crate) change: Change,
}

/// What happens to a key.
pub(crate) enum Change {
    /// This value, until then.
    Put(Vec<u8>, Option<NonZeroU64>),
    Merge(Vec<u8>),
    Delete,
    /// All keys from this one to that.
    DeleteRange(Vec<u8>),
}

/// An atomic group of writes, possibly to several tables of one store. Later operations on a key win.
pub struct Batch<D: Device = Disk> {
    pub(crate) operations: Vec<BatchOperation>,
    pub(crate) requirements: Vec<Requirement>,
    _store: std::marker::PhantomData<fn() -> D>,
}

impl<D: Device> Default for Batch<D> {
    fn default() -> Self {
        Batch::new()
    }
}

impl<D: Device> Batch<D> {
    /// An empty batch.
    pub fn new() -> Batch<D> {
        Batch { operations: Vec::new(), requirements: Vec::new(), _store: std::marker::PhantomData }
    }

    /// Adds a put.
    pub fn put(&mut self, table: &Table<D>, key: &[u8], value: &[u8]) -> Result<&mut Self> {
        table.engine.check_key(key)?;
        table.engine.check_value(value)?;
        Ok(self.add(table, key, Change::Put(value.to_vec(), None)))
    }

    /// Adds a put that counts until a time, in milliseconds since 1970.
    pub fn put_until(
        &mut self,
        table: &Table<D>,
        key: &[u8],
        value: &[u8],
        expires_ms: NonZeroU64,
    ) -> Result<&mut Self> {
        table.engine.check_key(key)?;
        table.engine.check_value(value)?;
        Ok(self.add(table, key, Change::Put(value.to_vec(), Some(expires_ms))))
    }

    /// Adds an operand, see [`Table::merge`].
    pub fn merge(&mut self, table: &Table<D>, key: &[u8], operand: &[u8]) -> Result<&mut Self> {
        table.check_merge(key, operand)?;
        Ok(self.add(table, key, Change::Merge(operand.to_vec())))
    }

    /// Adds the delete of a range, see [`Table::delete_range`]. It concerns earlier operations of the batch too.
    pub fn delete_range(&mut self, table: &Table<D>, start: &[u8], end: &[u8]) -> Result<&mut Self> {
        table.check_range(start, end)?;
        Ok(self.add(table, start, Change::DeleteRange(end.to_vec())))
    }

    /// Adds a delete.
    pub fn delete(&mut self, table: &Table<D>, key: &[u8]) -> Result<&mut Self> {
        table.engine.check_key(key)?;
        Ok(self.add(table, key, Change::Delete))
    }

    /// Operations in the batch.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    fn add(&mut self, table: &Table<D>, key: &[u8], change: Change) -> &mut Self {
        self.operations.push(BatchOperation { slot: Arc::clone(&table.slot), key: key.to_vec(), change });
        self
    }

    pub(crate) fn has_large(&self, engine: &Engine<D>) -> bool {
        let limit = engine.whole_value_bytes();
        let is_large = |change: &Change| matches!(change, Change::Put(value, _) if value.len() > limit);
        self.operations.iter().any(|operation| is_large(&operation.change))
    }
}
