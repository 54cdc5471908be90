//! Damage to the log: segments, batches, records, and what was still in memory.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::{
    LARGE, NEW_KEYS, OLD_KEYS, Sample, UNIT, VERSION_OFFSET, assert_corruption, assert_newer, cut, find, flip,
    large_value, new_value, old_value,
};
use crate::support;
use crate::support::{KINDS, assert_get, assert_value, damage, open, quiet, refusal, scratch, value};
use aiodb::{Error, IndexKind};

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
