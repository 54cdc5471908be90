//! Scans over keys that were deleted: sorted runs have them until a merge with the oldest run.

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::{Batch, Db, Durability, IndexKind, Options, Scan, ScanOptions, Step, Table};
use fastrand::Rng;
use support::{ORDERED, open, quiet, scratch, value};

const NONE: Durability = Durability::None;

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

/// Keys spread over several runs, and their deletes over as many others: a scan reads the blocks of them all once, however few
/// records it wants and however many steps it takes.
#[test]
fn a_scan_over_deleted_keys_reads_each_block_of_the_runs_once() {
    const KEYS: u32 = 100_000;
    const RUNS: u32 = 4;
    let (directory, device) = (scratch(), SimDevice::new(1));
    device.set_real_directory(directory.path());
    let root = Path::new("/store");
    device.create_dir(root).expect("a directory");
    let options = Options { background: false, segment_bytes: 4 << 20, cache_bytes: 0, ..Options::default() };
    let db = Db::open_on(device.clone(), root, options).expect("a store");
    let table = db.create_table("t", IndexKind::Lsm).expect("a table");
    let (first, last) = (key(0), key(KEYS + 1));
    table.put_with(&first, b"first", NONE).expect("a put");
    table.put_with(&last, b"last", NONE).expect("a put");
    for is_delete in [false, true] {
        for run in 0..RUNS {
            for number in (1 + run..=KEYS).step_by(RUNS as usize) {
                match is_delete {
                    false => table.put_with(&key(number), b"value", NONE).map(drop),
                    true => table.delete_with(&key(number), NONE).map(drop),
                }
                .expect("a change");
            }
            db.checkpoint().expect("a checkpoint");
        }
    }
    let metrics = db.metrics();
    assert_eq!(metrics.runs, u64::from(2 * RUNS), "nothing was merged");
    let within = ScanOptions::all().after(&first).before(&last);
    let forward = ScanOptions::all().after(&first);
    let backward = ScanOptions::all().before(&last).backward();
    for (options, found) in [
        (forward.clone().limit(1), Some(&last)),
        (forward, Some(&last)),
        (backward.clone().limit(1), Some(&first)),
        (backward, Some(&first)),
        (within.clone().limit(1), None),
        (within.backward(), None),
    ] {
        let before = device.counters().read_bytes;
        let mut scan = table.scan(options.clone().keys_only()).expect("a scan begins");
        let record = scan.next_record().expect("a scan goes on");
        assert_eq!(record.map(|(key, _)| key.to_vec()), found.map(|key| key.to_vec()), "{options:?}");
        let read_bytes = device.counters().read_bytes - before;
        assert!(read_bytes <= metrics.run_file_bytes, "{read_bytes} of {} bytes: {options:?}", metrics.run_file_bytes);
    }
}

/// Numbers of keys and their values.
type Records = Vec<(u32, Vec<u8>)>;

/// What a table has, in stretches of keys and of deleted keys, of any length.
struct Stretches {
    table: Table,
    records: BTreeMap<u32, Vec<u8>>,
}

impl Stretches {
    fn change(&mut self, random: &mut Rng) {
        let mut number = 0;
        while number < 4000 {
            let most = [3, 30, 1500][random.usize(..3)];
            let end = number + 1 + random.u32(..most);
            match random.u8(..8) {
                0..3 => (number..end).for_each(|number| self.put(number, random)),
                3..6 => (number..end).for_each(|number| self.delete(number)),
                6 => {
                    self.table.delete_range_with(&key(number), &key(end), NONE).expect("a delete");
                    self.records.retain(|known, _| !(number..end).contains(known));
                }
                _ => {}
            }
            number = end;
        }
    }

    fn put(&mut self, number: u32, random: &mut Rng) {
        let value = value(random.u64(..), random.usize(..200));
        self.table.put_with(&key(number), &value, NONE).expect("a put");
        self.records.insert(number, value);
    }

    fn delete(&mut self, number: u32) {
        self.table.delete_with(&key(number), NONE).expect("a delete");
        self.records.remove(&number);
    }

    /// Scans from all sides, of as many records, with what each must find.
    fn scans(&self, random: &mut Rng) -> Vec<(Scan, Records)> {
        let mut scans = Vec::new();
        for backward in [false, true] {
            for limit in [1, 2, 17, 600, usize::MAX] {
                let from = random.u32(..4000);
                let options = ScanOptions::all().limit(limit as u64);
                let records = self.records.iter().map(|(number, value)| (*number, value.clone()));
                let (options, expected) = match backward {
                    false => (options.from(&key(from)), records.filter(|(number, _)| *number >= from).collect()),
                    true => {
                        let records = records.filter(|(number, _)| *number <= from).rev();
                        (options.to(&key(from)).backward(), records.collect::<Vec<_>>())
                    }
                };
                let expected = expected.into_iter().take(limit).collect();
                scans.push((self.table.scan(options).expect("a scan begins"), expected));
            }
        }
        scans
    }
}

/// Scans go on while the table is changed, its memtable is committed, and its runs are merged.
#[test]
fn scans_find_their_records_between_deleted_keys_whatever_happens_meanwhile() {
    for kind in ORDERED {
        for seed in 0..6 {
            let (directory, mut random) = (scratch(), Rng::with_seed(seed));
            let options = Options { segment_bytes: 4 << 20, ..quiet() };
            let (db, table) = open(directory.path(), kind, &options);
            let mut stretches = Stretches { table, records: BTreeMap::new() };
            for _ in 0..5 {
                stretches.change(&mut random);
                db.checkpoint().expect("a checkpoint");
            }
            stretches.change(&mut random);
            let mut scans = stretches.scans(&mut random);
            let mut found = vec![Vec::new(); scans.len()];
            for round in 0.. {
                let most = [1, 10, 100, 2000][random.usize(..4)];
                for ((scan, _), found) in scans.iter_mut().zip(&mut found) {
                    for record in scan.by_ref().take(most) {
                        let (key, value) = record.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
                        found.push((u32::from_be_bytes(key.try_into().expect("four bytes")), value));
                    }
                }
                if scans.iter().zip(&found).all(|((_, expected), found)| found.len() >= expected.len()) {
                    break;
                }
                assert!(round < 1000, "{}, seed {seed}: a scan has ended too early", kind.name());
                match round % 4 {
                    0 => stretches.change(&mut random),
                    1 => db.checkpoint().map(drop).expect("a checkpoint"),
                    2 => db.step(Step::Upkeep).expect("upkeep"),
                    _ => {}
                }
            }
            for ((mut scan, expected), found) in scans.into_iter().zip(found) {
                assert!(found == expected, "{}, seed {seed}: {} of {}", kind.name(), found.len(), expected.len());
                assert!(scan.next().is_none());
            }
        }
    }
}

/// Batches of deletes that come faster than upkeep settles tags: none stays in a `hash` index, or is left out of what is said to be exact.
#[test]
fn deletes_in_batches_leave_no_keys() {
    const KEYS: u32 = 200_000;
    let directory = scratch();
    let options = Options { direct: false, ..quiet() };
    let (db, table) = open(directory.path(), IndexKind::Hash, &options);
    for number in 0..KEYS {
        table.put_with(&key(number), b"value", NONE).expect("a put");
    }
    let mut numbers = (0..KEYS).peekable();
    while numbers.peek().is_some() {
        let mut batch = Batch::default();
        for number in numbers.by_ref().take(100) {
            batch.delete(&table, &key(number)).expect("a delete fits");
        }
        db.write_with(&batch, NONE).expect("a write");
    }
    while db.stats().unsettled_tags > 0 {
        db.step(Step::Write).expect("a step");
        db.step(Step::Settle).expect("a step");
    }
    let stats = db.stats();
    assert!(stats.tables[0].keys_exact);
    assert_eq!(stats.tables[0].keys, 0);
}
