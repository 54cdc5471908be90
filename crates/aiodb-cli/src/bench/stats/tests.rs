use super::*;

#[test]
fn summary_of_known_data() {
    // Mean 5, sample standard deviation 2.138, t(7) = 2.365: half width 2.365 * 2.138 / sqrt(8).
    let summary = Summary::of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("not empty");
    assert_eq!((summary.median, summary.min, summary.max), (4.5, 2.0, 9.0));
    let half = summary.ci95_half_width.expect("eight values");
    assert!((half - 1.7877).abs() < 0.001, "half width {half}");
}

#[test]
fn median_of_an_odd_count_is_the_middle_value() {
    assert_eq!(Summary::of(&[9.0, 1.0, 3.0]).expect("not empty").median, 3.0);
}

#[test]
fn an_interval_needs_two_values() {
    assert_eq!(Summary::of(&[]), None);
    let one = Summary::of(&[7.0]).expect("not empty");
    assert_eq!(one.ci95_half_width, None);
    assert!(!one.is_within(1.0), "one round never ends a measurement");
}

#[test]
fn stops_only_within_the_wanted_precision() {
    let narrow = Summary::of(&[1.00, 1.01, 0.99, 1.00, 1.01]).expect("not empty");
    assert!(narrow.is_within(0.02));
    let wide = Summary::of(&[0.8, 1.2, 0.9, 1.1]).expect("not empty");
    assert!(!wide.is_within(0.02));
}

#[test]
fn t_quantiles_match_published_tables() {
    for (degrees_of_freedom, published) in
        [(1, 12.706), (10, 2.228), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)]
    {
        let quantile = t_quantile_975(degrees_of_freedom);
        assert!((quantile - published).abs() < 0.001, "t({degrees_of_freedom}) = {quantile}");
    }
}
