//! Moving many bytes from files to somewhere else: the next piece is read while the last one is used.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use crate::io::{AlignedBuffer, File};
use crate::{Error, Result};

/// The stack of the thread that reads, in bytes: what threads have by default.
const STACK_BYTES: usize = 2 << 20;

/// Bytes that are read at a time: enough for a device to be at its best with one read after the other.
const PIECE_BYTES: u64 = 4 << 20;

/// The same when there is a limit: so small that other reads do not wait for long.
const PACED_PIECE_BYTES: u64 = 256 << 10;

/// One is being read, one waits, one is being used.
const BUFFERS: usize = 3;

/// A part of a file to be read.
pub(super) struct Job<F> {
    pub(super) file: F,
    /// For messages.
    pub(super) path: PathBuf,
    /// The first byte, and the one after the last. A file opened for direct I/O needs multiples of its block.
    pub(super) from: u64,
    pub(super) to: u64,
}

/// How fast to read.
pub(super) struct Pace<'a> {
    pub(super) bytes_per_second: Option<u64>,
    pub(super) clock_ms: &'a (dyn Fn() -> u64 + Sync),
}

/// Told of each piece: its job's position, its offset in the file, its bytes.
pub(super) type Take<'a> = &'a mut dyn FnMut(usize, u64, &[u8]) -> Result<()>;

struct Piece {
    job: usize,
    offset: u64,
    length: usize,
    buffer: AlignedBuffer,
}

/// Reads all jobs in their order and hands the pieces to `take`. Ends with the first error of either side.
pub(super) fn pump<F: File>(jobs: &[Job<F>], pace: &Pace<'_>, take: Take<'_>) -> Result<()> {
    pump_beside(jobs, pace, STACK_BYTES, take)
}

/// [`pump`] with a thread that reads, and has so large a stack. Where none can be made the caller's thread reads too.
fn pump_beside<F: File>(jobs: &[Job<F>], pace: &Pace<'_>, stack_bytes: usize, take: Take<'_>) -> Result<()> {
    let most = if pace.bytes_per_second.is_some() { PACED_PIECE_BYTES } else { PIECE_BYTES };
    let piece_bytes = jobs.iter().map(|job| job.to - job.from).max().unwrap_or(0).min(most);
    if !F::READS_AHEAD {
        // Nor does a simulator wait for a pace.
        return pump_in_turn(jobs, None, piece_bytes, take);
    }
    std::thread::scope(|scope| {
        let (full_out, full_in) = sync_channel(1);
        let (empty_out, empty_in) = channel();
        for _ in 0..BUFFERS {
            empty_out.send(AlignedBuffer::new(piece_bytes as usize)).expect("the other end is here");
        }
        let reader = std::thread::Builder::new().stack_size(stack_bytes);
        let started = reader.spawn_scoped(scope, move || read_all(jobs, pace, piece_bytes, &empty_in, &full_out));
        if started.is_err() {
            return pump_in_turn(jobs, Some(pace), piece_bytes, take);
        }
        for piece in full_in {
            let piece: Piece = piece?;
            take(piece.job, piece.offset, &piece.buffer[..piece.length])?;
            // After the last piece the reader is gone.
            let _ = empty_out.send(piece.buffer);
        }
        Ok(())
    })
}

/// [`pump`] without a second thread.
fn pump_in_turn<F: File>(jobs: &[Job<F>], pace: Option<&Pace<'_>>, piece_bytes: u64, take: Take<'_>) -> Result<()> {
    let mut paced = pace.map(Paced::begin);
    let mut buffer = AlignedBuffer::new(piece_bytes as usize);
    for (number, job) in jobs.iter().enumerate() {
        for offset in (job.from..job.to).step_by(piece_bytes.max(1) as usize) {
            let piece = &mut buffer[..piece_bytes.min(job.to - offset) as usize];
            read_whole(job, offset, piece)?;
            take(number, offset, piece)?;
            if let Some(paced) = &mut paced {
                paced.wait(piece.len() as u64);
            }
        }
    }
    Ok(())
}

/// A pace that is kept since a moment.
struct Paced<'a> {
    pace: &'a Pace<'a>,
    started_ms: u64,
    read_bytes: u64,
}

impl<'a> Paced<'a> {
    fn begin(pace: &'a Pace<'a>) -> Paced<'a> {
        Paced { pace, started_ms: (pace.clock_ms)(), read_bytes: 0 }
    }

    /// Waits until so many more bytes may have been read.
    fn wait(&mut self, bytes: u64) {
        std::thread::sleep(self.ahead(bytes));
    }

    /// By how much the reads are ahead of the pace, with so many more bytes.
    fn ahead(&mut self, bytes: u64) -> Duration {
        self.read_bytes += bytes;
        let Some(rate) = self.pace.bytes_per_second else { return Duration::ZERO };
        let due_ms = (u128::from(self.read_bytes) * 1000 / u128::from(rate.max(1))) as u64;
        let passed_ms = (self.pace.clock_ms)() - self.started_ms;
        Duration::from_millis(due_ms.saturating_sub(passed_ms))
    }
}

/// Ends early when the pieces are not taken any more.
fn read_all<F: File>(
    jobs: &[Job<F>],
    pace: &Pace<'_>,
    piece_bytes: u64,
    empty: &Receiver<AlignedBuffer>,
    full: &SyncSender<Result<Piece>>,
) {
    let mut paced = Paced::begin(pace);
    for (number, job) in jobs.iter().enumerate() {
        let mut offset = job.from;
        while offset < job.to {
            let Ok(mut buffer) = empty.recv() else { return };
            let length = piece_bytes.min(job.to - offset) as usize;
            let read = read_whole(job, offset, &mut buffer[..length]);
            if full.send(read.map(|()| Piece { job: number, offset, length, buffer })).is_err() {
                return;
            }
            offset += length as u64;
            paced.wait(length as u64);
        }
    }
}

fn read_whole<F: File>(job: &Job<F>, offset: u64, buffer: &mut [u8]) -> Result<()> {
    let read = job.file.read_at(buffer, offset).map_err(|e| Error::io("read", &job.path, &e))?;
    if read < buffer.len() {
        let what = "the file ends too early; restore it from another copy".to_string();
        return Err(Error::Corruption { path: job.path.clone(), offset: offset + read as u64, what });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
