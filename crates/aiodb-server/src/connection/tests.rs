use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use aiodb::Options;
use bytes::Bytes;
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::acl::Acl;
use crate::channels::Topic;
use crate::commands;
use crate::config::Config;
use crate::keyspace::Keyspace;
use crate::locks::Key;
use crate::log::Log;

fn start(dir: &Path) -> Arc<Server> {
    let keyspace = Keyspace::open(dir, 1, Options::default(), &|_| ()).unwrap();
    let (config, table) = (Config::default(), commands::table());
    let acl = Acl::new(table.catalog(), &config).unwrap();
    let division = config.division().unwrap();
    Arc::new(Server::new((config, division), keyspace, table, acl, None, 0, Log::new(|_| ())))
}

/// As a panic of a command would end it.
#[tokio::test]
async fn a_connection_that_is_dropped_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, address) = listener.accept().await.unwrap();
    let nobody = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let add = || server.clients.add(address, nobody, 0, server.acl.default_user(), 1);
    let client = add().unwrap();
    let mut connection = Connection::new(Arc::clone(&server), Stream::Plain(stream), client);
    let key = Key { database: 0, name: "watched".into() };
    server.keyspace.watchers.add(&mut connection.session.watch, key, None);
    let session = &mut connection.session;
    session.subscriptions.add(&server.channels, &session.client, Topic::Channel, &Bytes::from_static(b"news"));
    assert!(add().is_none());
    assert_eq!((server.channels.count(b"news"), server.keyspace.watchers.keys_of(0).len()), (1, 1));
    drop(connection);
    assert_eq!((server.channels.count(b"news"), server.keyspace.watchers.keys_of(0).len()), (0, 0));
    assert!(add().is_some(), "its place is free");
    server.keyspace.close().unwrap();
}
