use super::{EXPONENT, Pattern, Ranks, Scatter};
use crate::stream::Random;
use std::collections::HashSet;

#[test]
fn zipf_draws_ranks_as_often_as_it_says() {
    const COUNT: u64 = 1_000;
    const DRAWN: u64 = 1_000_000;
    let (ranks, mut random) = (Ranks::new(Pattern::Zipf, COUNT), Random::new(7));
    let mut counts = vec![0u64; COUNT as usize];
    (0..DRAWN).for_each(|_| counts[ranks.draw(&mut random) as usize] += 1);
    let weight = |rank: u64| ((rank + 1) as f64).powf(-EXPONENT);
    let all: f64 = (0..COUNT).map(weight).sum();
    for rank in [0, 1, 2, 9, 99, 999] {
        let expected = DRAWN as f64 * weight(rank) / all;
        let found = counts[rank as usize] as f64;
        // Six times the standard deviation of a count; the seed is fixed.
        assert!((found - expected).abs() < 6.0 * expected.sqrt(), "rank {rank}: {found} times, not {expected}");
    }
}

#[test]
fn uniform_draws_all_ranks_alike() {
    let (ranks, mut random) = (Ranks::new(Pattern::Uniform, 10), Random::new(7));
    let mut counts = [0u64; 10];
    (0..100_000).for_each(|_| counts[ranks.draw(&mut random) as usize] += 1);
    assert!(counts.iter().all(|count| (9_400..10_600).contains(count)), "{counts:?}");
}

#[test]
fn one_record_has_rank_0_alone() {
    for pattern in [Pattern::Uniform, Pattern::Zipf] {
        let (ranks, mut random) = (Ranks::new(pattern, 1), Random::new(7));
        assert!((0..100).all(|_| ranks.draw(&mut random) == 0), "{pattern}");
    }
}

#[test]
fn every_rank_has_a_number_of_its_own() {
    for count in [1, 2, 3, 10, 1_000, 4_096] {
        let scatter = Scatter::new(count);
        let numbers: HashSet<u64> = (0..count).map(|rank| scatter.number(rank)).collect();
        assert_eq!(numbers.len() as u64, count);
        assert!(numbers.iter().all(|&number| number < count));
    }
}
