//! The numbers of checkpoints, and the segments that wait for them.

use crate::sync::{Mutex, MutexGuard, Rank};

/// A segment that no index refers to any more, but that an older checkpoint or a reader may still need.
pub(crate) struct Retired {
    pub(crate) number: u32,
    /// Free only after a checkpoint with a higher number.
    pub(crate) checkpoint: u64,
    /// Free only two epochs later.
    pub(crate) epoch: u64,
    /// Free only when the holds before this stamp are over.
    pub(crate) hold: u64,
    /// Free only when what it had of tables that are gone is out of the index: they have lower ids than this.
    pub(crate) next_table: u32,
    /// Free only when what it had of deleted ranges is out of the index: they have lower sequences than this.
    pub(crate) next_sequence: u64,
}

/// The numbers of checkpoints, and retired segments.
#[derive(Default)]
pub(crate) struct Checkpoints {
    /// The number of the checkpoint that was begun last, of the last one that an opening may find, and of the one that is durable.
    pub(crate) begun: u64,
    pub(crate) named: u64,
    pub(crate) durable: u64,
    /// Bytes of log when the last one was begun.
    pub(crate) log_bytes: u64,
    pub(crate) retired: Vec<Retired>,
}

/// Checkpoints, one at a time.
#[derive(Default)]
pub(crate) struct Checkpointing {
    /// Held while a checkpoint is made; writers never wait for it.
    pub(crate) one_at_a_time: Mutex<(), { Rank::Checkpointing as u8 }>,
    numbers: Mutex<Checkpoints, { Rank::Checkpoints as u8 }>,
}

impl Checkpointing {
    /// Goes on after the last checkpoint, which is durable.
    pub(crate) fn after(checkpoint: u64) -> Checkpointing {
        let numbers =
            Checkpoints { begun: checkpoint, named: checkpoint, durable: checkpoint, ..Checkpoints::default() };
        Checkpointing { numbers: Mutex::new(numbers), ..Checkpointing::default() }
    }

    pub(crate) fn numbers(&self) -> MutexGuard<'_, Checkpoints> {
        self.numbers.lock().expect("no code panics while it holds the checkpoints")
    }
}
