//! Merges side by side in thousands of orders that `shuttle` chooses.

use std::path::Path;
use std::sync::Arc;

use crate::config::MergePolicy;
use crate::format::location::Location;
use crate::format::position::Position;
use crate::format::record::{Form, Kind};
use crate::index::chain::{Entry, Superseded, VersionChain};
use crate::index::memtable::Memtable;
use crate::index::range_tombstones::Ranges;
use crate::index::runs::{RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::Device;
use crate::io::sim::SimDevice;
use crate::retention::Retention;

const STORE: [u8; 16] = [7; 16];
const DIRECTORY: &str = "/runs";

/// Keys of each run. Their values make runs of two tiers: two runs of each are merged.
const KEYS: u64 = 12;
const VALUE_BYTES: [usize; 5] = [4000, 4000, 4000, 100, 100];

/// Bytes of a step: the merge of the long runs takes several.
const STEP_BYTES: u64 = 20_000;

fn key(number: u64) -> Vec<u8> {
    [&16u32.to_be_bytes()[..], &number.to_be_bytes()].concat()
}

/// Does work with what runs ask of a store in which nothing dies and no segment is used again.
fn with_context<T>(work: impl FnOnce(&RunContext<'_>) -> T) -> T {
    let snapshots = Snapshots::new(Arc::new(Retention::default()));
    work(&RunContext::quiet(&snapshots, &Ranges::default()))
}

/// Puts all keys with higher sequences than those of earlier rounds, and flushes them.
fn flush(runs: &Runs<SimDevice>, round: u64, value_bytes: usize) {
    let memtable = Memtable::default();
    for number in 0..KEYS {
        let sequence = round * KEYS + number;
        let location = Location { segment: 1, offset: number as u32 * 16, length: 100 };
        let inline = Some(vec![sequence as u8; value_bytes].into());
        let entry = Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default(), inline };
        memtable.insert(&key(number), entry.into(), &mut Superseded::new(), |_| ());
    }
    let position = Position { batch: round, checksum: 0, segment: 1, life: 1, offset: 4096 };
    let memtable = memtable.freeze(position, (round + 1) * KEYS);
    with_context(|context| runs.flush(&memtable, &[], context, &|_| ())).expect("the machine runs");
}

/// Two threads merge what a third flushes: each key keeps its latest entry, and no file is left over.
fn merge_side_by_side() {
    let device = SimDevice::new(1);
    let mut runs =
        Runs::open((&device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("the machine runs");
    runs.policy = MergePolicy { fan_out: 2, oldest_ratio: 0 };
    let rounds = VALUE_BYTES.len() as u64;
    (1..).zip(VALUE_BYTES).for_each(|(round, value_bytes)| flush(&runs, round, value_bytes));
    let runs = Arc::new(runs);
    let merging = (0..2).map(|_| {
        let runs = Arc::clone(&runs);
        shuttle::thread::spawn(move || {
            for _ in 0..4 {
                with_context(|context| runs.merge_step_unless_busy(STEP_BYTES, context)).expect("the machine runs");
            }
        })
    });
    let flushing = shuttle::thread::spawn({
        let runs = Arc::clone(&runs);
        move || flush(&runs, rounds + 1, 100)
    });
    let threads: Vec<_> = merging.chain([flushing]).collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
    while with_context(|context| runs.merge_step(STEP_BYTES, context)).expect("the machine runs") {}
    for number in 0..KEYS {
        let mut chain = VersionChain::default();
        runs.begin_lookup(&key(number), u64::MAX)
            .expect("it is open")
            .finish(&key(number), &mut chain)
            .expect("no fault");
        let sequences: Vec<_> = chain.entries().iter().map(|entry| entry.sequence).collect();
        assert_eq!(sequences, [(rounds + 1) * KEYS + number]);
    }
    let set = runs.set().expect("it is open");
    let named = set.pieces().count();
    assert_eq!(
        device.list(Path::new(DIRECTORY)).expect("it is there").len(),
        named + 2,
        "files go once they are merged"
    );
}

#[test]
fn interleavings_of_merges_side_by_side() {
    shuttle::check_random(merge_side_by_side, 1_000);
    shuttle::check_pct(merge_side_by_side, 1_000, 3);
}
