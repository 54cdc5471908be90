use super::{Figures, Point, Reply, Request, Workload, run};
use crate::engine::Reads;
use crate::stream::Pairs;
use std::time::Duration;

pub(crate) fn figures() -> Figures {
    Figures {
        operations: 10,
        gets: 10,
        puts: 0,
        wrong: 0,
        seconds: 2.0,
        catch_up_seconds: 0.0,
        operations_per_s: 5.0,
        cpu_us_per_operation: 1.5,
        device_reads_per_get: Some(1.0),
        device_bytes_per_user_byte: None,
        peak_memory_bytes: None,
        swapped_bytes: 0,
    }
}

#[test]
fn replies_survive_the_pipe() {
    let point = Point { workload: Workload::Read, threads: 8, reads: Reads::Together(256) };
    let text = serde_json::to_string(&Reply::Measured(point, figures())).unwrap();
    let Reply::Measured(read, measured) = serde_json::from_str(&text).unwrap() else { panic!("{text}") };
    assert_eq!((read, measured), (point, figures()));
}

#[test]
fn workloads_know_whether_they_write() {
    assert!(Workload::Read.only_reads() && Workload::Scan.only_reads() && Workload::FullScan.only_reads());
    assert!(!Workload::Mixed95.only_reads() && !Workload::Bulk.only_reads() && !Workload::Overwrite.only_reads());
}

#[test]
fn an_unknown_engine_is_a_reply_and_no_panic() {
    let directory = tempfile::tempdir().unwrap();
    let request = Request {
        engine: "nobody".to_owned(),
        directory: directory.path().join("store"),
        pairs: Pairs { count: 1, value_bytes: 100 },
        load: true,
        next_number: 1,
        memory_bytes: 1 << 20,
        group: None,
        duration: Duration::from_millis(1),
        warm_up: Duration::ZERO,
        points: Vec::new(),
    };
    run(&request).unwrap();
    assert!(!directory.path().join("store").exists());
}
