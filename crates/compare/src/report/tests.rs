use super::{Spread, summarise, sweep_table};
use crate::store::Point;

/// A point in which only these figures matter; catching up takes as long as writing did.
pub(crate) fn point(engine: &str, writers: u32, puts_per_second: f64) -> Point {
    Point {
        engine: engine.to_owned(),
        writers,
        keys_before: 0,
        puts: puts_per_second as u64,
        write_seconds: 1.0,
        catch_up_seconds: 1.0,
        puts_per_second,
        settled_puts_per_second: puts_per_second / 2.0,
        p50_us: 1,
        p99_us: 2,
        p999_us: 3,
        max_us: 4,
        cpu_us_per_put: 1.0,
        settled_cpu_us_per_put: 2.0,
        device_bytes_per_user_byte: None,
        process_bytes_per_user_byte: None,
    }
}

#[test]
fn the_median_of_an_even_number_lies_between() {
    assert_eq!(Spread::of([]), None);
    assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
    assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
}

#[test]
fn ratios_pair_rounds_and_meet_the_best_rival_of_each() {
    let rounds = [
        vec![point("fast", 10, 100.0), point("slow", 10, 50.0), point("ours", 10, 400.0)],
        vec![point("fast", 10, 200.0), point("slow", 10, 250.0), point("ours", 10, 500.0)],
    ];
    let rows = summarise(&rounds, &["fast".to_owned(), "slow".to_owned()]);
    let engines: Vec<&str> = rows.iter().map(|row| row.engine.as_str()).collect();
    assert_eq!(engines, ["fast", "slow", "ours"]);
    // Ours is charged with its catching up: 200 against 100, then 250 against 250.
    assert_eq!(rows[2].strict_ratio, Some(Spread { median: 1.5, min: 1.0, max: 2.0 }));
    assert_eq!(rows[2].settled_ratio, Some(Spread { median: 3.0, min: 2.0, max: 4.0 }));
    assert_eq!(rows[0].strict_ratio, None);
    assert_eq!(rows[0].puts_per_second, Spread { median: 150.0, min: 100.0, max: 200.0 });
}

#[test]
fn without_a_rival_there_is_no_ratio() {
    let rows = summarise(&[vec![point("ours", 1, 400.0)]], &[]);
    assert_eq!(rows[0].strict_ratio, None);
}

#[test]
fn the_sweep_has_a_column_for_each_number_of_writers() {
    let rounds = [
        vec![point("b", 10, 2_000.0), point("b", 1, 1_000.0), point("a", 10, 30_000.0)],
        vec![point("b", 10, 3_000.0), point("b", 1, 1_000.0), point("a", 10, 30_000.0)],
    ];
    let expected = "\
| setting | K puts/s at 1 | K puts/s at 10   |
| ------- | ------------- | ---------------- |
| b       | 1.0 (1.0-1.0) | 2.5 (2.0-3.0)    |
| a       | -             | 30.0 (30.0-30.0) |
";
    assert_eq!(sweep_table(&rounds), expected);
}
