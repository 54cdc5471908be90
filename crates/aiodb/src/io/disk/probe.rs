//! Finding out at run time what the kernel and the file system allow.

use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{DiskFile, DiskQueue, QueueKind, open_file};
use crate::config::Backend;
use crate::error::{Error, Result};
use crate::io::reads::Reads;
use crate::io::{Access, AlignedBuffer, File, Report, SECTOR_BYTES, UNIT_BYTES, WriteSync};

/// Reads in flight in a queue made on trial.
const TRIAL_DEPTH: usize = 2;

/// Tries in `dir` what `backend` and `direct` ask for.
pub(super) fn probe(dir: &Path, backend: Backend, direct: bool) -> Result<(QueueKind, Report)> {
    let failed = |error: io::Error| Error::io("make and read a trial file in", dir, &error);
    let trial = Trial::new(dir).map_err(failed)?;
    let mut fallbacks = Vec::new();
    let block_bytes = if direct { trial.alignment(&mut fallbacks) } else { None };
    let file = trial.open(block_bytes).map_err(failed)?;
    let report_bytes = block_bytes.unwrap_or(SECTOR_BYTES);
    let kind = match backend {
        Backend::Auto => first_working(&file, report_bytes, block_bytes.is_some(), &mut fallbacks)?,
        Backend::Uring => forced(QueueKind::Uring, &file, report_bytes)?,
        Backend::Libaio => forced(QueueKind::Libaio, &file, report_bytes)?,
        Backend::Threads => forced(QueueKind::Threads, &file, report_bytes)?,
    };
    let direct = block_bytes.is_some();
    Ok((kind, Report { backend: kind.name(), direct, block_bytes: report_bytes, fallbacks }))
}

fn forced(kind: QueueKind, file: &DiskFile, block_bytes: usize) -> Result<QueueKind> {
    match read_through(kind, file, block_bytes) {
        Ok(()) => Ok(kind),
        Err(error) => Err(Error::Backend { backend: kind.name(), reason: error.to_string() }),
    }
}

fn first_working(file: &DiskFile, block_bytes: usize, direct: bool, fallbacks: &mut Vec<String>) -> Result<QueueKind> {
    // Reads through the page cache block the thread that submits them to libaio, so that it has no use there.
    let preferred = if direct { &[QueueKind::Uring, QueueKind::Libaio][..] } else { &[QueueKind::Uring] };
    for kind in preferred {
        match read_through(*kind, file, block_bytes) {
            Ok(()) => return Ok(*kind),
            Err(error) => fallbacks.push(format!("{} was refused: {error}", kind.name())),
        }
    }
    forced(QueueKind::Threads, file, block_bytes)
}

/// Reads the trial file through a queue of this kind, and looks at what came.
fn read_through(kind: QueueKind, file: &DiskFile, block_bytes: usize) -> io::Result<()> {
    let queue = DiskQueue::new(kind, TRIAL_DEPTH)?;
    let mut reads = Reads::new(queue, TRIAL_DEPTH, UNIT_BYTES, block_bytes);
    reads.push(file, UNIT_BYTES as u64, UNIT_BYTES, 0);
    let done = reads.poll(true)?.expect("the read is in flight");
    done.outcome?;
    compare(reads.bytes(done.slot), UNIT_BYTES)
}

/// A file with known contents, removed when this is dropped unless it is to be kept.
struct Trial {
    path: PathBuf,
    kept: bool,
}

impl Trial {
    fn new(dir: &Path) -> io::Result<Trial> {
        // A store keeps its trial file, so that it can be opened when the disk is full.
        let kept = dir.join("pending").join("trial");
        if kept.parent().is_some_and(Path::is_dir) {
            return Trial { path: kept, kept: true }.filled();
        }
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(".aiodb-trial-{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Trial { path: dir.join(name), kept: false }.filled()
    }

    fn filled(self) -> io::Result<Trial> {
        let contents: Vec<u8> = (0..2 * UNIT_BYTES).map(expected_byte).collect();
        if std::fs::read(&self.path).is_ok_and(|found| found == contents) {
            return Ok(self);
        }
        open_file(&self.path, Access::CREATE, None)?.write_at(&contents, 0, WriteSync::Later)?;
        Ok(self)
    }

    fn open(&self, direct_block_bytes: Option<usize>) -> io::Result<DiskFile> {
        open_file(&self.path, Access::READ, direct_block_bytes)
    }

    /// The finest alignment with which a direct read succeeds; `None` if none does.
    fn alignment(&self, fallbacks: &mut Vec<String>) -> Option<usize> {
        let read = |block_bytes: usize| {
            let mut buffer = AlignedBuffer::new(2 * UNIT_BYTES);
            // Neither the offset nor the address is a multiple of more than the block.
            let part = &mut buffer[block_bytes..2 * block_bytes];
            let count = self.open(Some(block_bytes))?.read_at(part, block_bytes as u64)?;
            compare(&part[..count], block_bytes)
        };
        match read(SECTOR_BYTES).map(|()| SECTOR_BYTES).or_else(|_| read(UNIT_BYTES).map(|()| UNIT_BYTES)) {
            Ok(block_bytes) => Some(block_bytes),
            Err(error) => {
                fallbacks.push(format!("O_DIRECT was refused: {error}"));
                None
            }
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        // Where this fails the directory has become read-only, which the engine's own first write reports.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The trial file's byte at an offset: no two sectors are alike.
fn expected_byte(offset: usize) -> u8 {
    (offset / SECTOR_BYTES * 31 + offset % SECTOR_BYTES) as u8
}

fn compare(bytes: &[u8], offset: usize) -> io::Result<()> {
    let same = !bytes.is_empty() && bytes.iter().enumerate().all(|(at, byte)| *byte == expected_byte(offset + at));
    if same {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "a trial read gave other bytes than written"))
    }
}
