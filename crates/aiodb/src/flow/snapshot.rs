//! Snapshots: reads as of one moment, while writes go on.
//!
//! The records that a snapshot needs are retained in two ways: superseded entries as versions (`index/snapshots.rs`), in memory and in
//! files, and the bytes of segments that are retired after it began (`retention.rs`). When the disk is
//! full for them, puts are refused; when deletes find no room either, the oldest snapshot ends, and reads through it are typed errors from then
//! on. So it does where files cannot be written, and where 1,024 range deletes wait behind it.

use std::sync::Arc;

use crate::flow::lifecycle::Handle;
use crate::index::snapshots::View;
use crate::io::{Device, Disk};
use crate::planted::{self, Bug};
use crate::store::append_path::AppendPath;
use crate::store::catalog::{Generation, TableSlot};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::{Error, Result};

/// Parts of bringing versions to files that are done in one step of upkeep.
const SPILLS_PER_STEP: usize = 16;

/// A hold on one moment of a store.
pub(crate) struct Moment<D: Device> {
    pub(crate) engine: Arc<Handle<D>>,
    hold: u64,
    pub(crate) view: View,
    ended: Arc<AtomicBool>,
}

impl<D: Device> Moment<D> {
    /// Takes the present moment: all writes that were acknowledged before are seen.
    pub(crate) fn take(engine: &Arc<Handle<D>>) -> Result<Moment<D>> {
        engine.check_open()?;
        let at_ms = engine.now_ms();
        let (hold, ended) = engine.snapshots.begin(at_ms);
        let view = View { sequence: u64::MAX, at_ms: Some(at_ms), cached: false };
        let mut moment = Moment { engine: Arc::clone(engine), hold, view, ended };
        // A writer that was about to publish before has not seen that there is a snapshot.
        engine.publishers.wait_for_present();
        moment.view.sequence = engine.snapshot_sequence()?;
        engine.snapshots.set_sequence(hold, moment.view.sequence);
        Ok(moment)
    }

    /// An error if the store has ended the snapshot: else all that was read before this call is right.
    pub(crate) fn check(&self) -> Result<()> {
        let has_ended = self.ended.load(Ordering::SeqCst) && !planted::is_on(Bug::EndedSnapshotRead);
        if has_ended { Err(Error::SnapshotEnded) } else { Ok(()) }
    }
}

impl<D: Device> Drop for Moment<D> {
    fn drop(&mut self) {
        self.engine.snapshots.end(self.hold);
    }
}

/// A consistent view of a whole store, made by [`crate::Db::snapshot`]. It sees every write acknowledged before it was
/// made, whole batches or nothing of them, and nothing later; records that expire later stay visible in it.
///
/// Overwritten records and emptied segments are retained for it as long as it lives: [`crate::Stats::held_bytes`] says how much that is.
/// On a disk that is full for it puts are refused, while reads and deletes go on. The store ends its oldest snapshot when deletes find no
/// room either, when a write needs the room of what was dropped or deleted by ranges, when 1,024 range deletes wait behind it, and when files
/// cannot be written: reads through it fail with [`Error::SnapshotEnded`] then. It does not
/// survive a restart.
pub struct Snapshot<D: Device = Disk> {
    pub(crate) moment: Arc<Moment<D>>,
    pub(crate) tables: Arc<Vec<(Arc<TableSlot>, Arc<Generation>)>>,
}

impl<D: Device> Clone for Snapshot<D> {
    fn clone(&self) -> Self {
        Snapshot { moment: Arc::clone(&self.moment), tables: Arc::clone(&self.tables) }
    }
}

impl<D: Device> AppendPath<D> {
    /// A sequence up to which everything is published, not below that of any acknowledged write.
    fn snapshot_sequence(&self) -> Result<u64> {
        let (sequence, batch) = self.commit.sequence_to_publish();
        if let Some(batch) = batch {
            match self.wait_for_batch(batch) {
                // Records that a failed write has left unpublished never will be: neither gets nor snapshots see them.
                Err(Error::Failed { .. }) => {}
                outcome => outcome?,
            }
            self.publishers.wait_for_present();
        }
        Ok(sequence)
    }
}

impl<D: Device> AppendPath<D> {
    /// Does a bounded part of bringing superseded records to files for snapshots. True if there may be more to do.
    pub(crate) fn spill_versions(&self) -> Result<bool> {
        for _ in 0..SPILLS_PER_STEP {
            if !self.snapshots.spill_some()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
