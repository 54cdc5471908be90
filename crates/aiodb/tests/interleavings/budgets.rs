//! The budget of memory falls and rises while others write, read, spill and commit.

use aiodb::io::sim::SimDevice;
use aiodb::{Db, Durability, Error, IndexKind, MemoryStats, Options, Step, StorageMode, Table, TableModes};
use shuttle::thread;

use crate::machine::{Machine, options, value, version};
use crate::schedules::{LONG_RUN, RUN, in_fewer_orders, in_many_orders};

const KEYS: u64 = 5;

/// Bits of a key's hash that choose the shard of a `hash` index.
const SHARD_BITS: u32 = 10;

/// Memory for everything.
const PLENTY: u64 = 1 << 30;

/// Keys of a memtable where there is next to none, and what two such memtables may take.
const FEW_KEYS: usize = 2;
const FEW_KEYS_BYTES: u64 = 2 * FEW_KEYS as u64 * 400;

/// A store that has memory for everything, but for slots, and works with next to none too.
fn squeezable() -> Options {
    Options {
        memory_bytes: Some(PLENTY),
        least_memtable_keys: FEW_KEYS,
        hash_bytes: Some(0),
        spill_step_tags: 2,
        cache_writes: true,
        ..options()
    }
}

/// The least budget with which the store works.
fn least_of(db: &Db<SimDevice>) -> u64 {
    match db.set_memory_bytes(Some(1)) {
        Err(Error::TooLittleMemory { least, .. }) => least,
        outcome => panic!("a byte is too little: {outcome:?}"),
    }
}

fn set_all(db: &Db<SimDevice>, budgets: &[u64]) {
    budgets.iter().for_each(|bytes| db.set_memory_bytes(Some(*bytes)).expect("it is enough"));
}

fn put(table: &Table<SimDevice>, key: u64, round: u64) {
    table.put_with(&key.to_le_bytes(), &value(key, round, 60), Durability::None).expect("the machine runs");
}

fn get(table: &Table<SimDevice>, key: u64) -> u64 {
    let found = table.get(&key.to_le_bytes()).expect("the machine runs");
    version(key, &found.expect("it was acknowledged, and nobody deletes it"))
}

fn steps(db: &Db<SimDevice>, steps: &[Step]) {
    steps.iter().for_each(|step| db.step(*step).expect("the machine runs"));
}

/// What the parts have that come and go with the tables and the budget.
fn passing_parts(memory: &MemoryStats) -> [u64; 5] {
    [memory.memtable_bytes, memory.hash_bytes, memory.buffer_bytes, memory.block_cache_bytes, memory.cache_bytes]
}

/// The budget falls below what is there, and rises, more than once, while a spill or a commit is under way. Nothing that was written is lost, and
/// when the table is gone the parts have what they had before it came.
#[test]
fn interleavings_of_budgets_and_everything_else() {
    in_fewer_orders(LONG_RUN, |kind| {
        const ROUNDS: u64 = 2;
        let machine = Machine::new(31, kind);
        let (db, table) = machine.open_with(squeezable());
        let least = least_of(&db);
        db.drop_table("t").expect("the machine runs");
        assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new());
        set_all(&db, &[least]);
        let before = passing_parts(&db.stats().memory);
        set_all(&db, &[PLENTY]);
        drop(table);
        let table = db.create_table("t", kind).expect("the machine runs");
        (0..KEYS).for_each(|key| put(&table, key, 0));
        steps(&db, &[Step::Write, Step::Spill]);
        let changing = thread::spawn({
            let db = db.clone();
            move || set_all(&db, &[least, PLENTY, least + (200 << 10), PLENTY, least])
        });
        let writing = thread::spawn({
            let table = table.clone();
            move || {
                for (round, key) in (1..=ROUNDS).flat_map(|round| (0..KEYS).map(move |key| (round, key))) {
                    put(&table, key, round);
                    assert_eq!(get(&table, key), round, "nobody else writes key {key}");
                }
            }
        });
        let working = thread::spawn({
            let db = db.clone();
            move || {
                let once = [Step::Spill, Step::CommitAhead, Step::Write, Step::Settle, Step::Spill, Step::Checkpoint];
                steps(&db, &once);
                steps(&db, &once);
            }
        });
        let mut seen = [0; KEYS as usize];
        for _ in 0..2 {
            for key in 0..KEYS {
                let found = get(&table, key);
                assert!(found >= seen[key as usize], "key {key} is older than it was");
                seen[key as usize] = found;
            }
        }
        [changing, writing, working].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        (0..KEYS).for_each(|key| assert_eq!(get(&table, key), ROUNDS, "key {key}"));
        assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new());
        db.drop_table("t").expect("the machine runs");
        assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new());
        // A tag that waits to be settled holds its table.
        for _ in 0..KEYS {
            steps(&db, &[Step::Settle]);
        }
        assert_eq!(db.stats().unsettled_tags, 0);
        let memory = db.stats().memory;
        assert_eq!(passing_parts(&memory), before, "{memory:?}");
        if kind == IndexKind::Hash {
            assert_eq!(memory.run_bytes, 0, "no file is left: {memory:?}");
        }
    });
}

/// Memtables have no more than a budget that fell is for, from the next writes on, whoever was writing when it fell.
#[test]
fn interleavings_of_budgets_and_memtables() {
    in_many_orders(RUN, |kind| {
        // Others have no memtables.
        if !kind.is_ordered() {
            return;
        }
        let machine = Machine::new(32, kind);
        let (db, table) = machine.open_with(squeezable());
        let least = least_of(&db);
        // The first one takes a segment, with which memtables learn of their bound.
        put(&table, 0, 0);
        let writing = thread::spawn({
            let table = table.clone();
            move || (0..2 * KEYS).for_each(|key| put(&table, key, 0))
        });
        set_all(&db, &[least, PLENTY, least]);
        writing.join().expect("no thread panics");
        for key in 2 * KEYS..4 * KEYS {
            put(&table, key, 0);
            let memory = db.stats().memory;
            assert!(memory.memtable_bytes <= FEW_KEYS_BYTES, "{memory:?}");
        }
        (0..4 * KEYS).for_each(|key| assert_eq!(get(&table, key), 0, "key {key}"));
    });
}

/// Slots of one shard come, go and leave for a run, by several threads: their part of the budget is what they take.
#[test]
fn interleavings_of_slots_that_are_counted() {
    in_many_orders(RUN, |kind| {
        let machine = Machine::new(33, kind);
        let one_shard = Options { hash_mask: u64::MAX >> SHARD_BITS, ..squeezable() };
        let (db, table) = machine.open_with(one_shard);
        let writers = [0, KEYS].map(|first| {
            let table = table.clone();
            thread::spawn(move || {
                (first..first + KEYS).for_each(|key| put(&table, key, 0));
                table.delete_with(&first.to_le_bytes(), Durability::None).expect("the machine runs");
            })
        });
        steps(&db, &[Step::Write, Step::Spill, Step::Settle, Step::Spill, Step::Spill, Step::Settle, Step::Spill]);
        writers.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new());
    });
}

/// Caches shrink to nothing and grow again while others read: what tables refuse does not come there, whatever a cache began anew with.
#[test]
fn interleavings_of_budgets_and_refused_blocks() {
    in_fewer_orders(LONG_RUN, |kind| {
        let machine = Machine::new(34, kind);
        let (db, table) = machine.open_with(squeezable());
        let (keys, values) = match kind {
            IndexKind::Lsm => (StorageMode::Disk, StorageMode::Disk),
            IndexKind::Hash | IndexKind::Lmdb => (StorageMode::Auto, StorageMode::Disk),
        };
        db.set_table_modes("t", TableModes { keys, values }).expect("the machine runs");
        (0..KEYS).for_each(|key| put(&table, key, 0));
        steps(&db, &[Step::Write, Step::Spill, Step::Checkpoint]);
        let least = least_of(&db);
        let reading = thread::spawn({
            let table = table.clone();
            move || (0..3 * KEYS).for_each(|number| assert_eq!(get(&table, number % KEYS), 0))
        });
        set_all(&db, &[least, PLENTY, least, PLENTY]);
        (0..KEYS).for_each(|key| assert_eq!(get(&table, key), 0));
        reading.join().expect("no thread panics");
        let stats = table.stats().expect("it is open");
        assert_eq!((stats.cached_blocks, stats.cached_values), (0, 0), "{stats:?}");
    });
}
