//! Damage to a repository.

use std::fs;
use std::path::{Path, PathBuf};

use super::{UNIT, back_up, reopen, restored};
use crate::support::{KINDS, assert_get, copy_tree, open, quiet, refusal, scratch, value};
use aiodb::{Db, Error, IndexKind, Repository, Table};
use tempfile::TempDir;

/// A store with two restore points, and a third one beside it that is used to tell them apart.
pub(crate) fn sample(kind: IndexKind) -> (TempDir, TempDir, Db, Table) {
    let (directory, repository) = (scratch(), scratch());
    let (db, table) = open(directory.path(), kind, &quiet());
    for round in 0..2u64 {
        for number in 0..60u64 {
            let length = if number == 7 { 700_000 } else { 40 * number as usize };
            table.put(&number.to_be_bytes(), &value(number + 100 * round, length)).expect("a put works");
        }
        back_up(&db, repository.path());
    }
    (directory, repository, db, table)
}

pub(crate) fn check_sample(db: &Db, round: u64, when: &str) {
    let table = db.table("t").expect("the table is there");
    for number in 0..60u64 {
        let length = if number == 7 { 700_000 } else { 40 * number as usize };
        assert_get(&table, &number.to_be_bytes(), Some(&value(number + 100 * round, length)), when);
    }
}

fn files_of(repository: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = ["segments", "points", "runs"]
        .iter()
        // Not all have runs.
        .filter_map(|name| fs::read_dir(repository.join(name)).ok())
        .flatten()
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

#[test]
fn damage_to_a_repository_is_found_and_never_restored() {
    for kind in KINDS {
        let (_directory, sound, db, _) = sample(kind);
        db.close().expect("the store can be closed");
        for name in files_of(sound.path()) {
            let name = name.strip_prefix(sound.path()).expect("it lies there").to_path_buf();
            let length = fs::metadata(sound.path().join(&name)).expect("it is there").len();
            for harm in ["first byte", "last byte", "cut", "missing"] {
                let copy = scratch();
                copy_tree(sound.path(), copy.path());
                let path = copy.path().join(&name);
                let mut bytes = fs::read(&path).expect("the file can be read");
                match harm {
                    "first byte" => bytes[0] ^= 1,
                    "last byte" => bytes[length as usize - 1] ^= 0x80,
                    "cut" => bytes.truncate(length as usize / 2),
                    _ => {}
                }
                fs::write(&path, bytes).expect("the file can be written");
                if harm == "missing" {
                    fs::remove_file(&path).expect("the file can be removed");
                }
                let what = format!("{}: {harm} of {}", kind.name(), name.display());
                check_harmed(copy.path(), &path, harm, &what);
            }
        }
    }
}

fn check_harmed(repository: &Path, path: &Path, harm: &str, what: &str) {
    let of_point = path.extension().is_some_and(|extension| extension == "point");
    let opened = match Repository::open(repository) {
        Ok(opened) => opened,
        Err(error) => {
            let names = matches!(&error, Error::Corruption { path: said, .. } if said == path);
            assert!(of_point && names, "{what}: the file is named: {error}");
            return;
        }
    };
    if of_point {
        // Without its file a restore point is not there; the other one is.
        assert_eq!((harm, opened.points().len()), ("missing", 1), "{what}");
    }
    let report = opened.verify(&mut |_, _| {}).expect("it can be checked");
    assert_eq!(report.damage.is_empty(), of_point, "{what}: {:?}", report.damage);
    for (round, point) in opened.points().iter().enumerate() {
        let target = scratch();
        let outcome = opened.restore(Some(point.number), target.path(), &mut |_, _| {});
        if report.damaged_points.contains(&point.number) {
            let error = refusal(outcome, what);
            assert!(matches!(&error, Error::Corruption { path: said, .. } if said == path), "{what}: {error}");
            let error = refusal(Db::open(target.path(), quiet()), "half a store");
            assert!(matches!(error, Error::NotAStore { .. }), "{what}: half a store is no store: {error}");
        } else {
            outcome.unwrap_or_else(|error| panic!("{what}: point {}: {error}", point.number));
            let round = if of_point { point.number - 1 } else { round as u64 };
            check_sample(&reopen(target.path()), round, what);
        }
    }
}

#[test]
fn a_damaged_repository_is_mended_by_the_next_backup_where_the_store_has_the_bytes() {
    let (_directory, repository, db, _) = sample(IndexKind::Lmdb);
    let segments = files_of(repository.path()).into_iter().filter(|path| path.extension().is_some_and(|e| e == "seg"));
    for (position, path) in segments.enumerate() {
        if position % 2 == 0 {
            fs::remove_file(path).expect("the file can be removed");
        } else {
            let file = fs::File::options().write(true).open(path).expect("the file can be opened");
            file.set_len(3 * UNIT + 100).expect("the file can be cut");
        }
    }
    back_up(&db, repository.path());
    let opened = Repository::open(repository.path()).expect("the repository can be opened");
    assert_eq!(opened.verify(&mut |_, _| {}).expect("it can be checked").damage.len(), 0);
    drop(opened);
    let (_restored, first) = restored(repository.path(), 1);
    check_sample(&first, 0, "the first restore point");
}
