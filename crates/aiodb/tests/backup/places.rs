//! Where backups go, and what they are taken of: wrong places, restored and copied stores, full and slow disks.

use std::fs;
use std::path::Path;

use super::harm::{check_sample, sample};
use super::{back_up, reopen, restore, restored};
use crate::support::{KINDS, Mount, assert_get, copy_tree, damage, open, quiet, refusal, scratch, value};
use aiodb::{BackupOptions, Db, Durability, Error, IndexKind, Repository};

#[test]
fn wrong_places_are_refused_with_advice() {
    let (directory, repository, db, _) = sample(IndexKind::Hash);
    let occupied = scratch();
    fs::write(occupied.path().join("photo.jpg"), "mine").expect("a file can be written");
    let backup = |path: &Path| db.backup(path, &BackupOptions::default(), &mut |_, _| {});
    let error = refusal(backup(occupied.path()), "a backup among other files");
    assert!(matches!(error, Error::NotARepository { .. }), "{error}");
    let error = refusal(backup(directory.path()), "a backup into the store itself");
    assert!(matches!(error, Error::NotARepository { .. }), "{error}");
    let elsewhere = scratch();
    let (other, _) = open(elsewhere.path(), IndexKind::Hash, &quiet());
    let error = refusal(
        other.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {}),
        "a backup into another store's repository",
    );
    assert!(matches!(error, Error::OtherStore { .. }), "{error}");

    let opened = Repository::open(repository.path()).expect("the repository can be opened");
    let error = refusal(backup(repository.path()), "a backup into a repository in use");
    assert!(matches!(error, Error::RepositoryInUse { .. }), "{error}");
    for target in [occupied.path(), repository.path()] {
        let outcome = opened.restore(None, target, &mut |_, _| {});
        assert!(
            matches!(outcome, Err(Error::Occupied { .. } | Error::Locked { .. })),
            "a restore over {}: {outcome:?}",
            target.display()
        );
    }
    let error = refusal(opened.restore(None, directory.path(), &mut |_, _| {}), "a restore over a store in use");
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    let error = refusal(opened.restore(Some(9), scratch().path(), &mut |_, _| {}), "an unknown restore point");
    assert!(matches!(error, Error::NoRestorePoint { .. }), "{error}");
    db.close().expect("the store can be closed");
    let error = refusal(opened.restore(None, directory.path(), &mut |_, _| {}), "a restore over a closed store");
    assert!(matches!(error, Error::Occupied { .. }), "{error}");
    drop(opened);
    let error = refusal(backup(repository.path()), "a backup of a closed store");
    assert!(matches!(error, Error::Closed), "{error}");
    check_sample(&reopen(directory.path()), 1, "after all refusals");
    let error = refusal(Repository::open(occupied.path()), "an empty directory is no repository");
    assert!(matches!(error, Error::NotARepository { .. }), "{error}");
}

/// A process that is killed as it begins leaves the file with which it tries out the directory.
#[test]
fn what_a_process_left_that_was_killed_as_it_began_is_in_nobodys_way() {
    let left = |path: &Path, names: &[&str]| {
        for name in names {
            fs::write(path.join(name), "left").expect("a file can be written");
        }
    };
    let is_there = |path: &Path, name: &str| path.join(name).exists();
    let (directory, repository, target) = (scratch(), scratch(), scratch());
    let trials = [".aiodb-trial-7-0", ".aiodb-trial-7-1"];
    left(directory.path(), &trials);
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    table.put(b"key", b"value").expect("a put works");
    left(repository.path(), &trials);
    back_up(&db, repository.path());
    left(target.path(), &[trials[0], "LOCK", "RESTORING.new"]);
    let opened = Repository::open(repository.path()).expect("the repository can be opened");
    opened.restore(None, target.path(), &mut |_, _| {}).expect("a restore point can be restored");
    let restored = reopen(target.path());
    assert_get(&restored.table("t").expect("the table is there"), b"key", Some(b"value"), "restored");
    for path in [directory.path(), repository.path(), target.path()] {
        assert!(trials.iter().chain(&["RESTORING.new"]).all(|name| !is_there(path, name)), "{}", path.display());
    }
    // A file of anybody else's is no such file.
    let other = scratch();
    left(other.path(), &["trial"]);
    assert!(matches!(opened.restore(None, other.path(), &mut |_, _| {}), Err(Error::Occupied { .. })));
}

#[test]
fn a_restored_store_goes_its_own_way_in_the_same_repository() {
    for kind in KINDS {
        let (_directory, repository, db, table) = sample(kind);
        let fork = restore(repository.path(), Some(1));
        let fork_db = reopen(fork.path());
        let fork_table = fork_db.table("t").expect("the table is there");
        check_sample(&fork_db, 0, "the fork");
        for number in 0..60u64 {
            table.put(&number.to_be_bytes(), &value(300 + number, 40 * number as usize)).expect("a put works");
            fork_table.put(&number.to_be_bytes(), &value(400 + number, 40 * number as usize)).expect("a put works");
        }
        for (db, wanted) in [(&db, 300), (&fork_db, 400), (&db, 300), (&fork_db, 400)] {
            let number = back_up(db, repository.path()).point.number;
            let (_directory, restored) = restored(repository.path(), number);
            let restored_table = restored.table("t").expect("the table is there");
            for number in 0..60u64 {
                let wanted = value(wanted + number, 40 * number as usize);
                assert_get(&restored_table, &number.to_be_bytes(), Some(&wanted), kind.name());
            }
            assert!(damage(&restored).is_empty(), "a check finds no damage, but {:?}", damage(&restored));
        }
        let opened = Repository::open(repository.path()).expect("the repository can be opened");
        assert!(opened.verify(&mut |_, _| {}).expect("it can be checked").damage.is_empty());
    }
}

#[test]
fn a_copy_that_changed_on_its_own_is_told_from_the_store() {
    let (directory, repository, db, table) = sample(IndexKind::Hash);
    db.close().expect("the store can be closed");
    let copy = scratch();
    copy_tree(directory.path(), copy.path());
    drop(table);
    for (path, seed, allowed) in [(directory.path(), 1000, true), (copy.path(), 2000, false)] {
        let db = reopen(path);
        let table = db.table("t").expect("the table is there");
        for number in 0..200u64 {
            table.put(&number.to_be_bytes(), &value(seed + number, 500)).expect("a put works");
        }
        let outcome = db.backup(repository.path(), &BackupOptions::default(), &mut |_, _| {});
        match outcome {
            Ok(_) => assert!(allowed, "the copy is not the store"),
            Err(error) => assert!(!allowed && matches!(error, Error::OtherStore { .. }), "{error}"),
        }
    }
    let opened = Repository::open(repository.path()).expect("the repository can be opened");
    assert!(opened.verify(&mut |_, _| {}).expect("it can be checked").damage.is_empty());
    assert_eq!(opened.points().len(), 3);
}

#[test]
fn a_full_disk_leaves_earlier_restore_points_whole() {
    for kind in KINDS {
        let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=12m", "tmpfs"]) else { return };
        let repository = mount.path().join("backups");
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let put = |seed: u64, count: u64| {
            for number in 0..count {
                table
                    .put_with(&number.to_be_bytes(), &value(seed + number, 4000), Durability::None)
                    .expect("a put works");
            }
        };
        put(0, 1000);
        back_up(&db, &repository);
        put(10_000, 2500);
        let full = |db: &Db| {
            let error = refusal(
                db.backup(&repository, &BackupOptions::default(), &mut |_, _| {}),
                "a backup that does not fit",
            );
            assert!(matches!(error, Error::DestinationFull { .. }), "{error}");
            assert!(error.to_string().contains("free some"), "{error}");
        };
        full(&db);
        full(&db);
        let check = |point, seed, count: u64| {
            let (_directory, restored) = restored(&repository, point);
            let table = restored.table("t").expect("the table is there");
            for number in 0..count {
                assert_get(&table, &number.to_be_bytes(), Some(&value(seed + number, 4000)), kind.name());
            }
        };
        check(1, 0, 1000);
        let error = {
            let opened = Repository::open(&repository).expect("the repository can be opened");
            assert_eq!(opened.points().len(), 1);
            refusal(opened.restore(None, mount.path().join("store"), &mut |_, _| {}), "a restore that does not fit")
        };
        assert!(matches!(error, Error::DestinationFull { .. }), "{error}");
        fs::remove_dir_all(mount.path().join("store")).expect("half a store can be removed");
        mount.remount("size=64m");
        back_up(&db, &repository);
        check(2, 10_000, 2500);
    }
}

#[test]
fn a_backup_can_be_slowed_down() {
    let (directory, repository) = (scratch(), scratch());
    let (db, table) = open(directory.path(), IndexKind::Hash, &quiet());
    for number in 0..500u64 {
        table.put_with(&number.to_be_bytes(), &value(number, 4000), Durability::None).expect("a put works");
    }
    let options = BackupOptions { bytes_per_second: Some(8 << 20) };
    let began = std::time::Instant::now();
    let mut last = (0, 0);
    let report = db.backup(repository.path(), &options, &mut |done, total| {
        assert!(done >= last.0 && done <= total, "progress goes on: {done} of {total}");
        last = (done, total);
    });
    let copied = report.expect("a backup can be made").copied_bytes;
    assert_eq!(last, (copied, copied), "progress comes to its end");
    let least = copied as f64 / (8 << 20) as f64 * 0.8;
    assert!(began.elapsed().as_secs_f64() >= least, "{copied} bytes took {:?}", began.elapsed());
}

/// A large index is not copied to its end.
#[test]
fn a_backup_ends_when_the_store_is_closed() {
    for kind in KINDS {
        let (directory, repository) = (scratch(), scratch());
        let (db, table) = open(directory.path(), kind, &quiet());
        for number in 0..40_000u64 {
            table.put_with(&number.to_be_bytes(), &value(number, 40), Durability::None).expect("a put works");
        }
        // Pieces are small where there is a pace.
        let options = BackupOptions { bytes_per_second: Some(1 << 30) };
        let mut pieces = 0;
        let outcome = db.backup(repository.path(), &options, &mut |_, _| {
            pieces += 1;
            db.close().expect("a store that is read can be closed");
        });
        let error = refusal(outcome, "a backup of a store that is closed meanwhile");
        assert!(matches!(error, Error::Closed), "{}: {error}", kind.name());
        assert_eq!(pieces, 1, "{}: nothing is copied of a store that is closed", kind.name());
        let opened = Repository::open(repository.path()).expect("the repository can be opened");
        assert!(opened.points().is_empty(), "{}: no restore point was made", kind.name());
    }
}
