//! Where a measurement was made. A figure without it says nothing.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::counters::{BlockDevice, Mount};
use super::fio::Fio;

/// The machine and the disk. What the system does not tell is `unknown` or 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Environment {
    /// RFC 3339.
    pub date_utc: String,
    pub kernel: String,
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    pub file_system: String,
    /// The block device that holds the files.
    pub disk: String,
    pub disk_model: String,
    pub disk_logical_block_bytes: u64,
    pub disk_physical_block_bytes: u64,
    pub disk_scheduler: String,
    pub fio: String,
}

impl Environment {
    /// Describes the machine, and the disk under `dir`.
    pub(crate) fn of(dir: &Path) -> Environment {
        let disk = BlockDevice::holding(dir);
        let attribute = |name: &str| disk.as_ref().and_then(|disk| disk.disk_attribute(name)).filter(|v| !v.is_empty());
        let number = |name: &str| attribute(name).and_then(|value| value.parse().ok()).unwrap_or(0);
        Environment {
            date_utc: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            kernel: read("/proc/sys/kernel/osrelease").map_or_else(unknown, |release| format!("Linux {release}")),
            cpu: read("/proc/cpuinfo").and_then(|text| field(&text, "model name")).unwrap_or_else(unknown),
            cores: cores(),
            memory_bytes: memory_bytes("MemTotal"),
            file_system: Mount::holding(dir).map_or_else(unknown, |mount| mount.file_system),
            disk: disk.as_ref().map_or_else(unknown, BlockDevice::name),
            disk_model: attribute("device/model").or_else(|| virtio_name(&disk)).unwrap_or_else(unknown),
            disk_logical_block_bytes: number("queue/logical_block_size"),
            disk_physical_block_bytes: number("queue/physical_block_size"),
            disk_scheduler: attribute("queue/scheduler").unwrap_or_else(unknown),
            fio: Fio::find().map_or_else(|| "not installed".to_owned(), |fio| fio.version),
        }
    }
}

/// Processors that this process may use.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A size from `/proc/meminfo` in bytes, 0 if it is not there.
pub(crate) fn memory_bytes(name: &str) -> u64 {
    let text = read("/proc/meminfo").unwrap_or_default();
    let kib = field(&text, name).and_then(|value| value.trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Virtual disks have no model; their bus says what they are.
fn virtio_name(disk: &Option<BlockDevice>) -> Option<String> {
    let name = disk.as_ref()?.name();
    name.starts_with("vd").then(|| "virtio block device".to_owned())
}

fn read(path: &str) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// The value of the first `name: value` line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

fn unknown() -> String {
    "unknown".to_owned()
}

#[cfg(test)]
mod tests;
