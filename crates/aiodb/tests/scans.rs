//! What scans, snapshots, operands, deleted ranges and expiry promise, each by itself; `operations.rs` mixes them.

mod support;

use std::num::NonZeroU64;
use std::time::Duration;

use aiodb::io::Device;
use aiodb::io::sim::SimDevice;
use aiodb::merge::{Add, Append};
use aiodb::{
    Batch, Compression, Db, Error, IndexKind, MergeOperators, Options, Scan, ScanOptions, Step, Table, TableOptions,
    WriteOptions,
};
use support::{KINDS, ORDERED, assert_get, open, refusal, scratch, small, value};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs(scan: aiodb::Result<Scan>) -> Pairs {
    scan.expect("a scan begins").collect::<aiodb::Result<_>>().expect("every record can be read")
}

fn keys(scan: aiodb::Result<Scan>) -> Vec<Vec<u8>> {
    pairs(scan).into_iter().map(|(key, _)| key).collect()
}

/// Keys that are hard to put in order or to find: prefixes of each other, zeros, the highest bytes, and keys that the
/// index has only in part.
fn awkward_keys() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = [&b"a"[..], b"a\0", b"a\0\0", b"ab", b"b", b"\0", b"\xff", b"\xff\xff", b"\xfe\xff"]
        .map(<[u8]>::to_vec)
        .to_vec();
    for last in 0..4 {
        keys.push([&vec![b'k'; 500][..], &[last]].concat());
        keys.push([&vec![0xff; 447][..], &[last]].concat());
    }
    keys.push(vec![b'k'; 448]);
    keys.push(vec![0xff; 60_000]);
    keys.sort();
    keys
}

/// A table with these keys, some of whose records lie in the log and the index, some in the open batch.
fn fill(table: &Table, db: &Db, keys: &[Vec<u8>]) {
    for (number, key) in keys.iter().enumerate() {
        table.put(key, &value(number as u64, 700 * number)).expect("a put works");
        if number == keys.len() / 2 {
            db.checkpoint().expect("a checkpoint");
        }
    }
}

#[test]
fn a_scan_goes_through_a_range_in_order_and_back() {
    for kind in ORDERED {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        let all = awkward_keys();
        fill(&table, &db, &all);
        for (key, found) in all.iter().zip(pairs(table.scan(ScanOptions::all()))) {
            let number = all.iter().position(|other| other == key).expect("a key of these") as u64;
            assert_eq!(found, (key.clone(), value(number, 700 * number as usize)), "{}", support::name(key));
        }
        let limits = all.iter().map(Vec::as_slice).chain([&b"a\0\x01"[..], b"kk", b"z", b"\xff\xff\xff"]);
        for limit in limits.clone() {
            let expect = |what: &str, options: ScanOptions, wanted: &dyn Fn(&[u8]) -> bool| {
                let mut wanted: Vec<_> = all.iter().filter(|key| wanted(key)).cloned().collect();
                let what = format!("{what} {}", support::name(limit));
                assert_eq!(keys(table.scan(options.clone())), wanted, "{what}");
                assert_eq!(keys(table.scan(options.clone().limit(2))), wanted[..wanted.len().min(2)], "two, {what}");
                wanted.reverse();
                assert_eq!(keys(table.scan(options.clone().backward())), wanted, "backward, {what}");
                let keys_only = pairs(table.scan(options.backward().keys_only().limit(3)));
                let wanted: Pairs = wanted.into_iter().take(3).map(|key| (key, Vec::new())).collect();
                assert_eq!(keys_only, wanted, "the last three keys, {what}");
            };
            expect("from", ScanOptions::all().from(limit), &|key| key >= limit);
            expect("after", ScanOptions::all().after(limit), &|key| key > limit);
            expect("before", ScanOptions::all().before(limit), &|key| key < limit);
            expect("to", ScanOptions::all().to(limit), &|key| key <= limit);
            expect("prefix", ScanOptions::prefix(limit), &|key| key.starts_with(limit));
            for other in limits.clone() {
                let options = ScanOptions::all().after(limit).to(other);
                expect("between", options, &|key| key > limit && key <= other);
            }
        }
        assert!(keys(table.scan(ScanOptions::all().limit(0))).is_empty());
    }
}

/// Rows in the order of the log but for one, which so begins a read of its own: wherever in the scan that is, and however many
/// rows are wanted.
#[test]
fn a_row_that_lies_apart_is_found_in_its_place() {
    const ROWS: u64 = 140;
    for kind in ORDERED {
        for apart in [1, 15, 63, 64, 65, 102, 103, 127] {
            let directory = scratch();
            let (db, table) = open(directory.path(), kind, &Options { cache_bytes: 0, ..small() });
            let row = |number: u64| (number.to_be_bytes().to_vec(), value(number, 1000));
            for number in (0..ROWS).chain([apart]) {
                if number == apart {
                    // Far behind what lies before it.
                    table.put(b"other", &value(number, 100_000)).expect("a put works");
                }
                table.put(&row(number).0, &row(number).1).expect("a put works");
            }
            db.sync().expect("what is pending can be written");
            let all: Pairs = (0..ROWS).map(row).collect();
            for limit in 1..=ROWS {
                let options = ScanOptions::all().before(&ROWS.to_be_bytes());
                let found = pairs(table.scan(options.clone().limit(limit)));
                assert!(found == all[..limit as usize], "{limit} rows, one apart at {apart}");
                let found = pairs(table.scan(options.backward().limit(limit)));
                assert!(found.iter().eq(all.iter().rev().take(limit as usize)), "{limit} from the end, {apart}");
            }
        }
    }
}

#[test]
fn an_unordered_table_is_iterated_and_refuses_what_needs_an_order() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Hash, &small());
    let all = awkward_keys();
    fill(&table, &db, &all);
    table.put(&all[3], b"again").expect("a put works");
    table.delete(&all[4]).expect("a delete works");
    let mut found = keys(table.iterate());
    found.sort();
    let wanted: Vec<_> = all.iter().filter(|key| **key != all[4]).cloned().collect();
    assert_eq!(found, wanted, "each key once");
    for error in [
        refusal(table.scan(ScanOptions::all()).map(drop), "a scan in key order"),
        refusal(table.delete_range(b"a", b"b"), "the delete of a range"),
        refusal(Batch::new().delete_range(&table, b"a", b"b").map(drop), "the same in a batch"),
    ] {
        assert!(matches!(&error, Error::Unordered { name } if name == "t"), "it names the table, not: {error:?}");
    }
}

#[test]
fn scans_and_snapshots_see_their_moment_whatever_happens_to_the_table() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &small());
        for number in 0..2_000u32 {
            table.put_with(&number.to_be_bytes(), &value(number.into(), 900), aiodb::Durability::None).expect("a put");
        }
        let snapshot = db.snapshot().expect("a snapshot");
        let mut scans = [table.iterate().expect("a scan"), table.iterate().expect("a scan")];
        for scan in &mut scans {
            scan.next_record().expect("a record").expect("the first of many");
        }
        let (mut truncated, mut dropped) = (Vec::new(), Vec::new());
        for number in 0..2_000u32 {
            match number % 3 {
                0 => table.delete(&number.to_be_bytes()).map(drop),
                1 => table.put(&number.to_be_bytes(), b"later").map(drop),
                _ => Ok(()),
            }
            .expect("a change");
        }
        db.truncate_table("t").expect("a truncate");
        truncated.extend(scans[0].by_ref().map(|record| record.expect("a record of the truncated table").0));
        table.put(b"new", b"new").expect("a put");
        db.drop_table("t").expect("a drop");
        dropped.extend(scans[1].by_ref().map(|record| record.expect("a record of the dropped table").0));
        for mut found in [truncated, dropped] {
            found.sort();
            found.dedup();
            assert_eq!(found.len(), 1_999, "{}: all but the one taken before", kind.name());
        }
        let seen = snapshot.get(&table, &7u32.to_be_bytes()).expect("a get of the snapshot");
        assert_eq!(
            seen.as_deref(),
            Some(&value(7, 900)[..]),
            "{}: overwritten, truncated and dropped since",
            kind.name()
        );
        let error = refusal(table.iterate().map(drop), "a scan of a dropped table");
        assert!(matches!(error, Error::NoSuchTable { .. }), "{error}");
        drop((scans, snapshot));
        db.close().expect("the store can be closed");
    }
}

fn merging(operators: MergeOperators) -> Options {
    Options { merge_operators: operators, ..small() }
}

#[test]
fn operands_are_kept_for_an_operator_that_is_missing_for_a_while() {
    for kind in KINDS {
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd(3)] {
            let directory = scratch();
            let operators = MergeOperators::default().with(Append).with(Add);
            let db = Db::open(directory.path(), merging(operators.clone())).expect("a store");
            let named = |merge: &str| TableOptions { merge: Some(merge.to_owned()), compression, ..kind.into() };
            let table = db.create_table_with("log", named("append")).expect("a table");
            let plain = db.create_table("plain", kind).expect("a table");
            // So long that no memtable has it: what is merged into it stays an operand.
            let base = [b'-'; 100];
            table.put(b"put", &base).expect("a put");
            for part in [&b"one"[..], b"", b"two"] {
                table.merge(b"put", part).expect("a merge");
                table.merge(b"bare", part).expect("a merge");
                table.merge(b"deleted", part).expect("a merge");
                table.delete(b"deleted").expect("a delete");
            }
            table.merge(b"deleted", b"alone").expect("a merge");
            table.put(b"untouched", b"value").expect("a put");
            let check = |table: &Table, when: &str| {
                assert_get(table, b"put", Some(&[&base[..], b"onetwo"].concat()), when);
                assert_get(table, b"bare", Some(b"onetwo"), when);
                assert_get(table, b"deleted", Some(b"alone"), when);
            };
            check(&table, "at once");
            let error = refusal(plain.merge(b"k", b"v"), "a merge where no operator was named");
            assert!(matches!(error, Error::NoMergeOperator { name: None }), "{error}");
            db.close().expect("the store can be closed");

            let db = Db::open(directory.path(), small()).expect("the store without its operators");
            let table = db.table("log").expect("the table");
            let unknown = |error: Error| {
                let named = matches!(&error, Error::NoMergeOperator { name: Some(name) } if name == "append");
                assert!(named, "it names the operator, not: {error}");
            };
            unknown(refusal(table.get(b"put"), "a get of operands"));
            unknown(refusal(table.merge(b"put", b"more"), "another operand"));
            unknown(refusal(pairs_of(table.iterate()), "a scan over operands"));
            assert_get(&table, b"untouched", Some(b"value"), "what needs no operator");
            table.put(b"bare", b"").expect("a put works without the operator");
            db.checkpoint().expect("a checkpoint works without the operator");
            db.close().expect("the store can be closed");

            let db = Db::open(directory.path(), merging(operators)).expect("the store");
            let table = db.table("log").expect("the table");
            table.merge(b"bare", b"onetwo").expect("a merge");
            check(&table, "with the operators again");
        }
    }
}

/// Operands that are alone under their keys are read ahead as puts are, others when it is their turn.
#[test]
fn operands_are_scanned_in_order_and_back() {
    for kind in ORDERED {
        for compression in [Compression::None, Compression::Lz4] {
            let directory = scratch();
            let db = Db::open(directory.path(), merging(MergeOperators::default().with(Append))).expect("a store");
            let options = TableOptions { merge: Some("append".to_owned()), compression, ..kind.into() };
            let table = db.create_table_with("log", options).expect("a table");
            let mut expected = Pairs::new();
            for number in 0..3000usize {
                let (key, part) = (format!("{number:05}").into_bytes(), value(number as u64, 100 + number % 900));
                let parts = match number % 5 {
                    0..3 => vec![part],
                    3 => vec![part.clone(), b"more".to_vec(), part],
                    _ => {
                        table.merge(&key, b"deleted").expect("a merge");
                        table.delete(&key).expect("a delete");
                        vec![part]
                    }
                };
                for part in &parts {
                    table.merge(&key, part).expect("a merge");
                }
                expected.push((key, parts.concat()));
                if number == 1500 {
                    db.checkpoint().expect("a checkpoint works");
                }
            }
            assert!(pairs(table.scan(ScanOptions::all())) == expected, "forward");
            let from = ScanOptions::all().from(b"01000");
            for limit in [1, 20, 700] {
                assert!(
                    pairs(table.scan(from.clone().limit(limit))) == expected[1000..1000 + limit as usize],
                    "{limit}"
                );
            }
            // One that is left half-way changes nothing for the next.
            let mut left = table.scan(ScanOptions::all()).expect("a scan begins");
            left.next_record().expect("a record can be read");
            drop(left);
            expected.reverse();
            assert!(pairs(table.scan(ScanOptions::all().backward())) == expected, "backward");
        }
    }
}

fn pairs_of(scan: aiodb::Result<Scan>) -> aiodb::Result<Pairs> {
    scan?.collect()
}

#[test]
fn an_operator_that_fails_is_named_until_the_key_is_put() {
    for kind in KINDS {
        let directory = scratch();
        let db = Db::open(directory.path(), merging(MergeOperators::default().with(Add))).expect("a store");
        let options = TableOptions { merge: Some("add".to_owned()), ..kind.into() };
        let table = db.create_table_with("sums", options).expect("a table");
        table.put(b"k", b"not a number").expect("a put");
        table.merge(b"k", &5i64.to_le_bytes()).expect("a merge");
        table.merge(b"other", &7i64.to_le_bytes()).expect("a merge");
        let error = refusal(table.get(b"k"), "a sum with words");
        assert!(matches!(&error, Error::Merge { operator, .. } if operator == "add"), "{error}");
        assert_get(&table, b"other", Some(&7i64.to_le_bytes()), "another key");
        table.put(b"k", &1i64.to_le_bytes()).expect("a put");
        table.merge(b"k", &2i64.to_le_bytes()).expect("a merge");
        assert_get(&table, b"k", Some(&3i64.to_le_bytes()), "after a put");
    }
}

#[test]
fn a_deleted_range_is_gone_and_nothing_else() {
    for kind in ORDERED {
        let directory = scratch();
        let (mut db, mut table) = open(directory.path(), kind, &small());
        let all = awkward_keys();
        fill(&table, &db, &all);
        let mut batch = Batch::new();
        batch
            .put(&table, b"c", b"before")
            .and_then(|batch| batch.delete_range(&table, b"a\0", b"b"))
            .and_then(|batch| batch.delete_range(&table, b"c", b"d"))
            .and_then(|batch| batch.put(&table, b"ab", b"after"))
            .expect("a batch");
        db.write(&batch).expect("the batch is written");
        table.delete_range(b"\xff\xff", b"").expect("to the table's end");
        table.delete_range(b"x", b"x").expect("nothing");
        table.put(b"\xff\xff\x01", b"new").expect("a put");
        let gone = |key: &[u8]| (key >= &b"a\0"[..] && key < &b"b"[..]) || key >= &b"\xff\xff"[..];
        let mut wanted: Vec<_> = all.iter().filter(|key| !gone(key)).cloned().collect();
        wanted.extend([b"ab".to_vec(), b"\xff\xff\x01".to_vec()]);
        wanted.sort();
        for when in ["at once", "after a reopen", "after a rebuild", "after the range was carried out"] {
            assert_eq!(keys(table.scan(ScanOptions::all())), wanted, "{when}");
            for key in &all {
                let wanted = wanted.contains(key);
                let found = table.get(key).expect("a get").is_some();
                assert_eq!(found, wanted, "{} {when}", support::name(key));
            }
            if when == "after a rebuild" {
                db.step(Step::DeleteRanges).expect("a step");
                continue;
            }
            db.close().expect("the store can be closed");
            let options = Options { rebuild_index: when == "after a reopen", ..small() };
            (db, table) = open(directory.path(), kind, &options);
        }
        let long = vec![b'a'; 449];
        for (start, end) in [(&long[..], &b""[..]), (b"a", &long)] {
            let error = refusal(table.delete_range(start, end), "a long bound");
            assert!(matches!(error, Error::KeyLength { length: 449, max: 448 }), "{error}");
        }
        let error = refusal(table.delete_range(b"", b"z"), "a range without a start");
        assert!(matches!(error, Error::KeyLength { length: 0, .. }), "{error}");
    }
}

/// The machine's clock may jump; what has expired stays so.
#[test]
fn what_has_expired_stays_away_even_if_the_clock_goes_back() {
    for kind in KINDS {
        let (directory, device) = (scratch(), SimDevice::new(11));
        device.set_real_directory(directory.path());
        let root = std::path::Path::new("/store");
        device.create_dir(root).expect("a directory");
        let options = Options { background: false, ..small() };
        let db = Db::open_on(device.clone(), root, options.clone()).expect("a store");
        let table = db.create_table("t", kind).expect("a table");
        device.set_wall_clock(1_000_000);
        let until = |ms: u64| WriteOptions { expires_ms: NonZeroU64::new(ms), ..WriteOptions::default() };
        let now_ms = device.wall_ms();
        table.put_with(b"soon", b"v", until(now_ms + 60_000)).expect("a put");
        table.put_with(b"late", b"v", until(now_ms + 600_000)).expect("a put");
        table.put_with(b"past", b"v", until(1)).expect("a put that has expired already");
        let there = |table: &Table<SimDevice>, key: &[u8]| table.get(key).expect("a get").is_some();
        assert!(there(&table, b"soon") && there(&table, b"late") && !there(&table, b"past"));
        let before = db.snapshot().expect("a snapshot");
        device.set_wall_clock(1_100_000);
        assert!(!there(&table, b"soon") && there(&table, b"late"), "{}", kind.name());
        assert!(before.get(&table, b"soon").expect("a get").is_some(), "a snapshot has its own time");
        drop(before);
        device.set_wall_clock(0);
        assert!(!there(&table, b"soon") && there(&table, b"late"), "{}: the clock went back", kind.name());
        db.close().expect("the store can be closed");
        drop((db, table));
        let db = Db::open_on(device.clone(), root, options).expect("the store");
        let table = db.table("t").expect("the table");
        assert!(!there(&table, b"soon") && there(&table, b"late"), "{}: and the store was opened again", kind.name());
    }
}

/// On a disk that is full for a snapshot puts are refused, and it goes on; deletes have the reserve, and then it has to end for them.
#[test]
fn a_snapshot_that_is_held_for_ever_has_puts_refused_and_gives_way_to_deletes() {
    for kind in KINDS {
        let (directory, device) = (scratch(), SimDevice::new(5));
        device.set_real_directory(directory.path());
        device.set_capacity(Some(24 << 20));
        let root = std::path::Path::new("/store");
        device.create_dir(root).expect("a directory");
        let options = Options { background: false, ..small() };
        let db = Db::open_on(device.clone(), root, options).expect("a store");
        let table = db.create_table("t", kind).expect("a table");
        let work = || {
            for step in [Step::WriteBehind, Step::Upkeep, Step::Upkeep] {
                match db.step(step) {
                    Ok(()) | Err(Error::DiskFull { .. }) => {}
                    Err(error) => panic!("background work: {error}"),
                }
            }
        };
        let put = |number: u64| {
            let done = table.put(&(number % 8).to_be_bytes(), &value(number, 200_000));
            work();
            match done {
                Err(Error::DiskFull { .. }) => false,
                done => done.map(|_| true).expect("a put"),
            }
        };
        table.put(b"held", b"value").expect("a put");
        let snapshot = db.snapshot().expect("a snapshot");
        let refused = (0..400).filter(|number| !put(*number)).count();
        assert!(refused > 200, "{}: only {refused} of 400 puts were refused beside a snapshot", kind.name());
        let is_held = || snapshot.get(&table, b"held").map(|found| assert_eq!(found, Some(b"value".to_vec())));
        is_held().unwrap_or_else(|error| panic!("{}: puts have ended the snapshot: {error}", kind.name()));
        assert!(db.stats().held_bytes > 0, "{}: {:?}", kind.name(), db.stats());
        assert!(table.get(&0u64.to_be_bytes()).expect("reads go on").is_some());

        let mut deletes = 0;
        while is_held().is_ok() {
            table.delete(&(deletes % 8u64).to_be_bytes()).expect("deletes go on");
            work();
            deletes += 1;
            assert!(deletes < 5000, "{}: deletes take no room", kind.name());
        }
        let error = refusal(snapshot.get(&table, b"held"), "a get of the ended snapshot");
        assert!(matches!(error, Error::SnapshotEnded), "{error}");
        (0..20).for_each(|_| work());
        let refused = (0..100).filter(|number| !put(*number)).count();
        assert!(refused < 10, "{}: {refused} of 100 puts were refused without a snapshot", kind.name());
        assert!(table.get(b"held").expect("a get").is_some());
    }
}

#[test]
fn an_expired_record_leaves_scans_and_gets_alike() {
    for kind in KINDS {
        let directory = scratch();
        let (_db, table) = open(directory.path(), kind, &small());
        table.put_with(b"gone", b"v", WriteOptions::expiring(Duration::ZERO)).expect("a put");
        table.put_with(b"here", b"v", WriteOptions::expiring(Duration::from_secs(3600))).expect("a put");
        assert_get(&table, b"gone", None, "an expired record");
        assert_eq!(keys(table.iterate()), [b"here".to_vec()], "{}", kind.name());
    }
}
