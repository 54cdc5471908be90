//! How much memory the cache of values takes. In a program of its own, whose allocator counts.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use aiodb::{Db, Durability, IndexKind, Options};
use support::scratch;

const CACHE_BYTES: u64 = 4 << 20;

/// The system's allocator, with a count of the bytes in use.
struct Counting;

static IN_USE: AtomicU64 = AtomicU64::new(0);

/// What an allocation takes: whole words of 16 bytes, with a header.
fn taken(layout: Layout) -> u64 {
    (layout.size() + 8).next_multiple_of(16) as u64
}

// SAFETY: both methods hand everything on to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(taken(layout), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(taken(layout), Ordering::Relaxed);
        // SAFETY: `memory` came from `alloc` above, and so from the system's allocator, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

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
        let before = IN_USE.load(Ordering::Relaxed);
        for key in 0..keys {
            assert!(table.get(&key.to_le_bytes()).expect("a get works").is_some());
        }
        let grown = IN_USE.load(Ordering::Relaxed) - before;
        println!("values of {length} bytes: {grown} bytes for a budget of {CACHE_BYTES}");
        assert!(grown <= CACHE_BYTES + CACHE_BYTES / 16, "{grown} bytes with values of {length}");
        assert!(grown >= CACHE_BYTES / 2, "the budget is used: {grown} bytes with values of {length}");
    }
}
