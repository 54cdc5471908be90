//! aiodb: a key-value store that keeps values on SSD and reads them with asynchronous direct I/O.
//!
//! ```
//! use aiodb::{Db, IndexKind, Options};
//!
//! # fn main() -> aiodb::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("store");
//! let db = Db::open(&path, Options::default())?;
//! let table = db.table_or_create("sensors", IndexKind::Hash)?;
//! table.put(b"kitchen", b"21.5")?; // on the device when it returns
//! assert_eq!(table.get(b"kitchen")?, Some(b"21.5".to_vec()));
//!
//! // Hundreds of gets in flight from one thread.
//! let mut reader = table.reader(64)?;
//! reader.submit(b"kitchen", 1)?;
//! while let Some(got) = reader.poll()? {
//!     assert_eq!(got.value?, Some(&b"21.5"[..]));
//! }
//! db.close()?;
//! # Ok(()) }
//! ```
//!
//! Start with [`Db`], [`Table`] and [`Options`]; [`Durability`] says what an acknowledged write means.

mod api;
mod budget;
mod cache;
mod checksum;
mod config;
mod error;
pub mod filter;
mod flow;
mod format;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod index;
pub mod io;
mod log;
pub mod merge;
mod metrics;
mod planted;
mod retention;
mod sequence;
mod store;
mod sync;
mod tools;

pub use api::db::Db;
pub use api::futures::{GetFuture, WriteFuture};
pub use api::ingest::Ingest;
pub use api::stream::{ValueReader, ValueWriter};
pub use api::table::Table;
#[doc(hidden)]
pub use api::waiting::WaitingWrite;
pub use budget::MemoryStats;
#[doc(hidden)]
pub use config::MergePolicy;
pub use config::{
    Backend, Compression, DEFAULT_INLINE_BYTES, Durability, IndexKind, MAX_INLINE_BYTES, MAX_KEY_BYTES,
    MAX_VALUE_BYTES, Options, StorageMode, TableModes, TableOptions, WriteOptions,
};
pub use error::{DirectoryFault, Error, Result};
pub use filter::{CompactionFilter, CompactionFilters};
pub use flow::batch::Batch;
pub use flow::conditional::Condition;
pub use flow::futures::driven::GetDriver;
pub use flow::reader::{Got, Reader};
pub use flow::scan::{Scan, ScanOptions};
pub use flow::snapshot::Snapshot;
pub use flow::stats::{Stats, TableStats};
pub use flow::upkeep::background::Step;
pub use flow::verify::VerifyReport;
pub use merge::{MergeOperator, MergeOperators};
pub use metrics::{Distribution, Metrics, TableMetrics};
#[cfg(feature = "planted-bugs")]
pub use planted::{Bug, plant};
pub use sequence::Sequence;
pub use tools::backup::{BackupOptions, BackupReport, Repository, RepositoryReport, RestorePoint, RestoreReport};
pub use tools::salvage::{DoubtfulKey, KeySpan, LostRegion, SalvageReport, salvage, salvage_several};
