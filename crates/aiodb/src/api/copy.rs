//! Copies of tables, as tables of any kind.

use std::num::NonZeroU64;
use std::sync::Arc;

use crate::io::Device;
use crate::store::catalog::Generation;
use crate::{Db, Durability, Error, IndexKind, Ingest, Result, Table, TableOptions};

/// A table that is being filled.
enum Filling<'a, D: Device> {
    Ingest(&'a mut Ingest<D>),
    Puts(&'a Table<D>, &'a Arc<Generation>),
}

impl<D: Device> Filling<'_, D> {
    fn put(&mut self, key: &[u8], value: &[u8], expires_ms: Option<NonZeroU64>) -> Result<()> {
        match (self, expires_ms) {
            (Filling::Ingest(ingest), None) => ingest.put(key, value),
            (Filling::Ingest(ingest), Some(expires_ms)) => ingest.put_until(key, value, expires_ms),
            (Filling::Puts(table, generation), expires_ms) => {
                // Puts follow the name, but the copy is this table.
                table.slot.check_has(generation)?;
                table.engine.check_value(value)?;
                table.engine.put(Arc::clone(generation), key, value, Durability::None, expires_ms).map(drop)
            }
        }
    }
}

impl<D: Device> Db<D> {
    /// Copies all records of a table, as they are at the beginning of the call, into a new table, of any kind; the times at which they
    /// expire come along, and what operands made is copied as a value. Reads and writes of `from` go on meanwhile, and are not in the
    /// copy. `progress` is told now and then how many records, and bytes of keys and values, are copied.
    ///
    /// A table of kind `lsm` is ingested where the records come in the order of their keys (see [`Db::ingest`]): it is there as a whole
    /// when this returns, or not at all. Others are filled by puts, and are seen while they grow; after an error they are dropped, but
    /// after the death of the process the part that was copied is left. In either case the copy is durable when this returns.
    ///
    /// Fails with [`Error::TableExists`], [`Error::SnapshotEnded`] where the store ends its snapshot meanwhile, [`Error::MergedExpiry`], or as
    /// reads and writes do.
    pub fn copy_table(
        &self,
        from: &Table<D>,
        to: &str,
        options: TableOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Table<D>> {
        if from.kind().is_ordered() && options.kind == IndexKind::Lsm {
            let mut ingest = self.ingest(to, options)?;
            fill(from, Filling::Ingest(&mut ingest), progress)?;
            return ingest.finish();
        }
        let table = self.create_table_with(to, options)?;
        let generation = table.slot.generation()?;
        let filled = fill(from, Filling::Puts(&table, &generation), progress).and_then(|()| self.sync());
        match filled {
            Ok(()) => Ok(table),
            Err(error) => {
                // Where not even that works, what is left of it has a name.
                let _ = self.engine.drop_generation(&table.slot, &generation);
                Err(error)
            }
        }
    }
}

fn fill<D: Device>(from: &Table<D>, mut to: Filling<'_, D>, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let (mut scan, mut records, mut bytes) = (from.iterate()?, 0, 0);
    let (mut key, mut value) = (Vec::new(), Vec::new());
    loop {
        match scan.next_record()? {
            None => return Ok(()),
            Some((found_key, found_value)) => {
                key.clear();
                key.extend_from_slice(found_key);
                value.clear();
                value.extend_from_slice(found_value);
            }
        }
        let lifetime = scan.lifetime();
        if lifetime.expires_ms.is_some() && lifetime.is_merged {
            return Err(Error::MergedExpiry { table: from.name().to_string(), key });
        }
        to.put(&key, &value, lifetime.expires_ms)?;
        records += 1;
        bytes += (key.len() + value.len()) as u64;
        progress(records, bytes);
    }
}
