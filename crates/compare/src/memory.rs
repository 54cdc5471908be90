//! Less memory than data: a limit for the measured process, page cache included, and the state of caches before it.

use crate::error::{Error, Result};
use nix::fcntl::{OFlag, PosixFadviseAdvice, posix_fadvise};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Where version 1 of the control groups has its memory controller.
const CONTROLLER: &str = "/sys/fs/cgroup/memory";

/// A control group that limits the memory of the processes that join it. It goes when this is dropped.
#[derive(Debug)]
pub struct MemoryLimit {
    group: PathBuf,
}

impl MemoryLimit {
    /// Makes a group with a limit in bytes, without swap where the kernel can forbid it. The error says why there can
    /// be none here.
    pub fn new(bytes: u64) -> Result<MemoryLimit> {
        let group = Path::new(CONTROLLER).join(format!("compare-{}", std::process::id()));
        fs::create_dir(&group).map_err(Error::io("make the control group", &group))?;
        let limit = MemoryLimit { group };
        limit.set("memory.limit_in_bytes", bytes)?;
        // Kernels without swap accounting do not have this file; swap is looked for after each point in any case.
        let _ = limit.set("memory.memsw.limit_in_bytes", bytes);
        Ok(limit)
    }

    fn set(&self, name: &str, value: u64) -> Result<()> {
        let path = self.group.join(name);
        fs::write(&path, value.to_string()).map_err(Error::io("write", path))
    }

    /// The group, for a process that is going to join it.
    pub fn group(&self) -> &Path {
        &self.group
    }

    /// Processes that were killed for want of memory so far.
    pub fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.group.join("memory.oom_control")).unwrap_or_default();
        counter(&text, "oom_kill").unwrap_or(0)
    }

    /// Gives back the page cache that processes of the group left, so that the next one begins with an empty group.
    pub fn empty(&self) {
        // Pages that are in use elsewhere may stay; that is no reason to stop.
        let _ = self.set("memory.force_empty", 0);
        let _ = self.set("memory.max_usage_in_bytes", 0);
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        self.empty();
        if let Err(error) = fs::remove_dir(&self.group) {
            eprintln!("compare: cannot remove the control group {}: {error}", self.group.display());
        }
    }
}

/// How a process is held to a limit, for people.
pub fn held_by(limit: &Result<MemoryLimit>) -> String {
    match limit {
        Ok(_) => "a control group, page cache included, no swap".to_owned(),
        Err(error) => format!(
            "NOTHING: {error}. Caches of engines have the size that they would have, and the page cache was emptied \
             before each process, but what it took in afterwards was not limited: engines that read through it are \
             too fast"
        ),
    }
}

/// Makes this process, with all its memory to come, a member of a group.
pub fn join(group: &Path) -> Result<()> {
    let path = group.join("cgroup.procs");
    fs::write(&path, "0").map_err(Error::io("join", path))
}

/// The most memory that the group's processes had at once, page cache included. None without a group.
pub fn peak_bytes(group: Option<&Path>) -> Option<u64> {
    fs::read_to_string(group?.join("memory.max_usage_in_bytes")).ok()?.trim().parse().ok()
}

/// What a measured process has used of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryUse {
    /// The most memory that the process had, mapped files included.
    pub most_resident_bytes: u64,
    /// The most that the control group held at once, page cache included. None without a group.
    pub peak_memory_bytes: Option<u64>,
    /// Memory of the process in swap: what was measured is void if there is any.
    pub swapped_bytes: u64,
}

impl MemoryUse {
    /// That of this process so far.
    pub fn now(group: Option<&Path>) -> Result<MemoryUse> {
        Ok(MemoryUse {
            most_resident_bytes: most_resident_bytes()?,
            peak_memory_bytes: peak_bytes(group),
            swapped_bytes: swapped_bytes()?,
        })
    }

    /// Why the figures of the process do not count, if they do not.
    pub fn void(&self) -> Option<String> {
        (self.swapped_bytes > 0).then(|| format!("{} bytes of the process were in swap", self.swapped_bytes))
    }
}

/// Bytes of this process that are in swap.
pub fn swapped_bytes() -> Result<u64> {
    status_bytes("VmSwap:")
}

/// Bytes of memory that this process has, mapped files included.
pub fn resident_bytes() -> Result<u64> {
    status_bytes("VmRSS:")
}

/// The most that it has had.
pub fn most_resident_bytes() -> Result<u64> {
    status_bytes("VmHWM:")
}

fn status_bytes(label: &str) -> Result<u64> {
    let path = "/proc/self/status";
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    Ok(text.lines().find_map(|line| line.strip_prefix(label)).map_or(0, kib) << 10)
}

fn kib(text: &str) -> u64 {
    text.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// The value of a line `name value`.
fn counter(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.trim().parse().ok()
}

/// Bytes read at once while warming.
const WARM_READ_BYTES: usize = 1 << 20;

/// Memory whose start direct I/O accepts on any disk.
#[repr(align(4096))]
struct Aligned([u8; WARM_READ_BYTES]);

/// Reads all files under a directory past the page cache, so that whatever lies below a virtual disk has them alike
/// for every engine, and takes them out of the page cache, so that none is charged to the wrong process.
pub fn warm(directory: &Path) -> Result<()> {
    let mut buffer = Box::new(Aligned([0; WARM_READ_BYTES]));
    for path in files(directory)? {
        evict(&path)?;
        let direct = OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECT.bits()).open(&path);
        // A file system without direct I/O has no host below it that would matter.
        let Ok(mut file) = direct else { continue };
        while match file.read(&mut buffer.0) {
            Ok(length) => length == WARM_READ_BYTES,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(error) => return Err(Error::io("read", path)(error)),
        } {}
    }
    Ok(())
}

/// Takes a file's pages out of the page cache.
fn evict(path: &Path) -> Result<()> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    file.sync_all().map_err(Error::io("sync", path))?;
    posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
        .map_err(|errno| Error::io("evict from the page cache", path)(errno.into()))
}

/// All files under a directory, at any depth. Directories below it may go meanwhile.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let entries = match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && directory != root => continue,
            entries => entries.map_err(Error::io("list", &directory))?,
        };
        for entry in entries {
            let entry = entry.map_err(Error::io("list", &directory))?;
            let kind = entry.file_type().map_err(Error::io("inspect", entry.path()))?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path());
            }
        }
    }
    Ok(found)
}

/// Bytes that the files under a directory take on the disk. A file that goes meanwhile takes none.
pub fn disk_bytes(directory: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let blocks = |path: PathBuf| match fs::metadata(&path) {
        Ok(data) => Ok(data.blocks()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(Error::io("inspect", path)(error)),
    };
    Ok(files(directory)?.into_iter().map(blocks).sum::<Result<u64>>()? * 512)
}

/// A number of bytes on the command line, with a suffix K, M or G or without.
pub fn parse_bytes(text: &str) -> std::result::Result<u64, String> {
    let (digits, shift) = match text.chars().last() {
        Some('K') => (&text[..text.len() - 1], 10),
        Some('M') => (&text[..text.len() - 1], 20),
        Some('G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|error| format!("{error}: give a number such as 512M"))?;
    number.checked_mul(1 << shift).ok_or_else(|| "that is more than any machine has".to_owned())
}

/// The memory of a process, likewise.
pub fn parse_limit(text: &str) -> std::result::Result<u64, String> {
    match parse_bytes(text)? {
        bytes if bytes >= LEAST_LIMIT_BYTES => Ok(bytes),
        _ => Err(format!("no engine works in less than {} MiB", LEAST_LIMIT_BYTES >> 20)),
    }
}

/// A program alone takes more.
const LEAST_LIMIT_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests;
