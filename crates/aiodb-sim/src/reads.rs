//! Gets that are answered at once.

use crate::model::Cell;
use crate::script::key_bytes;
use crate::state::{Run, Violation};

impl Run<'_> {
    /// Compares what a key holds with the model.
    pub(crate) fn get(&mut self, table: usize, key: usize) -> Result<(), Violation> {
        let from = self.look_at_clock();
        let found = self.table(table).and_then(|table| table.get(&key_bytes(key)));
        let accepted = self.accepted(table, key, from);
        self.check_answer(found.map(|value| Cell::of(value.as_deref())), &accepted, "a get")
    }

    /// The same of several keys in one call.
    pub(crate) fn get_many(&mut self, table: usize, keys: &[usize]) -> Result<(), Violation> {
        let bytes: Vec<_> = keys.iter().map(|key| key_bytes(*key)).collect();
        let from = self.look_at_clock();
        match self.table(table).and_then(|table| table.get_many(&bytes)) {
            Ok(values) => {
                for (key, value) in keys.iter().zip(values) {
                    let accepted = self.accepted(table, *key, from);
                    self.check_answer(Ok(Cell::of(value.as_deref())), &accepted, "one of many gets")?;
                }
                Ok(())
            }
            Err(error) => {
                let exists = self.model.exists(table);
                let accepted = if exists { vec![Cell::Damaged] } else { Vec::new() };
                self.check_answer(Err(error), &accepted, "many gets")
            }
        }
    }
}
