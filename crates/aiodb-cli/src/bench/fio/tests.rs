use std::path::PathBuf;

use super::*;
use crate::bench::raw::{DataFile, ReadArea};

/// Cut from a report of fio 3.33: two jobs, a warning before the JSON.
const REPORT: &str = r#"fio: this platform does not support process shared mutexes
{
  "fio version" : "fio-3.33",
  "jobs" : [
    {
      "jobname" : "ceiling", "error" : 0,
      "read" : { "io_bytes" : 39575552, "iops" : 31887.788779, "total_ios" : 9662, "short_ios" : 0 },
      "write" : { "iops" : 0.000000, "total_ios" : 0 },
      "job_runtime" : 302, "usr_cpu" : 1.0, "sys_cpu" : 9.0, "ctx" : 312
    },
    {
      "jobname" : "ceiling", "error" : 0,
      "read" : { "io_bytes" : 40960000, "iops" : 33112.211221, "total_ios" : 10338, "short_ios" : 0 },
      "job_runtime" : 300, "usr_cpu" : 2.0, "sys_cpu" : 18.0, "ctx" : 330
    }
  ]
}"#;

#[test]
fn jobs_are_summed() {
    let sample = parse_report(REPORT.as_bytes()).expect("well formed");
    assert!((sample.reads_per_s - 65_000.0).abs() < 1e-6);
    // 10 % of 302 ms and 20 % of 300 ms, over 20,000 reads.
    assert!((sample.cpu_us_per_read - (30_200.0 + 60_000.0) / 20_000.0).abs() < 1e-9);
}

#[test]
fn failures_are_not_taken_for_rates() {
    assert!(parse_report(b"fio: no such engine").unwrap_err().contains("no JSON"));
    assert!(parse_report(REPORT.replace("\"error\" : 0", "\"error\" : 22").as_bytes()).unwrap_err().contains("22"));
    assert!(parse_report(br#"{"jobs": []}"#).unwrap_err().contains("no read"));
    assert!(parse_report(br#"{"jobs": [{"error": 0}]}"#).unwrap_err().contains("missing field"));
}

#[test]
fn the_command_line_reads_only_and_escapes_names() {
    let area = ReadArea::new(vec![
        DataFile { path: PathBuf::from("/disk/a:0"), data_bytes: 1 << 26 },
        DataFile { path: PathBuf::from("/disk/1"), data_bytes: 1 << 26 },
    ]);
    let reads = RawReads { area: &area, read_bytes: 4608, threads: 2, depth: 16 };
    let line = arguments(FioEngine::IoUring, &reads, Duration::from_millis(250)).join(" ");
    for wanted in
        ["--readonly", "--bs=4608 --blockalign=512", "--numjobs=2", "--runtime=250ms", r"--filename=0/a\:0:0/1"]
    {
        assert!(line.contains(wanted), "{wanted} in {line}");
    }
    assert!(!line.contains("--size"), "full files are read whole");
    assert!(!line.contains("--file_service_type"), "one disk is read as ever");
}

#[test]
fn files_of_several_disks_are_read_at_random() {
    let file = |path| DataFile { path: PathBuf::from(path), data_bytes: 1 << 26 };
    let area = ReadArea::new(vec![file("/one/log/1"), file("/one/log/3"), file("/two/log/2")]);
    let reads = RawReads { area: &area, read_bytes: 4096, threads: 1, depth: 16 };
    let line = arguments(FioEngine::Libaio, &reads, Duration::from_millis(250)).join(" ");
    for wanted in ["--filename=0/1:0/3:1/2", "--file_service_type=random"] {
        assert!(line.contains(wanted), "{wanted} in {line}");
    }
}
