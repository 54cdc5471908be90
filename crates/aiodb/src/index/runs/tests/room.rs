//! Merges on a disk that is as full as puts may make it.

use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::sizes::entry;
use super::world::{DIRECTORY, STORE};
use crate::format::position::Position;
use crate::index::chain::Superseded;
use crate::index::memtable::Memtable;
use crate::index::range_tombstones::Ranges;
use crate::index::runs::{Compaction, FILE_BYTES, RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::sim::SimDevice;
use crate::retention::Retention;

/// Bytes of a key: few of them make a file.
const KEY_BYTES: usize = 400;

/// Keys of each flush, the first one the largest.
const FLUSHES: [usize; 6] = [24_000, 6_000, 6_000, 6_000, 300, 6_000];

fn flush(runs: &Runs<SimDevice>, keys: usize, sequence: &mut u64, context: &RunContext<'_>, random: &mut Rng) {
    let memtable = Memtable::default();
    for _ in 0..keys {
        let mut key = vec![0; KEY_BYTES];
        random.fill(&mut key);
        key[..4].copy_from_slice(&16u32.to_be_bytes());
        memtable.insert(&key, entry(*sequence, random).into(), &mut Superseded::new(), |_| ());
        *sequence += 1;
    }
    let position = Position { batch: *sequence, checksum: 0, segment: 1, life: 1, offset: 4096 };
    runs.flush(&memtable.freeze(position, *sequence), &[], context, &|_| ()).expect("there is room");
}

/// Has something else take all that the runs do not keep free; returns how large the disk is then, at most as before.
fn fill_disk(device: &SimDevice, runs: &Runs<SimDevice>, mut capacity: u64) -> u64 {
    // What is kept depends on what is free.
    for _ in 0..20 {
        capacity = capacity.min(device.used_bytes() + runs.memtable_room().reserved_bytes);
        device.set_capacity(Some(capacity));
    }
    capacity
}

#[test]
fn a_disk_that_is_full_for_puts_has_room_for_merges() {
    for begun in 0..4 {
        let (device, mut random, mut sequence) = (SimDevice::new(begun), Rng::with_seed(begun), 1);
        let runs = Runs::open((&device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails");
        let (ranges, snapshots) = (Ranges::default(), Snapshots::new(Arc::new(Retention::default())));
        let context = RunContext::quiet(&snapshots, &ranges);
        for keys in FLUSHES {
            flush(&runs, keys, &mut sequence, &context, &mut random);
        }
        // Merges that were begun while there was room have made something of their inputs.
        for _ in 0..begun {
            runs.merge_step(FILE_BYTES / 8, &context).expect("there is room");
        }
        let keys = runs.count_estimate(16).expect("it is open");
        let mut capacity = fill_disk(&device, &runs, u64::MAX);
        while runs.compact_step(FILE_BYTES, Compaction::of_all(u64::MAX), &context).expect("there is room for a merge")
        {
            capacity = fill_disk(&device, &runs, capacity);
        }
        assert_eq!(runs.len(), 1);
        assert_eq!(runs.count_estimate(16).expect("it is open"), keys);
    }
}

/// A step that finds hardly any room has not written anything in vain.
#[test]
fn a_merge_without_room_does_not_begin() {
    let (device, mut random, mut sequence) = (SimDevice::new(1), Rng::with_seed(1), 1);
    let runs = Runs::open((&device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails");
    let (ranges, snapshots) = (Ranges::default(), Snapshots::new(Arc::new(Retention::default())));
    let context = RunContext::quiet(&snapshots, &ranges);
    (0..2).for_each(|_| flush(&runs, 1000, &mut sequence, &context, &mut random));
    device.set_capacity(Some(device.used_bytes() + (32 << 10)));
    let steps = device.counters().steps;
    let refused = runs.compact_step(FILE_BYTES, Compaction::of_all(u64::MAX), &context).expect_err("there is no room");
    assert!(refused.is_full(), "a full disk is said to be full: {refused}");
    assert_eq!(device.counters().steps, steps, "nothing was tried");
    device.set_capacity(None);
    assert!(runs.compact_step(FILE_BYTES, Compaction::of_all(u64::MAX), &context).expect("there is room"));
}
