//! Batches as users make them.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::flow::batch::{Batch, BatchOperation, Change};
use crate::io::Device;
use crate::store::read_path::ReadPath;
use crate::{Result, Table};

impl<D: Device> Batch<D> {
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
        table.check_merge(&*table.slot.generation()?, key, operand)?;
        Ok(self.add(table, key, Change::Merge(operand.to_vec())))
    }

    /// Adds the delete of a range, see [`Table::delete_range`]. It concerns earlier operations of the batch too.
    pub fn delete_range(&mut self, table: &Table<D>, start: &[u8], end: &[u8]) -> Result<&mut Self> {
        table.check_range(&*table.slot.generation()?, start, end)?;
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

    pub(crate) fn has_large(&self, engine: &ReadPath<D>) -> bool {
        let limit = engine.whole_value_bytes();
        let is_large = |change: &Change| matches!(change, Change::Put(value, _) if value.len() > limit);
        self.operations.iter().any(|operation| is_large(&operation.change))
    }
}
