use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::named_files;
use super::sizes::entry;
use super::world::{DIRECTORY, STORE};
use crate::filter::TableFilter;
use crate::format::place::Counting;
use crate::format::position::Position;
use crate::index::chain::{Superseded, VersionChain};
use crate::index::memtable::Memtable;
use crate::index::range_tombstones::Ranges;
use crate::index::runs::ingest::{Ingested, RunIngest};
use crate::index::runs::{RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::sim::SimDevice;
use crate::retention::Retention;
use crate::{Compression, Error};

/// The id of the table that is ingested.
const TABLE: u32 = 17;

fn open(device: &SimDevice) -> Runs<SimDevice> {
    Runs::open((device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails")
}

fn key(table: u32, number: u64) -> Vec<u8> {
    [&table.to_be_bytes()[..], format!("key {number:012}").as_bytes()].concat()
}

/// Adds so many keys to an ingest.
fn add(runs: &Runs<SimDevice>, ingest: &mut RunIngest<SimDevice>, numbers: std::ops::Range<u64>) -> Result<(), Error> {
    let mut random = Rng::with_seed(numbers.start);
    numbers.into_iter().try_for_each(|number| {
        let (key, entry) = (key(TABLE, number).as_slice().into(), entry(1 + number, &mut random));
        ingest.add(runs, Ingested { key, entry, life: 1, chunks: Vec::new() })
    })
}

fn run_files(device: &SimDevice) -> usize {
    device.file_names().iter().filter(|path| path.extension().is_some_and(|end| end == "run")).count()
}

/// The next opening gives the same numbers to files of its own.
#[test]
fn an_ingest_makes_no_file_once_the_runs_are_closed() {
    let device = SimDevice::new(1);
    let runs = open(&device);
    let mut ingest = runs.begin_ingest(TABLE, 1, TableFilter::None, Compression::None, Counting::AsTheyLie);
    runs.close();
    assert!(matches!(add(&runs, &mut ingest, 0..10), Err(Error::Closed)));
    assert_eq!(run_files(&device), 0);
    let runs = open(&device);
    let mut ingest = runs.begin_ingest(TABLE, 1, TableFilter::None, Compression::None, Counting::AsTheyLie);
    add(&runs, &mut ingest, 0..10).expect("there is room");
    assert_eq!(run_files(&device), 1);
    runs.close();
    let next = open(&device);
    assert_eq!(run_files(&device), 0, "what the last one has begun is removed");
    let mut beside = next.begin_ingest(TABLE, 1, TableFilter::None, Compression::None, Counting::AsTheyLie);
    add(&next, &mut beside, 0..10).expect("there is room");
    drop(ingest);
    assert_eq!(run_files(&device), 1, "that of the next opening is not");
}

/// Its keys lie apart from all others, so it takes no part in the merges of shorter runs.
#[test]
fn an_ingested_run_is_not_written_again() {
    let (device, mut random) = (SimDevice::new(1), Rng::with_seed(1));
    let runs = open(&device);
    let (ranges, snapshots) = (Ranges::default(), Snapshots::new(Arc::new(Retention::default())));
    let context = RunContext::quiet(&snapshots, &ranges);
    for sequence in 1..=4 {
        let memtable = Memtable::default();
        memtable.insert(&key(16, sequence), entry(sequence, &mut random).into(), &mut Superseded::new(), |_| ());
        let position = Position { batch: sequence, checksum: 0, segment: 1, life: 1, offset: 4096 };
        runs.flush(&memtable.freeze(position, sequence + 1), &[], &context, &|_| ()).expect("nothing fails");
    }
    let mut ingest = runs.begin_ingest(TABLE, 5, TableFilter::None, Compression::None, Counting::AsTheyLie);
    add(&runs, &mut ingest, 5..100_000).expect("there is room");
    ingest.complete(&runs).expect("there is room");
    runs.name_ingested(ingest, 4, &context).expect("nothing fails");
    assert_eq!(runs.len(), 5);
    let ingested: BTreeMap<_, _> = named_files(&runs).into_iter().filter(|(_, bytes)| *bytes > 1 << 20).collect();
    assert!(!ingested.is_empty());
    while runs.merge_step(u64::MAX, &context).expect("nothing fails") {}
    assert_eq!(runs.len(), 2, "the short ones are merged");
    let named = named_files(&runs);
    assert!(ingested.keys().all(|path| named.contains_key(path)), "the long one is not written again");
    for at in [5, 99_999] {
        let mut chain = VersionChain::default();
        let key = key(TABLE, at);
        runs.begin_lookup(&key, u64::MAX).expect("it is open").finish(&key, &mut chain).expect("nothing fails");
        assert_eq!(chain.entries().len(), 1);
    }
    assert_eq!(runs.settled_sequence().expect("it is open"), 2, "that of the oldest flush");
    runs.close();
    assert_eq!(open(&device).len(), 2);
}
