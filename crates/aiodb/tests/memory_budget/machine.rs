//! Budgets beside the memory that there is for the process, which changes while a store is open.

use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Db, IndexKind, Options, Step};

use crate::{MIB, options};

/// As the limit of a control group would.
#[test]
fn a_budget_that_was_not_chosen_follows_the_memory_that_there_is() {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let options = Options { background: false, segment_bytes: MIB, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options).expect("a store can be made");
    // What the thread of upkeep does when it wakes, and the writer's.
    for step in [Step::Upkeep, Step::WriteBehind] {
        let budget = |memory: u64, wait_ms| {
            device.set_memory(memory);
            device.advance_clock(wait_ms);
            db.step(step).expect("upkeep works");
            (db.stats().memory.budget_bytes, db.metrics().block_cache_budget_bytes)
        };
        assert_eq!(budget(512 * MIB, 10_000), (128 * MIB, 64 * MIB));
        assert_eq!(budget(4096 * MIB, 5_000).0, 128 * MIB, "it is not asked for all the time");
        assert_eq!(budget(4096 * MIB, 5_000), (1024 * MIB, 512 * MIB));
        assert_eq!(budget(1024 * MIB, 10_000), (256 * MIB, 128 * MIB));
        assert_eq!(budget(100 * MIB, 10_000).0, 64 * MIB, "the least");
        db.set_memory_bytes(Some(200 * MIB)).expect("it is enough");
        assert_eq!(budget(4096 * MIB, 10_000).0, 200 * MIB, "a budget that was chosen stays");
        db.set_memory_bytes(None).expect("the store decides");
    }
}

/// Also while it is open; and it comes back to what was chosen.
#[test]
fn a_budget_that_was_chosen_follows_a_group_that_has_less() {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    device.set_memory(1024 * MIB);
    let options = Options { background: false, segment_bytes: MIB, cache_bytes: 0, ..options(400 * MIB) };
    let db = Db::open_on(device.clone(), "/store", options).expect("a store can be made");
    db.create_table("t", IndexKind::Lsm).expect("a table can be made");
    let budget = |memory: u64| {
        device.set_memory(memory);
        device.advance_clock(10_000);
        db.step(Step::Upkeep).expect("upkeep works");
        (db.stats().memory.budget_bytes, db.metrics().block_cache_budget_bytes)
    };
    assert_eq!(budget(1024 * MIB), (400 * MIB, 200 * MIB));
    assert_eq!(db.stats().warnings, [""; 0]);
    let (bytes, block_cache) = budget(100 * MIB);
    assert!(bytes == 100 * MIB && block_cache <= 50 * MIB, "{bytes} bytes, {block_cache} for blocks");
    let warnings = db.stats().warnings;
    let says = |word: &str| warnings.len() == 1 && warnings[0].contains(word);
    assert!(says("has shrunk to 100 MiB, less than the 400 MiB") && says("memory_bytes"), "{warnings:?}");
    assert_eq!(budget(300 * MIB).0, 300 * MIB);
    assert_eq!(budget(2048 * MIB), (400 * MIB, 200 * MIB), "what was chosen");
    assert_eq!(db.stats().warnings, [""; 0]);
    db.set_memory_bytes(Some(4096 * MIB)).expect("it is enough");
    assert_eq!(db.stats().memory.budget_bytes, 2048 * MIB);
    let warnings = db.stats().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("4096 MiB") && !warnings[0].contains("shrunk"), "{warnings:?}");
}

/// It has no threads that look: those who read values do.
#[test]
fn a_store_that_is_only_read_follows_the_memory_that_there_is() {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store")).expect("a directory can be made");
    let options = Options { segment_bytes: MIB, ..Options::default() };
    let db = Db::open_on(device.clone(), "/store", options.clone()).expect("a store can be made");
    let table = db.create_table("t", IndexKind::Lsm).expect("a table can be made");
    table.put(b"key", b"value").expect("a put works");
    db.close().expect("it can be closed");
    let options = Options { read_only: true, ..options };
    let db = Db::open_on(device.clone(), "/store", options).expect("it opens");
    let table = db.table("t").expect("it is there");
    for (memory, block_cache) in [(4096, 512), (1024, 128)] {
        device.set_memory(memory * MIB);
        device.advance_clock(10_000);
        assert_eq!(table.get(b"key").expect("a get works").as_deref(), Some(&b"value"[..]));
        assert_eq!(db.metrics().block_cache_budget_bytes, block_cache * MIB);
    }
}
