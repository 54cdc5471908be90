use super::{Entry, Superseded, VersionChain};
use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::merge::Cover;

fn entry(kind: Kind, sequence: u64) -> Entry {
    let location = Location { segment: 1, offset: sequence as u32 * 16, length: 40 };
    Entry { kind, sequence, location, separate: None, form: Form::default(), inline: None }
}

fn sequences(chain: &VersionChain) -> Vec<u64> {
    chain.entries().iter().map(|entry| entry.sequence).collect()
}

#[test]
fn operands_gather_on_their_base_in_any_order() {
    let (put, first, second) = (entry(Kind::Put, 1), entry(Kind::Merge, 2), entry(Kind::Merge, 3));
    for order in [[&put, &first, &second], [&second, &first, &put], [&first, &put, &second]] {
        let mut chain = VersionChain::default();
        let mut superseded = Superseded::new();
        order.into_iter().for_each(|entry| chain.insert(entry.clone(), &mut superseded));
        assert_eq!(sequences(&chain), [3, 2, 1]);
        assert!(chain.is_complete() && superseded.is_empty());
    }
}

#[test]
fn a_base_displaces_what_is_older_and_is_displaced_by_what_is_newer() {
    let mut chain = VersionChain::default();
    let mut superseded = Superseded::new();
    for older in [entry(Kind::Put, 1), entry(Kind::Merge, 2)] {
        chain.insert(older, &mut superseded);
    }
    chain.insert(entry(Kind::Delete, 5), &mut superseded);
    assert_eq!(sequences(&chain), [5]);
    assert_eq!(superseded.iter().map(|(entry, until)| (entry.sequence, *until)).collect::<Vec<_>>(), [(2, 5), (1, 5)]);
    superseded.clear();
    chain.insert(entry(Kind::Merge, 4), &mut superseded);
    assert_eq!(superseded[..], [(entry(Kind::Merge, 4), 5)]);
    assert_eq!(sequences(&chain.without_delete()), [0u64; 0]);
}

/// The cover of an operand that has some parts from one time.
fn cover(parts: u64, time: i64) -> Cover {
    Cover { meaning: 1, parts, earliest: time, latest: time }
}

fn displaced_by(superseded: &Superseded) -> Vec<(u64, u64)> {
    superseded.iter().map(|(entry, until)| (entry.sequence, *until)).collect()
}

#[test]
fn an_operand_displaces_those_for_which_it_stands_in_any_order() {
    let (first, other, second) = ((2, cover(0b01, 20)), (3, cover(0b10, 30)), (4, cover(0b01, 40)));
    for order in [[first, other, second], [second, other, first], [second, first, other]] {
        let (mut chain, mut superseded) = (VersionChain::default(), Superseded::new());
        chain.insert(entry(Kind::Put, 1), &mut superseded);
        for (sequence, cover) in order {
            chain.insert_covering(entry(Kind::Merge, sequence), cover, &mut superseded);
        }
        assert_eq!(sequences(&chain), [4, 3, 1]);
        assert_eq!(displaced_by(&superseded), [(2, 4)]);
        chain.insert_covering(entry(Kind::Merge, 5), cover(0b11, 50), &mut superseded);
        assert_eq!(sequences(&chain), [5, 1]);
    }
}

#[test]
fn an_operand_stands_only_for_what_it_has_of_a_later_time_and_the_same_meaning() {
    let (mut chain, mut superseded) = (VersionChain::default(), Superseded::new());
    let other_meaning = Cover { meaning: 2, ..cover(0b01, 99) };
    let longer = Cover { latest: 30, ..cover(0b01, 10) };
    for (sequence, cover) in [(1, longer), (2, cover(0b11, 10)), (3, cover(0b01, 30)), (4, other_meaning)] {
        chain.insert_covering(entry(Kind::Merge, sequence), cover, &mut superseded);
    }
    chain.insert(entry(Kind::Merge, 5), &mut superseded);
    assert_eq!(sequences(&chain), [5, 4, 3, 2, 1]);
    assert!(superseded.is_empty());
}

#[test]
fn a_copy_of_an_operand_is_displaced_as_the_record_itself() {
    let (mut chain, mut superseded) = (VersionChain::default(), Superseded::new());
    chain.insert_covering(entry(Kind::Merge, 2), cover(1, 20), &mut superseded);
    let copy = Entry { location: Location { segment: 9, offset: 64, length: 8 }, ..entry(Kind::Merge, 2) };
    chain.insert(copy.clone(), &mut superseded);
    superseded.clear();
    chain.insert_covering(entry(Kind::Merge, 3), cover(1, 30), &mut superseded);
    assert_eq!(chain.entries(), [entry(Kind::Merge, 3)]);
    assert_eq!(superseded[..], [(copy, 3)]);
}

#[test]
fn what_goes_with_a_base_or_a_range_is_displaced_once() {
    let (mut chain, mut superseded) = (VersionChain::default(), Superseded::new());
    chain.insert_covering(entry(Kind::Merge, 2), cover(1, 20), &mut superseded);
    chain.insert(entry(Kind::Put, 3), &mut superseded);
    chain.insert_covering(entry(Kind::Merge, 4), cover(1, 40), &mut superseded);
    chain.cut(5, &mut superseded);
    chain.insert_covering(entry(Kind::Merge, 6), cover(1, 60), &mut superseded);
    assert_eq!(sequences(&chain), [6]);
    assert_eq!(displaced_by(&superseded), [(2, 3), (4, 5), (3, 5)]);
}

#[test]
fn a_later_copy_of_a_record_takes_its_place() {
    let mut chain = VersionChain::default();
    let mut superseded = Superseded::new();
    chain.insert(entry(Kind::Put, 1), &mut superseded);
    chain.insert(entry(Kind::Merge, 3), &mut superseded);
    let folded = Entry { location: Location { segment: 9, offset: 64, length: 8 }, ..entry(Kind::Put, 3) };
    chain.insert(folded.clone(), &mut superseded);
    assert_eq!(chain.entries(), [folded]);
    assert_eq!(superseded.len(), 2);
}

#[test]
fn a_cut_takes_what_is_older_than_a_range_delete() {
    let mut chain: VersionChain =
        [entry(Kind::Merge, 7), entry(Kind::Merge, 4), entry(Kind::Put, 2)].into_iter().collect();
    let mut superseded = Superseded::new();
    chain.cut(5, &mut superseded);
    assert_eq!(sequences(&chain), [7]);
    assert_eq!(superseded.len(), 2);
    assert!(!chain.is_complete());
}

#[test]
fn a_delete_is_never_read() {
    let mut chain = VersionChain::default();
    for entry in [entry(Kind::Delete, 5), entry(Kind::Merge, 6), entry(Kind::Merge, 7)] {
        chain.insert(entry, &mut Superseded::new());
    }
    let sequences = |left_out: usize| -> Vec<u64> {
        chain.candidates(left_out).map(|candidate| candidate.known.expect("an entry's candidate").sequence).collect()
    };
    assert_eq!((sequences(0), sequences(1)), (vec![7, 6], vec![6]));
}

#[test]
fn what_was_made_of_an_operand_counts_before_the_operand_in_whichever_layer() {
    let layers = |upper: &[&Entry], lower: &[&Entry]| {
        let mut chain = VersionChain::default();
        upper.iter().chain(lower).for_each(|entry| chain.insert_below(entry));
        chain.entries().to_vec()
    };
    let (operand, older, made) = (entry(Kind::Merge, 7), entry(Kind::Merge, 5), entry(Kind::Put, 7));
    assert_eq!(layers(&[&operand, &older], &[&made]), std::slice::from_ref(&made));
    assert_eq!(layers(&[&made], &[&operand, &older]), std::slice::from_ref(&made));
    let moved = Entry { location: Location { segment: 9, ..operand.location }, ..operand.clone() };
    assert_eq!(layers(&[&moved], &[&operand, &older]), [moved, older], "of equal ones the upper layer's counts");
}

#[test]
fn values_beyond_a_bound_are_left_out() {
    let with = |sequence, bytes: usize| Entry { inline: Some(vec![7; bytes].into()), ..entry(Kind::Merge, sequence) };
    for (most, left) in [(0, [None, None, None]), (8, [Some(0), Some(8), None]), (9, [Some(0), Some(8), Some(9)])] {
        let mut chain: VersionChain = [with(3, 0), with(2, 8), with(1, 9)].into_iter().collect();
        chain.leave_out_values(most);
        let lengths = chain.entries().iter().map(|entry| entry.inline.as_ref().map(|value| value.len()));
        assert_eq!(lengths.collect::<Vec<_>>(), left, "at most {most} bytes");
    }
}
