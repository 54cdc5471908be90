use super::{Operation, Pairs, Stream, Tally, Values};
use std::collections::HashSet;
use std::time::Duration;

const PAIRS: Pairs = Pairs { count: 1000, value_bytes: 100 };

#[test]
fn keys_are_distinct() {
    let keys: HashSet<_> = (0..100_000).map(|number| PAIRS.key(number)).collect();
    assert_eq!(keys.len(), 100_000);
}

#[test]
fn a_value_is_known_by_its_number_whatever_its_version() {
    let mut values = Values::new(PAIRS, 7);
    let first = values.next(3).to_vec();
    let second = values.next(3).to_vec();
    assert_ne!(first, second, "versions differ");
    assert!(PAIRS.is_value(3, &first) && PAIRS.is_value(3, &second));
    assert!(!PAIRS.is_value(4, &first), "another number");
    assert!(!PAIRS.is_value(3, &first[..99]), "cut short");
    let mut torn = first;
    torn[99] ^= 1;
    assert!(!PAIRS.is_value(3, &torn), "another end");
}

#[test]
fn operations_keep_their_proportion_and_their_range() {
    for (percent, gets_at_least, gets_at_most) in [(100, 10_000, 10_000), (95, 9_300, 9_700), (0, 0, 0)] {
        let mut stream = Stream::new(PAIRS, percent, 1, Duration::from_secs(3600));
        let mut gets = 0;
        for _ in 0..10_000 {
            match stream.next().unwrap() {
                Operation::Get(number) if number < PAIRS.count => gets += 1,
                Operation::Put(number) if number < PAIRS.count => {}
                outside => panic!("{outside:?}"),
            }
        }
        assert!((gets_at_least..=gets_at_most).contains(&gets), "{gets} gets at {percent} %");
    }
}

#[test]
fn a_stream_ends_with_its_time() {
    assert_eq!(Stream::new(PAIRS, 50, 1, Duration::ZERO).next(), None);
}

#[test]
fn right_and_wrong_answers_are_told_apart() {
    let mut stream = Stream::new(PAIRS, 50, 1, Duration::ZERO);
    let value = stream.value(5).to_vec();
    stream.answer(5, Some(&value));
    stream.answer(6, Some(&value));
    stream.answer(6, None);
    stream.written(2);
    assert_eq!(stream.tally(), Tally { gets: 1, puts: 2, wrong: 2 });
}
