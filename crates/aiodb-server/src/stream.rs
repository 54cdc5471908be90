//! A client's socket, with TLS or without.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
