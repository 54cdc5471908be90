//! Runs sorted by hash: the part of a `hash` index that memory has no room for.
//!
//! A key here is a table and the bits of a hash that the index knows; it stands for all places that lay under one tag when they were
//! taken out of memory. Nothing is known of their records: each may be of another key, a put, a delete or an operand. So each is an
//! operand here, and those of older runs count too, down to a floor, which is a delete. What is here was older than all that memory had under
//! the tag, and stays so.
//!
//! Runs are made by spills (`spilling.rs`) and merged (`merging.rs`). What is durable of them is what the last checkpoint of the index names
//! (`format/spilled.rs`): memory and runs come back together, as they were at one moment. So a file goes only when a checkpoint is durable
//! that does not name it.

mod live;
mod look_up;
mod merging;
mod spilling;
mod tables;
mod tag;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
mod walk;

pub(crate) use self::look_up::SpilledLookUp;
pub(crate) use self::merging::SpilledMerge;
pub(crate) use self::spilling::{Above, Progress, Spill};
pub(crate) use self::tables::{FIRST_FILE, SpilledTable, SpilledTables};
