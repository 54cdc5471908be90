//! What a store says of itself, seen from outside: what is counted is what was done.

mod support;

use aiodb::{Batch, Db, Durability, Error, IndexKind, Options, ScanOptions, Step};
use support::{KINDS, ORDERED, open, open_appending, quiet, scratch, upkeep, value};

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

#[test]
fn writes_checkpoints_and_reclaim_are_counted() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let before = db.metrics();
        for number in 0..10 {
            table.put(&key(number), b"durable").expect("a put works");
        }
        let mut batch = Batch::new();
        for number in 0..5 {
            batch.put(&table, &key(number), b"together").expect("it fits");
        }
        db.write(&batch).expect("a batch works");
        let after = db.metrics();
        assert_eq!(after.acknowledge_wait_ns.count() - before.acknowledge_wait_ns.count(), 11);
        assert_eq!(after.batch_writers.sum() - before.batch_writers.sum(), 11, "each write is in one batch");
        assert_eq!(after.batch_records.sum() - before.batch_records.sum(), 15);
        assert_eq!(after.records_written - before.records_written, 15);
        assert_eq!(after.batch_bytes.sum(), after.log_bytes_written);
        assert_eq!(after.write_wait_ns.count(), after.batch_bytes.count());
        for round in 0..30 {
            for number in 0..1000 {
                let value = value(number + round, 1000);
                table.put_with(&key(number), &value, Durability::None).expect("a put works");
            }
            upkeep(&db);
        }
        let end = db.metrics();
        assert!(end.reclaimed_segments > 0 && end.victim_live_percent.count() >= end.reclaimed_segments);
        assert!(end.checkpoint_ns.count() > 0 && end.flush_wait_ns.count() > 0);
        let (tail, tags) = (end.memtable_committed_entries, end.settled_tags);
        match kind {
            IndexKind::Lmdb => assert!(tail > 0 && end.memtable_commit_ns.count() > 0 && end.lmdb_file_bytes > 0),
            IndexKind::Lsm => assert!(tail > 0 && end.memtable_commit_ns.count() > 0),
            IndexKind::Hash => assert!(tags > 0 && end.checkpoint_bytes_written > 0 && end.hash_memory_bytes > 0),
        }
        let stats = db.stats();
        assert_eq!((end.live_bytes, end.segments_in_use), (stats.live_bytes, stats.segments_in_use));
        assert!(end.dead_bytes + end.live_bytes >= end.segments_in_use * stats.segment_bytes);
        assert!(!end.in_trouble && !end.write_failed);
    }
}

#[test]
fn snapshots_and_what_is_kept_for_them_are_counted() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let counts = || {
            let (metrics, stats) = (db.metrics(), db.stats());
            assert_eq!((metrics.snapshots, metrics.kept_versions), (stats.snapshots, stats.kept_versions));
            (stats.snapshots, stats.kept_versions)
        };
        table.put(&key(1), b"old").expect("a put works");
        assert_eq!(counts(), (0, 0));
        let (first, second) = (db.snapshot().expect("a snapshot"), db.snapshot().expect("a snapshot"));
        table.put(&key(1), b"new").expect("a put works");
        upkeep(&db);
        assert_eq!(counts(), (2, 1), "{}", kind.name());
        drop(first);
        assert_eq!(counts(), (1, 1), "{}", kind.name());
        drop(second);
        assert_eq!(counts(), (0, 0), "{}", kind.name());
    }
}

#[test]
fn a_table_says_of_itself_what_the_store_says_of_it() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        let other = db.create_table("other", kind).expect("a table can be made");
        for number in 0..10 {
            table.put(&key(number), b"value").expect("a put works");
        }
        other.put(&key(1), b"value").expect("a put works");
        upkeep(&db);
        for one in [&table, &other] {
            let (own, all) = (one.stats().expect("the table is there"), db.stats().tables);
            let listed = all.iter().find(|listed| listed.name == one.name()).expect("the table is listed");
            assert_eq!(format!("{own:?}"), format!("{listed:?}"), "{}", kind.name());
        }
        db.drop_table("other").expect("a table can be dropped");
        assert!(matches!(other.stats(), Err(Error::NoSuchTable { name }) if name == "other"), "{}", kind.name());
    }
}

#[test]
fn range_deletes_are_counted_until_they_are_carried_out() {
    for kind in ORDERED {
        let directory = scratch();
        let (db, table) = open(directory.path(), kind, &quiet());
        for number in 0..10 {
            table.put(&key(number), b"value").expect("a put works");
        }
        db.checkpoint().expect("a checkpoint can be made");
        table.delete_range(&key(2), &key(5)).expect("a range can be deleted");
        assert_eq!((db.stats().waiting_range_deletes, db.metrics().waiting_range_deletes), (1, 1));
        while db.metrics().waiting_range_deletes > 0 {
            db.step(Step::DeleteRanges).expect("background work");
            db.step(Step::Checkpoint).expect("background work");
        }
        assert_eq!(table.scan(ScanOptions::all()).expect("a scan").count(), 7);
    }
}

/// A table has the runs with its own keys; merges owe what is above all of them.
#[test]
fn runs_of_each_table_and_what_merges_owe_are_counted() {
    let directory = scratch();
    let (db, table) = open(directory.path(), IndexKind::Lsm, &quiet());
    let other = db.create_table("other", IndexKind::Lsm).expect("a table can be made");
    db.create_table("lmdb", IndexKind::Lmdb).expect("a table can be made");
    for round in 0..6 {
        table.put(&key(round), b"value").expect("a put works");
        if round == 0 {
            other.put(&key(round), b"value").expect("a put works");
        }
        db.checkpoint().expect("a checkpoint works");
    }
    let counts = |name: &str| {
        let (metrics, stats) = (db.metrics().tables, db.stats().tables);
        let table = stats.iter().find(|table| table.name == name).expect("it is there");
        let shown = metrics.iter().find(|table| table.name == name).expect("it is there");
        let own = [table.runs, table.run_bytes, table.merge_debt_bytes];
        let of_metrics = [shown.runs, shown.run_bytes, shown.merge_debt_bytes];
        assert_eq!(of_metrics, own.map(|count| (name != "lmdb").then_some(count)), "{name}");
        own
    };
    let [runs, bytes, debt] = counts("t");
    assert!(runs == 6 && bytes >= 6 * 4096 && debt == bytes, "{runs} runs of {bytes} bytes, debt {debt}");
    assert_eq!((counts("other")[0], counts("lmdb")), (1, [0; 3]));
    let (stats, metrics) = (db.stats(), db.metrics());
    assert_eq!((stats.runs, stats.runs_above_bound), (6, 0), "no writer waits");
    assert!(stats.merge_debt_bytes >= debt, "{} bytes", stats.merge_debt_bytes);
    let shown = [metrics.runs, metrics.runs_above_bound, metrics.merge_debt_bytes];
    assert_eq!(shown, [stats.runs, stats.runs_above_bound, stats.merge_debt_bytes]);
    (0..20).for_each(|_| db.step(Step::Merge).expect("background work"));
    assert_eq!(db.stats().merge_debt_bytes, 0, "all is merged that should be");
    let [runs, bytes, debt] = counts("t");
    assert!(runs < 6 && bytes > 0 && debt == 0, "{runs} runs of {bytes} bytes, debt {debt}");
    let text = db.metrics().to_prometheus();
    for line in ["aiodb_table_runs{table=\"t\"} ", "aiodb_merge_debt_bytes 0\n", "aiodb_runs_above_bound 0\n"] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(!text.contains("aiodb_table_runs{table=\"lmdb\"}"), "{text}");
}

/// So long a value is in no memory that merges ask: what is merged into it is an operand.
const LONG: &[u8] = &[b'l'; 100];

#[test]
fn folded_keys_are_counted() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open_appending(&directory, kind, quiet());
        table.put(&key(1), LONG).expect("a put works");
        for _ in 0..20 {
            table.merge(&key(1), b"x").expect("a merge works");
        }
        assert_eq!(db.metrics().folded_keys, 0);
        for _ in 0..4 {
            db.step(Step::Settle).expect("background work");
        }
        assert!(db.metrics().folded_keys > 0, "{}", kind.name());
        assert_eq!(table.get(&key(1)).expect("a get works").map(|value| value.len()), Some(LONG.len() + 20));
    }
}

/// Writers wait for each batch of copies.
#[test]
fn operands_of_many_keys_are_folded_in_one_batch() {
    for kind in KINDS {
        let directory = scratch();
        let (db, table) = open_appending(&directory, kind, quiet());
        for number in 0..100 {
            table.put(&key(number), LONG).expect("a put works");
        }
        for operand in 0..20 {
            for number in 0..100 {
                table.merge(&key(number), format!("{operand},").as_bytes()).expect("a merge works");
            }
        }
        db.sync().expect("everything can be flushed");
        let before = db.stats().batches_written;
        db.step(Step::Settle).expect("background work");
        assert_eq!(db.metrics().folded_keys, 100, "{}: each once, however often it is queued", kind.name());
        assert_eq!(db.stats().batches_written, before + 1, "{}", kind.name());
        let all: String = (0..20).map(|operand| format!("{operand},")).collect();
        for number in 0..100 {
            assert_eq!(table.get(&key(number)).expect("a get works"), Some([LONG, all.as_bytes()].concat()));
        }
    }
}

#[test]
fn operands_that_pile_up_over_many_commits_of_the_index_are_folded() {
    for kind in ORDERED {
        let directory = scratch();
        let (db, table) = open_appending(&directory, kind, quiet());
        for round in 0..24 {
            table.merge(&key(1), b"x").expect("a merge works");
            table.merge(&key(2), if round == 0 { b"first" } else { b"x" }).expect("a merge works");
            db.checkpoint().expect("a checkpoint works");
            // In runs they meet when these are merged.
            db.step(Step::Merge).expect("background work");
            db.step(Step::Settle).expect("background work");
        }
        let folded = db.metrics().folded_keys;
        assert!((2..=6).contains(&folded), "once for some operands, not for each: {folded}");
        assert_eq!(table.get(&key(1)).expect("a get works"), Some(vec![b'x'; 24]));
        assert_eq!(table.get(&key(2)).expect("a get works").map(|value| value.len()), Some(28));
    }
}

#[test]
fn an_open_store_keeps_its_metrics_file_and_a_closed_one_has_none() {
    let directory = scratch();
    let file = directory.path().join("metrics.prom");
    let options = Options { metrics_file: Some(file.clone()), background: true, ..quiet() };
    let db = Db::open(directory.path(), options).expect("a store can be made");
    while !file.exists() {
        assert!(db.stats().trouble.is_none(), "{:?}", db.stats().trouble);
        std::thread::yield_now();
    }
    let text = std::fs::read_to_string(&file).expect("it is replaced as a whole");
    assert!(
        text.contains("# TYPE aiodb_lookups_total counter\n") && text.ends_with("aiodb_write_failed 0\n"),
        "{text}"
    );
    db.close().expect("the store can be closed");
    assert!(!file.exists(), "a closed store has no metrics");
}

#[test]
fn a_metrics_file_that_cannot_be_written_is_trouble_and_nothing_else() {
    let directory = scratch();
    let file = directory.path().join("no such directory").join("metrics.prom");
    let options = Options { metrics_file: Some(file), background: true, ..quiet() };
    let (db, table) = open(directory.path(), IndexKind::Hash, &options);
    while !db.metrics().in_trouble {
        std::thread::yield_now();
    }
    let trouble = db.stats().trouble.expect("it says why");
    assert!(trouble.contains("metrics.prom"), "{trouble}");
    table.put(&key(1), b"v").expect("a put works");
    db.close().expect("the store can be closed");
}
