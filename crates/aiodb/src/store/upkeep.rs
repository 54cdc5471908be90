//! The layer of upkeep: checkpoints, purges and reclaim.

use std::ops::Deref;

use crate::io::Device;
use crate::store::append_path::AppendPath;
use crate::store::checkpoints::Checkpointing;
use crate::store::dropping::Dropping;
use crate::store::purging::Purging;
use crate::store::reclaiming::Reclaiming;
use crate::store::spilling::Spilling;
use crate::store::suspicion::Suspicion;
use crate::store::warming::Warming;
use crate::sync::{Mutex, Rank};

/// The layer of upkeep.
pub(crate) struct Upkeep<D: Device> {
    pub(crate) checkpointing: Checkpointing,
    pub(crate) reclaiming: Mutex<Reclaiming, { Rank::Reclaiming as u8 }>,
    /// Dropped and truncated tables. A step of a purge may commit the memtable.
    pub(crate) purging: Purging,
    pub(crate) suspicion: Suspicion,
    /// Places of `hash` tables on their way to runs.
    pub(crate) spilling: Spilling<D>,
    /// What is to be brought into memory.
    pub(crate) warming: Warming,
    /// What compaction filters have given up.
    pub(crate) dropping: Dropping,
    pub(crate) appends: AppendPath<D>,
}

impl<D: Device> Deref for Upkeep<D> {
    type Target = AppendPath<D>;

    fn deref(&self) -> &AppendPath<D> {
        &self.appends
    }
}
