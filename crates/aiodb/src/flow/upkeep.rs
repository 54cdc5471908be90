//! Work behind the scenes, in steps that are bounded in bytes and I/O: checkpoints, settling and folding, purges, reclaim, and the
//! threads that do them. A simulator calls the same steps in an order of its own.

pub(crate) mod background;
pub(crate) mod checkpoint;
pub(crate) mod commits;
mod drops;
pub(crate) mod fold;
pub(crate) mod memory;
pub(crate) mod merges;
pub(crate) mod purge;
pub(crate) mod reclaim;
pub(crate) mod settle;
pub(crate) mod spill;
mod warm;
