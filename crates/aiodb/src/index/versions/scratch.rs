//! Files that die with their process: no name and no byte of them is made durable, and opening a store removes what is left of them.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::io::{Access, Device, File, WriteSync};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Rank, RwLock};
use crate::{Error, Result};

/// A place for such files. Whoever uses it need not know what device that is on.
pub(crate) trait Scratch: Send + Sync {
    /// Makes a file.
    fn create(&self) -> Result<Box<dyn ScratchFile>>;
    /// Bytes that are free there; `None` where the system cannot say.
    fn free_bytes(&self) -> Option<u64>;
    /// Its directory.
    fn path(&self) -> &Path;
    /// No file is made, read or removed any more, once all that are there are removed.
    fn close(&self) -> Result<()>;
}

/// One of them. It is removed when it is dropped.
pub(crate) trait ScratchFile: Send + Sync {
    /// Its number among all files of this process, from which its checksums start.
    fn number(&self) -> u64;
    /// Its path, for errors.
    fn path(&self) -> &Path;
    /// Fills a buffer. Offset and length are multiples of a unit, and the buffer is aligned.
    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()>;
    /// Writes whole units.
    fn write(&self, bytes: &[u8], offset: u64) -> Result<()>;
    /// Says that nothing more will be written.
    fn finish(&self) -> Result<()>;
    /// For [`device_file`].
    fn as_any(&self) -> &dyn Any;
}

/// The file itself, for a queue of reads.
pub(crate) fn device_file<D: Device>(file: &dyn ScratchFile) -> &D::File {
    let file: &FileOfDirectory<D> = file.as_any().downcast_ref().expect("a store's files are of one device");
    &file.file
}

/// How the names of files end.
const SUFFIX: &str = ".versions";

/// The number of the first file.
const FIRST: u64 = 1;

/// A directory of a device.
pub(crate) struct ScratchDirectory<D: Device> {
    device: D,
    path: PathBuf,
    /// The number of the next file. Relaxed: all that matters is that none is given away twice.
    next: AtomicU64,
    gate: Arc<Gate>,
}

/// Whether files may still be made, read and removed: a reader may hold some beyond the end of its store, when another process may have
/// given the same names to others.
#[derive(Default)]
struct Gate {
    /// Held for reading while a file is made or removed.
    is_closed: RwLock<bool, { Rank::Scratch as u8 }>,
}

impl Gate {
    /// Does something with a file, unless it is closed.
    fn unless_closed<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let is_closed = self.is_closed.read().expect(NO_PANIC);
        (!*is_closed).then(work)
    }
}

/// Why a lock is never found poisoned.
const NO_PANIC: &str = "no code panics while it makes or removes a file";

impl<D: Device> ScratchDirectory<D> {
    /// A directory, which is made with its first file.
    pub(crate) fn new(device: &D, path: PathBuf) -> ScratchDirectory<D> {
        ScratchDirectory { device: device.clone(), path, next: AtomicU64::new(FIRST), gate: Arc::default() }
    }

    /// Removes what an earlier process has left.
    pub(crate) fn clear(&self) -> Result<()> {
        let names = match self.device.list(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            names => names.map_err(|e| Error::io("list", &self.path, &e))?,
        };
        for name in names.into_iter().filter(|name| name.ends_with(SUFFIX)) {
            let path = self.path.join(name);
            match self.device.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io("remove", &path, &error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl<D: Device> Scratch for ScratchDirectory<D> {
    fn create(&self) -> Result<Box<dyn ScratchFile>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path = self.path.join(format!("{number:012}{SUFFIX}"));
        let made = self.gate.unless_closed(|| {
            self.device.create_dir(&self.path).map_err(|e| Error::io("create", &self.path, &e))?;
            self.device.open(&path, Access::NEW_SEGMENT).map_err(|e| Error::io("create", &path, &e))
        });
        let file = made.ok_or(Error::Closed)??;
        let (device, gate) = (self.device.clone(), Arc::clone(&self.gate));
        Ok(Box::new(FileOfDirectory { device, gate, number, path, file }))
    }

    fn free_bytes(&self) -> Option<u64> {
        // The directory may not be there yet.
        let parent = self.path.parent().unwrap_or(&self.path);
        self.device.free_bytes(parent)
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn close(&self) -> Result<()> {
        let mut is_closed = self.gate.is_closed.write().expect(NO_PANIC);
        let had_none = self.next.load(Ordering::Relaxed) == FIRST;
        if std::mem::replace(&mut *is_closed, true) || had_none {
            return Ok(());
        }
        self.clear()
    }
}

/// A file of such a directory.
struct FileOfDirectory<D: Device> {
    device: D,
    gate: Arc<Gate>,
    number: u64,
    path: PathBuf,
    file: D::File,
}

impl<D: Device> ScratchFile for FileOfDirectory<D> {
    fn number(&self) -> u64 {
        self.number
    }

    fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        if self.gate.unless_closed(|| ()).is_none() {
            return Err(Error::Closed);
        }
        let bytes = self.file.read_at(buffer, offset).map_err(|e| Error::io("read", &self.path, &e))?;
        if bytes < buffer.len() {
            let what = "the file ends too early".to_string();
            return Err(Error::Corruption { path: self.path.clone(), offset: offset + bytes as u64, what });
        }
        Ok(())
    }

    fn write(&self, bytes: &[u8], offset: u64) -> Result<()> {
        let written = self.file.write_at(bytes, offset, WriteSync::Later);
        written.map_err(|e| Error::io("write", &self.path, &e))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn finish(&self) -> Result<()> {
        // Not for durability: the device leaves the descriptor of a file open of which it has unflushed bytes, and has few of them.
        self.file.sync().map_err(|e| Error::io("flush", &self.path, &e))
    }
}

impl<D: Device> Drop for FileOfDirectory<D> {
    fn drop(&mut self) {
        self.gate.unless_closed(|| {
            // If one of these fails, the end of the store or the next opening removes the file.
            let _ = self.file.truncate(0);
            let _ = self.device.remove(&self.path);
        });
    }
}
