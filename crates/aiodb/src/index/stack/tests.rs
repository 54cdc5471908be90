use super::{Displaced, Entry, Stack};
use crate::index::Location;
use crate::log::record::{Form, Kind};

fn entry(kind: Kind, sequence: u64) -> Entry {
    let location = Location { segment: 1, offset: sequence as u32 * 16, length: 40 };
    Entry { kind, sequence, location, separate: None, form: Form::default() }
}

fn sequences(stack: &Stack) -> Vec<u64> {
    stack.entries().iter().map(|entry| entry.sequence).collect()
}

#[test]
fn operands_gather_on_their_base_in_any_order() {
    let (put, first, second) = (entry(Kind::Put, 1), entry(Kind::Merge, 2), entry(Kind::Merge, 3));
    for order in [[put, first, second], [second, first, put], [first, put, second]] {
        let mut stack = Stack::default();
        let mut displaced = Displaced::new();
        order.iter().for_each(|entry| stack.insert(*entry, &mut displaced));
        assert_eq!(sequences(&stack), [3, 2, 1]);
        assert!(stack.is_complete() && displaced.is_empty());
    }
}

#[test]
fn a_base_displaces_what_is_older_and_is_displaced_by_what_is_newer() {
    let mut stack = Stack::default();
    let mut displaced = Displaced::new();
    for older in [entry(Kind::Put, 1), entry(Kind::Merge, 2)] {
        stack.insert(older, &mut displaced);
    }
    stack.insert(entry(Kind::Delete, 5), &mut displaced);
    assert_eq!(sequences(&stack), [5]);
    assert_eq!(displaced.iter().map(|(entry, until)| (entry.sequence, *until)).collect::<Vec<_>>(), [(2, 5), (1, 5)]);
    displaced.clear();
    stack.insert(entry(Kind::Merge, 4), &mut displaced);
    assert_eq!(displaced[..], [(entry(Kind::Merge, 4), 5)]);
    assert_eq!(sequences(&stack.without_delete()), [0u64; 0]);
}

#[test]
fn a_later_copy_of_a_record_takes_its_place() {
    let mut stack = Stack::default();
    let mut displaced = Displaced::new();
    stack.insert(entry(Kind::Put, 1), &mut displaced);
    stack.insert(entry(Kind::Merge, 3), &mut displaced);
    let folded = Entry { location: Location { segment: 9, offset: 64, length: 8 }, ..entry(Kind::Put, 3) };
    stack.insert(folded, &mut displaced);
    assert_eq!(stack.entries(), [folded]);
    assert_eq!(displaced.len(), 2);
}

#[test]
fn a_cut_takes_what_is_older_than_a_range_delete() {
    let mut stack: Stack = [entry(Kind::Merge, 7), entry(Kind::Merge, 4), entry(Kind::Put, 2)].into_iter().collect();
    let mut displaced = Displaced::new();
    stack.cut(5, &mut displaced);
    assert_eq!(sequences(&stack), [7]);
    assert_eq!(displaced.len(), 2);
    assert!(!stack.is_complete());
}

#[test]
fn a_delete_is_never_read() {
    let mut stack = Stack::default();
    for entry in [entry(Kind::Delete, 5), entry(Kind::Merge, 6), entry(Kind::Merge, 7)] {
        stack.insert(entry, &mut Displaced::new());
    }
    let sequences = |left_out: usize| -> Vec<u64> {
        stack.candidates(left_out).map(|candidate| candidate.known.expect("an entry's candidate").sequence).collect()
    };
    assert_eq!((sequences(0), sequences(1)), (vec![7, 6], vec![6]));
}
