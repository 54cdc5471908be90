//! Sizes, counters and times as users ask for them.

use crate::api::db::Db;
use crate::io::Device;
use crate::{Metrics, Result, Table, TableStats};

impl<D: Device> Db<D> {
    /// Counts, sizes and times of everything that costs some, since the store was opened. Cheap enough to be asked
    /// for every second.
    pub fn metrics(&self) -> Metrics {
        self.engine().metrics()
    }
}

impl<D: Device> Table<D> {
    /// Sizes of this table at this moment. Takes the same time however many other tables there are.
    pub fn stats(&self) -> Result<TableStats> {
        self.engine.check_open()?;
        Ok(self.engine.stats_of(&self.slot.name, &*self.slot.generation()?))
    }
}
