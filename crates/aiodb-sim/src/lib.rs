//! aiodb on a simulated machine: the engine itself, driven step by step through operations, crashes and faults that
//! follow from a seed, and compared with a reference model.
//!
//! A seed becomes a [`script::Script`] ([`workload`]); [`run::run`] performs it and reports what is wrong, and
//! [`minimise`] makes a script that failed as short as it can. An operation that is new to the store joins with a line in
//! [`script::Action`], one in [`workload`], an arm in `run.rs`, and a method of the run that says what it does to the
//! [`model`].
//!
//! From the ground up: [`script`] has the words, [`model`] and `store_time` say what must be there and when, `process` is what
//! dies in a crash and `state` what outlives it, `answers` says what the store may answer. On these stand the operations, one
//! file for each kind, which do not know each other's files; `run.rs` calls them. A script never asks what has come of it:
//! [`workload`] knows nothing of runs.
//!
//! Only the device, its clock, its randomness and the place of LMDB's file differ from production. Threads are not
//! simulated: their work is called in an order that the seed chooses.

mod answers;
mod backups;
mod client;
mod clock;
mod droppings;
mod index_files;
mod ingests;
mod medium;
pub mod minimise;
pub mod model;
mod modes;
mod operands;
#[cfg(feature = "planted-bugs")]
pub mod planted;
mod process;
mod reads;
mod recover;
pub mod report;
pub mod run;
pub mod script;
mod snapshots;
mod state;
mod store_time;
mod streams;
mod tables;
mod upkeep;
mod waiting;
pub mod workload;
mod writes;
