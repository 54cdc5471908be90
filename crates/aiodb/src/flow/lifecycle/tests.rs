use super::memtable_keys_of;
use crate::index::memtable::MAX_ACTIVE_KEYS;

#[test]
fn two_memtables_take_the_memory_that_they_are_given() {
    assert_eq!(memtable_keys_of(0), 16 << 10);
    assert_eq!(memtable_keys_of(60_000_000), 100_000);
    assert!(memtable_keys_of(400 << 20) > MAX_ACTIVE_KEYS, "the usual bound counts");
}
