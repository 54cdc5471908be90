//! Tables that come and go.

use aiodb::{Durability, Error};

use crate::model::Effect;
use crate::script::table_name;
use crate::state::{Run, Violation};

impl Run<'_> {
    /// Makes a table, or is told that it is there.
    pub(crate) fn create(&mut self, table: usize) -> Result<(), Violation> {
        let options = self.table_options(table);
        if self.model.exists(table) {
            return match self.db().create_table_with(&table_name(table), options) {
                Err(Error::TableExists { .. }) => Ok(()),
                outcome => self.unexpected("creating a table that exists", outcome.map(drop)),
            };
        }
        if self.is_ingested(table) {
            return match self.db().create_table_with(&table_name(table), options) {
                Err(Error::TableBeingMade { .. }) => Ok(()),
                outcome => self.unexpected("creating a table that is being ingested", outcome.map(drop)),
            };
        }
        self.make(table, vec![Effect::Create(table)], |run| {
            run.db().create_table_with(&table_name(table), options).map(drop)
        })
    }

    /// Drops a table.
    pub(crate) fn drop_table(&mut self, table: usize) -> Result<(), Violation> {
        let drop = |run: &mut Self| run.db().drop_table(&table_name(table));
        self.write(vec![Effect::Drop(table)], Durability::Sync, drop)
    }

    /// Empties a table.
    pub(crate) fn truncate(&mut self, table: usize) -> Result<(), Violation> {
        let truncate = |run: &mut Self| run.db().truncate_table(&table_name(table));
        self.write(vec![Effect::Truncate(table)], Durability::Sync, truncate)
    }

    /// Swaps two tables of the same options: what is done by the name of one suits the other.
    pub(crate) fn swap_tables(&mut self, one: usize, other: usize) -> Result<(), Violation> {
        let changes = self.model.len();
        let swap = |run: &mut Self| run.db().swap_tables(&table_name(one), &table_name(other));
        let swapped = self.write(vec![Effect::Swap(one, other)], Durability::Sync, swap);
        let is_known = !self.device.has_crashed() && self.failed.is_none();
        if is_known && self.model.len() > changes {
            self.modes.swap(one, other);
        } else if !is_known {
            // The next opening may find either with the modes of the other.
            let both: Vec<_> = self.modes[one].iter().chain(&self.modes[other]).copied().collect();
            (self.modes[one], self.modes[other]) = (both.clone(), both);
        }
        swapped
    }
}
