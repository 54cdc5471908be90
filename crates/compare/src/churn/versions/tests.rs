use super::{SAMPLED_FIRST, SAMPLED_OTHERS, Sample, Versions};
use crate::class::Class;
use crate::engine::{Engine, EngineSpec, Resources};
use ::aiodb::IndexKind;
use std::collections::HashSet;
use tempfile::TempDir;

const VALUE_BYTES: usize = 25;

fn loaded(count: u64) -> (TempDir, Box<dyn Engine>, Versions, Sample) {
    let directory = tempfile::tempdir().unwrap();
    let engine = EngineSpec::Aiodb(IndexKind::Lsm).open(&directory.path().join("store"), Resources::default()).unwrap();
    let records = Versions::new(count, VALUE_BYTES);
    records.load(&*engine).unwrap();
    (directory, engine, records, Sample::new(count))
}

fn put(engine: &dyn Engine, records: &Versions, rank: u64, version: u64) {
    let mut value = records.value();
    records.fill(rank, version, &mut value);
    engine.put_in_class(&records.key(rank), &value, Class::None).unwrap();
}

fn fault(engine: &dyn Engine, records: &Versions, sample: &Sample) -> String {
    sample.read_back(engine, "aiodb", records).unwrap_err().to_string()
}

#[test]
fn the_sample_has_the_first_ranks_and_others_that_lie_apart() {
    for count in [1, 999, 1_000, 1_001, 9_000, 10_000, 10_001, 1 << 20] {
        let sample = Sample::new(count);
        let ranks: Vec<u64> = sample.ranks().collect();
        assert_eq!(ranks.len(), sample.len(), "{count}");
        assert!(ranks.len() as u64 <= SAMPLED_FIRST + SAMPLED_OTHERS);
        assert!((0..count.min(SAMPLED_FIRST)).all(|rank| ranks[rank as usize] == rank));
        for (place, &rank) in ranks.iter().enumerate() {
            assert_eq!(sample.place(rank), Some(place), "{count}");
        }
        let sampled: HashSet<u64> = ranks.into_iter().collect();
        let outside = (0..count.min(20_000)).filter(|rank| !sampled.contains(rank));
        assert!(outside.into_iter().all(|rank| sample.place(rank).is_none() && sample.begin(rank).is_none()));
    }
}

#[test]
fn records_have_the_versions_that_were_put_last() {
    let (_directory, engine, records, sample) = loaded(3_000);
    sample.read_back(&*engine, "aiodb", &records).unwrap();
    for (rank, version) in [(0, 1), (0, 2), (700, 3)] {
        let begun = sample.begin(rank).unwrap();
        put(&*engine, &records, rank, version);
        sample.end(begun, version);
    }
    sample.read_back(&*engine, "aiodb", &records).unwrap();
    put(&*engine, &records, 0, 1);
    assert!(fault(&*engine, &records, &sample).contains("has version 1; what was acknowledged last is version [2]"));
    engine.close().unwrap();
}

#[test]
fn of_puts_at_the_same_time_either_may_be_the_newest() {
    let (_directory, engine, records, sample) = loaded(10);
    let (first, second) = (sample.begin(4).unwrap(), sample.begin(4).unwrap());
    sample.end(second, 8);
    sample.end(first, 7);
    for version in [7, 8] {
        put(&*engine, &records, 4, version);
        sample.read_back(&*engine, "aiodb", &records).unwrap();
    }
    put(&*engine, &records, 4, 0);
    assert!(fault(&*engine, &records, &sample).contains("has version 0"), "it was there before both");
    let third = sample.begin(4).unwrap();
    sample.end(third, 9);
    put(&*engine, &records, 4, 8);
    assert!(fault(&*engine, &records, &sample).contains("last is version [9]"), "it began after both had ended");
    engine.close().unwrap();
}

#[test]
fn missing_foreign_and_strange_values_are_told_apart() {
    let records = Versions::new(10, VALUE_BYTES);
    let mut value = records.value();
    assert_eq!(records.fault(3, &[0], None).unwrap(), "is missing");
    records.fill(3, 5, &mut value);
    assert_eq!(records.fault(3, &[4, 5], Some(&value)), None);
    assert_eq!(records.fault(3, &[4], Some(&value)).unwrap(), "has version 5");
    assert!(records.fault(2, &[5], Some(&value)).unwrap().starts_with("has the value of record "));
    value[VALUE_BYTES - 1] ^= 1;
    assert_eq!(records.fault(3, &[5], Some(&value)).unwrap(), "has 25 bytes that were never put");
    assert_eq!(records.fault(3, &[5], Some(b"short")).unwrap(), "has 5 bytes that were never put");
}
