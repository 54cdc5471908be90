use super::{Point, Reply, Request, Totals, run};
use crate::class::Class;
use std::time::Duration;

/// A run in points of ten seconds with these rates.
pub(crate) fn points(rates: &[f64]) -> Vec<Point> {
    let mut at_s = 0.0;
    let point = |&puts_per_s: &f64| {
        at_s += 10.0;
        Point {
            at_s,
            seconds: 10.0,
            keys: 0,
            puts_per_s,
            p50_us: 1.0,
            p99_us: 2.0,
            p999_us: 3.0,
            longest_us: 4.0,
            resident_bytes: 1 << 20,
            processors: 0.5,
            device_written_bytes_per_s: Some(1e6),
            device_reads_per_s: None,
        }
    };
    rates.iter().map(point).collect()
}

pub(crate) fn totals() -> Totals {
    Totals {
        puts: 1_000,
        seconds: 20.0,
        p50_us: 1.0,
        p99_us: 2.0,
        p999_us: 3.0,
        longest_us: 4_000.0,
        most_resident_bytes: 64 << 20,
        peak_memory_bytes: Some(128 << 20),
        swapped_bytes: 0,
        cpu_seconds: 1.0,
        device_written_bytes: Some(60_000),
        catch_up_seconds: 3.0,
        settled_cpu_seconds: 2.0,
        settled_device_written_bytes: Some(100_000),
        disk_bytes: 75_000,
    }
}

#[test]
fn replies_survive_the_pipe() {
    let text = serde_json::to_string(&Reply::Measured(points(&[3.5]).remove(0))).unwrap();
    let Reply::Measured(read) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    assert_eq!(read, points(&[3.5])[0]);
    let text = serde_json::to_string(&Reply::Finished(totals())).unwrap();
    let Reply::Finished(read) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    assert_eq!(read, totals());
}

#[test]
fn an_unknown_engine_is_a_reply_and_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    let request = Request {
        engine: "nobody".to_owned(),
        directory: directory.path().join("store"),
        value_bytes: 25,
        class: Class::Interval,
        writers: 1,
        puts_per_s: None,
        keys: 1,
        most_time: Duration::from_secs(1),
        point: Duration::from_secs(1),
        memory_bytes: 1 << 20,
        group: None,
    };
    run(&request).unwrap();
    assert!(!directory.path().join("store").exists());
}
