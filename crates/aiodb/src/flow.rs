//! The room of flows: the paths of gets and writes, opening and closing, and upkeep.
//!
//! It owns the order of steps: from a key to its value (`read`, `reader`, `scan`), from a write to its acknowledgement (`operation`,
//! `batch`, `conditional`, `ingest`, `write`, `open_batch`, `lead`, `publish`), from files to an open store (`directories`, `lifecycle`, `recovery`) and
//! work behind the scenes (`upkeep`). Its promises are those of `docs/durability.md`. It never has state of its own between two calls: that
//! is in `store`, in layers, and a flow is a method of the lowest layer that has what it uses.

pub(crate) mod applied;
pub(crate) mod batch;
pub(crate) mod cached;
pub(crate) mod conditional;
pub(crate) mod directories;
pub(crate) mod futures;
pub(crate) mod get;
pub(crate) mod ingest;
pub(crate) mod lead;
pub(crate) mod lifecycle;
pub(crate) mod look_ups;
pub(crate) mod merging;
pub(crate) mod metrics;
pub(crate) mod metrics_file;
pub(crate) mod moves;
pub(crate) mod open_batch;
pub(crate) mod operation;
pub(crate) mod ordered_files;
pub(crate) mod paused;
pub(crate) mod publish;
pub(crate) mod read;
pub(crate) mod read_ahead;
pub(crate) mod reader;
pub(crate) mod recovery;
pub(crate) mod room;
pub(crate) mod scan;
pub(crate) mod snapshot;
pub(crate) mod spilled;
pub(crate) mod stats;
pub(crate) mod tables;
pub(crate) mod upkeep;
pub(crate) mod verify;
pub(crate) mod write;
