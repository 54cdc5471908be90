use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::Backend;
use crate::config::MergePolicy;
use crate::format::location::Location;
use crate::format::position::Position;
use crate::format::record::{Form, Kind};
use crate::index::chain::{Entry, Superseded, VersionChain};
use crate::index::memtable::{Memtable, RangeQuery};
use crate::index::range_tombstones::Ranges;
use crate::index::runs::scan::RunWalk;
use crate::index::runs::tests::named_files;
use crate::index::runs::tests::world::STORE;
use crate::index::runs::{RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::disk::Disk;
use crate::retention::Retention;

const KEYS: u64 = 500;
const ROUNDS: u64 = 150;

fn key(number: u64) -> Vec<u8> {
    [&16u32.to_be_bytes()[..], &number.to_be_bytes()].concat()
}

/// The inline value of a record.
fn value_of(sequence: u64) -> Vec<u8> {
    sequence.to_le_bytes().repeat(1 + sequence as usize % 9)
}

/// Puts all keys, in each round with higher sequences, and flushes them.
fn flush(runs: &Runs<Disk>, round: u64, context: &RunContext<'_>) {
    let memtable = Memtable::default();
    for number in 0..KEYS {
        let sequence = round * KEYS + number;
        let location = Location { segment: 1, offset: number as u32 * 16, length: 100 };
        let inline = Some(value_of(sequence).into());
        let entry = Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default(), inline };
        memtable.insert(&key(number), entry.into(), &mut Superseded::new(), |_| ());
    }
    let position = Position { batch: round, checksum: 0, segment: 1, life: 1, offset: 4096 };
    runs.flush(&memtable.freeze(position, (round + 1) * KEYS), &[], context, &|_| ()).expect("nothing fails");
}

/// Reads the keys while runs are made, merged and removed: what was flushed is found, on a real disk.
#[test]
fn readers_find_what_was_flushed_before() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let device = Disk::open(directory.path(), Backend::Threads, true).expect("the device can be opened");
    let mut runs =
        Runs::open((&device, &Arc::default()), &directory.path().join("runs"), STORE, false).expect("nothing fails");
    runs.policy = MergePolicy { fan_out: 3, oldest_ratio: 1 };
    let (flushed, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let work = |work: &dyn Fn(&RunContext<'_>)| {
        let snapshots = Snapshots::new(std::sync::Arc::new(Retention::default()));
        let ranges = Ranges::default();
        work(&RunContext::quiet(&snapshots, &ranges));
    };
    let read = |number: u64| {
        let round = flushed.load(Ordering::SeqCst);
        let least = if round == 0 { 0 } else { round * KEYS + number };
        let mut chain = VersionChain::default();
        let key = key(number);
        runs.begin_lookup(&key, u64::MAX).expect("it is open").finish(&key, &mut chain).expect("nothing fails");
        let sequence = chain.newest().map_or(0, |entry| entry.sequence);
        let has_its_value = |entry: &Entry| entry.inline.as_deref() == Some(&value_of(entry.sequence)[..]);
        assert!(chain.entries().iter().all(has_its_value), "key {number} in round {round}");
        assert!(sequence >= least, "key {number} has sequence {sequence}, and {least} was flushed");
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            work(&|context| {
                for round in 1..=ROUNDS {
                    flush(&runs, round, context);
                    flushed.store(round, Ordering::SeqCst);
                }
            });
            done.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            work(&|context| {
                while !done.load(Ordering::SeqCst) {
                    runs.merge_step(4096, context).expect("nothing fails");
                }
            });
        });
        scope.spawn(|| {
            work(&|context| {
                while !done.load(Ordering::SeqCst) {
                    runs.merge_step_unless_busy(4096, context).expect("nothing fails");
                }
            });
        });
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                (0..KEYS).step_by(7).for_each(read);
            }
        });
        while !done.load(Ordering::SeqCst) {
            let least = flushed.load(Ordering::SeqCst);
            let range = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
            let all = RangeQuery {
                range,
                whole: range,
                backward: least % 2 == 0,
                limit: usize::MAX,
                newest: u64::MAX,
                cached: false,
            };
            let (found, _) = runs.range(all, &mut RunWalk::default()).expect("nothing fails");
            assert!(least == 0 || found.len() as u64 == KEYS, "a scan finds {} keys", found.len());
        }
    });
    (0..KEYS).for_each(read);
    let files = std::fs::read_dir(directory.path().join("runs")).expect("it is there").count();
    assert_eq!(files, named_files(&runs).len() + 2, "files go with their last reader");
}
