//! `get`, `put` and `del`.

use crate::{INDEXES, Place};
use serde_json::json;

#[test]
fn a_put_value_is_there_until_it_is_replaced_or_deleted() {
    for index in INDEXES {
        let place = Place::new();
        place.run("put", &["apple", "red", "--index", index]).exits(0);
        assert_eq!(place.get("apple", &[]), b"red");
        place.run("put", &["apple", "green"]).exits(0);
        assert_eq!(place.get("apple", &[]), b"green");
        place.run("del", &["apple"]).exits(0);
        place.run("get", &["apple"]).exits(1);
        place.run("del", &["apple"]).exits(0);
    }
}

#[test]
fn every_durability_keeps_a_value_after_the_process() {
    let place = Place::new();
    for durability in ["sync", "none", "interval:1000"] {
        place.run("put", &[durability, "kept", "--durability", durability]).exits(0);
        assert_eq!(place.get(durability, &[]), b"kept");
    }
}

#[test]
fn values_are_bytes_of_any_length() {
    for index in INDEXES {
        let place = Place::new();
        for length in [0, 1, 4095, 4096, 100_000, 20 << 20] {
            let value: Vec<u8> = (0..length).map(|position: usize| ((position * 7) >> 3) as u8).collect();
            place.run_with_input("put", &["k", "-", "--index", index], &value).exits(0);
            assert!(place.get("k", &[]) == value, "{length} bytes with index {index}");
        }
        place.run_with_input("put", &["k"], b"no dash\n").exits(0);
        assert_eq!(place.get("k", &[]), b"no dash\n");
    }
}

#[test]
fn an_absent_key_is_exit_code_1_with_nothing_on_stdout() {
    let place = Place::new();
    place.run("put", &["apple", "red"]).exits(0);
    let absent = place.run("get", &["pear"]).exits(1);
    assert!(absent.stdout.is_empty());
    assert!(absent.stderr.contains("not in table `default`"), "{}", absent.stderr);
    assert_eq!(place.run("get", &["pear", "--json"]).exits(1).error_kind(), "key_absent");
}

#[test]
fn json_says_how_the_value_is_written() {
    let place = Place::new();
    place.run("put", &["text", "größe"]).exits(0);
    place.run("put", &["ff", "ff00", "--key-encoding", "hex", "--value-encoding", "hex"]).exits(0);
    let got = place.run("get", &["text", "--json"]).exits(0).json();
    assert_eq!(got, json!({"key": "text", "value": "größe", "encoding": "text"}));
    let got = place.run("get", &["ff", "--key-encoding", "hex", "--json"]).exits(0).json();
    assert_eq!(got, json!({"key": "ff", "value": "/wA=", "encoding": "base64"}));
    let got = place.run("get", &["/w==", "--key-encoding", "base64", "--value-encoding", "hex"]).exits(0);
    assert_eq!(got.text(), "ff00\n");
}

#[test]
fn an_encoded_value_may_end_with_a_newline_on_stdin() {
    let place = Place::new();
    place.run_with_input("put", &["k", "-", "--value-encoding", "base64"], b"/wA=\n").exits(0);
    assert_eq!(place.get("k", &[]), [0xff, 0]);
}

#[test]
fn tables_do_not_see_each_other_s_keys() {
    let place = Place::new();
    place.run("put", &["k", "1"]).exits(0);
    place.run("put", &["k", "2", "--table", "other", "--index", "hash"]).exits(0);
    assert_eq!(place.get("k", &[]), b"1");
    assert_eq!(place.get("k", &["--table", "other"]), b"2");
    place.run("del", &["k", "--table", "other"]).exits(0);
    assert_eq!(place.get("k", &[]), b"1");
}

#[test]
fn keys_that_cannot_be_are_refused() {
    let place = Place::new();
    place.run("put", &["k", "v"]).exits(0);
    assert_eq!(place.run("put", &["", "v", "--json"]).exits(3).error_kind(), "key_length");
    let long = "k".repeat(65_537);
    assert_eq!(place.run("put", &[&long, "v", "--json"]).exits(3).error_kind(), "key_length");
    place.run("put", &[&long[..65_536], "v"]).exits(0);
    assert_eq!(place.get(&long[..65_536], &[]), b"v");
    let refused = place.run("get", &["0", "--key-encoding", "hex", "--json"]).exits(2);
    assert_eq!(refused.error_kind(), "usage");
}
