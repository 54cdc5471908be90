//! A client's socket, with TLS or without.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// How long a client may take to hear that a connection with TLS is over.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Bytes from a client, and to it.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Waits for bytes, and adds them to a buffer that is given room for so many; 0 if none will come. Nothing is lost if this is
    /// cut off.
    pub(crate) async fn read(&mut self, buffer: &mut BytesMut, room: usize) -> io::Result<usize> {
        match self {
            // Nothing is kept for a client that sends nothing.
            Stream::Plain(stream) => loop {
                stream.readable().await?;
                buffer.reserve(room);
                match stream.try_read_buf(buffer) {
                    // A socket that was just accepted counts as readable until it is asked.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && buffer.is_empty() => {
                        *buffer = BytesMut::new();
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    read => return read,
                }
            },
            Stream::Tls(stream) => {
                buffer.reserve(room);
                stream.read_buf(buffer).await
            }
        }
    }

    /// Returns when the client has ended its side, or is gone, also while bytes that it sent before were not read; never, if the system has no
    /// descriptor left to watch for that.
    pub(crate) async fn hung_up(&self) {
        let socket = match self {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        };
        // What the socket itself has been told of must stay as it is: its bytes still count as readable.
        let other = socket.as_fd().try_clone_to_owned().and_then(|other| TcpStream::from_std(other.into()));
        if let Ok(other) = other {
            while let Ok(ready) = other.ready(Interest::READABLE).await {
                if ready.is_read_closed() {
                    return;
                }
                // Bytes have come, which are not for this. What comes after them is told anew.
                let _ = other.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
            }
        }
        std::future::pending().await
    }

    /// Takes bytes; how many. What is taken and not sent is kept if this is cut off, and sent by [`Stream::flush`].
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(stream) => stream.write(bytes).await,
            Stream::Tls(stream) => stream.write(bytes).await,
        }
    }

    /// Sends all that was taken.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(stream) => stream.flush().await,
        }
    }

    /// Ends the connection before it is dropped; with TLS the client is told, so that it knows that nothing is missing.
    pub(crate) async fn close(&mut self) {
        if let Stream::Tls(stream) = self {
            // A client that does not listen is gone.
            let _ = tokio::time::timeout(LAST_WORD, stream.shutdown()).await;
        }
    }
}

#[cfg(test)]
mod tests;
