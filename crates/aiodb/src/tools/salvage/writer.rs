//! The new store that a salvage writes.

use std::borrow::Cow;
use std::collections::HashMap;

use super::SalvageReport;
use super::tables::UNKNOWN_OPERATOR;
use crate::flow::operation::Stored;
use crate::format::record::{Form, Kind, Record};
use crate::format::settings::Settings;
use crate::{Db, Durability, Result, Table, TableModes, WriteOptions};

/// A table of the old store.
pub(super) struct OldTable<'a> {
    pub(super) id: u32,
    pub(super) name: &'a str,
    pub(super) settings: &'a Settings,
}

/// Writes the found versions into tables made like those of the old store.
pub(super) struct Writer<'a> {
    db: &'a Db,
    pub(super) report: &'a mut SalvageReport,
    /// By their ids in the old store.
    tables: HashMap<u32, Table>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(db: &'a Db, report: &'a mut SalvageReport) -> Writer<'a> {
        Writer { db, report, tables: HashMap::new() }
    }

    /// The table of this name, made if it is missing.
    pub(super) fn table(&mut self, id: u32, name: &str, settings: &Settings) -> Result<&Table> {
        if !self.tables.contains_key(&id) {
            let table = self.db.create_table_with(name, settings.options(TableModes::default()))?;
            if settings.merge.as_deref() == Some(UNKNOWN_OPERATOR) {
                let note = format!(
                    "nothing says which operator merges table `{name}`: it is read with the one registered as \
                     `{UNKNOWN_OPERATOR}`"
                );
                self.report.notes.push(note);
            }
            self.tables.insert(id, table);
        }
        Ok(&self.tables[&id])
    }

    /// Writes a value or an operand as it is stored. Merging happens when it is read, by a store that knows the operator.
    pub(super) fn copy(
        &mut self,
        kind: Kind,
        OldTable { id, name, settings }: OldTable<'_>,
        key: &[u8],
        form: Form,
        value: &[u8],
    ) -> Result<()> {
        self.report.value_bytes += value.len() as u64;
        let generation = self.table(id, name, settings)?.slot.generation()?;
        let (engine, stored) = (&self.db.engine, Stored { bytes: Cow::Borrowed(value), form });
        let operation = match kind {
            Kind::Merge => engine.merge_operation(generation, key, &stored),
            _ => engine.put_operation(generation, key, &stored, form.expires_ms),
        };
        engine.write(&[operation], Durability::None).map(drop)
    }

    /// Writes a value that was stored in parts.
    pub(super) fn put_large(
        &mut self,
        record: &Record<'_>,
        OldTable { id, name, settings }: OldTable<'_>,
        value: &[u8],
    ) -> Result<()> {
        self.report.value_bytes += value.len() as u64;
        let options = WriteOptions { durability: Some(Durability::None), expires_ms: record.form.expires_ms };
        self.table(id, name, settings)?.put_with(record.key, value, options).map(drop)
    }
}
