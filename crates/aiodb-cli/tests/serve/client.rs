//! A client that sends commands as they are and reads replies as they come.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use resp_rs::resp2::{Frame, Parser};

/// A server that takes longer, to answer or to notice something, hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A connection.
pub struct Client {
    stream: TcpStream,
    parser: Parser,
}

/// The bytes of a command.
pub fn encode<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        let argument = argument.as_ref();
        bytes.extend(format!("${}\r\n", argument.len()).into_bytes());
        bytes.extend(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Client { stream, parser: Parser::new() }
    }

    /// The server's end.
    pub fn address(&self) -> SocketAddr {
        self.stream.peer_addr().unwrap()
    }

    /// Sends bytes as they are.
    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// The next reply; an error if the server has closed the connection.
    pub fn receive(&mut self) -> std::io::Result<Frame> {
        loop {
            if let Some(frame) = self.parser.next_frame().expect("the server keeps to the protocol") {
                return Ok(frame);
            }
            let mut bytes = vec![0; 64 << 10];
            match self.stream.read(&mut bytes)? {
                0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                length => self.parser.feed(bytes[..length].to_vec().into()),
            }
        }
    }

    /// Sends a command and waits for its reply.
    pub fn try_call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> std::io::Result<Frame> {
        self.send(&encode(arguments))?;
        self.receive()
    }

    pub fn call<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Frame {
        self.try_call(arguments).unwrap()
    }

    /// The reply as text: of an array, of all that it has.
    pub fn text<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> String {
        text(&self.call(arguments))
    }

    /// Everything that the server says until it closes the connection, after it is told that nothing more comes.
    pub fn finish(mut self) -> Vec<u8> {
        self.stream.shutdown(Shutdown::Write).unwrap();
        let mut bytes = Vec::new();
        // A server that closes with something unread resets the connection.
        let _ = self.stream.read_to_end(&mut bytes);
        bytes
    }
}

/// The next reply of a server that does not close the connection, as text.
pub fn received(client: &mut Client) -> String {
    text(&client.receive().unwrap())
}

/// Waits until something is so; `wanted` is what it is that does not come.
pub fn until(wanted: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{wanted}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A reply in words.
pub fn text(frame: &Frame) -> String {
    match frame {
        Frame::SimpleString(bytes) | Frame::BulkString(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        Frame::Error(bytes) => format!("-{}", String::from_utf8_lossy(bytes)),
        Frame::Integer(number) => number.to_string(),
        Frame::BulkString(None) | Frame::Array(None) => "nil".into(),
        Frame::Array(Some(frames)) => frames.iter().map(text).collect::<Vec<_>>().join(" "),
    }
}
