use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use super::LmdbIndex;
use super::limits::PAGE_BYTES;
use crate::Result;
use crate::format::location::Location;
use crate::format::position::Position;
use crate::format::record::{Form, Kind};
use crate::format::settings::FIRST_TABLE_ID;
use crate::index::accounting::Accounting;
use crate::index::chain::{Entry, Superseded};
use crate::index::memtable::ImmutableMemtable;
use crate::index::ordered::{Committed, OrderedIndex};
use crate::index::range_tombstones::{Ranges, Urgency};
use crate::index::runs::RunContext;
use crate::index::snapshots::{Snapshots, View};
use crate::io::sim::SimDevice;
use crate::retention::Retention;

/// LMDB has its own files, on whatever device.
type Index = OrderedIndex<SimDevice>;

const STORE: [u8; 16] = [3; 16];

fn open(path: &Path) -> Result<Index> {
    let (ranges, snapshots) = (Arc::<Ranges>::default(), Arc::new(Snapshots::new(Arc::new(Retention::default()))));
    let lmdb = LmdbIndex::open(path, STORE, Arc::clone(&snapshots), Arc::clone(&ranges), false)?;
    Ok(OrderedIndex::new(Committed::Lmdb(lmdb), ranges, snapshots))
}

fn lmdb(index: &Index) -> &LmdbIndex {
    index.committed.lmdb().expect("it was opened so")
}

fn entry(kind: Kind, sequence: u64) -> Entry {
    let location = Location { segment: 1, offset: sequence as u32 * 16, length: 40 };
    Entry { kind, sequence, location, separate: None, form: Form::default(), inline: None }
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:0100}").into_bytes()
}

fn insert(index: &Index, number: u64, entry: Entry) {
    index.insert(FIRST_TABLE_ID, &key(number), entry.into(), &mut Superseded::new());
}

fn freeze(index: &Index, next_sequence: u64) -> ImmutableMemtable {
    index
        .memtable
        .freeze(Position { batch: next_sequence, checksum: 0, segment: 1, life: 1, offset: 4096 }, next_sequence)
}

/// Commits the memtable; returns the sequences of entries that died.
fn commit(index: &Index, immutable: &mut ImmutableMemtable) -> Result<Vec<u64>> {
    let dead = RefCell::new(Vec::new());
    let died = |_, entry: &Entry, _| dead.borrow_mut().push(entry.sequence);
    let accounting = Accounting { died: &died, ..Accounting::NONE };
    let snapshots = Snapshots::new(Arc::new(Retention::default()));
    let (accounting, ranges, life_of) = (&accounting, &*index.ranges, &|_| 0);
    let context = RunContext { accounting, ranges, life_of, ..RunContext::quiet(&snapshots, ranges) };
    index.commit(immutable, &context)?;
    Ok(dead.into_inner())
}

fn carry_out_ranges(index: &Index) {
    let (ranges, snapshots) = (&*index.ranges, &*index.snapshots);
    let context = RunContext::quiet(snapshots, ranges);
    while index.carry_out_ranges(Urgency::WherePaid, &context).expect("the index can be changed") {}
}

/// A committed entry counts once, whatever becomes of the file afterwards: a commit that is said to have failed is made again.
#[test]
fn what_fails_after_a_commit_is_not_counted_again() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let (path, away) = (directory.path().join("lmdb"), directory.path().join("away"));
    let index = open(&path).expect("the index opens");
    for number in 0..100 {
        insert(&index, number, entry(Kind::Put, number + 1));
    }
    let mut immutable = freeze(&index, 101);
    fs::rename(&path, &away).expect("the directory can be renamed");
    let first = commit(&index, &mut immutable);
    fs::rename(&away, &path).expect("the directory can be renamed");
    let died = first.or_else(|_| commit(&index, &mut immutable)).expect("the index can be committed");
    assert_eq!(died, [0u64; 0], "every entry is alive");
    assert_eq!(index.committed.count(FIRST_TABLE_ID), 100);
}

/// Bytes of a file without the pages at its end that were never written.
fn written_bytes(file: &Path) -> usize {
    let bytes = fs::read(file).expect("the file can be read");
    let is_written = |page: &&[u8]| page.iter().any(|byte| *byte != 0);
    let unwritten = bytes.rchunks(PAGE_BYTES as usize).take_while(|page| !is_written(page)).count();
    bytes.len() - unwritten * PAGE_BYTES as usize
}

/// Puts keys of a range in one commit.
fn put(index: &Index, numbers: std::ops::Range<u64>, sequence: &mut u64) {
    for number in numbers {
        insert(index, number, entry(Kind::Put, *sequence));
        *sequence += 1;
    }
    commit(index, &mut freeze(index, *sequence)).expect("the index can be committed");
}

/// Adds a value of many pages in one transaction and takes it out again.
fn use_and_free(index: &LmdbIndex, bytes: usize) {
    let env = index.env();
    let mut txn = env.as_ref().expect("it is open").write_txn().expect("a transaction can begin");
    // A put before takes pages that were freed long ago: LMDB then knows more such pages, and uses them for its last writes.
    index.database.put(&mut txn, &key(0), b"value").expect("there is room");
    index.database.put(&mut txn, &key(1), &vec![1; bytes]).expect("there is room");
    index.database.delete(&mut txn, &key(1)).expect("it is there");
    index.database.delete(&mut txn, &key(0)).expect("it is there");
    txn.commit().expect("there is room");
}

/// LMDB never writes pages at its file's end that a transaction has used and freed again, and a process may die at any moment
/// after the commit.
#[test]
fn a_file_that_lacks_only_free_pages_is_whole() {
    let mut found = 0;
    for round in 0..4 {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let (path, copy) = (directory.path().join("lmdb"), directory.path().join("copy"));
        fs::create_dir(&copy).expect("a directory can be made");
        let index = open(&path).expect("the index opens");
        let mut sequence = 1;
        put(&index, 0..200 + round * 337, &mut sequence);
        while !lmdb(&index).purge(FIRST_TABLE_ID, 1, &Accounting::NONE).expect("a table can be purged") {}
        // Pages that one transaction has freed are free for the next but one.
        for _ in 0..2 {
            put(&index, 10_000..10_010, &mut sequence);
            while !lmdb(&index).purge(FIRST_TABLE_ID, 1, &Accounting::NONE).expect("a table can be purged") {}
        }
        use_and_free(lmdb(&index), (2 << 20) + (round as usize) * 40_000);
        let known_bytes = super::known_bytes(lmdb(&index).env().as_ref().expect("it is open"));
        let written_bytes = written_bytes(&path.join("data.mdb"));
        if written_bytes as u64 == known_bytes {
            continue;
        }
        found += 1;
        let bytes = fs::read(path.join("data.mdb")).expect("the file can be read");
        fs::write(copy.join("data.mdb"), &bytes[..written_bytes]).expect("a copy can be made");
        let copied = open(&copy).expect("a file that lacks free pages is whole");
        assert_eq!(copied.committed.count(FIRST_TABLE_ID), 0);
        put(&copied, 0..10_000, &mut sequence);
        assert_eq!(copied.committed.count(FIRST_TABLE_ID), 10_000);
        copied.committed.close();
        drop(copied);
        // Now the pages at the end are in use.
        let length = fs::metadata(copy.join("data.mdb")).expect("the file is there").len();
        let file = fs::OpenOptions::new().write(true).open(copy.join("data.mdb")).expect("the file can be opened");
        file.set_len(length / 2).expect("the file can be cut off");
        assert!(open(&copy).is_err(), "round {round}: a file that lacks pages in use was opened");
    }
    assert!(found > 0, "no transaction has freed the last page");
}

/// A range tombstone that waits for the device is published after a put that came after it. The record that both supersede ends at the first
/// of them for snapshots, also when the range tombstone is carried out and forgotten.
#[test]
fn a_range_tombstone_that_came_late_counts_for_snapshots_when_it_is_forgotten() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let index = open(directory.path()).expect("the index opens");
    insert(&index, 1, entry(Kind::Put, 5));
    let (hold, _ended) = index.snapshots.begin(0);
    insert(&index, 1, entry(Kind::Put, 20));
    index.insert_range(FIRST_TABLE_ID, &key(0), &key(9), 10);
    index.snapshots.set_sequence(hold, 15);
    let view = View { sequence: 15, at_ms: Some(0), cached: false };
    let sees = || !index.lookup(FIRST_TABLE_ID, &key(1), &view).expect("the index is open").is_empty();
    assert!(!sees(), "it was deleted at 10");
    commit(&index, &mut freeze(&index, 21)).expect("the index can be committed");
    carry_out_ranges(&index);
    assert_eq!(index.ranges.len(), 0, "it is carried out");
    assert!(!sees(), "it was deleted at 10");
    index.snapshots.end(hold);
}

/// A range that ends where it begins, or before that, has no key: nothing is deleted, and no snapshot is harmed.
#[test]
fn a_range_tombstone_without_keys_ends_nothing_for_snapshots() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let index = open(directory.path()).expect("the index opens");
    insert(&index, 1, entry(Kind::Put, 5));
    let (hold, _ended) = index.snapshots.begin(0);
    index.snapshots.set_sequence(hold, 15);
    for (sequence, start, end) in [(10, 9, 0), (11, 1, 1)] {
        index.insert_range(FIRST_TABLE_ID, &key(start), &key(end), sequence);
    }
    insert(&index, 1, entry(Kind::Put, 20));
    commit(&index, &mut freeze(&index, 21)).expect("the index can be committed");
    carry_out_ranges(&index);
    let view = View { sequence: 15, at_ms: Some(0), cached: false };
    let found = index.lookup(FIRST_TABLE_ID, &key(1), &view).expect("the index is open");
    assert_eq!(found.entries().first().map(|entry| entry.sequence), Some(5));
    index.snapshots.end(hold);
}
