use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::io::{Access, Device, Disk};

/// No thread can have such a stack.
const IMPOSSIBLE_BYTES: usize = 1 << 60;

#[test]
fn where_no_thread_can_be_made_the_callers_thread_reads() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("file");
    let bytes: Vec<u8> = (0..3 * PACED_PIECE_BYTES + 100).map(|at| (at % 251) as u8).collect();
    std::fs::write(&path, &bytes).expect("a file can be written");
    let file = Disk::plain().open(&path, Access::READ).expect("the file can be opened");
    let job = Job { file, path, from: 50, to: bytes.len() as u64 };
    let asked = AtomicU64::new(0);
    // A rate by which nothing is ever due.
    let clock_ms = || asked.fetch_add(1, Ordering::Relaxed) * 1_000_000;
    let pace = Pace { bytes_per_second: Some(1 << 20), clock_ms: &clock_ms };
    for stack_bytes in [STACK_BYTES, IMPOSSIBLE_BYTES] {
        asked.store(0, Ordering::Relaxed);
        let (taken, threads) = (RefCell::new(vec![0; 50]), std::thread::current().id());
        let outcome = pump_beside(std::slice::from_ref(&job), &pace, stack_bytes, &mut |number, offset, piece| {
            assert_eq!((number, offset, std::thread::current().id()), (0, taken.borrow().len() as u64, threads));
            taken.borrow_mut().extend_from_slice(piece);
            Ok(())
        });
        outcome.expect("the file can be read");
        assert!(taken.borrow()[50..] == bytes[50..]);
        // Once at the beginning, and after each piece.
        assert_eq!(asked.load(Ordering::Relaxed), 5);
    }
}

#[test]
fn a_pace_is_kept_over_all_pieces() {
    let now_ms = AtomicU64::new(500);
    let clock_ms = || now_ms.load(Ordering::Relaxed);
    let pace = Pace { bytes_per_second: Some(1000), clock_ms: &clock_ms };
    let mut paced = Paced::begin(&pace);
    assert_eq!(paced.ahead(250), Duration::from_millis(250));
    now_ms.store(700, Ordering::Relaxed);
    assert_eq!(paced.ahead(250), Duration::from_millis(300));
    now_ms.store(2000, Ordering::Relaxed);
    assert_eq!(paced.ahead(250), Duration::ZERO);
    let unbound = Pace { bytes_per_second: None, clock_ms: &clock_ms };
    assert_eq!(Paced::begin(&unbound).ahead(u64::MAX), Duration::ZERO);
}
