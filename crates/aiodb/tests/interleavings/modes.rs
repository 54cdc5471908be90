//! What memory keeps of tables by preference changes, while they are written, read, scanned, emptied and dropped.

use aiodb::io::sim::SimDevice;
use aiodb::{Db, Durability, Error, IndexKind, Options, Step, StorageMode, Table, TableModes};
use shuttle::rand::Rng as _;
use shuttle::thread;

use crate::machine::{Machine, options, value, version};
use crate::schedules::{LONG_RUN, in_fewer_orders};

const KEYS: u64 = 4;

/// Modes that tables of a kind can have, one after the other.
fn modes_of(kind: IndexKind) -> [TableModes; 4] {
    use StorageMode::{Auto, Disk, Memory};
    let all = match kind {
        IndexKind::Lsm => [(Memory, Memory), (Disk, Disk), (Auto, Memory), (Disk, Auto)],
        IndexKind::Hash | IndexKind::Lmdb => [(Memory, Memory), (Auto, Disk), (Auto, Memory), (Memory, Disk)],
    };
    all.map(|(keys, values)| TableModes { keys, values })
}

fn put_all(table: &Table<SimDevice>, round: u64) {
    for key in 0..KEYS {
        table.put_with(&key.to_le_bytes(), &value(key, round, 200), Durability::None).expect("the machine runs");
    }
}

fn get(table: &Table<SimDevice>, key: u64) -> Option<u64> {
    table.get(&key.to_le_bytes()).expect("the machine runs").map(|found| version(key, &found))
}

/// Who is told that the modes have changed finds them changed, also after a crash, and in a table that was emptied meanwhile; a table that is
/// dropped is not there. No answer is another one for that.
#[test]
fn interleavings_of_modes_and_everything_else() {
    in_fewer_orders(LONG_RUN, |kind| {
        let machine = Machine::new(41, kind);
        let options = Options { hash_bytes: Some(0), cache_writes: true, ..options() };
        let (db, table) = machine.open_with(options.clone());
        let [emptied, dropped] =
            ["emptied", "dropped"].map(|name| db.create_table(name, kind).expect("it can be made"));
        [&table, &emptied, &dropped].into_iter().for_each(|table| put_all(table, 0));
        db.step(Step::Write).and_then(|()| db.step(Step::Checkpoint)).expect("the machine runs");
        let wanted = modes_of(kind);
        let switching = thread::spawn({
            let (db, table, emptied) = (db.clone(), table.clone(), emptied.clone());
            move || {
                for modes in wanted {
                    for table in [&table, &emptied] {
                        db.set_table_modes(table.name(), modes).expect("the machine runs");
                        assert_eq!(table.modes(), modes, "nobody else changes them");
                    }
                    match db.set_table_modes("dropped", modes) {
                        Ok(()) | Err(Error::NoSuchTable { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        });
        let changing = thread::spawn({
            let db = db.clone();
            move || {
                db.truncate_table("emptied").expect("the machine runs");
                db.drop_table("dropped").expect("the machine runs");
            }
        });
        let writing = thread::spawn({
            let table = table.clone();
            move || {
                for key in 0..KEYS {
                    table
                        .put_with(&key.to_le_bytes(), &value(key, 1, 200), Durability::None)
                        .expect("the machine runs");
                    assert_eq!(get(&table, key), Some(1), "nobody else writes key {key}");
                }
            }
        });
        let working = thread::spawn({
            let db = db.clone();
            move || {
                for step in [Step::Upkeep, Step::Spill, Step::Upkeep, Step::Checkpoint, Step::Upkeep] {
                    db.step(step).expect("the machine runs");
                }
            }
        });
        let found: Vec<_> =
            table.iterate().and_then(Iterator::collect).expect("a table that is not dropped can be scanned");
        assert_eq!(found.len() as u64, KEYS, "each key once");
        (0..KEYS).for_each(|key| assert!(get(&table, key).is_some(), "key {key} is never away"));
        [switching, changing, writing, working].into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        let is_power_cut = shuttle::rand::thread_rng().gen_bool(0.5);
        let check = |db: &Db<SimDevice>, has_all: bool| {
            let [table, emptied] = ["t", "emptied"].map(|name| db.table(name).expect("it is there"));
            let last = wanted[wanted.len() - 1];
            assert_eq!([table.modes(), emptied.modes()], [last, last]);
            assert!(matches!(db.table("dropped"), Err(Error::NoSuchTable { .. })));
            for key in 0..KEYS {
                assert_eq!(get(&emptied, key), None, "key {key} of an emptied table");
                assert!(!has_all || get(&table, key) == Some(1), "key {key}");
            }
        };
        check(&db, true);
        assert_eq!(db.recount().expect("the machine runs"), Vec::<String>::new());
        let machine = if is_power_cut { machine.power_cut() } else { machine.process_death() };
        check(&machine.open_with(options).0, !is_power_cut);
    });
}
