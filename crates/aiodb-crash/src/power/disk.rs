//! A disk that records what reaches it, and the kernel's ways to it.

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, UNIX_EPOCH};

/// The disk's only file.
const FILE: &str = "disk";
const FILE_NUMBER: INodeNo = INodeNo(2);

/// Bytes that a disk writes whole or not at all.
pub const SECTOR_BYTES: usize = 512;

/// A request that reached the disk.
pub enum Entry {
    /// Bytes for an offset; a power cut may take them until the next flush.
    Write { offset: usize, bytes: Vec<u8> },
    /// Everything before it is durable.
    Flush,
}

/// Everything that reached a disk.
pub struct Recording {
    /// The disk before.
    pub blank: Vec<u8>,
    /// In the order in which the disk took it.
    pub entries: Vec<Entry>,
}

impl Recording {
    /// Writes and flushes.
    pub fn counts(&self) -> (u64, u64) {
        let flushes = self.entries.iter().filter(|entry| matches!(entry, Entry::Flush)).count();
        ((self.entries.len() - flushes) as u64, flushes as u64)
    }
}

struct State {
    recording: Recording,
    content: Vec<u8>,
}

/// A disk with an empty ext4 file system. It answers every write at once, as a disk with a cache does.
pub struct Disk {
    state: Arc<Mutex<State>>,
}

impl Disk {
    /// Makes the file system by way of a file.
    pub fn format(image: &Path, disk_bytes: u64) -> Result<Disk, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", image.display());
        std::fs::File::create(image).and_then(|file| file.set_len(disk_bytes)).map_err(failed)?;
        // Nothing is left for the kernel to initialise behind the scenes.
        let options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
        // ext4 checksums superblocks that it rewrites in place, and so takes for granted that their 1024 bytes are written
        // whole; the disks here tear any two sectors.
        let features = "^metadata_csum";
        let arguments = ["-q", "-F", "-E", options, "-O", features].map(AsRef::as_ref);
        run_command("mkfs.ext4", &[&arguments[..], &[image.as_os_str()]].concat())?;
        let blank = std::fs::read(image).map_err(failed)?;
        let content = blank.clone();
        let recording = Recording { blank, entries: Vec::new() };
        Ok(Disk { state: Arc::new(Mutex::new(State { recording, content })) })
    }

    /// Lets the kernel reach the disk as a file in this directory, until what is returned is dropped.
    pub fn serve(&self, directory: &Path) -> Result<Served, String> {
        let failed = |error: std::io::Error| format!("a file system in user space cannot be mounted: {error}");
        std::fs::create_dir_all(directory).map_err(failed)?;
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("aiodb-crash".into())];
        let files = Files { state: Arc::clone(&self.state) };
        let session = fuser::spawn_mount(files, directory, &config).map_err(failed)?;
        Ok(Served { session: Some(session), file: directory.join(FILE) })
    }

    /// How much has reached the disk.
    pub fn entries(&self) -> usize {
        self.lock().recording.entries.len()
    }

    /// The writes that have reached the disk, once it is not served any more.
    pub fn into_recording(self) -> Recording {
        let state = Arc::into_inner(self.state).expect("the disk is served no more");
        state.into_inner().expect("no request panics").recording
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no request panics")
    }
}

/// A disk that the kernel can reach.
pub struct Served {
    session: Option<BackgroundSession>,
    file: PathBuf,
}

impl Served {
    /// The disk.
    pub fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.session.take().map(BackgroundSession::umount_and_join) {
            eprintln!("{} could not be unmounted: {error}", self.file.display());
        }
    }
}

/// A directory with one file.
struct Files {
    state: Arc<Mutex<State>>,
}

impl Files {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no request panics")
    }

    fn attributes(&self, number: INodeNo) -> FileAttr {
        let (kind, perm) = match number {
            INodeNo::ROOT => (FileType::Directory, 0o700),
            _ => (FileType::RegularFile, 0o600),
        };
        let size = if number == FILE_NUMBER { self.lock().content.len() as u64 } else { 0 };
        let (blocks, time) = (size.div_ceil(SECTOR_BYTES as u64), UNIX_EPOCH);
        let (atime, mtime, ctime, crtime) = (time, time, time, time);
        let (ino, nlink, uid, gid, rdev, blksize, flags) = (number, 1, 0, 0, 0, 4096, 0);
        FileAttr { ino, size, blocks, atime, mtime, ctime, crtime, kind, perm, nlink, uid, gid, rdev, blksize, flags }
    }
}

const ATTRIBUTES_HOLD: Duration = Duration::from_secs(3600);

impl Filesystem for Files {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent == INodeNo::ROOT && name == FILE {
            reply.entry(&ATTRIBUTES_HOLD, &self.attributes(FILE_NUMBER), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&ATTRIBUTES_HOLD, &self.attributes(number));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        // No page cache of the file: what the loop device writes must come here in its order.
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let state = self.lock();
        let from = (offset as usize).min(state.content.len());
        let to = (from + size as usize).min(state.content.len());
        reply.data(&state.content[from..to]);
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let mut state = self.lock();
        let offset = offset as usize;
        match state.content.get_mut(offset..offset + data.len()) {
            Some(place) => place.copy_from_slice(data),
            None => return reply.error(Errno::ENOSPC),
        }
        state.recording.entries.push(Entry::Write { offset, bytes: data.to_vec() });
        reply.written(data.len() as u32);
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.lock().recording.entries.push(Entry::Flush);
        reply.ok();
    }
}

/// A block device over a file; detached when dropped.
pub struct LoopDevice {
    path: PathBuf,
}

impl LoopDevice {
    /// Attaches the next free device.
    pub fn over(file: &Path) -> Result<LoopDevice, String> {
        let printed = run_command("losetup", &["--find".as_ref(), "--show".as_ref(), file.as_os_str()])?;
        Ok(LoopDevice { path: PathBuf::from(printed.trim()) })
    }

    /// The device.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        if let Err(error) = run_command("losetup", &["--detach".as_ref(), self.path.as_os_str()]) {
            eprintln!("{error}");
        }
    }
}

/// A mounted file system; unmounted when dropped.
pub struct Mount {
    directory: PathBuf,
}

impl Mount {
    /// Mounts a device on a directory, which is made.
    pub fn new(device: &Path, directory: &Path, options: &[&str]) -> Result<Mount, String> {
        std::fs::create_dir_all(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut arguments: Vec<&OsStr> = options.iter().map(OsStr::new).collect();
        arguments.extend([device.as_os_str(), directory.as_os_str()]);
        run_command("mount", &arguments)?;
        Ok(Mount { directory: directory.to_path_buf() })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = run_command("umount", &[self.directory.as_os_str()]) {
            eprintln!("{error}");
        }
    }
}

/// Runs a program to its end; returns what it printed, or its complaint.
pub fn run_command(program: &str, arguments: &[&OsStr]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
