use super::Tail;
use crate::index::Location;
use crate::index::stack::{Displaced, Entry, Stack};
use crate::log::Position;
use crate::log::record::{Form, Kind};

fn put(sequence: u64, segment: u32) -> Entry {
    let location = Location { segment, offset: sequence as u32 * 16, length: 40 };
    Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default() }
}

/// A look-up has found a record, whose copy is to take its place. Until that happens the record is written over, and what did
/// that goes through the tail and out of it again: nothing in the tail says any more that the copy must not be seen.
#[test]
fn a_copy_does_not_hide_what_went_through_the_tail_since_the_look_up() {
    let tail = Tail::default();
    let (old, copy, newer) = (put(5, 1), put(5, 2), put(9, 1));
    let mut displaced = Displaced::new();
    let found: Stack = [old].into_iter().collect();
    let freezes = tail.freezes();
    let keep = |_: &Displaced| ();

    tail.insert(b"key", (newer, None), &mut displaced, keep);
    assert_eq!(tail.replace(b"key", (&found, old, freezes), copy, &mut displaced, keep), Some(false));
    tail.freeze(Position { batch: 1, checksum: 0, segment: 1, life: 1, offset: 4096 }, 10);
    assert_eq!(tail.replace(b"key", (&found, old, freezes), copy, &mut displaced, keep), None);
    tail.forget_frozen();
    assert_eq!(tail.replace(b"key", (&found, old, freezes), copy, &mut displaced, keep), None);

    let mut seen = Stack::default();
    tail.lookup(b"key", u64::MAX, &mut seen);
    assert!(seen.is_empty(), "{seen:?}");
    assert_eq!(tail.replace(b"key", (&found, old, tail.freezes()), copy, &mut displaced, keep), Some(true));
    tail.lookup(b"key", u64::MAX, &mut seen);
    assert_eq!(seen.entries(), [copy]);
}
