//! The rows of `bench cost`, and their table.

use serde::{Deserialize, Serialize};

use crate::bench::table::{NONE, Table, decimal, whole};

/// Bytes of the gigabyte in which data and prices are given.
pub(crate) const GB: f64 = 1e9;

/// One requirement and its two costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CostRow {
    pub value_bytes: u64,
    pub data_bytes: f64,
    pub gets_per_s: f64,
    /// What one core does with values of this size in memory, measured or drawn from measured sizes.
    pub memory_gets_per_s_per_core: f64,
    pub memory_nodes: f64,
    pub memory_bytes: f64,
    /// What decides the number of nodes.
    pub memory_bound: Bound,
    pub memory_usd: f64,
    /// What one device does with values of this size.
    pub ssd_gets_per_s_per_device: f64,
    pub ssd_nodes: f64,
    pub ssd_devices: f64,
    /// Memory for the index.
    pub ssd_memory_bytes: f64,
    pub ssd_bound: Bound,
    pub ssd_usd: f64,
    pub ssd_to_memory_usd: f64,
    /// The lowest rate at which memory is not dearer for this data; None if SSD is cheaper at every rate.
    pub crossing_gets_per_s: Option<f64>,
}

/// What decides how many nodes are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bound {
    /// Bytes of memory.
    Memory,
    /// Processor time.
    Cores,
    /// Bytes on SSDs.
    DeviceSpace,
    /// Reads of SSDs.
    DeviceReads,
}

impl Bound {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Bound::Memory => "memory",
            Bound::Cores => "cores",
            Bound::DeviceSpace => "space",
            Bound::DeviceReads => "reads",
        }
    }
}

/// The rows for people.
pub(crate) fn table(rows: &[CostRow]) -> Table {
    let mut table = Table::new(&[
        "value bytes",
        "gets/s",
        "data GB",
        "memory USD",
        "nodes",
        "bound by",
        "SSD USD",
        "nodes",
        "SSDs",
        "bound by",
        "SSD/memory",
        "memory not dearer from gets/s",
    ]);
    for row in rows {
        table.push(vec![
            row.value_bytes.to_string(),
            whole(row.gets_per_s),
            decimal(row.data_bytes / GB, 1),
            whole(row.memory_usd),
            whole(row.memory_nodes),
            row.memory_bound.name().to_owned(),
            whole(row.ssd_usd),
            whole(row.ssd_nodes),
            whole(row.ssd_devices),
            row.ssd_bound.name().to_owned(),
            decimal(row.ssd_to_memory_usd, 3),
            row.crossing_gets_per_s.map_or_else(|| NONE.to_owned(), whole),
        ]);
    }
    table
}
