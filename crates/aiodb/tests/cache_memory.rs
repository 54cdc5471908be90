//! How much memory the cache of values takes. In a program of its own, whose resident memory is looked at.

mod support;

use aiodb::{Db, Durability, IndexKind, Options};
use support::scratch;

const CACHE_BYTES: u64 = 4 << 20;

/// What a few thousand gets may take beside the cache.
const OTHER_BYTES: u64 = 2 << 20;

/// Memory of this process that is in no file, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has this file");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("every process has this line");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

#[test]
fn it_takes_its_budget_and_no_more_whatever_the_length_of_values() {
    for length in [1, 25, 300, 4096] {
        let directory = scratch();
        let options = Options { cache_bytes: CACHE_BYTES, background: false, ..Options::default() };
        let db = Db::open(directory.path(), options).expect("a store can be made");
        let table = db.create_table("t", IndexKind::Hash).expect("a table can be made");
        let keys = 2 * CACHE_BYTES / (length as u64 + 100);
        for key in 0..keys {
            table.put_with(&key.to_le_bytes(), &vec![1; length], Durability::None).expect("a put works");
        }
        db.checkpoint().expect("a checkpoint can be made");
        let before = resident_bytes();
        for key in 0..keys {
            assert!(table.get(&key.to_le_bytes()).expect("a get works").is_some());
        }
        let grown = resident_bytes().saturating_sub(before);
        println!("values of {length} bytes: {grown} bytes for a budget of {CACHE_BYTES}");
        assert!(grown <= CACHE_BYTES + CACHE_BYTES / 16 + OTHER_BYTES, "{grown} bytes with values of {length}");
        assert!(grown >= CACHE_BYTES / 2, "the budget is used: {grown} bytes with values of {length}");
    }
}
