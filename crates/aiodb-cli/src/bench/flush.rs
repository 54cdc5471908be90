//! What the disk itself can write: durable 4 KiB overwrites and large sequential writes, past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aiodb::io::AlignedBuffer;

use super::round::{self, Tally};
use crate::CliError;

/// One durable write.
pub(crate) const FLUSH_BYTES: usize = 4096;

/// One sequential write.
pub(crate) const SEQUENTIAL_BYTES: usize = 1 << 20;

/// Enough that no cache inside the disk holds it all, little enough to be prewritten in a second.
const FILE_BYTES: u64 = 256 << 20;

/// Sequential writes in flight.
const SEQUENTIAL_IN_FLIGHT: usize = 4;

/// A file written in full before, as a log's segments are: a first write to a block costs several times as much.
pub(crate) struct WriteTarget {
    file: File,
}

impl WriteTarget {
    pub(crate) fn create(path: &Path) -> Result<WriteTarget, CliError> {
        let make = || -> io::Result<WriteTarget> {
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).custom_flags(libc::O_DIRECT).open(path)?;
            let buffer = noise(SEQUENTIAL_BYTES);
            for offset in (0..FILE_BYTES).step_by(SEQUENTIAL_BYTES) {
                file.write_all_at(&buffer, offset)?;
            }
            file.sync_all()?;
            Ok(WriteTarget { file })
        };
        make().map_err(|error| CliError::failed(format!("cannot write {} directly: {error}", path.display())))
    }

    /// Overwrites of 4 KiB per second, each durable when it returns (`O_DIRECT` and `RWF_DSYNC`), `in_flight` at once.
    pub(crate) fn flushes_per_s(&self, in_flight: usize, duration: Duration) -> Result<f64, CliError> {
        self.flushes_of(FLUSH_BYTES, in_flight, duration)
    }

    /// The same with overwrites of `write_bytes`, a multiple of 4 KiB.
    pub(crate) fn flushes_of(&self, write_bytes: usize, in_flight: usize, duration: Duration) -> Result<f64, CliError> {
        self.rate(in_flight, write_bytes, duration, |buffer, offset| write_durably(&self.file, buffer, offset))
    }

    /// Bytes per second of large direct writes one after another; not flushed.
    pub(crate) fn sequential_bytes_per_s(&self, duration: Duration) -> Result<f64, CliError> {
        let writes_per_s = self.rate(SEQUENTIAL_IN_FLIGHT, SEQUENTIAL_BYTES, duration, |buffer, offset| {
            self.file.write_all_at(buffer, offset)
        })?;
        Ok(writes_per_s * SEQUENTIAL_BYTES as f64)
    }

    /// Writes per second over ascending positions, which start again at the file's end.
    fn rate(
        &self,
        in_flight: usize,
        write_bytes: usize,
        duration: Duration,
        write: impl Fn(&[u8], u64) -> io::Result<()> + Sync,
    ) -> Result<f64, CliError> {
        // Relaxed: it only shares out numbers.
        let next = AtomicU64::new(0);
        let work = |buffer: AlignedBuffer, start: Instant| {
            let mut finished = 0;
            loop {
                let offset = next.fetch_add(write_bytes as u64, Ordering::Relaxed) % (FILE_BYTES - write_bytes as u64);
                write(&buffer, offset)
                    .map_err(|error| CliError::failed(format!("a direct write to the disk failed: {error}")))?;
                finished += 1;
                let elapsed = start.elapsed();
                if elapsed >= duration {
                    return Ok(Tally::untimed(finished, finished, elapsed));
                }
            }
        };
        Ok(round::run(in_flight, None, |_| Ok(noise(write_bytes)), work)?.operations_per_s)
    }
}

/// Incompressible bytes, in case the disk compresses.
fn noise(length: usize) -> AlignedBuffer {
    let mut buffer = AlignedBuffer::new(length);
    fastrand::Rng::with_seed(length as u64).fill(&mut buffer);
    buffer
}

fn write_durably(file: &File, buffer: &[u8], offset: u64) -> io::Result<()> {
    let memory = libc::iovec { iov_base: buffer.as_ptr().cast_mut().cast(), iov_len: buffer.len() };
    // SAFETY: the vector describes `buffer`, which lives through the call and is only read from by a write.
    let written = unsafe { libc::pwritev2(file.as_raw_fd(), &memory, 1, offset as libc::off_t, libc::RWF_DSYNC) };
    match usize::try_from(written) {
        Ok(length) if length == buffer.len() => Ok(()),
        Ok(length) => Err(io::Error::other(format!("{length} of {} bytes were written", buffer.len()))),
        Err(_) => Err(io::Error::last_os_error()),
    }
}
