//! The room of bytes: every byte on disk that is not LMDB's, as `docs/format.md` describes it.
//!
//! It owns records, batches, segment headers, the manifest, places and positions in the log, a table's settings and the compression
//! of values. It promises that later versions decode the bytes that one version encodes, and that damage is told from foreign bytes.
//! It never does I/O and never knows an open store.

pub(crate) mod batch;
pub(crate) mod compression;
pub(crate) mod entry;
pub(crate) mod location;
pub(crate) mod manifest;
pub(crate) mod place;
pub(crate) mod position;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod segment;
pub(crate) mod settings;
pub(crate) mod spilled;
pub(crate) mod varint;
pub(crate) mod versions;
