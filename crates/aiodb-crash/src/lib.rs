//! Real crashes: the `aiodb` command runs under load and is killed ([`kill`]), or the power goes below its file system
//! (`power`, with the feature of that name). What it had acknowledged is known from a pipe, and must be there.
//!
//! - [`workload`] says which changes a writer makes, by a seed;
//! - [`process`] runs `aiodb apply` and keeps the record of acknowledgements;
//! - [`model`] compares a store with that record;
//! - [`planted`] shows that losses are seen.

pub mod kill;
pub mod model;
pub mod planted;
#[cfg(feature = "power")]
pub mod power;
pub mod process;
pub mod workload;
