//! How much memory the hash index holds per key. In a program of its own, so that no other test's memory is counted.
#![cfg(target_os = "linux")]

use std::fs;

use aiodb::index::Location;
use aiodb::index::hash::{HashIndex, Published};

/// The bound that the documentation promises.
const BYTES_PER_KEY_MAX: f64 = 12.0;

const SEGMENT_BYTES: u64 = 64 << 20;

/// Resident memory of this process that is no file's, in bytes.
fn anonymous_bytes() -> u64 {
    let sizes = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = sizes.lines().find(|line| line.starts_with("Anonymous:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// The place of a record of 80 bytes, one behind the other.
fn place(key: u64) -> Location {
    let at = key * 80;
    Location { segment: (at / SEGMENT_BYTES) as u32, offset: (at % SEGMENT_BYTES) as u32, length: 80 }
}

#[test]
fn a_key_takes_at_most_twelve_bytes() {
    let index = HashIndex::new(SEGMENT_BYTES);
    let mut random = fastrand::Rng::with_seed(1);
    let mut insert = |keys: std::ops::Range<u64>| {
        for key in keys {
            let published = index.publish(random.u64(..), place(key), |place| (place.segment, place.offset));
            assert!(matches!(published, Published::Inserted { .. }));
        }
        anonymous_bytes()
    };
    let first = 1_000_000;
    let at_first = insert(0..first);
    let mut keys = first;
    // Shards grow together, so the load, and with it the memory per key, differs between these sizes.
    for next in [10_000_000, 11_000_000, 13_000_000, 15_000_000, 17_000_000, 19_000_000, 20_000_000] {
        let growth = insert(keys..next) - at_first;
        keys = next;
        let bytes_per_key = growth as f64 / (keys - first) as f64;
        println!("{keys} keys: {bytes_per_key:.2} bytes of anonymous memory per key beyond the first {first}");
        assert!(bytes_per_key <= BYTES_PER_KEY_MAX, "{bytes_per_key:.2} bytes per key at {keys} keys");
    }
    assert_eq!(index.len() as u64, keys);
    let counted = index.memory_bytes() as f64 / keys as f64;
    assert!(counted <= BYTES_PER_KEY_MAX, "{counted:.2} bytes per key by the index's own account");
}
