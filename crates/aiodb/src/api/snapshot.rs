//! Reads as of one moment.

use std::sync::Arc;

use super::table::get_many;
use crate::flow::lifecycle::Handle;
use crate::flow::reader::Reader;
use crate::flow::scan::{Scan, ScanOptions};
use crate::flow::snapshot::Moment;
use crate::io::Device;
use crate::store::catalog::{Generation, TableSlot};
use crate::{Error, Result, Snapshot, Table};

impl<D: Device> Snapshot<D> {
    pub(crate) fn take(engine: &Arc<Handle<D>>) -> Result<Snapshot<D>> {
        // No table changes while the moment is taken.
        let _changing = engine.catalog.changing.lock().expect("no code panics while it changes the catalog");
        let moment = Arc::new(Moment::take(engine)?);
        let slots = engine.catalog.slots();
        let tables = slots.into_iter().filter_map(|slot| slot.generation().ok().map(|generation| (slot, generation)));
        Ok(Snapshot { moment, tables: Arc::new(tables.collect()) })
    }

    /// The highest sequence that is seen.
    pub fn sequence(&self) -> u64 {
        self.moment.view.sequence
    }

    /// The value of a key at the snapshot's moment, as [`Table::get`].
    pub fn get(&self, table: &Table<D>, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let engine = &self.moment.engine;
        engine.check_open()?;
        engine.check_key(key)?;
        let value = engine.get(&self.generation_of(&table.slot)?, key, &self.moment.view);
        self.moment.check()?;
        value
    }

    /// The values of many keys at the snapshot's moment, as [`Table::get_many`]: of each batch all are seen or none.
    pub fn get_many<K: AsRef<[u8]>>(&self, table: &Table<D>, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        get_many(keys, |depth| self.reader(table, depth))
    }

    /// Ordered records at the snapshot's moment, as [`Table::scan`].
    pub fn scan(&self, table: &Table<D>, options: ScanOptions) -> Result<Scan<D>> {
        Scan::new(&self.moment.engine, self.generation_of(&table.slot)?, Arc::clone(&self.moment), options)
    }

    /// All records at the snapshot's moment, as [`Table::iterate`].
    pub fn iterate(&self, table: &Table<D>) -> Result<Scan<D>> {
        Scan::unordered(&self.moment.engine, self.generation_of(&table.slot)?, Arc::clone(&self.moment))
    }

    /// A reader at the snapshot's moment, as [`Table::reader`].
    pub fn reader(&self, table: &Table<D>, depth: usize) -> Result<Reader<D>> {
        self.generation_of(&table.slot)?;
        let reader = Reader::new(Arc::clone(&self.moment.engine), Arc::clone(&table.slot), depth)?;
        Ok(reader.at(self.clone()))
    }

    /// The generation that the table had at the snapshot's moment.
    pub(crate) fn generation_of(&self, table: &Arc<TableSlot>) -> Result<Arc<Generation>> {
        let found = self.tables.iter().find(|(slot, _)| Arc::ptr_eq(slot, table));
        found
            .map(|(_, generation)| Arc::clone(generation))
            .ok_or_else(|| Error::NoSuchTable { name: table.name.clone() })
    }
}
