//! Versions in files against versions in memory alone: snapshots see the same.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;

use super::scratch::ScratchDirectory;
use super::spill::choose;
use super::{Seen, Version, VersionCounts, Versions};
use crate::format::entry::Entry;
use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::index::chain::VersionChain;
use crate::index::memtable::{KeyRange, Reached};
use crate::index::range_tombstones::RangeTombstone;
use crate::index::snapshots::{Snapshots, View};
use crate::io::Device;
use crate::io::sim::{Call, SimDevice};
use crate::retention::Retention;
use crate::{Error, Result};

const DIRECTORY: &str = "/store/index/versions";

const KEYS: u64 = 24;

/// Versions in the list before it becomes a layer.
const LISTED: usize = 8;

fn entry(sequence: u64, offset: u32) -> Entry {
    let location = Location { segment: 1, offset: 16 * offset, length: 16 };
    Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default(), inline: None }
}

fn key(number: u64) -> Vec<u8> {
    // Some are longer than a unit.
    let mut key = format!("key {number:04}").into_bytes();
    key.resize(if number.is_multiple_of(11) { 5000 } else { 8 + number as usize % 3 }, b'k');
    key
}

fn machine() -> SimDevice {
    let device = SimDevice::new(1);
    device.create_dir(Path::new("/store/index")).expect("a directory can be made");
    device
}

fn spilling(device: &SimDevice) -> Snapshots {
    spilling_from(device, LISTED)
}

/// So many versions are in the list before it becomes a layer.
fn spilling_from(device: &SimDevice, listed: usize) -> Snapshots {
    let directory = ScratchDirectory::new(device, DIRECTORY.into());
    Snapshots::new(Arc::new(Retention::default())).spilling_to(Arc::new(directory), &Arc::default(), [7; 16], listed)
}

fn spill_all(snapshots: &Snapshots) {
    while snapshots.spill_some().expect("there is room") {}
}

fn files(device: &SimDevice) -> usize {
    device.file_names().iter().filter(|path| path.starts_with(DIRECTORY)).count()
}

fn view(sequence: u64) -> View {
    View { sequence, at_ms: None, cached: false }
}

fn seen(snapshots: &Snapshots, key: &[u8], sequence: u64) -> Result<VersionChain> {
    let mut chain = VersionChain::default();
    snapshots.add_versions(key, &view(sequence), &mut chain).map(|()| chain)
}

/// What a snapshot sees of a range, in steps of so many keys.
fn seen_in(
    snapshots: &Snapshots,
    range: KeyRange<'_>,
    backward: bool,
    limit: usize,
    sequence: u64,
) -> Vec<(Vec<u8>, VersionChain)> {
    let (mut from, mut to) = (range.0.map(<[u8]>::to_vec), range.1.map(<[u8]>::to_vec));
    let mut all = Vec::new();
    loop {
        let rest = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
        let (found, reached) = snapshots.versions_in(rest, backward, limit).expect("files can be read");
        assert!(found.len() <= limit);
        for (key, versions) in found {
            let mut chain = VersionChain::default();
            super::insert_seen(&versions, sequence, &mut chain);
            if !chain.is_empty() {
                all.push((key.to_vec(), chain));
            }
        }
        match reached {
            Reached::End => return all,
            Reached::Key(key) if backward => to = Excluded(key.into()),
            Reached::Key(key) => from = Excluded(key.into()),
        }
    }
}

/// A store's worth of superseded records, retained twice.
struct Both {
    spilled: Snapshots,
    in_memory: Snapshots,
    /// The sequences of snapshots, with their holds in both.
    alive: Vec<(u64, [u64; 2])>,
    /// For each key its records: sequence, by what it was superseded, and how often a copy of it was.
    records: Vec<Vec<(u64, u64, u32)>>,
    current: Vec<u64>,
    next: u64,
}

impl Both {
    fn each(&self, work: impl Fn(&Snapshots)) {
        work(&self.spilled);
        work(&self.in_memory);
    }

    /// Overwrites a key: the record before is superseded, perhaps found out in a layer below.
    fn overwrite(&mut self, number: usize, later: bool) {
        let (from, until) = (std::mem::replace(&mut self.current[number], self.next), self.next);
        self.next += 1;
        self.records[number].push((from, until, 0));
        self.supersede(number, (from, until, 0), later);
    }

    fn supersede(&self, number: usize, (from, until, copy): (u64, u64, u32), later: bool) {
        let superseded = [(entry(from, copy), until)].into_iter().collect();
        self.each(|snapshots| match later {
            true => snapshots.retain(&key(number as u64), &superseded),
            false => snapshots.retain_below(&key(number as u64), &superseded),
        });
    }

    /// Another copy of a superseded record is superseded by the same as that.
    fn supersede_copy(&mut self, number: usize, random: &mut Rng) {
        let Some(last) = self.records[number].len().checked_sub(1) else { return };
        let record = &mut self.records[number][random.usize(..=last)];
        record.2 += 1;
        let record = *record;
        self.supersede(number, record, random.bool());
    }

    /// A range delete came before what superseded records of its keys, and is forgotten.
    fn end_range(&mut self, random: &mut Rng) {
        let mut bounds = [key(random.u64(..KEYS)), key(random.u64(..KEYS))];
        bounds.sort();
        let [start, end] = bounds.map(Box::from);
        let range = RangeTombstone { start, end, sequence: random.u64(1..self.next) };
        for (number, records) in self.records.iter_mut().enumerate() {
            let ended =
                |record: &&mut (u64, u64, u32)| range.contains(&key(number as u64)) && record.0 < range.sequence;
            records.iter_mut().filter(ended).for_each(|record| record.1 = record.1.min(range.sequence));
        }
        self.each(|snapshots| snapshots.end_at(std::slice::from_ref(&range)));
    }

    fn begin(&mut self) {
        let sequence = self.next - 1;
        let holds = [&self.spilled, &self.in_memory].map(|snapshots| {
            let (hold, _) = snapshots.begin(0);
            snapshots.set_sequence(hold, sequence);
            hold
        });
        self.alive.push((sequence, holds));
    }

    fn end(&mut self, number: usize) {
        let (_, [spilled, in_memory]) = self.alive.remove(number);
        self.spilled.end(spilled);
        self.in_memory.end(in_memory);
    }

    /// Both show the same to all snapshots.
    fn check(&self, random: &mut Rng, what: &str) {
        for &(sequence, _) in &self.alive {
            for number in 0..KEYS {
                let [found, wanted] = [&self.spilled, &self.in_memory]
                    .map(|snapshots| seen(snapshots, &key(number), sequence).expect("files can be read"));
                assert_eq!(found, wanted, "{what}: key {number} at {sequence}");
            }
            let bounds = [key(random.u64(..KEYS)), key(random.u64(..KEYS))];
            let [first, last] = &bounds;
            let ranges: [KeyRange<'_>; 4] = [
                (Unbounded, Unbounded),
                (Included(first), Unbounded),
                (Excluded(first), Included(last)),
                (Unbounded, Excluded(last)),
            ];
            for range in ranges {
                let (backward, limit) = (random.bool(), random.usize(1..10));
                let [found, wanted] = [&self.spilled, &self.in_memory]
                    .map(|snapshots| seen_in(snapshots, range, backward, limit, sequence));
                assert_eq!(found, wanted, "{what}: {range:?} at {sequence}, backward: {backward}");
            }
        }
    }
}

/// Whatever is superseded, ended, written, merged and given up, in whatever order: snapshots see in files what they would see in memory.
#[test]
fn files_show_what_memory_would() {
    let (mut written, mut merged) = (0, 0);
    for seed in 0..60 {
        let (mut random, device) = (Rng::with_seed(seed), machine());
        let in_memory = Snapshots::new(Arc::new(Retention::default()));
        let (records, current) = (vec![Vec::new(); KEYS as usize], (1..=KEYS).collect());
        let mut both =
            Both { spilled: spilling(&device), in_memory, alive: Vec::new(), records, current, next: KEYS + 1 };
        for step in 0..600 {
            let number = random.usize(..KEYS as usize);
            match random.u8(..100) {
                0..=54 => both.overwrite(number, random.bool()),
                55..=64 => both.supersede_copy(number, &mut random),
                65..=67 => both.end_range(&mut random),
                68..=72 if both.alive.len() < 6 => both.begin(),
                73..=74 if !both.alive.is_empty() => both.end(random.usize(..both.alive.len())),
                75..=94 => {
                    for _ in 0..random.usize(1..=6) {
                        let before = both.spilled.version_counts();
                        both.spilled.spill_some().expect("there is room");
                        let after = both.spilled.version_counts();
                        written += usize::from(after.in_files > before.in_files);
                        merged += usize::from(after.in_memory == before.in_memory && after.in_files < before.in_files);
                    }
                }
                _ => both.check(&mut random, &format!("seed {seed}, step {step}")),
            }
        }
        while !both.alive.is_empty() {
            both.end(0);
        }
        assert_eq!(both.spilled.version_counts(), VersionCounts::default(), "seed {seed}: nobody needs any");
        spill_all(&both.spilled);
        assert_eq!(files(&device), 0, "seed {seed}: nor their files");
    }
    assert!(
        written > 500 && merged > 20,
        "{written} times something was written, {merged} times something was given up"
    );
}

/// Superseded records of many keys.
fn overwrite_all(snapshots: &Snapshots, keys: std::ops::Range<u64>, until: u64) {
    for number in keys {
        snapshots.retain(&number.to_be_bytes(), &[(entry(1, number as u32), until)].into_iter().collect());
    }
}

#[test]
fn memory_has_few_of_many_versions_and_few_files_have_the_others() {
    let device = machine();
    let snapshots = spilling(&device);
    let (hold, ended) = snapshots.begin(0);
    snapshots.set_sequence(hold, 10);
    for keys in (0..4000).step_by(10) {
        overwrite_all(&snapshots, keys..keys + 10, 11);
        spill_all(&snapshots);
        let VersionCounts { in_memory, in_files, .. } = snapshots.version_counts();
        assert_eq!((in_memory + in_files) as u64, keys + 10);
        assert!(in_memory <= 2 * LISTED, "{in_memory} of {keys} are in memory");
    }
    assert!(files(&device) < 20, "{} files", files(&device));
    assert!(!ended.load(std::sync::atomic::Ordering::SeqCst));
    for number in [0, 1, 1999, 3999] {
        let found = seen(&snapshots, &u64::to_be_bytes(number), 10).expect("files can be read");
        assert_eq!(found.newest(), Some(&entry(1, number as u32)));
    }
    assert!(seen(&snapshots, &u64::to_be_bytes(4000), 10).expect("files can be read").is_empty());
    snapshots.end(hold);
    assert_eq!(files(&device), 0);
}

/// What the older of two snapshots alone sees goes when the next merge comes, and a file that nobody needs goes at once.
#[test]
fn files_go_with_the_snapshots_that_need_them() {
    let device = machine();
    let snapshots = spilling(&device);
    let (older, _) = snapshots.begin(0);
    snapshots.set_sequence(older, 10);
    overwrite_all(&snapshots, 0..LISTED as u64, 15);
    spill_all(&snapshots);
    let (newer, _) = snapshots.begin(0);
    snapshots.set_sequence(newer, 20);
    overwrite_all(&snapshots, 100..100 + LISTED as u64, 25);
    spill_all(&snapshots);
    assert_eq!(files(&device), 2);
    snapshots.end(older);
    assert_eq!(files(&device), 1, "the newer one sees nothing of the first");
    snapshots.end(newer);
    assert_eq!(files(&device), 0);
}

/// On a full disk versions stay in memory as long as that has room; then the oldest snapshot ends.
#[test]
fn the_oldest_snapshot_ends_when_neither_disk_nor_memory_has_room() {
    let device = machine();
    let snapshots = spilling(&device);
    let (oldest, oldest_ended) = snapshots.begin(0);
    snapshots.set_sequence(oldest, 10);
    let (newer, newer_ended) = snapshots.begin(0);
    snapshots.set_sequence(newer, 20);
    let is_on = |ended: &Arc<crate::sync::atomic::AtomicBool>| ended.load(std::sync::atomic::Ordering::SeqCst);
    device.set_capacity(Some(device.used_bytes() + (64 << 10)));
    snapshots.leave_free(64 << 10);
    overwrite_all(&snapshots, 0..LISTED as u64, 15);
    let refused = snapshots.spill_some();
    assert!(matches!(refused, Err(Error::DiskFull { .. })), "{refused:?}");
    assert_eq!(files(&device), 0, "what others need stays free");
    assert!(!snapshots.is_short(), "memory has room");
    overwrite_all(&snapshots, 100..100 + LISTED as u64, 15);
    assert!(snapshots.is_short() && !is_on(&oldest_ended));
    overwrite_all(&snapshots, 200..200 + 3 * LISTED as u64, 15);
    assert!(is_on(&oldest_ended) && !is_on(&newer_ended));
    assert_eq!(snapshots.version_counts().in_memory, 0, "only the oldest saw them");
    overwrite_all(&snapshots, 300..300 + 2 * LISTED as u64, 25);
    device.set_capacity(None);
    spill_all(&snapshots);
    assert!(!snapshots.is_short() && files(&device) > 0, "there is room again");
    assert!(seen(&snapshots, &u64::to_be_bytes(300), 20).expect("files can be read").newest().is_some());
}

/// A disk that fails: what could not be written is still in memory, and is written later.
#[test]
fn a_write_that_fails_loses_nothing() {
    let device = machine();
    let snapshots = spilling(&device);
    let (hold, _) = snapshots.begin(0);
    snapshots.set_sequence(hold, 10);
    overwrite_all(&snapshots, 0..LISTED as u64, 15);
    device.fail(Call::Write, 0, 1, |path| path.starts_with(DIRECTORY));
    assert!([(); 4].iter().any(|()| snapshots.spill_some().is_err()));
    assert_eq!((files(&device), snapshots.version_counts().in_memory), (0, LISTED));
    spill_all(&snapshots);
    assert_eq!((files(&device), snapshots.version_counts().in_files), (1, LISTED));
    assert!(seen(&snapshots, &u64::to_be_bytes(3), 10).expect("files can be read").newest().is_some());
}

/// A layer takes several steps, of which the first succeed: no success before the last one says that there is room.
#[test]
fn memory_is_bounded_where_layers_fail_at_their_end() {
    let device = machine();
    let snapshots = spilling(&device);
    let (hold, ended) = snapshots.begin(0);
    snapshots.set_sequence(hold, 10);
    device.fail(Call::Sync, 0, u64::MAX, |path| path.starts_with(DIRECTORY));
    for number in 0..20 * LISTED as u64 {
        overwrite_all(&snapshots, number..number + 1, 15);
        let _ = snapshots.help_to_spill();
        let in_memory = snapshots.version_counts().in_memory;
        assert!(in_memory <= 5 * LISTED, "{in_memory}");
    }
    assert!(ended.load(std::sync::atomic::Ordering::SeqCst));
}

/// That files could not be written for snapshots that have ended says nothing of the next ones.
#[test]
fn a_disk_that_was_full_ends_no_snapshot_later() {
    let device = machine();
    let snapshots = spilling(&device);
    let (earlier, _) = snapshots.begin(0);
    snapshots.set_sequence(earlier, 10);
    device.set_capacity(Some(device.used_bytes()));
    overwrite_all(&snapshots, 0..2 * LISTED as u64, 15);
    assert!(snapshots.spill_some().is_err());
    snapshots.end(earlier);
    device.set_capacity(None);
    let (hold, ended) = snapshots.begin(0);
    snapshots.set_sequence(hold, 20);
    // As a commit does it.
    for number in 0..6 * LISTED as u64 {
        snapshots.retain_below(&number.to_be_bytes(), &[(entry(1, number as u32), 25)].into_iter().collect());
    }
    assert!(!ended.load(std::sync::atomic::Ordering::SeqCst));
}

/// What a merge has read and written goes at once, too.
#[test]
fn a_merge_for_nobody_is_given_up() {
    let device = machine();
    let snapshots = spilling(&device);
    let (hold, _) = snapshots.begin(0);
    snapshots.set_sequence(hold, 10);
    for layer in 0..4 {
        overwrite_all(&snapshots, 100 * layer..100 * layer + LISTED as u64, 15);
        while snapshots.help_to_spill().expect("there is room") {}
    }
    assert!(files(&device) == 4 && snapshots.spill_some().expect("there is room"));
    assert!(files(&device) > 4, "a merge is under way");
    snapshots.end(hold);
    assert_eq!(files(&device), 0);
}

/// One in memory comes to a file first: range deletes that are forgotten before a merge is done are noted of it under its number.
#[test]
fn a_layer_in_memory_is_not_merged() {
    let device = machine();
    let directory = Arc::new(ScratchDirectory::new(&device, DIRECTORY.into()));
    let versions = Versions::spilling(directory, &Arc::default(), [7; 16], LISTED);
    let fill = |layer: u64| {
        for number in 0..LISTED as u64 {
            let version = Version { entry: entry(1, number as u32), until: 15, later: true };
            versions.insert(&(100 * layer + number).to_be_bytes(), version);
        }
    };
    for layer in 0..3 {
        fill(layer);
        while versions.spill_some(&|| Seen::new([10].into_iter())).expect("there is room") {}
    }
    fill(3);
    let layers = Arc::clone(&versions.read().layers);
    assert_eq!((layers.len(), layers[0].is_in_memory()), (4, true));
    assert_eq!(choose(&layers, &Default::default(), LISTED), None);
}

#[test]
fn damage_is_an_error_and_never_absence() {
    let device = machine();
    let snapshots = spilling(&device);
    let (hold, _) = snapshots.begin(0);
    snapshots.set_sequence(hold, 10);
    overwrite_all(&snapshots, 0..LISTED as u64, 15);
    spill_all(&snapshots);
    let file = device.file_names().into_iter().find(|path| path.starts_with(DIRECTORY)).expect("there is a file");
    device.corrupt(&file, 50, 1);
    let found = seen(&snapshots, &u64::to_be_bytes(3), 10);
    assert!(matches!(found, Err(Error::Corruption { .. })), "{found:?}");
    let listed = snapshots.versions_in((Unbounded, Unbounded), false, 10);
    assert!(matches!(listed, Err(Error::Corruption { .. })));
    // Merges leave it as it is, and go on with others.
    for round in 1..10u64 {
        overwrite_all(&snapshots, 100 * round..100 * round + LISTED as u64, 15);
        let outcomes = [(); 40].map(|()| snapshots.spill_some());
        assert!(outcomes.iter().filter(|outcome| outcome.is_err()).count() <= 1, "{outcomes:?}");
    }
    assert!(files(&device) < 8);
    assert!(seen(&snapshots, &u64::to_be_bytes(503), 10).expect("others can be read").newest().is_some());
}

/// Another process may have the directory by then.
#[test]
fn files_of_a_store_that_is_closed_are_left_alone() {
    let device = machine();
    let snapshots = spilling(&device);
    let (hold, _) = snapshots.begin(0);
    snapshots.set_sequence(hold, 10);
    overwrite_all(&snapshots, 0..LISTED as u64, 15);
    spill_all(&snapshots);
    assert_eq!(files(&device), 1);
    snapshots.close().expect("files can be removed");
    assert_eq!(files(&device), 0);
    assert!(matches!(seen(&snapshots, &u64::to_be_bytes(3), 10), Err(Error::Closed)));
    let another = spilling(&device);
    let (kept, _) = another.begin(0);
    another.set_sequence(kept, 10);
    overwrite_all(&another, 0..LISTED as u64, 15);
    spill_all(&another);
    overwrite_all(&snapshots, 100..100 + 2 * LISTED as u64, 15);
    assert!(!snapshots.spill_some().expect("nothing is done any more"));
    drop(snapshots);
    assert_eq!(files(&device), 1, "that of the other process");
    assert!(seen(&another, &u64::to_be_bytes(3), 10).expect("it can be read").newest().is_some());
}

/// No version comes any more that would find the list too long.
#[test]
fn a_list_comes_to_a_file_where_its_bound_falls() {
    let device = machine();
    let snapshots = spilling_from(&device, 1000 * LISTED);
    let (hold, _) = snapshots.begin(0);
    snapshots.set_sequence(hold, 50);
    for number in 0..KEYS {
        let superseded = [(entry(1 + number, 0), 100 + number)].into_iter().collect();
        snapshots.retain(&key(number), &superseded);
    }
    spill_all(&snapshots);
    assert_eq!(files(&device), 0);
    snapshots.bound_versions(LISTED);
    spill_all(&snapshots);
    assert_eq!((files(&device), snapshots.version_memory_bytes()), (1, 0));
    for number in 0..KEYS {
        assert_eq!(seen(&snapshots, &key(number), 50).expect("the file can be read").entries().len(), 1);
    }
    snapshots.end(hold);
}
