//! The room of users: the types and methods that they call, with their documentation.
//!
//! It owns [`db::Db`], [`table::Table`] and the methods of batches, ingests, snapshots, streams and futures. It promises to check arguments, and to document
//! the cost and the durability of each call. It never touches bytes or files: everything goes through `flow`.

pub(crate) mod batch;
pub(crate) mod conditional;
pub(crate) mod copy;
pub(crate) mod db;
pub(crate) mod futures;
pub(crate) mod ingest;
pub(crate) mod open;
pub(crate) mod snapshot;
pub(crate) mod stats;
pub(crate) mod stream;
pub(crate) mod table;
pub(crate) mod waiting;
