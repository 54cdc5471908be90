//! The command as its users run it, with stores small enough for a test.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn compare(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compare"));
    command.arg("soak").arg("--dir").arg(directory.join("stores")).args(arguments);
    command.args(["--json"]).arg(directory.join("report.json")).output().unwrap()
}

fn report(directory: &Path) -> Value {
    serde_json::from_slice(&fs::read(directory.join("report.json")).unwrap()).unwrap()
}

fn runs(report: &Value) -> &[Value] {
    report["runs"].as_array().unwrap()
}

fn families(runs: &[Value]) -> BTreeSet<&str> {
    runs.iter().map(|run| run["family"].as_str().unwrap()).collect()
}

fn names(runs: &[Value]) -> Vec<&str> {
    runs.iter().map(|run| run["engine"].as_str().unwrap()).collect()
}

#[test]
fn a_run_reports_every_engine_in_points_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let engines =
        "aiodb-lsm,aiodb-lmdb,aiodb-hash,rocksdb-level-direct,rocksdb-universal,blobdb-level,fjall-no-filters";
    let output = compare(
        directory.path(),
        &["--keys", "20000", "--writers", "4", "--point-ms", "20", "--rounds", "2", "--engines", engines],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    let report = report(directory.path());
    let runs = runs(&report);
    let once: Vec<&str> = engines.split(',').collect();
    let again: Vec<&str> = once[1..].iter().chain(&once[..1]).copied().collect();
    assert_eq!(names(runs), [once.clone(), again].concat(), "each round begins with another engine");
    for run in runs {
        assert!(run["void"].is_null(), "{run}");
        assert_eq!(run["totals"]["puts"], 20_000, "{run}");
        let points = run["points"].as_array().unwrap();
        let number = |name: &str| points.iter().map(|point| point[name].as_f64().unwrap()).collect::<Vec<_>>();
        assert!(!points.is_empty() && number("keys").is_sorted(), "{run}");
        assert!(number("keys").iter().all(|&keys| keys <= 20_000.0), "{run}");
        assert!(number("longest_us").iter().zip(number("p50_us")).all(|(&longest, half)| longest >= half), "{run}");
        let longest = number("longest_us").into_iter().fold(0.0, f64::max);
        assert!(run["totals"]["longest_us"].as_f64().unwrap() >= longest, "{run}");
        assert!(run["totals"]["settled_cpu_seconds"].as_f64().unwrap() > 0.0, "{run}");
    }
    for engine in once {
        let lines = table.lines().filter(|line| line.contains(&format!("| {engine} "))).count();
        assert!(lines >= 2, "{engine} has no rates or no costs:\n{table}");
        assert!(report["settings"][engine].is_object(), "{engine}");
    }
    assert_eq!(report["summary"].as_array().unwrap().len(), 7);
    assert_eq!(report["ratios"].as_array().unwrap().len(), 9, "three of ours by three rivals");
    assert_eq!(fs::read_dir(directory.path().join("stores")).unwrap().count(), 0, "the stores are removed");
}

#[test]
fn processes_are_held_to_their_memory_and_one_that_has_too_little_is_void() {
    let directory = tempfile::tempdir().unwrap();
    let small = ["--keys", "1000", "--writers", "2", "--point-ms", "20", "--rounds", "1", "--engines", "aiodb-hash"];
    let output = compare(directory.path(), &[&small[..], &["--memory", "256M"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let enough = report(directory.path());
    if enough["held_by"].as_str().unwrap().starts_with("NOTHING") {
        eprintln!("not tested: this machine cannot limit memory");
        return;
    }
    assert_eq!(runs(&enough)[0]["memory_limit_bytes"], 256 << 20);
    let output = compare(directory.path(), &[&small[..], &["--memory", "1M"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(directory.path());
    assert!(runs(&report)[0]["void"].is_string(), "a megabyte does for nobody");
    assert!(String::from_utf8(output.stdout).unwrap().contains("Void: aiodb-hash"));
}

#[test]
fn half_of_the_full_rate_is_measured_after_it() {
    let directory = tempfile::tempdir().unwrap();
    let output = compare(
        directory.path(),
        &["--keys", "5000", "--writers", "2", "--rate", "half", "--durability", "sync", "--max-seconds", "2"]
            .iter()
            .chain(&["--rounds", "1", "--point-ms", "100", "--engines", "aiodb-lsm,rocksdb-level"])
            .copied()
            .collect::<Vec<_>>(),
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(directory.path());
    let runs = runs(&report);
    assert_eq!(names(runs), ["aiodb-lsm", "aiodb-lsm", "rocksdb-level", "rocksdb-level"]);
    for pair in runs.chunks(2) {
        assert_eq!((pair[0]["load"].as_str(), pair[1]["load"].as_str()), (Some("full"), Some("half")));
        let due = pair[1]["due_puts_per_s"].as_f64().unwrap();
        let puts: f64 = pair[1]["totals"]["puts"].as_f64().unwrap();
        let seconds = pair[1]["totals"]["seconds"].as_f64().unwrap();
        // No put begins before it is due, and the last one is due as the others are.
        assert!(puts <= due * seconds + 2.0, "{puts} puts in {seconds} s at {due} a second");
    }
}

#[test]
fn a_run_ends_with_its_time_too() {
    let directory = tempfile::tempdir().unwrap();
    let output = compare(
        directory.path(),
        &["--keys", "200000", "--max-seconds", "1", "--durability", "sync", "--value-bytes", "1024", "--writers", "2"]
            .iter()
            .chain(&["--point-ms", "200", "--rounds", "1", "--engines", "aiodb-lsm"])
            .copied()
            .collect::<Vec<_>>(),
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(directory.path());
    let run = &runs(&report)[0];
    let puts = run["totals"]["puts"].as_u64().unwrap();
    assert!(run["void"].is_null() && (1..200_000).contains(&puts), "{run}");
    let points = run["points"].as_array().unwrap();
    assert!((1..=5).contains(&points.len()), "{run}");
}

#[test]
fn a_sweep_tries_every_setting_and_measures_one_of_each_rival() {
    let directory = tempfile::tempdir().unwrap();
    let output = compare(
        directory.path(),
        &["--keys", "2000", "--writers", "2", "--point-ms", "20", "--sweep", "--rounds", "1", "--memory", "256M"],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report = report(directory.path());
    let swept = report["sweep"].as_array().unwrap();
    assert!(swept.iter().all(|run| run["void"].is_null()), "{swept:?}");
    assert!(swept.len() > families(swept).len(), "several settings of some");
    assert_eq!(runs(&report).len(), 1 + families(swept).len());
    assert_eq!(families(runs(&report)).len(), runs(&report).len());
}

#[test]
fn more_keys_than_the_disk_has_room_for_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let output = compare(directory.path(), &["--keys", "1000000000000", "--engines", "aiodb-hash"]);
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("values of 25 bytes, interval") && message.contains("use fewer --keys"), "{message}");
    let report = report(directory.path());
    assert_eq!(report["not_measured"].as_array().unwrap().len(), 1);
    assert!(runs(&report).is_empty());
}
