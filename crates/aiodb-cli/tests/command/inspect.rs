//! `stat`, `verify` and `salvage`.

use crate::{INDEXES, Place, Ran};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

#[test]
fn stat_describes_the_store() {
    let place = Place::new();
    place.run("put", &["k", "v", "--index", "hash"]).exits(0);
    let text = place.run("stat", &[]).exits(0).text();
    for part in ["store\n", "device\n", "segment size", "recovery at opening", "default      hash"] {
        assert!(text.contains(part), "{part:?} is missing in\n{text}");
    }
    let json = place.run("stat", &["--json", "--backend", "threads"]).exits(0).json();
    assert_eq!(json["backend"], "threads");
    assert_eq!(json["tables"][0]["name"], "default");
    assert_eq!(json["tables"][0]["index"], "hash");
    assert_eq!(json["tables"][0]["keys"], 1);
    assert!(json["segment_bytes"].as_u64().unwrap() > 0);
    for count in ["runs", "merge_debt_bytes"] {
        assert_eq!((&json[count], &json["tables"][0][count]), (&0.into(), &0.into()), "{count}");
    }
}

/// A load that waits for more input has the store open; its metrics are there after a second.
#[test]
fn a_store_that_another_process_has_open_can_be_watched() {
    let place = Place::new();
    let refused = place.run("stat", &["--watch", "--json"]).exits(3);
    assert_eq!(refused.error_kind(), "input");
    let mut load = place.spawn("load", &["-", "--format", "tsv"]);
    let mut input = load.stdin.take().unwrap();
    writeln!(input, "k\tv").unwrap();
    input.flush().unwrap();
    while !place.store().join("metrics.prom").exists() {
        assert!(load.try_wait().unwrap().is_none(), "the load goes on until its input ends");
        std::thread::sleep(Duration::from_millis(20));
    }
    let text = place.run("stat", &["--watch", "--times", "2"]).exits(0).text();
    assert_eq!(text.matches("records_written").count(), 2, "{text}");
    let json = place.run("stat", &["--watch", "--times", "1", "--json"]).exits(0).json();
    assert!(json["log_file_bytes"]["value"].as_f64().unwrap() > 0.0, "{json}");
    for metric in ["merge_debt_bytes", "runs_above_bound", "table_runs{table=\"default\"}"] {
        assert!(json[metric]["value"].is_number(), "{metric} is not in {json}");
    }
    drop(input);
    Ran::ended(load).exits(0);
    place.run("stat", &["--watch", "--times", "1"]).exits(3);
    assert_eq!(place.get("k", &[]), b"v");
}

#[test]
fn a_sound_store_is_verified_and_its_indexes_can_be_rebuilt() {
    for index in INDEXES {
        let place = Place::new();
        for key in ["a", "b"] {
            place.run("put", &[key, "v", "--index", index]).exits(0);
        }
        let text = place.run("verify", &[]).exits(0).text();
        assert!(text.ends_with("no damage found\n"), "{text}");
        let json = place.run("verify", &["--rebuild", "--json"]).exits(0).json();
        assert_eq!((&json["sound"], &json["rebuilt_indexes"]), (&true.into(), &true.into()));
        assert!(json["records"].as_u64().unwrap() >= 2, "{json}");
        assert_eq!(json["damage"], serde_json::json!([]));
        assert_eq!(place.get("b", &[]), b"v");
    }
}

#[test]
fn damage_is_found_located_and_never_read_as_a_value() {
    for index in INDEXES {
        let place = Place::new();
        let value = "only these bytes are damaged ".repeat(300);
        place.run("put", &["damaged", &value, "--index", index]).exits(0);
        place.run("put", &["sound", "v"]).exits(0);
        assert!(damage(&place.store(), value.as_bytes()) > 0, "the value is stored as it is");

        let found = place.run("verify", &["--json"]).exits(1);
        assert!(found.stderr.is_empty(), "{}", found.stderr);
        let report = found.json();
        assert_eq!(report["sound"], false);
        let place_of_damage = &report["damage"][0];
        let file = place_of_damage["file"].as_str().unwrap();
        assert!(Path::new(file).starts_with(place.store()), "{file}");
        assert!(place_of_damage["offset_bytes"].is_u64() && place_of_damage["what"].is_string(), "{report}");
        let text = place.run("verify", &[]).exits(1).text();
        assert!(text.contains("damage found in ") && text.contains(file), "{text}");

        assert_eq!(place.run("get", &["damaged", "--json"]).exits(3).error_kind(), "corruption");
        assert_eq!(place.get("sound", &[]), b"v");
    }
}

#[test]
fn what_is_sound_is_salvaged() {
    for index in INDEXES {
        let place = Place::new();
        let value = "only these bytes are damaged ".repeat(300);
        place.run("put", &["damaged", "older", "--index", index]).exits(0);
        place.run("put", &["damaged", &value]).exits(0);
        place.run("put", &["sound", "v"]).exits(0);
        let out = place.dir.path().join("out");
        let sound = place.run("salvage", &[out.to_str().unwrap()]).exits(0).text();
        assert!(sound.ends_with("nothing is lost\n"), "{sound}");
        assert_eq!(place.run("salvage", &[out.to_str().unwrap(), "--json"]).exits(3).error_kind(), "occupied");

        assert!(damage(&place.store(), value.as_bytes()) > 0, "the value is stored as it is");
        let out = place.dir.path().join("salvaged");
        let report = place.run("salvage", &[out.to_str().unwrap(), "--json"]).exits(1).json();
        assert_eq!(report["keys_by_table"], serde_json::json!({"default": 2}));
        assert_eq!((&report["doubtful"][0]["key"], &report["doubtful_keys"]), (&"damaged".into(), &1.into()));
        assert!(Path::new(report["lost"][0]["file"].as_str().unwrap()).starts_with(place.store()), "{report}");
        fs::remove_dir_all(place.store()).unwrap();
        fs::rename(&out, place.store()).unwrap();
        assert_eq!(place.get("damaged", &[]), b"older");
        assert_eq!(place.get("sound", &[]), b"v");
    }
}

#[test]
fn keys_that_may_have_come_back_are_listed() {
    for index in INDEXES {
        let place = Place::new();
        place.run("put", &["before", "v", "--index", index]).exits(0);
        place.run("put", &["only-this-key-is-damaged", "v"]).exits(0);
        place.run("put", &["behind", "v"]).exits(0);
        assert!(damage(&place.store(), b"only-this-key-is-damaged") > 0, "the key is stored as it is");
        let out = place.dir.path().join("salvaged");
        let report = place.run("salvage", &[out.to_str().unwrap(), "--json"]).exits(1).json();
        let older = serde_json::json!([{
            "table": "default",
            "first_key": "before",
            "first_key_encoding": "text",
            "last_key": "before",
            "last_key_encoding": "text",
            "keys": 1,
        }]);
        assert_eq!((&report["keys_older_than_damage"], &report["older_than_damage"]), (&1.into(), &older), "{report}");
        let text = place.run("salvage", &[place.dir.path().join("again").to_str().unwrap()]).exits(1).text();
        assert!(text.contains("1 keys are older than what is lost"), "{text}");
        assert!(text.ends_with("  \"before\" of table `default`\n"), "{text}");
    }
}

/// Flips a bit in the middle of `bytes` wherever a file of the store has them; says how often.
fn damage(dir: &Path, bytes: &[u8]) -> usize {
    let mut damaged = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            damaged += damage(&path, bytes);
            continue;
        }
        let mut content = fs::read(&path).unwrap();
        let before = damaged;
        let mut start = 0;
        while let Some(found) = content[start..].windows(bytes.len()).position(|window| window == bytes) {
            content[start + found + bytes.len() / 2] ^= 1;
            damaged += 1;
            start += found + bytes.len();
        }
        if damaged > before {
            fs::write(&path, content).unwrap();
        }
    }
    damaged
}
