//! What a run of writers took, with all that it left for later.

use crate::engine::Engine;
use crate::error::Result;
use crate::host::{Disk, Usage};
use crate::memory::{self, MemoryUse};
use crate::points::Written;
use crate::rest;
use crate::runs::Place;
use serde::{Deserialize, Serialize};

/// What a whole run took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Acknowledged puts.
    pub puts: u64,
    /// From the start to the last acknowledgement.
    pub seconds: f64,
    /// Half of the puts took at most this long.
    pub p50_us: f64,
    /// 99 % of them.
    pub p99_us: f64,
    /// 99.9 % of them.
    pub p999_us: f64,
    /// All of them.
    pub longest_us: f64,
    /// What the process used of memory.
    #[serde(flatten)]
    pub memory: MemoryUse,
    /// Processor time of the process until the last acknowledgement.
    pub cpu_seconds: f64,
    /// Written to the device by anyone until then.
    pub device_written_bytes: Option<u64>,
    /// From the last acknowledgement until the engine had done what the puts left for later.
    pub catch_up_seconds: f64,
    /// As above, until then.
    pub settled_cpu_seconds: f64,
    /// As above, until then.
    pub settled_device_written_bytes: Option<u64>,
    /// What the files took on the disk then.
    pub disk_bytes: u64,
}

impl Totals {
    /// Those of what `write` does, and what it came to.
    pub fn of(
        engine: &dyn Engine,
        disk: &Disk,
        place: &Place,
        write: impl FnOnce() -> Result<Written>,
    ) -> Result<(Written, Totals)> {
        disk.flush()?;
        let before = disk.usage()?;
        let written = write()?;
        let at_last_put = disk.usage()?;
        let (catch_up_seconds, after) = rest::catch_up(engine, disk)?;
        let cpu_seconds = |until: Usage| (until.cpu - before.cpu).as_secs_f64();
        let device_bytes = |until: Usage| Some(until.device_bytes? - before.device_bytes?);
        let totals = Totals {
            puts: written.acknowledged.iter().sum(),
            seconds: written.seconds,
            p50_us: written.quantile_us(0.5),
            p99_us: written.quantile_us(0.99),
            p999_us: written.quantile_us(0.999),
            longest_us: written.longest_us(),
            memory: MemoryUse::now(place.group.as_deref())?,
            cpu_seconds: cpu_seconds(at_last_put),
            device_written_bytes: device_bytes(at_last_put),
            catch_up_seconds,
            settled_cpu_seconds: cpu_seconds(after),
            settled_device_written_bytes: device_bytes(after),
            disk_bytes: memory::disk_bytes(&place.directory)?,
        };
        Ok((written, totals))
    }

    /// Why they do not count, if they do not.
    pub fn void(&self) -> Option<String> {
        let idle = || (self.puts == 0).then(|| "not one put was acknowledged".to_owned());
        self.memory.void().or_else(idle)
    }
}

#[cfg(test)]
pub(crate) mod tests;
