//! The room of state: the state of an open store, flow by flow.
//!
//! It owns [`engine::Engine`], in layers, and the state of every flow in a type of its own: tables, epochs, the clock, checkpoints,
//! settling, purging, reclaim and the store's threads. It promises that each of these types guards its own invariants under its own
//! locks. It never has flows: nothing here reads, writes or moves records.

pub(crate) mod admission;
pub(crate) mod append_path;
pub(crate) mod background;
pub(crate) mod catalog;
pub(crate) mod checkpoints;
pub(crate) mod clock;
pub(crate) mod commit;
pub(crate) mod dropping;
pub(crate) mod engine;
pub(crate) mod epochs;
pub(crate) mod groups;
pub(crate) mod growth;
pub(crate) mod host;
pub(crate) mod memory;
pub(crate) mod purging;
pub(crate) mod read_path;
pub(crate) mod reclaiming;
pub(crate) mod recovered;
pub(crate) mod settling;
pub(crate) mod spilling;
pub(crate) mod staging;
pub(crate) mod status;
pub(crate) mod sums;
pub(crate) mod suspicion;
pub(crate) mod upkeep;
pub(crate) mod urgent;
pub(crate) mod warming;
pub(crate) mod write_path;
