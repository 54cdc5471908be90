use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::parts::{ActiveKeys, MAX_PART_KEYS};
use super::{LookedUp, Memtable, RangeQuery, Reached};
use crate::format::location::Location;
use crate::format::position::Position;
use crate::format::record::{Form, Kind};
use crate::index::chain::{Entry, Superseded, VersionChain};

fn put(sequence: u64, segment: u32) -> Entry {
    let location = Location { segment, offset: sequence as u32 * 16, length: 40 };
    Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default(), inline: None }
}

/// A look-up has found a record, whose copy is to take its place. Before that happens a newer record supersedes it, and goes through
/// the memtable and out of it again: nothing in the memtable says any more that the copy must not be seen.
#[test]
fn a_copy_does_not_hide_what_went_through_the_memtable_since_the_look_up() {
    let memtable = Memtable::default();
    let (old, copy, newer) = (put(5, 1), put(5, 2), put(9, 1));
    let mut superseded = Superseded::new();
    let found: VersionChain = [old.clone()].into_iter().collect();
    let freezes = memtable.freezes();
    let retain = |_: &Superseded| ();

    let replace = |freezes| {
        let looked_up = LookedUp { chain: Arc::new(found.clone()), freezes };
        memtable.replace(b"key", &looked_up, &old, copy.clone(), &mut Superseded::new(), retain)
    };
    memtable.insert(b"key", newer.into(), &mut superseded, retain);
    assert_eq!(replace(freezes), Some(false));
    memtable.freeze(END, 10);
    assert_eq!(replace(freezes), Some(false));
    memtable.forget_immutable();
    assert_eq!(replace(freezes), None);

    let mut seen = VersionChain::default();
    memtable.lookup(b"key", u64::MAX, &mut seen);
    assert!(seen.is_empty(), "{seen:?}");
    let freezes = memtable.freezes();
    assert_eq!(replace(freezes), Some(true));
    memtable.lookup(b"key", u64::MAX, &mut seen);
    assert_eq!(seen.entries(), [copy]);
}

/// A put is to be moved. Before its copy is there, an operand comes and becomes immutable: the copy does not end a look-up before that is
/// found.
#[test]
fn a_copy_does_not_hide_an_operand_that_became_immutable_since_the_look_up() {
    let memtable = Memtable::default();
    let (old, copy, operand) = (put(5, 1), put(5, 2), Entry { kind: Kind::Merge, ..put(6, 1) });
    let looked_up = LookedUp { chain: Arc::new([old.clone()].into_iter().collect()), freezes: memtable.freezes() };
    memtable.insert(b"key", operand.clone().into(), &mut Superseded::new(), |_| ());
    assert!(!memtable.hides(b"key", &old), "an operand hides nothing");
    memtable.freeze(END, 7);
    let replaced = memtable.replace(b"key", &looked_up, &old, copy.clone(), &mut Superseded::new(), |_| ());
    assert_eq!(replaced, Some(true));
    let mut seen = VersionChain::default();
    memtable.lookup(b"key", u64::MAX, &mut seen);
    assert_eq!(seen.entries(), [operand, copy]);
}

/// A put waits for its batch while an operand that came after it is published and becomes immutable: the put comes last and stands
/// below.
#[test]
fn a_base_that_comes_late_does_not_hide_newer_operands() {
    for kind in [Kind::Put, Kind::Delete] {
        let memtable = Memtable::default();
        let (base, operand) = (Entry { kind, ..put(5, 1) }, Entry { kind: Kind::Merge, ..put(6, 1) });
        memtable.insert(b"key", operand.clone().into(), &mut Superseded::new(), |_| ());
        memtable.freeze(END, 7);
        let mut superseded = Superseded::new();
        memtable.insert(b"key", base.clone().into(), &mut superseded, |_| ());
        let mut seen = VersionChain::default();
        memtable.lookup(b"key", u64::MAX, &mut seen);
        assert_eq!((seen.entries(), superseded.len()), (&[operand, base][..], 0));
        // The operand is in the layer below by now.
        memtable.forget_immutable();
        let mut seen = VersionChain::default();
        memtable.lookup(b"key", u64::MAX, &mut seen);
        assert!(!seen.is_complete(), "a look-up that goes on finds the operand");
        // The next base is newer than all.
        let last = put(8, 1);
        memtable.insert(b"key", last.clone().into(), &mut Superseded::new(), |_| ());
        let mut seen = VersionChain::default();
        memtable.lookup(b"key", u64::MAX, &mut seen);
        assert!(seen.is_complete() && seen.entries() == [last]);
    }
}

const END: Position = Position { batch: 1, checksum: 0, segment: 1, life: 1, offset: 4096 };

fn insert(memtable: &Memtable, key: &[u8], sequence: u64) {
    memtable.insert(key, put(sequence, 1).into(), &mut Superseded::new(), |_| ());
}

/// The keys that the memtable gives of a range, and how far it says that it came.
fn range(
    memtable: &Memtable,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
    backward: bool,
    limit: usize,
) -> (Vec<u32>, Reached) {
    let (found, reached) = memtable.range(RangeQuery {
        range: (from, to),
        whole: (from, to),
        backward,
        limit,
        newest: u64::MAX,
        cached: false,
    });
    (found.keys().map(|key| u32::from_be_bytes(key[..].try_into().expect("four bytes"))).collect(), reached)
}

/// Keys lie in parts, which are split as they grow: none of that is to be seen.
#[test]
fn ranges_go_through_all_parts() {
    let memtable = Memtable::default();
    let mut random = fastrand::Rng::with_seed(7);
    let mut known = BTreeSet::new();
    for immutable in [false, true] {
        for sequence in 1..=3000 {
            let key = random.u32(..100_000);
            insert(&memtable, &key.to_be_bytes(), sequence);
            known.insert(key);
        }
        assert!(immutable || memtable.active_keys() == known.len());
        for _ in 0..300 {
            let (one, other, limit) = (random.u32(..100_000), random.u32(..100_000), random.usize(1..3000));
            let (from, to) = (one.min(other).to_be_bytes(), one.max(other).to_be_bytes());
            let (all, mut reached) = range(&memtable, Bound::Included(&from), Bound::Included(&to), false, usize::MAX);
            let expected: Vec<u32> = known.range(one.min(other)..=one.max(other)).copied().collect();
            assert_eq!((&all, &reached), (&expected, &Reached::End));
            // Going on behind what was reached finds each key once, in either direction.
            for backward in [false, true] {
                let mut bounds = (Bound::Included(from), Bound::Included(to));
                let mut parts = Vec::new();
                loop {
                    let (mut part, next) = range(&memtable, slice(&bounds.0), slice(&bounds.1), backward, limit);
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
        if !immutable {
            let chains = memtable.freeze(END, 3001).chains;
            let keys: Vec<u32> =
                chains.iter().map(|(key, _)| u32::from_be_bytes(key.try_into().expect("four bytes"))).collect();
            assert!(keys.iter().eq(&known) && chains.len() == known.len());
            assert_eq!(memtable.active_keys(), 0);
        }
    }
}

/// First keys of parts that begin with each other, of several tables, empty ones among them: each key is in the part that it is looked for in.
#[test]
fn parts_are_found_however_keys_begin() {
    for seed in 0..6 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut active, mut known) = (ActiveKeys::default(), BTreeMap::new());
        for sequence in 1..=6000 {
            // Another table's keys come late.
            let table = if sequence > 3000 { random.u8(..3) } else { 1 };
            let mut key = vec![table; random.usize(..4)];
            (0..random.usize(..9)).for_each(|_| key.push([0, 1, 255][random.usize(..3)]));
            let change = |chain: &mut VersionChain| chain.insert(put(sequence, 1), &mut Superseded::new());
            let (_, keys) = active.change(&key, sequence, change);
            if keys.is_some_and(|keys| keys >= MAX_PART_KEYS) {
                active.split(&key);
            }
            known.insert(key, sequence);
        }
        assert!(known.len() > 8 * MAX_PART_KEYS);
        for (key, sequence) in &known {
            assert_eq!(active.find(key, |chain| chain.newest().map(|entry| entry.sequence)), Some(Some(*sequence)));
        }
        let immutable = active.freeze();
        assert!(immutable.iter().map(|(key, _)| key).eq(known.keys().map(Vec::as_slice)));
        for (key, sequence) in &known {
            assert_eq!(immutable.newer(key, sequence - 1).len(), 1);
            assert!(immutable.newer(key, *sequence).is_empty());
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

/// An inserted entry is seen from then on, while parts are split and memtables become immutable.
#[test]
fn what_was_inserted_is_seen_while_others_insert() {
    const KEYS: u32 = 20_000;
    let memtable = Memtable::default();
    let done = AtomicBool::new(false);
    let generations = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let memtable = &memtable;
                scope.spawn(move || {
                    for number in 0..KEYS {
                        let key = (number.wrapping_mul(0x9e37_79b1) ^ writer).to_be_bytes();
                        insert(memtable, &key, u64::from(number) + 1);
                        let mut seen = VersionChain::default();
                        memtable.lookup(&key, u64::MAX, &mut seen);
                        assert!(!seen.is_empty());
                        let bound = Bound::Included(&key[..]);
                        assert_eq!(range(memtable, bound, bound, number % 2 == 0, 10).0.len(), 1);
                    }
                })
            })
            .collect();
        let freezer = scope.spawn(|| {
            let mut immutable = Vec::new();
            // The immutable memtable is not forgotten here, so that look-ups find its entries.
            while !done.load(Ordering::Acquire) {
                if immutable.is_empty() && memtable.active_keys() > KEYS as usize {
                    immutable.push(memtable.freeze(END, 1).chains);
                }
                std::thread::yield_now();
            }
            immutable
        });
        writers.into_iter().for_each(|writer| writer.join().expect("a writer sees what it wrote"));
        done.store(true, Ordering::Release);
        freezer.join().expect("it freezes")
    });
    let immutable: usize = generations.iter().map(|chains| chains.len()).sum();
    let distinct: BTreeSet<u32> =
        (0..4).flat_map(|writer| (0..KEYS).map(move |number| number.wrapping_mul(0x9e37_79b1) ^ writer)).collect();
    let (all, reached) = range(&memtable, Bound::Unbounded, Bound::Unbounded, false, usize::MAX);
    assert_eq!((all.len(), reached), (distinct.len(), Reached::End));
    assert!(immutable > 0 && memtable.len() >= distinct.len());
}

/// Prints what an operation takes, alone on one thread: `cargo test -p aiodb --lib what_a_memtable_costs -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn what_a_memtable_costs() {
    const KEYS: usize = 500_000;
    type Make = fn(u64) -> Vec<u8>;
    let mixed = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let shapes: [(&str, Make); 3] = [
        ("8 random bytes", |number| number.to_be_bytes().to_vec()),
        ("user and ten digits", |number| format!("\0\0\0\u{10}user{:010}", number % 10_000_000_000).into_bytes()),
        ("25 bytes, alike", |number| format!("\0\0\0\u{10}sensor/readings/{:09}", number % 1_000_000_000).into_bytes()),
    ];
    for (name, make) in shapes {
        for ordered in [false, true] {
            let of = |number: usize| if ordered { number as u64 } else { mixed(number as u64) };
            let keys: Vec<_> = (0..KEYS).map(|number| make(of(number))).collect();
            let mut shuffled: Vec<usize> = (0..KEYS).collect();
            fastrand::Rng::with_seed(1).shuffle(&mut shuffled);
            let memtable = Memtable::default();
            let timed = |what: &str, work: &mut dyn FnMut(usize)| {
                let begun = std::time::Instant::now();
                (0..KEYS).for_each(work);
                println!("{name}, in order: {ordered}: {what} {} ns", begun.elapsed().as_nanos() as usize / KEYS);
            };
            timed("new key", &mut |number| insert(&memtable, &keys[number], number as u64 + 1));
            timed("overwrite", &mut |number| insert(&memtable, &keys[shuffled[number]], (KEYS + number) as u64 + 1));
            timed("get", &mut |number| {
                let mut seen = VersionChain::default();
                memtable.lookup(&keys[shuffled[KEYS - 1 - number]], u64::MAX, &mut seen);
                assert!(!seen.is_empty());
            });
        }
    }
}
