//! The command as its users run it, with stores small enough for a test.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn compare(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compare"));
    command.arg("workloads").arg("--dir").arg(directory.join("stores")).args(arguments);
    command.args(["--json"]).arg(directory.join("report.json")).output().unwrap()
}

#[test]
fn a_run_reports_every_engine_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    // As much memory as data: what is looked at here is whether every part works.
    let arguments = ["--pairs", "16000", "--value-bytes", "4096", "--threads", "1", "--rounds", "2"];
    let engines = "aiodb-lmdb,aiodb-hash,lmdb-nordahead,rocksdb-direct,blobdb-direct,redb-half-cache,fjall-blobs";
    let output = compare(
        directory.path(),
        &[&arguments[..], &["--milliseconds", "20", "--data-to-memory", "1", "--quick", "--engines", engines]].concat(),
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&fs::read(directory.path().join("report.json")).unwrap()).unwrap();
    let outcomes = report["outcomes"].as_array().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    for engine in engines.split(',') {
        let own: Vec<&Value> = outcomes.iter().filter(|outcome| outcome["engine"] == engine).collect();
        assert!(own.iter().any(|outcome| outcome["point"]["workload"] == "bulk"), "{engine}");
        for outcome in own {
            // So little memory may not do for a rival; then the outcome is void and says so.
            assert!(outcome["void"].is_null() || !engine.starts_with("aiodb"), "{outcome}");
            assert!(outcome["void"].is_string() || outcome["figures"]["operations"].as_u64() > Some(0), "{outcome}");
            assert!(outcome["figures"]["wrong"].as_u64().is_none_or(|wrong| wrong == 0), "{outcome}");
        }
        assert!(report["settings"][engine].is_object(), "{engine}");
        assert!(table.contains(engine), "{engine} is not in the table:\n{table}");
    }
    assert!(report["memory"][0]["held_by"].is_string());
    assert_eq!(fs::read_dir(directory.path().join("stores")).unwrap().count(), 0, "the stores are removed");
}

#[test]
fn a_process_that_runs_out_of_memory_makes_its_points_void() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--pairs", "1000", "--value-bytes", "1024", "--threads", "1", "--rounds", "1", "--quick"];
    let output = compare(
        directory.path(),
        &[&arguments[..], &["--milliseconds", "20", "--data-to-memory", "1024", "--engines", "aiodb-hash"]].concat(),
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&fs::read(directory.path().join("report.json")).unwrap()).unwrap();
    if report["memory"][0]["held_by"].as_str().unwrap().starts_with("NOTHING") {
        eprintln!("not tested: this machine cannot limit memory");
        return;
    }
    let outcomes = report["outcomes"].as_array().unwrap();
    assert!(!outcomes.is_empty());
    assert!(outcomes.iter().all(|outcome| outcome["void"].is_string()), "a kilobyte of memory does for nobody");
    assert!(String::from_utf8(output.stdout).unwrap().contains("Void: aiodb-hash"));
}

#[test]
fn a_size_that_does_not_fit_on_the_disk_is_an_error_and_the_others_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["--pairs", "1000000000", "--value-bytes", "1048576", "--rounds", "1", "--engines", "aiodb-hash"];
    let output = compare(directory.path(), &arguments);
    assert!(!output.status.success());
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("values of 1048576 bytes") && message.contains("use fewer --pairs"), "{message}");
    let report: Value = serde_json::from_slice(&fs::read(directory.path().join("report.json")).unwrap()).unwrap();
    assert_eq!(report["not_measured"].as_array().unwrap().len(), 1);
    assert_eq!(report["outcomes"].as_array().unwrap().len(), 0);
}
