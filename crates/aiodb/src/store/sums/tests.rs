use std::sync::Arc;

use super::{ENTRY_BYTES, Sum, Sums};
use crate::budget::{Accounts, Part};
use crate::format::location::Location;
use crate::log::commit::Over;

fn sum(sequence: u64, value: &[u8]) -> Sum {
    let location = Location { segment: 1, offset: 16 * sequence as u32, length: 64 };
    Sum { over: Over { location, life: 1, sequence }, value: value.into() }
}

fn value(sums: &Sums, hash: u64, key: &[u8]) -> Option<Vec<u8>> {
    sums.get((1, hash), key).map(|sum| sum.value.to_vec())
}

#[test]
fn the_last_value_of_a_key_is_kept() {
    let accounts = Arc::<Accounts>::default();
    let sums = Sums::counted_in(&accounts);
    sums.insert((1, 7), b"key", sum(5, b"five"));
    sums.insert((1, 7), b"key", sum(4, b"four"));
    assert_eq!(value(&sums, 7, b"key").as_deref(), Some(&b"five"[..]), "an earlier one came late");
    assert_eq!(value(&sums, 7, b"other"), None, "a key with the same hash");
    assert!(sums.get((2, 7), b"key").is_none(), "another table");
    sums.insert((1, 7), b"other", sum(3, b"three"));
    assert_eq!(value(&sums, 7, b"key"), None, "one of two keys with one hash");
    assert_eq!(accounts.bytes(Part::Sums), ENTRY_BYTES + 5);
    drop(sums);
    assert_eq!(accounts.bytes(Part::Sums), 0);
}

#[test]
fn values_keep_to_their_bound_and_those_in_use_stay() {
    let accounts = Arc::<Accounts>::default();
    let sums = Sums::counted_in(&accounts);
    sums.set_budget(32 << 20);
    sums.insert((1, 0), b"in use", sum(1, b"stays"));
    for number in 1..50_000 {
        sums.insert((1, number), &number.to_le_bytes(), sum(number, &[7; 40]));
        assert_eq!(value(&sums, 0, b"in use").as_deref(), Some(&b"stays"[..]), "after {number}");
        assert!(accounts.bytes(Part::Sums) <= (1 << 20) + 16 * (ENTRY_BYTES + 64), "after {number}");
    }
    assert!(accounts.bytes(Part::Sums) >= 1 << 19, "most of it is used");
    sums.set_budget(0);
    assert!(accounts.bytes(Part::Sums) <= 16 * (ENTRY_BYTES + 64), "at once");
    (0..64).for_each(|number| sums.insert((1, number), b"key", sum(60_000, b"")));
    assert!(accounts.bytes(Part::Sums) <= 16 * (ENTRY_BYTES + 64), "a budget that has shrunk");
}
