use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use super::Stream;

#[tokio::test]
async fn a_client_that_sends_nothing_has_no_buffer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = listener.local_addr().expect("it listens");
    let mut client = TcpStream::connect(address).await.expect("it listens");
    let (accepted, _) = listener.accept().await.expect("a client has come");
    let mut stream = Stream::Plain(accepted);
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
