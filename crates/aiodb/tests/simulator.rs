//! The engine on a simulated machine: seeded operations, crashes at any step, and a model that knows what must be there
//! afterwards. A failure prints the seed; `AIODB_SIM_SEED=n` replays it alone, `AIODB_SIM_TRACE=1` prints its changes,
//! `AIODB_SIM_SEEDS=n` runs more seeds than the usual thousand.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Db, Durability, Error, IndexKind, Options, Step, Table};
use fastrand::Rng;

const SEEDS: u64 = 1_000;
const CRASHES_PER_SEED: usize = 4;
const OPERATIONS_PER_LIFE: usize = 60;
const KEYS: u64 = 24;
const ROOT: &str = "/store";

/// One acknowledged or attempted change, in the order in which they were made.
#[derive(Clone, Debug)]
struct Change {
    writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// What the store must hold: the contents after some prefix of the changes, at least the `required` first ones.
struct Model {
    base: Contents,
    changes: Vec<Change>,
    /// Changes that must survive a power cut, and those that must survive the death of the process.
    durable: usize,
    acknowledged: usize,
}

impl Model {
    fn contents(&self, changes: usize) -> Contents {
        let mut contents = self.base.clone();
        for change in &self.changes[..changes] {
            for (key, value) in &change.writes {
                match value {
                    Some(value) => contents.insert(key.clone(), value.clone()),
                    None => contents.remove(key),
                };
            }
        }
        contents
    }
}

fn options(rng: &mut Rng) -> Options {
    Options {
        segment_bytes: 64 << 10,
        background: false,
        // Now and then keys share tags.
        hash_mask: if rng.u8(..4) == 0 { !0 << 61 } else { u64::MAX },
        ..Options::default()
    }
}

struct Run {
    seed: u64,
    rng: Rng,
    device: SimDevice,
    options: Options,
    model: Model,
    crashes: usize,
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut rng = Rng::with_seed(seed);
        let device = SimDevice::with_block_bytes(rng.u64(..), if rng.bool() { 512 } else { 4096 });
        let options = options(&mut rng);
        let model = Model { base: Contents::new(), changes: Vec::new(), durable: 0, acknowledged: 0 };
        Run { seed, rng, device, options, model, crashes: 0 }
    }

    fn open(&self) -> aiodb::Result<(Db<SimDevice>, Table<SimDevice>)> {
        let created = self.device.create_dir(Path::new(ROOT));
        created.map_err(|_| Error::Closed)?;
        let db = Db::open_on(self.device.clone(), ROOT, self.options.clone())?;
        let table = db.table_or_create("t", IndexKind::Hash)?;
        Ok((db, table))
    }

    fn key(&mut self) -> Vec<u8> {
        let mut key = format!("key-{}", self.rng.u64(..KEYS)).into_bytes();
        if key.ends_with(b"7") {
            key.resize(600, b'x');
        }
        key
    }

    fn value(&mut self) -> Vec<u8> {
        let length = match self.rng.u8(..20) {
            0 => 0,
            1 => self.rng.usize(4000..6000),
            2 => self.rng.usize(16_000..40_000),
            _ => self.rng.usize(1..300),
        };
        let byte = self.rng.u8(..);
        (0..length).map(|position| byte.wrapping_add((position % 251) as u8)).collect()
    }

    fn durability(&mut self) -> Durability {
        match self.rng.u8(..3) {
            0 => Durability::Sync,
            1 => Durability::Interval(Duration::from_millis(100)),
            _ => Durability::None,
        }
    }

    /// One operation. An error means that the machine crashed.
    fn operate(&mut self, db: &Db<SimDevice>, table: &Table<SimDevice>) -> aiodb::Result<()> {
        match self.rng.u8(..24) {
            0..=9 => {
                let (key, value, durability) = (self.key(), self.value(), self.durability());
                self.change(durability, vec![(key.clone(), Some(value.clone()))], || {
                    table.put_with(&key, &value, durability)
                })
            }
            10..=12 => {
                let (key, durability) = (self.key(), self.durability());
                self.change(durability, vec![(key.clone(), None)], || table.delete_with(&key, durability))
            }
            13..=14 => {
                let durability = self.durability();
                let mut batch = Batch::new();
                let mut writes = Vec::new();
                for _ in 0..self.rng.usize(2..6) {
                    let key = self.key();
                    let value = (self.rng.u8(..4) > 0).then(|| self.value());
                    match &value {
                        Some(value) => batch.put(table, &key, value)?,
                        None => batch.delete(table, &key)?,
                    };
                    writes.push((key, value));
                }
                self.change(durability, writes, || db.write_with(&batch, durability))
            }
            15..=17 => {
                let key = self.key();
                let expected = self.model.contents(self.model.changes.len()).get(&key).cloned();
                let found = table.get(&key)?;
                let (found, expected) = (one(&key, found.as_ref()), one(&key, expected.as_ref()));
                assert_eq!(found, expected, "seed {}: a get", self.seed);
                Ok(())
            }
            18 => db.checkpoint(),
            19 => {
                db.sync()?;
                if self.device.has_crashed() {
                    return Err(Error::Closed);
                }
                self.model.durable = self.model.changes.len();
                Ok(())
            }
            20 => db.step(Step::Settle),
            21 => db.step(Step::Prepare),
            22 => db.step(Step::Write),
            _ => (0..self.rng.usize(1..20)).try_for_each(|_| db.step(Step::Reclaim)),
        }
    }

    fn change(
        &mut self,
        durability: Durability,
        writes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
        write: impl FnOnce() -> aiodb::Result<aiodb::Sequence>,
    ) -> aiodb::Result<()> {
        if std::env::var_os("AIODB_SIM_TRACE").is_some() {
            let writes: Vec<_> = writes.iter().map(|(key, value)| one(key, value.as_ref())).collect();
            println!("{durability:?} {}", writes.join(" "));
        }
        self.model.changes.push(Change { writes });
        let written = write();
        if matches!(written, Err(Error::BatchTooLarge { .. })) {
            self.model.changes.pop();
            return Ok(());
        }
        // The process may have died in the middle of the call, where a failing read was no reason to fail the write.
        if written.is_ok() && !self.device.has_crashed() {
            self.model.acknowledged = self.model.changes.len();
            if durability == Durability::Sync {
                self.model.durable = self.model.changes.len();
            }
        }
        written.map(drop)
    }

    /// A life of the process: it ends with a crash, or with a close.
    fn live(&mut self) {
        let crashes = self.rng.u8(..8) > 0;
        if crashes {
            let steps = if self.rng.bool() { self.rng.u64(1..40) } else { self.rng.u64(1..600) };
            self.device.crash_after(steps);
        }
        let opened = self.open();
        let outcome = match &opened {
            Ok((db, table)) => self.work(db, table),
            Err(error) => Err(error.clone()),
        };
        match outcome {
            Err(error) if !self.device.has_crashed() => panic!("seed {}: {error}", self.seed),
            _ => self.crash(),
        }
        // Only now: a handle that is dropped in a living process closes the store.
        drop(opened);
    }

    fn work(&mut self, db: &Db<SimDevice>, table: &Table<SimDevice>) -> aiodb::Result<()> {
        if !self.device.has_crashed() {
            self.check(table, "after opening");
        }
        for _ in 0..OPERATIONS_PER_LIFE {
            self.operate(db, table)?;
        }
        if self.rng.bool() { db.close() } else { Ok(()) }
    }

    fn crash(&mut self) {
        self.crashes += 1;
        let power_cut = self.rng.bool();
        self.device = if power_cut { self.device.power_cut() } else { self.device.process_death() };
        let required = if power_cut { self.model.durable } else { self.model.acknowledged };
        // Opening may crash as well; what is required stays the same.
        if self.rng.u8(..4) == 0 {
            let steps = self.rng.u64(1..60);
            self.device.crash_after(steps);
            let opened = self.open();
            // Recovery acknowledges nothing: whatever kind of crash follows, the requirement is that of the first.
            self.device = if power_cut { self.device.power_cut() } else { self.device.process_death() };
            drop(opened);
        }
        let (_db, table) = self.open().unwrap_or_else(|error| {
            panic!("seed {}: recovery after {}: {error}", self.seed, if power_cut { "a power cut" } else { "a kill" })
        });
        let found = self.found(&table);
        let total = self.model.changes.len();
        let matching = (required..=total).rev().find(|&changes| self.model.contents(changes) == found);
        let Some(matching) = matching else {
            panic!(
                "seed {}: after {} the store holds none of the states {required}..={total}; beside the last: {}",
                self.seed,
                if power_cut { "a power cut" } else { "a kill" },
                differences(&found, &self.model.contents(total)),
            );
        };
        // What recovery has shown stays: it flushed it.
        self.model = Model { base: self.model.contents(matching), changes: Vec::new(), durable: 0, acknowledged: 0 };
        // The checked process ends without a close.
        self.device = self.device.process_death();
    }

    fn found(&self, table: &Table<SimDevice>) -> Contents {
        let mut found = Contents::new();
        for number in 0..KEYS {
            let mut key = format!("key-{number}").into_bytes();
            if key.ends_with(b"7") {
                key.resize(600, b'x');
            }
            let value = table.get(&key).unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
            found.extend(value.map(|value| (key, value)));
        }
        found
    }

    fn check(&self, table: &Table<SimDevice>, when: &str) {
        if let Ok(Some(_)) | Ok(None) = table.get(b"probe") {
            let expected = self.model.contents(self.model.changes.len());
            for number in 0..4 {
                let key = format!("key-{number}").into_bytes();
                if let Ok(value) = table.get(&key) {
                    let (found, expected) = (one(&key, value.as_ref()), one(&key, expected.get(&key)));
                    assert_eq!(found, expected, "seed {}: {when}", self.seed);
                }
            }
        }
    }
}

fn differences(found: &Contents, wanted: &Contents) -> String {
    let keys: std::collections::BTreeSet<_> = found.keys().chain(wanted.keys()).collect();
    let different = keys.into_iter().filter(|key| found.get(*key) != wanted.get(*key));
    let pair = |key: &Vec<u8>| format!("found {}, wanted {}", one(key, found.get(key)), one(key, wanted.get(key)));
    different.map(pair).collect::<Vec<_>>().join("; ")
}

/// A key and value in a few characters.
fn one(key: &[u8], value: Option<&Vec<u8>>) -> String {
    let key = String::from_utf8_lossy(&key[..key.len().min(8)]);
    value.map_or(format!("{key} absent"), |value| format!("{key}={}B:{:?}", value.len(), value.first()))
}

#[test]
fn what_was_acknowledged_survives_crashes_at_any_step() {
    let number = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("the variable is a number"));
    let seeds = match number("AIODB_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("AIODB_SIM_SEEDS").unwrap_or(SEEDS),
    };
    let mut crashes = 0;
    for seed in seeds {
        let mut run = Run::new(seed);
        for _ in 0..CRASHES_PER_SEED {
            run.live();
        }
        crashes += run.crashes;
    }
    println!("{crashes} crashes survived");
}
