//! What is known of checkpoints, and the segments that wait for them.

/// A segment that nothing refers to any more, but that an older checkpoint or a reader may still need.
pub(crate) struct Retired {
    pub(crate) number: u32,
    /// Free only after a checkpoint with a higher number.
    pub(crate) checkpoint: u64,
    /// Free only two epochs later.
    pub(crate) epoch: u64,
    /// Free only when the holds before this stamp are over.
    pub(crate) hold: u64,
}

/// What is known of checkpoints.
#[derive(Default)]
pub(crate) struct Checkpoints {
    /// The number of the checkpoint that was begun last, and of the one that is durable.
    pub(crate) begun: u64,
    pub(crate) durable: u64,
    /// Bytes of log when the last one was begun.
    pub(crate) log_bytes: u64,
    pub(crate) retired: Vec<Retired>,
}
