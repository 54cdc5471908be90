use super::{BUCKETS, Histogram, bound_of, bucket_of};

#[test]
fn every_value_falls_into_a_bucket_at_most_an_eighth_above_it() {
    let mut random = fastrand::Rng::with_seed(1);
    let around_powers = (0..64).flat_map(|power| [(1u64 << power) - 1, 1 << power, (1 << power) + 1]);
    let any = std::iter::repeat_with(|| random.u64(..) >> random.u32(..64)).take(10_000);
    for value in around_powers.chain(any).chain([0, u64::MAX]).collect::<Vec<_>>() {
        let bucket = bucket_of(value);
        assert!(bucket < BUCKETS, "{value}");
        let bound = bound_of(bucket);
        assert!(bound >= value && bound as f64 <= (value.max(1)) as f64 * 1.125, "{value} counts as {bound}");
        assert_eq!(bucket_of(bound), bucket, "a bound is in its own bucket");
        assert!(bucket == 0 || bound_of(bucket - 1) < value, "{value} is above the bucket before");
    }
    for power in 0..64 {
        assert_eq!(bound_of(bucket_of(1 << power)), 1 << power, "powers of two are bounds");
    }
}

#[test]
fn percentiles_lie_within_the_stated_error() {
    let histogram = Histogram::default();
    assert_eq!((histogram.snapshot().percentile(50.0), histogram.snapshot().mean()), (0, 0.0));
    for value in 1..=10_000u64 {
        histogram.record(value * 1000);
    }
    let seen = histogram.snapshot();
    assert_eq!((seen.count(), seen.sum()), (10_000, 50_005_000_000));
    for (percent, exact) in [(0.01, 1000.0), (50.0, 5e6), (99.0, 9.9e6), (100.0, 1e7)] {
        let found = seen.percentile(percent) as f64;
        assert!((exact..=exact * 1.125).contains(&found), "{percent} %: {found} instead of {exact}");
    }
    assert_eq!(seen.count_up_to(1 << 20), 1048, "values up to a power of two are counted exactly");
}

#[test]
fn nothing_is_lost_between_threads() {
    let histogram = Histogram::default();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let histogram = &histogram;
            scope.spawn(move || (0..10_000).for_each(|value| histogram.record(value * thread)));
        }
    });
    assert_eq!((histogram.snapshot().count(), histogram.snapshot().sum()), (40_000, 6 * 49_995_000));
}
