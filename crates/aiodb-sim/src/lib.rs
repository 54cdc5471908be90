//! aiodb on a simulated machine: the engine itself, driven step by step through operations, crashes and faults that
//! follow from a seed, and compared with a reference model.
//!
//! A seed becomes a [`script::Script`] ([`workload`]); [`run::run`] performs it and reports what is wrong, and
//! [`minimise`] makes a script that failed as short as it can. An operation that is new to the store joins with a line in
//! [`script::Action`], one in [`workload`], and an arm in `run.rs` that says what it does to the [`model`].
//!
//! Only the device, its clock, its randomness and the place of LMDB's file differ from production. Threads are not
//! simulated: their work is called in an order that the seed chooses.

mod backups;
mod client;
mod clock;
mod index_files;
mod medium;
pub mod minimise;
pub mod model;
mod operands;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod recover;
pub mod report;
pub mod run;
pub mod script;
mod snapshots;
mod streams;
mod waiting;
pub mod workload;
mod writes;
