//! The kernel as a [`Device`].

mod descriptors;
pub(in crate::io) mod file;
mod probe;
mod queue;

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};

use descriptors::{Descriptors, for_system};
pub(crate) use descriptors::{LEAST_OPEN_FILES, with_descriptors};
pub use file::DiskFile;
use file::{OpenFile, open_file, open_options};
pub(crate) use probe::{is_trial, remove_trials};
pub use queue::DiskQueue;
use queue::QueueKind;

use super::memory::memory_bytes;
use super::{Access, Device, Mapping, OpenFiles, Report, SECTOR_BYTES};
use crate::config::Backend;
use crate::error::Result;

/// The disks of this machine, through the kernel. Clones share the findings at opening.
#[derive(Clone)]
pub struct Disk(Arc<Opened>);

struct Opened {
    kind: QueueKind,
    report: Report,
    /// [`boot_ns`] at opening.
    start_ns: u64,
    /// Of segments.
    descriptors: Arc<Descriptors>,
    /// Segments made here that were not renamed yet.
    unnamed: Mutex<Vec<Weak<OpenFile>>>,
}

impl Opened {
    fn new(kind: QueueKind, report: Report) -> Opened {
        Opened { kind, report, start_ns: boot_ns(), descriptors: Descriptors::new(0), unnamed: Mutex::default() }
    }
}

impl Disk {
    /// Finds out by trial, on a file made and removed in `dir`, how files there are best read: whether `O_DIRECT` is
    /// accepted (tried if `direct`), with which alignment, and which backend works. With a `backend` other than `Auto`
    /// that one must work. [`Device::report`] tells what was refused, and why.
    ///
    /// Raises the process's limit of open files as far as it may, since a store has many segments.
    pub fn open(dir: &Path, backend: Backend, direct: bool) -> Result<Disk> {
        Disk::open_several(&[dir], backend, direct)
    }

    /// Like [`Disk::open`] in several directories, for what works in all of them: the coarsest alignment, and `O_DIRECT`
    /// only if none refuses it.
    pub fn open_several(dirs: &[&Path], backend: Backend, direct: bool) -> Result<Disk> {
        Disk::probed(dirs, backend, direct, probe::probe)
    }

    /// Like [`Disk::open_several`] on directories of stores, with files that are there: nothing is written.
    pub fn open_to_read(dirs: &[&Path], backend: Backend, direct: bool) -> Result<Disk> {
        Disk::probed(dirs, backend, direct, probe::probe_reading)
    }

    fn probed(dirs: &[&Path], backend: Backend, direct: bool, probe: probe::Probe) -> Result<Disk> {
        raise_open_files_limit();
        let (kind, report) = probe::probe_all(dirs, backend, direct, probe)?;
        Ok(Disk(Arc::new(Opened::new(kind, report))))
    }

    /// The same disk for files to be opened from now on, of which so many with [`Access::direct`] have a descriptor at a
    /// time, at least 8. 0, the default, stands for as many as the process's limit leaves.
    pub fn with_max_open_files(self, most: usize) -> Disk {
        let opened = Opened::new(self.0.kind, self.0.report.clone());
        Disk(Arc::new(Opened { start_ns: self.0.start_ns, descriptors: Descriptors::new(most), ..opened }))
    }

    /// Files through the page cache, with nothing tried out: for directories that are only read.
    pub(crate) fn plain() -> Disk {
        let report = Report { backend: "threads", direct: false, block_bytes: SECTOR_BYTES, fallbacks: Vec::new() };
        Disk(Arc::new(Opened::new(QueueKind::Threads, report)))
    }

    fn unnamed(&self) -> std::sync::MutexGuard<'_, Vec<Weak<OpenFile>>> {
        self.0.unnamed.lock().expect("no code panics while it holds the list of new files")
    }
}

impl Device for Disk {
    type File = DiskFile;
    type Queue = DiskQueue;
    type Lock = DiskLock;

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let names =
            for_system(|| std::fs::read_dir(dir))?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names = names.collect::<io::Result<Vec<String>>>()?;
        names.sort_unstable();
        Ok(names)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<DiskFile> {
        if !access.direct {
            return for_system(|| open_file(path, access, None));
        }
        let access = Access { direct: self.0.report.direct, ..access };
        let block_bytes = if access.direct { self.0.report.block_bytes } else { 1 };
        let file = DiskFile::open_in(&self.0.descriptors, path, access, block_bytes)?;
        if access.create {
            let mut unnamed = self.unnamed();
            unnamed.retain(|file| file.strong_count() > 0);
            unnamed.push(file.downgrade());
        }
        Ok(file)
    }

    fn free_bytes(&self, path: &Path) -> Option<u64> {
        free_bytes(path).ok()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (std::path::absolute(from)?, std::path::absolute(to)?);
        let mut rename = || std::fs::rename(&from, &to);
        let new_files: Vec<_> = self.unnamed().iter().filter_map(DiskFile::upgrade).collect();
        let renamed = new_files.iter().find_map(|file| Some((file, file.rename(&from, &to, &mut rename)?)));
        let Some((file, outcome)) = renamed else { return rename() };
        if outcome.is_ok() {
            self.unnamed().retain(|other| !file.is(other));
        }
        outcome
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let dir = for_system(|| std::fs::File::open(dir))?;
        // SAFETY: the call takes a number only. Not `sync_all`, which repeats the call after an interruption.
        match unsafe { libc::fsync(dir.as_raw_fd()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn map(&self, path: &Path, length: usize) -> io::Result<Mapping> {
        assert!(length > 0, "a mapping of no bytes");
        let file = for_system(|| open_file(path, Access::CREATE, None))?;
        // A store into a page without space behind it would end the process (`SIGBUS`) on a full disk.
        file.resize_backed(length as u64)?;
        let map = memmap2::MmapOptions::new().len(length).map_raw(file.using()?.raw_fd())?;
        let map = Arc::new(map);
        let start = map.as_mut_ptr();
        // SAFETY: the map is page-aligned, has `length` bytes, is shared, readable and writable, lives as long as its
        // owner, and nothing else in this process has its address.
        Ok(unsafe { Mapping::new(start, length, map) })
    }

    fn lock(&self, path: &Path) -> io::Result<std::result::Result<DiskLock, String>> {
        let mut file = for_system(|| open_options(Access::CREATE).open(path))?;
        if let Some(holder) = flock(&mut file, libc::LOCK_EX)? {
            // Readers leave no name; a name that is there is of a process that wrote earlier.
            let only_read = flock(&mut file, libc::LOCK_SH)?.is_none();
            return Ok(Err(if only_read { "others that only read it".to_owned() } else { holder }));
        }
        // The name is for people. A full disk may have no room for it, and must be opened to be emptied.
        let _ = file.set_len(0);
        let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(own_name().as_bytes()));
        Ok(Ok(DiskLock { file: Some(file) }))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<std::result::Result<DiskLock, String>> {
        use io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
        let open = |access| for_system(|| open_options(access).open(path));
        let mut file = match open(Access::READ) {
            Err(error) if error.kind() == NotFound => match open(Access::CREATE) {
                // A copy on a medium where no process can make the file: then none can open it for writing either.
                Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
                    return Ok(Ok(DiskLock { file: None }));
                }
                made => made?,
            },
            opened => opened?,
        };
        Ok(match flock(&mut file, libc::LOCK_SH)? {
            Some(holder) => Err(holder),
            None => Ok(DiskLock { file: Some(file) }),
        })
    }

    fn queue(&self, depth: usize) -> io::Result<DiskQueue> {
        for_system(|| DiskQueue::new(self.0.kind, depth))
    }

    fn report(&self) -> Report {
        self.0.report.clone()
    }

    fn open_files(&self) -> OpenFiles {
        OpenFiles { open: self.0.descriptors.open(), most: self.0.descriptors.most() }
    }

    fn clock_ms(&self) -> u64 {
        self.clock_ns() / 1_000_000
    }

    fn clock_ns(&self) -> u64 {
        boot_ns() - self.0.start_ns
    }

    fn memory_bytes(&self) -> u64 {
        memory_bytes()
    }

    fn wall_ms(&self) -> u64 {
        let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 has not been set.
        since_1970.map_or(0, |time| time.as_millis() as u64)
    }

    fn random(&self) -> u64 {
        let mut bytes = [0; 8];
        // SAFETY: the buffer has the length given.
        let count = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        assert_eq!(count, bytes.len() as isize, "the kernel gives no random numbers");
        u64::from_le_bytes(bytes)
    }
}

/// The most that is read of a lock's text: a process's name is short.
const MAX_HOLDER_BYTES: u64 = 256;

/// The lock on a store, held until dropped. The kernel releases it when the process dies.
pub struct DiskLock {
    file: Option<std::fs::File>,
}

impl Drop for DiskLock {
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        // Closing alone would leave the lock with a child process that is between fork and exec.
        // SAFETY: the call takes numbers only.
        unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
    }
}

/// Takes a lock, or names the holder of one that excludes it: the name that the last exclusive holder has written there.
fn flock(file: &mut std::fs::File, kind: libc::c_int) -> io::Result<Option<String>> {
    // SAFETY: the call takes numbers only.
    if unsafe { libc::flock(file.as_raw_fd(), kind | libc::LOCK_NB) } == 0 {
        return Ok(None);
    }
    let error = io::Error::last_os_error();
    if error.kind() != io::ErrorKind::WouldBlock {
        return Err(error);
    }
    let mut holder = Vec::new();
    file.take(MAX_HOLDER_BYTES).read_to_end(&mut holder)?;
    let holder = String::from_utf8_lossy(&holder).trim().to_owned();
    // The holder may be between taking the lock and writing its name.
    Ok(Some(if holder.is_empty() { "another process".to_owned() } else { holder }))
}

/// Bytes that the file system of a path has left for users without privileges.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes())?;
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut stat: libc::statvfs64 = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte, and the structure is valid for writes.
    match unsafe { libc::statvfs64(path.as_ptr(), &mut stat) } {
        0 => Ok(stat.f_bavail * stat.f_frsize),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Nanoseconds since the machine was started. They pass while it is suspended, too, unlike those of [`std::time::Instant`]: so a
/// suspension puts off no work that is due, and does not look as if the system's clock had been set.
fn boot_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call takes a pointer to a valid structure.
    let outcome = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &mut time) };
    assert_eq!(outcome, 0, "the kernel has no clock that goes on while the machine is suspended");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The name of this process as the holder of a lock: `process 4242 (cassandra)`.
fn own_name() -> String {
    let command = std::fs::read_to_string("/proc/self/comm").unwrap_or_default();
    format!("process {} ({})", std::process::id(), command.trim())
}

/// Raises the soft limit of open files to the hard one. Where that fails the limit stays.
fn raise_open_files_limit() {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls take a pointer to a valid structure.
    unsafe {
        if libc::getrlimit64(libc::RLIMIT_NOFILE, &mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit64(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

#[cfg(test)]
mod tests;
