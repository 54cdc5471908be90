//! Unit tests of the order among a key's records.

use super::{RangeTombstone, Versions, newest_by_key, removed_before};
use crate::format::location::Location;
use crate::format::record::{Kind, Record, encode_range_end};

fn record<'a>(kind: Kind, sequence: u64, key: &'a [u8], value: &'a [u8]) -> Record<'a> {
    Record::new(kind, 32, sequence, key, value)
}

#[test]
fn the_newest_of_ranges_that_overlap_counts() {
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let mut ranges = Vec::new();
        for _ in 0..rng.usize(1..12) {
            let (one, other) = (rng.u8(1..20), rng.u8(0..22));
            if other == 0 || one < other {
                let end = if other == 0 { vec![] } else { vec![other] };
                ranges.push((rng.u64(1..100), vec![one], end));
            }
        }
        let newest = |key: u8| {
            let covers =
                |range: &&(u64, Vec<u8>, Vec<u8>)| range.1[0] <= key && range.2.first().is_none_or(|end| key < *end);
            ranges.iter().filter(covers).map(|range| range.0).max().unwrap_or(0)
        };
        let all =
            ranges.iter().cloned().map(|(sequence, start, end)| RangeTombstone { sequence, start, end }).collect();
        let removed = [(32, newest_by_key(all))].into();
        for key in 0..24 {
            assert_eq!(removed_before(&removed, 32, &[key]), newest(key), "key {key} in {ranges:?}");
            assert_eq!(removed_before(&removed, 33, &[key]), 0, "another table");
        }
    }
}

#[test]
fn operands_count_after_their_base_and_what_was_removed() {
    let mut versions = Versions::default();
    let mut merge = |sequence, key: &[u8]| {
        let record = record(Kind::Merge, sequence, key, b"x");
        versions.note_operand(&record, Location { segment: 0, offset: sequence as u32, length: 1 });
    };
    // Found in no order, and twice, as in segments that reclaim has moved records between.
    [9, 3, 7, 9, 5].into_iter().for_each(|sequence| merge(sequence, b"folded"));
    [12, 11, 14].into_iter().for_each(|sequence| merge(sequence, b"removed"));
    merge(20, b"alone");
    versions.note_base(&record(Kind::Put, 7, b"folded", b"what 3, 5 and 7 make"), false);
    versions.note_base(&record(Kind::Put, 2, b"folded", b"older"), false);
    versions.note_base(&record(Kind::Put, 10, b"removed", b"base"), false);
    let end = encode_range_end(0, b"s");
    versions.note_range(&record(Kind::RangeTombstone, 13, b"r", &end));
    versions.lose(32, b"folded", 8);
    versions.lose(32, b"folded", 9);
    versions.lose(32, b"removed", 11);
    versions.apply_deletes();
    assert!(versions.wants(&record(Kind::Put, 7, b"folded", b"")));
    assert!(!versions.wants(&record(Kind::Put, 10, b"removed", b"")));
    let doubtful: Vec<_> = versions.doubtful().into_iter().collect();
    assert_eq!(doubtful, [(32, b"folded".to_vec())], "only operand 8 is nowhere sound");
    let operands = versions.take_operands();
    let found: Vec<_> = operands.iter().map(|operand| (&operand.key[..], operand.location.offset)).collect();
    assert_eq!(found, [(&b"folded"[..], 9), (b"removed", 14), (b"alone", 20)]);
    assert!(versions.set_written(32, b"alone") && !versions.set_written(32, b"alone"));
    assert_eq!(versions.written_before(1), 1, "its base may be among what is lost");
}

#[test]
fn a_delete_in_the_place_of_what_has_expired_counts() {
    for deletes in [[false, true], [true, false]] {
        let mut versions = Versions::default();
        deletes.into_iter().for_each(|deleted| versions.note_base(&record(Kind::Put, 5, b"key", b""), deleted));
        versions.apply_deletes();
        assert!(!versions.wants(&record(Kind::Put, 5, b"key", b"")));
    }
}
