//! Whole sequences of operations and crashes on a simulated machine, against a model. The input is the script.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::{Batch, Db, Durability, Error, IndexKind, Options, Result, Step, Table};

const ROOT: &str = "/store";
const KEYS: u8 = 16;

/// Longer scripts say nothing new, and slow a fuzzer down.
const MOST_OPERATIONS: usize = 200;

type Contents = BTreeMap<u8, Vec<u8>>;
type Change = Vec<(u8, Option<Vec<u8>>)>;

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Closed,
    Killed,
    PowerCut,
}

/// The contents that the store must have: the state after all changes, or after a crash one after at least so many of them.
#[derive(Default)]
struct Model {
    base: Contents,
    changes: Vec<Change>,
    acknowledged: usize,
    durable: usize,
}

impl Model {
    fn contents(&self, changes: usize) -> Contents {
        let mut contents = self.base.clone();
        for (key, value) in self.changes[..changes].iter().flatten() {
            match value {
                Some(value) => contents.insert(*key, value.clone()),
                None => contents.remove(key),
            };
        }
        contents
    }
}

/// Hands out the bytes of a script; after its end there are only zeros.
struct Script<'a> {
    bytes: &'a [u8],
}

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().unwrap_or((&0, &[]));
        self.bytes = rest;
        *first
    }

    /// A value that its length and first byte make different from most others.
    fn value(&mut self) -> Vec<u8> {
        let (size, fill) = (self.byte(), self.byte());
        let length = match size {
            0..200 => usize::from(size) * 3,
            200..240 => usize::from(size) * 20,
            // Too long to be stored in one piece.
            _ => usize::from(size) * 100,
        };
        (0..length).map(|position| fill.wrapping_add((position % 251) as u8)).collect()
    }

    fn crash(&mut self) -> End {
        if self.byte() & 1 == 0 { End::Killed } else { End::PowerCut }
    }

    fn durability(&mut self) -> Durability {
        match self.byte() % 3 {
            0 => Durability::None,
            1 => Durability::Interval(Duration::from_millis(100)),
            _ => Durability::Sync,
        }
    }
}

/// A key that follows from a number; some are long.
fn key(number: u8) -> Vec<u8> {
    let mut key = vec![b'k', number];
    key.resize(if number == 3 { 5000 } else { 2 + usize::from(number) }, b'.');
    key
}

struct Run<'a> {
    script: Script<'a>,
    device: SimDevice,
    options: Options,
    model: Model,
}

/// Runs a script to its end, or until it has had enough operations.
pub(super) fn run(input: &[u8]) {
    let mut script = Script { bytes: input };
    let setting = script.byte();
    // Few hash bits make keys share tags.
    let hash_mask = if setting & 1 == 0 { u64::MAX } else { !0 << 61 };
    // Keys come to files as soon as they may.
    let hash_bytes = (setting & 4 != 0).then_some(0);
    let options = Options { segment_bytes: 64 << 10, background: false, hash_mask, hash_bytes, ..Options::default() };
    let device = SimDevice::with_block_bytes(u64::from(setting), if setting & 2 == 0 { 512 } else { 4096 });
    let mut run = Run { script, device, options, model: Model::default() };
    let mut operations = 0;
    while !run.script.bytes.is_empty() && operations < MOST_OPERATIONS {
        run.live(&mut operations);
    }
}

impl Run<'_> {
    fn open(&self) -> Result<(Db<SimDevice>, Table<SimDevice>)> {
        // Fails only on a machine that has crashed; then opening fails as well.
        let _ = self.device.create_dir(Path::new(ROOT));
        let db = Db::open_on(self.device.clone(), ROOT, self.options.clone())?;
        let table = db.table_or_create("t", IndexKind::Hash)?;
        Ok((db, table))
    }

    /// A process, its end, and the contents that the next one finds.
    fn live(&mut self, operations: &mut usize) {
        let opened = self.open();
        let outcome = match &opened {
            Ok((db, table)) => self.work(db, table, operations),
            Err(error) => Err(error.clone()),
        };
        let end = match outcome {
            Ok(end) => end,
            Err(error) if !self.device.has_crashed() => panic!("an operation failed: {error}"),
            Err(_) => self.script.crash(),
        };
        let required = match end {
            End::Closed => self.model.changes.len(),
            End::Killed => self.model.acknowledged,
            End::PowerCut => self.model.durable,
        };
        self.device = if end == End::Killed { self.device.process_death() } else { self.device.power_cut() };
        drop(opened);
        self.recover(required, end);
    }

    fn recover(&mut self, required: usize, end: End) {
        let (_db, table) = self.open().unwrap_or_else(|error| panic!("recovery, {end:?}: {error}"));
        let mut found = Contents::new();
        for number in 0..KEYS {
            let value = table.get(&key(number)).unwrap_or_else(|error| panic!("{end:?}: {error}"));
            found.extend(value.map(|value| (number, value)));
        }
        let total = self.model.changes.len();
        let matching = (required..=total).rev().find(|changes| self.model.contents(*changes) == found);
        let matching = matching.unwrap_or_else(|| panic!("{end:?}: none of the states {required} to {total}"));
        // Records that recovery has shown are durable.
        self.model = Model { base: self.model.contents(matching), ..Model::default() };
        self.device = self.device.process_death();
    }

    /// Operations up to the end of the process. An error means that the machine has crashed in one.
    fn work(&mut self, db: &Db<SimDevice>, table: &Table<SimDevice>, operations: &mut usize) -> Result<End> {
        loop {
            *operations += 1;
            if self.script.bytes.is_empty() || *operations > MOST_OPERATIONS {
                return Ok(End::Killed);
            }
            match self.script.byte() % 20 {
                0..6 => {
                    let change = vec![(self.script.byte() % KEYS, Some(self.script.value()))];
                    self.change(db, table, change)?;
                }
                6..8 => {
                    let change = vec![(self.script.byte() % KEYS, None)];
                    self.change(db, table, change)?;
                }
                8..10 => {
                    let changes = 2 + self.script.byte() % 4;
                    let one = |script: &mut Script<'_>| {
                        let number = script.byte();
                        (number % KEYS, (number < 200).then(|| script.value()))
                    };
                    let change = (0..changes).map(|_| one(&mut self.script)).collect();
                    self.change(db, table, change)?;
                }
                10 => self.get(table)?,
                11 => {
                    db.sync()?;
                    if !self.device.has_crashed() {
                        self.model.durable = self.model.changes.len();
                    }
                }
                12 => db.checkpoint()?,
                13 => db.step(Step::Write)?,
                14 => {
                    db.step(Step::Settle)?;
                    db.step(Step::Spill)?;
                }
                15 => db.step(Step::Prepare)?,
                16 => (0..self.script.byte() % 16).try_for_each(|_| db.step(Step::Reclaim))?,
                17 => self.device.crash_after(1 + u64::from(self.script.byte())),
                18 => {
                    db.close()?;
                    return Ok(if self.device.has_crashed() { self.script.crash() } else { End::Closed });
                }
                _ => return Ok(self.script.crash()),
            }
        }
    }

    fn change(&mut self, db: &Db<SimDevice>, table: &Table<SimDevice>, change: Change) -> Result<()> {
        let durability = self.script.durability();
        let mut batch = Batch::new();
        for (number, value) in &change {
            match value {
                Some(value) => batch.put(table, &key(*number), value)?,
                None => batch.delete(table, &key(*number))?,
            };
        }
        self.model.changes.push(change);
        match db.write_with(&batch, durability) {
            Err(Error::BatchTooLarge { .. }) => {
                self.model.changes.pop();
                Ok(())
            }
            Ok(_) if !self.device.has_crashed() => {
                self.model.acknowledged = self.model.changes.len();
                if durability == Durability::Sync {
                    self.model.durable = self.model.changes.len();
                }
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }

    fn get(&mut self, table: &Table<SimDevice>) -> Result<()> {
        let number = self.script.byte() % KEYS;
        let found = table.get(&key(number))?;
        let wanted = self.model.contents(self.model.changes.len()).remove(&number);
        assert!(found == wanted || self.device.has_crashed(), "key {number}");
        Ok(())
    }
}
