//! Finding out at run time what the kernel and the file system allow.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, process};

use super::file::{DiskFile, open_file};
use super::queue::{DiskQueue, QueueKind};
use crate::config::Backend;
use crate::error::{Error, Result};
use crate::io::reads::Reads;
use crate::io::{Access, AlignedBuffer, Device, File, Report, SECTOR_BYTES, UNIT_BYTES, WriteSync};

/// Reads in flight in a queue made on trial.
const TRIAL_DEPTH: usize = 2;

/// How the name of a file begins that is made to try out a directory.
const TRIAL_PREFIX: &str = ".aiodb-trial-";

/// Whether a file of this name was made to try out its directory. A process that was killed meanwhile has left it.
pub(crate) fn is_trial(name: &str) -> bool {
    name.starts_with(TRIAL_PREFIX)
}

/// Removes such files, if there are any among those with these names, from a directory.
pub(crate) fn remove_trials<D: Device>(device: &D, directory: &Path, names: &[String]) -> Result<()> {
    for path in names.iter().filter(|name| is_trial(name)).map(|name| directory.join(name)) {
        match device.remove(&path) {
            // Its process may have come to the end of its trial.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io("remove", &path, &error)),
            _ => {}
        }
    }
    Ok(())
}

/// A way to try out a directory.
pub(super) type Probe = fn(&Path, Backend, bool) -> Result<(QueueKind, Report)>;

/// Tries out each of the directories; returns the queue and the findings that hold in all of them.
pub(super) fn probe_all(dirs: &[&Path], backend: Backend, direct: bool, probe: Probe) -> Result<(QueueKind, Report)> {
    let (mut kind, mut common) = probe(dirs[0], backend, direct)?;
    if dirs.len() > 1 {
        common.fallbacks.iter_mut().for_each(|fallback| *fallback = in_directory(dirs[0], fallback));
    }
    for dir in &dirs[1..] {
        let (next, report) = probe(dir, backend, direct)?;
        kind = kind.max(next);
        common.direct &= report.direct;
        common.block_bytes = common.block_bytes.max(report.block_bytes);
        common.fallbacks.extend(report.fallbacks.iter().map(|fallback| in_directory(dir, fallback)));
    }
    common.backend = kind.name();
    Ok((kind, common))
}

fn in_directory(dir: &Path, fallback: &str) -> String {
    format!("in {}: {fallback}", dir.display())
}

/// Tries in `dir` the `backend` and the direct I/O that are asked for.
pub(super) fn probe(dir: &Path, backend: Backend, direct: bool) -> Result<(QueueKind, Report)> {
    let trial = Trial::new(dir).map_err(|error| Error::io("make and read a trial file in", dir, &error))?;
    probe_with(&trial, dir, backend, direct)
}

/// Tries in the directory of a store the `backend` and the direct I/O that are asked for, without writing.
pub(super) fn probe_reading(dir: &Path, backend: Backend, direct: bool) -> Result<(QueueKind, Report)> {
    match Trial::of_store(dir).map_err(|error| Error::io("read a file in", dir, &error))? {
        Some(trial) => probe_with(&trial, dir, backend, direct),
        None => {
            let fallbacks = vec!["direct I/O was not tried: there is no segment to read".to_string()];
            let report = Report { backend: "threads", direct: false, block_bytes: SECTOR_BYTES, fallbacks };
            Ok((QueueKind::Threads, report))
        }
    }
}

fn probe_with(trial: &Trial, dir: &Path, backend: Backend, direct: bool) -> Result<(QueueKind, Report)> {
    let failed = |error: io::Error| Error::io("read a trial file in", dir, &error);
    let mut fallbacks = Vec::new();
    let block_bytes = if direct { trial.alignment(&mut fallbacks) } else { None };
    let file = trial.open(block_bytes).map_err(failed)?;
    let report_bytes = block_bytes.unwrap_or(SECTOR_BYTES);
    let kind = match backend {
        Backend::Auto => first_working(trial, &file, report_bytes, block_bytes.is_some(), &mut fallbacks)?,
        Backend::Uring => forced(QueueKind::Uring, trial, &file, report_bytes)?,
        Backend::Libaio => forced(QueueKind::Libaio, trial, &file, report_bytes)?,
        Backend::Threads => forced(QueueKind::Threads, trial, &file, report_bytes)?,
    };
    let direct = block_bytes.is_some();
    Ok((kind, Report { backend: kind.name(), direct, block_bytes: report_bytes, fallbacks }))
}

fn forced(kind: QueueKind, trial: &Trial, file: &DiskFile, block_bytes: usize) -> Result<QueueKind> {
    match read_through(kind, trial, file, block_bytes) {
        Ok(()) => Ok(kind),
        Err(error) => Err(Error::Backend { backend: kind.name(), reason: error.to_string() }),
    }
}

fn first_working(
    trial: &Trial,
    file: &DiskFile,
    block_bytes: usize,
    direct: bool,
    fallbacks: &mut Vec<String>,
) -> Result<QueueKind> {
    // Reads through the page cache block the thread that submits them to libaio, so that it has no use there.
    let preferred = if direct { &[QueueKind::Uring, QueueKind::Libaio][..] } else { &[QueueKind::Uring] };
    for kind in preferred {
        match read_through(*kind, trial, file, block_bytes) {
            Ok(()) => return Ok(*kind),
            Err(error) => fallbacks.push(format!("{} was refused: {error}", kind.name())),
        }
    }
    forced(QueueKind::Threads, trial, file, block_bytes)
}

/// Reads the trial file through a queue of this kind, and compares the bytes.
fn read_through(kind: QueueKind, trial: &Trial, file: &DiskFile, block_bytes: usize) -> io::Result<()> {
    let queue = DiskQueue::new(kind, TRIAL_DEPTH)?;
    let mut reads = Reads::new(queue, TRIAL_DEPTH, UNIT_BYTES, block_bytes);
    reads.push(file, UNIT_BYTES as u64, UNIT_BYTES, 0);
    let done = reads.poll(true)?.expect("the read is in flight");
    done.outcome?;
    trial.compare(reads.bytes(done.slot), UNIT_BYTES)
}

/// A file whose first two units are known, removed when this is dropped unless it is the store's own.
struct Trial {
    path: PathBuf,
    is_store_file: bool,
    contents: Vec<u8>,
}

impl Trial {
    fn new(dir: &Path) -> io::Result<Trial> {
        // A store has a trial file for good, so that it can be opened when the disk is full.
        let trial = dir.join("pending").join("trial");
        if trial.parent().is_some_and(Path::is_dir) {
            return Trial { path: trial, is_store_file: true, contents: trial_bytes() }.filled();
        }
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("{TRIAL_PREFIX}{}-{}", process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Trial { path: dir.join(name), is_store_file: false, contents: trial_bytes() }.filled()
    }

    /// A file of a store as it is: its trial file, or else a segment. `None` if it has neither.
    fn of_store(dir: &Path) -> io::Result<Option<Trial>> {
        let mut candidates = vec![dir.join("pending").join("trial")];
        if let Ok(log) = std::fs::read_dir(dir.join("log")) {
            for entry in log {
                candidates.push(entry?.path());
            }
        }
        candidates.sort_by_key(|path| path.extension().is_some());
        for path in candidates {
            let mut contents = vec![0; 2 * UNIT_BYTES];
            let whole = open_file(&path, Access::READ, None).and_then(|file| file.read_at(&mut contents, 0));
            if whole.is_ok_and(|length| length == contents.len()) {
                return Ok(Some(Trial { path, is_store_file: true, contents }));
            }
        }
        Ok(None)
    }

    fn filled(self) -> io::Result<Trial> {
        if std::fs::read(&self.path).is_ok_and(|found| found == self.contents) {
            return Ok(self);
        }
        open_file(&self.path, Access::CREATE, None)?.write_at(&self.contents, 0, WriteSync::Later)?;
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
            self.compare(&part[..count], block_bytes)
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

impl Trial {
    fn compare(&self, bytes: &[u8], offset: usize) -> io::Result<()> {
        if !bytes.is_empty() && self.contents[offset..].starts_with(bytes) {
            Ok(())
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidData, "a trial read gave other bytes than the file has"))
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        if self.is_store_file {
            return;
        }
        // Where this fails the directory has become read-only, which the engine's own first write reports.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The bytes of a trial file: no two sectors are alike.
fn trial_bytes() -> Vec<u8> {
    (0..2 * UNIT_BYTES).map(|offset| (offset / SECTOR_BYTES * 31 + offset % SECTOR_BYTES) as u8).collect()
}
