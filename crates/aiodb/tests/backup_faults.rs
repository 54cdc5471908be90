//! Backups and restores on simulated machines that crash, lose power, refuse and damage: what was complete stays so.

use std::collections::BTreeMap;
use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::{Call, SimDevice};
use aiodb::{BackupOptions, Db, Durability, Error, IndexKind, Options, Repository, Step, Table};
use fastrand::Rng;

const SEEDS: u64 = 100;
const KEYS: u64 = 24;
const STORE: &str = "/store";
const REPOSITORY: &str = "/backups";

type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options { segment_bytes: 64 << 10, background: false, memtable_keys: 12, ..Options::default() }
}

/// A store on a machine of its own, and what it holds.
struct Source {
    device: SimDevice,
    db: Db<SimDevice>,
    table: Table<SimDevice>,
    rng: Rng,
    contents: Contents,
}

impl Source {
    fn new(seed: u64) -> Source {
        // LMDB's file does not lie on a simulated machine.
        let kind = if seed.is_multiple_of(2) { IndexKind::Hash } else { IndexKind::Lsm };
        let device = SimDevice::new(seed);
        device.create_dir(Path::new(STORE)).expect("a directory can be made");
        let db = Db::open_on(device.clone(), STORE, options()).expect("a store can be made");
        let table = db.create_table("t", kind).expect("a table can be made");
        Source { device, db, table, rng: Rng::with_seed(seed), contents: Contents::new() }
    }

    /// Changes something, or does some of the work behind the scenes.
    fn work(&mut self, operations: usize) {
        for _ in 0..operations {
            let key = format!("key {}", self.rng.u64(..KEYS)).into_bytes();
            match self.rng.u8(..12) {
                0..=5 => {
                    let length = if self.rng.u8(..8) == 0 { self.rng.usize(..30_000) } else { self.rng.usize(..3000) };
                    let value = vec![self.rng.u8(..); length];
                    self.table.put_with(&key, &value, Durability::None).expect("a put works");
                    self.contents.insert(key, value);
                }
                6..=7 => {
                    self.table.delete_with(&key, Durability::None).expect("a delete works");
                    self.contents.remove(&key);
                }
                8 if self.rng.u8(..6) == 0 => {
                    self.db.truncate_table("t").expect("a table can be emptied");
                    self.contents.clear();
                }
                _ => {
                    let steps = [
                        Step::Write,
                        Step::Flush,
                        Step::Settle,
                        Step::Prepare,
                        Step::Reclaim,
                        Step::Checkpoint,
                        Step::CommitAhead,
                        Step::Merge,
                        Step::Merge,
                    ];
                    self.db.step(steps[self.rng.usize(..steps.len())]).expect("a step works");
                }
            }
        }
    }
}

/// Restores onto a fresh machine and returns everything that is there.
fn contents_of(device: &SimDevice, point: u64, seed: u64) -> Contents {
    let repository = Repository::open_on(device.clone(), REPOSITORY).expect("the repository can be opened");
    let machine = SimDevice::new(seed);
    machine.create_dir(Path::new(STORE)).expect("a directory can be made");
    let restored = repository.restore_on(Some(point), machine.clone(), STORE, &mut |_, _| {});
    restored.unwrap_or_else(|error| panic!("seed {seed}: point {point} can be restored: {error}"));
    // What was restored must survive the next power cut.
    contents(&machine.power_cut(), seed)
}

fn contents(device: &SimDevice, seed: u64) -> Contents {
    let db = Db::open_on(device.clone(), STORE, Options { create: false, ..options() });
    let db = db.unwrap_or_else(|error| panic!("seed {seed}: a restored store can be opened: {error}"));
    let report = db.verify(&mut |_, _| {}).expect("it can be checked");
    assert!(report.damage.is_empty(), "seed {seed}: {:?}", report.damage);
    let table = db.table("t").expect("the table is there");
    let keys = (0..KEYS).map(|number| format!("key {number}").into_bytes());
    keys.filter_map(|key| table.get(&key).expect("a get works").map(|value| (key, value))).collect()
}

fn repository_machine(seed: u64) -> SimDevice {
    let device = SimDevice::new(seed ^ 0xB0CC);
    device.create_dir(Path::new(REPOSITORY)).expect("a directory can be made");
    device.sync_dir(Path::new("/")).expect("a directory can be flushed");
    device
}

/// The destination's machine dies in the middle of backups, whose source goes on working during each of them.
#[test]
fn a_destination_that_dies_keeps_its_restore_points() {
    let mut died = 0;
    for seed in 0..SEEDS {
        let mut source = Source::new(seed);
        let mut device = repository_machine(seed);
        let mut points: BTreeMap<u64, (Contents, Vec<Contents>)> = BTreeMap::new();
        for round in 0..8 {
            source.work(60);
            let mut seen = vec![source.contents.clone()];
            if round % 2 == 1 {
                device.crash_after(source.rng.u64(1..120));
            }
            let (db, before) = (source.db.clone(), source.contents.clone());
            let outcome = db.backup_on(device.clone(), REPOSITORY, &BackupOptions::default(), &mut |_, _| {
                source.work(1);
                seen.push(source.contents.clone());
            });
            match outcome {
                Ok(report) => {
                    points.insert(report.point.number, (before, seen));
                }
                Err(error) => {
                    died += 1;
                    assert!(device.has_crashed(), "seed {seed}: only a crash stops a backup, not: {error}");
                }
            }
            device = if source.rng.bool() { device.power_cut() } else { device.process_death() };
            let repository = Repository::open_on(device.clone(), REPOSITORY);
            let there: Vec<u64> = match repository {
                Ok(repository) => {
                    assert!(repository.verify(&mut |_, _| {}).expect("it can be checked").damage.is_empty());
                    repository.points().iter().map(|point| point.number).collect()
                }
                // It died before the repository was made.
                Err(Error::NotARepository { .. }) => Vec::new(),
                Err(error) => panic!("seed {seed}: the repository can be opened: {error}"),
            };
            for number in points.keys() {
                assert!(there.contains(number), "seed {seed}: point {number} is gone, there are {there:?}");
            }
        }
        for (number, (before, seen)) in &points {
            let found = contents_of(&device, *number, seed);
            assert!(seen.contains(&found), "seed {seed}: point {number} is no state during its backup");
            assert!(seen.len() > 1 || found == *before, "seed {seed}: point {number}");
        }
    }
    println!("{died} backups died");
    assert!(died > SEEDS, "enough backups died: {died}");
}

/// A restore that dies leaves no store, can be told from one, and can be repeated.
#[test]
fn a_restore_that_dies_can_be_repeated() {
    let mut died = 0;
    for seed in 0..SEEDS {
        let mut source = Source::new(seed);
        let device = repository_machine(seed);
        source.work(200);
        source.db.backup_on(device.clone(), REPOSITORY, &BackupOptions::default(), &mut |_, _| {}).expect("a backup");
        let repository = Repository::open_on(device, REPOSITORY).expect("the repository can be opened");
        let mut machine = SimDevice::new(seed);
        machine.create_dir(Path::new(STORE)).expect("a directory can be made");
        machine.sync_dir(Path::new("/")).expect("a directory can be flushed");
        let finished = loop {
            machine.crash_after(source.rng.u64(1..150));
            let outcome = repository.restore_on(None, machine.clone(), STORE, &mut |_, _| {});
            if outcome.is_ok() {
                break machine.power_cut();
            }
            died += 1;
            machine = if source.rng.bool() { machine.power_cut() } else { machine.process_death() };
            let names = machine.list(Path::new(STORE)).expect("a directory can be listed");
            if names.iter().any(|name| name == "STORE") {
                // It died after the store had come into being.
                break machine;
            }
            if names.iter().any(|name| name == "RESTORING") {
                let opened = Db::open_on(machine.clone(), STORE, options());
                assert!(matches!(opened, Err(Error::NotAStore { .. })), "seed {seed}: half a store is no store");
            }
        };
        assert_eq!(contents(&finished, seed), source.contents, "seed {seed}");
    }
    println!("{died} restores died");
    assert!(died >= SEEDS / 2, "enough restores died: {died}");
}

/// Wherever a restore dies as it begins: nothing that it has left by then keeps the next one from its work.
#[test]
fn a_restore_that_dies_as_it_begins_can_be_repeated() {
    let mut source = Source::new(1);
    let device = repository_machine(1);
    source.work(100);
    source.db.backup_on(device.clone(), REPOSITORY, &BackupOptions::default(), &mut |_, _| {}).expect("a backup");
    let repository = Repository::open_on(device, REPOSITORY).expect("the repository can be opened");
    for (steps, seed) in (1..40).flat_map(|steps| (0..4).map(move |seed| (steps, seed))) {
        let machine = SimDevice::new(seed);
        machine.create_dir(Path::new(STORE)).expect("a directory can be made");
        machine.crash_after(steps);
        let outcome = repository.restore_on(None, machine.clone(), STORE, &mut |_, _| {});
        assert!(outcome.is_err() && machine.has_crashed(), "a restore has more steps than {steps}");
        let machine = machine.process_death();
        let again = repository.restore_on(None, machine.clone(), STORE, &mut |_, _| {});
        again.unwrap_or_else(|error| panic!("after {steps} steps, seed {seed}: {error}"));
        assert_eq!(contents(&machine, seed), source.contents, "after {steps} steps, seed {seed}");
    }
}

/// The repository's device does not give a file: that is told of, with the restore points that need it, and all others are checked.
#[test]
fn a_check_of_a_repository_goes_on_behind_what_cannot_be_read() {
    let mut source = Source::new(1);
    let device = repository_machine(1);
    for _ in 0..3 {
        source.work(150);
        source.db.backup_on(device.clone(), REPOSITORY, &BackupOptions::default(), &mut |_, _| {}).expect("a backup");
    }
    let repository = Repository::open_on(device.clone(), REPOSITORY).expect("the repository can be opened");
    let whole = repository.verify(&mut |_, _| {}).expect("it can be checked");
    assert!(whole.damage.is_empty() && whole.files > 3, "{whole:?}");
    for path in device.file_names().iter().filter(|path| path.starts_with("/backups/segments")) {
        let bytes = device.file_bytes(path).expect("the file is there").len() as u64;
        device.make_unreadable(path, bytes - 1..bytes);
        let report = repository.verify(&mut |_, _| {}).expect("what it finds is no failure");
        assert_eq!(report.files, whole.files);
        let [Error::Io { action: "read", path: said, reason, .. }] = &report.damage[..] else { panic!("{report:?}") };
        assert!(said == path && reason.contains("from byte"), "{report:?}");
        assert!(!report.damaged_points.is_empty(), "{report:?}");
        for point in repository.points() {
            let machine = SimDevice::new(1);
            machine.create_dir(Path::new(STORE)).expect("a directory can be made");
            let restored = repository.restore_on(Some(point.number), machine, STORE, &mut |_, _| {});
            assert_eq!(restored.is_err(), report.damaged_points.contains(&point.number), "{report:?}, {restored:?}");
        }
        device.clear_faults();
    }
}

/// Reads of the source fail: the backup fails, the store and the earlier restore points do not.
#[test]
fn a_source_that_cannot_be_read_fails_the_backup_alone() {
    for seed in 0..SEEDS {
        let mut source = Source::new(seed);
        let device = repository_machine(seed);
        source.work(150);
        let back_up = |source: &Source| {
            source.db.backup_on(device.clone(), REPOSITORY, &BackupOptions::default(), &mut |_, _| {})
        };
        back_up(&source).expect("a backup can be made");
        let first = source.contents.clone();
        source.work(150);
        source.db.sync().expect("everything can be flushed");
        let machine = source.device.clone();
        let part = ["/store/log", "/store/index"][seed as usize / 2 % 2];
        machine.fail(Call::Read, seed % 3, 1, move |path| path.starts_with(part));
        let outcome = back_up(&source);
        machine.clear_faults();
        if let Err(error) = outcome {
            assert!(matches!(error, Error::Io { action: "read", .. }), "seed {seed}: {error}");
        }
        assert_eq!(contents_of(&device, 1, seed), first, "seed {seed}: the first restore point");
        let number = back_up(&source).expect("a backup can be made").point.number;
        assert_eq!(contents_of(&device, number, seed), source.contents, "seed {seed}: the last restore point");
        // No backup holds files of runs any more.
        let names =
            machine.file_names().into_iter().filter(|name| name.extension().is_some_and(|ending| ending == "run"));
        let bytes: u64 = names.map(|name| machine.file_bytes(&name).map_or(0, |bytes| bytes.len() as u64)).sum();
        assert_eq!(bytes, source.db.metrics().run_file_bytes, "seed {seed}");
    }
}
