//! `load --sorted` and `copy-table`.

use crate::{INDEXES, Place};
use std::fmt::Write;

#[test]
fn sorted_lines_become_a_table() {
    let place = Place::new();
    let mut lines = String::new();
    for number in 0..20_000 {
        writeln!(lines, "key {number:05}\tvalue {number}").unwrap();
    }
    let file = place.file("sorted.tsv", lines);
    let report = place.load(&file, &["--sorted", "--table", "words", "--inline-bytes", "16", "--json"]).exits(0).json();
    assert_eq!((&report["ended"], &report["records_loaded"]), (&"complete".into(), &20_000.into()));
    assert_eq!(place.get("key 12345", &["--table", "words"]), b"value 12345");
    let tables = place.run("tables", &["--json"]).exits(0).json();
    assert_eq!((&tables[0]["index"], &tables[0]["keys"]), (&"lsm".into(), &20_000.into()));
    place.run("verify", &[]).exits(0);
    let again = place.load(&file, &["--sorted", "--table", "words", "--json"]).exits(3);
    assert_eq!(again.error_kind(), "table_exists");
}

#[test]
fn lines_that_are_not_sorted_leave_nothing() {
    let place = Place::new();
    for (lines, bad, words) in [("a\t1\nc\t2\n\nb\t3\n", 4, "comes before"), ("a\t1\na\t2\n", 2, "which is that of")] {
        let file = place.file("words.tsv", lines);
        let refused = place.load(&file, &["--sorted"]).exits(3);
        let place_of_it = format!("words.tsv:{bad}: ");
        assert!(refused.stderr.contains(&place_of_it) && refused.stderr.contains(words), "{}", refused.stderr);
        assert!(refused.text().contains("nothing was loaded"), "{}", refused.text());
        let told = place.load(&file, &["--sorted", "--json"]).exits(3);
        assert_eq!(told.error_kind(), "not_ascending");
        assert_eq!(place.run("tables", &["--json"]).exits(0).json(), serde_json::json!([]));
    }
    let file = place.file("words.tsv", "a\t1\nbad\nb\t2\n");
    place.load(&file, &["--sorted"]).exits(3);
    assert_eq!(place.run("tables", &["--json"]).exits(0).json(), serde_json::json!([]));
    place.load(&file, &["--sorted", "--bad-lines", "skip"]).exits(4);
    assert_eq!(place.get("b", &[]), b"2");
    place.load(&file, &["--sorted", "--index", "hash", "--table", "t"]).exits(2);
}

#[test]
fn a_table_is_copied_into_one_of_another_kind() {
    for from in INDEXES {
        let place = Place::new();
        let file = place.file("words.tsv", "a\t1\nb\t2\nc\t3\n");
        place.load(&file, &["--index", from]).exits(0);
        for to in INDEXES {
            let copied = place.run("copy-table", &["default", to, "--index", to, "--json"]).exits(0).json();
            assert_eq!((&copied["index"], &copied["records"]), (&to.into(), &3.into()), "{from} into {to}");
            assert_eq!(place.get("b", &["--table", to]), b"2");
        }
        place.run("drop", &["default", "--yes"]).exits(0);
        place.run("copy-table", &["lsm", "default", "--inline-bytes", "8"]).exits(0);
        assert_eq!(place.get("c", &[]), b"3");
        let refused = place.run("copy-table", &["lsm", "hash", "--json"]).exits(3);
        assert_eq!(refused.error_kind(), "table_exists");
        assert_eq!(place.run("copy-table", &["nobody", "x", "--json"]).exits(3).error_kind(), "no_such_table");
        place.run("verify", &[]).exits(0);
    }
}
