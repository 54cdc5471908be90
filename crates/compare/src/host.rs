//! What a measurement costs the machine, and which machine it is.

use crate::error::{Error, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::stat::{major, minor};
use nix::sys::time::TimeVal;
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The file system and the block device under a directory.
#[derive(Debug)]
pub struct Disk {
    path: PathBuf,
    directory: File,
    /// The device's number as `/proc/diskstats` writes it.
    device: (u64, u64),
}

/// What this process and the device have used since they were started.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// Processor time of this process, user and system.
    pub cpu: Duration,
    /// Bytes written to the device by anyone, the file system's own among them. None where the directory is on no
    /// single block device (tmpfs, overlayfs, btrfs).
    pub device_bytes: Option<u64>,
    /// Reads that the device has finished for anyone; None likewise.
    pub device_reads: Option<u64>,
    /// Bytes that this process caused to be written. None where the kernel does not count them.
    pub process_bytes: Option<u64>,
}

impl Disk {
    /// The disk under an existing directory.
    pub fn under(path: &Path) -> Result<Disk> {
        let directory = File::open(path).map_err(Error::io("open", path))?;
        let number = directory.metadata().map_err(Error::io("inspect", path))?.dev();
        Ok(Disk { path: path.to_owned(), directory, device: (major(number), minor(number)) })
    }

    /// Waits until everything in the page cache for this file system is on the device.
    pub fn flush(&self) -> Result<()> {
        nix::unistd::syncfs(&self.directory).map_err(|errno| Error::io("sync", &self.path)(errno.into()))
    }

    /// Bytes that can still be written to the file system.
    pub fn free_bytes(&self) -> Result<u64> {
        let space = nix::sys::statvfs::fstatvfs(&self.directory)
            .map_err(|errno| Error::io("ask for the free space of", &self.path)(errno.into()))?;
        Ok(space.blocks_available() * space.fragment_size())
    }

    /// An error that says what is `wanted`, and what to do instead, if there is not so much room for it.
    pub fn require(&self, bytes: u64, wanted: &str, instead: &str) -> Result<()> {
        let free = self.free_bytes()?;
        if bytes <= free {
            return Ok(());
        }
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        Err(Error::Request(format!(
            "{wanted} {:.1} GiB, {} has {:.1} GiB free: {instead}",
            gib(bytes),
            self.path.display(),
            gib(free),
        )))
    }

    /// What has been used until now.
    pub fn usage(&self) -> Result<Usage> {
        let resources = getrusage(UsageWho::RUSAGE_SELF)
            .map_err(|errno| Error::io("read the usage of", "this process")(errno.into()))?;
        let path = "/proc/diskstats";
        let table = fs::read_to_string(path).map_err(Error::io("read", path))?;
        Ok(Usage {
            cpu: duration(resources.user_time()) + duration(resources.system_time()),
            device_bytes: written_bytes(&table, self.device),
            device_reads: finished_reads(&table, self.device),
            process_bytes: process_bytes(),
        })
    }

    /// The device's name in `/dev`, if there is one.
    fn name(&self) -> Option<String> {
        let table = fs::read_to_string("/proc/diskstats").ok()?;
        device_line(&table, self.device)?.split_whitespace().nth(2).map(str::to_owned)
    }
}

/// Bytes written to a device, from the text of `/proc/diskstats`, whose sectors have 512 bytes whatever the device's.
fn written_bytes(table: &str, device: (u64, u64)) -> Option<u64> {
    let sectors: u64 = device_line(table, device)?.split_whitespace().nth(9)?.parse().ok()?;
    Some(sectors * 512)
}

/// Reads that a device has finished, from the same table.
fn finished_reads(table: &str, device: (u64, u64)) -> Option<u64> {
    device_line(table, device)?.split_whitespace().nth(3)?.parse().ok()
}

fn device_line(table: &str, device: (u64, u64)) -> Option<&str> {
    let (major, minor) = (device.0.to_string(), device.1.to_string());
    table.lines().find(|line| line.split_whitespace().take(2).eq([major.as_str(), minor.as_str()]))
}

fn process_bytes() -> Option<u64> {
    let counters = fs::read_to_string("/proc/self/io").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}

fn duration(time: TimeVal) -> Duration {
    Duration::from_secs(time.tv_sec() as u64) + Duration::from_micros(time.tv_usec() as u64)
}

/// The machine, for later readers of the figures.
#[derive(Debug, Serialize)]
pub struct Host {
    kernel: String,
    cpu_model: String,
    cpus: usize,
    memory_bytes: u64,
    device: Option<String>,
}

impl Host {
    /// The machine that this process runs on.
    pub fn describe(disk: &Disk) -> Result<Host> {
        let line = |path: &'static str, label: &str| -> Result<String> {
            let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
            let value = text.lines().find_map(|line| line.strip_prefix(label)?.trim().strip_prefix(':'));
            Ok(value.unwrap_or("unknown").trim().to_owned())
        };
        let memory = line("/proc/meminfo", "MemTotal")?;
        let memory_kib: u64 = memory.trim_end_matches(" kB").parse().map_err(|_| {
            Error::io("understand", "/proc/meminfo")(io::Error::new(io::ErrorKind::InvalidData, memory.clone()))
        })?;
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").map_err(Error::io("read", "/proc/sys/kernel"))?;
        Ok(Host {
            kernel: kernel.trim().to_owned(),
            cpu_model: line("/proc/cpuinfo", "model name")?,
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kib << 10,
            device: disk.name(),
        })
    }

    /// Bytes of main memory.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }
}

/// The commit of the source tree that the program was started in, with `-dirty` when it was changed since.
pub fn commit() -> Option<String> {
    let output = Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests;
