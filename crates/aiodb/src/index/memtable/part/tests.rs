use std::collections::BTreeMap;
use std::ops::Bound;

use fastrand::Rng;

use super::{Part, StoredKey, fingerprint};
use crate::format::location::Location;
use crate::format::record::{Form, Kind};
use crate::index::chain::{Entry, Superseded, VersionChain};
use crate::index::memtable::KeyRange;
use crate::index::memtable::parts::MAX_PART_KEYS;

fn put(sequence: u64) -> Entry {
    let location = Location { segment: 1, offset: 0, length: 40 };
    Entry { kind: Kind::Put, sequence, location, separate: None, form: Form::default(), inline: None }
}

/// Keys that begin alike, that others begin with, that differ behind what a head has, and that end in zeros, as padded heads do.
fn key(random: &mut Rng, prefix: &[u8]) -> StoredKey {
    let mut key = StoredKey::from_slice(&prefix[..random.usize(..=prefix.len())]);
    (0..random.usize(..12)).for_each(|_| key.push([0, 1, 255][random.usize(..3)]));
    key
}

/// The newest sequences of a part's keys in order.
fn contents<'a>(keys: impl Iterator<Item = (&'a [u8], &'a VersionChain)>) -> Vec<(StoredKey, u64)> {
    keys.map(|(key, chain)| (key.into(), chain.newest().expect("it was put").sequence)).collect()
}

fn bound<'a>(random: &mut Rng, key: &'a [u8]) -> Bound<&'a [u8]> {
    match random.u8(..5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(key),
        _ => Bound::Excluded(key),
    }
}

fn compare(part: &Part, known: &BTreeMap<StoredKey, u64>, random: &mut Rng, prefix: &[u8]) {
    let all: Vec<_> = known.iter().map(|(key, sequence)| (key.clone(), *sequence)).collect();
    assert_eq!((contents(part.iter()), part.len()), (all.clone(), known.len()));
    for _ in 0..40 {
        let asked = key(random, prefix);
        assert_eq!(
            part.get(&asked).map(|chain| chain.newest().expect("it was put").sequence),
            known.get(&asked).copied()
        );
        let other = key(random, prefix);
        let (low, high) = if asked < other { (asked, other) } else { (other, asked) };
        let range: KeyRange<'_> = (bound(random, &low), bound(random, &high));
        let is_in = |key: &[u8]| {
            let behind = match range.0 {
                Bound::Included(from) => key >= from,
                Bound::Excluded(from) => key > from,
                Bound::Unbounded => true,
            };
            behind
                && match range.1 {
                    Bound::Included(to) => key <= to,
                    Bound::Excluded(to) => key < to,
                    Bound::Unbounded => true,
                }
        };
        let mut expected: Vec<_> = all.iter().filter(|(key, _)| is_in(key)).cloned().collect();
        assert_eq!(contents(part.range(range)), expected, "{range:?}");
        expected.reverse();
        assert_eq!(contents(part.range(range).rev()), expected, "backward, {range:?}");
    }
}

/// Keys that somebody has chosen for their fingerprint are found, each with what was put of it, and no others.
#[test]
fn keys_with_one_fingerprint_are_told_apart() {
    let wanted = fingerprint(b"0");
    let alike: Vec<_> =
        (0_u32..).map(u32::to_be_bytes).filter(|key| fingerprint(key) == wanted).take(2 * MAX_PART_KEYS).collect();
    let (here, absent) = alike.split_at(MAX_PART_KEYS);
    let mut part = Part::default();
    let mut random = Rng::with_seed(3);
    let mut sequences: Vec<u64> = (1..=here.len() as u64).collect();
    random.shuffle(&mut sequences);
    for (key, sequence) in here.iter().zip(&sequences) {
        part.get_or_insert(key, *sequence).insert(put(*sequence), &mut Superseded::new());
    }
    for (key, sequence) in here.iter().zip(&sequences) {
        assert_eq!(part.get(key).and_then(VersionChain::newest).map(|entry| entry.sequence), Some(*sequence));
    }
    assert!(absent.iter().all(|key| part.get(key).is_none()) && part.len() == here.len());
}

#[test]
fn keys_are_found_and_in_order_however_alike_they_are() {
    for seed in 0..60 {
        let random = &mut Rng::with_seed(seed);
        let prefix: Vec<u8> = (0..random.usize(..40)).map(|_| random.u8(..2)).collect();
        let (mut part, mut known, mut sequence) = (Part::default(), BTreeMap::new(), 0);
        for step in 1..=500 {
            sequence += 1;
            let key = key(random, &prefix);
            part.get_or_insert(&key, sequence).insert(put(sequence), &mut Superseded::new());
            known.insert(key, sequence);
            if step % 100 == 0 {
                compare(&part, &known, random, &prefix);
            }
        }
        assert_eq!(part.newest(), sequence);
        // Either half goes on as a part of its own. Which one has the newest entry is not known, so each may.
        let upper = part.split_off();
        assert_eq!((part.newest(), upper.newest()), (sequence, sequence));
        let mut above = known.split_off(upper.first());
        assert!(!known.is_empty() && known.len().abs_diff(above.len()) <= 1, "seed {seed}");
        for (mut half, known) in [(part, &mut known), (upper, &mut above)] {
            compare(&half, known, random, &prefix);
            for _ in 0..100 {
                sequence += 1;
                let key = key(random, &prefix);
                half.get_or_insert(&key, sequence).insert(put(sequence), &mut Superseded::new());
                known.insert(key, sequence);
            }
            compare(&half, known, random, &prefix);
        }
    }
}
