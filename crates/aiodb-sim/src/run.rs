//! One run: the engine on a simulated machine does what a script says, and the model says what must come of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Db, Durability, Error, MergeOperator, MergeOperators, Options, Sequence, Step, Table, TableOptions};

use crate::backups::Point;
use crate::client::Client;
use crate::clock::StoreTime;
use crate::index_files::IndexFiles;
use crate::model::{Cell, Contents, Effect, Held, Model, Moments, fingerprint};
use crate::operands::{self, Operands};
use crate::report::Report;
use crate::script::{Action, Crash, Files, IndexState, Script};
use crate::snapshots::Kept;
use crate::streams::{Reading, Writing};
use crate::waiting::Waiting;
use crate::workload::key_bytes;

pub(crate) const ROOT: &str = "/store";

/// The directories of a store, as many as it has.
const DIRECTORIES: [&str; 3] = [ROOT, "/second", "/third"];

/// Calls of the clock-driven work that are further apart than this are late: intervals are then not promised.
const MAX_TICK_MS: u64 = 40;

/// Time passes in pieces of this length.
const WAIT_PIECE_MS: u64 = 10;

/// So many operations are tried on a store that refuses writes, before it is opened again.
const OPERATIONS_AFTER_FAILURE: usize = 12;

/// What a run found wrong.
pub type Violation = String;

/// Runs a script. Returns a hash of all that could be seen of the run: the same script gives the same.
pub fn run(script: &Script, report: &mut Report) -> Result<u64, Violation> {
    let mut run = Run::new(script);
    std::mem::swap(report, &mut run.report);
    let outcome = catch_unwind(AssertUnwindSafe(|| run.execute()));
    run.report.add_machine(&run.device.counters());
    run.report.runs += 1;
    std::mem::swap(report, &mut run.report);
    match outcome {
        Ok(outcome) => outcome.map(|()| run.trace).map_err(|what| format!("action {}: {what}", run.at)),
        Err(panic) => {
            // Its locks may be poisoned: closing it would panic again.
            std::mem::forget(run.life.take());
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()));
            Err(format!("action {}: panic: {}", run.at, text.unwrap_or_default()))
        }
    }
}

/// A process: an open store and what its clients hold.
pub(crate) struct Life {
    pub(crate) clients: Vec<Client>,
    /// Snapshots that are held, and what they must show.
    pub(crate) snapshots: Vec<Kept>,
    /// Values that are being written and read piece by piece.
    pub(crate) writing: Vec<Writing>,
    /// See `writing`.
    pub(crate) reading: Vec<Reading>,
    /// Writes of the second client.
    pub(crate) waiting: Vec<Waiting>,
    pub(crate) db: Db<SimDevice>,
}

/// What may go wrong by now, because the script made it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Allowed {
    /// Calls failed with an I/O error.
    pub(crate) errors: bool,
    /// The disk had an end.
    pub(crate) full: bool,
    /// The medium was damaged.
    pub(crate) damage: bool,
}

pub(crate) struct Run<'a> {
    pub(crate) script: &'a Script,
    pub(crate) device: SimDevice,
    pub(crate) index: Option<IndexFiles>,
    pub(crate) model: Model,
    pub(crate) life: Option<Life>,
    pub(crate) report: Report,
    pub(crate) allowed: Allowed,
    /// The crash that is armed.
    pub(crate) armed: Option<Crash>,
    /// Restore points that were made.
    pub(crate) points: Vec<Point>,
    /// A sequence, and the changes up to it.
    pub(crate) mark: Option<(Sequence, usize)>,
    /// The store has refused a write for good; operations tried since.
    pub(crate) failed: Option<usize>,
    /// The contents before this action, if a write that waited has come to be seen in it.
    pub(crate) before: Option<Contents>,
    /// Writes and flushes that had failed by the last recovery.
    pub(crate) failed_before: u64,
    /// Changes that no damage of the medium may take.
    pub(crate) floor: usize,
    /// Damage was found and reported: nothing more can be said.
    pub(crate) ended: bool,
    pub(crate) operations_since_crash: usize,
    /// What the store's time may be.
    pub(crate) time: StoreTime,
    /// Tables that had operands, expiry or range deletes: their keys are only estimated.
    pub(crate) estimated: Vec<bool>,
    last_tick: u64,
    pub(crate) on_time: bool,
    /// The action being performed.
    at: usize,
    trace: u64,
}

impl<'a> Run<'a> {
    fn new(script: &'a Script) -> Run<'a> {
        let device = SimDevice::with_block_bytes(script.seed, script.setup.block_bytes);
        device.set_index_needs(script.setup.index_needs);
        let index = script.uses_lmdb().then(|| IndexFiles::new(&device));
        Run {
            script,
            device,
            index,
            model: Model::new(script.setup.tables.len(), script.setup.keys),
            life: None,
            report: Report::default(),
            allowed: Allowed::default(),
            armed: None,
            points: Vec::new(),
            mark: None,
            failed: None,
            before: None,
            failed_before: 0,
            floor: 0,
            ended: false,
            operations_since_crash: 0,
            time: StoreTime::new(),
            estimated: vec![false; script.setup.tables.len()],
            last_tick: 0,
            on_time: true,
            at: 0,
            trace: 0,
        }
    }

    fn execute(&mut self) -> Result<(), Violation> {
        self.recover(0, &between_calls(false))?;
        let script = self.script;
        for (at, action) in script.actions.iter().enumerate() {
            self.at = at;
            self.perform(action)?;
            if !self.device.has_crashed() && self.life.is_some() {
                self.tick()?;
            }
            self.notice_published();
            self.see(self.device.counters().steps);
            if self.device.has_crashed() {
                let crash = self.armed.take().expect("only an armed crash happens");
                self.crash(&crash)?;
            } else if self.failed.is_some_and(|operations| operations >= OPERATIONS_AFTER_FAILURE) {
                self.crash(&between_calls(at % 2 == 0))?;
            }
            if self.ended {
                return Ok(());
            }
        }
        self.crash(&Crash { verify: true, ..between_calls(false) })
    }

    /// Takes something into the hash of the run.
    pub(crate) fn see(&mut self, what: u64) {
        self.trace = (self.trace.rotate_left(5) ^ what).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    pub(crate) fn options(&self, rebuild: bool) -> Options {
        Options {
            segment_bytes: self.script.setup.segment_bytes,
            checkpoint_bytes: self.script.setup.checkpoint_bytes,
            hash_mask: self.script.setup.hash_mask,
            cache_bytes: self.script.setup.cache_bytes,
            cache_writes: self.script.setup.cache_writes,
            merge_operators: MergeOperators::default().with(Operands),
            rebuild_index: rebuild,
            background: false,
            ..Options::default()
        }
    }

    pub(crate) fn open(&self, rebuild: bool) -> aiodb::Result<Db<SimDevice>> {
        let directories = &DIRECTORIES[..self.script.setup.directories];
        for directory in directories {
            let created = self.device.create_dir(Path::new(directory));
            created.map_err(|e| Error::Io {
                action: "create",
                path: directory.into(),
                kind: e.kind(),
                reason: e.to_string(),
            })?;
        }
        Db::open_several_on(self.device.clone(), directories, self.options(rebuild))
    }

    fn perform(&mut self, action: &Action) -> Result<(), Violation> {
        self.before = None;
        self.operations_since_crash += 1;
        self.report.operations += 1;
        if let Some(operations) = &mut self.failed {
            *operations += 1;
        }
        match action {
            Action::Put(table, key, value, durability) => {
                let bytes = value.bytes();
                let effects = vec![Effect::Set(*table, *key, Held::put(bytes.as_slice().into(), None))];
                let key = key_bytes(*key);
                self.write(effects, *durability, |run| run.table(*table)?.put_with(&key, &bytes, *durability).map(drop))
            }
            Action::PutFor(table, key, value, durability, ms) => self.put_for(*table, *key, *value, *durability, *ms),
            Action::Merge(table, key, operand, durability) => {
                self.estimated[*table] = true;
                let bytes = operands::operand(*operand);
                let effects = vec![Effect::Merge(*table, *key, bytes.as_slice().into())];
                let key = key_bytes(*key);
                let merge = |run: &mut Self| run.table(*table)?.merge_with(&key, &bytes, *durability).map(drop);
                self.write(effects, *durability, merge)
            }
            Action::DeleteRange(table, durability, first, second) => {
                self.delete_range(*table, *durability, *first, *second)
            }
            Action::Delete(table, key, durability) => {
                let effects = vec![Effect::Set(*table, *key, Held::default())];
                let key = key_bytes(*key);
                self.write(effects, *durability, |run| run.table(*table)?.delete_with(&key, *durability).map(drop))
            }
            Action::Batch(writes, durability) => self.write_batch(&[], writes, *durability),
            Action::BatchIf(requirements, writes, durability) => self.write_batch(requirements, writes, *durability),
            Action::Append(requirements, writes) => self.append(requirements, writes),
            Action::Await(number) => self.await_write(*number),
            Action::SetIf(table, key, require, new, durability) => {
                self.set_if((*table, *key), *require, *new, *durability)
            }
            Action::PutStream(table, key, value, durability) => self.put_stream(*table, *key, *value, *durability),
            Action::BeginWriting(table, key, value) => self.begin_writing(*table, *key, *value),
            Action::WriteOn(number, length) => self.write_on(*number, *length),
            Action::FinishWriting(number, durability) => self.finish_writing(*number, *durability),
            Action::BeginReading(table, key) => self.begin_reading(*table, *key),
            Action::ReadOn(number, length) => self.read_on(*number, *length),
            Action::GetRange(table, key, offset, length) => self.get_range(*table, *key, *offset, *length),
            Action::ScanPart(table, part) => self.scan_part(*table, *part),
            Action::Mark => {
                self.mark = Some((self.db().sequence(), self.model.acknowledged()));
                Ok(())
            }
            Action::WaitDurable => self.wait_durable(),
            Action::BackUp => self.back_up(),
            Action::Restore(number) => self.restore(*number),
            Action::Create(table) if self.model.exists(*table) => {
                match self.db().create_table_with(&table_name(*table), self.table_options(*table)) {
                    Err(Error::TableExists { .. }) => Ok(()),
                    outcome => self.unexpected("creating a table that exists", outcome.map(drop)),
                }
            }
            Action::Create(table) => {
                let options = self.table_options(*table);
                let create = |run: &mut Self| run.db().create_table_with(&table_name(*table), options).map(drop);
                self.write(vec![Effect::Create(*table)], Durability::Sync, create)
            }
            Action::Drop(table) => {
                let drop = |run: &mut Self| run.db().drop_table(&table_name(*table));
                self.write(vec![Effect::Drop(*table)], Durability::Sync, drop)
            }
            Action::Truncate(table) => {
                let truncate = |run: &mut Self| run.db().truncate_table(&table_name(*table));
                self.write(vec![Effect::Truncate(*table)], Durability::Sync, truncate)
            }
            Action::Get(table, key) => {
                let from = self.look_at_clock();
                let found = self.table(*table).and_then(|table| table.get(&key_bytes(*key)));
                let accepted = self.accepted(*table, *key, from);
                self.check_answer(found.map(|value| cell(value.as_deref())), &accepted, "a get")
            }
            Action::GetMany(table, keys) => self.get_many(*table, keys),
            Action::Scan(table, backward) => self.scan(*table, *backward),
            Action::Snapshot => self.take_snapshot(),
            Action::Look(number, table, key) => self.look(*number, *table, *key),
            Action::Release(number) => {
                self.release(*number);
                Ok(())
            }
            Action::Clock(offset_ms) => self.set_clock(*offset_ms),
            Action::Sleep(ms) => self.sleep(*ms),
            Action::Submit(client, table, key) => self.submit(*client, *table, *key),
            Action::Poll(client) => self.poll(*client),
            Action::Sync => {
                let outcome = self.db().sync();
                self.done("a sync", outcome, Model::everything_is_durable)
            }
            Action::Checkpoint => {
                let outcome = self.db().checkpoint();
                self.checkpointed("a checkpoint", outcome)
            }
            Action::Verify => self.verify(),
            Action::Stats => self.check_stats(),
            Action::Step(step) => self.step(*step),
            Action::Steps(step, times) => (0..*times).try_for_each(|_| match self.device.has_crashed() {
                true => Ok(()),
                false => self.step(*step),
            }),
            Action::Wait(ms) => self.wait(*ms),
            Action::Reopen => self.reopen(),
            Action::CrashIn(steps, crash) => {
                self.device.crash_after(*steps);
                self.armed = Some(crash.clone());
                Ok(())
            }
            Action::CrashInside(phase, skip, steps, crash) => {
                self.device.crash_inside(*phase, *skip, *steps);
                self.armed = Some(crash.clone());
                Ok(())
            }
            Action::CrashNow(crash) => self.crash(crash),
            Action::Fault(call, effect, skip, times, files) => {
                use aiodb::io::sim::Effect::{Delay, Fail, Lose, Misdirect};
                match effect {
                    Fail => self.allowed.errors = true,
                    Lose | Misdirect(_) => self.medium_fault(),
                    Delay(_) => {}
                }
                let files = *files;
                self.device.disturb(*call, *effect, *skip, *times, move |path| concerns(files, path));
                Ok(())
            }
            Action::Rot(file, offset, mask) => self.rot(*file, *offset, *mask),
            Action::RotValue(table, key, byte, mask) => self.rot_value(*table, *key, *byte, *mask),
            Action::Capacity(segments) => {
                self.allowed.full |= segments.is_some();
                let more = segments.map(|segments| segments * self.script.setup.segment_bytes);
                self.device.set_capacity(more.map(|more| self.device.used_bytes() + more));
                Ok(())
            }
        }
    }

    pub(crate) fn db(&self) -> &Db<SimDevice> {
        &self.life.as_ref().expect("the store is open").db
    }

    pub(crate) fn life(&mut self) -> &mut Life {
        self.life.as_mut().expect("the store is open")
    }

    pub(crate) fn table(&self, table: usize) -> aiodb::Result<Table<SimDevice>> {
        self.db().table(&table_name(table))
    }

    fn table_options(&self, table: usize) -> TableOptions {
        let setup = &self.script.setup;
        TableOptions {
            kind: setup.tables[table],
            compression: setup.compression[table],
            merge: Some(Operands.name().into()),
        }
    }

    /// What a key may be found to hold by a look that began at a moment; nothing if its table does not exist.
    pub(crate) fn accepted(&mut self, table: usize, key: usize, from: Moments) -> Vec<Cell> {
        let held = self.possible(table, key);
        self.cells(&held, from)
    }

    /// All that a key may hold for the call that has just returned; nothing if its table does not exist.
    pub(crate) fn possible(&mut self, table: usize, key: usize) -> Vec<Held> {
        self.notice_published();
        let before = self.before.as_ref().and_then(|before| before[table].as_ref()).map(|held| &held[key]);
        self.model.held(table, key).into_iter().chain(before).cloned().collect()
    }

    /// What is to be found of any of these.
    pub(crate) fn cells(&mut self, held: &[Held], from: Moments) -> Vec<Cell> {
        let moments = self.moments(from);
        held.iter().flat_map(|held| held.cells(moments)).collect()
    }

    /// What is learned when a call that changes no contents has succeeded.
    fn done(
        &mut self,
        what: &str,
        outcome: aiodb::Result<()>,
        learned: impl FnOnce(&mut Model),
    ) -> Result<(), Violation> {
        self.notice_published();
        if outcome.is_ok() && !self.device.has_crashed() {
            learned(&mut self.model);
            return Ok(());
        }
        self.unexpected(what, outcome)
    }

    /// Whether an outcome can be explained by what the script has made go wrong.
    pub(crate) fn unexpected(&mut self, what: &str, outcome: aiodb::Result<()>) -> Result<(), Violation> {
        if self.device.has_crashed() {
            return Ok(());
        }
        match outcome {
            Ok(()) => Err(format!("{what} succeeded")),
            Err(Error::Io { .. }) if self.allowed.errors => {
                if self.failed.is_none() {
                    self.find_out(Vec::new());
                }
                Ok(())
            }
            Err(Error::Failed { .. }) if self.allowed.errors => {
                self.failed = self.failed.or(Some(0));
                Ok(())
            }
            Err(Error::DiskFull { .. }) if self.allowed.full => Ok(()),
            // What a failed flush has lost is reported, like all damage.
            Err(Error::Corruption { .. }) if self.allowed.damage || self.failed.is_some() => Ok(()),
            Err(error) => Err(format!("{what}: {error}")),
        }
    }

    pub(crate) fn step(&mut self, step: Step) -> Result<(), Violation> {
        let outcome = self.db().step(step);
        if step == Step::Checkpoint {
            self.checkpointed("a step", outcome)
        } else {
            self.done("a step", outcome, |_| {})
        }
    }

    /// What is learned of a checkpoint.
    fn checkpointed(&mut self, what: &str, outcome: aiodb::Result<()>) -> Result<(), Violation> {
        if outcome.is_ok() && !self.device.has_crashed() {
            self.time_is_written();
        }
        self.done(what, outcome, Model::checkpoint)
    }

    /// Waits until what was written up to the mark is durable.
    fn wait_durable(&mut self) -> Result<(), Violation> {
        let Some((sequence, changes)) = self.mark else { return Ok(()) };
        let outcome = self.db().wait_durable(sequence);
        self.done("waiting for a sequence", outcome, |model| model.durable_up_to(changes))
    }

    fn get_many(&mut self, table: usize, keys: &[usize]) -> Result<(), Violation> {
        let bytes: Vec<_> = keys.iter().map(|key| key_bytes(*key)).collect();
        let from = self.look_at_clock();
        match self.table(table).and_then(|table| table.get_many(&bytes)) {
            Ok(values) => {
                for (key, value) in keys.iter().zip(values) {
                    let accepted = self.accepted(table, *key, from);
                    self.check_answer(Ok(cell(value.as_deref())), &accepted, "one of many gets")?;
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

    /// An answer must be one of those accepted; none are when the table does not exist.
    pub(crate) fn check_answer(
        &mut self,
        found: aiodb::Result<Cell>,
        accepted: &[Cell],
        what: &str,
    ) -> Result<(), Violation> {
        if self.device.has_crashed() {
            return Ok(());
        }
        self.report.answers += 1;
        match found {
            Ok(found) => {
                self.see(hash_of(found));
                if accepted.contains(&found) {
                    return Ok(());
                }
                Err(format!("{what} found {found:x?} instead of {accepted:x?}"))
            }
            Err(Error::NoSuchTable { .. }) if accepted.is_empty() => Ok(()),
            Err(Error::Io { .. }) if self.allowed.errors => {
                // It may have written the batch that a write waited for, or tried to.
                if self.failed.is_none() && !self.life().waiting.is_empty() {
                    self.find_out(Vec::new());
                }
                Ok(())
            }
            // What a failed flush has lost is reported, like all damage.
            Err(Error::Corruption { .. }) if self.allowed.damage || self.failed.is_some() => Ok(()),
            Err(error) => Err(format!("{what}: {error}")),
        }
    }

    fn wait(&mut self, ms: u64) -> Result<(), Violation> {
        let mut left = ms;
        while left > 0 && !self.device.has_crashed() {
            let piece = left.min(WAIT_PIECE_MS);
            self.device.advance_clock(piece);
            left -= piece;
            self.tick()?;
        }
        Ok(())
    }

    /// What the clock makes due is done.
    pub(crate) fn tick(&mut self) -> Result<(), Violation> {
        let now = self.device.clock_ms();
        if now == self.last_tick {
            return Ok(());
        }
        self.on_time &= self.is_on_time();
        self.last_tick = now;
        self.look_at_clock();
        let before = self.read_clocks();
        let outcome = self.db().step(Step::WriteBehind);
        if !self.device.has_crashed() {
            self.time.looked(before);
        }
        self.done("writing behind", outcome, |_| {})
    }

    /// Whether the clock-driven work was called as often as an interval needs.
    pub(crate) fn is_on_time(&self) -> bool {
        self.device.clock_ms() - self.last_tick <= MAX_TICK_MS
    }

    /// A new process: nothing is late yet.
    pub(crate) fn restart_clock(&mut self) {
        self.last_tick = self.device.clock_ms();
        self.on_time = true;
    }
}

pub(crate) fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "seg")
}

fn concerns(files: Files, path: &Path) -> bool {
    match files {
        Files::Log => is_segment(path),
        Files::Other => !is_segment(path),
        Files::Any => true,
    }
}

/// A crash without anything else.
pub(crate) fn between_calls(power_cut: bool) -> Crash {
    Crash { power_cut, index: IndexState::Newest, again: Vec::new(), error: None, verify: false, rebuild: false }
}

pub(crate) fn table_name(table: usize) -> String {
    format!("table-{table}")
}

/// What a value, or its absence, is to the model.
pub(crate) fn cell(value: Option<&[u8]>) -> Cell {
    value.map_or(Cell::Absent, |bytes| Cell::Value(fingerprint(bytes)))
}

pub(crate) fn hash_of(cell: Cell) -> u64 {
    match cell {
        Cell::Absent => 1,
        Cell::Damaged => 2,
        Cell::Value(fingerprint) => fingerprint,
    }
}
