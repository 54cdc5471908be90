use super::{Reading, Row, parse, short, to_json, to_text};
use std::time::{Duration, SystemTime};

fn reading(second: u64, lookups: f64, waits: f64, waited_s: f64) -> Reading {
    let text = format!(
        "# HELP aiodb_lookups_total Keys.\n# TYPE aiodb_lookups_total counter\naiodb_lookups_total {lookups}\n\
         # TYPE aiodb_live_bytes gauge\naiodb_live_bytes 4096\n\
         # TYPE aiodb_read_wait_seconds histogram\naiodb_read_wait_seconds_bucket{{path=\"get\",le=\"+Inf\"}} {waits}\n\
         aiodb_read_wait_seconds_sum{{path=\"get\"}} {waited_s}\naiodb_read_wait_seconds_count{{path=\"get\"}} {waits}\n"
    );
    let samples = parse(&text).expect("it has the form");
    Reading { written: SystemTime::UNIX_EPOCH + Duration::from_secs(second), samples }
}

fn row(name: &str, value: f64, per_s: Option<f64>, mean: Option<f64>) -> Row {
    Row { name: name.into(), value, per_s, mean }
}

#[test]
fn rates_and_means_are_those_since_the_reading_before() {
    let (first, second) = (reading(10, 100.0, 50.0, 1.0), reading(12, 400.0, 60.0, 1.5));
    let wait = "read_wait_seconds{path=\"get\"}";
    assert_eq!(
        first.rows(None),
        [row("lookups", 100.0, None, None), row("live_bytes", 4096.0, None, None), row(wait, 50.0, None, None)]
    );
    assert_eq!(
        second.rows(Some(&first)),
        [
            row("lookups", 400.0, Some(150.0), None),
            row("live_bytes", 4096.0, None, None),
            row(wait, 60.0, Some(5.0), Some(0.05))
        ]
    );
}

#[test]
fn a_store_that_was_opened_again_has_no_rates_at_first() {
    let rows = reading(12, 5.0, 0.0, 0.0).rows(Some(&reading(10, 100.0, 50.0, 1.0)));
    assert!(rows.iter().all(|row| row.per_s.is_none() && row.mean.is_none()), "{rows:?}");
}

#[test]
fn other_texts_are_refused() {
    for text in ["", "# TYPE x counter\n", "hello", "other_metric 1\n", "aiodb_x one\n"] {
        assert_eq!(parse(text), None, "{text:?}");
    }
}

#[test]
fn rows_are_aligned_for_people_and_named_for_programs() {
    let rows = reading(12, 400.0, 60.0, 1.5).rows(Some(&reading(10, 100.0, 50.0, 1.0)));
    let text = to_text(&rows);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "lookups                                       400             150");
    assert_eq!(to_json(&rows)["lookups"]["per_s"], 150.0);
    assert_eq!([short(0.000_123_456), short(1234.56), short(7.0)], ["0.0001235", "1235", "7"]);
}
