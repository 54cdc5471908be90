//! A load that is told to stop: whatever it reports as loaded is there, and it can be gone on with.

use crate::{INDEXES, Place, Ran};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::Child;

/// Enough lines that the command must have read most of them when the last one fits into the pipe.
const LINES: u64 = 40_000;

fn lines(numbers: std::ops::Range<u64>) -> String {
    let mut lines = String::new();
    for number in numbers {
        writeln!(lines, "key {number}\tvalue {number} {}", "x".repeat(80)).unwrap();
    }
    lines
}

fn signal(child: &Child, number: i32) {
    // SAFETY: kill() touches no memory; the process is a child not yet waited for, so its number is still its own.
    assert_eq!(unsafe { libc::kill(child.id() as i32, number) }, 0);
}

#[test]
fn a_signal_stops_a_load_and_the_report_is_true() {
    for index in INDEXES {
        for number in [libc::SIGINT, libc::SIGTERM] {
            stop_and_go_on(index, number);
        }
    }
}

fn stop_and_go_on(index: &str, number: i32) {
    let place = Place::new();
    let arguments = ["-", "--format", "tsv", "--index", index, "--json"];
    let mut child = place.spawn("load", &arguments);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(0..LINES).as_bytes()).unwrap();
    signal(&child, number);
    let stopped = Ran::ended(child).exits(130);
    // Only now: the command ended although its input had not.
    drop(stdin);

    let report = stopped.json();
    assert_eq!(report["ended"], "interrupted");
    let loaded = report["records_loaded"].as_u64().unwrap();
    assert_eq!(report["lines_done"], loaded);
    assert!(loaded > 0 && loaded <= LINES, "{loaded}");
    let stat = place.run("stat", &["--json"]).exits(0).json();
    assert_eq!(stat["tables"][0]["keys"], loaded);
    for key in [0, loaded / 2, loaded - 1] {
        let value = place.get(&format!("key {key}"), &[]);
        assert!(value.starts_with(format!("value {key} ").as_bytes()), "key {key} of {loaded}");
    }
    place.run("get", &[&format!("key {loaded}")]).exits(1);

    let skip_lines = loaded.to_string();
    let all = lines(0..LINES + 10);
    let rest = place.run_with_input("load", &[&arguments[..], &["--skip-lines", &skip_lines]].concat(), all.as_bytes());
    assert_eq!(rest.exits(0).json()["records_loaded"], LINES + 10 - loaded);
    let stat = place.run("stat", &["--json"]).exits(0).json();
    assert_eq!(stat["tables"][0]["keys"], LINES + 10);
    place.run("verify", &[]).exits(0);
}

#[test]
fn a_load_that_waits_for_input_can_be_stopped() {
    let place = Place::new();
    let mut child = place.spawn("load", &["-", "--format", "tsv"]);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(0..LINES).as_bytes()).unwrap();
    // A line without an end: the command can only wait for more.
    stdin.write_all(b"half a li").unwrap();
    signal(&child, libc::SIGINT);
    let stopped = Ran::ended(child).exits(130);
    drop(stdin);
    assert!(stopped.text().contains("interrupted after line "), "{}", stopped.text());
    place.run("get", &["half a li"]).exits(1);
}

#[test]
fn a_load_that_is_killed_leaves_a_sound_store() {
    for index in INDEXES {
        let place = Place::new();
        let mut child = place.spawn("load", &["-", "--format", "tsv", "--index", index]);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(lines(0..LINES).as_bytes()).unwrap();
        signal(&child, libc::SIGKILL);
        assert_eq!(Ran::ended(child).code, None);
        drop(stdin);
        place.run("verify", &[]).exits(0);
        // The process read this key long before the pipe had room for the last line, and put it before reading on.
        assert!(place.get("key 0", &[]).starts_with(b"value 0 "));
    }
}
