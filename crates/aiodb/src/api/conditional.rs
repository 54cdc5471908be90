//! Compare-and-set, and conditions of batches.

use std::sync::Arc;

use crate::flow::conditional::{MAX_CONDITIONS, Requirement, Wanted};
use crate::io::Device;
use crate::{Batch, Condition, Durability, Error, Result, Table};

impl<D: Device> Table<D> {
    /// Stores `new` if the key's value is `expected`, in the store's durability class; `None` is an absent key on
    /// either side, so that `new: None` deletes. False if the value is another, and nothing was changed.
    ///
    /// No other write comes between the comparison and the store, in whatever class it is made.
    ///
    /// ```
    /// # use aiodb::{Db, IndexKind, Options};
    /// # fn main() -> aiodb::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// let db = Db::open(directory.path(), Options::default())?;
    /// let seats = db.table_or_create("seats", IndexKind::Hash)?;
    /// assert!(seats.compare_and_set(b"12A", None, Some(b"Ada"))?);
    /// assert!(!seats.compare_and_set(b"12A", None, Some(b"Bob"))?, "the seat is taken");
    /// assert!(seats.compare_and_set(b"12A", Some(b"Ada"), None)?);
    /// # Ok(()) }
    /// ```
    pub fn compare_and_set(&self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        self.compare_and_set_with(key, expected, new, self.engine.options.durability)
    }

    /// [`Table::compare_and_set`] in a class of its own.
    pub fn compare_and_set_with(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        durability: Durability,
    ) -> Result<bool> {
        self.engine.check_open()?;
        let mut batch = Batch::new();
        batch.require(self, key, expected.map_or(Condition::Absent, Condition::Equals))?;
        match new {
            Some(value) => batch.put(self, key, value)?,
            None => batch.delete(self, key)?,
        };
        match self.engine.write_batch(&batch, durability) {
            Ok(_) => Ok(true),
            Err(Error::ConditionFailed { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl<D: Device> Batch<D> {
    /// Makes the batch conditional: it is written only if, at its place in the order of all writes, the key meets
    /// the condition, whatever else the batch does to it. Otherwise [`crate::Db::write`] fails with
    /// [`Error::ConditionFailed`], which counts the conditions from 0, and has changed nothing. A batch without
    /// operations only checks that its conditions (at most 4096) hold all at one moment.
    ///
    /// ```
    /// # use aiodb::{Batch, Condition, Db, Error, IndexKind, Options};
    /// # fn main() -> aiodb::Result<()> {
    /// # let directory = tempfile::tempdir().unwrap();
    /// # let db = Db::open(directory.path(), Options::default())?;
    /// # let accounts = db.table_or_create("accounts", IndexKind::Lsm)?;
    /// # accounts.put(b"ada", b"30")?;
    /// # accounts.put(b"bob", b"0")?;
    /// let mut transfer = Batch::new();
    /// transfer.require(&accounts, b"ada", Condition::Equals(b"30"))?;
    /// transfer.require(&accounts, b"bob", Condition::Equals(b"0"))?;
    /// transfer.put(&accounts, b"ada", b"10")?.put(&accounts, b"bob", b"20")?;
    /// db.write(&transfer)?;
    /// assert!(matches!(db.write(&transfer), Err(Error::ConditionFailed { condition: 0, .. })));
    /// # Ok(()) }
    /// ```
    pub fn require(&mut self, table: &Table<D>, key: &[u8], condition: Condition<'_>) -> Result<&mut Self> {
        table.engine.check_key(key)?;
        if self.requirements.len() >= MAX_CONDITIONS {
            let value = (MAX_CONDITIONS + 1).to_string();
            return Err(Error::Option { option: "conditions of a batch", value, allowed: "at most 4096" });
        }
        let wanted = match condition {
            Condition::Absent => Wanted::Absent,
            Condition::Present => Wanted::Present,
            Condition::Equals(value) => Wanted::Equals(value.to_vec()),
        };
        self.requirements.push(Requirement { slot: Arc::clone(&table.slot), key: key.to_vec(), wanted });
        Ok(self)
    }
}
