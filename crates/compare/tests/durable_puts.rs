//! The command as its users run it, with a store small enough for a test.

use serde_json::Value;
use std::fs;
use std::process::Command;

#[test]
fn a_run_reports_what_it_measured_and_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let stores = directory.path().join("stores");
    let json = directory.path().join("report.json");
    let output = Command::new(env!("CARGO_BIN_EXE_compare"))
        .args(["durable-puts", "--keys", "1_000", "--writers", "1,4", "--seconds", "1", "--rounds", "1"])
        .args(["--engines", "rocksdb", "--rocksdb-settings", "recycled", "--dir"])
        .arg(&stores)
        .arg("--json")
        .arg(&json)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(table.matches("rocksdb-recycled").count(), 3, "two rows and a sum:\n{table}");

    let report: Value = serde_json::from_slice(&fs::read(&json).unwrap()).unwrap();
    let points = report["rounds"][0].as_array().unwrap();
    assert_eq!(points.iter().map(|point| point["writers"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(points[0]["keys_before"], 1_000);
    let first_puts = points[0]["puts"].as_u64().unwrap();
    assert!(first_puts > 0);
    assert_eq!(points[1]["keys_before"], 1_000 + first_puts, "the puts add up");
    assert_eq!(report["settings"]["rocksdb-recycled"]["options"]["recycle_log_file_num"], 4);
    assert_eq!(fs::read_dir(&stores).unwrap().count(), 0, "the stores are removed");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_compare"))
        .args(["durable-puts", "--keys", "0", "--dir", "/proc/no-such-directory"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("/proc/no-such-directory"), "{message}");
}
