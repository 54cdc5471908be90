use super::Totals;
use crate::memory::MemoryUse;
use crate::points::{Point, tests::points};
use crate::runs::Reply;

pub(crate) fn totals() -> Totals {
    Totals {
        puts: 1_000,
        seconds: 20.0,
        p50_us: 1.0,
        p99_us: 2.0,
        p999_us: 3.0,
        longest_us: 4_000.0,
        memory: MemoryUse { most_resident_bytes: 64 << 20, peak_memory_bytes: Some(128 << 20), swapped_bytes: 0 },
        cpu_seconds: 1.0,
        device_written_bytes: Some(60_000),
        catch_up_seconds: 3.0,
        settled_cpu_seconds: 2.0,
        settled_device_written_bytes: Some(100_000),
        disk_bytes: 75_000,
    }
}

#[test]
fn replies_with_them_survive_the_pipe() {
    let text = serde_json::to_string(&Reply::<Point, Totals>::Measured(points(&[3.5]).remove(0))).unwrap();
    let Reply::<Point, Totals>::Measured(read) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    assert_eq!(read, points(&[3.5])[0]);
    let text = serde_json::to_string(&Reply::<Point, Totals>::Finished(totals())).unwrap();
    let Reply::<Point, Totals>::Finished(read) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    assert_eq!(read, totals());
}

#[test]
fn totals_are_void_in_swap_and_without_a_put() {
    assert_eq!(totals().void(), None);
    let memory = MemoryUse { swapped_bytes: 4096, ..totals().memory };
    assert!(Totals { memory, ..totals() }.void().unwrap().contains("swap"));
    assert!(Totals { puts: 0, ..totals() }.void().unwrap().contains("not one put"));
}
