//! Moving many bytes from files to somewhere else: the next piece is read while the last one is used.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;

use crate::io::{AlignedBuffer, File};
use crate::{Error, Result};

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
    let most = if pace.bytes_per_second.is_some() { PACED_PIECE_BYTES } else { PIECE_BYTES };
    let piece_bytes = jobs.iter().map(|job| job.to - job.from).max().unwrap_or(0).min(most);
    if !F::READS_AHEAD {
        return pump_in_turn(jobs, piece_bytes, take);
    }
    std::thread::scope(|scope| {
        let (full_out, full_in) = sync_channel(1);
        let (empty_out, empty_in) = channel();
        for _ in 0..BUFFERS {
            empty_out.send(AlignedBuffer::new(piece_bytes as usize)).expect("the other end is here");
        }
        scope.spawn(move || read_all(jobs, pace, piece_bytes, &empty_in, &full_out));
        for piece in full_in {
            let piece: Piece = piece?;
            take(piece.job, piece.offset, &piece.buffer[..piece.length])?;
            // After the last piece the reader is gone.
            let _ = empty_out.send(piece.buffer);
        }
        Ok(())
    })
}

/// [`pump`] without a second thread, and so without a pace.
fn pump_in_turn<F: File>(jobs: &[Job<F>], piece_bytes: u64, take: Take<'_>) -> Result<()> {
    let mut buffer = AlignedBuffer::new(piece_bytes as usize);
    for (number, job) in jobs.iter().enumerate() {
        for offset in (job.from..job.to).step_by(piece_bytes.max(1) as usize) {
            let piece = &mut buffer[..piece_bytes.min(job.to - offset) as usize];
            read_whole(job, offset, piece)?;
            take(number, offset, piece)?;
        }
    }
    Ok(())
}

/// Ends early when the pieces are not taken any more.
fn read_all<F: File>(
    jobs: &[Job<F>],
    pace: &Pace<'_>,
    piece_bytes: u64,
    empty: &Receiver<AlignedBuffer>,
    full: &SyncSender<Result<Piece>>,
) {
    let started_ms = (pace.clock_ms)();
    let mut read_bytes = 0;
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
            read_bytes += length as u64;
            if let Some(rate) = pace.bytes_per_second {
                let due_ms = (u128::from(read_bytes) * 1000 / u128::from(rate.max(1))) as u64;
                let passed_ms = (pace.clock_ms)() - started_ms;
                std::thread::sleep(Duration::from_millis(due_ms.saturating_sub(passed_ms)));
            }
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
