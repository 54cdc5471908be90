//! Tables that are made with their contents, from a sorted stream.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::flow::ingest::Ingesting;
use crate::flow::lifecycle::Handle;
use crate::io::{Device, Disk};
use crate::{Db, Error, Result, Table, TableOptions};

impl<D: Device> Db<D> {
    /// Begins to make a table of kind `lsm` together with its contents, which come sorted by their keys. The records go to the log and
    /// their places straight into sorted runs, past the memtable and without merges: this is how a large table is filled. Memory holds
    /// a few MiB of it at a time, besides what its index takes.
    ///
    /// The table is there, with all records, once [`Ingest::finish`] has returned. Until then nobody sees anything of it; its name is
    /// taken (making a table of this name is [`Error::TableBeingMade`]), and there is no table to drop or to empty. Records cannot be
    /// ingested into a table that has some: use puts, or ingest into a second table.
    ///
    /// ```
    /// # use aiodb::{Db, IndexKind, Options};
    /// # fn main() -> aiodb::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path(), Options::default())?;
    /// let mut ingest = db.ingest("squares", IndexKind::Lsm.into())?;
    /// for number in 0..1000u32 {
    ///     ingest.put(&number.to_be_bytes(), &number.pow(2).to_be_bytes())?;
    /// }
    /// let squares = ingest.finish()?; // on the device when it returns
    /// assert_eq!(squares.get(&12u32.to_be_bytes())?, Some(144u32.to_be_bytes().to_vec()));
    /// # Ok(()) }
    /// ```
    ///
    /// Fails with [`Error::TableExists`], [`Error::TableBeingMade`], [`Error::TableName`], [`Error::Option`] for another kind of
    /// table, and as a put does.
    pub fn ingest(&self, name: &str, options: TableOptions) -> Result<Ingest<D>> {
        self.engine.check_open()?;
        let ingesting = self.engine.begin_ingest(name, &options)?;
        Ok(Ingest { engine: Arc::clone(&self.engine), ingesting, last: Vec::new(), failed: None })
    }
}

/// A table that is being made together with its contents, see [`Db::ingest`]. After an error it takes nothing more and is given up, unless
/// that was about the length of a key or a value.
///
/// Dropping it gives it up: no table is made, and the space comes back behind the scenes, as that of deleted records does. While it
/// exists, the space of records that are overwritten or deleted after its beginning does not come back.
///
/// After the death of the process or a power cut, the table is there with all records if [`Ingest::finish`] has returned; nothing of it
/// is there if that was not called; and if it was under way, all or nothing.
#[must_use = "an ingest that is not finished is given up"]
pub struct Ingest<D: Device = Disk> {
    engine: Arc<Handle<D>>,
    ingesting: Ingesting<D>,
    last: Vec<u8>,
    failed: Option<Error>,
}

impl<D: Device> Ingest<D> {
    /// Takes a record. Its key must be greater than the one before, byte by byte; [`Error::NotAscending`] if it is not.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.take(key, value, None)
    }

    /// [`Ingest::put`] of a record that counts until a time, in milliseconds since 1970.
    pub fn put_until(&mut self, key: &[u8], value: &[u8], expires_ms: NonZeroU64) -> Result<()> {
        self.take(key, value, Some(expires_ms))
    }

    /// Records taken so far.
    pub fn records(&self) -> u64 {
        self.ingesting.records
    }

    /// Makes the table, with all records that were taken. Durable when it returns, whatever the store's class. After an error there is
    /// no table; only where that is [`Error::Failed`], or of a write or flush, the next opening of the store may find it, with all
    /// records. After [`Error::MadeWithoutModes`] it is there with all records. A process that dies meanwhile may leave it like that.
    pub fn finish(mut self) -> Result<Table<D>> {
        self.check()?;
        let slot = self.engine.finish_ingest(&mut self.ingesting)?;
        Ok(Table { engine: Arc::clone(&self.engine), slot })
    }

    fn take(&mut self, key: &[u8], value: &[u8], expires_ms: Option<NonZeroU64>) -> Result<()> {
        self.check()?;
        self.engine.check_key(key)?;
        self.engine.check_value(value)?;
        let taken = self.try_take(key, value, expires_ms);
        if let Err(error) = &taken {
            self.failed = Some(error.clone());
            // What it has taken is of no use any more, also if the caller keeps it for long.
            self.engine.end_ingest(&mut self.ingesting);
        }
        taken
    }

    fn try_take(&mut self, key: &[u8], value: &[u8], expires_ms: Option<NonZeroU64>) -> Result<()> {
        if key <= &self.last[..] {
            let (record, previous) = (self.records() + 1, self.last.clone());
            return Err(Error::NotAscending { record, key: key.to_vec(), previous });
        }
        self.engine.ingest(&mut self.ingesting, key, value, expires_ms)?;
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.engine.check_open()?;
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl<D: Device> Drop for Ingest<D> {
    fn drop(&mut self) {
        self.engine.end_ingest(&mut self.ingesting);
    }
}
