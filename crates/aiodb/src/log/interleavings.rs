//! The pool of segments in thousands of orders that `shuttle` chooses.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Claim, RESERVED_SEGMENTS, Segments};
use crate::io::sim::SimDevice;
use crate::io::{Access, Device};

const SEGMENT_BYTES: u64 = 64 << 10;

/// On a disk that has room for the reserve and one more, ordinary writers and one that makes room take what they may, while upkeep
/// says what is needed for emptying the log.
fn take_from_a_full_disk() {
    let device = SimDevice::new(1);
    for path in ["/store", "/store/log"] {
        device.create_dir(Path::new(path)).expect("a directory can be made");
    }
    device.set_capacity(Some((RESERVED_SEGMENTS as u64 + 1) * SEGMENT_BYTES));
    let roots = vec![PathBuf::from("/store")];
    let segments = Arc::new(Segments::new(device, roots, Access::SEGMENT, [7; 16], SEGMENT_BYTES));
    segments.replenish().expect("there is room for the reserve and one");
    let writers = [Claim::Ordinary, Claim::Ordinary, Claim::Deletes].map(|claim| {
        let segments = Arc::clone(&segments);
        shuttle::thread::spawn(move || segments.take_free(claim).is_ok() && claim == Claim::Ordinary)
    });
    let upkeep = shuttle::thread::spawn({
        let segments = Arc::clone(&segments);
        move || segments.reserve_for_emptying(0)
    });
    let taken = writers.map(|writer| usize::from(writer.join().expect("no thread panics"))).iter().sum::<usize>();
    upkeep.join().expect("no thread panics");
    assert!(taken <= 1, "{taken} ordinary writers have a segment, and one was beyond the reserve");
    assert_eq!(segments.is_reserve_whole(), segments.free_count() >= RESERVED_SEGMENTS);
}

#[test]
fn interleavings_of_the_reserve() {
    shuttle::check_random(take_from_a_full_disk, 1_000);
    shuttle::check_pct(take_from_a_full_disk, 1_000, 3);
}
