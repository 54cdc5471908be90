//! Older versions that come back where damage takes what had superseded them: salvage says which keys these may be.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use aiodb::{Db, Durability, IndexKind, KeySpan, Options, SalvageReport, ScanOptions, Table, salvage};
use support::{KINDS, ORDERED, copy_tree, quiet, scratch, segment_files, value};
use tempfile::TempDir;

const UNIT: usize = 4096;
const OLD: u64 = 60;
const DELETED: u64 = 20;
const NEW: u64 = 30;

/// The bounds of a range of old keys that is deleted.
const RANGE: (&[u8], &[u8]) = (b"old 0040", b"old 0050");

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> Options {
    Options { segment_bytes: 64 << 10, ..quiet() }
}

fn key(name: &str, number: u64) -> Vec<u8> {
    format!("{name} {number:04}").into_bytes()
}

/// A store in which keys were put, some of them deleted in a batch of its own, and others put behind that, as the death of its process leaves it.
struct Sample {
    directory: TempDir,
    /// What was there before the deletes, and what is there.
    before: Records,
    now: Records,
}

impl Sample {
    fn new(kind: IndexKind) -> Sample {
        let live = scratch();
        let (db, table) = support::open(live.path(), kind, &options());
        let mut now = Records::new();
        fill(&table, &mut now, "old", OLD);
        db.checkpoint().expect("a checkpoint can be made");
        let before = now.clone();
        for number in 0..DELETED {
            table.delete_with(&key("old", number), Durability::None).expect("a delete works");
            now.remove(&key("old", number));
        }
        if kind.is_ordered() {
            table.delete_range_with(RANGE.0, RANGE.1, Durability::None).expect("a range can be deleted");
            now.retain(|key, _| **key < *RANGE.0 || **key >= *RANGE.1);
        }
        db.sync().expect("it can be flushed");
        fill(&table, &mut now, "new", NEW);
        db.sync().expect("it can be flushed");
        db.checkpoint().expect("a checkpoint can be made");
        let directory = scratch();
        copy_tree(live.path(), directory.path());
        Sample { directory, before, now }
    }

    fn copy(&self) -> TempDir {
        let copy = scratch();
        copy_tree(self.directory.path(), copy.path());
        copy
    }

    /// The old keys that are gone.
    fn gone(&self) -> BTreeSet<Vec<u8>> {
        self.before.keys().filter(|key| !self.now.contains_key(*key)).cloned().collect()
    }
}

fn fill(table: &Table, contents: &mut Records, name: &str, count: u64) {
    for number in 0..count {
        let value = value(number, 40);
        table.put_with(&key(name, number), &value, Durability::None).expect("a put works");
        contents.insert(key(name, number), value);
    }
}

/// What comes out of a store, and the report.
fn salvaged(store: &Path) -> (Records, SalvageReport) {
    let out = scratch();
    let report = salvage(store, out.path(), &mut |_, _| {}).expect("it can be salvaged");
    let db = Db::open(out.path(), quiet()).expect("the new store can be opened");
    let table = db.table("t").expect("the table is there");
    let scan = if table.kind().is_ordered() { table.scan(ScanOptions::all()) } else { table.iterate() };
    let records = scan.expect("it can be scanned").collect::<aiodb::Result<Records>>().expect("all can be read");
    (records, report)
}

fn is_within(span: &KeySpan, key: &[u8]) -> bool {
    (&span.first[..]..=&span.last[..]).contains(&key)
}

/// The keys that may have come back, as the report tells them.
fn older(report: &SalvageReport, among: &Records) -> BTreeSet<Vec<u8>> {
    assert_eq!(report.older.iter().map(|span| span.keys).sum::<u64>(), report.older_than_damage, "{report:?}");
    assert!(report.older.iter().all(|span| span.table == "t"), "{report:?}");
    among.keys().filter(|key| report.older.iter().any(|span| is_within(span, key))).cloned().collect()
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("the file can be read");
    change(&mut bytes);
    fs::write(path, bytes).expect("the file can be written");
}

/// Fills the last batch that has these bytes with zeros.
fn lose_batch(store: &Path, pattern: &[u8]) {
    let mut last = None;
    for path in segment_files(store) {
        let bytes = fs::read(&path).expect("the file can be read");
        let mut at = UNIT;
        while bytes.get(at..at + 4) == Some(b"ABAT") {
            let length = u32::from_le_bytes(bytes[at + 28..at + 32].try_into().expect("four bytes")) as usize;
            let number = u64::from_le_bytes(bytes[at + 8..at + 16].try_into().expect("eight bytes"));
            if bytes[at..at + length].windows(pattern.len()).any(|window| window == pattern) {
                last = last.max(Some((number, path.clone(), at, length)));
            }
            at += length;
        }
    }
    let (_, path, at, length) = last.expect("a batch has the bytes");
    edit(&path, |bytes| bytes[at..at + length].fill(0));
}

/// Flips a bit of the byte that lies so far behind the last place with these bytes.
fn flip(store: &Path, pattern: &[u8], behind: isize) {
    let path = segment_files(store).into_iter().rfind(|path| {
        let bytes = fs::read(path).expect("the file can be read");
        bytes.windows(pattern.len()).any(|window| window == pattern)
    });
    edit(&path.expect("a segment has the bytes"), |bytes| {
        let at = bytes.windows(pattern.len()).rposition(|window| window == pattern).expect("they are there");
        bytes[at.checked_add_signed(behind).expect("it lies in the file")] ^= 0x10;
    });
}

/// Flips a bit in each data block of all runs.
fn damage_runs(store: &Path) {
    let directory = fs::read_dir(store.join("index/runs")).expect("there are runs");
    let mut damaged = 0;
    for path in directory.map(|entry| entry.expect("it can be listed").path()) {
        if path.extension().is_some_and(|extension| extension == "run") {
            edit(&path, |bytes| bytes[30] ^= 1);
            damaged += 1;
        }
    }
    assert_eq!(damaged, 2, "there is a run for each checkpoint");
}

#[test]
fn keys_that_lost_deletes_bring_back_are_told() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        let copy = sample.copy();
        lose_batch(copy.path(), &key("old", 3));
        if kind == IndexKind::Lsm {
            damage_runs(copy.path());
        }
        let (found, report) = salvaged(copy.path());
        assert!(!report.is_complete(), "{}: {report:?}", kind.name());
        let back: BTreeSet<_> = found.keys().filter(|key| !sample.now.contains_key(*key)).cloned().collect();
        let mut expected = sample.gone();
        if kind == IndexKind::Lsm {
            // Of a range that waits to be taken out the manifest of the runs tells.
            expected.retain(|key| **key < *RANGE.0 || **key >= *RANGE.1);
        }
        assert_eq!(back, expected, "{}: they are back", kind.name());
        let told = older(&report, &found);
        assert!(back.is_subset(&told), "{}: they are told", kind.name());
        assert!(told.iter().all(|key| key.starts_with(b"old")), "{}: what came later is in no doubt", kind.name());
        assert_eq!(told.len() as u64, report.older_than_damage, "{}: spans have no other key", kind.name());
    }
}

#[test]
fn sorted_runs_prove_what_the_log_has_lost() {
    let sample = Sample::new(IndexKind::Lsm);
    let copy = sample.copy();
    lose_batch(copy.path(), &key("old", 3));
    let (found, report) = salvaged(copy.path());
    assert!(found == sample.now, "what was deleted stays so");
    assert!(!report.is_complete());
    assert_eq!((report.older_than_damage, report.doubtful_keys), (0, 0), "nothing is in doubt: {report:?}");
}

#[test]
fn damaged_runs_alone_are_no_loss() {
    let sample = Sample::new(IndexKind::Lsm);
    let copy = sample.copy();
    damage_runs(copy.path());
    let (found, report) = salvaged(copy.path());
    assert!(found == sample.now && report.is_complete(), "{report:?}");
}

/// An overwrite that is lost, and that a run has: the older version is written, and it is known to be older.
#[test]
fn sorted_runs_tell_which_versions_are_older() {
    let live = scratch();
    let (db, table) = support::open(live.path(), IndexKind::Lsm, &options());
    let mut contents = Records::new();
    fill(&table, &mut contents, "old", OLD);
    db.checkpoint().expect("a checkpoint can be made");
    table.put_with(b"old 0007", b"the newest version", Durability::None).expect("a put works");
    db.checkpoint().expect("a checkpoint can be made");
    let copy = scratch();
    copy_tree(live.path(), copy.path());
    lose_batch(copy.path(), b"the newest version");
    fs::remove_dir_all(copy.path().join("pending")).expect("the last batch is there, too");
    let (found, report) = salvaged(copy.path());
    assert!(found == contents);
    let doubtful: Vec<_> = report.doubtful.iter().map(|doubtful| (&doubtful.key[..], doubtful.delivered)).collect();
    assert_eq!(doubtful, [(&b"old 0007"[..], true)]);
    // Nothing in the log is newer than the lost batch, so nobody knows that only that is lost.
    assert_eq!(report.older_than_damage, OLD, "{report:?}");
}

#[test]
fn a_damaged_range_delete_that_is_legible_names_its_keys() {
    for kind in ORDERED {
        let sample = Sample::new(kind);
        let copy = sample.copy();
        // The life that a moved record has, beside the bounds.
        flip(copy.path(), &[RANGE.0, &[0; 8], RANGE.1].concat(), RANGE.0.len() as isize + 7);
        if kind == IndexKind::Lsm {
            fs::remove_dir_all(copy.path().join("index/runs")).expect("it can be removed");
        }
        let (found, report) = salvaged(copy.path());
        let back: BTreeSet<_> = found.keys().filter(|key| !sample.now.contains_key(*key)).cloned().collect();
        assert_eq!(back.len(), 10, "{}: the range is back: {back:?}", kind.name());
        let doubtful: BTreeSet<_> =
            report.doubtful.iter().filter(|doubtful| doubtful.delivered).map(|doubtful| doubtful.key.clone()).collect();
        assert_eq!(doubtful, back, "{}: the record still says its bounds", kind.name());
        assert!(back.is_subset(&older(&report, &found)), "{}", kind.name());
    }
}

#[test]
fn a_damaged_delete_that_is_legible_names_its_key() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        let copy = sample.copy();
        // Its checksum, before a header of 24 bytes and the key.
        flip(copy.path(), &key("old", 7), -24);
        if kind == IndexKind::Lsm {
            damage_runs(copy.path());
        }
        let (found, report) = salvaged(copy.path());
        assert!(found.contains_key(&key("old", 7)), "{}: it is back", kind.name());
        let doubtful: Vec<_> = report.doubtful.iter().map(|doubtful| (&doubtful.key[..], doubtful.delivered)).collect();
        assert_eq!(doubtful, [(&key("old", 7)[..], true)], "{}", kind.name());
    }
}

/// The header of the first batch checks out, and nothing says where the second one was.
#[test]
fn two_damaged_batches_in_a_row_are_both_told() {
    for kind in [IndexKind::Hash, IndexKind::Lmdb] {
        let live = scratch();
        let (db, table) = support::open(live.path(), kind, &options());
        let mut contents = Records::new();
        fill(&table, &mut contents, "old", 10);
        db.sync().expect("it can be flushed");
        for number in 1..10 {
            table.delete_with(&key("old", number), Durability::None).expect("a delete works");
        }
        db.sync().expect("it can be flushed");
        fill(&table, &mut contents, "new", NEW);
        db.checkpoint().expect("a checkpoint can be made");
        let copy = scratch();
        copy_tree(live.path(), copy.path());
        lose_batch(copy.path(), &key("old", 3));
        flip(copy.path(), &key("old", 0), -24);
        let (found, report) = salvaged(copy.path());
        assert!(!found.contains_key(&key("old", 0)) && found.len() as u64 == 9 + NEW, "{}: {report:?}", kind.name());
        let told = older(&report, &found);
        assert!(told.iter().all(|key| key.starts_with(b"old")) && told.len() == 9, "{}: {report:?}", kind.name());
    }
}

/// What is lost of a segment is older than what the next one has.
#[test]
fn a_lost_segment_puts_nothing_in_doubt_that_came_later() {
    for kind in [IndexKind::Hash, IndexKind::Lmdb] {
        let live = scratch();
        let (db, table) = support::open(live.path(), kind, &options());
        let mut contents = Records::new();
        for part in ["first", "second", "third", "fourth"] {
            fill(&table, &mut contents, part, 400);
            db.sync().expect("it can be flushed");
        }
        db.checkpoint().expect("a checkpoint can be made");
        let copy = scratch();
        copy_tree(live.path(), copy.path());
        let lost = segment_files(copy.path()).into_iter().find(|path| {
            let bytes = fs::read(path).expect("the file can be read");
            bytes.windows(11).any(|window| window == b"second 0000")
        });
        fs::remove_file(lost.expect("a segment has it")).expect("it can be removed");
        let (found, report) = salvaged(copy.path());
        let told = older(&report, &found);
        let has = |keys: &BTreeSet<Vec<u8>>, part: &str| keys.iter().any(|key| key.starts_with(part.as_bytes()));
        assert!(has(&told, "first") || !found.contains_key(&key("first", 0)), "{}: {report:?}", kind.name());
        assert!(!has(&told, "fourth"), "{}: what came later is in no doubt", kind.name());
        assert!(found.contains_key(&key("fourth", 399)), "{}: it comes out", kind.name());
    }
}

#[test]
fn the_list_of_keys_is_bounded_and_has_all_of_them() {
    const KEYS: u64 = 2500;
    let live = scratch();
    let (db, table) = support::open(live.path(), IndexKind::Hash, &quiet());
    let mut contents = Records::new();
    fill(&table, &mut contents, "key", KEYS);
    db.sync().expect("it can be flushed");
    table.delete_with(&key("key", 77), Durability::Sync).expect("a delete works");
    table.put_with(b"later", b"x", Durability::Sync).expect("a put works");
    db.checkpoint().expect("a checkpoint can be made");
    let copy = scratch();
    copy_tree(live.path(), copy.path());
    lose_batch(copy.path(), &key("key", 77));
    let (found, report) = salvaged(copy.path());
    assert_eq!((found.len() as u64, report.older_than_damage), (KEYS + 1, KEYS));
    assert!((500..=1000).contains(&report.older.len()), "{} spans", report.older.len());
    assert!(report.older.iter().any(|span| is_within(span, &key("key", 77))));
    assert!(!report.older.iter().any(|span| is_within(span, b"later")));
}

#[test]
fn without_a_manifest_all_but_the_newest_segment_is_in_doubt() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        let copy = sample.copy();
        ["MANIFEST", "MANIFEST.copy"]
            .iter()
            .for_each(|name| fs::remove_file(copy.path().join(name)).expect("it is there"));
        let (found, report) = salvaged(copy.path());
        assert!(found == sample.now, "{}", kind.name());
        assert_eq!(report.older_than_damage, 0, "{}: all is in the newest segment: {report:?}", kind.name());
    }
}
