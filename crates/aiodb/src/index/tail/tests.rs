use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

use super::parts::Stacks;
use super::{Reached, Tail};
use crate::format::location::Location;
use crate::format::position::Position;
use crate::format::record::{Form, Kind};
use crate::index::stack::{Displaced, Entry, Stack};

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

/// A put waits for its batch while an operand that came after it is published, and frozen: the put comes last and stands below.
#[test]
fn a_base_that_comes_late_does_not_hide_newer_operands() {
    for kind in [Kind::Put, Kind::Delete] {
        let tail = Tail::default();
        let (base, operand) = (Entry { kind, ..put(5, 1) }, Entry { kind: Kind::Merge, ..put(6, 1) });
        tail.insert(b"key", (operand, None), &mut Displaced::new(), |_| ());
        tail.freeze(END, 7);
        let mut displaced = Displaced::new();
        tail.insert(b"key", (base, None), &mut displaced, |_| ());
        let mut seen = Stack::default();
        tail.lookup(b"key", u64::MAX, &mut seen);
        assert_eq!((seen.entries(), displaced.len()), (&[operand, base][..], 0));
        // The operand is in the layer below by now.
        tail.forget_frozen();
        let mut seen = Stack::default();
        tail.lookup(b"key", u64::MAX, &mut seen);
        assert!(!seen.is_complete(), "whoever looks on finds the operand");
        // The next base is newer than all.
        let last = put(8, 1);
        tail.insert(b"key", (last, None), &mut Displaced::new(), |_| ());
        let mut seen = Stack::default();
        tail.lookup(b"key", u64::MAX, &mut seen);
        assert!(seen.is_complete() && seen.entries() == [last]);
    }
}

const END: Position = Position { batch: 1, checksum: 0, segment: 1, life: 1, offset: 4096 };

fn insert(tail: &Tail, key: &[u8], sequence: u64) {
    tail.insert(key, (put(sequence, 1), None), &mut Displaced::new(), |_| ());
}

/// The keys that the tail gives of a range, and how far it says that it came.
fn range(tail: &Tail, from: Bound<&[u8]>, to: Bound<&[u8]>, backward: bool, limit: usize) -> (Vec<u32>, Reached) {
    let mut found = Stacks::new();
    let reached = tail.range((from, to), backward, limit, u64::MAX, &mut found);
    (found.keys().map(|key| u32::from_be_bytes(key[..].try_into().expect("four bytes"))).collect(), reached)
}

/// Keys lie in parts, which are split as they grow: none of that is to be seen.
#[test]
fn ranges_go_through_all_parts() {
    let tail = Tail::default();
    let mut random = fastrand::Rng::with_seed(7);
    let mut known = BTreeSet::new();
    for frozen in [false, true] {
        for sequence in 1..=3000 {
            let key = random.u32(..100_000);
            insert(&tail, &key.to_be_bytes(), sequence);
            known.insert(key);
        }
        assert!(frozen || tail.active_keys() == known.len());
        for _ in 0..300 {
            let (one, other, limit) = (random.u32(..100_000), random.u32(..100_000), random.usize(1..3000));
            let (from, to) = (one.min(other).to_be_bytes(), one.max(other).to_be_bytes());
            let (all, mut reached) = range(&tail, Bound::Included(&from), Bound::Included(&to), false, usize::MAX);
            let expected: Vec<u32> = known.range(one.min(other)..=one.max(other)).copied().collect();
            assert_eq!((&all, &reached), (&expected, &Reached::End));
            // Going on behind what was reached finds each key once, in either direction.
            for backward in [false, true] {
                let mut bounds = (Bound::Included(from), Bound::Included(to));
                let mut parts = Vec::new();
                loop {
                    let (mut part, next) = range(&tail, slice(&bounds.0), slice(&bounds.1), backward, limit);
                    reached = next;
                    if let Reached::Key(key) = &reached {
                        let last = u32::from_be_bytes(key[..].try_into().expect("four bytes"));
                        part.retain(|key| if backward { *key >= last } else { *key <= last });
                        let bound = Bound::Excluded(last.to_be_bytes());
                        if backward { bounds.1 = bound } else { bounds.0 = bound }
                    }
                    parts.extend(part);
                    if reached == Reached::End || bounds.0 == bounds.1 {
                        break;
                    }
                }
                parts.sort_unstable();
                assert_eq!(parts, expected, "backward: {backward}, by {limit}");
            }
        }
        if !frozen {
            let stacks = tail.freeze(END, 3001).stacks;
            let keys: Vec<u32> =
                stacks.iter().map(|(key, _)| u32::from_be_bytes(key.try_into().expect("four bytes"))).collect();
            assert!(keys.iter().eq(&known) && stacks.len() == known.len());
            assert_eq!(tail.active_keys(), 0);
        }
    }
}

fn slice(bound: &Bound<[u8; 4]>) -> Bound<&[u8]> {
    match bound {
        Bound::Included(key) => Bound::Included(key),
        Bound::Excluded(key) => Bound::Excluded(key),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// What was inserted is seen from then on, while parts are split and generations frozen.
#[test]
fn what_was_inserted_is_seen_while_others_insert() {
    const KEYS: u32 = 20_000;
    let tail = Tail::default();
    let done = AtomicBool::new(false);
    let generations = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let tail = &tail;
                scope.spawn(move || {
                    for number in 0..KEYS {
                        let key = (number.wrapping_mul(0x9e37_79b1) ^ writer).to_be_bytes();
                        insert(tail, &key, u64::from(number) + 1);
                        let mut seen = Stack::default();
                        tail.lookup(&key, u64::MAX, &mut seen);
                        assert!(!seen.is_empty());
                        let bound = Bound::Included(&key[..]);
                        assert_eq!(range(tail, bound, bound, number % 2 == 0, 10).0.len(), 1);
                    }
                })
            })
            .collect();
        let freezer = scope.spawn(|| {
            let mut frozen = Vec::new();
            // Of a frozen generation nobody forgets here what it has, so that look-ups find it.
            while !done.load(Ordering::Acquire) {
                if frozen.is_empty() && tail.active_keys() > KEYS as usize {
                    frozen.push(tail.freeze(END, 1).stacks);
                }
                std::thread::yield_now();
            }
            frozen
        });
        writers.into_iter().for_each(|writer| writer.join().expect("a writer sees what it wrote"));
        done.store(true, Ordering::Release);
        freezer.join().expect("it freezes")
    });
    let frozen: usize = generations.iter().map(|stacks| stacks.len()).sum();
    let distinct: BTreeSet<u32> =
        (0..4).flat_map(|writer| (0..KEYS).map(move |number| number.wrapping_mul(0x9e37_79b1) ^ writer)).collect();
    let (all, reached) = range(&tail, Bound::Unbounded, Bound::Unbounded, false, usize::MAX);
    assert_eq!((all.len(), reached), (distinct.len(), Reached::End));
    assert!(frozen > 0 && tail.len() >= distinct.len());
}
