//! `tables`, `create-table`, `alter-table`, `rename-table`, `swap-tables`, `truncate` and `drop`.

use crate::Place;
use serde_json::json;

#[test]
fn tables_are_made_listed_emptied_and_dropped() {
    let place = Place::new();
    place.run("create-table", &["users"]).exits(0);
    place.run("create-table", &["sessions", "--index", "hash"]).exits(0);
    for table in ["users", "sessions"] {
        place.run("put", &["k", "v", "--table", table]).exits(0);
    }
    let listed = place.run("tables", &[]).exits(0).text();
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(lines[0].starts_with("sessions  hash") && lines[1].starts_with("users     lsm"), "{listed}");

    place.run("truncate", &["users", "--yes"]).exits(0);
    place.run("get", &["k", "--table", "users"]).exits(1);
    assert_eq!(place.get("k", &["--table", "sessions"]), b"v");
    place.run("drop", &["sessions", "--yes"]).exits(0);
    let listed = place.run("tables", &["--json"]).exits(0).json();
    let users = json!({
        "name": "users",
        "index": "lsm",
        "inline_bytes": 0,
        "block_compression": "none",
        "keys_mode": "auto",
        "values_mode": "auto",
        "keys": 0,
        "keys_exact": false,
    });
    assert_eq!(listed, json!([users]));
}

#[test]
fn a_copy_takes_the_place_of_a_table() {
    let place = Place::new();
    place.run("create-table", &["users", "--index", "hash"]).exits(0);
    place.run("put", &["k", "v", "--table", "users"]).exits(0);
    place.run("copy-table", &["users", "copy"]).exits(0);
    place.run("put", &["k", "later", "--table", "users"]).exits(0);
    let swapped = place.run("swap-tables", &["users", "copy"]).exits(0).text();
    assert_eq!(swapped, "table `users` has index lsm now, and `copy` has index hash\n");
    assert_eq!(place.get("k", &["--table", "users"]), b"v");
    assert_eq!(place.get("k", &["--table", "copy"]), b"later");
    let swapped = place.run("swap-tables", &["users", "copy", "--json"]).exits(0).json();
    assert_eq!(swapped, json!([{"name": "users", "index": "hash"}, {"name": "copy", "index": "lsm"}]));
    let refused = place.run("swap-tables", &["users", "nobody", "--json"]).exits(3);
    assert_eq!(refused.error_kind(), "no_such_table");

    let refused = place.run("rename-table", &["users", "copy", "--json"]).exits(3);
    assert_eq!(refused.error_kind(), "table_exists");
    assert_eq!(place.run("rename-table", &["users", "people"]).exits(0).text(), "table `users` is `people` now\n");
    assert_eq!(place.get("k", &["--table", "people"]), b"later");
    place.run("get", &["k", "--table", "users"]).exits(3);
}

#[test]
fn what_memory_keeps_of_a_table_is_chosen_and_changed() {
    let place = Place::new();
    place.run("create-table", &["users", "--values", "memory"]).exits(0);
    let modes = || {
        let table = place.run("stat", &["--json"]).exits(0).json()["tables"][0].clone();
        (table["keys_mode"].as_str().unwrap().to_string(), table["values_mode"].as_str().unwrap().to_string())
    };
    assert_eq!(modes(), ("auto".into(), "memory".into()));
    let refused = place.run("alter-table", &["users", "--keys", "disk", "--json"]).exits(3);
    assert_eq!(refused.error_kind(), "option");
    assert!(refused.stderr.contains("beside `values` = memory"), "{}", refused.stderr);
    assert_eq!(modes(), ("auto".into(), "memory".into()));
    let changed = place.run("alter-table", &["users", "--keys", "disk", "--values", "disk"]).exits(0).text();
    assert_eq!(changed, "table `users`: keys disk, values disk\n");
    place.run("truncate", &["users", "--yes"]).exits(0);
    assert_eq!(modes(), ("disk".into(), "disk".into()));
    let text = place.run("stat", &[]).exits(0).text();
    assert!(text.contains("disk ~100 %"), "an empty table has all keys in memory: {text}");
    place.run("alter-table", &["users"]).exits(2);
    place.run("alter-table", &["nobody", "--keys", "memory"]).exits(3);
}

#[test]
fn the_index_of_an_lsm_table_has_short_values_if_that_is_wanted() {
    let place = Place::new();
    place.run("create-table", &["users", "--index", "lsm", "--inline-bytes", "64"]).exits(0);
    place.run("put", &["k", "v", "--index", "lsm", "--inline-bytes", "32"]).exits(0);
    place.run("put", &["k", "v", "--table", "users"]).exits(0);
    assert_eq!(place.get("k", &["--table", "users"]), b"v");
    let listed = place.run("tables", &["--json"]).exits(0).json();
    assert_eq!((&listed[0]["inline_bytes"], &listed[1]["inline_bytes"]), (&json!(32), &json!(64)));
    for refused in [["--index", "lmdb", "--inline-bytes", "64"], ["--index", "lsm", "--inline-bytes", "1025"]] {
        let refused = place.run("create-table", &[&["t", "--json"][..], &refused].concat()).exits(3);
        assert_eq!(refused.error_kind(), "option");
    }
}

#[test]
fn the_index_of_an_lsm_table_is_compressed_if_that_is_wanted() {
    let place = Place::new();
    place.run("create-table", &["users", "--block-compression", "zstd:5", "--inline-bytes", "64"]).exits(0);
    let line = |number| format!("a key of a user {number:06}\tthe same value {number:06}\n");
    let input = place.file("users.tsv", (0..20_000).map(line).collect::<String>());
    place.load(&input, &["--table", "users"]).exits(0);
    assert_eq!(place.get("a key of a user 012345", &["--table", "users"]), b"the same value 012345");
    let stat = place.run("stat", &["--json"]).exits(0).json();
    let bytes = |name: &str| stat["tables"][0][name].as_u64().unwrap();
    assert_eq!((&stat["format_version"], &stat["tables"][0]["block_compression"]), (&json!(5), &json!("zstd:5")));
    assert!(bytes("index_disk_bytes") * 2 < bytes("index_plain_bytes"), "{stat}");
    place.run("copy-table", &["users", "kept"]).exits(0);
    place.run("copy-table", &["users", "plain", "--block-compression", "none"]).exits(0);
    place.run("copy-table", &["users", "lmdb", "--index", "lmdb"]).exits(0);
    let listed = place.run("tables", &["--json"]).exits(0).json();
    let of = |name: &str| {
        let listed = listed.as_array().unwrap().iter();
        listed.filter(|table| table["name"] == name).map(|table| table["block_compression"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        (of("kept"), of("plain"), of("lmdb")),
        (vec![json!("zstd:5")], vec![json!("none")], vec![json!("none")])
    );
    let refused = place.run("create-table", &["t", "--json", "--index", "hash", "--block-compression", "lz4"]).exits(3);
    assert_eq!(refused.error_kind(), "option");
    place.run("create-table", &["t", "--block-compression", "zip"]).exits(2);
}

#[test]
fn what_destroys_data_must_be_confirmed() {
    let place = Place::new();
    place.run("put", &["k", "v"]).exits(0);
    for command in ["truncate", "drop"] {
        let refused = place.run(command, &["default"]).exits(2);
        assert!(refused.stderr.contains("all of table `default` for good (keys: ~1)"), "{}", refused.stderr);
        assert!(refused.stderr.contains("--yes"), "{}", refused.stderr);
        assert_eq!(place.get("k", &[]), b"v");
    }
}

#[test]
fn a_table_that_is_there_or_missing_is_named() {
    let place = Place::new();
    place.run("create-table", &["users"]).exits(0);
    assert_eq!(place.run("create-table", &["users", "--json"]).exits(3).error_kind(), "table_exists");
    for command in ["truncate", "drop"] {
        assert_eq!(place.run(command, &["nobody", "--yes", "--json"]).exits(3).error_kind(), "no_such_table");
    }
    let missing = place.run("get", &["k", "--table", "nobody", "--json"]).exits(3);
    assert_eq!(missing.error_kind(), "no_such_table");
    assert_eq!(place.run("create-table", &["", "--json"]).exits(3).error_kind(), "table_name");
}

#[test]
fn an_existing_table_keeps_its_index() {
    let place = Place::new();
    place.run("create-table", &["default", "--index", "hash"]).exits(0);
    place.run("put", &["k", "v"]).exits(0);
    let refused = place.run("put", &["k", "other", "--index", "lmdb", "--json"]).exits(3);
    assert_eq!(refused.error_kind(), "table_exists");
    assert_eq!(place.get("k", &[]), b"v");
}
