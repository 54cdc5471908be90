//! The contract that every engine passes; a rival that drops writes would win every comparison.

use super::{Engine, EngineSpec, Resources, RocksDbSettings, locked_version};
use crate::batch::Batch;
use crate::class::Class;
use crate::records::{Records, Shape};
use crate::stream::{Pairs, Stream, Values};
use crate::workloads::settings;
use crate::{churn, merge, soak};
use ::aiodb::IndexKind;
use std::collections::HashSet;
use std::thread;
use std::time::Duration;

const SHAPE: Shape = Shape { key_bytes: 25, value_bytes: 25 };
const PRELOADED: u64 = 2_500;
const PUTS_PER_WRITER: u64 = 50;
const WRITERS: u64 = 4;

/// Every engine is found by its name, which no other one has.
pub fn check_names(all: Vec<EngineSpec>, named: fn(&str) -> Option<EngineSpec>) {
    let names: HashSet<String> = all.iter().map(|spec| spec.to_string()).collect();
    assert_eq!(names.len(), all.len());
    for spec in all {
        assert_eq!(named(&spec.to_string()), Some(spec));
    }
    assert_eq!(named("rocksdb-fast"), None);
}

fn keeps_what_it_acknowledges(spec: &EngineSpec) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let engine = spec.open(&path, Resources::default()).unwrap();
    engine.preload(&mut Records::new(SHAPE, 0), PRELOADED).unwrap();
    engine.finish().unwrap();
    thread::scope(|scope| {
        for sequence in 1..=WRITERS {
            let engine = &engine;
            scope.spawn(move || {
                let mut records = Records::new(SHAPE, sequence);
                for _ in 0..PUTS_PER_WRITER {
                    let (key, value) = records.next();
                    engine.put_durable(key, value).unwrap();
                    assert_eq!(engine.get(key).unwrap().as_deref(), Some(value), "not visible once acknowledged");
                }
            });
        }
    });
    engine.finish().unwrap();
    engine.close().unwrap();

    let engine = spec.open(&path, Resources::default()).unwrap();
    for (sequence, count) in [(0, PRELOADED), (1, PUTS_PER_WRITER), (WRITERS, PUTS_PER_WRITER)] {
        let mut records = Records::new(SHAPE, sequence);
        for index in 0..count {
            let (key, value) = records.next();
            assert_eq!(engine.get(key).unwrap().as_deref(), Some(value), "record {index} of sequence {sequence}");
        }
        let (absent, _) = records.next();
        assert_eq!(engine.get(absent).unwrap(), None);
    }
    engine.close().unwrap();
}

#[test]
fn rocksdb_keeps_what_it_acknowledges_with_every_swept_setting() {
    for settings in crate::sweep::SETTINGS {
        keeps_what_it_acknowledges(&EngineSpec::RocksDb(settings.clone()));
    }
}

#[test]
fn aiodb_hash_keeps_what_it_acknowledges() {
    keeps_what_it_acknowledges(&EngineSpec::Aiodb(IndexKind::Hash));
}

#[test]
fn aiodb_lmdb_keeps_what_it_acknowledges() {
    keeps_what_it_acknowledges(&EngineSpec::Aiodb(IndexKind::Lmdb));
}

#[test]
fn every_engine_of_the_workloads_keeps_what_it_acknowledges() {
    for spec in settings::all() {
        keeps_what_it_acknowledges(&spec);
    }
}

#[test]
fn every_engine_that_only_churn_has_keeps_what_it_acknowledges() {
    let known = [soak::settings::all(), settings::all()].concat();
    for spec in churn::settings::all().into_iter().filter(|spec| !known.contains(spec)) {
        keeps_what_it_acknowledges(&spec);
    }
}

#[test]
fn every_engine_of_the_soak_keeps_what_it_acknowledges() {
    for spec in soak::settings::all() {
        keeps_what_it_acknowledges(&spec);
    }
}

#[test]
fn puts_of_every_class_are_there_at_once_and_when_the_engine_is_opened_again() {
    let classes = [Class::None, Class::Interval, Class::Sync];
    for spec in soak::settings::all().into_iter().chain(settings::all()) {
        let directory = tempfile::tempdir().unwrap();
        let engine = spec.open(&directory.path().join("store"), SMALL).unwrap();
        for (sequence, class) in (0..).zip(classes) {
            let mut records = Records::new(SHAPE, sequence);
            let (key, value) = records.next();
            engine.put_in_class(key, value, class).unwrap();
            assert_eq!(engine.get(key).unwrap().as_deref(), Some(value), "{spec}, {class}");
        }
        engine.make_durable().unwrap();
        engine.close().unwrap();
        let engine = spec.open(&directory.path().join("store"), SMALL).unwrap();
        for (sequence, class) in (0..).zip(classes) {
            let mut records = Records::new(SHAPE, sequence);
            let (key, value) = records.next();
            assert_eq!(engine.get(key).unwrap().as_deref(), Some(value), "{spec}, {class}");
        }
        engine.close().unwrap();
    }
}

/// Of each writer in each class.
const ADDS: u64 = 20;

#[test]
fn counters_have_the_sum_of_all_that_was_added_at_once_and_when_the_engine_is_opened_again() {
    let classes = [Class::None, Class::Interval, Class::Sync];
    let hot_sum = WRITERS * (WRITERS + 1) / 2 * ADDS * classes.len() as u64;
    for spec in merge::settings::all() {
        let directory = tempfile::tempdir().unwrap();
        let open = || spec.open(&directory.path().join("store"), Resources { counters: true, ..SMALL }).unwrap();
        let engine = open();
        assert!(!engine.way_to_add().is_empty());
        assert_eq!(engine.counter(b"hot").unwrap(), None, "{spec}");
        engine.put_in_class(b"hot", b"a record", Class::None).unwrap();
        thread::scope(|scope| {
            for writer in 1..=WRITERS {
                let engine = &engine;
                scope.spawn(move || {
                    for class in classes {
                        for _ in 0..ADDS {
                            engine.add(b"hot", writer, class).unwrap();
                            engine.add(&writer.to_be_bytes(), 1, class).unwrap();
                        }
                    }
                });
            }
        });
        let check = |engine: &dyn Engine| {
            assert_eq!(engine.counter(b"hot").unwrap(), Some(hot_sum), "{spec}");
            for writer in 1..=WRITERS {
                let sum = engine.counter(&writer.to_be_bytes()).unwrap();
                assert_eq!(sum, Some(ADDS * classes.len() as u64), "{spec}");
            }
            assert_eq!(engine.get(b"hot").unwrap().as_deref(), Some(&b"a record"[..]), "{spec}: counters are apart");
        };
        check(&*engine);
        engine.finish().unwrap();
        check(&*engine);
        engine.close().unwrap();
        let engine = open();
        check(&*engine);
        engine.close().unwrap();
    }
}

#[test]
fn engines_have_no_counters_unless_they_are_asked_for() {
    let mut families = HashSet::new();
    for spec in merge::settings::all().into_iter().filter(|spec| families.insert(spec.family())) {
        let directory = tempfile::tempdir().unwrap();
        let engine = spec.open(&directory.path().join("store"), SMALL).unwrap();
        for error in [engine.add(b"key", 1, Class::None).unwrap_err(), engine.counter(b"key").unwrap_err()] {
            assert!(error.to_string().contains("without counters"), "{spec}: {error}");
        }
        engine.close().unwrap();
    }
}

const PAIRS: Pairs = Pairs { count: 2_000, value_bytes: 4_096 };

/// A tenth of what the engines are given in the smallest comparison.
const SMALL: Resources = Resources { memory_bytes: Some(16 << 20), data_bytes: Some(16 << 20), counters: false };

#[test]
fn every_way_to_read_brings_the_right_values() {
    for spec in settings::all() {
        let directory = tempfile::tempdir().unwrap();
        let engine = spec.open(directory.path(), SMALL).unwrap();
        let mut values = Values::new(PAIRS, 0);
        let mut batch = Batch::default();
        (0..PAIRS.count).for_each(|number| batch.push(&PAIRS.key(number), values.next(number)));
        engine.write(&batch).unwrap();
        engine.finish().unwrap();
        for reads in engine.ways_to_read() {
            for read_percent in [100, 50] {
                let mut stream = Stream::new(PAIRS, read_percent, 1, Duration::from_millis(50));
                engine.run(reads, &mut stream).unwrap();
                let tally = stream.tally();
                assert_eq!(tally.wrong, 0, "{spec}, {reads}");
                assert!(tally.gets > 0, "{spec}, {reads}");
                assert_eq!(tally.puts > 0, read_percent < 100, "{spec}, {reads}");
            }
            let nobody = Pairs { count: u64::MAX, ..PAIRS };
            let mut stream = Stream::new(nobody, 100, 1, Duration::from_millis(5));
            engine.run(reads, &mut stream).unwrap();
            assert_eq!(stream.tally().gets, 0, "{spec}, {reads}: keys that nobody put");
            assert!(stream.tally().wrong > 0, "{spec}, {reads}");
        }
        engine.make_durable().unwrap();
        engine.close().unwrap();
    }
}

#[test]
fn scans_bring_every_record_once_and_in_order() {
    let mut keys: Vec<[u8; 8]> = (0..PAIRS.count).map(|number| PAIRS.key(number)).collect();
    keys.sort_unstable();
    for spec in settings::all() {
        let directory = tempfile::tempdir().unwrap();
        let engine = spec.open(directory.path(), SMALL).unwrap();
        let mut values = Values::new(PAIRS, 0);
        let mut batch = Batch::default();
        (0..PAIRS.count).for_each(|number| batch.push(&PAIRS.key(number), values.next(number)));
        engine.write(&batch).unwrap();
        let mut seen = Vec::new();
        let mut scan = |from: &[u8], limit| {
            seen.clear();
            let count = engine.scan(from, limit, &mut |key, value| {
                assert_eq!(value.len(), PAIRS.value_bytes, "{spec}");
                seen.push(key.to_vec());
                seen.len() < 1_500 || limit > PAIRS.count
            });
            count.unwrap().inspect(|&count| assert_eq!(seen.len() as u64, count, "{spec}")).map(|_| seen.clone())
        };
        let Some(all) = scan(&[], u64::MAX) else {
            assert_eq!(spec, EngineSpec::Aiodb(IndexKind::Hash), "only a hash has no order");
            continue;
        };
        assert_eq!(all, keys, "{spec}");
        assert_eq!(scan(&keys[100], 10).unwrap(), keys[100..110], "{spec}");
        assert_eq!(scan(&[], PAIRS.count).unwrap(), keys[..1_500], "{spec}: no more than is wanted");
        assert!(scan(&[0xff; 9], 10).unwrap().is_empty(), "{spec}");
        engine.close().unwrap();
    }
}

#[test]
fn versions_of_libraries_are_those_built_in() {
    assert!(locked_version("redb").starts_with("4."));
    assert_eq!(locked_version("no such library"), "unknown");
}

#[test]
fn rocksdb_reports_its_version() {
    let directory = tempfile::tempdir().unwrap();
    let engine = EngineSpec::RocksDb(RocksDbSettings::DEFAULT).open(directory.path(), Resources::default()).unwrap();
    let settings = engine.settings();
    let version = settings["version"].as_str().unwrap();
    assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
    assert!(settings["fast_crc32"].as_str().unwrap().contains("upported"), "{settings}");
}
