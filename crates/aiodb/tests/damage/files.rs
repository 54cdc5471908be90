//! Damage to the files that a store has one of: its identity, the manifest, the checkpoints of indexes.

use std::fs;
use std::path::Path;

use super::{Sample, UNIT, VERSION_OFFSET, assert_corruption, assert_newer, cut, flip, only};
use crate::support::{Role, quiet, refusal, value};
use aiodb::{Db, Error, IndexKind, Options};

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
