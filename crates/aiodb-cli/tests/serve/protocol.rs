//! Bytes that are no commands, and commands about the connection.

use crate::client::{Client, encode};
use crate::server::{Both, Server};

/// Bytes that both servers are sent, each in a connection of its own.
fn malformed() -> Vec<Vec<u8>> {
    let long = "1".repeat((64 << 10) + 10);
    let texts = [
        "*1\r\nPING\r\n",
        "*x\r\n",
        "*-1\r\nPING\r\n",
        "*2147483648\r\n",
        "*99999999999999999999\r\n",
        "*1\r\n$-5\r\n",
        "*1\r\n$536870913\r\n",
        "*1\r\n$x\r\n",
        "*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
        "PING \"a\r\n",
        "PING 'a'b\r\n",
        "PING\r\nECHO \"\\x41\\n\"\r\n\r\nnope a b\r\n",
        "*1\r\n$4\r\nPI",
        "*0\r\n*1\r\n$4\r\nPING\r\n",
        "*1\r\n$0\r\n\r\n",
        "*2\r\n$3\r\nfoo\r\n$5\r\na\r\nb\0\r\n",
        "\0\r\n",
        "GET \u{fffd}\r\n",
        "QUIT\r\nPING\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nPING\r\n",
        "GET / HTTP/1.1\r\nhOST: localhost\r\n\r\nPING\r\n",
        "*2\r\n$4\r\npost\r\n$1\r\na\r\n*1\r\n$4\r\nPING\r\n",
        "POSTS\r\nHost\r\nPING\r\n",
    ];
    let mut all: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    all.extend([long.clone(), format!("*{long}"), format!("*1\r\n${long}")].map(String::into_bytes));
    all.push([&b"PING\r\n"[..], &[b'x'; 200], b"\r\n"].concat());
    let many = "y".repeat(300);
    all.push(encode(&["unknown", &many, "z"]));
    all
}

#[test]
fn what_is_no_command_is_answered_as_redis_does() {
    let both = Both::start();
    let mut random = fastrand::Rng::new();
    println!("seed {}", random.get_seed());
    let parts: [&[u8]; 15] = [
        b"*1\r\n", b"*2\r\n", b"$4\r\n", b"PING", b"ECHO", b"\r\n", b"\n", b"$0\r\n", b"*0\r\n", b"\"", b"'", b" ",
        b"*", b"$", b"9",
    ];
    let random_bytes = (0..150).map(|_| {
        let count = random.usize(1..12);
        (0..count).flat_map(|_| parts[random.usize(..parts.len())].to_vec()).collect::<Vec<u8>>()
    });
    for bytes in malformed().into_iter().chain(random_bytes.collect::<Vec<_>>()) {
        let answers = [both.server.address, both.redis.address].map(|address| {
            let mut client = Client::connect(address);
            // Either server may have closed already.
            let _ = client.send(&bytes);
            String::from_utf8_lossy(&client.finish()).into_owned()
        });
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        if bytes.len() < 60_000 {
            assert_eq!(answers[0], answers[1], "to {shown:?}");
        } else {
            // What is not read yet resets the connection, and the answer with it.
            assert!(answers[0].is_empty() || answers[0].starts_with("-ERR Protocol error: too big"), "{answers:?}");
        }
    }
    assert_eq!(both.server.client().text(&["ping"]), "PONG");
}

#[test]
fn a_web_page_reaches_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    for head in ["POST / HTTP/1.1", "GET / HTTP/1.1", "PUT /key HTTP/1.1"] {
        let mut page = server.client();
        page.send(format!("{head}\r\nHost: localhost\r\n\r\nSET written x\r\n").as_bytes()).unwrap();
        assert!(page.finish().is_empty(), "{head}");
    }
    assert_eq!(server.client().text(&["exists", "written"]), "0");
    let (said, is_right) = server.stop();
    assert_eq!(said.matches("sent POST or Host:").count(), 1, "{said}");
    assert!(is_right);
}

#[test]
fn connections_are_greeted_named_and_killed() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("store"), &[]);
    let (mut first, mut second) = (server.client(), server.client());
    assert_eq!(first.text(&["client", "setname", "first"]), "OK");
    assert_eq!(first.text(&["client", "getname"]), "first");
    assert_eq!(second.text(&["client", "getname"]), "nil");
    assert!(first.text(&["client", "setname", "a b"]).starts_with("-ERR Client names cannot contain spaces"));
    let list = second.text(&["client", "list"]);
    assert!(list.contains("name=first") && list.lines().count() == 2, "{list}");
    let id = first.text(&["client", "id"]);
    assert_eq!(second.text(&["client", "kill", "id", &id]), "1");
    assert!(first.try_call(&["ping"]).is_err());
    assert_eq!(second.text(&["client", "kill", "id", &id]), "0");
    assert_eq!(second.text(&["client", "kill", "1.2.3.4:5"]), "-ERR No such client");
    assert!(second.text(&["hello", "4"]).starts_with("-NOPROTO"));
    assert!(second.text(&["hello"]).starts_with("server redis version 7.0.15 proto 2"));
    assert_eq!(second.text(&["multi"]), "OK");
    assert_eq!(second.text(&["reset"]), "RESET");
    assert_eq!(second.text(&["exec"]), "-ERR EXEC without MULTI");
    // In the third version of the protocol there is a map.
    second.send(&encode(&["hello", "3"])).unwrap();
    let greeting = String::from_utf8_lossy(&second.finish()).into_owned();
    assert!(greeting.starts_with("%7\r\n$6\r\nserver\r\n"), "{greeting}");
}

#[test]
fn a_password_is_wanted_before_anything_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("server.toml");
    std::fs::write(&file, "requirepass = \"open sesame\"\n").unwrap();
    let server = Server::start(&dir.path().join("store"), &["--config", file.to_str().unwrap()]);
    let mut client = server.client();
    for command in [&["get", "a"][..], &["ping"], &["multi"], &["command"]] {
        assert_eq!(client.text(command), "-NOAUTH Authentication required.");
    }
    assert!(client.text(&["hello", "2"]).starts_with("-NOAUTH HELLO must be called"));
    assert!(client.text(&["auth", "close sesame"]).starts_with("-WRONGPASS"));
    assert!(client.text(&["auth", "nobody", "open sesame"]).starts_with("-WRONGPASS"));
    assert_eq!(client.text(&["auth", "default", "open sesame"]), "OK");
    assert_eq!(client.text(&["get", "a"]), "nil");
    assert_eq!(client.text(&["reset"]), "RESET");
    assert_eq!(client.text(&["get", "a"]), "-NOAUTH Authentication required.");
    // Strangers may send little.
    let mut stranger = server.client();
    stranger.send(b"*11\r\n").unwrap();
    assert_eq!(stranger.finish(), b"-ERR Protocol error: unauthenticated multibulk length\r\n");
}
