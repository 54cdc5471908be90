use serde_json::Value;

use super::*;
use crate::bench::rows::copy_size::CopySizeRow;
use crate::bench::rows::write::{DeviceFlushes, WriteRow};

fn environment() -> Environment {
    Environment {
        date_utc: "2026-01-02T03:04:05Z".to_owned(),
        kernel: "Linux 6.1".to_owned(),
        cpu: "a processor".to_owned(),
        cores: 4,
        memory_bytes: 1 << 34,
        file_system: "ext4".to_owned(),
        disk: "nvme0n1".to_owned(),
        disk_model: "a model".to_owned(),
        disk_logical_block_bytes: 512,
        disk_physical_block_bytes: 4096,
        disk_scheduler: "[none]".to_owned(),
        fio: "fio-3.33".to_owned(),
    }
}

pub(crate) fn outcome() -> Outcome {
    let lmdb = CopySizeRow {
        series: "lmdb in memory".to_owned(),
        copy_bytes: 64,
        depth: None,
        pairs: 10,
        gets_per_s: 3.0,
        gets_per_s_min: 2.0,
        gets_per_s_max: 4.0,
        gets_per_s_rounds: vec![2.0, 3.0, 4.0],
        rounds: 3,
        cpu_us_per_get: 1.0,
    };
    Outcome {
        command: "aiodb bench copy-size".to_owned(),
        commit: "0123456789ab".to_owned(),
        environment: environment(),
        notes: vec!["a note with <angle> brackets".to_owned()],
        rows: Rows::CopySize(vec![lmdb]),
    }
}

#[test]
fn the_object_has_command_commit_environment_and_rows() {
    let json: Value = serde_json::from_str(&outcome().to_json()).expect("JSON");
    assert_eq!(json["bench"], "copy-size");
    assert_eq!(json["command"], "aiodb bench copy-size");
    assert_eq!(json["commit"], "0123456789ab");
    assert_eq!(json["environment"]["cores"], 4);
    assert_eq!(json["rows"][0]["copy_bytes"], 64);
    assert_eq!(json["rows"][0]["depth"], Value::Null);
}

#[test]
fn each_row_of_writes_says_what_was_written_to() {
    let row = WriteRow::Flush(DeviceFlushes {
        in_flight: 1,
        write_bytes: 4096,
        flushes_per_s: 9_500.5,
        flushes_per_s_min: 9_000.0,
        flushes_per_s_max: 10_000.0,
    });
    let json = serde_json::to_value(Rows::Write(vec![row])).expect("JSON");
    assert_eq!(json["bench"], "write");
    assert_eq!(json["rows"][0]["series"], "flush");
    assert_eq!(json["rows"][0]["flushes_per_s"], 9_500.5);
}

#[test]
fn results_survive_being_saved_and_loaded() {
    let dir = tempfile::tempdir().expect("a directory");
    let results = dir.path().join("results");
    outcome().save_into(&results).expect("saved");
    fs::write(results.join("notes.txt"), "not a result").expect("written");
    assert_eq!(Outcome::load_all(&results).expect("loaded"), [outcome()]);
}

#[test]
fn a_foreign_file_among_the_results_is_named() {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("other.json"), "{}").expect("written");
    let error = Outcome::load_all(dir.path()).expect_err("not a result");
    assert!(error.to_string().contains("other.json"), "{error}");
}

#[test]
fn the_command_line_can_be_pasted() {
    let arguments = ["/usr/bin/aiodb", "bench", "write", "--dir", "/my disk", "--writers", "1,10", ""];
    let line = command_line(arguments.into_iter().map(str::to_owned));
    assert_eq!(line, "aiodb bench write --dir '/my disk' --writers 1,10 ''");
}
