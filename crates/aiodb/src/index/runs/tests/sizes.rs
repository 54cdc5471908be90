use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastrand::Rng;

use super::named_files;
use super::world::{DIRECTORY, STORE};
use crate::cache::Cache;
use crate::config::MergePolicy;
use crate::format::location::Location;
use crate::format::place::footprint;
use crate::format::position::Position;
use crate::format::record::{Form, Kind, RECORD_HEADER_BYTES};
use crate::index::chain::{Entry, Superseded, VersionChain};
use crate::index::memtable::Memtable;
use crate::index::range_tombstones::{RangeTombstone, Ranges, Urgency};
use crate::index::runs::lookup::AwaitedBytes;
use crate::index::runs::{FILE_BYTES, RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::sim::SimDevice;
use crate::io::{AlignedBuffer, File};
use crate::retention::Retention;

const KEYS: u64 = 60_000;

pub(super) fn entry(sequence: u64, random: &mut Rng) -> Entry {
    let offset = random.u32(..64 << 20) / 16 * 16;
    let location = Location { segment: random.u32(1..1000), offset, length: 1000 };
    Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default(), inline: None }
}

/// 18-byte keys in an order that has nothing to do with time, in one run.
#[test]
fn an_entry_takes_few_bytes() {
    let (device, mut random) = (SimDevice::new(1), Rng::with_seed(1));
    let runs = Runs::open((&device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails");
    let ranges = Ranges::default();
    let snapshots = Snapshots::new(Arc::new(Retention::default()));
    let context = RunContext::quiet(&snapshots, &ranges);
    let (memtable, mut keys) = (Memtable::default(), Vec::new());
    for number in 0..KEYS {
        let key =
            [&16u32.to_be_bytes()[..], format!("user{:014}", random.u64(..100_000_000_000_000)).as_bytes()].concat();
        let entry = entry(1_000_000_000 + number, &mut random);
        memtable.insert(&key, entry.clone().into(), &mut Superseded::new(), |_| ());
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
        assert_eq!(chain.entries(), std::slice::from_ref(entry));
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
        assert_eq!(runs.range_step(Urgency::WherePaid, context).expect("nothing fails"), number == 1, "{end} keys");
    }
    assert!(!runs.range_step(Urgency::WherePaid, context).expect("nothing fails"), "both are carried out");
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
    let (device, work) = (SimDevice::new(1), Work { flushes: 400, keys_per_flush: 2000, keys: 1_000_000 });
    let mut runs = Runs::open((&device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails");
    runs.policy = policy;
    let Ingested { written, flushed, most_runs, sum_of_runs } = work.ingest(&runs, None);
    println!(
        "{policy:?}: {:.2} bytes written for each flushed, {:.1} runs on average, {most_runs} at most, {} bytes",
        written as f64 / flushed as f64,
        sum_of_runs as f64 / work.flushes as f64,
        runs.disk_bytes()
    );
}

/// Values of one length in the index or not: what that costs, which `docs/decisions/0043-inline-values.md` has.
#[test]
#[ignore = "a measurement; it prints bytes written for each put and reads of the device for each get"]
fn what_inline_values_cost() {
    for value_bytes in [8, 16, 32, 64, 128, 256, 512, 1024] {
        measure_values(value_bytes, false);
        measure_values(value_bytes, true);
    }
}

fn measure_values(value_bytes: usize, are_inline: bool) {
    const GETS: u32 = 20_000;
    let (device, work) = (SimDevice::new(1), Work { flushes: 100, keys_per_flush: 2000, keys: 100_000 });
    let runs = Runs::open((&device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails");
    // As much as the blocks of a quarter of the keys take without values.
    let cache = Cache::of_blocks(1 << 20, 1 << 20).expect("there is memory");
    let runs = runs.with_cache(Arc::new(cache));
    let Ingested { written, .. } = work.ingest(&runs, are_inline.then_some(value_bytes));
    let puts = (work.flushes * work.keys_per_flush) as f64;
    let log = footprint((RECORD_HEADER_BYTES + KEY_BYTES + value_bytes) as u32) as f64;
    let (mut random, mut blocks, mut found) = (Rng::with_seed(2), 0, 0);
    for _ in 0..GETS {
        let key = work.key(&mut random);
        let mut chain = VersionChain::default();
        let mut look_up = runs.begin_lookup(&key, u64::MAX).expect("it is open");
        while look_up.proceed(&key, &mut chain).expect("nothing fails") {
            blocks += 1;
            let AwaitedBytes { file, offset, length } = look_up.awaited();
            let mut bytes = AlignedBuffer::new(length);
            file.read_at(&mut bytes, offset).expect("nothing fails");
            look_up.take_in(&key, &bytes, &mut chain).expect("nothing fails");
        }
        found += u32::from(!chain.is_empty());
    }
    let reads = blocks + if are_inline { 0 } else { found };
    println!(
        "{value_bytes:>5} bytes, inline {are_inline:>5}: {:>7.1} bytes written for each put, {:.2} reads for each get, {} bytes of runs",
        log + written as f64 / puts,
        f64::from(reads) / f64::from(GETS),
        runs.disk_bytes(),
    );
}

/// Bytes of a key without its table.
const KEY_BYTES: usize = 18;

/// Keys drawn at random, flushed in groups, and merged.
struct Work {
    flushes: u64,
    keys_per_flush: u64,
    /// Different keys.
    keys: u64,
}

struct Ingested {
    written: u64,
    flushed: u64,
    most_runs: usize,
    sum_of_runs: usize,
}

impl Work {
    fn key(&self, random: &mut Rng) -> Vec<u8> {
        [&16u32.to_be_bytes()[..], format!("user{:014}", random.u64(..self.keys)).as_bytes()].concat()
    }

    fn ingest(&self, runs: &Runs<SimDevice>, inline_bytes: Option<usize>) -> Ingested {
        let mut random = Rng::with_seed(1);
        let ranges = Ranges::default();
        let snapshots = Snapshots::new(Arc::new(Retention::default()));
        let context = RunContext::quiet(&snapshots, &ranges);
        let (mut ingested, mut sequence) = (Ingested { written: 0, flushed: 0, most_runs: 0, sum_of_runs: 0 }, 0);
        let (mut written, inline) = (BTreeMap::new(), inline_bytes.map(|bytes| Arc::<[u8]>::from(vec![7; bytes])));
        for flush in 1..=self.flushes {
            let memtable = Memtable::default();
            for _ in 0..self.keys_per_flush {
                let key = self.key(&mut random);
                sequence += 1;
                let entry = Entry { inline: inline.clone(), ..entry(sequence, &mut random) };
                memtable.insert(&key, entry.into(), &mut Superseded::new(), |_| ());
            }
            let position = Position { batch: flush, checksum: 0, segment: 1, life: 1, offset: 4096 };
            let bytes = runs.disk_bytes();
            runs.flush(&memtable.freeze(position, sequence + 1), &[], &context, &|_| ()).expect("nothing fails");
            ingested.flushed += runs.disk_bytes() - bytes;
            note_new_files(runs, &mut written);
            while runs.merge_step(FILE_BYTES, &context).expect("nothing fails") {
                note_new_files(runs, &mut written);
            }
            ingested.most_runs = ingested.most_runs.max(runs.len());
            ingested.sum_of_runs += runs.len();
        }
        Ingested { written: written.values().sum(), ..ingested }
    }
}
