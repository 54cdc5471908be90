//! A write in two halves, for tests of one thread.

use std::sync::Arc;

use crate::flow::batch::{AppendedBatch, Batch};
use crate::flow::lifecycle::Handle;
use crate::io::Device;
use crate::store::staging::Staged;
use crate::{Db, Durability, Result, Sequence};

/// A batch that is in the log and waits for its acknowledgement. For tests of one thread, in which it stands for the thread
/// that would sleep meanwhile.
#[doc(hidden)]
pub struct WaitingWrite<D: Device> {
    engine: Arc<Handle<D>>,
    sequence: Sequence,
    /// The batch of the log that must be durable; `None` if it is acknowledged.
    number: Option<u64>,
    /// Protects the batch's chunks from reclaim until its records are published.
    staging: Option<u64>,
}

impl<D: Device> WaitingWrite<D> {
    /// Whether nothing is left to wait for.
    #[doc(hidden)]
    pub fn is_acknowledged(&self) -> bool {
        self.number.is_none_or(|number| self.engine.commit.completed() >= number)
    }

    /// Returns when the write is acknowledged in its class. The caller leads its batch unless another write has.
    #[doc(hidden)]
    pub fn wait(&self) -> Result<Sequence> {
        self.number.map_or(Ok(()), |number| self.engine.wait_for_batch(number)).map(|()| self.sequence)
    }
}

impl<D: Device> Drop for WaitingWrite<D> {
    fn drop(&mut self) {
        if let Some(token) = self.staging {
            self.engine.staging.end(token);
        }
    }
}

impl<D: Device> Db<D> {
    /// Does the first half of [`Db::write_with`], and leaves the waiting to the caller.
    #[doc(hidden)]
    pub fn append_with(&self, batch: &Batch<D>, durability: Durability) -> Result<WaitingWrite<D>> {
        self.engine.check_open()?;
        let AppendedBatch { sequence, unpublished, staging } = self.engine.append_batch(batch, durability)?;
        let (number, staging) = (unpublished.map(|(_, number)| number), staging.map(Staged::into_token));
        Ok(WaitingWrite { engine: Arc::clone(&self.engine), sequence, number, staging })
    }
}
