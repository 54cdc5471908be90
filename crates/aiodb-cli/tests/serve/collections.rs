//! Collections: large ones, what is left of those that are gone, and servers that are killed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use resp_rs::resp2::Frame;

use crate::client::{Client, PATIENCE, encode, text};
use crate::server::{Both, Server, aiodb, output_of};

/// Elements of a large collection: more than are given at once.
const LARGE: usize = 3000;

/// Sends commands and waits for all replies.
fn pipeline(client: &mut Client, commands: &[Vec<String>]) -> Vec<Frame> {
    let bytes: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
    client.send(&bytes).unwrap();
    commands.iter().map(|_| client.receive().unwrap()).collect()
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

/// All that a scan gives, from its first call to its last.
fn scan_all(client: &mut Client, command: &str, key: &str) -> Vec<String> {
    let (mut cursor, mut seen) = ("0".to_string(), Vec::new());
    loop {
        let Frame::Array(Some(reply)) = client.call(&[command, key, &cursor, "count", "100"]) else { panic!() };
        let Frame::Array(Some(found)) = &reply[1] else { panic!("{reply:?}") };
        seen.extend(found.iter().map(text));
        cursor = text(&reply[0]);
        if cursor == "0" {
            return seen;
        }
    }
}

fn strings(frame: &Frame) -> Vec<String> {
    let Frame::Array(Some(frames)) = frame else { panic!("{frame:?}") };
    frames.iter().map(text).collect()
}

/// Rows of the table of elements of database 0, of a store that no server has open.
fn rows(store: &Path) -> usize {
    let mut command = aiodb();
    command.arg("scan").arg(store).args(["--table", "db0.elements", "--keys-only", "--key-encoding", "hex"]);
    let output = output_of(command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn a_large_hash_is_gone_through_and_drawn_from() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    let commands: Vec<_> =
        (0..LARGE).map(|number| words(&["hset", "h", &format!("field:{number}"), &number.to_string()])).collect();
    assert!(pipeline(&mut client, &commands).iter().all(|reply| *reply == Frame::Integer(1)));
    assert_eq!(client.text(&["hlen", "h"]), LARGE.to_string());
    let seen = scan_all(&mut client, "hscan", "h");
    assert_eq!(seen.len(), 2 * LARGE);
    assert!(seen.chunks(2).all(|pair| pair[0] == format!("field:{}", pair[1])));
    assert_eq!(seen.iter().step_by(2).collect::<BTreeSet<_>>().len(), LARGE);
    for (wanted, expected) in [("7", 7), ("1400", 1400), ("2900", 2900), ("5000", LARGE)] {
        let drawn: Vec<_> = strings(&client.call(&["hrandfield", "h", wanted]));
        assert_eq!((drawn.len(), drawn.iter().collect::<BTreeSet<_>>().len()), (expected, expected));
    }
    let drawn = strings(&client.call(&["hrandfield", "h", "-50", "withvalues"]));
    assert_eq!(drawn.len(), 100);
    assert!(drawn.chunks(2).all(|pair| pair[0] == format!("field:{}", pair[1])));
    // In a transaction that has changed it, too.
    for command in [&["multi"][..], &["hdel", "h", "field:0"], &["hset", "h", "zebra", "x"], &["hkeys", "h"]] {
        client.call(command);
    }
    let Frame::Array(Some(replies)) = client.call(&["exec"]) else { panic!() };
    let keys = strings(&replies[2]);
    assert!(keys.len() == LARGE && keys.last().is_some_and(|last| last == "zebra"));
}

#[test]
fn nothing_is_left_of_collections_that_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let server = Server::start(&store, &[]);
    let mut client = server.client();
    let fill: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"]
        .iter()
        .flat_map(|key| (0..20).map(move |number| words(&["hset", key, &number.to_string(), "x"])))
        .collect();
    pipeline(&mut client, &fill);
    client.call(&["hset", "kept", "f", "x"]);
    client.call(&["del", "a"]);
    client.call(&["set", "b", "string"]);
    client.call(&["rename", "kept", "c"]);
    client.call(&["pexpire", "c", "10000000"]);
    client.call(&["rename", "c", "kept"]);
    client.call(&["pexpire", "d", "1"]);
    client.call(&["copy", "e", "f", "replace"]);
    client.call(&["expire", "f", "-1"]);
    for command in [&["multi"][..], &["hset", "e", "f", "x"], &["del", "e"], &["hset", "e", "f", "x"], &["exec"]] {
        client.call(command);
    }
    client.call(&["pexpire", "g", "300"]);
    // Nobody comes by `d`; it does not count any more, and goes.
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(client.text(&["exists", "d"]), "0");
    assert!(!client.text(&["keys", "*"]).contains('d'));
    let (said, went_well) = server.stop();
    assert!(went_well, "{said}");
    // `g` expires while there is no server.
    std::thread::sleep(Duration::from_millis(300));
    let begun = Instant::now();
    loop {
        let server = Server::start(&store, &[]);
        std::thread::sleep(Duration::from_millis(300));
        let mut client = server.client();
        assert_eq!(client.text(&["dbsize"]), "3");
        assert_eq!(client.text(&["hget", "kept", "f"]), "x");
        assert!(server.stop().1);
        // Numbers, the time of `kept`, its field, and that of `e`.
        let left = rows(&store);
        if left == 4 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{left} rows are left");
    }
    let server = Server::start(&store, &[]);
    server.client().call(&["flushall"]);
    assert!(server.stop().1);
    assert_eq!(rows(&store), 1);
}

/// The same commands to two servers, whose replies must be the same.
fn compare(clients: &mut [Client; 2], command: &[&str]) {
    let replies = clients.each_mut().map(|client| text(&client.call(command)));
    assert!(replies[0] == replies[1], "{:.300?}: {:.300} {:.300}", command, replies[0], replies[1]);
}

#[test]
fn a_large_sorted_set_is_gone_through_from_either_end() {
    let both = Both::start();
    let (store, mut clients) = (both.store(), both.clients());
    let pairs = (0..LARGE).map(|number| [(number * 7919 % LARGE / 2).to_string(), format!("member:{number}")]);
    let add: Vec<String> = words(&["zadd", "z"]).into_iter().chain(pairs.flatten()).collect();
    compare(&mut clients, &add.iter().map(String::as_str).collect::<Vec<_>>());
    let commands = [
        &["zrange", "z", "0", "-1", "withscores"][..],
        &["zrange", "z", "2500", "2600"],
        &["zrange", "z", "2500", "2600", "rev"],
        &["zrange", "z", "10", "20", "rev", "withscores"],
        &["zrangebyscore", "z", "(100", "200", "limit", "5", "10"],
        &["zrevrangebyscore", "z", "+inf", "1490"],
        &["zcount", "z", "5", "(1000"],
        &["zrank", "z", "member:1234"],
        &["zrevrank", "z", "member:1234"],
        &["zincrby", "z", "-2000", "member:77"],
        &["zadd", "z", "gt", "ch", "10000", "member:78", "-1", "member:79"],
        &["zremrangebyrank", "z", "-100", "-1"],
        &["zremrangebyscore", "z", "300", "(320"],
        &["zpopmin", "z", "3"],
        &["zpopmax", "z", "70"],
        &["zunionstore", "union", "2", "z", "z", "weights", "1", "-1"],
        &["zrange", "union", "0", "-1", "withscores"],
        &["zlexcount", "union", "[member:1", "(member:3"],
        &["zrange", "union", "(member:3", "[member:29", "bylex", "rev", "limit", "3", "7"],
        &["zinterstore", "z", "2", "z", "union", "aggregate", "max"],
        &["zcard", "z"],
        &["zremrangebylex", "union", "-", "[member:9"],
        &["zrange", "union", "0", "-1"],
        &["zrange", "z", "0", "-1", "withscores"],
    ];
    commands.into_iter().for_each(|command| compare(&mut clients, command));
    let seen = scan_all(&mut clients[0], "zscan", "z");
    let members = strings(&clients[0].call(&["zrange", "z", "0", "-1"]));
    let by_scan: BTreeSet<_> = seen.iter().step_by(2).collect();
    assert!(seen.len() == 2 * members.len() && by_scan == members.iter().collect());
    let drawn = strings(&clients[0].call(&["zrandmember", "z", "40", "withscores"]));
    assert!(drawn.len() == 80 && drawn.chunks(2).all(|pair| pair[1] == clients[0].text(&["zscore", "z", &pair[0]])));
    let left = members.len() + strings(&clients[0].call(&["zrange", "union", "0", "-1"])).len();
    assert!(both.server.stop().1);
    // Numbers, and two for each member.
    assert_eq!(rows(&store), 1 + 2 * left);
}

#[test]
fn a_large_list_is_gone_through_and_changed_in_the_middle() {
    let both = Both::start();
    let (store, mut clients) = (both.store(), both.clients());
    let numbers: Vec<String> = (0..LARGE).map(|number| (number % 1000).to_string()).collect();
    let push: Vec<&str> = ["rpush", "l"].into_iter().chain(numbers.iter().map(String::as_str)).collect();
    compare(&mut clients, &push);
    let changes = [
        &["lrange", "l", "1490", "1510"][..],
        &["linsert", "l", "before", "10", "near the start"],
        &["linsert", "l", "after", "999", "near the middle"],
        &["lset", "l", "-2", "near the end"],
        &["lrem", "l", "-2", "990"],
        &["lrem", "l", "0", "500"],
        &["lpop", "l", "100"],
        &["rpop", "l", "65"],
        &["lpos", "l", "near the middle"],
        &["lmove", "l", "other", "right", "left"],
        &["lrange", "l", "0", "-1"],
        // What goes, and then what stays, is less.
        &["ltrim", "l", "200", "-200"],
        &["expireat", "l", "4102444800"],
        &["ltrim", "l", "-250", "-50"],
        &["expiretime", "l"],
        &["lrange", "l", "0", "-1"],
        &["lmpop", "2", "none", "l", "right", "count", "150"],
        &["copy", "l", "copied"],
        &["lpop", "l", "1000"],
        &["lrange", "copied", "0", "-1"],
        &["exists", "l"],
    ];
    changes.into_iter().for_each(|command| compare(&mut clients, command));
    assert!(both.server.stop().1);
    // Numbers, the time of `copied`, its 51 elements, and the one of `other`.
    assert_eq!(rows(&store), 54);
}

#[test]
fn a_transaction_that_the_store_refuses_leaves_all_as_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    let too_long = "f".repeat(65_528);
    client.call(&["hset", "from", "f", "1"]);
    // What HSET meets under its key is known only when the one before it was carried out.
    let fails_within = [&["rename", "from", "h"][..], &["hset", "h", "a", "1", &too_long, "2", "b", "3"]];
    let fails_when_written = [&["select", "1"][..], &["set", "string", "x"], &["hset", "other", &too_long, "2"]];
    for commands in [&fails_within[..], &fails_when_written] {
        client.call(&["multi"]);
        for command in commands {
            assert_eq!(client.text(command), "QUEUED");
        }
        assert!(client.text(&["exec"]).starts_with("-ERR a key of 65537 bytes"));
        assert_eq!(client.text(&["keys", "*"]), "from");
        assert_eq!(client.text(&["hgetall", "from"]), "f 1");
    }
    client.call(&["select", "1"]);
    assert_eq!(client.text(&["keys", "*"]), "");
}

#[test]
fn a_transaction_overwrites_collections_of_another_database() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let server = Server::start(&store, &[]);
    let mut client = server.client();
    client.call(&["hset", "h", "f", "1", "g", "2"]);
    client.call(&["pexpire", "h", "50"]);
    client.call(&["select", "1"]);
    for command in [&["multi"][..], &["select", "0"], &["set", "h", "x"], &["exec"]] {
        client.call(command);
    }
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(client.text(&["keys", "*"]), "h");
    assert_eq!(client.text(&["get", "h"]), "x");
    assert!(server.stop().1);
    assert_eq!(rows(&store), 1);
}

/// Changes collections in pipelines and transactions until the server is gone.
fn change_until_killed(server: &Server, key: &str) {
    let mut client = server.client();
    loop {
        let number = |below: u32| fastrand::u32(..below).to_string();
        let (field, other) = (number(40), number(40));
        let commands = [
            words(&["hset", key, &field, "x", &other, "y"]),
            words(&["multi"]),
            words(&["hdel", key, &number(40), &number(40)]),
            words(&["hincrby", &format!("{key}:n"), &field, "1"]),
            words(&["rpush", &format!("{key}:l"), &field, &other]),
            words(&["lrem", &format!("{key}:l"), "0", &number(40)]),
            words(&["zadd", &format!("{key}:z"), &number(5), &field, &number(5), &other]),
            words(&["zremrangebyrank", &format!("{key}:z"), "0", "0"]),
            words(&["exec"]),
        ];
        let bytes: Vec<u8> = commands.iter().flat_map(|command| encode(command)).collect();
        if client.send(&bytes).is_err() || commands.iter().any(|_| client.receive().is_err()) {
            return;
        }
    }
}

#[test]
fn a_kill_leaves_collections_whole() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    for _ in 0..4 {
        let server = Server::start(&store, &[]);
        std::thread::scope(|scope| {
            for key in ["a", "b", "c"] {
                let server = &server;
                scope.spawn(move || change_until_killed(server, key));
            }
            std::thread::sleep(Duration::from_millis(fastrand::u64(100..400)));
            server.signal("KILL");
        });
        drop(server);
        let server = Server::start(&store, &[]);
        let mut client = server.client();
        for key in ["a", "b", "c", "a:n", "b:n", "c:n"] {
            assert_eq!(client.text(&["hlen", key]), strings(&client.call(&["hkeys", key])).len().to_string());
        }
        for key in ["a:z", "b:z", "c:z"] {
            let members = strings(&client.call(&["zrange", key, "0", "-1"]));
            assert_eq!(client.text(&["zcard", key]), members.len().to_string());
            assert_eq!(scan_all(&mut client, "zscan", key).len(), 2 * members.len());
        }
        for key in ["a:l", "b:l", "c:l"] {
            let elements = strings(&client.call(&["lrange", key, "0", "-1"]));
            assert_eq!(client.text(&["llen", key]), elements.len().to_string());
            // None is found by its position that is not there.
            assert!(elements.last().is_none_or(|last| *last == client.text(&["lindex", key, "-1"])));
        }
    }
}
