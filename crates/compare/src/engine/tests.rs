//! The contract that every engine passes; a rival that drops writes would win every comparison.

use super::{EngineSpec, RocksDbSettings};
use crate::records::{Records, Shape};
use ::aiodb::IndexKind;
use std::thread;

const SHAPE: Shape = Shape { key_bytes: 25, value_bytes: 25 };
const PRELOADED: u64 = 2_500;
const PUTS_PER_WRITER: u64 = 50;
const WRITERS: u64 = 4;

fn keeps_what_it_acknowledges(spec: &EngineSpec) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let engine = spec.open(&path).unwrap();
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

    let engine = spec.open(&path).unwrap();
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
fn rocksdb_reports_its_version() {
    let directory = tempfile::tempdir().unwrap();
    let engine = EngineSpec::RocksDb(RocksDbSettings::DEFAULT).open(directory.path()).unwrap();
    let settings = engine.settings();
    let version = settings["version"].as_str().unwrap();
    assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
    assert!(settings["fast_crc32"].as_str().unwrap().contains("upported"), "{settings}");
}
