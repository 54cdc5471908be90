//! Scans that read ahead.

use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::sizes::entry;
use super::world::{DIRECTORY, STORE};
use crate::Result;
use crate::cache::Cache;
use crate::format::entry::Entry;
use crate::format::position::Position;
use crate::index::chain::Superseded;
use crate::index::memtable::{Memtable, RangeQuery, Reached};
use crate::index::range_tombstones::Ranges;
use crate::index::runs::scan::RunWalk;
use crate::index::runs::{Compaction, RunContext, Runs};
use crate::index::snapshots::Snapshots;
use crate::io::UNIT_BYTES;
use crate::io::sim::{Call, SimDevice};
use crate::retention::Retention;

const RUNS: u64 = 5;
const KEYS: u32 = 1500;
const KEYS_OF_RUN: usize = 400;

/// Bytes of a cache that has some blocks.
const CACHE_BYTES: u64 = 256 << 10;

/// Bytes that a step of a merge makes: few of all.
const STEP_BYTES: u64 = 128 << 10;

fn key(number: u32) -> Vec<u8> {
    [&16u32.to_be_bytes()[..], format!("key {number:05}").as_bytes()].concat()
}

/// The keys that a scan is to find.
type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Runs whose keys lie between each other, with what they have of each.
struct Scanned {
    device: SimDevice,
    runs: Runs<SimDevice>,
    model: BTreeMap<Vec<u8>, Entry>,
}

impl Scanned {
    /// With so many steps of a merge of all runs, which leave it half done.
    fn new(seed: u64, cache_bytes: u64, steps: usize) -> Scanned {
        let device = SimDevice::new(seed);
        let runs = Runs::open((&device, &Arc::default()), Path::new(DIRECTORY), STORE, false).expect("nothing fails");
        let runs = runs.with_cache(Arc::new(Cache::of_blocks(cache_bytes, cache_bytes).expect("there is memory")));
        let (mut random, mut model) = (Rng::with_seed(seed), BTreeMap::new());
        let (snapshots, ranges) = (Snapshots::new(Arc::new(Retention::default())), Ranges::default());
        let context = RunContext::quiet(&snapshots, &ranges);
        for run in 1..=RUNS {
            let memtable = Memtable::default();
            for at in 0..KEYS_OF_RUN {
                let sequence = run * KEYS as u64 + at as u64;
                // Some blocks have more units than are read at once.
                let length = if random.u32(..40) == 0 { 5 * UNIT_BYTES } else { 1000 };
                let inline = Some(vec![sequence as u8; random.usize(..length)].into());
                let (key, entry) = (key(random.u32(..KEYS)), Entry { inline, ..entry(sequence, &mut random) });
                memtable.insert(&key, entry.clone().into(), &mut Superseded::new(), |_| ());
                model.insert(key, entry);
            }
            let position = Position { batch: run, checksum: 0, segment: 1, life: 1, offset: 4096 };
            let immutable = memtable.freeze(position, (run + 1) * KEYS as u64);
            runs.flush(&immutable, &[], &context, &|_| ()).expect("nothing fails");
        }
        for _ in 0..steps {
            assert!(runs.compact_step(STEP_BYTES, Compaction::of_all(1 << 20), &context).expect("nothing fails"));
        }
        Scanned { device, runs, model }
    }

    /// What a scan of some keys finds that goes on from step to step. As memtables do, some steps come to a key before the range's end.
    fn scan(&self, range: &KeyBounds, backward: bool, cached: bool, random: &mut Rng) -> Result<Vec<(Vec<u8>, Entry)>> {
        let (mut walk, mut found) = (RunWalk::default(), Vec::new());
        let (mut start, mut end) = range.clone();
        loop {
            let whole = (as_slice(&start), as_slice(&end));
            let near = key(random.u32(..KEYS));
            let is_cut = random.u32(..3) == 0 && whole.contains(&&near[..]) && whole.0 != Bound::Excluded(&near);
            let cut = match backward {
                _ if !is_cut => whole,
                true => (Bound::Included(&near[..]), whole.1),
                false => (whole.0, Bound::Excluded(&near[..])),
            };
            let query = RangeQuery { range: cut, whole, backward, limit: 20, newest: u64::MAX, cached };
            let (part, reached) = self.runs.range(query, &mut walk)?;
            let part = part.into_iter().map(|(key, chain)| (key.to_vec(), chain.entries()[0].clone()));
            if backward {
                found.extend(part.rev())
            } else {
                found.extend(part)
            }
            match reached {
                Reached::End if is_cut && backward => end = Bound::Excluded(near),
                Reached::End if is_cut => start = Bound::Included(near),
                Reached::End => return Ok(found),
                Reached::Key(key) if backward => end = Bound::Excluded(key.into()),
                Reached::Key(key) => start = Bound::Excluded(key.into()),
            }
        }
    }

    /// Scans all and parts in both directions, with a cache and without. Where calls fail a scan may.
    fn check(&self, random: &mut Rng, may_fail: bool) -> usize {
        let mut failed = 0;
        for part in 0..8 {
            let (one, other) = (random.u32(..KEYS), random.u32(..KEYS));
            let bounds = [Bound::Included, Bound::Excluded];
            let mut bound = |number| bounds[random.usize(..2)](key(number));
            let range = match part < 4 {
                true => (Bound::Unbounded, Bound::Unbounded),
                false => (bound(one.min(other)), bound(one.max(other) + 1)),
            };
            let (backward, cached) = (part % 2 == 1, part / 2 % 2 == 1);
            let what = format!("{range:?}, backward: {backward}, cached: {cached}");
            let found = match self.scan(&range, backward, cached, random) {
                Err(error) if may_fail => {
                    assert!(error.to_string().contains("Input/output"), "{what}: {error}");
                    failed += 1;
                    continue;
                }
                found => found.expect("nothing fails"),
            };
            let mut known: Vec<_> = self.model.range(range.clone()).collect();
            if backward {
                known.reverse();
            }
            assert_eq!(found.len(), known.len(), "{what}");
            for ((key, entry), (known_key, known)) in found.iter().zip(known) {
                assert!(key == known_key && entry == known && entry.inline == known.inline, "{what}: {key:?}");
            }
        }
        failed
    }
}

#[test]
fn scans_that_read_ahead_find_what_there_is() {
    for seed in 0..12 {
        println!("seed {seed}");
        let scanned = Scanned::new(seed, seed % 2 * CACHE_BYTES, seed as usize % 4);
        scanned.check(&mut Rng::with_seed(seed), false);
        assert!(scanned.device.counters().most_queued_reads > 0, "the queue was used");
    }
}

/// A scan does without its queue when that fails, at the first entry or at a later one.
#[test]
fn scans_go_on_where_their_queue_fails() {
    for (seed, skip) in [0, 1, 2, 5, 20].into_iter().enumerate() {
        println!("seed {seed}");
        let scanned = Scanned::new(seed as u64, 0, 2);
        scanned.device.fail(Call::Enter, skip, u64::MAX, |_| true);
        scanned.check(&mut Rng::with_seed(seed as u64), false);
        assert!(scanned.device.counters().failed[Call::Enter as usize] > 0);
    }
}

/// Reads that fail once are made again, alone if they were made ahead; those that fail always end the scan.
#[test]
fn scans_tell_of_reads_that_fail() {
    for seed in 0..8 {
        println!("seed {seed}");
        let scanned = Scanned::new(seed, 0, seed as usize % 3);
        let mut random = Rng::with_seed(seed);
        for _ in 0..20 {
            scanned
                .device
                .fail(Call::Read, random.u64(..100), 1, |path| path.extension().is_some_and(|end| end == "run"));
            scanned.check(&mut random, true);
        }
        scanned.device.fail(Call::Read, 30, u64::MAX, |_| true);
        assert_eq!(scanned.check(&mut random, true), 8);
    }
}
