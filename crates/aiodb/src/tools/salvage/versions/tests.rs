//! Unit tests of the order among a key's records.

use super::{RangeTombstone, Versions, newest_by_key, removed_before};
use crate::format::entry::Entry;
use crate::format::location::Location;
use crate::format::record::{Form, Kind, Record, encode_range_end};

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
    assert!(versions.may_be_superseded(32, b"alone", 1, 0), "its base may be among what is lost");
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

fn entry(kind: Kind, sequence: u64) -> Entry {
    let location = Location { segment: 0, offset: 4096, length: 1 };
    Entry { kind, sequence, location, separate: None, form: Form::default(), inline: None }
}

#[test]
fn runs_prove_which_operands_there_were() {
    let is_proven = |in_log: &[u64], in_run: &[u64]| {
        let mut versions = Versions::default();
        versions.note_base(&record(Kind::Put, 5, b"key", b""), false);
        for &sequence in in_log {
            let location = Location { segment: 0, offset: 4096, length: 1 };
            versions.note_operand(&record(Kind::Merge, sequence, b"key", b"x"), location);
        }
        let operands = in_run.iter().map(|sequence| entry(Kind::Merge, *sequence));
        let entries: Vec<_> = operands.chain([entry(Kind::Put, 5)]).collect();
        versions.note_in_runs(32, b"key", &entries);
        versions.note_in_runs(32, b"key", &[entry(Kind::Put, 4)]);
        !versions.may_be_superseded(32, b"key", 20, 20)
    };
    assert!(is_proven(&[], &[]) && is_proven(&[6, 9], &[9, 6]));
    assert!(!is_proven(&[9], &[9, 6]) && !is_proven(&[6], &[9, 6]), "an operand is lost");
}

#[test]
fn runs_prove_deletes_and_what_was_the_newest() {
    let mut versions = Versions::default();
    for (key, sequence) in [(b"deleted", 5), (b"changed", 6), (b"newest!", 7), (b"unknown", 8)] {
        versions.note_base(&record(Kind::Put, sequence, key, b""), false);
    }
    let runs = [
        (b"deleted", Kind::Delete, 10),
        (b"deleted", Kind::Put, 5),
        (b"changed", Kind::Put, 11),
        (b"changed", Kind::Put, 6),
        (b"newest!", Kind::Put, 7),
        (b"nowhere", Kind::Put, 9),
    ];
    runs.iter().for_each(|(key, kind, sequence)| versions.note_in_runs(32, *key, &[entry(*kind, *sequence)]));
    versions.note_removed(32, 12, b"un", b"");
    versions.apply_deletes();
    let wants = |key: &[u8], sequence| versions.wants(&record(Kind::Put, sequence, key, b""));
    assert!(!wants(b"deleted", 5) && wants(b"changed", 6) && wants(b"newest!", 7) && !wants(b"unknown", 8));
    let doubtful: Vec<_> = versions.doubtful().into_iter().collect();
    assert_eq!(doubtful, [(32, b"changed".to_vec())]);
    let may_be = |key: &[u8], lost_below, proven_to| versions.may_be_superseded(32, key, lost_below, proven_to);
    assert!(!may_be(b"newest!", 12, 12), "the runs have all up to there");
    assert!(may_be(b"newest!", 13, 12), "something is lost that the runs never had");
    assert!(may_be(b"changed", 12, 12) && !may_be(b"changed", 6, 0));
}

#[test]
fn keys_of_a_lost_range_delete_may_be_removed() {
    let mut versions = Versions::default();
    for (key, sequence) in [(b"a", 1), (b"b", 2), (b"c", 9), (b"d", 3)] {
        versions.note_base(&record(Kind::Put, sequence, key, b""), false);
    }
    versions.lose_range(32, 5, b"b", b"d");
    versions.lose_range(32, 5, b"d", b"b");
    let removed = [b"a", b"b", b"c", b"d"].map(|key| versions.may_be_removed(32, key));
    assert_eq!(removed, [false, true, false, false]);
}
