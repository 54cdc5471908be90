//! Damaged and newer files: each is a typed error that names the file, and never a silent loss.

mod files;
mod log;
mod runs;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use aiodb::{Db, Error, IndexKind, Options};
use support::{KINDS, assert_get, copy_tree, damage, open, quiet, refusal, scratch, value};
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
    let is_newer = matches!(error, Error::NewerVersion { path: said, found, known } if said == path && found > known);
    assert!(is_newer, "{} is of a newer version, and that is said, not: {error:?}", path.display());
}

#[test]
fn the_sample_is_sound() {
    for kind in KINDS {
        let sample = Sample::new(kind);
        sample.check(sample.copy().path(), &[], "a copy without damage");
    }
}
