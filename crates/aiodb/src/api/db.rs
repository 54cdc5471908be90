//! The public face: stores, tables and batches.

use std::path::Path;
use std::sync::Arc;

use crate::flow::lifecycle::Handle;
use crate::flow::snapshot::Snapshot;
use crate::flow::stats::Stats;
use crate::flow::upkeep::background::Step;
use crate::flow::verify::VerifyReport;
use crate::io::{Device, Disk};
use crate::store::engine::Engine;
use crate::{
    Batch, Durability, Error, GetDriver, IndexKind, Options, Result, Sequence, Table, TableModes, TableOptions,
};

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

    /// Makes a table that compresses its values or merges, or of which memory keeps something by preference. Modes are kept by a checkpoint of their
    /// own: where that fails the table is there without them, which is [`Error::MadeWithoutModes`]. A process that dies meanwhile may leave it like
    /// that: [`Table::modes`] tells, and [`Db::set_table_modes`] sets them.
    pub fn create_table_with(&self, name: &str, options: TableOptions) -> Result<Table<D>> {
        self.engine.check_open()?;
        let slot = self.engine.create_table(name, &options)?;
        Ok(Table { engine: Arc::clone(&self.engine), slot })
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
        self.engine.catalog.slots().iter().map(|slot| (slot.name.clone(), slot.kind())).collect()
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

    /// Gives a table another name, which no table has yet. Constant time; durable when it returns, with a checkpoint. Handles on the old
    /// name fail with [`Error::NoSuchTable`] from then on; scans, snapshots and streams that have begun go on. A write that is under way
    /// in another thread goes to the table that it has begun with.
    pub fn rename_table(&self, from: &str, to: &str) -> Result<()> {
        self.engine.check_open()?;
        self.engine.rename_table(from, to)
    }

    /// Gives each of two tables the name of the other, in one step: so a copy of another kind ([`Db::copy_table`]) takes the place of the
    /// table. Handles follow the name: after this a handle on `one` is one on what was `other` before, without being opened again. Scans,
    /// snapshots and readers of snapshots that have begun go on with what they have; a write that is under way in another thread goes to the
    /// table that it has begun with, a batch as a whole to the tables of one moment. Constant time; durable when it returns, with a
    /// checkpoint. After an error no name has changed; if the disk fails so that not even this is certain, the store takes no more writes. If
    /// another thread closes the store meanwhile, the next opening may find the names changed.
    pub fn swap_tables(&self, one: &str, other: &str) -> Result<()> {
        self.engine.check_open()?;
        self.engine.swap_tables(one, other)
    }

    /// Changes what of a table memory keeps by preference. It takes effect at once and moves nothing, and what memory is to keep comes there in
    /// the background. Durable when it returns, with a checkpoint; a truncate keeps it. After an error nothing has changed, or the next opening
    /// finds it changed. Modes that contradict each other are [`Error::Option`].
    pub fn set_table_modes(&self, name: &str, modes: TableModes) -> Result<()> {
        self.set_modes_of_tables(&[(name, modes)])
    }

    /// [`Db::set_table_modes`] for some tables: of all of them, or of none, with one checkpoint.
    pub fn set_modes_of_tables(&self, wanted: &[(&str, TableModes)]) -> Result<()> {
        self.engine.check_open()?;
        self.engine.set_modes_of_tables(wanted)
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

    /// Changes what the store may take of memory from now on, see [`Options::memory_bytes`]; `None` leaves it to the store. Memtables and caches
    /// come there in some seconds, and no call waits for that; in a store without threads of its own caches are there when this returns, and
    /// memtables with the next writes. Fails with [`Error::TooLittleMemory`].
    pub fn set_memory_bytes(&self, bytes: Option<u64>) -> Result<()> {
        self.engine.check_open()?;
        self.engine.set_memory_bytes(bytes)
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

impl<D: Device> Db<D> {
    /// Lets the caller carry out the gets of futures that need the device, on a thread of its own: see [`GetDriver`]. `None` if the device's
    /// queue cannot tell of results (only io_uring can), or if there is such a driver already: then a thread of the store does it.
    pub fn get_driver(&self) -> Result<Option<GetDriver<D>>> {
        self.engine.check_open()?;
        GetDriver::attach(&self.engine)
    }

    /// The sequence of the last record that was appended, by any writer.
    pub fn sequence(&self) -> Sequence {
        Sequence(self.engine.commit.next_sequence() - 1)
    }

    /// Returns when a power cut can no longer take the write with this sequence, nor any before it; flushes if no
    /// other thread does. So writes of the classes `interval` and `none` can be made cheaply, and waited for where it matters:
    ///
    /// ```
    /// # use aiodb::{Db, Durability, IndexKind, Options};
    /// # fn main() -> aiodb::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path(), Options { durability: Durability::None, ..Options::default() })?;
    /// let table = db.table_or_create("orders", IndexKind::Lsm)?;
    /// table.put(b"4711", b"two apples")?;
    /// let paid = table.put(b"4711 paid", b"yes")?;
    /// db.wait_durable(paid)?; // both are on the device now
    /// # Ok(()) }
    /// ```
    ///
    /// A sequence that this store has not given to any write is [`Error::Option`].
    pub fn wait_durable(&self, sequence: Sequence) -> Result<()> {
        self.engine.check_open()?;
        if sequence > self.sequence() {
            let allowed = "a sequence that a write of this store has returned";
            return Err(Error::Option { option: "sequence", value: sequence.to_string(), allowed });
        }
        self.engine.flush_to(sequence)
    }
}
