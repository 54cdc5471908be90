//! What memory keeps of tables by preference.

use aiodb::{Durability, Error, TableModes};

use crate::model::Effect;
use crate::script::table_name;
use crate::state::{Run, Violation};

impl Run<'_> {
    /// Changes the modes of a table, or is told that it is not there.
    pub(crate) fn set_modes(&mut self, table: usize, modes: TableModes) -> Result<(), Violation> {
        let outcome = self.db().set_table_modes(&table_name(table), modes);
        if !self.model.exists(table) {
            return match outcome {
                Err(Error::NoSuchTable { .. }) => Ok(()),
                outcome => self.unexpected("modes of a table that does not exist", outcome),
            };
        }
        let known = &mut self.modes[table];
        if outcome.is_ok() && !self.device.has_crashed() {
            *known = vec![modes];
        } else {
            // In front: it has its former ones, or the next opening finds it changed.
            known.insert(0, modes);
        }
        if !self.device.has_crashed() {
            self.check_modes_of(table)?;
        }
        // It makes a checkpoint.
        self.checkpointed("modes", outcome)
    }

    /// Makes a table, perhaps with contents. It is there also where its modes could not be kept.
    pub(crate) fn make(
        &mut self,
        table: usize,
        effects: Vec<Effect>,
        make: impl FnOnce(&mut Self) -> aiodb::Result<()>,
    ) -> Result<(), Violation> {
        let (none, wanted, mut unkept) = (TableModes::default(), self.script.setup.modes[table], None);
        let make = |run: &mut Self| match make(run) {
            Err(Error::MadeWithoutModes { cause, .. }) => {
                unkept = Some(*cause);
                Ok(())
            }
            made => made,
        };
        self.write_to(&[], effects, Durability::Sync, make)?;
        if self.device.has_crashed() || !self.model.exists(table) {
            self.modes[table].extend([wanted, none]);
            return Ok(());
        }
        // The next opening may find those that were wanted.
        self.modes[table] = if unkept.is_some() { vec![wanted, none] } else { vec![wanted] };
        self.check_modes_of(table)?;
        unkept.map_or(Ok(()), |cause| self.unexpected("modes of a new table", Err(cause)))
    }

    /// Compares the modes of all tables with what they may be: after a recovery they are known again.
    pub(crate) fn check_modes(&mut self) -> Result<(), Violation> {
        for table in 0..self.modes.len() {
            let Ok(found) = self.table(table).map(|table| table.modes()) else { continue };
            // Earlier contents are found where the medium is damaged, and earlier modes with them.
            if !self.allowed.damage && !self.modes[table].contains(&found) {
                return Err(format!("table {table} has modes {found:?}, not one of {:?}", self.modes[table]));
            }
            self.modes[table] = vec![found];
        }
        Ok(())
    }

    /// In an open store a table has its last modes, whatever comes of a change.
    fn check_modes_of(&mut self, table: usize) -> Result<(), Violation> {
        let (known, found) = (self.modes[table].last().copied(), self.table(table).map(|table| table.modes()));
        match found {
            Ok(found) if known == Some(found) => Ok(()),
            Ok(found) => Err(format!("table {table} has modes {found:?}, not {known:?}")),
            Err(error) => self.unexpected("a table whose modes were changed", Err(error)),
        }
    }
}
