use std::path::Path;

use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::{Db, Durability, IndexKind, Options};

const MIB: u64 = 1 << 20;

/// A store on a simulated machine, with a real directory for the file that LMDB maps.
fn store(directory: &tempfile::TempDir, options: Options) -> Db<SimDevice> {
    let device = SimDevice::new(1);
    device.set_real_directory(directory.path());
    device.create_dir(Path::new("/store")).expect("the machine runs");
    let options = Options { background: false, segment_bytes: MIB, ..options };
    Db::open_on(device, "/store", options).expect("the store can be made")
}

fn most_keys(db: &Db<SimDevice>, kind: IndexKind) -> usize {
    db.engine.engine.ordered.get(kind).expect("it is open").memtable.most_keys()
}

/// No look of upkeep comes between the table and what is written to it.
#[test]
fn a_chosen_size_of_memtables_holds_from_the_first_table() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let chosen = Options { memory_bytes: Some(512 * MIB), memtable_bytes: Some(60_000_000), ..Options::default() };
    let db = store(&directory, chosen);
    db.engine.engine.open_index_of(IndexKind::Lsm).expect("the machine runs");
    assert_eq!(most_keys(&db, IndexKind::Lsm), 100_000);
    db.create_table("t", IndexKind::Lsm).expect("a table can be made");
    assert_eq!(most_keys(&db, IndexKind::Lsm), 100_000);
}

/// The memtables of both share what one had.
#[test]
fn a_second_index_takes_its_part_from_the_first() {
    let directory = tempfile::tempdir().expect("a directory for the test can be made");
    let db = store(&directory, Options { memory_bytes: Some(256 * MIB), ..Options::default() });
    let engine = &db.engine.engine;
    engine.open_index_of(IndexKind::Lsm).expect("the machine runs");
    let alone = most_keys(&db, IndexKind::Lsm);
    assert_eq!(alone, engine.memory.memtable_keys());
    engine.open_index_of(IndexKind::Lmdb).expect("the machine runs");
    let keys = [IndexKind::Lsm, IndexKind::Lmdb].map(|kind| most_keys(&db, kind));
    assert_eq!(keys, [engine.memory.memtable_keys(); 2]);
    assert!(keys[0] < alone, "{keys:?} of {alone} keys");
}

/// Slots of `hash` tables that the log's end has made are known when it is open: nobody may read for long.
#[test]
fn a_store_that_is_only_read_counts_what_it_has_replayed() {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("the machine runs");
    let options = Options { memory_bytes: Some(40 * MIB), background: false, segment_bytes: MIB, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options.clone()).expect("the store can be made");
    let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
    for number in 0..60_000_u64 {
        table.put_with(&number.to_be_bytes(), b"small", Durability::None).expect("the machine runs");
    }
    db.sync().expect("the machine runs");
    let device = device.process_death();
    let db = Db::open_on(device, "/store", Options { read_only: true, ..options }).expect("it opens");
    let engine = &db.engine.engine;
    assert!(engine.memory_stats().hash_bytes > MIB / 2, "{:?}", engine.memory_stats());
    assert_eq!(engine.block_cache.budget_bytes(), engine.memory_demand().bounds().block_cache);
}
