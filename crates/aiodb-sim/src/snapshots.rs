//! Scans, and snapshots that are held while other things happen.

use std::collections::BTreeMap;

use aiodb::io::sim::SimDevice;
use aiodb::{Error, IndexKind, Scan, ScanOptions, Snapshot, Table};

use crate::model::{Cell, Contents, Held, Moments};
use crate::run::{Run, Violation, cell, table_name};
use crate::script::Part;
use crate::workload::key_bytes;

/// Snapshots that a process holds at most.
pub(crate) const MOST_SNAPSHOTS: usize = 4;

/// A snapshot that is held, and what it must show.
pub(crate) struct Kept {
    snapshot: Snapshot<SimDevice>,
    /// Handles from that time: the tables may be gone by now.
    tables: Vec<Option<Table<SimDevice>>>,
    contents: Contents,
    /// When it was taken.
    moments: Moments,
}

impl Run<'_> {
    /// Compares all records of a table with the model.
    pub(crate) fn scan(&mut self, table: usize, backward: bool) -> Result<(), Violation> {
        let from = self.look_at_clock();
        let found = self.table(table).and_then(|handle| match self.kind(table) {
            IndexKind::Lmdb => collect(handle.scan(options(backward))?),
            IndexKind::Hash => collect(handle.iterate()?),
        });
        let moments = self.moments(from);
        let wanted = self.model.current()[table].clone();
        self.check_records(found, wanted.as_deref(), moments, (self.kind(table), backward), "a scan")
    }

    /// Compares the records of a part of an ordered table with the model.
    pub(crate) fn scan_part(&mut self, table: usize, part: Part) -> Result<(), Violation> {
        let from = self.look_at_clock();
        let mut bounds = [key_bytes(part.bounds.0), key_bytes(part.bounds.1)];
        bounds.sort();
        let [lower, upper] = &bounds;
        let options = options(part.backward).limit(part.limit as u64);
        let options = if part.inclusive.0 { options.from(lower) } else { options.after(lower) };
        let options = if part.inclusive.1 { options.to(upper) } else { options.before(upper) };
        let options = if part.keys_only { options.keys_only() } else { options };
        let found = self.table(table).and_then(|handle| collect(handle.scan(options)?));
        let moments = self.moments(from);
        let found = match (found, &self.model.current()[table]) {
            (Err(Error::SnapshotEnded), _) if self.allowed.full => return Ok(()),
            (Ok(found), Some(_)) if !self.device.has_crashed() => found,
            (found, held) => {
                let accepted = if held.is_some() { vec![Cell::Damaged] } else { Vec::new() };
                return self.check_answer(found.map(|_| Cell::Absent), &accepted, "a scan of a part");
            }
        };
        self.report.scans += 1;
        let within = |key: &Vec<u8>| {
            (if part.inclusive.0 { key >= lower } else { key > lower })
                && (if part.inclusive.1 { key <= upper } else { key < upper })
        };
        let held = self.model.current()[table].as_deref().unwrap_or_default();
        let wanted = |end: usize| {
            let keys = held.iter().enumerate().map(|(key, held)| (key_bytes(key), held.cells(moments)[end]));
            let mut there: Vec<_> = keys.filter(|(key, cell)| within(key) && *cell != Cell::Absent).collect();
            there.sort_by(|one, other| one.0.cmp(&other.0));
            if part.backward {
                there.reverse();
            }
            there.truncate(part.limit);
            if part.keys_only {
                there.iter_mut().for_each(|(_, found)| *found = cell(Some(&[])));
            }
            there
        };
        if found == wanted(0) || found == wanted(1) {
            return Ok(());
        }
        // With several records about to expire, some may have.
        let ambiguous = held.iter().map(|held| held.cells(moments)).filter(|[first, last]| first != last).count();
        if ambiguous > 1 {
            Ok(())
        } else {
            Err(format!("a scan of a part found {found:x?} instead of {:x?}", wanted(1)))
        }
    }

    /// Takes a snapshot and remembers what it must show.
    pub(crate) fn take_snapshot(&mut self) -> Result<(), Violation> {
        if self.life().snapshots.len() == MOST_SNAPSHOTS {
            self.release(0);
        }
        let from = self.look_at_clock();
        let taken = self.db().snapshot();
        if self.device.has_crashed() {
            return Ok(());
        }
        let snapshot = match taken {
            Ok(snapshot) => snapshot,
            // Reading goes on when writing has ended.
            Err(error @ Error::Failed { .. }) => return Err(format!("a snapshot: {error}")),
            Err(error) => return self.unexpected("a snapshot", Err(error)),
        };
        let tables =
            (0..self.script.setup.tables.len()).map(|table| self.db().table(&table_name(table)).ok()).collect();
        let (contents, moments) = (self.model.current().clone(), self.moments(from));
        self.life().snapshots.push(Kept { snapshot, tables, contents, moments });
        Ok(())
    }

    /// Compares a snapshot with what there was when it was taken.
    pub(crate) fn look(&mut self, number: usize, table: usize, key: usize) -> Result<(), Violation> {
        let count = self.life().snapshots.len();
        if count == 0 {
            return Ok(());
        }
        let (kind, backward) = (self.kind(table), key.is_multiple_of(2));
        let Kept { snapshot, tables, contents, moments } = &self.life().snapshots[number % count];
        let (Some(handle), Some(wanted)) = (&tables[table], &contents[table]) else { return Ok(()) };
        let (wanted, moments) = (wanted.clone(), *moments);
        let found = snapshot.get(handle, &key_bytes(key)).map(|value| cell(value.as_deref()));
        let scanned = match kind {
            IndexKind::Lmdb => snapshot.scan(handle, options(backward)).and_then(collect),
            IndexKind::Hash => snapshot.iterate(handle).and_then(collect),
        };
        if !matches!(found, Err(Error::SnapshotEnded)) || !self.allowed.full {
            let accepted = wanted[key].cells(moments);
            self.check_answer(found, &accepted, "a get from a snapshot")?;
        }
        self.check_records(scanned, Some(&wanted), moments, (kind, backward), "a snapshot's scan")
    }

    /// Ends a snapshot.
    pub(crate) fn release(&mut self, number: usize) {
        let snapshots = &mut self.life().snapshots;
        if !snapshots.is_empty() {
            snapshots.remove(number % snapshots.len());
        }
    }

    fn check_records(
        &mut self,
        found: aiodb::Result<Vec<(Vec<u8>, Cell)>>,
        wanted: Option<&[Held]>,
        moments: Moments,
        (kind, backward): (IndexKind, bool),
        what: &str,
    ) -> Result<(), Violation> {
        let (found, wanted) = match (found, wanted) {
            // On a full disk the store ends what keeps it from making room.
            (Err(Error::SnapshotEnded), _) if self.allowed.full => return Ok(()),
            (Ok(found), Some(wanted)) if !self.device.has_crashed() => (found, wanted),
            (found, wanted) => {
                let accepted = if wanted.is_some() { vec![Cell::Damaged] } else { Vec::new() };
                return self.check_answer(found.map(|_| Cell::Absent), &accepted, what);
            }
        };
        self.report.scans += 1;
        let in_order = |pair: &[(Vec<u8>, Cell)]| if backward { pair[0].0 > pair[1].0 } else { pair[0].0 < pair[1].0 };
        if kind == IndexKind::Lmdb && !found.windows(2).all(in_order) {
            return Err(format!("{what} is not in order"));
        }
        let records = found.len();
        let found: BTreeMap<Vec<u8>, Cell> = found.into_iter().collect();
        if found.len() < records {
            return Err(format!("{what} gives a key twice"));
        }
        let mut known = 0;
        for (key, held) in wanted.iter().enumerate() {
            let found = found.get(&key_bytes(key)).copied();
            known += usize::from(found.is_some());
            let found = found.unwrap_or(Cell::Absent);
            if !held.shows(found, moments) {
                return Err(format!("{what} found {found:x?} at key {key} instead of {:x?}", held.at(moments.1)));
            }
        }
        if known == records { Ok(()) } else { Err(format!("{what} found keys that were never written")) }
    }

    fn kind(&self, table: usize) -> IndexKind {
        self.script.setup.tables[table]
    }
}

fn options(backward: bool) -> ScanOptions {
    if backward { ScanOptions::all().backward() } else { ScanOptions::all() }
}

fn collect(scan: Scan<SimDevice>) -> aiodb::Result<Vec<(Vec<u8>, Cell)>> {
    scan.map(|record| record.map(|(key, value)| (key, cell(Some(&value))))).collect()
}
