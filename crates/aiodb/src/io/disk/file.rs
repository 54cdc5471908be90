//! An open file of the kernel's.

use std::fs::{File as SystemFile, Metadata, OpenOptions};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, TryLockError, Weak};
use std::time::SystemTime;

use super::descriptors::{Descriptor, Descriptors};
use crate::io::{Access, File, WriteSync};

/// An open file; clones share it, and the last one closes it.
#[derive(Clone)]
pub struct DiskFile(Arc<OpenFile>);

pub(in crate::io) struct OpenFile {
    descriptor: Arc<Descriptor>,
    /// The alignment that transfers must have: 1 through the page cache.
    block_bytes: usize,
    /// Of a segment: its descriptor is closed and opened again as others need one.
    again: Option<Again>,
}

/// How a file is opened again.
struct Again {
    table: Arc<Descriptors>,
    /// Locked while the file is opened or renamed.
    path: Mutex<PathBuf>,
    access: Access,
    identity: Identity,
}

/// The identity of a file, whatever its name. The number alone is none: after a removal it is given to a file made later.
#[derive(PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
    /// `None` where the file system does not note it.
    made: Option<SystemTime>,
}

impl Identity {
    fn of(metadata: &Metadata) -> Identity {
        Identity { device: metadata.dev(), number: metadata.ino(), made: metadata.created().ok() }
    }
}

/// A use of a file's descriptor, which stays open until this is dropped. It lasts for one system call: a thread that
/// has a use must not wait for another.
pub(in crate::io) struct InUse<F: Deref<Target = OpenFile>> {
    file: F,
    open: ManuallyDrop<SystemFile>,
}

impl<F: Deref<Target = OpenFile>> InUse<F> {
    /// Begins a use. `None` if it would have to wait for another use to end, and `wait` is false.
    #[inline]
    fn begin(file: F, wait: bool) -> io::Result<Option<InUse<F>>> {
        if !file.descriptor.begin_use() && !file.reopen(wait)? {
            return Ok(None);
        }
        // SAFETY: the descriptor stays open while it is in use, and only its table closes it.
        let open = ManuallyDrop::new(unsafe { SystemFile::from_raw_fd(file.descriptor.raw_fd()) });
        Ok(Some(InUse { file, open }))
    }

    pub(in crate::io) fn raw_fd(&self) -> RawFd {
        self.open.as_raw_fd()
    }

    /// The part that all clones share; its address identifies the open file.
    pub(in crate::io) fn shared(&self) -> &OpenFile {
        &self.file
    }
}

impl InUse<Arc<OpenFile>> {
    /// Tells later whether a clone of the file is left, without being one.
    pub(in crate::io) fn downgrade(&self) -> Weak<OpenFile> {
        Arc::downgrade(&self.file)
    }
}

impl<F: Deref<Target = OpenFile>> Drop for InUse<F> {
    #[inline]
    fn drop(&mut self) {
        if self.file.descriptor.end_use()
            && let Some(again) = &self.file.again
        {
            again.table.tell_waiters();
        }
    }
}

impl OpenFile {
    pub(in crate::io) fn raw_fd(&self) -> RawFd {
        self.descriptor.raw_fd()
    }

    /// Opens the file again and begins a use. False if it would have to wait, and `wait` is false.
    #[cold]
    fn reopen(&self, wait: bool) -> io::Result<bool> {
        let again = self.again.as_ref().expect("only a file that can be opened again is closed while it is used");
        let path = match again.path.try_lock() {
            Ok(path) => path,
            // The thread that opens it may wait for a descriptor that the caller uses.
            Err(TryLockError::WouldBlock) if !wait => return Ok(false),
            Err(_) => again.path.lock().expect(UNPOISONED),
        };
        if self.descriptor.begin_use() {
            return Ok(true);
        }
        let Some(place) = again.table.place(wait)? else { return Ok(false) };
        let open = || open_options(again.access).open(&*path);
        let Some(file) = again.table.open_with(wait, open).map_err(|e| lost(&e))? else { return Ok(false) };
        if Identity::of(&file.metadata()?) != again.identity {
            return Err(io::Error::other("another file has taken its place while the store was open"));
        }
        place.fill_again(&self.descriptor, OwnedFd::from(file));
        Ok(true)
    }
}

/// The error when a file that was opened before is gone: not `NotFound`, which would answer the question whether it exists.
fn lost(error: &io::Error) -> io::Error {
    match (error.kind(), error.raw_os_error()) {
        (io::ErrorKind::NotFound, _) => io::Error::other("the file was removed or moved while the store was open"),
        (_, Some(number)) => io::Error::from_raw_os_error(number),
        (kind, None) => io::Error::new(kind, error.to_string()),
    }
}

const UNPOISONED: &str = "no code panics while it opens or renames a file";

impl Drop for OpenFile {
    fn drop(&mut self) {
        if let Some(again) = &self.again {
            again.table.remove(&self.descriptor);
        }
    }
}

impl DiskFile {
    /// A file that keeps its descriptor.
    pub(in crate::io) fn new(file: SystemFile, block_bytes: usize) -> DiskFile {
        let descriptor = Arc::new(Descriptor::new(OwnedFd::from(file)));
        DiskFile(Arc::new(OpenFile { descriptor, block_bytes, again: None }))
    }

    /// Opens a file whose descriptor lies in a table. It must not be renamed but by [`DiskFile::rename`].
    pub(super) fn open_in(
        table: &Arc<Descriptors>,
        path: &Path,
        access: Access,
        block_bytes: usize,
    ) -> io::Result<DiskFile> {
        // It is found again whatever directory the process goes to.
        let path = std::path::absolute(path)?;
        let place = table.place(true)?.expect("it was to wait");
        let opened = table.open_with(true, || open_options(access).open(&path))?;
        let file = opened.expect("it was to wait");
        let identity = Identity::of(&file.metadata()?);
        let descriptor = Arc::new(Descriptor::new(OwnedFd::from(file)));
        place.fill(&descriptor);
        let access = Access { create: false, ..access };
        let again = Again { table: Arc::clone(table), path: Mutex::new(path), access, identity };
        Ok(DiskFile(Arc::new(OpenFile { descriptor, block_bytes, again: Some(again) })))
    }

    /// Renames the file with a call that does so, if it is the one with this name. `None` if it is another.
    pub(super) fn rename(
        &self,
        from: &Path,
        to: &Path,
        rename: &mut dyn FnMut() -> io::Result<()>,
    ) -> Option<io::Result<()>> {
        let mut path = self.0.again.as_ref()?.path.lock().expect(UNPOISONED);
        if *path != *from {
            return None;
        }
        Some(rename().map(|()| *path = to.to_path_buf()))
    }

    /// Uses the descriptor for a system call.
    #[inline]
    pub(in crate::io) fn using(&self) -> io::Result<InUse<&OpenFile>> {
        Ok(InUse::begin(&*self.0, true)?.expect("it was to wait"))
    }

    /// The same for a call that concerns other files too, with a claim on the file.
    pub(in crate::io) fn claim(&self) -> io::Result<InUse<Arc<OpenFile>>> {
        Ok(InUse::begin(Arc::clone(&self.0), true)?.expect("it was to wait"))
    }

    /// [`DiskFile::claim`] for a caller that uses other descriptors already, and so must not wait: `None` if all are in use.
    pub(in crate::io) fn try_claim(&self) -> io::Result<Option<InUse<Arc<OpenFile>>>> {
        InUse::begin(Arc::clone(&self.0), false)
    }

    pub(super) fn upgrade(file: &Weak<OpenFile>) -> Option<DiskFile> {
        file.upgrade().map(DiskFile)
    }

    pub(super) fn is(&self, other: &Weak<OpenFile>) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.0), other.as_ptr())
    }

    pub(super) fn downgrade(&self) -> Weak<OpenFile> {
        Arc::downgrade(&self.0)
    }

    /// One positional read, as the kernel does it: possibly short or interrupted.
    ///
    /// # Safety
    /// `buffer .. buffer + length` must be valid for writes, and used by the kernel alone meanwhile.
    pub(in crate::io) unsafe fn read_once(&self, buffer: *mut u8, length: usize, offset: u64) -> io::Result<usize> {
        let used = self.using()?;
        // SAFETY: promised by the caller.
        let transferred = unsafe { libc::pread64(used.raw_fd(), buffer.cast(), length, offset as i64) };
        transferred_bytes(transferred)
    }

    fn write_once(&self, bytes: &[u8], offset: u64, sync: WriteSync) -> io::Result<usize> {
        let used = self.using()?;
        if sync == WriteSync::Later {
            let written = used.open.write_at(bytes, offset);
            // Not before the write, or a flush in between would take it for its own.
            self.0.descriptor.set_unflushed(true);
            return written;
        }
        let part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: the kernel only reads the bytes, which stay borrowed during the call.
        let transferred = unsafe { libc::pwritev2(used.raw_fd(), &part, 1, offset as i64, libc::RWF_DSYNC) };
        transferred_bytes(transferred)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.using()?.open.set_len(length)
    }

    /// Allocates space for the first `length` bytes. False where the file system has no such operation.
    fn allocate(&self, length: u64) -> io::Result<bool> {
        let used = self.using()?;
        loop {
            // SAFETY: the call takes numbers only.
            if unsafe { libc::fallocate64(used.raw_fd(), 0, 0, length as i64) } == 0 {
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

    /// Makes the file exactly `length` bytes, all of them backed by space; bytes up to there stay as they are. Unlike
    /// [`File::reserve`] it writes zeros where the file system cannot allocate.
    pub(super) fn resize_backed(&self, length: u64) -> io::Result<()> {
        let before = self.length()?;
        if before > length {
            self.set_length(length)?;
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

    /// After a refusal for want of space, gives back the space that was gained; returns the error to report.
    fn give_back(&self, length: u64, error: io::Error) -> io::Error {
        // A quota that is used up is a full disk to its owner.
        let full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if !full {
            return error;
        }
        match self.length().and_then(|now| if now > length { self.set_length(length) } else { Ok(()) }) {
            Ok(()) => io::Error::new(io::ErrorKind::StorageFull, error),
            Err(second) => {
                io::Error::new(io::ErrorKind::StorageFull, format!("{error}; and giving back the space: {second}"))
            }
        }
    }
}

impl File for DiskFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let used = self.using()?;
        let mut filled = 0;
        while filled < buffer.len() {
            match used.open.read_at(&mut buffer[filled..], offset + filled as u64) {
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
        let used = self.using()?;
        self.0.descriptor.set_unflushed(false);
        // Not `sync_data`, which repeats the call after an interruption.
        // SAFETY: the call takes a number only.
        match unsafe { libc::fdatasync(used.raw_fd()) } {
            0 => Ok(()),
            _ => {
                let error = io::Error::last_os_error();
                self.0.descriptor.set_unflushed(true);
                Err(error)
            }
        }
    }

    fn reserve(&self, length: u64) -> io::Result<bool> {
        let before = self.length()?;
        let reserved = self.allocate(length).map_err(|error| self.give_back(before, error))?;
        if !reserved && before < length {
            self.set_length(length)?;
        }
        Ok(reserved)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.using()?.open.metadata()?.len())
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        let used = self.using()?;
        used.open.set_len(length)?;
        if length == 0 {
            // All bytes are written back.
            self.0.descriptor.set_unflushed(false);
        }
        Ok(())
    }

    fn keep_open(&self) -> io::Result<()> {
        if !self.0.descriptor.is_kept() {
            self.using()?.shared().descriptor.keep();
        }
        Ok(())
    }

    fn let_go(&self) {
        if self.0.descriptor.let_go()
            && let Some(again) = &self.0.again
        {
            again.table.tell_waiters();
        }
    }
}

fn transferred_bytes(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

/// Opens a file that keeps its descriptor, bypassing the page cache with the given alignment, or through it.
pub(super) fn open_file(path: &Path, access: Access, direct_block_bytes: Option<usize>) -> io::Result<DiskFile> {
    let file = open_options(Access { direct: direct_block_bytes.is_some(), ..access }).open(path)?;
    Ok(DiskFile::new(file, direct_block_bytes.unwrap_or(1)))
}

/// The standard library adds `O_CLOEXEC`.
pub(super) fn open_options(access: Access) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(access.write).create(access.create);
    if access.direct {
        options.custom_flags(libc::O_DIRECT);
    }
    options
}
