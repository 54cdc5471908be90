//! Servers that are killed while they work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use resp_rs::resp2::Frame;

use crate::client::encode;
use crate::server::Server;

const WRITERS: usize = 4;
const ROUNDS: usize = 4;
const PIPELINE: u64 = 8;

/// What a writer was told: it has written so many numbers, and begun so many.
#[derive(Default)]
struct Written {
    acknowledged: AtomicU64,
    transactions: AtomicU64,
}

fn write_until_killed(server: &Server, number: usize, from: &Written) {
    let mut client = server.client();
    loop {
        let first = from.acknowledged.load(Ordering::SeqCst);
        let pipeline: Vec<u8> = (first..first + PIPELINE)
            .flat_map(|value| encode(&["set".to_string(), format!("w{number}:{value}"), value.to_string()]))
            .collect();
        if client.send(&pipeline).is_err() {
            return;
        }
        for value in first..first + PIPELINE {
            if client.receive().is_err() {
                return;
            }
            from.acknowledged.store(value + 1, Ordering::SeqCst);
        }
        let transaction = [
            encode(&["multi"]),
            encode(&["incr".to_string(), format!("left{number}")]),
            encode(&["incr".to_string(), format!("right{number}")]),
            encode(&["exec"]),
            // Keys come and go, in ways of their own, and are counted.
            encode(&["set".to_string(), format!("gone{number}:{first}"), "x".into()]),
            encode(&["set".to_string(), format!("expired{number}:{first}"), "x".into(), "px".into(), "3".into()]),
            encode(&["del".to_string(), format!("gone{number}:{first}")]),
        ];
        if client.send(&transaction.concat()).is_err() || (0..7).any(|_| client.receive().is_err()) {
            return;
        }
        from.transactions.fetch_add(1, Ordering::SeqCst);
    }
}

fn nothing_acknowledged_is_lost(durability: &str) {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let written: Vec<_> = (0..WRITERS).map(|_| Written::default()).collect();
    for round in 0..ROUNDS {
        let server = Server::start(&store, &["--durability", durability]);
        check(&server, &written, round);
        std::thread::scope(|scope| {
            for (number, written) in written.iter().enumerate() {
                let server = &server;
                scope.spawn(move || write_until_killed(server, number, written));
            }
            std::thread::sleep(Duration::from_millis(fastrand::u64(100..500)));
            server.signal("KILL");
        });
        drop(server);
    }
    check(&Server::start(&store, &["--durability", durability]), &written, ROUNDS);
}

fn check(server: &Server, written: &[Written], round: usize) {
    let mut client = server.client();
    for (number, written) in written.iter().enumerate() {
        let all: Vec<u64> = (0..written.acknowledged.load(Ordering::SeqCst)).collect();
        for values in all.chunks(500) {
            let keys = values.iter().map(|value| format!("w{number}:{value}"));
            let command: Vec<String> = std::iter::once("mget".to_string()).chain(keys).collect();
            let expected: Vec<String> = values.iter().map(u64::to_string).collect();
            assert_eq!(client.text(&command), expected.join(" "), "writer {number} after kill {round}");
        }
        let [left, right] = ["left", "right"].map(|side| {
            let found = client.text(&["get".to_string(), format!("{side}{number}")]);
            found.parse::<u64>().unwrap_or(0)
        });
        assert_eq!(left, right, "half a transaction after kill {round}");
        let acknowledged = written.transactions.load(Ordering::SeqCst);
        // One more may have been made at the moment of each kill.
        assert!((acknowledged..=acknowledged + round as u64).contains(&left), "{left} {acknowledged}");
    }
    let Frame::Array(Some(keys)) = client.call(&["keys", "*"]) else { panic!("no keys") };
    assert_eq!(client.text(&["dbsize"]), keys.len().to_string(), "after kill {round}");
}

#[test]
fn a_kill_loses_nothing_acknowledged() {
    nothing_acknowledged_is_lost("sync");
    nothing_acknowledged_is_lost("interval:1000");
}

#[test]
fn a_clean_end_keeps_everything_and_finishes_replies() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let server = Server::start(&store, &["--durability", "none"]);
    let written = Written::default();
    let said = std::thread::scope(|scope| {
        let written = &written;
        let address = server.address;
        scope.spawn(move || {
            let mut client = crate::client::Client::connect(address);
            for value in 0.. {
                let command = ["set".to_string(), format!("w0:{value}"), value.to_string()];
                if client.try_call(&command).is_err() {
                    return;
                }
                written.acknowledged.store(value + 1, Ordering::SeqCst);
            }
        });
        while written.acknowledged.load(Ordering::SeqCst) < 50 {
            std::thread::sleep(Duration::from_millis(5));
        }
        server.stop()
    });
    assert!(said.1 && said.0.contains("the store is closed"), "{}", said.0);
    check(&Server::start(&store, &[]), &[written], 0);
}
