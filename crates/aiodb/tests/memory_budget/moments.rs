//! What a process takes while its store does one thing after the other: it writes, spills, reads, scans, changes modes and budget, and is opened
//! again.

use std::cell::Cell;
use std::path::Path;

use aiodb::{Db, IndexKind, Options, ScanOptions, StorageMode, Table, TableModes};

use super::support::{eventually, say, value};
use super::{BUDGET, MIB, VALUE_BYTES, allowed, key, options, resident_bytes};

/// Keys of the `hash` table, and memory for their slots: for fewer of them. The `lsm` table has half as many keys.
pub const KEYS: u64 = 500_000;
const HASH_BYTES: u64 = 4 * MIB;

/// The budget after it was made smaller.
const LESS: u64 = 48 * MIB;

/// Operations between two looks at the memory of the process.
const PERIOD: u64 = 2000;

/// Gets, overwrites.
const SOME: u64 = 20_000;

/// The process, and the most that it has had.
struct Watched {
    db: Db,
    peak: Cell<u64>,
}

impl Watched {
    fn open(path: &Path, peak: u64) -> Watched {
        // Caches have what others leave.
        let options = Options { hash_bytes: Some(HASH_BYTES), cache_bytes: 0, ..options(BUDGET) };
        Watched { db: Db::open(path, options).expect("the store can be opened"), peak: Cell::new(peak) }
    }

    /// Looks at the memory of the process, and says if it has too much.
    fn look(&self, when: &str) {
        let resident = resident_bytes();
        self.peak.set(resident.max(self.peak.get()));
        if resident > allowed(BUDGET) {
            say(&format!("{when} {resident} bytes are resident with {:?}", self.db.stats().memory));
        }
    }

    /// Does something with each number, and looks now and then.
    fn each(&self, numbers: impl Iterator<Item = u64>, when: &str, mut act: impl FnMut(u64)) {
        for (count, number) in (0_u64..).zip(numbers) {
            act(number);
            if count.is_multiple_of(PERIOD) {
                self.look(when);
            }
        }
        self.look(when);
    }

    /// Waits for something that happens in the background, and looks meanwhile.
    fn until(&self, what: &str, happened: impl Fn() -> bool) {
        eventually(what, || {
            self.look(what);
            happened()
        });
    }

    fn put(&self, table: &Table, numbers: std::ops::Range<u64>, round: u64, when: &str) {
        self.each(numbers, when, |number| {
            table.put(&key(number), &value(number + round, VALUE_BYTES)).expect("a put works");
        });
    }

    fn get(&self, table: &Table, keys: u64, when: &str) {
        let mut random = fastrand::Rng::with_seed(keys);
        self.each((0..SOME).map(|_| random.u64(SOME..keys)), when, |number| {
            let found = table.get(&key(number)).expect("a get works");
            assert_eq!(found, Some(value(number, VALUE_BYTES)), "{when}: key {number}");
        });
    }

    fn scan(&self, table: &Table, keys: u64, when: &str) {
        let records = match table.kind().is_ordered() {
            true => table.scan(ScanOptions::all()),
            false => table.iterate(),
        };
        let mut count = 0;
        let records = records.expect("a scan can begin").inspect(|record| assert!(record.is_ok(), "{when}"));
        self.each(records.map(|_| 0), when, |_| count += 1);
        assert_eq!(count, keys, "{when}");
    }

    fn set_modes(&self, table: &Table, keys: StorageMode, values: StorageMode) {
        self.db.set_table_modes(table.name(), TableModes { keys, values }).expect("modes can be changed");
    }
}

/// The process.
pub fn live(path: &Path, keys: u64) {
    use StorageMode::{Auto, Disk, Memory};
    let store = Watched::open(path, 0);
    let [hash, lsm] = [IndexKind::Hash, IndexKind::Lsm].map(|kind| store.db.create_table(kind.name(), kind));
    let (hash, lsm) = (hash.expect("a table can be made"), lsm.expect("a table can be made"));
    let all = [(&hash, keys), (&lsm, keys / 2)];
    for (table, keys) in all {
        store.put(table, 0..keys, 0, "with writes");
    }
    let in_files = || hash.stats().expect("it is open").keys_in_files;
    store.until("with spills", || in_files() > 0);
    for (table, keys) in all {
        store.get(table, keys, "with gets");
        store.scan(table, keys, "with a scan");
        // Half of them are in memory by now.
        store.get(table, keys, "with gets of cached values");
    }
    for (table, keys) in all {
        store.set_modes(table, Memory, Memory);
        store.until("with values on their way to memory", || table.stats().expect("it is open").cached_values > 0);
        store.get(table, keys, "with values in memory");
        store.set_modes(table, Auto, Disk);
        store.get(table, keys, "with values on disk");
    }
    store.set_modes(&lsm, Disk, Disk);
    store.get(&lsm, keys / 2, "with keys on disk");
    let snapshot = store.db.snapshot().expect("a snapshot can be taken");
    for (table, _) in all {
        store.set_modes(table, Auto, Auto);
        store.put(table, 0..SOME, 1, "with a snapshot");
    }
    for (table, _) in all {
        store.each(0..SOME, "with gets of a snapshot", |number| {
            let found = snapshot.get(table, &key(number)).expect("a get works");
            assert_eq!(found, Some(value(number, VALUE_BYTES)), "key {number} of a snapshot");
        });
    }
    drop(snapshot);
    store.db.set_memory_bytes(Some(LESS)).expect("it is enough");
    store.until("with a smaller budget", || store.db.stats().memory.used_bytes() <= LESS);
    for (table, keys) in all {
        store.put(table, 0..SOME, 2, "with writes and a smaller budget");
        store.get(table, keys, "with gets and a smaller budget");
    }
    store.until("after writes with a smaller budget", || store.db.stats().memory.used_bytes() <= LESS);
    store.db.set_memory_bytes(Some(BUDGET)).expect("it is enough");
    for (table, keys) in all {
        store.get(table, keys, "with the first budget");
    }
    drop((hash, lsm));
    store.db.close().expect("it can be closed");
    store.look("closed");
    let peak = store.peak.get();
    drop(store);
    let store = Watched::open(path, peak);
    for kind in [IndexKind::Hash, IndexKind::Lsm] {
        let table = store.db.table(kind.name()).expect("it is there");
        store.get(&table, if kind == IndexKind::Hash { keys } else { keys / 2 }, "opened again");
    }
    let memory = store.db.stats().memory;
    store.db.close().expect("it can be closed");
    say(&format!("peak {} with {memory:?}", store.peak.get()));
}
