//! The command as its users run it, with stores small enough for a test.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn compare(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_compare"));
    command.arg("merge").arg("--dir").arg(directory.join("stores")).args(arguments);
    command.args(["--json"]).arg(directory.join("report.json")).output().unwrap()
}

fn report(directory: &Path) -> Value {
    serde_json::from_slice(&fs::read(directory.join("report.json")).unwrap()).unwrap()
}

#[test]
fn a_run_reports_merges_puts_and_gets_of_every_engine_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let engines = "aiodb-lsm-cached,aiodb-hash,aiodb-lmdb,rocksdb-direct,rocksdb-successive,blobdb-direct,fjall-half-cache,\
        lmdb-nordahead,redb-half-cache";
    let output = compare(
        directory.path(),
        &["--keys", "50", "--writers", "3", "--seconds", "0.3", "--rounds", "2", "--engines", engines],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    let report = report(directory.path());
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 18);
    for run in runs {
        assert!(run["void"].is_null(), "{run}");
        assert_eq!(run["totals"]["checked_counters"], 50, "{run}");
        let measured = run["points"].as_array().unwrap();
        let operations: Vec<&str> = measured.iter().map(|part| part["operation"].as_str().unwrap()).collect();
        let first = ["merge", "put", "get_of_merged", "get_of_put"];
        let second = ["put", "merge", "get_of_put", "get_of_merged"];
        assert_eq!(operations, if run["round"] == 1 { first } else { second }, "{run}");
        assert!(measured.iter().all(|part| part["count"].as_u64() > Some(0)), "{run}");
    }
    for engine in engines.split(',') {
        let lines = table.lines().filter(|line| line.contains(&format!("| {engine} "))).count();
        assert!(lines >= 2, "{engine} has no rates or no costs:\n{table}");
        assert!(report["settings"][engine].is_object(), "{engine}");
    }
    for way in
        ["A merge of rocksdb: an associative merge operator.", "A merge of redb: read, add and write in a transaction."]
    {
        assert!(table.contains(way), "{way} is missing:\n{table}");
    }
    assert_eq!(report["summary"].as_array().unwrap().len(), 9);
    assert_eq!(report["ratios"].as_array().unwrap().len(), 15, "three of ours by five rivals");
    assert_eq!(fs::read_dir(directory.path().join("stores")).unwrap().count(), 0, "the stores are removed");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_compare"))
        .args(["merge", "--engines", "aiodb-hash", "--dir", "/proc/no-such-directory"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("/proc/no-such-directory"), "{message}");
}
