//! The public face: stores, tables and batches.

use std::path::Path;
use std::sync::Arc;

use crate::background::{self, Step};
use crate::catalog::TableSlot;
use crate::engine::{Engine, Handle};
use crate::io::{Device, Disk};
use crate::reader::Reader;
use crate::stats::Stats;
use crate::verify::VerifyReport;
use crate::write::Operation;
use crate::{Durability, Error, IndexKind, Options, Result};

/// An open store. Cheap to clone; all methods may be called from many threads.
///
/// The store is closed by [`Db::close`], or when the last handle on it (of tables and readers too) is dropped; the first
/// reports failures, the second cannot.
pub struct Db<D: Device = Disk> {
    engine: Arc<Handle<D>>,
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
    /// [`Error::NewerVersion`], [`Error::Corruption`], [`Error::Backend`], [`Error::Option`], [`Error::DiskFull`],
    /// [`Error::Index`] or [`Error::Io`].
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let path = path.as_ref();
        let failed = |e: std::io::Error| Error::io("open", path, &e);
        if !path.join("STORE").try_exists().map_err(failed)? {
            if !options.create && !path.try_exists().map_err(failed)? {
                return Err(Error::NoStore { path: path.to_path_buf() });
            }
            if options.create {
                std::fs::create_dir_all(path).map_err(|e| Error::io("create", path, &e))?;
            }
        }
        let device = Disk::open(path, options.backend, options.direct)?;
        Db::open_on(device, path, options)
    }
}

impl<D: Device> Db<D> {
    /// Like [`Db::open`] on another device; the directory must exist.
    pub fn open_on(device: D, path: impl AsRef<Path>, options: Options) -> Result<Db<D>> {
        let run_background = options.background;
        let engine = Arc::new(Engine::open(device, path.as_ref(), options)?);
        if run_background {
            background::start(&engine)?;
        }
        Ok(Db { engine: Arc::new(Handle(engine)) })
    }

    /// Makes everything durable, writes a checkpoint and releases the store. Later calls on any handle fail with
    /// [`Error::Closed`].
    pub fn close(&self) -> Result<()> {
        self.engine.close()
    }

    /// Makes a table. Durable when it returns, whatever the store's class.
    pub fn create_table(&self, name: &str, kind: IndexKind) -> Result<Table<D>> {
        self.engine.check_open()?;
        self.engine.create_table(name, kind)?;
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
        self.engine.catalog.slots().iter().map(|slot| (slot.name.clone(), slot.kind)).collect()
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
    /// possibly nothing.
    pub fn write(&self, batch: &Batch<D>) -> Result<()> {
        self.write_with(batch, self.engine.options.durability)
    }

    /// Applies a batch in a class of its own.
    pub fn write_with(&self, batch: &Batch<D>, durability: Durability) -> Result<()> {
        self.engine.check_open()?;
        if batch.operations.is_empty() {
            return Ok(());
        }
        let engine: &Engine<D> = &self.engine;
        if let Some(foreign) = batch.operations.iter().find(|operation| operation.slot.store != engine.segments.store) {
            return Err(Error::NoSuchTable { name: format!("{} (of another store)", foreign.slot.name) });
        }
        let _staging = batch.has_large(engine).then(|| engine.begin_staging());
        // Large values go ahead in chunks; the batch holds only their lists.
        let mut lists = Vec::with_capacity(batch.operations.len());
        for operation in &batch.operations {
            let large = operation.value.as_ref().filter(|value| value.len() > engine.whole_value_bytes());
            lists.push(match large {
                Some(value) => Some(engine.write_chunks(&operation.slot.generation()?, &operation.key, value)?),
                None => None,
            });
        }
        let mut operations: Vec<Operation<'_>> = Vec::with_capacity(batch.operations.len());
        for (operation, list) in batch.operations.iter().zip(&lists) {
            let generation = operation.slot.generation()?;
            operations.push(match (&operation.value, list) {
                (_, Some(list)) => engine.put_operation(generation, &operation.key, list, true),
                (Some(value), None) => engine.put_operation(generation, &operation.key, value, false),
                (None, None) => engine.delete_operation(generation, &operation.key),
            });
        }
        let last = operations.len() - 1;
        operations[..last].iter_mut().for_each(|operation| operation.append.more = true);
        engine.write(&operations, durability)
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

    /// The engine, for the public methods that other files add.
    pub(crate) fn engine(&self) -> &Engine<D> {
        &self.engine
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
    engine: Arc<Handle<D>>,
    slot: Arc<TableSlot>,
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
        self.slot.kind
    }

    /// The value of a key, `None` if the key is absent. One device read, with the calling thread. Damage is
    /// [`Error::Corruption`], never `None`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        self.engine.get(&self.slot.generation()?, key)
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

    /// Stores a value in the store's durability class.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(key, value, self.engine.options.durability)
    }

    /// Stores a value in a class of its own. A value longer than 1 MiB (or a quarter of a segment) is written in parts;
    /// it becomes visible as a whole.
    pub fn put_with(&self, key: &[u8], value: &[u8], durability: Durability) -> Result<()> {
        self.engine.check_open()?;
        self.engine.check_key(key)?;
        self.engine.check_value(value)?;
        self.engine.put(self.slot.generation()?, key, value, durability)
    }

    /// Removes a key in the store's durability class. Deleting an absent key is no error.
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.delete_with(key, self.engine.options.durability)
    }

    /// Removes a key in a class of its own.
    pub fn delete_with(&self, key: &[u8], durability: Durability) -> Result<()> {
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

struct BatchOperation {
    slot: Arc<TableSlot>,
    key: Vec<u8>,
    /// `None` deletes.
    value: Option<Vec<u8>>,
}

/// An atomic group of writes, possibly to several tables of one store. Later operations on a key win.
pub struct Batch<D: Device = Disk> {
    operations: Vec<BatchOperation>,
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
        Batch { operations: Vec::new(), _store: std::marker::PhantomData }
    }

    /// Adds a put.
    pub fn put(&mut self, table: &Table<D>, key: &[u8], value: &[u8]) -> Result<&mut Self> {
        table.engine.check_key(key)?;
        table.engine.check_value(value)?;
        self.add(table, key, Some(value.to_vec()));
        Ok(self)
    }

    /// Adds a delete.
    pub fn delete(&mut self, table: &Table<D>, key: &[u8]) -> Result<&mut Self> {
        table.engine.check_key(key)?;
        self.add(table, key, None);
        Ok(self)
    }

    /// Operations in the batch.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    fn add(&mut self, table: &Table<D>, key: &[u8], value: Option<Vec<u8>>) {
        self.operations.push(BatchOperation { slot: Arc::clone(&table.slot), key: key.to_vec(), value });
    }

    fn has_large(&self, engine: &Engine<D>) -> bool {
        let limit = engine.whole_value_bytes();
        self.operations.iter().any(|operation| operation.value.as_ref().is_some_and(|value| value.len() > limit))
    }
}
