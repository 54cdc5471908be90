use super::*;

fn bytes_of(reply: &Reply, protocol: Protocol) -> Vec<u8> {
    let mut output = Output::default();
    output.push(reply.clone(), protocol);
    written(&mut output)
}

/// All bytes, by a connection that takes a few at a time.
fn written(output: &mut Output) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(part) = output.part() {
        let length = part.len().min(1000);
        bytes.extend(&part[..length]);
        output.advance(length);
    }
    bytes
}

#[test]
fn each_version_has_its_own_bytes() {
    let map = Reply::Map(vec![(Reply::text("a"), Reply::Integer(-1))]);
    for (reply, old, new) in [
        (OK, &b"+OK\r\n"[..], &b"+OK\r\n"[..]),
        (Reply::Error("ERR no".into()), b"-ERR no\r\n", b"-ERR no\r\n"),
        (Reply::Nil, b"$-1\r\n", b"_\r\n"),
        (Reply::NilArray, b"*-1\r\n", b"_\r\n"),
        (Reply::text(""), b"$0\r\n\r\n", b"$0\r\n\r\n"),
        (Reply::Set(vec![OK]), b"*1\r\n+OK\r\n", b"~1\r\n+OK\r\n"),
        (map, b"*2\r\n$1\r\na\r\n:-1\r\n", b"%1\r\n$1\r\na\r\n:-1\r\n"),
        (Reply::Push(vec![OK]), b"*1\r\n+OK\r\n", b">1\r\n+OK\r\n"),
        (Reply::Several(vec![OK, OK]), b"+OK\r\n+OK\r\n", b"+OK\r\n+OK\r\n"),
        (Reply::Array(vec![Reply::Several(vec![OK, OK])]), b"*1\r\n+OK\r\n+OK\r\n", b"*1\r\n+OK\r\n+OK\r\n"),
        (Reply::Text("a b".into()), b"$3\r\na b\r\n", b"=7\r\ntxt:a b\r\n"),
    ] {
        assert_eq!(bytes_of(&reply, Protocol::Resp2), old, "{reply:?}");
        assert_eq!(bytes_of(&reply, Protocol::Resp3), new, "{reply:?}");
    }
}

#[test]
fn large_strings_keep_their_place() {
    let mut output = Output::default();
    let large = Bytes::from(vec![b'x'; LARGE_BYTES]);
    for reply in [OK, Reply::Bulk(large.clone()), Reply::Integer(7)] {
        output.push(reply, Protocol::Resp2);
    }
    let length = output.len();
    let bytes = written(&mut output);
    let expected = [&b"+OK\r\n$16384\r\n"[..], &large, b"\r\n:7\r\n"].concat();
    assert!(bytes == expected && length == expected.len());
}
