//! `sample`.

use crate::{INDEXES, Place};
use std::fmt::Write;

#[test]
fn what_was_loaded_is_as_in_the_file() {
    for index in INDEXES {
        let place = Place::new();
        let mut lines = String::new();
        for number in 0..1000 {
            let _ = writeln!(lines, "key-{number}\tvalue-{number}");
        }
        // Of a key that occurs twice the last value counts, in the store and in the sample.
        lines.push_str("key-7\tlater\n");
        let file = place.file("words.tsv", &lines);
        place.load(&file, &["--index", index]).exits(0);
        let json = place.run("sample", &[file.to_str().unwrap(), "--count", "5000", "--json"]).exits(0).json();
        assert_eq!((&json["keys_read"], &json["keys_wrong"]), (&1000.into(), &0.into()));
        let json = place.run("sample", &[file.to_str().unwrap(), "--count", "10", "--json"]).exits(0).json();
        assert_eq!(json["keys_read"], 10);
    }
}

#[test]
fn missing_keys_and_other_values_are_named() {
    let place = Place::new();
    let file = place.file("words.csv", "red,1\nblue,2\ngreen,3\n");
    place.load(&file, &[]).exits(0);
    place.run("put", &["blue", "another"]).exits(0);
    place.run("del", &["green"]).exits(0);
    let ran = place.run("sample", &[file.to_str().unwrap()]).exits(1);
    let text = ran.text();
    assert!(text.contains("2 are not as in the file"), "{text}");
    assert!(text.contains("  blue: another value\n") && text.contains("  green: missing\n"), "{text}");
}

#[test]
fn a_sample_makes_no_store() {
    let place = Place::new();
    let file = place.file("words.tsv", "a\tb\n");
    let ran = place.run("sample", &[file.to_str().unwrap(), "--json"]).exits(3);
    assert_eq!(ran.error_kind(), "no_store");
    assert!(!place.store().exists());
}
