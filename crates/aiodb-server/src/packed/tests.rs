use std::collections::BTreeMap;
use std::ops::Bound;

use fastrand::Rng;

use super::*;

fn bytes(random: &mut Rng, most: usize) -> Bytes {
    (0..random.usize(..most)).map(|_| random.u8(b'a'..=b'c')).collect()
}

fn packed(elements: &BTreeMap<Bytes, Bytes>) -> Option<Packed> {
    Packed::default().changed(elements.iter().map(|(name, value)| (name, Some(value))))
}

fn bound(random: &mut Rng) -> Bound<Vec<u8>> {
    let name = bytes(random, 4).to_vec();
    [Bound::Unbounded, Bound::Included(name.clone()), Bound::Excluded(name)][random.usize(..3)].clone()
}

#[test]
fn it_has_what_a_map_has() {
    for seed in 0..500 {
        let mut random = Rng::with_seed(seed);
        let mut elements: BTreeMap<Bytes, Bytes> = BTreeMap::new();
        let mut all = Packed::default();
        for _ in 0..random.usize(1..20) {
            let changes: BTreeMap<Bytes, Option<Bytes>> = (0..random.usize(..8))
                .map(|_| (bytes(&mut random, 4), random.bool().then(|| bytes(&mut random, 20))))
                .collect();
            all = all.changed(changes.iter().map(|(name, value)| (name, value.as_ref()))).expect("they are few");
            for (name, value) in changes {
                match value {
                    Some(value) => elements.insert(name, value),
                    None => elements.remove(&name),
                };
            }
            assert_eq!(packed(&elements).as_ref(), Some(&all), "seed {seed}");
        }
        let name = bytes(&mut random, 4);
        assert_eq!(all.get(&name).as_ref(), elements.get(&name), "seed {seed}");
        let span = Span { from: bound(&mut random), to: bound(&mut random), is_backward: random.bool(), ..Span::ALL };
        let most = random.usize(1..10);
        let mut found = Vec::new();
        all.visit(&span, |name, value| {
            found.push((name.to_vec(), value.to_vec()));
            found.len() < most
        });
        let range = (span.from.clone(), span.to.clone());
        let within = elements.iter().map(|(name, value)| (name.to_vec(), value.to_vec()));
        let mut within: Vec<_> = within.filter(|(name, _)| range.contains(name)).collect();
        if span.is_backward {
            within.reverse();
        }
        within.truncate(most);
        assert_eq!(found, within, "seed {seed}");
    }
}

#[test]
fn large_collections_are_not_packed() {
    let number = |number: usize| Bytes::from(format!("{number:04}"));
    let most: BTreeMap<Bytes, Bytes> = (0..MOST_ELEMENTS).map(|element| (number(element), Bytes::new())).collect();
    let all = packed(&most).expect("they are few");
    assert_eq!(all.bytes(), MOST_ELEMENTS * (LENGTHS + 4));
    let (one_more, nothing) = (number(MOST_ELEMENTS), Bytes::new());
    assert_eq!(all.changed([(&one_more, Some(&nothing))].into_iter()), None);
    assert_eq!(all.changed([(&one_more, None)].into_iter()), Some(all.clone()));
    assert!(Packed::may_have(most.len() as u64) && !Packed::may_have(most.len() as u64 + 1));
    let long = Bytes::from(vec![0; MOST_BYTES - LENGTHS - 4]);
    let only = Packed::default().changed([(&number(0), Some(&long))].into_iter()).expect("it just fits");
    assert_eq!((only.bytes(), only.get(b"0000")), (MOST_BYTES, Some(long.clone())));
    let longer = Bytes::from(vec![0; long.len() + 1]);
    assert_eq!(only.changed([(&number(0), Some(&longer))].into_iter()), None);
}
