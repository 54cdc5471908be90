use std::net::SocketAddr;
use std::path::Path;

use aiodb::Options;
use bytes::Bytes;

use super::*;
use crate::acl::Acl;
use crate::commands;
use crate::config::Config;
use crate::log::Log;

/// A server that no client reaches, and a connection to it.
fn start(dir: &Path) -> (Server, Session) {
    let keyspace = Keyspace::open(dir, 2, Options::default(), &|_| ()).unwrap();
    let (config, table) = (Config::default(), commands::table());
    let acl = Acl::new(table.catalog(), &config).unwrap();
    let division = config.division().unwrap();
    let server = Server::new((config, division), keyspace, table, acl, None, 0, Log::new(|_| ()));
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let client = server.clients.add(address, address, 0, server.acl.default_user(), 1).unwrap();
    (server, Session::new(client))
}

fn calls(server: &Server, lines: &[&str]) -> Vec<Call> {
    let call = |line: &&str| {
        let arguments: Vec<Bytes> = line.split(' ').map(|word| Bytes::copy_from_slice(word.as_bytes())).collect();
        Call { command: find(server, &arguments).unwrap(), arguments }
    };
    lines.iter().map(call).collect()
}

#[test]
fn commands_that_name_what_they_need_never_wait() {
    let dir = tempfile::tempdir().unwrap();
    let (server, mut session) = start(dir.path());
    let made = calls(&server, &["hset h f 1 g 2", "sadd s a b c", "sadd t a x", "rpush l a b c d e f g h"]);
    let threads = tokio::runtime::Runtime::new().unwrap();
    threads.block_on(answer(&server, &mut session, &made));
    let asked =
        ["hincrby h f 1", "hdel h g", "hget h f", "smove s t b", "smove t s a", "sismember t x", "srem s c", "set h x"];
    // Where there is one thread, tokio panics at a call that would keep it from the others.
    let thread = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let replies = thread.block_on(answer(&server, &mut session, &calls(&server, &asked)));
    let expected = [2, 1, 0, 1, 1, 1, 1].map(Reply::Integer);
    assert_eq!((&replies[..2], &replies[3..7]), (&expected[..2], &expected[3..]));
    assert_eq!((&replies[2], &replies[7]), (&Reply::Bulk("2".into()), &OK));
    // Each takes what those before it have left.
    let asked =
        ["lpop l", "rpop l 2", "lindex l -1", "lmove l l left right", "rpoplpush l l", "lmpop 1 l left count 2"];
    let replies = thread.block_on(answer(&server, &mut session, &calls(&server, &asked)));
    let element = |element: &'static str| Reply::Bulk(element.into());
    let both = |first, last| Reply::Array(vec![element(first), element(last)]);
    let expected = [element("a"), both("h", "g"), element("f"), element("b"), element("b")];
    assert_eq!(&replies[..5], &expected);
    assert_eq!(replies[5], Reply::Array(vec![element("l"), both("b", "c")]));
    server.keyspace.close().unwrap();
}

#[test]
fn reads_of_several_keys_are_under_a_claim() {
    let dir = tempfile::tempdir().unwrap();
    let (server, session) = start(dir.path());
    let claims = |lines: &[&str]| plan(&session, &calls(&server, lines), None).claim;
    for one in [&["get x"][..], &["get x", "get x", "strlen x"], &["exists x", "ping"]] {
        assert_eq!(claims(one), Claim::Nothing, "{one:?}");
    }
    let keys = ["x", "y"].map(|name| session.key(&name.into()));
    let both = Claim::on_keys(keys.iter().map(|key| (key, false)));
    for several in [&["get y", "get x"][..], &["mget x y"], &["get x", "ping", "type y"]] {
        assert_eq!(claims(several), both, "{several:?}");
    }
    server.keyspace.close().unwrap();
}

#[test]
fn scripts_wait_for_each_other_without_a_thread() {
    let dir = tempfile::tempdir().unwrap();
    let (server, session) = start(dir.path());
    for line in ["eval x 0", "evalsha_ro x 0", "script load x", "script flush"] {
        assert_eq!(plan(&session, &calls(&server, &[line]), None).claim, Claim::Everything, "{line}");
    }
    for line in ["script exists x", "script kill"] {
        assert_eq!(plan(&session, &calls(&server, &[line]), None).claim, Claim::Nothing, "{line}");
    }
    server.keyspace.close().unwrap();
}

#[test]
fn a_client_whose_channel_goes_as_it_subscribes_is_ended() {
    let dir = tempfile::tempdir().unwrap();
    let (server, mut session) = start(dir.path());
    let threads = tokio::runtime::Runtime::new().unwrap();
    let rules = ["on", "nopass", "+@all", "&news", "&n*"].map(Bytes::from);
    session.log_in(server.acl.change(b"alice", &rules).unwrap());
    for line in ["subscribe news", "psubscribe n*"] {
        threads.block_on(answer(&server, &mut session, &calls(&server, &[line])));
    }
    assert!(!session.client.is_killed());
    // It was admitted before the channel was taken from its user.
    let admitted = calls(&server, &["subscribe news"]);
    server.acl.change(b"alice", &["resetchannels".into()]).unwrap();
    threads.block_on(answer(&server, &mut session, &admitted));
    assert!(session.client.is_killed());
    server.keyspace.close().unwrap();
}
