use std::path::{Path, PathBuf};

use super::supply::{MAX_AHEAD_SEGMENTS, PREWRITE_BYTES, WAITED_FLUSHES_PER_FILL, wanted_ahead};
use super::{Claim, RESERVED_SEGMENTS, Segments};
use crate::Error;
use crate::io::sim::SimDevice;
use crate::io::{Access, Device, File, WriteSync};

const SEGMENT_BYTES: u64 = 64 << 10;

/// The segments of a new store, and the machine that it is on.
fn segments(segment_bytes: u64) -> (SimDevice, Segments<SimDevice>) {
    let device = SimDevice::new(1);
    for path in ["/store", "/store/log"] {
        device.create_dir(Path::new(path)).expect("a directory can be made");
    }
    let roots = vec![PathBuf::from("/store")];
    let segments = Segments::new(device.clone(), roots, Access::SEGMENT, [7; 16], segment_bytes);
    (device, segments)
}

/// The space of a segment that the files of a checkpoint were given is theirs until they are written.
#[test]
fn no_segment_is_made_of_lent_space() {
    let (device, segments) = segments(SEGMENT_BYTES);
    device.set_capacity(Some(5 * SEGMENT_BYTES));
    segments.replenish().expect("there is room for five");
    let lent = segments.lend_one().expect("space can be given back").expect("there are free segments");
    assert!(segments.replenish().expect_err("the space is lent").is_full());
    let file = device.open(Path::new("/store/file"), Access::CREATE).expect("a file can be made");
    file.write_at(&[1; SEGMENT_BYTES as usize], 0, WriteSync::Later).expect("the space is there");
    file.truncate(0).expect("a file can be emptied");
    drop(lent);
    segments.replenish().expect("the space is free again");
}

/// Once a store is closed, another process may have its files: a call that is still on its way leaves them alone.
#[test]
fn no_segment_of_a_closed_store_is_changed() {
    let (device, segments) = segments(SEGMENT_BYTES);
    segments.replenish().expect("there is room");
    let (used, free) = (device.used_bytes(), segments.free_count());
    segments.close();
    assert!(matches!(segments.lend_one(), Err(Error::Closed)));
    assert!(matches!(segments.give_back_spare(), Err(Error::Closed)));
    assert!(matches!(segments.make_for(Claim::Ordinary), Err(Error::Closed)));
    assert_eq!((device.used_bytes(), segments.free_count()), (used, free));
}

/// Bytes that no writer waits for are written once; a writer that waits for flushes finds segments that are filled.
#[test]
fn segments_are_filled_where_writers_wait_for_flushes() {
    let segment_bytes = 4 << 20;
    let (device, segments) = segments(segment_bytes);
    let writes_for_one = || {
        let before = device.counters().writes;
        assert!(segments.create_below(usize::MAX).expect("there is room"));
        device.counters().writes - before
    };
    let filled = segment_bytes / PREWRITE_BYTES as u64;
    assert_eq!(writes_for_one(), filled, "the first of a process");
    assert_eq!(writes_for_one(), 1, "nobody waited");
    (0..WAITED_FLUSHES_PER_FILL).for_each(|_| segments.note_waited_flush());
    assert_eq!(writes_for_one(), filled, "somebody waited");
    assert_eq!(writes_for_one(), 1, "nobody waited since");
}

#[test]
fn as_many_segments_are_made_ahead_as_are_taken_while_one_is_made() {
    assert_eq!(wanted_ahead(1, 0), 1, "one is there where nothing is written");
    assert_eq!(wanted_ahead(1, 2), 3);
    assert_eq!(wanted_ahead(3, 0), 2, "fewer one by one");
    assert_eq!(wanted_ahead(1, 1000), MAX_AHEAD_SEGMENTS);
    let (_, segments) = segments(SEGMENT_BYTES);
    let made = || std::iter::from_fn(|| segments.make_ahead().expect("there is room").then_some(())).count();
    assert_eq!(made(), RESERVED_SEGMENTS + 1);
    assert_eq!(made(), 0);
    segments.take_free(Claim::Ordinary).expect("one is there");
    assert_eq!(made(), 1);
}

/// Work that makes room takes of the reserve, and no other write goes on before it is whole again.
#[test]
fn ordinary_writes_leave_what_emptying_the_log_takes() {
    let (device, segments) = segments(SEGMENT_BYTES);
    let reserved = RESERVED_SEGMENTS as u64;
    device.set_capacity(Some((reserved + 3) * SEGMENT_BYTES));
    segments.reserve_for_emptying(SEGMENT_BYTES);
    segments.take_free(Claim::Ordinary).expect("there is room for the reserve and three");
    segments.take_free(Claim::Ordinary).expect("there is room for the reserve and two");
    assert!(segments.is_reserve_whole());
    assert!(segments.take_free(Claim::Ordinary).is_err_and(|error| error.is_full()), "one is reserved for emptying");
    for _ in 0..2 {
        segments.make_for(Claim::Deletes).expect("the reserve is for deletes");
        segments.take_free(Claim::Deletes).expect("so is one of the reserve");
    }
    assert!(!segments.is_reserve_whole());
    assert!(segments.restore_reserve().is_err_and(|error| error.is_full()));
    device.set_capacity(None);
    segments.restore_reserve().expect("there is room again");
    assert!(segments.is_reserve_whole());
}

/// The last free segment is for the files of a checkpoint. Where these have room beside it, moves may have it: they would be the last to make
/// room.
#[test]
fn moves_have_the_last_segment_where_a_checkpoint_has_room() {
    let (device, segments) = segments(SEGMENT_BYTES);
    let reserved = RESERVED_SEGMENTS as u64 * SEGMENT_BYTES;
    device.set_capacity(Some(reserved + 2 * SEGMENT_BYTES));
    segments.reserve_for_indexes(2 * SEGMENT_BYTES);
    assert!(segments.replenish().is_err_and(|error| error.is_full()), "the indexes have the rest");
    for _ in 1..RESERVED_SEGMENTS {
        segments.take_free(Claim::Moves).expect("one of the reserve is for moves");
    }
    assert!(!segments.has_free(Claim::Deletes));
    let is_refused = || segments.take_free(Claim::Moves).is_err_and(|error| error.is_full());
    assert!(is_refused(), "a checkpoint may need it for its manifests");
    device.set_capacity(Some(reserved + 2 * SEGMENT_BYTES + SEGMENT_BYTES / 2));
    segments.note_checkpoint(true);
    assert!(is_refused(), "a checkpoint had no room");
    segments.note_checkpoint(false);
    segments.take_free(Claim::Moves).expect("a checkpoint has room");
    assert!(is_refused(), "there is none");
}
