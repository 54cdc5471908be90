//! Clients that wait for elements of lists and sorted sets.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use resp_rs::resp2::Frame;

use crate::client::{Client, encode, received, text, until};
use crate::server::Server;

/// Waits until so many clients wait.
fn until_waiting(client: &mut Client, wanted: usize) {
    until(&format!("not {wanted} clients wait"), || {
        client.text(&["info", "clients"]).contains(&format!("blocked_clients:{wanted}\r"))
    });
}

/// Sends a command that waits, and returns when it does; so many wait then.
fn begin(server: &Server, pusher: &mut Client, wanted: usize, command: &[&str]) -> Client {
    let mut client = server.client();
    client.send(&encode(command)).unwrap();
    until_waiting(pusher, wanted);
    client
}

#[test]
fn who_waits_is_served_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut pusher = server.client();
    let mut first = begin(&server, &mut pusher, 1, &["blpop", "a", "b", "0"]);
    let mut second = begin(&server, &mut pusher, 2, &["brpop", "b", "a", "0"]);
    let mut third = begin(&server, &mut pusher, 3, &["blmove", "a", "moved", "left", "right", "0"]);
    let mut fourth = begin(&server, &mut pusher, 4, &["blmpop", "0", "2", "c", "a", "left", "count", "10"]);
    // Of the list to which the third one moves, nobody waits for another.
    let mut other = begin(&server, &mut pusher, 5, &["blpop", "moved", "0"]);
    assert_eq!(pusher.text(&["rpush", "a", "1", "2"]), "2");
    assert_eq!((received(&mut first), received(&mut second)), ("a 1".into(), "a 2".into()));
    for command in [&["multi"][..], &["set", "a", "x"], &["del", "a"], &["rpush", "a", "3", "4", "5"]] {
        pusher.call(command);
    }
    assert_eq!(pusher.text(&["exec"]), "OK 1 3");
    assert_eq!((received(&mut third), received(&mut fourth)), ("3".into(), "a 4 5".into()));
    assert_eq!(received(&mut other), "moved 3");
    until_waiting(&mut pusher, 0);
    assert_eq!(pusher.text(&["keys", "*"]), "");
    // What comes in the meantime may be no list.
    let mut first = begin(&server, &mut pusher, 1, &["blpop", "a", "b", "0"]);
    pusher.call(&["set", "a", "x"]);
    pusher.call(&["rpush", "other", "y"]);
    pusher.call(&["rename", "other", "b"]);
    assert_eq!(received(&mut first), "b y");
    assert!(server.client().text(&["blpop", "a", "0"]).starts_with("-WRONGTYPE"));
    // Who waits for something else at the same key stands in no one's way.
    let mut list = begin(&server, &mut pusher, 1, &["blpop", "c", "0"]);
    let mut lowest = begin(&server, &mut pusher, 2, &["bzpopmin", "d", "c", "0"]);
    let mut highest = begin(&server, &mut pusher, 3, &["bzmpop", "0", "1", "c", "max", "count", "2"]);
    pusher.call(&["zadd", "c", "1", "x", "2", "y", "3", "z"]);
    assert_eq!((received(&mut lowest), received(&mut highest)), ("c x 1".into(), "c z 3 y 2".into()));
    assert_eq!(pusher.text(&["rpush", "c", "w"]), "1");
    assert_eq!(received(&mut list), "c w");
    assert!(server.stop().1);
}

#[test]
fn waiting_ends_at_its_time_and_holds_nobody_up() {
    let dir = tempfile::tempdir().unwrap();
    // One thread for all connections.
    let server = Server::start(&dir.path().join("store"), &["--threads", "1"]);
    let mut client = server.client();
    let begun = Instant::now();
    assert_eq!(client.text(&["blpop", "a", "b", "0.1"]), "nil");
    assert!(begun.elapsed() >= Duration::from_millis(100));
    // In a transaction nobody waits.
    for command in [&["multi"][..], &["blpop", "a", "0"], &["blmove", "a", "b", "left", "left", "0"]] {
        client.call(command);
    }
    assert_eq!(client.text(&["exec"]), "nil nil");
    let waiting: Vec<Client> = (0..20)
        .map(|number| begin(&server, &mut client, number + 1, &["blpop", &format!("key:{number}"), "0"]))
        .collect();
    assert_eq!(client.text(&["ping"]), "PONG");
    // Those who go away get nothing, and what they sent behind is not lost for those who stay.
    let mut last = begin(&server, &mut client, 21, &["blpop", "key:3", "0"]);
    last.send(&[encode(&["ping"]), encode(&["llen", "key:3"])].concat()).unwrap();
    drop(waiting);
    until_waiting(&mut client, 1);
    assert_eq!(client.text(&["rpush", "key:3", "x"]), "1");
    assert_eq!([received(&mut last), received(&mut last), received(&mut last)], ["key:3 x", "PONG", "0"]);
    let mut killed = begin(&server, &mut client, 1, &["blpop", "a", "0"]);
    let id = client.text(&["client", "list"]).lines().find(|line| line.contains("cmd=blpop")).map(str::to_string);
    let id = id.and_then(|line| Some(line.split(' ').next()?.strip_prefix("id=")?.to_string())).unwrap();
    assert_eq!(client.text(&["client", "kill", "id", &id]), "1");
    assert!(killed.receive().is_err());
    until_waiting(&mut client, 0);
    // The end of the server is the end of waiting.
    let mut waiting = begin(&server, &mut client, 1, &["blpop", "a", "0"]);
    let (said, went_well) = server.stop();
    assert!(went_well && !said.contains("cut off"), "{said}");
    assert!(waiting.receive().is_err());
}

#[test]
fn each_element_goes_to_one_of_many() {
    const WORKERS: usize = 6;
    const ELEMENTS: usize = 400;
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &["--durability", "sync"]);
    let taken: Vec<Vec<String>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let mut client = server.client();
                scope.spawn(move || {
                    let mut taken = Vec::new();
                    loop {
                        let lists = if number % 2 == 0 { ["jobs", "more"] } else { ["more", "jobs"] };
                        let Frame::Array(Some(pair)) = client.call(&["blpop", lists[0], lists[1], "0"]) else {
                            panic!()
                        };
                        match text(&pair[1]) {
                            end if end == "end" => return taken,
                            element => taken.push(element),
                        }
                    }
                })
            })
            .collect();
        let mut client = server.client();
        for number in 0..ELEMENTS {
            let list = if number % 3 == 0 { "more" } else { "jobs" };
            client.call(&["rpush", list, &number.to_string()]);
        }
        // These come behind all others.
        let ends = ["end"; WORKERS];
        while client.text(&["exists", "jobs", "more"]) != "0" {
            std::thread::sleep(Duration::from_millis(2));
        }
        client.call(&[&["rpush", "jobs"][..], &ends].concat());
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let all: Vec<_> = taken.concat();
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (ELEMENTS, ELEMENTS));
    assert!(server.stop().1);
}

/// More than is read from a client that waits.
#[test]
fn who_goes_away_with_much_sent_waits_no_more() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut pusher = server.client();
    let mut gone = begin(&server, &mut pusher, 1, &["blpop", "a", "0"]);
    gone.send(&encode(&["echo", &"x".repeat(16 << 10)]).repeat(66)).unwrap();
    until("little was read", || {
        let list = pusher.text(&["client", "list"]);
        let read = list.lines().filter_map(|line| line.split("qbuf=").nth(1)?.split(' ').next()?.parse::<u64>().ok());
        read.max() >= Some(1 << 20)
    });
    drop(gone);
    until_waiting(&mut pusher, 0);
    assert_eq!(pusher.text(&["client", "list"]).lines().count(), 1);
    assert!(server.stop().1);
}
