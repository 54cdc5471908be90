//! Publish and subscribe.

use crate::client::{PATIENCE, encode, received, until};
use crate::raw::{RawPair, agree_in_both_versions};
use crate::server::{Both, Server};

const SCRIPT: &str = "
    unsubscribe
    unsubscribe x
    punsubscribe
    pubsub channels
    pubsub numsub
    pubsub numpat
    pubsub nope
    pubsub
    pubsub numpat a
    pubsub Channels a b
    subscribe
    publish a
    publish a x
    multi
    subscribe a b
    psubscribe b* b*
    ping
    exec
    subscribe a
    ping
    ping x
    ping x y
    get a
    client id
    multi
    hello 3
    publish a x
    nope
    get
    subscribe ''
    unsubscribe ''
    unsubscribe zzz
    unsubscribe b
    unsubscribe
    punsubscribe
    punsubscribe
    ping
    get a
    multi
    subscribe a
    unsubscribe a
    exec
    subscribe a
    reset
    get a
    publish a x
    subscribe a
    quit
";

const SCRIPT_RESP3: &str = "
    subscribe a b
    publish a x
    psubscribe a* a*
    publish a x
    publish b ''
    publish c x
    get x
    ping
    ping x
    pubsub numsub a b c
    pubsub numpat
    pubsub channels a*
    pubsub channels c*
    multi
    subscribe c
    unsubscribe a
    set k v
    exec
    unsubscribe a
    publish a x
    set k v
    incr k
    punsubscribe
    unsubscribe b
    unsubscribe c
    unsubscribe
    publish a x
";

#[test]
fn subscribers_are_answered_as_redis_does() {
    let both = Both::start();
    agree_in_both_versions(&both, SCRIPT, SCRIPT_RESP3);
    // Names and messages are bytes.
    let mut pair = RawPair::connect(&both);
    pair.agree(&[&b"subscribe"[..], b"\r\n\0\xff"]);
    for mut client in both.clients() {
        assert_eq!(client.text(&[&b"publish"[..], b"\r\n\0\xff", &[b'\n'; 70_000]]), "1");
    }
    pair.agree(&["ping"]);
    pair.finish();
    until_listening(&both.server, 0);
}

/// Waits until so many clients have subscriptions.
fn until_listening(server: &Server, wanted: usize) {
    let mut client = server.client();
    until(&format!("not {wanted} clients have subscriptions"), || {
        client.text(&["client", "list", "type", "pubsub"]).lines().count() == wanted
    });
}

#[test]
fn messages_reach_those_who_listen() {
    let dir = tempfile::tempdir().unwrap();
    // One thread for all connections.
    let server = Server::start(&dir.path().join("store"), &["--threads", "1"]);
    let (mut first, mut second, mut publisher) = (server.client(), server.client(), server.client());
    assert_eq!(first.text(&["subscribe", "news"]), "subscribe news 1");
    assert_eq!(second.text(&["psubscribe", "n?ws"]), "psubscribe n?ws 1");
    assert_eq!(second.text(&["subscribe", "other"]), "subscribe other 2");
    assert_eq!(publisher.text(&["publish", "news", "a"]), "2");
    assert_eq!((received(&mut first), received(&mut second)), ("message news a".into(), "pmessage n?ws news a".into()));
    assert_eq!(publisher.text(&["pubsub", "numsub", "news", "other"]), "news 1 other 1");
    let list = publisher.text(&["client", "list", "type", "pubsub"]);
    assert!(list.contains("flags=P db=0 sub=1 psub=1 ssub=0") && list.lines().count() == 2, "{list}");
    assert!(publisher.text(&["info", "stats"]).contains("pubsub_channels:2\r\npubsub_patterns:1\r"));
    // What comes before the end of a subscription comes before the reply that says so.
    let pipeline = [encode(&["publish", "news", "b"]), encode(&["publish", "news", "c"]), encode(&["ping"])].concat();
    publisher.send(&pipeline).unwrap();
    assert_eq!([received(&mut publisher), received(&mut publisher), received(&mut publisher)], ["2", "2", "PONG"]);
    first.send(&encode(&["unsubscribe"])).unwrap();
    let answers = [received(&mut first), received(&mut first), received(&mut first)];
    assert_eq!(answers, ["message news b", "message news c", "unsubscribe news 0"]);
    assert_eq!(first.text(&["get", "x"]), "nil");
    // Of a transaction that is refused nothing is published, and what is published comes after its writes.
    for command in [&["multi"][..], &["publish", "other", "x"], &["nope"]] {
        publisher.call(command);
    }
    assert!(publisher.text(&["exec"]).starts_with("-EXECABORT"));
    for command in [&["multi"][..], &["set", "k", "v"], &["publish", "other", "done"]] {
        publisher.call(command);
    }
    assert_eq!(publisher.text(&["exec"]), "OK 1");
    let seen = [received(&mut second), received(&mut second), received(&mut second)];
    assert_eq!(seen, ["pmessage n?ws news b", "pmessage n?ws news c", "message other done"]);
    // Who is gone listens no more.
    assert_eq!(publisher.text(&["client", "kill", "type", "pubsub"]), "1");
    assert!(second.receive().is_err());
    until_listening(&server, 0);
    assert_eq!(publisher.text(&["publish", "news", "x"]), "0");
    assert_eq!(publisher.text(&["pubsub", "numpat"]), "0");
    assert!(server.stop().1);
}

#[test]
fn a_message_shows_what_was_written_before_it() {
    for durability in ["none", "sync"] {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start(&dir.path().join("store"), &["--durability", durability]);
        let mut listener = server.client();
        assert_eq!(listener.text(&["subscribe", "changed"]), "subscribe changed 1");
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let mut client = server.client();
                scope.spawn(move || {
                    for number in 0..100 {
                        let (key, value) = (format!("key:{writer}"), number.to_string());
                        client.call(&["multi"]);
                        client.call(&["set", &key, &value]);
                        client.call(&["publish", "changed", &format!("{key} {value}")]);
                        assert_eq!(client.text(&["exec"]), "OK 1");
                    }
                });
            }
            let (mut reader, mut next) = (server.client(), [0; 3]);
            for _ in 0..300 {
                let message = received(&mut listener);
                let [_, _, key, value] = message.split(' ').collect::<Vec<_>>()[..] else { panic!("{message}") };
                let (writer, number) = (key.as_bytes()[4] - b'0', value.parse::<u32>().unwrap());
                assert_eq!(number, next[usize::from(writer)], "{message}");
                next[usize::from(writer)] += 1;
                assert!(reader.text(&["get", key]).parse::<u32>().unwrap() >= number, "{message}");
            }
        });
        assert!(server.stop().1);
    }
}

#[test]
fn who_does_not_take_messages_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let (mut silent, mut waiting, mut reader) = (server.client(), server.client(), server.client());
    let mut publisher = server.client();
    assert_eq!(silent.text(&["subscribe", "news"]), "subscribe news 1");
    waiting.send(&encode(&["hello", "3"])).unwrap();
    waiting.send(&[encode(&["subscribe", "news"]), encode(&["blpop", "nothing", "0"])].concat()).unwrap();
    assert_eq!(reader.text(&["subscribe", "news"]), "subscribe news 1");
    until_listening(&server, 3);
    let payload = vec![b'x'; 1 << 20];
    for _ in 0..80 {
        publisher.call(&[&b"publish"[..], b"news", &payload]);
        assert!(received(&mut reader).len() > 1 << 20);
    }
    until_listening(&server, 1);
    assert_eq!(publisher.text(&["publish", "news", "x"]), "1");
    assert_eq!(received(&mut reader), "message news x");
    assert!(publisher.text(&["info", "clients"]).contains("blocked_clients:0\r"));
    assert!(server.stop().1);
}

#[test]
fn who_waits_hears_messages() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let mut publisher = server.client();
    let mut raw = std::net::TcpStream::connect(server.address).unwrap();
    raw.set_read_timeout(Some(PATIENCE)).unwrap();
    std::io::Write::write_all(
        &mut raw,
        &[encode(&["hello", "3"]), encode(&["subscribe", "news"]), encode(&["blpop", "list", "0"])].concat(),
    )
    .unwrap();
    let mut heard = String::new();
    let mut hear = |wanted: &str| {
        while !heard.ends_with(wanted) {
            let mut buffer = [0; 4096];
            let length = std::io::Read::read(&mut raw, &mut buffer).unwrap();
            assert!(length > 0, "{heard:?}");
            heard.push_str(&String::from_utf8_lossy(&buffer[..length]));
        }
    };
    hear(">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n");
    assert_eq!(publisher.text(&["publish", "news", "a"]), "1");
    hear(">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\na\r\n");
    assert_eq!(publisher.text(&["rpush", "list", "x"]), "1");
    hear("*2\r\n$4\r\nlist\r\n$1\r\nx\r\n");
    assert!(server.stop().1);
}
