use super::{Records, Shape};
use std::collections::HashSet;

const SHAPE: Shape = Shape { key_bytes: 25, value_bytes: 25 };

#[test]
fn keys_are_distinct_within_and_between_sequences() {
    let mut keys = HashSet::new();
    for sequence in 0..10 {
        let mut records = Records::new(SHAPE, sequence);
        for _ in 0..10_000 {
            let (key, value) = records.next();
            assert_eq!((key.len(), value.len()), (25, 25));
            assert!(keys.insert(key.to_vec()), "key {key:?} came twice");
        }
    }
}

#[test]
fn a_record_can_be_made_again() {
    let mut written = Records::new(SHAPE, 3);
    let mut again = Records::new(SHAPE, 3);
    for index in 0..100 {
        let (key, value) = written.next();
        assert_eq!(again.record(index), (key, value));
    }
}

#[test]
fn bytes_look_random() {
    let mut records = Records::new(SHAPE, 0);
    let mut ones = 0;
    for _ in 0..1_000 {
        let (key, value) = records.next();
        ones += key.iter().chain(value).map(|byte| byte.count_ones()).sum::<u32>();
    }
    // 400,000 fair bits have a standard deviation of 316.
    assert!((198_000..202_000).contains(&ones), "{ones} of 400,000 bits are set");
}

#[test]
#[should_panic(expected = "distinct")]
fn short_keys_are_refused() {
    Records::new(Shape { key_bytes: 7, value_bytes: 25 }, 0);
}
