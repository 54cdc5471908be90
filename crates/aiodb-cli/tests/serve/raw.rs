//! The same bytes from this server as from a real one.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::client::{PATIENCE, encode};
use crate::server::Both;

/// How long a server is listened to after a command. What comes later counts with the next one.
const QUIET: Duration = Duration::from_millis(40);

/// A connection to each server.
pub struct RawPair {
    ours: TcpStream,
    theirs: TcpStream,
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// What comes until it is quiet.
fn read_some(stream: &mut TcpStream) -> Vec<u8> {
    stream.set_read_timeout(Some(QUIET)).unwrap();
    let (mut bytes, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return bytes,
            Ok(length) => bytes.extend(&buffer[..length]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return bytes,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Whether both answer commands alike in the second version of the protocol, and others in the third.
pub fn agree_in_both_versions(both: &Both, script: &str, script_resp3: &str) {
    let mut pair = RawPair::connect(both);
    pair.agree_on(script);
    pair.finish();
    let mut pair = RawPair::connect(both);
    pair.speak_resp3();
    pair.agree_on(script_resp3);
    pair.finish();
}

/// So many bytes, or what there is before the connection ends.
fn read_exactly(stream: &mut TcpStream, length: usize) -> Vec<u8> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes).unwrap_or_else(|error| panic!("{error} after {bytes:?}"));
    bytes
}

impl RawPair {
    pub fn connect(both: &Both) -> RawPair {
        RawPair::of(both.server.address, both.redis.address)
    }

    pub fn of(ours: SocketAddr, theirs: SocketAddr) -> RawPair {
        RawPair { ours: connect(ours), theirs: connect(theirs) }
    }

    /// Chooses the third version of the protocol. The greetings differ in the number of the connection.
    pub fn speak_resp3(&mut self) {
        for stream in [&mut self.ours, &mut self.theirs] {
            stream.write_all(&encode(&["hello", "3"])).unwrap();
            let mut greeting = Vec::new();
            while !greeting.ends_with(b"modules\r\n*0\r\n") {
                let byte = read_exactly(stream, 1);
                assert!(!byte.is_empty(), "the connection ended");
                greeting.extend(byte);
            }
        }
    }

    /// Sends both a command; the bytes that both answer.
    pub fn agree<A: AsRef<[u8]>>(&mut self, arguments: &[A]) -> Vec<u8> {
        for stream in [&mut self.ours, &mut self.theirs] {
            stream.write_all(&encode(arguments)).unwrap();
        }
        let theirs = read_some(&mut self.theirs);
        let ours = read_exactly(&mut self.ours, theirs.len());
        let shown: Vec<_> = arguments.iter().map(|argument| String::from_utf8_lossy(argument.as_ref())).collect();
        let [ours_text, theirs_text] = [&ours, &theirs].map(|bytes| String::from_utf8_lossy(bytes));
        assert_eq!(ours_text, theirs_text, "to {shown:?}: ours, theirs");
        ours
    }

    /// Sends both commands, of which each is a line.
    pub fn agree_on(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let arguments: Vec<&str> = line.split(' ').map(|word| if word == "''" { "" } else { word }).collect();
            self.agree(&arguments);
        }
    }

    /// Whether both say the same until they close the connection.
    pub fn finish(mut self) {
        let rest = [&mut self.ours, &mut self.theirs].map(|stream| {
            stream.shutdown(Shutdown::Write).unwrap();
            String::from_utf8_lossy(&read_exactly(stream, usize::MAX >> 1)).into_owned()
        });
        assert_eq!(rest[0], rest[1]);
    }
}
