use super::memtable_keys_of;
use crate::index::memtable::MAX_ACTIVE_KEYS;

#[test]
fn memtables_leave_most_of_a_small_memory() {
    assert_eq!(memtable_keys_of(0), 16 << 10);
    // 256 MiB: two memtables of some 300 bytes a key take 102 MiB.
    assert_eq!(memtable_keys_of(256 << 20), 178_956);
    assert!(memtable_keys_of(1 << 30) > MAX_ACTIVE_KEYS, "the usual bound counts");
}
