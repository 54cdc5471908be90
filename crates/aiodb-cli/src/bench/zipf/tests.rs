use super::*;

const DRAWS: u64 = 1_000_000;

/// How often each rank is drawn.
fn draws(ranks: Ranks, count: u64) -> Vec<u64> {
    let (mut random, mut draws) = (Rng::with_seed(7), vec![0; count as usize]);
    for _ in 0..DRAWS {
        draws[ranks.draw(&mut random) as usize] += 1;
    }
    draws
}

/// How far the draws may be from what a share of them has: five standard deviations.
fn within(draws: u64, share: f64) -> bool {
    let (expected, deviation) = (share * DRAWS as f64, (share * (1.0 - share) * DRAWS as f64).sqrt());
    (draws as f64 - expected).abs() <= 5.0 * deviation
}

#[test]
fn each_rank_has_its_share() {
    for count in [1, 2, 3, 10, 1000] {
        let all: f64 = (1..=count).map(|rank| (rank as f64).powf(-EXPONENT)).sum();
        let draws = draws(Ranks::new(Pattern::Zipf, count), count);
        for (rank, draws) in (1..).zip(&draws) {
            let share = f64::from(rank).powf(-EXPONENT) / all;
            assert!(within(*draws, share), "rank {rank} of {count} was drawn {draws} times, its share is {share}");
        }
    }
}

#[test]
fn the_first_ranks_of_many_have_their_shares() {
    // The sum of r to the power of -0.99 over the first 1, 10, 100, 1000 and all ranks.
    let (count, all) = (2_000_000, (1..=2_000_000).map(|rank| f64::from(rank).powf(-EXPONENT)).sum::<f64>());
    let draws = draws(Ranks::new(Pattern::Zipf, count), count);
    for (ranks, sum) in [(1, 1.0), (10, 2.9561), (100, 5.2946), (1000, 7.7290)] {
        let drawn: u64 = draws[..ranks].iter().sum();
        assert!(within(drawn, sum / all), "the first {ranks} ranks were drawn {drawn} times");
    }
}

#[test]
fn uniform_ranks_are_drawn_alike() {
    let draws = draws(Ranks::new(Pattern::Uniform, 100), 100);
    assert!(draws.iter().all(|draws| within(*draws, 0.01)), "{draws:?}");
}

#[test]
fn scattered_numbers_are_a_permutation_and_the_first_ones_lie_everywhere() {
    for count in [1, 2, 3, 4, 6, 1000, 1024, 9973] {
        let scatter = Scatter::new(count);
        let mut numbers: Vec<u64> = (0..count).map(|rank| scatter.number(rank)).collect();
        let tenths: std::collections::HashSet<u64> =
            numbers.iter().take(20).map(|number| number * 10 / count).collect();
        assert!(count < 1000 || tenths.len() == 10, "the first 20 of {count} lie in {tenths:?}");
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..count), "each of {count} is there once");
    }
}
