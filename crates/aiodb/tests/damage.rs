//! Damaged and newer files: each is a typed error that names the file, and never a silent loss.

mod support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use aiodb::{Db, Error, IndexKind, Options};
use support::{KINDS, Role, assert_get, assert_value, copy_tree, damage, open, quiet, refusal, scratch, value};
use tempfile::TempDir;

const UNIT: u64 = 4096;
/// Keys written before the checkpoint, and keys written after it, each as a batch of its own.
const OLD_KEYS: u64 = 30;
const NEW_KEYS: u64 = 10;
const LARGE: &[u8] = b"large";
/// The offset of the format's version in every header that has one.
const VERSION_OFFSET: u64 = 8;

/// What a process does as a child of a test.
#[test]
fn child() {
    let Some(role) = support::role() else { return };
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["open", path] => support::open_and_say(path),
        _ => panic!("no such role: {role:?}"),
    }
}

/// A store as the death of its process leaves it: a checkpoint and a tail of batches. Each test damages copies of it.
struct Sample {
    kind: IndexKind,
    directory: TempDir,
}

fn old_value(number: u64) -> Vec<u8> {
    // Packed beside others, or on blocks of its own.
    value(number, if number.is_multiple_of(3) { 2000 } else { 150 })
}

fn new_value(number: u64) -> Vec<u8> {
    value(number + 1000, 120)
}

fn large_value() -> Vec<u8> {
    value(5000, 700_000)
}

impl Sample {
    fn new(kind: IndexKind) -> Sample {
        let live = scratch();
        let (db, table) = open(live.path(), kind, &quiet());
        for number in 0..OLD_KEYS {
            table.put(&number.to_be_bytes(), &old_value(number)).expect("a put works");
        }
        table.put(LARGE, &large_value()).expect("a put works");
        db.checkpoint().expect("a checkpoint can be made");
        for number in OLD_KEYS..OLD_KEYS + NEW_KEYS {
            table.put(&number.to_be_bytes(), &new_value(number)).expect("a put works");
        }
        let directory = scratch();
        copy_tree(live.path(), directory.path());
        Sample { kind, directory }
    }

    fn copy(&self) -> TempDir {
        let copy = scratch();
        copy_tree(self.directory.path(), copy.path());
        copy
    }

    /// Opens a copy and checks that everything but the `missing` keys is there.
    fn check(&self, copy: &Path, missing: &[u64], when: &str) {
        let (db, table) = open(copy, self.kind, &quiet());
        for number in 0..OLD_KEYS + NEW_KEYS {
            let wanted = if number < OLD_KEYS { old_value(number) } else { new_value(number) };
            let wanted = (!missing.contains(&number)).then_some(&wanted[..]);
            assert_get(&table, &number.to_be_bytes(), wanted, when);
        }
        assert_get(&table, LARGE, Some(&large_value()), when);
        assert!(damage(&db).is_empty(), "{when}: a check finds no damage, but {:?}", damage(&db));
    }

    fn check_refused(&self, copy: &Path, options: &Options, when: &str) -> Error {
        println!("{}: {when}", self.kind.name());
        let error = refusal(Db::open(copy, options.clone()), when);
        println!("{error}");
        error
    }
}

/// Changes bits of one byte.
fn flip(path: &Path, offset: u64, mask: u8) {
    let mut bytes = fs::read(path).expect("the file can be read");
    bytes[offset as usize] ^= mask;
    fs::write(path, bytes).expect("the file can be written");
}

fn cut(path: &Path, length: u64) {
    let file = fs::File::options().write(true).open(path).expect("the file can be opened");
    file.set_len(length).expect("the file can be cut");
}

/// The segment in which these bytes lie, and where.
fn find(store: &Path, bytes: &[u8]) -> (PathBuf, u64) {
    let pattern = &bytes[..bytes.len().min(64)];
    for path in support::segment_files(store) {
        let content = fs::read(&path).expect("the segment can be read");
        if let Some(at) = content.windows(pattern.len()).position(|window| window == pattern) {
            return (path, at as u64);
        }
    }
    panic!("the log of {} holds what was put", store.display());
}

/// The file of a kind that a store has one of.
fn only(directory: &Path, extension: &str) -> PathBuf {
    let entries = fs::read_dir(directory).expect("the directory can be listed");
    let paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    let mut found = paths.iter().filter(|path| path.extension().is_some_and(|found| found == extension));
    let path = found.next().expect("there is such a file").clone();
    assert!(found.next().is_none(), "there is one such file");
    path
}

fn assert_corruption(error: &Error, path: &Path, offset: Option<u64>, when: &str) {
    let Error::Corruption { path: said, offset: at, .. } = error else {
        panic!("{when}: expected a report of corruption in {}, not: {error:?}", path.display());
    };
    assert_eq!(said, path, "{when}: the damaged file is named: {error}");
    if let Some(offset) = offset {
        assert_eq!(*at, offset, "{when}: the damaged place is named: {error}");
    }
}

fn assert_newer(error: &Error, path: &Path) {
    let is_newer = matches!(error, Error::NewerVersion { path: said, found, known: 1 } if said == path && *found > 1);
    assert!(is_newer, "{} is of a newer version, and that is said, not: {error:?}", path.display());
}

#[test]
fn the_sample_is_sound() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        sample.check(sample.copy().path(), &[], "a copy without damage");
    }
}

#[test]
fn the_identity() {
    let sample = Sample::new(IndexKind::Hash);
    let copy = sample.copy();
    let path = copy.path().join("STORE");
    let sound = fs::read(&path).expect("the file can be read");
    for offset in 0..sound.len() as u64 {
        flip(&path, offset, 0x80);
        let error = refusal(Db::open(copy.path(), quiet()), "a damaged identity");
        if (VERSION_OFFSET..VERSION_OFFSET + 4).contains(&offset) {
            assert_newer(&error, &path);
        } else {
            assert_corruption(&error, &path, Some(0), &format!("byte {offset} of the identity"));
        }
        fs::write(&path, &sound).expect("the file can be written");
    }
    for length in [0, 1, 127] {
        cut(&path, length);
        let error = sample.check_refused(copy.path(), &quiet(), "a cut identity");
        assert_corruption(&error, &path, Some(0), "a cut identity");
        fs::write(&path, &sound).expect("the file can be written");
    }
    sample.check(copy.path(), &[], "after the identity was restored");
}

#[test]
fn the_manifest() {
    let sample = Sample::new(IndexKind::Hash);
    let copy = sample.copy();
    let names = ["MANIFEST", "MANIFEST.copy"].map(|name| copy.path().join(name));
    let sound = fs::read(&names[0]).expect("the file can be read");
    assert_eq!(sound, fs::read(&names[1]).expect("the file can be read"), "the copy is a copy");
    for offset in 0..sound.len() as u64 {
        names.iter().for_each(|path| flip(path, offset, 0x80));
        let error = refusal(Db::open(copy.path(), quiet()), "a damaged manifest");
        if (VERSION_OFFSET..VERSION_OFFSET + 4).contains(&offset) {
            assert_newer(&error, &names[0]);
        } else {
            assert_corruption(&error, &names[0], Some(0), &format!("byte {offset} of both manifests"));
        }
        names.iter().for_each(|path| fs::write(path, &sound).expect("the file can be written"));
    }
    type Harm = fn(&Path);
    let harms: [(&str, Harm); 4] = [
        ("flipped", |path| flip(path, 70, 1)),
        ("empty", |path| cut(path, 0)),
        ("cut", |path| cut(path, 100)),
        ("gone", |path| fs::remove_file(path).expect("the file can be removed")),
    ];
    for (what, harm) in harms {
        for name in ["MANIFEST", "MANIFEST.copy"] {
            let copy = sample.copy();
            harm(&copy.path().join(name));
            sample.check(copy.path(), &[], &format!("{name} {what}"));
            let both = ["MANIFEST", "MANIFEST.copy"].map(|name| fs::read(copy.path().join(name)).expect("it is there"));
            assert_eq!(both[0], both[1], "{name} {what}: the next checkpoint makes both anew");
        }
        let copy = sample.copy();
        ["MANIFEST", "MANIFEST.copy"].iter().for_each(|name| harm(&copy.path().join(name)));
        let error = sample.check_refused(copy.path(), &quiet(), &format!("both manifests {what}"));
        assert_corruption(&error, &copy.path().join("MANIFEST"), Some(0), what);
    }
}

#[test]
fn segments() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        let listed = |copy: &Path| find(copy, &old_value(0)).0;
        for (offset, mask) in [(0, 1), (20, 1), (32, 1), (50, 1), (90, 1), (VERSION_OFFSET, 2)] {
            let copy = sample.copy();
            let path = listed(copy.path());
            flip(&path, offset, mask);
            let error = sample.check_refused(copy.path(), &quiet(), &format!("byte {offset} of a segment's header"));
            if offset == VERSION_OFFSET {
                assert_newer(&error, &path);
            } else {
                assert_corruption(&error, &path, Some(0), "a segment's header");
            }
        }
        let copy = sample.copy();
        let path = listed(copy.path());
        fs::remove_file(&path).expect("the file can be removed");
        let error = sample.check_refused(copy.path(), &quiet(), "a missing segment");
        assert_corruption(&error, &path, None, "a missing segment");
        for length in [0, 100, UNIT, (1 << 20) - 1] {
            let copy = sample.copy();
            let path = listed(copy.path());
            cut(&path, length);
            let error = sample.check_refused(copy.path(), &quiet(), &format!("a segment cut to {length} bytes"));
            assert_corruption(&error, &path, None, "a cut segment");
        }
        // A sound segment in another one's place, and one of another store.
        let other = Sample::new(kind);
        for from in [listed(other.directory.path()), find(sample.directory.path(), &large_value()[600_000..]).0] {
            let copy = sample.copy();
            let path = listed(copy.path());
            fs::copy(&from, &path).expect("the file can be copied");
            if fs::read(&from).expect("it is there") != fs::read(listed(sample.directory.path())).expect("it is there")
            {
                let error = sample.check_refused(copy.path(), &quiet(), "a segment in another one's place");
                assert_corruption(&error, &path, None, "a segment in another one's place");
            }
        }
    }
}

#[test]
fn the_middle_of_the_tail() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        let (path, at) = find(sample.directory.path(), &new_value(OLD_KEYS + 4));
        let name = path.file_name().expect("a segment has a name").to_owned();
        let unit = at / UNIT * UNIT;
        let places = [
            ("magic", unit),
            ("header", unit + 20),
            ("length", unit + 29),
            ("key", at - 8),
            ("value", at),
            ("padding", unit + UNIT - 1),
        ];
        for (what, offset) in places {
            for pending in ["kept", "lost"] {
                let copy = sample.copy();
                if pending == "lost" {
                    fs::remove_dir_all(copy.path().join("pending")).expect("the directory can be removed");
                    fs::create_dir(copy.path().join("pending")).expect("the directory can be made");
                }
                let path = copy.path().join("log").join(&name);
                flip(&path, offset, 0x10);
                let when = format!("the {what} of a durable batch, pending batches {pending}");
                let error = sample.check_refused(copy.path(), &quiet(), &when);
                assert_corruption(&error, &path, Some(unit), &when);
                // Refusing has changed nothing.
                flip(&path, offset, 0x10);
                sample.check(copy.path(), &[], &format!("{when}, restored"));
            }
        }
        // The batch overwritten by zeros, as if it had never been written.
        let copy = sample.copy();
        let path = copy.path().join("log").join(&name);
        let mut bytes = fs::read(&path).expect("the segment can be read");
        bytes[unit as usize..(unit + UNIT) as usize].fill(0);
        fs::write(&path, bytes).expect("the segment can be written");
        let error = sample.check_refused(copy.path(), &quiet(), "a durable batch of zeros");
        assert_corruption(&error, &path, Some(unit), "a durable batch of zeros");
    }
}

#[test]
fn the_end_of_the_tail() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        let last = OLD_KEYS + NEW_KEYS - 1;
        for pending in ["kept", "lost"] {
            let prepared = |damaged: &[u64]| {
                let copy = sample.copy();
                for number in damaged {
                    let (path, at) = find(copy.path(), &new_value(*number));
                    flip(&path, at, 1);
                }
                if pending == "lost" {
                    (0..2).for_each(|number| cut(&copy.path().join("pending").join(number.to_string()), 0));
                }
                copy
            };
            let copy = prepared(&[last]);
            // Nothing in the log says that the last batch was ever written: it is the torn tail of a crash, which takes
            // nothing that the pending batches still have.
            let missing: &[u64] = if pending == "kept" { &[] } else { &[last] };
            sample.check(copy.path(), missing, &format!("the last batch torn, pending batches {pending}"));
            sample.check(copy.path(), missing, &format!("the same again, pending batches {pending}"));
            let copy = prepared(&[last - 1, last]);
            let error = sample.check_refused(copy.path(), &quiet(), "a durable batch before a torn one");
            let (path, at) = find(sample.directory.path(), &new_value(last - 1));
            let path = copy.path().join("log").join(path.file_name().expect("a segment has a name"));
            // The last batch, damaged in its body alone, still says what was durable.
            assert_corruption(&error, &path, Some(at / UNIT * UNIT), "a durable batch before a torn one");
        }
    }
}

#[test]
fn pending_batches() {
    let sample = Sample::new(IndexKind::Hash);
    let mut newer = 0;
    for number in 0..2 {
        let copy = sample.copy();
        let path = copy.path().join("pending").join(number.to_string());
        // Unlike a damaged one, which may be of any earlier time, a newer one may hold what only that version can read.
        // One of the two may never have been used.
        if fs::read(&path).expect("it is there").starts_with(b"AIODBPND") {
            flip(&path, VERSION_OFFSET, 2);
            assert_newer(&sample.check_refused(copy.path(), &quiet(), "a pending batch of a newer version"), &path);
            newer += 1;
        }
        for (offset, length) in [(20, 4096), (40, 4096), (4100, 0), (0, 10), (0, 4000)] {
            let copy = sample.copy();
            let path = copy.path().join("pending").join(number.to_string());
            flip(&path, offset, 1);
            if length > 0 {
                cut(&path, length);
            }
            sample.check(copy.path(), &[], "a damaged pending batch that the log holds as well");
        }
    }
    assert!(newer > 0, "a pending batch was used");
}

#[test]
fn records() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        for (number, what, back) in [(0, "a separate value", 0), (1, "a packed value", 0), (1, "a packed key", 3)] {
            let copy = sample.copy();
            let (path, at) = find(copy.path(), &old_value(number));
            let at = at - back;
            flip(&path, at, 4);
            let when = format!("{}: {what}", kind.name());
            let (db, table) = open(copy.path(), kind, &quiet());
            let key = number.to_be_bytes();
            let assert_damaged = |error: &Error, how: &str| {
                assert_corruption(error, &path, None, &format!("{when}, {how}"));
                let Error::Corruption { offset, .. } = error else { unreachable!("just checked") };
                assert!((at - 200..=at).contains(offset), "{when}, {how}: byte {at} is damaged, {offset} is named");
            };
            assert_damaged(&refusal(table.get(&key), "a get of a damaged record"), "a get");
            assert_damaged(&refusal(table.get_many(&[key]), "a get of many"), "a get of many");
            let mut reader = table.reader(8).expect("a reader can be made");
            for other in 0..4 {
                reader.submit(&u64::to_be_bytes(other), other).expect("a get can be submitted");
            }
            for _ in 0..4 {
                let got = reader.poll().expect("a reader can be asked").expect("gets are in flight");
                if got.token == number {
                    assert_damaged(&refusal(got.value, "a get of a damaged record"), "a reader");
                } else {
                    let wanted = old_value(got.token);
                    assert_value(got.value.expect("others can be read"), Some(&wanted), &format!("{when}: beside it"));
                }
            }
            drop(reader);
            let found = damage(&db);
            assert!(!found.is_empty(), "{when}: a check lists the damage");
            for error in &found {
                assert_corruption(error, &path, None, &format!("{when}: a check lists nothing else"));
            }
            table.put(&key, b"anew").expect("a put works");
            assert_get(&table, &key, Some(b"anew"), "a damaged record that was overwritten");
            for other in (0..OLD_KEYS).filter(|other| *other != number) {
                assert_get(&table, &other.to_be_bytes(), Some(&old_value(other)), &when);
            }
        }
        let copy = sample.copy();
        let (path, at) = find(copy.path(), &large_value()[400_000..]);
        flip(&path, at, 4);
        let (db, table) = open(copy.path(), kind, &quiet());
        assert_corruption(
            &refusal(table.get(LARGE), "a get of a damaged value"),
            &path,
            None,
            "a part of a large value",
        );
        assert_get(&table, &1u64.to_be_bytes(), Some(&old_value(1)), "beside a damaged large value");
        assert!(!damage(&db).is_empty(), "a check lists the damage");
    }
}

/// A segment with a damaged batch keeps its space, and the others are emptied and used again all the same.
#[test]
fn reclaim_goes_on_beside_damage() {
    const KEYS: u64 = 300;
    const DAMAGED: u64 = 150;
    for kind in KINDS {
        let live = scratch();
        let (db, table) = open(live.path(), kind, &quiet());
        let put = |number: u64, seed: u64| table.put(&number.to_be_bytes(), &value(seed, 2000)).expect("a put works");
        for number in 0..KEYS {
            put(number, number);
        }
        let (segment, offset) = find(live.path(), &value(DAMAGED, 2000));
        let file = fs::File::options().write(true).open(&segment).expect("the segment can be opened");
        file.write_at(&[!value(DAMAGED, 2000)[7]], offset + 7).expect("the segment can be written");
        // Some only once: the other segments have something to be moved as well.
        let is_put = |number: u64, round: u64| !number.is_multiple_of(10) || number / 10 == round && number != DAMAGED;
        for round in 1..40 {
            for number in (0..KEYS).filter(|&number| is_put(number, round)) {
                put(number, number + round * KEYS);
            }
            support::upkeep(&db);
        }
        let stats = db.stats();
        let trouble = stats.trouble.clone().unwrap_or_default();
        assert!(trouble.contains("cannot be emptied"), "{}: {trouble}", kind.name());
        let written = 39 * KEYS * 2000;
        let taken = stats.segments_in_use * stats.segment_bytes;
        assert!(taken < written / 2, "{}: {taken} bytes after {written} were written", kind.name());
        let error = table.get(&DAMAGED.to_be_bytes()).expect_err("the damage is told");
        assert_corruption(&error, &segment, None, kind.name());
        for number in (0..KEYS).filter(|&number| number != DAMAGED) {
            let round = (1..40).rev().find(|&round| is_put(number, round)).unwrap_or(0);
            assert_get(&table, &number.to_be_bytes(), Some(&value(number + round * KEYS, 2000)), kind.name());
        }
    }
}

#[test]
fn a_hash_checkpoint() {
    let sample = Sample::new(IndexKind::Hash);
    let harmed = |harm: &dyn Fn(&Path)| {
        let copy = sample.copy();
        let path = only(&copy.path().join("index"), "ckp");
        harm(&path);
        (copy, path)
    };
    let length = fs::metadata(only(&sample.directory.path().join("index"), "ckp")).expect("it is there").len();
    for offset in [0, 12, 20, 33, 37, 41, 64, 72, 80, length - 1] {
        let (copy, path) = harmed(&|path| flip(path, offset, 0x40));
        let error = sample.check_refused(copy.path(), &quiet(), &format!("byte {offset} of a hash checkpoint"));
        assert_corruption(&error, &path, None, "a hash checkpoint");
        let db = Db::open(copy.path(), Options { rebuild_index: true, ..quiet() }).expect("the index can be rebuilt");
        drop(db);
        sample.check(copy.path(), &[], "a rebuilt index");
    }
    for length in [0, 30, 64, length / 2, length - 1] {
        let (copy, path) = harmed(&|path| cut(path, length));
        let error = sample.check_refused(copy.path(), &quiet(), &format!("a hash checkpoint cut to {length} bytes"));
        assert_corruption(&error, &path, None, "a cut hash checkpoint");
    }
    let (copy, path) = harmed(&|path| flip(path, VERSION_OFFSET, 2));
    assert_newer(&sample.check_refused(copy.path(), &quiet(), "a hash checkpoint of a newer version"), &path);
}

#[test]
fn the_lmdb_environment() {
    let sample = Sample::new(IndexKind::Lmdb);
    let whole = fs::metadata(sample.directory.path().join("index/lmdb/data.mdb")).expect("it is there").len();
    type Harm = Box<dyn Fn(&Path)>;
    let garbage: Harm = Box::new(|path| {
        let mut bytes = fs::read(path).expect("the file can be read");
        bytes[..8192].copy_from_slice(&value(1, 8192));
        fs::write(path, bytes).expect("the file can be written");
    });
    let harms: [(&str, Harm); 4] = [
        ("garbage in both meta pages", garbage),
        ("cut to a few bytes", Box::new(|path| cut(path, 100))),
        ("cut in the middle", Box::new(move |path| cut(path, whole / 2 / UNIT * UNIT))),
        ("without its last page", Box::new(move |path| cut(path, whole - UNIT))),
    ];
    for (what, harm) in harms {
        let copy = sample.copy();
        harm(&copy.path().join("index/lmdb/data.mdb"));
        // In a process of its own: a page that is not there would end it.
        let mut child = Role::start(&["open", copy.path().to_str().expect("the path is text")]);
        let said = child.line().unwrap_or_else(|| panic!("{what}: the process that opened the store has died"));
        assert!(
            said.starts_with("Index") && said.contains("index/lmdb") && said.contains("rebuild"),
            "{what}: the error names the index and the way out: {said}"
        );
        drop(child);
        let db = Db::open(copy.path(), Options { rebuild_index: true, ..quiet() });
        drop(db.unwrap_or_else(|error| panic!("{what}: the index can be rebuilt: {error}")));
        sample.check(copy.path(), &[], &format!("{what}: a rebuilt index"));
    }
    // The environment of another store, which has gone further.
    let other = Sample::new(IndexKind::Lmdb);
    let copy = sample.copy();
    fs::copy(other.directory.path().join("index/lmdb/data.mdb"), copy.path().join("index/lmdb/data.mdb"))
        .expect("the file can be copied");
    let error = sample.check_refused(copy.path(), &quiet(), "the index of another store");
    assert!(matches!(error, Error::Index { .. }), "the index of another store is refused, not: {error:?}");
}
