//! The sorted runs of `lsm` tables in backups.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{back_up, reopen, restore, restored};
use crate::support::{assert_get, copy_tree, damage, open, quiet, refusal, scratch, segment_files, upkeep, value};
use aiodb::{Db, Error, IndexKind, Options, Repository, Step, Table};
use tempfile::TempDir;

const KEYS: u64 = 400;

/// The value of a key in some round.
fn written(number: u64, round: u64) -> Vec<u8> {
    value(number + 10_000 * round, 60 + number as usize % 50)
}

/// A store with a run for each of some rounds, each of which puts a part of the keys.
struct Source {
    directory: TempDir,
    db: Db,
    table: Table,
    repository: TempDir,
    contents: BTreeMap<u64, Vec<u8>>,
}

impl Source {
    fn new() -> Source {
        let (directory, repository) = (scratch(), scratch());
        let (db, table) = open(directory.path(), IndexKind::Lsm, &quiet());
        Source { directory, db, table, repository, contents: BTreeMap::new() }
    }

    fn put(&mut self, round: u64) {
        for number in (0..KEYS).filter(|number| number % 4 == round % 4) {
            self.table.put(&number.to_be_bytes(), &written(number, round)).expect("a put works");
            self.contents.insert(number, written(number, round));
        }
        self.db.checkpoint().expect("a checkpoint can be made");
    }

    fn back_up(&self) -> u64 {
        back_up(&self.db, self.repository.path()).point.number
    }

    /// The files of runs in the repository.
    fn runs(&self) -> BTreeSet<PathBuf> {
        files(&self.repository.path().join("runs"))
    }
}

fn files(directory: &Path) -> BTreeSet<PathBuf> {
    let listed = fs::read_dir(directory).map(|entries| entries.map(|entry| entry.expect("an entry").path()).collect());
    listed.unwrap_or_default()
}

fn check(db: &Db, contents: &BTreeMap<u64, Vec<u8>>, when: &str) {
    let table = db.table("t").expect("the table is there");
    for number in 0..KEYS {
        assert_get(&table, &number.to_be_bytes(), contents.get(&number).map(Vec::as_slice), when);
    }
}

fn verify(repository: &Path) -> aiodb::RepositoryReport {
    let opened = Repository::open(repository).expect("the repository can be opened");
    opened.verify(&mut |_, _| {}).expect("it can be checked")
}

#[test]
fn a_restored_store_has_its_runs() {
    let mut source = Source::new();
    (0..3).for_each(|round| source.put(round));
    let point = source.back_up();
    let directory = restore(source.repository.path(), Some(point));
    let runs = files(&directory.path().join("index/runs"));
    assert!(runs.len() >= 5, "runs and two manifests: {runs:?}");
    let reading = Options { read_only: true, create: false, ..quiet() };
    for (options, when) in [(reading, "read only"), (Options { create: false, ..quiet() }, "for writing")] {
        let db = Db::open(directory.path(), options).unwrap_or_else(|error| panic!("{when}: {error}"));
        assert!(!db.stats().rebuilt_indexes, "{when}: the index is there");
        check(&db, &source.contents, when);
        assert!(damage(&db).is_empty(), "{when}: {:?}", damage(&db));
        db.close().expect("a restored store can be closed");
    }
}

#[test]
fn where_the_log_is_damaged_only_the_damaged_record_is_lost() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Lsm, &quiet());
    for number in 0..KEYS {
        table.put(&number.to_be_bytes(), &written(number, 0)).expect("a put works");
    }
    db.close().expect("the store can be closed");
    drop(table);
    let wanted = written(7, 0);
    let find = |path: &PathBuf| {
        let bytes = fs::read(path).expect("a segment can be read");
        bytes.windows(wanted.len()).position(|window| window == wanted).map(|at| (path.clone(), at))
    };
    let (path, at) = segment_files(directory.path()).iter().find_map(find).expect("the value is in the log");
    let file = fs::File::options().write(true).open(path).expect("the segment can be opened");
    file.write_all_at(b"rot", at as u64 + 20).expect("the segment can be written");
    let (db, repository) = (reopen(directory.path()), scratch());
    let point = back_up(&db, repository.path()).point.number;
    let (_directory, db) = restored(repository.path(), point);
    assert!(!db.stats().rebuilt_indexes, "the index is there");
    let table = db.table("t").expect("the table is there");
    for number in 0..KEYS {
        if number == 7 {
            let error = refusal(table.get(&number.to_be_bytes()), "a damaged record");
            assert!(matches!(error, Error::Corruption { .. }), "{error}");
        } else {
            assert_get(&table, &number.to_be_bytes(), Some(&written(number, 0)), "beside the damage");
        }
    }
}

#[test]
fn files_of_runs_come_once_and_go_with_the_last_restore_point_that_needs_them() {
    let mut source = Source::new();
    let mut states = BTreeMap::new();
    let mut seen = BTreeMap::<PathBuf, u64>::new();
    for round in 0..12 {
        source.put(round);
        if round % 4 == 3 {
            upkeep(&source.db);
        }
        let point = source.back_up();
        states.insert(point, source.contents.clone());
        let runs = source.runs();
        assert!(seen.keys().all(|path| runs.contains(path)), "earlier points need them");
        for path in runs {
            let written = fs::metadata(&path).and_then(|file| file.modified()).expect("it is there");
            let written = written.duration_since(std::time::UNIX_EPOCH).expect("it is now").as_nanos() as u64;
            assert_eq!(*seen.entry(path).or_insert(written), written, "no file is written again");
        }
    }
    source.db.close().expect("the store can be closed");
    let all = source.runs();
    assert_eq!(verify(source.repository.path()).damage.len(), 0);
    let mut opened = Repository::open(source.repository.path()).expect("the repository can be opened");
    for point in 1..=10 {
        opened.remove(point).expect("a restore point can be removed");
        states.remove(&point);
    }
    drop(opened);
    let left = source.runs();
    assert!(!left.is_empty() && left.len() < all.len(), "{} of {} files are left", left.len(), all.len());
    assert_eq!(verify(source.repository.path()).damage.len(), 0);
    for (point, contents) in &states {
        let (_directory, db) = restored(source.repository.path(), *point);
        assert!(!db.stats().rebuilt_indexes, "the index is there");
        check(&db, contents, &format!("point {point}"));
    }
}

#[test]
fn a_damaged_run_costs_a_restore_point_its_index_alone() {
    let mut source = Source::new();
    source.put(0);
    let first = source.back_up();
    source.put(1);
    let second = source.back_up();
    let manifest = source.repository.path().join("points").join(format!("{first:08}.runs"));
    let shared = source.runs().into_iter().next().expect("there are files of runs");
    for (path, harmed) in [(shared, vec![first, second]), (manifest, vec![first])] {
        for harm in ["flipped", "cut", "missing"] {
            let copy = scratch();
            copy_tree(source.repository.path(), copy.path());
            let path = copy.path().join(path.strip_prefix(source.repository.path()).expect("it lies there"));
            let mut bytes = fs::read(&path).expect("the file can be read");
            let at = bytes.len() / 2;
            bytes[at] ^= 1;
            match harm {
                "flipped" => fs::write(&path, bytes),
                "cut" => fs::write(&path, &bytes[..at]),
                _ => fs::remove_file(&path),
            }
            .expect("the file can be harmed");
            let what = format!("{} {harm}", path.display());
            let report = verify(copy.path());
            let is_named = |error: &Error| matches!(error, Error::Corruption { path: said, .. } if *said == path);
            assert!(report.damage.len() == 1 && report.damage.iter().all(is_named), "{what}: {:?}", report.damage);
            assert!(report.damaged_points.is_empty(), "{what}: {:?}", report.damaged_points);
            assert_eq!(report.points_without_index.iter().copied().collect::<Vec<_>>(), harmed, "{what}");
            for point in [first, second] {
                let target = scratch();
                let opened = Repository::open(copy.path()).expect("the repository can be opened");
                let report = opened.restore(Some(point), target.path(), &mut |_, _| {});
                let report = report.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(report.index_damage.as_ref().is_some_and(is_named), harmed.contains(&point), "{what}");
                let db = reopen(target.path());
                assert_eq!(db.stats().rebuilt_indexes, harmed.contains(&point), "{what}");
                let mut contents = source.contents.clone();
                contents.retain(|number, _| point == second || number % 4 == 0);
                check(&db, &contents, &what);
                assert!(damage(&db).is_empty(), "{what}: {:?}", damage(&db));
            }
        }
    }
}

#[test]
fn a_damaged_run_is_mended_by_the_next_backup_where_the_store_has_it() {
    let mut source = Source::new();
    (0..4).for_each(|round| source.put(round));
    let first = source.back_up();
    let names = source.runs();
    for (position, path) in names.iter().enumerate() {
        let length = fs::metadata(path).expect("it is there").len();
        let file = fs::File::options().write(true).open(path).expect("the file can be opened");
        match position % 3 {
            0 => fs::remove_file(path).expect("the file can be removed"),
            1 => file.set_len(length / 2).expect("the file can be cut"),
            _ => file.write_all_at(b"rot", length - 90).expect("the file can be written"),
        }
    }
    assert_eq!(verify(source.repository.path()).damage.len(), names.len());
    source.back_up();
    assert_eq!(source.runs(), names, "they are the same files again");
    assert_eq!(verify(source.repository.path()).damage.len(), 0);
    let (_directory, db) = restored(source.repository.path(), first);
    assert!(!db.stats().rebuilt_indexes, "the index is there");
    check(&db, &source.contents, "mended");
}

/// An index that is made again has other files.
#[test]
fn backups_go_on_after_an_index_was_made_again() {
    let mut source = Source::new();
    (0..3).for_each(|round| source.put(round));
    let first = source.back_up();
    let before = source.contents.clone();
    source.db.close().expect("the store can be closed");
    let options = Options { rebuild_index: true, ..quiet() };
    (source.db, source.table) = open(source.directory.path(), IndexKind::Lsm, &options);
    assert!(source.db.stats().rebuilt_indexes);
    source.put(3);
    let second = source.back_up();
    for (point, contents) in [(first, &before), (second, &source.contents)] {
        let (_directory, db) = restored(source.repository.path(), point);
        assert!(!db.stats().rebuilt_indexes, "the index is there");
        check(&db, contents, &format!("point {point}"));
        assert!(damage(&db).is_empty(), "point {point}: {:?}", damage(&db));
    }
}

/// A program that does not know of runs in a repository, or of how live bytes are counted, must not take their restore points for damaged.
#[test]
fn a_restore_point_says_by_its_version_what_it_has() {
    let version = |db: &Db, has_runs: bool, what: &str| {
        let repository = scratch();
        back_up(db, repository.path());
        let bytes = fs::read(repository.path().join("points/00000001.point")).expect("the point can be read");
        assert_eq!(repository.path().join("runs").exists(), has_runs, "{what}");
        bytes[8]
    };
    for (kind, wanted) in [(IndexKind::Hash, 1), (IndexKind::Lmdb, 5), (IndexKind::Lsm, 5)] {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        table.put(b"k", b"v").expect("a put works");
        assert_eq!(version(&db, kind == IndexKind::Lsm, kind.name()), wanted, "{}", kind.name());
    }
    for (of_version_1, has_runs, wanted) in [("fixture", false, 1), ("fixture_runs", true, 2)] {
        let directory = scratch();
        copy_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(of_version_1), directory.path());
        let options = Options { segment_bytes: 64 << 10, create: false, ..quiet() };
        let db = Db::open(directory.path(), options).expect("the store opens");
        assert_eq!(version(&db, has_runs, of_version_1), wanted, "{of_version_1}");
    }
}

/// Of two stores that come from one, each may have a file of one number that begins and ends alike, with the same keys, and other places
/// in between: those of records that were moved before one of them was written, and after the other.
#[test]
fn a_file_of_another_history_does_not_stand_for_one_that_begins_and_ends_alike() {
    let mut source = Source::new();
    // In the middle of the run; in the log each lies among much that is garbage soon.
    let moved = KEYS - 20..KEYS;
    for number in moved.clone() {
        source.table.put(&number.to_be_bytes(), &written(number, 0)).expect("a put works");
        source.contents.insert(number, written(number, 0));
        for _ in 0..3 {
            source.table.put(&KEYS.to_be_bytes(), &value(number, 150_000)).expect("a put works");
        }
    }
    for number in (0..2 * KEYS).filter(|number| !(moved.start..=KEYS).contains(number)) {
        source.table.put(&number.to_be_bytes(), &written(number, 0)).expect("a put works");
        source.contents.insert(number, written(number, 0));
    }
    source.db.checkpoint().expect("a checkpoint can be made");
    for _ in 0..200 {
        source.db.step(Step::Reclaim).expect("reclaim works");
    }
    source.db.checkpoint().expect("a checkpoint can be made");
    source.db.step(Step::Prepare).expect("segments can be freed");
    assert!(source.db.stats().bytes_moved_by_reclaim > 0, "records were moved");
    let first = source.back_up();
    assert_eq!(source.runs().len(), 2, "one with all, and one with what was moved");

    let harmed = scratch();
    copy_tree(source.repository.path(), harmed.path());
    fs::remove_dir_all(harmed.path().join("runs")).expect("the runs can be removed");
    let (_directory, other) = restored(harmed.path(), first);
    assert!(other.stats().rebuilt_indexes, "the other store has made its index again");
    check(&other, &source.contents, "the other store");
    let second = back_up(&other, source.repository.path()).point.number;
    for point in [first, second] {
        let (_directory, db) = restored(source.repository.path(), point);
        assert!(!db.stats().rebuilt_indexes, "the index is there");
        check(&db, &source.contents, &format!("point {point}"));
        assert!(damage(&db).is_empty(), "point {point}: {:?}", damage(&db));
    }
}

/// What an earlier program would have made of the first restore point of a repository: one without runs.
fn without_runs(repository: &Path) {
    let path = repository.join("points/00000001.point");
    let mut bytes = fs::read(&path).expect("the point can be read");
    let number =
        |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let (segments, files) = (number(&bytes, 104), number(&bytes, 108));
    let first = 120 + 24 * segments;
    let is_of_runs = |file: &[u8]| number(file, 0) >= 3;
    let kept: Vec<u8> =
        bytes[first..first + 32 * files].chunks(32).filter(|file| !is_of_runs(file)).flatten().copied().collect();
    assert!(kept.len() < 32 * files, "it has files of runs");
    bytes[108..112].copy_from_slice(&(kept.len() as u32 / 32).to_le_bytes());
    bytes.splice(first..first + 32 * files, kept);
    let length = bytes.len() as u64;
    bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
    bytes[32..40].copy_from_slice(&length.to_le_bytes());
    let checksum = crc32c(&bytes[16..]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    fs::write(path, bytes).expect("the point can be written");
    fs::remove_file(repository.join("points/00000001.runs")).expect("the manifest of the runs can be removed");
    fs::remove_dir_all(repository.join("runs")).expect("the runs can be removed");
}

/// The checksum of the format, bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    let next = |checksum: u32| if checksum & 1 == 1 { checksum >> 1 ^ 0x82f6_3b78 } else { checksum >> 1 };
    !bytes.iter().fold(!0, |checksum, byte| (0..8).fold(checksum ^ u32::from(*byte), |checksum, _| next(checksum)))
}

#[test]
fn a_restore_point_of_an_earlier_program_is_restored_without_index_and_others_follow_it() {
    let mut source = Source::new();
    source.put(0);
    let first = source.back_up();
    without_runs(source.repository.path());
    let before = source.contents.clone();
    let report = verify(source.repository.path());
    assert!(report.damage.is_empty() && report.points_without_index.is_empty(), "{report:?}");
    // A restore of another point was interrupted there.
    let target = scratch();
    fs::create_dir_all(target.path().join("index/runs")).expect("directories can be made");
    fs::write(target.path().join("index/runs/000000000001.run"), b"half").expect("a file can be written");
    fs::write(target.path().join("RESTORING"), b"").expect("a file can be written");
    let opened = Repository::open(source.repository.path()).expect("the repository can be opened");
    let report = opened.restore(Some(first), target.path(), &mut |_, _| {}).expect("it can be restored");
    assert!(report.index_damage.is_none(), "{report:?}");
    drop(opened);
    let reading = Options { read_only: true, create: false, ..quiet() };
    refusal(Db::open(target.path(), reading), "an index cannot be made where nothing is written");
    let db = reopen(target.path());
    assert!(db.stats().rebuilt_indexes, "the index is made again");
    check(&db, &before, "without index");
    source.put(1);
    let second = source.back_up();
    for (point, contents) in [(first, &before), (second, &source.contents)] {
        let (_directory, db) = restored(source.repository.path(), point);
        assert_eq!(db.stats().rebuilt_indexes, point == first);
        check(&db, contents, &format!("point {point}"));
    }
}

/// The footers of such files do not tell them apart.
#[test]
fn files_of_runs_of_an_earlier_program_come_once() {
    let (directory, repository) = (scratch(), scratch());
    copy_tree(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixture_runs").as_path(), directory.path());
    let db = Db::open(directory.path(), Options { create: false, background: false, ..Options::default() });
    let db = db.expect("the store of an earlier program can be opened");
    back_up(&db, repository.path());
    let runs = files(&repository.path().join("runs"));
    assert!(runs.len() >= 2, "{runs:?}");
    back_up(&db, repository.path());
    assert_eq!(files(&repository.path().join("runs")), runs);
    assert!(verify(repository.path()).damage.is_empty());
}

/// Where an index was left out, what was read of it does not count.
#[test]
fn a_restore_says_what_it_has_checked() {
    let mut source = Source::new();
    source.put(0);
    let point = source.back_up();
    let bytes_of = |index_is_damaged| {
        let opened = Repository::open(source.repository.path()).expect("the repository can be opened");
        let (target, mut last) = (scratch(), (0, 0));
        let restored = opened.restore(Some(point), target.path(), &mut |done, all| last = (done, all));
        let report = restored.expect("it can be restored");
        assert_eq!(report.index_damage.is_some(), index_is_damaged);
        assert_eq!(last.0, last.1, "all is done at the end");
        (report.bytes, last.1)
    };
    let (checked, all) = bytes_of(false);
    assert_eq!(checked, all);
    let sizes =
        |paths: BTreeSet<PathBuf>| paths.iter().map(|path| fs::metadata(path).expect("it is there").len()).sum::<u64>();
    let manifest = source.repository.path().join("points").join(format!("{point:08}.runs"));
    let of_runs = sizes(source.runs()) + sizes(BTreeSet::from([manifest]));
    let last = source.runs().into_iter().next_back().expect("there are files of runs");
    fs::remove_file(last).expect("a file can be removed");
    assert_eq!(bytes_of(true), (all - of_runs, all));
}
