//! An open file of the kernel's.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Weak};

use crate::io::{File, WriteSync};

/// An open file; clones share it, and the last one closes it.
#[derive(Clone)]
pub struct DiskFile(Arc<OpenFile>);

pub(in crate::io) struct OpenFile {
    file: std::fs::File,
    /// The alignment that transfers must keep: 1 through the page cache.
    block_bytes: usize,
}

impl DiskFile {
    pub(in crate::io) fn new(file: std::fs::File, block_bytes: usize) -> DiskFile {
        DiskFile(Arc::new(OpenFile { file, block_bytes }))
    }

    pub(in crate::io) fn raw_fd(&self) -> RawFd {
        self.0.file.as_raw_fd()
    }

    /// What all clones share; its address identifies the open file.
    pub(in crate::io) fn opened(&self) -> *const OpenFile {
        Arc::as_ptr(&self.0)
    }

    /// Tells later whether the file is still open, without keeping it so.
    pub(in crate::io) fn downgrade(&self) -> Weak<OpenFile> {
        Arc::downgrade(&self.0)
    }

    /// One positional read, as the kernel does it: possibly short or interrupted.
    ///
    /// # Safety
    /// `buffer .. buffer + length` must be valid for writes, and nobody else may use it meanwhile.
    pub(in crate::io) unsafe fn read_once(&self, buffer: *mut u8, length: usize, offset: u64) -> io::Result<usize> {
        // SAFETY: promised by the caller.
        let transferred = unsafe { libc::pread64(self.raw_fd(), buffer.cast(), length, offset as i64) };
        transferred_bytes(transferred)
    }

    fn write_once(&self, bytes: &[u8], offset: u64, sync: WriteSync) -> io::Result<usize> {
        if sync == WriteSync::Later {
            return self.0.file.write_at(bytes, offset);
        }
        let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: the kernel only reads the bytes, which stay borrowed during the call.
        let transferred = unsafe { libc::pwritev2(self.raw_fd(), &part, 1, offset as i64, libc::RWF_DSYNC) };
        transferred_bytes(transferred)
    }

    /// Allocates space for the first `length` bytes. False where the file system has no such operation.
    fn allocate(&self, length: u64) -> io::Result<bool> {
        loop {
            // SAFETY: the call takes numbers only.
            if unsafe { libc::fallocate64(self.raw_fd(), 0, 0, length as i64) } == 0 {
                return Ok(true);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EOPNOTSUPP | libc::ENOSYS) => return Ok(false),
                _ => return Err(error),
            }
        }
    }

    /// Makes the file exactly `length` bytes, all of them backed by space, and keeps what it holds up to there. Unlike
    /// [`File::reserve`] it writes zeros where the file system cannot allocate.
    pub(super) fn resize_backed(&self, length: u64) -> io::Result<()> {
        let before = self.length()?;
        if before > length {
            self.0.file.set_len(length)?;
        }
        if self.allocate(length).map_err(|error| self.give_back(before, error))? {
            return Ok(());
        }
        let zeros = [0; 64 << 10];
        let mut offset = before;
        while offset < length {
            let count = zeros.len().min((length - offset) as usize);
            self.write_at(&zeros[..count], offset, WriteSync::Later).map_err(|error| self.give_back(before, error))?;
            offset += count as u64;
        }
        Ok(())
    }

    /// After a refusal for want of space, takes back what was gained; returns the error to report.
    fn give_back(&self, length: u64, error: io::Error) -> io::Error {
        // A quota that is used up is a full disk to whoever has it.
        let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if !full {
            return error;
        }
        match self.length().and_then(|now| if now > length { self.0.file.set_len(length) } else { Ok(()) }) {
            Ok(()) => io::Error::new(io::ErrorKind::StorageFull, error),
            Err(second) => {
                io::Error::new(io::ErrorKind::StorageFull, format!("{error}; and giving back the space: {second}"))
            }
        }
    }
}

impl File for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.file.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            // A direct read ends within a block only at the end of the file, and could not go on from there.
            if !filled.is_multiple_of(self.0.block_bytes) {
                break;
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64, sync: WriteSync) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            match self.write_once(&bytes[written..], offset + written as u64, sync) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        // Not `sync_data`, which repeats the call after an interruption.
        // SAFETY: the call takes a number only.
        match unsafe { libc::fdatasync(self.raw_fd()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn reserve(&self, length: u64) -> io::Result<bool> {
        let before = self.length()?;
        let reserved = self.allocate(length).map_err(|error| self.give_back(before, error))?;
        if !reserved && before < length {
            self.0.file.set_len(length)?;
        }
        Ok(reserved)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.file.metadata()?.len())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.0.file.set_len(length)
    }
}

fn transferred_bytes(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
