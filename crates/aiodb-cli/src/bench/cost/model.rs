//! What a requirement costs with all data in memory and with values on SSD, by measured rates and given prices.
//!
//! Both sides are built of the same nodes, and whatever the measurements do not say is decided for memory: it scales
//! with the cores, keeps no copy on SSD, and is bought by the gigabyte, while SSDs are bought whole.

use crate::bench::rows::cost::{Bound, GB};

/// A requirement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Requirement {
    /// Keys and values.
    pub data_bytes: f64,
    pub gets_per_s: f64,
    pub key_bytes: f64,
    pub value_bytes: f64,
}

impl Requirement {
    fn pairs(self) -> f64 {
        (self.data_bytes / (self.key_bytes + self.value_bytes)).ceil()
    }
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rates {
    /// Bytes copied and gets per second of one core with all data in memory, by bytes.
    pub memory: Vec<(f64, f64)>,
    /// Gets per second of one device, with values of [`Rates::device_value_bytes`].
    pub device_gets_per_s: f64,
    pub device_value_bytes: f64,
    /// Processor time of one such get.
    pub device_cpu_us_per_get: f64,
}

impl Rates {
    /// Gets per second of one core with values in memory. Between and beyond the measured sizes a byte more takes as
    /// much longer as it did between the two nearest ones. None if the measurements do not say.
    pub(crate) fn memory_gets_per_s(&self, value_bytes: f64) -> Option<f64> {
        let seconds: Vec<(f64, f64)> = self.memory.iter().map(|&(bytes, rate)| (bytes, 1.0 / rate)).collect();
        let after = seconds.iter().position(|&(bytes, _)| bytes >= value_bytes).unwrap_or(seconds.len());
        let end = after.clamp(1, seconds.len().checked_sub(1).filter(|&last| last > 0)?);
        let ((from, quick), (to, slow)) = (seconds[end - 1], seconds[end]);
        let wanted = quick + (slow - quick) * (value_bytes - from) / (to - from);
        // A larger copy that was measured to be faster is noise, and no reason to promise more than any measurement.
        let quickest = seconds.iter().map(|&(_, seconds)| seconds).fold(f64::INFINITY, f64::min);
        Some(1.0 / wanted.max(quickest))
    }

    /// Gets per second of one device: the measured rate up to the measured size, above it the measured bandwidth.
    pub(crate) fn device_gets_per_s(&self, value_bytes: f64) -> f64 {
        self.device_gets_per_s * (self.device_value_bytes / value_bytes).min(1.0)
    }

    /// Processor time of a get from a device: as measured; a longer value is transferred by the device.
    fn device_gets_per_core(&self) -> f64 {
        1e6 / self.device_cpu_us_per_get
    }
}

/// What things cost and hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prices {
    pub dram_usd_per_gb: f64,
    pub ssd_usd_per_gb: f64,
    /// A node without memory and SSDs.
    pub node_usd: f64,
    pub node_cores: f64,
    pub node_memory_bytes: f64,
    /// SSDs that a node takes.
    pub node_devices: f64,
    pub device_bytes: f64,
    /// Bytes of memory that an in-memory store takes for a pair beyond key and value.
    pub memory_overhead_bytes: f64,
    /// Bytes of memory that our index takes for a pair.
    pub index_bytes: f64,
    /// Bytes on SSD by bytes of data: what is dead and not yet reclaimed, and headers.
    pub ssd_space_factor: f64,
}

/// All data in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InMemory {
    pub nodes: f64,
    pub memory_bytes: f64,
    pub usd: f64,
    pub bound: Bound,
}

/// Values on SSD, the index in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OnSsd {
    pub nodes: f64,
    pub devices: f64,
    pub memory_bytes: f64,
    pub usd: f64,
    pub bound: Bound,
}

/// The larger need and whose it is.
fn most(needs: &[(f64, Bound)]) -> (f64, Bound) {
    needs.iter().copied().reduce(|most, need| if need.0 > most.0 { need } else { most }).expect("there are needs")
}

/// None if the measurements do not say what a core does in memory.
pub(crate) fn in_memory(requirement: Requirement, rates: &Rates, prices: &Prices) -> Option<InMemory> {
    let per_core = rates.memory_gets_per_s(requirement.value_bytes)?;
    let memory_bytes = requirement.data_bytes + requirement.pairs() * prices.memory_overhead_bytes;
    let (nodes, bound) = most(&[
        ((memory_bytes / prices.node_memory_bytes).ceil(), Bound::Memory),
        ((requirement.gets_per_s / (per_core * prices.node_cores)).ceil(), Bound::Cores),
    ]);
    let usd = nodes * prices.node_usd + memory_bytes / GB * prices.dram_usd_per_gb;
    Some(InMemory { nodes, memory_bytes, usd, bound })
}

pub(crate) fn on_ssd(requirement: Requirement, rates: &Rates, prices: &Prices) -> OnSsd {
    let memory_bytes = requirement.pairs() * prices.index_bytes;
    let per_device = rates.device_gets_per_s(requirement.value_bytes);
    let (devices, device_bound) = most(&[
        ((requirement.data_bytes * prices.ssd_space_factor / prices.device_bytes).ceil(), Bound::DeviceSpace),
        ((requirement.gets_per_s / per_device).ceil(), Bound::DeviceReads),
    ]);
    let (nodes, bound) = most(&[
        ((devices / prices.node_devices).ceil(), device_bound),
        ((memory_bytes / prices.node_memory_bytes).ceil(), Bound::Memory),
        ((requirement.gets_per_s / (rates.device_gets_per_core() * prices.node_cores)).ceil(), Bound::Cores),
    ]);
    // A node without an SSD could hold nothing.
    let devices = devices.max(nodes);
    let usd = nodes * prices.node_usd
        + devices * prices.device_bytes / GB * prices.ssd_usd_per_gb
        + memory_bytes / GB * prices.dram_usd_per_gb;
    OnSsd { nodes, devices, memory_bytes, usd, bound }
}

/// The highest rate that is looked at.
const MAX_GETS_PER_S: f64 = 1e12;

/// Two rates that differ by less are taken for one.
const STEP: f64 = 1.01;

/// The lowest rate, within a hundredth, at which memory is not dearer than SSD for this data; costs grow in steps, so
/// they may cross again above it. None if SSD is cheaper at every rate, or the measurements do not say.
pub(crate) fn crossing(requirement: Requirement, rates: &Rates, prices: &Prices) -> Option<f64> {
    let mut gets_per_s = 1.0;
    while gets_per_s <= MAX_GETS_PER_S {
        let at_rate = Requirement { gets_per_s, ..requirement };
        if in_memory(at_rate, rates, prices)?.usd <= on_ssd(at_rate, rates, prices).usd {
            return Some(gets_per_s);
        }
        gets_per_s *= STEP;
    }
    None
}

#[cfg(test)]
mod tests;
