use super::*;

#[test]
fn linear_ticks_are_round_and_enclose_the_data() {
    assert_eq!(linear_ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
    assert_eq!(linear_ticks(0.0, 512_000.0), [0.0, 1e5, 2e5, 3e5, 4e5, 5e5, 6e5]);
    for (min, max) in [(0.0, 3.0), (0.83, 1.04), (0.0, 97_412.0), (0.0, 0.0), (1.0, 1.0), (12.0, 7_000_000.0)] {
        let ticks = linear_ticks(min, max);
        assert!((2..=9).contains(&ticks.len()), "{min}..{max}: {ticks:?}");
        assert!(ticks[0] <= min + 1e-6 && ticks[ticks.len() - 1] >= max - 1e-6, "{min}..{max}: {ticks:?}");
    }
}

#[test]
fn log_ticks_are_at_1_2_5_and_enclose_the_data() {
    let rounded = |ticks: Vec<f64>| ticks.iter().map(|tick| tick.round() as u64).collect::<Vec<_>>();
    assert_eq!(rounded(log_ticks(16_000.0, 377_000.0)), [10_000, 20_000, 50_000, 100_000, 200_000, 500_000]);
    assert_eq!(rounded(log_ticks(100.0, 100.0)), [100, 200]);
    assert_eq!(rounded(log_ticks(21.0, 250_000.0)), [10, 100, 1_000, 10_000, 100_000, 1_000_000]);
    assert_eq!(rounded(log_ticks(10.0, 1_000_000.0)), [10, 100, 1_000, 10_000, 100_000, 1_000_000]);
}

#[test]
fn a_log_axis_spaces_factors_equally() {
    let axis = Axis::log_at("depth", [1.0, 1024.0, 32.0, 32.0].into_iter(), compact);
    let ticks: Vec<_> = axis.ticks().collect();
    assert_eq!(ticks.iter().map(|tick| tick.1.as_str()).collect::<Vec<_>>(), ["1", "32", "1K"]);
    assert!((ticks[1].0 - 0.5).abs() < 1e-9);
    assert_eq!(axis.position(2048.0), None);
    assert_eq!(axis.clamped(2048.0), 1.0);
}

#[test]
fn a_single_measured_value_lies_in_the_middle() {
    assert_eq!(Axis::log_at("depth", [64.0].into_iter(), compact).position(64.0), Some(0.5));
}

#[test]
fn steps_have_room_on_both_sides() {
    let axis = Axis::steps("bytes", [0.0, 64.0, 4096.0, 1024.0].into_iter(), compact_bytes);
    assert_eq!(axis.position(0.0), Some(0.125));
    assert_eq!(axis.position(4096.0), Some(0.875));
    assert_eq!(axis.position(100.0), None);
}

#[test]
fn numbers_are_short() {
    for (value, text) in [
        (0.0, "0"),
        (64.0, "64"),
        (1500.0, "1.5K"),
        (370_000.0, "370K"),
        (999_900.0, "1M"),
        (2.5e6, "2.5M"),
        (0.5, "0.5"),
    ] {
        assert_eq!(compact(value), text);
    }
    assert_eq!(compact_bytes(64.0), "64");
    assert_eq!(compact_bytes(4096.0), "4K");
}
