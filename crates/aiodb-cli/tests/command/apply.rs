//! Changes from stdin, each acknowledged when it is safe.

use crate::{INDEXES, Place};
use serde_json::{Value, json};

/// The answers, by id.
fn answers(text: &str) -> Vec<Value> {
    let mut answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    answers
}

#[test]
fn every_change_is_answered_and_there() {
    for index in INDEXES {
        let place = Place::new();
        place.run("create-table", &["t", "--index", index]).exits(0);
        let mut input = String::new();
        for id in 0..200 {
            let durability = ["sync", "none", "interval:50"][id % 3];
            let changes = json!([
                {"table": "t", "key": format!("key {id}"), "value": format!("value {id}")},
                {"table": "t", "key": format!("key {}", id.saturating_sub(8))},
            ]);
            let request = json!({"id": id, "writer": id % 8, "durability": durability, "changes": changes});
            input.push_str(&format!("{request}\n"));
        }
        let applied = place.run_with_input("apply", &["--writers", "3"], input.as_bytes()).exits(0);
        let expected: Vec<Value> = (0..200).map(|id| json!({ "id": id })).collect();
        assert_eq!(answers(&applied.text()), expected);
        // A request of the same writer deleted the keys before the last eight, in its turn.
        place.run("get", &["key 191", "--table", "t"]).exits(1);
        for id in 192..200 {
            assert_eq!(place.get(&format!("key {id}"), &["--table", "t"]), format!("value {id}").into_bytes());
        }
    }
}

#[test]
fn a_refused_change_is_answered_with_the_reason() {
    let place = Place::new();
    place.run("create-table", &["t"]).exits(0);
    let requests = [
        json!({"id": 1, "changes": [{"table": "t", "key": "kept", "value": "1"}]}),
        json!({"id": 2, "changes": [{"table": "t", "key": "half", "value": "1"}, {"table": "none", "key": "k"}]}),
        json!({"id": 3, "changes": [{"table": "t", "key": "", "value": "1"}]}),
        json!({"id": 4, "durability": "perhaps", "changes": []}),
    ];
    let input: String = requests.iter().map(|request| format!("{request}\n")).collect();
    let applied = place.run_with_input("apply", &[], input.as_bytes()).exits(3);
    let kinds: Vec<Value> = answers(&applied.text()).iter().map(|answer| answer["error"]["kind"].clone()).collect();
    assert_eq!(kinds, [Value::Null, json!("no_such_table"), json!("key_length"), json!("usage")]);
    assert_eq!(place.get("kept", &["--table", "t"]), b"1");
    place.run("get", &["half", "--table", "t"]).exits(1);
}

#[test]
fn a_line_that_is_no_request_ends_the_command() {
    let place = Place::new();
    place.run("create-table", &["t"]).exits(0);
    let input = b"{\"id\":1,\"changes\":[{\"table\":\"t\",\"key\":\"k\",\"value\":\"v\"}]}\nnonsense\n";
    let applied = place.run_with_input("apply", &["--json"], input).exits(3);
    assert_eq!(applied.error_kind(), "input");
    assert!(applied.stderr.contains("line 2"), "{}", applied.stderr);
    assert_eq!(place.get("k", &["--table", "t"]), b"v", "what came before it is done");
    place.run_with_input("apply", &[], b"").exits(0);
}

#[test]
fn a_store_is_not_made_by_accident() {
    let place = Place::new();
    place.run_with_input("apply", &[], b"").exits(3);
    place.run_with_input("apply", &["--segment-bytes", "65536"], b"").exits(0);
    assert_eq!(place.run("stat", &["--json"]).exits(0).json()["tables"], json!([]));
}
