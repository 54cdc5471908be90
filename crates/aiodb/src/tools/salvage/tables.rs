//! The tables of a damaged store: which there are, and what they are called.

use std::collections::{BTreeMap, BTreeSet};

use crate::format::manifest::Manifest;
use crate::format::record::{Kind, Record};
use crate::format::segment::u32_at;
use crate::format::settings::Settings;
use crate::{Compression, IndexKind};

/// The name of a merge operator that nothing names.
pub(super) const UNKNOWN_OPERATOR: &str = "unknown";

/// The tables of a damaged store, from its manifest and from the records about tables.
#[derive(Default)]
pub(super) struct Tables {
    by_id: BTreeMap<u32, (String, Settings)>,
    gone: BTreeSet<u32>,
    /// Whether a manifest has the names that tables were given since they were made.
    knows_names: bool,
    /// Tables that have merge operands.
    merging: BTreeSet<u32>,
    /// Unknown tables with lower ids were dropped, unless...
    complete_below: u32,
    /// ...the sorted runs have keys of them, and a record may be lost by which they came to be.
    in_runs: BTreeSet<u32>,
    changes: BTreeMap<u64, TableChange>,
    from_sequence: u64,
}

struct TableChange {
    kind: Kind,
    id: u32,
    name: String,
    value: Vec<u8>,
}

impl Tables {
    pub(super) fn new(manifest: Option<&Manifest>) -> Tables {
        let Some(manifest) = manifest else { return Tables::default() };
        let known = manifest.tables.iter().map(|table| (table.id, (table.name.clone(), table.settings.clone())));
        let (complete_below, from_sequence) = (manifest.next_table, manifest.next_sequence);
        Tables { by_id: known.collect(), knows_names: true, complete_below, from_sequence, ..Tables::default() }
    }

    /// Notes a record about a table; they are applied in the order of their sequences.
    pub(super) fn note(&mut self, record: &Record<'_>) {
        if record.sequence >= self.from_sequence {
            let name = String::from_utf8_lossy(record.key).into_owned();
            let (kind, id, value) = (record.kind, record.table, record.value.to_vec());
            self.changes.insert(record.sequence, TableChange { kind, id, name, value });
        }
    }

    /// No record about a table is lost: unknown ones are gone, or were never finished.
    pub(super) fn set_complete(&mut self) {
        self.complete_below = u32::MAX;
    }

    /// A record about a table may be lost, and the sorted runs have keys of these: one that was ingested since the checkpoint had its id
    /// before that.
    pub(super) fn set_in_runs(&mut self, tables: BTreeSet<u32>) {
        self.in_runs = tables;
    }

    /// The tables of which the sorted runs alone say that they are there.
    pub(super) fn only_in_runs(&self) -> impl Iterator<Item = u32> {
        let is_unknown =
            |id: &&u32| **id < self.complete_below && !self.by_id.contains_key(id) && !self.gone.contains(id);
        self.in_runs.iter().filter(is_unknown).copied()
    }

    /// Notes that a table has merge operands.
    pub(super) fn note_merge(&mut self, id: u32) {
        self.merging.insert(id);
    }

    /// Applies the records about tables.
    pub(super) fn apply(&mut self) {
        for change in std::mem::take(&mut self.changes).into_values() {
            match change.kind {
                Kind::TableCreate => {
                    let made = Settings::decode_made(&change.value).map(|(settings, _)| settings);
                    let settings = made.unwrap_or_else(|| self.likely_settings(change.id));
                    self.name(change.id, change.name, settings);
                }
                Kind::TableTruncate if change.value.len() == 4 => {
                    let id = u32_at(&change.value, 0);
                    let known = self.by_id.get(&change.id).map(|(_, settings)| settings.clone());
                    let settings = known.unwrap_or_else(|| self.likely_settings(id));
                    self.name(id, change.name, settings);
                    self.forget(change.id);
                }
                _ => self.forget(change.id),
            }
        }
    }

    /// The settings of a table of which no file tells any.
    fn likely_settings(&self, id: u32) -> Settings {
        let merge = self.merging.contains(&id).then(|| UNKNOWN_OPERATOR.to_string());
        let kind = if self.in_runs.contains(&id) { IndexKind::Lsm } else { IndexKind::Lmdb };
        Settings {
            kind,
            compression: Compression::None,
            merge,
            inline_bytes: 0,
            block_compression: Compression::None,
            compaction_filter: None,
        }
    }

    /// A table that had the name before is gone, whether a record says so or not; unless it may have another name by now, of which the manifest alone
    /// would tell: then it gets one here.
    fn name(&mut self, id: u32, name: String, settings: Settings) {
        if self.by_id.contains_key(&id) || self.gone.contains(&id) {
            return;
        }
        let before = self.by_id.iter().find(|(_, (taken, _))| *taken == name).map(|(before, _)| *before);
        match before {
            Some(before) if self.knows_names => self.forget(before),
            Some(before) => {
                let other = self.free_name(format!("{name}-{before:03}"));
                self.by_id.get_mut(&before).expect("it has the name").0 = other;
            }
            None => {}
        }
        self.by_id.insert(id, (name, settings));
    }

    fn forget(&mut self, id: u32) {
        self.by_id.remove(&id);
        self.gone.insert(id);
    }

    /// A name that no table has, this one if it is free.
    fn free_name(&self, mut name: String) -> String {
        while self.by_id.values().any(|(taken, _)| *taken == name) {
            name.push('+');
        }
        name
    }

    /// The name and settings of a table, `None` if it is known to be gone. A table that nothing names gets a name.
    pub(super) fn find(&self, id: u32) -> Option<(String, Settings)> {
        if let Some(known) = self.by_id.get(&id) {
            return Some(known.clone());
        }
        if id < self.complete_below && !self.in_runs.contains(&id) || self.gone.contains(&id) {
            return None;
        }
        Some((self.free_name(format!("table-{id:03}")), self.likely_settings(id)))
    }

    /// All tables that are known, also empty ones, by their ids.
    pub(super) fn known(&self) -> impl Iterator<Item = (&u32, &(String, Settings))> {
        self.by_id.iter()
    }
}
