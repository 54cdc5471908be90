//! Whole sequences of operations and crashes on a simulated machine, on tables of all kinds, against a model. The input is the script.

mod index_file;
mod model;
mod script;

use std::path::Path;

use self::index_file::IndexFile;
use self::model::{Change, Contents, INGESTED, KEYS, LMDB, Model, Records, TABLES, bound, key, number_of};
use self::script::{End, Script, Settings};
use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::{Batch, Db, Durability, Error, Ingest, Result, ScanOptions, Snapshot, Step, Table};

const ROOT: &str = "/store";

/// Longer scripts say nothing new, and slow a fuzzer down.
const MOST_OPERATIONS: usize = 300;

/// Snapshots that are held at a time.
const MOST_SNAPSHOTS: usize = 4;

/// What scripts have come to, so that a test can tell whether they reach what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Reached {
    /// Crashes and closed stores.
    pub(super) lives: u64,
    /// Commits of memtables.
    pub(super) commits: u64,
    /// Times that there were fewer runs after some steps than before them.
    pub(super) merges: u64,
    /// The most runs at a time.
    pub(super) runs: u64,
    /// Superseded records that were in files when a snapshot was asked.
    pub(super) versions_in_files: u64,
    pub(super) ingested: u64,
    pub(super) reclaimed_segments: u64,
}

#[cfg(test)]
impl Reached {
    /// Adds what another script has come to.
    pub(super) fn add(&mut self, other: Reached) {
        self.lives += other.lives;
        self.commits += other.commits;
        self.merges += other.merges;
        self.runs = self.runs.max(other.runs);
        self.versions_in_files = self.versions_in_files.max(other.versions_in_files);
        self.ingested += other.ingested;
        self.reclaimed_segments += other.reclaimed_segments;
    }
}

/// An open store.
struct Process {
    db: Db<SimDevice>,
    tables: [Option<Table<SimDevice>>; TABLES.len()],
    snapshots: Vec<Taken>,
    ingesting: Option<Ingesting>,
}

/// A snapshot, the tables of that time, and what they had.
struct Taken {
    snapshot: Snapshot<SimDevice>,
    tables: [Option<Table<SimDevice>>; TABLES.len()],
    contents: Contents,
}

/// A table that is being made with its contents.
struct Ingesting {
    ingest: Ingest<SimDevice>,
    records: Records,
    next: u8,
}

struct Run<'a> {
    script: Script<'a>,
    settings: Settings,
    device: SimDevice,
    index_file: Option<IndexFile>,
    model: Model,
    reached: Reached,
}

/// Runs a script to its end, or until it has had enough operations.
pub(super) fn run(input: &[u8]) {
    run_counted(input);
}

/// [`run`], and what the script has come to.
pub(super) fn run_counted(input: &[u8]) -> Reached {
    let mut script = Script::new(input);
    let settings = script.settings();
    let device = SimDevice::with_block_bytes(u64::from(input.first().copied().unwrap_or(0)), settings.block_bytes);
    let index_file = settings.has_lmdb.then(|| IndexFile::new(&device));
    let made = |table: usize| (table != INGESTED && (table != LMDB || settings.has_lmdb)).then(Records::new);
    let model = Model::new(std::array::from_fn(made));
    let mut run = Run { script, settings, device, index_file, model, reached: Reached::default() };
    let mut operations = 0;
    while !run.script.is_at_end() && operations < MOST_OPERATIONS {
        run.live(&mut operations);
    }
    run.reached
}

impl Run<'_> {
    fn open(&self) -> Result<Process> {
        // Fails only on a machine that has crashed; then opening fails as well.
        let _ = self.device.create_dir(Path::new(ROOT));
        let db = Db::open_on(self.device.clone(), ROOT, self.settings.options.clone())?;
        let mut tables = [const { None }; TABLES.len()];
        for (number, (name, kind)) in TABLES.into_iter().enumerate() {
            tables[number] = match db.table(name) {
                Err(Error::NoSuchTable { .. }) if number == INGESTED => None,
                Err(Error::NoSuchTable { .. }) if self.model.now()[number].is_none() => None,
                Err(Error::NoSuchTable { .. }) => Some(db.create_table_with(name, self.settings.table_options(kind))?),
                found => Some(found?),
            };
        }
        Ok(Process { db, tables, snapshots: Vec::new(), ingesting: None })
    }

    /// A process, its end, and the contents that the next one finds.
    fn live(&mut self, operations: &mut usize) {
        let mut opened = self.open();
        let outcome = match &mut opened {
            Ok(process) => self.work(process, operations),
            Err(error) => Err(error.clone()),
        };
        let end = match outcome {
            Ok(end) => end,
            Err(error) if !self.device.has_crashed() => panic!("an operation failed: {error}"),
            Err(_) => self.script.crash(),
        };
        let required = match end {
            End::Closed => self.model.len(),
            End::Killed => self.model.acknowledged,
            End::PowerCut => self.model.durable,
        };
        if let Ok(Process { db, .. }) = &opened {
            let metrics = db.metrics();
            self.reached.lives += 1;
            self.reached.commits += metrics.memtable_commit_ns.count();
            self.reached.reclaimed_segments += metrics.reclaimed_segments;
        }
        let device = if end == End::Killed { self.device.process_death() } else { self.device.power_cut() };
        self.restart(device);
        drop(opened);
        self.recover(required, end);
    }

    /// The device of the next process.
    fn restart(&mut self, device: SimDevice) {
        if let Some(file) = &mut self.index_file {
            file.end_life(&device);
        }
        self.device = device;
    }

    fn recover(&mut self, required: usize, end: End) {
        let Process { db, tables, .. } = self.open().unwrap_or_else(|error| panic!("recovery, {end:?}: {error}"));
        let read = |number: usize| {
            let table: Option<&Table<SimDevice>> = tables[number].as_ref();
            table.map(|table| {
                let records = all(table, None, false).unwrap_or_else(|error| panic!("{end:?}: {error}"));
                for number in 0..KEYS {
                    let value = table.get(&key(number)).unwrap_or_else(|error| panic!("{end:?}: {error}"));
                    assert!(value.as_ref() == records.get(&number), "{end:?}: a get and a scan of key {number}");
                }
                records
            })
        };
        let found: Contents = std::array::from_fn(read);
        let matching = self.model.matching(required, &found);
        assert!(matching.is_some(), "{end:?}: none of the states {required} to {}: {found:?}", self.model.len());
        let report = db.verify(&mut |_, _| {}).unwrap_or_else(|error| panic!("{end:?}: {error}"));
        assert!(report.damage.is_empty(), "{end:?}: {:?}", report.damage);
        let wrong = db.recount().unwrap_or_else(|error| panic!("{end:?}: {error}"));
        assert!(wrong.is_empty(), "{end:?}: {}", wrong.join("; "));
        // Records that recovery has shown are durable.
        self.model = Model::new(found);
        self.restart(self.device.process_death());
    }

    /// Operations up to the end of the process. An error means that the machine has crashed in one.
    fn work(&mut self, process: &mut Process, operations: &mut usize) -> Result<End> {
        loop {
            *operations += 1;
            if self.script.is_at_end() || *operations > MOST_OPERATIONS {
                return Ok(End::Killed);
            }
            match self.script.byte() % 40 {
                0..18 => self.write(process)?,
                18..20 => self.get(process)?,
                20..22 => self.scan(process)?,
                22..24 => self.ask_snapshot(process)?,
                24..27 => self.ingest(process)?,
                27 => self.drop_or_truncate(process)?,
                28 => {
                    process.db.sync()?;
                    if !self.device.has_crashed() {
                        self.model.durable = self.model.len();
                    }
                }
                29..36 => self.step(process)?,
                36..38 => self.device.crash_after(1 + u64::from(self.script.byte())),
                38 => {
                    process.db.close()?;
                    return Ok(if self.device.has_crashed() { self.script.crash() } else { End::Closed });
                }
                _ => return Ok(self.script.crash()),
            }
        }
    }

    /// Work behind the scenes.
    fn step(&mut self, process: &Process) -> Result<()> {
        let (step, times) = match self.script.byte() % 12 {
            0 => (Step::Write, 1),
            1 => (Step::Flush, 1),
            2 => (Step::Checkpoint, 1),
            3 => (Step::Settle, 1),
            4 => (Step::DeleteRanges, 1),
            5 => (Step::Spill, 1 + self.script.byte() % 6),
            6 | 7 => (Step::Merge, 1 + self.script.byte() % 6),
            8 => (Step::Reclaim, self.script.byte() % 16),
            9 => (Step::Prepare, 1),
            10 => (Step::CommitAhead, 1),
            _ => (Step::Upkeep, 1),
        };
        let before = process.db.metrics().runs;
        (0..times).try_for_each(|_| process.db.step(step))?;
        let after = process.db.metrics().runs;
        self.reached.runs = self.reached.runs.max(after);
        self.reached.merges += u64::from(after < before);
        Ok(())
    }

    /// A table that is there.
    fn table(&mut self, process: &Process) -> usize {
        let number = usize::from(self.script.byte()) % TABLES.len();
        let is_there = |number: &usize| process.tables[*number].is_some();
        (number..TABLES.len()).chain(0..number).find(is_there).expect("there are tables")
    }

    fn one_change(&mut self, process: &Process) -> Change {
        let table = self.table(process);
        match self.script.byte() % 12 {
            0..5 => Change::Put(table, self.script.key(), self.script.value()),
            5..8 => Change::Delete(table, self.script.key()),
            8..10 => Change::Merge(table, self.script.key(), self.script.operand()),
            _ if TABLES[table].1.is_ordered() => {
                let (start, end) = (self.script.key(), self.script.key());
                // A range that ends before it begins has nothing.
                Change::DeleteRange(table, start, (end > 0).then_some(end))
            }
            _ => Change::Delete(table, self.script.key()),
        }
    }

    fn write(&mut self, process: &Process) -> Result<()> {
        let changes = match self.script.byte() {
            0..200 => 1,
            more => 2 + more % 4,
        };
        let changes: Vec<_> = (0..changes).map(|_| self.one_change(process)).collect();
        let durability = self.script.durability();
        let written = self.attempt(changes.clone(), durability == Durability::Sync, || match &changes[..] {
            [change] => write_one(process, change, durability),
            changes => write_batch(process, changes, durability),
        });
        match written {
            Err(Error::BatchTooLarge { .. }) => {
                self.model.pop();
                Ok(())
            }
            written => written,
        }
    }

    /// Makes changes, which are there together or not at all whatever comes of it.
    fn attempt<T>(&mut self, changes: Vec<Change>, durable: bool, work: impl FnOnce() -> Result<T>) -> Result<T> {
        self.model.push(changes);
        let outcome = work();
        if outcome.is_ok() && !self.device.has_crashed() {
            self.model.acknowledge(durable);
        }
        outcome
    }

    fn get(&mut self, process: &Process) -> Result<()> {
        let (table, number) = (self.table(process), self.script.key());
        let found = process.tables[table].as_ref().expect("it is there").get(&key(number))?;
        let wanted = self.model.now()[table].as_ref().and_then(|records| records.get(&number));
        assert!(found.as_ref() == wanted || self.device.has_crashed(), "key {number} of {}", TABLES[table].0);
        Ok(())
    }

    fn scan(&mut self, process: &Process) -> Result<()> {
        let (table, backward) = (self.table(process), self.script.byte() & 1 == 1);
        let found = all(process.tables[table].as_ref().expect("it is there"), None, backward)?;
        let is_right = Some(&found) == self.model.now()[table].as_ref();
        assert!(is_right || self.device.has_crashed(), "a scan of {}: {found:?}", TABLES[table].0);
        Ok(())
    }

    /// Takes a snapshot, or looks at one, or ends one.
    fn ask_snapshot(&mut self, process: &mut Process) -> Result<()> {
        let (what, which) = (self.script.byte() % 4, usize::from(self.script.byte()));
        if process.snapshots.is_empty() || what == 0 && process.snapshots.len() < MOST_SNAPSHOTS {
            let snapshot = process.db.snapshot()?;
            let (tables, contents) = (process.tables.clone(), self.model.now().clone());
            process.snapshots.push(Taken { snapshot, tables, contents });
            return Ok(());
        }
        let which = which % process.snapshots.len();
        if what == 1 {
            process.snapshots.remove(which);
            return Ok(());
        }
        let in_files = process.db.metrics().kept_versions_in_files;
        self.reached.versions_in_files = self.reached.versions_in_files.max(in_files);
        let Taken { snapshot, tables, contents } = &process.snapshots[which];
        for (number, (table, wanted)) in tables.iter().zip(contents).enumerate() {
            let Some(table) = table else { continue };
            let found = all(table, Some(snapshot), what == 3)?;
            let is_right = Some(&found) == wanted.as_ref();
            assert!(is_right || self.device.has_crashed(), "a snapshot of {}: {found:?}", TABLES[number].0);
            let number = self.script.key();
            let value = snapshot.get(table, &key(number))?;
            let is_right = value.as_ref() == found.get(&number);
            assert!(is_right || self.device.has_crashed(), "key {number} of a snapshot");
        }
        Ok(())
    }

    /// Begins a table with its contents, goes on with it, or ends it.
    fn ingest(&mut self, process: &mut Process) -> Result<()> {
        let Some(Ingesting { mut ingest, mut records, mut next }) = process.ingesting.take() else {
            let (name, kind) = TABLES[INGESTED];
            match process.db.ingest(name, self.settings.table_options(kind)) {
                Err(Error::TableExists { .. }) if self.model.now()[INGESTED].is_some() => {}
                begun => process.ingesting = Some(Ingesting { ingest: begun?, records: Records::new(), next: 0 }),
            }
            return Ok(());
        };
        match self.script.byte() % 8 {
            0 => {}
            1..4 => {
                let change = vec![Change::Ingest(records)];
                process.tables[INGESTED] = Some(self.attempt(change, true, || ingest.finish())?);
                self.reached.ingested += 1;
            }
            more => {
                for _ in 0..more {
                    let number = next + self.script.byte() % 3;
                    if number >= KEYS {
                        break;
                    }
                    let value = self.script.value();
                    ingest.put(&key(number), &value)?;
                    records.insert(number, value);
                    next = number + 1;
                }
                process.ingesting = Some(Ingesting { ingest, records, next });
            }
        }
        Ok(())
    }

    fn drop_or_truncate(&mut self, process: &mut Process) -> Result<()> {
        let table = self.table(process);
        if table == INGESTED && self.script.byte() & 1 == 1 {
            self.attempt(vec![Change::Drop], true, || process.db.drop_table(TABLES[table].0))?;
            process.tables[INGESTED] = None;
            return Ok(());
        }
        self.attempt(vec![Change::Truncate(table)], true, || process.db.truncate_table(TABLES[table].0))
    }
}

/// The records of a table now, or at a snapshot.
fn all(table: &Table<SimDevice>, snapshot: Option<&Snapshot<SimDevice>>, backward: bool) -> Result<Records> {
    let options = if backward { ScanOptions::all().backward() } else { ScanOptions::all() };
    let scan = match (snapshot, table.kind().is_ordered()) {
        (None, true) => table.scan(options),
        (None, false) => table.iterate(),
        (Some(snapshot), true) => snapshot.scan(table, options),
        (Some(snapshot), false) => snapshot.iterate(table),
    };
    let (mut records, mut last) = (Records::new(), None);
    for record in scan? {
        let (key, value) = record?;
        let number = number_of(&key);
        let is_in_order = last.is_none_or(|last| if backward { number < last } else { number > last });
        assert!(is_in_order || !table.kind().is_ordered(), "a scan has keys in their order");
        assert!(records.insert(number, value).is_none(), "a scan has each key once");
        last = Some(number);
    }
    Ok(records)
}

fn open_table(process: &Process, number: usize) -> &Table<SimDevice> {
    process.tables[number].as_ref().expect("only tables are chosen that are there")
}

/// The bounds of a range.
fn bounds(start: u8, end: Option<u8>) -> (Vec<u8>, Vec<u8>) {
    (bound(start), end.map(bound).unwrap_or_default())
}

fn write_one(process: &Process, change: &Change, durability: Durability) -> Result<()> {
    let table = |number: &usize| open_table(process, *number);
    match change {
        Change::Put(number, at, value) => table(number).put_with(&key(*at), value, durability),
        Change::Delete(number, at) => table(number).delete_with(&key(*at), durability),
        Change::Merge(number, at, operand) => table(number).merge_with(&key(*at), operand, durability),
        Change::DeleteRange(number, start, end) => {
            let (start, end) = bounds(*start, *end);
            table(number).delete_range_with(&start, &end, durability)
        }
        other => unreachable!("{other:?} is no write of records"),
    }
    .map(drop)
}

fn write_batch(process: &Process, changes: &[Change], durability: Durability) -> Result<()> {
    let table = |number: &usize| open_table(process, *number);
    let mut batch = Batch::new();
    for change in changes {
        match change {
            Change::Put(number, at, value) => batch.put(table(number), &key(*at), value),
            Change::Delete(number, at) => batch.delete(table(number), &key(*at)),
            Change::Merge(number, at, operand) => batch.merge(table(number), &key(*at), operand),
            Change::DeleteRange(number, start, end) => {
                let (start, end) = bounds(*start, *end);
                batch.delete_range(table(number), &start, &end)
            }
            other => unreachable!("{other:?} is no write of records"),
        }?;
    }
    process.db.write_with(&batch, durability).map(drop)
}
