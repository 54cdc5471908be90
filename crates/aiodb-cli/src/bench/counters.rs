//! What the kernel counts: processor time of this process and transfers of the disk that holds the files.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The unit of what the kernel says of files and disks, whatever the disk's own.
const BLOCK_BYTES: u64 = 512;

/// The processor time, user and system, that all threads of this process have used so far.
pub(crate) fn process_cpu_time() -> Duration {
    // SAFETY: `rusage` is plain numbers, for which zero bytes are a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer refers to a live `rusage` that the call fills.
    let status = unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) };
    assert_eq!(status, 0, "getrusage of the own process has no way to fail");
    let time = |t: libc::timeval| Duration::from_secs(t.tv_sec as u64) + Duration::from_micros(t.tv_usec as u64);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Memory of this process that is resident, in bytes, including mapped files; 0 where the kernel does not say.
pub(crate) fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Bytes that this process has had read from disks and written to them so far, the page cache's writing for it included; `None` where
/// the kernel does not say.
pub(crate) fn process_transfers() -> Option<Transfers> {
    parse_process_io(&fs::read_to_string("/proc/self/io").ok()?)
}

/// What [`process_transfers`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfers {
    pub read_bytes: u64,
    pub written_bytes: u64,
}

fn parse_process_io(text: &str) -> Option<Transfers> {
    let number = |name| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Some(Transfers { read_bytes: number("read_bytes:")?, written_bytes: number("write_bytes:")? })
}

/// Bytes that the files under a directory take on the disk: holes take none. Files that go meanwhile do not count.
pub(crate) fn directory_bytes(directory: &Path) -> io::Result<u64> {
    let mut blocks = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(data) if data.is_dir() => blocks += directory_bytes(&entry.path())? / BLOCK_BYTES,
            Ok(data) => blocks += data.blocks(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(blocks * BLOCK_BYTES)
}

/// What the file system that holds a path has in all, used or not; 0 where it does not say.
pub(crate) fn file_system_bytes(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |system| system.f_blocks * system.f_frsize)
}

/// Transfers completed by a disk since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DiskCounts {
    pub reads: u64,
    pub writes: u64,
    pub bytes_written: u64,
}

impl DiskCounts {
    fn plus(self, other: DiskCounts) -> DiskCounts {
        DiskCounts {
            reads: self.reads + other.reads,
            writes: self.writes + other.writes,
            bytes_written: self.bytes_written + other.bytes_written,
        }
    }

    /// What was added since `earlier`.
    pub(crate) fn since(self, earlier: DiskCounts) -> DiskCounts {
        DiskCounts {
            reads: self.reads - earlier.reads,
            writes: self.writes - earlier.writes,
            bytes_written: self.bytes_written - earlier.bytes_written,
        }
    }
}

/// The block device (a disk or a partition) that holds a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockDevice {
    major: u32,
    minor: u32,
    /// Its directory in sysfs; a partition's lies inside its disk's.
    sysfs: PathBuf,
    /// Devices whose transfers count with its own.
    others: Vec<BlockDevice>,
}

impl BlockDevice {
    /// The device under `path`, or `None` where files do not lie on one block device (tmpfs, overlay, network).
    pub(crate) fn holding(path: &Path) -> Option<BlockDevice> {
        let device = fs::metadata(path).ok()?.dev();
        Self::numbered(device).or_else(|| {
            // File systems with several volumes report a number of their own; the mount table names the device.
            let source = Mount::holding(path)?.source;
            Self::numbered(fs::metadata(source).ok()?.rdev())
        })
    }

    /// All the devices under several paths, counted together. `None` if one of the paths has none.
    pub(crate) fn holding_all(paths: &[PathBuf]) -> Option<BlockDevice> {
        let mut devices = paths.iter().map(|path| Self::holding(path)).collect::<Option<Vec<_>>>()?;
        devices.sort_by_key(|device| (device.major, device.minor));
        devices.dedup();
        let mut all = devices.into_iter();
        let first = all.next()?;
        Some(BlockDevice { others: all.collect(), ..first })
    }

    fn numbered(device: u64) -> Option<BlockDevice> {
        let (major, minor) = (libc::major(device), libc::minor(device));
        let sysfs = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        Some(BlockDevice { major, minor, sysfs, others: Vec::new() })
    }

    /// The counters now; `None` if the kernel keeps none for this device.
    pub(crate) fn counts(&self) -> Option<DiskCounts> {
        let text = fs::read_to_string("/proc/diskstats").ok()?;
        let counts = |device: &BlockDevice| parse_diskstats(&text, device.major, device.minor);
        self.others.iter().try_fold(counts(self)?, |sum, other| Some(sum.plus(counts(other)?)))
    }

    /// The kernel's name of the disk or partition, such as `nvme0n1p2`.
    pub(crate) fn name(&self) -> String {
        self.sysfs.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// An attribute of the whole disk, such as `queue/logical_block_size`, without surrounding space.
    pub(crate) fn disk_attribute(&self, attribute: &str) -> Option<String> {
        let is_partition = self.sysfs.join("partition").exists();
        let disk = if is_partition { self.sysfs.parent()? } else { &self.sysfs };
        Some(fs::read_to_string(disk.join(attribute)).ok()?.trim().to_owned())
    }
}

/// One device's line of `/proc/diskstats`.
fn parse_diskstats(text: &str, major: u32, minor: u32) -> Option<DiskCounts> {
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        if number(0)? != u64::from(major) || number(1)? != u64::from(minor) {
            return None;
        }
        Some(DiskCounts { reads: number(3)?, writes: number(7)?, bytes_written: number(9)? * BLOCK_BYTES })
    })
}

/// A line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub file_system: String,
    pub source: String,
}

impl Mount {
    /// The mount that `path` lies in.
    pub(crate) fn holding(path: &Path) -> Option<Mount> {
        let path = fs::canonicalize(path).ok()?;
        parse_mountinfo(&fs::read_to_string("/proc/self/mountinfo").ok()?, &path)
    }
}

/// The mount with the longest mount point above `path`; of several at the same point the last, which covers the others.
fn parse_mountinfo(text: &str, path: &Path) -> Option<Mount> {
    let mounts = text.lines().filter_map(|line| {
        let (place, source) = line.split_once(" - ")?;
        let point = place.split_whitespace().nth(4)?.replace("\\040", " ");
        let mut source = source.split_whitespace();
        let mount = Mount { file_system: source.next()?.to_owned(), source: source.next()?.to_owned() };
        path.starts_with(&point).then_some((point.len(), mount))
    });
    mounts.max_by_key(|(length, _)| *length).map(|(_, mount)| mount)
}

#[cfg(test)]
mod tests;
