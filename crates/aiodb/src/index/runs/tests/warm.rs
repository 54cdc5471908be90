use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::named_files;
use super::sizes::entry;
use super::world::{DIRECTORY, STORE};
use crate::Compression;
use crate::cache::Cache;
use crate::error::Error;
use crate::filter::TableFilter;
use crate::format::place::Counting;
use crate::format::position::Position;
use crate::index::chain::Superseded;
use crate::index::memtable::Memtable;
use crate::index::range_tombstones::Ranges;
use crate::index::runs::ingest::{Ingested, RunIngest};
use crate::index::runs::warm::WarmedTo;
use crate::index::runs::{RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::sim::SimDevice;
use crate::retention::Retention;

const TABLE: u32 = 17;

/// A table that comes in by itself.
const INGESTED: u32 = 18;

struct Warmed {
    device: SimDevice,
    runs: Runs<SimDevice>,
    snapshots: Snapshots,
    ranges: Ranges,
    random: Rng,
    next_sequence: u64,
    to: WarmedTo,
}

impl Warmed {
    fn new() -> Warmed {
        let device = SimDevice::new(1);
        let runs = Runs::open((&device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails");
        let runs = runs.with_cache(Arc::new(Cache::of_blocks(4 << 20, 4 << 20).expect("there is memory")));
        let snapshots = Snapshots::new(Arc::new(Retention::default()));
        let (ranges, random) = (Ranges::default(), Rng::with_seed(1));
        Warmed { device, runs, snapshots, ranges, random, next_sequence: 1, to: WarmedTo::default() }
    }

    /// Makes a run of so many keys.
    fn flush(&mut self, keys: u64) {
        let memtable = Memtable::default();
        for number in 0..keys {
            let entry = entry(self.next_sequence, &mut self.random);
            memtable.insert(&key(TABLE, number), entry.into(), &mut Superseded::new(), |_| ());
            self.next_sequence += 1;
        }
        let position = Position { batch: self.next_sequence, checksum: 0, segment: 1, life: 1, offset: 4096 };
        let context = RunContext::quiet(&self.snapshots, &self.ranges);
        self.runs.flush(&memtable.freeze(position, self.next_sequence), &[], &context, &|_| ()).expect("nothing fails");
    }

    /// A run that is written, and not named yet.
    fn begin_ingest(&mut self, keys: u64) -> RunIngest<SimDevice> {
        let (base, random) = (self.next_sequence, &mut self.random);
        let counting = Counting::AsTheyLie;
        let mut ingest = self.runs.begin_ingest(INGESTED, base, TableFilter::None, Compression::None, counting);
        for number in 0..keys {
            let (key, entry) = (key(INGESTED, number).as_slice().into(), entry(base + number, random));
            ingest.add(&self.runs, Ingested { key, entry, life: 1, chunks: Vec::new() }).expect("there is room");
        }
        self.next_sequence += keys;
        ingest.complete(&self.runs).expect("there is room");
        ingest
    }

    /// Goes on until there is nothing to do; returns what went wrong.
    fn warm(&mut self) -> Vec<Error> {
        let mut errors = Vec::new();
        for _ in 0..1000 {
            match self.runs.warm_some(&mut self.to, &[TABLE, INGESTED]) {
                Ok(true) => {}
                Ok(false) => return errors,
                Err(error) => errors.push(error),
            }
        }
        panic!("it comes to no end: {errors:?}");
    }

    /// Of a table, how many blocks are in the cache, and how many there are.
    fn blocks(&self, table: u32) -> (u64, u64) {
        (self.runs.cache.share_of(table).entries, self.runs.share_of(table).blocks)
    }
}

fn key(table: u32, number: u64) -> Vec<u8> {
    [&table.to_be_bytes()[..], format!("key {number:012}").as_bytes()].concat()
}

#[test]
fn what_flushes_and_merges_write_comes_to_memory() {
    let mut world = Warmed::new();
    for keys in [2000, 1000, 3000] {
        world.flush(keys);
        assert!(world.warm().is_empty());
        let (cached, blocks) = world.blocks(TABLE);
        assert!(cached == blocks && blocks > 5, "{cached} of {blocks} blocks");
    }
    let context = RunContext::quiet(&world.snapshots, &world.ranges);
    while world.runs.merge_step(u64::MAX, &context).expect("nothing fails") {}
    assert!(world.warm().is_empty());
    let (cached, blocks) = world.blocks(TABLE);
    assert_eq!(cached, blocks, "also of files that were merged");
}

/// A file has its number when it is begun. Another one may be named, and warmed, before it is.
#[test]
fn a_file_that_is_named_after_one_with_a_higher_number_comes_to_memory() {
    let mut world = Warmed::new();
    let ingest = world.begin_ingest(2000);
    world.flush(2000);
    assert!(world.warm().is_empty());
    let context = RunContext::quiet(&world.snapshots, &world.ranges);
    world.runs.name_ingested(ingest, 4, &context).expect("nothing fails");
    assert!(world.warm().is_empty());
    let (cached, blocks) = world.blocks(INGESTED);
    assert!(cached == blocks && blocks > 5, "{cached} of {blocks} blocks");
}

/// A block that cannot be read is said to be so once; the other files come to memory, and it is not read again.
#[test]
fn a_file_that_cannot_be_read_is_left_out() {
    let mut world = Warmed::new();
    world.flush(2000);
    let damaged = named_files(&world.runs).into_keys().next().expect("there is one");
    let of_first = world.runs.share_of(TABLE).blocks;
    world.device.corrupt(&damaged, 5000, 1);
    world.flush(2000);
    let errors = world.warm();
    assert!(matches!(&errors[..], [Error::Corruption { path, .. }] if *path == damaged), "{errors:?}");
    let (cached, blocks) = world.blocks(TABLE);
    assert!(
        cached >= blocks - of_first && cached < blocks,
        "{cached} of {blocks} blocks, {of_first} in the first file"
    );
    assert!(world.warm().is_empty(), "it is not read again");
    world.flush(1000);
    assert!(world.warm().is_empty(), "nor when there are more files");
}
