//! The findings of recovery.

/// The counts of recovery, for `stat`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) batches: u64,
    pub(crate) records: u64,
    pub(crate) pending_records: u64,
    pub(crate) rebuilt: bool,
    pub(crate) milliseconds: u64,
}
