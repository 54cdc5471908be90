use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastrand::Rng;

use super::named_files;
use super::world::{DIRECTORY, STORE};
use crate::config::MergePolicy;
use crate::format::location::Location;
use crate::format::position::Position;
use crate::format::record::{Form, Kind};
use crate::index::accounting::Accounting;
use crate::index::chain::{Entry, Superseded, VersionChain};
use crate::index::memtable::Memtable;
use crate::index::range_tombstones::{RangeTombstone, Ranges};
use crate::index::runs::{FILE_BYTES, RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::sim::SimDevice;
use crate::retention::Retention;

const KEYS: u64 = 60_000;

pub(super) fn entry(sequence: u64, random: &mut Rng) -> Entry {
    let offset = random.u32(..64 << 20) / 16 * 16;
    let location = Location { segment: random.u32(1..1000), offset, length: 1000 };
    Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default() }
}

/// 18-byte keys in an order that has nothing to do with time, in one run.
#[test]
fn an_entry_takes_few_bytes() {
    let (device, mut random) = (SimDevice::new(1), Rng::with_seed(1));
    let runs = Runs::open(&device, Path::new(DIRECTORY), STORE, false).expect("nothing fails");
    let ranges = Ranges::default();
    let snapshots = Snapshots::new(Arc::new(Retention::default()));
    let context = RunContext { accounting: &Accounting::NONE, snapshots: &snapshots, ranges: &ranges, life_of: &|_| 1 };
    let (memtable, mut keys) = (Memtable::default(), Vec::new());
    for number in 0..KEYS {
        let key =
            [&16u32.to_be_bytes()[..], format!("user{:014}", random.u64(..100_000_000_000_000)).as_bytes()].concat();
        let entry = entry(1_000_000_000 + number, &mut random);
        memtable.insert(&key, entry.into(), &mut Superseded::new(), |_| ());
        keys.push((key, entry));
    }
    let position = Position { batch: 1, checksum: 0, segment: 1, life: 1, offset: 4096 };
    let immutable = memtable.freeze(position, 1_000_000_000 + KEYS);
    runs.flush(&immutable, &[], &context, &|_| ()).expect("nothing fails");
    let (disk, memory) = (runs.disk_bytes() as f64 / KEYS as f64, runs.memory_bytes() as f64 / KEYS as f64);
    println!("{disk:.2} bytes of disk and {memory:.2} of memory a key");
    assert!(disk <= 34.0, "{disk:.2} bytes of disk a key");
    assert!(memory <= 2.0, "{memory:.2} bytes of memory a key");
    for (key, entry) in keys.iter().step_by(97) {
        let mut chain = VersionChain::default();
        runs.begin_lookup(key, u64::MAX).expect("it is open").finish(key, &mut chain).expect("nothing fails");
        assert_eq!(chain.entries(), [*entry]);
    }
    assert_eq!(runs.count_estimate(16).expect("it is open"), KEYS);
    few_keys_are_left_to_merges(&runs, keys, &context);
}

/// Deletes a few keys, then most: only then a large file is written again at once.
fn few_keys_are_left_to_merges(runs: &Runs<SimDevice>, mut keys: Vec<(Vec<u8>, Entry)>, context: &RunContext<'_>) {
    keys.sort_by(|one, other| one.0.cmp(&other.0));
    let key = |number: u64| Box::<[u8]>::from(&*keys[number as usize].0);
    let first = 1_000_000_000 + KEYS;
    for (number, end) in [(0, 1_100), (1, KEYS / 2)] {
        let range = RangeTombstone { start: key(1_000), end: key(end), sequence: first + number };
        let position = Position { batch: 2 + number, checksum: 0, segment: 1, life: 1, offset: 4096 };
        let nothing = Memtable::default().freeze(position, first + number + 1);
        runs.flush(&nothing, &[range], context, &|_| ()).expect("nothing fails");
        assert_eq!(runs.range_step(context).expect("nothing fails"), number == 1, "{end} keys");
    }
    assert!(!runs.range_step(context).expect("nothing fails"), "both are carried out");
    assert!(runs.range_tombstones().expect("it is open").is_empty());
    assert_eq!(runs.count_estimate(16).expect("it is open"), KEYS / 2 + 1_000);
}

/// The lengths of all files that there ever were.
fn note_new_files(runs: &Runs<SimDevice>, written: &mut BTreeMap<PathBuf, u64>) {
    written.extend(named_files(runs));
}

/// A long ingest of keys in random order: what policies cost, which `docs/decisions/0040-sorted-runs.md` has.
#[test]
#[ignore = "a measurement; it prints what merges have written for each byte that flushes have"]
fn what_merges_write() {
    for fan_out in [4, 6, 8] {
        for oldest_ratio in [2, 4, 8] {
            ingest(MergePolicy { fan_out, oldest_ratio });
        }
    }
}

fn ingest(policy: MergePolicy) {
    const FLUSHES: u64 = 400;
    const KEYS_PER_FLUSH: u64 = 2000;
    let (device, mut random) = (SimDevice::new(1), Rng::with_seed(1));
    let mut runs = Runs::open(&device, Path::new(DIRECTORY), STORE, false).expect("nothing fails");
    runs.policy = policy;
    let ranges = Ranges::default();
    let snapshots = Snapshots::new(Arc::new(Retention::default()));
    let context = RunContext { accounting: &Accounting::NONE, snapshots: &snapshots, ranges: &ranges, life_of: &|_| 1 };
    let (mut flushed, mut most_runs, mut sum_of_runs, mut sequence) = (0, 0, 0, 0);
    let mut written = BTreeMap::new();
    for flush in 1..=FLUSHES {
        let memtable = Memtable::default();
        for _ in 0..KEYS_PER_FLUSH {
            let key = [&16u32.to_be_bytes()[..], format!("user{:014}", random.u64(..1_000_000)).as_bytes()].concat();
            sequence += 1;
            memtable.insert(&key, entry(sequence, &mut random).into(), &mut Superseded::new(), |_| ());
        }
        let position = Position { batch: flush, checksum: 0, segment: 1, life: 1, offset: 4096 };
        let bytes = runs.disk_bytes();
        runs.flush(&memtable.freeze(position, sequence + 1), &[], &context, &|_| ()).expect("nothing fails");
        flushed += runs.disk_bytes() - bytes;
        note_new_files(&runs, &mut written);
        while runs.merge_step(FILE_BYTES, &context).expect("nothing fails") {
            note_new_files(&runs, &mut written);
        }
        most_runs = most_runs.max(runs.len());
        sum_of_runs += runs.len();
    }
    let written: u64 = written.values().sum();
    println!(
        "{policy:?}: {:.2} bytes written for each flushed, {:.1} runs on average, {most_runs} at most, {} bytes",
        written as f64 / flushed as f64,
        sum_of_runs as f64 / FLUSHES as f64,
        runs.disk_bytes()
    );
}
