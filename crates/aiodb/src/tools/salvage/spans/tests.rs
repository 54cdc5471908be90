//! Unit tests of spans of keys.

use super::Spans;

#[test]
fn few_keys_are_told_one_by_one() {
    let mut spans = Spans::new(3);
    [b"b", b"a", b"c"].iter().for_each(|key| spans.add(*key));
    let found: Vec<_> = spans.finish().collect();
    assert_eq!(found, [b"a", b"b", b"c"].map(|key| (key.to_vec(), key.to_vec(), 1)));
}

#[test]
fn many_keys_are_told_in_spans_that_have_all_of_them() {
    let mut rng = fastrand::Rng::with_seed(4);
    for _ in 0..200 {
        let (most, mut keys) = (rng.usize(1..6), (0..rng.u16(1..90)).collect::<Vec<_>>());
        rng.shuffle(&mut keys);
        let mut spans = Spans::new(most);
        keys.iter().for_each(|key| spans.add(&key.to_be_bytes()));
        let found: Vec<_> = spans.finish().collect();
        assert!(found.len() <= most, "{} spans, of {most}", found.len());
        let within = |(first, last, _): &(Vec<u8>, Vec<u8>, u64)| {
            keys.iter().filter(|key| (&first[..]..=&last[..]).contains(&&key.to_be_bytes()[..])).count() as u64
        };
        assert!(found.iter().all(|span| within(span) == span.2), "{found:?}");
        assert_eq!(found.iter().map(|span| span.2).sum::<u64>(), keys.len() as u64);
        assert!(found.windows(2).all(|pair| pair[0].1 < pair[1].0), "they lie apart: {found:?}");
    }
}
