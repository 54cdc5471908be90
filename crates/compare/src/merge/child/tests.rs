use super::{MOST_ADDED, Measured, MergeTotals, Merges, Operation, Request, is_value_of, value_of};
use crate::class::Class;
use crate::engine::{EngineSpec, Resources};
use crate::host::Disk;
use crate::memory::MemoryUse;
use crate::runs::{Place, Reply};
use ::aiodb::IndexKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A thousand operations in so many seconds, and as long again for catching up after writes.
pub(crate) fn measured(operation: Operation, seconds: f64) -> Measured {
    Measured {
        operation,
        count: 1_000,
        seconds,
        catch_up_seconds: if operation.writes() { seconds } else { 0.0 },
        settled_cpu_seconds: 0.002,
        settled_device_written_bytes: Some(64_000),
    }
}

pub(crate) fn merge_totals() -> MergeTotals {
    MergeTotals {
        memory: MemoryUse { most_resident_bytes: 64 << 20, peak_memory_bytes: None, swapped_bytes: 0 },
        way_to_add: "by hand".to_owned(),
        checked_counters: 7,
    }
}

#[test]
fn replies_survive_the_pipe() {
    let point = measured(Operation::GetOfMerged, 2.0);
    let text = serde_json::to_string(&Reply::<_, MergeTotals>::Measured(&point)).unwrap();
    let Reply::<Measured, MergeTotals>::Measured(read) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    assert_eq!(read, point);
    let text = serde_json::to_string(&Reply::<Measured, _>::Finished(merge_totals())).unwrap();
    let Reply::<Measured, MergeTotals>::Finished(read) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    assert_eq!(read, merge_totals());
}

#[test]
fn values_say_whose_they_are() {
    for (number, added) in [(0, 0), (0, MOST_ADDED), (10_000_000, 1)] {
        let value = value_of(number, added).to_le_bytes();
        assert!(is_value_of(number, &value));
        assert!(!is_value_of(number + 1, &value));
        assert!(!is_value_of(number, &value[..7]));
    }
    assert!(!is_value_of(0, &value_of(0, MOST_ADDED + 1).to_le_bytes()));
}

#[test]
fn lost_merges_and_foreign_values_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let disk = Disk::under(directory.path()).unwrap();
    let store = directory.path().join("store");
    let resources = Resources { counters: true, ..Resources::default() };
    let engine = EngineSpec::Aiodb(IndexKind::Lsm).open(&store, resources).unwrap();
    let place = Place { engine: "aiodb-lsm".to_owned(), directory: store, memory_bytes: 1 << 28, group: None };
    let (class, duration) = (Class::None, Duration::from_millis(10));
    let request = Request { place, keys: 3, writers: 2, class, duration, round: 2 };
    let sums = (0..3).map(|_| AtomicU64::new(0)).collect();
    let merges = Merges { engine: &*engine, disk: &disk, request: &request, sums };
    let totals = merges.run().unwrap();
    assert_eq!((totals.checked_counters, totals.memory.swapped_bytes), (3, 0));
    assert!(merges.sums.iter().any(|sum| sum.load(Ordering::Relaxed) > 0), "something was merged");
    merges.sums[1].fetch_add(1, Ordering::Relaxed);
    let error = merges.operate(Operation::GetOfMerged, 1, 0).unwrap_err().to_string();
    assert!(error.contains("aiodb-lsm: counter 1 is "), "{error}");
    merges.operate(Operation::GetOfPut, 2, 0).unwrap();
    engine.put_in_class(&super::key_of(2), &value_of(0, 1).to_le_bytes(), class).unwrap();
    let error = merges.operate(Operation::GetOfPut, 2, 0).unwrap_err().to_string();
    assert!(error.contains("never put"), "{error}");
    engine.close().unwrap();
}
