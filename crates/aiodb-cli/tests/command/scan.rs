//! `scan` and `export`: what is printed, and that `load` reads it back.

use crate::{INDEXES, Place};
use serde_json::Value;
use std::collections::BTreeMap;

/// The kinds of index of ordered tables.
const ORDERED: [&str; 2] = ["lmdb", "lsm"];

fn sample(index: &str) -> Place {
    let place = Place::new();
    let file = place.file("sample.tsv", "apple\tred\nbanana\tyellow\nblueberry\tblue\ncherry\tdark\tred\n");
    place.load(&file, &["--index", index]).exits(0);
    place
}

#[test]
fn ordered_tables_are_printed_in_order_and_by_range() {
    for index in ORDERED {
        let place = sample(index);
        let all = "apple\tred\nbanana\tyellow\nblueberry\tblue\ncherry\tdark\tred\n";
        for (arguments, expected) in [
            (&[][..], all),
            (&["--prefix", "b"], "banana\tyellow\nblueberry\tblue\n"),
            (&["--from", "banana", "--to", "blueberry", "--keys-only"], "banana\nblueberry\n"),
            (&["--from", "bb", "--limit", "1"], "blueberry\tblue\n"),
            (&["--backward", "--limit", "2", "--keys-only"], "cherry\nblueberry\n"),
            (&["--limit", "0"], ""),
            (&["--prefix", "x"], ""),
            (&["--read-only", "--limit", "1"], "apple\tred\n"),
            (&["--prefix", "6170", "--key-encoding", "hex", "--value-encoding", "base64"], "6170706c65\tcmVk\n"),
        ] {
            assert_eq!(place.run("scan", arguments).exits(0).text(), expected, "{arguments:?}");
        }
        let json = place.run("scan", &["--prefix", "a", "--json"]).exits(0).json();
        let record = &json["records"][0];
        assert_eq!(
            (&record["key"], &record["value"], &record["encoding"]),
            (&"apple".into(), &"red".into(), &"text".into())
        );
        assert_eq!(place.run("scan", &["--prefix", "x", "--json"]).exits(0).json()["records"], Value::Array(vec![]));
    }
}

#[test]
fn tables_without_an_order_are_printed_whole() {
    let place = sample("hash");
    let mut lines: Vec<String> = place.run("scan", &[]).exits(0).text().lines().map(str::to_string).collect();
    lines.sort();
    assert_eq!(lines, ["apple\tred", "banana\tyellow", "blueberry\tblue", "cherry\tdark\tred"]);
    assert_eq!(place.run("scan", &["--limit", "3", "--keys-only"]).exits(0).text().lines().count(), 3);
    for arguments in [&["--prefix", "a"][..], &["--from", "a"], &["--to", "z"], &["--backward"]] {
        let refused = place.run("scan", &[arguments, &["--json"]].concat()).exits(3);
        assert_eq!(refused.error_kind(), "unordered", "{arguments:?}");
    }
    assert_eq!(place.run("scan", &["--table", "no", "--json"]).exits(3).error_kind(), "no_such_table");
}

/// Records that files of lines have trouble with.
fn awkward() -> Vec<(Vec<u8>, Vec<u8>)> {
    let parts: [&[u8]; 12] =
        [b"a", b"\t", b"\n", b"\r\n", b"\r", b",", b"\"", b"\xef\xbb\xbf", b"\xff\0", b" ", b"\"\"", b"\\n{}"];
    let mut records = Vec::new();
    for (number, one) in parts.iter().enumerate() {
        for other in &parts {
            records.push(([one, *other].concat(), [*other, one, *other].concat()));
        }
        records.push(([&[number as u8], *one].concat(), Vec::new()));
    }
    records.push((b"long".to_vec(), vec![b'"'; 70_000]));
    // Some keys have come twice.
    records.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect()
}

#[test]
fn what_is_exported_can_be_loaded_again() {
    for index in INDEXES {
        let place = Place::new();
        let written: String = awkward().iter().map(|(key, value)| format!("{}\t{}\n", hex(key), hex(value))).collect();
        let encoded = ["--key-encoding", "hex", "--value-encoding", "hex"];
        let source = place.file("source.tsv", written);
        place.load(&source, &[&encoded[..], &["--index", index]].concat()).exits(0);
        let contents = |place: &Place| {
            let text = place.run("scan", &encoded).exits(0).text();
            let mut lines: Vec<_> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        let expected = contents(&place);
        assert_eq!(expected.len(), awkward().len());
        let base64 = ["--key-encoding", "base64", "--value-encoding", "base64"];
        let json = ["--key", "key", "--value", "value"];
        for (name, encoding, load) in [
            ("plain.csv", &[][..], &[][..]),
            ("coded.csv", &base64, &[]),
            ("coded.tsv", &base64, &[]),
            ("hex.tsv", &encoded, &[]),
            ("coded.jsonl", &base64, &json),
        ] {
            let file = place.dir.path().join(name);
            let path = file.to_str().unwrap();
            let report = place.run("export", &[&[path][..], encoding].concat()).exits(0);
            assert!(report.text().contains("load them with: aiodb load STORE"), "{}", report.text());
            let other = Place::new();
            other.load(&file, &[encoding, load, &["--index", index]].concat()).exits(0);
            assert_eq!(contents(&other), expected, "{name} with index {index}");
            let again = place.run("export", &[&[path][..], &["--json"]].concat()).exits(3);
            assert_eq!(again.error_kind(), "input", "nothing is overwritten");
        }
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused_with_advice() {
    for (key, value, name, advice) in [
        (&b"a\tb"[..], &b"v"[..], "x.tsv", "--key-encoding base64"),
        (b"a\nb", b"v", "x.tsv", "--key-encoding base64"),
        (b"\xef\xbb\xbfa", b"v", "x.tsv", "--key-encoding base64"),
        (b"a", b"v\r", "x.tsv", "--value-encoding base64"),
        (b"a", b"\xff", "x.jsonl", "--value-encoding base64"),
        (b"\xff", b"v", "x.jsonl", "--key-encoding base64"),
    ] {
        let place = Place::new();
        place.run("put", &[&hex(key), &hex(value), "--key-encoding", "hex", "--value-encoding", "hex"]).exits(0);
        let file = place.dir.path().join(name);
        let refused = place.run("export", &[file.to_str().unwrap()]).exits(3);
        assert!(refused.stderr.contains(advice), "{}", refused.stderr);
        assert!(!file.exists(), "an export that fails leaves no file");
        assert_eq!(std::fs::read_dir(place.dir.path()).unwrap().count(), 1, "nor anything else");
    }
}

#[test]
fn an_export_to_stdout_needs_its_format() {
    for index in ORDERED {
        let place = sample(index);
        assert_eq!(place.run("export", &["-", "--json"]).exits(2).error_kind(), "usage");
        let jsonl = place.run("export", &["-", "--format", "jsonl"]).exits(0).text();
        assert_eq!(jsonl.lines().next(), Some("{\"key\":\"apple\",\"value\":\"red\"}"));
        assert_eq!(jsonl.lines().count(), 4);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
