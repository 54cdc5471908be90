use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::Stream;

/// Both ends of a connection.
async fn connect() -> (TcpStream, Stream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = listener.local_addr().expect("it listens");
    let client = TcpStream::connect(address).await.expect("it listens");
    let (accepted, _) = listener.accept().await.expect("a client has come");
    (client, Stream::Plain(accepted))
}

#[tokio::test]
async fn a_client_that_sends_nothing_has_no_buffer() {
    let (mut client, mut stream) = connect().await;
    let mut buffer = BytesMut::new();
    for _ in 0..3 {
        let read = tokio::time::timeout(Duration::from_millis(20), stream.read(&mut buffer, 16 << 10)).await;
        assert!(read.is_err(), "nothing has come");
        assert_eq!(buffer.capacity(), 0);
    }
    client.write_all(b"PING").await.expect("it is connected");
    assert_eq!(stream.read(&mut buffer, 16 << 10).await.expect("it is connected"), 4);
    assert_eq!(&buffer[..], b"PING");
}

#[tokio::test]
async fn a_client_that_goes_away_is_noticed_behind_what_it_has_sent() {
    let (mut client, mut stream) = connect().await;
    client.write_all(b"PING").await.expect("it is connected");
    for _ in 0..3 {
        let noticed = tokio::time::timeout(Duration::from_millis(20), stream.hung_up()).await;
        assert!(noticed.is_err(), "it is there");
    }
    client.write_all(b"PING").await.expect("it is connected");
    drop(client);
    let noticed = tokio::time::timeout(Duration::from_secs(60), stream.hung_up()).await;
    assert!(noticed.is_ok(), "it is gone");
    // Nothing of what it sent is lost.
    let mut buffer = BytesMut::new();
    while stream.read(&mut buffer, 16 << 10).await.expect("it has ended as it should") > 0 {}
    assert_eq!(&buffer[..], b"PINGPING");
}
