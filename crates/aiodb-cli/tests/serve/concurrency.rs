//! Many clients at the same keys.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use resp_rs::resp2::Frame;

use crate::client::{encode, received};
use crate::server::Server;

const CLIENTS: usize = 8;
const ROUNDS: usize = 150;
const WRITES: usize = 5000;

fn no_update_is_lost(dir: &Path, durability: &str) {
    let server = Server::start(dir, &["--durability", durability]);
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut client = server.client();
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    // In a pipeline, alone and in a transaction; the sum of the two keys stays 0.
                    let pipeline =
                        [encode(&["incr", "n"]), encode(&["append", "s", "x"]), encode(&["incrby", "n", "2"])];
                    client.send(&pipeline.concat()).unwrap();
                    (0..3).for_each(|_| drop(client.receive().unwrap()));
                    for command in [&["multi"][..], &["incrby", "up", "3"], &["decrby", "down", "3"], &["exec"]] {
                        client.call(command);
                    }
                    let Frame::Array(Some(both)) = client.call(&["mget", "up", "down"]) else { panic!() };
                    let [up, down] = [0, 1].map(|at| crate::client::text(&both[at]).parse::<i64>().unwrap());
                    assert_eq!(up + down, 0, "client {number} saw half a transaction");
                }
            });
        }
    });
    let mut client = server.client();
    let all = CLIENTS * ROUNDS;
    assert_eq!(client.text(&["mget", "n", "up"]), format!("{} {}", all * 3, all * 3));
    assert_eq!(client.text(&["strlen", "s"]), all.to_string());
    let (said, went_well) = server.stop();
    assert!(went_well, "{said}");
}

#[test]
fn no_update_is_lost_in_any_class() {
    for durability in ["interval:1000", "sync", "none"] {
        let dir = tempfile::tempdir().unwrap();
        no_update_is_lost(&dir.path().join("store"), durability);
    }
}

/// In one hash, which is kept whole or read each time.
#[test]
fn a_collection_is_seen_at_one_moment() {
    for cache_bytes in ["1048576", "0"] {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start(&dir.path().join("store"), &["--cache-bytes", cache_bytes]);
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let mut client = server.client();
                scope.spawn(move || {
                    for round in 0..ROUNDS {
                        // The sum of the two fields stays 0, and the two fields of others come and go together.
                        for command in
                            [&["multi"][..], &["hincrby", "h", "up", "3"], &["hincrby", "h", "down", "-3"], &["exec"]]
                        {
                            client.call(command);
                        }
                        let (one, other) = (format!("one {number}"), format!("other {number}"));
                        if round % 2 == 0 {
                            client.call(&["hset", "h", &one, "1", &other, "1"]);
                        } else {
                            client.call(&["hdel", "h", &one, &other]);
                        }
                        let Frame::Array(Some(all)) = client.call(&["hgetall", "h"]) else { panic!() };
                        let all: BTreeMap<String, String> = all
                            .chunks(2)
                            .map(|pair| (crate::client::text(&pair[0]), crate::client::text(&pair[1])))
                            .collect();
                        let sum = |field: &str| all[field].parse::<i64>().unwrap();
                        assert_eq!(sum("up") + sum("down"), 0, "client {number} saw half a transaction");
                        for other in 0..CLIENTS {
                            let [one, other] =
                                ["one", "other"].map(|name| all.contains_key(&format!("{name} {other}")));
                            assert_eq!(one, other, "client {number} saw half a command");
                        }
                        assert_eq!(
                            all.contains_key(&one),
                            round % 2 == 0,
                            "client {number} does not see its own write"
                        );
                    }
                });
            }
        });
        let mut client = server.client();
        assert_eq!(client.text(&["hmget", "h", "up", "down"]), format!("{0} -{0}", CLIENTS * ROUNDS * 3));
        assert_eq!(client.text(&["hlen", "h"]), "2");
    }
}

#[test]
fn watched_keys_let_one_of_many_through() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            let mut client = server.client();
            scope.spawn(move || {
                // Optimistic increments, each tried until nobody came in between.
                for _ in 0..ROUNDS / 10 {
                    loop {
                        client.call(&["watch", "n"]);
                        let number: i64 = client.text(&["get", "n"]).parse().unwrap_or(0);
                        client.call(&["multi"]);
                        client.call(&["set".to_string(), "n".to_string(), (number + 1).to_string()]);
                        if client.call(&["exec"]) != Frame::Array(None) {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(server.client().text(&["get", "n"]), (CLIENTS * (ROUNDS / 10)).to_string());
}

#[test]
fn replies_come_in_the_order_of_their_commands() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut client = server.client();
    let mut expected = Vec::new();
    let mut pipeline = Vec::new();
    for number in 0..2000 {
        let (key, value) = (format!("k{}", number % 37), number.to_string());
        pipeline.extend(encode(&["set", &key, &value]));
        pipeline.extend(encode(&["get", &key]));
        expected.extend(["OK".to_string(), value]);
        if number % 100 == 0 {
            pipeline.extend(encode(&["nope"]));
            pipeline.extend(encode(&["select", "0"]));
            expected.extend(["-ERR unknown command 'nope', with args beginning with: ".to_string(), "OK".to_string()]);
        }
    }
    client.send(&pipeline).unwrap();
    for expected in expected {
        assert_eq!(crate::client::text(&client.receive().unwrap()), expected);
    }
}

/// Each write gives both keys the same number: what is asked later is never older.
#[test]
fn what_a_pipeline_asks_later_is_not_older() {
    for cache_bytes in ["1048576", "0"] {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start(&dir.path().join("store"), &["--cache-bytes", cache_bytes]);
        let mut writer = server.client();
        writer.call(&["mset", "x", "0", "y", "0"]);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (mut client, is_over) = (server.client(), &is_over);
                scope.spawn(move || {
                    let keys = if number % 2 == 0 { ["x", "y"] } else { ["y", "x"] };
                    let pipeline = keys.map(|key| encode(&["get", key])).concat();
                    while !is_over.load(Ordering::Relaxed) {
                        client.send(&pipeline).unwrap();
                        let [first, later] = keys.map(|_| received(&mut client).parse::<u64>().unwrap());
                        assert!(first <= later, "{} is {first}, and {} is {later} after that", keys[0], keys[1]);
                    }
                });
            }
            for number in 1..WRITES {
                let number = number.to_string();
                writer.call(&["mset", "x", &number, "y", &number]);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert!(server.stop().1);
    }
}
