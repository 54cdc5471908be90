//! Scans, and snapshots that are held while other things happen.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use aiodb::io::sim::SimDevice;
use aiodb::{Error, IndexKind, Scan, ScanOptions};

use crate::model::{Cell, Contents, Held, Moments};
use crate::process::Taken;
use crate::script::{MOST_SNAPSHOTS, Part, key_bytes, table_name};
use crate::state::{Run, Violation};

/// Superseded records of which memory takes so many are never written in a run.
const MANY: usize = 1000;

impl Run<'_> {
    /// Compares all records of a table with the model.
    pub(crate) fn scan(&mut self, table: usize, backward: bool) -> Result<(), Violation> {
        let from = self.look_at_clock();
        let found = self.table(table).and_then(|handle| match self.kind(table) {
            IndexKind::Lmdb | IndexKind::Lsm => collect(handle.scan(options(backward))?),
            IndexKind::Hash => collect(handle.iterate()?),
        });
        let moments = self.moments(from);
        let possible = self.possible_contents();
        self.check_records(found, table, possible, moments, backward, "a scan").map(drop)
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
        let found = match found {
            Err(Error::SnapshotEnded) if self.may_end_snapshots() => return Ok(()),
            Ok(found) if self.model.exists(table) && !self.device.has_crashed() => found,
            found => return self.check_no_records(found, self.model.exists(table), "a scan of a part"),
        };
        self.report.scans += 1;
        let held = |contents: &Contents| contents[table].clone().unwrap_or_default();
        fitting(self.possible_contents(), |contents| check_part(&found, &held(contents), moments, part)).map(drop)
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
        let (mut contents, moments) = (self.possible_contents(), self.moments(from));
        for contents in &mut contents {
            self.find_what_may_be_gone(contents);
        }
        let sequence = self.db().sequence();
        self.life().snapshots.push(Taken { snapshot, tables, contents, moments, sequence });
        self.tell_filter();
        Ok(())
    }

    /// Finds out which of the present contents compaction filters have given up: a snapshot that was just taken shows that for good.
    fn find_what_may_be_gone(&self, contents: &mut Contents) {
        for (table, held) in contents.iter_mut().enumerate() {
            for (key, held) in held.iter_mut().flatten().enumerate().filter(|(_, held)| held.may_go()) {
                // Where the device has failed, or is full of damage, either may be shown.
                if let Ok(found) = self.table(table).and_then(|table| table.get(&key_bytes(key))) {
                    *held = held.once_found(Cell::of(found.as_deref()));
                }
            }
        }
    }

    /// Tells the compaction filter what the oldest snapshot sees. One that the store has ended on a full disk keeps nothing.
    pub(crate) fn tell_filter(&mut self) {
        let oldest = self.life().snapshots.iter().map(|taken| taken.sequence.number()).min();
        let oldest = oldest.filter(|_| !self.may_end_snapshots()).unwrap_or(u64::MAX);
        self.watch.oldest_snapshot.store(oldest, Ordering::SeqCst);
    }

    /// Compares a snapshot with what there was when it was taken.
    pub(crate) fn look(&mut self, number: usize, table: usize, key: usize) -> Result<(), Violation> {
        let count = self.life().snapshots.len();
        if count == 0 {
            return Ok(());
        }
        let (kind, backward) = (self.kind(table), key.is_multiple_of(2));
        let Taken { snapshot, tables, contents, moments, .. } = &self.life().snapshots[number % count];
        let Some(handle) = tables[table].as_ref().filter(|_| contents[0][table].is_some()) else { return Ok(()) };
        let (possible, moments) = (contents.clone(), *moments);
        let found = snapshot.get(handle, &key_bytes(key)).map(|value| Cell::of(value.as_deref()));
        let scanned = match kind {
            IndexKind::Lmdb | IndexKind::Lsm => snapshot.scan(handle, options(backward)).and_then(collect),
            IndexKind::Hash => snapshot.iterate(handle).and_then(collect),
        };
        let shown = found.as_ref().ok().copied();
        if !matches!(found, Err(Error::SnapshotEnded)) || !self.may_end_snapshots() {
            let held = possible.iter().filter_map(|contents| contents[table].as_ref());
            let accepted: Vec<Cell> = held.flat_map(|held| held[key].cells(moments)).collect();
            self.check_answer(found, &accepted, "a get from a snapshot")?;
        }
        // Contents that it has shown once it shows for good.
        let shows = |contents: &Contents| {
            contents[table].as_ref().is_some_and(|held| shown.is_none_or(|found| held[key].shows(found, moments)))
        };
        let possible = possible.into_iter().filter(shows).collect();
        let right = self.check_records(scanned, table, possible, moments, backward, "a snapshot's scan")?;
        if !right.is_empty() && !self.device.has_crashed() {
            self.life().snapshots[number % count].contents = right;
        }
        Ok(())
    }

    /// Whether the store may have ended snapshots: on a full disk such as prevent it from making room, and others where it cannot write what
    /// it retains for them.
    fn may_end_snapshots(&self) -> bool {
        self.allowed.full || self.allowed.errors && self.script.setup.versions_in_memory < MANY
    }

    /// Ends a snapshot.
    pub(crate) fn release(&mut self, number: usize) {
        let snapshots = &mut self.life().snapshots;
        if !snapshots.is_empty() {
            snapshots.remove(number % snapshots.len());
        }
        self.tell_filter();
    }

    /// Compares the records of a table with the ones that it may have had; returns the contents that fit.
    fn check_records(
        &mut self,
        found: aiodb::Result<Vec<(Vec<u8>, Cell)>>,
        table: usize,
        possible: Vec<Contents>,
        moments: Moments,
        backward: bool,
        what: &str,
    ) -> Result<Vec<Contents>, Violation> {
        let exists = possible.iter().any(|contents| contents[table].is_some());
        let found = match found {
            Err(Error::SnapshotEnded) if self.may_end_snapshots() => return Ok(possible),
            Ok(found) if exists && !self.device.has_crashed() => found,
            found => return self.check_no_records(found, exists, what).map(|()| possible),
        };
        self.report.scans += 1;
        let in_order = |pair: &[(Vec<u8>, Cell)]| if backward { pair[0].0 > pair[1].0 } else { pair[0].0 < pair[1].0 };
        if self.kind(table).is_ordered() && !found.windows(2).all(in_order) {
            return Err(format!("{what} is not in order"));
        }
        let records = found.len();
        let found: BTreeMap<Vec<u8>, Cell> = found.into_iter().collect();
        if found.len() < records {
            return Err(format!("{what} gives a key twice"));
        }
        fitting(possible, |contents| check_all(&found, contents[table].as_deref().unwrap_or_default(), moments, what))
    }

    /// What a scan answers that gave no records: an error, of a table that exists or not.
    fn check_no_records<T>(&mut self, found: aiodb::Result<T>, exists: bool, what: &str) -> Result<(), Violation> {
        let accepted = if exists { vec![Cell::Damaged] } else { Vec::new() };
        self.check_answer(found.map(|_| Cell::Absent), &accepted, what)
    }

    fn kind(&self, table: usize) -> IndexKind {
        self.script.setup.tables[table]
    }
}

/// The contents that fit; the first that does not, if none does.
fn fitting(
    possible: Vec<Contents>,
    check: impl Fn(&Contents) -> Result<(), Violation>,
) -> Result<Vec<Contents>, Violation> {
    let (mut fit, mut wrong) = (Vec::new(), None);
    for contents in possible {
        match check(&contents) {
            Ok(()) => fit.push(contents),
            Err(violation) => wrong = wrong.or(Some(violation)),
        }
    }
    if fit.is_empty() { wrong.map_or(Ok(fit), Err) } else { Ok(fit) }
}

/// Whether these are the records of a whole table.
fn check_all(found: &BTreeMap<Vec<u8>, Cell>, wanted: &[Held], moments: Moments, what: &str) -> Result<(), Violation> {
    let mut known = 0;
    for (key, held) in wanted.iter().enumerate() {
        let found = found.get(&key_bytes(key)).copied();
        known += usize::from(found.is_some());
        let found = found.unwrap_or(Cell::Absent);
        if !held.shows(found, moments) {
            return Err(format!("{what} found {found:x?} at key {key} instead of {:x?}", held.at(moments.1)));
        }
    }
    if known == found.len() { Ok(()) } else { Err(format!("{what} found keys that were never written")) }
}

/// Whether these are the records of a part of a table.
fn check_part(found: &[(Vec<u8>, Cell)], held: &[Held], moments: Moments, part: Part) -> Result<(), Violation> {
    let mut bounds = [key_bytes(part.bounds.0), key_bytes(part.bounds.1)];
    bounds.sort();
    let [lower, upper] = &bounds;
    let within = |key: &Vec<u8>| {
        (if part.inclusive.0 { key >= lower } else { key > lower })
            && (if part.inclusive.1 { key <= upper } else { key < upper })
    };
    let wanted = |end: usize| {
        let keys = held.iter().enumerate().map(|(key, held)| (key_bytes(key), held.cells(moments)[end]));
        let mut there: Vec<_> = keys.filter(|(key, cell)| within(key) && *cell != Cell::Absent).collect();
        there.sort_by(|one, other| one.0.cmp(&other.0));
        if part.backward {
            there.reverse();
        }
        there.truncate(part.limit);
        if part.keys_only {
            there.iter_mut().for_each(|(_, found)| *found = Cell::of(Some(&[])));
        }
        there
    };
    if found == wanted(0) || found == wanted(1) {
        return Ok(());
    }
    // With several records about to expire, some may have.
    let ambiguous = held.iter().map(|held| held.cells(moments)).filter(|[first, last]| first != last).count();
    if ambiguous > 1 { Ok(()) } else { Err(format!("a scan of a part found {found:x?} instead of {:x?}", wanted(1))) }
}

fn options(backward: bool) -> ScanOptions {
    if backward { ScanOptions::all().backward() } else { ScanOptions::all() }
}

fn collect(scan: Scan<SimDevice>) -> aiodb::Result<Vec<(Vec<u8>, Cell)>> {
    scan.map(|record| record.map(|(key, value)| (key, Cell::of(Some(&value))))).collect()
}
