//! `load`: formats, bad lines and going on. Parsing itself is tested beside the parsers.

use crate::{INDEXES, Place};
use std::fmt::Write;

#[test]
fn every_format_is_loaded_and_told_from_the_extension() {
    for index in INDEXES {
        let place = Place::new();
        let tsv = place.file("a.tsv", "a\t1\tand more\nb\t2\n");
        place.load(&tsv, &["--index", index]).exits(0);
        let csv = place.file("a.csv", "name,id\r\n\"x, \"\"y\"\"\",c\r\n");
        place.load(&csv, &["--header", "--key", "id", "--value", "name"]).exits(0);
        let jsonl = place.file("a.jsonl", "{\"id\":\"d\",\"v\":{\"w\":4}}\n");
        place.load(&jsonl, &["--key", "id"]).exits(0);
        place.load(&jsonl, &["--key", "v.w", "--value", "id"]).exits(0);
        for (key, value) in
            [("a", "1\tand more"), ("b", "2"), ("c", "x, \"y\""), ("d", "{\"id\":\"d\",\"v\":{\"w\":4}}"), ("4", "d")]
        {
            assert_eq!(place.get(key, &[]), value.as_bytes(), "{key} with index {index}");
        }
    }
}

#[test]
fn a_load_from_stdin_needs_its_format() {
    let place = Place::new();
    for arguments in [&["-"][..], &[]] {
        let refused = place.run_with_input("load", &[arguments, &["--json"]].concat(), b"a\t1\n").exits(2);
        assert_eq!(refused.error_kind(), "usage");
    }
    assert!(!place.store().exists(), "a mistake on the command line makes no store");
    place.run_with_input("load", &["--format", "tsv"], b"a\t1\n").exits(0);
    assert_eq!(place.get("a", &[]), b"1");
}

#[test]
fn the_report_counts_what_is_in_the_store() {
    for index in INDEXES {
        let place = Place::new();
        let mut lines = String::new();
        for number in 0..20_000 {
            writeln!(lines, "key {number}\tvalue {number}").unwrap();
        }
        let file = place.file("many.tsv", lines);
        let report = place.load(&file, &["--json", "--index", index]).exits(0).json();
        assert_eq!(report["ended"], "complete");
        assert_eq!(report["records_loaded"], 20_000);
        assert_eq!(report["lines_done"], 20_000);
        assert_eq!(report["bad_lines"], 0);
        for number in [0, 1, 9_999, 19_999] {
            assert_eq!(place.get(&format!("key {number}"), &[]), format!("value {number}").as_bytes());
        }
        let stat = place.run("stat", &["--json"]).exits(0).json();
        assert_eq!(stat["tables"][0]["keys"], 20_000);
        place.run("verify", &[]).exits(0);
    }
}

#[test]
fn a_load_in_every_durability_class_is_there_afterwards() {
    let place = Place::new();
    for durability in ["sync", "none", "interval:50"] {
        let file = place.file("one.tsv", format!("{durability}\tkept\n"));
        place.load(&file, &["--durability", durability]).exits(0);
        assert_eq!(place.get(durability, &[]), b"kept");
    }
}

#[test]
fn a_bad_line_stops_the_load_where_it_is() {
    let place = Place::new();
    let file = place.file("bad.tsv", "a\t1\nb\t2\nbad\nc\t3\n");
    let stopped = place.load(&file, &[]).exits(3);
    assert!(stopped.stderr.contains("bad.tsv:3: 1 column, but the value is in column 2"), "{}", stopped.stderr);
    assert!(stopped.text().contains("--skip-lines 2"), "{}", stopped.text());
    assert_eq!(place.get("b", &[]), b"2");
    place.run("get", &["c"]).exits(1);

    let stopped = place.load(&file, &["--json"]).exits(3);
    assert_eq!(stopped.error_kind(), "bad_line");
    let report = stopped.json();
    assert_eq!((&report["ended"], &report["records_loaded"]), (&"failed".into(), &2.into()));

    place.load(&file, &["--skip-lines", "3"]).exits(0);
    assert_eq!(place.get("c", &[]), b"3");
}

#[test]
fn bad_lines_are_skipped_shown_and_counted() {
    let place = Place::new();
    let long_key = "k".repeat(70_000);
    let file = place.file("bad.tsv", format!("a\t1\nbad\n\tno key\n{long_key}\tv\nworse\nb\t2\n"));
    let skipped = place.load(&file, &["--bad-lines", "skip", "--show-bad-lines", "3"]).exits(4);
    for shown in ["bad.tsv:2: 1 column", "bad.tsv:3: a key of 0 bytes", "bad.tsv:4: a key of 70000 bytes"] {
        assert!(skipped.stderr.contains(shown), "{shown:?} is missing in {}", skipped.stderr);
    }
    assert!(!skipped.stderr.contains("bad.tsv:5"), "{}", skipped.stderr);
    assert!(skipped.text().contains("skipped 4 bad lines, 1 of them not shown"), "{}", skipped.text());
    assert_eq!(place.get("b", &[]), b"2");

    let skipped = place.load(&file, &["--bad-lines", "skip", "--json"]).exits(4);
    assert!(skipped.stderr.is_empty(), "{}", skipped.stderr);
    let report = skipped.json();
    assert_eq!((&report["records_loaded"], &report["bad_lines"]), (&2.into(), &4.into()));
    assert_eq!(report["bad_lines_shown"][3]["line"], 5);
}

#[test]
fn a_line_longer_than_allowed_is_a_bad_line() {
    let place = Place::new();
    let file = place.file("long.tsv", format!("a\t{}\nb\t2\n", "x".repeat(2000)));
    let arguments = ["--bad-lines", "skip", "--max-line-bytes"];
    let skipped = place.load(&file, &[&arguments[..], &["1000"]].concat()).exits(4);
    assert!(skipped.stderr.contains("long.tsv:1: longer than 1000 bytes"), "{}", skipped.stderr);
    place.load(&file, &[&arguments[..], &["2002"]].concat()).exits(0);
    assert_eq!(place.get("a", &[]).len(), 2000);
}

#[test]
fn arguments_that_do_not_fit_the_format_are_usage_errors() {
    let place = Place::new();
    let tsv = place.file("a.tsv", "a\t1\n");
    let jsonl = place.file("a.jsonl", "{\"id\":1}\n");
    for (file, arguments) in [
        (&tsv, &["--key", "name"][..]),
        (&tsv, &["--value", "0"]),
        (&tsv, &["--durability", "interval:0"]),
        (&tsv, &["--bad-lines", "maybe"]),
        (&jsonl, &[]),
        (&jsonl, &["--key", "id", "--header"]),
        (&jsonl, &["--key", "id", "--value-encoding", "hex"]),
    ] {
        let refused = place.load(file, &[arguments, &["--json"]].concat()).exits(2);
        assert_eq!(refused.error_kind(), "usage", "{arguments:?}");
    }
    assert!(!place.store().exists());
}

#[test]
fn an_input_that_cannot_be_read_makes_no_store() {
    let place = Place::new();
    let refused = place.load(&place.dir.path().join("missing.tsv"), &[]).exits(3);
    assert!(refused.stderr.contains("missing.tsv: cannot be read"), "{}", refused.stderr);
    let directory = place.dir.path().join("folder");
    std::fs::create_dir(&directory).unwrap();
    let refused = place.load(&directory, &["--format", "tsv", "--json"]).exits(3);
    assert_eq!(refused.error_kind(), "input");
    let headless = place.file("a.csv", "a,b\n1,2\n");
    let refused = place.load(&headless, &["--header", "--key", "c"]).exits(3);
    assert!(refused.stderr.contains("no column `c`; it has a, b"), "{}", refused.stderr);
    assert!(!place.store().exists());
}
