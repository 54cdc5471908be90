use super::{line, rate};
use std::time::Duration;

#[test]
fn a_line_tells_share_and_time_left_where_the_total_is_known() {
    let text = line(1 << 20, Some(4 << 20), Duration::from_secs(10), "7 lines");
    assert_eq!(text, "1.00 MiB of 4.00 MiB (25 %), 7 lines, 30 seconds left");
}

#[test]
fn a_line_without_a_total_promises_nothing() {
    assert_eq!(line(1 << 20, None, Duration::from_secs(10), "7 lines"), "1.00 MiB, 7 lines");
    assert_eq!(line(0, Some(0), Duration::from_secs(10), "0 lines"), "0 B, 0 lines");
    assert_eq!(line(0, Some(5), Duration::from_secs(10), "0 lines"), "0 B, 0 lines");
}

#[test]
fn a_rate_is_per_second_and_finite() {
    assert_eq!(rate(50_000, "lines", Duration::from_secs(4)), "12,500 lines/s");
    assert_eq!(rate(1, "lines", Duration::ZERO), "1,000 lines/s");
}
